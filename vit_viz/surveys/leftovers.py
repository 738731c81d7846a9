"""Ends what a process has started when that process is gone, `kill -9` included: Ray's agents outlive the rest by half a minute.

What is started inherits a mark in its environment. A helper process waits until its starter is gone, as a pipe between them tells,
and ends whatever has the mark. It needs Linux's /proc; elsewhere nothing is done.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

_NAME = "VIT_VIZ_STARTED_BY"

_HELPER = """
import os, select, signal, sys, time

mark, known = sys.argv[1].encode(), {}

def read(pid, name):
    with open(f"/proc/{pid}/{name}", "rb") as file:
        return file.read()

def note():
    for one in filter(str.isdecimal, os.listdir("/proc")):
        try:
            words = read(one, "stat").rpartition(b")")[2].split()
            pid, parent, begun = int(one), int(words[1]), int(words[19])
            if known.get(pid) != begun:
                known.pop(pid, None)
                if parent in known or mark in read(one, "environ").split(b"\\0"):
                    known[pid] = begun
        except (OSError, IndexError):
            pass

def is_there(pid):
    try:
        words = read(pid, "stat").rpartition(b")")[2].split()
        return int(words[19]) == known[pid] and words[0] != b"Z"
    except (OSError, IndexError):
        return False

while not select.select([0], [], [], 0.5)[0]:
    note()
for _ in range(100):
    note()
    note()  # children of those that were new
    there = [pid for pid in known if is_there(pid)]
    for pid in there:
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass
    if not there:
        break
    time.sleep(0.1)
"""
"""It looks every half second: processes that give themselves a title lose their environment, and are known by their parents."""


class Leftovers:
    """What was started within `marked`, which `ended` outlives by moments only."""

    def __init__(self) -> None:
        self._mark = uuid4().hex

    @contextmanager
    def ended(self) -> Iterator[None]:
        """When this is left, or the process is gone, so is what was started."""
        if not Path("/proc/self/environ").is_file():
            yield
            return
        words = [sys.executable, "-I", "-S", "-c", _HELPER, f"{_NAME}={self._mark}"]
        nowhere = subprocess.DEVNULL
        with subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=nowhere, stderr=nowhere, start_new_session=True
        ):  # on leaving, the pipe is closed and the helper waited for
            yield

    @contextmanager
    def marked(self) -> Iterator[None]:
        """What is started meanwhile, and whatever that starts later, has the mark."""
        os.environ[_NAME] = self._mark
        try:
            yield
        finally:
            del os.environ[_NAME]
