"""The components of the page, and what its rooms share.

Each component is a gr.HTML from a template and a module of JavaScript, `<name>.html` and `<name>.js` in the folder of its room; the
script exports `mount(element, trigger, props, watch)`, which runs once the template stands in the page. Templates are static and
values reach the page through `textContent` only, because Gradio evaluates whatever stands in a template. The classes stand together
here and not in the rooms that wire them, because Gradio writes a stub beside each module that has one, and a type checker reads the
stub in place of the module.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import gradio as gr

from vit_viz.explorer import colour_tables, style, template
from vit_viz.ui.scripts import loader

_ROOMS = Path(__file__).resolve().parents[1]

_instances = itertools.count()


class Component(gr.HTML):
    """A gr.HTML made from the files <template>.html and <template>.js of this package.

    A small one has its `html` here, and shares a module: `script` names it and the function that mounts the component.
    """

    template = ""
    html = ""
    script: tuple[str, str] | None = None
    classes: tuple[str, ...] = ()

    def __init__(self, value: Any = None, **options: Any) -> None:
        module, function = self.script or (self.template, "mount")
        super().__init__(
            value,
            html_template=self.html or (_ROOMS / f"{self.template}.html").read_text("utf-8"),
            js_on_load=loader(_ROOMS / f"{module}.js", function),
            apply_default_css=False,
            elem_classes=["vv-part", f"vv-part-{self.template.split('/')[-1]}", *self.classes],
            **options,
        )


class FigureDialog(Component):
    """The dialog that saves a figure; whatever on the page shows one opens it by the event `vv-figure` of the browser."""

    template = "kit/figure_dialog"


class Opener(Component):
    """A button that opens the part of the page that its value names: {"words", "label", "panel"}; a new value closes it."""

    template = "kit/opener"
    html = '<button type="button" class="vv-button vv-opener" aria-expanded="false"></button>'
    script = ("kit/parts", "mountOpener")


class Plots(Component):
    """Fits the figures of plotly, wherever they are on the page, to its size."""

    template = "kit/plots"
    html = '<span class="vv-plots" hidden></span>'
    script = ("kit/parts", "mountPlots")


class Tour(Component):
    """A tour of the page in five stops, which the event `vv-tour` of the browser begins."""

    template = "tour/tour"


class Help(Component):
    """Says what a control is for, when it is pointed at; the event `vv-what` of the browser or the key "?" begins it.

    Its value says what each tab is for, and which option a control of Gradio chooses, by its elem_id; the prop `listing` where
    what options do is fetched.
    """

    template = "help/help"


class WebRoom(Component):
    """A room that keeps its state in the browser and asks for what it shows: vit_viz/web/NAME/room.js.

    Args:
        name: of its folder; a room.html there is what it begins with.
        part: of a room that stands on several places of its tab: PART.js and PART.html.
        props: what its script is told.
    """

    template = "kit/room"

    def __init__(self, name: str, *, part: str = "", elem_id: str = "", **props: Any) -> None:
        module = part or "room"
        page = _ROOMS.parent / "web" / name / f"{module}.html"
        self.html = page.read_text("utf-8") if page.exists() else "<div></div>"
        self.script = f"../web/{name}/{module}", "mount"
        self.classes = (f"vv-part-{part}",) if part else ()
        super().__init__(elem_id=elem_id or f"vv-{part or name}", **props)


class Address(Component):
    """The address bar and the connection to the server.

    The prop `fields` says what the link may hold (vit_viz/web/kit/page.js), as JSON: of objects Gradio's page would make watched
    ones, which takes longer.
    """

    template = "visit/address"
    html = '<span class="vv-address" hidden></span>'


class Explorer(gr.HTML):
    """The explorer with its elements; what it shows is in the store of the page: vit_viz/web/look/room.js."""

    def __init__(self, **options: Any) -> None:
        super().__init__(
            html_template=template(f"vv{next(_instances)}"),
            css_template=style(),
            js_on_load=loader(_ROOMS.parent / "web/look/room.js"),
            apply_default_css=False,
            elem_classes=["vit-viz-explorer"],
            tables=colour_tables(),
            **options,
        )
