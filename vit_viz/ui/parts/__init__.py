"""Small components of the page: each is a gr.HTML from a template and a script that lie beside this file.

Templates are static and values reach the page through `textContent` only, because Gradio evaluates whatever stands in a template.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gradio as gr

_HERE = Path(__file__).parent


def stylesheet() -> str:
    """The rules of the page, for `launch(css=...)`."""
    return "\n".join(
        (_HERE / name).read_text("utf-8")
        for name in ("page.css", "walkthrough.css", "explain.css", "loading.css")
    )


class Part(gr.HTML):
    """A gr.HTML made from <name>.html and <name>.js."""

    template = ""

    def __init__(self, value: Any = None, **options: Any) -> None:
        super().__init__(
            value,
            html_template=(_HERE / f"{self.template}.html").read_text("utf-8"),
            js_on_load=(_HERE / f"{self.template}.js").read_text("utf-8"),
            apply_default_css=False,
            elem_classes=["vv-part", f"vv-part-{self.template}"],
            **options,
        )


class Picture(Part):
    """A picture with caption, colour bar, rings and a link to save it; events `pick` and `step`."""

    template = "picture"


class Samples(Part):
    """Thumbnails of the sample images; event `choose`."""

    template = "samples"


class Top(Part):
    """The most probable classes."""

    template = "top"


class Facts(Part):
    """Model card, proof badge, link, what is being done, and what went wrong."""

    template = "facts"


class Address(Part):
    """The address bar and the identity of the tab; event `arrive`."""

    template = "address"


class PlotClicks(Part):
    """Says which point of a plotly figure was clicked; event `point`."""

    template = "plot_clicks"
