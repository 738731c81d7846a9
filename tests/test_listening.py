"""An address at which the app cannot listen is refused in a sentence before anything is loaded."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Iterator

import httpx
import pytest

import vit_viz
from tests.serving import Server
from vit_viz.cli import main
from vit_viz.errors import ParameterError
from vit_viz.listening import check_address, server_name
from vit_viz.session.session import Session
from vit_viz.ui.app import exposure_of, launch_options


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that somebody listens on."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield int(server.getsockname()[1])


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GRADIO_SERVER_PORT", "GRADIO_SERVER_NAME", "GRADIO_NUM_PORTS"):
        monkeypatch.delenv(name, raising=False)


REFUSED: list[tuple[list[str], str]] = [
    (["--port", "99999"], "A port is a whole number from 1 to 65535, not 99999."),
    (["--port", "0"], "A port is a whole number from 1 to 65535, not 0."),
    (["--port", "-3"], "A port is a whole number from 1 to 65535, not -3."),
    (["--host", "203.0.113.7"], "203.0.113.7 is no address of this machine"),
    (["--host", "no..host"], "There is no host 'no..host'"),
    (["--host", "a" * 70], "There is no host 'aaa"),
    (["--host", "[::1]:7860"], "There is no host '[::1]:7860'"),
    (["--host", "localhost:80"], "There is no host 'localhost:80'"),
    (["--host", "\0"], "There is no host '\\x00'"),
    (["--host", "2001:db8::7"], "2001:db8::7 is no address of this machine"),
    (["--host", "[2001:db8::7]"], "2001:db8::7 is no address of this machine"),
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
    monkeypatch.setenv("GRADIO_NUM_PORTS", "few")
    with pytest.raises(ParameterError, match="GRADIO_NUM_PORTS is a number of ports such as 100, not 'few'"):
        check_address(None, None)
    monkeypatch.delenv("GRADIO_NUM_PORTS")
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


def test_an_empty_variable_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GRADIO_SERVER_PORT", "GRADIO_NUM_PORTS", "GRADIO_SERVER_NAME"):
        monkeypatch.setenv(name, " ")
    check_address(None, None)
    # of which Gradio would make numbers when it is imported
    assert "GRADIO_SERVER_PORT" not in os.environ
    assert "GRADIO_NUM_PORTS" not in os.environ
    assert server_name(None) == server_name("") == "127.0.0.1"  # "" would be every address of the machine


def test_a_port_is_a_number_in_python_too() -> None:
    for port in ("7860", 7860.0):
        with pytest.raises(ParameterError, match="A port is a whole number from 1 to 65535, not "):
            vit_viz.serve("mini", port=port)


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


needs_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="this machine has no address of IPv6")


@needs_ipv6
def test_an_address_of_ipv6_is_taken_with_brackets_and_without(monkeypatch: pytest.MonkeyPatch) -> None:
    for host in ("::1", "[::1]", " ::1 ", "::", "[::]"):
        check_address(host, None)
        assert server_name(host) in ("::1", "::")
    monkeypatch.setenv("GRADIO_SERVER_NAME", "[::1]")
    check_address(None, None)
    assert server_name(None) == "::1"


@needs_ipv6
def test_a_port_that_is_taken_on_ipv6_is_named() -> None:
    with socket.socket(socket.AF_INET6) as server:
        server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        server.bind(("::1", 0))
        server.listen()
        port = int(server.getsockname()[1])
        for host in ("::1", "[::1]", "::"):
            with pytest.raises(ParameterError, match=f"Port {port} of ::1? is taken"):
                check_address(host, port)
        check_address("127.0.0.1", port)


def test_an_app_on_ipv6_has_brackets_in_its_address_and_is_only_this_machines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for host, named, is_shared in (("::1", "[::1]", False), ("[::1]", "[::1]", False), ("::", "[::]", True)):
        options = launch_options(Session(model="mini", device="cpu"), host=host)
        assert (options["server_name"], exposure_of(host, share=False).is_shared) == (named, is_shared)


@pytest.mark.server
@needs_ipv6
def test_the_app_answers_at_an_address_of_ipv6(start_app: Callable[..., Server]) -> None:
    # Gradio would look for a free port at the address of its variable, by IPv4
    app = start_app("--host", "::1", "--model", "mini", GRADIO_SERVER_NAME="::1")
    assert app.is_alive()
    assert f"http://[::1]:{app.port}" in app.said()
    assert httpx.get(f"{app.url}/health", headers={"host": f"[::1]:{app.port}"}).status_code == 200
    assert httpx.get(f"{app.url}/", headers={"host": "evil.example"}).status_code == 421
