"""Runs the tests; what failed in a server or a browser is tried once more, in a new process with new servers and browsers.

Passed then: the run goes on, the test is told of as FLAKY with what it said, and stands in a ledger from then on (docs/TESTING.md).
Nothing else is tried again: a fault below the page fails every time, and more than three such tests at once are no accident.

    python .ci/second_try.py [argument of pytest ...]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

MOST = 3
"""Flaky tests of one run that are believed."""

LEDGER = Path(
    os.environ.get("VIT_VIZ_FLAKY_LEDGER")
    or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "vit_viz-ci" / "flaky.jsonl"
)

TESTS_FAILED = 1
"""pytest's exit code where tests ran and some failed; every other is a fault of the run."""


class Failures:
    """A pytest plugin: each failed test with its name, whether it speaks to a server or a browser, and what it said."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Called in the process that hears of all tests, for each of their three phases."""
        if report.failed:
            said = "\n".join([report.longreprtext, *(f"-- {name}\n{text}" for name, text in report.sections)])
            entry = {
                "test": report.nodeid,
                "served": bool({"browser", "server"} & set(report.keywords)),
                "said": said,
            }
            with self._file.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")


def pytest_configure(config: Any) -> None:
    """Listens where all tests are heard of: not in the workers."""
    file = os.environ.get("VIT_VIZ_FAILURES")
    if file and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Failures(Path(file)))


def run(arguments: list[str]) -> tuple[int, dict[str, dict[str, Any]]]:
    """pytest's exit code and the failed tests by name; a test that fails in two phases is one."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "failures")
        file.touch()
        here = str(Path(__file__).resolve().parent)
        environment = os.environ | {
            "VIT_VIZ_FAILURES": str(file),
            "PYTHONPATH": os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")])),
        }
        command = [sys.executable, "-m", "pytest", "-p", "second_try", *arguments]
        code = subprocess.run(command, env=environment, check=False).returncode
        failures: dict[str, dict[str, Any]] = {}
        for line in file.read_text("utf-8").splitlines():
            entry = json.loads(line)
            known = failures.setdefault(entry["test"], entry)
            if known is not entry:
                known["said"] += "\n" + entry["said"]
        return code, failures


def note(test: str, said: str) -> int:
    """Writes a flaky test into the ledger; returns how often it stands there now."""
    LEDGER.parent.mkdir(parents=True, exist_ok=True)
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    entry = {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit,
        "test": test,
        "said": said[-20_000:],
    }
    with LEDGER.open("a", encoding="utf-8") as file:
        file.write(json.dumps(entry) + "\n")
    return sum(json.loads(line)["test"] == test for line in LEDGER.read_text("utf-8").splitlines())


def main(arguments: list[str]) -> int:
    """The exit code: pytest's own, or 0 where every failure was of a server or a browser and did not come again."""
    code, failures = run(arguments)
    if code != TESTS_FAILED or not failures:
        return code
    sound = sorted(test for test, entry in failures.items() if not entry["served"])
    if sound:
        print(
            f"REFUSED without a second try: {len(sound)} failed that need no server and no browser, the first {sound[0]}."
        )
        return code
    if len(failures) > MOST:
        print(
            f"REFUSED without a second try: {len(failures)} tests failed, and more than {MOST} are no accident."
        )
        return code
    print(f"A second try of {len(failures)}, in a new process.", flush=True)
    again, repeated = run([*failures, "-n", "0", "-m", ""])
    for test, entry in failures.items():
        if test in repeated:
            print(f"REFUSED {test}: failed twice.")
        elif again in (0, TESTS_FAILED):
            print(f"{entry['said']}\nFLAKY {test} ({note(test, entry['said'])} in the ledger {LEDGER})")
    return again


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
