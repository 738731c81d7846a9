"""The figure of what an answer is made of: its words, its names of layers and heads, and where its parts stand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from PIL import Image

from vit_viz.analyses.decomposition import Decomposition
from vit_viz.figures import files, sums
from vit_viz.figures.lettering import inks
from vit_viz.figures.request import DrawingOptions, Output
from vit_viz.figures.scene import Drawn, Scene, drawn
from vit_viz.figures.sheet import Bitmap, Box, TextLine
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
    return [mark.text for block in part.blocks for mark in block.marks if isinstance(mark, TextLine)]


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


SIGNED = np.array([[1.5, -0.25, 0, 2, -1], [0.5, -3, 0.75, 0.25, -1.25]])  # 2.25 and -2.75
NEGATIVE = {
    "layers": ("0", "1"), "heads": SIGNED, "mlps": np.array([-200.0, 60.0]), "rest": np.array([20.5]),
    "rest_names": ("embedding",), "total": -120.0, "output": -120.0,
}  # fmt: skip


def test_heads_of_both_signs_are_summed_as_they_are() -> None:
    assert sums.summands(answer(**NEGATIVE)) == {"embedding": 20.5, "all heads": -0.5, "all MLPs": -140.0}
    alone = answer(("pool",), heads=SIGNED[:1], mlps=np.array([-2.0]))
    assert list(sums.summands(alone)) == ["embedding", "all heads", "MLP", "bias of the last norm"]
    words = texts(shown(answer(**NEGATIVE)))
    listed = ["+20.5", "-0.5", "-140.0", "-120.0"]  # four digits of the largest, which is negative
    assert [
        words[words.index(name) + 1] for name in ("embedding", "all heads", "all MLPs", "together")
    ] == listed


@pytest.mark.parametrize("sign", [1, -1])
def test_bars_begin_at_zero_and_their_numbers_stand_behind_them(sign: int) -> None:
    values = {
        "heads": np.full((3, 5), sign * 0.5),
        "mlps": np.full(3, sign * 2.0),
        "rest": sign * np.array([3.0, 0.25]),
    }
    marks = shown(answer(total=sign * 16.75, **values), photo=False).blocks[0].marks
    *bars, total, line = [mark for mark in marks if isinstance(mark, Box)]
    assert [bar.width / total.width for bar in bars] == pytest.approx(
        [3 / 16.75, 7.5 / 16.75, 6 / 16.75, 0.25 / 16.75]
    )
    ends = {round(bar.left if sign > 0 else bar.left + bar.width, 6) for bar in (*bars, total)}
    assert len(ends) == 1
    names, words = ([mark for mark in marks if isinstance(mark, TextLine)][first::2] for first in (0, 1))
    assert all(name.x < bar.left for name, bar in zip(names, (*bars, total), strict=True))
    assert all(word.start + word.width <= Output().inner for word in words)
    assert total.fill == inks("light").quiet
    assert bars[-1].top < line.top < total.top
    for bar, word in zip(
        (*bars, total), [mark for mark in marks if isinstance(mark, TextLine)][1::2], strict=True
    ):
        assert word.x == pytest.approx(bar.left + bar.width + 3)


def test_the_table_has_a_number_for_every_head_their_sum_and_the_mlp() -> None:
    marks = shown(answer(**NEGATIVE)).blocks[5].marks
    numbers = [float(mark.text) for mark in marks if isinstance(mark, TextLine) and mark.size < 7]
    expected = np.column_stack((SIGNED, [2.25, -2.75], [-200.0, 60.0]))
    np.testing.assert_allclose(np.reshape(numbers, (2, 7)), expected, atol=0.51)
    names = [mark for mark in marks if isinstance(mark, TextLine) and mark.text in ("all", "MLP")]
    assert [name.text for name in sorted(names, key=lambda name: name.x)] == ["all", "MLP"]


def test_the_map_over_the_photo_has_a_scale_of_its_own() -> None:
    terms = np.zeros((3, 5, 9))
    terms[:, 0, 1:], terms[:, 1, 1:] = 9.0, -9.0  # which cancel
    terms[0, 2, 4], terms[0, 2, 5] = 1.0, -1.0
    (photo,) = [
        mark for mark in shown(answer(terms=terms), clip=False).blocks[0].marks if isinstance(mark, Bitmap)
    ]
    pixels = np.asarray(photo.image).astype(int)
    tall, wide = pixels.shape[0] // 2, pixels.shape[1] // 4
    assert pixels[tall // 2, 3 * wide + wide // 2, 0] - pixels[tall // 2, 3 * wide + wide // 2, 2] > 50


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
    orange = pixels[best[0] * tall + tall // 2, best[1] * wide + wide // 2]
    assert orange[0] > orange[2] + 40  # the photo itself is drawn without its colours


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
    words = [mark.text for mark in part.blocks[2].marks if isinstance(mark, TextLine)]
    assert set(words) == {"layer", "head", *layers, *expected}
    table = [mark.text for mark in part.blocks[5].marks if isinstance(mark, TextLine)]
    assert {"all", "MLP", *layers, "0", "4"} <= set(table)
    heading = "the heads of each layer took their" if maps == 1 else "each head took its"
    assert f"From where {heading} part" in texts(part)


def test_all_maps_share_one_scale_whose_middle_is_nothing() -> None:
    decomposed = answer()
    largest = float(np.abs(decomposed.maps).max())
    words = [
        mark.text for mark in shown(decomposed, clip=False).blocks[3].marks if isinstance(mark, TextLine)
    ]
    assert words[:2] == [f"-{largest:.2f}", f"{largest:.2f}"]
    assert "part of the logit of class 3 (cat), one scale for all maps" in " ".join(words)
