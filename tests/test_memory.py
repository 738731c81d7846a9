"""Freed memory goes back to the system."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

USED = """
import threading
from pathlib import Path
from vit_viz.memory import give_memory_back, return_large_blocks, share_one_heap

def used():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) // 1024

def together(work, count):
    threads = [threading.Thread(target=work, args=(i,)) for i in range(count)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
"""
PINNED = """
kept = [[] for _ in range(2)]
together(lambda i: kept[i].extend(bytearray(50_000) for _ in range(2500)), 2)
full = used()
for part in kept: del part[:-1]  # the last one pins the rest
give_memory_back()
print(full, used())
"""
AT_THE_END = """
share_one_heap()
bytearray(30_000_000)  # once such a one was freed, glibc keeps twice as much at the end of each heap
before, barrier, most = used(), threading.Barrier(4), []

def work(_):
    held = [bytearray(200_000) for _ in range(200)]
    barrier.wait()
    most.append(used())
    barrier.wait()
    del held
    barrier.wait()  # the heap of a thread that has ended would be somebody else's

together(work, 4)
give_memory_back()
print(max(most) - before, used() - before)
"""
HOLES = """
return_large_blocks()
before, kept = used(), []
for _ in range(4):
    large = [bytearray(20_000_000) for _ in range(3)]
    full = used()
    kept.append(bytearray(100_000))  # in the heap, behind what was large
    del large
print(full - before, used() - before)
"""
only_glibc = pytest.mark.skipif(
    sys.platform != "linux", reason="only glibc keeps freed memory in a way that can be ended"
)


def figures(script: str) -> tuple[int, int]:
    """MiB in use before and after memory was given back, in a process of its own."""
    root = Path(__file__).resolve().parents[1]
    done = subprocess.run(
        [sys.executable, "-c", USED + script], cwd=root, capture_output=True, text=True, check=True
    )
    most, left = map(int, done.stdout.split())
    return most, left


@only_glibc
def test_what_threads_freed_goes_back_to_the_system() -> None:
    full, left = figures(PINNED)
    assert full - left > 200


@only_glibc
def test_threads_that_share_a_heap_leave_nothing_behind() -> None:
    most, left = figures(AT_THE_END)
    assert most > 140
    assert left < 10


@only_glibc
def test_large_blocks_leave_no_holes() -> None:
    full, left = figures(HOLES)
    assert full > 50
    assert left < 10
