"""The step about positions: the patches as they are or shuffled, and what the model says of each."""

from __future__ import annotations

import html
import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.ui.walkthrough.conftest import pictures_in
from vit_viz.ui.walkthrough import Scene, positions
from vit_viz.walkthrough.tokens import PositionStep

TALL, WIDE, ROWS, COLS = 8, 6, 4, 9


def patches_of(picture: np.ndarray) -> np.ndarray:
    """[rows * cols, height, width, channels]."""
    cut = picture.reshape(ROWS, TALL, COLS, WIDE, -1).swapaxes(1, 2)
    return cut.reshape(ROWS * COLS, TALL, WIDE, -1)


def ordered(scene: Scene, seed: int) -> Scene:
    return replace(scene, view=scene.view.with_options({"step_option": seed}))


@pytest.mark.parametrize("seed", [0, 3])
def test_each_place_shows_the_patch_that_stands_there(scene: Scene, seed: int) -> None:
    mixed, *_ = pictures_in(positions.screen(ordered(scene, seed)).figures)
    order = scene.step(PositionStep, place=scene.place, seed=seed).order
    assert (order.tolist() == list(range(ROWS * COLS))) == (seed == 0)
    expected = patches_of(np.asarray(scene.padded_input()))[
        order.numpy() if torch.is_tensor(order) else order
    ]
    np.testing.assert_array_equal(patches_of(np.asarray(mixed)), expected)


def test_the_answer_beside_the_photo_is_the_models_own(scene: Scene) -> None:
    figures = html.unescape(positions.screen(ordered(scene, 2)).reveals)
    ((photo, _),) = re.findall(r"<td>with positions</td><td>(.*?)</td><td>(.*?)</td>", figures)
    photo_of = scene.session.image(scene.subject.image)
    pixels = scene.loaded.preprocess.apply(photo_of, mode="stretch").pixels
    with torch.no_grad():
        shares = scene.loaded.model(pixels)[0].softmax(-1)
    assert photo == f"animal {int(shares.argmax())} {float(shares.max()):.1%}"
