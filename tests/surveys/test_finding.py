"""The photos of a folder: links are followed, and what is passed over is told."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.surveys.conftest import save_photo
from tests.surveys.test_photos import names, touch
from vit_viz.errors import ParameterError
from vit_viz.surveys.names import MOST_NAMED
from vit_viz.surveys.photos import Reason, passed_over, photos_in, search_photos
from vit_viz.surveys.run import survey


def skipped(source: Any) -> dict[str, str]:
    return {path.name: reason for reason, paths in search_photos(source)[1].items() for path in paths}


def test_folders_of_classes_that_are_links_are_classes(tmp_path: Path) -> None:
    touch(tmp_path / "all", "n1/1.jpg", "n2/1.jpg", "n2/2.jpg", "n3/deep/1.jpg")
    (tmp_path / "some").mkdir()
    for name in ("n1", "n2"):
        (tmp_path / "some" / name).symlink_to(tmp_path / "all" / name)
    assert [(photo.name, photo.label) for photo in photos_in(tmp_path / "some")] == [
        ("n1/1.jpg", "n1"), ("n2/1.jpg", "n2"), ("n2/2.jpg", "n2"),
    ]  # fmt: skip
    assert skipped(tmp_path / "some") == {}
    (tmp_path / "link").symlink_to(tmp_path / "some")
    assert names(photos_in(tmp_path / "link")) == names(photos_in(tmp_path / "some"))


def test_one_folder_by_two_links_is_two(tmp_path: Path) -> None:
    """Neither lies in the other, so that nothing would go on for ever."""
    touch(tmp_path / "all", "1.jpg")
    (tmp_path / "two").mkdir()
    for name in ("a", "b"):
        (tmp_path / "two" / name).symlink_to(tmp_path / "all")
    assert names(photos_in(tmp_path / "two")) == ["a/1.jpg", "b/1.jpg"]


def test_links_back_end_and_are_told(tmp_path: Path) -> None:
    touch(tmp_path / "all", "a/1.jpg", "b/2.jpg", "b/c/3.jpg")
    (tmp_path / "all" / "b" / "c" / "up").symlink_to(tmp_path / "all")
    (tmp_path / "all" / "a" / "self").symlink_to(".")
    assert names(photos_in(tmp_path / "all")) == ["a/1.jpg", "b/2.jpg", "b/c/3.jpg"]
    assert skipped(tmp_path / "all") == dict.fromkeys(
        ("up", "self"), "links back to a folder that they lie in"
    )


def test_links_between_two_folders_end(tmp_path: Path) -> None:
    touch(tmp_path / "all", "a/1.jpg", "b/2.jpg")
    (tmp_path / "all" / "a" / "to").symlink_to(tmp_path / "all" / "b")
    (tmp_path / "all" / "b" / "to").symlink_to(tmp_path / "all" / "a")
    assert names(photos_in(tmp_path / "all")) == ["a/1.jpg", "a/to/2.jpg", "b/2.jpg", "b/to/1.jpg"]
    assert len(search_photos(tmp_path / "all")[1]["links back to a folder that they lie in"]) == 2


def test_what_is_no_photo_is_counted_and_named(tmp_path: Path) -> None:
    touch(tmp_path, "1.jpg", "notes.txt", "more/list.csv", ".hidden")
    (tmp_path / "n9").symlink_to("/nowhere/at/all")
    os.mkfifo(tmp_path / "pipe.jpg")
    assert skipped(tmp_path) == {
        "notes.txt": "not photos by their endings", "list.csv": "not photos by their endings",
        ".hidden": "not photos by their endings", "n9": "links that lead nowhere", "pipe.jpg": "neither files nor folders",
    }  # fmt: skip


def test_a_photo_that_leads_nowhere_is_a_failure_until_it_is_there(model: Any, tmp_path: Path) -> None:
    save_photo(tmp_path / "photos" / "1.png", 1)
    (tmp_path / "photos" / "2.png").symlink_to(tmp_path / "later.png")
    (tmp_path / "photos" / "3.png").symlink_to("3.png")
    done = survey(model, tmp_path / "photos", tmp_path / "out")
    assert list(done.failures) == ["2.png", "3.png"]
    save_photo(tmp_path / "later.png", 2)
    assert list(survey(model, tmp_path / "photos", tmp_path / "out").failures) == ["3.png"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every folder")
def test_a_folder_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    touch(tmp_path, "1.jpg", "closed/2.jpg").joinpath("closed").chmod(0)
    assert skipped(tmp_path) == {"closed": "folders that cannot be read"}


def test_folders_that_cannot_be_listed_are_told_and_the_first_one_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    touch(tmp_path, "1.jpg", "a/3.jpg", "closed/2.jpg", "z/4.jpg")
    listing = Path.iterdir

    def refused(folder: Path) -> Any:
        if folder.name == "closed":
            raise PermissionError(13, "Permission denied")
        return listing(folder)

    monkeypatch.setattr(Path, "iterdir", refused)
    assert names(photos_in(tmp_path)) == ["1.jpg", "a/3.jpg", "z/4.jpg"]
    assert skipped(tmp_path) == {"closed": "folders that cannot be read"}
    with pytest.raises(ParameterError, match=r"closed cannot be read: Permission denied\."):
        photos_in(tmp_path / "closed")


def test_a_survey_among_the_photos_is_not_entered(model: Any, tmp_path: Path) -> None:
    save_photo(tmp_path / "1.png", 1)
    done = survey(model, tmp_path, tmp_path / "out")
    assert survey(model, tmp_path, tmp_path / "out").notes == done.notes == ()


def test_several_folders_files_and_patterns_are_one_set(tmp_path: Path) -> None:
    touch(tmp_path, "cat/1.jpg", "dog/2.jpg", "dog/3.txt", "owl/4.jpg", "owl/down/5.jpg")
    together = photos_in([tmp_path / "cat", tmp_path / "dog"])
    assert [(photo.name, photo.label) for photo in together] == [("cat/1.jpg", "cat"), ("dog/2.jpg", "dog")]
    mixed = [tmp_path / "cat", f"{tmp_path}/owl/*", tmp_path / "dog" / "3.txt", tmp_path / "cat" / "1.jpg"]
    assert names(photos_in(mixed)) == ["cat/1.jpg", "dog/3.txt", "owl/4.jpg"]
    assert {photo.label for photo in photos_in(mixed)} == {""}
    assert skipped(mixed) == {"down": "folders that a pattern matches but does not enter"}


def test_what_is_named_and_does_not_exist_is_refused(tmp_path: Path) -> None:
    touch(tmp_path, "1.jpg")
    (tmp_path / "link").symlink_to("nowhere")
    for source in (tmp_path / "gone", [tmp_path / "1.jpg", tmp_path / "gone"]):
        with pytest.raises(ParameterError, match=r"gone does not exist\.$"):
            photos_in(source)
    with pytest.raises(ParameterError, match=r"link is a link that leads nowhere\.$"):
        photos_in(tmp_path / "link")
    with pytest.raises(ParameterError, match="There are no photos in"):
        photos_in(f"{tmp_path}/*.png")


def test_what_was_passed_over_is_a_line_for_each_reason() -> None:
    why: Reason = "not photos by their endings"
    many = [Path(f"{i}.txt") for i in range(MOST_NAMED + 1)]
    assert list(passed_over({why: many[::-1], "links that lead nowhere": [Path("a\nb")]})) == [
        "passed over 6, not photos by their endings: 0.txt, 1.txt, 2.txt, 3.txt, 4.txt and 1 more",
        r"passed over 1, links that lead nowhere: a\nb",
    ]
    assert list(passed_over({why: many[1:]})) == [
        "passed over 5, not photos by their endings: 1.txt, 2.txt, 3.txt, 4.txt, 5.txt"
    ]
    assert list(passed_over({})) == []


def test_the_survey_says_what_was_passed_over(model: Any, tmp_path: Path) -> None:
    save_photo(tmp_path / "photos" / "1.png", 1)
    touch(tmp_path / "photos", "notes.txt")
    done = survey(model, tmp_path / "photos", tmp_path / "out")
    assert done.notes == (f"passed over 1, not photos by their endings: {tmp_path}/photos/notes.txt",)
