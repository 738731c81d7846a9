"""The Dockerfile, read: what is installed, what is copied, who runs it, and how its health is asked for."""

from __future__ import annotations

import http.server
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from vit_viz.ui.edge.addresses import kind_of

ROOT = Path(__file__).resolve().parents[1]
SHELL_FORM = ("RUN",)


def instructions(text: str) -> list[tuple[str, str]]:
    """(instruction, arguments) of a Dockerfile, in order; continued lines joined, comments gone."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\s*\\\n\s*", " ", "\n".join(lines))
    return [
        (line.split(None, 1)[0], line.split(None, 1)[1].strip())
        for line in joined.splitlines()
        if line.strip()
    ]


STEPS = instructions((ROOT / "Dockerfile").read_text())
KNOWN = {"FROM", "ARG", "ENV", "RUN", "WORKDIR", "COPY", "USER", "EXPOSE", "HEALTHCHECK", "CMD"}


def arguments(name: str) -> list[str]:
    return [rest for step, rest in STEPS if step == name]


def variables() -> dict[str, str]:
    """What ENV sets."""
    return dict(pair.split("=", 1) for rest in arguments("ENV") for pair in shlex.split(rest))


def copied() -> list[str]:
    """Paths of this checkout that are copied into the image."""
    return [
        source
        for rest in arguments("COPY")
        for source in shlex.split(rest)[:-1]
        if not source.startswith("--")
    ]


def copy_to(root: Path) -> None:
    """Copy what the image holds, as it lies in the repository."""
    for name in copied():
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, root / name, ignore=shutil.ignore_patterns("__pycache__", "*.pyi"))
        else:
            shutil.copy(source, root / name)


def health_command() -> list[str]:
    """The command that asks how the app is."""
    (rest,) = arguments("HEALTHCHECK")
    command: list[str] = json.loads(rest.split("CMD", 1)[1])
    return command


def place(name: str, *, last: bool = True) -> int:
    found = [i for i, (step, _) in enumerate(STEPS) if step == name]
    return found[-1 if last else 0]


def test_every_line_is_an_instruction() -> None:
    assert {step for step, _ in STEPS} == KNOWN
    assert STEPS[0][0] == "FROM"


def test_the_image_has_the_python_of_the_space() -> None:
    (python,) = re.findall(r'^python_version: "?(\d+\.\d+)', (ROOT / "README.md").read_text(), re.MULTILINE)
    assert arguments("FROM") == [f"python:{python}-slim"]


def installs() -> list[list[str]]:
    """The words of each `pip install`, in order."""
    (run,) = [rest for rest in arguments("RUN") if "pip install" in rest]
    return [shlex.split(part)[2:] for part in re.split(r"&&|;|then", run) if part.strip().startswith("pip ")]


def test_what_is_installed_is_what_the_lock_file_lists_and_no_cache_stays() -> None:
    words = installs()[-1]
    assert words[words.index("-r") + 1] == "requirements.lock"
    assert "--require-hashes" in words
    for words in installs():
        assert "--no-cache-dir" in words
        assert words[words.index("--only-binary") + 1] == ":all:"  # nothing of a source archive runs


def test_another_index_gives_torch_and_nothing_else() -> None:
    torch, _locked = installs()
    assert torch[torch.index("--index-url") + 1] == "$TORCH_INDEX"
    assert "--no-deps" in torch
    assert torch[-1] == "$(grep -o '^torch==[^ ]*' requirements.lock)"
    assert "--extra-index-url" not in torch
    assert arguments("ARG") == ["TORCH_INDEX"]


def test_the_app_runs_without_privileges() -> None:
    (user,) = arguments("USER")
    assert user not in ("root", "0")
    assert re.search(rf"useradd [^&]*\b{user}\b", "\n".join(arguments("RUN")))
    assert place("USER") > max(place("RUN"), place("COPY"))
    assert place("USER") < place("CMD")


def test_only_what_exists_is_copied() -> None:
    assert copied()
    assert [name for name in copied() if not (ROOT / name).exists()] == []


def test_everything_that_is_copied_is_let_through_and_nothing_else() -> None:
    lines = [
        line
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if line.strip() and not line.startswith("#")
    ]
    assert lines[0] == "*"
    assert sorted(line[1:] for line in lines if line.startswith("!")) == sorted(copied())


def test_the_app_listens_outside_only_within_the_container() -> None:
    assert variables()["GRADIO_SERVER_NAME"] == "0.0.0.0"
    assert arguments("EXPOSE") == [variables()["GRADIO_SERVER_PORT"]]
    code = [*(ROOT / "vit_viz").rglob("*.py"), ROOT / "app.py"]
    assert len(code) > 100
    assert [path.name for path in code if "0.0.0.0" in path.read_text()] == []


def test_no_secret_is_in_the_image() -> None:
    assert variables()
    assert [name for name in variables() if re.search(r"TOKEN|SECRET|PASSWORD|KEY", name)] == []


@pytest.mark.parametrize("name", ["HEALTHCHECK", "CMD"])
def test_commands_need_no_shell(name: str) -> None:
    command = health_command() if name == "HEALTHCHECK" else json.loads(arguments("CMD")[0])
    assert command[0] == "python"


class OfIPv6(http.server.HTTPServer):
    """What listens on IPv6 and nothing else, as the app does with `--host ::`."""

    address_family = socket.AF_INET6


IS_OF_IPV6 = "::1" in {address[0] for *_, address in socket.getaddrinfo("localhost", None)}


@pytest.mark.parametrize(
    ("kind", "host"),
    [
        (http.server.HTTPServer, "127.0.0.1"),
        pytest.param(
            OfIPv6,
            "::1",
            marks=pytest.mark.skipif(
                not IS_OF_IPV6, reason="localhost is no address of IPv6 on this machine"
            ),
        ),
    ],
)
@pytest.mark.parametrize(("status", "code"), [(200, 0), (503, 1)])
def test_the_health_of_the_image_is_that_of_the_queue(
    status: int, code: int, kind: type[http.server.HTTPServer], host: str
) -> None:
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_args: object) -> None:
            pass

    with kind((host, 0), Handler) as server:
        answering = threading.Thread(target=server.handle_request)
        answering.start()
        environment = os.environ | {"GRADIO_SERVER_PORT": str(server.server_port)}
        done = subprocess.run(
            [sys.executable, *health_command()[1:]], env=environment, timeout=60, check=False
        )
        answering.join(60)
    assert done.returncode == code
    assert [kind_of("GET", path) for path in asked] == ["health"]


def test_a_continued_line_and_a_comment_are_read_as_docker_does() -> None:
    assert instructions("FROM a\n# no\nENV B=1 \\\n    C=2\n") == [("FROM", "a"), ("ENV", "B=1 C=2")]
