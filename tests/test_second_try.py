"""What failed in a server or a browser is tried once more, and nothing else is: seen on tests that fail so often."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[1] / ".ci" / "second_try.py"

TESTS = """
import os, pytest
from pathlib import Path

def fails(name, times):
    tries = Path(f"{name}.tries")
    tries.write_text(tries.read_text() + "." if tries.exists() else ".")
    assert len(tries.read_text()) > times, f"{name} fails in process {os.getpid()}"

@pytest.fixture
def closing():
    yield
    fails("closing", 1)

"""

ONCE = """
@pytest.mark.browser
def test_once():
    print("a word of the test")
    fails("once", 1)
"""

AT_ITS_END = """
@pytest.mark.server
def test_at_its_end(closing):
    pass
"""

TWICE = """
@pytest.mark.server
def test_twice():
    fails("twice", 2)
"""

SOUND = """
def test_sound():
    fails("sound", 1)
"""

PARTED = """
@pytest.mark.browser
@pytest.mark.parametrize("name", ["a b", "c[d]", "e::f", "g/h"][:{count}])
def test_parted(name):
    fails(str(abs(hash(name))), 1)
"""

FINE = """
def test_fine():
    pass
"""


def second_try(
    folder: Path, *sources: str, options: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    (folder / "test_them.py").write_text(TESTS + "".join(sources))
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n    browser\n    server\n")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    environment |= {"VIT_VIZ_FLAKY_LEDGER": str(folder / "kept" / "ledger"), "PYTHONHASHSEED": "0"}
    environment |= {
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTEST_PLUGINS": "xdist.plugin",
    }  # a quicker start
    return subprocess.run(
        [sys.executable, str(SCRIPT), *options],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def ledger(folder: Path) -> list[dict[str, str]]:
    file = folder / "kept" / "ledger"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def tries(folder: Path) -> dict[str, int]:
    return {file.stem: len(file.read_text()) for file in folder.glob("*.tries")}


@pytest.mark.parametrize(
    "options",
    [pytest.param((), id="one process"), pytest.param(("-n", "2"), id="two", marks=pytest.mark.slow)],
)
def test_what_failed_once_passes_and_is_told(tmp_path: Path, options: tuple[str, ...]) -> None:
    run = second_try(tmp_path, ONCE, AT_ITS_END, FINE, options=options)
    assert run.returncode == 0, run.stdout + run.stderr
    names = {"test_them.py::test_once", "test_them.py::test_at_its_end"}
    assert {line.split()[1] for line in run.stdout.splitlines() if line.startswith("FLAKY ")} == names
    assert {entry["test"] for entry in ledger(tmp_path)} == names
    (said,) = [entry["said"] for entry in ledger(tmp_path) if entry["test"].endswith("once")]
    assert "once fails in process" in said
    assert "a word of the test" in said


def test_the_second_try_is_in_another_process_and_of_what_failed_alone_which_may_not_fail_twice(
    tmp_path: Path,
) -> None:
    run = second_try(tmp_path, ONCE, TWICE, FINE)
    processes = {
        word
        for line in run.stdout.splitlines()
        if "fails in process" in line
        for word in line.split()
        if word.isdigit()
    }
    assert len(processes) == 2
    assert "1 failed, 1 passed" in run.stdout
    assert run.returncode == 1
    assert "REFUSED test_them.py::test_twice: failed twice." in run.stdout
    assert [entry["test"] for entry in ledger(tmp_path)] == ["test_them.py::test_once"]


def test_what_needs_no_server_and_no_browser_is_not_tried_again(tmp_path: Path) -> None:
    run = second_try(tmp_path, ONCE, SOUND)
    assert run.returncode == 1
    assert tries(tmp_path) == {"once": 1, "sound": 1}
    assert "test_them.py::test_sound" in run.stdout.splitlines()[-1]
    assert ledger(tmp_path) == []


@pytest.mark.parametrize(("count", "code"), [(3, 0), (4, 1)])
def test_three_flaky_tests_are_believed_and_four_are_not(tmp_path: Path, count: int, code: int) -> None:
    run = second_try(tmp_path, PARTED.format(count=count))
    assert run.returncode == code, run.stdout + run.stderr
    assert set(tries(tmp_path).values()) == {2 if code == 0 else 1}
    assert len(ledger(tmp_path)) == (3 if code == 0 else 0)


def test_the_ledger_counts(tmp_path: Path) -> None:
    for count in (1, 2):
        run = second_try(tmp_path, ONCE)
        assert f"FLAKY test_them.py::test_once ({count} in the ledger" in run.stdout
        (tmp_path / "once.tries").unlink()


@pytest.mark.parametrize(("source", "code"), [("def broken(:", 2), ("", 5)], ids=["no Python", "no test"])
def test_a_run_that_never_began_is_no_flaky_test(tmp_path: Path, source: str, code: int) -> None:
    assert second_try(tmp_path, source).returncode == code


def test_all_that_pass_pass(tmp_path: Path) -> None:
    run = second_try(tmp_path, FINE)
    assert run.returncode == 0
    assert "FLAKY" not in run.stdout
