"""Tools of an agent, asked by the protocol's official client."""

from __future__ import annotations

import base64
import io
import json
import sys
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import anyio
import anyio.to_thread
import httpx
import numpy as np
import pytest
from PIL import Image
from starlette.testclient import TestClient

import vit_viz.mcp as tools
from tests.waiting import until
from vit_viz.analyses.registry import QUESTIONS
from vit_viz.errors import VitVizError
from vit_viz.session.session import Session

mcp = pytest.importorskip("mcp", reason="the package mcp is not installed; requirements-dev.txt has it")

TWINS = {"image": {"sample": "twins"}}


def asked(server: Any, use: Callable[[Any], Any]) -> Any:
    async def meet() -> Any:
        async with mcp.Client(server) as client:
            return await use(client)

    return anyio.run(meet)


def test_every_question_is_a_tool_with_its_schema(session: Session) -> None:
    listed = asked(tools.server(session), lambda client: client.list_tools()).tools
    assert [tool.name for tool in listed] == list(QUESTIONS)
    for tool in listed:
        question = QUESTIONS[tool.name]
        assert question.words.shows in tool.description
        properties = tool.input_schema["properties"]
        assert {field.name for field in question.options.schema()} <= set(properties)
        assert all(one.get("description") for one in properties.values())
        assert tool.title == question.words.label
        assert (tool.annotations.read_only_hint, tool.annotations.idempotent_hint) == (True, True)


def test_every_tool_can_be_asked_for_all_numbers_and_says_when_that_matters(session: Session) -> None:
    for tool in asked(tools.server(session), lambda client: client.list_tools()).tools:
        whole = tool.input_schema["properties"][tools.FULL]
        assert (whole["type"], whole["default"]) == ("boolean", False)
        assert whole["description"] == f"All numbers, also of arrays of more than {tools.SMALL}."


def test_a_tool_returns_numbers_a_picture_and_a_link(session: Session) -> None:
    found = asked(tools.server(session), lambda client: client.call_tool("look", TWINS | {"layer": 1}))
    said, picture = json.loads(found.content[0].text), found.content[1]
    assert said == found.structured_content
    values = np.array(said["numbers"]["values"])
    assert said["summary"]["values"]["shape"] == list(values.shape) == [4, 8]
    top = said["summary"]["values"]["top"][0]
    assert top["value"] == values.max() == values[tuple(top["at"])]
    assert said["summary"]["values"]["total"] == pytest.approx(values.sum())
    assert said["link"].startswith(tools.APP + "?model=odd&image=twins")
    assert picture.mime_type == "image/png"
    with Image.open(io.BytesIO(base64.b64decode(picture.data))) as drawn:
        assert drawn.format == "PNG"


def test_many_numbers_come_only_where_they_are_asked_for(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    for small, is_whole in ((31, False), (32, True), (33, True)):
        monkeypatch.setattr(tools, "SMALL", small)
        said = asked(tools.server(session), lambda client: client.call_tool("look", TWINS)).structured_content
        assert ("numbers" in said) == is_whole
        assert "summary" in said
    monkeypatch.setattr(tools, "SMALL", 0)
    whole = TWINS | {tools.FULL: True}
    assert (
        "numbers"
        in asked(tools.server(session), lambda client: client.call_tool("look", whole)).structured_content
    )
    monkeypatch.setattr(tools, "MOST_NUMBERS", 31)
    assert asked(tools.server(session), lambda client: client.call_tool("look", whole)).is_error


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("astrology", TWINS, "There is nothing called 'astrology'"),
        ("look", {}, "'look' is about a photo."),
        ("look", {"image": {"path": "/etc/passwd"}}, "The photo:"),
        ("look", TWINS | {"layer": 99}, "Layer 99 does not exist"),
        ("look", TWINS | {"model": "/etc/passwd"}, "The model '/etc/passwd' is not offered here"),
    ],
)
def test_what_is_refused_is_a_sentence_for_the_agent(
    session: Session, name: str, arguments: dict[str, Any], words: str
) -> None:
    found = asked(tools.server(session), lambda client: client.call_tool(name, arguments))
    assert found.is_error
    assert found.content[0].text.startswith(words)


def test_tools_are_offered_over_http_behind_the_guard(
    session: Session, open_client: Callable[..., TestClient]
) -> None:
    client = open_client(tools.surface(session))

    def call(method: str, **params: Any) -> httpx.Response:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return client.post("/mcp", json=message, headers={"Accept": "application/json, text/event-stream"})

    started = call(
        "initialize",
        protocolVersion="2025-06-18",
        capabilities={},
        clientInfo={"name": "test", "version": "1"},
    )
    assert started.json()["result"]["serverInfo"]["name"] == "vit_viz"
    found = call("tools/call", name="classes", arguments=TWINS).json()["result"]
    assert found["structuredContent"]["link"].startswith("http://127.0.0.1:7860/?")
    refused = client.post("/mcp", json={}, headers={"sec-fetch-site": "cross-site"})
    assert refused.status_code == 403


@pytest.mark.parametrize("leaves", [True, False])
def test_what_runs_for_an_agent_ends_when_it_leaves_and_not_before(
    session: Session, monkeypatch: pytest.MonkeyPatch, leaves: bool
) -> None:
    began, goes_on, ended = threading.Event(), threading.Event(), threading.Event()
    seen: list[bool] = []

    def called(*arguments: Any) -> None:
        *_, cancelled = arguments
        seen.append(cancelled())
        began.set()
        if leaves:
            until(cancelled, what="the end of what nobody waits for", seconds=20)
        else:
            goes_on.wait(20)
        seen.append(cancelled())
        ended.set()

    monkeypatch.setattr("mcp.server.Server", lambda *_, **handlers: SimpleNamespace(**handlers))
    monkeypatch.setattr(tools, "_called", called)
    call: Any = tools.server(session).on_call_tool  # type: ignore[attr-defined]  # of the stand-in

    async def use() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call, None, SimpleNamespace(name="look", arguments=TWINS))
            await anyio.to_thread.run_sync(began.wait, 20)
            if leaves:
                tasks.cancel_scope.cancel()
            goes_on.set()

    anyio.run(use)
    assert ended.wait(20)
    assert seen == [False, leaves]


def test_without_the_package_one_sentence_says_so(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp.server", None)
    with pytest.raises(VitVizError, match="MCP needs mcp, which is not installed: pip install"):
        tools.server(session)


@pytest.mark.slow
def test_the_command_speaks_over_stdio() -> None:
    from mcp import StdioServerParameters

    command = StdioServerParameters(
        command=sys.executable, args=["-m", "vit_viz", "mcp", "--model", "mini", "--device", "cpu"]
    )
    found = asked(command, lambda client: client.call_tool("classes", {"image": {"sample": "lion"}}))
    assert found.structured_content["facts"]["names"][0] == "lion"
