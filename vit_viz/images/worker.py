"""The program that decodes pictures in a process of its own: `python -m vit_viz.images.worker MODULE:FUNCTION MEMORY_BYTES`.

It reads requests from standard input, answers each on standard output, and ends when its input does. A message is the length
of a JSON object in four bytes, the object, and the bytes that it announces: of a request the file, of an answer the pixels row
by row. What the libraries of the formats write themselves is counted and dropped. `vit_viz.images.decoder` is the other end.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import struct
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from PIL import AvifImagePlugin, Image

from vit_viz.errors import ImageError
from vit_viz.memory import give_memory_back, share_one_heap

BAND_BYTES = 2**20
"""Pixels are sent in bands of rows of about this size, so that neither end holds them twice."""

EXHAUSTED = 12
"""Status with which this program ends when memory runs out: the number of that error (ENOMEM) everywhere."""

MAX_HEADER_BYTES = 65_536
_LENGTH = struct.Struct(">I")
_AVIF_THREADS = 4  # each has a stack, and the stacks of 64 cores would use up the memory that is allowed
_GRACE_SECONDS = 10

Decode = Callable[..., Image.Image]


def main() -> None:
    """Answer requests until the input ends."""
    module, _, function = sys.argv[1].partition(":")
    decode: Decode = getattr(importlib.import_module(module), function)
    memory_bytes = int(sys.argv[2])
    Image.init()  # every plugin, before memory is limited
    AvifImagePlugin.DEFAULT_MAX_THREADS = min(_AVIF_THREADS, os.cpu_count() or 1)
    share_one_heap()
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    output = LibraryOutput()
    limit_resources(memory_bytes)
    send(answers, {"ready": True})
    try:
        while (request := receive(requests)) is not None:
            _end_after(request["seconds"])
            _answer(answers, decode, requests.read(request["bytes"]), request["limits"], output)
            _end_after(None)
            give_memory_back()
    except MemoryError:
        os._exit(EXHAUSTED)


def send(stream: IO[bytes], header: Mapping[str, Any], data: bytes = b"") -> None:
    """Write a message, or its beginning."""
    text = json.dumps(header).encode()
    stream.write(_LENGTH.pack(len(text)) + text)
    stream.write(data)
    stream.flush()


def receive(stream: IO[bytes]) -> dict[str, Any] | None:
    """The object of the next message, None at the end of the stream; the bytes that it announces are still to be read."""
    start = stream.read(_LENGTH.size)
    if len(start) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(start)
    if length > MAX_HEADER_BYTES:
        raise ValueError(f"a header of {length} bytes")
    header = json.loads(stream.read(length))
    if not isinstance(header, dict):
        raise ValueError("a header that is not an object")
    return header


def bands(width: int, height: int) -> Iterator[tuple[int, int]]:
    """(first row, row after the last) of each band of an RGB picture, from the top."""
    rows = max(1, BAND_BYTES // (3 * width))
    for top in range(0, height, rows):
        yield top, min(top + rows, height)


class LibraryOutput:
    """What this process and its libraries write to standard output and error: counted, bounded, and discarded.

    It goes into a pipe that nobody waits for: what does not fit is lost, and no library waits for room.
    """

    def __init__(self) -> None:
        self._end: int | None = None
        if sys.platform == "win32":
            target = os.open(os.devnull, os.O_WRONLY)
        else:
            self._end, target = os.pipe()
            os.set_blocking(self._end, False)
            os.set_blocking(target, False)
        for standard in (1, 2):
            os.dup2(target, standard)
        os.close(target)

    def lines(self) -> int:
        """How many lines were written since this was last asked; of very many, those that fitted into the pipe."""
        count = 0
        while self._end is not None:
            try:
                count += os.read(self._end, MAX_HEADER_BYTES).count(b"\n")
            except BlockingIOError:
                break
        return count


def limit_resources(memory_bytes: int) -> None:
    """Bound what this process may still allocate (on Linux); let it write no file, and leave none when it crashes (POSIX)."""
    if sys.platform == "win32":
        return
    import resource

    limits = {resource.RLIMIT_CORE: 0, resource.RLIMIT_FSIZE: 0}
    with suppress(OSError):  # where the system does not say how much is in use
        used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        limits[resource.RLIMIT_AS] = used + memory_bytes
    for kind, wanted in limits.items():
        most = resource.getrlimit(kind)[1]
        value = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
        resource.setrlimit(kind, (value, value))


def _end_after(seconds: float | None) -> None:
    """End this process if a picture takes far too long and its parent is gone; None calls that off."""
    if sys.platform != "win32":
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # which ends the process also while a decoder holds it
        signal.alarm(0 if seconds is None else int(seconds) + _GRACE_SECONDS)


def _answer(
    stream: IO[bytes], decode: Decode, data: bytes, limits: Mapping[str, float], output: LibraryOutput
) -> None:
    """Send the result for a file; MemoryError where it needs too much, and this process should end."""
    try:
        picture = decode(data, **limits)
    except ImageError as error:
        if isinstance(error.__cause__, MemoryError):
            raise error.__cause__ from None
        return send(stream, {"error": str(error), "lines": output.lines()})
    before = picture.info.get("reduced_from")
    send(stream, {"size": picture.size, "reduced_from": before, "lines": output.lines()})
    for top, bottom in bands(*picture.size):
        stream.write(picture.crop((0, top, picture.width, bottom)).tobytes())
    return stream.flush()


if __name__ == "__main__":
    main()
