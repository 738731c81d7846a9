"""Long runs show a bar where somebody watches, and nothing anywhere else."""

from __future__ import annotations

import io
import os
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import vit_viz as vv
from vit_viz import progress
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.progress import bar, counting
from vit_viz.session.run import session_of

pty, fcntl, termios = (
    pytest.importorskip(name, reason="there are no pseudo terminals on this system")
    for name in ("pty", "fcntl", "termios")
)

LONG: dict[str, Callable[[Any], Any]] = {
    "ablation": lambda progress: vv.ablate_heads("mini", "lion", size=6, progress=progress),
    "explain": lambda progress: vv.explain(
        "mini", "lion", methods=("rollout", "occlusion"), size=6, progress=progress
    ),
    "faithfulness": lambda progress: vv.faithfulness(
        "mini",
        "lion",
        vv.explain("mini", "lion", size=6, progress=False)["relevance"],
        size=6,
        progress=progress,
    ),
    "map_stability": lambda progress: vv.map_stability(
        PreparedImage.of("mini", "lion", size=6), method="rollout", tries=2, progress=progress
    ),
    "map_stability of": lambda progress: vv.run(
        "mini", "lion", "map_stability", method="rollout", tries=2, progress=progress
    ),
    "ablation of": lambda progress: vv.figure("mini", "lion", "ablation", format="csv", progress=progress),
}


class Screen:
    """A pseudo terminal, and what was written to it."""

    def __init__(self) -> None:
        self._read_end, write_end = pty.openpty()
        os.set_blocking(self._read_end, False)
        fcntl.ioctl(write_end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
        self.file = os.fdopen(write_end, "w")

    def close(self) -> None:
        self.file.close()
        os.close(self._read_end)

    def read(self) -> str:
        """What was written since."""
        self.file.flush()
        said = b""
        try:
            while part := os.read(self._read_end, 65536):
                said += part
        except BlockingIOError:
            pass
        return said.decode()


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Screen]]:
    """Puts a terminal in the place of stderr, when the test is running: pytest has its own there before."""
    screen = Screen()
    monkeypatch.setattr(progress, "DELAY_SECONDS", 0)

    def begin() -> Screen:
        monkeypatch.setattr(sys, "stderr", screen.file)
        return screen

    yield begin
    screen.close()


@pytest.fixture(autouse=True)
def _nothing_kept() -> None:
    session_of.cache_clear()


@pytest.mark.parametrize("name", LONG)
def test_a_long_run_shows_a_bar_at_a_terminal(terminal: Callable[[], Screen], name: str) -> None:
    screen = terminal()
    LONG[name](None)
    assert f"{name.removesuffix(' of')} " in screen.read()


@pytest.mark.parametrize("name", LONG)
def test_a_run_with_a_listener_of_its_own_or_none_shows_nothing(
    terminal: Callable[[], Screen], name: str
) -> None:
    screen = terminal()
    shares: list[float] = []
    LONG[name](False)
    session_of.cache_clear()  # of an answer that is kept nothing is told
    LONG[name](shares.append)
    assert screen.read() == ""
    assert shares[-1] == 1


@pytest.mark.parametrize("name", LONG)
def test_nothing_is_shown_where_nobody_watches(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    log = io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    monkeypatch.setattr(progress, "DELAY_SECONDS", 0)
    LONG[name](None)
    assert log.getvalue() == ""


def test_a_bar_shows_the_share_and_is_gone_at_the_end(terminal: Callable[[], Screen]) -> None:
    screen = terminal()
    with bar("twins") as follow:
        assert follow is not None
        assert "twins" in screen.read()
        follow(0.5)
        assert "50%" in screen.read()
        follow(0.75)
        assert "75%" in screen.read()
    last = screen.read().split("\r")
    assert last[-1] == ""
    assert last[-2].strip() == ""  # blanks over all of it


def test_a_bar_waits_before_it_is_shown(
    terminal: Callable[[], Screen], monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = terminal()
    now = [0.0]
    monkeypatch.setattr("tqdm.std.time", lambda: now[0])
    monkeypatch.setattr(progress, "DELAY_SECONDS", 0.5)
    with bar("twins") as follow:
        assert follow is not None
        now[0] = 0.4
        follow(0.25)
        assert screen.read() == ""
        now[0] = 0.6
        follow(0.5)
        assert "50%" in screen.read()


def test_a_notebook_is_watched_and_ipython_at_no_terminal_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    for shell, watched in ((SimpleNamespace(kernel=1), True), (SimpleNamespace(), False), (None, False)):
        package = ModuleType("IPython")
        package.get_ipython = lambda shell=shell: shell  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "IPython", package)
        assert progress.is_watched() == watched


def test_a_process_without_stderr_is_not_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    assert not progress.is_watched()


def test_an_error_ends_the_bar(terminal: Callable[[], Screen]) -> None:
    screen = terminal()
    with pytest.raises(vv.ParameterError), bar("twins"):
        raise vv.ParameterError("Wrong.")
    assert screen.read().endswith("\r")


def test_a_survey_counts_its_photos(terminal: Callable[[], Screen], tmp_path: Path) -> None:
    screen = terminal()
    for name in ("lion", "shapes"):
        vv.samples.sample(name).resize((48, 64)).save(tmp_path / f"{name}.png")
    for out, told, shown in (("a", None, True), ("b", False, False), ("c", lambda *_: None, False)):
        vv.survey("mini", tmp_path, tmp_path / out, size=4, progress=told)
        assert ("2/2" in screen.read()) == shown


def test_counting_asks_who_listens(terminal: Callable[[], Screen]) -> None:
    screen = terminal()
    with counting("photos", False) as follow:
        assert follow is None
    heard: list[tuple[int, int]] = []
    with counting("photos", lambda *one: heard.append(one)) as follow:
        assert follow is not None
        follow(3, 7)
    assert (heard, screen.read()) == ([(3, 7)], "")
