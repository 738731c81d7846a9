"""Uploads: kept for their owner only, within a budget, for a while."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest
from PIL import Image

from tests.waiting import PATIENCE, until
from vit_viz.errors import ImageError
from vit_viz.images import image_hash
from vit_viz.session.uploads import UploadStore, cleaned_name, picture_bytes, sweep_every

SIDE = 100
ONE = 4 * SIDE**2 + 4096  # bytes that a picture counts


def picture(seed: int = 0, *, side: int = SIDE) -> Image.Image:
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, (side, side, 3), dtype=np.uint8))


class Clock:
    def __init__(self) -> None:
        self.now, self.asked = 0.0, 0

    def __call__(self) -> float:
        self.asked += 1
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
        store.get(f"u{'x' * 24}", owner="bob")
    assert str(foreign.value) == str(unknown.value)
    with pytest.raises(ImageError, match="There is no picture 'lyon' here"):
        store.get("lyon")


def test_equal_pictures_have_different_ids_and_the_same_digest() -> None:
    store = UploadStore()
    first, second = store.add(picture(), owner="ada"), store.add(picture(), owner="bob")
    assert first != second
    assert store.get(first, owner="ada").digest == store.get(second, owner="bob").digest


def test_the_budget_holds_and_the_least_recently_used_leaves_first() -> None:
    store = UploadStore(max_bytes=3 * ONE, owner_share=1)
    keys = [store.add(picture(i)) for i in range(3)]
    store.get(keys[0])
    keys.append(store.add(picture(3)))
    assert store.used_bytes == 3 * ONE
    with pytest.raises(ImageError):
        store.get(keys[1])
    for kept in (keys[0], keys[2], keys[3]):
        store.get(kept)


def test_a_picture_larger_than_the_budget_is_refused_and_nothing_else_leaves() -> None:
    store = UploadStore(max_bytes=2 * ONE, owner_share=1)
    kept = store.add(picture())
    with pytest.raises(ImageError, match="larger"):
        store.add(picture(side=2 * SIDE))
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
    store.forget("ada")
    assert store.used_bytes == ONE
    store.get(theirs, owner="bob")
    with pytest.raises(ImageError):
        store.get(mine[0], owner="ada")


def test_one_owner_cannot_push_out_the_pictures_of_others() -> None:
    store = UploadStore(max_bytes=8 * ONE, owner_share=0.25)
    theirs = [store.add(picture(i), owner="bob") for i in range(2)]
    mine = [store.add(picture(i), owner="ada") for i in range(50)]
    for key in theirs:
        store.get(key, owner="bob")
    for key in mine[-2:]:
        store.get(key, owner="ada")
    assert store.used_bytes == 4 * ONE


def test_a_crowd_of_owners_pushes_out_its_own_pictures_and_not_a_newcomer_s() -> None:
    """Each fills its share; whoever has one picture keeps it, also where it is the least recently used."""
    clock = Clock()
    store = UploadStore(max_bytes=12 * ONE, owner_share=0.25, clock=clock)
    first = store.add(picture(0), owner="ada")
    for number in range(20):
        clock.now += 1
        store.add(picture(1 + number), owner=f"eve {number % 4}")
        if number == 10:
            second = store.add(picture(90), owner="bob")
    assert store.get(second, owner="bob").image == picture(90)
    assert store.used_bytes <= 12 * ONE
    assert store.get(first, owner="ada").image == picture(0)


def test_one_large_picture_makes_room_by_many_small_ones_at_once() -> None:
    clock = Clock()
    store = UploadStore(max_bytes=40 * ONE, owner_share=0.5, clock=clock)
    for number in range(40):
        clock.now += 1
        store.add(picture(number), owner=f"eve {number // 10}")
    large = store.add(picture(7, side=4 * SIDE), owner="ada")
    assert store.get(large, owner="ada").image == picture(7, side=4 * SIDE)
    assert [len(store.of(f"eve {number}")) for number in range(4)] == [0, 5, 10, 10]


def test_a_picture_larger_than_an_owners_share_is_refused() -> None:
    store = UploadStore(max_bytes=8 * ONE, owner_share=0.25)
    with pytest.raises(ImageError, match="larger"):
        store.add(picture(side=2 * SIDE))


def test_a_picture_counts_what_pillow_keeps() -> None:
    assert picture_bytes(Image.new("RGB", (10, 20))) == 800
    assert picture_bytes(Image.new("L", (10, 20))) == 200


def test_tiny_pictures_count_too() -> None:
    store = UploadStore(max_bytes=10 * 4112, owner_share=1)
    keys = [store.add(picture(i, side=2)) for i in range(30)]
    with pytest.raises(ImageError):
        store.get(keys[19])
    store.get(keys[20])


def test_uploads_expire_while_nobody_asks_for_anything() -> None:
    clock, gone = Clock(), threading.Event()
    store = UploadStore(max_seconds=60, clock=clock, on_gone=lambda _digest: gone.set())
    store.add(picture())
    stop, asked = sweep_every(store, 0.01), clock.asked
    until(lambda: clock.asked > asked + 1)
    assert not gone.is_set()
    clock.now = 61
    assert gone.wait(60)
    assert store.used_bytes == 0
    stop.set()


def test_sweeping_ends_with_the_store_or_when_it_is_told_to() -> None:
    stores = [UploadStore(), UploadStore()]
    before = set(threading.enumerate())
    stops = [sweep_every(store, 60) for store in stores]
    sweepers = set(threading.enumerate()) - before
    assert len(sweepers) == 2
    reference = weakref.ref(stores[0])
    stops[1].set()
    del stores
    gc.collect()
    assert reference() is None
    for thread in sweepers:
        thread.join(PATIENCE)
    assert not any(thread.is_alive() for thread in sweepers)


def test_the_last_upload_of_a_picture_tells_when_it_goes() -> None:
    gone: list[str] = []
    store = UploadStore(on_gone=gone.append)
    store.add(picture(0), owner="ada")
    store.add(picture(0), owner="bob")
    store.add(picture(1), owner="bob")
    store.forget("ada")
    assert gone == []
    store.forget("bob")
    assert sorted(gone) == sorted(image_hash(picture(i)) for i in range(2))


def test_who_is_told_may_ask_the_store() -> None:
    found: list[int] = []
    store = UploadStore(
        max_bytes=2 * ONE, owner_share=1, on_gone=lambda _digest: found.append(store.used_bytes)
    )
    for i in range(3):
        store.add(picture(i))
    assert found == [2 * ONE]


# --- names


@pytest.mark.parametrize(
    ("file_name", "shown"),
    [
        ("lion.jpg", "lion"),
        ("/home/ada/secret place/my  photo.final.jpeg", "my photo.final"),
        ("C:\\Users\\ada\\IMG_0001.HEIC", "IMG_0001"),
        ("zw\u00f6lf \u4e2d\u6587.png", "zw\u00f6lf \u4e2d\u6587"),
        ("a\u202egpj.exe\n\x00b.png", "a gpj.exe b"),  # neither turns the text around nor breaks the line
        ("x" * 90 + ".png", "x" * 40),
        ("no ending", "no ending"),
        ("v1.2 of it", "v1.2 of it"),
        (".png", ""),
        ("...", ""),
        ("", ""),
        *(
            (f"{name}.png", "") for name in ("image", "clipboard", "Blob")
        ),  # a browser's names for what has none
    ],
)
def test_of_a_files_name_only_what_says_something_is_kept(file_name: str, shown: str) -> None:
    assert cleaned_name(file_name) == shown


def test_an_owners_pictures_are_listed_with_their_names_as_they_came_and_nobody_elses() -> None:
    store = UploadStore()
    first, second = store.add(picture(1), owner="ada", name="cat"), store.add(picture(2), owner="ada")
    store.add(picture(3), owner="eve", name="hers")
    third = store.add(picture(4), owner="ada")
    store.get(first, owner="ada")  # the one used last is still the first that came
    assert {key: entry.name for key, entry in store.of("ada").items()} == {
        first: "cat",
        second: "your photo 1",
        third: "your photo 2",
    }
    assert list(store.of("ada")) == [first, second, third]
    store._drop(second)
    fourth = store.add(picture(5), owner="ada")
    assert store.of("ada")[fourth].name == "your photo 1"  # free again
    assert store.of("nobody") == {}


def test_to_list_a_picture_does_not_keep_it_longer() -> None:
    clock = Clock()
    store = UploadStore(max_seconds=10, clock=clock)
    store.add(picture(1), owner="ada")
    clock.now = 9
    assert len(store.of("ada")) == 1
    clock.now = 10
    assert store.of("ada") == {}


@pytest.mark.parametrize(("owner", "is_gone"), [("ada", True), ("bob", False), ("", False)])
def test_only_its_owner_removes_a_picture(owner: str, is_gone: bool) -> None:
    gone: list[str] = []
    store = UploadStore(on_gone=gone.append)
    key, other = store.add(picture(1), owner="ada"), store.add(picture(2), owner="ada")
    digest = store.get(key, owner="ada").digest
    store.remove(key, owner=owner)
    assert (key not in store.of("ada")) == is_gone
    assert other in store.of("ada")
    assert gone == ([digest] if is_gone else [])
    store.remove("u-nothing", owner=owner)
