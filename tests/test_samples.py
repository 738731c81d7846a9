"""The pictures to start with: there, deterministic, and drawn where their description says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from vit_viz import samples
from vit_viz.analyses.opening import opening
from vit_viz.errors import ParameterError
from vit_viz.images import Preprocess, image_hash
from vit_viz.samples import FIRST_LOOKS, FirstLook, first_sample, sample, sample_names
from vit_viz.session.request import Subject
from vit_viz.session.session import Session


def test_the_photographs_come_first() -> None:
    assert sample_names() == ("lion", "cheetah", "runner", "tower", "shapes", "twins", "textures")


def test_what_a_first_look_at_a_sample_shows_is_what_the_rule_finds() -> None:
    session = Session(model="mini", device="cpu")
    found = {name: opening(session.trace("mini", name)) for name in sample_names()}
    assert {name: (one.layer, one.head) for name, one in FIRST_LOOKS.items()} == {
        name: (one.layer, one.head) for name, one in found.items()
    }
    assert {name: one.score for name, one in FIRST_LOOKS.items()} == pytest.approx(
        {name: one.score for name, one in found.items()}, abs=0.005
    )
    rankings = {name: session.top_classes_of(Subject("mini", name)) for name in sample_names()}
    assert {name: one.sure for name, one in FIRST_LOOKS.items()} == pytest.approx(
        {name: float(ranking.scores[0]) for name, ranking in rankings.items() if ranking}, abs=0.005
    )


def test_a_visit_begins_with_the_sample_that_says_most_of_those_that_the_model_is_sure_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert first_sample() == "lion"
    looks = {
        "cheetah": FirstLook(0.6, 0.4, 5, 2),
        "lion": FirstLook(0.9, 0.3, 5, 2),
        "runner": FirstLook(0.5, 0.9, 5, 2),
    }
    monkeypatch.setattr(samples, "SAMPLES", dict.fromkeys(looks))
    monkeypatch.setattr(samples, "FIRST_LOOKS", looks)
    assert first_sample() == "cheetah"
    del looks["cheetah"], looks["lion"]
    monkeypatch.setattr(samples, "SAMPLES", dict.fromkeys(looks))
    assert first_sample() == "runner"  # better than nothing


@pytest.mark.parametrize("name", sample_names())
def test_every_sample_is_an_rgb_picture_of_useful_size(name: str) -> None:
    picture = sample(name)
    assert picture.mode == "RGB"
    assert min(picture.size) >= 224
    assert len(picture.getcolors(1 << 20) or []) > 4


@pytest.mark.parametrize("name", sample_names())
def test_every_sample_is_the_same_each_time_and_independent(name: str) -> None:
    first, second = sample(name), sample(name)
    assert image_hash(first) == image_hash(second)
    first.paste("red", (0, 0, 50, 50))
    assert image_hash(sample(name)) == image_hash(second)


def test_an_unknown_sample_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ParameterError, match="cheetah"):
        sample("unicorn")


def test_gradio_is_not_imported_for_its_photographs() -> None:
    code = "import sys, vit_viz.samples as s; s.sample('lion'); assert 'gradio' not in sys.modules"
    root = Path(__file__).resolve().parents[1]
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr


def test_without_gradio_the_drawings_remain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples, "find_spec", lambda _: None)
    assert list(samples._find_samples()) == ["shapes", "twins", "textures"]


@pytest.mark.parametrize(
    ("name", "row", "col", "colour"),
    [
        ("shapes", 112, 112, (196, 61, 48)),
        ("shapes", 336, 112, (38, 97, 156)),
        ("shapes", 150, 336, (236, 178, 45)),
        ("shapes", 336, 336, (62, 132, 92)),
        ("shapes", 224, 224, (243, 239, 230)),
        ("twins", 112, 128, (236, 178, 45)),
        ("shapes", 262, 336, (62, 132, 92)),  # the star's tip
        ("shapes", 410, 336, (243, 239, 230)),
        ("twins", 236, 320, (38, 97, 156)),
        ("twins", 112, 173, (196, 61, 48)),  # a petal
        ("twins", 220, 128, (62, 132, 92)),
        ("twins", 300, 20, (196, 204, 178)),
        ("textures", 0, 0, (38, 97, 156)),
        ("textures", 191, 191, (236, 178, 45)),
        ("textures", 0, 216, (243, 239, 230)),  # the second field of a coarse board
        ("textures", 0, 395, (62, 132, 92)),  # the last pixel of a stripe
        ("textures", 198, 0, (243, 239, 230)),
        ("textures", 300, 500, (236, 178, 45)),
    ],
)
def test_drawings_have_their_colours_at_their_places(
    name: str, row: int, col: int, colour: tuple[int, int, int]
) -> None:
    assert sample(name).getpixel((col, row)) == colour


def test_the_twins_are_equal_pixel_by_pixel() -> None:
    pixels = np.asarray(sample("twins"))
    np.testing.assert_array_equal(pixels[20:260, 40:216], pixels[20:260, 424:600])


def test_the_twins_fill_equal_patches() -> None:
    """They lie 384 px apart, a whole number of patches: equal patches enter the model, apart from their positions."""
    pixels = Preprocess((320, 320)).apply(sample("twins")).pixels[0]
    assert pixels.shape == (3, 320, 640)
    np.testing.assert_array_equal(pixels[:, 16:256, 48:208].numpy(), pixels[:, 16:256, 432:592].numpy())
