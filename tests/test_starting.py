"""Apps that tests start leave nothing behind, whether they answer or not."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from tests import serving


def test_an_app_that_does_not_answer_is_stopped(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    processes: list[subprocess.Popen[bytes]] = []

    def silent(url: str, process: subprocess.Popen[bytes]) -> None:
        processes.append(process)
        raise RuntimeError(f"the app did not answer at {url}")

    def fixture() -> Any:
        with serving.starting(tmp_path_factory) as start:
            yield start("--model", "mini")

    logs = list(serving.LOGS)
    monkeypatch.setattr(serving, "wait_for", silent)
    with pytest.raises(RuntimeError, match="did not answer"):
        next(fixture())
    assert [process.poll() is None for process in processes] == [False]
    assert logs == serving.LOGS
