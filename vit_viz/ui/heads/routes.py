"""What the Heads tab asks of the page: what a causal map costs, which are at hand, and what a model can be edited to be.

POST /vit_viz/causal    {"view": LINK}: {"cost": words, "kept": ways of switching off whose map is at hand}
POST /vit_viz/surgery   {"view": LINK}: what is edited, and what could be; with {"edits": words}, of these, refused where the model
                        cannot have them
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

from vit_viz.analyses.ablation import ABLATION, Ablation
from vit_viz.progress import duration
from vit_viz.session.edits import NO_EDITS, ModelEdits
from vit_viz.session.questions import request_for
from vit_viz.session.request import Subject
from vit_viz.session.session import Session
from vit_viz.ui.explain.questions import with_target
from vit_viz.ui.opened import PageCall
from vit_viz.ui.page import Answers

PASSES_PER_HEAD = 0.45
"""Of a whole one: a run starts behind the layers before its head."""

_LABELS = {
    "class": "class token",
    "patches": "all patches",
    "registers": "all registers",
    "everything": "all tokens",
}

_MANY = 16
"""Named tokens beyond which those behind the patches are left to be typed."""


def _causal(asked: PageCall) -> dict[str, Any]:
    session, subject = asked.session, asked.subject
    target = with_target(session, subject, asked.view).view.target or None
    kept = [
        how
        for how in get_args(Ablation)
        if session.keeps(request_for(session, subject, ABLATION, target=target, how=how))
    ]
    return {"cost": cost_words(session, subject), "kept": kept}


def cost_words(session: Session, subject: Subject) -> str:
    """How often the model runs for a causal map and, where a pass was measured, about how long that takes."""
    trace = session.trace_of(subject)
    heads = trace.num_layers * trace.num_heads
    words = f"switches off {heads} heads, one after the other, at about half a pass each"
    seconds = session.pass_seconds(subject)
    return words if seconds is None else f"{words}: about {duration(seconds * PASSES_PER_HEAD * heads)}"


def _surgery(asked: PageCall) -> dict[str, Any]:
    session, subject = asked.session, replace(asked.subject, edits=NO_EDITS)
    trace, edits = session.trace_of(subject), ModelEdits.parse(asked.body.get("edits", asked.view.edits))
    if "edits" in asked.body:
        edits.of(trace)
    # tokens to choose from by name: those that are no patches, and groups
    layout = trace.layout
    many = sum(name.startswith("register") for name in layout.named) > 1
    groups = ["patches", *(["registers"] if many else []), "everything"]
    names = [name for name in layout.named if len(layout.named) <= _MANY or name not in layout.suffix]
    return {
        "edits": str(edits),
        "off": [[layer, head, state] for (layer, head), state in edits.heads],
        "temperatures": [list(pair) for pair in edits.temperatures],
        "forbidden": [str(one) for one in edits.forbidden],
        "tokens": [{"value": name, "label": _LABELS.get(name, name)} for name in (*names, *groups)],
        "trace": session.handles.issue(subject),
    }


ANSWERS: Answers = {"causal": _causal, "surgery": _surgery}
