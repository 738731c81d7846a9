"""The Positions tab: what the model knows of where a patch is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from vit_viz.explorer import colour_tables
from vit_viz.geometry import Grid, format_query
from vit_viz.session.request import Subject
from vit_viz.ui.edge.user_errors import sentence
from vit_viz.ui.kit import PositionTables, words
from vit_viz.ui.page import Page, Tab
from vit_viz.ui.positions.answers import Value, part_value, parts_of, similarity_value
from vit_viz.views.choices import subject_of
from vit_viz.views.state import ViewState


def build(page: Page) -> None:
    """Lay out the tab, draw it, and let a click on a map make that patch the query."""
    tables = PositionTables(elem_id="vv-position-tables", tables=colour_tables())
    _explain()
    page.choices(tables.show, "position_part", "position_grid")
    page.gesture(tables.pin, lambda view, owner, data: _pinned(page, view, owner, data))
    page.drawing("positions", _draw, [tables])


def _explain() -> None:
    words.explain(
        shows="how alike the positions of any two patches are: one small map per place, laid out like the photo; point at one, or "
        "tap it, to enlarge it; choose it to make that patch the query. Then, where the model has them: what its table becomes on "
        "another grid, what each rotary period tells apart, and by what positions and patch filters differ most.",
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


def _draw(page: Page, view: ViewState, owner: str) -> Iterator[Value]:
    yield {"revision": view.revision, "busy": True}
    yield {"revision": view.revision, **_drawn(page, view, owner)}


def _drawn(page: Page, view: ViewState, owner: str) -> Value:
    """What is shown of the positions, or why there is none of it, and what else there is."""
    session, part = page.session, view.positions.position_part
    told: Value = {"part": part, "parts": []}
    try:
        subject = subject_of(session, view, owner)
        told |= {"parts": parts_of(session, subject), "places": _places(page, view, subject)}
        drawn = (
            similarity_value(session, subject, view)
            if part == "similarity"
            else part_value(session, subject, part, _grid_shown(page, view, subject))
        )
        return told | {"drawn": drawn}
    except Exception as error:  # a model without position embedding, too: that is an answer
        return told | {"note": sentence(error)}


def _grid_shown(page: Page, view: ViewState, subject: Subject) -> Grid | None:
    """The grid of the photo; None for that of the training, which has nothing to resample."""
    options = view.positions
    is_image_s = options.position_part == "resampled" or options.position_grid == "image"
    return page.session.trace_of(subject).layout.grid if is_image_s else None


def _places(page: Page, view: ViewState, subject: Subject) -> str:
    """The grid that was chosen; "" where there is no choice, as the photo has the grid of the training or none is drawn."""
    config, options = page.session.model(subject.model).config, view.positions
    is_choice = (
        options.position_part in ("similarity", "periods", "components")
        and config is not None
        and config.grid != page.session.trace_of(subject).layout.grid
    )
    return options.position_grid if is_choice else ""


def _pinned(page: Page, view: ViewState, owner: str, data: dict[str, Any]) -> ViewState:
    """The view with a place as its query, scaled from the grid that is shown to that of the image."""
    subject = subject_of(page.session, view, owner)
    rows, cols = page.session.trace_of(subject).layout.grid
    config = page.session.model(subject.model).config
    is_trained = view.positions.position_grid == "trained"
    down, across = config.grid if config and is_trained else (rows, cols)
    row, col = data.get("row"), data.get("col")
    if not (isinstance(row, int) and isinstance(col, int) and 0 <= row < down and 0 <= col < across):
        return view
    return view.after_action(query=format_query((row * rows // down, col * cols // across)))


TAB = Tab(
    "positions",
    "Positions",
    build,
    shows=lambda view: (view.about, view.query, view.positions),
    about="What the model's position embeddings know of where a patch lies.",
)
