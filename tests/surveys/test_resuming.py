"""A survey that goes on: what was damaged or has changed is made again, what has not stays, and new photos can join."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.surveys.conftest import loaded, rows_of, save_photo
from vit_viz.bundled import example_survey
from vit_viz.checkpoints import LoadedModel
from vit_viz.errors import ParameterError
from vit_viz.model import linear
from vit_viz.model.linear import forced_kernel
from vit_viz.surveys import manifest, parquet
from vit_viz.surveys.local import Machine
from vit_viz.surveys.run import Survey, survey

COUNT = 7
BATCH = 2


@pytest.fixture(scope="module")
def made(model: LoadedModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an album and its survey, of which each test has copies."""
    folder = tmp_path_factory.mktemp("made")
    for seed in range(COUNT):
        save_photo(folder / "album" / f"{seed}.png", seed)
    Run(model, folder / "album", folder)()
    return folder


@pytest.fixture
def album(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made / "album", tmp_path / "album"))


@pytest.fixture
def done(made: Path, tmp_path: Path) -> Survey:
    """The survey of the album, which `run` goes on with."""
    return Survey(shutil.copytree(made / "out", tmp_path / "out"))


class Run:
    """Surveys the album in batches of 2; one photo at a time, so that rows do not depend on their neighbours.

    Attributes:
        written: numbers of the batches that the last call wrote.
    """

    def __init__(self, model: Any, album: Path, folder: Path) -> None:
        self.model, self.album, self.folder = model, album, folder
        self.written: list[int] = []

    def __call__(self, photos: Any = None, out: str = "out", **options: Any) -> Survey:
        self.written.clear()
        given = {"loaded": self.model, "batch": BATCH, "engine": Machine(at_once=1)} | options
        return survey(photos=photos or self.album, out=self.folder / out, **given)


@pytest.fixture
def run(model: Any, album: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    made, write = Run(model, album, tmp_path), parquet.write_batch

    def noted(folder: Path, number: int, files: Any, **of: Any) -> None:
        made.written.append(number)
        write(folder, number, files, **of)

    monkeypatch.setattr(parquet, "write_batch", noted)
    return made


# --- what is missing


@pytest.mark.parametrize("missing", [{1}, {0, 2}, {1, 2, 3}, {3}])
def test_the_batches_that_are_missing_are_made_whichever_they_are(
    run: Run, done: Survey, missing: set[int]
) -> None:
    whole = rows_of(done)
    for number in missing:
        parquet.remove_batch(done.folder, number)
    told: list[tuple[int, int]] = []
    assert rows_of(run(progress=lambda *counts: told.append(counts))) == whole
    kept = COUNT - sum(1 if number == 3 else BATCH for number in missing)
    assert (told[0], told[-1]) == ((kept, COUNT), (COUNT, COUNT))
    assert set(run.written) == missing


@pytest.mark.parametrize(("begun", "now"), [("torch", "oneDNN"), ("oneDNN", "torch")])
def test_a_survey_goes_on_with_the_linear_kernel_that_it_was_begun_with(
    run: Run, begun: str, now: str
) -> None:
    """Another machine or setting may have chosen the other one; what they compute differs by its rounding."""
    timed = loaded(3)
    timed = replace(timed, provenance=timed.provenance.with_parameters(linear="torch"))
    with forced_kernel("auto"):  # as outside these tests
        run.model = timed.with_linear(begun)
        first = run()
        whole = rows_of(first)
        parquet.remove_batch(first.folder, 1)
        run.model = timed.with_linear(now)
        assert rows_of(run()) == whole


def test_a_survey_whose_linear_kernel_is_not_here_is_refused(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = loaded(3)
    here = replace(here, provenance=here.provenance.with_parameters(linear="torch"))
    with forced_kernel("auto"):
        run.model = here.with_linear("oneDNN")
        run()
        run.model = here
        monkeypatch.setattr(linear, "_has_onednn", lambda: False)
        with pytest.raises(
            ParameterError, match="begun with the linear kernel of oneDNN, which is not available on cpu"
        ):
            run()


# --- what is damaged


def drop(table: Path) -> None:
    table.unlink()


def cut(table: Path) -> None:
    table.write_bytes(table.read_bytes()[:-1])


def flip(table: Path) -> None:
    content = bytearray(table.read_bytes())
    content[len(content) // 2] ^= 1
    table.write_bytes(bytes(content))


def of_another_batch(table: Path) -> None:
    shutil.copy(table.parent.parent / table.parent.name.replace("1", "2") / table.name, table)


@pytest.mark.parametrize("damage", [drop, cut, flip, of_another_batch])
@pytest.mark.parametrize("level", ["photos", "heads", "maps", "thumbnails"])
def test_a_damaged_table_is_told_and_its_batch_made_again(
    run: Run, done: Survey, damage: Any, level: Any
) -> None:
    whole = rows_of(done)
    damage(parquet.file_of(parquet.batch_folder(done.folder, 1), level))
    (fault,) = done.check().damaged
    assert fault.number == 1
    assert fault.fault.startswith(f"its table {level} is ")
    mended = run()
    assert mended.notes == (f"damaged and made again: batch 1 ({fault.fault})",)
    assert run.written == [1]
    assert rows_of(mended) == whole
    assert mended.check().is_whole


@pytest.mark.parametrize("name", ["batch=000002", "_batch=000002"])
def test_an_emptied_folder_and_one_that_is_gone_are_damage(run: Run, done: Survey, name: str) -> None:
    whole = rows_of(done)
    for file in (done.folder / name).iterdir():
        file.unlink()
    assert [one.number for one in done.check().damaged] == [2]
    assert rows_of(run()) == whole
    shutil.rmtree(done.folder / name)
    assert not done.check().is_complete
    assert rows_of(run()) == whole
    assert done.check().is_whole


def test_a_whole_batch_under_another_name_is_taken_away(run: Run, done: Survey) -> None:
    whole = rows_of(done)
    for name in ("batch", "_batch"):
        shutil.copytree(done.folder / f"{name}=000001", done.folder / f"{name}=000009")
    assert [(one.number, one.fault) for one in done.check().damaged] == [
        (9, "it is batch 1 under another name")
    ]
    assert rows_of(run()) == whole


def test_a_batch_of_another_survey_is_made_again(run: Run, done: Survey) -> None:
    """The same photos, names and numbers of rows: only who made it differs."""
    other = run(out="other", edits="off 1.2")
    whole = rows_of(done)
    for name in ("batch=000001", "_batch=000001"):
        shutil.rmtree(done.folder / name)
        shutil.copytree(other.folder / name, done.folder / name)
    assert [(one.number, one.fault) for one in done.check().damaged] == [(1, "it is of another survey")]
    assert rows_of(run()) == whole


def test_a_batch_of_other_photos_by_the_same_settings_is_made_again(
    run: Run, album: Path, tmp_path: Path
) -> None:
    for seed in range(COUNT):
        save_photo(tmp_path / "others" / f"other {seed}.png", seed + 1)
    done, other = run(), run(tmp_path / "others", out="other")
    whole = rows_of(done)
    for name in ("batch=000001", "_batch=000001"):
        shutil.rmtree(done.folder / name)
        shutil.copytree(other.folder / name, done.folder / name)
    state = done.check()
    assert (state.damaged, state.is_complete, state.num_photos) == ((), False, COUNT)
    mended = run()
    assert mended.notes == (
        "2 photos in the tables are not of this survey; the batches of them are made again: other 2.png, other 3.png",
    )
    assert rows_of(mended) == whole


def test_a_file_that_is_no_part_of_it_is_told_and_left(run: Run, done: Survey) -> None:
    strangers = {"mine.txt", "batch=000001/notes.txt", "_batch=000000/heads (copy).parquet"}
    for name in strangers:
        (done.folder / name).write_text("mine")
    (done.folder / ".DS_Store").write_text("a file manager's")
    state = done.check()
    assert (set(state.strangers), state.is_complete, state.is_whole) == (strangers, True, False)
    assert "holds 3 files that are no part of the survey, such as " in run().notes[0]
    assert run.written == []
    assert all((done.folder / name).read_text() == "mine" for name in strangers)


# --- what has changed


def test_a_changed_photo_is_done_again_and_no_other(run: Run, done: Survey, album: Path) -> None:
    save_photo(album / "3.png", 9)
    other = run()
    assert other.notes == (
        "1 photo has changed since it was surveyed; the batches of it are made again: 3.png",
    )
    assert run.written == [1]
    assert rows_of(other) == rows_of(run(out="fresh"))


def test_the_same_photo_with_a_new_time_stays(run: Run, done: Survey, album: Path) -> None:
    for photo in album.iterdir():
        os.utime(photo, (1, 1))
    assert run().notes == ()
    assert run.written == []


def test_a_change_that_keeps_size_and_time_is_found_by_hashes(run: Run, done: Survey, album: Path) -> None:
    photo = album / "4.png"
    about = photo.stat()
    save_photo(photo, 9)
    photo.write_bytes(photo.read_bytes().ljust(about.st_size, b"\0")[: about.st_size])
    os.utime(photo, ns=(about.st_atime_ns, about.st_mtime_ns))
    assert run().notes == ()
    assert run.written == []
    assert "1 photo has changed since it was surveyed" in run(verify=True).notes[0]
    assert run.written == [2]
    assert run(verify=True).notes == ()


def test_a_photo_of_a_list_that_is_gone_is_done_again(run: Run, album: Path) -> None:
    names = [{"file": f"{seed}.png"} for seed in range(COUNT)]
    (album / "list.json").write_text(json.dumps(names))
    done = run(album / "list.json")
    (album / "5.png").unlink()
    assert "1 photo has changed" in run(album / "list.json").notes[0]
    assert list(done.failures) == ["5.png"]
    assert done.num_photos == COUNT - 1


# --- failures


def test_photos_that_could_not_be_read_are_tried_again_and_only_then_their_batch(
    run: Run, album: Path
) -> None:
    photo = album / "2.png"
    good = photo.read_bytes()
    photo.write_bytes(b"half a downl")
    done = run()
    assert list(done.failures) == ["2.png"]
    assert run().notes == ()
    assert run.written == []
    photo.write_bytes(b"")
    assert run().notes == (
        "1 photo that could not be read is not as it was; the batches of it are made again: 2.png",
    )
    assert "empty" in done.failures["2.png"]
    photo.write_bytes(good)
    assert "2.png" in run().notes[0]
    assert done.failures == {}
    assert run.written == [1]
    assert rows_of(done) == rows_of(run(out="fresh"))


# --- new photos


def test_a_set_that_grew_is_refused_and_the_sentence_names_the_flag(
    run: Run, done: Survey, album: Path
) -> None:
    save_photo(album / "new.png", 8)
    with pytest.raises(
        ParameterError, match=r"its number of photos is 7, not 8; --extend adds new photos to it; please"
    ):
        run()


def test_only_new_photos_are_surveyed_and_all_are_there(run: Run, done: Survey, album: Path) -> None:
    for name, seed in (("0 new.png", 8), ("new.png", 9), ("z.png", 10)):
        save_photo(album / name, seed)
    told: list[tuple[int, int]] = []
    assert run(extend=True, progress=lambda *counts: told.append(counts)).notes == ()
    assert (told[0], told[-1]) == ((COUNT, COUNT + 3), (COUNT + 3, COUNT + 3))
    assert run.written == [4, 5]
    fresh = run(out="fresh")
    for level in ("photos", "heads", "thumbnails"):
        assert sorted(rows_of(done)[level], key=str) == sorted(rows_of(fresh)[level], key=str)
    assert (done.manifest["photos"], done.check().is_whole) == (COUNT + 3, True)
    assert run().notes == ()  # goes on without the flag, as the survey of all of them
    assert run(extend=True).check().is_whole
    assert run.written == []


def test_a_survey_that_was_not_done_can_be_extended(run: Run, done: Survey, album: Path) -> None:
    parquet.remove_batch(done.folder, 1)
    save_photo(album / "0 new.png", 8)
    run(extend=True)
    fresh = rows_of(run(out="fresh"))
    assert sorted(rows_of(done)["photos"], key=str) == sorted(fresh["photos"], key=str)
    assert done.check().is_whole


def test_photos_that_are_not_on_the_list_any_more_are_told_and_stay(
    run: Run, done: Survey, album: Path
) -> None:
    (album / "1.png").unlink()
    save_photo(album / "new.png", 8)
    expected = "1 photo of the survey is not on the list any more; its rows stay: 1.png"
    assert run(extend=True).notes == (expected,)
    assert (done.num_photos, done.manifest["photos"], done.manifest["gone"]) == (
        COUNT + 1,
        COUNT + 1,
        ["1.png"],
    )
    assert done.check().is_whole
    assert run().notes == ()
    save_photo(album / "1.png", 1)
    assert run(extend=True).notes == ()
    assert (done.manifest["gone"], done.num_photos) == ([], COUNT + 1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"loaded": loaded(1)}, "its weights is weights 0, not weights 1"),
        ({"edits": "off 1.2"}, "its edits of the model is none, not off 1.2; please"),
        ({"mode": "fit"}, "its preprocessing is"),
        ({"thumbnails": False}, "its choice of thumbnails is"),
    ],
)
def test_other_settings_are_refused_also_of_a_set_that_grew(
    run: Run, done: Survey, album: Path, options: dict[str, Any], words: str
) -> None:
    save_photo(album / "new.png", 8)
    with pytest.raises(ParameterError, match=f"holds another survey: {words}"):
        run(extend=True, **options)


@pytest.mark.parametrize("change", [{"label": "animal 3"}, {"boxes": [[1.0, 2.0, 9.0, 8.5]]}])
def test_other_labels_of_photos_that_are_there_are_refused(run: Run, album: Path, change: Any) -> None:
    rows = [{"file": f"{seed}.png", "label": "animal 1", "boxes": [[0.1, 2, 30, 8.5]]} for seed in range(5)]
    listing = album / "list.json"
    listing.write_text(json.dumps(rows[:4]))
    done = run(listing)
    listing.write_text(json.dumps(rows))
    run(listing, extend=True)
    assert done.num_photos == 5
    listing.write_text(json.dumps([*rows[:2], rows[2] | change, *rows[3:], {"file": "6.png"}]))
    words = r"1 photo of the survey has other labels or boxes now: 2\.png; --extend adds photos and changes none\."
    with pytest.raises(ParameterError, match=words):
        run(listing, extend=True)
    assert (done.num_photos, done.manifest["photos"]) == (5, 5)


def test_to_extend_nothing_begins(run: Run) -> None:
    assert run(extend=True).check().is_whole


def test_the_survey_that_comes_along_is_whole() -> None:
    assert Survey(example_survey()).check().is_whole


@pytest.mark.parametrize("other", [1, 3])
def test_a_survey_of_another_format_is_refused(run: Run, done: Survey, other: int) -> None:
    file = done.folder / manifest.FILE
    file.write_text(json.dumps(done.manifest | {"format": other}))
    for use in (run, done.check):
        with pytest.raises(
            ParameterError,
            match=rf"is a survey of format {other}, and this version of vit_viz reads format 2\.",
        ):
            use()
