"""How far to believe each map of the Explain tab: beside random orders of patches, and on a model that unlearns."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import gradio as gr
import numpy as np
from numpy.typing import NDArray

from vit_viz.analyses.faithfulness import RANDOM_ORDERS, Faithfulness
from vit_viz.analyses.spec import AnyMethod
from vit_viz.analyses.trust import Trust
from vit_viz.errors import ParameterError
from vit_viz.figures.lettering import number
from vit_viz.figures.plots import captioned_figure, curve_figure
from vit_viz.results import Curve
from vit_viz.session.handles import PAGE
from vit_viz.ui.edge.user_errors import sentence
from vit_viz.ui.explain.questions import Questions, percent, shows_maps
from vit_viz.ui.jobs import Stops, steps
from vit_viz.ui.kit import Meter, WebRoom, words
from vit_viz.ui.page import Page
from vit_viz.ui.pictures import card_named
from vit_viz.views.state import ViewState

BAND_SHARE = 0.7  # of a test's progress: ten random orders, against one order per map
_LABEL = "Re-initialise the weights, step by step"
_WHY = (
    "The head and then block after block lose what they learned. A map that depends on it falls apart, and the curve falls; one "
    "that stays near 1 means that the map shows the photo, not the model (Adebayo et al. 2018, arXiv:1810.03292)."
)


def tested(questions: Questions, methods: list[AnyMethod], stop: threading.Event) -> Iterator[Any]:
    """Test maps one after the other; random orders first, once for all of them."""
    cards: dict[str, Any] = {}
    session, ranks = questions.page.session, dict[str, float]()

    def tell(**said: Any) -> Any:
        return gr.update(trust={"key": questions.key, "cards": dict(cards), **said})

    yield tell(running=True, share=0.0, words="Random orders of patches …")
    try:
        band = questions.band_request()
        for step in steps(partial(session.run, band), stop):
            yield tell(running=True, share=BAND_SHARE * step.share, words="Random orders of patches …")
        for place, method in enumerate(methods):
            request = questions.trust_request(method)
            share = BAND_SHARE + (1 - BAND_SHARE) * place / len(methods)
            yield tell(running=True, share=share, words=f"{method.words.label} …")
            try:
                *_, last = steps(partial(session.run, request), stop)
            except ParameterError as error:
                cards[method.name] = {"error": sentence(error), "options": repr(questions.options(method))}
                continue
            cards[method.name] = trust_value(questions, method, last.result)
            ranks[method.name] = last.result.faithfulness.deletion_auc  # beside one band for all
        yield tell(order=sorted(ranks, key=lambda name: ranks[name]))
    except Exception as error:
        yield tell(error=sentence(error))


def trust_value(questions: Questions, method: AnyMethod, trust: Trust) -> dict[str, Any]:
    """What is known of one map: its place beside random orders, two curves, and sentences."""
    scores = trust.faithfulness
    mean, low, high = scores.band.interval("deletion")
    curves = {"deletion": scores.deletion, "insertion": scores.insertion, "reverse": scores.reverse}
    written = _written(questions)
    is_value = questions.targeted.is_value and len(questions.targeted.chosen) == 1
    return followed(questions) | {
        "options": repr(questions.options(method)),
        "falls": falls(scores, "value" if is_value else "lead"),
        "better": scores.beats_random[0],
        "place": {"area": scores.deletion_auc, "mean": mean, "high": high} | _from(low, scores),
        "title": (
            f"Area under the curve while patches go, the best first: {scores.deletion_auc:.4g}. Random orders: {mean:.4g} in the "
            f"mean, 95% of them from {low:.4g} to {high:.4g} (gray). The lower, the better."
        ),
        "sentences": sentences(method, trust),
        "curves": {
            name: _curve(curve, written, from_zero=not is_value)
            for name, curve in curves.items()
            if curve is not None
        },
    }


def followed(questions: Questions) -> dict[str, str]:
    """What the curves follow, in words, and what their axis counts."""
    targeted = questions.targeted
    if not targeted.classes:
        return {"axis": "similarity to the whole photo's embedding"}
    names = [targeted.name(index) for index in targeted.chosen]
    if len(names) == 1:
        how = {"softmax": "probability of", "sigmoid": "sigmoid of", "value": "value of"}[targeted.output]
        return {"axis": f"{how} {names[0]}"}
    lead = f"lead of {names[0]} over {names[1]}"
    return {"what": f"the {lead}", "axis": lead if targeted.is_value else f"{lead}, in logits"}


def logits(value: float) -> str:
    """A number of logits for people."""
    return f"{value:.2f}".replace("-", "−")


def _written(questions: Questions) -> Callable[[float], str]:
    """How people read what the curves follow."""
    if not questions.targeted.classes or questions.targeted.is_value:
        return number
    return percent if len(questions.targeted.chosen) == 1 else logits


def _from(low: float, scores: Faithfulness) -> dict[str, float]:
    """Where the random orders begin, and where the line begins that shows them: at 0, or at the least that they reach."""
    if _is_unbounded(scores):
        return {"low": low, "floor": float(scores.band.deletion.min())}
    return {"low": max(low, 0.0)}


def _is_unbounded(scores: Faithfulness) -> bool:
    """Whether what is followed may be below 0: a lead, or a value."""
    return not np.isfinite(scores.band.value_range[0])


def falls(scores: Faithfulness, what: str = "lead") -> str:
    """How fast the answer falls as the map's patches go, in a few words."""
    mean, _low, high = scores.band.interval("deletion")
    if _is_unbounded(scores) and scores.beats_random[0]:
        show = logits if what == "lead" else number
        return f"mean {what} {show(scores.deletion_auc)}, at random {show(mean)}"
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


def _curve(curve: Curve, written: Callable[[float], str], *, from_zero: bool = True) -> dict[str, Any]:
    """A curve with its band, for the page to draw, and the numbers at the ends of its axis.

    Args:
        from_zero: whether the axis begins at 0; that of a value does not, which may be far from 0 on every photo.
    """
    assert curve.band is not None
    low, high = curve.band
    least, most = _ends(curve.y, low, high)
    ends = (min(0.0, least), max(most, 1e-6)) if from_zero else (least, max(most, least + 1e-6))
    return {
        "x": _rounded(curve.x),
        "y": _rounded(curve.y),
        "low": _rounded(low),
        "high": _rounded(high),
        "ends": list(ends),
        "labels": [_label(end, written) for end in ends],
        "texts": [_label(float(value), written) for value in curve.y],
    }


def _ends(*values: NDArray[np.float32]) -> tuple[float, float]:
    return min(float(v.min()) for v in values), max(float(v.max()) for v in values)


def _label(value: float, written: Callable[[float], str]) -> str:
    return "0" if value == 0 else written(value)


def _rounded(values: NDArray[np.float32]) -> list[float]:
    return [float(f"{value:.5g}") for value in values.tolist()]


def _times(ratio: float) -> str:
    return f"{ratio:.1f}" if ratio < 10 else f"{ratio:.0f}"


# --- the sanity check: does the chosen map depend on what the model has learned?


@dataclass(frozen=True)
class Sanity:
    """The components of the check."""

    meter: Meter
    caption: gr.HTML
    curve: gr.Plot
    stops: Stops = field(default_factory=Stops)


def build_sanity() -> Sanity:
    """Lay out the check."""
    title = "Does the map show the model, or only the photo? Re-initialise the weights"
    with gr.Accordion(title, open=False, elem_classes="vv-formula", elem_id="vv-sanity-fold"):
        gr.HTML(words.plain(_WHY), apply_default_css=False)
        meter = Meter({"label": _LABEL}, elem_id="vv-sanity")
        caption = gr.HTML("", elem_classes="vv-plot-caption", apply_default_css=False)
        curve = gr.Plot(
            show_label=False, container=False, elem_id="vv-sanity-curve", buttons=[], visible=False
        )
    return Sanity(meter, caption, curve)


def wire_sanity(sanity: Sanity, gallery: WebRoom, page: Page) -> None:
    """Run the check when it is asked for; another map empties it. What it found is said in the gallery too."""

    def start(view: ViewState, owner: str, _data: object) -> Iterator[tuple[Any, ...]]:
        yield from _checked(page, view, owner, sanity.stops.start(PAGE.get(), "sanity", _about(view)))

    def draw(page: Page, view: ViewState, owner: str) -> Iterator[tuple[Any, ...]]:
        sanity.stops.keep_only(PAGE.get(), _about(view))
        yield _known(page, view, owner) if shows_maps(view) else tuple(gr.skip() for _ in outputs)

    outputs = [sanity.meter, sanity.caption, sanity.curve, gallery]
    page.job(sanity.meter.start, start, outputs)
    page.reply(sanity.meter.stop, lambda _view, _owner, _data: sanity.stops.stop(PAGE.get(), "sanity"))
    page.drawing("explain", draw, outputs)


def _about(view: ViewState) -> str:
    return f"{view.about}|{view.target}|{view.method}"


def _known(page: Page, view: ViewState, owner: str) -> tuple[Any, ...]:
    """The curve of the chosen map where it is at hand, else nothing but the button."""
    method = card_named(view.method)
    meter = {"label": _LABEL, "words": f"For {method.words.label}.", "revision": view.revision}
    try:
        questions = Questions.of(page, view, owner)
        request = questions.randomised_request(method)
        if page.session.keeps(request):
            return _shown(page.session.run(request), questions, method, meter)
    except Exception as error:
        meter |= {"words": sentence(error)}
    return meter, "", gr.update(visible=False), gr.skip()


def _shown(curve: Any, questions: Questions, method: AnyMethod, meter: dict[str, Any]) -> tuple[Any, ...]:
    assert isinstance(curve, Curve)
    outcome = _outcome(curve)
    label, view = method.words.label, questions.targeted.view
    name = questions.page.session.name_of(view.image, owner=questions.subject.owner)
    target = questions.targeted.words or "its own embedding"
    figure = captioned_figure(
        curve_figure({label: curve}),
        title=f"{label}, weights re-initialised",
        caption=f"{view.model} · {name} · for {target} · {outcome} · vit_viz",
    )
    return (
        meter,
        words.plain(f"{label}: {outcome}"),
        gr.update(value=figure, visible=True),
        gr.update(weights={"key": questions.key, "method": method.name, "words": outcome}),
    )


def _checked(page: Page, view: ViewState, owner: str, stop: threading.Event) -> Iterator[tuple[Any, ...]]:
    """Follow the check of the chosen method to its curve."""
    method = card_named(view.method)
    none = gr.skip(), gr.skip(), gr.skip()
    if method.is_slow:
        text = (
            f"{method.words.label} would have to be recomputed for every block; choose one of the quick maps."
        )
        yield {"label": _LABEL, "error": text, "revision": view.revision}, *none
        return
    yield {"label": _LABEL, "share": 0.0, "words": f"{method.words.label}: the trained model …"}, *none
    try:
        questions = Questions.of(page, view, owner)
        request = questions.randomised_request(method)
        for step in steps(partial(page.session.run, request), stop):
            if step.is_last:
                meter = {"label": _LABEL, "words": f"For {method.words.label}.", "done": view.revision}
                yield _shown(step.result, questions, method, meter)
            else:
                said = f"{method.words.label}: {step.share:.0%}"
                yield {"label": _LABEL, "share": step.share, "words": said}, *none
    except Exception as error:
        yield {"label": _LABEL, "error": sentence(error), "revision": view.revision}, *none


def _outcome(curve: Curve) -> str:
    """What the curve says, in one sentence."""
    last = float(curve.y[-1])
    verdict = (
        "it depends on what the model learned"
        if abs(last) < 0.5
        else "much of it does not depend on what the model learned"
    )
    return f"With all weights re-initialised, the map's rank correlation with the original is {last:.2f}: {verdict}."
