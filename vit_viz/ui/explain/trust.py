"""How far to believe each map of the Explain tab: beside random orders of patches, as a place, as curves and in sentences."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import gradio as gr
import numpy as np
from numpy.typing import NDArray

from vit_viz.analyses.faithfulness import RANDOM_ORDERS, Faithfulness
from vit_viz.analyses.spec import AnyMethod
from vit_viz.analyses.trust import Trust
from vit_viz.errors import ParameterError
from vit_viz.render.lettering import number
from vit_viz.results import Curve
from vit_viz.ui.edge.user_errors import sentence
from vit_viz.ui.explain.answers import percent
from vit_viz.ui.explain.questions import Questions
from vit_viz.ui.visit.jobs import steps

_BAND_SHARE = 0.7  # of a test's progress: ten random orders, against one order per map


def tested(questions: Questions, methods: list[AnyMethod], stop: threading.Event) -> Iterator[Any]:
    """Test maps one after the other; random orders first, once for all of them."""
    cards: dict[str, Any] = {}
    session, ranks = questions.page.session, dict[str, float]()

    def tell(**said: Any) -> Any:
        return gr.update(trust={"key": questions.key, "cards": dict(cards), **said})

    yield tell(running=True, share=0.0, words="Random orders of patches …")
    try:
        band = questions.band_request()
        for step in steps(lambda p, c: session.run(band, progress=p, cancelled=c), stop):
            yield tell(running=True, share=_BAND_SHARE * step.share, words="Random orders of patches …")
        for place, method in enumerate(methods):
            request = questions.trust_request(method)
            share = _BAND_SHARE + (1 - _BAND_SHARE) * place / len(methods)
            yield tell(running=True, share=share, words=f"{method.words.label} …")
            try:
                *_, last = steps(lambda p, c, r=request: session.run(r, progress=p, cancelled=c), stop)  # type: ignore[misc]
            except ParameterError as error:
                cards[method.name] = {"error": sentence(error), "options": repr(questions.options(method))}
                continue
            cards[method.name] = trust_value(questions, method, last.result)
            ranks[method.name] = last.result.faithfulness.relative_deletion
        yield tell(order=sorted(ranks, key=lambda name: ranks[name]))
    except Exception as error:
        yield tell(error=sentence(error))


def trust_value(questions: Questions, method: AnyMethod, trust: Trust) -> dict[str, Any]:
    """What is known of one map: its place beside random orders, two curves, and sentences."""
    scores = trust.faithfulness
    mean, low, high = scores.band.interval("deletion")
    is_share = bool(questions.targeted.classes)
    return {
        "options": repr(questions.options(method)),
        "falls": falls(scores),
        "better": scores.beats_random[0],
        "place": {"area": scores.deletion_auc, "mean": mean, "low": max(low, 0.0), "high": high},
        "title": (
            f"Area under the curve while patches go, the best first: {scores.deletion_auc:.4g}. Random orders: {mean:.4g} in the "
            f"mean, 95% of them from {low:.4g} to {high:.4g} (gray). The lower, the better."
        ),
        "sentences": sentences(method, trust),
        "curves": {
            "deletion": _curve(scores.deletion, is_share=is_share),
            "insertion": _curve(scores.insertion, is_share=is_share),
        },
    }


def falls(scores: Faithfulness) -> str:
    """How fast the answer falls as the map's patches go, in a few words."""
    mean, _low, high = scores.band.interval("deletion")
    if scores.beats_random[0]:
        return f"falls {_times(mean / max(scores.deletion_auc, 1e-12))} x faster than at random"
    return "falls slower than at random" if scores.deletion_auc > high else "falls no faster than at random"


def sentences(method: AnyMethod, trust: Trust) -> list[str]:
    """What was measured of a map, a sentence each."""
    said = [_beside_random(trust.faithfulness)]
    outside = trust.faithfulness.beats_random
    if not all(outside):
        where = " and ".join(
            word for word, better in zip(("taking away", "putting back"), outside, strict=True) if not better
        )
        said.append(f"Not outside the 95% band of random orders, {where}.")
    if method.words.class_blind:
        said.append("The same for every class.")
    elif trust.class_sensitivity is not None:
        said.append(f"Changes with the class: {trust.class_sensitivity:.2f} of 1.")
    if trust.mirror is not None:
        said.append(f"Mirrored photo, mirrored map: {trust.mirror:.2f} of 1.")
    if method.is_slow:
        said.append(
            "Whether it changes with the class or with a mirror is measured for the quick methods only."
        )
    return said


def _beside_random(scores: Faithfulness) -> str:
    taken, put = scores.beaten
    if taken == put == RANDOM_ORDERS:
        return f"Better than each of {RANDOM_ORDERS} random orders, taking away and putting back."
    return f"Better than {taken} of {RANDOM_ORDERS} random orders taking away, and than {put} putting back."


def _curve(curve: Curve, *, is_share: bool) -> dict[str, Any]:
    """A curve with its band, for the page to draw, and the numbers at the ends of its axis."""
    assert curve.band is not None
    low, high = curve.band
    ends = min(0.0, *_ends(curve.y, low)[:1]), max(_ends(curve.y, high)[1], 1e-6)
    return {
        "x": _rounded(curve.x),
        "y": _rounded(curve.y),
        "low": _rounded(low),
        "high": _rounded(high),
        "ends": list(ends),
        "labels": [_label(end, is_share=is_share) for end in ends],
        "texts": [_label(float(value), is_share=is_share) for value in curve.y],
    }


def _ends(*values: NDArray[np.float32]) -> tuple[float, float]:
    return min(float(v.min()) for v in values), max(float(v.max()) for v in values)


def _label(value: float, *, is_share: bool) -> str:
    if value == 0:
        return "0"
    return percent(value) if is_share else number(value)


def _rounded(values: NDArray[np.float32]) -> list[float]:
    return [float(f"{value:.5g}") for value in values.tolist()]


def _times(ratio: float) -> str:
    return f"{ratio:.1f}" if ratio < 10 else f"{ratio:.0f}"
