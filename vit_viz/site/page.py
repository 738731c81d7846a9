"""The page of a site, whose parts lie beside it or stand in it: what it shows, what it may do, and the values of its script."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from vit_viz.browser.published import published_models
from vit_viz.explorer.value import described, explorer_options, link_fields
from vit_viz.figures.styles import lighting
from vit_viz.images import MAX_ASPECT, MIN_SIDE, Mode
from vit_viz.offline.bundle import bundled
from vit_viz.offline.page import script_json
from vit_viz.offline.stylesheet import bare, stylesheet
from vit_viz.ui.help import listing as help_listing
from vit_viz.ui.page import page_value
from vit_viz.ui.palette import view as palette
from vit_viz.ui.rooms import TABS

_MOST_PIXELS = 16_000_000
"""A browser on a phone draws no more on one canvas; larger photos are reduced to it."""

_SENTENCES = ("web/explain/sentences.js", "web/heads/written.js")
"""What only models with a text tower use, of which a site has none."""

_PACKAGE = Path(__file__).resolve().parents[1]


def composed_page(
    facts: Mapping[str, Any],
    *,
    listings: Mapping[str, str],
    mode: Mode = "fit",
    policy: str,
    style: str,
    script: str,
    keeping: str,
) -> bytes:
    """The page, in UTF-8.

    Args:
        facts: models, pictures, and which of these is the first.
        listings: where the listings are, by their names in `listings`.
        mode: how a picture becomes the model's input at first.
        policy: what it may load (Content-Security-Policy).
        style, script: the elements with which it loads or holds its look and its program.
        keeping: what the browser keeps of it, in words.
    """
    own_facts = {
        "fields": link_fields(
            {
                "model": {"usual": facts["models"][0]["name"]},
                "image": {"usual": facts["first"]},
                "mode": {"default": mode},
                "tab": {"choices": [tab.name for tab in TABS]},
            }
        ),
        # as text: as the app's page is told
        "page": json.dumps(
            page_value(TABS, questions=listings["questions"], help_listing=listings["help"]),
            separators=(",", ":"),
        ),
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
        "facts": script_json(own_facts | dict(facts)),
    }
    page = (_PACKAGE / "site" / "index.html").read_text("utf-8")
    # in one pass, so that text which looks like a place stays text
    return re.sub(r"@@(\w+)@@", lambda match: parts[match[1]], page).encode()


@cache
def program(start: str) -> str:
    """The script of the page, which ends with a call of `start`."""
    page = page_value(TABS, questions="", help_listing="")
    rooms = sorted({one["module"] for one in (*page["tabs"], *page["parts"])})
    return bundled("site/site.js", f"window.vit_viz = need;\nentry.{start}();", *rooms, without=_SENTENCES)


@cache
def worker_program() -> str:
    """The script of the engine's worker, with its arithmetic, for any browser and for those that know relaxed SIMD."""
    names = {"plain": "kernels.wasm", "relaxed": "kernels-relaxed.wasm"}
    kernels = {
        kind: base64.b64encode((_PACKAGE / "browser" / name).read_bytes()).decode()
        for kind, name in names.items()
    }
    return bundled("site/worker.js", f"entry.start({json.dumps(kernels)});")


@cache
def helper_program() -> str:
    """The script of the workers that share the engine's work, on pages that are isolated."""
    return bundled("browser/helper.js", "")


@cache
def look() -> str:
    """The rules of the page: the app's, and what Gradio's stand for there."""
    rules = "\n".join(
        [(_PACKAGE / "site" / "site.css").read_text("utf-8"), stylesheet(without={"survey", "sentences"})]
    )
    return bare(rules)


def listings() -> dict[str, bytes]:
    """What the palette finds and what each option is for, as JSON."""
    return {"questions": palette.listing(), "help": help_listing()}
