"""A GPU without room for a batch gets a smaller one; what comes out is the same."""

from __future__ import annotations

import logging

import numpy as np
import pytest
import torch
from torch import nn

from tests.comparing import assert_same
from vit_viz.analyses.ablation import ablate_heads
from vit_viz.analyses.faithfulness import random_band
from vit_viz.analyses.prepared_image import PreparedImage, in_batches
from vit_viz.analyses.removal import removed_scores
from vit_viz.analyses.targets import class_logit


class Room:
    """A device with room for some variants at a time; notes how many each run had."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.seen: list[int] = []

    def check(self, count: int) -> None:
        self.seen.append(count)
        if count > self.most:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

    def limit(self, model: nn.Module) -> None:
        """Let every block of a model run out of memory beyond that."""
        for block in model.blocks:
            block.register_forward_pre_hook(lambda _, args: self.check(len(args[0])))


def squares(room: Room, count: int, *, size: int = 8) -> torch.Tensor:
    values = torch.arange(float(count))

    def run(part: slice) -> torch.Tensor:
        room.check(len(values[part]))
        return values[part] ** 2

    return in_batches(run, count, size=size)


@pytest.mark.parametrize("most", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("count", [1, 7, 8, 19])
def test_every_variant_runs_once_in_order_whatever_there_is_room_for(most: int, count: int) -> None:
    room = Room(most)
    assert squares(room, count).tolist() == [float(i * i) for i in range(count)]
    assert sum(n for n in room.seen if n <= most) == count


def test_a_batch_that_fitted_is_the_size_of_those_that_follow() -> None:
    room = Room(3)
    squares(room, 20)
    assert room.seen == [8, 4, *[2] * 10]


def test_a_smaller_batch_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        squares(Room(4), 8)
    assert [record.getMessage() for record in caplog.records] == [
        "the GPU has no room for 8 images at once: 4 from now on"
    ]


def test_no_room_for_a_single_variant_is_told() -> None:
    with pytest.raises(torch.OutOfMemoryError):
        squares(Room(0), 3)


def test_another_failure_is_not_tried_again() -> None:
    calls = []

    def broken(part: slice) -> torch.Tensor:
        calls.append(part)
        raise RuntimeError("something else")

    with pytest.raises(RuntimeError, match="something else"):
        in_batches(broken, 8)
    assert len(calls) == 1


def scores(subject: PreparedImage) -> dict[str, np.ndarray]:
    """What the analyses that run many variants say."""
    gone = np.random.default_rng(0).random((11, subject.layout.num_patches)) < 0.4
    target = class_logit(2)
    band = random_band(subject, target=2)
    return {
        "removal": removed_scores(subject, target, gone),
        "deletion": band.deletion,
        "insertion": band.insertion,
        "ablation": ablate_heads(subject.model, subject.pixels, target=2).values,
    }


def test_analyses_say_the_same_with_little_room(make_model, pixels) -> None:
    model, room = make_model(), Room(3)
    expected = scores(PreparedImage.of(model, pixels))
    room.limit(model)
    found = scores(PreparedImage.of(model, pixels))
    assert max(room.seen) > 3
    for name, values in expected.items():
        assert_same(found[name], values, what=name)
