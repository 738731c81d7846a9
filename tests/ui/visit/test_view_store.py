"""Two actions of one visitor at the same moment: both count."""

from __future__ import annotations

import threading
from dataclasses import replace

from tests.waiting import PATIENCE
from vit_viz.ui.page import ViewStore
from vit_viz.views.state import ViewState


def test_an_action_alone_changes_the_view_it_saw() -> None:
    seen = ViewState(revision=4)
    before, after = ViewStore().apply("page", seen, lambda view: view.after_action(query="2,3"))
    assert before == seen
    assert (after.query, after.revision) == ("2,3", 5)


def test_a_slow_action_does_not_undo_a_quick_one() -> None:
    latest, seen = ViewStore(), ViewState(model="slow", revision=4)
    waiting, quick_is_done = threading.Event(), threading.Event()
    results: list[tuple[ViewState, ViewState]] = []

    def slow(view: ViewState) -> ViewState:
        waiting.set()
        assert quick_is_done.wait(PATIENCE)
        return view.after_action(query="2,3")

    thread = threading.Thread(target=lambda: results.append(latest.apply("page", seen, slow)))
    thread.start()
    assert waiting.wait(PATIENCE)
    latest.apply("page", seen, lambda view: view.on_subject(model="mini"))
    quick_is_done.set()
    thread.join(PATIENCE)
    ((before, after),) = results
    assert before.model == "mini"
    assert (after.model, after.query) == ("mini", "2,3")
    assert after.revision == seen.revision + 2


def test_many_actions_at_once_all_count() -> None:
    latest, seen, start = ViewStore(), ViewState(layer=0), threading.Barrier(8)

    def act() -> None:
        start.wait()
        latest.apply("page", seen, lambda view: view.after_action(layer=(view.layer or 0) + 1))

    threads = [threading.Thread(target=act) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    before, _after = latest.apply("page", seen, lambda view: view)
    assert before.layer == 8


def test_what_the_explorer_says_counts_although_it_is_no_action_of_its_own() -> None:
    latest, seen = ViewStore(), ViewState(revision=4)
    latest.apply("page", seen, lambda view: replace(view, layer=2))
    _, late = latest.apply("page", seen, lambda view: replace(view, head=3))
    assert (late.layer, late.head, late.revision) == (2, 3, 4)
    assert latest.newest("page", seen) == late


def test_pages_know_nothing_of_each_other() -> None:
    latest, seen = ViewStore(), ViewState()
    latest.apply("one", seen, lambda view: view.after_action(query="2,3"))
    before, _after = latest.apply("two", seen, lambda view: view)
    assert before == seen


def test_of_too_many_pages_the_quietest_is_forgotten() -> None:
    latest, seen = ViewStore(max_pages=2), ViewState()
    for page in ("one", "two", "three"):
        latest.apply(page, seen, lambda view: view.after_action(query="2,3"))
    assert latest.apply("one", seen, lambda view: view)[0] == seen
    assert latest.apply("three", seen, lambda view: view)[0].query == "2,3"


def test_an_answer_that_is_written_late_does_not_bring_back_an_older_view() -> None:
    latest, looking = ViewStore(), ViewState(tab="look", revision=4)
    _, late = latest.apply("page", looking, lambda view: replace(view, layer=2))
    latest.apply("page", late, lambda view: view.after_action(tab="patches"))
    assert latest.newest("page", late).tab == "patches"
    assert latest.newest("other", late) == late
