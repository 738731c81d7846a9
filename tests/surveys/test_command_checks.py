"""`vit-viz survey --check`, its exit codes, and what of an earlier run the command tells."""

from __future__ import annotations

import io
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.surveys.conftest import save_photo
from vit_viz.cli import surveying
from vit_viz.surveys import parquet
from vit_viz.surveys.run import Survey

pd: Any = pytest.importorskip("pandas", reason="pandas, which reads a survey here, is not installed")


@pytest.fixture
def made(command: Any, tmp_path: Path) -> tuple[Path, Path]:
    """(photos, survey) of five photos in batches of 2."""
    for seed in range(5):
        save_photo(tmp_path / "photos" / f"{seed}.png", seed)
    assert command(tmp_path / "photos", "-o", tmp_path / "out", "--batch", 2)[0] == 0
    return tmp_path / "photos", tmp_path / "out"


def test_a_whole_survey_is_said_to_be_whole(command: Any, made: tuple[Path, Path]) -> None:
    assert command("--check", made[1]) == (0, [f"{made[1]}: 5 of 5 photos in 3 batches", "whole"], "")


def test_damage_is_named_and_has_an_exit_code_of_its_own(command: Any, made: tuple[Path, Path]) -> None:
    photos, out = made
    parquet.file_of(out / "batch=000001", "maps").unlink()
    again = "not whole: the same vit-viz survey makes again what is damaged, and goes on"
    expected = [
        f"{out}: 3 of 5 photos in 3 batches",
        "  batch 1 is damaged: its table maps is missing or cannot be read",
        again,
    ]
    assert command("--check", out) == (4, expected, "")
    assert command("--check", out)[0] == 4  # to look changes nothing
    code, lines, _ = command(photos, "-o", out, "--batch", 2)
    assert (code, lines[0]) == (0, f"{out}: 5 photos")
    assert lines[-1].startswith("damaged and made again: batch 1 (its table maps is missing")
    assert command("--check", out)[0] == 0
    parquet.remove_batch(out, 2)
    assert command("--check", out) == (4, [f"{out}: 4 of 5 photos in 2 batches", again], "")


def test_strangers_and_other_photos_are_told_by_a_check(
    command: Any, made: tuple[Path, Path], tmp_path: Path
) -> None:
    _photos, out = made
    (out / "mine\n.txt").write_text("mine")
    assert command("--check", out)[:2] == (
        4, [f"{out}: 5 of 5 photos in 3 batches", r"  mine\n.txt is no part of the survey", "its own tables are whole"],
    )  # fmt: skip
    (out / "mine\n.txt").unlink()
    for seed in range(5):
        save_photo(tmp_path / "others" / f"other {seed}.png", seed)
    command(tmp_path / "others", "-o", tmp_path / "other", "--batch", 2)
    for name in ("batch=000001", "_batch=000001"):
        shutil.rmtree(out / name)
        shutil.copytree(tmp_path / "other" / name, out / name)
    assert command("--check", out)[:2] == (
        4, [f"{out}: 5 of 5 photos in 3 batches", "not whole: the photos in it are not those of the survey"],
    )  # fmt: skip


def test_photos_that_could_not_be_read_are_counted_and_have_an_exit_code(
    command: Any, made: tuple[Path, Path]
) -> None:
    photos, out = made
    (photos / "3.png").write_bytes(b"no picture")
    code, lines, _ = command(photos, "-o", out, "--batch", 2)
    assert (code, lines[:2]) == (3, [f"{out}: 4 photos", "1 could not be read:"])
    assert command(photos, "-o", out, "--batch", 2)[0] == 3
    first = f"{out}: 5 of 5 photos in 3 batches, 1 of them could not be read"
    assert command("--check", out) == (3, [first, "whole"], "")
    save_photo(photos / "3.png", 3)
    assert command(photos, "-o", out, "--batch", 2)[0] == 0
    assert command("--check", out)[0] == 0


def test_flags_add_new_photos_and_compare_hashes(command: Any, made: tuple[Path, Path]) -> None:
    photos, out = made
    save_photo(photos / "new.png", 7)
    given = (photos, "-o", out, "--batch", 2)
    code, _, err = command(*given)
    assert (code, "its number of photos is 5, not 6; --extend adds new photos to it" in err) == (2, True)
    assert command(*given, "--extend")[:2] == (0, [f"{out}: 6 photos"])
    about = (photos / "1.png").stat()
    save_photo(photos / "1.png", 9)
    content = (photos / "1.png").read_bytes().ljust(about.st_size, b"\0")[: about.st_size]
    (photos / "1.png").write_bytes(content)
    os.utime(photos / "1.png", ns=(about.st_atime_ns, about.st_mtime_ns))
    assert command(*given)[1] == [f"{out}: 6 photos"]
    assert "1 photo has changed since it was surveyed" in command(*given, "--verify")[1][-1]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["photos"], "A survey needs PHOTOS and --out FOLDER; --check FOLDER checks one."),
        (["-o", "out"], "A survey needs PHOTOS and --out FOLDER; --check FOLDER checks one."),
        (["photos", "--check", "out"], "--check FOLDER checks a survey, and takes neither PHOTOS nor --out."),
        (
            ["--check", "out", "-o", "out"],
            "--check FOLDER checks a survey, and takes neither PHOTOS nor --out.",
        ),
    ],
)
def test_it_is_said_what_is_missing_or_too_much(command: Any, words: list[str], sentence: str) -> None:
    assert command(*words) == (2, [], f"vit-viz: {sentence}\n")


def test_a_folder_without_a_survey_cannot_be_checked(command: Any, tmp_path: Path) -> None:
    code, lines, err = command("--check", tmp_path)
    assert (code, lines, "holds no survey" in err) == (2, [], True)


def test_a_log_gets_lines(command: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = io.StringIO()
    monkeypatch.setattr("vit_viz.cli.output.EVERY_SECONDS", 0.0)
    monkeypatch.setattr(surveying.sys, "stderr", log)
    for seed in range(3):
        save_photo(tmp_path / "photos" / f"{seed}.png", seed)
    command(tmp_path / "photos", "-o", tmp_path / "out", "--at-once", 1)
    said = log.getvalue().splitlines()
    assert [line.split(",")[0] for line in said] == [f"{done} of 3 photos" for done in (1, 2, 3)]
    assert all("photos/s" in line for line in said)
    assert ["left" in line for line in said] == [True, True, False]


# --- read by others


def test_pandas_reads_the_folder_as_one_row_per_photo(made: tuple[Path, Path]) -> None:
    photos = pd.read_parquet(made[1])
    rows = Survey(made[1]).table("photos").to_pandas()
    assert photos["photo"].tolist() == [f"{seed}.png" for seed in range(5)]
    assert photos["margin"].tolist() == rows["margin"].tolist()
    assert set(photos.columns) == {*rows.columns, "batch"}


@pytest.mark.parametrize("level", ["photos", "heads", "thumbnails"])
def test_a_pattern_reads_one_table(made: tuple[Path, Path], level: Any) -> None:
    files = sorted(made[1].glob(f"*/{level}.parquet"))
    assert len(pd.read_parquet(files)) == Survey(made[1]).table(level).num_rows > 0


def test_pandas_reads_a_survey_that_was_killed_as_far_as_it_is_whole(
    made: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, command: Any
) -> None:
    """What a dead process has half written is hidden, too."""
    photos, out = made
    parquet.remove_batch(out, 1)
    flush, calls = parquet._flush, []

    def dies(folder: Path) -> None:
        flush(folder)
        calls.append(folder)
        if len(calls) == 2:
            raise SystemExit(9)

    monkeypatch.setattr(parquet, "_flush", dies)
    monkeypatch.setattr(parquet.shutil, "rmtree", lambda *_given, **_options: None)
    command(photos, "-o", out, "--batch", 2)
    assert len(list(out.glob("*.half"))) == 2
    assert pd.read_parquet(out)["photo"].tolist() == ["0.png", "1.png", "4.png"]
