"""How long a pass takes, as it was measured."""

from __future__ import annotations

import time

import pytest

from vit_viz.capture import forward
from vit_viz.session import engine
from vit_viz.session.edits import ModelEdits
from vit_viz.session.models import Pace
from vit_viz.session.request import Subject
from vit_viz.session.session import Session


def test_a_pass_is_measured_once_for_its_weights_and_its_tokens() -> None:
    pace, measured = Pace(), iter((3.0, 2.0, 9.0))
    asked = [pace.seconds(*of, lambda: next(measured)) for of in (("a", 5), ("b", 5), ("a", 5), ("a", 7))]
    assert asked == [3.0, 2.0, 3.0, 9.0]
    assert list(measured) == []


def test_what_was_measured_longest_ago_is_forgotten_first() -> None:
    pace, measured = Pace(), iter(range(1000))
    for tokens in range(257):
        pace.seconds("a", tokens, lambda: float(next(measured)))
    assert pace.seconds("a", 256, lambda: -1.0) == 256
    assert pace.seconds("a", 1, lambda: -1.0) == 1
    assert pace.seconds("a", 0, lambda: -1.0) == -1


def test_a_session_times_a_pass_alone_and_the_shortest_of_a_few(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(model="mini", device="cpu")
    times, passes = iter([0.0, 0.04, 1.0, 1.02, 2.0, 2.05]), 0
    subject = Subject("mini", "shapes")
    session.trace_of(subject)

    def counted(*args: object) -> object:
        nonlocal passes
        passes += 1
        return forward.answer_of(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(engine, "answer_of", counted)
    monkeypatch.setattr(time, "perf_counter", lambda: next(times))
    assert session.pass_seconds(subject) == pytest.approx(0.02)
    assert passes == 3
    edited = Subject("mini", "lion", edits=ModelEdits.parse("off 0.1"))  # as many tokens
    assert session.pass_seconds(edited) == pytest.approx(0.02)
    assert passes == 3


def test_a_long_pass_is_timed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(model="mini", device="cpu")
    times = iter([0.0, 2.0])
    subject = Subject("mini", "shapes")
    session.trace_of(subject)
    monkeypatch.setattr(time, "perf_counter", lambda: next(times))
    assert session.pass_seconds(subject) == 2.0


def test_where_a_gpu_is_lent_no_time_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(model="mini", device="cpu")
    monkeypatch.setattr(session, "_is_worth_a_gpu", lambda _: True)
    assert session.pass_seconds(Subject("mini", "shapes")) is None
