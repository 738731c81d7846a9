"""Warnings of libraries that the user sees in other words, or not at all."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

# Python keeps its filters for the whole process: of two threads inside, each would put back what the other had set, for good.
_ONE_THREAD = threading.RLock()


@contextmanager
def without_warnings(*raised: type[Warning]) -> Iterator[None]:
    """No warning is shown, those of these categories are raised, and the filters are as before afterwards.

    One thread at a time: whoever enters meanwhile waits.
    """
    with _ONE_THREAD, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for category in raised:
            warnings.simplefilter("error", category)
        yield
