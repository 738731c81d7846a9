"""What the page is told about a subject: small JSON values; everything large is fetched by its address."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from vit_viz import samples
from vit_viz.analyses.opening import Opening, opening
from vit_viz.capture import Trace
from vit_viz.explorer.value import CHECKING, Value, proof_value, trace_value
from vit_viz.figures.screen import screen_photo
from vit_viz.figures.styles import unsuitable
from vit_viz.geometry import CropBox, format_query
from vit_viz.lazy import torch
from vit_viz.model import SentenceHead
from vit_viz.outputs import UNITS
from vit_viz.samples import sample_names
from vit_viz.session.request import Subject
from vit_viz.session.session import Session
from vit_viz.session.uploads import UPLOAD
from vit_viz.ui.scripts import PREFIX
from vit_viz.views.choices import subject_of
from vit_viz.views.state import ViewState

_EDITED = (
    "The model is edited, and this holds for the edited model: what is drawn is what its own kernels computed under the edits. Of "
    "a head that is off or at its mean, what it looks at is drawn; what it says is replaced after that."
)


def explorer_value(session: Session, view: ViewState, owner: str) -> Value:
    """What the rooms in the browser are told of a view's subject: the shape of the trace, and where to fetch it."""
    subject = subject_of(session, view, owner)
    trace = session.trace_of(subject)
    begins = opening_of(session, subject, trace)
    assert trace.crop_box is not None  # a session traces photos, which have one
    return {
        "trace": session.handles.issue(subject),
        "model": view.model,
        "image": view.image,
        "mode": view.mode,
        "size": view.size,
        "part": view.part,
        "whole": _whole(session, subject, trace.crop_box),
        **trace_value(trace),
        **photo_value(session, subject),
        "about": about_of(view),
        "unlit": unsuitable(screen_photo(session, subject)),
        "opening": {"layer": begins.layer, "head": begins.head, "patch": next(iter(begins.tour), None)},
        "tour": list(begins.tour) if view.image in samples.sample_names() else [],
        "proof": None,  # the header has the badge
        "note": " ".join(trace.problems),
    }


def about_of(view: ViewState) -> Value:
    """What a view is of, as a question takes it."""
    is_sample, is_upload = view.image in sample_names(), UPLOAD.fullmatch(view.image)
    kind = "sample" if is_sample else "upload" if is_upload else "survey"
    subject = {"mode": view.mode, "size": view.size, "part": view.part, "edits": view.edits}
    subject |= {"sentences": view.sentences, "templates": view.templates}
    return {"model": view.model, "image": {kind: view.image}} | subject


def photo_value(session: Session, subject: Subject) -> Value:
    """The photo under the maps of a room: where it is fetched, its (height, width) in pixels, its name."""
    screen = screen_photo(session, subject)
    return {
        "photo": f"{PREFIX}/photo/{session.handles.issue(subject.photo)}",
        "photo_size": [screen.height, screen.width],
        "name": session.name_of(subject.image, owner=subject.owner),
    }


def opening_of(session: Session, subject: Subject, trace: Trace) -> Opening:
    """Where a first look at a subject begins, worked out once for each."""
    digest = session.digest(subject.image, owner=subject.owner)
    key = "opening", digest, replace(subject, owner=""), trace.provenance.weights
    return session.kept(key, lambda: opening(trace), subject.image, digest, size_of=lambda _: 256)


def _whole(session: Session, subject: Subject, box: CropBox) -> Value | None:
    """Where the map of a part lies on the whole photo, and that photo; None where no part is looked at."""
    if subject.part is None:
        return None
    everything = replace(subject, part=None)
    original, whole = session.photo_of(everything), photo_value(session, everything)
    return {
        "part": list(subject.part),
        "crop": box.within(subject.part, (original.height, original.width)).to_dict(),
        "photo": whole["photo"],
        "photo_size": whole["photo_size"],
    }


def facts_value(session: Session, view: ViewState, owner: str, *, notes: tuple[str, ...] = ()) -> Value:
    """What the header is told of a view's subject: top classes, model card, the badge of its proof."""
    subject = subject_of(session, view, owner)
    loaded = session.model_of(subject)
    trace = session.trace_of(subject)
    _, problems = view.fitted(layers=trace.num_layers, heads=trace.num_heads, layout=trace.layout)
    (rows, cols), (tall, wide) = trace.layout.grid, loaded.preprocess.patch_size
    patch = f"{tall}" if tall == wide else f"{tall} x {wide}"
    kind = trace.device.type
    device = {"cpu": "CPU", "mps": "Apple GPU"}.get(kind, kind)
    if kind == "cuda":
        device = f"GPU {torch.cuda.get_device_name(trace.device)}"
    return {
        "top": answers_of(session, subject) or [],
        "reads": loaded.text is not None,
        "short": f"{trace.num_layers} layers x {trace.num_heads} heads, patch {patch}",
        "own": view.image not in sample_names(),
        "card": f"{loaded.card} · this image: {rows} x {cols} patches · {device}",
        "badge": badge_value(subject, trace) | {"trace": session.handles.issue(subject)},
        "notes": [*notes, *problems, *trace.problems],
    }


def answers_of(session: Session, subject: Subject) -> list[Value] | None:
    """Classes with their probabilities, the most probable first; or outputs with their values, the largest first; None of neither.

    Probabilities that are sigmoids, of which each is a matter of its own, are marked as `alone`. Sentences have their cosine, too.
    """
    ranking = session.top_classes_of(subject)
    if ranking is None:
        return None
    amount = "value" if ranking.unit == UNITS["value"] else "probability"
    more = {"alone": True} if ranking.unit == UNITS["sigmoid"] else {}
    pairs = zip(ranking.names, ranking.scores.tolist(), strict=True)
    answers = [{"name": name, amount: score} | more for name, score in pairs]
    head, logits = getattr(session.model_of(subject).model, "head", None), session.trace_of(subject).logits
    if logits is None or not isinstance(head, SentenceHead):
        return answers
    names, cosines = session.sentence_names(subject), head.cosines(logits).tolist()
    of = zip(answers, ranking.indices, strict=True)
    return [answer | {"name": names[i], "cosine": cosines[i]} for answer, i in of]


def badge_value(subject: Subject, trace: Trace) -> Value:
    """The badge, of an edited model with what "verified" means there; "checking" while it is not known what it will say."""
    if trace.is_being_checked:
        return CHECKING
    badge = proof_value(trace)
    return badge | {"title": f"{badge['title']} {_EDITED}"} if subject.edits else badge


def explorer_view(view: ViewState, trace: Trace) -> Value:
    """What the explorer shows of a trace: layer, head, query and its options."""
    query = view.query or format_query(trace.layout.default_query)
    chosen = asdict(view.attention) | asdict(view.drawing) | asdict(view.mosaic)
    return {"layer": view.layer, "head": view.head, "query": query, **chosen}


def rounded(values: ArrayLike) -> Any:
    """As nested lists, to five digits; null where there is no number."""
    array = np.asarray(values, np.float64)
    flat = [float(f"{value:.5g}") if math.isfinite(value) else None for value in array.ravel().tolist()]
    return np.array(flat, dtype=object).reshape(array.shape).tolist()
