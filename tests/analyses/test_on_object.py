"""A map against an object: by hand, against plain loops over pixels, and by box, region and mask alike."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

import vit_viz as vv
from tests.analyses.conftest import patch_map
from vit_viz.analyses.on_object import OnObjectOptions, on_object
from vit_viz.errors import ParameterError
from vit_viz.samples import sample

pytestmark = pytest.mark.numbers


def png(mask: Any) -> str:
    file = io.BytesIO()
    Image.fromarray(np.asarray(mask, dtype=np.uint8) * 255).save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode()


def test_it_is_worked_by_hand() -> None:
    share = np.array([[1, 0.5, 0], [0, 0, 0]])
    got = on_object(patch_map([[2, 3, -4], [0, 1, 0]]), share, share >= 0.5)
    assert got.others == ("pointing", "energy inside", "IoU")
    # the object has 1.5 patches, rounded to 2: the highest two hold 1.5 of it
    assert got.values[0].tolist() == pytest.approx([1, 3.5 / 6, 1.5 / 2])
    # patches in the middle column lie 0.5 from the middle, the others 1.118: nearness 0.618 for two of them
    assert got.values[2].tolist() == pytest.approx([1, 0.25, 0.5 / (2 + 1.5 - 0.5)])
    assert got.values[3].tolist() == pytest.approx([1, 1.25 / 1.5, 1.5 / 2])
    assert got.values[1, :2].tolist() == pytest.approx([2 / 6, 1.5 / 6])


def test_random_orders_are_the_mean_over_all_orders() -> None:
    share = np.array([[1.0, 1, 0, 0], [0, 0, 0, 0]])
    got = on_object(patch_map(np.zeros((2, 4))), share, share > 0)
    pairs = [(a, b) for a in range(8) for b in range(8) if a != b]
    hits = [share.ravel()[list(pair)].sum() for pair in pairs]
    assert got.values[1, 2] == pytest.approx(np.mean([hit / (4 - hit) for hit in hits]), abs=0.05)
    again, other = (on_object(patch_map(np.zeros((2, 4))), share, share > 0, seed=seed) for seed in (0, 1))
    assert got.values[1, 2] == again.values[1, 2] != other.values[1, 2]
    assert (got.values[0, 1], got.values[0, 0]) == (0, 1)  # nothing positive; of equal patches the first


@pytest.mark.parametrize("name", ["relevance", "rollout", "look"])
def test_a_box_a_mask_and_loops_over_pixels_agree(name: str) -> None:
    photo = sample("lion")
    box = (37, 52, 161, 190)
    mask = np.zeros((photo.height, photo.width), bool)
    mask[52:190, 37:161] = True
    by_box = vv.run("mini", "lion", "on_object", map=name, box=",".join(map(str, box)))
    by_mask = vv.run("mini", "lion", "on_object", map=name, png=png(mask))
    np.testing.assert_allclose(by_box.values, by_mask.values, atol=1e-6)
    values = vv.run("mini", "lion", name).values
    trace = vv.trace("mini", "lion")
    top, left, height, width = trace.crop_box.region
    rows, cols = values.shape
    inside = np.zeros_like(values)
    for row in range(rows):
        for col in range(cols):
            y = top + height * (row + (np.arange(64) + 0.5) / 64) / rows
            x = left + width * (col + (np.arange(64) + 0.5) / 64) / cols
            inside[row, col] = np.mean([[52 <= a < 190 and 37 <= b < 161 for b in x] for a in y])
    peak = np.unravel_index(values.argmax(), values.shape)
    order = np.argsort(-values.ravel(), kind="stable")[: max(1, round(inside.sum()))]
    hit = inside.ravel()[order].sum()
    expected = [
        inside[peak] >= 0.5,
        (values * inside).sum() / values.sum(),
        hit / (len(order) + inside.sum() - hit),
    ]
    np.testing.assert_allclose(by_box.values[0], expected, atol=0.01)


def test_a_region_is_its_patches() -> None:
    got = vv.run("mini", "lion", "on_object", map="relevance", region="3,4;3,5;4,4", target=5)
    values = vv.explain("mini", "lion", methods="relevance", target=5)["relevance"].values
    chosen = np.zeros(values.shape)
    chosen[[3, 3, 4], [4, 5, 4]] = 1
    expected = on_object(patch_map(values), chosen, chosen > 0).values
    np.testing.assert_allclose(got.values, expected, atol=1e-4)
    assert got.values[3].tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "by a box, a region, or a mask"),
        ({"box": "1,2,3,4", "region": "1,1"}, "by a box, a region, or a mask"),
        ({"png": png(np.ones((3, 5), bool))}, "A mask is a PNG of the photo's"),
        ({"png": "AAAA"}, "A mask is a PNG of the photo's"),
        ({"png": "AAA"}, "A mask is a PNG of the photo's"),
        ({"box": "5,5,2,9"}, "each side before the other"),
        ({"region": "99,1"}, "does not exist"),
        ({"box": "1,2,3,4", "map": "heads"}, "no method 'heads'"),
    ],
)
def test_what_is_no_object_or_no_map_is_refused(options: dict[str, str], sentence: str) -> None:
    with pytest.raises(ParameterError, match=sentence):
        vv.run("mini", "lion", "on_object", **options)


def test_an_object_that_covers_no_patch_is_refused() -> None:
    with pytest.raises(ParameterError, match="covers no patch"):
        on_object(patch_map(np.ones((2, 3))), np.zeros((2, 3)), np.zeros((2, 3), bool))
    assert OnObjectOptions(map="look").question.name == "look"
