"""The badge of an edited model: what was changed, what that does to the answer, and how to undo it; on every tab."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch.nn.functional as F

from vit_viz.results import Ranking
from vit_viz.session.edits import NO_EDITS, ModelEdits
from vit_viz.session.handles import Subject
from vit_viz.session.session import Session
from vit_viz.ui.edge.user_errors import sentence
from vit_viz.ui.kit import Edited
from vit_viz.ui.page import Page
from vit_viz.views.choices import subject_of
from vit_viz.views.state import ViewState

_HEADS = {"off": "off", "mean": "at its mean", "uniform": "looks at all tokens alike"}
_TOKENS = {"class": "the class token", "everything": "all tokens"}


def wire(edited: Edited, page: Page) -> None:
    """Show what is changed, and let it be undone."""
    page.gesture(edited.undo, lambda view, _owner, data: undone(view, str(data.get("words", ""))))
    page.drawing("subject", _show, [edited])


def undone(view: ViewState, words: str) -> ViewState:
    """The view without these edits, or without any where none are named."""
    left = ModelEdits.parse(view.edits).without(ModelEdits.parse(words)) if words else NO_EDITS
    return view.after_action(edits=str(left))


def _show(page: Page, view: ViewState, owner: str) -> Iterator[dict[str, Any]]:
    edits = ModelEdits.parse(view.edits)
    value: dict[str, Any] = {"revision": view.revision, "words": edits.sentence, "each": _each(edits)}
    if not edits:
        yield value
        return
    try:
        yield value | _compared(page.session, subject_of(page.session, view, owner))
    except Exception as error:
        yield value | {"error": sentence(error)}


def _each(edits: ModelEdits) -> list[dict[str, str]]:
    return [{"words": str(single), "said": _said(single)} for single in edits.singles]


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
        return {"before": _lines(before), "after": _lines(after)}
    first, second = (session.trace_of(one).logits for one in (was, subject))
    if first is None or second is None:
        return {}
    cosine = float(F.cosine_similarity(first, second, dim=0))
    return {"moved": f"Similarity of the photo's embedding with that of the unedited model: {cosine:.3f}."}


def _lines(ranking: Ranking) -> list[dict[str, Any]]:
    pairs = zip(ranking.names, ranking.scores.tolist(), strict=True)
    return [{"name": name, "probability": probability} for name, probability in pairs]
