"""The head of the page as it is served, because those who preview a link run no script: name, sentence, picture, icon.

Gradio's template says "Gradio" there, with a picture from another host: all of that is taken out. The picture's address is
absolute, as previews need it, and made from the request's own, with the prefix under which a proxy may serve the app.

Source: the Open Graph protocol, https://ogp.me; HTML Living Standard, section 4.2.5.1 (theme-color).
"""

from __future__ import annotations

import hashlib
import html
import re
from functools import cache
from pathlib import Path

from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from vit_viz.ui.scripts import FOR_GOOD

TITLE = "vit_viz: see what a Vision Transformer looks at"
SENTENCE = "See what a Vision Transformer looks at. Point at the photo."
DESCRIPTION = (
    "Point at any part of a photo and see what every head of every layer of a Vision Transformer looks at from there, "
    "while you move. Bring your own pictures and models; the attention shown is checked against what the model computed."
)
PICTURE_WORDS = (
    "A photo of a lion, lit where the model looks, beside the same photo lit by each head of each layer."
)
PICTURE_SIZE = (1200, 630)
GROUNDS = {"light": "#fbfbfa", "dark": "#0e1014"}
"""--vv-ground of tokens.css, for the bar of a phone's browser."""

ADDRESS = "/vit_viz/page"
ICON = Path(__file__).with_name("icon.svg")
PICTURE = Path(__file__).with_name("card.jpg")
_TYPES = {ICON.name: "image/svg+xml", PICTURE.name: "image/jpeg"}

_BEGINNING = re.compile(rb"<meta charset=[^>]*>", re.IGNORECASE)
_PREVIEWS = re.compile(rb"""<meta\b[^>]*?\b(?:property|name)="(?:og|twitter):[^>]*>\s*""", re.IGNORECASE)


def with_head(page: bytes, base: str) -> bytes:
    """A page of Gradio with our preview in place of Gradio's, as early as a reader of the first kilobytes needs it.

    Args:
        base: the address of the app, without a slash at its end.
    """
    beginning = _BEGINNING.search(page)
    if beginning is None:
        return page
    head, script, rest = page.partition(b"<script")
    head = _PREVIEWS.sub(b"", head[beginning.end() :])
    return page[: beginning.end()] + tags(base).encode() + head + script + rest


def tags(base: str) -> str:
    """The elements of the head: all that a link's preview, a tab and a phone's browser show."""
    picture, (width, height) = base + address(PICTURE.name), PICTURE_SIZE
    named = {"description": DESCRIPTION, "twitter:card": "summary_large_image"}
    named |= {"twitter:title": TITLE, "twitter:description": DESCRIPTION}
    named |= {"twitter:image": picture, "twitter:image:alt": PICTURE_WORDS}
    graph = {
        "og:type": "website",
        "og:site_name": "vit_viz",
        "og:title": TITLE,
        "og:description": DESCRIPTION,
    }
    graph |= {"og:url": f"{base}/", "og:image": picture, "og:image:type": "image/jpeg"}
    graph |= {"og:image:width": str(width), "og:image:height": str(height), "og:image:alt": PICTURE_WORDS}
    lines = [f"<title>{html.escape(TITLE)}</title>"]
    lines += [f'<meta name="{name}" content="{html.escape(text)}">' for name, text in named.items()]
    lines += [f'<meta property="{name}" content="{html.escape(text)}">' for name, text in graph.items()]
    lines += [
        f'<meta name="theme-color" content="{colour}" media="(prefers-color-scheme: {look})">'
        for look, colour in GROUNDS.items()
    ]
    lines += [f'<link rel="icon" type="image/svg+xml" href=".{address(ICON.name)}">']
    return "\n" + "\n".join(lines) + "\n"


@cache
def files() -> dict[str, bytes]:
    """What is served beside the page, by name."""
    return {file.name: file.read_bytes() for file in (ICON, PICTURE)}


def address(name: str) -> str:
    """Where a file is served, without the prefix under which a proxy may serve the app; it changes with the file."""
    return f"{ADDRESS}/{hashlib.sha256(files()[name]).hexdigest()[:16]}/{name}"


def serve(request: HttpRequest) -> Response | None:
    """A file, which browsers may keep for good; None where the address is that of none."""
    name = request.path_params["name"]
    if name not in files() or not address(name).endswith(f"/{request.path_params['digest']}/{name}"):
        return None
    return Response(files()[name], 200, FOR_GOOD, _TYPES[name])
