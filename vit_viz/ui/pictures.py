"""What the page asks to be drawn: the one place where a view becomes a figure request, and requests for its maps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from vit_viz.analyses.attention import LOOK
from vit_viz.analyses.explanations import EXPLAIN_ALL, parameters_of
from vit_viz.analyses.mosaic import MOSAIC
from vit_viz.analyses.patches import PATCHES as PATCHES_OF
from vit_viz.analyses.patches import SEQUENCE
from vit_viz.drawing import pictures as drawn
from vit_viz.drawing.asked import figure_for
from vit_viz.drawing.figures import file_of
from vit_viz.drawing.pictures import Encoded
from vit_viz.drawing.request import FigureRequest, Kind, check_kind
from vit_viz.errors import ParameterError
from vit_viz.render.colormaps import Limits
from vit_viz.render.lettering import Theme
from vit_viz.render.styles import Style
from vit_viz.results import PatchMap
from vit_viz.session.handles import Subject
from vit_viz.session.questions import request_for
from vit_viz.session.request import Request
from vit_viz.session.session import Session
from vit_viz.ui.explain.methods import card_named, target_of
from vit_viz.ui.positions import figures as positions
from vit_viz.views.state import ViewState

PATCHES: tuple[Kind, ...] = ("patches", "numbered", "sequence")

FIGURES = ("map", "mosaic", "explain", *PATCHES, *positions.KINDS)
"""What can be saved as a figure, in a format and size to choose."""


def picture(
    session: Session, subject: Subject, view: ViewState, kind: Kind, *, bare: bool, theme: Theme = "light"
) -> Encoded:
    """Draw one picture of a view.

    Args:
        bare: for the screen, without text; else the complete figure with its provenance, as PNG.
        theme: of the page around it.

    Raises:
        VitVizError: the subject is gone, or the view asks for what this model does not have.
    """
    check_kind(kind)
    figure = figure_of(session, subject, view, kind)
    if not bare and kind in PATCHES:
        return file_of(session, figure)
    return drawn.picture(session, figure, bare=bare, theme=theme)


def figure_of(session: Session, subject: Subject, view: ViewState, kind: str) -> FigureRequest:
    """What is drawn of a view.

    Raises:
        ParameterError: there is no such kind, or the view asks for what this model does not have.
    """
    if kind in positions.KINDS:
        return figure_for(positions.request_of(session, subject, view, kind))
    check_kind(kind)
    view, problems = fit_view(session, subject, view)
    if problems:
        raise ParameterError(problems[0])
    if kind == "explain":
        return explanation_figure(session, subject, view)
    if kind == "card":
        return replace(explanation_figure(session, subject, view), kind="card")
    if kind == "mosaic":
        ringed = (view.layer or 0, view.head) if isinstance(view.head, int) else None
        return figure_for(mosaic_request(session, subject, view), view.drawing, ringed=ringed)
    if kind == "map":
        return figure_for(attention_request(session, subject, view), view.drawing)
    if kind == "sequence":
        return figure_for(request_for(session, subject, SEQUENCE.name))
    return figure_for(request_for(session, subject, PATCHES_OF.name, numbers=kind == "numbered"))


def explanation_figure(session: Session, subject: Subject, view: ViewState) -> FigureRequest:
    """What is drawn of a map of the Explain tab."""
    figure = figure_for(explanation_request(session, subject, view), view.drawing)
    if view.explain.map_scale == "own":
        return figure
    beside = subject.request(EXPLAIN_ALL.name, target=target_of(view), mirror=False)
    return replace(figure, beside=beside)


def attention_request(session: Session, subject: Subject, view: ViewState) -> Request:
    """What is asked for the map of the Look tab: one query in one head, or fused heads, of one layer."""
    return request_for(
        session,
        subject,
        LOOK.name,
        layer=view.layer,
        query=view.query_of(session.trace_of(subject).layout),
        head=str(view.head),
        direction=view.attention.direction,
        norm=view.attention.norm,
    )


def mosaic_request(session: Session, subject: Subject, view: ViewState) -> Request:
    """What is asked for the query of a view in every head of every layer."""
    query = view.query_of(session.trace_of(subject).layout)
    return request_for(session, subject, MOSAIC.name, query=query, direction=view.attention.direction)


def explanation_request(session: Session, subject: Subject, view: ViewState) -> Request:
    """What is asked for a map of the Explain tab; only methods that can follow any token follow the pinned query."""
    method, trace = card_named(view.method), session.trace_of(subject)
    options = view.options_of(method.name).for_layers(trace.num_layers)
    query = view.query_of(trace.layout)
    return subject.request(method.name, **parameters_of(method, options, query=query, target=target_of(view)))


def attention(session: Session, subject: Subject, view: ViewState) -> PatchMap:
    """The map of the Look tab."""
    patch_map: PatchMap = session.run(attention_request(session, subject, view))
    return patch_map


def explanation(session: Session, subject: Subject, view: ViewState, **watch: Any) -> PatchMap:
    """A map of the Explain tab, by the chosen method; `watch` may hold `progress` and `cancelled`."""
    patch_map: PatchMap = session.run(explanation_request(session, subject, view), **watch)
    return patch_map


def on_scale(
    session: Session, subject: Subject, view: ViewState, patch_map: PatchMap
) -> tuple[PatchMap, Limits, str]:
    """A map of the Explain tab as it is drawn: the map, the ends of its scale, and the scale in words."""
    return drawn.on_scale(session, explanation_figure(session, subject, view), patch_map)


def style_of(
    session: Session, subject: Subject, view: ViewState, *, signed: bool = False
) -> tuple[Style, str]:
    """The style in which a map is drawn over the subject's photo, and why it is another than the view asks for."""
    return drawn.style_of(session, subject, view.drawing.style, signed=signed)


def fit_view(session: Session, subject: Subject, view: ViewState) -> tuple[ViewState, tuple[str, ...]]:
    """The view as this subject allows it, with a sentence for each change."""
    trace = session.trace_of(subject)
    return view.fitted(layers=trace.num_layers, heads=trace.num_heads, layout=trace.layout)
