"""The page of a site, whose parts lie beside it or stand in it: what it shows, what it may do, and the values of its script."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from vit_viz.browser.published import published_models
from vit_viz.explorer import colour_tables, template
from vit_viz.explorer.value import described, explorer_options, link_fields
from vit_viz.figures.styles import lighting
from vit_viz.images import MAX_ASPECT, MIN_SIDE
from vit_viz.offline.bundle import bundled
from vit_viz.offline.page import explorer_style, script_json
from vit_viz.views.choices import MODES

_MOST_PIXELS = 16_000_000
"""A browser on a phone draws no more on one canvas; larger photos are reduced to it."""

_PACKAGE = Path(__file__).resolve().parents[1]


def composed_page(facts: Mapping[str, Any], *, policy: str, style: str, script: str, keeping: str) -> bytes:
    """The page, in UTF-8.

    Args:
        facts: models, pictures, and which of these is the first.
        policy: what it may load (Content-Security-Policy).
        style, script: the elements with which it loads or holds its look and its program.
        keeping: what the browser keeps of it, in words.
    """
    modes = "".join(f'<option value="{mode}">{html.escape(words)}</option>' for words, mode in MODES)
    own_facts = {
        "tables": colour_tables(),
        "fields": link_fields(),
        "options": [described(option) for option in explorer_options()],
        "lighting": lighting(),
        "published": published_models(),
        "limits": {"most_pixels": _MOST_PIXELS, "min_side": MIN_SIDE, "max_aspect": MAX_ASPECT},
    }
    parts = {
        "policy": policy,
        "style": style,
        "script": script,
        "keeping": html.escape(keeping),
        "modes": modes,
        "explorer": template("vv"),
        "facts": script_json(own_facts | dict(facts)),
    }
    page = (_PACKAGE / "site" / "index.html").read_text("utf-8")
    # in one pass, so that text which looks like a place stays text
    return re.sub(r"@@(\w+)@@", lambda match: parts[match[1]], page).encode()


@cache
def program(start: str) -> str:
    """The script of the page, which ends with a call of `start`."""
    return bundled("site/site.js", f"entry.{start}();")


@cache
def worker_program() -> str:
    """The script of the engine's worker."""
    return bundled("site/worker.js", "")


@cache
def helper_program() -> str:
    """The script of the workers that share the engine's work, on pages that are isolated."""
    return bundled("browser/helper.js", "")


def kernels() -> dict[str, bytes]:
    """The engine's arithmetic, for any browser and for those that know relaxed SIMD."""
    folder = _PACKAGE / "browser"
    names = {"plain": "kernels.wasm", "relaxed": "kernels-relaxed.wasm"}
    return {kind: (folder / name).read_bytes() for kind, name in names.items()}


@cache
def look() -> str:
    """The rules of the page: the explorer's, those of the header's parts, and the site's own."""
    others = ("web/header/header.css", "web/header/says.css", "site/site.css")
    return "\n".join([explorer_style(), *((_PACKAGE / name).read_text("utf-8") for name in others)])
