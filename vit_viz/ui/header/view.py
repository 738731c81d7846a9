"""The header: which model, which image at which size, what the model says about it, and whether the attention is proven."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import gradio as gr

from vit_viz.session.session import Session
from vit_viz.ui.header.answers import tray
from vit_viz.ui.palette.view import LISTING, listing
from vit_viz.ui.scripts import file_address, loader

_UI = Path(__file__).resolve().parents[1]
_WEB = _UI.parent / "web"

MARK = '<h1 class="vv-mark">vit<span>_</span>viz</h1>'
SENTENCE_HTML = (
    '<p class="vv-sentence">See what a Vision Transformer looks at. '
    '<span class="vv-to-point">Point at the photo.</span><span class="vv-to-tap">Tap the photo.</span></p>'
)


def part(
    name: str,
    *,
    html: str = "",
    script: tuple[str, str] | None = None,
    classes: tuple[str, ...] = (),
    value: Any = None,
    **options: Any,
) -> gr.HTML:
    """A part of the page.

    Args:
        name: path of its template and module below vit_viz/ui, without ending.
        html: its template, where it has no file.
        script: its module and the function that mounts it, where it shares one.
        value: what it shows at first.
        options: `elem_id`, and what its script is told.
    """
    module, function = script or (name, "mount")
    return gr.HTML(
        value,
        html_template=html or (_UI / f"{name}.html").read_text("utf-8"),
        js_on_load=loader((_UI / f"{module}.js").resolve().relative_to(_UI.parent).as_posix(), function),
        apply_default_css=False,
        elem_classes=["vv-part", f"vv-part-{name.rpartition('/')[2]}", *classes],
        **options,
    )


def web_room(name: str, *, piece: str = "", elem_id: str = "", **props: Any) -> gr.HTML:
    """A room that keeps its state in the browser and asks for what it shows: vit_viz/web/NAME/room.js.

    Args:
        name: of its folder; a room.html there is what it begins with.
        piece: of a room that stands on several places of its tab: PIECE.js and PIECE.html.
        props: what its script is told.
    """
    module = piece or "room"
    page = _WEB / name / f"{module}.html"
    return part(
        "kit/room",
        html=page.read_text("utf-8") if page.exists() else "<div></div>",
        script=(f"../web/{name}/{module}", "mount"),
        classes=(f"vv-part-{piece}",) if piece else (),
        elem_id=elem_id or f"vv-{piece or name}",
        **props,
    )


def build(session: Session, tabs: dict[str, str]) -> None:
    """Lay out the header: one line of what the page is about, one of what the model says; on a phone model and facts fold.

    Args:
        tabs: their labels by their names.
    """
    header = partial(web_room, "header")
    with gr.Row(elem_id="vv-header", equal_height=False):
        gr.HTML(MARK, elem_id="vv-brand", apply_default_css=False)
        with gr.Column(elem_id="vv-more", elem_classes="vv-panel", min_width=0):
            header(piece="model")
            with gr.Column(elem_id="vv-size-place", elem_classes="vv-anchor", min_width=0):
                _opener("vv-size-opener", "Size", "Size of the photo for the model", opens="vv-size")
                with gr.Column(elem_id="vv-size", elem_classes=["vv-panel", "vv-popover"], min_width=0):
                    header(piece="sizes")
            header(piece="facts")
        with gr.Row(elem_id="vv-tray", equal_height=False):
            samples = json.dumps(
                tray(session, "", "")
            )  # as text: Gradio's page would watch objects, which takes longer
            header(piece="tray", elem_id="vv-samples", samples=samples)
            with gr.Column(elem_id="vv-bring-place", elem_classes="vv-anchor", min_width=0):
                label = "Bring a picture: a file, the clipboard, or the camera"
                _opener("vv-bring-opener", "+", label, opens="vv-bring")
                with gr.Column(elem_id="vv-bring", elem_classes=["vv-panel", "vv-popover"], min_width=0):
                    header(piece="upload")
        web_room("palette", piece="palette", tabs=tabs, questions=file_address(LISTING, listing()))
        label = "Menu: model, size, link, help"
        _opener("vv-menu", "\N{MIDLINE HORIZONTAL ELLIPSIS}", label, opens="vv-more")
        gr.HTML(SENTENCE_HTML, elem_id="vv-sentence", apply_default_css=False)
        for name in ("top", "edited", "loading"):
            header(piece=name)


def _opener(elem_id: str, words: str, label: str, *, opens: str) -> None:
    """A button that opens the part of the page with the id `opens`."""
    value = {"words": words, "label": label, "panel": opens}
    part("kit/opener", script=("kit/parts", "mountOpener"), value=value, elem_id=elem_id)
