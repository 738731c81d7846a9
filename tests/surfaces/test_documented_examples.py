"""What docs/COMMANDS.md says of commands, HTTP and MCP is what they do: each of its examples, run."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.ui.desk import odd_picture
from vit_viz import rest
from vit_viz.cli import asking, main
from vit_viz.cli.parser import command_line
from vit_viz.session.session import Session
from vit_viz.surveys import manifest, parquet
from vit_viz.surveys.columns import TABLES

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "COMMANDS.md").read_text("utf-8")


def section(title: str) -> str:
    return PAGE.split(f"## {title}\n")[1].split("\n## ")[0]


def blocks(title: str, kind: str) -> list[str]:
    found: list[str] = re.findall(rf"```{kind}\n(.*?)```", section(title), re.DOTALL)
    assert found
    return found


SURVEY = {manifest.FILE, "_survey.lock", parquet.RECORD} | {f"{level}.parquet" for level in TABLES}
COMMANDS = blocks("Command line", "sh")[0].splitlines()
CALLS = blocks("From other programs", "sh")[0].splitlines()


@pytest.fixture(scope="module")
def mini() -> Session:
    session = Session(model="mini", device="cpu")
    session.model()
    return session


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_of_the_page_runs(
    mini: Session,
    line: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(asking, "Session", lambda **_options: mini)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos").mkdir()
    for name in ("photo.jpg", "photos/one.jpg", "photos/two.jpg"):
        odd_picture().resize((180, 74)).save(tmp_path / name)
    before = set(tmp_path.rglob("*"))
    program, *words = shlex.split(line.partition(" > ")[0])
    assert program == "vit-viz"
    assert main(words) == 0
    assert capsys.readouterr().err == ""
    wrote = {file.name for file in set(tmp_path.rglob("*")) - before if file.is_file()}
    expected = {name for name in ("row.npz", "all.npz") if name in line}
    if "maps/" in line:
        expected = {
            f"{photo}_{method}.png" for photo in ("one", "two") for method in ("relevance", "rollout")
        }
    if "survey/" in line:
        expected = SURVEY
    assert wrote == expected


@pytest.mark.parametrize("line", CALLS)
def test_every_call_of_the_page_is_answered(
    mini: Session, open_client: Callable[..., TestClient], line: str
) -> None:
    client = open_client(mini, rest.FOR_OTHERS)
    program, address, *more = shlex.split(line)
    assert program == "curl"
    path = address.removeprefix("http://127.0.0.1:7860")
    flags = dict(zip(more[::2], more[1::2], strict=True))
    headers = dict([flags["-H"].split(": ")]) if "-H" in flags else {}
    answer = client.post(path, content=flags["-d"], headers=headers) if "-d" in flags else client.get(path)
    assert answer.status_code == 200, answer.text
    if "-d" in flags and not headers:
        found = answer.json()
        assert {"numbers", "provenance", "request", "link"} <= set(found)


def test_the_settings_for_agents_start_a_command_that_there_is() -> None:
    (text,) = blocks("From other programs", "json")
    server = json.loads(text)["mcpServers"]["vit_viz"]
    assert server["command"] == "vit-viz"
    assert command_line().parse_args(server["args"]).run


def test_the_agent_of_the_page_gets_its_answer(
    mini: Session, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mcp: Any = pytest.importorskip(
        "mcp", reason="the package mcp is not installed; requirements-dev.txt has it"
    )
    from vit_viz import mcp as tools

    met: list[str] = []
    official = mcp.Client

    def client(address: str) -> Any:
        met.append(address)
        return official(tools.server(mini))

    monkeypatch.setattr(mcp, "Client", client)
    (code,) = blocks("From other programs", "python")
    with ThreadPoolExecutor(
        1
    ) as pool:  # in a thread of its own: in this one a browser test may have left a loop running
        pool.submit(exec, compile(code, "COMMANDS.md", "exec"), {}).result()
    assert met == ["http://127.0.0.1:7860/mcp"]
    assert "'at':" in capsys.readouterr().out
