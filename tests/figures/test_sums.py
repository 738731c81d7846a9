"""The figure of what an answer is made of: its words, its names of layers and heads, and where its parts stand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from PIL import Image

from vit_viz.analyses.decomposition import Decomposition
from vit_viz.figures import files, sums
from vit_viz.figures.request import DrawingOptions, Output
from vit_viz.figures.scene import Drawn, Scene, drawn
from vit_viz.figures.sheet import Bitmap, Box, Text
from vit_viz.geometry import CropBox

GRID = (2, 4)


def answer(layers: tuple[str, ...] = ("0", "1", "2"), *, maps: int = 5, **options: Any) -> Decomposition:
    random = np.random.default_rng(4)
    values: dict[str, Any] = {
        "terms": random.normal(size=(len(layers), maps, 1 + 8)), "heads": np.full((len(layers), 5), 0.5),
        "mlps": np.full(len(layers), -2.0), "rest": np.array([0.123456, 10.0]),
        "rest_names": ("embedding", "bias of the last norm"),
        "total": 11.623456, "output": 11.623457, "layers": layers, "grid": GRID, "prefix": ("class",), "about": "cat",
        "unit": "logit of class 3 (cat)", "crop_box": CropBox((10, 20), (10, 20), (0.0, 0.0, 10.0, 20.0)),
    }  # fmt: skip
    return Decomposition(**values | options)


def shown(decomposed: Decomposition, *, photo: bool = True, **drawing: Any) -> Drawn:
    assert sums in files.KINDS
    picture = (lambda: Image.new("RGB", (40, 20), (90, 120, 150))) if photo else None
    return drawn(decomposed, Scene(Output(), DrawingOptions(**drawing), open_photo=picture))


def texts(part: Drawn) -> list[str]:
    return [mark.text for block in part.blocks for mark in block.marks if isinstance(mark, Text)]


def test_the_parts_are_listed_with_their_sum_in_equal_digits() -> None:
    words = texts(shown(answer()))
    listed = ["+0.12", "+7.50", "-6.00", "+10.00", "+11.62"]
    names = ["embedding", "all heads", "all MLPs", "bias of the last norm", "together"]
    assert [words[words.index(name) + 1] for name in names] == listed
    assert shown(answer()).title == answer().finding


def test_of_a_part_against_the_answer_the_bar_goes_to_the_left_and_is_blue() -> None:
    marks = shown(answer(), photo=False).blocks[0].marks
    bars = [mark for mark in marks if isinstance(mark, Box)][:-2]
    assert len(bars) == 4
    heads, mlps = bars[1], bars[2]
    assert mlps.left + mlps.width == pytest.approx(heads.left, abs=0.01)
    assert heads.width == pytest.approx(7.5 / 6.0 * mlps.width)
    assert heads.fill is not None
    assert mlps.fill is not None
    assert heads.fill[0] > heads.fill[2]
    assert mlps.fill[0] < mlps.fill[2]


def test_the_photo_has_the_map_of_all_heads_over_it() -> None:
    with_photo, alone = shown(answer()), shown(answer(), photo=False)
    (photo,) = [mark for mark in with_photo.blocks[0].marks if isinstance(mark, Bitmap)]
    assert photo.width / photo.height == pytest.approx(2.0)
    assert "On the photo" in with_photo.caption
    assert "On the photo" not in alone.caption
    assert not any(isinstance(mark, Bitmap) for mark in alone.blocks[0].marks)
    pixels = np.asarray(photo.image).astype(int)
    whole = answer().map_of().values
    best = np.unravel_index(int(whole.argmax()), GRID)
    tall, wide = pixels.shape[0] // 2, pixels.shape[1] // 4
    red = pixels[best[0] * tall + tall // 2, best[1] * wide + wide // 2]
    assert red[0] > red[2] + 40  # the photo itself is drawn without its colours


@pytest.mark.parametrize(
    ("layers", "maps", "expected"),
    [
        (("0", "1", "2"), 5, ["0", "1", "2", "3", "4"]),
        (("pool",), 5, ["0", "1", "2", "3", "4"]),
        (("0", "1"), 1, ["all"]),
    ],
)
def test_layers_and_heads_have_their_names(layers: tuple[str, ...], maps: int, expected: list[str]) -> None:
    part = shown(answer(layers, maps=maps))
    words = [mark.text for mark in part.blocks[2].marks if isinstance(mark, Text)]
    assert set(words) == {"layer", "head", *layers, *expected}
    table = [mark.text for mark in part.blocks[5].marks if isinstance(mark, Text)]
    assert {"all", "MLP", *layers, "0", "4"} <= set(table)
    heading = "the heads of each layer took their" if maps == 1 else "each head took its"
    assert f"From where {heading} part" in texts(part)


def test_all_maps_share_one_scale_whose_middle_is_nothing() -> None:
    decomposed = answer()
    largest = float(np.abs(decomposed.maps).max())
    words = [mark.text for mark in shown(decomposed, clip=False).blocks[3].marks if isinstance(mark, Text)]
    assert words[:2] == [f"-{largest:.2f}", f"{largest:.2f}"]
    assert "part of the logit of class 3 (cat), one scale for all maps" in " ".join(words)
