"""Sheets of photos become one array, class after class, row after row."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from PIL import Image

from training.data import SHEETS, SIDE, photos


def test_photos_are_decoded_once_into_a_folder_that_need_not_be_there(tmp_path: Path) -> None:
    rows, cols = SHEETS["val"]
    folder = tmp_path / "train" / "val"
    folder.mkdir(parents=True)
    (tmp_path / "train" / "classes.json").write_text(json.dumps([{"index": i} for i in range(2)]))
    greys = np.arange(2 * rows * cols, dtype=np.uint8).reshape(2, rows, cols)
    for index, sheet in enumerate(greys):
        large = sheet.repeat(SIDE, 0).repeat(SIDE, 1)
        Image.fromarray(large).convert("RGB").save(folder / f"{index:03d}.webp", lossless=True)
    cache = tmp_path / "work" / "cache"
    found = photos(tmp_path, "val", cache)
    assert found.shape == (2 * rows * cols, SIDE, SIDE, 3)
    np.testing.assert_array_equal(found, np.broadcast_to(greys.reshape(-1, 1, 1, 1), found.shape))
    (folder / "000.webp").unlink()
    np.testing.assert_array_equal(photos(tmp_path, "val", cache), found)
