"""The controls for the options of the methods, made from what each option says of itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import gradio as gr

from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.options import OptionField
from vit_viz.views.state import ViewState


@dataclass(frozen=True)
class OptionControl:
    """The control of one option of a method."""

    method: str
    field: OptionField
    component: Any

    @property
    def link_name(self) -> str:
        """What links, and so the view, call the option."""
        return self.field.link_name(self.method)

    def update(self, view: ViewState, layers: int, *, visible: bool) -> dict[str, Any]:
        """The control as it holds for a view of a model with so many layers."""
        value = getattr(view.options_of(self.method).for_layers(layers), self.field.name)
        if not self.field.option.is_layer:
            return gr.update(value=value, visible=visible)
        return gr.update(value=range(layers)[value], maximum=max(layers - 1, 1), visible=visible)


def build() -> tuple[OptionControl, ...]:
    """Lay out the controls of all methods: numbers beside each other, choices in lines of their own."""
    return tuple(control for method in METHODS.cards for control in _of(method.name, method.options.schema()))


def _of(method: str, schema: tuple[OptionField, ...]) -> Iterator[OptionControl]:
    for is_number, fields in groupby(schema, key=lambda field: field.kind in (int, float)):
        with gr.Row() if is_number else nullcontext():
            yield from [OptionControl(method, field, _component(field)) for field in fields]


def _component(field: OptionField) -> Any:
    option, default = field.option, field.default
    if field.choices:
        return gr.Radio(list(field.choices), value=default, label=option.label, elem_classes="vv-inline")
    if field.kind is bool:
        return gr.Checkbox(bool(default), label=option.label)
    if option.is_layer:  # of two layers, until a model is known
        return gr.Slider(0, 1, range(2)[default], step=1, label=option.label)
    return gr.Slider(option.low, option.high, default, step=option.step, label=option.label)
