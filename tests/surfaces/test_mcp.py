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
from tests.surfaces.test_rest import png_of
from tests.ui.desk import odd_picture
from tests.waiting import PATIENCE, until
from vit_viz.analyses.registry import QUESTIONS
from vit_viz.errors import Cancelled, VitVizError
from vit_viz.figures.files import Answered, as_file
from vit_viz.figures.request import DrawingOptions, figure_for
from vit_viz.session.questions import request_for
from vit_viz.session.request import Request, Subject
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
        own = {field.name for field in question.options.schema()}
        assert own <= set(properties)
        for option, schema in properties.items():
            assert schema.get("description") if option in own else f"\n- {option}: " in tools.ABOUT
        assert tool.description.startswith(question.words.label)
        assert tool.annotations.read_only_hint


def test_the_list_of_tools_is_short_and_says_what_can_be_asked_for_beside(session: Session) -> None:
    listed = asked(tools.server(session), lambda client: client.list_tools()).tools
    sent = [tool.model_dump(by_alias=True, exclude_none=True) for tool in listed]
    assert len(json.dumps(sent, separators=(",", ":"))) <= 605 * len(listed)
    for tool in listed:
        beside = {
            name: schema
            for name, schema in tool.input_schema["properties"].items()
            if name in (tools.FULL, tools.PICTURE, "figure")
        }
        switches = {switch: {"type": "boolean"} for switch in (tools.FULL, tools.PICTURE)}
        assert beside == switches | {"figure": {"type": "object"}}


def test_every_tool_of_a_photo_takes_sentences_though_none_lists_them(session: Session) -> None:
    words = {"image": "twins", "sentences": ["a dog"], "templates": ["no place"]}

    async def use(client: Any) -> Any:
        tools = (await client.list_tools()).tools
        return [(tool, await client.call_tool(tool.name, words)) for tool in tools]

    for tool, refused in asked(tools.server(session), use):
        assert not {*tools.UNLISTED} & set(tool.input_schema["properties"])
        assert tool.input_schema.get("additionalProperties", True)
        takes_image = QUESTIONS[tool.name].takes_image
        assert ("A template has {} once" if takes_image else "is about a model") in refused.content[0].text
    (told,) = [line for line in tools.ABOUT.splitlines() if "none lists" in line]
    for name in tools.UNLISTED:
        assert name in told
        assert f"\n- {name}: " in tools.ABOUT


def test_numbers_have_six_digits_and_what_they_do_not_show_is_said(session: Session) -> None:
    said = asked(tools.server(session), lambda client: client.call_tool("look", TWINS)).structured_content
    exact = session.run(request_for(session, Subject("odd", "twins"), "look")).values
    assert said["numbers"]["values"] == [[float(f"{value:.6g}") for value in row] for row in exact.tolist()]
    assert said["does_not_show"] == QUESTIONS["look"].words.hides


@pytest.mark.parametrize(
    ("sent", "says"),
    [
        ("twins", ""),
        ("data:image/png;base64," + png_of(odd_picture(8)), ""),
        ("DATA:;base64," + png_of(odd_picture(8)), ""),
        ("data:image/png," + png_of(odd_picture(8)), "A data: address of a picture is"),
        ("data:image/png;base64", "A data: address of a picture is"),
        ("data:text/plain;base64,aGVsbG8=", "This file is a text file"),
        ("astrology", "There is no sample 'astrology'"),
    ],
)
def test_a_photo_comes_as_a_name_or_as_a_data_address(session: Session, sent: str, says: str) -> None:
    found = asked(tools.server(session), lambda client: client.call_tool("look", {"image": sent}))
    assert found.is_error == bool(says)
    assert says in found.content[0].text
    if not says:
        photo = "twins" if sent == "twins" else session.uploads.add(odd_picture(8))
        exact = session.run(request_for(session, Subject("odd", photo), "look")).values
        session.uploads.remove(photo, owner="")
        values = found.structured_content["numbers"]["values"]
        assert np.allclose(values, exact, rtol=1e-5, atol=0)


@pytest.mark.parametrize("name", ["relevance", "mosaic", "heads", "positions", "token_norms"])
def test_a_picture_comes_if_it_is_asked_for_and_is_small(session: Session, name: str) -> None:
    image = TWINS if QUESTIONS[name].takes_image else {}
    without = asked(tools.server(session), lambda client: client.call_tool(name, image))
    assert [one.type for one in without.content] == ["text"]
    drawn = asked(tools.server(session), lambda client: client.call_tool(name, image | {"picture": True}))
    data = base64.b64decode(drawn.content[1].data)
    assert len(data) <= tools.PICTURE_BYTES
    assert Image.open(io.BytesIO(data)).get_format_mimetype() == drawn.content[1].mime_type


def test_the_picture_of_a_tool_is_drawn_as_it_is_asked_for_or_refused(session: Session) -> None:
    def called(**more: Any) -> Any:
        return asked(tools.server(session), lambda client: client.call_tool("look", TWINS | more))

    def pixels(png: bytes) -> Any:
        with Image.open(io.BytesIO(png)) as picture:
            return np.asarray(picture).tolist()

    def drawn(**figure: Any) -> Any:
        return pixels(base64.b64decode(called(picture=True, figure=figure).content[1].data))

    answered = Answered(session, request_for(session, Subject("odd", "twins"), "look"), None)
    figure = figure_for(answered.request, DrawingOptions(style="heat"), title="Mine")
    wanted = pixels(as_file(answered, "png", figure=figure, width_cm=7, dpi=80))
    assert drawn(style="heat", title="Mine", width_cm=7, dpi=80) == wanted
    assert drawn(style="heat") != drawn() == pixels(as_file(answered, "png", dpi=120))
    for more, error in (
        ({"picture": True, "figure": {"format": "pdf"}}, "is PNG or JPEG"),
        ({"figure": {"style": "heat"}}, "ask for it, too, with picture: true"),
        ({"picture": True, "figure": {"colour": 1}}, "There is no option 'colour'"),
    ):
        refused = called(**more)
        assert (refused.is_error, error in refused.content[0].text) == (True, True), refused


def test_a_large_photo_makes_no_large_picture(session: Session) -> None:
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 256, (900, 1300, 3), dtype=np.uint8))
    whole = {"image": "data:image/png;base64," + png_of(noise), "picture": True}
    drawn = asked(tools.server(session), lambda client: client.call_tool("look", whole))
    assert len(base64.b64decode(drawn.content[1].data)) <= tools.PICTURE_BYTES
    assert drawn.content[1].mime_type == "image/jpeg"


def test_a_tool_returns_numbers_a_picture_and_a_link(session: Session) -> None:
    wanted = TWINS | {"layer": 1, "picture": True}
    found = asked(tools.server(session), lambda client: client.call_tool("look", wanted))
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
    client = open_client(session, tools.surface(session))

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
            goes_on.wait(PATIENCE)
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
    assert ended.wait(PATIENCE)
    assert seen == [False, leaves]


def test_the_work_stops_when_the_agent_leaves(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model itself runs no more: what takes many passes is left between two of its batches."""
    began, ended, error = threading.Event(), threading.Event(), list[type]()
    run = session.run

    def noted(request: Request, **options: Any) -> Any:
        if request.question != "trust":
            return run(request, **options)

        def hold(_share: float) -> None:
            began.set()
            until(options["cancelled"], what="the word that the agent left", seconds=60)

        try:
            return run(request, **options | {"progress": hold})
        except Exception as failed:
            error.append(type(failed))
            raise
        finally:
            ended.set()

    monkeypatch.setattr(session, "run", noted)
    monkeypatch.setattr("mcp.server.Server", lambda *_, **handlers: SimpleNamespace(**handlers))
    call: Any = tools.server(session).on_call_tool  # type: ignore[attr-defined]  # of the stand-in

    async def use() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call, None, SimpleNamespace(name="trust", arguments=TWINS))
            assert await anyio.to_thread.run_sync(began.wait, 60)
            tasks.cancel_scope.cancel()

    anyio.run(use)
    assert ended.wait(60)
    assert error == [Cancelled]


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
