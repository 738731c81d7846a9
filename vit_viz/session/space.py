"""A Hugging Face Space with ZeroGPU: a GPU is lent for one call of one function, which runs in a process of its own.

What goes there is a picture and a request; what comes back is NumPy. Models and results are cached in this process, the parent,
which computes on the CPU whatever is not worth a GPU: visitors have minutes of it a day. The bundled model never asks for one.

Source: the package `spaces` 0.51 (zero/decorator.py, zero/wrappers.py), which a Space with ZeroGPU has installed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from PIL import Image

from vit_viz.capture import PackedTrace, Trace
from vit_viz.capture.buffers import shared_pool
from vit_viz.checkpoints import LoadedModel
from vit_viz.checkpoints.catalog import BUNDLED
from vit_viz.checkpoints.visitor_models import visitor_model_cache
from vit_viz.errors import VitVizError
from vit_viz.lazy import torch
from vit_viz.session.devices import GpuRefusedError
from vit_viz.session.engine import computed
from vit_viz.session.request import Request
from vit_viz.session.session import Session

__all__ = ["GpuWorker", "Task", "compute"]

MIN_OPERATIONS = 2e11
"""Floating-point operations from which on a GPU is asked for: some seconds on two cores."""

CACHE_BYTES = 2**30
"""What a worker keeps for the calls that follow while it lives."""

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Task:
    """One computation, complete, as a value that travels to another process.

    Args:
        request: for "trace" for the recorded forward pass; its image is `picture`.
        picture: upright RGB.
        own_model: which model the owner of the process named.
        device: where to compute it.
        seconds: for how long a GPU is asked for.
    """

    request: Request
    picture: Image.Image
    own_model: str
    device: str
    seconds: int


class GpuWorker:
    """Lends GPUs to a session, call by call.

    Args:
        lent: `compute`, made to run where a GPU is.
        device: what that GPU is called there.
        min_operations: floating-point operations from which on it is asked for.
    """

    def __init__(
        self, lent: Callable[[Task], Any], *, device: str = "cuda", min_operations: float = MIN_OPERATIONS
    ) -> None:
        self._lent = lent
        self._device = device
        self._min_operations = min_operations

    @classmethod
    def detect(cls, *, device: str = "cuda", min_operations: float = MIN_OPERATIONS) -> GpuWorker | None:
        """The worker of this Space; None on every machine whose GPU is its own, or that has none."""
        try:
            import spaces
        except ImportError:
            return None
        # a short time counts less against the visitor's quota
        lent = spaces.GPU(duration=lambda task: task.seconds)(compute)
        if lent is compute:  # the package is there, but no GPU is lent
            return None
        return cls(lent, device=device, min_operations=min_operations)

    def is_worth_it(self, request: Request, loaded: LoadedModel) -> bool:
        """As `Lender.is_worth_it`."""
        return loaded.name not in BUNDLED and _work(request, loaded) >= self._min_operations

    def compute(self, request: Request, loaded: LoadedModel, picture: Image.Image, *, own_model: str) -> Any:
        """As `Lender.compute`."""
        seconds = min(60, 10 + round(_work(request, loaded) / 2e12))
        task = Task(request.of_picture(""), picture, own_model, self._device, seconds)
        try:
            answer = self._lent(task)
        except Exception as error:
            # no quota, no GPU in time, an aborted worker: `spaces` has no classes for them
            _logger.warning("no GPU for %r: %s: %s", request.question, type(error).__name__, error)
            raise GpuRefusedError("No GPU is available at the moment.") from error
        if isinstance(answer, VitVizError):
            raise answer
        return answer.unpacked() if isinstance(answer, PackedTrace) else answer


def compute(task: Task) -> Any:
    """In the worker: the packed trace or the result, or the error that is the user's to know about."""
    session = _session(task.own_model, task.device)
    image = session.uploads.add(task.picture)
    try:
        answer = session.run(task.request.of_picture(image))
        return PackedTrace.of(answer) if isinstance(answer, Trace) else answer
    except VitVizError as error:
        return error
    finally:
        session.uploads.forget("")


@lru_cache(maxsize=1)
def _session(own_model: str, device: str) -> Session:
    """The session of a worker, made at its first task.

    The worker is a fork of a process with threads: pools of threads and locks do not survive that, so it starts its own.
    """
    torch.set_num_threads(1)
    shared_pool.cache_clear()
    visitor_model_cache.cache_clear()
    # what has no room here is for the parent's CPU, whose time nobody counts
    return Session(model=own_model, device=device, cache_bytes=CACHE_BYTES, falls_back=False)


def _work(request: Request, loaded: LoadedModel) -> float:
    """Floating-point operations of a request, about: two per parameter, token and forward pass."""
    rows, cols = loaded.config.grid
    enlarged = (request.subject.size or loaded.preprocess.short_side) / loaded.preprocess.short_side
    return 2.0 * loaded.num_parameters * rows * cols * enlarged**2 * computed(request).forwards
