"""Silence ends where it should: in its own block, in its own thread."""

from __future__ import annotations

import threading
import warnings
from typing import Any

import pytest

from vit_viz import silence
from vit_viz.silence import without_warnings


class ReportingLock:
    """A lock that tells when a second thread comes to it."""

    def __init__(self, lock: Any) -> None:
        self._lock, self._comers, self.second = lock, 0, threading.Event()

    def __enter__(self) -> None:
        self._comers += 1
        if self._comers == 2:
            self.second.set()
        self._lock.__enter__()

    def __exit__(self, *error: object) -> None:
        self._lock.__exit__(*error)


def test_what_is_inside_warns_nobody_and_the_filters_are_as_before() -> None:
    filters = list(warnings.filters)
    with without_warnings(), without_warnings(DeprecationWarning):
        warnings.warn("of no use", stacklevel=1)
        with pytest.raises(DeprecationWarning, match="of use"):
            warnings.warn("of use", DeprecationWarning, stacklevel=1)
    assert warnings.filters == filters


def test_threads_that_overlap_leave_the_filters_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    lock, inside, leave = ReportingLock(silence._ONE_THREAD), threading.Event(), threading.Event()
    monkeypatch.setattr(silence, "_ONE_THREAD", lock)

    def other() -> None:
        with without_warnings():
            inside.set()
            leave.wait(60)

    filters, thread = list(warnings.filters), threading.Thread(target=other)
    with without_warnings():
        thread.start()
        assert lock.second.wait(60)  # the other thread comes while this one is inside ...
    assert inside.wait(60)  # ... enters when this one has left ...
    leave.set()
    thread.join(60)
    assert warnings.filters == filters  # ... and has not put this one's filters back
