"""Bringing a picture: dropped or pasted anywhere on the page, chosen as a file, or taken by the camera."""

from __future__ import annotations

from typing import Any

import gradio as gr

from vit_viz.errors import ImageError
from vit_viz.session.handles import OWNER, VISITOR
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
