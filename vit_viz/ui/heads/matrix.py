"""The matrix of the chosen head, and its strongest links on the photo: the lower part of the Heads tab."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, fields, replace
from typing import Any

from vit_viz.explorer import colour_tables
from vit_viz.explorer.value import described
from vit_viz.session.session import Session
from vit_viz.ui.kit import HeadMatrix, words
from vit_viz.ui.page import Page
from vit_viz.ui.payload import explorer_value, opening_of
from vit_viz.views.choices import subject_of
from vit_viz.views.state import ViewState
from vit_viz.views.tab_options import MatrixOptions

_OPTIONS = tuple(field.name for field in fields(MatrixOptions))


def build() -> HeadMatrix:
    """Lay out the matrix and its words."""
    matrix = HeadMatrix(
        elem_id="vv-head-matrix",
        tables=colour_tables(),
        options=[described(field) for field in MatrixOptions.schema()],
    )
    words.explain(
        shows="all of one head at once: each row is a query, each column a key, and the arrows on the photo are the strongest of "
        "these links.",
        hides="what the links are used for. A few strong links are easy to draw, and the many weak ones often hold more: the "
        "share of what is drawn stands beside it.",
    )
    words.formula(
        (
            r"$A = \mathrm{softmax}(s\, q k^{\top})$, $N \times N$; links: the $k$ largest $A_{i j}$ with $i \ne j$",
            "$i$ and $j$ run over the patches. Above 2,000 tokens a cell is the mean of a block of neighbouring tokens. Vaswani "
            "et al. 2017, arXiv:1706.03762.",
        ),
    )
    return matrix


def wire(matrix: HeadMatrix, page: Page, *, part: str) -> None:
    """Draw the matrix whenever a part of the page is woken, and let it choose query and head for the whole page."""
    page.gesture(matrix.pin, lambda view, _owner, data: _chosen(view, data, "query"))
    page.gesture(matrix.choose, lambda view, _owner, data: _chosen(view, data, "layer", "head"))
    page.gesture(
        matrix.option,
        lambda view, _owner, data: _chosen(view, data, *(name for name in _OPTIONS if name in data)),
    )
    page.drawing(part, _draw, [matrix])


def _chosen(view: ViewState, data: dict[str, Any], *names: str) -> ViewState:
    return view.with_options({name: data.get(name, "") for name in names}).after_action()


def _draw(page: Page, view: ViewState, owner: str) -> Iterator[Any]:
    try:
        there = placed(page.session, view, owner)
        yield explorer_value(page.session, there, owner) | {"matrix": asdict(there.matrix)}
    except Exception:  # the table above says it in words
        yield {"trace": ""}


def placed(session: Session, view: ViewState, owner: str) -> ViewState:
    """The view on a layer and a head that the model has: where nobody has chosen any, those that the Look tab begins with."""
    subject = subject_of(session, view, owner)
    trace = session.trace_of(subject)
    if view.layer is None:
        begins = opening_of(session, subject, trace)
        head = begins.head if view.head == ViewState().head else view.head
        view = replace(view, layer=begins.layer, head=head)
    fitted, _ = view.fitted(layers=trace.num_layers, heads=trace.num_heads, layout=trace.layout)
    return fitted
