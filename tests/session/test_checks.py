"""A module that is not ours is shown at once, and checked beside its first picture."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image
from starlette.applications import Starlette
from starlette.testclient import TestClient
from torch import nn

from tests.waiting import until
from vit_viz.capture import verified
from vit_viz.capture.probing import undisturbed_pass
from vit_viz.capture.report import HOLDS, Structure
from vit_viz.errors import CaptureError
from vit_viz.geometry import TokenLayout
from vit_viz.images import Preprocess
from vit_viz.results import PatchMap
from vit_viz.session.questions import ask
from vit_viz.session.request import Subject
from vit_viz.session.session import Session
from vit_viz.ui.app import session_of
from vit_viz.ui.look.view import explorer_file
from vit_viz.ui.payload import badge_value, explorer_value, facts_value
from vit_viz.ui.routes import PREFIX, routes
from vit_viz.views.state import ViewState

RECIPE = Preprocess(input_size=(32, 48), patch_size=(8, 8))


class Tutorial(nn.Module):
    """Two layers of attention over patches, as a tutorial writes them."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Conv2d(3, 40, 8, 8)
        self.start = nn.Parameter(torch.zeros(1, 1, 40))
        self.attentions = nn.ModuleList(nn.MultiheadAttention(40, 5, batch_first=True) for _ in range(2))
        self.head = nn.Linear(40, 7)

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        x = self.embed(pixels).flatten(2).transpose(1, 2)
        x = torch.cat([self.start.expand(len(x), -1, -1), x], dim=1)
        for attention in self.attentions:
            x = x + attention(x, x, x)[0]
        logits: torch.Tensor = self.head(x[:, 0])
        return logits


class Checking:
    """Stands in for the passes of the check: each waits until it may go on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.passes = self.runs = 0
        self.begun, self.may_go = threading.Event(), threading.Event()
        self.refuses = False
        monkeypatch.setattr(verified, "_measured", self._check)

    def _check(self, module: nn.Module, *_: object, **__: object) -> Structure:
        self.runs += 1
        for _ in range(3):
            with undisturbed_pass(module):
                self.passes += 1
            self.begun.set()
            assert self.may_go.wait(60)
        if self.refuses:
            raise CaptureError("These pictures would mislead.")
        return Structure(HOLDS, HOLDS, HOLDS)


@pytest.fixture
def checking(monkeypatch: pytest.MonkeyPatch) -> Iterator[Checking]:
    checking = Checking(monkeypatch)
    yield checking
    checking.may_go.set()


def session_with(module: nn.Module) -> Session:
    return session_of(module.eval(), preprocess=RECIPE, layout=TokenLayout(grid=(4, 6)))


def photo(seed: int = 0) -> Image.Image:
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, (64, 96, 3), dtype=np.uint8))


def view_of(session: Session, owner: str = "ada", seed: int = 0) -> ViewState:
    return ViewState(model="Tutorial", image=session.add_upload(photo(seed), owner=owner))


def subject_of(view: ViewState, owner: str = "ada") -> Subject:
    return Subject(view.model, view.image, owner=owner)


def test_the_first_picture_does_not_wait_and_the_badge_says_what_is_known(checking: Checking) -> None:
    session = session_with(Tutorial())
    view = view_of(session)
    assert explorer_value(session, view, "ada")["layers"] == 2
    facts = facts_value(session, view, "ada")
    assert (facts["badge"]["state"], facts["badge"]["text"]) == ("checking", "checking …")
    assert checking.begun.wait(60)
    checking.may_go.set()
    until(lambda: session.checks.is_idle)
    assert facts_value(session, view, "ada")["badge"]["state"] == "proven"
    assert checking.runs == 1


def test_the_next_photo_is_known_at_once(checking: Checking) -> None:
    session = session_with(Tutorial())
    checking.may_go.set()
    for seed in range(2):
        view = view_of(session, seed=seed)
        session.trace_of(subject_of(view))
        until(lambda: session.checks.is_idle)
    assert facts_value(session, view, "ada")["badge"]["state"] == "proven"
    assert checking.runs == 1


def test_whatever_states_or_saves_waits_for_the_finding(checking: Checking) -> None:
    session = session_with(Tutorial())
    view = view_of(session)
    session.trace_of(subject_of(view))
    assert checking.begun.wait(60)
    answers: list[object] = []
    waiting = [
        threading.Thread(target=lambda: answers.append(ask(session, subject_of(view), "look", layer=1))),
        threading.Thread(target=lambda: answers.append(ask(session, subject_of(view), "rollout"))),
        threading.Thread(target=lambda: answers.append(ask(session, subject_of(view), "relevance"))),
        threading.Thread(target=lambda: answers.append(ask(session, subject_of(view), "mosaic"))),
        threading.Thread(
            target=lambda: answers.append(explorer_file(session, subject_of(view), replace(view, layer=1)))
        ),
    ]
    for thread in waiting:
        thread.start()
    check = session.trace_of(subject_of(view)).known
    until(lambda: check._waiting == len(waiting))  # type: ignore[union-attr]
    assert answers == []
    checking.may_go.set()
    for thread in waiting:
        thread.join(60)
    assert sum(isinstance(answer, PatchMap) for answer in answers) == 3
    assert (len(answers), checking.runs) == (5, 1)


def test_a_refusal_that_comes_later_takes_the_place_of_the_picture(checking: Checking) -> None:
    session = session_with(Tutorial())
    view = view_of(session)
    checking.refuses = True
    explorer_value(session, view, "ada")
    checking.may_go.set()
    until(lambda: session.checks.is_idle)
    for draw in (explorer_value, facts_value):
        with pytest.raises(CaptureError, match="would mislead"):
            draw(session, view, "ada")
    with pytest.raises(CaptureError, match="would mislead"):
        session.trace_of(subject_of(view_of(session, seed=1)))  # of another photo too
    assert checking.runs == 1


def test_a_dropped_model_ends_its_check_and_is_gone(checking: Checking) -> None:
    module = Tutorial()
    session, gone = session_with(module), weakref.ref(module)
    session.trace_of(subject_of(view_of(session)))
    assert checking.begun.wait(60)
    session.engine.models.remove("Tutorial")
    del module
    checking.may_go.set()
    until(lambda: session.checks.is_idle)
    gc.collect()
    assert (gone(), checking.passes) == (None, 1)


def test_a_kept_trace_does_not_keep_its_model(checking: Checking) -> None:
    checking.may_go.set()
    module = Tutorial()
    session, gone = session_with(module), weakref.ref(module)
    for seed in range(2):
        session.trace_of(subject_of(view_of(session, seed=seed)))
    until(lambda: session.checks.is_idle)
    session.engine.models.remove("Tutorial")
    del module
    gc.collect()
    assert gone() is None


def test_a_pass_waits_for_its_turn_behind_quick_questions_and_not_for_those_who_wait_for_it(
    checking: Checking,
) -> None:
    session = session_with(Tutorial())
    checking.may_go.set()
    view = view_of(session)
    with session.turns.turn(("cpu", 0)):
        recorded = session.trace_of(subject_of(view))
        until(lambda: session.turns.waiting(("cpu", 0)) == 1)
        assert checking.passes == 0
        assert recorded.proof_status == "proven"  # asked by the thread that holds the device
    until(lambda: session.checks.is_idle)
    assert (checking.runs, checking.passes) == (1, 3)


def test_an_exception_in_the_check_ends_in_words_and_not_in_a_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(verified, "_measured", fail)
    session = session_with(Tutorial())
    view = view_of(session)
    recorded = session.trace_of(subject_of(view))
    until(lambda: session.checks.is_idle)
    badge = badge_value(subject_of(view), recorded)
    assert badge["state"] == "open"
    assert "the model raised ZeroDivisionError" in badge["title"]


def test_the_page_asks_again_at_an_address_that_keeps_the_check_going(checking: Checking) -> None:
    session = session_with(Tutorial())
    view = view_of(session)
    handle = facts_value(session, view, "ada")["badge"]["trace"]
    assert checking.begun.wait(60)
    with TestClient(Starlette(routes=routes(session))) as client:

        def state() -> object:
            return json.loads(client.get(f"{PREFIX}/proof/{handle}").text)["state"]

        assert state() == "checking"
        checking.may_go.set()
        until(lambda: state() == "proven")


def test_the_address_of_the_badge_answers_a_refusal_as_one(checking: Checking) -> None:
    session = session_with(Tutorial())
    checking.refuses = True
    handle = facts_value(session, view_of(session), "ada")["badge"]["trace"]
    checking.may_go.set()
    until(lambda: session.checks.is_idle)
    with TestClient(Starlette(routes=routes(session))) as client:
        answer = client.get(f"{PREFIX}/proof/{handle}")
    assert (answer.status_code, answer.text) == (400, "These pictures would mislead.")


def test_our_own_models_are_never_checked(checking: Checking) -> None:
    session = Session(model="mini", device="cpu")
    assert facts_value(session, ViewState(model="mini", image="shapes"), "ada")["badge"]["state"] == "proven"
    assert (session.checks.is_idle, checking.runs) == (True, 0)


ENDS_DURING_A_CHECK = """
import logging
from tests.session.test_checks import Tutorial, session_with, subject_of, undisturbed_pass, verified, view_of

def endless(module, *_, **__):
    while True:
        with undisturbed_pass(module):
            pass

logging.basicConfig(level=logging.INFO)
verified._measured = endless
session = session_with(Tutorial())
session.trace_of(subject_of(view_of(session)))
"""


@pytest.mark.slow
def test_a_program_that_ends_during_a_check_ends_the_check_first() -> None:
    """A thread that is left in the middle of a pass aborts the process now and then."""
    ended = subprocess.run(
        [sys.executable, "-c", ENDS_DURING_A_CHECK], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert "a check was ended before it had found out anything" in ended.stderr


OUTLIVES_ITS_MAIN_THREAD = """
import logging, threading
from tests.session.test_checks import *

begun, goes, runs = threading.Event(), threading.Event(), []

def measured(module, *_, **__):
    runs.append(module)
    for _ in range(3):
        with undisturbed_pass(module):
            pass
        begun.set()
        goes.wait()
    return Structure(HOLDS, HOLDS, HOLDS)

def release():
    threading.main_thread().join()
    until(lambda: check.is_awaited)
    goes.set()

logging.basicConfig(level=logging.INFO)
verified._measured = measured
session = session_with(Tutorial())
check = session.trace_of(subject_of(view_of(session))).known
begun.wait()
threading.Thread(target=lambda: print(check.result() == Structure(HOLDS, HOLDS, HOLDS), len(runs))).start()
threading.Thread(target=release).start()
"""


@pytest.mark.slow
def test_a_check_goes_on_for_a_thread_that_outlives_the_main_one() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", OUTLIVES_ITS_MAIN_THREAD], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout) == (0, "True 1\n"), ended.stderr
    assert "a check was ended" not in ended.stderr
