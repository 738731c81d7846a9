"""The one path from a request to a result, for the user interface, the command line, REST and MCP alike.

A `Session` owns the models, the traces and the uploads of one process. Traces and results live in byte-bounded caches, equal
requests compute once, one forward runs at a time per device, and whatever was evicted is computed again when it is asked for: no
caller depends on having been called before. Order of locks: single-flight, device, model.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from PIL import Image

from vit_viz import samples
from vit_viz.analyses.attention import attention_map
from vit_viz.analyses.faithfulness import RandomBand
from vit_viz.analyses.positions import position_similarity
from vit_viz.analyses.rollout import rollout
from vit_viz.analyses.subject import Subject
from vit_viz.analyses.watch import Progress, StopCheck
from vit_viz.cache import ByteCache
from vit_viz.capture import Trace, trace
from vit_viz.checkpoints import LoadedModel, load
from vit_viz.errors import Cancelled, ParameterError
from vit_viz.explaining import LONG_ANALYSES, Explanations, InTurn, Job, Trust, WithoutPatches
from vit_viz.handles import Handles
from vit_viz.images import decode, image_hash
from vit_viz.results import Curve, HeadTable, PatchMap, Ranking, TokenMatrix
from vit_viz.uploads import UploadStore

Mode = Literal["fit", "crop", "stretch"]
Result = (
    PatchMap | HeadTable | TokenMatrix | Ranking | Curve | Explanations | RandomBand | Trust | WithoutPatches
)
CACHE_BYTES = 2 * 2**30
DEFAULT_MODEL = "mini"


@dataclass(frozen=True)
class Request:
    """What is asked, completely: the cache key and, in words, the provenance of the answer.

    Args:
        model: name of a model as `load` takes it.
        image: name of a sample, or the id of an upload.
        mode: how the image becomes the model's input.
        analysis: name of the analysis, one of `Session.analyses`.
        parameters: pairs (name, value), sorted; every value hashable.
        owner: whose uploads may be read; not part of the result.
    """

    model: str
    image: str
    mode: Mode = "fit"
    analysis: str = "attention"
    parameters: tuple[tuple[str, Hashable], ...] = ()
    owner: str = ""

    @classmethod
    def of(
        cls, model: str, image: str, analysis: str, *, mode: Mode = "fit", owner: str = "", **parameters: Any
    ) -> Request:
        """Build a request from keyword parameters; lists become tuples, so that it can be a key."""
        pairs = tuple(sorted((name, _hashable(value)) for name, value in parameters.items()))
        return cls(model, image, mode, analysis, pairs, owner)


def _hashable(value: Any) -> Hashable:
    if isinstance(value, list | tuple):
        return tuple(_hashable(item) for item in value)
    if not isinstance(value, Hashable):
        raise ParameterError(f"A parameter cannot be of type {type(value).__name__}.")
    return value


class Session:
    """Models, traces and uploads of one process.

    Args:
        model: the model that is used where none is named; a name, a Hub id, or a path given by the owner of the process.
        device: "cpu", "cuda", "mps"; None takes the best that is there.
        cache_bytes: bound on traces and results; None reads VIT_VIZ_CACHE_BYTES, else 2 GiB.
    """

    def __init__(
        self, *, model: str | Path | None = None, device: str | None = None, cache_bytes: int | None = None
    ) -> None:
        self.default_model = str(model or os.environ.get("VIT_VIZ_MODEL") or DEFAULT_MODEL)
        self.device = device
        self.uploads = UploadStore()
        self.handles = Handles()
        budget = cache_bytes or _cache_bytes()
        self.cache: ByteCache[Any] = ByteCache(budget)
        self._models: ByteCache[LoadedModel] = ByteCache(max(budget, CACHE_BYTES))
        self._own: ByteCache[LoadedModel] = ByteCache(sys.maxsize)  # the owner's model stays, however large
        self._given: dict[str, LoadedModel] = {}
        self._forward = threading.Lock()

    def add_model(self, loaded: LoadedModel) -> str:
        """Offer a model that is loaded already under its own name; returns the name."""
        self._given[loaded.name] = loaded
        return loaded.name

    def model(self, name: str | None = None) -> LoadedModel:
        """The model of a name, loaded once. Only the owner of the process names files; any other name is a catalog or Hub name.

        Raises:
            CheckpointError: it cannot be loaded; the message says why.
        """
        name = name or self.default_model
        if name in self._given:
            return self._given[name]
        own = name == self.default_model
        pool = self._own if own else self._models
        return pool.get_or_compute(
            name, lambda: load(name, device=self.device, local_files=own), size_of=_model_bytes
        )

    def add_upload(self, source: bytes | Path | Image.Image, *, owner: str = "") -> str:
        """Decode and keep a user's picture; returns its random id.

        Raises:
            ImageError: the picture cannot be read, or lies outside the limits.
        """
        return self.uploads.add(decode(source), owner=owner)

    def image(self, name: str, *, owner: str = "") -> Image.Image:
        """The upright RGB picture of a sample's name or an upload's id."""
        return self._image(name, owner)[0]

    def trace(self, model: str | None, image: str, *, mode: Mode = "fit", owner: str = "") -> Trace:
        """The recorded forward pass of an image through a model; one forward per (model, image, mode).

        Raises:
            CheckpointError, ImageError, CaptureError, ParameterError: as the steps say.
        """
        if mode not in get_args(Mode):
            raise ParameterError(f"A mode is one of {', '.join(get_args(Mode))}, not {mode!r}.")
        loaded = self.model(model)
        picture, digest = self._image(image, owner)
        key = ("trace", loaded.provenance.weights, loaded.name, digest, mode)

        def record() -> Trace:
            with self._forward:
                return trace(loaded, picture, mode=mode, keep_values=True)

        recorded: Trace = self.cache.get_or_compute(key, record, size_of=lambda t: t.nbytes)
        return recorded

    def subject(self, model: str | None, image: str, *, mode: Mode = "fit", owner: str = "") -> Subject:
        """The image as the model receives it, for what runs the model again; every forward of it waits for its turn.

        Raises:
            CheckpointError, ImageError, ParameterError: as the steps say.
        """
        loaded = self.model(model)
        picture, digest = self._image(image, owner)
        key = ("subject", loaded.provenance.weights, loaded.name, digest, mode)

        def prepare() -> Subject:
            subject = InTurn.of(loaded, picture, mode=mode)
            assert isinstance(subject, InTurn)
            return replace(subject, turn=self._forward)

        prepared: Subject = self.cache.get_or_compute(key, prepare, size_of=lambda s: 4 * s.pixels.numel())
        return prepared

    def run(
        self, request: Request, *, progress: Progress | None = None, cancelled: StopCheck | None = None
    ) -> Result:
        """The result of a request: kept, awaited, or computed now.

        Args:
            progress: told the share that is done, where it is computed now and takes long.
            cancelled: asked now and then; True ends a long computation with `Cancelled`.

        Raises:
            ParameterError: the analysis is unknown, or a parameter is outside what is possible.
            Cancelled: `cancelled` said so.
            VitVizError: whatever the model, the image or the analysis says.
        """
        if request.analysis not in ANALYSES and request.analysis not in LONG_ANALYSES:
            known = ", ".join([*ANALYSES, *LONG_ANALYSES])
            raise ParameterError(f"There is no analysis {request.analysis!r}; there are: {known}.")
        key = self._key(request)

        def compute() -> Result:
            if request.analysis in ANALYSES:
                return ANALYSES[request.analysis](self, request, dict(request.parameters))
            made: Result = LONG_ANALYSES[request.analysis](self._job(request, progress, cancelled))
            return made

        while True:
            try:
                result: Result = self.cache.get_or_compute(key, compute, size_of=_result_bytes)
            except Cancelled:
                if cancelled is not None and cancelled():
                    raise
                continue  # somebody else ended the computation that we waited for: it is ours now
            return result

    def keeps(self, request: Request) -> bool:
        """Whether the result of a request is at hand, so that `run` need not compute it."""
        return self.cache.peek(self._key(request)) is not None

    def _key(self, request: Request) -> Hashable:
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
            subject=self.subject(request.model, request.image, mode=request.mode, owner=request.owner),
            labels=self.model(request.model).labels,
            parameters=dict(request.parameters),
            part=part,
            intact=lambda: _trace_of(self, request).logits,
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


def _cache_bytes() -> int:
    text = os.environ.get("VIT_VIZ_CACHE_BYTES", str(CACHE_BYTES))
    if not (text.isascii() and text.isdigit() and int(text)):
        raise ParameterError(
            f"VIT_VIZ_CACHE_BYTES is a number of bytes such as {CACHE_BYTES}, not {text[:40]!r}."
        )
    return int(text)


def _model_bytes(loaded: LoadedModel) -> int:
    return sum(p.numel() * p.element_size() for p in loaded.model.parameters())


def _result_bytes(result: Result) -> int:
    return 4096 + _array_bytes(result)


def _array_bytes(value: object) -> int:
    """Bytes of all arrays in a value, its fields and its entries."""
    if isinstance(value, np.ndarray):
        return int(value.nbytes)
    if isinstance(value, Mapping):
        return sum(_array_bytes(part) for part in value.values())
    if is_dataclass(value):
        return sum(_array_bytes(getattr(value, field.name)) for field in fields(value))
    return sum(_array_bytes(part) for part in value) if isinstance(value, tuple) else 0


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
