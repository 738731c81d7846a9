"""Class names: the right one for each index, and found by what people type."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from vit_viz.errors import ParameterError
from vit_viz.labels import Labels, imagenet1k

BIRDS = Labels(("crane (bird)", "blackbird", "sea bird", "Bird", "birdhouse"), ("n1", "n2", "n3", "n4", "n5"))


def test_imagenet_has_a_thousand_different_names_and_synsets() -> None:
    labels = imagenet1k()
    assert len(labels) == 1000
    assert len(set(labels.names)) == 1000
    assert len(set(labels.synsets)) == 1000
    assert list(labels.synsets) == sorted(labels.synsets)


@pytest.mark.parametrize(
    ("index", "synset", "name"),
    [
        (0, "n01440764", "tench"),
        (134, "n02012849", "crane (bird)"),
        (207, "n02099601", "golden retriever"),
        (281, "n02123045", "tabby"),
        (517, "n03126707", "crane (machine)"),
        (999, "n15075141", "toilet tissue"),
    ],
)
def test_imagenet_classes_lie_where_they_belong(index: int, synset: str, name: str) -> None:
    assert (imagenet1k().synsets[index], imagenet1k().name(index)) == (synset, name)
    assert imagenet1k().index(synset) == index


def test_imagenet_has_timms_order() -> None:
    data = pytest.importorskip("timm.data", reason="timm is the oracle here", exc_type=ImportError)
    info = data.ImageNetInfo("imagenet-1k")
    assert list(imagenet1k().synsets) == info.label_names()


def test_imagenet_agrees_with_the_annotations_of_the_photos(shared_data: Path) -> None:
    photos = json.loads((shared_data / "photos" / "annotations.json").read_text())
    assert [imagenet1k().index(p["synset"]) for p in photos] == [p["class_index"] for p in photos]


def test_the_file_numbers_its_rows() -> None:
    path = Path(__file__).resolve().parents[1] / "assets" / "imagenet1k.tsv"
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    assert [int(row[0]) for row in rows] == list(range(1000))
    assert {len(row) for row in rows} == {3}


def test_a_search_ranks_whole_names_then_beginnings_then_words_then_parts() -> None:
    assert [BIRDS.names[i] for i in BIRDS.search("bird")] == [
        "Bird",
        "birdhouse",
        "sea bird",
        "crane (bird)",
        "blackbird",
    ]


def test_a_search_takes_numbers_and_synsets() -> None:
    assert BIRDS.search("2") == (2,)
    assert BIRDS.search("n4") == (3,)
    assert imagenet1k().search("n02123045") == (281,)


def test_a_search_ignores_case_and_extra_blanks() -> None:
    assert BIRDS.search("  SEA   Bird ") == (2,)


def test_a_search_for_nothing_finds_nothing() -> None:
    assert BIRDS.search("   ") == ()
    assert BIRDS.search("<img onerror=alert(1)>") == ()


def test_a_class_without_a_name_is_numbered() -> None:
    assert BIRDS.name(7) == "class 7"
    with pytest.raises(ParameterError, match="count from 0"):
        BIRDS.name(-1)


def test_labels_refuse_synsets_of_another_number() -> None:
    with pytest.raises(ParameterError, match="do not match"):
        Labels(("a", "b"), ("n1",))


def test_an_unknown_synset_is_refused() -> None:
    with pytest.raises(ParameterError, match="n0"):
        BIRDS.index("n0")
