"""`vit-viz survey`: photos in, a folder out, a few lines of what it came to."""

from __future__ import annotations

import io
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.effort import effort
from tests.surveys.conftest import rows_of, save_photo
from vit_viz import progress
from vit_viz.cli import surveying
from vit_viz.surveys import parquet
from vit_viz.surveys.run import Survey


def test_a_folder_becomes_a_survey_and_its_figures_are_printed(command, tmp_path):
    for seed in range(4):
        save_photo(tmp_path / "photos" / f"animal_{seed % 2}" / f"{seed}.png", seed)
    (tmp_path / "photos" / "animal_0" / "bad.png").write_bytes(b"no picture")
    code, lines, err = command(
        tmp_path / "photos", "--out", tmp_path / "out", "--batch", 2, "--no-thumbnails"
    )
    assert (code, err) == (3, "")
    done = Survey(tmp_path / "out")
    assert lines[0] == f"{tmp_path / 'out'}: 4 photos"
    assert lines[1] == "top-1 {:.3f}, top-5 {:.3f} of 4 labelled photos".format(*done.accuracy)
    assert lines[2] == "1 could not be read:"
    assert lines[3].startswith("  animal_0/bad.png: ")
    assert done.table("thumbnails").num_rows == 0


def test_the_survey_of_an_edited_model(command, tmp_path):
    save_photo(tmp_path / "photos" / "0.png", 0)
    code, _, _ = command(tmp_path / "photos", "-o", tmp_path / "out", "--edits", "temperature 1=2;off 0.3")
    assert code == 0
    assert Survey(tmp_path / "out").manifest["edits"] == "off 0.3;temperature 1=2"
    code, _, err = command(tmp_path / "photos", "-o", tmp_path / "out")
    assert (code, "its edits of the model is off 0.3;temperature 1=2, not none" in err) == (2, True)


def test_several_files_and_a_list_of_labels(command, tmp_path):
    for seed in range(2):
        save_photo(tmp_path / f"{seed}.png", seed)
    (tmp_path / "labels.csv").write_text("file,label\n0.png,animal 3\n1.png,animal 4\n")
    files = tmp_path / "0.png", tmp_path / "1.png"
    code, _, _ = command(
        *files, "-o", tmp_path / "out", "--annotations", tmp_path / "labels.csv", "--mode", "fit"
    )
    assert code == 0
    assert Survey(tmp_path / "out").table("photos").to_pydict()["label_class"] == [3, 4]


def test_a_refusal_is_one_line_and_exit_code_2(command, tmp_path):
    assert command(tmp_path / "none", "-o", tmp_path / "out") == (
        2, [], f"vit-viz: {tmp_path / 'none'} does not exist.\n",
    )  # fmt: skip


def test_ctrl_c_ends_it_and_the_same_command_goes_on(command, photos, tmp_path, monkeypatch):
    write = parquet.write_batch

    def interrupted(folder, number, tables, **of):
        write(folder, number, tables, **of)
        if number == 1:
            raise KeyboardInterrupt

    given = (photos, "-o", tmp_path / "out", "--batch", 4)
    with monkeypatch.context() as patched:
        patched.setattr(parquet, "write_batch", interrupted)
        assert command(*given)[0] == 130
    assert parquet.batches(tmp_path / "out") == {0, 1}
    assert command(*given)[0] == 0
    assert Survey(tmp_path / "out").num_photos == 11


@pytest.mark.parametrize(("start", "rate"), [(40, "3.00 photos/s"), (0, "7.00 photos/s")])
def test_what_an_earlier_run_has_done_does_not_count_as_fast(monkeypatch, start, rate):
    """30 or 70 photos in 10 seconds of a clock of ours, whatever was there before."""
    screen = io.StringIO()
    screen.isatty = lambda: True
    now = [0.0]
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr("tqdm.std.time", lambda: now[0])
    with progress.counting("photos") as follow:
        assert follow is not None
        follow(start, 100)
        now[0] = 10.0
        follow(70, 100)
    shown = [line for line in screen.getvalue().split("\r") if " 70/100 " in line]
    assert shown
    assert all(rate in line for line in shown)


def done(failures, accuracy=None):
    """A survey of 1,234 photos, as far as the command tells of it."""
    sentences = {f"{i}.png": f"Fault {i}." for i in range(failures)}
    return SimpleNamespace(
        folder=Path("out"), num_photos=1234, accuracy=accuracy, failures=sentences, notes=()
    )


def test_what_a_survey_came_to_names_what_is_known_alone():
    assert list(surveying._lines(done(0))) == ["out: 1,234 photos"]
    assert list(surveying._lines(done(0, (0.4567, 0.875, 1200))))[1:] == [
        "top-1 0.457, top-5 0.875 of 1,200 labelled photos"
    ]


def test_ten_photos_that_could_not_be_read_are_named_and_of_more_the_table_is():
    ten = [f"  {i}.png: Fault {i}." for i in range(10)]
    assert list(surveying._lines(done(10)))[1:] == ["10 could not be read:", *ten]
    assert list(surveying._lines(done(1011)))[1:] == [
        "1,011 could not be read:", *ten, "  ... the table failures has all of them",
    ]  # fmt: skip


# --- a real process


def begin(photos: Path, out: Path) -> subprocess.Popen[bytes]:
    command = [
        sys.executable,
        "-m",
        "vit_viz",
        "survey",
        photos,
        "-o",
        out,
        "--model",
        "mini",
        "--batch",
        "2",
    ]
    options = ["--at-once", "2", "--device", "cpu", "--size", "6"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen([*map(str, command), *options], env=environment, stdout=subprocess.DEVNULL)


@pytest.mark.slow
def test_kill_9_at_any_moment_loses_one_batch_at_most(tmp_path):
    for seed in range(36):
        save_photo(tmp_path / "photos" / f"{seed:02}.png", seed)
    with begin(tmp_path / "photos", tmp_path / "whole") as undisturbed:
        assert undisturbed.wait() == 0
    chance, out, killed, before = random.Random(5), tmp_path / "out", 0, 0
    for _ in range(effort(3)):
        with begin(tmp_path / "photos", out) as process:
            while not parquet.batches(out) - set(range(before)) and process.poll() is None:
                time.sleep(0.005)
            time.sleep(chance.uniform(0, 0.15))
            process.send_signal(signal.SIGKILL)
            killed += process.wait() == -signal.SIGKILL
        there = parquet.batches(out)
        assert there == set(range(len(there)))  # whole, and in their order
        before = len(there)
    assert killed >= 1
    with begin(tmp_path / "photos", out) as last:
        assert last.wait() == 0
    assert rows_of(Survey(out)) == rows_of(Survey(tmp_path / "whole"))
    assert sorted(one.name for one in out.iterdir()) == sorted(
        one.name for one in (tmp_path / "whole").iterdir()
    )


@pytest.mark.slow
def test_the_check_of_a_whole_survey_ends_with_0_every_time(command, photos, tmp_path):
    """A thread that holds on to what was read would abort the process as it ends, more often where there are few batches."""
    assert command(photos, "-o", tmp_path / "out")[0] == 0
    check = [sys.executable, "-m", "vit_viz", "survey", "--check", str(tmp_path / "out")]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    codes = [
        subprocess.run(check, env=environment, stdout=subprocess.DEVNULL, check=False).returncode
        for _ in range(30)
    ]
    assert codes == [0] * 30
