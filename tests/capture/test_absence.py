"""Whether tokens can be removed is asked of a module once, for exactly the question that was answered."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from tests.capture.models import own, pixels
from vit_viz.capture import absence, edit
from vit_viz.errors import CaptureError

PIXELS, REMOVED = pixels(), torch.arange(25) == 3
OTHERS: dict[str, tuple[Tensor, Tensor]] = {
    "size": (pixels(size=(64, 80)), REMOVED),
    "precision": (PIXELS.double(), REMOVED),
    "tokens": (PIXELS, torch.arange(25) == 4),
}


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the module's passes say next, the last first; the list grows shorter with each question that is asked."""
    waiting = [""] * 9
    monkeypatch.setattr(absence, "_problem", lambda *_: waiting.pop())
    return waiting


@pytest.mark.parametrize("name", OTHERS)
def test_another_question_is_asked_anew(answers: list[str], name: str) -> None:
    module = own()
    for _ in range(2):
        absence.check_removal(module, PIXELS, PIXELS, REMOVED)
        images, removed = OTHERS[name]
        absence.check_removal(module, images, images, removed)
    assert len(answers) == 9 - 2


def test_another_module_is_asked_anew(answers: list[str]) -> None:
    first, second = own(), own()
    for module in (first, second, first, second):
        absence.check_removal(module, PIXELS, PIXELS, REMOVED)
    assert len(answers) == 9 - 2


def test_what_was_refused_is_refused_again(answers: list[str]) -> None:
    answers.append("its pool reads them.")
    module = own()
    for _ in range(2):
        with pytest.raises(CaptureError, match=r"from VisionTransformer: its pool reads them\."):
            absence.check_removal(module, PIXELS, PIXELS, REMOVED)
    assert len(answers) == 9


def test_what_an_edited_module_answers_is_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    module, questions = own(), []

    def problem(runs: Any, *_: Any) -> str:
        questions.append(runs.masked(PIXELS))
        return ""

    monkeypatch.setattr(absence, "_problem", problem)
    for _ in range(2):
        with edit(heads={(0, 0): 0.0}):
            absence.check_removal(module, PIXELS, PIXELS, REMOVED)
    for _ in range(2):
        absence.check_removal(module, PIXELS, PIXELS, REMOVED)
    assert len(questions) == 3


@pytest.mark.parametrize(
    ("dtype", "off", "agree"),
    [
        (torch.float32, 0.9e-3, True),
        (torch.float32, 1.1e-3, False),
        (torch.float64, 1.1e-3, False),
        (torch.bfloat16, 4e-2, True),
        (torch.bfloat16, 7e-2, False),
    ],
)
def test_runs_agree_up_to_rounding_as_a_share_of_the_largest_number(
    dtype: torch.dtype, off: float, agree: bool
) -> None:
    one = torch.tensor([2.0, -8.0, 0.5]).to(dtype)
    other = (one.float() + torch.tensor([0.0, 0.0, 8 * off])).to(dtype)
    assert absence._agree(one, other) is agree


def test_runs_that_cannot_be_compared_neither_agree_nor_differ() -> None:
    one = torch.ones(2, 3)
    assert (
        absence._agree(one, None)
        is absence._agree(None, one)
        is absence._agree(one, torch.ones(3, 2))
        is None
    )
