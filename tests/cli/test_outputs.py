"""Where answers go: names that are refused before anything runs, folders, batches that go on, files as the umask wants them."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.ui.desk import odd_picture, odd_session
from vit_viz.analyses.registry import QUESTIONS
from vit_viz.cli import asking, main
from vit_viz.cli.output import written
from vit_viz.errors import CheckpointError, ExportError, ParameterError
from vit_viz.figures.files import FORMATS, Answered, as_file, formats_of
from vit_viz.session.questions import request_for
from vit_viz.session.run import subject_of

REFUSED_NAMES: list[tuple[list[str], str]] = [
    (["page", "twins", "-o", "map.png"], "the name ends in .html, which 'map.png' does not"),
    (["page", "twins", "-o", "map.svg"], "the name ends in .html, which 'map.svg' does not"),
    (["page", "twins", "-o", "map"], "the name ends in .html, which 'map' does not"),
    (["look", "twins", "-o", "map.html"], "not in .html"),
    (["look", "twins", "-o", "map"], "A file ends in .png"),
    (["trust", "twins", "-o", "trust.gif"], "An animation goes through the layers"),
    (["rollout", "twins", "-o", "map.gif"], "An animation goes through the layers"),
    (["explain", "twins", "--methods", "rollout", "-o", "there/", "--format", "webp"], "An animation goes"),
    (["look", "twins", "-o", "there/map.png", "--format", "svg"], "--format is for files in a folder"),
    (["look", "twins", "-o", "none/map.png"], "There is no folder 'none': make it, or add --parents."),
    (["look", "twins", "shapes", "-o", "none/deeper/"], "There is no folder 'none/deeper'"),
    (["page", "twins", "-o", "none/page.html"], "There is no folder 'none'"),
    (["survey", "there", "--out", "none/survey"], "There is no folder "),
    (["survey", "there", "--out", "taken/survey"], "is a file, so no file can be written into it"),
    (["look", "twins", "-o", "taken/map.png"], "'taken' is a file"),
    (["look", "twins", "-o", "taken/more/map.png", "--parents"], "'taken' is a file"),
]


@pytest.mark.parametrize(
    ("argv", "words"), REFUSED_NAMES, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_a_name_that_cannot_be_is_refused_before_a_model_is_loaded(
    argv: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def loaded(_flags: Any) -> None:
        raise AssertionError("a model was loaded")

    monkeypatch.setattr(asking, "session_of", loaded)
    monkeypatch.setattr("vit_viz.cli.others.session_of", loaded)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").mkdir()
    (tmp_path / "taken").write_text("")
    assert main(argv) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert said.err.startswith("vit-viz: ")
    assert words in said.err
    assert sorted(one.name for one in tmp_path.rglob("*")) == ["taken", "there"]


@pytest.mark.slow
def test_what_is_said_of_formats_is_what_can_be_saved() -> None:
    """Of every question that the odd model answers: each format is saved, or refused as `formats_of` says."""
    session = odd_session()
    for name, question in QUESTIONS.items():
        subject = subject_of(session, odd_picture() if question.takes_image else None)
        try:
            request = request_for(session, subject, name)
            answer = session.run(request)
        except (ParameterError, CheckpointError):
            assert name in ("added_register", "rotary_similarity", "on_object", "head_words")
            continue
        for form in FORMATS:
            try:
                content = as_file(Answered(session, request, answer), form, dpi=72, width_cm=5.0)
            except ExportError:
                content = b""
            assert bool(content) == (form in formats_of(name)), (name, form)


def test_endings_may_be_written_large(run: Run, photos: list[Path], tmp_path: Path) -> None:
    file = tmp_path / "MAP.PNG"
    assert run("look", photos[0], "-o", file)[0] == 0
    assert file.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("broken", [0, 1, 2], ids=["first", "middle", "last"])
def test_a_batch_goes_on_after_a_bad_file_and_names_it(
    run: Run,
    tmp_path: Path,
    broken: int,
) -> None:
    names = [tmp_path / f"{i}.png" for i in range(3)]
    for seed, name in enumerate(names):
        odd_picture(seed).save(name)
    names[broken].write_bytes(b"no picture")
    folder = tmp_path / "maps"
    folder.mkdir()
    code, printed, said = run(
        "explain", str(tmp_path / "*.png"), "--methods", "rollout,attention", "-o", folder
    )
    good = [name for i, name in enumerate(names) if i != broken]
    assert code == 2
    assert printed.splitlines() == [
        str(folder / f"{name.stem}_{method}.png") for name in good for method in ("rollout", "attention")
    ]
    assert sorted(one.stem[0] for one in folder.iterdir()) == sorted(2 * [name.stem for name in good])
    first, last = said.splitlines()
    assert first.startswith(f"vit-viz: {names[broken]}: ")
    assert last == "vit-viz: 2 of 6 answers are missing, for the reasons above."


def test_a_photo_that_is_not_there_or_too_small_for_its_part_does_not_end_a_batch(
    run: Run,
    photos: list[Path],
) -> None:
    code, printed, said = run("classes", photos[0], "missing.jpg", photos[1], "--json")
    assert code == 2
    assert len(printed.splitlines()) == 2
    assert said.splitlines()[0].startswith("vit-viz: missing.jpg: ")
    width, height = odd_picture().size
    beyond = f"0,0,{height},{width + 1}"
    code, printed, said = run("classes", photos[0], photos[1], "--part", beyond)
    assert (code, printed) == (2, "")
    assert [
        line.startswith(f"vit-viz: {photo}: ") for line, photo in zip(said.splitlines(), photos, strict=False)
    ] == 2 * [True]
    assert said.splitlines()[-1] == "vit-viz: 2 of 2 answers are missing, for the reasons above."


def test_a_disk_that_is_full_ends_a_batch_at_once(
    run: Run,
    photos: list[Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    code, printed, said = run("look", *photos, "-o", tmp_path)
    assert (code, printed, said.count("\n")) == (2, "", 1)
    assert "No space left on device" in said


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o007, 0o660), (0o077, 0o600)])
def test_files_are_readable_as_the_umask_says(tmp_path: Path, mask: int, mode: int) -> None:
    before = os.umask(mask)
    try:
        written(tmp_path / "file", b"content")
        assert os.umask(mask) == mask
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == mode
