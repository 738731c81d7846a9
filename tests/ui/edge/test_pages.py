"""Pages: whose each is, how many there may be, and when nobody listens any more."""

from __future__ import annotations

import contextlib
import threading
from contextlib import ExitStack
from typing import Any

import pytest

from tests.waiting import PATIENCE
from vit_viz.errors import BusyError, ParameterError
from vit_viz.ui.edge.pages import (
    ABANDONED_SECONDS,
    NOT_YOURS,
    OPENING_SECONDS,
    REMEMBERED_SECONDS,
    TOO_MANY,
    TOO_MANY_OF_YOURS,
    OpenPage,
    Pages,
)


class Watched:
    """Pages whose clock stands still until it is turned, and all that they told."""

    def __init__(self, *, most: int = 7, most_of_one: int = 3) -> None:
        self.now = 5000.0
        self.left: list[str] = []
        self.forgotten: list[str] = []
        self.waiting: set[str] = set()
        self.pages = Pages(
            on_left=self.left.append,
            on_forgotten=self.forgotten.append,
            with_questions=lambda: self.waiting,
            most=most,
            most_of_one=most_of_one,
            clock=lambda: self.now,
        )

    def admit(self, name: str, visitor: str = "ada") -> OpenPage:
        return self.pages.admit(name, visitor, visitor)

    def open(self, name: str, visitor: str = "ada") -> contextlib.ExitStack:
        """A page with a heartbeat; closed with the stack that is returned."""
        stack = contextlib.ExitStack()
        stack.enter_context(self.pages.heartbeat(self.admit(name, visitor)))
        return stack

    def known(self, *names: str) -> list[str]:
        return [name for name in names if self.pages.find(name)]


@pytest.fixture
def watched() -> Watched:
    return Watched()


# --- whose a page is


def test_a_name_belongs_to_its_first_visitor(watched: Watched) -> None:
    page = watched.admit("p1")
    with pytest.raises(ParameterError, match=NOT_YOURS):
        watched.admit("p1", "bob")
    assert watched.admit("p1") is page
    assert watched.pages.find("p1") is page
    assert (page.visitor, page.owner, len(watched.pages)) == ("ada", "ada", 1)


def test_a_refused_name_costs_its_owner_nothing() -> None:
    watched = Watched(most=2, most_of_one=2)
    for name in ("p1", "p2"):
        watched.admit(name)
    for _ in range(5):
        with pytest.raises(ParameterError):
            watched.admit("p1", "bob")
    assert (watched.known("p1", "p2"), watched.forgotten) == (["p1", "p2"], [])


def test_a_forgotten_name_is_free_again(watched: Watched) -> None:
    watched.admit("p1")
    watched.now += REMEMBERED_SECONDS
    watched.pages.forget_old()
    assert watched.admit("p1", "bob").visitor == "bob"


# --- how many there may be


def test_of_one_visitor_the_bound_is_reached_and_not_passed(watched: Watched) -> None:
    with watched.open("p1"), watched.open("p2"), watched.open("p3"):
        with pytest.raises(BusyError, match=TOO_MANY_OF_YOURS):
            watched.admit("p4")
        watched.admit("p1")  # one that is there is no new one
        watched.admit("p5", "bob")  # and another visitor has places of his own
    assert watched.forgotten == []


def test_of_all_visitors_the_bound_is_reached_and_not_passed(watched: Watched) -> None:
    with contextlib.ExitStack() as stack:
        for n in range(7):
            stack.enter_context(watched.open(f"p{n}", f"visitor {n}"))
        with pytest.raises(BusyError, match=TOO_MANY):
            watched.admit("p7", "visitor 7")
        with pytest.raises(BusyError, match=TOO_MANY):
            watched.admit("p8", "visitor 0")
        watched.admit("p0", "visitor 0")
    assert (len(watched.pages), watched.forgotten) == (7, [])


def test_a_visitor_s_own_oldest_closed_page_makes_room(watched: Watched) -> None:
    watched.admit("other", "bob")
    with watched.open("p1"):
        watched.admit("p2")
        watched.admit("p3")
        watched.admit("p2")  # used again, so that p3 is the oldest that is closed
        watched.admit("p4")
    assert watched.forgotten == ["p3"]
    assert watched.known("other", "p1", "p2", "p3", "p4") == ["other", "p1", "p2", "p4"]


def test_where_all_places_are_taken_the_oldest_closed_page_makes_room(watched: Watched) -> None:
    with watched.open("p0", "visitor 0"):
        for n in range(1, 7):
            watched.admit(f"p{n}", f"visitor {n}")
        watched.admit("p7", "visitor 7")
        watched.admit("p8", "visitor 8")
    assert watched.forgotten == ["p1", "p2"]
    assert len(watched.pages) == 7


def test_a_page_that_only_listens_is_open(watched: Watched) -> None:
    with contextlib.ExitStack() as stack:
        for n in range(3):
            stack.enter_context(watched.pages.listening(watched.admit(f"p{n}")))
        with pytest.raises(BusyError):
            watched.admit("p3")
    watched.admit("p3")
    assert watched.forgotten == ["p0"]


def test_a_page_whose_questions_wait_keeps_its_place_among_those_of_one_visitor(watched: Watched) -> None:
    for name in ("p1", "p2", "p3"):
        watched.admit(name)
    watched.waiting = {"p1", "p3"}
    watched.admit("p4")
    assert watched.forgotten == ["p2"]
    watched.waiting = {"p1", "p3", "p4"}
    with pytest.raises(BusyError, match=TOO_MANY_OF_YOURS):
        watched.admit("p5")
    assert watched.known("p1", "p3", "p4", "p5") == ["p1", "p3", "p4"]
    watched.admit("other", "bob")  # whose pages are his own
    watched.waiting = {"p1", "p4"}  # answered
    watched.admit("p5")
    assert watched.forgotten == ["p2", "p3"]


def test_a_page_whose_questions_wait_keeps_its_place_among_those_of_an_address() -> None:
    waiting, forgotten = {"near0", "near2"}, list[str]()
    pages = Pages(most_of_address=3, with_questions=lambda: waiting, on_forgotten=forgotten.append)
    for number in range(4):
        pages.admit(f"near{number}", f"cookie {number}", "x", "203.0.113.5")
    assert forgotten == ["near1"]
    waiting.add("near3")
    with pytest.raises(BusyError, match=TOO_MANY):
        pages.admit("near4", "cookie 4", "x", "203.0.113.5")
    pages.admit("far", "cookie 4", "x", "203.0.113.6")
    assert forgotten == ["near1"]


def test_a_page_whose_questions_wait_keeps_its_place_among_all(watched: Watched) -> None:
    for number in range(7):
        watched.admit(f"p{number}", f"visitor {number}")
    watched.waiting = {"p0", "p2"}
    for number in (7, 8):
        watched.admit(f"p{number}", f"visitor {number}")
    assert watched.forgotten == ["p1", "p3"]
    watched.waiting = {f"p{number}" for number in range(9)}
    with pytest.raises(BusyError, match=TOO_MANY):
        watched.admit("p9", "visitor 9")
    assert watched.forgotten == ["p1", "p3"]


def test_a_page_whose_question_is_being_taken_in_keeps_its_place(watched: Watched) -> None:
    with ExitStack() as joining:
        for name in ("p1", "p2", "p3"):
            joining.enter_context(watched.pages.asking(watched.admit(name)))
        with watched.pages.asking(watched.admit("p2")):  # two of one page
            pass
        with pytest.raises(BusyError, match=TOO_MANY_OF_YOURS):
            watched.admit("p4")
    watched.admit("p4")
    assert watched.forgotten == ["p1"]


def test_a_page_is_forgotten_before_its_place_is_given_away_and_told_of_afterwards() -> None:
    seen: list[Any] = []
    pages = Pages(most_of_one=1, on_forgotten=lambda name: seen.append((name, pages.find(name), len(pages))))
    pages.admit("p1", "ada", "ada")
    pages.admit("p2", "ada", "ada")  # what is told may ask the pages: no lock is held
    assert seen == [("p1", None, 1)]


# --- who has left


def test_whoever_closes_the_last_page_has_left_once(watched: Watched) -> None:
    first, second, other = watched.open("p1"), watched.open("p2"), watched.open("p3", "bob")
    first.close()
    assert watched.left == []
    second.close()
    assert watched.left == ["ada"]
    other.close()
    assert watched.left == ["ada", "bob"]


def test_two_heartbeats_of_one_page_leave_once(watched: Watched) -> None:
    first, second = watched.open("p1"), watched.open("p1")
    first.close()
    assert watched.left == []
    second.close()
    assert watched.left == ["ada"]


def test_the_end_of_a_stream_is_no_leaving(watched: Watched) -> None:
    page = watched.admit("p1")
    with watched.pages.listening(page):
        pass
    with watched.pages.heartbeat(page), watched.pages.listening(page):
        pass
    assert watched.left == ["ada"]  # by the heartbeat


def test_a_heartbeat_that_fails_ends_as_well(watched: Watched) -> None:
    page = watched.admit("p1")
    with pytest.raises(ConnectionError), watched.pages.heartbeat(page):
        raise ConnectionError
    assert (page.heartbeats, page.is_open, watched.left) == (0, False, ["ada"])


def test_many_threads_leave_once_and_nothing_stays_open(watched: Watched) -> None:
    page = watched.admit("p1")
    begin = threading.Barrier(8)

    def visit() -> None:
        with watched.pages.heartbeat(page):
            begin.wait(PATIENCE)
            for _ in range(200):
                with watched.pages.listening(page), watched.pages.heartbeat(page):
                    watched.admit("p1")
            begin.wait(PATIENCE)

    threads = [threading.Thread(target=visit) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert (page.heartbeats, page.listeners, watched.left) == (0, 0, ["ada"])


# --- who listens


def test_a_page_is_abandoned_once_its_stream_has_been_closed_for_a_while(watched: Watched) -> None:
    page = watched.admit("p1")
    with watched.pages.asking(page):
        pass
    with watched.pages.listening(page):
        watched.now += 100
        assert (watched.pages.abandoned(), watched.pages.has_listener("ada")) == ([], True)
    watched.now += ABANDONED_SECONDS - 0.1
    assert watched.pages.abandoned() == []
    watched.now += 0.1
    assert watched.pages.abandoned() == [page]


def test_a_page_that_has_asked_is_given_time_to_open_its_stream(watched: Watched) -> None:
    page = watched.admit("p1")
    watched.now += 100
    assert (watched.pages.abandoned(), watched.pages.has_listener("ada")) == ([page], False)
    with watched.pages.asking(page):
        assert (watched.pages.abandoned(), watched.pages.has_listener("ada")) == ([], True)
        watched.now += 5  # a machine that is slow to take it in
    watched.now += OPENING_SECONDS - 0.1
    assert (watched.pages.abandoned(), watched.pages.has_listener("ada")) == ([], True)
    watched.now += 0.1
    assert (watched.pages.abandoned(), watched.pages.has_listener("ada")) == ([page], False)


def test_a_question_asked_while_the_stream_of_the_one_before_ends_is_given_time_too(watched: Watched) -> None:
    page = watched.admit("p1")
    with watched.open("p1"):
        with watched.pages.asking(page):
            with watched.pages.listening(page):
                watched.now += 1
            watched.now += 1
        watched.now += OPENING_SECONDS - 0.1
        assert watched.pages.abandoned() == []


def test_an_open_page_that_asked_while_its_stream_was_being_closed_is_waited_for(watched: Watched) -> None:
    page = watched.admit("p1")
    with watched.open("p1"):
        with watched.pages.listening(page):
            with watched.pages.asking(page):
                watched.now += 0.5
            watched.now += 0.5  # the stream of the question before ends after this one was asked
        watched.now += OPENING_SECONDS - 0.1
        assert watched.pages.abandoned() == []
        watched.now += 0.1
        assert watched.pages.abandoned() == [page]


def test_a_page_that_was_closed_right_after_it_asked_is_not_waited_for(watched: Watched) -> None:
    page = watched.admit("p1")
    with watched.open("p1"), watched.pages.asking(page):
        pass
    watched.now += 0.1
    with watched.open("p1"):  # its heartbeat ends after the question
        watched.now += 0.1
    watched.now += ABANDONED_SECONDS
    assert watched.pages.abandoned() == [page]


def test_a_new_page_is_given_time_to_listen(watched: Watched) -> None:
    page = watched.admit("p1")
    assert watched.pages.abandoned() == []
    watched.now += ABANDONED_SECONDS
    assert watched.pages.abandoned() == [page]


def test_a_heartbeat_alone_does_not_listen(watched: Watched) -> None:
    with watched.open("p1"):
        watched.now += 100
        assert [page.name for page in watched.pages.abandoned()] == ["p1"]
        assert not watched.pages.has_listener("ada")


def test_an_owner_has_a_listener_while_one_page_listens(watched: Watched) -> None:
    first, second, other = watched.admit("p1"), watched.admit("p2"), watched.admit("p3", "bob")
    with watched.pages.listening(second):
        watched.now += 100
        assert watched.pages.abandoned() == [first, other]
        assert (watched.pages.has_listener("ada"), watched.pages.has_listener("bob")) == (True, False)
    assert not watched.pages.has_listener("nobody")


# --- what is forgotten


def test_pages_are_remembered_for_a_while_after_they_were_closed(watched: Watched) -> None:
    with watched.open("p1"):
        watched.admit("p2", "bob")
        watched.now += REMEMBERED_SECONDS - 1
        watched.pages.forget_old()
        assert watched.known("p1", "p2") == ["p1", "p2"]
        watched.now += 1
        watched.pages.forget_old()
        assert (watched.known("p1", "p2"), watched.forgotten) == (["p1"], ["p2"])
    watched.now += REMEMBERED_SECONDS - 1  # since p1 was closed
    watched.pages.forget_old()
    assert watched.known("p1") == ["p1"]
    watched.now += 1
    watched.pages.forget_old()
    assert (len(watched.pages), watched.forgotten) == (0, ["p2", "p1"])


def test_a_page_that_only_listens_is_not_forgotten(watched: Watched) -> None:
    with watched.pages.listening(watched.admit("p1")):
        watched.now += 2 * REMEMBERED_SECONDS
        watched.pages.forget_old()
    assert (watched.known("p1"), watched.forgotten) == (["p1"], [])


def test_a_page_whose_questions_wait_is_not_forgotten(watched: Watched) -> None:
    watched.admit("p1")
    asked = watched.admit("p2", "bob")
    watched.waiting = {"p1"}
    with watched.pages.asking(asked):
        watched.now += REMEMBERED_SECONDS
        watched.pages.forget_old()
        assert watched.known("p1", "p2") == ["p1", "p2"]
    watched.waiting.clear()
    watched.pages.forget_old()
    assert sorted(watched.forgotten) == ["p1", "p2"]


# --- fairly


def test_of_all_pages_those_of_the_visitor_who_has_most_go_first() -> None:
    pages = Pages(most=5, most_of_one=4)
    pages.admit("sleeping", "ada", "ada")
    for number in range(4):
        pages.admit(f"many{number}", "eve", "eve")
    pages.admit("new", "bob", "bob")
    assert pages.find("sleeping") is not None
    assert pages.find("many0") is None


def test_one_network_address_has_a_share_of_the_pages() -> None:
    pages = Pages(most_of_address=3)
    for number in range(4):
        pages.admit(f"near{number}", f"cookie {number}", "x", "203.0.113.5")
        pages.admit(f"far{number}", f"other {number}", "x")
    assert pages.find("near0") is None
    assert all(pages.find(f"far{number}") for number in range(4))
    with ExitStack() as kept:
        for number in (1, 2, 3):
            page = pages.admit(f"near{number}", f"cookie {number}", "x", "203.0.113.5")
            kept.enter_context(pages.heartbeat(page))
        with pytest.raises(BusyError, match=TOO_MANY):
            pages.admit("near5", "cookie 5", "x", "203.0.113.5")


def test_a_heartbeat_that_comes_and_goes_is_no_listening() -> None:
    now = [10.0]
    pages = Pages(clock=lambda: now[0])
    page = pages.admit("p1", "ada", "ada")
    with pages.asking(page):
        pass
    for _ in range(3):
        with pages.heartbeat(page):
            now[0] += 0.6
    assert pages.abandoned() == [page]
    assert not pages.has_listener("ada")


def test_a_page_that_connects_again_is_still_heard() -> None:
    now = [10.0]
    pages = Pages(clock=lambda: now[0])
    page = pages.admit("p1", "ada", "ada")
    now[0] += 60
    with pages.listening(page):
        pass
    now[0] += 1.0
    assert pages.abandoned() == []
    assert pages.has_listener("ada")
