"""The parts of the page: each is a gr.HTML from a template and a module of JavaScript, NAME.html and NAME.js.

The script exports `mount(element, trigger, props, watch)`, which runs once the template stands in the page. Templates are static
and values reach the page through `textContent` only, because Gradio evaluates whatever stands in a template.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import gradio as gr

from vit_viz.explorer import colour_tables, style, template
from vit_viz.ui.scripts import loader

_UI = Path(__file__).resolve().parents[1]
_WEB = _UI.parent / "web"

_explorers = itertools.count()


def part(
    name: str,
    *,
    html: str = "",
    script: tuple[str, str] | None = None,
    classes: tuple[str, ...] = (),
    value: Any = None,
    **options: Any,
) -> gr.HTML:
    """A part of the page.

    Args:
        name: path of its template and module below vit_viz/ui, without ending.
        html: its template, where it has no file.
        script: its module and the function that mounts it, where it shares one.
        value: what it shows at first.
        options: `elem_id`, and what its script is told.
    """
    module, function = script or (name, "mount")
    return gr.HTML(
        value,
        html_template=html or (_UI / f"{name}.html").read_text("utf-8"),
        js_on_load=loader(_UI / f"{module}.js", function),
        apply_default_css=False,
        elem_classes=["vv-part", f"vv-part-{name.rpartition('/')[2]}", *classes],
        **options,
    )


def web_room(name: str, *, piece: str = "", elem_id: str = "", **props: Any) -> gr.HTML:
    """A room that keeps its state in the browser and asks for what it shows: vit_viz/web/NAME/room.js.

    Args:
        name: of its folder; a room.html there is what it begins with.
        piece: of a room that stands on several places of its tab: PIECE.js and PIECE.html.
        props: what its script is told.
    """
    module = piece or "room"
    page = _WEB / name / f"{module}.html"
    return part(
        "kit/room",
        html=page.read_text("utf-8") if page.exists() else "<div></div>",
        script=(f"../web/{name}/{module}", "mount"),
        classes=(f"vv-part-{piece}",) if piece else (),
        elem_id=elem_id or f"vv-{piece or name}",
        **props,
    )


def explorer(**options: Any) -> gr.HTML:
    """The explorer with its elements; what it shows is in the store of the page: vit_viz/web/look/room.js."""
    return gr.HTML(
        html_template=template(f"vv{next(_explorers)}"),
        css_template=style(),
        js_on_load=loader(_WEB / "look/room.js"),
        apply_default_css=False,
        elem_classes=["vit-viz-explorer"],
        tables=colour_tables(),
        **options,
    )
