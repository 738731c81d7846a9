"""An app with all eight tabs, and pages of it in windows of their own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.serving import starting


@pytest.fixture(scope="session")
def whole_app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of the app with the bundled model and the example of a survey."""
    pytest.importorskip("duckdb", reason="surveys are opened by duckdb, which is not installed here")
    with starting(tmp_path_factory) as start:
        yield start("--model", "mini", "--survey", "example").url


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Any]]:
    """Open an address in a window of its own; its server will be lost, which the console tells, so nothing is listened to."""
    contexts = []

    def open_page(url: str, *, script: str = "", **how: Any) -> Any:
        contexts.append(browser.new_context(**how))
        if script:
            contexts[-1].add_init_script(script)
        page = contexts[-1].new_page()
        page.goto(url)
        return page

    yield open_page
    for context in contexts:
        context.close()


def nothing(found: dict[str, Any]) -> None:
    """Fail where something was found anywhere, and say what."""
    found = {place: what for place, what in found.items() if what}
    assert found == {}, json.dumps(found, indent=1)
