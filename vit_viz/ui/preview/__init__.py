"""How the page looks where only a link to it is shown: title, sentence, picture and icon, in the HTML itself."""

from __future__ import annotations

import html
import re
from functools import cache
from pathlib import Path

from vit_viz.ui.scripts import file_address

TITLE = "vit_viz: see what a Vision Transformer looks at"
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

ICON = Path(__file__).with_name("icon.svg")
PICTURE = Path(__file__).with_name("card.jpg")

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
    """Where a file is served; see `file_address`."""
    return file_address(name, files()[name])
