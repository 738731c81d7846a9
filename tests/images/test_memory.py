"""What decoding may cost: measured in a process of its own, because the peak of a process never falls."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the peak is read from /proc"),
]

CHILD = """
import sys
from pathlib import Path
from PIL import Image
from vit_viz.images import decode
from vit_viz.errors import ImageError

def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))

Image.init()
decode(Image.new("RGB", (64, 64)))
before = peak()
try:
    outcome = decode(Path(sys.argv[1])).size
except ImageError as error:
    outcome = error
print((peak() - before) // 1024, outcome)
"""
ROOT = Path(__file__).resolve().parents[2]


def cost(path: Path) -> tuple[int, str]:
    """(MiB above idle, size or sentence)."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD, path], cwd=ROOT, capture_output=True, text=True, check=True
    )
    mebibytes, outcome = done.stdout.split(" ", 1)
    return int(mebibytes), outcome.strip()


def picture(megapixels: float, mode: str = "RGB") -> Image.Image:
    width = round((megapixels * 1e6 * 4 / 3) ** 0.5)
    height = int(megapixels * 1e6 / width)
    rows, cols = np.arange(height)[:, None], np.arange(width)
    planes = [(rows // 9 + cols // (5 + band)) % 256 for band in range(len(mode))]
    return Image.fromarray(np.dstack(planes).astype(np.uint8), mode=None).convert(mode)


LARGEST = {  # the largest of each kind that is read, and the options that need most memory
    "JPEG": (63.9, "RGB", {"quality": 60}),
    "progressive JPEG": (15.9, "RGB", {"quality": 60, "progressive": True, "subsampling": 0}),
    "PNG": (24.9, "RGBA", {"compress_level": 1}),
    "BMP": (6.0, "RGB", {}),
    "GIF": (24.9, "RGB", {}),
    "TIFF": (12.4, "RGBA", {"compression": "tiff_adobe_deflate", "tiffinfo": {278: 10_000}}),
    "WEBP": (12.4, "RGBA", {"lossless": True, "quality": 0, "method": 0}),
    "AVIF": (12.4, "RGBA", {"quality": 30, "speed": 10, "subsampling": "4:4:4"}),
}


@pytest.mark.parametrize("kind", LARGEST)
def test_the_largest_file_of_a_kind_is_read_or_refused_in_bounded_memory(kind: str, tmp_path: Path) -> None:
    megapixels, mode, options = LARGEST[kind]
    good, damaged = tmp_path / "good", tmp_path / "damaged"
    picture(megapixels, mode).save(good, kind.split()[-1], **options)  # type: ignore[arg-type]
    data = good.read_bytes()
    damaged.write_bytes(data[: len(data) * 9 // 10] + bytes(300))

    mebibytes, outcome = cost(good)
    assert outcome.startswith("(")
    assert mebibytes <= 320
    mebibytes, outcome = cost(damaged)
    assert outcome.startswith("This")
    assert mebibytes <= 150


def test_a_claim_of_169_megapixels_costs_nothing(tmp_path: Path) -> None:
    path = tmp_path / "bomb.png"
    Image.new("1", (13000, 13000)).save(path)
    mebibytes, outcome = cost(path)
    assert "169 megapixels" in outcome
    assert mebibytes <= 5
