"""How far changed images differ from the photo, at every attention call and in the answer.

Several images share a pass, as many as a bound in bytes allows; each pass begins with the photo, and with the photo under noise of
one unit in the last place, which tells how much of a difference is rounding. Where a model takes no batch, or lets the images of a
batch influence one another (a norm over the batch), each image has a pass of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from vit_viz.capture.clamped_pass import Answer, Change, ClampedPass, Kept, Seen, Site
from vit_viz.capture.noise import noise_like
from vit_viz.capture.placement import changed
from vit_viz.capture.probing import HALF, rounding
from vit_viz.capture.returned import answer_in
from vit_viz.geometry import TokenLayout
from vit_viz.lazy import Tensor, nn, torch

PASS_BYTES = 256 << 20
"""What the images of one pass may need, as far as the largest tensor tells."""

_LIVE_TENSORS = 6  # of the largest size at once: the branches of an MLP, scores and their softmax
_FEWEST = 4  # images of a pass: two for comparison, and two that are changed


@dataclass(frozen=True, eq=False)
class Response:
    """How far one image differs from the photo, as a share of the photo's largest number; 0 is rounding."""

    calls: Tensor  # each token's operands at each call, [calls, tokens]; NaN where they are not known
    keys: Tensor  # likewise its key alone
    later: Tensor  # each token in whichever sequence after the last call it differs most, [tokens]
    outputs: Tensor  # each output of the answer, [outputs]; none where the model returns something else

    @property
    def answer(self) -> float:
        """The answer as a whole; 0 where there is none."""
        return float(self.outputs.max()) if len(self.outputs) else 0.0


class Responses:
    """Runs a model on changed images beside the photo.

    Args:
        pixels: [1, channels, height, width].
        is_alone: each token attends to itself alone, also in the photo.
        answer: what of all that the model returns is its answer.

    Attributes:
        photo: what the photo's own pass showed; nothing, and not whole, where the model does not run.
        depth: attention calls of the model.
    """

    def __init__(
        self,
        module: nn.Module,
        pixels: Tensor,
        layout: TokenLayout,
        *,
        is_alone: bool = False,
        answer: Answer = answer_in,
    ) -> None:
        self._answer = answer
        self._module, self._pixels, self._layout, self._is_alone = module, pixels, layout, is_alone
        noise = noise_like(pixels, 1)
        self._other = noise + (pixels.amax() - noise) / 4  # another photo of noise, and brighter
        self._is_batched = True
        self.depth = 0
        self.photo = self._run([None]) or Seen(is_whole=False)
        self.depth = len(self.photo.calls)

    def alone(self) -> Responses:
        """The same model where each token attends to itself alone, for attention whose output cannot be the photo's."""
        return Responses(self._module, self._pixels, self._layout, is_alone=True)

    def of(self, changes: Sequence[Change]) -> list[Response] | None:
        """The response of each changed image; None where the model does not run on them, or not twice alike."""
        if self._is_batched:
            responses = self._batched(changes)
            if responses is not None:
                return responses
            self._is_batched = False
        return self._singly(changes)

    def _batched(self, changes: Sequence[Change]) -> list[Response] | None:
        count = max(_FEWEST, PASS_BYTES // max(1, _LIVE_TENSORS * self.photo.largest)) - 2
        responses: list[Response] = []
        for first in range(0, len(changes), count):
            seen = self._run([None, self._noise(), *changes[first : first + count]])
            if (
                seen is None
                or (not seen.is_whole and any(map(_is_clamped, changes)))
                or not _agree(seen, self.photo)
            ):
                return None
            part = _responses(seen)
            if part is None:
                return None
            responses += part
        return responses

    def _singly(self, changes: Sequence[Change]) -> list[Response] | None:
        kept: Kept = {}
        photo = self._run([None], kept, {change.cut for change in changes if change.cut is not None})
        responses = [photo, *(self._run([change], kept) for change in (self._noise(), *changes))]
        must_be_whole = any(map(_is_clamped, changes))
        whole = [seen for seen in responses if seen is not None and (seen.is_whole or not must_be_whole)]
        joined = _joined(whole) if len(whole) == len(responses) else None
        return None if joined is None else _responses(joined)

    def _run(
        self, changes: Sequence[Change | None], kept: Kept | None = None, wanted: Collection[Site] = ()
    ) -> Seen | None:
        clamped = ClampedPass(
            self._layout,
            changes,
            depth=self.depth,
            kept=kept,
            wanted=wanted,
            is_alone=self._is_alone,
            answer=self._answer,
        )
        return clamped.over(self._module, torch.cat([self._pixels_of(change) for change in changes]))

    def answer_of(self, change: Change | None) -> Tensor | None:
        """What the model answers of one changed image alone, [numbers], or of the photo."""
        seen = self._run([change])
        return None if seen is None or seen.answer is None else seen.answer[0]

    def slopes(self, site: Site) -> Tensor | None:
        """As `ClampedPass.slopes` of the photo."""
        clamped = ClampedPass(self._layout, [None], depth=self.depth, answer=self._answer, leaf=site)
        return clamped.slopes(self._module, self._pixels)

    def _pixels_of(self, change: Change | None) -> Tensor:
        if change is not None and change.patches is not None:
            (height, width), (rows, cols) = self._pixels.shape[-2:], self._layout.grid
            return changed(
                self._pixels, change.patches[None], (max(1, height // rows), max(1, width // cols))
            )
        return self._other if change is not None and change.is_other else self._pixels

    def _noise(self) -> Change:
        return Change(noise=torch.finfo(self.photo.dtype).eps)


def _is_clamped(change: Change) -> bool:
    """Whether a change stands only where every output can be the photo's."""
    return change.attends_otherwise is None


def _agree(seen: Seen, alone: Seen) -> bool:
    """Whether the photo is the same among others as alone, so that images do not influence one another."""
    if _shape(seen) != _shape(alone) or (seen.answer is None) != (alone.answer is None):
        return False
    bound = 0.3 if seen.dtype in HALF else 1e-2  # attention amplifies rounding
    pairs = zip(_tensors(seen), _tensors(alone), strict=True)
    return all(bool((distances(torch.cat([b, a[:1]])) <= bound).all()) for a, b in pairs)


def _shape(seen: Seen) -> list[list[bool]]:
    """Which tokens are known at which calls."""
    return [[states is not None for states in call] for call in (*seen.calls, *seen.keys)]


def _tensors(seen: Seen) -> list[Tensor]:
    answer = [] if seen.answer is None else [seen.answer[:, :, None]]
    return [states for call in (*seen.calls, *seen.keys) for states in call if states is not None] + answer


def _joined(passes: Sequence[Seen]) -> Seen | None:
    """Passes over one image each as one pass over all of them; None where they do not show the same."""
    first = passes[0]
    if any(_shape(each) != _shape(first) or len(each.later) != len(first.later) for each in passes):
        return None
    states = [
        [None if same[0] is None else torch.cat(same) for same in zip(*call, strict=True)]
        for call in zip(*((*each.calls, *each.keys) for each in passes), strict=True)
    ]
    count = len(first.calls)
    later = [torch.cat(same) for same in zip(*(each.later for each in passes), strict=True)]
    answers = [each.answer for each in passes if each.answer is not None]
    answer = torch.cat(answers) if len(answers) == len(passes) else None
    return Seen(states[:count], states[count:], later, answer, dtype=first.dtype)


def _responses(seen: Seen) -> list[Response] | None:
    """Of all images but the first two; None where the second, the photo under noise of rounding, is another photo."""
    answer = [] if seen.answer is None else [seen.answer[:, :, None]]
    parts = [[states for states in call if states is not None] for call in (*seen.calls, *seen.keys)]
    moves = [[_moves(states, seen.dtype) for states in part] for part in (*parts, seen.later, answer)]
    present = [[each for each in part if each is not None] for part in moves]
    *of_calls, of_later, of_answer = zip(present, moves, strict=True)
    some, all_later = of_later
    # a sequence of nothing but rounding, such as the means of normed tokens, says nothing where there is another
    if any(len(some) < len(part) for some, part in (*of_calls, of_answer)) or (all_later and not some):
        return None
    largest = [torch.stack(part).amax(0) if part else None for part in present]
    count, tokens = next((each.shape for each in largest if each is not None), (0, 0))
    unknown = torch.full((count, tokens), torch.nan)
    *states, later = [unknown if each is None else each for each in largest[:-1]]
    answers = torch.zeros(count, 0) if largest[-1] is None else largest[-1]
    calls, keys = torch.stack(states, 1).chunk(2, dim=1)  # [images, calls, tokens]
    return [Response(*parts) for parts in zip(calls, keys, later, answers, strict=True)]


def _moves(states: Tensor, dtype: torch.dtype) -> Tensor | None:
    """How far each token of all images but the first two has moved, [images - 2, tokens]; 0 is rounding."""
    away = distances(states)
    spread = float(away[0].max())
    if spread > (0.3 if dtype in HALF else 1e-2):
        return None
    least = 2 * torch.finfo(dtype).eps if dtype in HALF else rounding(torch.float32)
    return torch.where(away[1:] > max(least, 4 * spread), away[1:], 0.0).cpu()


def distances(states: Tensor) -> Tensor:
    """How far each token lies from the first image's, as a share of its largest number, [images - 1, tokens]."""
    photo = states[:1]
    scale = photo.abs().nan_to_num(posinf=0.0).amax().clamp_min(torch.finfo(torch.float32).tiny)
    away = torch.where(photo.isfinite(), (states[1:] - photo).abs(), 0.0)
    return (away.amax(-1) / scale).nan_to_num(nan=torch.inf)
