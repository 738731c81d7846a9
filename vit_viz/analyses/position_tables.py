"""What a model's positions are made of: resampled by each family's way, taken apart by period, and in three components."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, get_args

import numpy as np
from numpy.typing import NDArray

from vit_viz.analyses.attention import to_numpy
from vit_viz.analyses.components import Basis, principal_components
from vit_viz.analyses.options import Option
from vit_viz.analyses.positions import MOST_ROWS, POSITIONS, GridOptions, checked_grid, own_model, own_module
from vit_viz.analyses.prepared_image import ModelLike
from vit_viz.analyses.spec import AnyQuestion, Place, asks
from vit_viz.answer import Answer, Provenance, axes
from vit_viz.errors import ParameterError
from vit_viz.geometry import Grid
from vit_viz.lazy import Tensor, torch
from vit_viz.model import VisionTransformer
from vit_viz.model.config import Resample
from vit_viz.model.positions import resample, rotary_angles
from vit_viz.results import TokenMaps

VARIANTS: tuple[Resample, ...] = get_args(Resample)


@dataclass(frozen=True, eq=False, repr=False)
class Resampling(Answer):
    """Learned positions brought to another grid in every family's way.

    Args:
        before: the checkpoint's own table in three components, one state, [1, rows, cols, 3] at its own grid.
        after: each variant along the same components, [variants, rows, cols, 3] at the new grid.
        difference: ||position of the variant - position of the model's own variant|| / mean ||position||, [variants, rows, cols].
        overall: ||T - T_own||_F / ||T_own||_F of each variant, [variants].
        own: the variant of the model.
    """

    before: TokenMaps
    after: TokenMaps
    difference: TokenMaps
    overall: NDArray[np.float32]
    own: Resample

    AXES = axes(overall=("variant",))


@dataclass(frozen=True, eq=False, repr=False)
class RotarySimilarity(Answer):
    """How alike two patches are by their rotary positions alone, taken apart by axis and period.

    Args:
        periods: in units of half the picture's side, [periods].
        rows: cos of the relative phase of two patches d rows apart, [periods, rows].
        cols: likewise by columns, [periods, cols].
    """

    periods: NDArray[np.float32]
    rows: NDArray[np.float32]
    cols: NDArray[np.float32]

    AXES = axes(periods=("period",), rows=("period", "rows apart"), cols=("period", "columns apart"))


@dataclass(frozen=True, eq=False, repr=False)
class PositionComponents(Answer):
    """The position embeddings in the directions in which they differ most.

    Args:
        maps: coordinates of each patch along three of them, one state, [1, rows, cols, 3].
        shares: of the positions' variance, [3].
    """

    maps: TokenMaps
    shares: NDArray[np.float32]

    AXES = axes(shares=("component",))


@dataclass(frozen=True, eq=False, repr=False)
class FilterComponents(Answer):
    """The patch embedding's filters, in the directions of pixels in which they differ most.

    Args:
        values: [components, channels, patch height, patch width], unit vectors.
        shares: of the filters' variance, [components].
    """

    values: NDArray[np.float32]
    shares: NDArray[np.float32]

    AXES = axes(values=("component", "channel", "pixel row", "pixel col"), shares=("component",))


def resampling(loaded: ModelLike, *, grid: Grid) -> Resampling:
    """What the checkpoint's positions become on another grid in each family's way, and how much the ways differ.

    The three components are those of the checkpoint's own table, centred on its mean; every variant is drawn along them.

    Args:
        grid: (rows, cols) that is wanted.

    Raises:
        ParameterError: the model is not ours, or its positions are not learned, or the grid has no patch or more than 4096.

    Example:
        >>> import vit_viz as vv
        >>> vv.resampling("mini", grid=(8, 8)).own
        'timm'
    """
    model, provenance = own_model(loaded)
    grid, config = checked_grid(grid), model.config
    table = _learned(model)
    mean, basis = table.mean(0), principal_components(table - table.mean(0), 3)
    tables = torch.stack([resample(table, config.table_grid, grid, variant=variant) for variant in VARIANTS])
    own = tables[VARIANTS.index(config.resample)]  # [patches, dim]
    apart = (tables - own).norm(dim=-1) / own.norm(dim=-1).mean()
    words = provenance.with_parameters(method="resampling", grid=f"{grid[0]} x {grid[1]}")
    unit, lengths = "share of the mean norm of a position", (0.0, float("inf"))
    difference = to_numpy(apart.reshape(len(VARIANTS), *grid))
    return Resampling(
        _along(basis, (table - mean)[None], ("checkpoint",), config.table_grid, "resampling", words),
        _along(basis, tables - mean, VARIANTS, grid, "resampling", words),
        TokenMaps(difference, VARIANTS, unit, lengths, False, "resampling", words),
        to_numpy(((tables - own).norm(dim=(1, 2)) / own.norm()).float()),
        config.resample,
    )


def rotary_similarity(loaded: ModelLike, *, grid: Grid | None = None) -> RotarySimilarity:
    """What each period of a rotary model can tell apart: cos(2 pi * 2 d / (g * period)) for patches d apart of g on an axis.

    The mean over both axes and all periods is `position_similarity`.

    Args:
        grid: (rows, cols); None means the grid that the model was made for.

    Raises:
        ParameterError: the model is not ours, or its positions are not rotary, or the grid has no patch or more than 4096.

    Source: DINOv3, arXiv:2508.10104; Su et al. 2021, arXiv:2104.09864.

    Example:
        >>> import vit_viz as vv
        >>> vv.rotary_similarity("mini")
        Traceback (most recent call last):
        vit_viz.errors.ParameterError: Periods belong to rotary positions; those of this model are learned.
    """
    model = own_module(loaded)
    config = model.config
    if config.rotary_grid is not None:
        raise ParameterError(
            "Only the periods of rotary positions like DINOv3's are shown; those of this model are EVA-02's."
        )
    if config.position != "rotary":
        raise ParameterError(
            f"Periods belong to rotary positions; those of this model are {config.position_kind}."
        )
    rows, cols = checked_grid(config.grid if grid is None else grid)
    angles = rotary_angles((rows, cols), config.head_dim, base=config.rotary_base).double()
    angles = angles.reshape(rows, cols, 2, -1)  # [rows, cols, axes, periods]
    count = angles.shape[-1]
    periods = config.rotary_base ** (torch.arange(count, dtype=torch.float64) / count)
    down, across = angles[:, 0, 0] - angles[0, 0, 0], angles[0, :, 1] - angles[0, 0, 1]
    return RotarySimilarity(
        to_numpy(periods.float()), to_numpy(down.cos().T.float()), to_numpy(across.cos().T.float())
    )


def position_components(loaded: ModelLike, *, grid: Grid | None = None) -> PositionComponents:
    """The position embedding of each patch along the three directions in which positions differ most, and the share of each.

    Args:
        grid: (rows, cols); None means the grid that the model was made for.

    Raises:
        ParameterError: the model is not ours, or has no table of positions, or the grid has no patch or more than 4096.

    Example:
        >>> import vit_viz as vv
        >>> vv.position_components("mini").shares.round(2)
        array([0.38, 0.32, 0.16], dtype=float32)
    """
    model, provenance = own_model(loaded)
    grid = checked_grid(model.config.grid if grid is None else grid)
    table = model.position_table(grid).detach().double()[len(model.config.positioned_prefix) :]
    centred = table - table.mean(0)
    basis = principal_components(centred, 3)
    words = provenance.with_parameters(method="position_components", grid=f"{grid[0]} x {grid[1]}")
    maps = _along(basis, centred[None], ("positions",), grid, "position components", words)
    return PositionComponents(maps, to_numpy(basis.shares.float()))


def filter_components(
    loaded: ModelLike,
    *,
    count: Annotated[
        int, Option("components", "How many; all where there are fewer.", low=1, high=4096)
    ] = 28,
) -> FilterComponents:
    """What the model sees in a patch first: principal components of its patch filters, as small pictures.

    Filters [dim, channels * P * P], centred over dim; see `principal_components` for the signs.

    Args:
        count: of components; all of them where there are fewer.

    Raises:
        ParameterError: the model is not ours, or the count is not positive.

    Source: Dosovitskiy et al. 2021, arXiv:2010.11929, Fig. 7 left.

    Example:
        >>> import vit_viz as vv
        >>> vv.filter_components("mini").values.shape
        (28, 3, 8, 8)
    """
    model = own_module(loaded)
    config = model.config
    weight = model.patch_embed.proj.weight.detach().double().reshape(config.embed_dim, -1)
    basis: Basis = principal_components(weight - weight.mean(0), min(count, weight.shape[1]))
    shape = (-1, config.in_chans, *config.patch_size)
    return FilterComponents(to_numpy(basis.components.float().reshape(shape)), to_numpy(basis.shares.float()))


def _along(
    basis: Basis, centred: Tensor, names: tuple[str, ...], grid: Grid, method: str, provenance: Provenance
) -> TokenMaps:
    """Coordinates of centred positions [states, patches, dim] along some components."""
    coordinates = to_numpy((centred @ basis.components.T).reshape(len(centred), *grid, -1))
    unit, value_range = "coordinate along the component", (-float("inf"), float("inf"))
    return TokenMaps(coordinates, names, unit, value_range, True, method, provenance)


def _learned(model: VisionTransformer) -> Tensor:
    """The checkpoint's own table without the prefix tokens, [patches, dim], in fp64."""
    if model.config.position_kind == "relative":
        raise ParameterError(
            "Only learned positions are shown on another grid; this model has learned biases for offsets instead."
        )
    if model.config.position != "learned":
        raise ParameterError(
            f"Only learned positions are resampled; those of this model are {model.config.position} and need none of it."
        )
    table = model.position_table(model.config.table_grid).detach().cpu().double()
    return table[len(model.config.positioned_prefix) :]


def _resampling(
    loaded: ModelLike,
    *,
    rows: Annotated[int, Option("rows", "Rows of patches of the new grid.", low=1, high=MOST_ROWS)] = 24,
    cols: Annotated[
        int, Option("columns", "Columns of patches of the new grid.", low=1, high=MOST_ROWS)
    ] = 24,
) -> Resampling:
    return resampling(loaded, grid=(rows, cols))


RESAMPLING = asks(
    _resampling,
    label="Positions on another grid",
    also_called="resampling, interpolation of position embeddings, resolution",
    shows="what the model's positions become on another grid, in each family's own way, and how much the ways differ.",
    hides="whether the answer changes with them.",
    formula=r"$\lVert p_i - p_i^{\mathrm{own}} \rVert / \mathrm{mean}_j \lVert p_j^{\mathrm{own}} \rVert$",
    source="Dosovitskiy et al. 2021, arXiv:2010.11929, section 3.2",
    class_blind=True,
    reads="model",
    place=Place("positions", {"position_part": "resampled"}, chooses=("rows", "cols")),
)

ROTARY_SIMILARITY = asks(
    lambda loaded, options: rotary_similarity(loaded, grid=options.grid),
    name="rotary_similarity",
    label="Rotary positions by period",
    also_called="rope, rotary position embedding, frequencies",
    shows="which distances each period of rotary positions tells apart, down and across.",
    hides="which periods the heads use.",
    formula=r"$\cos(2 \pi \cdot 2 d / (g T))$",
    source="Su et al. 2021, arXiv:2104.09864; DINOv3, arXiv:2508.10104",
    class_blind=True,
    options=GridOptions,
    reads="model",
    place=Place("positions", {"position_part": "periods", "position_grid": "trained"}),
)

POSITION_COMPONENTS = asks(
    lambda loaded, options: position_components(loaded, grid=options.grid),
    name="position_components",
    label="Positions in colours",
    also_called="pca of position embeddings",
    shows="by what the positions differ most: three components, as colours.",
    hides="the rest of the variance: the shares say how much that is.",
    formula=r"the first eigenvectors of $P^\top P / n$, $P$ centred",
    source="Dosovitskiy et al. 2021, arXiv:2010.11929, Fig. 7",
    class_blind=True,
    options=GridOptions,
    reads="model",
    place=Place("positions", {"position_part": "components", "position_grid": "trained"}),
)

FILTER_COMPONENTS = asks(
    filter_components,
    label="Patch filters",
    also_called="conv filters, convolution kernels, patch embedding, first layer, rgb filters",
    shows="what the model sees in a patch first: the components of its patch filters.",
    hides="what later layers make of it.",
    formula=r"the first eigenvectors of $W^\top W / n$, the filters $W$ centred",
    source="Dosovitskiy et al. 2021, arXiv:2010.11929, Fig. 7 left",
    class_blind=True,
    reads="model",
    place=Place("positions", {"position_part": "filters"}),
)


def answerable(loaded: ModelLike) -> tuple[AnyQuestion, ...]:
    """The questions about positions that this model has an answer to, by the kind of positions that it has."""
    kind = own_module(loaded).config.position_kind
    has_table = kind in ("learned", "sinusoidal_1d", "sinusoidal_2d")
    answered: dict[AnyQuestion, bool] = {
        POSITIONS: has_table or kind == "rotary",
        RESAMPLING: kind == "learned",
        ROTARY_SIMILARITY: kind == "rotary",
        POSITION_COMPONENTS: has_table,
        FILTER_COMPONENTS: True,
    }
    return tuple(question for question, is_answered in answered.items() if is_answered)
