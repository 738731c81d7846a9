"""The Positions tab: what the model knows of where a patch is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import gradio as gr

from vit_viz.errors import ParameterError
from vit_viz.geometry import Grid, format_query
from vit_viz.render.figures import extra_tile, position_tile, position_tiles
from vit_viz.results import TokenMatrix
from vit_viz.session import Request
from vit_viz.ui.boundary import sentence
from vit_viz.ui.choices import subject_of
from vit_viz.ui.page import Page
from vit_viz.ui.parts import PlotClicks
from vit_viz.ui.state import ViewState
from vit_viz.ui.views import words

GRIDS = [("of this image", "image"), ("as trained", "trained")]


@dataclass(frozen=True)
class Positions:
    """The components of the tab."""

    message: gr.HTML
    places: gr.Radio
    tiles: gr.Plot
    tile: gr.Plot
    caption: gr.HTML
    prefix_tile: gr.Plot
    prefix_caption: gr.HTML
    clicks: PlotClicks


def build() -> Positions:
    """Lay out the tab."""
    message = gr.HTML("", elem_classes="vv-message", visible=False, apply_default_css=False)
    with gr.Row(elem_classes="vv-view"):
        with gr.Column(scale=3, min_width=320):
            tiles = gr.Plot(show_label=False, container=False, elem_id="vv-position-tiles", buttons=[])
            prefix_tile = gr.Plot(show_label=False, container=False, elem_id="vv-prefix-tile", buttons=[])
            prefix_caption = gr.HTML("", elem_classes="vv-plot-caption", apply_default_css=False)
        with gr.Column(scale=2, min_width=320):
            tile = gr.Plot(show_label=False, container=False, elem_id="vv-position-tile", buttons=[])
            caption = gr.HTML("", elem_classes="vv-plot-caption", apply_default_css=False)
            places = gr.Radio(GRIDS, value="image", label="grid", elem_classes="vv-inline")
    words.explain(
        shows="how alike the position embeddings of any two patches are: one small map per position, laid out where the "
        "position lies. Click a map to enlarge it and to make that patch the query.",
        hides="anything about the photo: positions are the same for every image of this size. Nor how much the layers make of "
        "them.",
    )
    words.formula(
        (
            "cos(p_i, p_j) = p_i · p_j / (‖p_i‖ ‖p_j‖)",
            "p_i: the position embedding of patch i, resampled to the grid by the model family's own rule. Rotary positions: mean "
            "cosine of the relative phase. Dosovitskiy et al. 2021, arXiv:2010.11929, Fig. 7 centre.",
        )
    )
    clicks = PlotClicks({"plot": "vv-position-tiles"}, elem_id="vv-position-clicks")
    return Positions(message, places, tiles, tile, caption, prefix_tile, prefix_caption, clicks)


def wire(tab: Positions, page: Page) -> None:
    """Draw the tab, and let a click on a map make that patch the query."""
    page.gesture(tab.clicks.point, lambda view, owner, data: _clicked(page, view, owner, data))
    page.action(
        tab.places.input,
        lambda view, places: view.next_turn().with_options({"places": places}),
        inputs=[tab.places],
    )
    outputs = [tab.message, tab.tiles, tab.tile, tab.caption, tab.places, tab.prefix_tile, tab.prefix_caption]
    page.drawing("positions", _draw, outputs)


def _draw(page: Page, view: ViewState, owner: str) -> Iterator[tuple[Any, ...]]:
    try:
        yield _drawn(page, view, owner)
    except ParameterError as error:  # no position embedding: that is an answer, not a failure
        gone = gr.update(value=None, visible=False)
        yield (_told(error), gone, gone, "", gr.update(visible=False), gone, "")
    except Exception as error:
        gone = gr.update(value=None)
        yield (_told(error), gone, gone, "", gr.skip(), gone, "")


def _told(error: Exception) -> Any:
    return gr.update(value=words.plain(sentence(error)), visible=True)


def _drawn(page: Page, view: ViewState, owner: str) -> tuple[Any, ...]:
    matrix, image_grid = _matrix(page, view, owner)
    row, col = _place(view, image_grid, matrix.grid)
    rows, cols = matrix.grid
    origin = "as trained" if view.places == "trained" else "resampled to this image where its grid differs"
    against = f"against all {rows} x {cols} patch positions, {origin} · {matrix.unit}, one scale for all maps"
    note = f" {matrix.note}" if matrix.note else ""
    caption = f"{view.model} · position ({row}, {col}) {against}{note}"
    return (
        gr.update(value="", visible=False),
        gr.update(value=_titled(position_tiles(matrix), view, matrix), visible=True),
        gr.update(value=_titled(position_tile(matrix, row, col), view, matrix), visible=True),
        words.plain(caption),
        gr.update(value=view.places, visible=True),
        *_prefix_part(view, matrix, against),
    )


def _prefix_part(view: ViewState, matrix: TokenMatrix, against: str) -> tuple[Any, Any]:
    """The row of the class token, or of the prefix token that is the query, where it has a position of its own."""
    if not matrix.extra:
        return gr.update(value=None, visible=False), words.plain(
            "The class token and the registers of this model, where it has any, have no position of their own."
        )
    name = view.query if view.query in matrix.extra else next(iter(matrix.extra))
    figure = _titled(extra_tile(matrix, name), view, matrix)
    return gr.update(value=figure, visible=True), words.plain(
        f"{view.model} · the {name} token's own position {against}"
    )


def _titled(figure: Any, view: ViewState, matrix: TokenMatrix) -> Any:
    rows, cols = matrix.grid
    return figure.update_layout(
        title={"text": f"{view.model}: {matrix.method}, grid {rows} x {cols}", "font": {"size": 13}}
    )


def _matrix(page: Page, view: ViewState, owner: str) -> tuple[TokenMatrix, Grid]:
    session = page.session
    subject = subject_of(session, view, owner)
    trace = session.trace(subject.model, subject.image, mode=subject.mode, owner=owner)
    grid = trace.layout.grid if view.places == "image" else None
    request = Request.of(subject.model, subject.image, "positions", mode=subject.mode, owner=owner, grid=grid)
    matrix = session.run(request)
    assert isinstance(matrix, TokenMatrix)
    return matrix, trace.layout.grid


def _place(view: ViewState, image_grid: Grid, grid: Grid) -> tuple[int, int]:
    """The position to enlarge: that of the pinned patch, scaled to the grid shown; else the centre."""
    first = view.query.split(";")[0]
    if first[:1].isdigit():
        row, col = (int(n) for n in first.split(","))
        return (
            min(row * grid[0] // image_grid[0], grid[0] - 1),
            min(col * grid[1] // image_grid[1], grid[1] - 1),
        )
    return grid[0] // 2, grid[1] // 2


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
    return view.next_turn(query=format_query((row, col)))
