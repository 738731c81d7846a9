"""What is said of a test of a map: what was measured of it, and where it is no better than chance; and of a map that unlearns."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.trust import Randomisation, Trust

QUICK, BLIND, SLOW = "relevance", "rollout", "occlusion"
NOT_MEASURED = "Whether it changes with the class or with a mirror is measured for the quick methods only."


def said_of(
    method: str,
    outside: tuple[bool, bool] = (True, True),
    beaten: tuple[int, int] = (10, 10),
    **measured: float,
) -> list[str]:
    """The sentences about a map by a method."""
    scores: Any = SimpleNamespace(beats_random=outside, beaten=beaten)
    return Trust(scores, method, (0.4, 0.3, 0.6), **measured).to_words().splitlines()


def test_a_map_is_set_beside_random_orders_and_their_band() -> None:
    for outside, where in (
        ((False, True), "taking away"),
        ((True, False), "putting back"),
        ((False, False), "taking away and putting back"),
    ):
        assert said_of(QUICK, outside)[1:] == [f"Not outside the 95% band of random orders, {where}."]
    assert said_of(QUICK) == ["Better than each of 10 random orders, taking away and putting back."]
    for taken, put in ((10, 9), (3, 10), (4, 4)):
        words = f"Better than {taken} of 10 random orders taking away, and than {put} putting back."
        assert said_of(QUICK, beaten=(taken, put)) == [words]


def test_what_was_measured_is_said_and_nothing_else() -> None:
    methods = [METHODS[name] for name in (QUICK, BLIND, SLOW)]
    assert [method.is_slow for method in methods] == [False, False, True]
    assert [method.words.class_blind for method in methods] == [False, True, False]
    changes, mirrored = "Changes with the class: 0.29 of 1.", "Mirrored photo, mirrored map: -0.83 of 1."
    both = {"class_sensitivity": 0.287, "mirror": -0.834}
    assert said_of(QUICK, **both)[1:] == [changes, mirrored]
    assert said_of(QUICK, class_sensitivity=0.287)[1:] == [changes]
    assert said_of(QUICK, mirror=-0.834)[1:] == [mirrored]
    assert said_of(BLIND, **both)[1:] == ["The same for every class.", mirrored]
    assert said_of(SLOW)[1:] == [NOT_MEASURED]


def scores(deletion: list[float], reverse: list[float], chance: list[float]) -> Any:
    """What was measured, in the shape of `Faithfulness`: curves at 0, 50 and 100%, one of them for all random orders."""
    shares = np.array([0, 0.5, 1])
    curves = [SimpleNamespace(x=shares, y=np.array(y)) for y in (deletion, reverse)]
    return SimpleNamespace(
        deletion=curves[0],
        reverse=curves[1],
        band=SimpleNamespace(fractions=shares, deletion=np.array([chance])),
        deletion_auc=-0.5,
        reverse_auc=2.25,
        beats_random=(True, True),
        beaten=(10, 10),
    )


MEAN = (
    "In the mean over the curve the lead is −0.50, with dog's patches first 2.25; in random orders 1.50, 95% of them from −0.25 to "
    "2.00."
)


@pytest.mark.parametrize(
    ("measured", "words"),
    [
        (
            scores([3, -1, 0.2], [3, 4, 0.2], [3, 1, 0.2]),
            [
                "On the whole photo cat leads dog by 3.00 logits; with every patch painted over it is 0.20.",
                "With cat's patches first, the lead is lost when 50% are gone; in random orders, in the mean, it is never lost.",
                MEAN,
                "With dog's patches first it grows to 4.00, when 50% are gone.",
            ],
        ),
        (
            scores([-2, -3, -1], [-2, -2.5, -3], [-2, -2, -1]),
            [
                "On the whole photo cat does not lead dog: the lead is −2.00 logits; with every patch painted over it is −1.00.",
                MEAN,
                "With dog's patches first it never grows.",
            ],
        ),
    ],
)
def test_what_becomes_of_a_lead_is_said_with_its_numbers(measured: Any, words: list[str]) -> None:
    trust = Trust(measured, QUICK, (1.5, -0.25, 2.0), names=("cat", "dog"), unit="logits")
    assert trust.to_words().splitlines() == [*words, *said_of(QUICK)]
    of_values = Trust(measured, QUICK, (1.5, -0.25, 2.0), names=("cat", "dog"))
    assert "logits" not in of_values.to_words()


@pytest.mark.parametrize(
    ("last", "verdict"),
    [
        (0.49, "it depends on what the model learned"),
        (-0.49, "it depends on what the model learned"),
        (0.5, "much of it does not depend on what the model learned"),
        (-0.5, "much of it does not depend on what the model learned"),
    ],
)
def test_the_verdict_is_that_of_the_last_correlation(last: float, verdict: str) -> None:
    curve = Randomisation(np.arange(2, dtype=np.float32), np.array([1, last], np.float32), "x", "y", "m")
    assert curve.to_words().endswith(f" is {last:.2f}: {verdict}.")
