"""Which photos a survey is of, and what is known of them."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import pytest

from vit_viz.errors import ParameterError
from vit_viz.labels import Labels
from vit_viz.surveys.photos import Note, Photo, annotated, class_of, digest, listed, photos_in, resolved

LABELS = Labels(("tabby cat", "crane", "crane", "12"), synsets=("n1", "n2", "n3", "n4"))


def touch(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"")
    return folder


def names(photos):
    return [photo.name for photo in photos]


def test_a_folder_gives_its_pictures_sorted_with_those_in_its_folders(tmp_path):
    touch(tmp_path, "b.jpg", "a.PNG", "notes.txt", "deep/er/c.webp", ".hidden")
    found = photos_in(tmp_path)
    assert names(found) == ["a.PNG", "b.jpg", "deep/er/c.webp"]
    assert {photo.label for photo in found} == {""}
    assert found[1].path == str(tmp_path / "b.jpg")


def test_a_folder_of_folders_gives_labels(tmp_path):
    touch(tmp_path, "cat/1.jpg", "cat/2.jpg", "dog/1.jpg")
    assert [(photo.name, photo.label) for photo in photos_in(tmp_path)] == [
        ("cat/1.jpg", "cat"),
        ("cat/2.jpg", "cat"),
        ("dog/1.jpg", "dog"),
    ]


@pytest.mark.parametrize("others", [("3.jpg",), ("deep/er/3.jpg",)])
def test_folders_are_no_labels_where_photos_lie_elsewhere_too(tmp_path, others):
    touch(tmp_path, "cat/1.jpg", "dog/1.jpg", *others)
    assert {photo.label for photo in photos_in(tmp_path)} == {""}


def test_one_folder_is_no_label(tmp_path):
    assert photos_in(touch(tmp_path, "all/1.jpg", "all/2.jpg"))[0].label == ""


def test_a_pattern_gives_what_it_matches_named_from_the_folder_that_all_share(tmp_path):
    touch(tmp_path, "a/x1.jpg", "b/x2.jpg", "b/y.jpg")
    assert names(photos_in(f"{tmp_path}/*/x*.jpg")) == ["a/x1.jpg", "b/x2.jpg"]
    assert names(photos_in([tmp_path / "b/y.jpg", f"{tmp_path}/b/x*"])) == ["x2.jpg", "y.jpg"]
    assert names(photos_in(tmp_path / "b/y.jpg")) == ["y.jpg"]


@pytest.mark.parametrize("source", ["", "*.jpg", "[a-c]?.png"])
def test_no_photos_is_said(tmp_path, source):
    with pytest.raises(ParameterError, match="no photos in"):
        photos_in(f"{tmp_path}/{source}")


def test_a_list_names_photos_from_its_own_folder(tmp_path):
    (photo,) = listed({"a/1.jpg": Note("cat", ((0, 1, 2, 3),), 5)}, tmp_path)
    assert photo == Photo("a/1.jpg", str(tmp_path / "a/1.jpg"), "cat", 5, ((0, 1, 2, 3),))


def test_annotations_are_found_by_name_then_by_the_bare_name():
    photos = (
        Photo("a/1.jpg", "", "folder"),
        Photo("b/1.jpg", ""),
        Photo("b/2.jpg", ""),
        Photo("3.jpg", "", "own"),
    )
    notes = {"a/1.jpg": Note("one"), "elsewhere/2.jpg": Note("two", ((1, 2, 3, 4),)), "x/1.jpg": Note("lost")}
    found = annotated(photos, notes)
    assert [photo.label for photo in found] == ["one", "", "two", "own"]
    assert [photo.boxes for photo in found] == [(), (), ((1, 2, 3, 4),), ()]


def test_what_a_note_says_replaces_what_contradicts_it():
    photo = Photo("1.jpg", "", "cat", 3, ((0, 1, 2, 3),))
    for note, expected in (
        (Note(boxes=((1, 2, 3, 4),)), ("cat", 3, ((1, 2, 3, 4),))),
        (Note(class_index=0), ("", 0, ((0, 1, 2, 3),))),  # an older label would contradict the number
    ):
        (found,) = annotated((photo,), {"1.jpg": note})
        assert (found.label, found.class_index, found.boxes) == expected


@pytest.mark.parametrize("known", [Photo("a/1.jpg", "here"), Note("cat", ((1, 2, 3, 4),), 5)])
def test_what_is_known_of_a_photo_does_not_change(known):
    """Of one list many surveys are made: one that could change it would change the others."""
    with pytest.raises(FrozenInstanceError):
        known.label = "dog"
    assert hash(known) == hash(replace(known))


def test_annotations_of_other_photos_are_refused():
    with pytest.raises(
        ParameterError, match=r"none of the 1 photos, such as 'a\.jpg'; their first is 'b\.jpg'"
    ):
        annotated((Photo("a.jpg", ""),), {"b.jpg": Note("x")})


@pytest.mark.parametrize(
    ("labels", "classes", "expected"),
    [
        (LABELS, 4, {"tabby cat": 0, "Tabby_cat": 0, "n2": 1, "3": 3, "4": None, "crane": None, "dog": None, "": None}),
        (LABELS, 0, {"tabby cat": None, "n2": None, "3": None, "": None}),
        (None, 3, {"0": 0, "2": 2, "3": None, "-1": None, "1.0": None, "cat": None}),
        (None, 0, {"3": None}),
        (Labels(("tabby cat", "")), 2, {"": None}),
        (Labels(("tabby cat", "crane"), synsets=("n1", "")), 2, {"": None}),
    ],
)  # fmt: skip
def test_a_label_is_a_name_a_synset_or_a_number_of_the_model(labels, classes, expected):
    assert {label: class_of(label, labels, classes) for label in expected} == expected


def test_a_number_counts_only_below_the_number_of_classes():
    given = [resolved((Photo("a", "", "", index),), None, 3)[0].class_index for index in (0, 2, 3)]
    assert given == [0, 2, None]


def test_the_class_that_a_label_means_goes_before_the_number_beside_it():
    photo = Photo("a", "", "tabby cat", 2)
    assert resolved((photo,), LABELS, 4)[0].class_index == 0
    assert resolved((replace(photo, label="3"),), None, 4)[0].class_index == 3


def test_the_number_beside_a_label_counts_only_where_classes_have_no_names():
    photo = Photo("a", "", "n9", 2)
    assert resolved((photo,), LABELS, 4)[0].class_index is None  # a number of another set of classes
    assert resolved((photo,), None, 4)[0].class_index == 2
    assert resolved((photo,), None, 2)[0].class_index is None
    assert resolved((replace(photo, label="2"),), LABELS, 4)[0].class_index == 2


def test_the_digest_is_of_all_that_is_known_but_not_of_where_the_files_lie():
    photo = Photo("a", "here", "cat", 1, ((1, 2, 3, 4),))
    same = digest([photo, replace(photo, name="b")])
    assert same == digest([replace(photo, path="there"), replace(photo, name="b")])
    others = [
        [replace(photo, label="dog"), replace(photo, name="b")],
        [replace(photo, class_index=2), replace(photo, name="b")],
        [replace(photo, boxes=()), replace(photo, name="b")],
        [replace(photo, name="c"), replace(photo, name="b")],
        [replace(photo, name="b"), photo],
        [photo],
    ]
    assert len({same, *map(digest, others)}) == 7
