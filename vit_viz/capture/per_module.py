"""Values that are remembered per module, beside it."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Generic, TypeVar

from vit_viz.lazy import nn

Noted = TypeVar("Noted")


class PerModule(Generic[Noted]):
    """What is remembered about modules without storing it there; freed with them.

    Of the process, since two sessions may hold the same module.

    Args:
        make: what a module has that nothing is noted of yet.
    """

    def __init__(self, make: Callable[[], Noted]) -> None:
        self._make, self._guard = make, threading.Lock()
        self._noted: weakref.WeakKeyDictionary[nn.Module, Noted] = weakref.WeakKeyDictionary()

    def of(self, module: nn.Module) -> Noted:
        """What is noted of a module; always the same object, which can be written to."""
        with self._guard:
            noted = self._noted.get(module)
            if noted is None:
                noted = self._noted[module] = self._make()
            return noted
