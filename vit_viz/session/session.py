"""The one path from a request to a result, for the user interface and Python alike.

A `Session` owns the pictures and knows the visitors of one process; it decides who may compute and on which engine
(vit_viz.session.engine): the own device, a GPU that is lent, or the CPU where those fail.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from PIL import Image

from vit_viz import samples
from vit_viz.analyses.classes import answers_classes, top_classes
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.capture import Trace, innermost_edit
from vit_viz.capture.state import make_up_of
from vit_viz.checkpoints import LoadedModel, Model
from vit_viz.checkpoints.catalog import default_model
from vit_viz.checkpoints.digest import held_states
from vit_viz.checkpoints.source import Progress as Fetched
from vit_viz.images import Mode, decode
from vit_viz.images.part import cut
from vit_viz.images.preprocess import MAX_CHOSEN_PATCHES
from vit_viz.lazy import Tensor, torch
from vit_viz.progress import Progress, StopCheck, within
from vit_viz.results import Ranking
from vit_viz.session.cache import ByteCache
from vit_viz.session.checks import BackgroundChecks
from vit_viz.session.devices import REFUSED, GpuRefusedError, Lender, Notice, run_with_fallback
from vit_viz.session.engine import TRACE, Engine, computed
from vit_viz.session.handles import Handles
from vit_viz.session.request import Request, Subject
from vit_viz.session.uploads import Library, UploadStore, cleaned_name
from vit_viz.settings import whole_number
from vit_viz.turns import GONE, Turns

T = TypeVar("T")
CACHE_BYTES = 2 * 2**30
LONGEST_SECONDS = 180.0
SLOW_WAIT_SECONDS = 600.0
"""For one computation; how long a slow one waits for others of the same visitor."""
LARGE_BYTES = 32 * 2**20
"""Of memory that it takes to write an answer: those that take more are written one at a time."""


class Session:
    """Pictures and visitors of one process, and the engines that compute for them.

    Args:
        model: the model that is used where none is named; a name, a Hub id, or a path given by the owner of the process.
        device: "cpu", "cuda", "mps"; None takes the best that is there.
        cache_bytes: bound on traces, results and the memory that waits for the next trace; None: VIT_VIZ_CACHE_BYTES, or 2 GiB.
        lender: lends a GPU for what is worth one; `device` is then the CPU.
        falls_back: whether the CPU computes what the device has no room for.
        max_patches: of an image whose size is chosen; None: VIT_VIZ_MAX_PATCHES, or 4096.
    """

    def __init__(
        self,
        *,
        model: str | Path | None = None,
        device: str | None = None,
        cache_bytes: int | None = None,
        lender: Lender | None = None,
        falls_back: bool = True,
        max_patches: int | None = None,
    ) -> None:
        self.default_model = str(model or default_model())
        self.lender = lender
        self.max_patches = max_patches or whole_number(
            "VIT_VIZ_MAX_PATCHES", MAX_CHOSEN_PATCHES, unit="patches"
        )
        self.notice: Notice = logging.getLogger(__name__).warning
        self.turns = Turns()
        self.uploads = UploadStore(on_gone=self.forget_picture)
        self.library: Library | None = None
        self.given_paths: dict[str, str] = {}  # as the process's owner named them; files of the app tell none
        self.decode: Callable[..., Image.Image] = decode  # of uploads; the app sets that of a DecoderProcess
        self.handles = Handles()
        self.checks = BackgroundChecks(self.turns, has_model=self.has_model)
        self._slow = Turns(max_waiting=8, max_seconds=SLOW_WAIT_SECONDS)  # by visitor
        budget = cache_bytes or whole_number("VIT_VIZ_CACHE_BYTES", CACHE_BYTES, unit="bytes")
        engine_on = partial(
            Engine, own_model=self.default_model, pictures=self, turns=self.turns, cache_bytes=budget
        )
        self.engine = engine_on(device if lender is None else "cpu")
        has_cpu_engine = falls_back and self.engine.device != "cpu"
        self.cpu_engine = engine_on("cpu") if has_cpu_engine else None
        self._only_on_cpu: set[str] = set()  # models that the device has no room for
        self._copied: dict[
            str, tuple[str, int]
        ] = {}  # given models as they were when the CPU's engine got its copies

    # --- models

    def add_model(self, loaded: Model) -> str:
        """Offer a model that is loaded already under its own name; returns the name."""
        self.engine.models.add(loaded)
        if self.cpu_engine is not None:
            self.cpu_engine.models.remove(loaded.name)  # a copy of another one
        return loaded.name

    def model(
        self, name: str | None = None, *, progress: Fetched | None = None, cancelled: StopCheck | None = None
    ) -> Model:
        """The model of a name, loaded once. Only the owner of the process names files; any other name is a catalog or Hub name.

        Args:
            progress: told (bytes fetched, bytes in all) of a download, also of one that somebody else began.
            cancelled: asked meanwhile; True ends the waiting, and the download where it is ours.
        """
        name = name or self.default_model
        return self._engine_with(name, progress=progress, cancelled=cancelled).models.get(name)

    def model_of(self, subject: Subject) -> Model:
        """The model of a subject, with its sentences as classes where it has some."""
        return self._engine_with(subject.model).model_of(subject)

    def has_model(self, name: str | None = None) -> bool:
        """Whether a model is loaded, so that `model` returns at once."""
        name = name or self.default_model
        return self.engine.models.has(name) or self._is_only_on_cpu(name)

    # --- pictures

    def add_upload(self, source: bytes | Path | Image.Image, *, owner: str = "", file_name: str = "") -> str:
        """Decode and keep a user's picture, with what `cleaned_name` keeps of its file's name; returns its random id."""
        return self.uploads.add(self.decode(source), owner=owner, name=cleaned_name(file_name))

    def picture(self, name: str, *, owner: str = "") -> tuple[Image.Image, str]:
        """The upright RGB picture of a sample's name, one of the library or an upload's id, and the digest of its pixels."""
        if name in samples.sample_names():
            return samples.sample_and_hash(name)
        if self.library is not None and self.library.holds(name):
            return self.library.picture(name)
        stored = self.uploads.get(name, owner=owner)
        return stored.image, stored.digest

    def pixels(self, name: str, *, owner: str = "") -> Tensor | None:
        """The pixels that a model is given in the place of a picture; None where it is given the picture."""
        if name in samples.sample_names() or (self.library is not None and self.library.holds(name)):
            return None
        return self.uploads.get(name, owner=owner).pixels

    def photo_of(self, subject: Subject) -> Image.Image:
        """The upright RGB picture that a subject is about: the whole, or the part that is looked at."""
        return cut(self.image(subject.image, owner=subject.owner), subject.part)

    def image(self, name: str, *, owner: str = "") -> Image.Image:
        """The upright RGB picture of a sample's name or an upload's id."""
        return self.picture(name, owner=owner)[0]

    def digest(self, name: str, *, owner: str = "") -> str:
        """The identity of a picture's pixels. What is kept of a picture has it in its key, and goes when its last upload goes."""
        return self.picture(name, owner=owner)[1]

    def name_of(self, image: str, *, owner: str = "") -> str:
        """What a picture is called: a sample's name, or what its owner calls an upload."""
        if self.library is not None and self.library.holds(image):
            return self.library.title(image)
        return image if image in samples.sample_names() else self.uploads.get(image, owner=owner).name

    def sentence_names(self, subject: Subject) -> tuple[str, ...]:
        """What the sentences of a subject are called, and uploads in their place as their owner calls them."""
        uploads = self.uploads.of(subject.owner)
        return subject.prompts.names_with({name: stored.name for name, stored in uploads.items()})

    def is_held(self, name: str, digest: str) -> bool:
        """Whether what was computed of a picture may still be kept: it is a sample's, the library's, or somebody's upload."""
        is_common = name in samples.sample_names() or (self.library is not None and self.library.holds(name))
        return is_common or self.uploads.holds(digest)

    def forget_picture(self, digest: str) -> None:
        """Drop what every engine made from a picture."""
        for engine in self._engines:
            engine.forget(digest)

    def kept(
        self, key: tuple[Hashable, ...], compute: Callable[[], T], image: str, digest: str, **options: Any
    ) -> T:
        """What is kept or made of an image under a key that holds its digest; it goes with the picture."""
        return self.engine.keep((*key, image), compute, {image: digest}, **options)

    # --- visitors

    def writing(self, bytes_: int) -> AbstractContextManager[None]:
        """While an answer is written, which takes so much memory: of large ones one at a time, visitors in turn."""
        return self.turns.turn("a large answer", is_quick=True) if bytes_ > LARGE_BYTES else nullcontext()

    def _one_slow_at_a_time(
        self, request: Request, cancelled: StopCheck | None
    ) -> AbstractContextManager[None]:
        """Let slow answers to one visitor wait for each other, so that nobody has more than a share of the device."""
        is_quick = not computed(request).is_slow_with(dict(request.parameters))
        if is_quick or not request.owner or self.keeps(request):
            return nullcontext()
        ends = cancelled or GONE.get()
        return self._slow.turn(request.owner, cancelled=within(SLOW_WAIT_SECONDS, ends))

    # --- requests

    @held_states()
    def run(
        self,
        request: Request,
        *,
        progress: Progress | None = None,
        cancelled: StopCheck | None = None,
        preview: Callable[[Any], None] | None = None,
    ) -> Any:
        """The answer to a request: kept, awaited, or computed now.

        Args:
            progress: told the share that is done, where it is computed now and takes long.
            cancelled: asked now and then; True ends a long computation with `Cancelled`, as does the time limit. Where nobody
                watches, the computation ends when whoever asked over HTTP hangs up.
            preview: given what is there so far, where the answer can tell and it is computed on a device of our own.
        """
        if cancelled is not None:
            self.model(request.subject.model, cancelled=cancelled)  # below it is at hand
        is_worth_a_gpu = self._is_worth_a_gpu(request)
        if self.lender is not None and not is_worth_a_gpu and computed(request).reads in ("trace", "image"):
            self.run(request.about("trace"), cancelled=cancelled)  # which may be worth one
        with self._one_slow_at_a_time(request, cancelled):
            ends = within(LONGEST_SECONDS, cancelled or GONE.get())
            ask = partial(Engine.run, request=request, progress=progress, cancelled=ends, preview=preview)
            if is_worth_a_gpu:
                try:
                    return ask(self.engine, elsewhere=self._lent)
                except GpuRefusedError:
                    self.notice(REFUSED)
            answer = self._where_there_is_room(request, ask)
        if isinstance(answer, Trace):
            self.checks.begin(answer, model=request.subject.model)
        return answer

    def trace_of(self, subject: Subject) -> Trace:
        """The recorded forward pass that a subject is about; as `trace`."""
        recorded = self.run(subject.request("trace"))
        assert isinstance(recorded, Trace)
        return recorded

    @held_states()
    def checked_trace_of(self, subject: Subject) -> Trace:
        """The same once it is known that its pictures do not mislead, for what states so or is saved."""
        request = subject.request("trace")
        self.run(request)
        return self._where_there_is_room(request, partial(Engine.checked_trace, request=request))

    def trace(self, model: str | None, image: str, *, mode: Mode = "fit", owner: str = "") -> Trace:
        """The recorded forward pass of a whole image, at the checkpoint's own size; one forward per (model, image, mode)."""
        return self.trace_of(Subject(model or self.default_model, image, mode, owner))

    @held_states()
    def prepared(
        self, subject: Subject, *, cancelled: StopCheck | None = None, is_quick: bool = False
    ) -> PreparedImage:
        """The image that a subject is about as the model receives it, for what runs the model again, each batch in its turn.

        Args:
            cancelled: asked while it waits.
            is_quick: whether it may go before slow computations that wait.
        """
        request = subject.request("trace")
        self.run(request)
        prepare = partial(Engine.prepared, request=request, cancelled=cancelled, is_quick=is_quick)
        return self._where_there_is_room(request, prepare)

    @held_states()
    def keeps(self, request: Request) -> bool:
        """Whether the result of a request is at hand, so that `run` need not compute it."""
        self._engine_with(request.subject.model)
        return any(engine.keeps(request) for engine in self._engines)

    @held_states()
    def pass_seconds(self, subject: Subject) -> float | None:
        """About how long one pass takes for what a subject is about, measured at first; None where somebody lends a GPU for it."""
        request = subject.request("trace")
        if self._is_worth_a_gpu(request):
            return None
        self.run(request)
        return self._where_there_is_room(request, partial(Engine.pass_seconds, request=request))

    @held_states()
    def top_classes_of(self, subject: Subject, *, count: int = 5) -> Ranking | None:
        """The most probable classes of what a subject is about with their probability, or None where the model has no head."""
        loaded = self.model_of(subject)
        recorded = self.trace_of(subject)
        return top_classes(loaded, recorded, count=count) if answers_classes(loaded, recorded) else None

    # --- engines

    @property
    def cache(self) -> ByteCache[Any]:
        """What the own device keeps."""
        return self.engine.cache

    @property
    def _engines(self) -> list[Engine]:
        return [self.engine] if self.cpu_engine is None else [self.engine, self.cpu_engine]

    def _is_worth_a_gpu(self, request: Request) -> bool:
        """Whether somebody lends a GPU for a request; never where only this thread has the model, given or inside an `edit`."""
        if self.lender is None or computed(request).forwards == 0 or innermost_edit():
            return False
        if request.subject.prompts.pictures:  # which stay here
            return False
        name = request.subject.model
        loaded = self.model(name)
        is_registered = self.engine.models.registered(name) is not None
        return (
            isinstance(loaded, LoadedModel) and not is_registered and self.lender.is_worth_it(request, loaded)
        )

    def _lent(self, request: Request) -> Any:
        assert self.lender is not None
        loaded = self.model(request.subject.model)
        picture = self.image(request.subject.image, owner=request.owner)
        assert isinstance(loaded, LoadedModel)
        return self.lender.compute(request, loaded, picture, own_model=self.default_model)

    def _where_there_is_room(self, request: Request, compute: Callable[[Engine], T]) -> T:
        """What the engine of the own device computes, or that of the CPU where the device has no room for it."""
        engine, cpu = self._engine_with(request.subject.model), self.cpu_engine
        if cpu is None or engine is cpu or self._is_at_hand_on(cpu, request):
            return compute(cpu or engine)
        return run_with_fallback(
            lambda: compute(engine),
            lambda: compute(self._with_copy(cpu, request.subject.model)),
            notice=self.notice,
        )

    def _is_at_hand_on(self, cpu: Engine, request: Request) -> bool:
        """Whether only the CPU's engine has the answer, or the trace that it is read out of."""
        wanted = request.about(TRACE.name) if computed(request).reads == "trace" else request
        return cpu.keeps(wanted) and not self.engine.keeps(wanted)

    def _engine_with(self, name: str, **options: Any) -> Engine:
        """The engine that has a model now: of the own device, or of the CPU where that has no room for it."""
        cpu, own = self.cpu_engine, self.engine.models.registered(name)
        if cpu is not None and own is not None and self._copied.get(name) != _state(own):
            cpu.models.remove(name)  # a copy of what it was
        if cpu is not None and self._is_only_on_cpu(name):
            return cpu

        def load_into(engine: Engine) -> Engine:
            engine.models.get(name, **options)
            return engine

        if cpu is None:
            return load_into(self.engine)
        engine = run_with_fallback(lambda: load_into(self.engine), lambda: load_into(cpu), notice=self.notice)
        if engine is cpu:
            self._only_on_cpu.add(name)
        return engine

    def _is_only_on_cpu(self, name: str) -> bool:
        """Whether a model is on the CPU because the device had no room for it."""
        return self.cpu_engine is not None and name in self._only_on_cpu and self.cpu_engine.models.has(name)

    def _with_copy(self, cpu: Engine, name: str) -> Engine:
        """The CPU's engine with its own copy of a model that was given."""
        own = self.engine.models.registered(name)
        if own is not None and cpu.models.registered(name) is None:
            self._copied[name] = _state(own)
            cpu.models.add(own.copied_to(torch.device("cpu")))
        return cpu


def _state(model: Model) -> tuple[str, int]:
    """What a given model is now: its weights and its make-up."""
    return model.provenance.weights, make_up_of(model.model)
