"""Coroutines in tests."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from tests.waiting import PATIENCE


def played(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """What a coroutine returns; it runs to its end, which may not take for ever."""
    return asyncio.run(asyncio.wait_for(coroutine, PATIENCE))
