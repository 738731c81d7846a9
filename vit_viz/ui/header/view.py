"""The header: which model, which image at which size, what the model says about it, and whether the attention is proven."""

from __future__ import annotations

import html
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import gradio as gr
from PIL import Image

from vit_viz import samples
from vit_viz.errors import ImageError, VitVizError
from vit_viz.images.thumbnails import small_square
from vit_viz.lazy import F
from vit_viz.session.edits import NO_EDITS, ModelEdits
from vit_viz.session.handles import OWNER, VISITOR
from vit_viz.session.request import Subject
from vit_viz.session.session import Session
from vit_viz.ui.edge.image_input import GONE, UploadedImage, read_upload
from vit_viz.ui.edge.user_errors import escaped, sentence
from vit_viz.ui.header import models, passes, size
from vit_viz.ui.header.models import Loads
from vit_viz.ui.header.offers import picker_value
from vit_viz.ui.kit import Bring, Edited, Facts, Loading, Models, Opener, Samples, Top
from vit_viz.ui.page import DRAWING, QUICK, Page
from vit_viz.ui.palette.view import build_palette
from vit_viz.ui.payload import facts_value, ranking_value
from vit_viz.views import choices
from vit_viz.views.choices import subject_of
from vit_viz.views.state import ViewState

MARK = '<h1 class="vv-mark">vit<span>_</span>viz</h1>'
SENTENCE_HTML = (
    '<p class="vv-sentence">See what a Vision Transformer looks at. '
    '<span class="vv-to-point">Point at the photo.</span><span class="vv-to-tap">Tap the photo.</span></p>'
)

_HEADS = {"off": "off", "mean": "at its mean", "uniform": "looks at all tokens alike"}
_TOKENS = {"class": "the class token", "everything": "all tokens"}
MOST_PICTURES = 24
"""Files that are taken at once; the rest of them is left."""


def build(page: Page) -> None:
    """Lay out the header: one line of what the page is about, one of what the model says; on a phone model and facts fold.

    It chooses what the page is about, and says what it is.
    """
    session = page.session
    with gr.Row(elem_id="vv-header", equal_height=False):
        gr.HTML(MARK, elem_id="vv-brand", apply_default_css=False)
        with gr.Column(elem_id="vv-more", elem_classes="vv-panel", min_width=0):
            chosen = choices.default_name(session)
            model = Models(
                {"chosen": chosen, "title": chosen, "offered": []}, question=None, elem_id="vv-model"
            )
            sizes = size.build(page)
            facts = Facts(elem_id="vv-facts")
        tray, opener = _tray(page)
        build_palette(page)
        menu = {"words": "\N{MIDLINE HORIZONTAL ELLIPSIS}", "label": "Menu: model, size, link, help"}
        Opener(menu | {"panel": "vv-more"}, elem_id="vv-menu")
        gr.HTML(SENTENCE_HTML, elem_id="vv-sentence", apply_default_css=False)
        top = Top(elem_id="vv-top")
        changes = Edited(elem_id="vv-edited")
        loading = Loading(elem_id="vv-loading")
    page.explain(model, "The model whose attention is seen; an id of the Hub brings another one.")
    loads = Loads(session)
    models.wire(model, loading, page, loads)
    _wire_arrival(loading, page, loads)
    _wire_edited(changes, page)
    page.drawing("subject", passes.follow, [loading])
    page.drawing("subject", _show, [top, facts, tray, opener, model, *sizes])
    facts.refused(page.redrawn, [page.view], page.outputs, **QUICK)  # the sentence in place of the picture


def _tray(page: Page) -> tuple[Samples, Opener]:
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
                    placeholder="Drop or choose a file",
                    buttons=[],
                    webcam_options=gr.WebcamOptions(mirror=False),
                    elem_id="vv-upload",
                )
                page_wide = Bring(elem_id="vv-page-wide")
    page.explain(shown, "Makes this picture the one that is looked at.")
    _wire_tray(shown, page)
    _wire_bringing(page_wide, image, page)
    return shown, opener


def _bring_value(revision: int) -> dict[str, Any]:
    label = "Bring a picture: a file, the clipboard, or the camera"
    return {"words": "+", "label": label, "panel": "vv-bring", "revision": revision}


def _show(page: Page, view: ViewState, owner: str) -> Iterator[tuple[Any, ...]]:
    """First what is being done, then the facts, or the one sentence that says why there are none."""
    busy = {"revision": view.revision, "busy": f"Running {view.model} on {_image_words(page, view, owner)} …"}
    offered = thumbnails(page.session, view.image, owner)
    tray = (offered, _bring_value(view.revision))
    picker = picker_value(page.session, view.model)
    yield busy, busy, *tray, gr.update(value=picker), gr.update(value=view.mode), gr.skip()
    try:
        facts = facts_value(page.session, view, owner, notes=view.notes)
    except Exception as error:
        facts = {"revision": view.revision, "error": sentence(error), "notes": list(view.notes)}
    unchanged = tuple(gr.skip() for _ in tray)
    picker = picker | {"short": facts.get("short", "")}
    yield facts, facts, *unchanged, gr.update(value=picker), *size.updates(page.session, view, owner)


def _image_words(page: Page, view: ViewState, owner: str) -> str:
    if view.image in samples.sample_names():
        return f"the sample {view.image}"
    with suppress(ImageError):
        return page.session.name_of(view.image, owner=owner)
    return "your image"


def _wire_tray(tray: Samples, page: Page) -> None:
    """A picture of the tray becomes the image; one that is no longer kept leaves the tray, and the page stays as it is."""

    def choose(request: gr.Request, view: ViewState, event: gr.EventData) -> tuple[Any, ...]:
        owner, image = OWNER.get(), str(dict(event._data or {}).get("id", ""))
        try:
            page.session.image(image, owner=owner)
        except ImageError as error:
            gr.Warning(escaped(error), title="This picture is not here any more")
            return thumbnails(page.session, view.image, owner), *(gr.skip() for _ in page.outputs)
        return gr.skip(), *page.changed(request, view, lambda newest: newest.on_subject(image=image))

    tray.choose(choose, [page.view], [tray, *page.outputs], **QUICK)


def _wire_arrival(loading: Loading, page: Page, loads: Loads) -> None:
    """A page that opens, or goes Back or Forward, shows what its address says, once the model of that address is there."""

    async def arrive(
        request: gr.Request, before: ViewState, event: gr.EventData
    ) -> AsyncIterator[tuple[Any, ...]]:
        data, page_id = dict(event._data or {}), request.session_hash or ""
        number, told = (
            said if isinstance(said := data.get(name), int) else 0 for name in ("arrival", "told")
        )
        before = page.views.newest(page_id, before)  # Back may come again before its first answer
        asked, problems = choices.arrived(
            page.session, str(data.get("search", "")), OWNER.get(), tabs=[tab.name for tab in page.tabs]
        )
        waiting = loads.begin(page_id, asked.model, number)
        async for value in models.fetched(page, loads, page_id, waiting):
            yield gr.skip(), *(gr.skip() for _ in page.outputs), value
        if waiting.ended == "replaced":
            return
        view = asked
        if waiting.problem:
            view = asked.on_subject(model=before.model or choices.default_name(page.session))
            problems = (*problems, waiting.problem)

        def newest_with(newest: ViewState) -> ViewState:
            """The view of the address; where the visitor has acted meanwhile, only its model."""
            if newest.arrival > number:
                return newest
            base = view if newest.revision == before.revision else newest.on_subject(model=view.model)
            return base.after_action(
                revision=newest.revision + 1,
                arrival=number,
                told=max(newest.told, told),  # it is in the address
                notes=problems,
                awaits_upload=asked.awaits_upload,
            )

        seen, view = page.views.apply(page_id, before, newest_with)
        if view is seen:  # a later arrival came first
            return
        _view, address, *woken = page.after(asked, view, push=False)
        if seen.revision != before.revision:
            address["set"] = view.to_link()
        yield view.revision, view, address | {"arrival": number}, *woken, {}

    outputs = [page.arrival, *page.outputs, loading]
    page.address.arrive(arrive, [page.view], outputs, **QUICK)


def _wire_bringing(bring: Bring, box: UploadedImage, page: Page) -> None:
    """Let a picture that comes in any of these ways become the image; the box is empty again for the next one."""

    def from_box(request: gr.Request, view: ViewState, path: str | None) -> tuple[Any, ...]:
        if path is None:
            return gr.skip(), *(gr.skip() for _ in page.outputs)
        return gr.update(value=None), *_taken(page, request, view, {path: True})

    def from_page(request: gr.Request, view: ViewState, event: gr.EventData) -> tuple[Any, ...]:
        data = dict(event._data or {})
        told = data.get("uploads")  # not "path": Gradio takes that for a file of its own
        paths = [str(path) for path in told[:MOST_PICTURES]] if isinstance(told, list) else []
        brought = {path: page.files.belongs_to(path, VISITOR.get()) for path in paths}
        return {"seq": data.get("seq", 0)}, *_taken(page, request, view, brought)

    options = DRAWING | {"trigger_mode": "multiple"}  # "once" would drop a second picture that comes soon
    box.input(from_box, [page.view, box], [box, *page.outputs], **options | {"show_progress": "minimal"})
    bring.bring(from_page, [page.view], [bring, *page.outputs], **options)


def _taken(page: Page, request: gr.Request, view: ViewState, brought: dict[str, bool]) -> tuple[Any, ...]:
    """The values for the page's outputs once the first of the uploaded files that can be read has become the image.

    The others stay in the tray; of each that cannot be read one sentence says so. Where none can, nothing changes.

    Args:
        brought: paths, and whether this visitor has uploaded them.
    """
    images = []
    for path, is_theirs in brought.items() or [("", False)]:
        try:
            images.append(_added(page, path, is_theirs))
        except Exception as error:  # not raised on: the page has to hear that it may bring the next one
            name = f"{html.escape(Path(path).name)}: " if len(brought) > 1 else ""
            gr.Warning(name + escaped(error), title="This picture was not taken")
    kept = page.session.uploads.of(OWNER.get())  # many large ones push out the first
    image = next((image for image in images if image in kept), None)
    if image is None:
        return tuple(gr.skip() for _ in page.outputs)

    def look_at(newest: ViewState) -> ViewState:
        return newest.after_action(image=image) if newest.awaits_upload else newest.on_subject(image=image)

    return page.changed(request, view, look_at)


def _added(page: Page, path: str, is_theirs: bool) -> str:
    """The id of an uploaded file, which is in the tray from now on."""
    if not is_theirs:
        raise ImageError(GONE)
    picture = read_upload(page.files, path, read=page.session.decode)
    return page.session.add_upload(picture, owner=OWNER.get(), file_name=path)


def thumbnails(session: Session, chosen: str, owner: str) -> dict[str, Any]:
    """The value of the Samples component: the samples, then the pictures of this owner that are still kept; the shape of each."""
    pictures: list[dict[str, Any]] = []
    shown: dict[str, Image.Image] = {}
    for name in samples.sample_names():
        shown[name], digest = samples.sample_and_hash(name)
        pictures.append(
            {"id": name, "name": name, "thumbnail": _thumbnail(session, name, shown[name], digest)}
        )
    for image, stored in session.uploads.of(owner).items():
        shown[image] = stored.image
        thumbnail = _thumbnail(session, image, stored.image, stored.digest)
        pictures.append({"id": image, "name": stored.name, "thumbnail": thumbnail, "own": True})
    if chosen not in shown:
        with suppress(VitVizError):  # one that is not in the tray: a photo of a survey
            shown[chosen] = session.image(chosen or choices.first_image(), owner=owner)
    aspects = {image: picture.width / picture.height for image, picture in shown.items()}
    return {"pictures": pictures, "chosen": chosen, "aspects": aspects}


def _thumbnail(session: Session, image: str, picture: Image.Image, digest: str) -> str:
    """The middle of a picture, small, as an address that holds it whole."""
    return session.kept(("thumbnail", digest), lambda: small_square(picture), image, digest, size_of=len)


# --- what is changed inside the model


def _wire_edited(edited: Edited, page: Page) -> None:
    """Show what is changed, and let it be undone."""
    page.gesture(edited.undo, lambda view, _owner, data: undone(view, str(data.get("words", ""))))
    page.drawing("subject", _show_edits, [edited])


def undone(view: ViewState, words: str) -> ViewState:
    """The view without these edits, or without any where none are named."""
    left = ModelEdits.parse(view.edits).without(ModelEdits.parse(words)) if words else NO_EDITS
    return view.after_action(edits=str(left))


def _show_edits(page: Page, view: ViewState, owner: str) -> Iterator[dict[str, Any]]:
    edits = ModelEdits.parse(view.edits)
    each = [{"words": str(single), "said": _said(single)} for single in edits.singles]
    value: dict[str, Any] = {"revision": view.revision, "words": edits.sentence, "each": each}
    if not edits:
        yield value
        return
    try:
        yield value | _compared(page.session, subject_of(page.session, view, owner))
    except Exception as error:
        yield value | {"error": sentence(error)}


def _said(single: ModelEdits) -> str:
    """One edit in words."""
    for (layer, head), state in single.heads:
        return f"layer {layer}, head {head}: {_HEADS[state]}"
    for layer, temperature in single.temperatures:
        return f"layer {layer}: temperature {temperature:g}, {'sharper' if temperature < 1 else 'more even'}"
    (one,) = single.forbidden
    seeing, seen = (_region(region) for region in (one.seeing, one.seen))
    _, _, layers = str(one).partition("@")
    where = f"in {'layer' if len(one.layers) == 1 else 'layers'} {layers}" if layers else "in all layers"
    return f"{seeing} can no longer see {seen}, {where}"


def _region(region: str) -> str:
    return f"patches {region}" if region[0].isdigit() else _TOKENS.get(region, region)


def _compared(session: Session, subject: Subject) -> dict[str, Any]:
    """The answers before and after, beside each other; of a model without classes, how far its embedding has moved."""
    was = replace(subject, edits=NO_EDITS)
    before, after = (session.top_classes_of(one) for one in (was, subject))
    if before is not None and after is not None:
        return {"before": ranking_value(before), "after": ranking_value(after)}
    first, second = (session.trace_of(one).logits for one in (was, subject))
    if first is None or second is None:
        return {}
    cosine = float(F.cosine_similarity(first, second, dim=0))
    return {"moved": f"Similarity of the photo's embedding with that of the unedited model: {cosine:.3f}."}
