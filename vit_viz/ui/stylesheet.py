"""The rules of the page, whatever stands around it."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from vit_viz.explorer import style
from vit_viz.ui.kit import EXPLORER

_HERE = Path(__file__).parent
_SHARED = ("kit/system.css", "kit/kit.css", "page.css")


def stylesheet(*, without: Collection[str] = ()) -> str:
    """The rules of the page, without those of some rooms.

    All but the tokens and the explorer's stand inside a rule for the root, which is named so often that they win against
    Gradio's own; `&` is the root there.
    """
    shared = [_HERE / name for name in _SHARED]
    everywhere = [*sorted(_HERE.glob("*/*.css")), *sorted((_HERE.parent / "web").glob("*/*.css"))]
    rooms = [file for file in everywhere if file not in shared and file.parent.name not in without]
    rules = (file.read_text("utf-8") for file in (*shared, *rooms, _HERE / "phone.css"))
    tokens = (_HERE / "tokens.css").read_text("utf-8")
    return "\n".join([tokens, f"#{EXPLORER} {{ {style()} }}", ":root:root:root {", *rules, "}"])
