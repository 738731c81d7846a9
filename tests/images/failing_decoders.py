"""Decoders that fail in one way each, for a `DecoderProcess` to run: what stands behind a PNG's end says how."""

from __future__ import annotations

import os
import signal
import sys
import time

from PIL import Image

from vit_viz.errors import ImageError
from vit_viz.images.reading import decode

END_OF_PNG = b"IEND\xaeB`\x82"


def decode_or_fail(data: bytes, **limits: float) -> Image.Image:
    """Decode a picture, or do first what its last bytes say."""
    what, _, number = data.rpartition(END_OF_PNG)[2].decode().partition(" ")
    if what == "segfault":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif what == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif what == "exit":
        os._exit(int(number))
    elif what == "raise":
        raise RuntimeError("a fault of ours")
    elif what == "sleep":
        time.sleep(3600)
    elif what == "allocate":
        _ = bytearray(int(number))
    elif what == "write":
        write_lines(int(number))
    elif what == "tell":
        raise ImageError(f"{sorted(os.environ)} {sorted(sys.modules)}")
    return decode(data, **limits)  # type: ignore[arg-type]


def write_lines(count: int) -> None:
    """Write to standard output and error as a library does: as much of it as is taken, and no word of what is not."""
    for i in range(count):
        try:
            os.write(1 + i % 2, b"libfoo: Warning, unknown field 4711 at /home/somebody/photo.tif\n")
        except BlockingIOError:
            continue
    print("and once more", flush=False)
