"""What of Gradio's page is large stands in a script of its own, which browsers keep, with the page's modules."""

from __future__ import annotations

import json
from typing import Any

from gradio.routes import toorjson

from vit_viz.offline.stylesheet import stylesheet
from vit_viz.ui.scripts import file_address, page_script

LARGE = 300
"""Bytes of JSON beyond which a value of a component stands in the script."""
PARTS = "parts.js"
_FIRST = """\
window.vit_viz("web/look/room.js").begin(window.vit_viz("web/kit/server.js").SERVER);
"""
"""What runs before Gradio's page is built: it is laid out for the photo that comes, and what the link is to is opened meanwhile."""
_CONFIG = b"window.gradio_config = "
_SCRIPT = """\
((css, props) => {
  document.head.append(Object.assign(document.createElement('style'), { textContent: css }));
  for (const component of window.gradio_config.components) Object.assign(component.props, props[component.id]);
})(%s, %s);
"""


def parted(html: bytes, stand_in: str) -> tuple[bytes, bytes]:
    """A page without its large parts, and the script that puts them back and has the page's modules; it is empty where the page is
    none of Gradio's.

    Args:
        stand_in: what depends on who asks; whatever holds it stays in the page.
    """
    before, marker, rest = html.partition(_CONFIG)
    if not marker:
        return html, b""
    text = rest.decode()
    config, end = json.JSONDecoder().raw_decode(text)
    props = _taken(config, stand_in)
    begin = _SCRIPT % (inside(stylesheet()).decode(), inside(props).decode())
    script = (begin + page_script() + _FIRST).encode()
    close = "</script>"
    start = text.index(close, end) + len(close)
    loads = f'<script src=".{file_address(PARTS, script)}"></script>'
    head = marker + inside(config) + text[end:start].encode() + loads.encode()
    return before + head + text[start:].encode(), script


def _taken(config: dict[str, Any], stand_in: str) -> dict[str, Any]:
    """The large values of the components of a configuration, which has them no longer, by number and name."""
    props = {}
    for component in config["components"]:
        texts = {name: inside(value) for name, value in component["props"].items()}
        large = [name for name, text in texts.items() if len(text) > LARGE and stand_in.encode() not in text]
        props[component["id"]] = {name: component["props"].pop(name) for name in large}
    return {str(number): of for number, of in props.items() if of}


def inside(value: Any) -> bytes:
    """A value as Gradio writes it into a script of the page."""
    return str(toorjson(value)).encode()  # type: ignore[no-untyped-call]
