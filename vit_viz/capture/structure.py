"""Whether the recorded calls are all of a model's attention, one after another; what happens to their output is `head_mixing`.

Measured in one pass without attention: every call returns its values, as if each token looked at itself only. Nothing then passes
between tokens, unless something else mixes them. Three images go through together: the image itself; one with other pixels in half
of its patches ("changed"), so that only their tokens may differ; and the image once more ("pushed"), where the output of each layer
is changed strongly at one token, so that the values of the next layer must differ there.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from vit_viz.capture.calls import AttentionCall
from vit_viz.capture.counting import modules_around
from vit_viz.capture.explicit_softmax import Function, Product
from vit_viz.capture.flows import NOT_READ, UNKNOWN
from vit_viz.capture.head_mixing import check_heads
from vit_viz.capture.noise import random_numbers
from vit_viz.capture.placement import changed
from vit_viz.capture.probing import HALF, AttentionProbe, by_image, joined, moved
from vit_viz.capture.report import HOLDS, UNCHECKED, Check
from vit_viz.errors import CaptureError
from vit_viz.geometry import TokenLayout
from vit_viz.lazy import Tensor, nn, torch

Role = Literal["itself", "changed", "pushed"]
_ROLES: tuple[Role, ...] = ("itself", "changed", "pushed")


def check_structure(
    module: nn.Module, pixels: Tensor, layout: TokenLayout, *, is_placed: bool, flow: Check = UNCHECKED
) -> tuple[Check, Check]:
    """Whether the recorded calls are complete and effective, see `report.Structure`.

    Args:
        pixels: [1, channels, height, width].
        is_placed: patches reach no token but their own; else one patch in a corner is changed instead of half of them.
        flow: what `flows` found; where that is unknown, this pass has to do.

    Raises:
        CaptureError: blocks of the model attend in a way that is not seen, so that layers would have wrong numbers.
    """
    chosen = torch.zeros(1, *layout.grid, dtype=torch.bool)
    patches = torch.randperm(layout.num_patches, generator=torch.Generator().manual_seed(0))
    chosen.view(-1)[patches[: (layout.num_patches + 1) // 2] if is_placed else 0] = True
    pitch = (max(1, pixels.shape[-2] // layout.grid[0]), max(1, pixels.shape[-1] // layout.grid[1]))
    images = torch.cat([pixels, changed(pixels, chosen, pitch), pixels])
    calls = probed_calls(module, images, layout)
    if calls is None:
        unknown = Check(
            "unknown",
            "Its layers could not be checked: with other pixels and no attention between tokens its calls were not seen.",
        )
        return unknown, check_heads(module, pixels)
    return _complete(module, calls, layout, flow), check_heads(module, pixels)


def _complete(module: nn.Module, calls: list[ProbedCall], layout: TokenLayout, flow: Check) -> Check:
    """One attention per layer, each after the other, and nothing else that mixes tokens."""
    if flow.status != "holds" and not all(call.is_finite for call in calls):
        return Check("unknown", "Its layers could not be checked: its attention reads what is no number.")
    reached = calls[0].moves(calls[0].known, "changed")
    if reached is None or bool((reached > 0).all()):
        _check_blocks(module, [call.path for call in calls], mixes=True)
        if flow.status != "unknown":
            return flow
        why = (
            "its tokens are"
            if reached is None
            else "each patch reaches every token before the first layer, so they are"
        )
        return Check("unknown", f"What mixes its tokens could not be checked: {why} not told apart.")
    _check_places(module, calls, reached > 0)
    place = _first_mixing(calls, reached > 0)
    _check_blocks(module, [call.path for call in calls], mixes=place is not None)
    beside = _uneven_attention(calls)
    if beside:
        return Check(
            "fails",
            f"Further attention runs {beside}, with other numbers of queries and keys (a class token that attends by itself, or "
            "keys of merged patches), which is not shown.",
        )
    if flow.status == "fails":
        return flow
    if place is not None:
        where = f"before layer {place}" if place < len(calls) else "after the last layer"
        return Check(
            "fails",
            f"Tokens also exchange information outside the recorded attention ({where}), so maps through the layers would miss it.",
        )
    # what `flows` has seen it has seen with stronger changes; a small LayerScale hides those of half precision
    is_left = flow in (UNCHECKED, UNKNOWN) and calls[0].dtype not in HALF
    apart = _first_apart(calls, layout) if is_left else None
    if apart is not None:
        return Check(
            "fails",
            NOT_READ.format(apart, apart - 1),
        )
    trunks = Counter(_trunk(call.path) for call in calls)
    if len(trunks) > 1:
        names = ", ".join(f"{count} in {name or 'the model'}" for name, count in trunks.items())
        return Check(
            "fails",
            f"The recorded layers belong to different parts of the model ({names}), so a layer here is one attention call and "
            "not one block.",
        )
    return flow if flow is not UNCHECKED else HOLDS


def _first_mixing(calls: list[ProbedCall], reached: Tensor) -> int | None:
    """The call before which tokens mix (a token differs that no changed patch reaches); None where they do not."""
    for number, call in enumerate(calls):
        moves = call.moves(call.known, "changed")
        if moves is None or bool(((moves > 0) & ~reached).any()):
            return number
    later = (calls[-1].moves(states, "changed") for states in calls[-1].later)
    is_mixed = any(moves is not None and bool(((moves > 0) & ~reached).any()) for moves in later)
    return len(calls) if is_mixed else None


def _check_places(module: nn.Module, calls: list[ProbedCall], reached: Tensor) -> None:
    """Check that tokens keep their places: those that a patch reaches at the first call differ at every call, not others."""
    for number, call in enumerate(calls):
        if any(_are_elsewhere(call.moves(states, "changed"), reached) for states in (call.known, call.keys)):
            raise CaptureError(
                f"Between the first layer and layer {number}, tokens of {type(module).__name__} change places, so a map over "
                "patches would mislead."
            )


def _uneven_attention(calls: list[ProbedCall]) -> str:
    """Where attention runs whose queries and keys differ in number, beside one pool at the end; "" where none does."""
    if calls[0].uneven_before:
        return "before the first layer"
    between = next((number for number, call in enumerate(calls[:-1]) if call.uneven), None)
    if between is not None:
        return f"between layers {between} and {between + 1}"
    return "after the last layer" if calls[-1].uneven > 1 else ""


def _are_elsewhere(moves: Tensor | None, reached: Tensor) -> bool:
    """Whether tokens that should differ do not, and others do instead."""
    if moves is None:
        return False
    lost, won = (moves == 0) & reached, (moves > 0) & ~reached
    return bool(won.any()) and 10 * int(lost.sum()) > int(reached.sum())


def _first_apart(calls: list[ProbedCall], layout: TokenLayout) -> int | None:
    """The first call whose values do not depend on the output of the call before it; None where all do."""
    for number, call in enumerate(calls[1 : layout.num_patches + 1], 1):
        moves = call.moves(call.values, "pushed")
        if moves is None or float(moves[pushed_token(layout, number - 1)]) == 0:
            return number
    return None


def _check_blocks(module: nn.Module, paths: Sequence[str], *, mixes: bool) -> None:
    """Check that the attention of every block can be recorded."""
    unseen = _unseen_blocks(module, paths) if mixes else []
    if unseen:
        names = ", ".join(unseen[:4]) + (", ..." if len(unseen) > 4 else "")
        raise CaptureError(
            f"{len(unseen)} of the {len(set(paths)) + len(unseen)} blocks of {type(module).__name__} mix tokens in a way that "
            f"cannot be recorded ({names}), so layers would have wrong numbers. Recorded are scaled_dot_product_attention, "
            "nn.MultiheadAttention, and a softmax over queries x keys."
        )


def _trunk(path: str) -> str:
    """The path of a layer without its number, which all layers of one stack share."""
    names = path.split(".")
    first = next((place for place, name in enumerate(names) if re.search(r"\d$", name)), None)
    if first is not None:  # blocks.3, layer3, encoder_layer_3
        names[first] = re.sub(r"\d+$", "*", names[first])
    return ".".join("*" if name.isdigit() else name for name in names)


def _unseen_blocks(module: nn.Module, paths: Sequence[str]) -> list[str]:
    """Siblings of the blocks that attend, where tokens were also seen to mix without recorded attention."""
    modules = dict(module.named_modules())
    seen = {prefix for path in paths for prefix in _prefixes(path)}
    unseen: dict[str, None] = {}
    for name in sorted(seen):
        stack = name.rpartition(".")[0]
        if not _is_stack(modules.get(stack)) or _is_within_block(stack, modules, seen):
            continue
        for child, block in modules[stack].named_children():
            path = f"{stack}.{child}" if stack else child
            is_alike = type(block) is type(modules[name])
            if path not in seen and (is_alike or isinstance(modules[stack], nn.ModuleList)):
                unseen[path] = None
    return list(unseen)


def _is_stack(part: nn.Module | None) -> bool:
    return isinstance(part, nn.ModuleList | nn.Sequential)


def _is_within_block(stack: str, modules: dict[str, nn.Module], seen: set[str]) -> bool:
    """Whether a list holds the parts of one block, such as attention and MLP, and not blocks."""
    of_stack = [name for name in seen if name.rpartition(".")[0] == stack]
    outer = [name for name in _prefixes(stack)[:-1] if _is_stack(modules[name])]
    return len(of_stack) == 1 and bool(outer)


def _prefixes(path: str) -> list[str]:
    names = path.split(".")
    return [".".join(names[: end + 1]) for end in range(len(names))]


@dataclass(eq=False)
class ProbedCall:
    """One attention call of the pass, and what was seen from it to the next; tensors are [images, tokens, features]."""

    path: str  # dotted name of the innermost module that made it
    dtype: torch.dtype  # precision that it computes in
    known: Tensor | None  # of each token; None where the images or tokens cannot be told apart
    values: Tensor | None = None  # of each token; where they are not seen, `known`
    later: list[Tensor] = field(
        default_factory=list
    )  # whole sequences that were seen after it, until the next call
    keys: Tensor | None = None  # of each token, where the call shows them
    uneven_before: int = 0  # attentions before the first call whose queries and keys differ in number
    uneven: int = 0  # likewise after this call until the next

    @property
    def is_finite(self) -> bool:
        """Whether all is numbers that is known of the tokens of the image itself."""
        return self.known is None or bool(self.known[0].isfinite().all())

    def moves(self, states: Tensor | None, role: Role) -> Tensor | None:
        """How far each token of another image is from its value in the image itself, [tokens]."""
        if states is None:
            return None
        return moved(states[_ROLES.index(role)], against=states[0], dtype=self.dtype)


def probed_calls(module: nn.Module, images: Tensor, layout: TokenLayout) -> list[ProbedCall] | None:
    """The calls of the three images: of one pass, or of one pass each where the model takes no batch; None where neither ran."""
    calls = _record(module, images, _ROLES, layout)
    if calls and all(call.known is not None for call in calls):
        return calls
    singly = [
        _record(module, image[None], (role,), layout) for image, role in zip(images, _ROLES, strict=True)
    ]
    passes = [each for each in singly if each]
    if len(passes) < len(images) or len({len(each) for each in passes}) > 1:
        return calls or None
    return [_joined(same) for same in zip(*passes, strict=True)]


def _record(
    module: nn.Module, images: Tensor, roles: tuple[Role, ...], layout: TokenLayout
) -> list[ProbedCall] | None:
    probe = _NoAttention(module, layout, roles)
    return probe.calls if probe.runs(module, images) else None


def _joined(calls: Sequence[ProbedCall]) -> ProbedCall:
    """One call of three passes over one image each, as a call of one pass over three."""
    first = calls[0]
    later = [joined(same) for same in zip(*(call.later for call in calls), strict=False)]
    return ProbedCall(
        first.path,
        first.dtype,
        joined([call.known for call in calls]),
        joined([call.values for call in calls]),
        [states for states in later if states is not None],
        joined([call.keys for call in calls]),
        first.uneven_before,
        first.uneven,
    )


class _NoAttention(AttentionProbe):
    """Returns the values from every call and follows where they go; each image of the batch has a role."""

    def __init__(self, module: nn.Module, layout: TokenLayout, roles: tuple[Role, ...]) -> None:
        super().__init__(len(roles), layout.num_tokens)
        self.calls: list[ProbedCall] = []
        self._layout = layout
        self._pushed = roles.index("pushed") if "pushed" in roles else None
        self._paths: dict[int, str] = {
            id(part): name for name, part in reversed(list(module.named_modules()))
        }
        self._last_written: ProbedCall | None = None
        self._uneven_before = 0

    def fused(self, call: AttentionCall, *, is_projected: bool) -> Tensor:  # noqa: ARG002
        """The values; in the pushed image, changed at one token."""
        value = call.value
        if value.shape[-3] != call.query.shape[-3]:  # keys and values that several heads share
            value = value.repeat_interleave(call.query.shape[-3] // value.shape[-3], dim=-3)
        seen = self._arrived(call.query.dtype, call.query, call.key, call.value)
        seen.keys, seen.values = self.known(call.key), self.known(call.value)
        return self._push_output(value)

    def explicit(self, scores: Tensor, softmax: Callable[[], Tensor]) -> Tensor:  # noqa: ARG002
        """Each token looks at itself, but for a pair in the pushed image that looks at each other; the product tells the values."""
        seen = self._arrived(scores.dtype, *self.scored(scores))
        seen.values, self._last_written = seen.known, seen
        own = torch.eye(scores.shape[-1], dtype=scores.dtype, device=scores.device)
        attention = own.expand(scores.shape).contiguous()
        apart = self._pushed_part(attention)
        if apart is not None:
            token = self._pushed_token()
            other = (token + 1) % self._tokens
            apart[:, [token, other]] = 0
            apart[:, token, other] = apart[:, other, token] = _push(scores.dtype)
        return attention

    def uneven(self) -> None:
        """Count it with the call that it follows."""
        if self.calls:
            self.calls[-1].uneven += 1
        else:
            self._uneven_before += 1

    def other(self, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run it; see which sequences it is given, and whether it consumes written-out attention."""
        for tensor in args:
            self._note_sequence(tensor)
        return super().other(func, args, kwargs)

    def weighted(self, product: Product, func: Function, args: tuple[Any, ...], output: Any) -> Any:  # noqa: ARG002
        """The product tells the values of written-out attention."""
        call = self._last_written
        if call is not None and call.values is call.known:
            call.values = self.known(product.value)
        return output

    def _arrived(self, dtype: torch.dtype, *operands: Tensor) -> ProbedCall:
        call = ProbedCall(self._path(), dtype, self.known(*operands))
        call.uneven_before = 0 if self.calls else self._uneven_before
        self.calls.append(call)
        return call

    def _push_output(self, output: Tensor) -> Tensor:
        """The output of a call [..., tokens, features], changed at one token of the pushed image."""
        output = output.clone()
        apart = self._pushed_part(output)
        if apart is not None:
            size = _push(output.dtype) * output.abs().amax().nan_to_num().clamp_min(1e-3)
            noise = torch.randn(apart[:, 0].shape, generator=random_numbers(len(self.calls)))
            apart[:, self._pushed_token()] += size * noise.to(output.device, output.dtype)
        return output

    def _pushed_part(self, tensor: Tensor) -> Tensor | None:
        """The pushed image's part of [..., tokens, features], as [heads, tokens, features]."""
        is_split = tensor.shape[:-2].numel() % self._images == 0
        if self._pushed is None or not is_split or tensor.shape[-2] != self._tokens:
            return None
        return tensor.view(self._images, -1, *tensor.shape[-2:])[self._pushed]

    def _pushed_token(self) -> int:
        return pushed_token(self._layout, len(self.calls) - 1)

    def _note_sequence(self, tensor: Any) -> None:
        """Keep what is known of a whole sequence [images, tokens, dim] or [tokens, images, dim] that a function is given."""
        tokens = self._tokens
        if (
            not self.calls
            or not isinstance(tensor, Tensor)
            or tensor.ndim != 3
            or not tensor.is_floating_point()
        ):
            return
        if tensor.shape[:2] == (tokens, self._images):
            tensor = tensor.transpose(0, 1)
        if tensor.shape[:2] == (self._images, tokens) and tensor.shape[2] != tokens:
            states = by_image(tensor, self._images)
            assert states is not None
            self.calls[-1].later.append(states)

    def _path(self) -> str:
        """Dotted name of the innermost module on the stack that belongs to the model."""
        paths = (self._paths.get(id(module)) for _, module in modules_around())
        return next((path for path in paths if path is not None), "")


def pushed_token(layout: TokenLayout, number: int) -> int:
    """Which token the output of call `number` is changed at: another patch for each call."""
    return layout.num_prefix + number % layout.num_patches


def _push(dtype: torch.dtype) -> float:
    """How far an output is pushed, relative to its own size: far enough to show behind a small LayerScale."""
    return 100.0 if dtype in HALF else 1e4
