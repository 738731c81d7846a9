"""The header: which model, which image at which size, what the model says about it, and whether the attention is proven."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import gradio as gr

from vit_viz import samples
from vit_viz.errors import ImageError, VitVizError
from vit_viz.session.handles import OWNER
from vit_viz.session.session import Session
from vit_viz.ui.edge.image_input import UploadedImage
from vit_viz.ui.edge.user_errors import escaped, guarded, sentence
from vit_viz.ui.header import bring, edited, models, size
from vit_viz.ui.header.bring import thumbnails
from vit_viz.ui.header.loading import Loads
from vit_viz.ui.kit import Bring, Edited, Facts, Loading, Opener, Samples, Top, words
from vit_viz.ui.page import QUICK, Page
from vit_viz.ui.payload import facts_value
from vit_viz.views import choices
from vit_viz.views.state import ViewState

MARK = '<h1 class="vv-mark">vit<span>_</span>viz</h1>'
SENTENCE_HTML = (
    '<p class="vv-sentence">See what a Vision Transformer looks at. '
    '<span class="vv-to-point">Point at the photo.</span><span class="vv-to-tap">Tap the photo.</span></p>'
)


@dataclass(frozen=True)
class Header:
    """The components of the header."""

    model: gr.Dropdown
    short: gr.HTML
    samples: Samples
    opener: Opener
    image: UploadedImage
    page_wide: Bring
    size: size.SizeControl
    facts: Facts
    loading: Loading
    top: Top
    edited: Edited


def build(page: Page) -> Header:
    """Lay out the header: one line of what the page is about, one of what the model says; on a phone model and facts fold."""
    session = page.session
    with gr.Row(elem_id="vv-header", equal_height=False):
        gr.HTML(MARK, elem_id="vv-brand", apply_default_css=False)
        with gr.Column(elem_id="vv-more", elem_classes="vv-panel", min_width=0):
            with gr.Column(elem_id="vv-model-place", min_width=0):
                model = model_picker(session)
                short = gr.HTML("", elem_id="vv-short", apply_default_css=False)
                if choices.own_hub_ids():
                    gr.HTML("or a Hub id: owner/name", elem_classes="vv-hint", apply_default_css=False)
            sizes = size.build()
            facts = Facts(elem_id="vv-facts")
        samples_shown, opener, image, page_wide = _tray(page)
        Opener(
            {"words": "Menu", "label": "Menu: model, size, link, help", "panel": "vv-more"}, elem_id="vv-menu"
        )
        gr.HTML(SENTENCE_HTML, elem_id="vv-sentence", apply_default_css=False)
        top = Top(elem_id="vv-top")
        changes = Edited(elem_id="vv-edited")
        loading = Loading(elem_id="vv-loading")
    return Header(model, short, samples_shown, opener, image, page_wide, sizes, facts, loading, top, changes)


def model_picker(session: Session) -> gr.Dropdown:
    """The models that are offered; where visitors may name models of the Hub, it takes any text."""
    return gr.Dropdown(
        choices.model_choices(session),
        value=choices.default_name(session),
        label="model",
        show_label=False,
        filterable=True,
        allow_custom_value=choices.own_hub_ids(),
        container=False,
        elem_id="vv-model",
    )


def _tray(page: Page) -> tuple[Samples, Opener, UploadedImage, Bring]:
    """The pictures of this visit, and a + that brings one more."""
    with gr.Row(elem_id="vv-tray", equal_height=False):
        shown = Samples(thumbnails(page.session, "", ""), elem_id="vv-samples")
        with gr.Column(elem_id="vv-bring-place", elem_classes="vv-anchor", min_width=0):
            opener = Opener(_bring_value(0), elem_id="vv-bring-opener")
            with gr.Column(elem_id="vv-bring", elem_classes=["vv-panel", "vv-popover"], min_width=0):
                image = UploadedImage(
                    label="photo",
                    show_label=False,
                    sources=["upload", "webcam"],
                    type="filepath",
                    height=200,
                    placeholder="Drop or click",
                    buttons=[],
                    webcam_options=gr.WebcamOptions(mirror=False),
                    elem_id="vv-upload",
                )
                page_wide = Bring(elem_id="vv-page-wide")
    return shown, opener, image, page_wide


def _bring_value(revision: int) -> dict[str, Any]:
    label = "Bring a picture: a file, the clipboard, or the camera"
    return {"words": "+", "label": label, "panel": "vv-bring", "revision": revision}


def wire(header: Header, page: Page) -> None:
    """Let the header choose what the page is about, and say what it is."""
    loads = Loads(page.session)
    models.wire(header.model, header.loading, page, loads)
    size.wire(header.size, page)
    _wire_tray(header, page)
    _wire_arrival(header, page, loads)
    bring.wire(header.page_wide, header.image, page)
    edited.wire(header.edited, page)

    outputs = [
        header.top,
        header.facts,
        header.samples,
        header.opener,
        header.model,
        *header.size.outputs,
        header.short,
    ]
    page.drawing("subject", _show, outputs)
    _wire_refusal(header, page)


def _show(page: Page, view: ViewState, owner: str) -> Iterator[tuple[Any, ...]]:
    """First what is being done, then the facts, or the one sentence that says why there are none."""
    busy = {"revision": view.revision, "busy": f"Running {view.model} on {_image_words(page, view, owner)} …"}
    offered = thumbnails(page.session, view.image, owner)
    pickers = (offered, _bring_value(view.revision), gr.update(value=view.model))
    yield busy, busy, *pickers, gr.update(value=view.mode), gr.skip(), gr.skip()
    try:
        facts = facts_value(page.session, view, owner, notes=view.notes)
    except Exception as error:
        facts = {"revision": view.revision, "error": sentence(error), "notes": list(view.notes)}
    unchanged = tuple(gr.skip() for _ in pickers)
    sizes = size.updates(page.session, view, owner)
    yield facts, facts, *unchanged, *sizes, words.plain(facts.get("short", ""))


def _wire_refusal(header: Header, page: Page) -> None:
    """Draw anew, with the sentence in place of the picture, where a check ended with a refusal."""

    @guarded
    def redraw(request: gr.Request, view: ViewState) -> tuple[Any, ...]:
        return page.redrawn(request, view)

    header.facts.refused(redraw, [page.view], page.outputs, **QUICK)


def _image_words(page: Page, view: ViewState, owner: str) -> str:
    if view.image in samples.sample_names():
        return f"the sample {view.image}"
    with suppress(ImageError):
        return page.session.name_of(view.image, owner=owner)
    return "your image"


def _wire_tray(header: Header, page: Page) -> None:
    """A picture of the tray becomes the image; one that is no longer kept leaves the tray, and the page stays as it is."""

    @guarded
    def choose(request: gr.Request, view: ViewState, event: gr.EventData) -> tuple[Any, ...]:
        owner, image = OWNER.get(), str(dict(event._data or {}).get("id", ""))
        try:
            page.session.image(image, owner=owner)
        except ImageError as error:
            gr.Warning(escaped(error), title="This picture is not here any more")
            return thumbnails(page.session, view.image, owner), *(gr.skip() for _ in page.outputs)
        return gr.skip(), *page.changed(request, view, lambda newest: newest.on_subject(image=image))

    header.samples.choose(choose, [page.view], [header.samples, *page.outputs], **QUICK)


def _wire_arrival(header: Header, page: Page, loads: Loads) -> None:
    """A page that opens, or goes Back or Forward, shows what its address says, once the model of that address is there."""

    async def arrive(
        request: gr.Request, before: ViewState, event: gr.EventData
    ) -> AsyncIterator[tuple[Any, ...]]:
        data, page_id = dict(event._data or {}), request.session_hash or ""
        asked, problems = arrived(page, str(data.get("search", "")), OWNER.get())
        outcome = models.Outcome(asked.model)
        async for value in models.fetched(page, loads, page_id, outcome):
            yield gr.skip(), *(gr.skip() for _ in page.outputs), value
        if outcome.is_replaced:
            return
        view = asked
        if outcome.problem:
            view = asked.on_subject(model=before.model or choices.default_name(page.session))
            problems = (*problems, outcome.problem)

        def newest_with(newest: ViewState) -> ViewState:
            """The view of the address; where the visitor has acted meanwhile, only its model."""
            base = view if newest.revision == before.revision else newest.on_subject(model=view.model)
            return base.after_action(
                revision=newest.revision + 1, notes=problems, awaits_upload=asked.awaits_upload
            )

        seen, view = page.views.apply(page_id, before, newest_with)
        link_of = asked if seen.revision == before.revision else seen
        yield view.revision, *page.after(link_of, view, push=False), {}

    outputs = [page.arrival, *page.outputs, header.loading]
    page.address.arrive(arrive, [page.view], outputs, **QUICK)


def arrived(page: Page, search: str, owner: str) -> tuple[ViewState, tuple[str, ...]]:
    """The view of an address, and one sentence for each thing in it that is not possible."""
    view, problems = ViewState.from_address(search, tabs=[tab.name for tab in page.tabs])
    view, more = choices.settled(page.session, view)
    try:
        page.session.image(view.image, owner=owner)
    except VitVizError:
        more += (
            "The link is to a picture that was uploaded elsewhere or is no longer kept; "
            "choose that picture again and the rest of the view comes back.",
        )
        view = view.after_action(image=choices.first_image(), awaits_upload=True)
    return view, problems + more
