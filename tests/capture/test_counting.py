"""Which layer an attention call belongs to, where the layers are known or simply counted."""

from __future__ import annotations

from itertools import count

import pytest

from tests.capture.models import own, pixels
from vit_viz.capture.counting import ListedLayers, OwnLayers
from vit_viz.errors import CaptureError


def test_a_block_that_runs_again_has_the_layers_that_it_had() -> None:
    counter = ListedLayers([4, 2])
    assert [counter.next(), counter.next()] == [4, 2]
    with pytest.raises(CaptureError, match="more often when it ran again"):
        counter.next()


def test_layers_of_one_pass_count_up_from_the_first() -> None:
    counter = ListedLayers(count())
    assert [counter.next() for _ in range(3)] == [0, 1, 2]
    assert counter.seen == {0, 1, 2}


@pytest.mark.parametrize(
    ("choices", "layers"), [({}, [0, 1, 2]), ({"class_token": False, "pooling": "attention"}, [0, 1, 2, -1])]
)
def test_an_attention_of_our_own_model_knows_its_layer_and_the_pool_has_none(
    choices: dict[str, object], layers: list[int]
) -> None:
    model, counter, seen = own(**choices), OwnLayers(), []

    parts = [block.attn for block in model.blocks] + ([model.attn_pool] if len(layers) == 4 else [])
    for part in parts:
        part.register_forward_pre_hook(lambda *_: seen.append(counter.next()))
    model(pixels())
    assert seen == layers
