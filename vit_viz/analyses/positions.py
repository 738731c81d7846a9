"""What each position knows of the others: similarity of position embeddings, learned, sinusoidal or rotary; how near they come to
fixed waves: their best sine-cosine fit, and what it leaves; and how alike two positions are by how far apart they are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from vit_viz.analyses.attention import to_numpy
from vit_viz.analyses.options import Option, Options
from vit_viz.analyses.prepared_image import ModelLike
from vit_viz.analyses.spec import Place, asks
from vit_viz.answer import Provenance
from vit_viz.capture.given import as_model
from vit_viz.checkpoints import Model
from vit_viz.errors import ParameterError
from vit_viz.geometry import Grid, place_words
from vit_viz.lazy import F, Tensor, nn, torch
from vit_viz.model import VisionTransformer
from vit_viz.model.positions import angles_of, sinusoidal_2d
from vit_viz.results import Curve, PatchMap, TokenMatrix
from vit_viz.sentences import formatted

_MAX_POSITIONS = 4096  # the matrix of all pairs then has 64 MB


def position_similarity(loaded: ModelLike, *, grid: Grid | None = None) -> TokenMatrix:
    """How alike the position embeddings of any two patches are: trained models learn rows, columns and nearness.

    Learned and sinusoidal positions: cosine similarity of their embeddings. Rotary positions have no embedding; there it is the
    mean over all frequencies of the cosine of the relative phase: what the rotation does to a query and a key that are equal.

    Args:
        loaded: a loaded model or its name, or the model itself.
        grid: (rows, cols); None means the grid that the model was made for. Learned positions are resampled by the model's own
            variant.

    Returns:
        [positions, positions] in [-1, 1], symmetric, diagonal 1. `extra` has a row for each prefix token with a position of its
        own, e.g. "class".

    Raises:
        ParameterError: the model has no position embedding at all, or it is not one whose positions we can read, or the grid has no
            patch or more than 4096.

    Source: Dosovitskiy et al. 2021, arXiv:2010.11929, Fig. 7 centre. Cosine similarity, not the dot product.

    Example:
        >>> import vit_viz as vv
        >>> vv.position_similarity("mini").tile(3, 4)[3, 4:7].round(2)  # a patch with itself and those to its right
        array([1.  , 0.95, 0.86], dtype=float32)
    """
    model, provenance = own_model(loaded)
    grid = checked_grid(model.config.grid if grid is None else grid)
    values, extra, unit, note = _similarities(model, grid)
    return TokenMatrix(
        to_numpy(values),
        unit=unit,
        value_range=(-1.0, 1.0),
        signed=True,
        method="position similarity",
        grid=grid,
        provenance=provenance.with_parameters(method="position_similarity", grid=f"{grid[0]} x {grid[1]}"),
        extra={name: to_numpy(row) for name, row in extra.items()},
        note=note,
    )


def place_similarity(matrix: TokenMatrix, place: str | Grid) -> PatchMap:
    """How alike the position of a patch (row, col), or of a token by name, is to that of each patch: a row of the matrix."""
    if isinstance(place, str):
        if place not in matrix.extra:
            places = ", ".join(matrix.extra) or "none"
            raise ParameterError(f"There is no position {place!r} beside the patches; there is: {places}.")
        values, caption = matrix.extra[place].reshape(matrix.grid), f"The position of {place}"
    else:
        values, caption = matrix.tile(*place), f"Position {place_words(place)}"
    return PatchMap(
        values,
        unit=matrix.unit,
        value_range=matrix.value_range,
        signed=matrix.signed,
        method=matrix.method,
        class_blind=True,
        provenance=matrix.provenance.with_parameters(place=place),
        caption=f"{caption} with all {matrix.grid[0]} x {matrix.grid[1]} patch positions",
        note=matrix.note,
    )


def own_model(loaded: ModelLike) -> tuple[VisionTransformer, Provenance]:
    """The model whose positions are read, and where its weights, which are read for it, came from."""
    source = as_model(loaded)
    return own_module(source), Provenance() if isinstance(source, nn.Module) else source.provenance


def own_module(loaded: ModelLike) -> VisionTransformer:
    """The model whose positions are read."""
    source = loaded if isinstance(loaded, Model) else as_model(loaded)
    model = source if isinstance(source, nn.Module) else source.model
    if not isinstance(model, VisionTransformer):
        raise ParameterError(
            f"Positions are read from vit_viz's own VisionTransformer, not from {type(model).__name__}; load the checkpoint "
            "with vit_viz.load to see them."
        )
    return model


def _similarities(model: VisionTransformer, grid: Grid) -> tuple[Tensor, dict[str, Tensor], str, str]:
    """(matrix, rows of prefix tokens, unit, note) for the kind of positions that the model has."""
    config = model.config
    if config.position_kind == "relative":
        raise ParameterError(
            "This model has no position embedding: its layers add a learned number to the scores for the offset of two patches."
        )
    vectors = position_vectors(model, grid)
    if vectors is None:
        raise ParameterError(
            "This model has no position embedding: it knows where a patch is only from what the patches show."
        )
    if config.position_kind == "rotary":
        note = "This model learns no position embedding: it turns queries and keys by angles that depend on the position."
        return vectors @ vectors.T, {}, "mean cosine of the relative phase", note
    named = zip(config.positioned_prefix, model.position_table(grid).detach().cpu().double(), strict=False)
    extra = {name: vectors @ F.normalize(row, dim=-1) for name, row in named if row.any()}
    return vectors @ vectors.T, extra, "cosine similarity", _note(model, grid)


def position_vectors(model: VisionTransformer, grid: Grid) -> Tensor | None:
    """Vectors whose products say how alike two positions of patches are, fp64 [positions, numbers]; None where none is known.

    Of a table its rows at length 1, so that a product is a cosine; of rotary positions cosines and sines of the angles, so that it
    is the mean over the pairs of cos(angle_i - angle_j).
    """
    config = model.config
    if config.position not in ("rotary", "none"):
        table = model.position_table(grid)[len(config.positioned_prefix) :]
        return F.normalize(table.detach().cpu().double(), dim=-1)
    angles = angles_of(config, grid)  # [positions, pairs]
    if angles is None:
        return None
    angles = angles.double()
    turned: Tensor = torch.cat((angles.cos(), angles.sin()), dim=-1) / angles.shape[1] ** 0.5
    return turned


def _note(model: VisionTransformer, grid: Grid) -> str:
    config = model.config
    if config.position != "learned":
        return "These positions are fixed waves, not learned."
    notes = []
    if grid != config.table_grid:
        old, new = (f"{rows} x {cols}" for rows, cols in (config.table_grid, grid))
        notes.append(f"Resampled from the {old} positions of the checkpoint to {new} ({config.resample}).")
    if config.rotary_grid is not None:
        notes.append(
            "Each layer also turns queries and keys by angles of the position, which are not in here."
        )
    if config.relative_bias or config.shared_bias:
        notes.append(
            "Each layer also adds a learned number for the offset of two patches, which is not in here."
        )
    return " ".join(notes)


def positioned(loaded: ModelLike) -> tuple[str, ...]:
    """The prefix tokens with a position of their own: those that `position_similarity` has in `extra`."""
    model = own_module(loaded)
    names = model.config.positioned_prefix
    rows = model.position_table(model.config.grid)[: len(names)] if names else ()
    return tuple(name for name, row in zip(names, rows, strict=True) if row.any())


def checked_grid(grid: Grid) -> Grid:
    """The grid, refused where it has no patch or too many for all pairs."""
    rows, cols = (int(n) for n in grid)
    if rows < 1 or cols < 1 or rows * cols > _MAX_POSITIONS:
        raise ParameterError(f"A grid has 1 to {_MAX_POSITIONS} positions, not {rows} x {cols}.")
    return rows, cols


def _positions(
    loaded: ModelLike,
    *,
    grid: Annotated[
        str,
        Option(
            "grid",
            'Patches as "rows,cols" to which positions are resampled; else that of the checkpoint.',
            pattern=r"(\d{1,4},\d{1,4})?",
        ),
    ] = "",
    place: Annotated[
        str,
        Option(
            "place",
            'One position with all: "row,col", or a token that has one, such as "class"; else all pairs.',
            pattern=r"(\d{1,4},\d{1,4}|[a-z]{1,20}( \d{1,4})?)?",
        ),
    ] = "",
) -> TokenMatrix | PatchMap:
    """All pairs of positions, or those of one place."""
    matrix = position_similarity(loaded, grid=as_pair(grid) if grid else None)
    where = as_pair(place) if place[:1].isdigit() else place
    return place_similarity(matrix, where) if where else matrix


def as_pair(text: str) -> tuple[int, int]:
    """The pair of numbers in "row,col"."""
    first, second = (int(part) for part in text.split(","))
    return first, second


POSITIONS = asks(
    _positions,
    label="Positions",
    also_called="position embeddings, positional encoding, pos embed, similarity of positions",
    shows="how similar the position embeddings of any two patches are.",
    hides="what the model makes of them.",
    formula=r"$\cos(p_i, p_j)$",
    source="Dosovitskiy et al. 2021, arXiv:2010.11929, Fig. 7",
    class_blind=True,
    reads="model",
    place=Place("positions", {"position_part": "similarity", "position_grid": "trained"}),
)


# --- the sine-cosine fit


BASES = tuple(10 ** (step / 8) for step in range(4, 41))
"""Bases that are tried, from 3.2 to 100,000, eight to a factor of ten; MAE's is 10,000."""


def position_fit(loaded: ModelLike) -> Curve:
    """What share of the learned positions' variance the best sine-cosine code leaves, by the base of its frequencies.

    With P the positions of the patches [patches, dim] and S_b MAE's code of the same dim for the base b, columns of both centred:
    min over scales s and rotations R of ||P - s S_b R||^2 / ||P||^2 = 1 - ||P^T S_b||_*^2 / (||P||^2 ||S_b||^2), in the nuclear
    norm. A rotation, because to the first linear layer a rotated table is the same table; a free linear map would fit every sum
    f(row) + g(col) alike, whatever the base, since S_b spans them all. What such a sum leaves is told in the note.

    Returns:
        Shares in [0, 1] over log10 of the base; the lowest is the best fit.

    Raises:
        ParameterError: the model has no table of positions, or it is not ours.

    Source: He et al. 2022 (MAE), arXiv:2111.06377 (the code); Schönemann 1966, doi:10.1007/BF02289451 (the best rotation).

    Example:
        >>> import vit_viz as vv
        >>> len(vv.position_fit("mini").y)  # one share for each base
        37
    """
    table, grid, provenance = _centred_table(loaded)
    left = np.array([1 - _explained(table, _code(grid, table.shape[1], base)) for base in BASES])
    base, sums = BASES[int(left.argmin())], _beyond_sums(table, grid)
    return Curve(
        np.log10(BASES).astype(np.float32),
        left.clip(0, 1).astype(np.float32),
        "base of the frequencies, as a power of ten",
        "share of the variance that is left",
        "sine-cosine fit of positions",
        provenance.with_parameters(method="position_fit"),
        note=f"Best with base {base:.3g}: {left.min():.1%} is left; no sum of a row's and a column's code leaves less than "
        f"{sums:.1%}.",
    )


def position_residual(loaded: ModelLike) -> PatchMap:
    """What the best sine-cosine fit leaves of each position, in units of the mean position's variance; the mean is the share left.

    ||p_i - s (S_b R)_i||^2 / mean_j ||p_j||^2, with the b, s and R of `position_fit`.
    """
    table, grid, provenance = _centred_table(loaded)
    base = max(BASES, key=lambda one: _explained(table, _code(grid, table.shape[1], one)))
    code = _code(grid, table.shape[1], base)
    left, sizes, right = torch.linalg.svd(code.T @ table, full_matrices=False)
    fitted = sizes.sum() / code.square().sum() * (code @ left @ right)
    rest = (table - fitted).square().sum(1) / table.square().sum(1).mean()
    return PatchMap(
        to_numpy(rest).reshape(grid),
        unit="share of a position's variance",
        value_range=(0.0, float("inf")),
        signed=False,
        method="residual of the sine-cosine fit",
        class_blind=True,
        provenance=provenance.with_parameters(method="position_residual", base=f"{base:.6g}"),
        caption=f"What the best sine-cosine fit (base {base:.3g}) leaves of each position",
    )


def _centred_table(loaded: ModelLike) -> tuple[Tensor, Grid, Provenance]:
    """The positions of the patches with columns centred, fp64 [patches, dim], their grid, and where they came from."""
    model, provenance = own_model(loaded)
    config = model.config
    if config.position in ("none", "rotary"):
        raise ParameterError("A sine-cosine fit needs a table of positions, and this model has none.")
    grid = config.grid
    table = model.position_table(grid).detach().cpu().double()[len(config.positioned_prefix) :]
    centred = table - table.mean(0)
    if not centred.any():
        raise ParameterError("All positions of this model are the same, so there is nothing to fit.")
    return centred, grid, provenance


def _code(grid: Grid, dim: int, base: float) -> Tensor:
    """MAE's code of a grid for a base, columns centred, fp64 [patches, dim]; of the largest multiple of 4 in dim, then zeros."""
    code = sinusoidal_2d(grid, dim - dim % 4, base=base).double()
    return nn.functional.pad(code - code.mean(0), (0, dim % 4))


def _explained(table: Tensor, code: Tensor) -> float:
    """Share of the table's variance that the best scaled rotation of a code explains."""
    left, sizes, _ = torch.linalg.svd(code, full_matrices=False)
    few = sizes > 1e-9 * sizes[0]  # a sum over rows and columns has few directions
    shared = torch.linalg.svdvals(table.T @ (left[:, few] * sizes[few])).sum()
    return float(shared.square() / (table.square().sum() * code.square().sum()))


def _beyond_sums(table: Tensor, grid: Grid) -> float:
    """Share of the table's variance that no f(row) + g(col) explains: what its means over rows and over columns leave."""
    cells = table.reshape(*grid, -1)
    rest = cells - cells.mean(0, keepdim=True) - cells.mean(1, keepdim=True)
    return float(rest.square().sum() / table.square().sum())


def _position_fit(
    loaded: ModelLike,
    *,
    shown: Annotated[
        Literal["bases", "residual"],
        Option("shown", "What each base leaves, or what the best one leaves of each position."),
    ] = "bases",
) -> Curve | PatchMap:
    return position_fit(loaded) if shown == "bases" else position_residual(loaded)


POSITION_FIT = asks(
    _position_fit,
    label="Sine-cosine fit",
    also_called="sinusoidal positions",
    shows="how near learned positions come to fixed sine and cosine waves, and what these leave.",
    hides="whether the model uses what is left.",
    formula=r"$\min_{s, R} \lVert P - s\, S_b R \rVert^2 / \lVert P \rVert^2$ over scales and rotations, for each base $b$",
    source="He et al. 2022, arXiv:2111.06377; Schönemann 1966, doi:10.1007/BF02289451",
    class_blind=True,
    reads="model",
)


# --- by distance


MOST_ROWS = 512
"""Of a grid that is asked for, and as many columns."""


@dataclass(frozen=True)
class GridOptions(Options):
    """The grid that positions are of."""

    rows: Annotated[
        int, Option("rows", "Rows of patches; 0 is the grid the model was made for.", high=MOST_ROWS)
    ] = 0
    cols: Annotated[
        int, Option("columns", "Columns of patches; 0 is the grid the model was made for.", high=MOST_ROWS)
    ] = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if bool(self.rows) != bool(self.cols):
            raise ParameterError("A grid has rows and columns: please give both, or neither.")

    @property
    def grid(self) -> Grid | None:
        """(rows, cols); None is the grid the model was made for."""
        return (self.rows, self.cols) if self.rows else None


UNALIKE = 0.1
"""A mean cosine down to which places count as alike."""
TOLD_APART = 0.05
"""The least difference of two mean cosines of which anything is said."""

_Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False, repr=False)
class LikenessByDistance:
    """The similarity of two positions over the straight line between them, rounded to whole steps of a patch.

    Args:
        mean: over all pairs so many steps apart, [steps]; the first is of each position with itself.
        low: what a tenth of them stay below, [steps].
        high: what a tenth of them exceed, [steps].
        pairs: how many there are, each counted once, [steps].
        straight: the mean of those that lie in one row or in one column, [steps]; NaN where there are none.
        askew: the mean of all others, [steps]; NaN where there are none.
        along: the mean of two positions of one row, by the columns between them, [cols].
        down: likewise of one column, [rows].
    """

    mean: _Floats
    low: _Floats
    high: _Floats
    pairs: NDArray[np.int64]
    straight: _Floats
    askew: _Floats
    along: _Floats
    down: _Floats


def position_distance(loaded: ModelLike, *, grid: Grid | None = None) -> Curve:
    """How alike the positions of two patches are by how far apart they lie, and what that says in words.

    The mean of `position_similarity` over all pairs of patches whose distance, in a straight line, rounds to a number of steps; the
    band holds eight in ten of them.

    Args:
        loaded: a loaded model or its name, or the model itself.
        grid: (rows, cols); None means the grid that the model was made for.

    Returns:
        The unit of `position_similarity` over steps of a patch, from 0; the note says what positions tell apart.

    Raises:
        ParameterError: as `position_similarity`.

    Example:
        >>> import vit_viz as vv
        >>> vv.position_distance("mini").note.partition(":")[0]
        'Positions know rows and columns'
    """
    matrix = position_similarity(loaded, grid=grid)
    likeness = likeness_by_distance(matrix)
    rows, cols = matrix.grid
    return Curve(
        np.arange(len(likeness.mean), dtype=np.float32),
        likeness.mean,
        "steps of a patch, in a straight line",
        matrix.unit,
        "likeness of positions by distance",
        matrix.provenance.with_parameters(method="position_distance", grid=f"{rows} x {cols}"),
        band=(likeness.low, likeness.high),
        note=" ".join(filter(None, (f"{finding(likeness)}.", by_direction(likeness)))),
    )


def likeness_by_distance(matrix: TokenMatrix) -> LikenessByDistance:
    """What the similarity of positions, which is symmetric, becomes with the distance between them."""
    rows, cols = matrix.grid
    tiles = matrix.values.reshape(rows, cols, rows, cols)
    straight: list[list[_Floats]] = [[] for _ in range(round(math.hypot(rows - 1, cols - 1)) + 1)]
    askew: list[list[_Floats]] = [[] for _ in straight]
    along, down = np.empty(cols, np.float32), np.empty(rows, np.float32)
    for lower in range(rows):
        band = tiles.diagonal(lower, 0, 2)  # [cols, other cols, rows - lower]
        for right in range(1 - cols if lower else 0, cols):
            values = band.diagonal(right, 0, 1)  # [rows - lower, cols - |right|]
            group = askew if lower and right else straight
            group[round(math.hypot(lower, right))].append(values.ravel())
            if not lower:
                along[right] = values.mean()
            if not right:
                down[lower] = values.mean()
    apart = [np.concatenate(one + other) for one, other in zip(straight, askew, strict=True)]
    low, high = np.array([np.percentile(values, (10, 90)) for values in apart], np.float32).T
    return LikenessByDistance(
        _means([[values] for values in apart]),
        low,
        high,
        np.array([values.size for values in apart]),
        _means(straight),
        _means(askew),
        along,
        down,
    )


def _means(groups: list[list[_Floats]]) -> _Floats:
    """The mean of each group of numbers; NaN where it has none."""
    means = [np.concatenate(group).mean(dtype=np.float64) if group else np.nan for group in groups]
    return np.array(means, np.float32)


def finding(likeness: LikenessByDistance) -> str:
    """What positions tell apart, with the numbers that say so."""
    mean = likeness.mean
    if len(mean) < 2:
        return "There is one position, and none to compare it with"
    unalike = np.flatnonzero(mean <= UNALIKE)
    far = max(1, int(unalike[0] if len(unalike) else mean.argmin()))
    near = f"neighbours are {formatted(mean[1], '.2f')} alike"
    if far == 1:
        return f"Positions tell each place from all others: even {near}"
    numbers = f"{near}, places {far} steps apart {formatted(mean[far], '.2f')}"
    if mean[1] - mean[far] < TOLD_APART:
        return f"Positions hardly tell near from far: {numbers}"
    better = (likeness.straight - likeness.askew)[2 : min(len(likeness.along), len(likeness.down))]
    knows_lines = len(better) > 0 and np.nanmean(better) > TOLD_APART
    return f"Positions {'know rows and columns' if knows_lines else 'tell near from far'}: {numbers}"


def by_direction(likeness: LikenessByDistance) -> str:
    """Whether likeness falls otherwise along a row than down a column; nothing where there is but one of either."""
    count = min(len(likeness.along), len(likeness.down))
    if count < 2:
        return ""
    apart = likeness.along[1:count] - likeness.down[1:count]
    if abs(apart.mean()) < TOLD_APART:
        return "Along a row it falls as it does down a column."
    step = 1 + int((apart * np.sign(apart.mean())).argmax())
    along, down = formatted(likeness.along[step], ".2f"), formatted(likeness.down[step], ".2f")
    how = "slowly" if apart.mean() > 0 else "quickly"
    steps = "1 step" if step == 1 else f"{step} steps"
    return f"Along a row it falls more {how} than down a column: at {steps} {along} against {down}."


POSITION_DISTANCE = asks(
    lambda loaded, options: position_distance(loaded, grid=options.grid),
    name="position_distance",
    label="Positions by distance",
    also_called="relative position, distance decay",
    shows="how alike two positions are by how far apart they lie, and whether positions know rows and columns.",
    hides="which two positions: those of one distance are taken together.",
    formula=r"$\mathrm{mean}_{d(i, j) = s} \cos(p_i, p_j)$",
    source="Dosovitskiy et al. 2021, arXiv:2010.11929, Fig. 7",
    class_blind=True,
    options=GridOptions,
    reads="model",
    place=Place("positions", {"position_part": "similarity", "position_grid": "trained"}),
)
