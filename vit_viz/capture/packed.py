"""A trace as plain arrays, small enough to travel from the process that computed it to the one that shows it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vit_viz.capture.layers import LayerAttention
from vit_viz.capture.trace import PoolAttention, Trace
from vit_viz.lazy import Tensor, torch

_HALVED = frozenset({"q", "k", "v", "output_grad"})
"""Sent as fp16, rounded by at most 2^-11 of each number; everything else keeps its precision."""


_AS_THEY_ARE = ("layout", "tolerance", "problems", "outputs", "unreached", "place", "crop_box", "provenance")


@dataclass(frozen=True, eq=False)
class PackedTrace:
    """What a trace consists of, as NumPy arrays.

    Row normalisers are not sent: they are computed from the q and k that arrive, so that rows and columns of the attention agree.

    Args:
        layers, pooling: fields of each `LayerAttention`, and of the `PoolAttention`, by name, without those that are None.
        tensors: logits and residual, where they are there.
        others: the other arguments of the `Trace`.
    """

    layers: tuple[dict[str, Any], ...]
    pooling: dict[str, Any] | None
    tensors: dict[str, NDArray[Any]]
    others: dict[str, Any]

    @classmethod
    def of(cls, trace: Trace) -> PackedTrace:
        """Pack a trace, from whatever device it is on; the trace stays as it is."""
        packed: dict[int, NDArray[Any]] = {}  # layers may share a bias, which is then sent once
        tensors = {name: getattr(trace, name) for name in ("logits", "residual")}
        return cls(
            tuple(_packed(layer, packed) for layer in trace.layers),
            None if trace.pooling is None else _packed(trace.pooling, packed),
            {name: _array(tensor) for name, tensor in tensors.items() if tensor is not None},
            {name: getattr(trace, name) for name in _AS_THEY_ARE}
            | {"differences": trace.proof, "known": trace.structure},
        )

    def unpacked(self) -> Trace:
        """The trace on the CPU, in fp32."""
        tensors: dict[int, Tensor] = {}
        return Trace(
            tuple(LayerAttention(**_unpacked(layer, tensors)) for layer in self.layers),
            pooling=None if self.pooling is None else PoolAttention(**_unpacked(self.pooling, tensors)),
            **_unpacked(self.tensors, tensors),
            **self.others,
        )


def _packed(parts: LayerAttention | PoolAttention, arrays: dict[int, NDArray[Any]]) -> dict[str, Any]:
    packed: dict[str, Any] = {}
    for part in fields(parts):
        value = getattr(parts, part.name)
        if part.name == "lse" or value is None:
            continue
        if isinstance(value, Tensor) and id(value) not in arrays:
            half = value.half() if part.name in _HALVED else value
            # too large a number stays as it is
            arrays[id(value)] = _array(half if bool(half.isfinite().all()) else value)
        packed[part.name] = arrays[id(value)] if isinstance(value, Tensor) else value
    return packed


def _unpacked(packed: dict[str, Any], tensors: dict[int, Tensor]) -> dict[str, Any]:
    for value in packed.values():
        if isinstance(value, np.ndarray) and id(value) not in tensors:
            tensors[id(value)] = torch.from_numpy(value).float()
    return {name: tensors.get(id(value), value) for name, value in packed.items()}


def _array(tensor: Tensor) -> NDArray[Any]:
    array: NDArray[Any] = tensor.detach().cpu().numpy().copy()
    return array
