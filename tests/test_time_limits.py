"""A test that hangs is a failure with a stack, wherever it hangs: seen on tests that do, each in a run of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.time_limits import SLOW, limit_of

ROOT = Path(__file__).resolve().parents[1]

PLUGIN = """
import sys
sys.path.insert(0, {root!r})
from tests.time_limits import Watchdog

def pytest_configure(config):
    config.pluginmanager.register(Watchdog(slow=2, grace=1))
"""

IN_THE_TEST = """
import threading

def test_hangs():
    waits_for_ever = threading.Event()
    waits_for_ever.wait()

def test_after_it():
    pass
"""

IN_ITS_FIXTURE = """
import threading, pytest

@pytest.fixture
def server():
    yield
    threading.Event().wait()

def test_hangs_and_then_its_fixture(server):
    threading.Event().wait()
"""

IN_A_LIBRARY = """
import signal, threading

def test_cannot_be_interrupted():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})  # as in compiled code: no signal arrives
    threading.Event().wait()
"""

IN_A_THREAD = """
import threading

def stays():
    threading.Event().wait()

def test_leaves_a_thread():
    threading.Thread(target=stays).start()
"""

SLOWLY = """
import pytest, threading

@pytest.mark.slow
def test_takes_long():
    threading.Event().wait()
"""


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (IN_THE_TEST, ["waits_for_ever.wait()", "Timeout (>1.0s)", "1 failed, 1 passed"]),
        pytest.param(IN_ITS_FIXTURE, ["Timeout (0:00:01)!", "in server"], marks=pytest.mark.slow),
        (IN_A_LIBRARY, ["Timeout (0:00:02)!", "in test_cannot_be_interrupted"]),
        pytest.param(IN_A_THREAD, ["1 passed", "Timeout (0:00:01)!", "in stays"], marks=pytest.mark.slow),
        pytest.param(SLOWLY, ["Timeout (>2.0s)", "1 failed"], marks=pytest.mark.slow),
    ],
    ids=["test", "fixture", "library", "thread", "slow"],
)
def test_what_hangs_ends_with_its_stack(tmp_path: Path, source: str, words: list[str]) -> None:
    (tmp_path / "conftest.py").write_text(PLUGIN.format(root=str(ROOT)))
    (tmp_path / "test_hanging.py").write_text(source)
    (tmp_path / "pytest.ini").write_text("[pytest]\ntimeout = 1\nmarkers = slow\n")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "pytest_timeout",
        "-p",
        "no:cacheprovider",
        "test_hanging.py",
    ]
    run = subprocess.run(
        command,
        cwd=tmp_path,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    said = run.stdout + run.stderr
    assert run.returncode == 1, said
    for text in words:
        assert text in said


def test_every_test_has_a_limit(request: pytest.FixtureRequest) -> None:
    limits = [limit_of(item) for item in request.session.items]
    assert min(limits) > 0
    assert max(limits) <= SLOW
