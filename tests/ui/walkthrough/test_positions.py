"""The step about positions: the patches as they are or shuffled, and what the model says of each."""

from __future__ import annotations

import html
import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.ui.walkthrough.conftest import pictures_in, scene_of
from tests.ui.walkthrough.kinds import scene_of_kind
from vit_viz.figures.colormaps import table as colour_table
from vit_viz.ui.walkthrough import positions
from vit_viz.ui.walkthrough.scene import StepInput
from vit_viz.walkthrough import PositionStep

TALL, WIDE, ROWS, COLS = 8, 6, 4, 9


def patches_of(picture: np.ndarray) -> np.ndarray:
    """[rows * cols, height, width, channels]."""
    cut = picture.reshape(ROWS, TALL, COLS, WIDE, -1).swapaxes(1, 2)
    return cut.reshape(ROWS * COLS, TALL, WIDE, -1)


def ordered(scene: StepInput, seed: int) -> StepInput:
    return replace(scene, view=scene.view.with_options({"step_option": seed}))


def test_the_shape_of_the_table_is_that_of_the_grid(scene: StepInput) -> None:
    dim = scene.config.embed_dim
    assert ("positions", f"[{ROWS} · {COLS}, {dim}]", "one per place") in positions.screen(scene).shapes
    assert ("tokens", f"[{ROWS * COLS}, {dim}]", "patches") in positions.screen(scene).shapes


@pytest.mark.parametrize("seed", [0, 3])
def test_each_place_shows_the_patch_that_stands_there(scene: StepInput, seed: int) -> None:
    mixed, *_ = pictures_in(positions.screen(ordered(scene, seed)).figures)
    order = scene.step(PositionStep, place=scene.place, seed=seed).order
    assert (order.tolist() == list(range(ROWS * COLS))) == (seed == 0)
    expected = patches_of(np.asarray(scene.padded_input()))[
        order.numpy() if torch.is_tensor(order) else order
    ]
    np.testing.assert_array_equal(patches_of(np.asarray(mixed)), expected)


def test_the_answer_beside_the_photo_is_the_models_own(scene: StepInput) -> None:
    figures = html.unescape(positions.screen(ordered(scene, 2)).reveals)
    ((photo, _),) = re.findall(r"<td>with positions</td><td>(.*?)</td><td>(.*?)</td>", figures)
    photo_of = scene.session.image(scene.subject.image)
    pixels = scene.loaded.preprocess.apply(photo_of, mode="stretch").pixels
    with torch.no_grad():
        shares = scene.loaded.model(pixels)[0].softmax(-1)
    assert photo == f"animal {int(shares.argmax())} {float(shares.max()):.1%}"


OWN, OTHER = "The waves of this model", "For comparison: fixed waves, which this model does not use"
ANGLES = "The angles of this model"
BLUE, ORANGE = (tuple(colour_table("diverging")[end].tolist()) for end in (0, 255))


@pytest.mark.parametrize(
    ("kind", "titles"),
    [
        ("class token and registers", [OTHER]),
        ("no positions, tanh GELU, own scale", [OTHER]),
        ("gray 60 x 100, patch 20, sinusoidal", [OWN]),
        ("waves of rows and columns", [OWN]),
        ("rotary, class token and registers", [ANGLES, OTHER]),
    ],
)
def test_waves_are_called_the_models_own_where_it_has_them(kind: str, titles: list[str]) -> None:
    figures = positions.screen(scene_of_kind(kind)).figures
    assert [
        title for title in re.findall("<h3>(.*?)</h3>", figures) if title in (OWN, OTHER, ANGLES)
    ] == titles


def test_the_angles_of_a_model_are_said_below_them_and_drawn_in_the_colours_of_their_cosine() -> None:
    figures = positions.screen(scene_of_kind("rotary, class token and registers")).figures
    words = "Rotary angles of this model: cosine of 4 angles at each of 24 places; -1 blue, 1 orange."
    assert figures.count(f"<figcaption>{words}</figcaption>") == figures.count(f'alt="{words}"') == 1
    *_, angles, waves = pictures_in(figures)
    assert (angles.size, waves.size) == ((4, 24), (40, 24))
    # of 6 columns the second and the fifth have their centre a quarter off the middle: half a turn, whose cosine is -1
    blue = [place for place in range(24) if angles.convert("RGB").getpixel((2, place)) == BLUE]
    assert blue == [1, 4, 7, 10, 13, 16, 19, 22]


def test_waves_are_drawn_for_64_places_at_most_from_the_sine_and_cosine_of_0() -> None:
    figures = positions.screen(scene_of(size=(72, 60))).figures
    assert "Each line is a place (the first 64 of 90), each column one of 40 numbers" in figures
    waves = np.asarray(pictures_in(figures)[-1].convert("RGB"))
    assert waves.shape == (64, 40, 3)
    first = [tuple(colour) for colour in waves[0].tolist()]
    assert first.count(ORANGE) == 20  # the cosines
    assert len(set(first)) == 2
    assert BLUE not in first
