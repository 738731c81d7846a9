"""The live explorer: a photo whose patches are queries, with every layer and head answering in the browser.

One `gr.HTML` made of the files beside this one. The template is static and all drawing happens in JavaScript; the value is
small JSON that names a trace, whose layers the browser fetches from the routes of `vit_viz.ui.routes` as binary.
"""

from __future__ import annotations

import base64
import itertools
import re
from functools import cache
from pathlib import Path
from typing import Any

import gradio as gr

from vit_viz.render.colormaps import TABLES, table

SCRIPTS = (
    "attention.js",
    "geometry.js",
    "state.js",
    "frame.js",
    "layers.js",
    "paint.js",
    "labels.js",
    "chips.js",
    "controls.js",
    "gestures.js",
    "address.js",
    "save.js",
    "layout.js",
    "talk.js",
    "hands.js",
    "explorer.js",
)
"""The explorer's modules, each before those that import it."""

EVENTS = ("pin", "view", "recompute", "navigate")
"""What the explorer tells Python; see `Explorer`."""

_FOLDER = Path(__file__).parent
_IMPORT = re.compile(r"^import\s[^;]*;\n", re.MULTILINE)
_EXPORT = re.compile(r"^export\s+(?=(?:async\s+)?(?:function|class|const|let)\b)", re.MULTILINE)
_instances = itertools.count()


class Explorer(gr.HTML):
    """The explorer as a Gradio component; its value describes one trace, as `vit_viz.ui.routes` serves it.

    Events (`evt._data` is a dict with seq, trace, model, image, mode and the whole view: layer, head, query, direction, scale,
    clip, alpha, table, smooth, mask, norm):
        pin: another query was pinned.
        view: layer, head or an option changed.
        recompute: the server had dropped the trace; sent at most once per picture.
        navigate: Back or Forward reached another picture or model: model, image, mode (each may be None) and view.

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
            html_template=_read("explorer.html").replace("__ID__", instance),
            css_template=_read("explorer.css"),
            js_on_load=script(),
            apply_default_css=False,
            busy=busy,
            tables=colour_tables(),
            **options,
        )
        self.busy = busy  # the name stands in quotes in the script, so Gradio would take it for an event and copy all Blocks


@cache
def script() -> str:
    """The explorer's modules as the one text that gr.HTML takes: in order, without import and export."""
    parts = [_EXPORT.sub("", _IMPORT.sub("", _read(name))) for name in SCRIPTS]
    return '"use strict";\n' + "\n".join(parts) + "\nmountExplorer(element, trigger, props, watch);\n"


@cache
def colour_tables() -> dict[str, str]:
    """The colour tables of `vit_viz.render.colormaps`, each 256 x 3 bytes in base64."""
    return {name: base64.b64encode(table(name).tobytes()).decode("ascii") for name in TABLES}


def _read(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")
