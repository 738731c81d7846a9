"""The checks of a change run all their parts and tell of each, whatever fails; and a slow machine is no fault."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import psutil
import pytest

from tests.waiting import until

PARTS = Path(__file__).resolve().parents[1] / ".ci" / "parts"

pytestmark = pytest.mark.skipif(shutil.which("timeout") is None, reason="no coreutils here")


def begun(folder: Path, *lines: str) -> subprocess.Popen[str]:
    """A script such as .ci/run with parts of its own."""
    place = folder / ".ci"
    place.mkdir()
    shutil.copy(PARTS, place)
    head = ["#!/usr/bin/env bash", '. "$(dirname "$0")/parts"', 'within 5 "$@"']
    (place / "run").write_text("\n".join([*head, *lines, "all_passed"]) + "\n")
    outside = {
        name: value for name, value in os.environ.items() if name != "CI_RESULTS"
    }  # of the run around this one
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.Popen(["bash", str(place / "run"), "a word"], cwd="/", env=outside, text=True, **pipes)


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Its exit code, and what it printed."""
    printed, _ = process.communicate()
    return process.returncode, printed


def table(printed: str) -> dict[str, str]:
    rows = [line.rsplit(maxsplit=2)[0] for line in printed.splitlines() if line.endswith(" s")]
    return {row.split()[0]: " ".join(row.split()[1:]) for row in rows}


def test_what_fails_hides_nothing_after_it(tmp_path: Path) -> None:
    parts = ("part first true", "part second bash -c 'exit 3'", "part third echo its words")
    code, printed = ended(begun(tmp_path, *parts))
    assert code == 1, printed
    assert "its words" in printed
    assert table(printed) == {"first": "passed", "second": "FAILED, code 3", "third": "passed"}


def test_parts_side_by_side_are_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    reads, writes = (
        f"part reads bash -c 'read word <{pipe}; exit $word' &",
        f"part writes bash -c 'echo 4 >{pipe}'",
    )
    code, printed = ended(begun(tmp_path, f"mkfifo {pipe}", reads, writes))
    assert code == 1, printed
    assert table(printed) == {"writes": "passed", "reads": "FAILED, code 4"}


def test_all_that_pass_pass_in_the_root_of_the_project(tmp_path: Path) -> None:
    code, printed = ended(begun(tmp_path, 'part all bash -c "pwd; echo FLAKY one; echo $1"'))
    assert code == 0, printed
    assert {str(tmp_path), "a word"} <= set(printed.splitlines())
    assert printed.splitlines()[-2] == "FLAKY one"  # once more beside the table


def test_what_fails_before_the_first_part_is_all_that_is_told(tmp_path: Path) -> None:
    code, printed = ended(begun(tmp_path, "echo no environment", "exit 1", "part never true"))
    assert (code, printed) == (1, "no environment\n")


@pytest.mark.parametrize("first", ["true", "false"])
def test_a_machine_that_is_too_slow_is_told_apart(tmp_path: Path, first: str) -> None:
    number = tmp_path / "number"
    endless = (
        f"part endless bash -c 'echo it began; echo $$ >{number}.new; mv {number}.new {number}; sleep 1000'"
    )
    process = begun(tmp_path, f"part before {first}", endless, "part after true")
    until(number.exists, what="the second part's beginning")
    (watch,) = [one for one in psutil.Process(process.pid).children() if one.name() == "timeout"]
    # before it waits it may not know yet whom it started, and would end alone
    until(lambda: watch.status() == psutil.STATUS_SLEEPING, what="the watch's waiting")
    watch.send_signal(signal.SIGALRM)  # as its clock does when the time is over
    code, printed = ended(process)
    assert code == 75, printed
    assert "MACHINE TOO SLOW" in printed.splitlines()[-1]
    assert "it began" in printed.splitlines()
    assert table(printed)["before"] == ("passed" if first == "true" else "FAILED, code 1")
    assert [line for line in printed.splitlines() if line.startswith("endless") and "NOT ENDED" in line]
    assert "after" not in table(printed)
    until(lambda: not psutil.pid_exists(int(number.read_text())), what="the end of what was stopped")
