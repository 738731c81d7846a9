"""Passes in which the attention of one image stands in for that of others: nothing passes between tokens then, or it is found.

The photo itself goes first through each pass. In the images beside it the output of every attention call is the photo's, so that
tokens whose output is changed may differ from the photo's at their own places and nowhere else; or a whole sequence of tokens is
replaced by the photo's, so that whatever still differs afterwards came another way. `flows` concludes from this how tokens and
layers are connected. Where an attention's output is not seen whole, so that it cannot be the photo's, each token may attend to
itself alone instead.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from vit_viz.capture.calls import AttentionCall
from vit_viz.capture.counting import modules_around
from vit_viz.capture.explicit_softmax import SOFTMAXES, Function, Product
from vit_viz.capture.gradients import differentiable, gradients
from vit_viz.capture.noise import random_numbers
from vit_viz.capture.pools import picks_among
from vit_viz.capture.probing import HALF, AttentionProbe, by_image, undisturbed_pass
from vit_viz.capture.returned import answer_in, place_of_scores
from vit_viz.geometry import TokenLayout
from vit_viz.lazy import Tensor, nn, torch

_ADDITIONS = frozenset({"add", "add_", "__add__", "__radd__", "__iadd__", "addcmul", "lerp"})


class Site(NamedTuple):
    """A place in a pass: the number of attention calls before it, and of functions that ran since the last one.

    The number -1 stands for the output of the next call itself.
    """

    calls: int
    number: int


@dataclass(frozen=True, eq=False)
class Change:
    """What is done to one image of a pass."""

    pushes: Sequence[float] = ()  # how far each call's output is changed, as a multiple of its largest number
    pushed: Tensor | None = None  # tokens whose output is changed, Boolean [tokens]
    noise: float = 0.0  # share by which all outputs differ from the photo's, at random
    patches: Tensor | None = None  # patches whose pixels are changed, Boolean [rows, cols]
    is_other: bool = False  # its pixels are another photo's, and its attention is its own until it is cut
    cut: Site | None = None  # where its sequence of tokens is replaced by the photo's
    replaced: Tensor | None = None  # tokens of it that are, Boolean [tokens]; None for all
    order: Tensor | None = None  # which token stands at each place where it is cut, [tokens]; None: its own
    pools_otherwise: bool = (
        False  # what an attention or softmax over tokens that is no layer gives is another
    )
    attends_otherwise: int | None = None  # what this call gives is another, and nothing else is changed

    def is_clamped(self, call: int) -> bool:
        """Whether the output of this call is the photo's."""
        if self.attends_otherwise is not None:
            return False
        return not self.is_other or (self.cut is not None and call >= self.cut.calls)


@dataclass(eq=False)
class Seen:
    """What one pass showed of its images; what is known of tokens is [images, tokens, features]."""

    calls: list[list[Tensor | None]] = field(default_factory=list)  # of each token at each attention call
    keys: list[list[Tensor | None]] = field(default_factory=list)  # likewise its key alone, where it is shown
    later: list[Tensor] = field(default_factory=list)  # sequences that functions returned after the last call
    answer: Tensor | None = None  # [images, numbers]; None where it is not known of what the model returns
    has_scores: bool = False  # the answer is scores, [images, outputs]
    sites: dict[Site, bool] = field(default_factory=dict)  # of sequences; whether they were sums
    dtype: torch.dtype = torch.float32  # of the attention
    largest: int = 0  # bytes of the largest tensor that a function returned
    is_whole: bool = True  # every call's output was seen, so that it could be clamped
    pools: bool = False  # an attention whose queries and keys differ in number runs after the last call
    weighs: bool = False  # a softmax over tokens does
    picks: bool = False  # a maximum or minimum over tokens does
    uneven: list[int] = field(default_factory=lambda: [0])
    """How many attentions have more queries than keys, or fewer: before the first call, and after each."""
    paths: list[str] = field(default_factory=list)
    """Dotted name of the module that makes each call; of the photo's first pass alone."""


Answer = Callable[[Any, int], "Tensor | None"]
"""From what a model returned for so many images to what it answers, [images, numbers]; None where that is not known."""

Kept = dict[Any, Tensor]
"""Outputs and sequences of the photo, for models that take one image at a time."""


class ClampedPass(AttentionProbe):
    """One forward pass over the photo and changed images, or over one of them.

    Args:
        changes: of each image, None for the photo.
        depth: attention calls of the model; 0 where they are not counted yet.
        kept: what the photo gave, where each image has a pass of its own; the photo's pass fills it.
        wanted: sites of which the photo's pass keeps the sequence.
        is_alone: each token attends to itself alone, in every image, and no output is the photo's.
        answer: what of all that the model returns is its answer.
        leaf: where the sequence of tokens becomes the start of a graph, for `slopes`.
    """

    def __init__(
        self,
        layout: TokenLayout,
        changes: Sequence[Change | None],
        *,
        depth: int = 0,
        kept: Kept | None = None,
        wanted: Collection[Site] = (),
        is_alone: bool = False,
        answer: Answer = answer_in,
        leaf: Site | None = None,
    ) -> None:
        super().__init__(len(changes), layout.num_tokens)
        self.seen = Seen()
        self._answer = answer
        self._leaf = leaf
        self._sequence: Tensor | None = None  # of tokens, at the leaf
        self._layout, self._changes, self._depth, self._kept = layout, changes, depth, kept
        self._cuts = {change.cut for change in changes if change is not None} | set(wanted)
        self._is_alone = is_alone
        self._products = 0  # that have consumed the last written-out attention
        self._weights: list[torch.Size] = []  # of softmaxes over tokens since the last call
        self._number = 0
        self._names: dict[int, str] = {}

    def fused(self, call: AttentionCall, *, is_projected: bool) -> Tensor:  # noqa: ARG002
        """The call's output, the photo's where it is clamped; each token's own value where it is alone."""
        self._arrived((call.query, call.key, call.value), keys=call.key)
        if not self._is_alone:
            return self._clamped(call.run(), axis=-2)
        shared = call.query.shape[-3] // call.value.shape[-3]  # heads that have keys and values in common
        return self._clamped(call.value.repeat_interleave(shared, dim=-3), axis=-2)

    def _attention(self, call: AttentionCall, *, is_projected: bool) -> Tensor:
        output = super()._attention(call, is_projected=is_projected)
        return self._attended_otherwise(output) if call.is_square else self._pooled_otherwise(output)

    def explicit(self, scores: Tensor, softmax: Callable[[], Tensor]) -> Tensor:
        """The model's own, whose products are clamped; the identity where each token is alone."""
        self._arrived(self.scored(scores))
        if not self._is_alone:
            return self._attended_otherwise(softmax())
        own = torch.eye(scores.shape[-1], dtype=scores.dtype, device=scores.device)
        return self._clamped(own.expand(scores.shape).contiguous(), axis=-2)

    def over(self, module: nn.Module, pixels: Tensor) -> Seen | None:
        """What the pass over these images shows; None where the model does not run on them."""
        self._names = (
            {} if self._depth else {id(part): name for name, part in reversed(list(module.named_modules()))}
        )
        if not self.runs(module, pixels):
            return None
        self._finish()
        answer = self.seen.answer = self._answer(self.returned, self._images)
        self.seen.has_scores = place_of_scores(self.returned, self._images).exists
        # as many classes as tokens make a softmax over classes look like one over tokens
        self.seen.weighs = any(answer is None or shape != answer.shape for shape in self._weights)
        return self.seen

    def slopes(self, module: nn.Module, pixels: Tensor) -> Tensor | None:
        """Size of the answer's gradient by each token of the sequence at the leaf, [tokens]; None where autograd finds none."""
        try:
            with differentiable(), undisturbed_pass(module), torch.enable_grad(), self:
                self.returned = module(pixels)
            with differentiable():
                answer = self._answer(self.returned, self._images)
                slope = None if answer is None else gradients(answer[0, 0], [self._sequence])[0]
        except Exception:  # as in `runs`
            return None
        return None if slope is None else slope.norm(dim=-1).flatten().float()

    def _finish(self) -> None:
        """The pass is over, or its next attention begins: whatever consumed the last written-out one was seen by now."""
        if self._written_out is not None and not self._products and not self._is_alone:
            self.seen.is_whole = False
        self._written_out, self._products = None, 0

    def uneven(self) -> None:
        """A pool reads tokens; it is no layer."""
        self.seen.pools = True
        self.seen.uneven[-1] += 1

    def other(self, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run it; clamp the product of written-out attention and replace sequences where they are cut."""
        output = super().other(func, args, kwargs)
        counts = (self._tokens, self._layout.num_patches)
        if func in SOFTMAXES:
            axis = kwargs.get("dim", args[1] if len(args) > 1 else None)
            if output.shape[-1 if axis is None else axis] in counts:
                self._weights.append(output.shape)
                output = self._pooled_otherwise(output)
        self.seen.picks |= picks_among(func, args, kwargs, counts)
        if isinstance(output, Tensor) and output.is_floating_point():
            self.seen.largest = max(self.seen.largest, output.nbytes)
            self._number += 1
            axis = self._image_axis(output)
            if axis is not None:
                output = self._at_site(func, output, axis, in_place=bool(args) and output is args[0])
        return output

    def _arrived(self, operands: tuple[Tensor, ...], *, keys: Tensor | None = None) -> None:
        self._finish()
        self._number = 0
        self.seen.pools, self.seen.picks, self._weights = False, False, []
        self.seen.calls.append([self.signature(*operands)])
        self.seen.keys.append([] if keys is None else [self.signature(keys)])
        self.seen.uneven.append(0)
        self.seen.dtype = operands[0].dtype
        if self._names:
            named = (self._names.get(id(part)) for _, part in modules_around())
            self.seen.paths.append(next((name for name in named if name is not None), ""))

    def weighted(self, product: Product, func: Function, args: tuple[Any, ...], output: Any) -> Any:  # noqa: ARG002
        """The product, the photo's where it is clamped."""
        self._products += 1
        self.seen.calls[-1].append(self.signature(product.value))
        if self._is_alone:
            return output
        return self._clamped(output, axis=product.tokens)

    def _clamped(self, output: Tensor, *, axis: int) -> Tensor:
        """An attention's output, the photo's where it is clamped, and changed where it is pushed; its tokens are at `axis`.

        Where tokens are alone, each image's own, or its weights.
        """
        number = len(self.seen.calls) - 1
        if len(output) % self._images or output.shape[axis] != self._tokens:
            self.seen.is_whole = False
            return output
        apart = output.reshape(self._images, -1, *output.shape[1:]).clone()  # [images, ...]
        photo = None if self._is_alone else self._of_photo((number, self._products), apart)
        for image, change in enumerate(self._changes):
            if change is not None and change.is_clamped(number):
                changed = self._pushed(apart[image] if photo is None else photo, change, number, axis)
                is_cut = change.cut == Site(number, -1)  # where only what is to be replaced is the photo's
                apart[image] = _replaced(changed, apart[image], change, axis) if is_cut else changed
        return apart.flatten(0, 1)

    def _pooled_otherwise(self, output: Tensor) -> Tensor:
        """What a pool gives, or its weights, where pools give something else."""
        return self._otherwise(output, lambda change: change.pools_otherwise)

    def _attended_otherwise(self, output: Tensor) -> Tensor:
        """What the last call gives, or its weights, where it gives something else."""
        number = len(self.seen.calls) - 1
        return self._otherwise(output, lambda change: change.attends_otherwise == number)

    def _otherwise(self, output: Tensor, is_meant: Callable[[Change], bool]) -> Tensor:
        """Moved by noise in the images that are meant."""
        wanted = [change is not None and is_meant(change) for change in self._changes]
        if not any(wanted) or len(output) % self._images:
            return output
        apart = output.reshape(self._images, -1, *output.shape[1:])
        noise = torch.randn(apart.shape[1:], generator=random_numbers(0)).to(output.device, output.dtype)
        moved = torch.tensor(wanted, device=output.device).reshape(-1, *[1] * (apart.ndim - 1))
        return torch.where(moved, apart + apart.abs().amax() * noise, apart).flatten(0, 1)

    def _pushed(self, photo: Tensor, change: Change, number: int, axis: int) -> Tensor:
        """The photo's output, changed at some tokens by noise that depends on the layer alone."""
        random = random_numbers(number)
        if change.noise:
            signs = torch.randint(0, 2, photo.shape, generator=random) * 2 - 1
            return photo * (1 + change.noise * signs.to(photo.device, photo.dtype))
        push = change.pushes[number] if change.pushes else 0.0
        if not push or change.pushed is None:
            return photo
        exact = photo.float() if photo.dtype in HALF else photo
        noise = torch.randn(photo.shape, generator=random).to(exact.device, exact.dtype)
        size = push * exact.abs().amax().nan_to_num().clamp_min(1e-3)
        most = torch.finfo(photo.dtype).max / 4
        pushed = (exact + size * noise).clamp(-most, most).to(photo.dtype)
        return torch.where(_along(change.pushed, photo, axis), pushed, photo)

    def _of_photo(self, key: Any, apart: Tensor) -> Tensor:
        """The photo's part of [images, ...], from its own pass where each image has one."""
        if self._kept is None:
            return apart[0].clone()
        if self._changes[0] is None:
            self._kept[key] = apart[0].clone()
        return self._kept[key]

    def _image_axis(self, tensor: Tensor) -> int | None:
        """The axis of the images in [images, tokens, dim], [tokens, images, dim] or [images, rows, cols, dim]; else None."""
        images, tokens = self._images, self._tokens
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
        if site == self._leaf:
            self._sequence = leaf = output.detach().requires_grad_()
            return leaf.clone()  # which may be changed in place
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
            own = apart[image].flatten(0, -2)  # [tokens, dim], also of [rows, cols, dim]
            apart[image] = _replaced(photo.flatten(0, -2), own, change, -2).reshape(photo.shape)


def _replaced(photo: Tensor, own: Tensor, change: Change, axis: int) -> Tensor:
    """What an image is given where it is cut: the photo's tokens in place of those that are replaced, all in their new order."""
    if change.order is not None:
        photo, own = (tokens.index_select(axis, change.order.to(tokens.device)) for tokens in (photo, own))
    return photo if change.replaced is None else torch.where(_along(change.replaced, photo, axis), photo, own)


def _along(tokens: Tensor, like: Tensor, axis: int) -> Tensor:
    """Boolean [tokens] as a mask of a tensor that has them at this axis, counted from the end."""
    return tokens.to(like.device).reshape(-1, *[1] * (-1 - axis))
