"""What is known of a module is kept for exactly the question that was answered."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from vit_viz.capture import verified
from vit_viz.capture.report import HOLDS
from vit_viz.geometry import TokenLayout

LAYOUT = TokenLayout(grid=(4, 6))
PIXELS = torch.zeros(1, 3, 8, 18)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[TokenLayout, torch.Size, torch.dtype]]:
    """The questions that were asked of a module itself."""
    questions = []

    def placement(_module: nn.Module, pixels: Tensor, layout: TokenLayout) -> object:
        questions.append((layout, pixels.shape, pixels.dtype))
        return HOLDS

    monkeypatch.setattr(verified, "check_placement", placement)
    monkeypatch.setattr(verified, "check_calls", lambda *_, **__: HOLDS)
    monkeypatch.setattr(verified, "check_heads", lambda *_: HOLDS)
    return questions


@pytest.mark.parametrize(
    ("pixels", "layout"),
    [
        (PIXELS, TokenLayout(grid=(4, 6), prefix=("first",), pooling="mean")),
        (torch.zeros(1, 3, 10, 18), LAYOUT),
        (PIXELS.double(), LAYOUT),
    ],
    ids=["layout", "size", "precision"],
)
def test_another_question_is_asked_anew(
    asked: list[tuple[TokenLayout, torch.Size, torch.dtype]], pixels: Tensor, layout: TokenLayout
) -> None:
    module = nn.Linear(3, 5)
    for _ in range(2):
        verified.verified_structure(module, PIXELS, LAYOUT)
        verified.verified_structure(module, pixels, layout)
    assert asked == [(LAYOUT, PIXELS.shape, PIXELS.dtype), (layout, pixels.shape, pixels.dtype)]


def test_another_module_is_asked_anew(asked: list[object]) -> None:
    first, second = nn.Linear(3, 5), nn.Linear(3, 5)
    for module in (first, second, first, second):
        verified.verified_structure(module, PIXELS, LAYOUT)
    assert len(asked) == 2
