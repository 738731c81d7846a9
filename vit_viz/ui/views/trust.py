"""The trust strips of the Explain tab: each map beside random orders of patches, in words, on rulers and as curves."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import gradio as gr

from vit_viz.errors import ParameterError
from vit_viz.explaining import Trust
from vit_viz.render.figures import curve_figure
from vit_viz.results import Curve
from vit_viz.ui.boundary import sentence
from vit_viz.ui.methods import Method
from vit_viz.ui.views import words
from vit_viz.ui.views.asked import Asked
from vit_viz.ui.watching import steps

VERDICTS = {
    (True, True): "Better than random",
    (True, False): "Better than random in deletion only",
    (False, True): "Better than random in insertion only",
    (False, False): "No better than random",
}
_BAND_SHARE = 0.7  # of a test's progress: ten random orders, against one order per map


def tested(asked: Asked, methods: list[Method], stop: threading.Event) -> Iterator[Any]:
    """Test maps one after the other; random orders first, once for all of them."""
    cards: dict[str, Any] = {}
    session, ranks = asked.page.session, dict[str, float]()

    def tell(**said: Any) -> Any:
        return gr.update(trust={"key": asked.key, "cards": dict(cards), **said})

    yield tell(running=True, share=0.0, words="Random orders of patches …")
    try:
        band = asked.band_request()
        for step in steps(lambda p, c: session.run(band, progress=p, cancelled=c), stop):
            yield tell(running=True, share=_BAND_SHARE * step.share, words="Random orders of patches …")
        for place, method in enumerate(methods):
            request = asked.trust_request(method)
            share = _BAND_SHARE + (1 - _BAND_SHARE) * place / len(methods)
            yield tell(running=True, share=share, words=f"{method.label} …")
            try:
                *_, last = steps(lambda p, c, r=request: session.run(r, progress=p, cancelled=c), stop)  # type: ignore[misc]
            except ParameterError as error:
                cards[method.name] = {"error": sentence(error), "options": repr(asked.options(method))}
                continue
            cards[method.name] = trust_value(asked, method, last.found)
            ranks[method.name] = last.found.faithfulness.relative_deletion
        yield tell(order=sorted(ranks, key=lambda name: ranks[name]))
    except Exception as error:
        yield tell(error=sentence(error))


def trust_value(asked: Asked, method: Method, trust: Trust) -> dict[str, Any]:
    """The trust strip of a card: the verdict in words, two areas beside random orders, two checks."""
    scores = trust.faithfulness
    beats = scores.beats_random
    checks = []
    if trust.class_sensitivity is not None:
        checks.append(f"class sensitivity {trust.class_sensitivity:.2f}")
    if trust.mirror is not None:
        checks.append(f"mirror stability {trust.mirror:.2f}")
    if method.runs:
        checks.append("class sensitivity and mirror stability are measured for the quick methods only")
    return {
        "options": repr(asked.options(method)),
        "verdict": VERDICTS[beats],
        "says": scores.verdict,
        "better": all(beats),
        "deletion": _score(
            scores.deletion_auc,
            scores.band.interval("deletion"),
            beats[0],
            "patches go, the best first",
            "lower",
        ),
        "insertion": _score(
            scores.insertion_auc,
            scores.band.interval("insertion"),
            beats[1],
            "patches come, the best first",
            "higher",
        ),
        "numbers": " · ".join(checks),
    }


def _score(
    area: float, interval: tuple[float, float, float], better: bool, what: str, wanted: str
) -> dict[str, Any]:
    mean, low, high = interval
    title = (
        f"Area under the curve while {what}: {area:.4g}. Random orders: {mean:.4g} in the mean, 95% of them from "
        f"{low:.4g} to {high:.4g} (gray). "
        f"The {wanted}, the better."
    )
    return {
        "area": area,
        "mean": mean,
        "low": max(low, 0.0),
        "high": high,
        "better": better,
        "text": f"{_short(area)} vs {_short(mean)}",
        "title": title,
    }


def _named(asked: Asked, curve: Curve) -> Curve:
    """The curve with the class by its name."""
    prefix, _, index = curve.y_label.rpartition("class ")
    if not index.isdigit() or not asked.aim.classes:
        return curve
    return replace(curve, y_label=f"{prefix}{asked.aim.name(int(index))}")


def _short(value: float) -> str:
    """Two digits that mean something, so that small areas can be told apart."""
    return f"{value:.2f}" if value >= 0.095 else f"{value:.3f}" if value >= 0.0095 else f"{value:.4f}"


def curves_of(asked: Asked, method: Method) -> tuple[Any, ...]:
    """Deletion and insertion of one map as curves, with the band of random orders."""
    trust = asked.page.session.run(asked.trust_request(method))
    assert isinstance(trust, Trust)
    scores = trust.faithfulness
    text = (
        f"{method.label} on {asked.aim.view.image if len(asked.aim.view.image) < 20 else 'your image'}, model "
        f"{asked.aim.view.model}: {scores.verdict} Left: the target while its best patches are painted over. Right: while they are "
        "put back. Gray: 95% of random orders."
    )
    return (
        gr.update(visible=True),
        words.plain(text),
        curve_figure({method.label: _named(asked, scores.deletion)}),
        curve_figure({method.label: _named(asked, scores.insertion)}),
    )
