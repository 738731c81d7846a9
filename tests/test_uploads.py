"""Uploads: kept for their owner only, within a budget, for a while."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from vit_viz.errors import ImageError
from vit_viz.uploads import UploadStore


def picture(seed: int = 0, *, side: int = 10) -> Image.Image:
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, (side, side, 3), dtype=np.uint8))


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_an_owner_gets_the_picture_back_pixel_by_pixel() -> None:
    store = UploadStore()
    key = store.add(picture(1), owner="ada")
    assert np.array_equal(np.asarray(store.get(key, owner="ada").image), np.asarray(picture(1)))


def test_another_owner_gets_the_same_sentence_as_for_an_unknown_id() -> None:
    store = UploadStore()
    key = store.add(picture(), owner="ada")
    with pytest.raises(ImageError) as foreign:
        store.get(key, owner="bob")
    with pytest.raises(ImageError) as unknown:
        store.get("u-nothing", owner="bob")
    assert str(foreign.value) == str(unknown.value)


def test_equal_pictures_have_different_ids_and_the_same_digest() -> None:
    store = UploadStore()
    first, second = store.add(picture(), owner="ada"), store.add(picture(), owner="bob")
    assert first != second
    assert store.get(first, owner="ada").digest == store.get(second, owner="bob").digest


def test_the_budget_holds_and_the_least_recently_used_leaves_first() -> None:
    store = UploadStore(max_bytes=3 * 300)  # three pictures of 10 x 10 x 3 bytes
    keys = [store.add(picture(i)) for i in range(3)]
    store.get(keys[0])
    keys.append(store.add(picture(3)))
    assert store.used_bytes == 900
    with pytest.raises(ImageError):
        store.get(keys[1])
    for kept in (keys[0], keys[2], keys[3]):
        store.get(kept)


def test_a_picture_larger_than_the_budget_is_refused_and_nothing_else_leaves() -> None:
    store = UploadStore(max_bytes=400)
    kept = store.add(picture())
    with pytest.raises(ImageError, match="larger"):
        store.add(picture(side=20))
    store.get(kept)


def test_an_upload_expires_after_its_last_use() -> None:
    clock = Clock()
    store = UploadStore(max_seconds=60, clock=clock)
    key = store.add(picture())
    clock.now = 59
    store.get(key)
    clock.now = 118
    store.get(key)
    clock.now = 179
    with pytest.raises(ImageError):
        store.get(key)
    assert store.used_bytes == 0


def test_forgetting_an_owner_deletes_only_what_is_theirs() -> None:
    store = UploadStore()
    mine, theirs = [store.add(picture(i), owner="ada") for i in range(2)], store.add(picture(2), owner="bob")
    assert store.forget("ada") == 2
    store.get(theirs, owner="bob")
    with pytest.raises(ImageError):
        store.get(mine[0], owner="ada")
