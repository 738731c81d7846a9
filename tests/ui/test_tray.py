"""Uploaded files until they are read: whose they are, how many, and what broken uploads leave behind."""

from __future__ import annotations

import os
from pathlib import Path

from vit_viz.ui.tray import Tray, delete


def put(folder: Path, name: str, size: int = 10) -> str:
    """A file as Gradio lays it down: in a folder of its own."""
    file = folder / name / "photo.png"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(bytes(size))
    return str(file)


def aged(path: Path, seconds: float) -> Path:
    """The same file, last touched so many seconds after the year 2000."""
    os.utime(path, (946_684_800 + seconds,) * 2)
    return path


def tray_at(seconds: float) -> tuple[Tray, list[float]]:
    """A tray whose clock shows a moment that can be changed."""
    now = [946_684_800 + seconds]
    return Tray(clock=lambda: now[0]), now


def test_a_file_belongs_to_those_who_uploaded_it(tmp_path: Path) -> None:
    tray, path = Tray(), put(tmp_path, "a")
    tray.note([path], "ada")
    tray.note([path], "bob")
    assert [tray.belongs_to(path, who) for who in ("ada", "bob", "eve", "")] == [True, True, False, False]
    assert tray.knows(path)
    assert not tray.knows(str(tmp_path / "other"))


def test_of_too_many_files_the_oldest_are_deleted(tmp_path: Path) -> None:
    tray = Tray(max_files=2)
    paths = [put(tmp_path, name) for name in "abcd"]
    for path in paths:
        tray.note([path], "ada")
    assert [Path(path).exists() for path in paths] == [False, False, True, True]
    assert not tray.belongs_to(paths[0], "ada")


def test_of_too_many_bytes_the_oldest_are_deleted(tmp_path: Path) -> None:
    tray = Tray(max_bytes=25)
    paths = [put(tmp_path, name) for name in "abc"]
    for path in paths:
        tray.note([path], "ada")
    assert [Path(path).exists() for path in paths] == [False, True, True]


def test_files_that_were_read_make_room_first(tmp_path: Path) -> None:
    tray = Tray(max_files=2)
    paths = [put(tmp_path, name) for name in "abc"]
    tray.note(paths[:2], "ada")
    delete(Path(paths[1]))
    tray.note(paths[2:], "ada")
    assert Path(paths[0]).exists()
    assert Path(paths[2]).exists()


def test_what_a_broken_upload_left_is_deleted_once_it_is_quiet(tmp_path: Path) -> None:
    tray, now = tray_at(0)
    left, growing, foreign, old = (tmp_path / name for name in ("tmpleft", "tmpgrowing", "other", "tmpold"))
    for file in (left, growing, foreign, old):
        file.write_bytes(b"x")
    (tmp_path / "empty").mkdir()
    kept = Path(put(tmp_path, "full"))
    now[0] += 400
    for path, seconds in (
        (left, 10),
        (growing, 390),
        (foreign, 10),
        (old, -10),
        (tmp_path / "empty", 10),
        (kept.parent, 10),
    ):
        aged(path, seconds)
    tray.sweep(tmp_path)
    assert not left.exists()
    assert not (tmp_path / "empty").exists()
    assert all(path.exists() for path in (growing, foreign, old, kept))


def test_a_full_disk_is_emptied_of_all_that_is_unfinished(tmp_path: Path) -> None:
    tray, now = tray_at(0)
    growing = aged(tmp_path / put(tmp_path, "x"), 1)
    loose = tmp_path / "tmpgrowing"
    loose.write_bytes(b"x")
    aged(loose, 1)
    now[0] += 2
    tray.sweep(tmp_path, everything=True)
    assert not loose.exists()
    assert growing.exists()


def test_sweeping_is_rare_and_a_missing_folder_is_nothing(tmp_path: Path) -> None:
    tray, now = tray_at(0)
    tray.sweep(tmp_path / "missing")
    now[0] += 400
    tray.sweep(tmp_path)
    loose = tmp_path / "tmpleft"
    loose.write_bytes(b"x")
    aged(loose, 10)
    now[0] += 10
    tray.sweep(tmp_path)
    assert loose.exists()
    now[0] += 400
    tray.sweep(tmp_path)
    assert not loose.exists()
