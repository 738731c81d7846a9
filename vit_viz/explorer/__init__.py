"""The live explorer: a photo whose patches are queries, with every layer and head answering in the browser.

Plain JavaScript modules that know where their numbers come from, and not on whose page they stand.
"""

from __future__ import annotations

import base64
from functools import cache
from pathlib import Path

from vit_viz.figures.colormaps import TABLES, table

EXPLORER = "vv-explorer"
"""The id of the explorer of the Look tab."""

STYLES = ("explorer.css", "controls.css")
"""The explorer's style sheets, later ones over earlier ones."""

_FOLDER = Path(__file__).parent


def template(instance: str) -> str:
    """The explorer's HTML, whose ids begin with the name of this instance."""
    return _read("explorer.html").replace("__ID__", instance)


def style() -> str:
    """The explorer's rules."""
    return "\n".join(_read(name) for name in STYLES)


@cache
def colour_tables() -> dict[str, str]:
    """The colour tables of `vit_viz.figures.colormaps`, each 256 x 3 bytes in base64."""
    return {name: base64.b64encode(table(name).tobytes()).decode("ascii") for name in TABLES}


def _read(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")
