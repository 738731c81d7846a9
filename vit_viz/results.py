"""What the analyses return: raw NumPy values with their unit, their possible range and where they came from.

Nothing here is scaled for drawing; that is a separate, visible choice (vit_viz.render).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vit_viz.brief import Brief
from vit_viz.drawable import Drawable, DrawableMap
from vit_viz.errors import ParameterError
from vit_viz.geometry import CropBox, Grid, kind_of

ValueRange = tuple[float, float]


@dataclass(frozen=True)
class Provenance:
    """Where numbers came from: model, weights, image, preprocessing and parameters, all as text.

    Args:
        model: name of the model as the user gave it.
        weights: hash of the weights.
        image: hash of the decoded image.
        preprocess: the preprocessing in words.
        parameters: pairs (name, value), in order.
    """

    model: str = ""
    weights: str = ""
    image: str = ""
    preprocess: str = ""
    parameters: tuple[tuple[str, str], ...] = ()

    def with_parameters(self, **parameters: object) -> Provenance:
        """A copy with these parameters added; a name that is there already is replaced."""
        merged = dict(self.parameters) | {name: str(value) for name, value in parameters.items()}
        return replace(self, parameters=tuple(merged.items()))

    @property
    def model_words(self) -> str:
        """The model in words, with what was changed inside it; "" where it has no name."""
        edits = dict(self.parameters).get("edits")
        return f"Model {self.model}{f', edited: {edits}' if edits else ''}" if self.model else ""

    def to_dict(self) -> dict[str, Any]:
        """As plain data, for JSON and file metadata."""
        return {
            "model": self.model,
            "weights": self.weights,
            "image": self.image,
            "preprocess": self.preprocess,
            "parameters": dict(self.parameters),
        }


def _frozen(values: ArrayLike, ndim: int, what: str) -> NDArray[np.float32]:
    """A read-only float32 copy of `values`, checked for its number of axes and for NaN."""
    array = np.array(values, dtype=np.float32)
    if array.ndim != ndim:
        raise ParameterError(f"{what} has {ndim} axes, not {array.ndim}.")
    if np.isnan(array).any():
        raise ParameterError(f"{what} holds values that are not numbers (NaN).")
    array.setflags(write=False)
    return array


def _checked_range(value_range: ValueRange) -> ValueRange:
    low, high = (float(v) for v in value_range)
    if not low < high:
        raise ParameterError(f"A value range needs its low end below its high end, not {low} and {high}.")
    return low, high


class _Portable:
    """Pickled as its fields and rebuilt on arrival: checked, and read-only again."""

    def __reduce__(self) -> tuple[Any, ...]:
        parts = [getattr(self, part.name) for part in fields(cast(Any, self))]
        return type(self), tuple(dict(p) if isinstance(p, MappingProxyType) else p for p in parts)


@dataclass(frozen=True, eq=False, repr=False)
class PatchMap(_Portable, DrawableMap):
    """One number per patch: a map that can be laid over the photo.

    Args:
        values: [rows, cols], raw.
        unit: what one value counts, e.g. "attention weight".
        value_range: (low, high) that the method can give at all; not the observed extrema.
        signed: whether 0 is a centre between two directions.
        method: name of the method.
        class_blind: True where the map does not depend on the class that is explained.
        prefix: value that fell on each prefix token, by name: what the map alone hides.
        suffix: value that fell on each token after the patches, by name.
        crop_box: where the patches lie in the original image.
        caption: the map in words: layer, head, query, direction.
        note: a caution that belongs beside the picture.
        stability: rank correlation, in [-1, 1], of two maps from independent halves of the random numbers that this one was
            computed with; None where nothing was drawn.
    """

    values: NDArray[np.float32]
    unit: str
    value_range: ValueRange
    signed: bool
    method: str
    class_blind: bool
    provenance: Provenance = field(default_factory=Provenance)
    prefix: Mapping[str, float] = field(default_factory=dict)
    crop_box: CropBox | None = None
    caption: str = ""
    note: str = ""
    suffix: Mapping[str, float] = field(default_factory=dict)
    stability: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", _frozen(self.values, 2, "A patch map"))
        object.__setattr__(self, "value_range", _checked_range(self.value_range))
        object.__setattr__(self, "prefix", MappingProxyType(dict(self.prefix)))
        object.__setattr__(self, "suffix", MappingProxyType(dict(self.suffix)))
        if self.stability is not None and not -1 <= self.stability <= 1:
            raise ParameterError(f"A stability is a correlation from -1 to 1, not {self.stability}.")

    def __repr__(self) -> str:
        rows, cols = self.grid
        what = f", {self.caption}" if self.caption else ""
        return f"PatchMap({self.method}: {rows} x {cols} patches, {_between(self.values)} {self.unit}{what})"

    @property
    def grid(self) -> Grid:
        """Patches as (rows, cols)."""
        rows, cols = self.values.shape
        return rows, cols

    @property
    def suffix_kinds(self) -> dict[str, float]:
        """What fell on all suffix tokens of a kind together: {"detection": 0.04}."""
        kinds: dict[str, float] = {}
        for name, value in self.suffix.items():
            kind = kind_of(name, self.prefix)
            kinds[kind] = kinds.get(kind, 0.0) + value
        return kinds

    @property
    def total(self) -> float:
        """What fell on all tokens together: on the patches, and on the prefix and suffix tokens that no map shows."""
        outside = sum(self.prefix.values()) + sum(self.suffix.values())
        return float(self.values.sum(dtype=np.float64)) + outside

    @property
    def peak(self) -> tuple[int, int]:
        """The patch (row, col) with the highest value; the first one of equals."""
        row, col = np.unravel_index(int(self.values.argmax()), self.values.shape)
        return int(row), int(col)


@dataclass(frozen=True, eq=False, repr=False)
class HeadTable(_Portable, Drawable):
    """One number per head: [layers, heads], raw."""

    values: NDArray[np.float32]
    unit: str
    value_range: ValueRange
    signed: bool
    method: str
    provenance: Provenance = field(default_factory=Provenance)
    note: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", _frozen(self.values, 2, "A head table"))
        object.__setattr__(self, "value_range", _checked_range(self.value_range))

    def __repr__(self) -> str:
        layers, heads = self.values.shape
        return (
            f"HeadTable({self.method}: {layers} layers x {heads} heads, {_between(self.values)} {self.unit})"
        )


@dataclass(frozen=True, eq=False, repr=False)
class TokenMatrix(_Portable, Drawable):
    """One number per pair of positions, [n, n], raw.

    Args:
        grid: the n positions as (rows, cols).
        extra: rows of further positions against the same n, by name, e.g. {"class": [n]}.
    """

    values: NDArray[np.float32]
    unit: str
    value_range: ValueRange
    signed: bool
    method: str
    grid: Grid
    provenance: Provenance = field(default_factory=Provenance)
    extra: Mapping[str, NDArray[np.float32]] = field(default_factory=dict)
    note: str = ""

    def __post_init__(self) -> None:
        values = _frozen(self.values, 2, "A token matrix")
        count = self.grid[0] * self.grid[1]
        if values.shape != (count, count):
            raise ParameterError(f"A grid of {count} positions needs a {count} x {count} matrix.")
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "value_range", _checked_range(self.value_range))
        rows = {name: _frozen(row, 1, f"The row of {name}") for name, row in self.extra.items()}
        object.__setattr__(self, "extra", MappingProxyType(rows))

    def __repr__(self) -> str:
        rows, cols = self.grid
        return f"TokenMatrix({self.method}: {rows} x {cols} positions, {_between(self.values)} {self.unit})"

    def tile(self, row: int, col: int) -> NDArray[np.float32]:
        """The values of position (row, col) against all others, [rows, cols]."""
        rows, cols = self.grid
        if not (0 <= row < rows and 0 <= col < cols):
            raise ParameterError(f"Position ({row}, {col}) does not exist: the grid is {rows} x {cols}.")
        tile: NDArray[np.float32] = self.values[row * cols + col].reshape(self.grid)
        return tile


@dataclass(frozen=True, eq=False, repr=False)
class TokenMaps(_Portable, Brief):
    """One number per patch in each state of the model, [states, rows, cols], raw; or several numbers, [..., channels].

    Args:
        names: of the states in words, e.g. ("input", "after layer 0").
        named: the same numbers of the tokens that are not patches, by name of the token: [states] or [states, channels].
        crop_box: where the patches lie in the original image.
    """

    values: NDArray[np.float32]
    names: tuple[str, ...]
    unit: str
    value_range: ValueRange
    signed: bool
    method: str
    provenance: Provenance = field(default_factory=Provenance)
    named: Mapping[str, NDArray[np.float32]] = field(default_factory=dict)
    crop_box: CropBox | None = None
    note: str = ""

    def __post_init__(self) -> None:
        axes = np.ndim(self.values)
        values = _frozen(self.values, 4 if axes == 4 else 3, "A stack of token maps")
        if len(self.names) != len(values):
            raise ParameterError(f"Maps of {len(values)} states need as many names, not {len(self.names)}.")
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "names", tuple(self.names))
        object.__setattr__(self, "value_range", _checked_range(self.value_range))
        rows = {name: _frozen(row, axes - 2, f"The row of {name}") for name, row in self.named.items()}
        object.__setattr__(self, "named", MappingProxyType(rows))

    @property
    def grid(self) -> Grid:
        """Patches as (rows, cols)."""
        rows, cols = self.values.shape[1:3]
        return rows, cols


@dataclass(frozen=True, eq=False, repr=False)
class StateMatrix(_Portable, Brief):
    """One number per pair of states of a model (or of two), [states, states], raw.

    Args:
        names: of the states of the rows, in words.
        others: of the states of the columns; the same where nothing is said.
    """

    values: NDArray[np.float32]
    names: tuple[str, ...]
    unit: str
    value_range: ValueRange
    method: str
    provenance: Provenance = field(default_factory=Provenance)
    others: tuple[str, ...] = ()
    note: str = ""

    def __post_init__(self) -> None:
        values = _frozen(self.values, 2, "A matrix of states")
        object.__setattr__(self, "others", tuple(self.others or self.names))
        object.__setattr__(self, "names", tuple(self.names))
        if values.shape != (len(self.names), len(self.others)):
            raise ParameterError(
                f"{len(self.names)} x {len(self.others)} states do not fit a matrix of shape {values.shape}."
            )
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "value_range", _checked_range(self.value_range))


@dataclass(frozen=True, eq=False, repr=False)
class Segments(_Portable, Brief):
    """Which segment each patch belongs to, [rows, cols], counted from 0: the largest first.

    Args:
        strength: what the method thinks of each patch, [rows, cols], where it says: the cut's vector.
        overlap: intersection over union of each segment with an object, [segments], where one was given.
        crop_box: where the patches lie in the original image.
    """

    labels: NDArray[np.int64]
    method: str
    provenance: Provenance = field(default_factory=Provenance)
    strength: NDArray[np.float32] | None = None
    crop_box: CropBox | None = None
    note: str = ""
    overlap: NDArray[np.float32] | None = None

    def __post_init__(self) -> None:
        labels = np.array(self.labels, dtype=np.int64)
        present = np.unique(labels)
        if labels.ndim != 2 or not np.array_equal(present, np.arange(len(present))):
            raise ParameterError(
                "Segments are numbered from 0 without a gap, one number per patch of a grid."
            )
        labels.setflags(write=False)
        object.__setattr__(self, "labels", labels)
        if self.strength is not None:
            object.__setattr__(self, "strength", _frozen(self.strength, 2, "The strength of segments"))
        if self.overlap is not None:
            overlap = _frozen(self.overlap, 1, "The overlap of segments")
            if len(overlap) != self.count:
                raise ParameterError(f"{self.count} segments have as many overlaps, not {len(overlap)}.")
            object.__setattr__(self, "overlap", overlap)

    @property
    def count(self) -> int:
        """How many segments there are."""
        return int(self.labels.max()) + 1


@dataclass(frozen=True, eq=False, repr=False)
class Curve(_Portable, Drawable):
    """A line y(x), with an optional band (low, high) of the same length for comparison."""

    x: NDArray[np.float32]
    y: NDArray[np.float32]
    x_label: str
    y_label: str
    method: str
    provenance: Provenance = field(default_factory=Provenance)
    band: tuple[NDArray[np.float32], NDArray[np.float32]] | None = None
    note: str = ""

    def __post_init__(self) -> None:
        x, y = _frozen(self.x, 1, "The x of a curve"), _frozen(self.y, 1, "The y of a curve")
        if x.shape != y.shape:
            raise ParameterError(f"A curve needs as many x as y, not {x.size} and {y.size}.")
        object.__setattr__(self, "x", x)
        object.__setattr__(self, "y", y)
        if self.band is not None:
            low, high = (_frozen(edge, 1, "The band of a curve") for edge in self.band)
            if not low.shape == high.shape == x.shape:
                raise ParameterError("The band of a curve is as long as the curve.")
            object.__setattr__(self, "band", (low, high))

    def __repr__(self) -> str:
        return f"Curve({self.method}: {self.x.size} points, {self.y_label} {_between(self.y)} over {self.x_label})"


@dataclass(frozen=True, eq=False, repr=False)
class Ranking(_Portable, Drawable):
    """Names with scores, best first: classes with probabilities, methods with their trust."""

    names: tuple[str, ...]
    scores: NDArray[np.float32]
    unit: str
    method: str
    provenance: Provenance = field(default_factory=Provenance)
    indices: tuple[int, ...] = ()
    note: str = ""

    def __post_init__(self) -> None:
        scores = _frozen(self.scores, 1, "A ranking")
        if len(self.names) != scores.size:
            raise ParameterError(
                f"A ranking needs as many names as scores, not {len(self.names)} and {scores.size}."
            )
        object.__setattr__(self, "scores", scores)
        object.__setattr__(self, "names", tuple(self.names))

    def __repr__(self) -> str:
        best = ", ".join(
            f"{name} {score:.3g}" for name, score in zip(self.names[:3], self.scores, strict=False)
        )
        return f"Ranking({self.method}: {best}{', ...' if len(self.names) > 3 else ''} {self.unit})"


def _between(values: NDArray[np.float32]) -> str:
    """The smallest and the largest of some values."""
    return f"{values.min():.3g} to {values.max():.3g}" if values.size else "no"
