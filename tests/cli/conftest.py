"""Commands on a tiny model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.ui.desk import odd_picture, odd_session
from vit_viz.cli import asking, main, others
from vit_viz.session.session import Session

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def session() -> Session:
    return odd_session()


@pytest.fixture
def run(session: Session, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command on a tiny model: its exit code, what it printed, what it said on stderr."""
    monkeypatch.setattr(asking, "Session", lambda **_options: session)
    monkeypatch.setattr(others, "Session", lambda **_options: session)

    def command(*argv: Any) -> tuple[int, str, str]:
        code = main([str(word) for word in argv])
        said = capsys.readouterr()
        return code, said.out, said.err

    return command


@pytest.fixture
def photos(tmp_path: Path) -> list[Path]:
    files = [tmp_path / f"photo {i}.png" for i in range(2)]
    for seed, file in enumerate(files):
        odd_picture(seed).save(file)
    return files
