"""Addresses that browsers keep for good, as each holds a digest of what is there; and the page's JavaScript, served at such ones.

Every module of the package is served, and nothing else: the table is made of the files that are there when the app starts. All
modules have one digest, so that they import each other by their relative paths.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path

from starlette.requests import Request as HttpRequest
from starlette.responses import Response

PREFIX = "/vit_viz"
"""Under which all that the page fetches from us is served."""

ADDRESS = f"{PREFIX}/js"
FILES = f"{PREFIX}/page"
FOR_GOOD = {"Cache-Control": "public, max-age=31536000, immutable"}
NOT_LOADED = "This part of the page could not be loaded; please reload the page."

_PACKAGE = Path(__file__).resolve().parents[1]
_LOADER = """\
import((window.gradio_config?.root ?? "").replace(/[/]$/, "") + %s).then(
  (module) => module.%s(element, trigger, props, watch),
  () => document.querySelector(".vv-lost") || (element.textContent = %s),
); // events: %s
"""


def file_address(name: str, content: bytes) -> str:
    """Where a file of the page is served, without the prefix under which a proxy may serve the app; it changes with the file."""
    return f"{FILES}/{hashlib.sha256(content).hexdigest()[:16]}/{name}"


@cache
def modules() -> dict[str, bytes]:
    """The text of every module of the package, by its path in it: "explorer/geometry.js"."""
    return {
        path.relative_to(_PACKAGE).as_posix(): path.read_bytes() for path in sorted(_PACKAGE.rglob("*.js"))
    }


@cache
def digest() -> str:
    """A digest of all modules, names and texts."""
    parts = [
        hashlib.sha256(part).digest() for name, text in modules().items() for part in (name.encode(), text)
    ]
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16]


def address(name: str) -> str:
    """Where a module is served, without the prefix under which a proxy may serve the app.

    Raises:
        KeyError: the package has no such module.
    """
    if name not in modules():
        raise KeyError(name)
    return f"{ADDRESS}/{digest()}/{name}"


def loader(script: Path, events: tuple[str, ...] = (), function: str = "mount") -> str:
    """What gr.HTML runs for a component: load its module and mount it, or say that this failed.

    Args:
        script: the module, a file of the package.
        events: what the component tells Python; Gradio looks for the names, in quotes, in this text.
        function: the export of the module that mounts the component.
    """
    where = address(script.resolve().relative_to(_PACKAGE).as_posix())
    return _LOADER % (json.dumps(where), function, json.dumps(NOT_LOADED), " ".join(map(repr, events)))


def serve(request: HttpRequest) -> Response | None:
    """A module, which browsers may keep for good; None where the address is that of no module, or of one of another version."""
    text = modules().get(request.path_params["name"])
    if text is None or request.path_params["digest"] != digest():
        return None
    return Response(text, 200, FOR_GOOD, "text/javascript")
