"""The options of the command line by which one machine runs the tests as another would."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from vit_viz.checkpoints import load
from vit_viz.model.linear import Linear


class OneDnnCalls(TorchDispatchMode):
    """How often oneDNN's linear kernel runs, counted where torch calls it."""

    count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += func is torch.ops.mkldnn._linear_pointwise.default
        return func(*args, **(kwargs or {}))


@pytest.mark.numbers
def test_a_loaded_model_runs_the_kernel_and_the_threads_of_this_run(pytestconfig: pytest.Config) -> None:
    loaded = load("mini", device="cpu")
    told = dict(loaded.provenance.parameters)["linear"]
    layers = sum(isinstance(part, Linear) for part in loaded.model.modules())
    with OneDnnCalls() as calls, torch.no_grad():
        loaded.model(torch.zeros(1, 3, *loaded.config.img_size))
    assert layers == 4 * loaded.config.depth + 1
    assert calls.count == (layers if told == "oneDNN" else 0)
    asked = pytestconfig.getoption("--linear-kernel")
    assert asked == "auto" or told.lower() == asked
    assert torch.get_num_threads() == (pytestconfig.getoption("--threads") or torch.get_num_threads())


@pytest.mark.slow
@pytest.mark.parametrize(("kernel", "threads"), [("onednn", 3), ("torch", 1)])
def test_the_options_reach_a_run(kernel: str, threads: int) -> None:
    test = test_a_loaded_model_runs_the_kernel_and_the_threads_of_this_run.__name__
    options = ["--linear-kernel", kernel, "--threads", str(threads), "-p", "no:cacheprovider"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options, f"tests/model/test_machine.py::{test}"],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "1 passed" in run.stdout, run.stdout + run.stderr
    assert f"linear kernel {kernel}, {threads} threads" in run.stdout
