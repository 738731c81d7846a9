"""A Hugging Face Space with ZeroGPU: a GPU is lent for one call of one function, which runs in a process of its own.

What goes there is a picture and a request; what comes back is NumPy. Models and results are cached in this process, the parent,
which computes on the CPU whatever is not worth a GPU: visitors have minutes of it a day. The bundled model never asks for one.

Source: the package `spaces` 0.51 (zero/decorator.py, zero/wrappers.py), which a Space with ZeroGPU has installed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import torch
from PIL import Image

from vit_viz.analyses.explain import FAST
from vit_viz.capture import PackedTrace
from vit_viz.capture.buffers import shared_pool
from vit_viz.checkpoints import LoadedModel
from vit_viz.checkpoints.catalog import BUNDLED
from vit_viz.errors import BusyError, VitVizError
from vit_viz.request import Request
from vit_viz.session import Session

__all__ = ["GpuWorker", "Task", "compute"]

FORWARDS = {
    "trace": 1,
    "without": 1,
    "explain all": 4,
    "randomisation": 40,
    "explain": 200,
    "random band": 384,
    "trust": 430,
}
"""About how many forward passes a request takes; `explain` by a fast method takes as many as all fast methods together."""

WORTH = 2e11
"""Floating-point operations from which on a GPU is asked for: some seconds on two cores."""

CACHE_BYTES = 2**30
"""What a worker keeps for the calls that follow while it lives."""

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Task:
    """One computation, complete, as a value that travels to another process.

    Args:
        request: with the analysis "trace" for the recorded forward pass; its image is `picture`.
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
        worth: floating-point operations from which on it is asked for.
    """

    def __init__(self, lent: Callable[[Task], Any], *, device: str = "cuda", worth: float = WORTH) -> None:
        self._lent = lent
        self._device = device
        self._worth = worth

    @classmethod
    def found(cls, *, device: str = "cuda", worth: float = WORTH) -> GpuWorker | None:
        """The worker of this Space; None on every machine whose GPU is its own, or that has none."""
        try:
            import spaces
        except ImportError:
            return None
        lent = spaces.GPU(duration=_seconds)(compute)
        if lent is compute:  # the package is there, but no GPU is lent
            return None
        return cls(lent, device=device, worth=worth)

    def compute(
        self, request: Request, loaded: LoadedModel, picture: Image.Image, *, own_model: str
    ) -> Any | None:
        """As `Lender.compute`."""
        work = _work(request, loaded)
        if loaded.name in BUNDLED or work < self._worth:
            return None
        seconds = min(60, 10 + round(work / 2e12))
        task = Task(replace(request, owner=""), picture, own_model, self._device, seconds)
        try:
            answer = self._lent(task)
        except Exception as error:
            # no quota, no GPU in time, an aborted worker: `spaces` has no classes for them
            _logger.warning("no GPU for %r: %s: %s", request.analysis, type(error).__name__, error)
            raise BusyError("There is no GPU to be had at the moment.") from error
        if isinstance(answer, VitVizError):
            raise answer
        return answer.unpacked() if isinstance(answer, PackedTrace) else answer


def compute(task: Task) -> Any:
    """In the worker: the packed trace or the result, or the error that is the user's to know about."""
    session = _session(task.own_model, task.device)
    image = session.uploads.add(task.picture)
    request = replace(task.request, image=image)
    try:
        if request.analysis == "trace":
            return PackedTrace.of(session.trace(request.model, image, mode=request.mode))
        return session.run(request)
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
    session = Session(model=own_model, device=device, cache_bytes=CACHE_BYTES)
    session.on_cpu = None  # what has no room here is for the parent's CPU, whose time nobody counts
    return session


def _seconds(task: Task) -> int:
    """For how long a GPU is wanted; a short time counts less against the visitor's quota."""
    return task.seconds


def _work(request: Request, loaded: LoadedModel) -> float:
    """Floating-point operations of a request, about: two per parameter, token and forward pass."""
    rows, cols = loaded.config.grid
    parameters = dict(request.parameters)
    kind = (
        "explain all"
        if parameters.get("method") in FAST and request.analysis == "explain"
        else request.analysis
    )
    return 2.0 * loaded.num_parameters * rows * cols * FORWARDS[kind]
