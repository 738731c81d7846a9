"""The app in a process of its own, as `python app.py` starts it: its port, its log, its memory, its files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tests import serving
from tests.serving import START_SECONDS, free_port

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Server:
    """`python app.py` on a port of its own.

    Args:
        folder: for its log and, unless `environment` says otherwise, its temporary files.
        environment: variables on top of those of the tests.
        most_file_bytes: the largest file that it may write; beyond it the system answers as a full disk does.
        flags: of the command, beside those that every test has.
        before: Python that runs before the app does, to shorten a time that a test cannot wait for.
    """

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)
    most_file_bytes: int | None = None
    flags: tuple[str, ...] = ()
    before: str = ""
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

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
        flags = ("--model", "mini", "--device", "cpu", "--port", str(self.port), *self.flags)
        if self.most_file_bytes is not None:
            limit = (
                f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({self.most_file_bytes},) * 2)"
            )
            before = f"{limit}\n{before}"
        start = ("-c", f"{before}\nimport app; app.main()") if before else ("app.py",)
        command = [sys.executable, *start, *flags]
        serving.LOGS.append(self.log)
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=variables | self.environment,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self._wait()
        return self

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End this process and no other."""
        if self.process is None:
            return
        if self.log in serving.LOGS:
            serving.LOGS.remove(self.log)
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

    def _wait(self) -> None:
        assert self.process is not None
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                if httpx.get(f"{self.url}/", timeout=10).status_code == 200:
                    return
            except httpx.HTTPError:
                time.sleep(0.1)
        self.stop(signal.SIGKILL)
        raise RuntimeError(f"the app did not answer; it said:\n{self.said()[-3000:]}")
