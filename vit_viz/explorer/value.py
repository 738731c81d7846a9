"""What an explorer is told about a trace, wherever it stands: small JSON; the layers come from its source."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, get_args

from vit_viz.analyses.attention import AttentionOptions, HeadFusion
from vit_viz.analyses.options import OptionField
from vit_viz.capture import Trace
from vit_viz.explorer.packing import has_norms, source_of
from vit_viz.figures.request import DrawingOptions
from vit_viz.images import Mode
from vit_viz.images.preprocess import MAX_INPUT_SIDE
from vit_viz.views.panel import OPTIONS
from vit_viz.views.state import IN_LINKS, RENAMED_TABS, ViewState, link_options
from vit_viz.views.tab_options import LookTabOptions

Value = dict[str, Any]


def trace_value(trace: Trace) -> Value:
    """The shape of a trace, its tokens, where it lies on the photo, and the options of a view.

    The trace is of a photo.
    """
    assert trace.crop_box is not None
    return {
        "layers": trace.num_layers,
        "heads": trace.num_heads,
        "tokens": trace.num_tokens,
        "head_dim": trace.head_dim,
        "scales": list(trace.scales),
        "prefix": list(trace.layout.prefix),
        "suffix": list(trace.layout.suffix),
        "grid": list(trace.layout.grid),
        "pooling": trace.layout.pooling,
        "unread": list(trace.layout.unread),
        "default_query": trace.layout.default_query,
        "crop": trace.crop_box.to_dict(),
        "source": [source_of(trace, layer) for layer in range(trace.num_layers)],
        "norms": has_norms(trace),
        "options": [described(field) for field in explorer_options()],
    }


def explorer_options() -> tuple[OptionField, ...]:
    """The options that the explorer has controls for."""
    return (*AttentionOptions.schema(), *DrawingOptions.schema(), *LookTabOptions.schema())


CHECKING: Value = {
    "state": "checking",
    "text": "checking \N{HORIZONTAL ELLIPSIS}",
    "title": "It is known which token is which patch. Whether the layers are all of this model's attention, and what becomes of "
    "it, is being checked now, once for this model and size of picture: it runs on pictures that differ in some patches.",
}
"""The proof badge while it is not known yet what it will say."""


def proof_value(trace: Trace) -> Value:
    """The proof badge: was the attention shown to be what the model computed with, all of it, patch by patch? Waits for it."""
    report = trace.proof_report
    measured = [value for value in trace.proof if not math.isnan(value)]
    if report.status == "captured, not proven":
        return {"state": "open", "text": "captured, not proven", "title": report.sentence}
    size = f"{max(measured):.0e}".replace("e-0", "e-")
    if report.status == "refuted":
        return {
            "state": "refuted",
            "text": "proof failed",
            "title": f"{report.sentence} That is too much: do not trust these pictures.",
        }
    return {
        "state": "proven",
        "text": "verified",
        "title": "In every layer, attention x values was recomputed from what is drawn here and compared with what the model "
        f"itself computed (largest difference {size} of its largest number); the layers are all of its attention, and each patch "
        "is its own token.",
    }


def described(field: OptionField) -> Value:
    """An option as the page's scripts know it: what it is called, what is possible, and its default."""
    option = field.option
    value: Value = {"name": field.name, "link": option.link, "default": field.default}
    if field.choices:
        return value | {"choices": list(field.choices)}
    if field.kind in (bool, str):
        return value | ({"pattern": option.pattern} if option.pattern else {})
    step = {"step": field.step} if field.kind is float else {}
    return value | {"low": option.low, "high": option.high} | step


def declared(field: OptionField) -> Value:
    """An option with its words, as a control shows it; of a layer there are those that a model has."""
    option = field.option
    said = described(field) | {"label": option.label, "sentence": option.sentence}
    return said | ({"layer": True} if option.is_layer else {})


def control(field: OptionField, layers: int) -> Value:
    """The same of a model with so many layers."""
    said = declared(field)
    return said | ({"low": 0, "high": max(layers - 1, 1)} if said.pop("layer", False) else {})


_LIMITS: dict[str, Value] = {
    "mode": {"choices": get_args(Mode)},
    "tab": {"renamed": RENAMED_TABS},
    "size": {"low": 0, "high": MAX_INPUT_SIDE},
    "layer": {"numbered": True},
    "head": {"numbered": True, "choices": get_args(HeadFusion)},
}


_PLACES = frozenset(
    {"model", "image", "mode", "size", "part", "edits", "sentences", "templates", "tab", "query"}
)


def link_fields(of_page: Mapping[str, Value] | None = None) -> list[Value]:
    """Every name in links, with its default and what is possible: what vit_viz/web/kit/store.js keeps.

    A field that is a place leads to another one: Back leads to its value of before. The options of the question in the panel, whose
    names depend on the question, are one field. An option says of which method or group it is.

    Args:
        of_page: what else is known of fields where there is a page, by their names.
    """
    own = {field.name: field.default for field in fields(ViewState)}
    plain = [
        {"name": name, "link": link, "default": own[name]}
        | _LIMITS.get(name, {})
        | ({"place": True} if name in _PLACES else {})
        | (of_page or {}).get(name, {})
        for name, link in IN_LINKS.items()
    ]
    return [
        *plain,
        {"name": "ask", "link": "ask", "default": "", "place": True},
        {"name": "runs", "link": "run", "default": False},
        {"name": "asked", "link": OPTIONS, "default": "", "many": True},
        *(
            described(field)
            | {"link": name}
            | ({"place": True} if field.option.is_place else {})
            | {"of": owner}
            for name, (owner, field) in link_options().items()
        ),
    ]
