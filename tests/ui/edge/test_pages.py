"""Pages: whose each is, how many there may be, how fast they are opened, and who has left."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from typing import Any

import pytest

from vit_viz.errors import BusyError, ParameterError
from vit_viz.ui.edge.admission import Buckets
from vit_viz.ui.edge.pages import (
    MOST_HEARTBEATS,
    NOT_YOURS,
    OPEN_ALREADY,
    REMEMBERED_SECONDS,
    TOO_MANY,
    TOO_MANY_OF_YOURS,
    TOO_QUICKLY,
    Pages,
)

NEAR = "203.0.113.5"


class Watched:
    """Pages whose clock stands still until it is turned, and all that they told."""

    def __init__(self, *, most: int = 7, most_of_one: int = 3, **limits: int) -> None:
        self.now = 5000.0
        self.left: list[str] = []
        self.pages = Pages(
            on_left=self.left.append,
            most=most,
            most_of_one=most_of_one,
            clock=lambda: self.now,
            **limits,
        )

    def open(self, name: str, visitor: str = "ada", address: str = "") -> AbstractContextManager[None]:
        """An opened page, until it is closed."""
        return self.pages.heartbeat(name, visitor, visitor, address)

    def visit(self, name: str, visitor: str = "ada", address: str = "") -> None:
        """Open a page and close it."""
        with self.open(name, visitor, address):
            pass

    def known(self, *names: str) -> list[str]:
        """Which of these pages are remembered."""
        return [name for name in names if self.pages.find(name) is not None]


@pytest.fixture
def watched() -> Watched:
    return Watched()


# --- whose a page is


def test_a_name_belongs_to_its_first_visitor_also_once_it_is_closed(watched: Watched) -> None:
    watched.visit("p1")
    with pytest.raises(ParameterError, match=NOT_YOURS):
        watched.visit("p1", "bob")
    with watched.open("p1"):
        page = watched.pages.find("p1")
        assert page is not None
        assert (page.visitor, page.owner, page.heartbeats, len(watched.pages)) == ("ada", "ada", 1, 1)
        with pytest.raises(ParameterError, match=NOT_YOURS):
            watched.visit("p1", "bob")
    assert watched.left == ["ada", "ada"]  # and never bob


def test_a_name_that_nobody_has_used_for_long_is_free_again_and_an_open_one_is_kept(watched: Watched) -> None:
    with watched.open("open"):
        watched.visit("p1")
        watched.now += REMEMBERED_SECONDS - 1
        watched.visit("p2", "bob")
        assert watched.known("open", "p1", "p2") == ["open", "p1", "p2"]
        watched.now += 1
        watched.visit("p3")
        assert watched.known("open", "p1", "p2", "p3") == ["open", "p2", "p3"]
    watched.now += REMEMBERED_SECONDS - 1  # since it was closed
    watched.visit("p1", "bob")
    assert watched.known("open", "p1", "p2") == ["open", "p1"]


def test_a_page_has_at_most_four_heartbeats_and_leaves_with_the_last(watched: Watched) -> None:
    with ExitStack() as beating:
        for _ in range(MOST_HEARTBEATS - 1):
            beating.enter_context(watched.open("p1"))
        watched.visit("p1")
        beating.enter_context(watched.open("p1"))
        with pytest.raises(BusyError, match=OPEN_ALREADY):
            watched.visit("p1")
        assert watched.left == []
    assert watched.left == ["ada"]


# --- how many there may be


def test_of_one_visitor_the_bound_is_reached_and_not_passed(watched: Watched) -> None:
    with watched.open("p1"), watched.open("p2"), watched.open("p3"):
        with pytest.raises(BusyError, match=TOO_MANY_OF_YOURS):
            watched.visit("p4")
        watched.visit("p1")  # one that is there is no new one
        watched.visit("p5", "bob")  # and another visitor has places of his own
    assert watched.known("p1", "p2", "p3", "p4", "p5") == ["p1", "p2", "p3", "p5"]


def test_of_all_visitors_the_bound_is_reached_and_not_passed(watched: Watched) -> None:
    with ExitStack() as stack:
        for n in range(7):
            stack.enter_context(watched.open(f"p{n}", f"visitor {n}"))
        with pytest.raises(BusyError, match=TOO_MANY):
            watched.visit("p7", "visitor 7")
        with pytest.raises(BusyError, match=TOO_MANY):
            watched.visit("p8", "visitor 0")
        watched.visit("p0", "visitor 0")
    assert len(watched.pages) == 7


def test_the_oldest_closed_page_makes_room(watched: Watched) -> None:
    """The visitor's own where that has too many, else the oldest of all."""
    watched.visit("other", "bob")
    with watched.open("p1"):
        for name in ("p2", "p3", "p2", "p4"):  # p2 is used again, so that p3 is the oldest that is closed
            watched.visit(name)
        assert watched.known("other", "p1", "p2", "p3", "p4") == ["other", "p1", "p2", "p4"]
    watched = Watched()
    with watched.open("p0", "visitor 0"):
        for n in range(1, 9):
            watched.visit(f"p{n}", f"visitor {n}")
    assert watched.known(*(f"p{n}" for n in range(9))) == ["p0", *(f"p{n}" for n in range(3, 9))]


def test_of_all_pages_those_of_the_visitor_who_has_most_go_first() -> None:
    watched = Watched(most=5, most_of_one=4)
    watched.visit("sleeping")
    for number in range(4):
        watched.visit(f"many{number}", "eve")
    watched.visit("new", "bob")
    assert watched.known("sleeping", "many0", "many1", "new") == ["sleeping", "many1", "new"]


def test_one_network_address_has_a_share_of_the_pages() -> None:
    watched = Watched(most=20, most_of_address=3)
    for number in range(4):
        watched.visit(f"near{number}", f"cookie {number}", NEAR)
        watched.visit(f"far{number}", f"other {number}")
    assert watched.known("near0", "near1") == ["near1"]
    assert len(watched.known(*(f"far{number}" for number in range(4)))) == 4
    with ExitStack() as kept:
        for number in (1, 2, 3):
            kept.enter_context(watched.open(f"near{number}", f"cookie {number}", NEAR))
        with pytest.raises(BusyError, match=TOO_MANY):
            watched.visit("near5", "cookie 5", NEAR)
        watched.visit("distant", "cookie 5", "203.0.113.6")


# --- how fast they are opened


def test_new_pages_of_one_visitor_come_only_so_fast() -> None:
    """Those that are open go on, other visitors open theirs, and what was refused does not count."""
    watched = Watched(most=50, most_of_one=40)
    watched.pages._pace = Buckets(burst=3, per_second=0.5, clock=lambda: watched.now)

    def refused(name: str) -> None:
        with pytest.raises(BusyError, match=TOO_QUICKLY):
            watched.visit(name)
        assert watched.known(name) == []

    for name in ("p0", "p1", "p2"):
        watched.visit(name)
    for _ in range(4):
        refused("p3")
    for name in ("p0", "p1", "p2"):
        watched.visit(name)
    watched.visit("theirs", "bob")
    watched.now += 2
    watched.visit("p3")
    refused("p4")
    watched.now += 100
    for name in ("later0", "later1", "later2"):
        watched.visit(name)
    refused("later3")


def test_new_pages_from_one_address_come_only_so_fast_where_addresses_are_known() -> None:
    """A cookie is to be had by whoever drops the last one."""
    watched = Watched(most=50)
    watched.pages._pace_from = Buckets(burst=2, per_second=1, clock=lambda: watched.now)
    for number in (0, 1):
        watched.visit(f"near{number}", f"cookie {number}", NEAR)
    for number in (2, 3):
        with pytest.raises(BusyError, match=TOO_QUICKLY):
            watched.visit(f"near{number}", f"cookie {number}", NEAR)
        watched.visit(f"unknown{number}", f"cookie {number}")
    watched.visit("distant", "cookie", "203.0.113.6")


# --- who has left


def test_whoever_closes_the_last_page_has_left_once(watched: Watched) -> None:
    with ExitStack() as second, ExitStack() as other:
        with watched.open("p1"):
            second.enter_context(watched.open("p2"))
            other.enter_context(watched.open("p3", "bob"))
        assert watched.left == []
        second.close()
        assert watched.left == ["ada"]
        other.close()
    assert watched.left == ["ada", "bob"]


def test_a_heartbeat_that_fails_ends_as_well(watched: Watched) -> None:
    with pytest.raises(ConnectionError), watched.open("p1"):
        raise ConnectionError
    page: Any = watched.pages.find("p1")
    assert (page.heartbeats, page.left_at, watched.left) == (0, watched.now, ["ada"])
