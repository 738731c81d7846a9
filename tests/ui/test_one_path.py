"""The lesson's numbers are computed on the session's one path: its limits, its fall-back and leaving hold there too."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from tests.ui.desk import odd_picture, odd_session
from tests.waiting import PATIENCE, until
from vit_viz.answer import Answer
from vit_viz.errors import BusyError, Cancelled
from vit_viz.sentences import sentence
from vit_viz.session.devices import FULL
from vit_viz.session.questions import request_for
from vit_viz.session.request import Request, Subject
from vit_viz.session.session import Session
from vit_viz.turns import GONE

DEVICE = ("cpu", 0)
ASKED: dict[str, dict[str, Any]] = {
    "lesson_tokens": {"query": "1,4"},
    "lesson_attention": {"layer": 1, "head": 2, "query": "1,4"},
    "lesson_block": {"layer": 1, "query": "1,4"},
    "lesson_depth": {"query": "1,4"},
    "lesson_what_if": {"change": "head", "layer": 1, "head": 2},
}


@contextmanager
def held(session: Session) -> Iterator[None]:
    """Somebody else computes, as long as this is open."""
    holds, done = threading.Event(), threading.Event()

    def hold() -> None:
        with session.turns.turn(DEVICE):
            holds.set()
            done.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    assert holds.wait(PATIENCE)
    try:
        yield
    finally:
        done.set()
        thread.join(PATIENCE)


class Visit:
    """Ada with a picture of her own."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.subject = Subject("odd", session.add_upload(odd_picture(), owner="ada"), "crop", "ada")

    def request(self, name: str) -> Request:
        return request_for(self.session, self.subject, name, **ASKED[name])

    def ask(self, name: str) -> Any:
        return self.session.run(self.request(name))


class OnAGpu(Visit):
    """The same on a device that has no room for some of the model's modules, as soon as it is full."""

    def __init__(self) -> None:
        loaded = odd_session().model("odd")
        super().__init__(Session(model="odd", device="cuda"))
        self.session.add_model(loaded)
        self.notices: list[str] = []
        self.session.notice = self.notices.append
        self.is_full = False
        there = set(loaded.model.modules())  # and not in the copy on the CPU

        def check(module: nn.Module, _args: object) -> None:
            if self.is_full and module in there:
                raise torch.OutOfMemoryError("CUDA out of memory")

        for module in there:
            module.register_forward_pre_hook(check)


@pytest.fixture
def visit() -> Visit:
    return Visit(odd_session())


def refusal_of(session: Session, ask: Callable[[], object]) -> str:
    """The sentence with which something is refused where nobody may wait."""
    session.turns.max_waiting = 0
    with held(session), pytest.raises(BusyError) as refused:
        ask()
    return sentence(refused.value)


def end_of(session: Session, ask: Callable[[], object]) -> BaseException:
    """What becomes of something that waits for the device when its visitor leaves."""
    outcome: list[BaseException] = []

    def run() -> None:
        GONE.set(gone.is_set)
        try:
            ask()
        except BaseException as error:
            outcome.append(error)

    gone = threading.Event()
    with held(session):
        thread = threading.Thread(target=run)
        thread.start()
        until(lambda: session.turns.waiting(DEVICE) == 1 or outcome)
        gone.set()
        thread.join(PATIENCE)
        assert not thread.is_alive()
    return outcome[0]


@pytest.fixture
def kept(visit: Visit) -> Visit:
    """With a picture whose pass is kept."""
    visit.session.run(visit.subject.request("token trace"))
    return visit


@pytest.mark.parametrize("name", ASKED)
def test_a_busy_machine_refuses_a_part_of_the_lesson_though_its_pass_is_kept(kept: Visit, name: str) -> None:
    assert refusal_of(kept.session, lambda: kept.ask(name)).startswith("The machine is busy: ")


@pytest.mark.parametrize("name", ASKED)
def test_leaving_ends_a_part_of_the_lesson(kept: Visit, name: str) -> None:
    assert isinstance(end_of(kept.session, lambda: kept.ask(name)), Cancelled)


@pytest.mark.parametrize("full_from", ["the start", "the first question"])
def test_a_device_without_room_leaves_the_lesson_to_the_cpu(visit: Visit, full_from: str) -> None:
    there = OnAGpu()
    if full_from == "the first question":
        there.session.run(there.subject.request("token trace"))
    there.is_full = True
    for name in ASKED:
        got, wanted = there.ask(name), visit.ask(name)
        assert isinstance(got, Answer)
        for field, values in vars(wanted).items():
            if isinstance(
                values, np.ndarray
            ):  # up to the rounding of 32-bit numbers from one copy of a model to the other
                np.testing.assert_allclose(getattr(got, field), values, rtol=1e-4, atol=1e-5)
    assert set(there.notices) == {FULL}
    assert there.session.cpu_engine is not None
    assert there.session.cpu_engine.models.has("odd")


@pytest.mark.parametrize("name", ASKED)
def test_a_part_of_the_lesson_is_computed_once_and_goes_with_its_picture(visit: Visit, name: str) -> None:
    assert visit.ask(name) is visit.ask(name)
    visit.session.uploads.forget("ada")
    assert visit.session.cache.stats.entries == 0
