"""The live explorer as a component of the page.

The template is static and all drawing happens in JavaScript; the value is small JSON that names a trace, whose layers the browser
fetches from the routes of `vit_viz.ui.routes` as binary.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import gradio as gr

from vit_viz.explorer import colour_tables, style, template
from vit_viz.ui.scripts import loader

EVENTS = ("pin", "view", "recompute", "closer")
"""What the explorer tells Python; see `Explorer`."""

_instances = itertools.count()


class Explorer(gr.HTML):
    """The explorer as a Gradio component; its value describes one trace, as `vit_viz.ui.routes` serves it.

    Events (`evt._data` is a dict with seq, trace, model, image, mode and the whole view: layer, head, query, direction, scale,
    clip, alpha, table, smooth, mask, norm):
        pin: another query was pinned.
        view: layer, head or an option changed.
        closer: a part was drawn, or the whole is wanted again: part.
        recompute: the server had dropped the trace; sent at most once per picture.

    The prop `busy` (a text, "" for no) dims the pictures while the server works on new ones.

    Args:
        value: the trace to show, or None.
        busy: what the server is doing at the start.
    """

    def __init__(self, value: Any = None, *, busy: str = "", **options: Any) -> None:
        instance = f"vv{next(_instances)}"
        options.setdefault("elem_classes", ["vit-viz-explorer"])
        super().__init__(
            value,
            html_template=template(instance),
            css_template=style(),
            js_on_load=loader(Path(__file__).with_suffix(".js"), EVENTS),
            apply_default_css=False,
            busy=busy,
            tables=colour_tables(),
            **options,
        )
