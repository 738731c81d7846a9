"""Assertions about a page that wait until they hold: what a press or a pointer causes follows a moment later."""

from __future__ import annotations

from typing import Any

from tests.waiting import PATIENCE


def expect(locator: Any) -> Any:
    """Playwright's assertions about what a locator finds."""
    from playwright.sync_api import expect as awaited

    awaited.set_options(timeout=PATIENCE * 1000)
    return awaited(locator)
