"""What the Explain tab is told of every method from the beginning: what it takes, what it shows, its controls and its formula."""

from __future__ import annotations

from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.options import OptionField
from vit_viz.analyses.spec import AnyMethod
from vit_viz.explorer.value import Value, control
from vit_viz.figures.request import DrawingOptions
from vit_viz.ui.kit import words

_DRAWING = {"style": "style", "alpha": "strength", "table": "colours of heat", "smooth": "smooth"}
"""Options of how a map is drawn, and what their controls are called."""


def methods() -> list[Value]:
    """The cards in their order."""
    return [_method(method) for method in METHODS.cards]


def _method(method: AnyMethod) -> Value:
    said = method.words
    return {
        "name": method.name,
        "label": said.label,
        "blind": said.class_blind,
        "aimed": method.takes_target,
        "pick": method.follows_pin,
        "slow": method.is_slow,
        "runs": said.runs,
        "shows": said.shows,
        "hides": said.hides,
        "formula": words.formulas((said.formula, said.source)),
        "controls": [_control(field, method.name) for field in method.options.schema()],
    }


def drawing() -> list[Value]:
    """Controls of how a map is drawn."""
    fields = {field.name: field for field in DrawingOptions.schema()}
    return [_control(fields[name], "") | {"label": label} for name, label in _DRAWING.items()]


def _control(field: OptionField, method: str) -> Value:
    """A control of an option; of that of a layer the page knows how many there are."""
    is_layer = {"is_layer": True} if field.option.is_layer else {}
    return control(field, 0) | {"link": field.link_name(method)} | is_layer
