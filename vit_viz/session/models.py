"""The models that one device holds, loaded once each, and what a pass of a model costs: seconds as measured, work as counted."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cachetools import FIFOCache

from vit_viz.capture.given import as_it_is
from vit_viz.capture.state import make_up_of
from vit_viz.checkpoints import Model, load
from vit_viz.checkpoints.source import Progress
from vit_viz.errors import BusyError
from vit_viz.model import VisionTransformer
from vit_viz.progress import StopCheck, stop_if
from vit_viz.session.cache import ByteCache
from vit_viz.session.serialization import model_bytes

MODEL_BYTES = 2 * 2**30
MOST_LOADS = 4
"""Models that are loaded at the same time; another one is refused."""
_MOST = 256  # pairs of weights and numbers of tokens that are remembered


class ModelPool:
    """Models by name: those that were given stay, as does the owner's; others leave when the memory for models is full.

    Args:
        device: where they are loaded; None takes the best that is there.
        own_model: the model that the owner of the process named, the only one that may be a path.
        max_bytes: bound on the memory of all models but the given ones and the owner's.
    """

    def __init__(self, device: str | None, *, own_model: str, max_bytes: int) -> None:
        self.device = device
        self.own_model = own_model
        self._loaded: ByteCache[Model] = ByteCache(max_bytes)
        self._own: ByteCache[Model] = ByteCache(sys.maxsize)  # however large it is
        self._registered: dict[str, Model] = {}
        self._lock = threading.Lock()
        self._waiting: Counter[str] = Counter()  # by the models that they wait for
        self._loading: set[str] = set()
        self._fetched: dict[str, tuple[int, int]] = {}  # of models that are being loaded

    def add(self, loaded: Model) -> None:
        """Offer a model that is loaded already under its own name."""
        self._registered[loaded.name] = loaded

    def remove(self, name: str) -> None:
        """Forget a model that was given, where there is one of this name."""
        self._registered.pop(name, None)

    def registered(self, name: str) -> Model | None:
        """The model that was given under a name, as it is now: whoever gave it may train it."""
        model = self._registered.get(name)
        return None if model is None else as_it_is(model)

    def make_up(self, name: str) -> int:
        """What a given model is made of now, see `make_up_of`; 0 of one that was loaded here, which nobody else holds."""
        return make_up_of(self._registered[name].model) if name in self._registered else 0

    def has(self, name: str) -> bool:
        """Whether a model is here, so that `get` returns at once."""
        return name in self._registered or self._cache_of(name).peek(name) is not None

    def get(
        self, name: str, *, progress: Progress | None = None, cancelled: StopCheck | None = None
    ) -> Model:
        """The model of a name, loaded once; as `Session.model`. A load goes on as long as anybody waits for it."""
        if (own := self.registered(name)) is not None:
            return own
        is_own = name == self.own_model

        def is_unwanted() -> bool:
            if progress is not None and name in self._fetched:
                progress(*self._fetched[name])
            return cancelled is not None and cancelled()

        def fetched(done: int, total: int) -> None:
            self._fetched[name] = done, total
            stop_if(lambda: is_unwanted() and self._waiting[name] == 1)

        def fetch() -> Model:
            with self._lock:
                if len(self._loading) >= MOST_LOADS and not is_own:
                    raise BusyError("Several other models are being loaded; please try again in a minute.")
                self._loading.add(name)
            try:
                return load(name, device=self.device, local_files=is_own, progress=fetched)
            finally:
                self._fetched.pop(name, None)
                self._loading.discard(name)

        with self._waits(name):
            cache = self._cache_of(name)
            return cache.get_or_compute(name, fetch, size_of=model_bytes, cancelled=is_unwanted)

    @contextmanager
    def _waits(self, name: str) -> Iterator[None]:
        with self._lock:
            self._waiting[name] += 1
        try:
            yield
        finally:
            with self._lock:
                self._waiting[name] -= 1
                if not self._waiting[name]:
                    del self._waiting[name]

    def _cache_of(self, name: str) -> ByteCache[Model]:
        return self._own if name == self.own_model else self._loaded


# --- costs


class Pace:
    """How long a pass takes, measured once for weights and a number of tokens; one that is recorded takes several times as long."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seconds: FIFOCache[tuple[str, int], float] = FIFOCache(_MOST)

    def seconds(self, weights: str, tokens: int, measure: Callable[[], float]) -> float:
        """As measured, now or before; beyond `_MOST` pairs the one that was measured longest ago is forgotten."""
        key = weights, tokens
        with self._lock:
            measured = self._seconds.get(key)
        if measured is None:
            measured = measure()
            with self._lock:
                self._seconds[key] = measured
        return measured


def forward_work(loaded: Model) -> Callable[[int], float]:
    """Multiplications and additions of a forward pass in all blocks, as a function of N, its prefix tokens and patches together.

    Per block 2 P N for the linear maps, with P their weights, and 4 N^2 D for scores and the sums of values; norms, softmax and the
    patch embedding, a few percent together, are left out. Of a module whose parts are not known N^2, as if all of it were
    attention, which is the most that it can grow.
    """
    model = loaded.model
    if not isinstance(model, VisionTransformer):
        return lambda tokens: float(tokens**2)
    weights = sum(p.numel() for p in model.blocks.parameters() if p.ndim == 2)  # of all blocks
    depth, dim = model.config.depth, model.config.embed_dim
    return lambda tokens: 2.0 * weights * tokens + 4.0 * depth * tokens**2 * dim
