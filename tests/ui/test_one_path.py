"""The walkthrough and the pictures are computed on the session's one path: its limits, its fall-back and leaving hold there too."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn
from vit_viz.ui.walkthrough.routes import PICTURES, screen_of
from vit_viz.ui.walkthrough.scene import StepInput

from tests.ui.desk import odd_picture, odd_session
from tests.waiting import PATIENCE, until
from vit_viz.errors import BusyError, Cancelled
from vit_viz.sentences import sentence
from vit_viz.session.devices import FULL
from vit_viz.session.request import Subject
from vit_viz.session.session import Session
from vit_viz.turns import GONE
from vit_viz.views.state import ViewState
from vit_viz.walkthrough import (
    AttentionStep,
    BlockStep,
    ClassStep,
    EmbeddingStep,
    HeadsStep,
    PatchStep,
    PositionStep,
    PrefixStep,
)

DEVICE = ("cpu", 0)
KINDS = list(PICTURES)
NUMBERS = range(1, 9)


KINDS_OF_STEPS: list[tuple[type[Any], dict[str, Any]]] = [
    (PatchStep, {"place": (1, 4)}),
    (EmbeddingStep, {"place": (1, 4), "number": 3}),
    (PrefixStep, {"layer": 1}),
    (PositionStep, {"place": (1, 4), "seed": 2}),
    (AttentionStep, {"layer": 1, "head": 2, "token": 5}),
    (HeadsStep, {"layer": 1, "token": 5, "left_out": 3}),
    (BlockStep, {"layer": 1, "token": 5}),
    (ClassStep, {}),
]


def assert_close(got: Any, wanted: Any) -> None:
    """Equal up to the rounding of 32-bit numbers, which may differ from one copy of a model to the other."""
    if isinstance(wanted, str) or wanted is None:
        assert got == wanted
    elif isinstance(wanted, tuple):
        assert len(got) == len(wanted)
        for one, other in zip(got, wanted, strict=True):
            assert_close(one, other)
    else:
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


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
        self.view = ViewState(
            model="odd", image=self.subject.image, mode="crop", layer=1, head=2, query="1,4"
        )

    def scene(self) -> StepInput:
        return StepInput.of(self.session, self.view, "ada")

    def scene_of_another_step(self) -> StepInput:
        """A scene whose trace and whose walk through the model are kept."""
        scene = self.scene()
        scene.step(PatchStep, place=(0, 0))
        return scene

    def draw(self, kind: Any) -> bytes:
        return PICTURES[kind](self.session, self.subject, self.view).data


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


# --- the walkthrough


@pytest.mark.parametrize("step", NUMBERS)
def test_a_busy_machine_refuses_each_step_though_what_it_is_about_is_kept(visit: Visit, step: int) -> None:
    scene = visit.scene_of_another_step()
    assert refusal_of(visit.session, lambda: screen_of(scene, step)).startswith("The machine is busy: ")


@pytest.mark.parametrize("step", NUMBERS)
def test_leaving_ends_each_step(visit: Visit, step: int) -> None:
    scene = visit.scene_of_another_step()
    assert isinstance(end_of(visit.session, lambda: screen_of(scene, step)), Cancelled)


@pytest.mark.parametrize("full_from", ["the start", "the first step"])
def test_a_device_without_room_leaves_the_walkthrough_to_the_cpu(visit: Visit, full_from: str) -> None:
    there = OnAGpu()
    there.is_full = full_from == "the start"
    scene, expected = there.scene(), visit.scene()
    there.is_full = True
    for kind, options in KINDS_OF_STEPS:
        got, wanted = scene.step(kind, **options), expected.step(kind, **options)
        for field in fields(kind):
            assert_close(getattr(got, field.name), getattr(wanted, field.name))
    assert set(there.notices) == {FULL}
    if full_from == "the start":
        assert len(there.notices) == 1  # what went to the CPU stays there
    assert there.session.cpu_engine is not None
    assert there.session.cpu_engine.models.has("odd")


def test_a_step_is_computed_once_and_goes_with_its_picture(visit: Visit) -> None:
    request = visit.subject.request("walkthrough", step="ClassStep")
    assert visit.session.run(request) is visit.session.run(request)
    visit.session.uploads.forget("ada")
    assert visit.session.cache.stats.entries == 0


# --- the pictures


@pytest.mark.parametrize("kind", KINDS)
def test_a_busy_machine_refuses_a_picture_in_our_sentence(visit: Visit, kind: str) -> None:
    assert refusal_of(visit.session, lambda: visit.draw(kind)).startswith("The machine is busy: ")


@pytest.mark.parametrize("kind", KINDS)
def test_leaving_ends_a_picture(visit: Visit, kind: str) -> None:
    assert isinstance(end_of(visit.session, lambda: visit.draw(kind)), Cancelled)


@pytest.mark.parametrize("kind", KINDS)
def test_a_device_without_room_leaves_a_picture_to_the_cpu(visit: Visit, kind: str) -> None:
    there = OnAGpu()
    there.is_full = True
    # a gradient is rounded in another order where somebody watches the parts, as the hooks here do
    got, wanted = (np.asarray(Image.open(io.BytesIO(one.draw(kind))), dtype=int) for one in (there, visit))
    assert np.abs(got - wanted).mean() < 0.01  # which moves a few levels of a JPEG; another map moves all
    assert set(there.notices) == {FULL}
