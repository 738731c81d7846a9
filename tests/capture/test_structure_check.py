"""A check of a module runs once, when somebody asks, and ends without a trace of itself where it is not wanted any more."""

from __future__ import annotations

import gc
import re
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.capture import misleading as made
from tests.capture.misleading import Attend, Block, Model, ready
from tests.capture.models import pixels
from tests.waiting import until
from vit_viz.analyses.attention import attention_map
from vit_viz.capture import Trace, trace, verified
from vit_viz.capture.forward import undisturbed
from vit_viz.capture.probing import undisturbed_pass
from vit_viz.capture.report import HOLDS, Structure
from vit_viz.capture.structure_check import StructureCheck
from vit_viz.errors import BusyError, Cancelled, CaptureError
from vit_viz.geometry import TokenLayout

LAYOUT = TokenLayout(grid=(4, 6))


class Checking:
    """Stands in for the passes of a check: counts the checks, and does what a test says in each."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.runs = 0
        self.begun, self.may_go = threading.Event(), threading.Event()
        self.may_go.set()
        self.inside: Callable[[nn.Module], object] = lambda _module: None
        monkeypatch.setattr(verified, "_measured", self._check)

    def _check(self, module: nn.Module, *_: object, **__: object) -> Structure:
        self.runs += 1
        self.begun.set()
        assert self.may_go.wait(60)
        self.inside(module)
        return Structure(HOLDS, HOLDS, HOLDS)


@pytest.fixture
def checking(monkeypatch: pytest.MonkeyPatch) -> Checking:
    return Checking(monkeypatch)


def module(*kinds: type[nn.Module]) -> nn.Module:
    return ready(Model([Block(kind) for kind in (kinds or (Attend, Attend))]))


def traced(model: nn.Module) -> Trace:
    return trace(model, pixels(), layout=LAYOUT)


def check_of(recorded: Trace) -> StructureCheck:
    assert isinstance(recorded.known, StructureCheck)
    return recorded.known


class Asking(threading.Thread):
    """A thread that asks for a finding."""

    def __init__(self, check: StructureCheck, **how: Any) -> None:
        super().__init__(daemon=True)
        self.check, self.how, self.outcome = check, how, object()
        self.start()

    def run(self) -> None:
        try:
            self.outcome = self.check.result(**self.how)
        except Exception as error:
            self.outcome = error

    def ended(self) -> object:
        self.join(60)
        assert not self.is_alive()
        return self.outcome


# --- what waits, and what does not


@pytest.mark.parametrize(
    "ask",
    [
        lambda t: t.proof,
        lambda t: t.proof_report,
        lambda t: t.proof_status,
        lambda t: t.structure,
        repr,
        lambda t: attention_map(t, layer=0),
    ],
    ids=["proof", "report", "status", "structure", "repr", "map"],
)
def test_a_trace_returns_before_the_check_and_whatever_states_the_proof_runs_it(
    checking: Checking, ask: Callable[[Trace], object]
) -> None:
    recorded = traced(module())
    assert recorded.attention(1).shape == (5, 25, 25)
    assert (checking.runs, recorded.is_being_checked) == (0, True)
    for _ in range(2):
        ask(recorded)
    assert (checking.runs, recorded.is_being_checked) == (1, False)


def test_a_refusal_is_raised_by_all_that_is_drawn_and_said_by_repr() -> None:
    model = module(Attend, made.Sigmoid, made.Sigmoid, Attend)
    recorded, other = traced(model), traced(model)
    for ask in (lambda: recorded.proof, lambda: attention_map(other, layer=0), lambda: traced(model)):
        with pytest.raises(CaptureError, match="2 of the 4 blocks"):
            ask()
    other.known = check_of(other)
    assert "refused: 2 of the 4 blocks" in repr(other)


def test_the_first_trace_of_a_module_costs_less_than_three_passes() -> None:
    model, images = module(), []
    model.blocks[0].register_forward_hook(lambda *_: images.append(1))  # type: ignore[union-attr, index]
    traced(model)
    assert len(images) == 1  # the rest ends before the first block


def test_one_check_serves_all_traces_of_a_module(checking: Checking) -> None:
    model = module()
    first, second = traced(model), trace(model, 2 * pixels(), layout=LAYOUT)
    assert check_of(first) is check_of(second)
    assert first.proof_status == second.proof_status == "proven"
    assert (checking.runs, traced(model).is_being_checked) == (1, False)


def test_places_are_measured_once_though_nobody_asks_for_the_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    honest, asked = verified.check_placement, []
    monkeypatch.setattr(verified, "check_placement", lambda *given: asked.append(1) or honest(*given))
    model = module()
    for _ in range(3):
        traced(model)
        gc.collect()  # the check goes with the last trace that wants it
    assert len(asked) == 1


# --- two ask at once


def test_two_threads_that_ask_at_once_compute_once(checking: Checking) -> None:
    checking.may_go.clear()
    check = check_of(traced(module()))
    first = Asking(check)
    assert checking.begun.wait(60)
    second = Asking(check)
    until(lambda: check.is_awaited)
    checking.may_go.set()
    assert first.ended() == second.ended() == check.finding
    assert checking.runs == 1


def test_who_waits_takes_over_where_the_other_one_is_cancelled(checking: Checking) -> None:
    stop = threading.Event()
    checking.may_go.clear()
    checking.inside = lambda model: undisturbed(model).__enter__()
    check = check_of(traced(module()))
    first = Asking(check, cancelled=stop.is_set)
    assert checking.begun.wait(60)
    second = Asking(check)
    until(lambda: check.is_awaited)
    stop.set()
    checking.may_go.set()
    assert isinstance(first.ended(), Cancelled)
    assert second.ended() == check.finding
    assert checking.runs == 2


def test_who_waits_may_leave_and_the_check_goes_on(checking: Checking) -> None:
    checking.may_go.clear()
    check = check_of(traced(module()))
    first = Asking(check)
    assert checking.begun.wait(60)
    with pytest.raises(Cancelled):
        check.result(cancelled=lambda: True)
    checking.may_go.set()
    assert first.ended() == check.finding
    assert checking.runs == 1


# --- it ends early


@pytest.mark.parametrize("swallows", [False, True], ids=["raised", "taken for the model's own"])
def test_a_cancelled_check_is_no_finding(checking: Checking, swallows: bool) -> None:
    def passes(model: nn.Module) -> None:
        for _ in range(3):
            try:
                with undisturbed_pass(model):
                    done.append(1)
            except Exception:
                if not swallows:
                    raise

    done: list[int] = []
    checking.inside = passes
    model = module()
    check = check_of(traced(model))
    with pytest.raises(Cancelled):
        check.result(cancelled=lambda: len(done) == 1)
    assert (len(done), check.finding, traced(model).is_being_checked) == (1, None, True)
    assert check.result() == check.finding
    assert len(done) == 4


def test_each_pass_waits_for_its_turn_and_a_busy_device_is_no_finding(checking: Checking) -> None:
    events: list[str] = []

    @contextmanager
    def turn() -> Iterator[None]:
        if len(events) > 6:
            raise BusyError("The machine is busy.")
        events.append("turn")
        yield
        events.append("over")

    def passes(model: nn.Module) -> None:
        for _ in range(5):
            with undisturbed_pass(model):
                events.append("pass")

    checking.inside = passes
    check = check_of(traced(module()))
    with pytest.raises(BusyError):
        check.result(turn=turn)
    assert events == ["turn", "pass", "over"] * 3
    assert check.finding is None


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ZeroDivisionError("by\nzero"), r"the model raised ZeroDivisionError \(by zero\)"),
        (torch.OutOfMemoryError("no room"), "the memory was too small"),
    ],
)
def test_an_exception_in_the_check_leaves_it_unknown_in_words(
    checking: Checking, error: Exception, words: str
) -> None:
    def fail(_model: nn.Module) -> None:
        raise error

    checking.inside = fail
    model = module()
    report = traced(model).proof_report
    assert (report.status, report.complete.status) == ("captured, not proven", "unknown")
    assert re.search(words, report.sentence)
    assert traced(model).proof_report == report
    assert checking.runs == 1


def test_a_keyboard_interrupt_is_no_finding(checking: Checking) -> None:
    def interrupt(_model: nn.Module) -> None:
        raise KeyboardInterrupt

    checking.inside = interrupt
    recorded = traced(module())
    with pytest.raises(KeyboardInterrupt):
        _ = recorded.proof
    checking.inside = lambda _model: None
    assert recorded.proof_status == "proven"


# --- the module


def test_a_module_that_was_changed_meanwhile_is_not_taken_for_what_was_traced(checking: Checking) -> None:
    model = module()
    recorded = traced(model)
    model.blocks[1] = ready(Block(made.Gated))  # type: ignore[operator, index, union-attr]
    assert "was changed before it was" in recorded.proof_report.sentence
    assert checking.runs == 0
    assert traced(model).proof_status == "proven"


def test_a_module_lives_as_long_as_a_trace_needs_it_and_no_longer() -> None:
    model = module()
    gone, recorded = weakref.ref(model), traced(model)
    del model
    gc.collect()
    assert gone() is not None
    assert recorded.proof_status == "proven"
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("refused", [False, True])
def test_what_is_remembered_does_not_keep_the_module(refused: bool) -> None:
    model = module(made.Sigmoid, Attend, made.Sigmoid) if refused else module()
    gone = weakref.ref(model)
    try:
        assert traced(model).proof_status == "proven"
    except CaptureError:
        assert refused
    del model
    gc.collect()
    assert gone() is None


def test_a_module_that_went_before_it_was_checked_is_unknown_in_words() -> None:
    model = module()
    recorded = traced(model)
    recorded.let_model_go()
    del model
    gc.collect()
    assert recorded.proof_status == "captured, not proven"
    assert "gone before" in recorded.proof_report.sentence


def test_the_caller_keeps_its_random_numbers_and_its_modes(checking: Checking) -> None:
    model = module().train()
    recorded = traced(model)
    assert all(part.training for part in model.modules())
    expected = torch.Generator().manual_seed(3)
    torch.manual_seed(3)
    drawn: Tensor = torch.rand(5)
    assert torch.equal(drawn, torch.rand(5, generator=expected))
    assert recorded.proof_status == "proven"
    assert torch.equal(torch.rand(5), torch.rand(5, generator=expected))
