"""The tables of a survey on the disk: whole batches in their order, flushed before they get their name."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="surveys are written by pyarrow, which is not installed here")

from vit_viz.surveys import parquet
from vit_viz.surveys.columns import TABLES


def methods(*names: str) -> dict[str, Any]:
    """Rows of the table of methods, a photo each, with most columns empty."""
    return {
        column.name: [name if column.name in ("photo", "method") else None for name in names]
        for column in TABLES["methods"]
    }


def write(folder: Path, number: int, *names: str) -> None:
    tables: Any = {"methods": methods(*names), "failures": {}}
    parquet.write_batch(folder, number, parquet.encoded(tables))


def photos(folder: Path) -> list[str]:
    found: list[str] = parquet.table(folder, "methods")["photo"].to_pylist()
    return found


def test_batches_are_read_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for number, names in ((10, "f"), (2, "bcd"), (1_000_000, "g"), (0, "a")):
        write(tmp_path, number, *names)
    assert parquet.batches(tmp_path) == {0, 2, 10, 1_000_000}
    assert photos(tmp_path) == list("abcdfg")
    assert sorted(one.name for one in tmp_path.iterdir()) == [
        *("_batch=000000", "_batch=000002", "_batch=000010", "_batch=1000000"),
        *("batch=000000", "batch=000002", "batch=000010", "batch=1000000"),
    ]


def test_a_batch_that_is_written_again_replaces_the_first(tmp_path: Path) -> None:
    write(tmp_path, 3, "a", "b", "c")
    write(tmp_path, 3, "d")
    assert photos(tmp_path) == ["d"]
    assert sorted(one.name for one in tmp_path.iterdir()) == ["_batch=000003", "batch=000003"]


def test_what_is_no_whole_batch_is_not_read(tmp_path: Path) -> None:
    write(tmp_path, 4, "a")
    for name in (
        "batch=000005.half",
        "_batch=000006.half",
        "batch=00006",
        "batch=x00007",
        "my batch=000008",
        "others",
    ):
        (tmp_path / name).mkdir()
    assert parquet.batches(tmp_path) == {4}
    assert parquet.batches(tmp_path / "nowhere") == set()
    (tmp_path / "batch=000009.half").touch()  # no folder: it is left, and stops nothing
    parquet.remove_halves(tmp_path)
    (tmp_path / "batch=000009.half").unlink()
    assert sorted(one.name for one in tmp_path.iterdir()) == [
        *("_batch=000004", "batch=000004", "batch=00006", "batch=x00007", "my batch=000008", "others")
    ]


def test_a_half_of_an_earlier_run_is_no_part_of_the_batch(tmp_path: Path) -> None:
    (tmp_path / "_batch=000002.half").mkdir()
    (tmp_path / "_batch=000002.half" / "heads.parquet").write_bytes(b"old")
    write(tmp_path, 2, "a")
    assert sorted(one.relative_to(tmp_path).as_posix() for one in tmp_path.rglob("*")) == [
        "_batch=000002",
        *(f"_batch=000002/{name}" for name in ("failures.parquet", "methods.parquet", "record.json")),
        "batch=000002",
    ]


def test_columns_come_as_they_were_asked_for_also_of_no_batch(tmp_path: Path) -> None:
    assert parquet.table(tmp_path, "methods", ("method", "photo")).column_names == ["method", "photo"]
    assert parquet.table(tmp_path, "methods").column_names == [one.name for one in TABLES["methods"]]
    assert parquet.table(tmp_path, "methods").num_rows == 0
    write(tmp_path, 0, "a", "b")
    found = parquet.table(tmp_path, "methods", iter(["photo", "method"]))
    assert found.to_pydict() == {"photo": ["a", "b"], "method": ["a", "b"]}


def test_thumbnails_are_found_by_their_photo(tmp_path: Path) -> None:
    rows: Any = {"photo": ["b", "a"], "width": [8, 6], "height": [3, 5], "webp": [b"of b", b"of a"]}
    parquet.write_batch(tmp_path, 7, parquet.encoded({"thumbnails": rows}))
    assert parquet.thumbnails(tmp_path, 7) == {"a": b"of a", "b": b"of b"}
    assert parquet.thumbnails(tmp_path, 8) == {}


def test_every_file_and_both_folders_are_flushed_the_files_before_the_batch_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a power cut could leave a batch that is there and empty. Files are known by their inode."""
    flushed: list[tuple[int, bool]] = []
    handles: set[int] = set()
    flush = os.fsync

    def watched(handle: int) -> None:
        handles.add(handle)
        flushed.append((os.fstat(handle).st_ino, (tmp_path / "batch=000000").exists()))
        flush(handle)

    monkeypatch.setattr(os, "fsync", watched)
    write(tmp_path, 0, "a")
    batch = tmp_path / "batch=000000"
    rest = tmp_path / "_batch=000000"
    inside = {(one.stat().st_ino, False) for one in (*rest.iterdir(), rest, batch)}
    assert len(inside) == 5
    assert set(flushed) == inside | {(tmp_path.stat().st_ino, True)}
    for handle in handles:  # closed, or another file's by now
        with contextlib.suppress(OSError):
            assert os.fstat(handle).st_ino not in dict(flushed)


def test_a_folder_that_cannot_be_flushed_is_left_to_the_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_given: object) -> int:
        raise PermissionError("a folder is no file here")

    monkeypatch.setattr(os, "open", refused)
    write(tmp_path, 0, "a")
    monkeypatch.undo()
    assert photos(tmp_path) == ["a"]
