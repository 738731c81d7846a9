"""Where a computation runs: on a GPU that is lent for it, on the session's own device, or on the CPU where those fail."""

from __future__ import annotations

import copy
import gc
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, Protocol, TypeVar

import torch
from PIL import Image

from vit_viz.checkpoints import LoadedModel
from vit_viz.errors import BusyError

REFUSED = "No GPU is to be had for this at the moment, so it is computed on the CPU, which takes longer."
FULL = "The GPU has too little memory for this, so it is computed on the CPU, which takes longer."

_refused: ContextVar[bool] = ContextVar("refused", default=False)

Result = TypeVar("Result")
Notice = Callable[[str], None]
"""Told one sentence that whoever waits should know."""


class Lender(Protocol):
    """Who lends a GPU for one computation; see vit_viz.space."""

    def compute(
        self, request: Any, loaded: LoadedModel, picture: Image.Image, *, own_model: str
    ) -> Any | None:
        """The result of a session's request about a picture, or its trace; None where that is not worth a GPU.

        Args:
            own_model: which model the owner of the process named, perhaps by a path.

        Raises:
            BusyError: there is no GPU now.
        """


def anywhere(
    lent: Callable[[], Result | None] | None,
    here: Callable[[], Result],
    on_cpu: Callable[[], Result] | None,
    *,
    notice: Notice,
) -> Result:
    """The result of `here`, wherever there is room for it.

    Args:
        lent: computes it on a GPU that is lent, or says None; None where nobody lends one.
        here: computes it on the session's own device.
        on_cpu: computes it on the CPU; None where that is the session's own device.
        notice: told what takes longer than it should.

    Raises:
        torch.OutOfMemoryError: there is no room, and no CPU to turn to.
    """
    if lent is not None and not _refused.get():
        try:
            found = lent()
        except BusyError:
            notice(REFUSED)
            return _without_asking(here)
        if found is not None:
            return found
    if on_cpu is None:
        return here()
    try:
        return here()
    except torch.OutOfMemoryError:
        notice(FULL)
    gc.collect()  # after the exception, which held on to what filled the memory
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return on_cpu()


def _without_asking(here: Callable[[], Result]) -> Result:
    """The result of `here`, whose parts do not ask for a GPU either: one refusal and one notice are enough."""
    token = _refused.set(True)
    try:
        return here()
    finally:
        _refused.reset(token)


def copied_to_cpu(loaded: LoadedModel) -> LoadedModel:
    """The same model on the CPU; the given one stays where it is."""
    return replace(loaded, model=copy.deepcopy(loaded.model).to("cpu"), device=torch.device("cpu"))
