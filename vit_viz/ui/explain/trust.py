"""How far to believe each map of the Explain tab: beside random orders of patches, and on a model that unlearns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from vit_viz.analyses.faithfulness import RANDOM_ORDERS, Faithfulness
from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.spec import AnyMethod
from vit_viz.analyses.trust import RANDOMISATION, Trust
from vit_viz.errors import ParameterError
from vit_viz.figures.lettering import number
from vit_viz.results import Curve
from vit_viz.sentences import formatted, percent, sentence
from vit_viz.ui.explain.questions import Questions, card_named, target_of
from vit_viz.ui.opened import PageCall
from vit_viz.ui.payload import rounded, saved_value

BAND_SHARE = 0.7  # of a test's progress: ten random orders, against one order per map


def trust_of_all(asked: PageCall) -> dict[str, Any]:
    """Test maps one after the other; random orders first, once for all of them. What is known of each is told at once."""
    names = asked.body.get("methods")
    if not isinstance(names, list):
        raise ParameterError('A test of maps names their methods: {"methods": ["relevance", ...]}.')
    methods = [method for method in METHODS.cards if method.name in names]
    questions = Questions.of(asked, asked.view, asked.owner)
    cards, ranks = dict[str, Any](), dict[str, float]()

    def tell(share: float, words: str) -> None:
        asked.progress(share)
        asked.preview({"words": f"{words} …", "cards": dict(cards)})

    tell(0.0, "Random orders of patches")
    asked.session.run(
        questions.band_request(),
        progress=lambda share: asked.progress(BAND_SHARE * share),
        cancelled=asked.cancelled,
    )
    for place, method in enumerate(methods):
        tell(BAND_SHARE + (1 - BAND_SHARE) * place / len(methods), method.words.label)
        try:
            trust: Trust = asked.session.run(questions.trust_request(method), cancelled=asked.cancelled)
        except ParameterError as error:
            cards[method.name] = {"error": sentence(error), "options": repr(questions.options(method))}
            continue
        cards[method.name] = trust_value(questions, method, trust)
        ranks[method.name] = trust.faithfulness.deletion_auc  # beside one band for all
    return {"cards": cards, "order": sorted(ranks, key=lambda name: ranks[name])}


def trust_value(questions: Questions, method: AnyMethod, trust: Trust) -> dict[str, Any]:
    """What is known of one map: its place beside random orders, two curves, and sentences."""
    scores = trust.faithfulness
    mean, low, high = scores.band.interval("deletion")
    curves = {"deletion": scores.deletion, "insertion": scores.insertion, "reverse": scores.reverse}
    is_one = len(questions.targeted.chosen) == 1
    is_value = questions.targeted.is_value and is_one
    is_number = not questions.targeted.classes or questions.targeted.is_value
    written = number if is_number else percent if is_one else logits
    # where the random orders begin, and where the line begins that shows them: at 0, or at the least that they reach
    begins = {"low": max(low, 0.0)}
    if _is_unbounded(scores):
        begins = {"low": low, "floor": float(scores.band.deletion.min())}

    def exact(value: float) -> str:
        return formatted(value, ".4g")

    return followed(questions) | {
        "options": repr(questions.options(method)),
        "falls": falls(scores, "value" if is_value else "lead"),
        "better": scores.beats_random[0],
        "place": {"area": scores.deletion_auc, "mean": mean, "high": high} | begins,
        "title": (
            f"Area under the curve while patches go, the best first: {exact(scores.deletion_auc)}. Random orders: {exact(mean)} "
            f"in the mean, 95% of them from {exact(low)} to {exact(high)} (gray). The lower, the better."
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
    names = targeted.names
    if len(names) == 1:
        how = {"softmax": "probability of", "sigmoid": "sigmoid of", "value": "value of"}[targeted.output]
        return {"axis": f"{how} {names[0]}"}
    lead = f"lead of {names[0]} over {names[1]}"
    return {"what": f"the {lead}", "axis": lead if targeted.is_value else f"{lead}, in logits"}


def logits(value: float) -> str:
    """A number of logits for people."""
    return formatted(value, ".2f").replace("-", "−")


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
        times = mean / max(scores.deletion_auc, 1e-12)
        return f"falls {times:.{1 if times < 10 else 0}f} x faster than at random"
    return "falls slower than at random" if scores.deletion_auc > high else "falls no faster than at random"


def sentences(method: AnyMethod, trust: Trust) -> list[str]:
    """What was measured of a map, a sentence each."""
    taken, put = trust.faithfulness.beaten
    said = [
        f"Better than each of {RANDOM_ORDERS} random orders, taking away and putting back."
        if taken == put == RANDOM_ORDERS
        else f"Better than {taken} of {RANDOM_ORDERS} random orders taking away, and than {put} putting back."
    ]
    outside = trust.faithfulness.beats_random
    if not all(outside):
        where = " and ".join(
            word for word, better in zip(("taking away", "putting back"), outside, strict=True) if not better
        )
        said.append(f"Not outside the 95% band of random orders, {where}.")
    if method.words.class_blind:
        said.append("The same for every class.")
    elif trust.class_sensitivity is not None:
        said.append(f"Changes with the class: {formatted(trust.class_sensitivity, '.2f')} of 1.")
    if trust.mirror is not None:
        said.append(f"Mirrored photo, mirrored map: {formatted(trust.mirror, '.2f')} of 1.")
    if method.is_slow:
        said.append(
            "Whether it changes with the class or with a mirror is measured for the quick methods only."
        )
    return said


def _curve(curve: Curve, written: Callable[[float], str], *, from_zero: bool = True) -> dict[str, Any]:
    """A curve with its band, for the page to draw, and the numbers at the ends of its axis.

    Args:
        from_zero: whether the axis begins at 0; that of a value does not, which may be far from 0 on every photo.
    """
    assert curve.band is not None
    low, high = curve.band
    both = np.stack([curve.y, low, high])
    least, most = float(both.min()), float(both.max())
    ends = (min(0.0, least), max(most, 1e-6)) if from_zero else (least, max(most, least + 1e-6))
    return {
        "x": rounded(curve.x),
        "y": rounded(curve.y),
        "low": rounded(low),
        "high": rounded(high),
        "ends": list(ends),
        "labels": [_label(end, written) for end in ends],
        "texts": [_label(float(value), written) for value in curve.y],
    }


def _label(value: float, written: Callable[[float], str]) -> str:
    return "0" if value == 0 else written(value)


# --- the sanity check: does the chosen map depend on what the model has learned?


def sanity(asked: PageCall) -> dict[str, Any]:
    """Compute how the chosen map changes as the model unlearns."""
    method = card_named(asked.view.method)
    if method.is_slow:
        raise ParameterError(
            f"{method.words.label} would have to be recomputed for every block; choose one of the quick maps."
        )
    return _weights_value(asked, method, is_computed=True)


def checked(asked: PageCall) -> dict[str, Any]:
    """Which map is chosen, and how it changes as the model unlearns where that is at hand."""
    return _weights_value(asked, card_named(asked.view.method), is_computed=False)


def _weights_value(asked: PageCall, method: AnyMethod, *, is_computed: bool) -> dict[str, Any]:
    questions = Questions.of(asked, asked.view, asked.owner)
    session, subject, view = asked.session, questions.subject, questions.targeted.view
    target = questions.targeted.words or "its own embedding"
    request = subject.request("randomisation", method=method.name, target=target_of(view))
    said = {"key": questions.key, "method": method.name, "label": method.words.label}
    if not is_computed and not session.keeps(request):
        return said
    curve: Curve = session.run(request, progress=asked.progress, cancelled=asked.cancelled)
    last = float(curve.y[-1])
    verdict = "it depends" if abs(last) < 0.5 else "much of it does not depend"
    return said | {
        "words": "With all weights re-initialised, the map's rank correlation with the original is "
        f"{formatted(last, '.2f')}: {verdict} on what the model learned.",
        "title": f"{method.words.label}, weights re-initialised",
        "caption": f"{view.model} · {session.name_of(view.image, owner=subject.owner)} · for {target}",
        "correlations": rounded(curve.y),
        "labels": [curve.x_label, curve.y_label],
        "figure": saved_value(view, RANDOMISATION.name, method=method.name, target=view.target),
    }
