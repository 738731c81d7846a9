"""Freed memory goes back to the system."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CHILD = """
import threading
from pathlib import Path
from vit_viz.memory import give_memory_back

def used():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) // 1024

def fill(kept):
    kept += [bytearray(50_000) for _ in range(2500)]

kept = [[] for _ in range(2)]
threads = [threading.Thread(target=fill, args=(part,)) for part in kept]
for thread in threads: thread.start()
for thread in threads: thread.join()
full = used()
for part in kept: del part[:-1]  # the last one pins the rest
give_memory_back()
print(full, used())
"""


@pytest.mark.skipif(
    sys.platform != "linux", reason="only glibc keeps freed memory in a way that can be ended"
)
def test_what_threads_freed_goes_back_to_the_system() -> None:
    root = Path(__file__).resolve().parents[1]
    done = subprocess.run([sys.executable, "-c", CHILD], cwd=root, capture_output=True, text=True, check=True)
    full, left = map(int, done.stdout.split())
    assert full - left > 200
