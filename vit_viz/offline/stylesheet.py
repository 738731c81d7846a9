"""The rules of the page, whatever stands around it."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

from vit_viz.explorer import EXPLORER, style

_PACKAGE = Path(__file__).resolve().parents[1]
_SHARED = ("ui/kit/system.css", "ui/kit/kit.css", "ui/page.css")


def stylesheet(*, only: Collection[str] | None = None, without: Collection[str] = ()) -> str:
    """The rules of the page, without those of some rooms.

    All but the tokens and the explorer's stand inside a rule for the root, which is named so often that they win against
    Gradio's own; `&` is the root there.

    Args:
        only: names of folders whose rules are wanted beside the shared ones; None: of all.
        without: names of folders, or of files without their ending, whose rules are not.
    """
    shared = [_PACKAGE / name for name in _SHARED]
    everywhere = [file for part in ("ui", "web") for file in sorted((_PACKAGE / part).glob("*/*.css"))]
    rooms = [
        file
        for file in everywhere
        if file not in shared
        and not {file.parent.name, file.stem} & {*without}
        and (only is None or file.parent.name in only)
    ]
    rules = (file.read_text("utf-8") for file in (*shared, *rooms, _PACKAGE / "ui" / "phone.css"))
    tokens = (_PACKAGE / "ui" / "tokens.css").read_text("utf-8")
    return "\n".join([tokens, f"#{EXPLORER} {{ {style()} }}", ":root:root:root {", *rules, "}"])


def bare(rules: str) -> str:
    """Rules without comments, and without the white space that only makes them legible."""
    rules = re.sub(r"/\*.*?\*/\n?|^[ \t]+", "", rules, flags=re.DOTALL | re.MULTILINE)
    rules = re.sub(
        r"^([-\w]+): ", r"\1:", rules, flags=re.MULTILINE
    )  # no selector has a space behind a colon
    return re.sub(r"([{};,])\s+|\s+(?=\{)", r"\1", rules)
