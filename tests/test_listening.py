"""An address at which the app cannot listen is refused in a sentence before anything is loaded."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator

import pytest

import vit_viz
from vit_viz.cli import main
from vit_viz.errors import ParameterError
from vit_viz.listening import check_address


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that somebody listens on."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield int(server.getsockname()[1])


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GRADIO_SERVER_PORT", "GRADIO_SERVER_NAME"):
        monkeypatch.delenv(name, raising=False)


REFUSED: list[tuple[list[str], str]] = [
    (["--port", "99999"], "A port is a whole number from 1 to 65535, not 99999."),
    (["--port", "0"], "A port is a whole number from 1 to 65535, not 0."),
    (["--port", "-3"], "A port is a whole number from 1 to 65535, not -3."),
    (["--host", "203.0.113.7"], "203.0.113.7 is no address of this machine"),
    (["--host", "no..host"], "There is no host 'no..host'"),
    (["--host", "a" * 70], "There is no host 'aaa"),
]


@pytest.mark.parametrize(
    ("argv", "words"), REFUSED, ids=lambda value: " ".join(value)[:20] if isinstance(value, list) else ""
)
def test_the_command_says_it_in_one_line(
    argv: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", *argv]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert said.err.startswith(f"vit-viz: {words}")


def test_a_port_that_is_taken_is_named(taken: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--port", str(taken)]) == 2
    assert capsys.readouterr().err.startswith(f"vit-viz: Port {taken} of 127.0.0.1 is taken")
    with pytest.raises(ParameterError, match=f"Port {taken} of "):
        check_address("0.0.0.0", taken)
    with pytest.raises(ParameterError, match=f"Port {taken} of 127.0.0.1 is taken"):
        vit_viz.serve("mini", port=taken)


def test_variables_are_checked_as_flags_are(taken: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for value, words in (
        ("abc", "GRADIO_SERVER_PORT is a port"),
        ("70000", "not 70000"),
        (str(taken), "is taken"),
    ):
        monkeypatch.setenv("GRADIO_SERVER_PORT", value)
        with pytest.raises(ParameterError, match=words):
            check_address(None, None)
    monkeypatch.setenv("GRADIO_SERVER_NAME", "203.0.113.7")
    with pytest.raises(ParameterError, match="no address of this machine"):
        check_address(None, 7860)


def test_what_is_free_is_left_free(taken: int) -> None:
    check_address(None, None)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    for host in (None, "127.0.0.1", "localhost", "0.0.0.0"):
        check_address(host, port)
    assert port != taken
    with socket.socket() as server:
        server.bind(("127.0.0.1", port))


def test_the_sentence_comes_before_gradio_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vit_viz.ui.app", None)
    assert main(["serve", "--port", "99999"]) == 2
    with pytest.raises(ParameterError, match="99999"):
        vit_viz.serve("mini", port=99999)
