"""What of the page is large and always the same, in a script of its own: styles, and templates, scripts and texts of components.

Gradio writes all of that into the page, which no browser may keep, beside the schemas of an API that is not offered here. Without
either the page is a third as large. The script runs before Gradio's own and puts everything back where that looks for it; its
address holds a digest of it, so a browser fetches it once.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from vit_viz.ui.preview.head import ADDRESS

LARGE = 300
"""Characters of JSON beyond which a value of a component stands in the script."""

NAME = "parts.js"

_CONFIG = b"window.gradio_config = "
_API = (
    "api_info",
    "api_info_as_input",
    "api_info_as_output",
    "example_inputs",
    "skip_api",
    "component_class_id",
)
"""Of a component: read by Gradio's page about its API, and for components of other packages."""

_SCRIPT = """\
(({ css, props }) => {
  const config = window.gradio_config;
  config.css = css;
  for (const component of config.components) Object.assign(component.props, props[component.id]);
})(%s);
"""


def parted(html: bytes, stand_in: str) -> tuple[bytes, bytes]:
    """A page without its large parts, and the script that puts them back; the script is empty where the page is none of Gradio's.

    Args:
        stand_in: what depends on who asks; whatever holds it stays in the page.
    """
    before, marker, rest = html.partition(_CONFIG)
    if not marker:
        return html, b""
    text = rest.decode()
    config, end = json.JSONDecoder().raw_decode(text)
    script = (_SCRIPT % _json(_taken(config, stand_in))).encode()
    close = "</script>"
    start = text.index(close, end) + len(close)
    loads = f'<script src=".{address(script)}"></script>'
    head = marker + inside(config) + text[end:start].encode() + loads.encode()
    return before + head + text[start:].encode(), script


def address(script: bytes) -> str:
    """Where the script is served, without the prefix under which a proxy may serve the app."""
    return f"{ADDRESS}/{hashlib.sha256(script).hexdigest()[:16]}/{NAME}"


def is_script(path: str) -> bool:
    """Whether a path is that of a page's script, of this version of the page or of another."""
    return path.startswith(f"{ADDRESS}/") and path.endswith(f"/{NAME}")


def _taken(config: dict[str, Any], stand_in: str) -> dict[str, Any]:
    """The large parts of a configuration, which has them no longer."""
    props = {}
    for component in config["components"]:
        for name in _API:
            component.pop(name, None)
        texts = {name: _json(value) for name, value in component["props"].items()}
        large = [name for name, text in texts.items() if len(text) > LARGE and stand_in not in text]
        props[component["id"]] = {name: component["props"].pop(name) for name in large}
    return {"css": config.pop("css", None), "props": {number: of for number, of in props.items() if of}}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def inside(value: Any) -> bytes:
    """A value as it stands in a script of the page; Gradio writes it so, too."""
    text = _json(value)
    for sign in "<>&'":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text.encode()
