"""The one path from a request to a result, for the user interface, the command line, REST and MCP alike.

A `Session` owns the models, the traces and the uploads of one process. Traces and results live in byte-bounded caches, equal
requests compute once, one batch runs at a time per device (vit_viz.turns), and whatever was evicted is computed again when it is
asked for: no caller depends on having been called before. Order of locks: single-flight, device, model. Nothing that is kept holds
on to a model, so a model that was evicted is gone.
"""

from __future__ import annotations

import copy
import logging
import sys
from collections.abc import Callable, Hashable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any, TypeVar

import torch
from PIL import Image
from torch import nn

from vit_viz import samples
from vit_viz.analyses.attention import attention_map
from vit_viz.analyses.positions import position_similarity
from vit_viz.analyses.rollout import rollout
from vit_viz.analyses.subject import Subject
from vit_viz.analyses.watch import Progress
from vit_viz.cache import ByteCache, bytes_from_environment
from vit_viz.capture import Trace, trace
from vit_viz.capture.buffers import IDLE_BYTES, BufferPool
from vit_viz.checkpoints import LoadedModel, load
from vit_viz.checkpoints.catalog import default_model
from vit_viz.checkpoints.source import Progress as Fetched
from vit_viz.devices import Lender, Notice, anywhere, copied_to_cpu
from vit_viz.errors import ParameterError
from vit_viz.explaining import LONG_ANALYSES, Job, is_slow
from vit_viz.handles import Handles
from vit_viz.images import Mode, decode, image_hash
from vit_viz.request import Request, Result, check_mode, is_about, model_bytes, result_bytes, trace_bytes
from vit_viz.results import Ranking
from vit_viz.turns import LONGEST_SECONDS, SLOW_WAIT_SECONDS, StopCheck, Turns, Visits, stop_if, within
from vit_viz.uploads import LEFT_SECONDS, UploadStore

T = TypeVar("T")
CACHE_BYTES = 2 * 2**30
_COPY = "a copy of a model"  # of which there is one at a time, as of a device's turns


class Session:
    """Models, traces and uploads of one process.

    Args:
        model: the model that is used where none is named; a name, a Hub id, or a path given by the owner of the process.
        device: "cpu", "cuda", "mps"; None takes the best that is there.
        cache_bytes: bound on traces, results and the memory that waits for the next trace; None: VIT_VIZ_CACHE_BYTES, or 2 GiB.
        lender: lends a GPU for what is worth one; `device` is then the CPU.
    """

    def __init__(
        self,
        *,
        model: str | Path | None = None,
        device: str | None = None,
        cache_bytes: int | None = None,
        lender: Lender | None = None,
    ) -> None:
        self.default_model = str(model or default_model())
        self.device = device if lender is None else "cpu"
        self.lender = lender
        self.notice: Notice = logging.getLogger(__name__).warning
        self.turns = Turns()
        self._slow = Turns(max_waiting=8, max_seconds=SLOW_WAIT_SECONDS)  # by visitor
        self.uploads = UploadStore(on_gone=self._forget_picture)
        self.handles = Handles()
        self._visits = Visits()
        budget = cache_bytes or bytes_from_environment("VIT_VIZ_CACHE_BYTES", CACHE_BYTES)
        idle = min(IDLE_BYTES, budget // 8)
        self.cache: ByteCache[Any] = ByteCache(budget - idle)
        self._pool = BufferPool(max_idle_bytes=idle)
        self._models: ByteCache[LoadedModel] = ByteCache(max(budget, CACHE_BYTES))
        self._own: ByteCache[LoadedModel] = ByteCache(sys.maxsize)  # the owner's model stays, however large
        self._given: dict[str, LoadedModel] = {}
        self._fetched: dict[str, tuple[int, int]] = {}  # of models that are being loaded

    def add_model(self, loaded: LoadedModel) -> str:
        """Offer a model that is loaded already under its own name; returns the name."""
        self._given[loaded.name] = loaded
        return loaded.name

    def model(
        self,
        name: str | None = None,
        *,
        progress: Fetched | None = None,
        cancelled: StopCheck | None = None,
    ) -> LoadedModel:
        """The model of a name, loaded once. Only the owner of the process names files; any other name is a catalog or Hub name.

        Args:
            progress: told (bytes fetched, bytes in all) of a download, also of one that somebody else began.
            cancelled: asked meanwhile; True ends the waiting, and the download where it is ours.

        Raises:
            CheckpointError: it cannot be loaded; the message says why.
            Cancelled: `cancelled` said so.
        """
        name = name or self.default_model
        if name in self._given:
            return self._given[name]
        own = name == self.default_model
        pool = self._own if own else self._models

        def waits() -> bool:
            if progress is not None and name in self._fetched:
                progress(*self._fetched[name])
            return cancelled is not None and cancelled()

        def fetched(done: int, total: int) -> None:
            self._fetched[name] = done, total
            stop_if(waits)

        def fetch() -> LoadedModel:
            try:
                return self._load(name, local_files=own, progress=fetched)
            finally:
                self._fetched.pop(name, None)

        return pool.get_or_compute(name, fetch, size_of=model_bytes, cancelled=waits)

    def _load(self, name: str, *, local_files: bool, progress: Fetched) -> LoadedModel:
        """The model on this session's device; on the CPU where that has no room for it."""

        def on(device: str | None) -> LoadedModel:
            return load(name, device=device, local_files=local_files, progress=progress)

        cpu = None if self.device == "cpu" else partial(on, "cpu")
        return anywhere(None, lambda: on(self.device), cpu, notice=self.notice)

    def has_model(self, name: str | None = None) -> bool:
        """Whether a model is loaded, so that `model` returns at once."""
        name = name or self.default_model
        pool = self._own if name == self.default_model else self._models
        return name in self._given or pool.peek(name) is not None

    def add_upload(self, source: bytes | Path | Image.Image, *, owner: str = "") -> str:
        """Decode and keep a user's picture; returns its random id.

        Raises:
            ImageError: the picture cannot be read, or lies outside the limits.
        """
        return self.uploads.add(decode(source), owner=owner)

    def image(self, name: str, *, owner: str = "") -> Image.Image:
        """The upright RGB picture of a sample's name or an upload's id."""
        return self._image(name, owner)[0]

    def leave(self, owner: str) -> None:
        """End what is computed for a visitor who left; the pictures stay a while, in case the visitor comes back."""
        self._visits.end(owner)
        self.uploads.forget(owner, after=LEFT_SECONDS)

    def turn(self, loaded: LoadedModel, cancelled: StopCheck | None = None) -> AbstractContextManager[None]:
        """A turn at a model's device, for one batch; see `Turns.turn`."""
        return self.turns.turn((loaded.device.type, loaded.device.index or 0), cancelled=cancelled)

    def trace(self, model: str | None, image: str, *, mode: Mode = "fit", owner: str = "") -> Trace:
        """The recorded forward pass of an image through a model; one forward per (model, image, mode).

        Raises:
            CheckpointError, ImageError, CaptureError, ParameterError: as the steps say.
            BusyError: too many wait for the device.
            Cancelled: the visitor left before it began.
        """
        loaded = self.model(model)
        check_mode(loaded, mode)
        picture, digest = self._image(image, owner)
        left = self._visits.check(owner)
        key = ("trace", loaded.provenance.weights, loaded.name, digest, mode)

        def here() -> Trace:
            with self.turn(loaded, left):
                return trace(loaded, picture, mode=mode, keep_values=True, pool=self._pool)

        request = Request(model or self.default_model, image, mode, "trace", owner=owner)

        def record() -> Trace:
            return self._anywhere(request, here, lambda cpu: cpu.trace(model, image, mode=mode, owner=owner))

        return self.kept(key, record, image, digest, size_of=trace_bytes, cancelled=left)

    def subject(
        self,
        model: str | None,
        image: str,
        *,
        mode: Mode = "fit",
        owner: str = "",
        cancelled: StopCheck | None = None,
    ) -> Subject:
        """The image as the model receives it, for what runs the model again; every batch of it waits for its turn.

        Args:
            cancelled: asked while it waits.

        Raises:
            CheckpointError, ImageError, ParameterError: as the steps say.
        """
        loaded = self.model(model)
        picture, digest = self._image(image, owner)
        key = ("subject", loaded.provenance.weights, loaded.name, digest, mode)

        def prepare() -> Subject:
            layout = self.trace(model, image, mode=mode, owner=owner).layout
            subject = Subject.of(loaded, picture, mode=mode, layout=layout)
            return replace(subject, model=nn.Identity())  # kept without the model

        kept = self.kept(key, prepare, image, digest, size_of=lambda s: s.pixels.nbytes)
        return replace(kept, model=loaded.model, pool=self._pool, turn=lambda: self.turn(loaded, cancelled))

    def run(
        self, request: Request, *, progress: Progress | None = None, cancelled: StopCheck | None = None
    ) -> Result:
        """The result of a request: kept, awaited, or computed now.

        Args:
            progress: told the share that is done, where it is computed now and takes long.
            cancelled: asked now and then; True ends a long computation with `Cancelled`, as do the time limit and leaving.

        Raises:
            ParameterError: the analysis is unknown, or a parameter is outside what is possible.
            BusyError: too many wait for the device.
            Cancelled: `cancelled` said so, it took longer than `LONGEST_SECONDS`, or the visitor left.
            VitVizError: whatever the model, the image or the analysis says.
        """
        if request.analysis not in ANALYSES and request.analysis not in LONG_ANALYSES:
            known = ", ".join([*ANALYSES, *LONG_ANALYSES])
            raise ParameterError(f"There is no analysis {request.analysis!r}; there are: {known}.")
        key = self._key(request)

        def here() -> Result:
            made: Result = LONG_ANALYSES[request.analysis](self._job(request, progress, ends))
            return made

        def compute() -> Result:
            if request.analysis in ANALYSES:
                return ANALYSES[request.analysis](self, request, dict(request.parameters))
            return self._anywhere(
                request, here, lambda cpu: cpu.run(request, progress=progress, cancelled=ends)
            )

        with self._one_slow_at_a_time(request, key, cancelled):
            ends = within(LONGEST_SECONDS, cancelled, self._visits.check(request.owner))
            result: Result = self.kept(
                key, compute, request.image, key[0].image, size_of=result_bytes, cancelled=ends
            )
        return result

    def kept(self, key: Hashable, compute: Callable[[], T], image: str, digest: str, **options: Any) -> T:
        """What is kept or computed under a key that holds the image's digest; not kept where the picture has gone meanwhile."""
        value: T = self.cache.get_or_compute(key, compute, **options)
        if image not in samples.sample_names() and not self.uploads.holds(digest):
            self._forget_picture(digest)
        return value

    def _one_slow_at_a_time(
        self, request: Request, key: Hashable, cancelled: StopCheck | None
    ) -> AbstractContextManager[None]:
        """Let slow answers to one visitor wait for each other, so that nobody has more than a share of the device."""
        is_quick = not is_slow(request.analysis, dict(request.parameters))
        if is_quick or not request.owner or self.cache.peek(key) is not None:
            return nullcontext()
        left = self._visits.check(request.owner)
        return self._slow.turn(request.owner, cancelled=within(SLOW_WAIT_SECONDS, cancelled, left))

    def _anywhere(self, request: Request, here: Callable[[], T], on_cpu: Callable[[Session], T]) -> T:
        """What `here` computes: on a GPU that is lent, on this session's device, or `on_cpu` where that has no room."""
        lender, cpu = self.lender, self.on_cpu

        def lent(lender: Lender) -> T | None:
            loaded, picture = self.model(request.model), self._image(request.image, request.owner)[0]
            found: T | None = lender.compute(request, loaded, picture, own_model=self.default_model)
            return found

        return anywhere(
            None if lender is None or request.model in self._given else partial(lent, lender),
            here,
            None if cpu is None else partial(on_cpu, cpu),
            notice=self.notice,
        )

    @cached_property
    def on_cpu(self) -> Session | None:
        """This session once more, on the CPU, for what its GPU has no room for; None where it is on the CPU anyway."""
        if self.device == "cpu":
            return None
        twin = copy.copy(self)  # the same pictures, turns and limits; models and results of its own
        twin.device = "cpu"
        twin.cache = ByteCache(self.cache.max_bytes)
        twin._models, twin._own = ByteCache(self._models.max_bytes), ByteCache(sys.maxsize)
        twin._given = {name: copied_to_cpu(loaded) for name, loaded in self._given.items()}
        return twin

    def keeps(self, request: Request) -> bool:
        """Whether the result of a request is at hand, so that `run` need not compute it."""
        return self.cache.peek(self._key(request)) is not None

    def _key(self, request: Request) -> tuple[Request, str]:
        """Under which a result is kept: the same for everyone who asks the same of the same picture and the same weights."""
        digest = self._image(request.image, request.owner)[1]
        return replace(request, image=digest, owner=""), self.model(request.model).provenance.weights

    def _job(self, request: Request, progress: Progress | None, cancelled: StopCheck | None) -> Job:
        """What a long analysis needs to know of its request."""

        def part(analysis: str, **parameters: Any) -> Result:
            pairs = Request.of("", "", "", **parameters).parameters
            another = replace(request, analysis=analysis, parameters=pairs)
            return self.run(another, progress=progress, cancelled=cancelled)

        return Job(
            subject=self.subject(
                request.model, request.image, mode=request.mode, owner=request.owner, cancelled=cancelled
            ),
            labels=self.model(request.model).labels,
            parameters=dict(request.parameters),
            part=part,
            intact=lambda: _trace_of(self, request).logits,
            alone=lambda: self.turns.turn(_COPY, cancelled=cancelled),
            progress=progress,
            cancelled=cancelled,
        )

    def top_classes(
        self, model: str | None, image: str, *, mode: Mode = "fit", owner: str = "", count: int = 5
    ) -> Ranking | None:
        """The most probable classes with their probability, or None where the model has no head."""
        logits = self.trace(model, image, mode=mode, owner=owner).logits
        loaded = self.model(model)
        if logits is None or not loaded.has_classes:
            return None
        scores, indices = torch.softmax(logits.float(), dim=-1).topk(min(count, logits.numel()))
        names = tuple(loaded.labels.name(int(i)) if loaded.labels else f"class {int(i)}" for i in indices)
        return Ranking(
            names,
            scores.cpu().numpy(),
            "probability",
            "top classes",
            loaded.provenance,
            tuple(int(i) for i in indices),
        )

    def digest(self, name: str, *, owner: str = "") -> str:
        """The identity of a picture's pixels. What is kept of a picture has it in its key, and goes when its last upload goes."""
        return self._image(name, owner)[1]

    def _forget_picture(self, digest: str) -> None:
        for session in (self, self.__dict__.get("on_cpu")):  # not made only for this
            if session is not None:
                session.cache.evict(lambda key: is_about(key, digest))

    def _image(self, name: str, owner: str) -> tuple[Image.Image, str]:
        if name in samples.sample_names():
            return _sample(name)
        stored = self.uploads.get(name, owner=owner)
        return stored.image, stored.digest


@lru_cache(maxsize=32)
def _sample(name: str) -> tuple[Image.Image, str]:
    """A sample with its hash; both are asked for again at every drawing."""
    picture = samples.sample(name)
    return picture, image_hash(picture)


def _attention(session: Session, request: Request, parameters: Mapping[str, Any]) -> Result:
    return attention_map(_trace_of(session, request), **parameters)


def _rollout(session: Session, request: Request, parameters: Mapping[str, Any]) -> Result:
    return rollout(_trace_of(session, request), **parameters)


def _positions(session: Session, request: Request, parameters: Mapping[str, Any]) -> Result:
    return position_similarity(session.model(request.model), **parameters)


def _trace_of(session: Session, request: Request) -> Trace:
    return session.trace(request.model, request.image, mode=request.mode, owner=request.owner)


ANALYSES: dict[str, Callable[[Session, Request, Mapping[str, Any]], Result]] = {
    "attention": _attention,
    "rollout": _rollout,
    "positions": _positions,
}

__all__ = ["ANALYSES", "Mode", "Request", "Result", "Session"]
