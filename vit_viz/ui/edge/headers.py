"""The security headers of every answer, and the policy of the page.

The page loads nothing from other hosts (on a Space its script may ask the Space's host how the Space is), runs no plugins and no
script that is not its own: each script that stands in the page is named in the policy by its hash, so that a handler in an image
that slipped through is not run. `unsafe-eval` stays, because Gradio makes functions of the text of gr.HTML; `unsafe-inline` stays
for styles, because Gradio and plotly set them.

Source: Content Security Policy Level 3, section 2.3.1 (source lists) and 6.7 (hashes).
"""

from __future__ import annotations

import base64
import hashlib
import re

from starlette.datastructures import MutableHeaders
from starlette.types import Message

PERMISSIONS = ", ".join(
    [
        "camera=(self)",
        *(f"{name}=()" for name in ("microphone", "geolocation", "payment", "usb", "serial", "hid", "midi")),
        *(f"{name}=()" for name in ("display-capture", "accelerometer", "gyroscope", "magnetometer")),
    ]
)
NOTHING_INSIDE = "default-src 'none'; frame-ancestors 'none'"
"""The policy of everything but pages: a picture or a number that is opened by itself can load nothing and run nothing."""

_SCRIPT = re.compile(rb"<script(?P<attributes>[^>]*)>(?P<text>.*?)</script>", re.DOTALL | re.IGNORECASE)
_BASE = re.compile(rb"<base\b[^>]*>", re.IGNORECASE)


def page_policy(html: bytes, *, frames: tuple[str, ...] = (), connects: tuple[str, ...] = ()) -> str:
    """The Content-Security-Policy of a page with these scripts in it.

    Args:
        frames: sources beside the page's own whose pages may show it in a frame.
        connects: sources beside the page's own that its scripts may ask.
    """
    hashes = " ".join(f"'sha256-{_hash(text)}'" for text in inline_scripts(html))
    rules = (
        "default-src 'none'",
        f"script-src 'self' 'unsafe-eval' {hashes}".rstrip(),
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "media-src 'self' blob: mediastream:",
        "font-src 'self' data:",
        " ".join(["connect-src 'self' data: blob:", *connects]),
        "worker-src 'self' blob:",
        "manifest-src 'self'",
        "form-action 'none'",
        "base-uri 'none'",
        "object-src 'none'",
        " ".join(["frame-ancestors 'self'", *frames]),
    )
    return "; ".join(rules)


def inline_scripts(html: bytes) -> list[bytes]:
    """The text of each script that stands in a page itself."""
    return [match["text"] for match in _SCRIPT.finditer(html) if b"src=" not in match["attributes"]]


def without_base(html: bytes) -> bytes:
    """A page without <base>: Gradio's says "./", which is where the page is anyway, and the policy allows none."""
    return _BASE.sub(b"", html, count=1)


def add_headers(message: Message, *, is_static: bool) -> MutableHeaders:
    """Add to the start of an answer the headers that every answer has; returns them.

    Args:
        is_static: the same for every visitor, so that a browser may keep it.
    """
    headers = MutableHeaders(raw=message["headers"])
    message["headers"] = headers.raw
    headers["X-Content-Type-Options"] = "nosniff"
    headers["Referrer-Policy"] = "same-origin"
    headers["Cross-Origin-Resource-Policy"] = "same-origin"
    for name in [name for name in headers if name.startswith("access-control-")]:
        del headers[name]
    if not is_static:
        headers["Cache-Control"] = "no-store"
    return headers


def _hash(text: bytes) -> str:
    return base64.b64encode(hashlib.sha256(text).digest()).decode()
