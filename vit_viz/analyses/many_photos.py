"""Numbers per head of each of many photos, streamed from q and k; surveys are made of them.

The heads of several photos are one long row of heads to everything that measures heads, so that a batch gives the numbers of
`head_table` without a measure of its own, and no N x N matrix of a layer is kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vit_viz.analyses.attention import to_numpy, weighted_rows
from vit_viz.analyses.head_statistics import OUTLIER_FACTOR, STATISTICS, Measure
from vit_viz.analyses.head_sums import LayerInput, Lengths, Offsets, layer_sums
from vit_viz.capture import Trace, trace, visit_layers
from vit_viz.capture.calls import NotBatched
from vit_viz.capture.forward import block_list
from vit_viz.capture.given import as_batch, placed_batch
from vit_viz.capture.graphs import graphed
from vit_viz.capture.layers import LayerAttention, exact, side_by_side, stack_bytes
from vit_viz.capture.report import SOUND, Structure
from vit_viz.errors import ParameterError
from vit_viz.geometry import TokenLayout
from vit_viz.lazy import Tensor, nn, torch
from vit_viz.outputs import Output, shown
from vit_viz.results import is_even

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
        medians: of the norms over the tokens, [photos, states].
    """

    logits: NDArray[np.float32] | None
    tables: dict[Measure, NDArray[np.float32]]
    maps: NDArray[np.float32]
    norms: NDArray[np.float32] | None
    layout: TokenLayout
    batched: bool
    medians: NDArray[np.float32] | None = None

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
            _joined([part.medians for part in parts]),
        )

    def shown(self, photo: int, output: Output | None) -> NDArray[np.float64]:
        """What people are told of the outputs of a photo, [classes]; see `vit_viz.outputs.shown`."""
        wide = torch.from_numpy(self._scores[photo].astype(np.float64))
        numbers: NDArray[np.float64] = shown(wide, output).numpy()
        return numbers

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
        """The patch (row, col) that each map is highest on, [photos, layers, heads, 2]; the first of equal ones.

        (-1, -1) of a map that is the same everywhere.
        """
        rows, cols = self.maps.shape[3:]
        flat = self.maps.reshape(*self.maps.shape[:3], rows * cols)
        peaks: NDArray[np.int64] = np.stack(np.divmod(flat.argmax(-1), cols), -1)
        peaks[is_even(flat)] = -1
        return peaks

    def share_inside(self, photo: int, inside: NDArray[np.float64]) -> NDArray[np.float32]:
        """Share of each map of a photo that falls on an object, of what falls on patches: [layers, heads].

        Args:
            inside: share of each patch that the object covers, [rows, cols]; see `object_on_grid`.
        """
        maps = self.maps[photo].astype(np.float64)
        mass = np.maximum(maps.sum((-2, -1)), _TINY)
        shares: NDArray[np.float32] = ((maps * inside).sum((-2, -1)) / mass).astype(np.float32)
        return shares

    def outliers(self, photo: int) -> list[list[int]]:
        """Indices of the tokens of each state whose norm is above 5 times the median, as `token_norms` finds them.

        Source: Darcet et al. 2024, arXiv:2309.16588, section 2.
        """
        return self._outliers[photo] if self._outliers else []

    @cached_property
    def _outliers(self) -> list[list[list[int]]] | None:
        """Of each photo and state, found at once: a look at each state of each photo adds up."""
        if self.norms is None or self.medians is None:
            return None
        photos, states, _ = self.norms.shape
        tokens: list[list[list[int]]] = [[[] for _ in range(states)] for _ in range(photos)]
        for photo, state, token in np.argwhere(
            self.norms > OUTLIER_FACTOR * self.medians[..., None]
        ).tolist():
            tokens[photo][state].append(token)
        return tokens


def begun_numbers(
    module: nn.Module, pixels: Tensor, *, layout: TokenLayout, structure: Structure | None = None
) -> Callable[[], PhotoNumbers]:
    """The numbers of several photos of one size, from one forward pass where the model allows it.

    What is returned waits for the device: until it is called, a GPU computes beside the caller.

    Args:
        pixels: [photos, channels, height, width], already normalised.
        layout: which token is what.
        structure: what is known of the module's attention, and of what its answer is read from; None checks it for photos that
            have to be traced one by one.
    """
    size = pixels.shape[-2] / layout.grid[0], pixels.shape[-1] / layout.grid[1]
    if layout.pooling != "attention":  # such a pool is known only when the layers are gone
        placed = placed_batch(pixels, module)
        lengths = Lengths(Offsets(layout.grid), size, placed.device)

        def sent(numbers: _OnDevice) -> Callable[[], PhotoNumbers]:
            return numbers.travelling(layout, batched=True)

        try:
            return graphed(
                module,
                placed,
                partial(_measured, module, layout, lengths, structure or SOUND),
                sent,
                key=(layout, size),
                constants=lengths,
            )
        except NotBatched:
            pass
    alone = [_alone(module, one[None], size, layout, structure) for one in as_batch(pixels, module)]
    return lambda: PhotoNumbers.joined([numbers() for numbers in alone])


class _OnDevice(NamedTuple):
    """The numbers of photos where they were computed; shapes as in `PhotoNumbers`."""

    logits: Tensor | None
    tables: dict[Measure, Tensor]
    maps: Tensor
    norms: Tensor | None
    medians: Tensor | None

    def travelling(self, layout: TokenLayout, *, batched: bool) -> Callable[[], PhotoNumbers]:
        """All of it on its way to the CPU: each kind of number crosses from the device once, and nobody waits for it before."""
        tables = {measure: values.to("cpu", non_blocking=True) for measure, values in self.tables.items()}
        others = (self.logits, self.maps, self.norms, self.medians)
        sent = [None if values is None else values.to("cpu", non_blocking=True) for values in others]
        arrived = torch.cuda.Event(blocking=True) if self.maps.is_cuda else None  # type: ignore[no-untyped-call]
        if arrived is not None:
            arrived.record()

        def numbers() -> PhotoNumbers:
            if arrived is not None:
                arrived.synchronize()
            arrays = {measure: to_numpy(values) for measure, values in tables.items()}
            logits, maps, norms, medians = (None if values is None else to_numpy(values) for values in sent)
            assert maps is not None
            return PhotoNumbers(logits, arrays, maps, norms, layout, batched, medians)

        return numbers


def _measured(
    module: nn.Module, layout: TokenLayout, lengths: Lengths, structure: Structure, pixels: Tensor
) -> _OnDevice:
    """The numbers of photos from one pass, which waits for no number on a device."""
    measured = _Layers(layout, lengths, structure)
    outputs = visit_layers(module, pixels, measured.visit, tokens=layout.num_tokens)
    norms = None if outputs.norms is None else outputs.norms.transpose(0, 1)
    return measured.numbers(outputs.logits, norms, photos=len(pixels))


class _Layers:
    """Measures layers as they come, those of a GPU side by side: there, a product costs a launch whatever its size."""

    def __init__(self, layout: TokenLayout, lengths: Lengths, structure: Structure = SOUND) -> None:
        self._structure = structure
        self._layout, self._offsets, self._lengths = layout, Offsets(layout.grid), lengths
        self._waiting: list[LayerAttention] = []
        self._tables: dict[Measure, list[Tensor]] = {measure: [] for measure in MEASURES}  # [heads] each
        self._maps: list[Tensor] = []  # [heads, patches] each

    def visit(self, attention: LayerAttention) -> None:
        """Take a layer whose heads are those of all photos; measure those that wait for more, once these fill a tile."""
        if self._waiting and not attention.fits_beside(self._waiting[0]):
            self._measure()
        self._waiting.append(attention)
        heads, queries, keys = attention.shape
        if (len(self._waiting) + 1) * 4 * heads * queries * keys > stack_bytes(attention.device):
            self._measure()

    def _measure(self) -> None:
        """Measure the layers that wait: their heads are one long row of heads, as those of several photos are."""
        layers, self._waiting = self._waiting, []
        if layers:
            with exact():
                stacked = Trace((side_by_side(layers),), self._layout, known=self._structure)
                self.add(stacked, 0, count=len(layers))

    def add(self, recorded: Trace, layer: int, *, count: int = 1) -> None:
        """Measure a layer of a trace, or so many layers side by side."""
        sums = layer_sums(LayerInput(recorded, layer, self._offsets, lengths=self._lengths), _SUMS)
        stacked = {name: values[None] for name, values in sums.items()}
        for measure in MEASURES:
            self._tables[measure].extend(STATISTICS[measure].of(recorded, stacked)[0].chunk(count))
        self._maps.extend(_output_row(recorded, layer, sums)[:, self._layout.patch_slice].chunk(count))

    def numbers(self, logits: Tensor | None, norms: Tensor | None, *, photos: int) -> _OnDevice:
        """All of it, with photos and heads apart."""
        self._measure()

        def apart(layers: list[Tensor], *size: int) -> Tensor:
            return torch.stack([one.reshape(photos, -1, *size) for one in layers], 1).float()

        return _OnDevice(
            logits,
            {measure: apart(layers) for measure, layers in self._tables.items()},
            apart(self._maps, *self._layout.grid),
            None if norms is None else norms.float(),
            None if norms is None else _medians(norms.float()),
        )


def _output_row(recorded: Trace, layer: int, sums: dict[str, Tensor]) -> Tensor:
    """What the output is read from looks at, [heads, tokens]; the mean over all patches is in the sums already."""
    query, layout = recorded.output_query(), recorded.layout
    if query == "pool" and layout.pooling == "mean":
        return sums["columns"][:, 1] / layout.num_patches
    if query == "pool" and layout.pooling == "attention":
        return weighted_rows(recorded, layer, recorded.query_weights(query))
    weights = layout.weights(query)  # known without a look at the device
    tokens = np.flatnonzero(weights).tolist()
    if len(tokens) > _FEW:
        return weighted_rows(recorded, layer, recorded.query_weights(query))
    rows = [float(weights[token]) * recorded.layers[layer].rows(None, [token])[:, 0] for token in tokens]
    return rows[0] if len(rows) == 1 else torch.stack(rows).sum(0)


def _medians(norms: Tensor) -> Tensor:
    """Over the last axis; of an even number, the mean of the two in the middle."""
    count, ordered = norms.shape[-1], norms.sort(-1).values
    return (ordered[..., (count - 1) // 2] + ordered[..., count // 2]) / 2


def _alone(
    module: nn.Module,
    pixels: Tensor,
    size: tuple[float, float],
    layout: TokenLayout,
    structure: Structure | None,
) -> Callable[[], PhotoNumbers]:
    """One photo, by a trace."""
    recorded = trace(
        module, pixels, layout=layout, structure=structure, keep_residual=bool(block_list(module))
    )
    measured = _Layers(layout, Lengths(Offsets(layout.grid), size, recorded.device))
    for layer in range(recorded.num_layers):
        measured.add(recorded, layer)
    norms = None if recorded.residual is None else recorded.residual.norm(dim=-1)[None]
    logits = None if recorded.logits is None else recorded.logits[None]
    return measured.numbers(logits, norms, photos=1).travelling(layout, batched=False)


def _joined(parts: Sequence[NDArray[np.float32] | None]) -> NDArray[np.float32] | None:
    there = [part for part in parts if part is not None]
    return np.concatenate(there) if len(there) == len(parts) else None


_FEW = 4  # rows that need no blocks
_TINY = 1e-12
