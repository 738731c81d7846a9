"""The page's JavaScript as one script, and addresses that browsers keep for good, as each holds a digest of what is there."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from vit_viz.offline.bundle import together

PREFIX = "/vit_viz"
"""Under which all that the page fetches from us is served."""

FILES = f"{PREFIX}/page"
FOR_GOOD = {"Cache-Control": "public, max-age=31536000, immutable"}

_PACKAGE = Path(__file__).resolve().parents[1]


def file_address(name: str, content: bytes) -> str:
    """Where a file of the page is served, without the prefix under which a proxy may serve the app; it changes with the file."""
    return f"{FILES}/{hashlib.sha256(content).hexdigest()[:16]}/{name}"


@cache
def modules() -> tuple[str, ...]:
    """The modules of the page by their paths in the package, without those that they import from elsewhere."""
    paths = sorted(path for folder in ("ui", "web") for path in (_PACKAGE / folder).rglob("*.js"))
    return tuple(path.relative_to(_PACKAGE).as_posix() for path in paths)


@cache
def page_script() -> str:
    """What lets the page use its modules: `window.vit_viz(path)` returns what one exports."""
    return f"window.vit_viz = (() => {{\n{together(*modules())}return need;\n}})();\n"


def known_module(name: str) -> str:
    """The path of a module in the package, as `window.vit_viz` takes it."""
    if name not in modules():
        raise KeyError(name)
    return name
