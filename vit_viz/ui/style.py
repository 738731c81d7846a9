"""The style sheet of the page: tokens, what all rooms share, the page, then each room, whose rules lie beside its code."""

from __future__ import annotations

from pathlib import Path

_HERE = Path(__file__).parent
_SHARED = ("tokens.css", "kit/system.css", "kit/kit.css", "page.css")


def stylesheet() -> str:
    """The rules of the page, for `launch(css=...)`."""
    shared = [_HERE / name for name in _SHARED]
    rooms = [file for file in sorted(_HERE.glob("*/*.css")) if file not in shared]
    return "\n".join(file.read_text("utf-8") for file in (*shared, *rooms))
