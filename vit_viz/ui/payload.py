"""What the page is told about a subject: small JSON values; everything large is fetched by its address."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import torch

from vit_viz.capture import Trace
from vit_viz.geometry import format_query
from vit_viz.handles import Subject
from vit_viz.render.colormaps import table as colour_table
from vit_viz.render.lettering import number
from vit_viz.results import PatchMap
from vit_viz.session import Session
from vit_viz.ui import pictures
from vit_viz.ui.choices import subject_of
from vit_viz.ui.routes import PREFIX, has_norms, source_of
from vit_viz.ui.state import ViewState

Value = dict[str, Any]


def explorer_value(session: Session, view: ViewState, owner: str, *, notes: tuple[str, ...] = ()) -> Value:
    """The value of the explorer: the shape of the trace, where to fetch it, and the view to show."""
    subject = subject_of(session, view, owner)
    trace = session.trace(subject.model, subject.image, mode=subject.mode, owner=owner)
    view, more = view.fitted(layers=trace.num_layers, heads=trace.num_heads, layout=trace.layout)
    screen = pictures.photo(session, subject)
    assert trace.crop_box is not None  # a session traces photos, which have one
    photo = session.handles.issue(Subject("", view.image, "fit", owner))
    return {
        "seq": view.turn,
        "trace": session.handles.issue(subject),
        "model": view.model,
        "image": view.image,
        "mode": view.mode,
        "layers": trace.num_layers,
        "heads": trace.num_heads,
        "tokens": trace.num_tokens,
        "head_dim": trace.head_dim,
        "scales": list(trace.scales),
        "prefix": list(trace.layout.prefix),
        "suffix": list(trace.layout.suffix),
        "grid": list(trace.layout.grid),
        "pooling": trace.layout.pooling,
        "default_query": trace.layout.default_query,
        "crop": trace.crop_box.to_dict(),
        "photo": f"{PREFIX}/photo/{photo}",
        "photo_size": [screen.height, screen.width],
        "source": [source_of(trace, layer) for layer in range(trace.num_layers)],
        "norms": has_norms(trace),
        "view": _explorer_view(view, trace),
        "proof": None,  # the header has the badge
        "note": " ".join((*notes, *more, *trace.problems)),
    }


def facts_value(session: Session, view: ViewState, owner: str, *, notes: tuple[str, ...] = ()) -> Value:
    """The value of the Facts component: top classes, model card, proof badge."""
    subject = subject_of(session, view, owner)
    loaded = session.model(subject.model)
    trace = session.trace(subject.model, subject.image, mode=subject.mode, owner=owner)
    ranking = session.top_classes(subject.model, subject.image, mode=subject.mode, owner=owner)
    top = [] if ranking is None else zip(ranking.names, ranking.scores.tolist(), strict=True)
    _, problems = view.fitted(layers=trace.num_layers, heads=trace.num_heads, layout=trace.layout)
    rows, cols = trace.layout.grid
    return {
        "turn": view.turn,
        "top": [{"name": name, "probability": probability} for name, probability in top],
        "card": f"{loaded.card} · this image: {rows} x {cols} patches · {device_words(trace.device)}",
        "proof": _proof(trace),
        "notes": [*notes, *problems, *trace.problems],
    }


def device_words(device: torch.device) -> str:
    """The device in words for people."""
    if device.type == "cuda":
        return f"GPU {torch.cuda.get_device_name(device)}"
    return {"cpu": "CPU", "mps": "Apple GPU"}.get(device.type, device.type)


def _explorer_view(view: ViewState, trace: Trace) -> Value:
    query = view.query or format_query(trace.layout.default_query)
    names = ("layer", "head", "direction", "scale", "alpha", "table", "smooth", "mask", "norm")
    return {name: getattr(view, name) for name in names} | {"query": query, "seq": view.heard}


def _proof(trace: Trace) -> Value:
    """The proof badge: was the attention shown to be what the model computed with, all of it, patch by patch?"""
    report = trace.proof_report
    known = [value for value in trace.proof if not math.isnan(value)]
    if report.status == "captured, not proven":
        return {"state": "open", "text": "captured, not proven", "title": report.sentence}
    size = f"{max(known):.0e}".replace("e-0", "e-")
    if report.status == "refuted":
        return {
            "state": "refuted",
            "text": f"proof failed {size}",
            "title": f"{report.sentence} That is too much: do not trust these pictures.",
        }
    return {
        "state": "proven",
        "text": f"proof ok {size}",
        "title": "In every layer, attention x values was recomputed from what is drawn here and compared with what the model "
        f"itself computed (largest difference {size}); the layers are all of its attention, and each patch is its own token.",
    }


def picture_value(
    view: ViewState,
    address: str,
    *,
    caption: str,
    trace: Trace,
    area: tuple[float, float, float, float],
    bar: Value | None = None,
    note: str = "",
    pick: bool = True,
) -> Value:
    """The value of a Picture: where to fetch it, what it says, and where the pinned query is.

    Args:
        address: of the picture as a file, as `picture_address` gives it.
        area: (top, left, bottom, right) of the original photo that the picture shows, in pixels.
        pick: whether a click chooses a patch.
    """
    rings: list[list[float]] = []
    if pick and trace.crop_box is not None and view.query[:1].isdigit():
        places = map(trace.layout.place, trace.layout.tokens(view.query_of(trace.layout)))
        rings = [list(trace.crop_box.patch_rect(*place, trace.layout.grid)) for place in places if place]
    return {
        "turn": view.turn,
        "src": f"{address}&bare=1",
        "save": address,
        "alt": caption,
        "caption": caption,
        "area": list(area),
        "rings": rings,
        "bar": bar,
        "note": note,
        "pick": pick,
    }


def picture_address(session: Session, subject: Subject, view: ViewState, kind: pictures.Kind) -> str:
    """Where a picture is fetched: its handle, and the view in the address, so that it can be kept by the browser."""
    options = replace(view, model="", image="", mode="fit", tab="look", turn=0).to_address()
    return f"{PREFIX}/picture/{session.handles.issue(subject)}.png?kind={kind}" + (
        f"&{options}" if options else ""
    )


def cells_value(found: PatchMap) -> Value:
    """The numbers of a map for the pointer: value, and share of all that fell on any token."""
    total = found.total
    flat = found.values.ravel().tolist()
    shares = [f" ({value / total:.2%})" if total > 0 and not found.signed else "" for value in flat]
    assert found.crop_box is not None
    return {
        "grid": list(found.grid),
        "region": list(found.crop_box.region),
        "texts": [number(value) + share for value, share in zip(flat, shares, strict=True)],
    }


def bar_value(low: float, high: float, *, table: str, unit: str) -> Value:
    """A colour bar for the page: numbers at its ends and colours between them."""
    colours = colour_table(table)[::15]
    stops = [f"rgb({r}, {g}, {b})" for r, g, b in colours.tolist()]
    return {"low": number(low), "high": number(high), "unit": unit, "stops": stops}
