"""Checkpointed blocks (torch.utils.checkpoint) run a second time in the backward pass: this makes the second run equal the first.

Each checkpoint keeps the function that it will run again. While an edited attention is inside, that function is replaced, for this
checkpoint only, by one that runs it again under the same edits and with the same layers, whenever and in whichever thread that
happens.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from types import FrameType
from typing import Any

from torch.utils import checkpoint
from torch.utils.checkpoint import CheckpointFunction

from vit_viz.errors import CaptureError

EditsOf = Callable[[list[int]], AbstractContextManager[object]]
_FORWARD, _BACKWARD = CheckpointFunction.forward.__code__, CheckpointFunction.backward.__code__
_NOT_REENTRANT = "_checkpoint_impl" if hasattr(checkpoint, "_checkpoint_impl") else "checkpoint"
"""The function of torch in which a checkpoint that is not reentrant runs the block: torch 2.14 took it out of `checkpoint`."""


def note(layer: int, edits_of: EditsOf, owner: object, outside: FrameType | None) -> None:
    """Tell every checkpoint around the attention that is running which layer it is.

    Args:
        edits_of: layers of a checkpoint, in order -> the context for its second run.
        owner: whose edits these are.
        outside: frame of the `with` statement; checkpoints further out run it again themselves.
    """
    for holder, name in _checkpoints(outside):
        function = getattr(holder, name)
        while isinstance(function, _RerunWithEdits) and function.owner is not owner:
            function = function.function
        if not isinstance(function, _RerunWithEdits):
            function = _RerunWithEdits(getattr(holder, name), edits_of, owner)
            setattr(holder, name, function)
        function.layers.append(layer)


def is_reentrant() -> bool:
    """Whether this point lies within a block that is checkpointed with use_reentrant=True, in its first run."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code is not _FORWARD:
        frame = frame.f_back
    return frame is not None


class _RerunWithEdits:
    """A checkpoint's function that runs under the edits of its first run."""

    def __init__(self, function: Callable[..., Any], edits_of: EditsOf, owner: object) -> None:
        self.function, self.owner = function, owner
        self.layers: list[int] = []
        self._edits_of = edits_of

    def __call__(self, *args: Any) -> Any:
        with self._edits_of(self.layers):
            return self.function(*args)


def _checkpoints(outside: FrameType | None) -> Iterator[tuple[Any, str]]:
    """(object, attribute) of the function that each checkpoint around this point keeps, from the innermost outwards."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame is not outside:
        code = frame.f_code
        if code.co_filename == _FORWARD.co_filename:
            if code is _BACKWARD or code.co_name == "recompute_fn":
                return  # this is a second run; what is further out is the backward pass
            kept = _kept_by(frame)
            if kept is not None:
                yield kept
        frame = frame.f_back


def _kept_by(frame: FrameType) -> tuple[Any, str] | None:
    """Where torch 2.13 and 2.14 keep the function that they will run again, with use_reentrant=True and False."""
    code = frame.f_code
    try:
        if code is _FORWARD:
            context = frame.f_locals["ctx"]
            return (context, "run_function") if callable(context.run_function) else None
        if code.co_name == _NOT_REENTRANT and not frame.f_locals["use_reentrant"]:
            kept = frame.f_locals["gen"].gi_frame.f_locals["new_frame"]
            return (kept, "recompute_fn") if callable(kept.recompute_fn) else None
    except (AttributeError, KeyError) as error:
        raise CaptureError(
            "This version of torch runs checkpointed blocks again in a way that edits cannot follow: switch checkpointing off."
        ) from error
    return None
