"""Apps that tests start, each in a process of its own: their ports, which no two of them get, their logs, memory and files."""

from __future__ import annotations

import itertools
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

ROOT = Path(__file__).resolve().parents[1]

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


def wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    """Return once the app answers; fail if it ends or stays silent."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if httpx.get(url, timeout=10).status_code == 200:
                return
        except httpx.HTTPError:
            time.sleep(0.1)
    raise RuntimeError(f"the app did not answer at {url}")


@dataclass
class Server:
    """`python app.py` on a port of its own.

    Args:
        folder: for its log and, unless `environment` says otherwise, its temporary files.
        flags: of the command.
        environment: variables on top of those of the tests.
        root: where its app.py lies.
        most_file_bytes: the largest file that it may write; beyond it the system answers as a full disk does.
        before: Python that runs before the app does, to shorten a time that a test cannot wait for.
    """

    folder: Path
    flags: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    root: Path = ROOT
    most_file_bytes: int | None = None
    before: str = ""
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        host = self.flags[self.flags.index("--host") + 1] if "--host" in self.flags else "127.0.0.1"
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"

    @property
    def log(self) -> Path:
        return self.folder / f"{self.port}.log"

    @property
    def files(self) -> Path:
        return Path(self.environment.get("GRADIO_TEMP_DIR", str(self.folder / f"{self.port}-files")))

    def start(self) -> Server:
        """Start it, again if it ran before, and wait until it answers."""
        variables = os.environ | {
            "GRADIO_ANALYTICS_ENABLED": "False",
            "HF_HUB_OFFLINE": "1",
            "GRADIO_TEMP_DIR": str(self.files),
        }
        before = self.before
        flags = ("--device", "cpu", "--port", str(self.port), *self.flags)
        if self.most_file_bytes is not None:
            limit = (
                f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({self.most_file_bytes},) * 2)"
            )
            before = f"{limit}\n{before}"
        start = ("-c", f"{before}\nimport app; app.main()") if before else (str(self.root / "app.py"),)
        command = [sys.executable, *start, *flags]
        if self.log not in LOGS:
            LOGS.append(self.log)
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                command,
                cwd=self.root,
                env=variables | self.environment,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        try:
            wait_for(self.url, self.process)
        except RuntimeError as error:
            self.stop(signal.SIGKILL)
            raise RuntimeError(f"{error}; it said:\n{self.said()[-3000:]}") from None
        return self

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End this process and no other."""
        if self.process is None:
            return
        if self.log in LOGS:
            LOGS.remove(self.log)
        self.process.send_signal(how)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def is_alive(self) -> bool:
        assert self.process is not None
        return self.process.poll() is None and httpx.get(f"{self.url}/", timeout=30).status_code == 200

    def said(self) -> str:
        """Everything it has printed or logged."""
        return self.log.read_text("utf-8", "replace")

    def memory(self, name: str = "VmRSS") -> float:
        """MiB of this process: VmRSS now, VmHWM at most since `reset_peak`."""
        assert self.process is not None
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024

    def reset_peak(self) -> None:
        """Let VmHWM start again at what is in use now."""
        assert self.process is not None
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    def uploaded(self) -> list[Path]:
        """The temporary files that are there now."""
        return [Path(folder, name) for folder, _, names in os.walk(self.files) for name in names]


@contextmanager
def starting(folders: pytest.TempPathFactory) -> Iterator[Callable[..., Server]]:
    """Start apps with flags on free ports; whatever was started is stopped at the end, by its process id."""
    started: list[Server] = []

    def start(
        *flags: str,
        root: Path = ROOT,
        before: str = "",
        most_file_bytes: int | None = None,
        **environment: str,
    ) -> Server:
        server = Server(folders.mktemp("server"), flags, environment, root, most_file_bytes, before)
        started.append(server)
        return server.start()

    try:
        yield start
    finally:  # also where one of them did not answer
        for server in started:
            server.stop()
