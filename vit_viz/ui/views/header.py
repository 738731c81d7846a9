"""The header: which model, which image at which size, what the model says about it, and whether the attention is proven."""

from __future__ import annotations

import re
import secrets
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

import gradio as gr

from vit_viz import samples
from vit_viz.errors import ImageError, VitVizError
from vit_viz.session import Session
from vit_viz.ui import choices
from vit_viz.ui.boundary import escaped, sentence
from vit_viz.ui.loading import Loads
from vit_viz.ui.page import DRAWING, QUICK, Page
from vit_viz.ui.parts import Facts, Samples, Top
from vit_viz.ui.parts.loading import Loading
from vit_viz.ui.payload import facts_value
from vit_viz.ui.state import ViewState
from vit_viz.ui.upload import Inbox, SafeImage
from vit_viz.ui.views import models

MODES = [("fit: whole image", "fit"), ("crop: as evaluated", "crop"), ("stretch to the input", "stretch")]
_OWNER = re.compile(r"[0-9a-f]{48}")


@dataclass(frozen=True)
class Header:
    """The components of the header."""

    model: gr.Dropdown
    image: SafeImage
    samples: Samples
    mode: gr.Dropdown
    top: Top
    loading: Loading
    facts: Facts


def build(page: Page) -> Header:
    """Lay out the header."""
    session = page.session
    with gr.Row(elem_id="vv-header", equal_height=False):
        with gr.Column(scale=0, min_width=190, elem_classes="vv-pickers"):
            model = model_picker(session)
            if choices.own_hub_ids():
                gr.HTML("or a Hub id: owner/name", elem_classes="vv-hint", apply_default_css=False)
            mode = gr.Dropdown(MODES, value="fit", label="size", elem_id="vv-mode")
        with (
            gr.Column(scale=0, min_width=300, elem_classes="vv-image-column"),
            gr.Row(elem_id="vv-image-row"),
        ):
            image = SafeImage(
                label="photo",
                show_label=False,
                sources=["upload", "clipboard", "webcam"],
                type="filepath",
                height=112,
                placeholder="Drop, paste or click",
                buttons=[],
                webcam_options=gr.WebcamOptions(mirror=False),
                elem_id="vv-upload",
            )
            thumbnails = Samples(choices.sample_buttons(""), elem_id="vv-samples")
        with gr.Column(scale=1, min_width=240, elem_classes="vv-top-column"):
            top = Top(elem_id="vv-top")
        with gr.Column(scale=1, min_width=240):
            loading = Loading(elem_id="vv-loading")
            facts = Facts(elem_id="vv-facts")
    return Header(model, image, thumbnails, mode, top, loading, facts)


def model_picker(session: Session) -> gr.Dropdown:
    """The models that are offered; where visitors may name models of the Hub, it takes any text."""
    return gr.Dropdown(
        choices.model_choices(session),
        value=choices.default_name(session),
        label="model",
        filterable=True,
        allow_custom_value=choices.own_hub_ids(),
        container=True,
        elem_id="vv-model",
    )


def wire(header: Header, page: Page) -> None:
    """Let the header choose what the page is about, and say what it is."""
    loads = Loads(page.session)
    models.wire(header.model, header.loading, page, loads)
    page.action(header.mode.input, lambda view, mode: view.on_subject(mode=mode), inputs=[header.mode])
    page.gesture(header.samples.choose, lambda view, _, data: view.on_subject(image=_sample(data)))
    _wire_arrival(header, page, loads)
    _wire_upload(header, page)

    page.drawing("subject", _show, [header.top, header.facts, header.samples, header.model, header.mode])


def _show(page: Page, view: ViewState, owner: str) -> Iterator[tuple[Any, ...]]:
    """First what is being done, then the facts, or the one sentence that says why there are none."""
    busy = {"turn": view.turn, "busy": f"Running {view.model} on {_image_words(view)} …"}
    pickers = (
        choices.sample_buttons(view.image),
        gr.update(value=view.model),
        gr.update(value=view.mode),
    )
    yield busy, busy, *pickers
    try:
        facts = facts_value(page.session, view, owner, notes=view.notes)
    except Exception as error:
        facts = {"turn": view.turn, "error": sentence(error), "notes": list(view.notes)}
    yield facts, facts, gr.skip(), gr.skip(), gr.skip()


def _image_words(view: ViewState) -> str:
    return f"the sample {view.image}" if view.image in samples.sample_names() else "your image"


def _sample(data: dict[str, Any]) -> str:
    name = str(data.get("name", ""))
    if name not in samples.sample_names():
        raise ImageError(f"There is no sample {name[:40]!r}.")
    return name


def _wire_arrival(header: Header, page: Page, loads: Loads) -> None:
    """A page that opens, or goes Back or Forward, shows what its address says, once the model of that address is there."""

    async def arrive(
        request: gr.Request, before: ViewState, known: str, event: gr.EventData
    ) -> AsyncIterator[tuple[Any, ...]]:
        data = dict(event._data or {})
        said = str(data.get("owner", ""))
        owner = said if _OWNER.fullmatch(said) else known or secrets.token_hex(24)
        page_id = request.session_hash or ""
        page.pages.open(page_id, owner)
        asked, problems = arrived(page, str(data.get("search", "")), owner)
        outcome = models.Outcome(asked.model)
        async for value in models.fetched(page, loads, page_id, outcome):
            yield owner, gr.skip(), *(gr.skip() for _ in page.outputs), value
        if outcome.is_replaced:
            return
        view = asked
        if outcome.problem:
            view = asked.on_subject(model=before.model or choices.default_name(page.session))
            problems = (*problems, outcome.problem)

        def newest_with(newest: ViewState) -> ViewState:
            """What the address says; where the visitor did something meanwhile, only its model."""
            base = view if newest.turn == before.turn else newest.on_subject(model=view.model)
            return base.next_turn(turn=newest.turn + 1, notes=problems, awaits_upload=asked.awaits_upload)

        seen, view = page.latest.apply(page_id, before, newest_with)
        link_of = asked if seen.turn == before.turn else seen
        yield owner, view.turn, *page.after(link_of, view, push=False), {}

    inputs, outputs = [page.view, page.owner], [page.owner, page.arrival, *page.outputs, header.loading]
    page.address.arrive(arrive, inputs, outputs, **QUICK)


def arrived(page: Page, search: str, owner: str) -> tuple[ViewState, tuple[str, ...]]:
    """The view of an address, and one sentence for each thing in it that is not possible."""
    view, problems = ViewState.from_address(search)
    view, more = choices.settled(page.session, view)
    try:
        page.session.image(view.image, owner=owner)
    except VitVizError:
        more += (
            "The link is to a picture that was uploaded elsewhere or is no longer kept; "
            "choose that picture again and the rest of the view comes back.",
        )
        view = view.next_turn(image=choices.first_image(), awaits_upload=True)
    return view, problems + more


def _wire_upload(header: Header, page: Page) -> None:
    """A picture that is dropped, pasted or taken becomes the image; the box is empty again for the next one."""
    inbox = Inbox()

    def bring(request: gr.Request, view: ViewState, owner: str, path: str | None) -> tuple[Any, ...]:
        empty = gr.update(value=None)
        if path is None:
            return gr.skip(), *(gr.skip() for _ in page.outputs)
        try:
            image = page.session.add_upload(inbox.take(path), owner=owner)
        except Exception as error:  # not raised on: the box has to be emptied too
            gr.Warning(escaped(error), title="This picture was not taken")
            return empty, *(gr.skip() for _ in page.outputs)

        def look_at(newest: ViewState) -> ViewState:
            return newest.next_turn(image=image) if newest.awaits_upload else newest.on_subject(image=image)

        return empty, *page.changed(request, view, look_at)

    options = DRAWING | {"trigger_mode": "once", "show_progress": "minimal"}
    inputs = [page.view, page.owner, header.image]
    header.image.input(bring, inputs, [header.image, *page.outputs], **options)
