"""Passes in which the attention of one image stands in for that of others: nothing passes between tokens then, or it is found.

The photo itself goes first through each pass. In the images beside it the output of every attention call is the photo's, so that
tokens whose output is changed may differ from the photo's at their own places and nowhere else; or a whole sequence of tokens is
replaced by the photo's, so that whatever still differs afterwards came another way. `flows` concludes from this how tokens and
layers are connected.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from vit_viz.capture.calls import AttentionCall
from vit_viz.capture.explicit_softmax import CASTS, PRODUCTS, SOFTMAXES, Function, is_square, product_of
from vit_viz.capture.probing import AttentionProbe, by_image, signatures, undisturbed_pass
from vit_viz.geometry import TokenLayout

_ADDITIONS = frozenset({"add", "add_", "__add__", "__radd__", "__iadd__", "addcmul", "lerp"})


class Site(NamedTuple):
    """A place in a pass: the number of attention calls before it, and of functions that ran since the last one.

    The number -1 stands for the output of the next call itself.
    """

    calls: int
    number: int


@dataclass(frozen=True, eq=False)
class Change:
    """What is done to one image of a pass.

    Args:
        pushes: how far the output of each attention call is changed, as a multiple of its largest number; none where it is the
            photo's.
        pushed: tokens whose output is changed, Boolean [tokens].
        noise: share by which all outputs differ from the photo's, at random.
        is_other: its pixels are another photo's, and its attention is its own until it is cut.
        cut: where its sequence of tokens is replaced by the photo's.
        replaced: tokens of it that are, Boolean [tokens]; None for all.
        order: which of the photo's tokens stands at each place, [tokens]; None for its own.
    """

    pushes: Sequence[float] = ()
    pushed: Tensor | None = None
    noise: float = 0.0
    is_other: bool = False
    cut: Site | None = None
    replaced: Tensor | None = None
    order: Tensor | None = None

    def is_clamped(self, call: int) -> bool:
        """Whether the output of this call is the photo's."""
        return not self.is_other or (self.cut is not None and call >= self.cut.calls)


@dataclass(eq=False)
class Seen:
    """What one pass showed of its images.

    Args:
        calls: what is known of each token at each attention call, each [images, tokens, features].
        later: sequences that functions returned after the last call, likewise.
        answer: the scores of classes, [images, classes]; None where the model returns something else.
        sites: where functions returned sequences, and whether they were sums.
        dtype: precision of the attention.
        largest: bytes of the largest tensor that a function returned.
        is_whole: every call's output was seen, so that it could be clamped.
    """

    calls: list[list[Tensor | None]] = field(default_factory=list)
    later: list[Tensor] = field(default_factory=list)
    answer: Tensor | None = None
    sites: dict[Site, bool] = field(default_factory=dict)
    dtype: torch.dtype = torch.float32
    largest: int = 0
    is_whole: bool = True


Kept = dict[Any, Tensor]
"""Outputs and sequences of the photo, for models that take one image at a time."""


class ClampedPass(AttentionProbe):
    """One forward pass over the photo and changed images, or over one of them.

    Args:
        changes: of each image, None for the photo.
        depth: attention calls of the model; 0 where they are not counted yet.
        kept: what the photo gave, where each image has a pass of its own; the photo's pass fills it.
        wanted: sites of which the photo's pass keeps the sequence.
    """

    def __init__(
        self,
        layout: TokenLayout,
        changes: Sequence[Change | None],
        *,
        depth: int,
        kept: Kept | None = None,
        wanted: Collection[Site] = (),
    ) -> None:
        super().__init__()
        self.seen = Seen()
        self._layout, self._changes, self._depth, self._kept = layout, changes, depth, kept
        self._cuts = {change.cut for change in changes if change is not None} | set(wanted)
        self._softmax: list[Tensor] = []  # the last written-out attention and casts of it
        self._products = 0  # that have consumed it
        self._number = 0

    @property
    def _images(self) -> int:
        return len(self._changes)

    def fused(self, call: AttentionCall, *, is_projected: bool) -> Tensor:  # noqa: ARG002
        """The call's output, the photo's where it is clamped."""
        self._arrived((call.query, call.key, call.value))
        return self._clamped(call.run(), axis=-2)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Called by torch in place of `func`."""
        scores = (kwargs or {}).get("input", args[0] if args else None) if func in SOFTMAXES else None
        if not is_square(scores):
            return super().__torch_function__(func, types, args, kwargs)
        assert isinstance(scores, Tensor)
        self._arrived(self.scored(scores))
        self._scored = None
        attention = func(*args, **(kwargs or {}))
        self._softmax = [attention]
        return attention

    def finish(self) -> None:
        """The pass is over, or its next attention begins: whatever consumed the last written-out one was seen by now."""
        if self._softmax and not self._products:
            self.seen.is_whole = False
        self._softmax, self._products = [], 0

    def uneven(self) -> None:
        """A pool reads tokens; it is no layer."""

    def other(self, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run it; clamp the product of written-out attention and replace sequences where they are cut."""
        output = func(*args, **kwargs)
        if self._softmax:
            output = self._after_softmax(func, args, output)
        if isinstance(output, Tensor) and output.is_floating_point():
            self.seen.largest = max(self.seen.largest, output.nbytes)
            self._number += 1
            axis = self._image_axis(output)
            if axis is not None:
                output = self._at_site(func, output, axis, in_place=bool(args) and output is args[0])
        return output

    def _arrived(self, operands: tuple[Tensor, ...]) -> None:
        self.finish()
        self._number = 0
        self.seen.calls.append([self._of_tokens(signatures(operands, self._images))])
        self.seen.dtype = operands[0].dtype

    def _of_tokens(self, states: Tensor | None) -> Tensor | None:
        return states if states is not None and states.shape[1] == self._layout.num_tokens else None

    def _after_softmax(self, func: Function, args: tuple[Any, ...], output: Any) -> Any:
        if func in CASTS and any(args[0] is known for known in self._softmax):
            self._softmax.append(output)
        if func not in PRODUCTS or len(args) < 2:
            return output
        product = product_of(func, args, output, self._softmax)
        if product is None:
            return output
        self._products += 1
        self.seen.calls[-1].append(self._of_tokens(by_image(product.value, self._images)))
        return self._clamped(output, axis=product.tokens)

    def _clamped(self, output: Tensor, *, axis: int) -> Tensor:
        """An attention's output, the photo's where it is clamped, and changed where it is pushed.

        Args:
            axis: of the tokens.
        """
        number = len(self.seen.calls) - 1
        if len(output) % self._images or output.shape[axis] != self._layout.num_tokens:
            self.seen.is_whole = False
            return output
        apart = output.reshape(self._images, -1, *output.shape[1:]).clone()  # [images, ...]
        photo = self._of_photo((number, self._products), apart)
        for image, change in enumerate(self._changes):
            if change is not None and change.is_clamped(number):
                pushed = self._pushed(photo, change, number, axis)
                apart[image] = _given(pushed, apart[image], change, number, axis)
        return apart.flatten(0, 1)

    def _pushed(self, photo: Tensor, change: Change, number: int, axis: int) -> Tensor:
        """The photo's output, changed at some tokens by noise that depends on the layer alone."""
        random = torch.Generator().manual_seed(number)
        if change.noise:
            signs = torch.randint(0, 2, photo.shape, generator=random) * 2 - 1
            return photo * (1 + change.noise * signs.to(photo.device, photo.dtype))
        push = change.pushes[number] if change.pushes else 0.0
        if not push or change.pushed is None:
            return photo
        exact = photo.float() if photo.dtype in (torch.float16, torch.bfloat16) else photo
        noise = torch.randn(photo.shape, generator=random).to(exact.device, exact.dtype)
        size = push * exact.abs().amax().nan_to_num().clamp_min(1e-3)
        most = torch.finfo(photo.dtype).max / 4
        mask = change.pushed.to(photo.device).reshape(-1, *[1] * (-1 - axis))
        pushed = (exact + size * noise).clamp(-most, most).to(photo.dtype)
        return torch.where(mask, pushed, photo)

    def _of_photo(self, key: Any, apart: Tensor) -> Tensor:
        """The photo's part of [images, ...], from its own pass where each image has one."""
        if self._kept is None:
            return apart[0].clone()
        if self._changes[0] is None:
            self._kept[key] = apart[0].clone()
        return self._kept[key]

    def _image_axis(self, tensor: Tensor) -> int | None:
        """The axis of the images in [images, tokens, dim], [tokens, images, dim] or [images, rows, cols, dim]; else None."""
        images, tokens = self._images, self._layout.num_tokens
        shape = tuple(tensor.shape)
        if shape[:-1] in ((images, tokens), (images, *self._layout.grid)):
            return 0 if shape[:-1] == (images, tokens) or not self._layout.named else None
        return 1 if shape[:-1] == (tokens, images) else None

    def _at_site(self, func: Function, output: Tensor, axis: int, *, in_place: bool) -> Tensor:
        """A sequence that a function returned: noted, and replaced in the images that are cut here."""
        site = Site(len(self.seen.calls), self._number)
        self.seen.sites[site] = getattr(func, "__name__", "") in _ADDITIONS
        if site in self._cuts:
            output = output if in_place else output.clone()
            self._replace(output.movedim(axis, 0), site)
        if 0 < self._depth == site.calls and output.ndim == 3:
            states = by_image(output.movedim(axis, 0), self._images)
            assert states is not None
            self.seen.later.append(states)
        return output

    def _replace(self, apart: Tensor, site: Site) -> None:
        photo = self._of_photo(site, apart)
        for image, change in enumerate(self._changes):
            if change is None or change.cut != site:
                continue
            given = photo
            if change.order is not None:
                given = photo.flatten(0, -2)[change.order.to(photo.device)].reshape(photo.shape)
            if change.replaced is not None:
                mask = change.replaced.to(photo.device).reshape(*photo.shape[:-1], 1)
                given = torch.where(mask, given, apart[image])
            apart[image] = given


def _given(photo: Tensor, own: Tensor, change: Change, number: int, axis: int) -> Tensor:
    """What an image is given at a call: the photo's output, or where it is cut there only what is to be replaced of its own."""
    if change.cut != Site(number, -1):
        return photo
    if change.order is not None:
        photo = photo.index_select(axis, change.order.to(photo.device))
    if change.replaced is None:
        return photo
    return torch.where(change.replaced.to(photo.device).reshape(-1, *[1] * (-1 - axis)), photo, own)


def run_pass(
    module: nn.Module,
    pixels: Tensor,
    layout: TokenLayout,
    changes: Sequence[Change | None],
    *,
    depth: int = 0,
    kept: Kept | None = None,
    wanted: Collection[Site] = (),
) -> Seen | None:
    """What one pass over these images shows; None where the model does not run on them."""
    clamped = ClampedPass(layout, changes, depth=depth, kept=kept, wanted=wanted)
    try:
        with undisturbed_pass(module), clamped:
            output = module(pixels)
        clamped.finish()
    except Exception:  # a model may raise anything on a batch that it was not built for: nothing is known
        return None
    answer = output if isinstance(output, Tensor) else getattr(output, "logits", None)
    if isinstance(answer, Tensor) and answer.ndim == 2 and len(answer) == len(changes):
        clamped.seen.answer = answer.float()
    return clamped.seen
