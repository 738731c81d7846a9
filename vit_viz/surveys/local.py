"""The stages on one machine: photos are decoded ahead, and a batch is written when its last photo is recorded."""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from multiprocessing import connection, get_all_start_methods, get_context, parent_process
from multiprocessing.context import BaseContext
from typing import TypeVar

from vit_viz.errors import ParameterError
from vit_viz.lazy import torch
from vit_viz.progress import StopCheck, stop_if
from vit_viz.surveys.columns import Files, Tables
from vit_viz.surveys.photos import Photo
from vit_viz.surveys.recording import Recording, of_batch
from vit_viz.surveys.stages import Decoding, Failure, Shot, prepared

Batch = tuple[int, Sequence[Photo]]
"""The number of a batch, and its photos."""

Recorded = tuple[int, tuple[int, Files] | None]
"""How many photos are newly recorded, and the number and the files of the batch that is whole with them."""

Key = TypeVar("Key")
Begun = TypeVar("Begun")

AT_ONCE = {"cpu": 8}
"""Photos per forward pass: more is no faster on a CPU."""
AT_ONCE_ON_A_GPU = 64


@dataclass(frozen=True)
class Machine:
    """How one machine shares the work out; None takes what suits the device.

    Args:
        at_once: photos per forward pass.
        workers: processes that decode; 0 decodes in a thread of this one, which is fast enough beside a CPU that computes.
    """

    at_once: int | None = None
    workers: int | None = None

    def __post_init__(self) -> None:
        for name, value, least in (("at_once", self.at_once, 1), ("workers", self.workers, 0)):
            if value is not None:
                as_count(name, value, least=least)

    def on(self, device: torch.device) -> tuple[int, int]:
        """(at_once, workers) for a device."""
        usual = 0 if device.type == "cpu" else max(1, min(16, (os.cpu_count() or 1) - 1))
        return photos_per_pass(device, self.at_once), usual if self.workers is None else self.workers

    def run(
        self,
        batches: Iterable[Batch],
        decoding: Decoding,
        recording: Recording,
        *,
        cancelled: StopCheck | None = None,
    ) -> Generator[Recorded, None, None]:
        """Record batches one after the other; `cancelled` is asked between forward passes, and ends with `Cancelled`."""
        from vit_viz.surveys.parquet import encoded

        at_once, workers = self.on(recording.model.device)
        pieces = chain.from_iterable(_pieces(number, photos, at_once) for number, photos in batches)
        parts: list[Tables] = []
        for (number, is_last), count, rows in recorded_ahead(
            prepared_ahead(pieces, decoding, workers), recording, cancelled=cancelled
        ):
            parts.append(rows)
            yield count, (number, encoded(of_batch(parts))) if is_last else None
            if is_last:
                parts = []


def recorded_ahead(
    pieces: Iterable[tuple[Key, Sequence[Shot | Failure]]],
    recording: Recording,
    *,
    cancelled: StopCheck | None = None,
) -> Iterator[tuple[Key, int, Tables]]:
    """Pieces in their order, with how many photos they are and their rows; on a GPU the pass of the next one runs meanwhile."""

    def begun() -> Iterator[tuple[Key, int, Callable[[], Tables]]]:
        for key, shots in pieces:
            stop_if(cancelled)
            yield key, len(shots), recording.begun(shots)

    for key, count, rows in _ahead(begun(), 0 if recording.model.device.type == "cpu" else 1):
        yield key, count, rows()


def photos_per_pass(device: torch.device, requested: int | None) -> int:
    """How many photos go through the model together: as asked, else what suits the device."""
    return requested or AT_ONCE.get(device.type, AT_ONCE_ON_A_GPU)


def as_count(name: str, value: object, *, least: int = 1) -> int:
    """A whole number, checked."""
    if type(value) is not int or value < least:
        raise ParameterError(f"{name} is a whole number from {least}, not {value!r}.")
    return value


def _pieces(
    number: int, photos: Sequence[Photo], size: int
) -> Iterator[tuple[tuple[int, bool], Sequence[Photo]]]:
    """A batch in pieces for one forward pass each: ((number, whether it is the last), photos)."""
    for start in range(0, len(photos), size):
        yield (number, start + size >= len(photos)), photos[start : start + size]


def prepared_ahead(
    pieces: Iterator[tuple[tuple[int, bool], Sequence[Photo]]], decoding: Decoding, workers: int
) -> Iterator[tuple[tuple[int, bool], list[Shot | Failure]]]:
    """Pieces in their order, decoded while the one before is used; never more than a few wait."""
    with _decoders(workers) as decoders:
        decode = partial(prepared, decoding=decoding)
        begun = ((key, decoders.submit(decode, photos)) for key, photos in pieces)
        for key, future in _ahead(begun, max(2, 2 * workers)):
            yield key, future.result()


def _ahead(begun: Iterable[Begun], count: int) -> Iterator[Begun]:
    """Things in their order, each handed on when so many after it have begun."""
    waiting: deque[Begun] = deque()
    for one in begun:
        waiting.append(one)
        if len(waiting) > count:
            yield waiting.popleft()
    while waiting:
        yield waiting.popleft()


@contextmanager
def _decoders(workers: int) -> Iterator[Executor]:
    """What decodes; nothing of it goes on when this ends."""
    pool: Executor = (
        ProcessPoolExecutor(workers, mp_context=_fresh_processes(), initializer=_begin_worker)
        if workers
        else ThreadPoolExecutor(1, thread_name_prefix="decoder")
    )
    try:
        yield pool
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _fresh_processes() -> BaseContext:
    """Processes that know nothing of this one, its GPU and its threads; where the system can, all begin as copies of one that has
    imported torch already."""
    if "forkserver" not in get_all_start_methods():
        return get_context("spawn")
    context = get_context("forkserver")
    context.set_forkserver_preload(["__main__", __name__])
    return context


def _begin_worker() -> None:
    """A worker leaves Ctrl+C to the process that started it, and ends with it, however that ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)
    starter = parent_process()
    assert starter is not None

    def watch() -> None:
        connection.wait([starter.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
