"""What it costs to decode a picture in a process of its own: the same file here and there, one after the other.

    python -m benchmarks.decoding [--repeat 15]

Prints per file the median milliseconds of decoding here, in the process that is kept for it (`vit_viz.images.DecoderProcess`),
and of their difference within each pair; then how long a picture waits that comes first, or right after one that broke the
process. The order within a pair alternates, and the first pair does not count.
"""

from __future__ import annotations

import argparse
import io
import os
import signal
import statistics
import time
from collections.abc import Callable

import numpy as np
from PIL import Image

from vit_viz.images import DecoderProcess, decode

PHOTOS = {  # name: (format, width, height, options)
    "JPEG, 0.3 megapixels": ("JPEG", 640, 480, {"quality": 90}),
    "JPEG, 2 megapixels": ("JPEG", 1632, 1224, {"quality": 90}),
    "JPEG, 12 megapixels": ("JPEG", 4000, 3000, {"quality": 90}),
    "JPEG, 48 megapixels, half size": ("JPEG", 8000, 6000, {"quality": 85}),
    "PNG, 2 megapixels": ("PNG", 1632, 1224, {"compress_level": 6}),
    "WebP, 12 megapixels": ("WEBP", 4000, 3000, {"quality": 80}),
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--repeat", type=int, default=15)
    repeat = parser.parse_args().repeat
    process = DecoderProcess()
    print(f"{'file':32} {'here':>8} {'process':>8} {'more':>8}   ms")
    for name, (kind, width, height, options) in PHOTOS.items():
        data = photo(kind, width, height, options)
        here, there, more = paired(lambda d=data: decode(d), lambda d=data: process.decode(d), repeat)
        print(f"{name:32} {here:8.1f} {there:8.1f} {more:8.1f}")
    small = photo("JPEG", 640, 480, {"quality": 90})
    print(f"the first picture, before the process was started: {first(small, repeat):.0f} ms")
    print(f"a picture right after a crash: {after_crash(process, small, repeat):.0f} ms")
    process.close()


def photo(kind: str, width: int, height: int, options: dict[str, int]) -> bytes:
    """A file with the detail of a photo: shapes of all sizes, and noise."""
    random = np.random.default_rng(0)
    picture = np.zeros((height, width, 3))
    for cells in (5, 40, 320):
        coarse = Image.fromarray(random.integers(0, 256, (cells, cells, 3), np.uint8))
        picture += np.asarray(coarse.resize((width, height), Image.Resampling.BICUBIC)) / 3
    picture += random.normal(0, 3, (height, width, 1))
    file = io.BytesIO()
    Image.fromarray(picture.clip(0, 255).astype(np.uint8)).save(file, kind, **options)
    return file.getvalue()


def paired(
    here: Callable[[], object], there: Callable[[], object], repeat: int
) -> tuple[float, float, float]:
    """Median milliseconds of both, and of the second minus the first within each pair."""
    pairs = []
    for i in range(repeat + 1):
        if i % 2:
            pairs.append((milliseconds(here), milliseconds(there)))
        else:
            pairs.append((milliseconds(there), milliseconds(here))[::-1])
    a, b = zip(*pairs[1:], strict=True)
    return statistics.median(a), statistics.median(b), statistics.median(y - x for x, y in pairs[1:])


def first(data: bytes, repeat: int) -> float:
    """Median milliseconds of a picture that has to wait for the start of the process."""
    times = []
    for _ in range(repeat):
        process = DecoderProcess()
        times.append(milliseconds(lambda p=process: p.decode(data)))
        process.close()
    return statistics.median(times)


def after_crash(process: DecoderProcess, data: bytes, repeat: int) -> float:
    """Median milliseconds of a picture that comes when the process has just been killed."""
    times = []
    for _ in range(repeat):
        process.decode(data)
        os.kill(process.pid or 0, signal.SIGKILL)
        os.waitid(os.P_PID, process.pid or 0, os.WEXITED | os.WNOWAIT)
        times.append(milliseconds(lambda: process.decode(data)))
    return statistics.median(times)


def milliseconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - started)


if __name__ == "__main__":
    main()
