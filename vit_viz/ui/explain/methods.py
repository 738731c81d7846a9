"""What the Explain tab asks for: from a view, the target and the parameters of the request for a method's map."""

from __future__ import annotations

from typing import Any

from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.spec import AnyMethod
from vit_viz.capture import Trace
from vit_viz.errors import ParameterError
from vit_viz.views.state import ViewState

Target = int | tuple[int, int] | None


def target_of(view: ViewState) -> Target:
    """The target of a view as analyses take it: a class, a pair of classes, or None for the model's own."""
    classes = [int(part) for part in view.target.split("-") if part]
    if len(classes) == 2:
        return classes[0], classes[1]
    return classes[0] if classes else None


def card_named(name: str) -> AnyMethod:
    """The method of a card.

    Raises:
        ParameterError: the tab has no such card.
    """
    for method in METHODS.cards:
        if method.name == name:
            return method
    known = ", ".join(method.name for method in METHODS.cards)
    raise ParameterError(f"There is no method {name[:40]!r}; there are: {known}.")


def changed_options(method: AnyMethod, view: ViewState, trace: Trace) -> tuple[tuple[str, Any], ...]:
    """Pairs (name, value) of the options that are not at their default, as this model allows them."""
    return view.options_of(method.name).for_layers(trace.num_layers).changed()
