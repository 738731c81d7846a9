"""Visitors of the app that quick tests share, or of one that a test measures or breaks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.http.visitor import Visitor
from tests.serving import Server


@pytest.fixture
def meet(app: Server) -> Iterator[Callable[..., Visitor]]:
    """A new visitor of the shared app, or of another one."""
    met: list[Visitor] = []

    def visitor(of: Server | None = None, **options: Any) -> Visitor:
        met.append(Visitor(of or app, **options))
        return met[-1]

    yield visitor
    for one in met:
        one.close()


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    """A folder that no server looks into."""
    return tmp_path
