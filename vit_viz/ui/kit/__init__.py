"""The page as what its script is told: the tabs with what each shows, and what stands in front of them.

Everything is in one gr.HTML, whose script is vit_viz/web/page/page.js. HTML from here is ours; what comes from strangers reaches
the page as text.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vit_viz.ui.scripts import known_module

_PACKAGE = Path(__file__).resolve().parents[2]


def part(name: str, *, html: str = "", **props: Any) -> dict[str, Any]:
    """A part of the page that a module fills.

    Args:
        name: path of its module below vit_viz, without ending.
        html: what it begins with; without, the file beside the module, if there is one.
        props: what its script is told.
    """
    page = _PACKAGE / f"{name}.html"
    begins = html or (page.read_text("utf-8") if page.exists() else "")
    return {"name": Path(name).name, "html": begins, "module": known_module(f"{name}.js"), "props": props}


def place(name: str, *, inside: str = "", classes: str = "vv-part") -> str:
    """Where the room of a tab stands, as HTML."""
    return f'<div id="vv-{name}" class="{classes}" data-room>{inside}</div>'
