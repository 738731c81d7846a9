"""What is noted of each of many photos: a few numbers per head, streamed from q and k, from which a survey is made.

The heads of several photos are one long row of heads to everything that measures heads, so that a batch gives the numbers of
`head_table` without a measure of its own, and no N x N matrix of a layer is kept.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from vit_viz.analyses.attention import to_numpy, weighted_rows
from vit_viz.analyses.chains import output_query
from vit_viz.analyses.head_statistics import OUTLIER_FACTOR, STATISTICS, Measure
from vit_viz.analyses.head_sums import LayerInput, Lengths, layer_sums
from vit_viz.analyses.offsets import Offsets
from vit_viz.capture import Trace, trace
from vit_viz.capture.batch import NotBatched, visit_layers
from vit_viz.capture.forward import block_list
from vit_viz.capture.given import as_batch
from vit_viz.capture.layers import LayerAttention
from vit_viz.capture.report import Structure
from vit_viz.errors import ParameterError
from vit_viz.geometry import TokenLayout

MEASURES: tuple[Measure, ...] = ("entropy", "distance", "prefix_mass")
"""Of every head of every photo, as `head_table` describes them."""

_SUMS = sorted({name for measure in MEASURES for name in STATISTICS[measure].sums})


@dataclass(frozen=True, eq=False)
class PhotoNumbers:
    """What was noted of the photos of a batch.

    Args:
        logits: [photos, classes]; None where the model returns something else.
        tables: of each of `MEASURES`, [photos, layers, heads].
        maps: what the token that the output is read from looks at, over the patches, [photos, layers, heads, rows, cols]; what is
            missing to a sum of 1 falls on other tokens.
        norms: length of every token in every state, [photos, states, tokens]; None where the model has no list of blocks.
        layout: which token is what, in every photo of the batch.
        batched: whether they went through the model at once.
    """

    logits: NDArray[np.float32] | None
    tables: dict[Measure, NDArray[np.float32]]
    maps: NDArray[np.float32]
    norms: NDArray[np.float32] | None
    layout: TokenLayout
    batched: bool

    @classmethod
    def joined(cls, parts: Sequence[PhotoNumbers]) -> PhotoNumbers:
        """The photos of several batches of one size, in their order."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            _joined([part.logits for part in parts]),
            {measure: np.concatenate([part.tables[measure] for part in parts]) for measure in MEASURES},
            np.concatenate([part.maps for part in parts]),
            _joined([part.norms for part in parts]),
            parts[0].layout,
            all(part.batched for part in parts),
        )

    @cached_property
    def probabilities(self) -> NDArray[np.float64]:
        """Softmax over the outputs, [photos, classes].

        Raises:
            ParameterError: the model returns no scores.
        """
        wide = self._scores.astype(np.float64)
        powers = np.exp(wide - wide.max(-1, keepdims=True))
        shares: NDArray[np.float64] = powers / powers.sum(-1, keepdims=True)
        return shares

    def highest(self, photo: int, count: int) -> list[int]:
        """The classes of a photo's highest outputs, the first one first; of equal ones the lower number first."""
        best: list[int] = np.argsort(-self._scores[photo], kind="stable")[:count].tolist()
        return best

    @property
    def _scores(self) -> NDArray[np.float32]:
        if self.logits is None:
            raise ParameterError("This model returns no scores [photos, classes].")
        return self.logits

    @cached_property
    def concentrations(self) -> NDArray[np.float32]:
        """1 - entropy / ln P of each map over its P patches, renormalised: 0 where all are alike, 1 where it is one patch.

        [photos, layers, heads]. The photos with the highest are a head's exemplars.
        """
        flat = self.maps.reshape(*self.maps.shape[:3], -1)
        shares = flat / np.maximum(flat.sum(-1, keepdims=True), _TINY)
        entropy = -(shares * np.log(np.maximum(shares, _TINY))).sum(-1)
        concentrations: NDArray[np.float32] = 1 - entropy / (math.log(flat.shape[-1]) or 1.0)
        return concentrations.clip(0, 1)

    @cached_property
    def peaks(self) -> NDArray[np.int64]:
        """The patch (row, col) that each map is highest on, [photos, layers, heads, 2]; the first of equal ones."""
        rows, cols = self.maps.shape[3:]
        flat = self.maps.reshape(*self.maps.shape[:3], rows * cols)
        peaks: NDArray[np.int64] = np.stack(np.divmod(flat.argmax(-1), cols), -1)
        return peaks

    def share_inside(self, photo: int, inside: NDArray[np.float64]) -> NDArray[np.float32]:
        """Share of each map of a photo that falls on an object, of what falls on patches: [layers, heads].

        Args:
            inside: share of each patch that the object covers, [rows, cols]; see `object_share`.
        """
        maps = self.maps[photo].astype(np.float64)
        mass = np.maximum(maps.sum((-2, -1)), _TINY)
        shares: NDArray[np.float32] = ((maps * inside).sum((-2, -1)) / mass).astype(np.float32)
        return shares

    def outliers(self, photo: int) -> list[list[int]]:
        """Indices of the tokens of each state whose norm is above 5 times the median, as `token_norms` finds them.

        Source: Darcet et al. 2024, arXiv:2309.16588, section 2.
        """
        if self._outliers is None:
            return []
        return [np.flatnonzero(state).tolist() if state.any() else [] for state in self._outliers[photo]]

    @cached_property
    def _outliers(self) -> NDArray[np.bool_] | None:
        """[photos, states, tokens]."""
        if self.norms is None:
            return None
        are_above: NDArray[np.bool_] = self.norms > OUTLIER_FACTOR * np.median(
            self.norms, axis=2, keepdims=True
        )
        return are_above


def photo_numbers(
    module: nn.Module,
    pixels: Tensor,
    *,
    layout: TokenLayout,
    structure: Structure | None = None,
    batched: bool = True,
) -> PhotoNumbers:
    """The numbers of several photos of one size, from one forward pass where the model allows it.

    Args:
        pixels: [photos, channels, height, width], already normalised.
        layout: which token is what.
        structure: what is known of the module's attention, for photos that have to be traced one by one; None checks it.
        batched: whether to try one pass for all of them.

    Raises:
        CaptureError: as `trace`.
    """
    heights, cols = pixels.shape[-2] / layout.grid[0], pixels.shape[-1] / layout.grid[1]
    measured = _Layers(layout, (heights, cols))
    if batched and layout.pooling != "attention":  # such a pool is known only when the layers are gone
        try:
            outputs = visit_layers(module, pixels, measured.add, tokens=layout.num_tokens)
        except NotBatched:
            measured = _Layers(layout, (heights, cols))
        else:
            norms = None if outputs.norms is None else outputs.norms.transpose(0, 1)
            return _numbers(measured.of(len(pixels)), outputs.logits, norms, layout, batched=True)
    singles = [
        _alone(module, one[None], measured.size, layout, structure) for one in as_batch(pixels, module)
    ]
    return PhotoNumbers.joined(singles)


@dataclass(frozen=True, eq=False)
class _OfLayer:
    """Numbers of one layer: of each measure [heads], and maps [heads, patches]."""

    tables: dict[Measure, Tensor]
    maps: Tensor


class _Layers:
    """Measures layers as they come."""

    def __init__(self, layout: TokenLayout, size: tuple[float, float]) -> None:
        self.size = size
        self._layout, self._offsets = layout, Offsets(layout.grid)
        self._lengths: Lengths | None = None  # until the device is known
        self._layers: list[_OfLayer] = []

    def add(self, attention: LayerAttention) -> None:
        """Measure a layer, its heads those of all photos."""
        self._lengths = self._lengths or Lengths(self._offsets, self.size, attention.device)
        self._layers.append(_of_layer(Trace((attention,), self._layout), 0, self._offsets, self._lengths))

    def of(self, photos: int) -> list[_OfLayer]:
        """The layers, with photos and heads apart."""
        return [
            _OfLayer(
                {name: values.reshape(photos, -1) for name, values in layer.tables.items()},
                layer.maps.reshape(photos, -1, layer.maps.shape[-1]),
            )
            for layer in self._layers
        ]


def _of_layer(recorded: Trace, layer: int, offsets: Offsets, lengths: Lengths) -> _OfLayer:
    sums = layer_sums(LayerInput(recorded, layer, offsets, lengths=lengths), _SUMS)
    stacked = {name: values[None] for name, values in sums.items()}
    tables = {measure: STATISTICS[measure].of(recorded, stacked)[0] for measure in MEASURES}
    return _OfLayer(tables, _output_row(recorded, layer, sums)[:, recorded.layout.patch_slice])


def _output_row(recorded: Trace, layer: int, sums: dict[str, Tensor]) -> Tensor:
    """What the output is read from looks at, [heads, tokens]; the mean over all patches is in the sums already."""
    query, layout = output_query(recorded), recorded.layout
    if query == "pool" and layout.pooling == "mean":
        return sums["columns"][:, 1] / layout.num_patches
    weights = recorded.query_weights(query)
    tokens = weights.nonzero().flatten().tolist()
    if len(tokens) > _FEW:
        return weighted_rows(recorded, layer, weights)
    return weights[tokens] @ recorded.layers[layer].rows(None, tokens)


def _alone(
    module: nn.Module,
    pixels: Tensor,
    size: tuple[float, float],
    layout: TokenLayout,
    structure: Structure | None,
) -> PhotoNumbers:
    """One photo, by a trace."""
    recorded = trace(
        module, pixels, layout=layout, structure=structure, keep_residual=bool(block_list(module))
    )
    offsets = Offsets(layout.grid)
    lengths = Lengths(offsets, size, recorded.device)
    layers = [_of_layer(recorded, layer, offsets, lengths) for layer in range(recorded.num_layers)]
    apart = [_OfLayer({m: v[None] for m, v in one.tables.items()}, one.maps[None]) for one in layers]
    norms = None if recorded.residual is None else recorded.residual.norm(dim=-1)[None]
    logits = None if recorded.logits is None else recorded.logits[None]
    return _numbers(apart, logits, norms, layout, batched=False)


def _numbers(
    layers: list[_OfLayer],
    logits: Tensor | None,
    norms: Tensor | None,
    layout: TokenLayout,
    *,
    batched: bool,
) -> PhotoNumbers:
    """All of it on the CPU: each kind of number crosses from the device once."""
    maps = torch.stack([layer.maps for layer in layers], 1)
    pictures = maps.reshape(*maps.shape[:-1], *layout.grid)
    tables = {m: to_numpy(torch.stack([layer.tables[m] for layer in layers], 1).float()) for m in MEASURES}
    return PhotoNumbers(
        None if logits is None else to_numpy(logits),
        tables,
        to_numpy(pictures.float()),
        None if norms is None else to_numpy(norms.float()),
        layout,
        batched,
    )


def _joined(parts: Sequence[NDArray[np.float32] | None]) -> NDArray[np.float32] | None:
    there = [part for part in parts if part is not None]
    return np.concatenate(there) if len(there) == len(parts) else None


_FEW = 4  # rows that need no blocks
_TINY = 1e-12
