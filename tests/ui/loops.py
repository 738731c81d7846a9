"""Coroutines in a test whose thread may have Playwright's event loop running already."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def played(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """What a coroutine returns; it runs to its end, which may not take for ever, in a loop and a thread of its own."""
    with ThreadPoolExecutor(1) as alone:
        return alone.submit(asyncio.run, asyncio.wait_for(coroutine, 60)).result()
