"""What the list of models says of each, and what is asked before a download."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ui.desk import odd_session
from vit_viz.checkpoints.catalog import BUNDLED, CATALOG
from vit_viz.session.session import Session
from vit_viz.ui.header import offers
from vit_viz.ui.header.offers import download_question, is_here, picker_value

ENTRY = CATALOG[0]


@pytest.fixture(autouse=True)
def disk(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names whose weights are in the Hub's cache."""
    names: set[str] = set()
    monkeypatch.setattr(offers, "is_on_disk", names.__contains__)
    return names


def test_each_model_is_listed_once_with_what_is_known_of_it(disk: set[str]) -> None:
    disk.add(CATALOG[1].name)
    value = picker_value(odd_session())
    offered = {one["name"]: one for one in value["offered"]}
    assert list(offered) == ["odd", *BUNDLED, *(entry.name for entry in CATALOG)]
    own = offered["odd"]
    assert (own["title"], own["hub"], own["about"], own["here"]) == ("odd", "", "", True)
    assert [fact.split(" ", 1)[1] for fact in own["facts"]] == [
        "M parameters"
    ]  # no size of a file, no licence
    assert offered["mini"]["facts"][-1] == "apache-2.0"
    assert offered["mini"]["here"]
    listed = offered[ENTRY.name]
    assert listed["facts"] == [f"{ENTRY.megabytes} MB", ENTRY.licence]
    assert (listed["hub"], listed["about"]) == (ENTRY.hub_id, ENTRY.good_for)
    assert [offered[entry.name]["here"] for entry in CATALOG[:2]] == [False, True]


def test_a_file_of_the_owners_is_here_and_says_its_size(tmp_path: Path) -> None:
    path = tmp_path / "mine.safetensors"
    path.write_bytes(bytes(2_400_000))
    (own,) = (
        one
        for one in picker_value(Session(model=str(path)))["offered"]
        if one["here"] and one["name"] not in BUNDLED
    )
    assert (own["name"], own["hub"], own["facts"]) == ("mine.safetensors", "", ["2 MB"])


def test_only_what_is_of_the_hub_and_not_here_has_to_be_fetched(
    disk: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = odd_session()
    assert is_here(session, "odd")
    assert is_here(session, "mini")
    assert not is_here(session, ENTRY.name)
    assert not is_here(session, "someone/their-vit")
    disk.add("someone/their-vit")
    assert is_here(session, "someone/their-vit")
    (tmp_path / "a").mkdir()
    (tmp_path / "a/folder").mkdir()
    assert not is_here(session, "a/folder")
    monkeypatch.chdir(tmp_path)
    assert is_here(session, "a/folder")  # a path, though it looks like an id


def test_a_question_before_a_download_says_what_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: dict[str, int | None] = {"a/large": 88_400_000, "a/small": 400_000, "a/untold": None}
    monkeypatch.setattr(offers, "announced_bytes", sizes.__getitem__)
    assert download_question(ENTRY.name) == {
        "title": ENTRY.title,
        "hub": ENTRY.hub_id,
        "size": f"{ENTRY.megabytes} MB",
        "licence": ENTRY.licence,
    }
    assert [download_question(ref)["size"] for ref in sizes] == ["88 MB", "0.4 MB", ""]
    assert download_question("a/large") == {
        "title": "a/large",
        "hub": "a/large",
        "size": "88 MB",
        "licence": "",
    }
