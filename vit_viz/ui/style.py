"""The style sheet of the page: tokens, parts that all rooms share, the page, then each room, whose rules lie beside its code."""

from __future__ import annotations

from pathlib import Path

_HERE = Path(__file__).parent


def stylesheet() -> str:
    """The rules of the page, for `launch(css=...)`."""
    shared = [_HERE / name for name in ("tokens.css", "system.css", "page.css")]
    files = [*shared, *sorted(_HERE.glob("*/*.css"))]
    return "\n".join(file.read_text("utf-8") for file in files)
