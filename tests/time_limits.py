"""No test hangs for good: what is late fails with the stacks of all threads; where even that is not possible the run ends so.

`timeout` (pyproject.toml) is the limit of a test without its fixtures, and SLOW that of one marked slow; `pytest.mark.timeout` sets
another.
pytest-timeout interrupts a late test once, in its main thread. What that does not end (a fixture that hangs afterwards, code that
never comes back to Python, a thread that is left when all tests are over) is ended by a watchdog which needs nobody's help.
"""

from __future__ import annotations

import faulthandler
import os
import sys
from collections.abc import Generator

import pytest

from tests.serving import START_SECONDS

SLOW = 900.0
"""Seconds of a test marked slow."""

GRACE = START_SECONDS + 60
"""Seconds after a limit until the watchdog ends the run: fixtures, whose servers may take long to start, are outside the limit."""


class Watchdog:
    """A pytest plugin: after a limit and a grace the stacks of all threads are written and the run ends, with exit code 1."""

    def __init__(self, *, slow: float = SLOW, grace: float = GRACE) -> None:
        self._slow, self._grace = slow, grace
        self._errors = -1

    def pytest_configure(self) -> None:
        """What is captured would be lost, so that stacks go where pytest itself writes."""
        self._errors = os.dup(sys.stderr.fileno())

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """A slow test has a longer limit, unless it has one of its own."""
        for item in items:
            if item.get_closest_marker("slow") and not item.get_closest_marker("timeout"):
                item.add_marker(pytest.mark.timeout(self._slow))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Around a test with its fixtures."""
        limit = limit_of(item)
        if limit > 0:
            self._watch(limit + self._grace)
        try:
            return (yield)
        finally:
            faulthandler.cancel_dump_traceback_later()

    @pytest.hookimpl(trylast=True)
    def pytest_exception_interact(self) -> None:
        """pytest calls off whatever watches when a test fails; what is left of it, its fixtures' end, is watched again."""
        self._watch(self._grace)

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        """A thread that does not end keeps Python from ending."""
        self._watch(self._grace)

    def _watch(self, seconds: float) -> None:
        faulthandler.dump_traceback_later(seconds, exit=True, file=self._errors)


def limit_of(item: pytest.Item) -> float:
    """Seconds that a test may take; 0 for as long as it wants: pytest-timeout's own words, since it tells nobody."""
    marker = item.get_closest_marker("timeout")
    if marker is not None:
        return float(marker.args[0] if marker.args else marker.kwargs["timeout"])
    given = item.config.getoption("timeout")
    return float(given if given is not None else item.config.getini("timeout") or 0)
