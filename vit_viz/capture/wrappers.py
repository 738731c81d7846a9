"""Modules around a model: torch's wrappers that only pass on their inputs, and what an inner part with the same inputs declares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from vit_viz.capture.noise import noise_like
from vit_viz.capture.per_module import PerModule
from vit_viz.capture.state import make_up_of
from vit_viz.checkpoints.plain_module import device_of, own_preprocess
from vit_viz.images import Preprocess
from vit_viz.lazy import Tensor, nn, torch
from vit_viz.model.submodules import submodules_of

AnswerT = TypeVar("AnswerT")


def unwrapped_module(module: nn.Module) -> nn.Module:
    """The model within DataParallel, DistributedDataParallel, torch.compile or averaged weights, in any order; else the module.

    One pass of one image has no use for them, and the threads of DataParallel would not be seen.
    """
    around = (nn.DataParallel, nn.parallel.DistributedDataParallel, torch.optim.swa_utils.AveragedModel)
    inner: Any = module.module if isinstance(module, around) else getattr(module, "_orig_mod", None)
    return unwrapped_module(inner) if isinstance(inner, nn.Module) else module


def answer_within(
    module: nn.Module, pixels: Tensor, reads: Callable[[nn.Module], AnswerT | None]
) -> AnswerT | None:
    """What the part that does the module's work says of itself: the one that is given the module's own pixels, once and unchanged.

    None where the parts that say something are given other pixels (resized, flipped, normalised), or several of them are used.
    One forward pass of noise, once for pixels of this shape; again where a module or an attribute was changed since.

    Args:
        pixels: [1, channels, height, width].
        reads: what a part says; None where it says nothing.
    """
    from vit_viz.capture.probing import undisturbed_pass  # it imports torch, for which a start need not wait

    parts = submodules_of(module)
    says = [None if part is module else reads(part) for part in parts]
    if not any(answer is not None for answer in says):
        return None
    noted, made_of = _PARTS_GIVEN.of(module), make_up_of(module)
    key = (made_of, tuple(pixels.shape), pixels.dtype, tuple(answer is not None for answer in says))
    if key not in noted:
        for old in [old for old in noted if old[0] != made_of]:
            del noted[old]
        try:
            with undisturbed_pass(module):
                inner = _part_that_receives(
                    module,
                    noise_like(pixels, 0),
                    [parts[i] for i, answer in enumerate(says) if answer is not None],
                )
        except Exception:  # not written for these pixels: it says so where it is really run
            return None
        noted[key] = None if inner is None else parts.index(inner)
    index = noted[key]
    return None if index is None else says[index]


_PARTS_GIVEN: PerModule[dict[Any, int | None]] = PerModule(dict)
"""Which part of a module is given its pixels, by its make-up and what was asked."""


def _part_that_receives(module: nn.Module, pixels: Tensor, parts: Sequence[nn.Module]) -> nn.Module | None:
    """The one of these parts that is given the module's own pixels, by a pass; None where none is, or several are used."""
    calls: list[tuple[nn.Module, bool]] = []

    def note(part: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        tensor = next((value for value in (*args, *kwargs.values()) if isinstance(value, Tensor)), None)
        calls.append(
            (part, tensor is not None and tensor.shape == pixels.shape and torch.equal(tensor, pixels))
        )

    handles = [part.register_forward_pre_hook(note, with_kwargs=True) for part in parts]
    try:
        module(pixels)
    finally:
        for handle in handles:
            handle.remove()
    if not calls:
        return None
    outermost, is_given_the_same = calls[0]
    inside = submodules_of(outermost)[1:]
    alone = all(part in inside for part, _ in calls[1:])
    return outermost if is_given_the_same and alone else None


def preprocess_within(module: nn.Module) -> tuple[Preprocess | None, str]:
    """How pictures become the input of a module around one of timm or transformers, and in words where that was found.

    None where it does not pass it on, or says so itself.
    """
    recipes = (own_preprocess(part) for part in submodules_of(module))
    first = next((one for one in recipes if one is not None), None)
    if first is None or own_preprocess(module) is not None:
        return None, ""
    recipe = first[0]
    like = next(module.parameters(), torch.empty(0))
    pixels = torch.linspace(-1, 1, recipe.channels * recipe.input_size[0] * recipe.input_size[1])
    pixels = pixels.to(device_of(module), like.dtype).view(1, recipe.channels, *recipe.input_size)
    return answer_within(module, pixels, own_preprocess) or (None, "")
