"""Runs tests against a copy of the repository in which one thing is wrong; the repository itself is never written to.

A worker loads torch, Gradio and pytest once; every run is a fork of it that imports the package from the copy, so that a fault
whose test fails at once takes about a second.
"""

from __future__ import annotations

import compileall
import contextlib
import importlib
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

from benchmarks.mutations.covering import CallRecorder, TestMap, script_tests
from benchmarks.mutations.faults import Fault

PRELOADED = (
    "torch",
    "numpy",
    "PIL.Image",
    "gradio",
    "plotly.graph_objects",
    "scipy.stats",
    "safetensors.torch",
)
LOG = ".mutation-log"
MEASURING_SECONDS = 1200.0  # of one test file
HUNG_SECONDS = 60.0  # and ten times what the test takes otherwise


@dataclass(frozen=True)
class Outcome:
    """What became of one fault: "caught", "missed", "hung" (a test did not end: caught too), or "not run" (no test calls it).

    Args:
        by: the test that failed or hung.
        seconds: that the runs took.
        cut: whether tests were left out for lack of time.
    """

    status: str
    by: str = ""
    seconds: float = 0.0
    cut: bool = False


class Workplace:
    """One copy of the repository, and the runs in it."""

    def __init__(self, root: Path, copy: Path) -> None:
        self.root = root
        self.copy = copy
        listed = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=root, capture_output=True, check=True
        ).stdout
        for name in filter(None, listed.decode().split("\0")):
            if (root / name).is_file():
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, copy / name)
        (copy / "node_modules").symlink_to(root / "node_modules")
        data = os.environ.get("VIT_VIZ_TEST_DATA") or str(root.parent / "shared" / "data")
        self.environment = {
            "VIT_VIZ_TEST_DATA": data,
            "PYTHONDONTWRITEBYTECODE": "1",
            "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
            "HF_HUB_OFFLINE": "1",
            "GRADIO_ANALYTICS_ENABLED": "False",
        }
        compileall.compile_dir(copy / "vit_viz", quiet=2, invalidation_mode=_NEVER_CHECKED)
        os.environ.update(self.environment)
        for name in PRELOADED:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)

    # --- faults

    def judge(self, fault: Fault, tests: TestMap, *, most_seconds: float) -> Outcome:
        """Whether the tests that cover a fault notice it."""
        began = time.perf_counter()
        with self._with(fault):
            if fault.path.endswith(".js"):
                status, by, cut = *self._run_scripts(script_tests(self.root, fault.path)), False
            else:
                stages, cut = tests.stages(fault.path, fault.function, most_seconds=most_seconds)
                usual = tests.tests_of(fault.path, fault.function)
                status, by = "not run", ""
                for stage in stages:
                    status, by = self._run_tests(stage, usual)
                    if status != "missed":
                        break
        return Outcome(status, by, round(time.perf_counter() - began, 2), cut)

    @contextlib.contextmanager
    def _with(self, fault: Fault) -> Iterator[None]:
        """The copy with this fault; compiled code of the file is put aside, so that nobody runs it by mistake."""
        file = self.copy / fault.path
        source = file.read_bytes()
        compiled = Path(importlib.util.cache_from_source(str(file)))
        aside = compiled.with_suffix(".aside")
        if compiled.is_file():
            compiled.rename(aside)
        try:
            file.write_bytes(fault.apply(source))
            yield
        finally:
            file.write_bytes(source)
            if aside.is_file():
                aside.rename(compiled)

    def _run_scripts(self, tests: list[str]) -> tuple[str, str]:
        if not tests:
            return "not run", ""
        process = subprocess.Popen(
            ["node", "tests/js/run.js", *tests],
            cwd=self.copy,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            return ("caught" if process.wait(HUNG_SECONDS) else "missed"), ""
        except subprocess.TimeoutExpired:
            return "hung", ""
        finally:
            _end(process.pid)
            process.wait()

    def _run_tests(self, tests: list[str], usual: dict[str, float]) -> tuple[str, str]:
        progress = self.copy / ".mutation-progress"
        progress.write_text("{}")
        child = self._fork(lambda: _run_pytest(["-x", *tests], _Progress(progress)))
        running, since = "", time.monotonic()
        while True:
            ended, code = os.waitpid(child, os.WNOHANG)
            now = _read(progress)
            if ended:
                _end(child)
                missed = os.WIFEXITED(code) and os.WEXITSTATUS(code) == 0
                return ("missed", "") if missed else ("caught", now.get("failed", now.get("running", "")))
            if now.get("running", "") != running:
                running, since = now.get("running", ""), time.monotonic()
            if time.monotonic() - since > HUNG_SECONDS + 10 * usual.get(running, 6.0):
                _end(child)
                os.waitpid(child, 0)
                return "hung", running
            time.sleep(0.05)

    # --- the map

    def measure(self, test_file: str) -> dict[str, Any]:
        """What the tests of one file call, each seen to pass without a fault."""
        result = self.copy / ".mutation-covered"
        recorder = CallRecorder(self.copy)

        def work() -> int:
            code = _run_pytest([test_file], recorder)
            if code not in (0, 1, _NO_TESTS):
                return code
            result.write_text(json.dumps(asdict(recorder.covered(self.copy, test_file))))
            return code

        child, deadline = self._fork(work), time.monotonic() + MEASURING_SECONDS
        while not os.waitpid(child, os.WNOHANG)[0]:
            if time.monotonic() > deadline:
                _end(child)
                os.waitpid(child, 0)
                break
            time.sleep(0.05)
        _end(child)
        if not result.is_file():
            raise SystemExit(f"{test_file} could not be measured:\n{(self.copy / LOG).read_text()[-2000:]}")
        outcome: dict[str, Any] = json.loads(result.read_text())
        result.unlink()
        return outcome

    def _fork(self, work: Any) -> int:
        child = os.fork()
        if child:
            return child
        code = 70
        try:
            os.setsid()
            os.chdir(self.copy)
            sys.dont_write_bytecode = True
            sys.path[:] = [str(self.copy), *(p for p in sys.path if p and Path(p).resolve() != self.root)]
            for name in [n for n in sys.modules if n.partition(".")[0] in ("benchmarks", "tests", "vit_viz")]:
                del sys.modules[name]
            with open(os.devnull, "rb") as nowhere, (self.copy / LOG).open("wb") as log:
                for stream, file in enumerate((nowhere, log, log)):
                    os.dup2(file.fileno(), stream)
            code = work()
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)


class _Progress:
    """A pytest plugin that says which test is running, and which one failed."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._say(running=nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._say(failed=report.nodeid)

    def _say(self, **words: str) -> None:
        new = self.file.with_suffix(".new")
        new.write_text(json.dumps(words))
        new.replace(self.file)


def _run_pytest(arguments: list[str], plugin: object) -> int:
    preloaded = "ignore:Module already imported:pytest.PytestAssertRewriteWarning"  # anyio, with Gradio
    flags = ["-q", "-m", "not slow and not browser", "-p", "no:cacheprovider", "-W", preloaded]
    return int(pytest.main([*flags, *arguments], plugins=[plugin]))


def _read(progress: Path) -> dict[str, str]:
    with contextlib.suppress(OSError, ValueError):
        state: dict[str, str] = json.loads(progress.read_text())
        return state
    return {}


def _end(group: int) -> None:
    """End what a run started and left behind."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


_NO_TESTS = 5  # pytest's exit code where all are deselected: browser tests
_NEVER_CHECKED: Any = importlib.import_module("py_compile").PycInvalidationMode.UNCHECKED_HASH
