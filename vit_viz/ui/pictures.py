"""What is asked for the maps of the Explain tab."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from vit_viz.analyses.explain import EXPLAIN_ALL, parameters_of
from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.share_maps import CLASS_DIFFERENCE, OWN_PART
from vit_viz.analyses.spec import AnyMethod, AnyQuestion
from vit_viz.errors import ParameterError
from vit_viz.figures import maps
from vit_viz.figures.colormaps import Limits
from vit_viz.figures.files import Encoded
from vit_viz.figures.request import FigureRequest, figure_for
from vit_viz.figures.screen import screen_picture
from vit_viz.geometry import Query, parse_query
from vit_viz.results import PatchMap
from vit_viz.session.request import Request, Subject
from vit_viz.session.session import Session
from vit_viz.views.state import ViewState

Target = int | tuple[int, int] | None


def picture(session: Session, subject: Subject, view: ViewState) -> Encoded:
    """The map of the Explain tab on its photo, for the screen."""
    return screen_picture(session, explanation_figure(session, subject, view))


def explanation_figure(session: Session, subject: Subject, view: ViewState) -> FigureRequest:
    """What is drawn of a map of the Explain tab."""
    request = explanation_request(session, subject, view)
    figure = figure_for(request, view.drawing)
    if view.explain.map_scale != "share" or request.question != view.method:
        return figure
    beside = subject.request(EXPLAIN_ALL.name, target=side_of(view), mirror=False)
    return replace(figure, beside=beside)


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


def explanation(session: Session, subject: Subject, view: ViewState, **watch: Any) -> PatchMap:
    """A map of the Explain tab, by the chosen method; `watch` may hold `progress` and `cancelled`."""
    patch_map: PatchMap = session.run(explanation_request(session, subject, view), **watch)
    return patch_map


def on_scale(
    session: Session, subject: Subject, view: ViewState, patch_map: PatchMap
) -> tuple[PatchMap, Limits, str]:
    """A map of the Explain tab as it is drawn: the map, the ends of its scale, and the scale in words."""
    figure = explanation_figure(session, subject, view)
    beside = None if figure.beside is None else session.run(figure.beside)
    return maps.scaled(patch_map, beside, figure.drawing, figure.parameters)


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
