"""Bringing a picture: dropped or pasted anywhere on the page, chosen as a file, or taken by the camera; and its thumbnail."""

from __future__ import annotations

import base64
import io
from typing import Any

import gradio as gr
from PIL import Image

from vit_viz import samples
from vit_viz.errors import ImageError
from vit_viz.session.handles import OWNER, VISITOR
from vit_viz.session.session import Session
from vit_viz.ui.edge.image_input import GONE, UploadedImage, read_upload
from vit_viz.ui.edge.user_errors import escaped
from vit_viz.ui.kit import Bring
from vit_viz.ui.page import DRAWING, Page
from vit_viz.views.state import ViewState


def wire(bring: Bring, box: UploadedImage, page: Page) -> None:
    """Let a picture that comes in any of these ways become the image; the box is empty again for the next one."""

    def from_box(request: gr.Request, view: ViewState, path: str | None) -> tuple[Any, ...]:
        if path is None:
            return gr.skip(), *(gr.skip() for _ in page.outputs)
        return gr.update(value=None), *_taken(page, request, view, path)

    def from_page(request: gr.Request, view: ViewState, event: gr.EventData) -> tuple[Any, ...]:
        data = dict(event._data or {})
        path = str(data.get("upload", ""))  # not "path": Gradio takes that for a file of its own
        is_theirs = page.files.belongs_to(path, VISITOR.get())
        return {"seq": data.get("seq", 0)}, *_taken(page, request, view, path if is_theirs else None)

    options = DRAWING | {"trigger_mode": "multiple"}  # "once" would drop a second picture that comes soon
    box.input(from_box, [page.view, box], [box, *page.outputs], **options | {"show_progress": "minimal"})
    bring.bring(from_page, [page.view], [bring, *page.outputs], **options)


def _taken(page: Page, request: gr.Request, view: ViewState, path: str | None) -> tuple[Any, ...]:
    """The values for the page's outputs once an uploaded file has become the image; else one sentence, and nothing changes."""
    try:
        if path is None:
            raise ImageError(GONE)
        picture = read_upload(page.files, path, read=page.session.decode)
        image = page.session.add_upload(picture, owner=OWNER.get(), file_name=path)
    except Exception as error:  # not raised on: the page has to hear that it may bring the next one
        gr.Warning(escaped(error), title="This picture was not taken")
        return tuple(gr.skip() for _ in page.outputs)

    def look_at(newest: ViewState) -> ViewState:
        return newest.after_action(image=image) if newest.awaits_upload else newest.on_subject(image=image)

    return page.changed(request, view, look_at)


_THUMBNAIL = 96  # pixels: twice what the page shows, for dense screens


def thumbnails(session: Session, chosen: str, owner: str) -> dict[str, Any]:
    """The value of the Samples component: the samples, then the pictures of this owner that are still kept."""
    pictures: list[dict[str, Any]] = []
    for name in samples.sample_names():
        thumbnail = _thumbnail(session, name, *samples.sample_and_hash(name))
        pictures.append({"id": name, "name": name, "thumbnail": thumbnail})
    for image, stored in session.uploads.of(owner).items():
        thumbnail = _thumbnail(session, image, stored.image, stored.digest)
        pictures.append({"id": image, "name": stored.name, "thumbnail": thumbnail, "own": True})
    return {"pictures": pictures, "chosen": chosen}


def _thumbnail(session: Session, image: str, picture: Image.Image, digest: str) -> str:
    """The middle of a picture, small, as an address that holds it whole."""
    return session.kept(("thumbnail", digest), lambda: _small_square(picture), image, digest, size_of=len)


def _small_square(picture: Image.Image) -> str:
    side = min(picture.size)
    left, top = (picture.width - side) // 2, (picture.height - side) // 2
    square = picture.resize(
        (_THUMBNAIL, _THUMBNAIL),
        Image.Resampling.LANCZOS,
        (left, top, left + side, top + side),
        reducing_gap=2.0,
    )
    file = io.BytesIO()
    square.save(file, "JPEG", quality=80)
    return "data:image/jpeg;base64," + base64.b64encode(file.getvalue()).decode("ascii")
