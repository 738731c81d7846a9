"""Memory stays within its bounds, whatever visitors bring, and no file stays behind.

python -m tests.ui.test_soak IMAGES CACHE_BYTES UPLOAD_BYTES FOLDER      prints one JSON object: memory of a process of its own
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from tests.effort import effort
from tests.serving import ROOT
from vit_viz.figures.screen import photo_jpeg
from vit_viz.images import decode
from vit_viz.session.request import Request, Subject
from vit_viz.session.session import Session
from vit_viz.session.uploads import UploadStore
from vit_viz.ui.look.view import picture
from vit_viz.views.state import ViewState

MB = 2**20
PICTURES = effort(100)
SIZES = ((16, 16), (60, 40), (40, 90), (224, 224), (640, 480), (300, 600), (1600, 1200))
PICTURES_OF_ONE = 7  # before the next visitor comes


def rss() -> int:
    """Memory of this process in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


@dataclass
class Highest:
    """The largest memory of this process while the block runs, looked at every few milliseconds."""

    seen: int = 0
    _done: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Highest:
        self._thread = threading.Thread(target=self._look)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._done.wait(0.005):
            self.seen = max(self.seen, rss())


def visit(session: Session, file: Path, number: int) -> None:
    """One picture of one visitor: uploaded, traced, drawn on the page; now and then also what other tabs need."""
    owner = f"owner {number // PICTURES_OF_ONE}"
    image = session.add_upload(decode(file), owner=owner)
    file.unlink()
    subject = Subject("mini", image, "fit", owner)
    photo_jpeg(session, subject)
    picture(session, subject, ViewState(layer=number % 6))
    if number % 4 == 0:
        session.run(Request.of("mini", image, "rollout", owner=owner, query="class"))
        session.prepared(Subject("mini", image, owner=owner))
    if number % PICTURES_OF_ONE == PICTURES_OF_ONE - 1:
        session.uploads.forget(owner)


def written(folder: Path, number: int, size: tuple[int, int]) -> Path:
    """A new file with a picture that is different for every number."""
    random = np.random.default_rng(number)
    blobs = Image.fromarray(random.integers(0, 256, (5, 7, 3), dtype=np.uint8))
    file = folder / f"{number}.jpg"
    blobs.resize(size, Image.Resampling.BILINEAR).save(file)
    return file


def soak(
    images: int,
    cache_bytes: int,
    upload_bytes: int,
    folder: Path,
    *,
    sizes: tuple[tuple[int, int], ...] = SIZES,
    check: bool = False,
) -> dict[str, int]:
    """Let visitors bring this many pictures; returns memory before and at its highest, and what is kept at the end.

    Args:
        check: also look at the budgets after every picture.
    """
    session = Session(model="mini", device="cpu", cache_bytes=cache_bytes)
    session.uploads = UploadStore(max_bytes=upload_bytes, on_gone=session.forget_picture)
    session.trace("mini", "lion")
    picture(session, Subject("mini", "lion"), ViewState(layer=0))
    gc.collect()
    idle = rss()
    with Highest() as highest:
        for number in range(images):
            visit(session, written(folder, number, sizes[number % len(sizes)]), number)
            if check:
                assert session.cache.stats.used_bytes + session.engine.pool.idle_bytes <= cache_bytes
                assert session.uploads.used_bytes <= upload_bytes
    stats = session.cache.stats
    return {
        "idle": idle,
        "highest": highest.seen,
        "evictions": stats.evictions,
        "kept": stats.used_bytes + session.engine.pool.idle_bytes,
        "uploads": session.uploads.used_bytes,
    }


def files_in(folder: Path) -> list[Path]:
    """Whatever is not a folder."""
    return [path for path in folder.rglob("*") if not path.is_dir()]


def test_budgets_hold_after_every_picture_and_files_are_gone(tmp_path: Path) -> None:
    found = soak(4 * PICTURES_OF_ONE + 2, 24 * MB, MB, tmp_path, sizes=SIZES[:4], check=True)
    assert found["evictions"] > 0
    assert 0 < found["uploads"] <= MB
    assert files_in(tmp_path) == []


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory of a process is read from /proc")
def test_many_pictures_of_mixed_sizes_stay_within_the_bound(tmp_path: Path) -> None:
    cache, uploads = 64 * MB, 32 * MB
    command = [
        sys.executable,
        "-m",
        "tests.ui.test_soak",
        str(PICTURES),
        str(cache),
        str(uploads),
        str(tmp_path),
    ]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=True)
    found = json.loads(run.stdout)
    assert found["evictions"] > PICTURES
    assert found["highest"] <= 1.15 * (found["idle"] + cache + uploads)
    assert files_in(tmp_path) == []


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(json.dumps(soak(*map(int, sys.argv[1:4]), Path(sys.argv[4]))))
