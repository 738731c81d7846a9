"""The patch playground of the Explain tab: brush patches away and see what the model makes of the rest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import gradio as gr

from vit_viz.analyses.faithfulness import patch_order
from vit_viz.errors import ParameterError
from vit_viz.explaining import WithoutPatches
from vit_viz.handles import Subject
from vit_viz.session import Request
from vit_viz.ui import pictures
from vit_viz.ui.aims import aimed
from vit_viz.ui.boundary import sentence
from vit_viz.ui.choices import subject_of
from vit_viz.ui.methods import FAST_METHODS, method_named
from vit_viz.ui.page import QUICK, Page
from vit_viz.ui.parts.explanation import Playground
from vit_viz.ui.routes import PREFIX
from vit_viz.ui.state import ViewState
from vit_viz.ui.views import words

_LONGEST = 8000  # characters of a list of patches


def build() -> Playground:
    """Lay out the playground."""
    words.section(
        "Take patches away",
        "Drag over the photo. What you take away is gone for the model: no token looks at these patches in any layer, they are not "
        "painted over. The answer follows at once.",
    )
    return Playground(None, answer=None, elem_id="vv-playground")


def wire(playground: Playground, page: Page) -> None:
    """Draw the photo with the order of the chosen map, and answer what is brushed."""

    def remove(view: ViewState, owner: str, event: gr.EventData) -> Any:
        data = dict(event._data or {})
        said = {"seq": data.get("seq"), "key": str(data.get("key", ""))[:600]}
        try:
            return gr.update(answer=said | answer_value(page, view, owner, str(data.get("gone", ""))))
        except Exception as error:
            return gr.update(answer=said | {"error": sentence(error)})

    playground.remove(remove, [page.view, page.owner], [playground], **QUICK)
    page.drawing("explain", _draw, [playground])


def _draw(page: Page, view: ViewState, owner: str) -> Iterator[Any]:
    try:
        yield playground_value(page, view, owner)
    except Exception as error:
        yield {"turn": view.turn, "error": sentence(error)}


def playground_value(page: Page, view: ViewState, owner: str) -> dict[str, Any]:
    """The photo, where its patches are, and their order by the chosen map."""
    session, subject = page.session, subject_of(page.session, view, owner)
    trace = pictures.trace_of(session, subject)
    box = trace.crop_box
    assert box is not None  # a session traces photos, which have one
    name, order = _order(page, subject, view)
    photo = session.handles.issue(Subject("", view.image, "fit", owner))
    return {
        "turn": view.turn,
        "key": f"{view.model}|{view.image}|{view.mode}",
        "photo": f"{PREFIX}/photo/{photo}",
        "photo_size": list(box.original_size),
        "alt": "The photo; patches can be taken away.",
        "grid": list(trace.layout.grid),
        "region": list(box.region),
        "order": order,
        "slider": f"Take the most relevant patches first, by {name}",
    }


def _order(page: Page, subject: Subject, view: ViewState) -> tuple[str, str]:
    """Name of the chosen method and the patches in its order; a slow one that is not at hand gives way to the first quick one."""
    session, method = page.session, method_named(view.method)
    view = replace(aimed(session, subject, view).view, query="")
    if method.runs and not session.keeps(pictures.explanation_request(session, subject, view)):
        method = FAST_METHODS[0]
    found = pictures.explanation(session, subject, replace(view, method=method.name))
    return method.label, ",".join(str(patch) for patch in patch_order(found).tolist())


def answer_value(page: Page, view: ViewState, owner: str, gone: str) -> dict[str, Any]:
    """What the model says without these patches, given as numbers row by row with commas between.

    Raises:
        ParameterError: a patch does not exist, or nothing would be left.
    """
    subject = subject_of(page.session, view, owner)
    rows, cols = pictures.trace_of(page.session, subject).layout.grid
    parts = [part for part in gone[:_LONGEST].split(",") if part]
    if not all(part.isascii() and part.isdigit() and int(part[:7]) < rows * cols for part in parts):
        raise ParameterError(f"Patches are numbered from 0 to {rows * cols - 1}.")
    patches = sorted({int(part) for part in parts})
    request = Request.of(
        subject.model,
        subject.image,
        "without",
        mode=subject.mode,
        owner=owner,
        gone=[divmod(patch, cols) for patch in patches],
    )
    result = page.session.run(request)
    assert isinstance(result, WithoutPatches)
    top = zip(result.top.names, result.before.tolist(), result.top.scores.tolist(), strict=True)
    return {
        "top": [{"name": name, "before": before, "now": now} for name, before, now in top],
        "words": _words(result, len(patches), rows * cols),
    }


def _words(result: WithoutPatches, gone: int, patches: int) -> str:
    """What became of the first answer, in one sentence."""
    name, before, now = result.first
    if result.top.unit != "probability":
        return f"Similarity of the embedding to that of the whole photo: {now:.3f}."
    if not gone:
        return f"With all patches: {name}, {before:.1%}."
    still = "still comes first" if result.top.names[0] == name else f"gives way to {result.top.names[0]}"
    return f"Without {gone / patches:.0%} of the photo, {name} {still}: {before:.1%} became {now:.1%}."
