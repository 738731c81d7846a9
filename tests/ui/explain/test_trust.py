"""What is said of a map in sentences: only what was measured of it, and where it is no better than chance."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from vit_viz.analyses.methods import METHODS
from vit_viz.ui.explain.trust import sentences

QUICK, BLIND = METHODS["relevance"], METHODS["rollout"]
SLOW = METHODS["occlusion"]
NOT_MEASURED = "Whether it changes with the class or with a mirror is measured for the quick methods only."


def trust(
    outside: tuple[bool, bool] = (True, True), beaten: tuple[int, int] = (10, 10), **measured: float
) -> Any:
    """What was measured of a map, in the shape of `Trust`."""
    facts = {"class_sensitivity": None, "mirror": None} | measured
    return SimpleNamespace(faithfulness=SimpleNamespace(beats_random=outside, beaten=beaten), **facts)


@pytest.mark.parametrize(
    ("outside", "words"),
    [
        ((False, True), ["Not outside the 95% band of random orders, taking away."]),
        ((True, False), ["Not outside the 95% band of random orders, putting back."]),
        ((False, False), ["Not outside the 95% band of random orders, taking away and putting back."]),
        ((True, True), []),
    ],
)
def test_a_map_within_the_band_of_random_orders_is_said_to_be_there(
    outside: tuple[bool, bool], words: list[str]
) -> None:
    assert sentences(QUICK, trust(outside))[1:] == words


@pytest.mark.parametrize(
    ("beaten", "words"),
    [
        ((10, 10), "Better than each of 10 random orders, taking away and putting back."),
        ((10, 9), "Better than 10 of 10 random orders taking away, and than 9 putting back."),
        ((3, 10), "Better than 3 of 10 random orders taking away, and than 10 putting back."),
        ((4, 4), "Better than 4 of 10 random orders taking away, and than 4 putting back."),
    ],
)
def test_random_orders_that_do_worse_are_counted(beaten: tuple[int, int], words: str) -> None:
    assert sentences(QUICK, trust(beaten=beaten)) == [words]


def test_what_was_measured_is_said_and_nothing_else() -> None:
    assert (QUICK.is_slow, BLIND.is_slow, SLOW.is_slow) == (False, False, True)
    assert (QUICK.words.class_blind, BLIND.words.class_blind, SLOW.words.class_blind) == (False, True, False)
    changes, mirrored = "Changes with the class: 0.29 of 1.", "Mirrored photo, mirrored map: -0.83 of 1."
    both = trust(class_sensitivity=0.287, mirror=-0.834)
    assert sentences(QUICK, both)[1:] == [changes, mirrored]
    assert sentences(QUICK, trust(class_sensitivity=0.287))[1:] == [changes]
    assert sentences(QUICK, trust(mirror=-0.834))[1:] == [mirrored]
    assert sentences(BLIND, both)[1:] == ["The same for every class.", mirrored]
    assert sentences(SLOW, trust())[1:] == [NOT_MEASURED]
