"""The engine prepares a picture as Pillow and our own recipe do, level for level."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from PIL import Image

from tests.browser.engine import Jobs
from vit_viz.errors import ParameterError
from vit_viz.images import Mode, Preprocess

SIZES = [
    (1, 1),
    (1, 37),
    (41, 1),
    (3, 200),
    (200, 3),
    (48, 80),
    (47, 81),
    (97, 301),
    (301, 97),
    (375, 500),
    (20, 30),
]
RECIPES = {
    "odd": Preprocess((48, 80), patch_size=(12, 8), resize_to=56, mean=(0.1, 0.4, 0.7), std=(0.2, 0.3, 0.9)),
    "square": Preprocess((64, 64), patch_size=(8, 8), resize_to=73, interpolation="bilinear"),
    "grey": Preprocess((40, 30), patch_size=(7, 6), channels=1, interpolation="lanczos", drop_remainder=True),
    "squashed": Preprocess((30, 50), patch_size=(10, 10), resize_to=36, crop="squash", interpolation="hamming"),
    "box": Preprocess((32, 32), patch_size=(16, 16), resize_to=45, interpolation="box"),
    "nearest": Preprocess((35, 56), patch_size=(7, 7), interpolation="nearest"),
    "within a border": Preprocess((30, 50), patch_size=(10, 10), resize_to=36, crop="border", mean=(0.1, 0.4, 0.99)),
    "to two sides": Preprocess((32, 32), patch_size=(8, 8), resize_to=(47, 61), crop="squash", rounds_down=True),
    "a short side": Preprocess((35, 56), patch_size=(7, 7), resize_to=(71, 71), rounds_down=True),
    "covering": Preprocess((35, 56), patch_size=(7, 7), resize_to=(43, 67)),
    "of another size": Preprocess((45, 70), patch_size=(9, 7), resize_to=50).sized(7),
}  # fmt: skip
OPTIONS: list[dict[str, Any]] = [{}, {"size": 3}, {"max_patches": 9}]


def picture(height: int, width: int) -> Image.Image:
    """Smooth and rough parts, and full black beside full white, where filters overshoot."""
    levels = np.random.default_rng(height * 1000 + width).integers(0, 256, (height, width, 3), dtype=np.uint8)
    levels[: height // 3] = np.where(levels[: height // 3] > 99, 255, 0)
    ramp = np.linspace(0, 255, width).astype(np.uint8)
    levels[height // 3 : 2 * height // 3] = ramp[:, None]
    return Image.fromarray(levels)


def test_pictures_of_odd_sizes_are_prepared_level_for_level(tmp_path: Path) -> None:
    jobs, wanted = Jobs(tmp_path), []
    for recipe, size, mode, options in product(RECIPES.values(), SIZES, get_args(Mode), OPTIONS):
        image = picture(*size)
        js = {"mode": mode, "size": options.get("size", 0), "maxPatches": options.get("max_patches")}
        jobs.add("prepare", picture=jobs.picture(image), recipe=recipe.to_dict(), options=js)
        try:
            wanted.append(recipe.apply(image, mode=mode, **options))
        except ParameterError as error:
            wanted.append(error)
    for job, result, expected in zip(jobs.jobs, jobs.run(), wanted, strict=True):
        about = {name: value for name, value in job.items() if name != "picture"}
        if isinstance(expected, ParameterError):
            assert "error" in result, about
            continue
        assert "error" not in result, (result, about)
        assert result["crop"] == expected.crop_box.to_dict(), about
        pixels = expected.pixels[0].numpy()
        assert (result["channels"], result["height"], result["width"]) == pixels.shape, about
        np.testing.assert_array_equal(result["pixels"].reshape(pixels.shape), pixels, err_msg=str(about))


@pytest.mark.parametrize(("options", "sentence"), [
    ({"mode": "zoom"}, 'mode is "fit", "crop" or "stretch", not "zoom".'),
    ({"size": 2.5}, "A size is the short side in patches, a whole number, not 2.5."),
    ({"size": 100}, "This size has 100 x 150 patches, more than the 4096"),
    ({"size": 500}, "makes the input 4000 x 4000 pixels; a side has at most 2048."),
])  # fmt: skip
def test_what_cannot_be_prepared_is_refused_in_a_sentence(
    tmp_path: Path, options: dict[str, Any], sentence: str
) -> None:
    jobs = Jobs(tmp_path)
    recipe = RECIPES["square"].to_dict()
    jobs.add("prepare", picture=jobs.picture(picture(20, 30)), recipe=recipe, options=options)
    (result,) = jobs.run()
    assert sentence in result["error"]
