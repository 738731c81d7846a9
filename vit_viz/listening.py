"""The address and port that the app listens on, checked before anything is loaded: a free port, an address of this machine."""

from __future__ import annotations

import errno
import os
import socket

from vit_viz.errors import ParameterError
from vit_viz.settings import setting, whole_number

LOCAL = "127.0.0.1"
_LARGEST_PORT = 65535


def server_name(host: str | None) -> str:
    """The name or address to listen on: the host, else GRADIO_SERVER_NAME, else this machine only; IPv6 without its brackets."""
    name = (host or "").strip() or setting("GRADIO_SERVER_NAME") or LOCAL
    return name[1:-1] if name.startswith("[") and name.endswith("]") else name


def check_address(host: str | None, port: int | None) -> None:
    """Refuse an address at which the app cannot listen. To be called before Gradio is imported, which reads its variables then.

    Args:
        host: name or address; None: GRADIO_SERVER_NAME, or this machine only.
        port: None: GRADIO_SERVER_PORT, or the first that is free, which Gradio looks for.
    """
    whole_number("GRADIO_NUM_PORTS", 100, unit="ports")
    configured = setting("GRADIO_SERVER_PORT")
    for variable in ("GRADIO_NUM_PORTS", "GRADIO_SERVER_PORT"):
        if not setting(variable):
            os.environ.pop(variable, None)  # Gradio takes an empty one for a number
    if configured and not configured.isdecimal():
        raise ParameterError(f"GRADIO_SERVER_PORT is a port, not {configured[:40]!r}.")
    if port is None and configured:
        port = int(configured)
    if port is not None and not (isinstance(port, int) and 1 <= port <= _LARGEST_PORT):
        raise ParameterError(f"A port is a whole number from 1 to {_LARGEST_PORT}, not {port!r}.")
    # Gradio wants its port to be free on this machine's own address, too
    for name in dict.fromkeys((server_name(host), LOCAL)):
        _bind(name, port or 0)


def _bind(host: str, port: int) -> None:
    """Take a port for a moment on every address that a name stands for, as the web server does."""
    try:
        answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError, ValueError):
        raise ParameterError(f"There is no host {host[:80]!r}: {LOCAL} is this machine only.") from None
    try:
        for family, kind, protocol, _, address in answers:
            with socket.socket(family, kind, protocol) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
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
