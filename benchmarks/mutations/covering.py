"""Which tests call which functions of the package: found by running each test file once with a trace function."""

from __future__ import annotations

import hashlib
import json
import re
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from itertools import zip_longest
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

from benchmarks.mutations.faults import cached_lines, function_names

PACKAGE = "vit_viz/"


@dataclass
class Covered:
    """What one test file runs.

    Args:
        digest: of the test file.
        seconds: of the tests that passed, by test id.
        functions: "path:qualified name" of every function that a test called, by test id.
        loading: seconds until the first test began.
    """

    digest: str
    seconds: dict[str, float] = field(default_factory=dict)
    functions: dict[str, list[str]] = field(default_factory=dict)
    loading: float = 0.0


class CallRecorder:
    """A pytest plugin that notes which functions of the package each test calls, in all threads."""

    def __init__(self, root: Path) -> None:
        self.prefix = str(root / PACKAGE)
        self.cut = len(str(root)) + 1
        self.began = time.perf_counter()
        self.loading = 0.0
        self.called: set[CodeType] = set()
        # what ran once for several tests (a shared fixture, an import, behind a cache): each of them would notice
        self.shared: set[CodeType] = set()
        self.cached: dict[str, set[int]] = {}
        self.seconds: dict[str, float] = {}
        self.functions: dict[str, list[str]] = {}
        self.failed: set[str] = set()
        self.names: dict[str, dict[int, str]] = {}

    def trace(self, frame: FrameType, event: str, _argument: object) -> None:
        """The trace function; returning None, it is not asked about lines."""
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(self.prefix) and code not in self.called:
            self.called.add(code)
            if self._runs_once(frame):
                self.shared.add(code)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        """Around a test with its fixtures."""
        self.loading = self.loading or time.perf_counter() - self.began
        self.called = set()
        sys.settrace(self.trace)
        threading.settrace(self.trace)
        began = time.perf_counter()
        yield
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]
        self.seconds[item.nodeid] = round(time.perf_counter() - began, 3)
        called, self.called = self.called, set()  # threads that go on add to a set of their own
        self.functions[item.nodeid] = sorted({self._place(code) for code in called} - {""})

    @pytest.hookimpl(hookwrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Any:
        """Around a fixture: what a shared one calls counts for every test of the file, not for the first alone."""
        if fixturedef.scope == "function":
            yield
            return
        before, self.called = self.called, set()
        yield
        self.shared |= set(self.called)
        self.called |= before

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test that does not pass proves nothing about a fault."""
        if report.outcome != "passed":
            self.failed.add(report.nodeid)

    def _runs_once(self, frame: FrameType) -> bool:
        """Whether a call is part of an import, or of a function whose result is kept, so that later tests do not call it."""
        around: FrameType | None = frame
        while around is not None:
            code = around.f_code
            if code.co_filename.startswith(self.prefix):
                if code.co_filename not in self.cached:
                    self.cached[code.co_filename] = cached_lines(Path(code.co_filename).read_bytes())
                if code.co_name == "<module>" or code.co_firstlineno in self.cached[code.co_filename]:
                    return True
            around = around.f_back
        return False

    def _place(self, code: CodeType) -> str:
        """Path and qualified name; "" for what is no function of its own: lambdas, comprehensions, modules."""
        path = code.co_filename[self.cut :]
        if path not in self.names:
            self.names[path] = function_names(Path(code.co_filename).read_bytes())
        name = self.names[path].get(code.co_firstlineno, "")
        return f"{path}:{name}" if name.endswith(code.co_name) else ""

    def covered(self, root: Path, test_file: str) -> Covered:
        """The result, without the tests that did not pass."""
        passed = {test for test in self.seconds if test not in self.failed}
        shared = {self._place(code) for code in self.shared} - {""}
        return Covered(
            digest_of(root / test_file),
            {test: self.seconds[test] for test in self.seconds if test in passed},
            {test: sorted(shared.union(self.functions[test])) for test in self.functions if test in passed},
            round(self.loading, 3),
        )


class TestMap:
    """The covered functions of all test files, or of those whose path begins so, kept in one JSON file between runs."""

    __test__ = False

    def __init__(self, root: Path, file: Path, *, beginning: str = "tests") -> None:
        self.root = root
        self.file = file
        self.beginning = beginning
        known = json.loads(file.read_text()) if file.is_file() else {}
        self.files = {path: Covered(**entry) for path, entry in known.items()}

    def stale(self) -> list[str]:
        """Test files that have to be run (again) before the map is whole."""
        present = sorted(
            path
            for p in (self.root / "tests").rglob("test_*.py")
            if (path := p.relative_to(self.root).as_posix()).startswith(self.beginning)
        )
        present.sort(key=lambda path: path.count("/"))
        if not present:
            raise SystemExit(f"There is no test file at {self.beginning}: nothing can be measured.")
        self.files = {path: entry for path, entry in self.files.items() if path in present}
        return [
            path
            for path in present
            if path not in self.files or self.files[path].digest != digest_of(self.root / path)
        ]

    def put(self, path: str, entry: dict[str, Any]) -> None:
        """Keep the result of one test file."""
        self.files[path] = Covered(**entry)
        self.file.write_text(json.dumps({path: asdict(entry) for path, entry in self.files.items()}))

    def tests_of(self, path: str, function: str) -> dict[str, float]:
        """Tests that call a function, with their seconds, and those of the file of the same name, as what is cached is called once.

        Where nobody is known to call it, or it is "", those that call anything in the file or import it.
        """
        tests = (self._calling(path, function) if function else {}) or self._calling(path, "")
        for file, entry in self.files.items():
            if Path(file).stem == f"test_{Path(path).stem}":
                tests |= entry.seconds
        return tests

    def _calling(self, path: str, function: str) -> dict[str, float]:
        wanted: Callable[[str], bool] = (
            f"{path}:{function}".__eq__ if function else lambda place: place.startswith(f"{path}:")
        )
        calling = {
            test: entry.seconds[test]
            for entry in self.files.values()
            for test, functions in entry.functions.items()
            if any(map(wanted, functions))
        }
        if not function:
            for file in self._importing(path):
                calling |= self.files[file].seconds
        return calling

    def _importing(self, path: str) -> list[str]:
        module = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        parent, _, name = module.rpartition(".")
        forms = (f"import {module}", f"from {module} import", f"from {parent} import {name}")
        return [file for file in self.files if any(form in (self.root / file).read_text() for form in forms)]

    def stages(self, path: str, function: str, *, most_seconds: float) -> tuple[list[list[str]], bool]:
        """The tests for a fault in groups that are run one after the other, the likeliest first; and whether some were left out.

        Where not all fit, the file of the same name comes first, then a test of each other file in turn: they look at other things.
        """
        seconds = self.tests_of(path, function)
        name = Path(path).stem
        files: dict[str, list[str]] = {}
        for test in sorted(seconds, key=lambda test: seconds[test]):
            files.setdefault(test.partition("::")[0], []).append(test)
        cost = {
            file: self.files[file].loading + sum(seconds[test] for test in tests)
            for file, tests in files.items()
        }
        order = sorted(files, key=lambda file: (Path(file).stem.removeprefix("test_") != name, cost[file]))
        own = [test for file in order if Path(file).stem == f"test_{name}" for test in files[file]]
        in_turn = [test for turn in zip_longest(*map(files.get, order)) for test in turn if test]
        chosen = self._within([*own, *in_turn], seconds, most_seconds)
        stages: list[list[str]] = []
        stage_cost = float("inf")
        for file in order:
            tests = [test for test in files[file] if test in chosen]
            if not tests:
                continue
            if stage_cost + cost[file] > 6.0:
                stages.append([])
                stage_cost = 0.0
            stages[-1] += tests
            stage_cost += cost[file]
        return stages, len(chosen) < len(seconds)

    def _within(self, tests: list[str], seconds: dict[str, float], room: float) -> set[str]:
        """The first tests that fit into some seconds, with the loading of their files."""
        chosen: set[str] = set()
        loaded: set[str] = set()
        for test in tests:
            file = test.partition("::")[0]
            price = seconds[test] + (0.0 if file in loaded else self.files[file].loading)
            if test not in chosen and price <= room:
                room -= price
                chosen.add(test)
                loaded.add(file)
        return chosen


def digest_of(path: Path) -> str:
    """A short hash of a file; "" where there is none."""
    return hashlib.sha1(path.read_bytes()).hexdigest()[:12] if path.is_file() else ""


def script_tests(root: Path, path: str) -> list[str]:
    """JavaScript test files that load a script, also through other scripts."""
    tests = sorted((root / "tests" / "js").glob("*.test.js"))
    if not tests:
        raise SystemExit("There is no test under tests/js: nothing can be measured.")
    if not (root / "node_modules" / "happy-dom").is_dir():
        raise SystemExit("happy-dom is not installed: npm ci comes first.")
    target = (root / path).resolve()
    return [test.relative_to(root).as_posix() for test in tests if target in _loaded(test)]


def _loaded(script: Path) -> set[Path]:
    loaded: set[Path] = set()
    waiting = [script.resolve()]
    while waiting:
        one = waiting.pop()
        if one in loaded or not one.is_file():
            continue
        loaded.add(one)
        names = re.findall(r"""['"]([.]{1,2}/[^'"\n]*[.]js)['"]""", one.read_text())
        waiting += [(one.parent / name).resolve() for name in names]
    return loaded
