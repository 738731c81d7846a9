"""Where a computation runs: on a GPU that is lent for it, on the session's own device, or on the CPU where those fail."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from PIL import Image

from vit_viz.checkpoints import LoadedModel
from vit_viz.errors import BusyError
from vit_viz.lazy import torch
from vit_viz.session.request import Request

REFUSED = "No GPU is available at the moment, so this is computed on the CPU, which takes longer."
LACKS = (
    "The GPU has no operation or precision that this needs, so it is computed on the CPU, which takes longer."
)
FULL = "The GPU has too little memory for this, so it is computed on the CPU, which takes longer."

T = TypeVar("T")
Notice = Callable[[str], None]
"""Told one sentence that whoever waits should know."""


class GpuRefusedError(BusyError):
    """Nobody lends a GPU at the moment."""


class Lender(Protocol):
    """Who lends a GPU for one computation; see vit_viz.session.space."""

    def is_worth_it(self, request: Request, loaded: LoadedModel) -> bool:
        """Whether a request takes so long on the CPU that a GPU is asked for."""

    def compute(self, request: Request, loaded: LoadedModel, picture: Image.Image, *, own_model: str) -> Any:
        """The answer to a session's request about a picture.

        Args:
            own_model: which model the owner of the process named, perhaps by a path.
        """


def run_with_fallback(here: Callable[[], T], on_cpu: Callable[[], T], *, notice: Notice) -> T:
    """The result of `here`, or of `on_cpu` where that device has no room for it, or lacks what it takes.

    Apple's GPUs have no double precision (TypeError), and not every operation (NotImplementedError).

    Args:
        notice: told that it takes longer than it should.
    """
    try:
        return here()
    except torch.OutOfMemoryError:
        notice(FULL)
    except (TypeError, NotImplementedError) as error:
        if "MPS" not in str(error):
            raise
        notice(LACKS)
    gc.collect()  # after the exception, which held on to what filled the memory
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return on_cpu()
