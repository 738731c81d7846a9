"""Waiting for a state instead of for a time."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

PATIENCE = 120.0
"""Seconds that anything may take before a test calls it broken: many times what it takes on the slowest machine."""


def until(condition: Callable[[], object], *, what: str = "", seconds: float = PATIENCE) -> None:
    """Wait until a condition holds that is about to; the deadline only ends a test that would hang."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"{what or 'it'} did not come true within {seconds:g} seconds")
        time.sleep(0.002)
