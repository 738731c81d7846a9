"""A trace as plain arrays, small enough to travel from the process that computed it to the one that shows it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vit_viz.capture.layers import LayerAttention
from vit_viz.capture.report import Structure
from vit_viz.capture.trace import Pooling, Trace
from vit_viz.geometry import CropBox, TokenLayout
from vit_viz.results import Provenance

_HALVED = frozenset({"q", "k", "v", "output_grad"})
"""Sent as fp16, rounded by at most 2^-11 of each number; everything else keeps its precision."""


@dataclass(frozen=True, eq=False)
class PackedTrace:
    """What a trace consists of, as NumPy arrays.

    Row normalisers are not sent: they are computed from the q and k that arrive, so that rows and columns of the attention agree.

    Args:
        layers: fields of each `LayerAttention` by name, without those that are None.
        tensors: logits, residual, and the pooling attention with its gradient, where they are there.
    """

    layers: tuple[dict[str, Any], ...]
    tensors: dict[str, NDArray[Any]]
    layout: TokenLayout
    proof: tuple[float, ...]
    tolerance: float
    problems: tuple[str, ...]
    structure: Structure
    crop_box: CropBox | None
    provenance: Provenance

    @classmethod
    def of(cls, trace: Trace) -> PackedTrace:
        """Pack a trace, from whatever device it is on; the trace stays as it is."""
        known: dict[int, NDArray[Any]] = {}  # layers may share a bias, which is then sent once
        pooling = trace.pooling or Pooling(torch.empty(0))
        tensors = {
            "logits": trace.logits,
            "residual": trace.residual,
            "pooling": pooling.attention if pooling.attention.numel() else None,
            "pooling gradient": pooling.gradient,
        }
        return cls(
            tuple(_packed(layer, known) for layer in trace.layers),
            {name: _array(tensor) for name, tensor in tensors.items() if tensor is not None},
            trace.layout,
            tuple(trace.proof),
            trace.tolerance,
            trace.problems,
            trace.structure,
            trace.crop_box,
            trace.provenance,
        )

    def unpacked(self) -> Trace:
        """The trace on the CPU, in fp32."""
        known: dict[int, Tensor] = {}
        tensors = {name: torch.from_numpy(array) for name, array in self.tensors.items()}
        attention = tensors.get("pooling")
        return Trace(
            tuple(_unpacked(layer, known) for layer in self.layers),
            self.layout,
            logits=tensors.get("logits"),
            residual=tensors.get("residual"),
            differences=list(self.proof),
            tolerance=self.tolerance,
            problems=self.problems,
            known=self.structure,
            pooling=None if attention is None else Pooling(attention, tensors.get("pooling gradient")),
            crop_box=self.crop_box,
            provenance=self.provenance,
        )


def _packed(layer: LayerAttention, known: dict[int, NDArray[Any]]) -> dict[str, Any]:
    packed: dict[str, Any] = {}
    for part in fields(layer):
        value = getattr(layer, part.name)
        if part.name == "lse" or value is None:
            continue
        if isinstance(value, Tensor) and id(value) not in known:
            known[id(value)] = _array(_halved(value) if part.name in _HALVED else value)
        packed[part.name] = known[id(value)] if isinstance(value, Tensor) else value
    return packed


def _unpacked(layer: dict[str, Any], known: dict[int, Tensor]) -> LayerAttention:
    for value in layer.values():
        if isinstance(value, np.ndarray) and id(value) not in known:
            known[id(value)] = torch.from_numpy(value).float()
    return LayerAttention(**{name: known.get(id(value), value) for name, value in layer.items()})


def _halved(tensor: Tensor) -> Tensor:
    """In fp16, unless a number is too large for it."""
    half = tensor.half()
    return half if bool(half.isfinite().all()) else tensor


def _array(tensor: Tensor) -> NDArray[Any]:
    array: NDArray[Any] = tensor.detach().cpu().numpy().copy()
    return array
