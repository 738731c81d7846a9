"""Questions about what a model knows of places before it has seen a photo: its positions and its patch filters."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Any

from vit_viz.analyses.options import Option, Options
from vit_viz.analyses.spec import Words
from vit_viz.errors import ParameterError
from vit_viz.session.question import Question

_SIDE = 512


@dataclass(frozen=True)
class GridOptions(Options):
    """The grid that positions are of."""

    rows: Annotated[
        int, Option("rows", "Rows of patches; 0 is the grid the model was made for.", high=_SIDE)
    ] = 0
    cols: Annotated[
        int, Option("columns", "Columns of patches; 0 is the grid the model was made for.", high=_SIDE)
    ] = 0


@dataclass(frozen=True)
class NewGridOptions(Options):
    """The grid that positions are brought to."""

    rows: Annotated[int, Option("rows", "Rows of patches of the new grid.", low=1, high=_SIDE)] = 24
    cols: Annotated[int, Option("columns", "Columns of patches of the new grid.", low=1, high=_SIDE)] = 24


@dataclass(frozen=True)
class FilterOptions(Options):
    """How many components of the filters."""

    count: Annotated[int, Option("components", "How many; all where there are fewer.", low=1, high=4096)] = 28


def _grid(options: GridOptions | NewGridOptions, _layers: int) -> dict[str, Any]:
    if bool(options.rows) != bool(options.cols):
        raise ParameterError("A grid has rows and columns: please give both, or neither.")
    return {"grid": (options.rows, options.cols) if options.rows else None}


def _as_they_are(options: Options, _layers: int) -> dict[str, Any]:
    return asdict(options)


OF_POSITIONS = (
    Question(
        "resampling",
        Words(
            label="Positions on another grid",
            shows="what the model's positions become on another grid, in each family's own way, and how much the ways differ.",
            hides="whether the answer changes with them.",
            formula=r"$\lVert p_i - p_i^{\mathrm{own}} \rVert / \mathrm{mean}_j \lVert p_j^{\mathrm{own}} \rVert$",
            source="Dosovitskiy et al. 2021, arXiv:2010.11929, section 3.2",
            class_blind=True,
        ),
        NewGridOptions,
        "look-up",
        analysis="resampling",
        parameters=_grid,
        takes_image=False,
    ),
    Question(
        "rotary_similarity",
        Words(
            label="Rotary positions by period",
            shows="which distances each period of rotary positions tells apart, down and across.",
            hides="which periods the heads use.",
            formula=r"$\cos(2 \pi \cdot 2 d / (g T))$",
            source="Su et al. 2021, arXiv:2104.09864; DINOv3, arXiv:2508.10104",
            class_blind=True,
        ),
        GridOptions,
        "look-up",
        analysis="rotary similarity",
        parameters=_grid,
        takes_image=False,
    ),
    Question(
        "position_components",
        Words(
            label="Positions in colours",
            shows="by what the positions differ most: three components, as colours.",
            hides="the rest of the variance: the shares say how much that is.",
            formula=r"the first eigenvectors of $P^\top P / n$, $P$ centred",
            source="Dosovitskiy et al. 2021, arXiv:2010.11929, Fig. 7",
            class_blind=True,
        ),
        GridOptions,
        "look-up",
        analysis="position components",
        parameters=_grid,
        takes_image=False,
    ),
    Question(
        "filter_components",
        Words(
            label="Patch filters",
            shows="what the model sees in a patch first: the components of its patch filters.",
            hides="what later layers make of it.",
            formula=r"the first eigenvectors of $W^\top W / n$, the filters $W$ centred",
            source="Dosovitskiy et al. 2021, arXiv:2010.11929, Fig. 7 left",
            class_blind=True,
        ),
        FilterOptions,
        "look-up",
        analysis="filter components",
        parameters=_as_they_are,
        takes_image=False,
    ),
)
