"""Models, traces and results of one device, and the one path from a request to its answer there.

Traces and results live in one byte-bounded cache, equal requests compute once, one batch runs at a time (vit_viz.turns), and
whatever was evicted is computed again when it is asked for: no caller depends on having been called before. Order of locks:
single-flight, device, model. Nothing that is kept holds on to a model, so a model that was evicted is gone.
"""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, Protocol, TypeVar
from weakref import WeakKeyDictionary

from cachetools import LRUCache
from PIL import Image

from vit_viz.analyses.classes import answers_classes
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.analyses.registry import PARTS, QUESTIONS
from vit_viz.analyses.spec import SECOND, AnyQuestion, Job, Part
from vit_viz.analyses.targets import function_of
from vit_viz.analyses.value_paths import patch_embedding
from vit_viz.capture import Trace, innermost_edit, trace, with_edits
from vit_viz.capture.buffers import IDLE_BYTES, BufferPool
from vit_viz.capture.forward import answer_of, undisturbed
from vit_viz.capture.interventions import Edits
from vit_viz.capture.state import writes_to
from vit_viz.capture.structure_check import StructureCheck
from vit_viz.checkpoints import LoadedModel, Model
from vit_viz.errors import ParameterError
from vit_viz.geometry import CropBox
from vit_viz.images.part import cut, part_words
from vit_viz.lazy import Tensor, nn, torch
from vit_viz.model import SentenceHead, VisionTransformer
from vit_viz.progress import Progress, StopCheck, part_of
from vit_viz.prompts import NO_PROMPTS
from vit_viz.session.cache import ByteCache
from vit_viz.session.edits import NO_EDITS
from vit_viz.session.models import MODEL_BYTES, ModelPool, Pace
from vit_viz.session.request import Request, Subject, check_input, is_about
from vit_viz.session.serialization import answer_bytes
from vit_viz.session.uploads import UPLOAD
from vit_viz.turns import Turns

T = TypeVar("T")
_COPY = "a copy of a model"  # of which there is one at a time, as of a device's turns


def _by_the_engine(_job: Any) -> Any:
    raise AssertionError("an engine records this itself")


TRACE: Part[Any] = Part(name="trace", run=_by_the_engine, reads="photo", forwards=1)
TOKEN_TRACE: Part[Any] = Part(name="token trace", run=_by_the_engine, reads="photo")
_PARTS = PARTS | {part.name: part for part in (TRACE, TOKEN_TRACE)}


def computed(request: Request) -> AnyQuestion | Part[Any]:
    """What a request asks for."""
    name = request.question
    return QUESTIONS.named(name) if name not in _PARTS else _PARTS[name]


class PictureSource(Protocol):
    """Who knows the pictures that requests name."""

    def picture(self, name: str, *, owner: str) -> tuple[Image.Image, str]:
        """The upright RGB picture of a name, and the digest of its pixels."""

    def pixels(self, name: str, *, owner: str) -> Tensor | None:
        """The pixels that a model is given in the place of a picture; None where it is given the picture."""

    def is_held(self, name: str, digest: str) -> bool:
        """Whether what was computed of a picture may still be kept."""

    @property
    def max_patches(self) -> int:
        """Of a size that is chosen."""


_MOST_PROMPTS = 16
"""Sets of sentences whose model is kept, of each model."""


class Engine:
    """What one device computes and keeps.

    Args:
        device: "cpu", "cuda", "mps"; None takes the best that is there.
        own_model: the model that the owner of the process named, perhaps by a path.
        pictures: who knows the pictures that requests name.
        turns: at this device, and at any other that a given model is on.
        cache_bytes: bound on traces, results and the memory that waits for the next trace.
    """

    def __init__(
        self, device: str | None, *, own_model: str, pictures: PictureSource, turns: Turns, cache_bytes: int
    ) -> None:
        idle = min(IDLE_BYTES, cache_bytes // 8)
        self.device = device
        self.models = ModelPool(device, own_model=own_model, max_bytes=max(cache_bytes, MODEL_BYTES))
        self.turns = turns
        self.pace = Pace()
        self.cache: ByteCache[Any] = ByteCache(cache_bytes - idle)
        self._hearers: dict[object, tuple[Hashable, Progress]] = {}  # of passes, each under a key of its own
        self.pool = BufferPool(max_idle_bytes=idle)
        self._pictures = pictures
        self._asked: WeakKeyDictionary[Model, LRUCache[Hashable, Model]] = WeakKeyDictionary()
        self._asking = threading.Lock()

    def run(
        self,
        request: Request,
        *,
        progress: Progress | None = None,
        cancelled: StopCheck | None = None,
        preview: Callable[[Any], None] | None = None,
        elsewhere: Callable[[Request], Any] | None = None,
    ) -> Any:
        """The answer to a request, as `Session.run` has it.

        Args:
            elsewhere: computes a request in place of this device; what comes back is kept here.
        """
        computed(request)  # which refuses what there is not
        subject = request.subject
        if request is not (passed := _unscored(request)):
            return self._scored(
                request, self.run(passed, progress=progress, cancelled=cancelled, elsewhere=elsewhere)
            )
        if subject.image:  # too large a one is refused before anything is computed, here or elsewhere
            whole = self._pictures.picture(subject.image, owner=request.owner)[0]
            size = (whole.height, whole.width)
            check_input(self._model(request), subject, size, max_patches=self._pictures.max_patches)
        compute = partial(self._compute, request, progress, cancelled, preview)
        if elsewhere is not None:
            compute = partial(elsewhere, request)
        with self._hearing(request, progress):
            answer = self._kept(request, compute, answer_bytes, cancelled)
        if isinstance(answer, Trace):
            answer.check_not_refused()
        return answer

    def trace(self, request: Request, *, cancelled: StopCheck | None = None) -> Trace:
        """The recorded forward pass that a request is about; as `run`."""
        recorded = self.run(request.about("trace"), cancelled=cancelled)
        assert isinstance(recorded, Trace)
        return recorded

    def checked_trace(
        self, request: Request, *, cancelled: StopCheck | None = None, residual: bool = False
    ) -> Trace:
        """The same once it is known that its pictures do not mislead; every pass of a check waits for its turn.

        Args:
            residual: of the pass that kept the residual stream.
        """
        recorded = self.run(request.about("token trace" if residual else "trace"), cancelled=cancelled)
        assert isinstance(recorded, Trace)
        if isinstance(recorded.known, StructureCheck):
            device = recorded.known.device.type, recorded.known.device.index or 0
            turn = partial(self.turns.turn, device, cancelled=cancelled)
            recorded.known = recorded.known.result(turn=turn, cancelled=cancelled)
        return recorded

    def prepared(
        self, request: Request, *, cancelled: StopCheck | None = None, is_quick: bool = False
    ) -> PreparedImage:
        """The image as the model receives it; as `Session.prepared`."""
        loaded = self._model(request)

        def prepare() -> PreparedImage:
            recorded = self.trace(request, cancelled=cancelled)
            how = self._input_options(request) | {"has_classes": answers_classes(loaded, recorded) or None}
            how |= {"layout": recorded.layout, "place": recorded.place}
            prepared = PreparedImage.of(loaded, self._model_input(request), **how)
            # kept without the model
            return replace(
                prepared, model=nn.Identity(), provenance=recorded.provenance, crop_box=recorded.crop_box
            )

        kept = self._kept(
            request.about("prepared image"), prepare, lambda one: int(one.pixels.nbytes), cancelled
        )
        edits = self._edits(request, cancelled)
        turn = partial(self.turn, loaded, edits=edits, cancelled=cancelled, is_quick=is_quick)
        return replace(kept, model=loaded.model, pool=self.pool, turn=turn)

    def pass_seconds(self, request: Request) -> float:
        """About how long one pass takes for what a request is about; as `Session.pass_seconds`."""
        image = self.prepared(request, is_quick=True)

        def measure() -> float:
            pixels, device, taken = image.pixels.to(image.dtype), image.pixels.device, list[float]()
            with image.turn(), undisturbed(image.model), torch.no_grad():
                while len(taken) < 3 and sum(taken) < 0.1:  # what runs beside it can only slow a pass down
                    started = time.perf_counter()
                    answer_of(image.model, pixels)
                    if device.type != "cpu":
                        torch.accelerator.synchronize(device)
                    taken.append(time.perf_counter() - started)
            return min(taken)

        return self.pace.seconds(image.provenance.weights, image.layout.num_tokens, measure)

    @contextmanager
    def turn(self, loaded: Model, *, edits: Edits | None = None, **options: Any) -> Iterator[None]:
        """A turn at a model's device, for one batch, with edits of the model around all that runs of it; see `Turns.turn`."""
        device = loaded.device.type, loaded.device.index or 0
        changed = nullcontext() if edits is None else with_edits(edits, loaded.model)
        with self.turns.turn(device, **options), changed:
            yield

    def keeps(self, request: Request) -> bool:
        """Whether the answer to a request is at hand."""
        if not self.models.has(request.subject.model):
            return False
        return self._store.peek(self._key(_unscored(request))) is not None

    def keep(self, key: Hashable, compute: Callable[[], T], digests: Mapping[str, str], **options: Any) -> T:
        """What is kept or computed under a key that holds the digests of pictures; not kept where one has gone meanwhile."""
        value: T = self._store.get_or_compute(key, compute, **options)
        for name, digest in digests.items():
            if name and not self._pictures.is_held(name, digest):
                self.forget(digest)
        return value

    def forget(self, digest: str) -> None:
        """Drop everything that was made from a picture."""
        for store in {self.cache, self._store}:
            store.evict(lambda key: is_about(key, digest))
        with self._asking:
            for kept in self._asked.values():
                for key in [one for one in kept if is_about(one, digest)]:
                    del kept[key]

    @property
    def _store(self) -> ByteCache[Any]:
        """Where answers are kept: inside `vit_viz.edit`, which changes them, only as long as it lasts."""
        surrounding = innermost_edit()
        if surrounding is None:
            return self.cache
        store: ByteCache[Any] = surrounding.kept.setdefault(self, ByteCache(self.cache.max_bytes))
        return store

    def _kept(
        self,
        request: Request,
        compute: Callable[[], T],
        size_of: Callable[[T], int],
        cancelled: StopCheck | None,
    ) -> T:
        key, module, was_written_to = self._key(request), self._model(request).model, False

        def watched() -> T:
            nonlocal was_written_to
            before = writes_to(module)
            value = compute()
            was_written_to = writes_to(module) != before
            return value

        value = self.keep(key, watched, self._digests(request), size_of=size_of, cancelled=cancelled)
        if was_written_to:  # by a thread that trains it: this is no answer of the weights in the key
            self._store.evict(lambda kept: kept == key)
        return value

    def _key(self, request: Request) -> tuple[Request, str, str, int, tuple[str, ...]]:
        """Under which an answer is kept: the same for everyone who asks the same of the same pictures and the model as it is.

        But what was computed of one visitor's picture answers no other: how soon it came would tell that somebody has brought it.
        """
        digests = self._digests(request)
        return (
            request.of_picture(digests[request.subject.image]),
            request.owner if any(map(UPLOAD.fullmatch, digests)) else "",
            self._model(request).provenance.weights,
            self.models.make_up(request.subject.model),
            tuple(digests.values()),
        )

    def _digests(self, request: Request) -> dict[str, str]:
        """By name the digests of all pictures that a request is about."""
        second = str(dict(request.parameters).get(SECOND, ""))
        named = (name for name, _ in request.subject.prompts.pictures.values())
        names = [request.subject.image, *(name for name in (second, *named) if name)]
        return {name: self._pictures.picture(name, owner=request.owner)[1] if name else "" for name in names}

    def _compute(
        self,
        request: Request,
        progress: Progress | None,
        cancelled: StopCheck | None,
        preview: Callable[[Any], None] | None,
    ) -> Any:
        if request.question in (TRACE.name, TOKEN_TRACE.name):
            return self._record(request, cancelled, keep_residual=request.question == TOKEN_TRACE.name)
        job = self._job(request, progress, cancelled)
        return computed(request).answer(replace(job, preview=preview))

    def _edits(self, request: Request, cancelled: StopCheck | None) -> Edits | None:
        """The edits of a request as passes of its model are changed by them; None for none.

        Which layers, heads and tokens there are is asked of the model as it was.
        """
        subject = request.subject
        if not subject.edits:
            return None

        def work_out() -> Edits:
            plain = replace(request, subject=replace(subject, edits=NO_EDITS))
            return subject.edits.of(self.trace(plain, cancelled=cancelled))

        return self._kept(request.about("edits"), work_out, lambda edits: edits.nbytes, cancelled)

    def _scored(self, request: Request, passed: Trace) -> Trace:
        """A pass of the model with sentences: that of the model itself, and what they make of the embedding that came out."""
        loaded, scored = self._model(request), copy.copy(passed)
        assert isinstance(loaded.model, VisionTransformer)
        assert isinstance(loaded.model.head, SentenceHead)
        assert passed.logits is not None
        scored.logits = loaded.model.head.scores(passed.logits)
        scored.provenance = passed.provenance.with_parameters(**request.subject.prompts.parameters)
        return scored

    def _record(self, request: Request, cancelled: StopCheck | None, *, keep_residual: bool) -> Trace:
        loaded, picture = self._model(request), self._model_input(request)
        turn = partial(
            self.turn, loaded, edits=self._edits(request, cancelled), cancelled=cancelled, is_quick=True
        )
        with turn():
            recorded = trace(
                loaded,
                picture,
                keep_norms=True,
                keep_residual=keep_residual,
                pool=self.pool,
                progress=partial(self._tell, self._key(request)),
                cancelled=cancelled,
                **self._input_options(request),
            )
        recorded.let_model_go()
        part, edits = request.subject.part, request.subject.edits
        provenance = recorded.provenance.with_parameters(edits=edits) if edits else recorded.provenance
        if isinstance(picture, Tensor):
            digest, (height, width) = self._digest(request), picture.shape[-2:]
            recorded.crop_box = CropBox((height, width), (height, width), (0, 0, height, width))
            provenance = replace(
                provenance, image=digest, preprocess=f"pixels {list(picture.shape)} as given"
            )
        if part is not None:  # the whole photo, and which part of it
            digest = self._digest(request)
            preprocess = f"{part_words(part)}; {provenance.preprocess}"
            provenance = replace(provenance, image=digest, preprocess=preprocess)
        recorded.provenance = provenance
        return recorded

    @contextmanager
    def _hearing(self, request: Request, progress: Progress | None) -> Iterator[None]:
        """Let `progress` hear of the pass that a request is about, whoever has it computed."""
        if progress is None or request.question not in (TRACE.name, TOKEN_TRACE.name):
            yield
            return
        mine = object()
        self._hearers[mine] = self._key(request), progress
        try:
            yield
        finally:
            del self._hearers[mine]

    def _tell(self, key: Hashable, share: float) -> None:
        for about, progress in tuple(self._hearers.values()):
            if about == key:
                progress(share)

    def _job(self, request: Request, progress: Progress | None, cancelled: StopCheck | None) -> Job:
        """A request as the function of its question sees it."""
        is_quick = not computed(request).is_slow_with(dict(request.parameters))

        def answer_of(name: str, *, share: tuple[float, float] = (0.0, 1.0), **parameters: Any) -> Any:
            other = request.about(name, **parameters)
            return self.run(other, progress=part_of(progress, *share), cancelled=cancelled)

        def prepare() -> PreparedImage:
            self.checked_trace(request, cancelled=cancelled)
            image = self.prepared(request, cancelled=cancelled, is_quick=is_quick)
            return image.read_by(function_of(dict(request.parameters).get("target")))

        def record_of(image: str) -> Trace:
            other = replace(request, subject=replace(request.subject, image=image, part=None))
            return self.checked_trace(other, cancelled=cancelled, residual=True)

        return Job(
            loaded=self._model(request),
            parameters=dict(request.parameters),
            answer_of=answer_of,
            prepare=prepare,
            see=lambda: (self._picture(request), self._input_options(request)),
            record=lambda residual: self.checked_trace(request, cancelled=cancelled, residual=residual),
            record_of=record_of,
            single_copy=lambda: self.turns.turn(_COPY, cancelled=cancelled),
            progress=progress,
            cancelled=cancelled,
        )

    def _model(self, request: Request) -> Model:
        return self.model_of(request.subject)

    def model_of(self, subject: Subject) -> Model:
        """The model of a subject, with its sentences as classes where it has some; of each model the last few of these are kept."""
        loaded, prompts = self.models.get(subject.model), subject.prompts
        if not prompts:
            return loaded
        if not isinstance(loaded, LoadedModel):
            raise ParameterError(loaded.text_missing)
        shown = {one: (self._shown(subject, name), patch) for one, (name, patch) in prompts.pictures.items()}
        key = prompts, *(self._key(request) for request, _ in shown.values())
        with self._asking:
            kept = self._asked.setdefault(loaded, LRUCache(_MOST_PROMPTS))
            asked = kept.get(key)
        if asked is None:  # a tower may be read for seconds, in which others ask, too
            asked = loaded.with_prompts(prompts, {one: self._embedding(*it) for one, it in shown.items()})
            with self._asking:
                asked = kept.setdefault(key, asked)
        return asked

    def _shown(self, subject: Subject, name: str) -> Request:
        """The pass of a picture that stands in the place of a sentence; the model's edits change what is asked, and not this."""
        subject = replace(subject, prompts=NO_PROMPTS, edits=NO_EDITS)
        return (replace(subject, image=name, part=None) if name else subject).request(TRACE.name)

    def _embedding(self, request: Request, patch: tuple[int, int] | None) -> Tensor:
        """Of a picture, or of a patch of it."""
        if patch is not None:
            return patch_embedding(
                self.prepared(request, is_quick=True), self.checked_trace(request, residual=True), patch
            )
        embedding = self.trace(request).logits
        assert embedding is not None
        return embedding

    def _input_options(self, request: Request) -> dict[str, Any]:
        """How the picture becomes the model's input, as `Preprocess.apply` takes it."""
        subject = request.subject
        bound = self._pictures.max_patches if subject.size else None
        return {"mode": subject.mode, "size": subject.size, "max_patches": bound}

    def _digest(self, request: Request) -> str:
        return self._pictures.picture(request.subject.image, owner=request.owner)[1]

    def _model_input(self, request: Request) -> Image.Image | Tensor:
        """What the model receives: the picture, or the pixels that stand in its place."""
        pixels = self._pictures.pixels(request.subject.image, owner=request.owner)
        return self._picture(request) if pixels is None else pixels

    def _picture(self, request: Request) -> Image.Image:
        """The picture, or the part of it that is meant."""
        subject = request.subject
        return cut(self._pictures.picture(subject.image, owner=request.owner)[0], subject.part)


def _unscored(request: Request) -> Request:
    """The request for a pass without the sentences that score it, which change nothing before the model's end."""
    if not request.subject.prompts or request.question not in (TRACE.name, TOKEN_TRACE.name):
        return request
    return replace(request, subject=replace(request.subject, prompts=NO_PROMPTS))
