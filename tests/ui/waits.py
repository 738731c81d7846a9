"""Assertions about a page that wait until they hold: what a press or a pointer causes follows a moment later."""

from __future__ import annotations

from typing import Any

PATIENCE = 60_000  # milliseconds; ends only a test that would fail


def expect(locator: Any) -> Any:
    """Playwright's assertions about what a locator finds."""
    from playwright.sync_api import expect as awaited

    awaited.set_options(timeout=PATIENCE)
    return awaited(locator)
