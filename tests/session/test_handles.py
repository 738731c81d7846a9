"""Handles: what the browser may fetch, and for how long."""

from __future__ import annotations

import re

import pytest

from vit_viz.session import handles as handles_module
from vit_viz.session.handles import VISITOR, Handles, cookie_name, new_visitor, visitor_in
from vit_viz.session.request import Subject

LION = Subject("mini", "lion", "fit", "ada")


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_handle_cannot_be_guessed_and_says_nothing() -> None:
    handles = Handles()
    issued = {handles.issue(Subject("mini", f"image {i}", "fit", "ada")) for i in range(200)}
    assert len(issued) == 200
    assert all(len(handle) >= 32 and "image" not in handle for handle in issued)


def test_a_handle_expires_after_its_last_use() -> None:
    clock = Clock()
    handles = Handles(max_seconds=10, clock=clock)
    handle = handles.issue(LION)
    clock.now = 10
    assert handles.find(handle) == LION
    clock.now = 20
    assert handles.find(handle) == LION  # the use at 10 kept it
    clock.now = 30.001
    assert handles.find(handle) is None
    assert handles.issue(LION) != handle


def test_a_crowd_that_asks_for_many_handles_loses_its_own() -> None:
    """Each of seven browsers has many; who has two keeps them, also where they are the oldest."""
    clock = Clock()
    handles = Handles(max_count=60, clock=clock)
    token = VISITOR.set("ada")
    mine = [handles.issue(Subject("mini", image, "fit")) for image in ("lion", "bird")]
    for number in range(150):
        clock.now += 1
        VISITOR.set(f"eve {number % 7}")
        handles.issue(Subject("mini", f"image {number}", "fit"))
    VISITOR.reset(token)
    assert [handles.find(one, visitor="ada") is not None for one in mine] == [True, True]
    assert len(handles) == len(handles._handles) == 60


def test_a_handle_is_worth_nothing_in_another_browser() -> None:
    handles, name = Handles(), new_visitor()
    before = VISITOR.set(name)
    handle = handles.issue(LION)
    VISITOR.reset(before)
    assert handles.find(handle, visitor=name) == LION
    assert handles.find(handle, visitor="b" * 32) is None
    assert handles.find(handle) is None
    assert handles.issue(LION) != handle


def test_the_handle_of_a_browser_without_a_name_is_bound_to_none() -> None:
    handles = Handles()
    assert handles.find(handles.issue(LION), visitor="b" * 32) == LION


@pytest.mark.parametrize("name", ["", "short", "a" * 33, "a" * 31 + ";", "ä" * 32])
def test_a_name_that_was_not_given_by_us_is_no_name(name: str) -> None:
    assert visitor_in({cookie_name(): name}) == ""
    ada, eve = new_visitor(), new_visitor()
    assert visitor_in({cookie_name(): ada}) == ada
    assert visitor_in({cookie_name(): ada[:24] + eve[24:]}) == ""
    assert visitor_in({cookie_name(): "a" * 40}) == ""
    assert visitor_in({}) == ""


# --- clean-up, counted after


def kept(handles: Handles) -> tuple[int, int]:
    """Entries of the two tables, which must never differ."""
    return len(handles._bound), len(handles._handles)


def test_expired_handles_leave_both_tables_whoever_asks_next() -> None:
    for ask in (len, lambda handles: handles.find("nobody"), lambda handles: handles.issue(LION)):
        clock = Clock()
        handles = Handles(max_seconds=10, clock=clock)
        for i in range(4):
            handles.issue(Subject("mini", f"image {i}"))
        clock.now = 10.5
        ask(handles)
        assert kept(handles) in ((0, 0), (1, 1))  # the one that was issued now


def test_only_what_nobody_used_for_a_while_expires() -> None:
    clock = Clock()
    handles = Handles(max_seconds=10, clock=clock)
    old, used = handles.issue(Subject("mini", "old")), handles.issue(Subject("mini", "used"))
    clock.now = 6
    handles.find(used)
    clock.now = 11
    assert len(handles) == 1
    assert handles.find(old) is None
    assert handles.find(used) == Subject("mini", "used")


def test_issuing_again_counts_as_a_use() -> None:
    clock = Clock()
    handles = Handles(max_seconds=10, max_count=2, clock=clock)
    lion = handles.issue(LION)
    clock.now = 6
    assert handles.issue(LION) == lion
    clock.now = 15
    assert handles.find(lion) == LION
    handles.issue(Subject("mini", "second"))
    handles.issue(LION)
    handles.issue(Subject("mini", "third"))
    assert handles.find(lion) == LION  # the second one was the oldest


def test_what_was_pushed_out_leaves_both_tables_and_gets_a_new_handle() -> None:
    handles = Handles(max_count=3)
    issued = [handles.issue(Subject("mini", str(i))) for i in range(5)]
    assert [handles.find(handle) is None for handle in issued] == [True, True, False, False, False]
    assert (len(handles), *kept(handles)) == (3, 3, 3)
    assert handles.issue(Subject("mini", "0")) not in issued
    assert kept(handles) == (3, 3)
    assert handles.find(issued[2]) is None


@pytest.mark.parametrize(
    "other",
    [
        Subject("other", "lion", "fit", "ada"),
        Subject("mini", "tower", "fit", "ada"),
        Subject("mini", "lion", "crop", "ada"),
        Subject("mini", "lion", "fit", "bob"),
    ],
)
def test_subjects_that_differ_in_one_field_have_handles_of_their_own(other: Subject) -> None:
    handles = Handles()
    first, second = handles.issue(LION), handles.issue(other)
    assert handles.issue(LION) == first != second
    assert (handles.find(first), handles.find(second)) == (LION, other)


def test_the_cookie_s_name_follows_from_the_server_s_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two servers of one host name, which browsers do not tell apart by their ports, leave each other's cookies alone."""
    names = set[str]()
    for key in (b"1" * 32, b"2" * 32, b"1" * 32):
        monkeypatch.setattr(handles_module, "_key", lambda key=key: key)
        cookie_name.cache_clear()
        names.add(cookie_name())
    cookie_name.cache_clear()
    assert len(names) == 2
    assert all(re.fullmatch("vit_viz_[0-9a-f]{8}", name) for name in names)
