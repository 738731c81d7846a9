"""How far two classes' maps subtracted can be trusted: whether the lead of one goes with its patches, as curves and sentences."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from vit_viz.analyses.faithfulness import Faithfulness
from vit_viz.analyses.spec import AnyMethod
from vit_viz.analyses.trust import RANDOM_BAND, TRUST, Trust
from vit_viz.errors import ParameterError
from vit_viz.explorer.value import Value
from vit_viz.progress import duration
from vit_viz.sentences import percent
from vit_viz.session.request import Request
from vit_viz.ui.explain.questions import Questions, card_named, is_subtracted, target_of
from vit_viz.ui.explain.trust import BAND_SHARE, logits, trust_value
from vit_viz.ui.opened import PageCall
from vit_viz.views.state import ViewState


class Shown(NamedTuple):
    """The two maps that are subtracted: of which view, and by which method."""

    questions: Questions
    view: ViewState
    method: AnyMethod


def lead(asked: PageCall) -> Value:
    """What is known of it, where the body says so; else it is measured."""
    questions = Questions.of(asked, asked.view, asked.owner)
    shown = Shown(questions, questions.targeted.view, card_named(questions.targeted.view.method))
    return {"value": value(shown)} if asked.body.get("known") else measured(shown, asked)


def key(shown: Shown) -> str:
    """What a measurement is about: the picture, the model, the classes, and the method with its options."""
    return f"{shown.questions.key}|{shown.method.name}|{shown.questions.options(shown.method)!r}"


def request(shown: Shown) -> Request:
    """What is asked for it."""
    options = shown.questions.options(shown.method)
    also = {"options": options} if options else {}
    target = target_of(shown.view)
    return shown.questions.subject.request(
        TRUST.name, method=shown.method.name, target=target, sides="difference", **also
    )


def value(shown: Shown) -> dict[str, Any] | None:
    """What the stage says of it: the curves where they are at hand, else what they cost; None where nothing is subtracted."""
    if not is_subtracted(shown.view):
        return None
    session, (one, other) = shown.questions.page.session, shown.questions.targeted.names
    known = {
        "key": key(shown),
        "label": f"{shown.method.words.label}, {one} and not {other}",
        "question": f"Does {one}'s lead over {other} follow these colours?",
        "cost": cost_words(shown.questions),
    }
    asked = request(shown)
    return known | (curves_value(shown, session.run(asked)) if session.keeps(asked) else {})


def cost_words(questions: Questions) -> str:
    """How often the model runs for it and, where a pass was measured, how long that takes at most; less where the orders are known.

    What was measured is a pass of one picture: in batches each takes less.
    """
    session, are_known = questions.page.session, questions.page.session.keeps(questions.band_request())
    passes = TRUST.forwards - (RANDOM_BAND.forwards if are_known else 0)
    seconds = session.pass_seconds(questions.subject)
    how_often = "the random orders are known" if are_known else TRUST.words.runs
    said = f"Takes them away, beside random orders of patches; {how_often}"
    return f"{said}." if seconds is None else f"{said}: at most about {duration(seconds * passes)}."


def curves_value(shown: Shown, trust: Trust) -> dict[str, Any]:
    """The curves and what they say."""
    one, other = shown.questions.targeted.names
    scores, measured = trust.faithfulness, trust_value(shown.questions, shown.method, trust)
    assert scores.reverse is not None  # of a difference there is one
    unit = "" if shown.questions.targeted.is_value else " logits"
    return measured | {
        "names": [one, other],
        "grows": float(scores.reverse.y.max()) > float(scores.reverse.y[0]),
        "sentences": [*sentences(one, other, scores, unit=unit), *measured["sentences"]],
    }


def measured(shown: Shown, asked: PageCall) -> Value:
    """Measure it: random orders first, which all maps of these two classes share. What is being done is a preview."""
    if not is_subtracted(shown.view):
        raise ParameterError(
            "The lead is measured of two classes whose maps are subtracted; here there are none."
        )
    run = partial(shown.questions.page.session.run, cancelled=asked.cancelled)
    asked.preview({"words": "Random orders of patches …"})
    run(shown.questions.band_request(), progress=lambda share: asked.progress(BAND_SHARE * share))
    asked.preview({"words": "The order of this map …"})
    trust = run(request(shown), progress=lambda share: asked.progress(BAND_SHARE + (1 - BAND_SHARE) * share))
    return curves_value(shown, trust)


# --- in words


def sentences(one: str, other: str, scores: Faithfulness, *, unit: str = " logits") -> list[str]:
    """Where the curves begin and end, where the lead is lost, and what the other class's patches do to it.

    Args:
        unit: of the lead; "" where it is one of values.
    """
    curve, turned = scores.deletion, scores.reverse
    assert turned is not None
    start, end = float(curve.y[0]), float(curve.y[-1])
    leads = f"{one} leads {other} by" if start > 0 else f"{one} does not lead {other}: the lead is"
    said = [
        f"On the whole photo {leads} {logits(start)}{unit}; with every patch painted over it is {logits(end)}."
    ]
    if start > 0:
        here, chance = _lost(curve.x, curve.y), _lost(scores.band.fractions, scores.band.deletion.mean(0))
        said.append(
            f"With {one}'s patches first, the lead {here}; in random orders, in the mean, it {chance}."
        )
    mean, low, high = map(logits, scores.band.interval("deletion"))
    assert scores.reverse_auc is not None  # of a difference there is one
    said.append(
        f"In the mean over the curve the lead is {logits(scores.deletion_auc)}, with {other}'s patches first "
        f"{logits(scores.reverse_auc)}; in random orders {mean}, 95% of them from {low} to {high}."
    )
    most = int(turned.y.argmax())
    if most:
        share, lead = percent(float(turned.x[most])), logits(float(turned.y[most]))
        said.append(f"With {other}'s patches first it grows to {lead}, when {share} are gone.")
    else:
        said.append(f"With {other}'s patches first it never grows.")
    return said


def _lost(shares: ArrayLike, leads: ArrayLike) -> str:
    """From which share of patches on a lead is gone for the first time."""
    gone = np.flatnonzero(np.asarray(leads) <= 0)
    return (
        f"is lost when {percent(float(np.asarray(shares)[gone[0]]))} are gone"
        if gone.size
        else "is never lost"
    )
