"""Surgery in the Heads tab: heads off or replaced, temperatures, forbidden views; the edited model is what every tab then shows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import gradio as gr

from vit_viz.drawing.pictures import screen_photo
from vit_viz.geometry import TokenLayout
from vit_viz.session.edits import HIGHEST_TEMPERATURE, LOWEST_TEMPERATURE, NO_EDITS, ModelEdits
from vit_viz.session.handles import OWNER
from vit_viz.session.session import Session
from vit_viz.ui.edge.user_errors import guarded, sentence
from vit_viz.ui.kit import Surgery
from vit_viz.ui.page import QUICK, Page
from vit_viz.ui.routes import PREFIX
from vit_viz.views.choices import subject_of
from vit_viz.views.state import ViewState

_LABELS = {
    "class": "class token",
    "patches": "all patches",
    "registers": "all registers",
    "everything": "all tokens",
}


def wire(surgery: Surgery, page: Page) -> None:
    """Let the switches change the model that the page is about; what is not possible stays in the panel, with the reason."""

    @guarded
    def edit(request: gr.Request, view: ViewState, event: gr.EventData) -> tuple[Any, ...]:
        words = dict(event._data or {}).get("edits", "")
        try:
            edits = possible(page.session, view, OWNER.get(), words)
        except Exception as error:
            told = panel_value(page.session, view, OWNER.get()) | {"error": sentence(error)}
            return told, *(gr.skip() for _ in page.outputs)
        changed = page.changed(request, view, lambda newest: newest.after_action(edits=str(edits)))
        return gr.skip(), *changed

    surgery.edit(edit, [page.view], [surgery, *page.outputs], **QUICK)
    page.drawing("heads", _draw, [surgery])


def possible(session: Session, view: ViewState, owner: str, words: object) -> ModelEdits:
    """Edits in words, where the model of a view can have them.

    Raises:
        ParameterError: it cannot; the sentence says why.
    """
    edits = ModelEdits.parse(words)
    edits.of(session.trace_of(replace(subject_of(session, view, owner), edits=NO_EDITS)))
    return edits


def _draw(page: Page, view: ViewState, owner: str) -> Iterator[dict[str, Any]]:
    try:
        yield panel_value(page.session, view, owner)
    except Exception as error:
        yield {"revision": view.revision, "layers": 0, "error": sentence(error)}


def panel_value(session: Session, view: ViewState, owner: str) -> dict[str, Any]:
    """What there is to edit, and what is edited; also where a link asks for edits that this model cannot have."""
    subject = replace(subject_of(session, view, owner), edits=NO_EDITS)
    trace, edits, screen = (
        session.trace_of(subject),
        ModelEdits.parse(view.edits),
        screen_photo(session, subject),
    )
    assert trace.crop_box is not None  # a session traces photos, which have one
    return {
        "revision": view.revision,
        "layers": trace.num_layers,
        "heads": trace.num_heads,
        "grid": list(trace.layout.grid),
        "crop": trace.crop_box.to_dict(),
        "photo": f"{PREFIX}/photo/{session.handles.issue(subject.photo)}",
        "photo_size": [screen.height, screen.width],
        "name": session.name_of(subject.image, owner=owner),
        "tokens": _tokens(trace.layout),
        "off": [[layer, head, state] for (layer, head), state in edits.heads],
        "temperatures": [list(pair) for pair in edits.temperatures],
        "lowest": LOWEST_TEMPERATURE,
        "highest": HIGHEST_TEMPERATURE,
        "forbidden": [str(one) for one in edits.forbidden],
        "error": "",
    }


def _tokens(layout: TokenLayout) -> list[dict[str, str]]:
    """Tokens to choose from by name: those that are no patches, and groups."""
    registers = [name for name in layout.named if name.startswith("register")]
    groups = ["patches", *(["registers"] if len(registers) > 1 else []), "everything"]
    names = [name for name in layout.named if len(layout.named) <= _MANY or name not in layout.suffix]
    return [{"value": name, "label": _LABELS.get(name, name)} for name in (*names, *groups)]


_MANY = 16
"""Named tokens beyond which those behind the patches are left to be typed."""
