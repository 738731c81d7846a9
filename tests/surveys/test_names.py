"""Names of files that are no text, or text that moves a cursor."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.surveys.conftest import save_photo
from vit_viz.cli import main
from vit_viz.surveys.names import as_text, is_text, shown
from vit_viz.surveys.photos import photos_in
from vit_viz.surveys.run import survey

SENTENCE = "The name of this file is not UTF-8; please rename it."


def raw(folder: Path, name: bytes) -> Path:
    """A photo by the bytes of its name."""
    path = Path(os.fsdecode(os.fsencode(folder) + b"/" + name))
    path.parent.mkdir(parents=True, exist_ok=True)
    save_photo(folder / "photo.png", 3)
    (folder / "photo.png").rename(path)
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [("café.png", "café.png"), ("a\nb", "a\nb"), ("caf\udce9", r"caf\xe9"), ("\udc80\udcff", r"\x80\xff"),
     ("\ud800x\udfff", r"\ud800x\udfff"), ("\udc7f\udd00", r"\udc7f\udd00")],
)  # fmt: skip
def test_what_is_no_text_is_escaped(name: str, text: str) -> None:
    assert as_text(name) == text
    assert is_text(name) == (name == text)
    assert is_text(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [("a b-é😀", "a b-é😀"), ("a\nb\tc", r"a\nb\tc"), ("\x1b[31m", r"\x1b[31m"), ("\u202egnp", r"\u202egnp"),
     ("\x7f\x85", r"\x7f\x85"), ("caf\udce9", r"caf\xe9")],
)  # fmt: skip
def test_what_is_shown_moves_no_cursor(text: str, said: str) -> None:
    assert shown(text) == said
    assert said.isprintable()


def test_names_that_are_no_text_are_failures_and_stop_nothing(model: Any, tmp_path: Path) -> None:
    for name in (b"a.png", b"caf\xe9.png", b"fold\xff/er/1.png", "fine é\n.png".encode()):
        raw(tmp_path / "photos", name)
    done = survey(model, tmp_path / "photos", tmp_path / "out")
    assert done.table("photos", ["photo"])["photo"].to_pylist() == ["a.png", "fine é\n.png"]
    assert done.failures == {r"caf\xe9.png": SENTENCE, r"fold\xff/er/1.png": SENTENCE}
    assert survey(model, tmp_path / "photos", tmp_path / "out").notes == ()
    assert done.check().is_whole


def test_a_folder_whose_own_name_is_no_text_holds_photos_as_any_other(model: Any, tmp_path: Path) -> None:
    raw(tmp_path, b"alb\xfcm/1.png")
    (tmp_path / "copy").mkdir()
    album = Path(os.fsdecode(os.fsencode(tmp_path) + b"/alb\xfcm"))
    (album / "2.png").write_bytes(b"no picture")
    done = survey(model, album, tmp_path / "out")
    assert (done.num_photos, list(done.failures)) == (1, ["2.png"])
    assert done.manifest["request"]["photos"] == str(album)


def test_escaped_names_do_not_meet_names_that_look_like_them(tmp_path: Path) -> None:
    for name in (b"caf\xe9.png", b"caf\\xe9.png", b"caf\\\\xe9.png"):
        raw(tmp_path, name)
    found = {photo.name: photo.fault for photo in photos_in(tmp_path)}
    assert found == {r"caf\xe9.png": "", r"caf\\xe9.png": "", r"caf\\\\xe9.png": SENTENCE}


def test_surrogates_in_a_list_are_failures_and_those_in_labels_are_escaped(
    model: Any, tmp_path: Path
) -> None:
    save_photo(tmp_path / "1.png", 1)
    (tmp_path / "list.json").write_text('[{"file": "1.png", "label": "\\udce9"}, {"file": "\\ud800.png"}]')
    done = survey(model, tmp_path / "list.json", tmp_path / "out")
    assert done.table("photos").to_pydict()["label"] == [r"\xe9"]
    assert done.failures == {r"\ud800.png": SENTENCE}


def test_a_name_with_a_null_is_a_failure(model: Any, tmp_path: Path) -> None:
    (tmp_path / "list.json").write_text('[{"file": "a\\u0000.png"}]')
    done = survey(model, tmp_path / "list.json", tmp_path / "out")
    assert "the name is not valid" in done.failures["a\0.png"]


def test_names_are_escaped_where_they_are_printed(
    model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a\x1b[31m\n.png").write_bytes(b"no")
    (tmp_path / "photos" / "b\x1b[0m.txt").write_bytes(b"no")
    monkeypatch.setattr(
        "vit_viz.cli.asking.session_of", lambda _flags: type("S", (), {"model": lambda _: model})()
    )
    assert main(["survey", str(tmp_path / "photos"), "-o", str(tmp_path / "out")]) == 3
    said = capsys.readouterr().out
    assert r"  a\x1b[31m\n.png: " in said
    assert r"b\x1b[0m.txt" in said
    assert "\x1b" not in said
