"""Admission: the more a visitor has waiting, the fewer places are left for the next question."""

from __future__ import annotations

import contextlib
import re

import pytest
from hypothesis import given, strategies as st

from vit_viz.errors import BusyError
from vit_viz.ui.edge.admission import (
    ANSWERS,
    LANES,
    OTHERS,
    SLOW,
    SLOW_OF_PAGE,
    STREAMS,
    YOURS,
    Lane,
)
from vit_viz.ui.edge.http_guard import _is_slow
from vit_viz.ui.explain import answers as explain_answers, stage
from vit_viz.ui.palette import answers as palette_answers

LANE = Lane(places=20, each=5, each_address=10)


def is_let_in(lane: Lane, waiting: int, mine: int, of_address: int = 0) -> bool:
    try:
        lane.check(waiting=waiting, mine=mine, of_address=of_address)
    except BusyError:
        return False
    return True


@pytest.mark.parametrize(
    ("waiting", "mine", "of_address", "expected"),
    [
        (0, 0, 0, ""),
        (19, 0, 0, ""),  # nothing waiting: every place is open
        (20, 0, 0, OTHERS),
        (21, 0, 0, OTHERS),
        (15, 1, 0, ""),  # one of five: 20 * (1 - 1/5) = 16 places
        (16, 1, 0, OTHERS),
        (11, 2, 0, ""),  # 20 * (1 - 2/5) = 12
        (12, 2, 0, OTHERS),
        (7, 3, 0, ""),  # 20 * (1 - 3/5) = 8
        (8, 3, 0, YOURS),
        (3, 4, 0, ""),  # 20 * (1 - 4/5) = 4
        (4, 4, 0, YOURS),
        (5, 5, 0, YOURS),
        (9, 9, 0, YOURS),
        (17, 0, 1, ""),  # one of ten of the address: 18
        (18, 0, 1, OTHERS),
        (9, 0, 5, ""),  # half of the address: 10
        (10, 0, 5, OTHERS),
        (7, 0, 6, ""),  # 8
        (8, 0, 6, YOURS),
        (1, 0, 9, ""),  # 2
        (2, 0, 9, YOURS),
        (0, 0, 10, YOURS),
        (7, 3, 4, ""),  # the larger share counts: 3/5 before 4/10
        (8, 3, 4, YOURS),
        (5, 1, 7, ""),  # 7/10 before 1/5
        (6, 1, 7, YOURS),
    ],
)
def test_the_rule_by_hand(waiting: int, mine: int, of_address: int, expected: str) -> None:
    refused = pytest.raises(BusyError, match=re.escape(expected)) if expected else contextlib.nullcontext()
    with refused:
        LANE.check(waiting=waiting, mine=mine, of_address=of_address)


def test_an_address_need_not_be_known() -> None:
    LANE.check(waiting=7, mine=3)
    with pytest.raises(BusyError):
        LANE.check(waiting=8, mine=3)


def filled(lane: Lane, waiting: int = 0, mine: int = 0) -> int:
    """How many questions one visitor gets in who asks as long as there is room."""
    asked = 0
    while is_let_in(lane, waiting + asked, mine + asked):
        asked += 1
        assert asked <= lane.places
    return asked


@pytest.mark.parametrize("lane", [LANE, *LANES.values()], ids=["small", *LANES])
def test_a_greedy_visitor_cannot_fill_the_lane(lane: Lane) -> None:
    asked = filled(lane)
    assert 1 < asked <= lane.each < lane.places
    assert is_let_in(lane, asked, 0)


@pytest.mark.parametrize("lane", [LANE, *LANES.values()], ids=["small", *LANES])
def test_a_newcomer_gets_in_while_several_are_greedy(lane: Lane) -> None:
    greedy = [0, 0, 0]
    while True:
        before = list(greedy)
        for visitor, mine in enumerate(greedy):  # each in turn, as long as there is room
            greedy[visitor] += is_let_in(lane, sum(greedy), mine)
        if greedy == before:
            break
    assert is_let_in(lane, sum(greedy), 0)
    assert max(greedy) - min(greedy) <= 1  # and none of them got more than the others


@pytest.mark.parametrize("lane", [LANE, *LANES.values()], ids=["small", *LANES])
def test_one_address_cannot_fill_the_lane_with_many_visitors(lane: Lane) -> None:
    of_address = 0
    while is_let_in(lane, of_address, 0, of_address):
        of_address += 1
    assert of_address < lane.places
    assert is_let_in(lane, of_address, 0, 0)


def test_slow_questions_take_no_places_of_quick_ones() -> None:
    assert set(LANES) == {"quick", SLOW, ANSWERS, STREAMS}
    assert LANES["quick"] is not LANES[SLOW]


_COUNT = st.integers(0, 60)
_MORE = st.integers(0, 5)
_LANES = st.builds(Lane, places=st.integers(1, 50), each=st.integers(1, 12), each_address=st.integers(1, 30))


@given(lane=_LANES, waiting=_COUNT, mine=_COUNT, of_address=_COUNT, more=st.tuples(_MORE, _MORE, _MORE))
def test_more_never_lets_in_what_less_refused(
    lane: Lane, waiting: int, mine: int, of_address: int, more: tuple[int, int, int]
) -> None:
    if is_let_in(lane, waiting + more[0], mine + more[1], of_address + more[2]):
        assert is_let_in(lane, waiting, mine, of_address)


@given(lane=_LANES, waiting=_COUNT, mine=_COUNT, of_address=_COUNT)
def test_no_bound_is_passed(lane: Lane, waiting: int, mine: int, of_address: int) -> None:
    if is_let_in(lane, waiting, mine, of_address):
        assert waiting < lane.places
        assert mine < lane.each
        assert of_address < lane.each_address


@pytest.mark.parametrize(
    ("path", "is_slow"),
    [
        *((f"/vit_viz/{name}", True) for name in sorted(SLOW_OF_PAGE)),
        *((f"/vit_viz/{name}", False) for name in ("gallery", "checked", "open")),
        ("/api/v1/saco", True),
        ("/api/v1/look", False),
        ("/api/v1/nothing", False),
    ],
)
def test_what_pages_ask_takes_the_places_of_slow_questions_where_it_is_slow(path: str, is_slow: bool) -> None:
    assert _is_slow(path) == is_slow


def test_whatever_pages_ask_that_is_slow_is_there() -> None:
    assert {
        name for part in (explain_answers, stage, palette_answers) for name in part.ANSWERS
    } >= SLOW_OF_PAGE
