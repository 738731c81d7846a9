"""What a process has started ends with it, however it ends; what others started does not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from vit_viz.surveys.leftovers import Leftovers

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").is_file(), reason="needs Linux's /proc")

STARTER = """
import subprocess, sys, time
from vit_viz.surveys.leftovers import Leftovers
sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
parent = [sys.executable, "-c", (
    "import os, subprocess, sys, time;"
    "child = subprocess.Popen(sys.argv[1:], env={}, start_new_session=True);"
    "print(child.pid, flush=True); time.sleep(600)"
), *sleep]
leftovers = Leftovers()
with leftovers.ended():
    with leftovers.marked():
        marked = subprocess.Popen(parent, start_new_session=True, stdout=subprocess.PIPE, text=True)
        child = int(marked.stdout.readline())
    other = subprocess.Popen(sleep, start_new_session=True)
    print(marked.pid, child, other.pid, flush=True)
    if sys.argv[1] == "wait":
        time.sleep(600)
print("left", flush=True)
time.sleep(600)
"""


def is_there(pid: int) -> bool:
    """Whether a process runs; one that ended and that nobody has asked about does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def until_gone(pid: int) -> None:
    while is_there(pid):
        time.sleep(0.02)


@pytest.mark.parametrize("end", ["killed", "left"])
def test_what_was_marked_ends_with_its_children_and_nothing_else(end: str) -> None:
    """The child has another environment, as one that overwrote it."""
    words = [sys.executable, "-c", STARTER, "wait" if end == "killed" else "leave"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        marked, child, other = map(int, starter.stdout.readline().split())
        try:
            if end == "killed":
                assert is_there(marked)
                starter.send_signal(signal.SIGKILL)
            else:
                assert starter.stdout.readline() == "left\n"
            until_gone(marked)
            until_gone(child)
            assert is_there(other)
        finally:
            starter.kill()
            for pid in (marked, child, other):
                if is_there(pid):
                    os.kill(pid, signal.SIGKILL)


def test_the_mark_is_not_left_in_the_environment_and_two_have_two() -> None:
    before = dict(os.environ)
    marks = []
    for one in (Leftovers(), Leftovers()):
        with one.marked():
            marks.append(set(os.environ.items()) - set(before.items()))
    assert dict(os.environ) == before
    assert len(marks[0]) == len(marks[1]) == 1
    assert marks[0] != marks[1]
