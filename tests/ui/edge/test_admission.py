"""Admission: the more a visitor has waiting, the fewer places are left for the next question."""

from __future__ import annotations

import contextlib
import re

import pytest
from hypothesis import given, strategies as st

from vit_viz.errors import BusyError
from vit_viz.ui.edge.admission import LANES, OTHERS, SLOW_OF_PAGE, YOURS, Lane
from vit_viz.ui.edge.http_guard import is_slow
from vit_viz.ui.explain import answers as explain_answers

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
        (19, 0, 0, ""),  # nothing waiting: every place is open
        (20, 0, 0, OTHERS),
        (15, 1, 0, ""),  # one of five: 20 * (1 - 1/5) = 16 places
        (16, 1, 0, OTHERS),
        (7, 3, 0, ""),  # 20 * (1 - 3/5) = 8
        (8, 3, 0, YOURS),
        (5, 5, 0, YOURS),
        (9, 0, 5, ""),  # half of the address: 10
        (10, 0, 5, OTHERS),
        (7, 0, 6, ""),  # 8
        (8, 0, 6, YOURS),
        (0, 0, 10, YOURS),
        (8, 3, 4, YOURS),  # the larger share counts: 3/5 before 4/10
        (5, 1, 7, ""),  # 7/10 before 1/5
        (6, 1, 7, YOURS),
    ],
)
def test_the_rule_by_hand(waiting: int, mine: int, of_address: int, expected: str) -> None:
    refused = pytest.raises(BusyError, match=re.escape(expected)) if expected else contextlib.nullcontext()
    with refused:
        LANE.check(waiting=waiting, mine=mine, of_address=of_address)


@pytest.mark.parametrize("lane", LANES.values(), ids=LANES)
def test_whoever_is_greedy_leaves_places_for_a_newcomer(lane: Lane) -> None:
    greedy = [0, 0, 0]
    while True:
        before = list(greedy)
        for visitor, mine in enumerate(greedy):  # each in turn, as long as there is room
            greedy[visitor] += is_let_in(lane, sum(greedy), mine)
        if greedy == before:
            break
    assert is_let_in(lane, sum(greedy), 0)
    assert max(greedy) - min(greedy) <= 1  # and none of them got more than the others
    of_address = 0
    while is_let_in(lane, of_address, 0, of_address):  # many visitors of one address
        of_address += 1
    assert of_address < lane.places
    assert is_let_in(lane, of_address, 0, 0)


_COUNT = st.integers(0, 60)
_MORE = st.integers(0, 5)
_LANES = st.builds(Lane, places=st.integers(1, 50), each=st.integers(1, 12), each_address=st.integers(1, 30))


@given(lane=_LANES, waiting=_COUNT, mine=_COUNT, of_address=_COUNT, more=st.tuples(_MORE, _MORE, _MORE))
def test_no_bound_is_passed_and_more_never_lets_in_what_less_refused(
    lane: Lane, waiting: int, mine: int, of_address: int, more: tuple[int, int, int]
) -> None:
    if is_let_in(lane, waiting, mine, of_address):
        assert (waiting < lane.places, mine < lane.each, of_address < lane.each_address) == (True,) * 3
    elif is_let_in(lane, waiting + more[0], mine + more[1], of_address + more[2]):
        pytest.fail("less was refused")


def test_what_pages_ask_takes_the_places_of_slow_questions_where_it_is_slow() -> None:
    assert is_slow("/api/v1/saco")
    for quick in ("/vit_viz/costs", "/vit_viz/checked", "/vit_viz/open", "/api/v1/look", "/api/v1/nothing"):
        assert not is_slow(quick), quick
    assert set(explain_answers.ANSWERS) >= SLOW_OF_PAGE
    assert all(is_slow(f"/vit_viz/{name}") for name in SLOW_OF_PAGE)
