"""What every test may rely on: no network, fixed seeds, shared data where it is present; and how processes share the tests."""

from __future__ import annotations

import gc
import os
import re
import socket
import sys
from collections.abc import Callable, Generator, Iterator
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests import serving
from tests.time_limits import Watchdog
from vit_viz.model import VisionTransformer, ViTConfig
from vit_viz.model.linear import forced_kernel

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")

PROCESSES = 3
"""Share a run of all tests: one looks at pages, another asks servers, and all do the rest; each takes some 2 GB.

One more than two cores, because who looks at a page waits for it half of the time.
"""

SERVED = {"browser": "browser"} | dict.fromkeys(("app", "meet", "start_app", "whole_app"), "server")
"""Fixtures that start a process which a test then waits for, and the mark that such a test has to have."""

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


def _declare_torchvision_operators() -> torch.library.Library | None:
    """Let timm import a torchvision whose compiled operators do not load beside a CPU build of torch.

    The schemas alone are enough: no test calls these operators. Where torchvision fits torch, nothing happens. It is asked by its
    version, because an import that fails leaves traces and a trial in another process takes seconds.
    """
    if find_spec("torchvision") is None or sys.platform != "linux":
        return None
    if "+cpu" not in torch.__version__ or "+cpu" in version("torchvision"):
        return None
    library = torch.library.Library("torchvision", "FRAGMENT")
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return library


_TORCHVISION_LIBRARY = _declare_torchvision_operators()  # kept, because the definitions die with it


def pytest_addoption(parser: pytest.Parser) -> None:
    """What differs between machines, so that one machine can run the tests as another would."""
    machine = parser.getgroup("vit_viz", "run the tests as on another machine")
    machine.addoption(
        "--linear-kernel",
        choices=("auto", "onednn", "torch"),
        default="torch",
        help="kernel of every linear layer of our models; auto: what this machine chose by timing, as outside tests",
    )
    machine.addoption("--threads", type=int, help="number of threads that torch computes with; default: one")


def pytest_configure(config: pytest.Config) -> None:
    """What is watched in every run, and what the processes that share one inherit."""
    config.pluginmanager.register(Watchdog())
    if (kernel := config.getoption("--linear-kernel")) != "auto":
        os.environ["VIT_VIZ_LINEAR"] = kernel  # also in processes that tests start, which then keep no choice
    if config.getoption("numprocesses", None):
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        os.environ.setdefault("PYTHONHASHSEED", "0")  # sets in parameters have one order


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Processes for all tests; what is named, or slow, runs in this one, which spares a second start."""
    is_named = config.args_source is not pytest.Config.ArgsSource.TESTPATHS
    is_alone = (os.cpu_count() or 1) < 2
    return 0 if is_named or is_alone or config.option.markexpr != "not slow" else PROCESSES


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """A file's tests stay together, for what they share; so do all with a browser, and all with a server: they share an app.

    Slow tests nearly all serve pages: they are shared by file alone.
    """
    if config.option.markexpr == "slow":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = str(super()._split_scope(nodeid))
            return _mark_of(config.rootpath / file) or file

    return Scheduling(config, log)


@cache
def _mark_of(file: Path) -> str | None:
    text = file.read_text("utf-8")
    return next((mark for mark in ("browser", "server") if f"mark.{mark}" in text), None)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What serves pages comes first: it takes longest, and the rest fills the other process meanwhile."""
    for item in items:
        if re.search(r" at 0x[0-9a-fA-F]+", item.nodeid):  # each process would call it something else
            raise pytest.UsageError(
                f"{item.nodeid} is named by an address in memory: give its parameters ids."
            )
        marks = {mark for fixture, mark in SERVED.items() if fixture in getattr(item, "fixturenames", ())}
        if marks and not any(item.get_closest_marker(mark) for mark in SERVED.values()):
            raise pytest.UsageError(
                f"{item.nodeid} starts a server or a browser: mark it as {' or '.join(marks)}."
            )
    items.sort(key=lambda item: _mark_of(item.path) is None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """A failed test tells what the servers said that run beside it."""
    report = yield
    if report.failed:
        report.sections += serving.what_servers_said()
    return report


def pytest_collection_finish() -> None:
    """What was imported stays: a search for garbage, which many tests ask for, need not pass through all of torch."""
    gc.collect()
    gc.freeze()


def pytest_report_header(config: pytest.Config) -> str:
    """What these tests compute with, so that a log says which machine it stands for."""
    threads = config.getoption("--threads") or torch.get_num_threads()
    kernel, capability = config.getoption("--linear-kernel"), torch.backends.cpu.get_cpu_capability()
    return f"linear kernel {kernel}, {threads} threads, torch computes for {capability}"


@pytest.fixture(scope="session", autouse=True)
def _machine(pytestconfig: pytest.Config) -> Iterator[None]:
    """The kernel and the threads that the command line asks for, in the process of the tests."""
    threads = pytestconfig.getoption("--threads")
    if threads:
        torch.set_num_threads(threads)
    with forced_kernel(pytestconfig.getoption("--linear-kernel")):
        yield


@pytest.fixture(autouse=True)
def _loopback_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that reaches for another host fails instead of waiting for it."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: object) -> None:
        host = address[0] if isinstance(address, tuple) else None
        if self.family in (socket.AF_INET, socket.AF_INET6) and host not in _LOOPBACK:
            raise RuntimeError(f"a test tried to reach {host!r}")
        connect(self, address)  # type: ignore[arg-type]

    monkeypatch.setattr(socket.socket, "connect", guarded)


@pytest.fixture(autouse=True)
def _seeded() -> None:
    """The same random numbers in every run and every order."""
    _seed()


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Generator[None, object, object]:
    """What several tests share draws the numbers that a test draws; otherwise they would be those that the tests before it left."""
    if fixturedef.scope == "function":
        return (yield)
    before = torch.get_rng_state(), np.random.get_state()
    _seed()
    try:
        return (yield)
    finally:
        torch.set_rng_state(before[0])
        np.random.set_state(before[1])


def pytest_collectstart() -> None:
    """What a file of tests draws while it is imported does not depend on the files before it."""
    _seed()


def _seed() -> None:
    torch.manual_seed(0)
    np.random.seed(0)


@pytest.fixture(scope="module")
def start_app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., serving.Server]]:
    """Starts apps that end with the file of tests that wanted them: `start_app("--model", "mini", HF_HOME=...)`."""
    with serving.starting(tmp_path_factory) as start:
        yield start


@pytest.fixture(scope="session")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[serving.Server]:
    """The app with the bundled model, which all files share."""
    with serving.starting(tmp_path_factory) as start:
        yield start("--model", "mini")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real checkpoints and photos, which lies beside the checkout and is not part of the project."""
    root = Path(__file__).resolve().parents[1]
    folders = [os.environ.get("VIT_VIZ_TEST_DATA"), root / ".." / "shared" / "data", root / "shared" / "data"]
    for folder in folders:
        if folder and (Path(folder) / "photos").is_dir():
            return Path(folder).resolve()
    pytest.skip("the shared test data (real checkpoints, labelled photos) is not on this machine")


@pytest.fixture
def make_model() -> Callable[..., VisionTransformer]:
    """Builds a tiny model of random weights, in which no two sizes are equal: make_model(reg_tokens=4, pooling="mean", ...)."""

    def make(**options: Any) -> VisionTransformer:
        sizes = {
            "img_size": (16, 36),
            "patch_size": (4, 6),
            "embed_dim": 40,
            "num_heads": 5,
        }
        config = ViTConfig(**sizes | {"depth": 3, "num_classes": 7, "mlp_hidden": 48} | options)
        model = VisionTransformer(config).eval()
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                parameter.normal_(std=0.3) if parameter.ndim > 1 else parameter.add_(
                    0.1 * torch.randn_like(parameter)
                )
                if name.endswith("qkv.weight"):
                    parameter.mul_(1.5)  # attention that differs from uniform
        return model

    return make
