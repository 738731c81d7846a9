"""Memory stays within its bounds, whatever visitors bring, and no file stays behind."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.effort import effort
from tests.ui.soak import SIZES, soak

ROOT = Path(__file__).resolve().parents[2]
MB = 2**20
PICTURES = effort(100)


def files_in(folder: Path) -> list[Path]:
    """Whatever is not a folder."""
    return [path for path in folder.rglob("*") if not path.is_dir()]


def test_budgets_hold_after_every_picture_and_files_are_gone(tmp_path: Path) -> None:
    found = soak(28, 24 * MB, MB, tmp_path, sizes=SIZES[:4], check=True)
    assert found["evictions"] > 0
    assert 0 < found["uploads"] <= MB
    assert files_in(tmp_path) == []


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory of a process is read from /proc")
def test_many_pictures_of_mixed_sizes_stay_within_the_bound(tmp_path: Path) -> None:
    cache, uploads = 64 * MB, 32 * MB
    command = [sys.executable, "-m", "tests.ui.soak", str(PICTURES), str(cache), str(uploads), str(tmp_path)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=True)
    found = json.loads(run.stdout)
    assert found["evictions"] > PICTURES
    assert found["highest"] <= 1.15 * (found["idle"] + cache + uploads)
    assert files_in(tmp_path) == []
