"""The edits around a point of a thread; known apart from what they do, so that asking whether there are any needs no torch."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vit_viz.capture.active_edits import ActiveEdits

_STATE = threading.local()  # edits belong to a thread, as torch's modes do


def edit_stack() -> list[ActiveEdits]:
    """The edits around this point of this thread, from the outermost to the innermost; whoever starts and ends them changes it."""
    if not hasattr(_STATE, "stack"):
        _STATE.stack = []
    stack: list[ActiveEdits] = _STATE.stack
    return stack


def innermost_edit() -> ActiveEdits | None:
    """The `edit` that this point of this thread lies in, other than those that belong to the model that is looked at."""
    return next((active for active in reversed(edit_stack()) if not active.is_of_model), None)


def is_edited() -> bool:
    """Whether this point of this thread lies inside an `edit`."""
    return bool(edit_stack())
