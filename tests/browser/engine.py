"""The engine of the page, run by Node.js: jobs in, results with their numbers out; one process for many jobs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

SCRIPT = Path(__file__).resolve().parents[1] / "js" / "engine_jobs.js"
Numbers = NDArray[np.float32]
Kernels = Literal["plain", "relaxed"]
"""Of `npm run wasm`: relaxed ones have fused multiply-add."""


class Jobs:
    """What the engine is asked for, job by job, and at the end its answers in the same order."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.jobs: list[dict[str, Any]] = []
        self._input = bytearray()

    def add(self, kind: str, **job: Any) -> None:
        self.jobs.append({"kind": kind, **job})

    def numbers(self, array: NDArray[Any]) -> list[int]:
        """Where an array's bytes lie in the input, as the script reads it: [offset, count]."""
        self._input += b"\0" * (-len(self._input) % 4)
        start = len(self._input)
        self._input += np.ascontiguousarray(array).tobytes()
        return [start, array.size]

    def picture(self, image: Image.Image) -> dict[str, Any]:
        """A picture as a browser's canvas gives it: four channels."""
        levels = np.array(image.convert("RGBA"))
        return {
            "height": image.height,
            "width": image.width,
            "channels": 4,
            "levels": self.numbers(levels),
        }

    def run(self, kernels: Kernels = "plain") -> list[dict[str, Any]]:
        """The results; those of a job that was refused are {"error": the sentence}."""
        (self.folder / "jobs.json").write_text(json.dumps(self.jobs))
        (self.folder / "input.bin").write_bytes(bytes(self._input))
        command = [node(), str(SCRIPT), str(self.folder), kernels]
        done = subprocess.run(command, capture_output=True, text=True, timeout=170)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        output = np.frombuffer((self.folder / "output.bin").read_bytes(), np.float32)
        results = json.loads((self.folder / "results.json").read_text())
        assert len(results) == len(self.jobs)
        return [_with_numbers(result, output) for result in results]


def node() -> str:
    """Node.js; a test that needs it fails in CI where it is missing, and is left out elsewhere."""
    path = shutil.which("node")
    if path is not None:
        return path
    if os.environ.get("CI"):
        pytest.fail("Node.js is not installed, so the engine of the page is not tested")
    pytest.skip("Node.js is not installed")


def _with_numbers(value: Any, output: Numbers) -> Any:
    """A result whose {"at": [offset, count]} are the numbers that lie there."""
    if isinstance(value, list):
        return [_with_numbers(item, output) for item in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"at"}:
        offset, count = value["at"]
        return output[offset // 4 : offset // 4 + count]
    return {name: _with_numbers(item, output) for name, item in value.items()}
