"""A model with exactly the parameters of a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from vit_viz.checkpoints.unwrapping import listed
from vit_viz.errors import CheckpointError, KeyMismatch
from vit_viz.lazy import Tensor, nn, torch

_Config = TypeVar("_Config")
_Model = TypeVar("_Model", bound="nn.Module")


def build(kind: Callable[[_Config], _Model], config: _Config, state: Mapping[str, Tensor]) -> _Model:
    """The model with exactly these parameters, in fp32 and in eval mode; nothing stays randomly initialised."""
    with torch.device("meta"):
        model = kind(config)
    expected = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    shapes = {name: tuple(tensor.shape) for name, tensor in state.items()}
    problems = {
        "missing": sorted(set(expected) - set(shapes)),
        "extra": sorted(set(shapes) - set(expected)),
        "misshapen": [
            f"{name} {list(shapes[name])} instead of {list(expected[name])}"
            for name in sorted(set(shapes) & set(expected))
            if shapes[name] != expected[name]
        ],
        "not floating-point": sorted(name for name, one in state.items() if not one.is_floating_point()),
    }
    mismatches = [f"{len(names)} {what}: {listed(names, 8)}" for what, names in problems.items() if names]
    if mismatches:
        raise KeyMismatch(f"The checkpoint does not fit its architecture: {'; '.join(mismatches)}.")
    for name, tensor in state.items():
        if not tensor.is_meta and not bool(torch.isfinite(tensor).all()):
            raise CheckpointError(
                f"The parameter {name} holds numbers that are not finite: the file is damaged or its training failed."
            )
    own = {name: tensor.to(torch.float32, copy=True).contiguous() for name, tensor in state.items()}
    model.load_state_dict(own, strict=True, assign=True)
    return model.eval()
