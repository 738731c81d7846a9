"""Where the app is to listen, checked before anything is loaded: a port that is free, an address of this machine."""

from __future__ import annotations

import errno
import os
import socket

from vit_viz.errors import ParameterError

LOCAL = "127.0.0.1"
_LARGEST_PORT = 65535


def check_address(host: str | None, port: int | None) -> None:
    """Refuse an address at which the app cannot listen.

    Args:
        host: name or address; None: GRADIO_SERVER_NAME, or this machine only.
        port: None: GRADIO_SERVER_PORT, or the first that is free, which Gradio looks for.

    Raises:
        ParameterError: the port is none or taken, or the address does not exist or is not this machine's.
    """
    asked = os.environ.get("GRADIO_SERVER_PORT", "").strip()
    if asked and not asked.isdecimal():
        raise ParameterError(f"GRADIO_SERVER_PORT is a port, not {asked[:40]!r}.")
    if port is None and asked:
        port = int(asked)
    if port is not None and not 1 <= port <= _LARGEST_PORT:
        raise ParameterError(f"A port is a whole number from 1 to {_LARGEST_PORT}, not {port}.")
    name = host or os.environ.get("GRADIO_SERVER_NAME", "").strip() or LOCAL
    for each in dict.fromkeys(
        (name, LOCAL)
    ):  # Gradio wants its port to be free on this machine's own address, too
        _bind(each, port or 0)


def _bind(host: str, port: int) -> None:
    """Take a port for a moment."""
    try:
        name = host[1:-1] if host.startswith("[") and host.endswith("]") else host
        answers = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        raise ParameterError(f"There is no host {host[:80]!r}: {LOCAL} is this machine only.") from None
    family, kind, protocol, _, address = answers[0]
    with socket.socket(family, kind, protocol) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(address)
        except OSError as error:
            raise ParameterError(
                _REASONS.get(error.errno or 0, _OTHER).format(host=host, port=port, local=LOCAL)
            ) from error


_REASONS = {
    errno.EADDRINUSE: "Port {port} of {host} is taken: end what listens there, or choose another port.",
    errno.EADDRNOTAVAIL: "{host} is no address of this machine: {local} is this machine only.",
    errno.EACCES: "Port {port} is the system's: choose one from 1024.",
}
_OTHER = "Nothing can listen at port {port} of {host}."
