"""Servers that tests start: ports that no two of them get, and what each server said."""

from __future__ import annotations

import itertools
import os
import socket
from pathlib import Path

START_SECONDS = 300.0
"""Generous: it only ends a run whose app never answers."""

LOGS: list[Path] = []
"""Files that the servers which run now log to."""

LAST_CHARACTERS = 4000
"""Of each log, beside a test that failed."""

FIRST_PORT = 20_000
"""Below those that the system gives out by itself, so that no connection takes a port between its choice and its use."""

PORTS, WORKERS = 500, 8
"""Each worker of a run has ports of its own; runs at the same time begin at different ones."""

_worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % WORKERS
_numbers = itertools.count(os.getpid())


def free_port() -> int:
    """A port of the loopback interface that nobody listens on, and that no other test of this run is given."""
    for number in itertools.islice(_numbers, PORTS):
        port = FIRST_PORT + number % PORTS * WORKERS + _worker
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
    raise RuntimeError("every port is in use")


def what_servers_said() -> list[tuple[str, str]]:
    """The end of each log, under a title: sections of a report."""
    logs = [log for log in LOGS if log.exists()]
    return [(f"log of {log.stem}", log.read_text("utf-8", "replace")[-LAST_CHARACTERS:]) for log in logs]
