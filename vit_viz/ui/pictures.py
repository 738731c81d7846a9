"""What the page asks to be drawn: the one place where a view becomes a figure request, and requests for its maps."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from vit_viz.analyses.attention import LOOK, MOSAIC
from vit_viz.analyses.explain import EXPLAIN_ALL, parameters_of
from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.patches import PATCHES as PATCHES_OF, SEQUENCE
from vit_viz.analyses.positions import POSITIONS
from vit_viz.analyses.share_maps import CLASS_DIFFERENCE, OWN_PART
from vit_viz.analyses.spec import AnyMethod, AnyQuestion
from vit_viz.answer import arrays_of
from vit_viz.errors import ExportError, ParameterError
from vit_viz.figures import screen
from vit_viz.figures.files import (
    MEDIA_TYPES,
    Answered,
    Encoded,
    as_file,
    check_format,
    file_name,
    file_of,
    named,
)
from vit_viz.figures.request import FigureRequest, Output, figure_for
from vit_viz.geometry import Query, format_query, parse_query
from vit_viz.results import PatchMap, TokenMatrix
from vit_viz.service import MOST_NUMBERS
from vit_viz.session.questions import request_for
from vit_viz.session.request import Request, Subject
from vit_viz.session.session import Session
from vit_viz.views.places import panel_of
from vit_viz.views.state import ViewState

KINDS = ("map", "mosaic", "explain", "patches", "numbered", "sequence")
"""What is drawn of a view, beside its positions."""

POSITION_KINDS = ("positions", "position", "prefix")
"""All positions, the chosen one, that of a prefix token."""

ASKED, SHOWN = "asked", "shown"
"""The kinds of figure of the question in the panel, and of the one that the tab answers as it stands."""

Target = int | tuple[int, int] | None

FIGURES = (*KINDS, *POSITION_KINDS, ASKED, SHOWN)
"""What can be saved as a figure, in a format and size to choose."""


def picture(session: Session, subject: Subject, view: ViewState, kind: str, *, bare: bool) -> Encoded:
    """Draw one picture of a view.

    Args:
        bare: for the screen, without words; else the figure that the dialog saves, as PNG.
    """
    figure = figure_of(session, subject, view, kind)
    if not bare or kind == "mosaic":  # whose axes are part of the picture
        return file_of(session, figure)
    return screen.screen_picture(session, figure)


def figure_of(session: Session, subject: Subject, view: ViewState, kind: str) -> FigureRequest:
    """What is drawn of a view."""
    if kind == SHOWN:
        view, kind = replace(view, panel=panel_of(view)), ASKED
    if kind == ASKED:
        return figure_for(asked_request(session, subject, view), view.drawing)
    if kind in POSITION_KINDS:
        return figure_for(position_request(session, subject, view, kind))
    if kind not in KINDS:
        raise ParameterError(f"A picture is one of {', '.join(KINDS)}, not {kind[:40]!r}.")
    view = fitting(session, subject, view)
    if kind == "explain":
        return explanation_figure(session, subject, view)
    if kind == "mosaic":
        ringed = (view.layer or 0, view.head) if isinstance(view.head, int) else None
        query = view.query_of(session.trace_of(subject).layout)
        request = request_for(session, subject, MOSAIC.name, query=query, direction=view.attention.direction)
        return figure_for(request, view.drawing, ringed=ringed)
    if kind == "map":
        return figure_for(attention_request(session, subject, view), view.drawing)
    if kind == "sequence":
        return figure_for(request_for(session, subject, SEQUENCE.name))
    return figure_for(request_for(session, subject, PATCHES_OF.name, numbers=kind == "numbered"))


def answer_file(
    session: Session, subject: Subject, view: ViewState, *, form: str, width_cm: float, dpi: int
) -> Encoded:
    """The answer to the question in the panel as a file."""
    figure = named(session, figure_of(session, subject, view, ASKED))
    check_format(figure.request.question, form)
    answered = Answered(session, figure.request, session.run(figure.request))
    if form == "json" and sum(array.size for array in arrays_of(answered.answer).values()) > MOST_NUMBERS:
        raise ExportError("This answer has too many numbers for JSON; please save it as NPZ.")
    data = as_file(answered, form, figure=figure, width_cm=width_cm, dpi=dpi)
    name = file_name(session, figure, Output()).removesuffix("png") + form
    return Encoded(data, MEDIA_TYPES.get(form, "application/json"), name)


def asked_request(session: Session, subject: Subject, view: ViewState) -> Request:
    """What the question in the panel asks, of the query and the target of the view."""
    if view.panel is None:
        raise ParameterError("This link asks no question.")
    question, asked = view.panel.question, dict[str, Any](view.panel.options.values())
    if question.follows_pin and view.query:
        asked["query"] = parse_query(view.query)
    if question.takes_target:
        asked["target"] = target_of(view)
    return request_for(session, subject, question.name, **asked)


def explanation_figure(session: Session, subject: Subject, view: ViewState) -> FigureRequest:
    """What is drawn of a map of the Explain tab."""
    request = explanation_request(session, subject, view)
    figure = figure_for(request, view.drawing)
    if view.explain.map_scale != "share" or request.question != view.method:
        return figure
    beside = subject.request(EXPLAIN_ALL.name, target=side_of(view), mirror=False)
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


def explanation_request(session: Session, subject: Subject, view: ViewState) -> Request:
    """What is asked for a map of the Explain tab: a method's own, two classes' subtracted, or what only this method says."""
    if is_subtracted(view):
        return _shares_request(session, subject, view, CLASS_DIFFERENCE, target_of(view))
    if view.explain.map_scale == "only":
        return _shares_request(session, subject, view, OWN_PART, side_of(view))
    return map_request(session, subject, view)


def map_request(session: Session, subject: Subject, view: ViewState) -> Request:
    """What is asked for the map of a method; only methods that can follow any token follow the pinned query."""
    method, trace = card_named(view.method), session.trace_of(subject)
    options = view.options_of(method.name).for_layers(trace.num_layers)
    asked = {"target": side_of(view)} | (
        {"query": start_of(session, subject, view)} if method.follows_pin else {}
    )
    return subject.request(method.name, **parameters_of(method, options, **asked))


def start_of(session: Session, subject: Subject, view: ViewState) -> Query:
    """The query that is pinned, else what the view's target is read from."""
    if view.query:
        return parse_query(view.query)
    target = side_of(view)
    outputs = None if target is None else target if isinstance(target, tuple) else (target,)
    return session.checked_trace_of(subject).output_query(outputs=outputs)


def _shares_request(
    session: Session, subject: Subject, view: ViewState, question: AnyQuestion, target: Target
) -> Request:
    """What is asked for a map that is made of the shares of others; the method keeps its options."""
    method, trace = card_named(view.method), session.trace_of(subject)
    changed = view.options_of(method.name).for_layers(trace.num_layers).changed()
    also = {"options": changed} if changed else {}
    return subject.request(question.name, method=method.name, target=target, **also)


def is_subtracted(view: ViewState) -> bool:
    """Whether a view shows the maps of two classes subtracted."""
    return view.explain.sides == "difference" and isinstance(target_of(view), tuple)


def attention(session: Session, subject: Subject, view: ViewState) -> PatchMap:
    """The map of the Look tab."""
    patch_map: PatchMap = session.run(attention_request(session, subject, view))
    return patch_map


def fitting(session: Session, subject: Subject, view: ViewState) -> ViewState:
    """The view on this subject, where nothing has to give way."""
    trace = session.trace_of(subject)
    view, problems = view.fitted(layers=trace.num_layers, heads=trace.num_heads, layout=trace.layout)
    if problems:
        raise ParameterError(problems[0])
    return view


def position_request(session: Session, subject: Subject, view: ViewState, kind: str) -> Request:
    """What is asked for one of the figures of a view; positions are of the model alone, whatever the photo."""
    of_image, first = session.trace_of(subject).layout.grid, view.query.split(";")[0]
    on_grid = format_query(of_image) if view.positions.position_grid == "image" else ""
    ask = partial(request_for, session, subject, POSITIONS.name, grid=on_grid)
    everything = ask()
    if kind == "positions":
        return everything
    matrix: TokenMatrix = session.run(everything)
    if kind == "position":
        grid = matrix.grid
        place = (grid[0] // 2, grid[1] // 2)
        if first[:1].isdigit():  # the pinned patch, on the grid that is shown
            row, col = (int(n) for n in first.split(","))
            place = (
                min(row * grid[0] // of_image[0], grid[0] - 1),
                min(col * grid[1] // of_image[1], grid[1] - 1),
            )
        return ask(place=format_query(place))
    if not matrix.extra:
        raise ParameterError("No prefix token of this model has a position of its own.")
    return ask(place=view.query if view.query in matrix.extra else next(iter(matrix.extra)))


def target_of(view: ViewState) -> Target:
    """The target of a view as analyses take it: a class, a pair of classes, or None for the model's own."""
    classes = [int(part) for part in view.target.split("-") if part]
    if len(classes) == 2:
        return classes[0], classes[1]
    return classes[0] if classes else None


def side_of(view: ViewState) -> Target:
    """The target of a view, or the one of its two classes that is looked at."""
    target = target_of(view)
    if isinstance(target, tuple) and view.explain.sides in ("one", "other"):
        return target[view.explain.sides == "other"]
    return target


def card_named(name: str) -> AnyMethod:
    """The method of a card."""
    method = METHODS.titled(name)
    if not method.is_card:
        raise ParameterError(f"“{method.words.label}” has no card on the Explain tab.")
    return method
