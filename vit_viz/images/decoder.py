"""Untrusted pictures, decoded in a separate process: a file that breaks a decoder costs that process and nothing else.

`DecoderProcess.decode` has the contract of `vit_viz.images.decode`, with a bound on time and memory. The answers of the
process are not trusted either: a size, a sentence and pixels are accepted, and nothing else.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from PIL import Image

from vit_viz.errors import ImageError
from vit_viz.images.reading import (
    MAX_ASPECT,
    MAX_BYTES,
    MAX_PIXELS,
    damage_refusal,
    decode,
    memory_refusal,
    read_source,
)
from vit_viz.images.signatures import READABLE, readable_format
from vit_viz.images.worker import BAND_BYTES, EXHAUSTED, bands, receive, send
from vit_viz.progress import POLL_SECONDS, StopCheck, stop_if
from vit_viz.turns import GONE, Turns

MAX_SECONDS = 20.0
"""For one picture. The slowest that are read within the other limits take a few seconds."""

MEMORY_BYTES = 512 * 2**20
"""What the process may allocate, as the system counts it. The largest pictures that are read take 200 MB beside their file."""

PICTURES_PER_PROCESS = 200
"""Then a fresh process takes over, because libraries leak some memory with each broken file."""

_START_SECONDS = 120.0
_END_SECONDS = 2.0
_KILLED = -9  # by the system, which ran out of memory, and not by us
_CLOSED, _NOT_STARTED, _TIME, _MEMORY = "closed", "it did not start", "too much time", "too much memory"
_MAX_SENTENCE = 400  # characters
_ROOT = Path(__file__).resolve().parents[2]
_ENVIRONMENT = {  # what Python needs to find itself and its packages; nothing that is secret
    *("PATH", "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT"),
    *("PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONNOUSERSITE", "PYTHONDONTWRITEBYTECODE"),
}
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}  # NumPy's
# else each 4 KiB of a fresh picture is a page fault
_LARGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}

_log = logging.getLogger(__name__)


class DecoderProcess:
    """Decodes one picture at a time in a process that is kept and, when a picture was too much for it, replaced.

    Args:
        max_seconds: bound on the time of one picture; the process is then ended.
        memory_bytes: bound on what the process may allocate for one, on Linux.
        pictures_per_process: pictures after which a fresh process follows.
        turns: the queue for the process; by default like that of a device.
        function: MODULE:FUNCTION that the process decodes with.
    """

    def __init__(
        self,
        *,
        max_seconds: float = MAX_SECONDS,
        memory_bytes: int = MEMORY_BYTES,
        pictures_per_process: int = PICTURES_PER_PROCESS,
        turns: Turns | None = None,
        function: str = "vit_viz.images.reading:decode",
    ) -> None:
        self.max_seconds = max_seconds
        self.pictures_per_process = pictures_per_process
        self.turns = turns or Turns()
        self._arguments = (function, str(memory_bytes))
        self._lock = threading.Lock()  # of the next line
        self._process: _Process | None = None

    def decode(
        self,
        source: bytes | str | os.PathLike[str] | Image.Image,
        *,
        max_bytes: int = MAX_BYTES,
        max_pixels: int = MAX_PIXELS,
        max_aspect: float = MAX_ASPECT,
    ) -> Image.Image:
        """The picture as `vit_viz.images.decode` returns it; a PIL image is trusted and decoded here."""
        limits = {"max_bytes": max_bytes, "max_pixels": max_pixels, "max_aspect": max_aspect}
        if isinstance(source, Image.Image):
            return decode(source, max_pixels=max_pixels, max_aspect=max_aspect)
        gone = GONE.get() or (lambda: False)
        with self.turns.turn("decoder"):  # before reading, so that those who wait hold no files
            data = read_source(source, max_bytes)
            return self._decode(data, READABLE.get(readable_format(data) or "", "picture"), limits, gone)

    def start(self) -> None:
        """Start the process, if there is none, so that the first picture need not wait for it; returns at once."""
        self._running()

    @property
    def pid(self) -> int | None:
        """Number of the process; None where there is none."""
        process = self._process
        return None if process is None else process.pid

    def close(self) -> None:
        """End the process; the next picture starts another."""
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            process.end()

    def _decode(self, data: bytes, label: str, limits: Mapping[str, float], gone: StopCheck) -> Image.Image:
        process = self._running()
        try:
            answer = process.decode(data, limits, seconds=self.max_seconds, gone=gone)
        except _EndedError as ended:
            self._replace(process)
            stop_if(gone)
            reason = str(ended)
            if reason != _CLOSED:
                _log.warning("the process that decodes pictures ended at a %s: %s", label, reason)
            raise ImageError(_refusal(reason, label)) from None
        if answer.lines:
            _log.info("the libraries wrote %d lines or more about a %s", answer.lines, label)
        if process.pictures >= self.pictures_per_process:
            self._replace(process)
        if answer.picture is None:
            raise ImageError(answer.sentence)
        return answer.picture

    def _running(self) -> _Process:
        """The process, a new one where there is none or it has ended."""
        with self._lock:
            if self._process is None or not self._process.is_running():
                self._process = self._started(self._process)
            return self._process

    def _replace(self, process: _Process) -> None:
        """Replace a process by a fresh one, unless it was closed meanwhile."""
        with self._lock:
            if self._process is process:
                self._process = self._started(process)

    def _started(self, before: _Process | None) -> _Process:
        if before is not None:
            before.end()
        return _Process(self._arguments)


class _EndedError(Exception):
    """The process ended or sent an invalid answer, and cannot be used any more; the text says why."""


@dataclass(frozen=True)
class _Answer:
    """What became of a picture: the picture, or the sentence of a refusal."""

    picture: Image.Image | None
    sentence: str
    lines: int


class _Process:
    """A process with the pipes to it and from it; it ends at the latest with this object, or with this interpreter."""

    def __init__(self, arguments: tuple[str, ...]) -> None:
        environment = {name: value for name, value in os.environ.items() if name.upper() in _ENVIRONMENT}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "vit_viz.images.worker", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=_ROOT,
            env=environment | _ONE_THREAD | _LARGE_PAGES,
            start_new_session=True,  # Ctrl-C at the terminal is meant for this process, which then ends that one
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests, self._answers = self._process.stdin, self._process.stdout
        _widen(self._requests, self._answers)
        self._in_use = threading.Lock()
        self.pid = self._process.pid
        self.end = weakref.finalize(self, _end, self._process, self._in_use)
        self.pictures = 0
        self.is_ready = False
        self.took_too_long = False

    def is_running(self) -> bool:
        """Whether it can be given a picture."""
        return not self.took_too_long and self._process.poll() is None

    def decode(self, data: bytes, limits: Mapping[str, float], *, seconds: float, gone: StopCheck) -> _Answer:
        """The process's answer to a file; _EndedError where there is none within these seconds, or an invalid one.

        Args:
            gone: whether nobody waits for it any more, which ends the process, too, once it has started.
        """
        request = {"bytes": len(data), "limits": limits, "seconds": seconds}
        try:
            with self._in_use:
                if not self.is_ready:
                    with self._ended_after(_START_SECONDS):
                        self.is_ready = receive(self._answers) == {"ready": True}
                    if not self.is_ready:
                        raise EOFError
                with self._ended_after(seconds, gone):
                    send(self._requests, request, data)
                    answer = _read_answer(self._answers, int(limits["max_pixels"]))
        except (OSError, EOFError, ValueError, RecursionError) as error:
            raise _EndedError(self._reason()) from error
        self.pictures += 1
        return answer

    def _reason(self) -> str:
        if not self.end.alive:
            return _CLOSED
        if not self.is_ready:
            return _NOT_STARTED
        if self.took_too_long:
            return _TIME
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_SECONDS)
        status = self._process.returncode
        return _MEMORY if status in (EXHAUSTED, _KILLED) else f"status {status}"

    @contextmanager
    def _ended_after(self, seconds: float, gone: StopCheck = lambda: False) -> Iterator[None]:
        """End the process if the block takes longer than this; reading from it and writing to it then end, too."""
        over, deadline = threading.Event(), time.monotonic() + seconds

        def watch() -> None:
            while not over.wait(min(POLL_SECONDS, max(0.0, deadline - time.monotonic()))):
                if time.monotonic() >= deadline or gone():
                    self.took_too_long = True
                    self._process.kill()
                    return

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join()  # from here on `took_too_long` stays as it is


def _widen(*pipes: IO[bytes]) -> None:
    """Let pipes hold a whole band, so that one end works while the other does; elsewhere than on Linux they hold what they do."""
    if sys.platform == "linux":
        import fcntl

        for pipe in pipes:
            with suppress(OSError):  # the system's bound on all pipes of a user
                fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, BAND_BYTES)


def _end(process: subprocess.Popen[bytes], in_use: threading.Lock) -> None:
    """Kill a process, collect its status, and close the pipes once nobody reads them."""
    process.kill()
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:  # on a busy machine it may take the system a while; nobody waits for it
        with suppress(RuntimeError):  # Python is ending, and begins no thread any more
            threading.Thread(target=process.wait, daemon=True).start()
    with in_use:
        for pipe in (process.stdin, process.stdout):
            with suppress(OSError):  # of a request that was not sent to its end
                pipe.close()  # type: ignore[union-attr]


def _read_answer(stream: IO[bytes], max_pixels: int) -> _Answer:
    """Read an answer and check it; EOFError or ValueError where it ends too early, or is invalid."""
    header = receive(stream)
    if header is None:
        raise EOFError
    match header:
        case {"error": str() as sentence, "lines": int() as lines}:
            return _Answer(None, sentence[:_MAX_SENTENCE], lines)
        case {"size": [int() as width, int() as height], "reduced_from": before, "lines": int() as lines}:
            if not (width > 0 < height and width * height <= max_pixels):
                raise ValueError("a size outside the limits")
            picture = Image.new("RGB", (width, height), None)  # every band is drawn
            for top, bottom in bands(width, height):
                pixels = stream.read(3 * width * (bottom - top))
                picture.paste(Image.frombytes("RGB", (width, bottom - top), pixels), (0, top))
            match before:
                case [int() as rows, int() as cols]:
                    picture.info["reduced_from"] = rows, cols
            return _Answer(picture, "", lines)
    raise ValueError("neither a picture nor a refusal")


def _refusal(reason: str, label: str) -> str:
    """The sentence about a picture at which the process ended."""
    if reason in (_CLOSED, _NOT_STARTED):
        return "Pictures cannot be read at the moment; please try again in a minute."
    if reason == _TIME:
        return f"This {label} takes too long to read; please save it again with usual settings."
    return memory_refusal(label) if reason == _MEMORY else damage_refusal(label)
