"""Waiting for a state instead of for a time."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest


def until(condition: Callable[[], object], *, what: str = "", seconds: float = 60) -> None:
    """Wait until a condition holds that is about to; the deadline only ends a test that would hang."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"{what or 'it'} did not come true within {seconds:g} seconds")
        time.sleep(0.002)
