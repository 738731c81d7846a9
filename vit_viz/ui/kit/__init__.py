"""What several rooms of the page use: the base of our own components, and those that more than one room has.

Each component is a gr.HTML from a template and a module of JavaScript, `<name>.html` and `<name>.js`, that lie beside the module of
its class; the script exports `mount(element, trigger, props, watch)` and is loaded once the template stands in the page. Templates
are static and values reach the page through `textContent` only, because Gradio evaluates whatever stands in a template.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import gradio as gr

from vit_viz.ui.scripts import loader


class Component(gr.HTML):
    """A gr.HTML made from <name>.html and <name>.js beside the file of its class; `tells` names its events.

    A small one has its `html` here, and shares a module: `script` names it and the function that mounts the component.
    """

    template = ""
    html = ""
    script: tuple[str, str] | None = None
    tells: tuple[str, ...] = ()

    def __init__(self, value: Any = None, **options: Any) -> None:
        folder = Path(inspect.getfile(type(self))).parent
        module, function = self.script or (self.template, "mount")
        super().__init__(
            value,
            html_template=self.html or (folder / f"{self.template}.html").read_text("utf-8"),
            js_on_load=loader(folder / f"{module}.js", self.tells, function),
            apply_default_css=False,
            elem_classes=["vv-part", f"vv-part-{self.template}"],
            **options,
        )


class Picture(Component):
    """A picture with caption, colour bar, rings and a link to save it; events `pick` and `step`."""

    template = "picture"
    tells = ("pick", "step")


class FigureDialog(Component):
    """The dialog that saves a figure; whatever on the page shows one opens it by the event `vv-figure` of the browser."""

    template = "figure_dialog"


class FigureButton(Component):
    """A button that saves the figure at the address that is its value, by the dialog; None hides it."""

    template = "figure_button"
    html = '<button type="button" class="vv-button vv-figure-button" hidden>Save figure</button>'
    script = ("parts", "mountFigureButton")


class Opener(Component):
    """A button that opens the part of the page that its value names: {"words", "label", "panel"}; a new value closes it."""

    template = "opener"
    html = '<button type="button" class="vv-button vv-opener" aria-expanded="false"></button>'
    script = ("parts", "mountOpener")


class PlotClicks(Component):
    """Says which point of a plotly figure was clicked, event `point`. Its value names the figure."""

    template = "plot_clicks"
    html = '<span class="vv-plot-clicks" hidden></span>'
    script = ("parts", "mountPlotClicks")
    tells = ("point",)


class Plots(Component):
    """Fits the figures of plotly, wherever they are on the page, to its size."""

    template = "plots"
    html = '<span class="vv-plots" hidden></span>'
    script = ("parts", "mountPlots")
