"""What each position knows of the others: similarity of position embeddings, learned, sinusoidal or rotary."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import torch.nn.functional as F
from torch import Tensor, nn

from vit_viz.analyses.attention import to_numpy
from vit_viz.analyses.job import Job
from vit_viz.analyses.options import Option, Options
from vit_viz.analyses.spec import Place, Question, Words
from vit_viz.capture.given import as_model
from vit_viz.checkpoints import Model
from vit_viz.errors import ParameterError
from vit_viz.geometry import Grid
from vit_viz.model.positions import rotary_angles
from vit_viz.model.vit import VisionTransformer
from vit_viz.results import PatchMap, Provenance, TokenMatrix

_MAX_POSITIONS = 4096  # the matrix of all pairs then has 64 MB


def position_similarity(loaded: Model | nn.Module | str | Path, *, grid: Grid | None = None) -> TokenMatrix:
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
    """How alike the position of one patch, or of one prefix token, is to that of each patch: a row of `position_similarity`.

    Args:
        matrix: what `position_similarity` gave.
        place: (row, col), or the name of a token with a position of its own, e.g. "class".

    Raises:
        ParameterError: there is no such position.
    """
    if isinstance(place, str):
        if place not in matrix.extra:
            known = ", ".join(matrix.extra) or "none"
            raise ParameterError(f"There is no position {place!r} beside the patches; there is: {known}.")
        values, caption = matrix.extra[place].reshape(matrix.grid), f"The position of {place}"
    else:
        values, caption = matrix.tile(*place), f"Position ({place[0]}, {place[1]})"
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


def own_model(loaded: Model | nn.Module | str | Path) -> tuple[VisionTransformer, Provenance]:
    """The model whose positions are read, and where it came from.

    Raises:
        ParameterError: it is not vit_viz's own.
    """
    source = as_model(loaded)
    model = source if isinstance(source, nn.Module) else source.model
    provenance = Provenance() if isinstance(source, nn.Module) else source.provenance
    if not isinstance(model, VisionTransformer):
        raise ParameterError(
            f"Positions are read from vit_viz's own VisionTransformer, not from {type(model).__name__}; load the checkpoint "
            "with vit_viz.load to see them."
        )
    return model, provenance


def _similarities(model: VisionTransformer, grid: Grid) -> tuple[Tensor, dict[str, Tensor], str, str]:
    """(matrix, rows of prefix tokens, unit, note) for the kind of positions that the model has."""
    config = model.config
    if config.position == "none":
        raise ParameterError(
            "This model has no position embedding: it knows where a patch is only from what the patches show."
        )
    if config.position == "rotary":
        angles = rotary_angles(grid, config.head_dim, base=config.rotary_base).double()  # [positions, pairs]
        note = "This model learns no position embedding: it turns queries and keys by angles that depend on the position."
        return _phase_similarity(angles), {}, "mean cosine of the relative phase", note
    table = model.position_table(grid).detach().cpu().double()
    names = config.positioned_prefix
    patches = F.normalize(table[len(names) :], dim=-1)  # [positions, dim]
    prefix = {name: row for name, row in zip(names, table, strict=False) if row.any()}
    extra = {name: patches @ F.normalize(row, dim=-1) for name, row in prefix.items()}
    return patches @ patches.T, extra, "cosine similarity", _note(model, grid)


def _phase_similarity(angles: Tensor) -> Tensor:
    """Mean over pairs of cos(angle_i - angle_j), [positions, positions]; cos(a - b) = cos a cos b + sin a sin b."""
    cos, sin = angles.cos(), angles.sin()
    return (cos @ cos.T + sin @ sin.T) / angles.shape[1]


def _note(model: VisionTransformer, grid: Grid) -> str:
    config = model.config
    if config.position != "learned":
        return "These positions are fixed waves, not learned."
    if grid != config.grid:
        old, new = (f"{rows} x {cols}" for rows, cols in (config.grid, grid))
        return f"Resampled from the {old} positions of the checkpoint to {new} ({config.resample})."
    return ""


def checked_grid(grid: Grid) -> Grid:
    """The grid, refused where it has no patch or too many for all pairs.

    Raises:
        ParameterError: it has none, or more than 4096.
    """
    rows, cols = (int(n) for n in grid)
    if rows < 1 or cols < 1 or rows * cols > _MAX_POSITIONS:
        raise ParameterError(f"A grid has 1 to {_MAX_POSITIONS} positions, not {rows} x {cols}.")
    return rows, cols


@dataclass(frozen=True)
class PositionsOptions(Options):
    """Which positions are compared."""

    grid: Annotated[
        str,
        Option(
            "grid",
            'Patches as "rows,cols" to which positions are resampled; else the grid of the checkpoint.',
            pattern=r"(\d{1,4},\d{1,4})?",
        ),
    ] = ""
    place: Annotated[
        str,
        Option(
            "place",
            'One position alone with all: "row,col", or a token with a position of its own such as "class"; else all pairs.',
            pattern=r"(\d{1,4},\d{1,4}|[a-z]{1,20}( \d{1,4})?)?",
        ),
    ] = ""


def _positions(job: Job, options: PositionsOptions) -> TokenMatrix | PatchMap:
    """All pairs of positions, or those of one place."""
    grid = as_pair(options.grid) if options.grid else None
    matrix = position_similarity(job.loaded, grid=grid)
    place = as_pair(options.place) if options.place[:1].isdigit() else options.place
    return place_similarity(matrix, place) if place else matrix


def as_pair(text: str) -> tuple[int, int]:
    """The pair of numbers in "row,col"."""
    first, second = (int(part) for part in text.split(","))
    return first, second


POSITIONS = Question(
    name="positions",
    words=Words(
        label="Positions",
        shows="how similar the position embeddings of any two patches are.",
        hides="what the model makes of them.",
        formula=r"$\cos(p_i, p_j)$",
        source="Dosovitskiy et al. 2021, arXiv:2010.11929, Fig. 7",
        class_blind=True,
    ),
    options=PositionsOptions,
    run=_positions,
    reads="model",
    place=Place("positions", {"position_part": "similarity"}),
    figure="positions",
)
