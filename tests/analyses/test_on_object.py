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
from vit_viz.analyses.localisation import ObjectOnGrid, object_on_grid
from vit_viz.analyses.on_object import OnObjectOptions, on_object
from vit_viz.errors import ParameterError
from vit_viz.geometry import CropBox
from vit_viz.samples import sample

pytestmark = pytest.mark.numbers


def png(mask: Any) -> str:
    file = io.BytesIO()
    picture = mask if isinstance(mask, Image.Image) else Image.fromarray(np.asarray(mask, dtype=np.uint8))
    picture.save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode()


def there(share: Any) -> ObjectOnGrid:
    share = np.asarray(share, dtype=np.float64)
    return ObjectOnGrid(share, np.ones(share.shape), (share >= 0.5).astype(np.int8))


def test_it_is_worked_by_hand() -> None:
    got = on_object(patch_map([[2, 3, -4], [0, 1, 0]]), there([[1, 0.5, 0], [0, 0, 0]]))
    assert got.others == ("pointing", "energy inside", "IoU")
    # the object has 1.5 patches, rounded to 2: the highest two hold 1.5 of it
    assert got.values[0].tolist() == pytest.approx([1, 3.5 / 6, 1.5 / 2])
    # patches in the middle column lie 0.5 from the middle, the others 1.118: nearness 0.618 for two of them, which are equal
    assert got.values[2].tolist() == pytest.approx([1 / 2, 0.25, 0.5 / (2 + 1.5 - 0.5)])
    assert got.values[3].tolist() == pytest.approx([1, 1.25 / 1.5, 1.5 / 2])
    assert got.values[1, :2].tolist() == pytest.approx([2 / 6, 1.5 / 6])


def test_random_orders_are_the_mean_over_all_orders() -> None:
    share = np.array([[1.0, 1, 0, 0], [0, 0, 0, 0]])
    found = patch_map([[-1, -2, -2, -2], [-2, -2, -2, -2]])
    got = on_object(found, there(share))
    pairs = [(a, b) for a in range(8) for b in range(8) if a != b]
    hits = [share.ravel()[list(pair)].sum() for pair in pairs]
    assert got.values[1, 2] == pytest.approx(np.mean([hit / (4 - hit) for hit in hits]), abs=0.05)
    again, other = (on_object(found, there(share), seed=seed) for seed in (0, 1))
    assert got.values[1, 2] == again.values[1, 2] != other.values[1, 2]
    # nothing is positive; one of the second places is on the object, where seven patches are equally high
    assert got.values[0].tolist() == pytest.approx([1, 0, (1 + 1 / 7) / (4 - (1 + 1 / 7))])
    assert "no positive value" in got.note


@pytest.mark.parametrize("values", [0, 0.25, -3])
def test_a_map_that_is_the_same_everywhere_has_no_peak(values: float) -> None:
    with pytest.raises(ParameterError, match="the same everywhere: it has no peak"):
        on_object(patch_map(np.full((2, 4), values)), there([[1, 0, 0, 0], [0, 0, 0, 0]]))


@pytest.mark.parametrize("left_out", [255, 0])
def test_what_a_mask_leaves_out_changes_no_figure_beside_it(left_out: int) -> None:
    """Against loops over pixels of a photo whose patches are of 10 x 10 of them."""
    box = CropBox((30, 50), (30, 50), (0.0, 0.0, 30.0, 50.0))
    random = np.random.default_rng(8)
    mask = np.zeros((30, 50), np.uint8)
    mask[4:23, 13:38] = 7
    mask[:, 33:] = left_out
    values = random.random((3, 5)).astype(np.float32)
    values[1, 4] = 9  # where nothing is known, if 255 is left out
    at_pixels = values.repeat(10, 0).repeat(10, 1)
    inside, counts = mask == 7, mask != 255
    share, known = (part.reshape(3, 10, 5, 10).mean((1, 3)) for part in (inside, counts))
    order = [at for at in np.argsort(-values.ravel()) if known.ravel()[at] > 0][: round(share.sum())]
    hit, taken = share.ravel()[order].sum(), known.ravel()[order].sum()
    got = on_object(patch_map(values), object_on_grid(box, (3, 5), mask=mask))
    counted = at_pixels * counts
    expected = [0, (at_pixels * inside).sum() / counted.sum(), hit / (taken + share.sum() - hit)]
    centres = [(row, col) for row in (5, 15, 25) for col in (5, 15, 25, 35, 45) if counts[row, col]]
    best = max(centres, key=lambda at: counted[at])
    expected[0] = inside[best]
    np.testing.assert_allclose(got.values[0], expected, atol=0.03)  # 16 x 16 samples a patch
    np.testing.assert_allclose(got.values[1, 0], np.mean([inside[at] for at in centres]))
    np.testing.assert_allclose(got.values[1, 1], inside.sum() / counts.sum(), atol=0.02)
    elsewhere = np.where(known > 0, values, 100 * random.random((3, 5))).astype(np.float32)
    again = on_object(patch_map(elsewhere), object_on_grid(box, (3, 5), mask=mask))
    np.testing.assert_array_equal(again.values, got.values)
    assert ("left out by the mask" in got.note) == (left_out == 255)


@pytest.mark.parametrize("name", ["relevance", "rollout", "look"])
def test_a_box_a_mask_and_loops_over_pixels_agree(name: str) -> None:
    photo = sample("lion")
    box = (37, 52, 161, 190)
    mask = np.zeros((photo.height, photo.width), np.uint8)
    mask[52:190, 37:161] = 1
    by_box = vv.run("mini", "lion", "on_object", map=name, box=",".join(map(str, box)))
    cut = Image.new("RGB", photo.size, "white")
    cut.putalpha(Image.fromarray(255 * mask))
    for one in (mask, 255 * mask, 9 * mask, cut):
        by_mask = vv.run("mini", "lion", "on_object", map=name, png=png(one))
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
    expected = on_object(patch_map(values), there(chosen)).values
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
        on_object(patch_map(np.ones((2, 3))), there(np.zeros((2, 3))))
    assert OnObjectOptions(map="look").question.name == "look"
