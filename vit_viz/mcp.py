"""Questions by name as tools of an agent: the Model Context Protocol, over stdio (`vit-viz mcp`) or HTTP (`serve --mcp`).

A tool takes what a question takes over HTTP (vit_viz.service), and answers with numbers to six digits, what they do not show, a
link into the app and, if asked for, a picture. Small arrays come whole; of large ones come shape, ends, total and the places of the
largest values, unless all are asked for. What all tools take alike is told once, in the instructions of the server.
"""

from __future__ import annotations

import base64
import io
import json
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
from anyio.to_thread import run_sync
from PIL import Image

import vit_viz
from vit_viz import samples
from vit_viz.analyses.registry import QUESTIONS
from vit_viz.analyses.spec import AnyQuestion
from vit_viz.answer import arrays_of
from vit_viz.errors import ExportError, ParameterError
from vit_viz.figures.files import Answered, as_file
from vit_viz.figures.request import FigureOptions
from vit_viz.lazy import extra
from vit_viz.progress import StopCheck
from vit_viz.sentences import sentence
from vit_viz.service import MODEL, as_json, drawing_bytes, read_body, requested, schema_of_body
from vit_viz.session.inputs import OPTIONS, QUERY, TARGET, InputOptions, Json
from vit_viz.session.serialization import summary_of
from vit_viz.session.session import Session

if TYPE_CHECKING:
    from mcp.server import Server
    from mcp.types import CallToolResult, Tool

    from vit_viz.surface import Surface

ADDRESS = "/mcp"
APP = "http://127.0.0.1:7860/"
"""Where links of a server without a page lead: the app, where it runs with its usual port."""

SMALL = 1024
"""Numbers of an answer that come whole."""

MOST_NUMBERS = 2**18
"""Of an answer whose numbers are all asked for."""

FULL, PICTURE = "all_numbers", "picture"
UNLISTED = ("sentences", "templates")
"""What every tool of a photo takes and none lists: few models read sentences."""

PICTURE_BYTES = 100 * 2**10
_DPI = (120, 90, 72)  # of a figure 12 cm wide: as large as an agent looks at
_DIGITS = 6
THREADS = 16
ABOUT = f"""What a Vision Transformer looks at: attention maps, explanations, their trust. Start with look or relevance on a sample.

What several tools take alike; {" and ".join(UNLISTED)} are taken by every tool that takes an image, though none lists them:
- model: {MODEL}
- image: the name of a sample ({", ".join(samples.sample_names())}),
  the photo as data:image/...;base64,BYTES (over HTTP at most 48 kB), or the id of one that was brought by POST /vit_viz/bring.
{"".join(f"- {field.name}: {field.option.sentence}" + chr(10) for field in InputOptions.schema())}- query: {QUERY}
- target: {TARGET}
- options: {OPTIONS}
- {FULL}: all numbers, also of arrays of more than {SMALL}.
- {PICTURE}: the figure too, as PNG or JPEG.
- figure: how it is drawn, by name: {", ".join(field.name for field in FigureOptions.schema() if field.name != "format")}."""

Caller = Callable[[Any], tuple[str, str]]
"""From the context of a call to who asks, and the address of the app."""


def server(session: Session, *, caller: Caller = lambda _context: ("mcp", APP)) -> Server[Any]:
    """A server of the protocol with a tool for each question."""
    with extra("mcp", needed_for="MCP"):
        from mcp.server import Server
        from mcp.types import ListToolsResult
    threads = anyio.CapacityLimiter(THREADS)

    async def list_tools(_context: Any, _params: Any) -> ListToolsResult:
        return ListToolsResult(tools=[_tool(question) for question in QUESTIONS.values()])

    async def call_tool(context: Any, params: Any) -> CallToolResult:
        owner, app = caller(context)
        gone = threading.Event()
        ask = partial(_called, session, params.name, params.arguments or {}, owner, app, gone.is_set)
        try:
            return await run_sync(ask, limiter=threads, abandon_on_cancel=True)
        finally:
            gone.set()  # where the caller has cancelled, what still runs ends

    return Server(
        "vit_viz",
        version=vit_viz.__version__,
        instructions=ABOUT,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def serve_stdio(session: Session, *, app: str = APP) -> None:
    """Answer on stdin and stdout until they close."""
    offered = server(session, caller=lambda _context: ("mcp", app))
    from mcp.server.stdio import stdio_server

    async def serve() -> None:
        async with stdio_server() as (read, write):
            await offered.run(read, write, offered.create_initialization_options())

    anyio.run(serve)


def surface(session: Session) -> Surface:
    """The same over HTTP, for `launch(surfaces=...)`."""
    from starlette.routing import Route

    from vit_viz.surface import OWNER, QUESTION_BYTES, Surface

    def caller(context: Any) -> tuple[str, str]:
        request = context.request
        return request.scope.get(OWNER, "mcp"), str(request.base_url)

    offered = server(session, caller=caller)
    from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager

    manager = StreamableHTTPSessionManager(
        offered, json_response=True, stateless=True, max_request_body_size=QUESTION_BYTES
    )
    return Surface("mcp", [Route(ADDRESS, StreamableHTTPASGIApp(manager))], manager.run)


def _tool(question: AnyQuestion) -> Tool:
    from mcp.types import Tool, ToolAnnotations

    schema, words = schema_of_body(question), question.words
    own = {field.name for field in question.options.schema()}
    types = {"image": {"type": "string"}, "figure": {"type": "object"}}
    # what all tools take is told in the instructions
    common: Json = {
        name: types.get(name, {}) for name in schema["properties"] if name not in own | {*UNLISTED}
    }
    own_properties = {name: _short(one) for name, one in schema["properties"].items() if name in own}
    whole: Json = {FULL: {"type": "boolean"}, PICTURE: {"type": "boolean"}}
    runs = f" Computing it takes {words.runs}." if words.runs else ""
    return Tool(
        name=question.name,
        description=f"{words.label}: {words.shows}{runs}",
        input_schema={
            "type": "object",
            "properties": common | own_properties | whole,
            "required": schema["required"],
        },
        annotations=ToolAnnotations(read_only_hint=True),
    )


def _short(schema: Json) -> Json:
    """The schema of an option, without what its description says in words (a pattern) or its default shows (its only type)."""
    implied = {"pattern", "type"} if isinstance(schema["type"], str) else {"pattern"}
    return {name: part for name, part in schema.items() if name not in implied}


def _called(
    session: Session, name: str, arguments: Json, owner: str, app: str, cancelled: StopCheck
) -> CallToolResult:
    """The result of a tool; what is refused is a sentence that an agent can read, marked as an error."""
    from mcp.types import CallToolResult, ImageContent, TextContent

    try:
        result, picture = _answer(session, name, dict(arguments), owner, app, cancelled)
    except Exception as error:
        return CallToolResult(content=[TextContent(type="text", text=sentence(error))], is_error=True)
    content: list[Any] = [TextContent(type="text", text=json.dumps(result, allow_nan=False))]
    if picture is not None:
        data = base64.b64encode(picture).decode("ascii")
        is_png = picture.startswith(b"\x89PNG")
        kind = "image/png" if is_png else "image/jpeg"
        content.append(ImageContent(type="image", data=data, mime_type=kind))
    return CallToolResult(content=content, structured_content=result)


def _answer(
    session: Session, name: str, arguments: Json, owner: str, app: str, cancelled: StopCheck
) -> tuple[Json, bytes | None]:
    question = QUESTIONS.named(name)
    wants_all, wants_picture = (_switch(arguments, switch) for switch in (FULL, PICTURE))
    read = read_body(question, arguments)
    figure = dict(read[-1].changed())
    if "format" in figure:
        raise ParameterError(
            "The picture of a tool is PNG or JPEG; other formats are saved over HTTP or by the command line."
        )
    if figure and not wants_picture:
        raise ParameterError(
            f"The figure says how the picture is drawn: ask for it, too, with {PICTURE}: true."
        )
    with requested(session, question, read, owner=owner) as request:
        result = Answered(session, request, session.run(request, cancelled=cancelled))
        arrays = arrays_of(result.answer)
        count = sum(array.size for array in arrays.values())
        if wants_all and count > MOST_NUMBERS:
            raise ParameterError(
                f"This answer has {count} numbers, more than the {MOST_NUMBERS} that a tool sends."
            )
        content = as_json(result, app=app, with_numbers=wants_all or count <= SMALL)
        content["summary"] = {name: summary_of(array) for name, array in arrays.items()}
        content["does_not_show"] = question.words.hides
        return _rounded(content), _picture(result, read[-1]) if wants_picture else None


def _switch(arguments: Json, name: str) -> bool:
    value = arguments.pop(name, False)
    if not isinstance(value, bool):
        raise ParameterError(f"{name} is true or false.")
    return value


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_rounded(one) for one in value]
    return float(f"{value:.{_DIGITS}g}") if isinstance(value, float) else value


def _picture(result: Answered, options: FigureOptions) -> bytes:
    """The figure in at most PICTURE_BYTES: as PNG, or where a photo makes that too large, as JPEG, if need be of fewer dots."""
    most = options.dpi if "dpi" in dict(options.changed()) else _DPI[0]
    figure = options.figure(result.request)
    for dpi in (most, *(dpi for dpi in _DPI if dpi < most)):
        with result.session.writing(drawing_bytes(options.width_cm, dpi)):
            png = as_file(result, "png", figure=figure, width_cm=options.width_cm, dpi=dpi)
        if len(png) <= PICTURE_BYTES:
            return png
        with Image.open(io.BytesIO(png)) as opened:
            file = io.BytesIO()
            opened.convert("RGB").save(file, "JPEG", quality=85)
        if file.tell() <= PICTURE_BYTES:
            return file.getvalue()
    raise ExportError("The picture of this answer is too large for a tool.")
