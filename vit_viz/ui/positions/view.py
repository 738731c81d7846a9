"""The Positions tab: what the model knows of where a patch is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import gradio as gr

from vit_viz.analyses.positions import POSITIONS
from vit_viz.errors import ParameterError
from vit_viz.explorer import colour_tables
from vit_viz.geometry import Grid, format_query
from vit_viz.render.figures import captioned_figure, extra_tile, position_tile, position_tiles
from vit_viz.results import TokenMatrix
from vit_viz.session.handles import Subject
from vit_viz.session.questions import request_for
from vit_viz.ui.edge.user_errors import sentence
from vit_viz.ui.kit import FigureButton, PlotClicks, PositionTables, words
from vit_viz.ui.page import Page, Tab, subject_in
from vit_viz.ui.payload import figure_address, picture_address
from vit_viz.ui.positions.figures import KINDS, place_of, prefix_of
from vit_viz.ui.positions.tables import part_value
from vit_viz.views.choices import subject_of
from vit_viz.views.state import ViewState

GRIDS = [("of this image", "image"), ("as trained", "trained")]


@dataclass(frozen=True)
class Positions:
    """The components of the tab."""

    tables: PositionTables
    message: gr.HTML
    grid: gr.Radio
    tiles: gr.Plot
    tile: gr.Plot
    prefix_tile: gr.Plot
    prefix_caption: gr.HTML
    clicks: PlotClicks
    saves: tuple[FigureButton, ...]


def build() -> Positions:
    """Lay out the tab."""
    tables = PositionTables({"part": "similarity"}, elem_id="vv-position-tables", tables=colour_tables())
    message = gr.HTML("", elem_classes="vv-message", visible=False, apply_default_css=False)
    with gr.Row(elem_classes="vv-view", elem_id="vv-positions"):
        with gr.Column(min_width=280):
            tiles, save_tiles = _figure("vv-position-tiles")
        with gr.Column(min_width=280):
            tile, save_tile = _figure("vv-position-tile")
        with gr.Column(min_width=280, elem_id="vv-position-words"):
            with gr.Column(min_width=280, elem_id="vv-position-prefix"):
                prefix_tile, save_prefix = _figure("vv-prefix-tile")
            with gr.Column(min_width=280):
                prefix_caption = gr.HTML("", elem_classes="vv-plot-caption", apply_default_css=False)
                grid = gr.Radio(GRIDS, value="image", label="grid", elem_classes="vv-inline")
                _explain()
    clicks = PlotClicks({"plot": "vv-position-tiles"}, elem_id="vv-position-clicks")
    saves = save_tiles, save_tile, save_prefix
    return Positions(tables, message, grid, tiles, tile, prefix_tile, prefix_caption, clicks, saves)


def _figure(elem_id: str) -> tuple[gr.Plot, FigureButton]:
    """A figure, and below it the button that saves it."""
    plot = gr.Plot(show_label=False, container=False, elem_id=elem_id, buttons=[])
    return plot, FigureButton(elem_id=f"{elem_id}-save")


def _explain() -> None:
    words.explain(
        shows="how similar any two position embeddings are: one small map per place, laid out like the patches of the photo; "
        "click a map to enlarge it and to make that patch the query. Then what the table becomes on another grid, what each rotary "
        "period tells apart, and by what positions and patch filters differ most.",
        hides="the photo itself: positions are the same for every image of this size. Nor does it show how much the layers use "
        "them.",
    )
    words.formula(
        (
            r"$\cos(p_i, p_j) = \frac{p_i \cdot p_j}{\lVert p_i \rVert \lVert p_j \rVert}$",
            r"$p_i$: the position embedding of patch $i$, resampled to the grid by the model family's own rule. Rotary "
            r"positions: the "
            "mean cosine of the angles between two places. Dosovitskiy et al. 2021, arXiv:2010.11929, Fig. 7 centre.",
        ),
        (
            r"on another grid: $\lVert p_i - p_i^{\mathrm{own}} \rVert / \mathrm{mean}_j \lVert p_j^{\mathrm{own}} \rVert$",
            "Families of models interpolate the table in ways of their own; loading a model with another's way changes its input.",
        ),
        (
            r"rotary periods: $\cos(2 \pi \cdot 2 d / (g T))$",
            "$d$: patches apart of $g$ on an axis; $T$: the period, in half sides of the picture. DINOv3, arXiv:2508.10104.",
        ),
        (
            "in colours, patch filters: principal components of the table, and of the filters of the patch embedding",
            "Dosovitskiy et al. 2021, arXiv:2010.11929, Fig. 7 left.",
        ),
    )


def wire(tab: Positions, page: Page) -> None:
    """Draw the tab, and let a click on a map make that patch the query."""
    page.gesture(tab.clicks.point, lambda view, owner, data: _clicked(page, view, owner, data))
    page.action(
        tab.grid.input,
        lambda view, grid: view.after_action().with_options({"position_grid": grid}),
        inputs=[tab.grid],
    )
    page.gesture(
        tab.tables.show,
        lambda view, _owner, data: view.with_options({"position_part": data.get("part", "")}).after_action(),
    )
    figures = [tab.tiles, tab.tile, tab.grid, tab.prefix_tile, tab.prefix_caption, *tab.saves]
    outputs = [tab.tables, tab.message, *figures]
    page.drawing("positions", _draw, outputs)


def _draw(page: Page, view: ViewState, owner: str) -> Iterator[tuple[Any, ...]]:
    part = view.positions.position_part
    if part != "similarity":
        left = [gr.skip()] * 4
        yield (
            _tables(page, view, owner),
            gr.update(value="", visible=False),
            *left[:2],
            _grid(view),
            *left[2:],
            *_NO_FIGURES,
        )
        return
    tables = {"part": part}
    try:
        yield tables, *_drawn(page, view, owner)
    except ParameterError as error:  # no position embedding: that is an answer, not a failure
        gone = gr.update(value=None, visible=False)
        yield (tables, _told(error), gone, gone, gr.update(visible=False), gone, "", *_NO_FIGURES)
    except Exception as error:
        gone = gr.update(value=None)
        yield (tables, _told(error), gone, gone, gr.skip(), gone, "", *_NO_FIGURES)


def _tables(page: Page, view: ViewState, owner: str) -> dict[str, Any]:
    """What is shown in the place of similarity, or why there is none of it."""
    part = view.positions.position_part
    try:
        subject = subject_of(page.session, view, owner)
        return {
            "part": part,
            "drawn": part_value(page.session, subject, part, _grid_shown(page, view, subject)),
        }
    except Exception as error:
        return {"part": part, "note": sentence(error)}


def _grid_shown(page: Page, view: ViewState, subject: Subject) -> Grid | None:
    """The grid of the photo; None for that of the training, which has nothing to resample."""
    if view.positions.position_part == "resampled":
        return page.session.trace_of(subject).layout.grid
    return page.session.trace_of(subject).layout.grid if view.positions.position_grid == "image" else None


def _grid(view: ViewState) -> Any:
    has_grid = view.positions.position_part in ("similarity", "periods", "components")
    return gr.update(value=view.positions.position_grid, visible=has_grid)


def _told(error: Exception) -> Any:
    return gr.update(value=words.plain(sentence(error)), visible=True)


def _drawn(page: Page, view: ViewState, owner: str) -> tuple[Any, ...]:
    matrix, image_grid = _matrix(page, view, owner)
    row, col = place_of(view, image_grid, matrix.grid)
    rows, cols = matrix.grid
    origin = (
        "as trained"
        if view.positions.position_grid == "trained"
        else "resampled to this image where its grid differs"
    )
    against = f"against all {rows} x {cols} patch positions, {origin} · {matrix.unit}, one scale for all maps"
    note = f" {matrix.note}" if matrix.note else ""
    all_tiles = _told_in(position_tiles(matrix), view, matrix, f"Each position {against}{note}")
    one = _told_in(position_tile(matrix, row, col), view, matrix, f"Position ({row}, {col}) {against}{note}")
    return (
        gr.update(value="", visible=False),
        gr.update(value=all_tiles, visible=True),
        gr.update(value=one, visible=True),
        _grid(view),
        *_prefix_part(view, matrix, against),
        *_figures(page, view, owner, matrix),
    )


_NO_FIGURES = (None, None, None)


def _figures(page: Page, view: ViewState, owner: str, matrix: TokenMatrix) -> Iterator[str | None]:
    """Where each figure is saved, in the order of the buttons."""
    subject = subject_of(page.session, view, owner)
    for kind in KINDS:
        is_there = kind != "prefix" or matrix.extra
        yield figure_address(picture_address(page.session, subject, view, kind)) if is_there else None


def _prefix_part(view: ViewState, matrix: TokenMatrix, against: str) -> tuple[Any, Any]:
    """The row of the class token, or of the prefix token that is the query, where it has a position of its own."""
    if not matrix.extra:
        return gr.update(value=None, visible=False), words.plain(
            "The class token and the registers of this model, where it has any, have no position of their own."
        )
    name = prefix_of(view, matrix)
    name_in_words = name if name[-1:].isdigit() else f"the {name} token"
    caption = f"{name_in_words[0].upper()}{name_in_words[1:]}'s own position {against}"
    return gr.update(value=_told_in(extra_tile(matrix, name), view, matrix, caption), visible=True), ""


def _told_in(figure: Any, view: ViewState, matrix: TokenMatrix, caption: str) -> Any:
    rows, cols = matrix.grid
    title = f"{view.model}: {matrix.method}, grid {rows} x {cols}"
    return captioned_figure(figure, title=title, caption=f"{caption} · vit_viz")


def _matrix(page: Page, view: ViewState, owner: str) -> tuple[TokenMatrix, Grid]:
    session = page.session
    subject = subject_of(session, view, owner)
    grid = _grid_shown(page, view, subject)
    asked = request_for(session, subject, POSITIONS.name, grid="" if grid is None else format_query(grid))
    matrix: TokenMatrix = session.run(asked)
    return matrix, session.trace_of(subject).layout.grid


def _clicked(page: Page, view: ViewState, owner: str, data: dict[str, Any]) -> ViewState:
    """The view with the clicked position as its query, scaled from the grid shown to that of the image."""
    matrix, image_grid = _matrix(page, view, owner)
    try:
        row, col = (int(n) for n in data["data"][:2])
    except (KeyError, TypeError, ValueError):
        return view
    row, col = row * image_grid[0] // matrix.grid[0], col * image_grid[1] // matrix.grid[1]
    if not (0 <= row < image_grid[0] and 0 <= col < image_grid[1]):
        return view
    return view.after_action(query=format_query((row, col)))


TAB = Tab(
    "positions",
    "Positions",
    build,
    wire,
    shows=lambda view: (subject_in(view), view.query, view.positions),
)
