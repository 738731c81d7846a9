"""Which token is which patch, measured on the model itself: change pixels and see which tokens differ at the first layer.

All patches are tested at once. Patch i has the number i + 1; image b of a batch changes the pixels of all patches whose number has
bit b. The images in which a token differs are then the bits of its patch's number, and 0 is a token that no pixel reaches. It costs
one pass through the embedding, over 1 + log2(patches) images; the pass ends at the first attention call.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NoReturn

from vit_viz.capture.calls import AttentionCall
from vit_viz.capture.layouts import fitting, plain_layout, strides
from vit_viz.capture.noise import noise_like, photos_of_noise
from vit_viz.capture.probing import HALF, AttentionProbe, heads_by_image, joined, moved, rounding, signatures
from vit_viz.capture.report import HOLDS, Check
from vit_viz.errors import CaptureError, ParameterError
from vit_viz.geometry import Grid, TokenLayout, place_words
from vit_viz.lazy import Tensor, nn, torch
from vit_viz.model.submodules import submodules_of

SINGLE_PATCHES = 7
"""How many patches are changed one by one where patches reach more than their own token."""
_TIMES = 4
"""That each of them is changed, since one change of many pixels may happen to move a neighbour most."""

_PIXELS = 2**21
"""Of the images that share a pass, in one channel."""

_WINDOWS = (
    "In {}, changed pixels reach tokens of some heads and not of others, as where windows stand in the place of heads: only "
    "attention over all tokens of one image can be traced."
)


UNANSWERED = Check(
    "unknown",
    "Which token is which patch could not be checked: not every change of a patch's pixels shows in its token.",
)
_UNSEEN = Check(
    "unknown",
    "Which token is which patch could not be checked: what the first attention reads of changed pixels was not seen.",
)


def check_placement(module: nn.Module, pixels: Tensor, layout: TokenLayout) -> Check:
    """Whether each patch reaches the token that the layout names, and no other, before the first layer.

    Args:
        pixels: [1, channels, height, width]; noise in their range takes the place of the photo.
    """
    first, brighter = photos_of_noise(pixels)
    check = _check_on(module, first, layout)
    return _check_on(module, brighter, layout) if check == UNANSWERED else check


def _check_on(module: nn.Module, photo: Tensor, layout: TokenLayout) -> Check:
    numbers = torch.arange(1, layout.num_patches + 1)
    expected = torch.zeros(layout.num_tokens, dtype=torch.long)
    expected[layout.patch_slice] = numbers
    reaches_others = True  # with every size that a patch may have
    for pitch in _pitches(module, layout, photo):
        measured = _numbers(module, photo, layout.grid, pitch, layout.num_tokens)
        if measured is None:
            return _UNSEEN
        if torch.equal(measured, expected):
            return HOLDS
        if len(measured) == len(expected):
            if torch.equal(measured[measured != 0].sort().values, numbers):  # in another order
                token = int(torch.ne(measured, expected).nonzero()[0])
                _refuse(module, layout, token, int(measured[token]))
            reaches_others &= bool((measured & ~expected).any())
    return _check_single_patches(module, photo, layout, reaches_others=reaches_others)


def find_layout(module: nn.Module, pixels: Tensor, tokens: int) -> tuple[Grid, int, int] | None:
    """Grid, number of tokens before the patches and after them, where the tokens respond to the patches row by row; else None.

    A convolution that cuts the patches tells their size. Where none does, as where they are cut by reshaping or overlap, it is
    measured which pixels each token responds to (`_by_reach`).
    """
    pixels, _ = photos_of_noise(pixels)
    for pitch in strides(module):
        # what does not fill a patch is padded, or cut off; the padded grid first: where the last row is padded, the cut one would
        # take its tokens for others after the patches
        (height, width), (down, across) = pixels.shape[-2:], pitch
        for grid in dict.fromkeys(
            [(-(-height // down), -(-width // across)), (height // down, width // across)]
        ):
            count = grid[0] * grid[1]
            numbers = _numbers(module, pixels, grid, pitch, tokens) if 1 <= count <= tokens else None
            if numbers is None or len(numbers) != tokens:
                continue
            before = int((numbers != 0).long().argmax())
            expected = torch.zeros(tokens, dtype=torch.long)
            expected[before : before + count] = torch.arange(1, count + 1)[: tokens - before]
            if torch.equal(numbers, expected):
                return grid, before, tokens - before - count
    return _by_reach(module, pixels, tokens)


def _by_reach(module: nn.Module, photo: Tensor, tokens: int) -> tuple[Grid, int, int] | None:
    """As `find_layout`, from the rectangle of pixels that each token responds to: patches of a row have the same centre."""
    ends = [
        _reach(module, photo, tokens, axis=axis, backward=backward)
        for axis in (2, 3)
        for backward in (False, True)
    ]
    top, bottom, left, right = ends
    if top is None or bottom is None or left is None or right is None:
        return None
    if tokens > 1 and all(bool((end == 1).all()) for end in (top, bottom, left, right)):
        raise ParameterError(
            f"Each of the {tokens} tokens that {type(module).__name__} attends over responds to pixels all over the image, as when "
            "attention runs over channels or tokens are mixed before it; if each patch still has its own token, row by row, pass "
            "layout=TokenLayout(grid=(rows, cols), prefix=(...))."
        )
    patches = (top <= photo.shape[2]).nonzero().flatten()  # the tokens that respond at all
    rows, row = torch.unique((top - bottom)[patches], return_inverse=True)
    cols, col = torch.unique((left - right)[patches], return_inverse=True)
    grid, numbers = (len(rows), len(cols)), row * len(cols) + col
    expected = torch.arange(grid[0] * grid[1])
    if not len(patches) or not torch.equal(numbers.sort().values, expected):
        return None
    before, after = int(patches[0]), tokens - 1 - int(patches[-1])
    if before + len(patches) + after != tokens:  # something stands between them
        return None
    if not torch.equal(numbers, expected):
        wrong = int(torch.ne(numbers, expected).nonzero()[0])
        _refuse(module, plain_layout(grid, before, after), before + wrong, int(numbers[wrong]) + 1)
    return grid, before, after


def _reach(
    module: nn.Module, photo: Tensor, tokens: int, *, axis: int, backward: bool = False
) -> Tensor | None:
    """How many rows of pixels (columns: axis 3) must change, from the first or the last on, until each token moves, [tokens].

    One more than there are for tokens that no pixel reaches; None where nothing is known. By halving, for all tokens at once.
    """
    size = photo.shape[axis]
    pitch = (1, photo.shape[3]) if axis == 2 else (photo.shape[2], 1)
    places = torch.arange(size).flip(0) if backward else torch.arange(size)
    still, moving = torch.zeros(tokens, dtype=torch.long), torch.full((tokens,), size + 1)
    while bool((is_open := moving - still > 1).any()):
        for counts in torch.unique(((still + moving) // 2)[is_open]).split(
            max(1, _PIXELS // photo[0, 0].numel())
        ):
            changes = places < counts[:, None]
            chosen = changes[:, :, None] if axis == 2 else changes[:, None]
            state = _at_first_call(module, torch.cat([photo, changed(photo, chosen, pitch)]), tokens)
            if state is None or state.signature.shape[1] != tokens:
                return None
            moves = state.moves()
            moving = moving.minimum(torch.where(moves > 0, counts[:, None], size + 1).amin(0))
            still = still.maximum(torch.where(moves > 0, 0, counts[:, None]).amax(0))
    return moving


class _Reached(BaseException):
    """Raised at the first attention call to end the pass; not an Exception, so that no model catches it."""


@dataclass(frozen=True, eq=False)
class _Tokens:
    """What the tokens can be told apart by at the first attention call."""

    signature: Tensor  # [images, tokens, features]
    queries: Tensor  # [images, heads, tokens, features]
    dtype: torch.dtype  # that the call computes in

    def moves(self) -> Tensor:
        """How far each token is from its value in the first image, [images - 1, tokens]."""
        return moved(self.signature[1:], against=self.signature[:1], dtype=self.dtype).cpu()

    @property
    def are_in_windows(self) -> bool:
        """Whether changes move tokens in some heads and not in others: those are windows, not heads.

        Heads differ in size, so each is measured by its own largest number. By chance a few numbers may change as little as
        rounding changes them, so a tenth of all clear moves must be of this kind.
        """
        sizes = self.queries[:1].abs().nan_to_num().amax((2, 3), keepdim=True)
        queries = self.queries / sizes.clamp_min(torch.finfo(torch.float32).tiny)
        moves = moved(queries[1:], against=queries[:1], dtype=self.dtype)
        if self.queries.shape[-1] == 1 and self.dtype in HALF:
            return False  # one number per head and token: too often rounded to what it was
        answering = moves[:, (moves > 0).any(2).any(0)]  # [images - 1, heads that respond at all, tokens]
        some = (answering > rounding(self.dtype) ** 0.5).any(1)
        every = (answering > 0).all(1)
        return 10 * int((some & ~every).sum()) > int(some.sum())


class _FirstCall(AttentionProbe):
    """Records the tokens at the first attention call of a pass, and ends the pass there."""

    def __init__(self, images: int) -> None:
        super().__init__(images)
        self.tokens: _Tokens | None = None
        self.has_windows = False

    def fused(self, call: AttentionCall, *, is_projected: bool) -> Tensor:  # noqa: ARG002
        self._end((call.query, call.key, call.value))

    def explicit(self, scores: Tensor, softmax: Callable[[], Tensor]) -> Tensor:  # noqa: ARG002
        self._end(self.scored(scores))

    def _end(self, operands: tuple[Tensor, ...]) -> NoReturn:
        signature, heads = signatures(operands, self._images), operands[0]
        queries = heads_by_image(heads, self._images)
        self.has_windows = heads.ndim > 3 and queries is None  # [images * windows, heads, tokens, features]
        if signature is not None and queries is not None:
            self.tokens = _Tokens(signature, queries, heads.dtype)
        raise _Reached


def _numbers(
    module: nn.Module, pixels: Tensor, grid: Grid, pitch: tuple[int, int], tokens: int
) -> Tensor | None:
    """The number that each token's changes spell, of a patch or of none, [tokens]; None where nothing is known."""
    count = grid[0] * grid[1]
    bits = 2 ** torch.arange(count.bit_length())
    chosen = (torch.arange(1, count + 1)[None] & bits[:, None]) != 0  # [bits, patches]
    moves = _moves(module, pixels, chosen.reshape(-1, *grid), pitch, tokens)
    if moves is None:
        return None
    return ((moves > 0).long() * bits[:, None]).sum(0)


def _moves(
    module: nn.Module, photo: Tensor, chosen: Tensor, pitch: tuple[int, int], tokens: int, *, noise: int = 1
) -> Tensor | None:
    """How far each token moves at the first call when the pixels of some patches [images, rows, cols] change, [images, tokens]."""
    images = torch.cat([photo, changed(photo, chosen, pitch, noise=noise)])
    state = _at_first_call(module, images, tokens)
    if state is None or not bool(state.signature[0].isfinite().all()):
        return None
    if state.are_in_windows:
        raise CaptureError(_WINDOWS.format(type(module).__name__))
    return state.moves()


def changed(pixels: Tensor, chosen: Tensor, pitch: tuple[int, int], *, noise: int = 1) -> Tensor:
    """The image with other noise in some patches, [images, channels, height, width].

    Args:
        chosen: which patches change in each image, Boolean [images, rows, cols].
        pitch: height and width of a patch in pixels.
        noise: which noise, see `noise_like`.
    """
    height, width = pixels.shape[-2:]
    mask = chosen.repeat_interleave(pitch[0], 1).repeat_interleave(pitch[1], 2)[:, :height, :width]
    mask = torch.nn.functional.pad(mask, (0, width - mask.shape[2], 0, height - mask.shape[1]))
    return torch.where(mask[:, None].to(pixels.device), noise_like(pixels, noise), pixels)


def _at_first_call(module: nn.Module, images: Tensor, tokens: int) -> _Tokens | None:
    """What tells the tokens apart at the first attention call; a model that takes no batch is run one image at a time."""
    together = _probe(module, images)
    if together.tokens is not None and together.tokens.signature.shape[1] == tokens:
        return together.tokens
    probes = [_probe(module, image[None]) for image in images]
    singly = [probe.tokens for probe in probes if probe.tokens is not None]
    if not singly and probes[0].has_windows:
        raise CaptureError(_WINDOWS.format(type(module).__name__))
    signature, queries = (
        joined([getattr(each, name) for each in singly]) for name in ("signature", "queries")
    )
    if len(singly) < len(images) or signature is None or queries is None:
        return together.tokens
    return _Tokens(signature, queries, singly[0].dtype)


def _probe(module: nn.Module, images: Tensor) -> _FirstCall:
    probe = _FirstCall(len(images))
    try:
        return probe if probe.runs(module, images) else _FirstCall(len(images))
    except _Reached:
        return probe


def _check_single_patches(
    module: nn.Module, photo: Tensor, layout: TokenLayout, *, reaches_others: bool
) -> Check:
    """Patches one by one, where their pixels reach several tokens, or not all of their own: each must move its own token most.

    An embedding of overlapping windows moves the neighbours a little; any other order moves another token most. What moves no token
    says nothing.
    """
    rows, cols = layout.grid
    patches = torch.linspace(0, layout.num_patches - 1, min(SINGLE_PATCHES, layout.num_patches)).long()
    chosen = torch.nn.functional.one_hot(patches, layout.num_patches).bool().reshape(-1, rows, cols)
    pitch = next(_pitches(module, layout, photo))
    responses = [
        _moves(module, photo, chosen, pitch, layout.num_tokens, noise=number)
        for number in range(1, _TIMES + 1)
    ]
    each = [moves for moves in responses if moves is not None]
    if len(each) < len(responses):
        return _UNSEEN
    moves = torch.stack(each).sum(0)
    if moves.shape[1] != layout.num_tokens:
        _refuse(module, layout)
    answered = (moves > 0).any(1)
    patches, most = patches[answered], moves[answered].argmax(1) - layout.num_prefix
    own = most == patches
    for patch, token in zip(patches.tolist(), most.tolist(), strict=True):
        (row, col), (other_row, other_col) = divmod(patch, cols), divmod(token, cols)
        is_near = 0 <= token < layout.num_patches and max(abs(row - other_row), abs(col - other_col)) <= 1
        if not is_near or (token != patch and 2 * int(own.sum()) <= len(patches)):
            _refuse(module, layout, layout.num_prefix + token, patch + 1)
    if not reaches_others or not bool(answered.any()):
        return UNANSWERED
    return Check(
        "fails",
        "By the first attention, pixels of one patch reach the tokens of others too (as where an embedding's windows overlap, or "
        "queries, keys or values are averaged over tokens): "
        "a bright patch may stand for what lies around it.",
    )


def _refuse(module: nn.Module, layout: TokenLayout, token: int | None = None, number: int = 0) -> NoReturn:
    what = "change of one patch's pixels moves tokens that are not its own"
    if token is not None and 0 <= token < layout.num_tokens:
        patch = (
            "no pixel at all" if number == 0 else f"patch {place_words(divmod(number - 1, layout.grid[1]))}"
        )
        what = f"token {token}, which would be {layout.name(token)}, answers to {patch}"
    raise CaptureError(
        f"The tokens that {type(module).__name__} attends over are not the {layout.grid[0]} x {layout.grid[1]} patches of its "
        f"image in this order: {what}. A map over patches would mislead; where only the layout is wrong, pass layout=."
    )


def _pitches(module: nn.Module, layout: TokenLayout, pixels: Tensor) -> Iterator[tuple[int, int]]:
    """Sizes that a patch may have in pixels, the likeliest first: the grid divides the image, or the image is cut or padded.

    Where no convolution tells the size of what is cut or padded, it is measured.
    """
    grid, (height, width) = layout.grid, pixels.shape[-2:]
    pitches = [(max(1, height // grid[0]), max(1, width // grid[1]))]
    pitches.append((math.ceil(height / grid[0]), math.ceil(width / grid[1])))
    yield from dict.fromkeys([*pitches, *fitting(strides(module), grid, (height, width))])
    if any(isinstance(part, nn.Conv2d) for part in submodules_of(module)):
        return
    first = [_reach(module, pixels, layout.num_tokens, axis=axis) for axis in (2, 3)]
    starts = [[] if each is None else torch.unique(each).tolist() for each in first]
    if all(len(each) > 1 for each in starts):
        yield tuple(each[1] - each[0] for each in starts)
