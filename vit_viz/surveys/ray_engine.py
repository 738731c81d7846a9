"""The stages on a Ray cluster: photos are decoded by tasks, recorded by a pool of actors, and written here; the only door to ray.

Each row of the data set is a batch of the survey, so that nothing is regrouped, and a batch whose machine was lost is made again by
itself. The Parquet files are encoded where the batch was recorded and travel as bytes: only the process that began the survey
writes to its folder, which nobody else has to see. Ray Data restarts actors and repeats tasks, and sizes the pool.
"""

from __future__ import annotations

import logging
import os
import pickle
import platform
import re
import sys
import tempfile
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vit_viz.errors import ParameterError, VitVizError
from vit_viz.figures.record import versions
from vit_viz.lazy import extra, torch
from vit_viz.progress import StopCheck, stop_if
from vit_viz.surveys.columns import Files
from vit_viz.surveys.leftovers import Leftovers
from vit_viz.surveys.local import Batch, Recorded, as_count, photos_per_pass
from vit_viz.surveys.photos import Photo
from vit_viz.surveys.recording import Recording, of_batch
from vit_viz.surveys.stages import Decoding, Failure, Shot, prepared

PORT = 6379
"""Of a cluster's head, where the address names none; Ray's own default."""


@dataclass(frozen=True)
class RayCluster:
    """The same stages on the machines of a Ray cluster, each of which has vit_viz and sees the photos at the same paths.

    Args:
        address: of the cluster's head; "" starts a cluster of this machine alone, which ends with the survey.
        actors: copies of the model at most; None lets Ray have as many as the machines hold.
        gpus_per_actor: what each copy takes of a GPU, a share or whole ones; None is 1 where the cluster has GPUs, else 0: the CPU.
        at_once: photos per forward pass; None takes what suits the device.
    """

    address: str = ""
    actors: int | None = None
    gpus_per_actor: float | None = None
    at_once: int | None = None

    def __post_init__(self) -> None:
        for name, value in (("actors", self.actors), ("at_once", self.at_once)):
            if value is not None:
                as_count(name, value)
        share = self.gpus_per_actor
        if share is not None and not (0 <= share <= 1 or (share > 1 and share == int(share))):
            raise ParameterError(f"gpus_per_actor is a share from 0 to 1 or a whole number, not {share!r}.")

    def run(
        self,
        batches: Iterable[Batch],
        decoding: Decoding,
        recording: Recording,
        *,
        cancelled: StopCheck | None = None,
    ) -> Generator[Recorded, None, None]:
        """Record batches, whichever is ready first; see `Machine.run`. `cancelled` is asked between batches."""
        left = [_row(number, photos) for number, photos in batches]
        if not left:
            return
        with _connected(self.address) as ray:
            stop_if(cancelled)
            for outcome in self._outcomes(ray, left, decoding, recording):
                yield outcome.photos, (outcome.number, outcome.checked())
                stop_if(cancelled)

    def _outcomes(
        self, ray: Any, rows: list[dict[str, Any]], decoding: Decoding, recording: Recording
    ) -> Iterator[_Outcome]:
        """What becomes of each batch, by Ray Data."""
        gpus = self._gpus(ray.cluster_resources().get("GPU", 0))
        model = _put(ray, recording)
        pool = ray.data.ActorPoolStrategy(min_size=1, max_size=self.actors)
        with _quiet(ray.data.DataContext), _in_one_sentence(ray.exceptions.RayError):
            read = ray.data.from_items(rows, override_num_blocks=len(rows))
            decoded = read.map(_decode, fn_kwargs={"decoding": decoding}, num_cpus=1)
            recorded = decoded.map(
                _Recorder,
                fn_constructor_args=(model, bool(gpus), self.at_once),
                compute=pool,
                num_cpus=1,
                num_gpus=gpus,
            )
            for row in recorded.iter_rows():
                yield pickle.loads(row["outcome"])

    def _gpus(self, there: float) -> float:
        """What an actor takes of a GPU."""
        share = min(1.0, there) if self.gpus_per_actor is None else self.gpus_per_actor
        if not self.address and share > there:
            raise ParameterError(
                f"This machine has {there:g} GPUs; an actor that takes {share:g} never starts."
            )
        return share


@dataclass(frozen=True)
class _Outcome:
    """What became of a batch.

    Args:
        content: its files, or what stops the survey.
        missing: paths of photos that are not on the machine that read them.
        host: that machine.
        version: of vit_viz there.
    """

    number: int
    photos: int
    content: Files | VitVizError
    missing: tuple[str, ...]
    host: str
    version: str

    def checked(self) -> Files:
        """The files."""
        if self.version != _version():
            raise ParameterError(
                f"{self.host} has vit_viz {self.version}, and here is {_version()}: all machines need the same version."
            )
        unseen = next((path for path in self.missing if Path(path).is_file()), None)
        if unseen is not None:
            raise ParameterError(
                f"{self.host} does not see {unseen}: all machines of the cluster need the photos at the same path."
            )
        if isinstance(self.content, VitVizError):
            raise self.content
        return self.content


# --- what runs on other machines


def _row(number: int, photos: Iterable[Photo]) -> dict[str, Any]:
    """A batch as a row of the data set; another process has another working directory."""
    absolute = [replace(photo, path=str(Path(photo.path).absolute())) for photo in photos]
    return {"number": number, "photos": pickle.dumps(absolute)}


def _decode(row: dict[str, Any], *, decoding: Decoding) -> dict[str, Any]:
    """Read and decode the photos of a batch."""
    torch.set_num_threads(1)
    shots = prepared(pickle.loads(row["photos"]), decoding)
    failed = [shot.photo.path for shot in shots if isinstance(shot, Failure)]
    missing = tuple(path for path in failed if not Path(path).exists())
    return {
        "number": row["number"],
        "shots": pickle.dumps(shots, protocol=5),
        "read": pickle.dumps((missing, platform.node())),
    }


class _Recorder:
    """An actor: a copy of the model, which is fetched when the first batch arrives, so that what is wrong with it can be told.

    Args:
        recording: reference to what `_put` has put into the object store; every machine fetches it once.
        on_gpu: whether it computes on the GPU that Ray shows it.
        at_once: photos per forward pass; None takes what suits the device.
    """

    def __init__(self, recording: Any, on_gpu: bool, at_once: int | None) -> None:
        self._reference, self._on_gpu, self._at_once = recording, on_gpu, at_once
        self._recording: Recording | None = None

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        """A batch's outcome."""
        shots = pickle.loads(row["shots"])
        missing, host = pickle.loads(row["read"])
        try:
            content: Files | VitVizError = self._files(shots)
        except VitVizError as error:
            content = error
        outcome = _Outcome(row["number"], len(shots), content, missing, host, _version())
        return {"outcome": pickle.dumps(outcome)}

    def _files(self, shots: list[Shot | Failure]) -> Files:
        from vit_viz.surveys.parquet import encoded

        recording = self._ready()
        size = photos_per_pass(recording.model.device, self._at_once)
        pieces = [shots[start : start + size] for start in range(0, len(shots), size)]
        return encoded(of_batch([recording.rows(piece) for piece in pieces]))

    def _ready(self) -> Recording:
        """The model, where it computes."""
        if self._recording is None:
            import ray

            recording: Recording = ray.get(self._reference)
            if self._on_gpu:
                recording = replace(recording, model=recording.model.copied_to(torch.device("cuda")))
            self._recording = recording
        return self._recording


# --- Ray itself


def _put(ray: Any, recording: Recording) -> Any:
    """A reference to the model, from where every machine reads it; the weights are in memory, and may have no file."""
    model = recording.model
    if model.device.type != "cpu":
        model = model.copied_to(torch.device("cpu"))
    try:
        return ray.put(replace(recording, model=model))
    except (TypeError, AttributeError, pickle.PicklingError) as error:
        raise ParameterError(f"This model cannot be sent to other processes: {error}") from error


@contextmanager
def _connected(address: str) -> Iterator[Any]:
    """Ray, connected as long as this lasts; where the process is connected already, that is used and stays."""
    for name, value in (_SETTINGS if address else _SETTINGS | _ONLY_HERE).items():
        os.environ.setdefault(name, value)
    with extra("survey", needed_for="The engine 'ray'"):
        import ray
        import ray.data
    if ray.is_initialized():
        yield ray
        return
    leftovers = Leftovers()
    with leftovers.ended() if not address else nullcontext():
        try:
            with leftovers.marked(), _without_core_lines():
                cluster = _to_join(address) if address else _to_start()
                ray.init(**cluster, log_to_driver=False, logging_level="ERROR")
        except Exception as error:  # Ray raises that very class where its start takes too long
            line = next(iter(str(error).strip().splitlines()), type(error).__name__)
            where = address or "this machine"
            raise ParameterError(f"No Ray cluster can be reached at {where}: {line}") from error
        try:
            yield ray
        finally:
            ray.shutdown()


@contextmanager
def _without_core_lines() -> Iterator[None]:
    """Of what is written to stderr meanwhile, also by no Python, the lines by which Ray's core tells its own level are left out."""
    sys.stderr.flush()
    before = os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(before, 2)
            os.close(before)
            file.seek(0)
            others = [line for line in file if not _CORE_LINE.match(line)]
            os.write(2, b"".join(others))


_CORE_LINE = re.compile(rb"\[[^\]]*\] logging\.cc:\d+: ")


_SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing is reported
    "RAY_BACKEND_LOG_LEVEL": "fatal",  # of what Ray's core prints amid the bar
}
"""Ray reads them when it is imported, and those of its processes that are started here inherit them."""

_ONLY_HERE = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
"""As on those systems, a cluster that is started here then listens on 127.0.0.1 alone."""


def _to_join(address: str) -> dict[str, Any]:
    is_host = address != "auto" and ":" not in address
    return {"address": f"{address}:{PORT}" if is_host else address}


def _to_start() -> dict[str, Any]:
    """A cluster of this machine alone; on one core a task and an actor take turns."""
    return {"address": "local", "num_cpus": max(2, os.cpu_count() or 1), "include_dashboard": False}


@contextmanager
def _quiet(contexts: Any) -> Iterator[None]:
    """Without Ray Data's own bars and reports: the survey has a bar."""
    context, logger = contexts.get_current(), logging.getLogger("ray.data")
    before = context.enable_progress_bars, context.print_on_execution_start, logger.level
    context.enable_progress_bars = context.print_on_execution_start = False
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        context.enable_progress_bars, context.print_on_execution_start, level = before
        logger.setLevel(level)


@contextmanager
def _in_one_sentence(kind: type[Exception]) -> Iterator[None]:
    """What Ray says of an exception on another machine ends with that exception's own line."""
    try:
        yield
    except kind as error:
        raise VitVizError(f"The Ray cluster gave up: {str(error).strip().splitlines()[-1]}") from error


def _version() -> str:
    return versions()["vit_viz"]
