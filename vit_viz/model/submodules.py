"""The modules that a model is made of, and whether hooks watch them."""

from __future__ import annotations

from vit_viz.lazy import nn


def submodules_of(module: nn.Module) -> list[nn.Module]:
    """A module and all modules within it; a plain walk, since `modules()` costs as much as a layer of a small model.

    A module that is used in several places is listed as often.
    """
    parts = [module]
    for part in parts:  # grows while it is read
        if part._modules:
            parts.extend([child for child in part._modules.values() if child is not None])
    return parts


def are_all_of(parts: list[nn.Module], classes: frozenset[type]) -> bool:
    """Whether modules are exactly of these classes and run as their class says: no subclass, no `forward` of their own."""
    return {type(part) for part in parts} <= classes and not [
        part for part in parts if "forward" in part.__dict__
    ]


def are_watched(parts: list[nn.Module]) -> bool:
    """Whether hooks see the tensors that go in and out of these modules.

    Lists, not generators, here and above: a trace asks about some 200 modules, for which generators take twice as long.
    """
    hooked = [
        part
        for part in parts
        if part._forward_hooks or part._forward_pre_hooks or part._backward_hooks or part._backward_pre_hooks
    ]
    return bool(hooked) or nn.modules.module._has_any_global_hook()  # type: ignore[no-untyped-call]  # torch's
