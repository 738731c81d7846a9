"""Where the page shows a question: on the tab that draws it, or in the panel."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.spec import AnyQuestion, Place
from vit_viz.errors import ParameterError
from vit_viz.geometry import format_query
from vit_viz.views.panel import Panel
from vit_viz.views.state import ViewState, written


def showing(view: ViewState, question: AnyQuestion, parameters: Mapping[str, Any]) -> ViewState:
    """The view that shows the answer to a request: on its tab where that holds all that was asked with, else in the panel."""
    if question.place is not None:
        on_tab = replace(_chosen(view, question.place.link(parameters)), panel=None)
        if _holds(on_tab, question, question.place, parameters):
            return on_tab
    beside = {name: parameters[name] for name in ("query", "target") if name in parameters}
    panel = Panel(question.name, question.chosen(parameters), runs=question.is_slow)
    return replace(_chosen(view, beside), panel=panel)


def _chosen(view: ViewState, chosen: Mapping[str, Any]) -> ViewState:
    """The view with what is chosen, by names in links; a value that the page does not offer stays as it is."""
    for name, value in chosen.items():
        if value is None:
            continue
        if name == "target" and isinstance(value, tuple):
            value = "-".join(map(str, value))
        if name == "query":
            value = format_query(value)
        with suppress(ParameterError):
            view = view.with_options({name: value})
    return view


def _holds(view: ViewState, question: AnyQuestion, place: Place, parameters: Mapping[str, Any]) -> bool:
    """Whether a tab shows all of this; of an option that it does not have it shows the default."""
    wanted, usual = question.chosen(parameters).values(), question.options().values()
    for name, value in wanted.items():
        held = view.held(place.options.get(name, name))
        is_held = value == usual[name] if held is None else held == written(value)
        if name in place.chooses or not is_held:
            return False
    return view.method in {method.name for method in METHODS.cards}
