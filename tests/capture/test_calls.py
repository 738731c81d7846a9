"""One attention call as a value: its operands by head, whatever axes the model gave them."""

from __future__ import annotations

import pytest
import torch

from vit_viz.capture.calls import AttentionCall, by_head
from vit_viz.errors import CaptureError


@pytest.mark.parametrize("lead", [(), (1,), (1, 1)])
def test_the_heads_of_one_image_come_without_its_axes(lead: tuple[int, ...]) -> None:
    heads = torch.randn(5, 7, 8)
    assert torch.equal(by_head(heads.reshape(*lead, *heads.shape)), heads)


def test_one_head_without_an_axis_gets_one() -> None:
    head = torch.randn(7, 8)
    assert torch.equal(by_head(head), head[None])


def test_heads_may_stand_before_the_batch() -> None:
    heads = torch.randn(5, 7, 8)
    assert torch.equal(by_head(heads[:, None]), heads)


def test_several_images_are_refused() -> None:
    with pytest.raises(CaptureError, match=r"\[2, 5, 7, 8\] runs within several windows or images"):
        by_head(torch.randn(2, 5, 7, 8))


def test_the_operands_of_an_unbatched_call_are_its_own() -> None:
    q, k, v = torch.randn(3, 5, 7, 8)
    assert all(map(torch.equal, AttentionCall(q, k, v).operands(), (q, k, v)))
