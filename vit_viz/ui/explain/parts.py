"""What the answer is made of, as a face of the Explain tab: all parts, where heads took theirs, what switching them off did."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from vit_viz.analyses.decomposition import DECOMPOSITION
from vit_viz.analyses.output_parts import Decomposition
from vit_viz.errors import ParameterError
from vit_viz.explorer.packing import plain_bytes
from vit_viz.figures.sums import decimals_of, summands
from vit_viz.session.edits import Head, ModelEdits
from vit_viz.session.questions import request_for
from vit_viz.session.request import Subject
from vit_viz.session.session import Session
from vit_viz.ui.edge.user_errors import sentence
from vit_viz.ui.explain.questions import Questions
from vit_viz.ui.kit import PartsRoom
from vit_viz.ui.page import Page
from vit_viz.ui.payload import figure_address, photo_value, picture_address
from vit_viz.ui.pictures import ASKED, target_of
from vit_viz.ui.scripts import PREFIX
from vit_viz.views.panel import Panel
from vit_viz.views.state import ViewState

_KEPT = 0.05  # of what was promised: what a part did may differ by so much and still be called the same
_FEW = 3  # heads that are named one by one
_POOL = "The heads of a pool cannot be switched off here: edits are of the layers before it."
_EMBEDDING = "Parts are switched off only where a class is explained: without one, the number that they sum to changes with them."


def wire(room: PartsRoom, page: Page) -> None:
    """Draw the face while it is looked at, and let a click switch heads off and on."""
    page.gesture(room.switch, lambda view, owner, data: switched(page, view, owner, data))
    page.drawing("explain", _draw, [room])


def is_shown(view: ViewState) -> bool:
    """Whether this face of the tab is looked at."""
    return view.explain.explain_face == "parts"


def _draw(page: Page, view: ViewState, owner: str) -> Iterator[dict[str, Any]]:
    if not is_shown(view):
        yield {"revision": view.revision, "state": "hidden"}
        return
    yield {"revision": view.revision, "state": "busy"}
    try:
        yield parts_value(Questions.of(page, view, owner))
    except Exception as error:
        yield {"revision": view.revision, "state": "error", "error": sentence(error)}


def switched(page: Page, view: ViewState, owner: str, data: dict[str, Any]) -> ViewState:
    """The view with these heads off; where all of them were, they are on again. What is explained stays the same class."""
    questions = Questions.of(page, view, owner)
    chosen = _heads(data, layers=questions.trace.num_layers, heads=questions.trace.num_heads)
    edits = ModelEdits.parse(view.edits)
    off = {place for place, state in edits.heads if state == "off"}
    off = off - chosen if chosen <= off else off | chosen
    others = [(place, state) for place, state in edits.heads if place not in off | chosen]
    edits = replace(edits, heads=(*others, *((place, "off") for place in off)))
    return view.after_action(edits=str(edits), target=questions.targeted.view.target)


def _heads(data: dict[str, Any], *, layers: int, heads: int) -> set[Head]:
    """The head "4.3" that an event names, or all of layer "4".

    Raises:
        ParameterError: there is no such head.
    """
    numbers = str(data.get("place", ""))[:20].split(".")
    if all(part.isascii() and part.isdigit() for part in numbers) and int(numbers[0]) < layers:
        if len(numbers) == 1:
            return {(int(numbers[0]), head) for head in range(heads)}
        if len(numbers) == 2 and int(numbers[1]) < heads:
            return {(int(numbers[0]), int(numbers[1]))}
    raise ParameterError(f"This model has layers 0-{layers - 1} with heads 0-{heads - 1} each.")


# --- what is shown


def decomposed(session: Session, subject: Subject, view: ViewState) -> Decomposition:
    """The parts of what a view explains."""
    parts: Decomposition = session.run(
        request_for(session, subject, DECOMPOSITION.name, target=target_of(view))
    )
    return parts


def term_bytes(session: Session, subject: Subject, view: ViewState) -> bytes:
    """What each head took from each patch, float32 [layers, heads, patches]."""
    return plain_bytes(decomposed(session, subject, view).maps, np.float32)


def parts_value(questions: Questions) -> dict[str, Any]:
    """The value of the room: numbers of all parts now, and before heads were switched off; where their maps are fetched."""
    session, subject, view = questions.page.session, questions.subject, questions.targeted.view
    edits = ModelEdits.parse(view.edits)
    off = tuple(place for place, state in edits.heads if state == "off")
    whole = replace(
        subject, edits=replace(edits, heads=tuple(pair for pair in edits.heads if pair[0] not in off))
    )
    now = decomposed(session, subject, view)
    before = decomposed(session, whole, view) if off else now
    handle, box = session.handles.issue(subject), questions.trace.crop_box
    assert box is not None  # a session traces photos, which have one
    why_not = _POOL if now.layers == ("pool",) else "" if questions.targeted.classes else _EMBEDDING
    asked = replace(view, panel=Panel.of(DECOMPOSITION.name))
    return photo_value(session, subject) | {
        "revision": view.revision,
        "state": "ready",
        "handle": handle,
        "terms": f"{PREFIX}/parts/{handle}?target={view.target}",
        "terms_before": f"{PREFIX}/parts/{session.handles.issue(whole)}?target={view.target}" if off else "",
        "grid": list(now.grid),
        "crop": box.to_dict(),
        "target": questions.targeted.words or "its own embedding",
        "title": now.finding,
        "now": _numbers(now),
        "before": _numbers(before),
        "off": [list(place) for place in off],
        "decimals": decimals_of((now.total, before.total)),
        "sum": [[name, value] for name, value in summands(now).items()],
        "unit": now.unit,
        "note": now.note,
        "outside": _outside(now),
        "effect": effect_value(questions, before, now, off) if off and not why_not else None,
        "why_not": why_not,
        "figure": figure_address(picture_address(session, subject, asked, ASKED)),
    }


def _numbers(parts: Decomposition) -> dict[str, Any]:
    return {
        "layers": list(parts.layers),
        "heads": parts.heads.astype(np.float64).tolist(),
        "mlps": parts.mlps.astype(np.float64).tolist(),
        "total": parts.total,
        "output": parts.output,
    }


def _outside(parts: Decomposition) -> dict[str, float]:
    """What heads took from tokens that are no patches, which no map over the photo shows; registers as one."""
    values = parts.terms.sum((0, 1), dtype=np.float64)[: len(parts.prefix)].tolist()
    outside: dict[str, float] = {}
    for name, value in zip(parts.prefix, values, strict=True):
        kind = "registers" if name.startswith("register") else f"{name} token"
        outside[kind] = outside.get(kind, 0.0) + value
    return outside


# --- what switching off did


def effect_value(
    questions: Questions, before: Decomposition, now: Decomposition, off: tuple[Head, ...]
) -> dict[str, Any]:
    """What the parts that are off promised, what switching them off did, and where the difference went."""
    promised = -float(sum(before.heads[place] for place in off))
    did = now.total - before.total
    words = _words(questions, before, now, off, promised)
    return {"promised": promised, "did": did, "words": words}


def _words(
    questions: Questions, before: Decomposition, now: Decomposition, off: tuple[Head, ...], promised: float
) -> str:
    digits = decimals_of((now.total, before.total))
    did = now.total - before.total
    rest = did - promised
    way = "falls" if did < 0 else "rises"
    number = f"{abs(did):.{digits}f}"
    first = f"Without {_named(off)}, {_what(questions)} {way} from {before.total:.{digits}f} to {now.total:.{digits}f}, by {number}"
    its = "its part" if len(off) == 1 else "their parts"
    if abs(rest) <= _KEPT * max(abs(promised), abs(did), 1e-12):
        return f"{first}: as {its} promised."
    foretold = f"{its} promised a {'fall' if promised < 0 else 'rise'} of {abs(promised):.{digits}f}"
    through = f"later layers and the last norm{_most(before, now, off, rest, digits)}"
    if promised * rest > 0:
        return f"{first}; {foretold}. The other {abs(rest):.{digits}f} came through {through}."
    if promised * did > 0:
        return f"{first}; {foretold}. It was made up for, by {abs(rest):.{digits}f}, in {through}."
    return f"{first}, though {foretold}. What weighed more came through {through}."


def _signed(value: float, digits: int) -> str:
    return f"{value:+.{digits}f}".replace("-", "\N{MINUS SIGN}")


def _named(off: tuple[Head, ...]) -> str:
    if len(off) > _FEW:
        return f"{len(off)} heads"
    names = [f"{layer} · {head}" for layer, head in off]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _what(questions: Questions) -> str:
    chosen = [questions.targeted.name(index) for index in questions.targeted.chosen]
    of = "the value of" if questions.targeted.is_value else "the logit of"
    return f"{of} {chosen[0]}" if len(chosen) == 1 else f"the lead of {chosen[0]} over {chosen[1]}"


def _most(before: Decomposition, now: Decomposition, off: tuple[Head, ...], rest: float, digits: int) -> str:
    """Which part that is not off changed most in the direction of the difference."""
    heads = now.heads.astype(np.float64) - before.heads
    for place in off:
        heads[place] = 0
    mlps = now.mlps.astype(np.float64) - before.mlps
    sign = 1 if rest > 0 else -1
    row, head = np.unravel_index(int((sign * heads).argmax()), heads.shape)
    layer = int((sign * mlps).argmax())
    of_heads, of_mlp = float(heads[row, head]), float(mlps[layer])
    name, value = (
        (f"head {row} · {head}", of_heads)
        if sign * of_heads > sign * of_mlp
        else (f"the MLP of layer {now.layers[layer]}", of_mlp)
    )
    return f", most of all {name} ({_signed(value, digits)})" if sign * value > 0 else ""
