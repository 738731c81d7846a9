"""What the analyses return: raw NumPy values with their unit, their possible range and where they came from.

Nothing here is scaled for drawing; that is a separate, visible choice (vit_viz.figures).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vit_viz.answer import Answer, Provenance, Table, ValueRange, array_table, axes, checked_array
from vit_viz.errors import ParameterError
from vit_viz.geometry import CropBox, Grid, kind_of, place_words
from vit_viz.lazy import named
from vit_viz.sentences import formatted

if TYPE_CHECKING:
    from PIL import Image


@dataclass(frozen=True, eq=False, repr=False)
class PatchMap(Answer):
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

    AXES = axes(values=("row", "col"))

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", checked_array(self.values, 2, "A patch map"))
        if self.stability is not None and not -1 <= self.stability <= 1:
            raise ParameterError(f"A stability is a correlation from -1 to 1, not {self.stability}.")
        super().__post_init__()

    def __repr__(self) -> str:
        rows, cols = self.grid
        what = f", {self.caption}" if self.caption else ""
        return f"PatchMap({self.method}: {rows} x {cols} patches, {_between(self.values)} {self.unit}{what})"

    def to_table(self) -> Table:
        """The patches alone."""
        return array_table(self.values, self.AXES["values"])

    def to_words(self) -> str:
        """On how few patches half of it lies, of a signed one half of what is above 0, and which has most; "" where nothing is."""
        if self.peak is None:
            return "The map is the same everywhere: it has no peak."
        return half_words(self.values, "what is above 0" if self.signed else "the map")

    def overlay(
        self,
        image: Image.Image | str | Path,
        *,
        style: Literal["light", "tint", "heat"] = "light",
        alpha: float | None = None,
        smooth: bool = True,
    ) -> Image.Image:
        """The photo with this map over it, at the photo's size and without words.

        Args:
            image: the photo, or its path. Where pixels were given in place of a photo, the picture that they show: one of another
                shape is refused, and one of another size is taken to be all that the model received.
            style: how the values change the photo; a map of both signs has heat only.
            alpha: strength of the style, in [0, 1]; None has that of the style.
            smooth: whether values are interpolated between patches.

        Raises:
            ImageError, ParameterError: the photo cannot be read, or is not the map's.
        """
        drawn = named("vit_viz.figures.saving", "overlaid")
        picture: Image.Image = drawn(self, image, style=style, alpha=alpha, smooth=smooth)
        return picture

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
    def peak(self) -> tuple[int, int] | None:
        """The patch (row, col) with the highest value, the first one of equals; None where the map is the same everywhere."""
        if is_even(self.values.ravel()):
            return None
        row, col = np.unravel_index(int(self.values.argmax()), self.values.shape)
        return int(row), int(col)


EVEN = 2.0**-20
"""Of numbers in fp32, computed in several steps, a difference of this share of the largest is rounding."""


def is_even(values: NDArray[np.floating]) -> NDArray[np.bool_]:
    """Whether maps, over the last axis, are the same everywhere but for rounding, which would say which patch is first."""
    even: NDArray[np.bool_] = values.max(-1) - values.min(-1) <= EVEN * np.abs(values).max(-1)
    return even


def half_words(values: NDArray[np.float32], what: str) -> str:
    """On how few patches half of what is above 0 lies, and which has most; "" where nothing is above 0.

    Args:
        what: all of it, in words: the subject of the sentence.
    """
    above = np.maximum(values, 0).astype(np.float64)
    if not above.any():
        return ""
    falling = np.cumsum(np.sort(above, axis=None)[::-1])
    half = int(np.searchsorted(falling, falling[-1] / 2)) + 1
    most = place_words(np.unravel_index(int(values.argmax()), values.shape))
    return f"Half of {what} lies on {half} of {values.size} patches; most on patch {most}."


@dataclass(frozen=True, eq=False, repr=False)
class HeadTable(Answer):
    """One number per head: [layers, heads], raw."""

    values: NDArray[np.float32]
    unit: str
    value_range: ValueRange
    signed: bool
    method: str
    provenance: Provenance = field(default_factory=Provenance)
    note: str = ""

    AXES = axes(values=("layer", "head"))

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", checked_array(self.values, 2, "A head table"))
        super().__post_init__()

    def __repr__(self) -> str:
        layers, heads = self.values.shape
        return (
            f"HeadTable({self.method}: {layers} layers x {heads} heads, {_between(self.values)} {self.unit})"
        )


@dataclass(frozen=True, eq=False, repr=False)
class TokenMatrix(Answer):
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
        values = checked_array(self.values, 2, "A token matrix")
        count = self.grid[0] * self.grid[1]
        if values.shape != (count, count):
            raise ParameterError(f"A grid of {count} positions needs a {count} x {count} matrix.")
        object.__setattr__(self, "values", values)
        rows = {name: checked_array(row, 1, f"The row of {name}") for name, row in self.extra.items()}
        object.__setattr__(self, "extra", rows)
        super().__post_init__()

    def __repr__(self) -> str:
        rows, cols = self.grid
        return f"TokenMatrix({self.method}: {rows} x {cols} positions, {_between(self.values)} {self.unit})"

    def to_table(self) -> Table:
        """Both positions by index; a further position by its name."""
        rows = array_table(self.values).rows
        further = ((name, key, value) for name, row in self.extra.items() for key, value in enumerate(row))
        return Table(("position", "other", "value"), (*rows, *further))

    def tile(self, row: int, col: int) -> NDArray[np.float32]:
        """The values of position (row, col) against all others, [rows, cols]."""
        rows, cols = self.grid
        if not (0 <= row < rows and 0 <= col < cols):
            raise ParameterError(
                f"Position {place_words((row, col))} does not exist: the grid is {rows} x {cols}."
            )
        tile: NDArray[np.float32] = self.values[row * cols + col].reshape(self.grid)
        return tile


@dataclass(frozen=True, eq=False, repr=False)
class TokenMaps(Answer):
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
        values = checked_array(self.values, 4 if axes == 4 else 3, "A stack of token maps")
        if len(self.names) != len(values):
            raise ParameterError(f"Maps of {len(values)} states need as many names, not {len(self.names)}.")
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "names", tuple(self.names))
        rows = {name: checked_array(row, axes - 2, f"The row of {name}") for name, row in self.named.items()}
        object.__setattr__(self, "named", rows)
        super().__post_init__()

    def to_table(self) -> Table:
        """State, row and column of each patch, and the channel where there are several; other tokens by name, without a column."""
        axes = ("state", "row", "col", "channel")[: self.values.ndim]
        rows: list[tuple[object, ...]] = list(array_table(self.values).rows)
        for name, values in self.named.items():
            rows += [(place[0], name, "", *place[1:], value) for place, value in np.ndenumerate(values)]
        return Table((*axes, "value"), rows)

    @property
    def grid(self) -> Grid:
        """Patches as (rows, cols)."""
        rows, cols = self.values.shape[1:3]
        return rows, cols


@dataclass(frozen=True, eq=False, repr=False)
class StateMatrix(Answer):
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

    def to_table(self) -> Table:
        """Both states by name."""
        rows = ((self.names[i], self.others[j], value) for (i, j), value in np.ndenumerate(self.values))
        return Table(("state", "other", "value"), rows)

    def __post_init__(self) -> None:
        values = checked_array(self.values, 2, "A matrix of states")
        object.__setattr__(self, "others", tuple(self.others or self.names))
        object.__setattr__(self, "names", tuple(self.names))
        if values.shape != (len(self.names), len(self.others)):
            raise ParameterError(
                f"{len(self.names)} x {len(self.others)} states do not fit a matrix of shape {values.shape}."
            )
        object.__setattr__(self, "values", values)
        super().__post_init__()


@dataclass(frozen=True, eq=False, repr=False)
class Segments(Answer):
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

    AXES = axes(labels=("row", "col"), strength=("row", "col"), overlap=("segment",))

    def __post_init__(self) -> None:
        labels = np.array(self.labels, dtype=np.int64)
        present = np.unique(labels)
        if labels.ndim != 2 or not np.array_equal(present, np.arange(len(present))):
            raise ParameterError(
                "Segments are numbered from 0 without a gap, one number per patch of a grid."
            )
        object.__setattr__(self, "labels", labels)
        if self.strength is not None:
            object.__setattr__(self, "strength", checked_array(self.strength, 2, "The strength of segments"))
        if self.overlap is not None:
            overlap = checked_array(self.overlap, 1, "The overlap of segments")
            if len(overlap) != self.count:
                raise ParameterError(f"{self.count} segments have as many overlaps, not {len(overlap)}.")
            object.__setattr__(self, "overlap", overlap)
        super().__post_init__()

    @property
    def count(self) -> int:
        """How many segments there are."""
        return int(self.labels.max()) + 1


class Band(NamedTuple):
    """What lies around a curve."""

    low: NDArray[np.float32]
    high: NDArray[np.float32]


@dataclass(frozen=True, eq=False, repr=False)
class Curve(Answer):
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
        x, y = checked_array(self.x, 1, "The x of a curve"), checked_array(self.y, 1, "The y of a curve")
        if x.shape != y.shape:
            raise ParameterError(f"A curve needs as many x as y, not {x.size} and {y.size}.")
        object.__setattr__(self, "x", x)
        object.__setattr__(self, "y", y)
        if self.band is not None:
            band = Band(*(checked_array(edge, 1, "The band of a curve") for edge in self.band))
            if not band.low.shape == band.high.shape == x.shape:
                raise ParameterError("The band of a curve is as long as the curve.")
            object.__setattr__(self, "band", band)
        super().__post_init__()

    def to_table(self) -> Table:
        """x and y, and the band where there is one."""
        columns = {"x": self.x, "y": self.y}
        if self.band is not None:
            columns |= dict(zip(("low", "high"), self.band, strict=True))
        return Table(tuple(columns), zip(*columns.values(), strict=True))

    def __repr__(self) -> str:
        return f"Curve({self.method}: {self.x.size} points, {self.y_label} {_between(self.y)} over {self.x_label})"


@dataclass(frozen=True, eq=False, repr=False)
class Ranking(Answer):
    """Names with scores, best first: classes with probabilities, methods with their trust."""

    names: tuple[str, ...]
    scores: NDArray[np.float32]
    unit: str
    method: str
    provenance: Provenance = field(default_factory=Provenance)
    indices: tuple[int, ...] = ()
    note: str = ""

    def __post_init__(self) -> None:
        scores = checked_array(self.scores, 1, "A ranking")
        if len(self.names) != scores.size:
            raise ParameterError(
                f"A ranking needs as many names as scores, not {len(self.names)} and {scores.size}."
            )
        object.__setattr__(self, "scores", scores)
        object.__setattr__(self, "names", tuple(self.names))
        super().__post_init__()

    def to_table(self) -> Table:
        """Name, index where there is one, and score."""
        indices = self.indices or ("",) * len(self.names)
        return Table(("name", "index", "score"), zip(self.names, indices, self.scores, strict=True))

    def __repr__(self) -> str:
        best = ", ".join(
            f"{name} {formatted(score, '.3g')}"
            for name, score in zip(self.names[:3], self.scores, strict=False)
        )
        return f"Ranking({self.method}: {best}{', ...' if len(self.names) > 3 else ''} {self.unit})"


def _between(values: NDArray[np.float32]) -> str:
    return " to ".join(formatted(end, ".3g") for end in (values.min(), values.max())) if values.size else "no"
