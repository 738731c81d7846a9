"""Questions by name over HTTP: for a browser that has opened the page, and for others with `vit-viz serve --api`.

    GET  /api/v1                what can be asked, with the schema of each body
    GET  /api/v1/openapi.json   the same as OpenAPI
    POST /api/v1/NAME           {"image": {"sample": "lion"}, ...}: numbers, provenance, the request, a link into the app

An answer is JSON, whose numbers hold fp32 to the last bit; `Accept: text/csv` asks for the table, `application/x-npz` for NumPy's
format, and `image/png`, `image/svg+xml` or `application/pdf` for the figure, of an attention map also `image/gif` or `image/webp`:
the bytes that the command line saves, drawn as "figure" in the body says, {"style": "heat", "width_cm": 8}. `text/x-python` and
`text/x-shellscript` ask for the lines of Python, and the command, that save the file of the "format" in "figure".
`application/x-safetensors` has the arrays as raw numbers behind a header of JSON, in which "vit_viz" is the rest of the answer.
Every refusal is a 4xx with {"error": one sentence}.

`Cache-Control: only-if-cached` computes nothing: an answer that is not at hand is {"question", "request", "link"}, and of what
costs many passes "cost", in words; what cannot be asked is {"question", "refused": one sentence}.

`text/event-stream` tells how far an answer is while it is computed: events "progress" with {"share": from 0 to 1, "left": words},
then one "answer", which is the JSON, or "refused" with {"error": one sentence, "status": as it would have been}. Who hangs up ends
the computation. An answer that fills bit by bit, "ablation", is told as far as it is there, too: events "preview" with {"numbers",
"facts"}; `known` says which of the numbers are there. Where `application/x-safetensors` is accepted beside it, answer and previews
are that, as base64.
"""

from __future__ import annotations

import base64
import json
import logging
import re
import threading
import time
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio
from anyio.to_thread import run_sync
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from vit_viz.analyses.registry import QUESTIONS
from vit_viz.analyses.spec import AnyQuestion
from vit_viz.answer import arrays_of
from vit_viz.checkpoints.digest import held_states
from vit_viz.errors import BusyError, Cancelled, ParameterError, VitVizError
from vit_viz.figures import files
from vit_viz.figures.export import MOST_LINES
from vit_viz.figures.files import ANIMATIONS, MEDIA_TYPES, Answered, formats_of
from vit_viz.figures.recipes import as_command, as_python
from vit_viz.figures.request import FigureOptions
from vit_viz.lazy import named
from vit_viz.progress import StopCheck, time_left
from vit_viz.sentences import sentence
from vit_viz.service import (
    MOST_NUMBERS,
    as_json,
    cost_of,
    described,
    drawing_bytes,
    link,
    read_body,
    requested,
    schema_of_body,
)
from vit_viz.session.inputs import Json, sentence_of
from vit_viz.session.request import Request
from vit_viz.session.serialization import as_safetensors, facts_of, numbers_of
from vit_viz.session.session import Session
from vit_viz.surface import EVENTS, KEPT, OWNER, Surface

logger = logging.getLogger(__name__)

PREFIX = "/api/v1"
THREADS = 32
"""Answers that are computed or wait for a device at a time; those that cost many passes have threads of their own.

As many as the door lets in (vit_viz.ui.edge.door), which has them wait in turn.
"""

FOR_OTHERS = Surface("api")
"""That also who has not opened the page may ask, for `launch(surfaces=...)`."""

PROGRESS_SECONDS = 0.2  # between two looks how far an answer is
QUIET_SECONDS = 10.0  # after which it is said again, so that nothing on the way takes the stream for dead
_JSON, SAFETENSORS = "application/json", "application/x-safetensors"
_TYPES = {_JSON: "json", "text/csv": "csv", "application/x-npz": "npz", SAFETENSORS: "safetensors"} | {
    MEDIA_TYPES[form]: form for form in ("png", "svg", "pdf", *ANIMATIONS)
}
_RECIPES = {"text/x-python": as_python, "text/x-shellscript": as_command}
_TYPES |= {EVENTS: "json"} | dict.fromkeys(_RECIPES, "recipe")
"""What an answer may be sent as; the first where the caller does not mind."""

_MOST = {"json": MOST_NUMBERS, "csv": MOST_LINES} | dict.fromkeys(("npz", "safetensors"), 2**24)  # numbers
_WRITING = {
    "json": 160,
    "csv": 160,
    "npz": 16,
    "safetensors": 16,
}  # bytes of memory for each, while it is written
_PARTS = re.compile(r'(?:[^,"]|"(?:[^"\\]|\\.)*"?)+')  # of the header Accept; a comma within quotes ends none
_QUALITY = re.compile(r"0(\.\d*)?|\.\d+|1(\.0*)?")
_OTHERS = ("POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT")  # Starlette adds HEAD to GET
_ERROR = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}


def routes(session: Session) -> list[Route]:
    """All of it."""
    threads = {is_slow: anyio.CapacityLimiter(THREADS) for is_slow in (False, True)}

    async def ask(http: HttpRequest) -> Response:
        name = http.path_params["name"]
        question = QUESTIONS.get(name)
        if question is None:
            return _unknown(name)
        offered = _types_of(question)
        media_type = _accepted(http, offered)
        if media_type is None:
            return _not_offered(offered)
        is_streamed, only_kept = media_type == EVENTS, KEPT in http.headers.get("cache-control", "")
        if is_streamed:
            media_type = _accepted(http, [_JSON, SAFETENSORS]) or _JSON

        def refused(error: Exception) -> Response:
            """Nobody asked for an answer that is to be at hand; browsers would report a refusal as an error of the page."""
            if not (only_kept and isinstance(error, VitVizError)):
                return refusal(error)
            return _said({"question": name, "refused": sentence(error)}, media_type)

        try:
            read = await run_in_threadpool(
                lambda body: read_body(question, read_json(body)), await http.body()
            )
        except Exception as error:
            return refused(error)
        owner, app = http.scope.get(OWNER, "api"), str(http.base_url)

        def answer(progress: AnswerProgress | None, cancelled: StopCheck) -> Response:
            watched: dict[str, Any] = {"cancelled": cancelled}
            if progress is not None:
                watched |= {"progress": partial(setattr, progress, "share")}
                watched |= {
                    "preview": lambda so_far: setattr(progress, "preview", _preview(so_far, media_type))
                }
            try:
                with requested(session, question, read, owner=owner) as request:
                    if only_kept and not session.keeps(request):
                        return _not_kept(session, request, media_type, app=app)
                    answered = Answered(session, request, session.run(request, **watched))
                    return _sent(answered, read[-1], media_type, app=app)
            except Exception as error:
                return refused(error)

        return Computed(answer, threads[question.is_slow and not only_kept], is_streamed=is_streamed)

    return [
        # a method that is not meant has a route, too: Starlette would answer it in words that are no JSON
        Route(PREFIX, _document(_listed), methods=["GET"]),
        Route(PREFIX, _only_get, methods=_OTHERS),
        Route(f"{PREFIX}/openapi.json", _document(openapi), methods=["GET"]),
        Route(f"{PREFIX}/openapi.json", _only_get, methods=_OTHERS),
        Route(f"{PREFIX}/{{name}}", ask, methods=["POST"]),
        Route(f"{PREFIX}/{{name}}", _only_post, methods=["GET", *_OTHERS]),
    ]


def _only_get(_request: HttpRequest) -> Response:
    return JSONResponse({"error": "This address only answers GET."}, 405, {"Allow": "GET"})


def _only_post(request: HttpRequest) -> Response:
    """The answer to a question that is fetched, perhaps in the address bar of a browser."""
    name = request.path_params["name"]
    if name not in QUESTIONS:
        return _unknown(name)
    error = f"Questions are posted: POST {PREFIX}/{name} with a JSON body; GET {PREFIX} says what it takes."
    return JSONResponse({"error": error}, 405, {"Allow": "POST"})


def _types_of(question: AnyQuestion) -> list[str]:
    """What the answer to a question may be sent as: of an attention map also animations."""
    formats = {*formats_of(question.name), "safetensors", "recipe"}
    return [media_type for media_type, form in _TYPES.items() if form in formats]


def _unknown(name: str) -> Response:
    error = f"There is nothing called {name[:40]!r}; GET {PREFIX} lists what there is."
    return JSONResponse({"error": error}, 404)


@dataclass
class AnswerProgress:
    """How far an answer is.

    Args:
        share: of it that is done.
        preview: what there is of it, as the data of an event; it is replaced, never changed.
        notice: why it takes longer than it should, in a sentence.
    """

    share: float = 0.0
    preview: bytes = b""
    notice: str = ""


_HEARD: ContextVar[AnswerProgress | None] = ContextVar("heard", default=None)
"""Of the answer that is being computed, where somebody hears how far it is."""


def notice(text: str) -> None:
    """Tell whoever waits for an answer why it takes longer than it should; the log is told in any case."""
    logger.warning(text)
    if (progress := _HEARD.get()) is not None:
        progress.notice = text


class Computed(Response):
    """An answer that is computed in a thread, and no longer than its caller waits for it.

    Args:
        compute: takes what it writes down how far it is in, where somebody hears of it, and what says whether it is still wanted.
        is_streamed: whether the caller hears how far it is.
    """

    def __init__(
        self,
        compute: Callable[[AnswerProgress | None, StopCheck], Response],
        threads: anyio.CapacityLimiter,
        *,
        is_streamed: bool,
    ) -> None:
        super().__init__()
        self._compute, self._threads, self._is_streamed = compute, threads, is_streamed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Compute and send it."""
        gone, progress, made = threading.Event(), AnswerProgress(), list[Response]()

        async def leave() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            gone.set()

        async def work() -> None:
            heard = progress if self._is_streamed else None
            _HEARD.set(heard)
            compute = held_states()(
                self._compute
            )  # all of it is of one state of a module that is trained meanwhile
            made.append(await run_sync(compute, heard, gone.is_set, limiter=self._threads))
            tasks.cancel_scope.cancel()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(leave)
            tasks.start_soon(work)
            try:
                await (self._stream(send, progress) if self._is_streamed else anyio.sleep_forever())
            finally:
                gone.set()  # also where it cannot be sent, or the server stops
        if not self._is_streamed:
            await made[0](scope, receive, send)
        elif made[0].status_code < 400:
            body = bytes(made[0].body)
            is_text = made[0].media_type == _JSON
            await _send_event(send, "answer", body if is_text else base64.b64encode(body), is_last=True)
        else:
            refused = json.loads(bytes(made[0].body)) | {"status": made[0].status_code}
            await _send_event(send, "refused", json.dumps(refused).encode(), is_last=True)

    async def _stream(self, send: Send, progress: AnswerProgress) -> None:
        """Say how far it is, until this is cancelled."""
        started = sent_at = time.monotonic()
        headers = [(b"content-type", f"{EVENTS}; charset=utf-8".encode())]
        with anyio.CancelScope(shield=True):  # what is sent is sent whole: the answer follows it
            await send({"type": "http.response.start", "status": 200, "headers": headers})
        last_share, last_preview = -1.0, b""
        while True:
            now = time.monotonic()
            if progress.share != last_share or now - sent_at >= QUIET_SECONDS:
                last_share, sent_at = progress.share, now
                left = ". ".join(filter(None, (time_left(last_share, now - started), progress.notice)))
                far = {"share": last_share, "left": left}
                with anyio.CancelScope(shield=True):
                    await _send_event(send, "progress", json.dumps(far).encode())
            if progress.preview is not last_preview:
                last_preview = progress.preview
                with anyio.CancelScope(shield=True):
                    await _send_event(send, "preview", last_preview)
            await anyio.sleep(PROGRESS_SECONDS)


async def _send_event(send: Send, kind: str, data: bytes, *, is_last: bool = False) -> None:
    body = f"event: {kind}\ndata: ".encode() + data + b"\n\n"
    await send({"type": "http.response.body", "body": body, "more_body": not is_last})


def refusal(error: Exception) -> Response:
    """An exception as a response: one sentence, and a status that says whose fault it is."""
    status = 500
    if isinstance(error, VitVizError):
        status = 429 if isinstance(error, BusyError | Cancelled) else 400
    return JSONResponse({"error": sentence(error)}, status)


def _sent(result: Answered, options: FigureOptions, media_type: str, *, app: str) -> Response:
    """An answer as the type that was chosen, unless it has too many numbers for it."""
    form = _TYPES[media_type]
    count = sum(array.size for array in arrays_of(result.answer).values())
    if count > _MOST.get(form, count):
        other = "; ask for it as NPZ, application/x-npz" if form in ("json", "csv") else ""
        return JSONResponse(
            {"error": f"This answer has {count} numbers, too many for {form.upper()}{other}."}, 413
        )
    in_drawing = drawing_bytes(options.width_cm, options.dpi)
    with result.session.writing(count * _WRITING[form] if form in _WRITING else in_drawing):
        return _written(result, options, media_type, form, app=app)


def _written(result: Answered, options: FigureOptions, media_type: str, form: str, *, app: str) -> Response:
    if form not in ("json", "safetensors"):
        return _drawn(result, options, media_type)
    whole = as_json(result, app=app, with_numbers=form == "json")
    if form == "json":
        headers = _named(files.file_name(result.session, result.request, form))
        return Response(json.dumps(whole, allow_nan=False), 200, headers, _JSON)
    return Response(as_safetensors(result.answer, whole), media_type=media_type)


def _drawn(result: Answered, options: FigureOptions, media_type: str) -> Response:
    """The figure of an answer as a file, its table, or the lines that save either."""
    session = result.session
    figure = options.figure(result.request)
    if media_type not in _RECIPES:
        file = files.file_of(session, figure, options.output(_TYPES[media_type]))
        return Response(file.data, 200, _named(file.file_name), media_type)
    model = session.model(figure.subject.model)
    output_kind = model.output if "output" in dict(model.provenance.parameters) else None
    recipe = _RECIPES[media_type]
    lines = recipe(files.named(session, figure), options.output(options.format), output_kind=output_kind)
    return Response(lines, media_type=media_type)


def _not_kept(session: Session, request: Request, media_type: str, *, app: str) -> Response:
    """What is said of an answer that is not at hand."""
    question = QUESTIONS.named(request.question)
    query: Any = dict(request.parameters).get("query")
    if query not in (None, "pool"):
        session.trace_of(request.subject).layout.weights(query)  # which refuses a token that there is not
    whole = {
        "question": request.question,
        "request": Answered(session, request, None).request_json,
        "link": link(session, request, app=app),
    }
    if question.is_slow and question.takes_image:
        whole["cost"] = cost_of(session, request)
    return _said(whole, media_type)


def _said(whole: Json, media_type: str) -> Response:
    """What is said in the place of an answer."""
    if media_type == SAFETENSORS:
        return Response(as_safetensors(None, whole), media_type=media_type)
    return JSONResponse(whole)


def _named(name: str) -> dict[str, str]:
    """Headers that say what an answer is called where it is saved."""
    return {"Content-Disposition": f'attachment; filename="{name}"'}


def _preview(so_far: object, media_type: str) -> bytes:
    """What there is of an answer, as the data of an event."""
    if media_type == SAFETENSORS:
        return base64.b64encode(as_safetensors(so_far, {"facts": facts_of(so_far)}))
    return json.dumps({"numbers": numbers_of(so_far), "facts": facts_of(so_far)}, allow_nan=False).encode()


def _accepted(request: HttpRequest, offered: Iterable[str]) -> str | None:
    """The one of the offered media types that the caller likes best; None where none is accepted.

    The most exact range that names a type says its quality, and a caller without `Accept` takes everything. Among equals the type
    that is named more exactly comes first, then the one that is named first, then the one that is offered first.

    Source: RFC 9110, section 12.5.1; a quality that is no number from 0 to 1 is passed over with its range, and parameters beside
    it are not compared: no two of our types differ by one.
    """
    accept = ",".join(request.headers.getlist("accept"))
    ranges: dict[str, tuple[int, float]] = {} if accept.strip() else {"*/*": (0, 1.0)}  # place and quality
    for part in _PARTS.findall(accept):
        media_range, *parameters = (text.strip().lower() for text in part.split(";"))
        quality = next((text[2:] for text in parameters if text.startswith("q=")), "1")
        if _QUALITY.fullmatch(quality):
            media_range = "*/*" if media_range == "*" else media_range
            ranges.setdefault(media_range, (-len(ranges), float(quality)))
    ranked = []
    for order, media_type in enumerate(offered):
        naming = [
            (exact, *ranges[one])
            for exact, one in enumerate(("*/*", f"{media_type.partition('/')[0]}/*", media_type))
            if one in ranges
        ]
        if naming:
            exact, place, quality_of_it = max(naming)
            ranked.append((quality_of_it, exact, place, -order, media_type))
    best = max(ranked, default=None)
    return best[-1] if best and best[0] else None


def _not_offered(offered: Iterable[str]) -> Response:
    error = f"None of the types in Accept is offered here; these are: {', '.join(offered)}."
    return JSONResponse({"error": error}, 406)


def read_json(body: bytes) -> object:
    """The JSON of a question."""
    try:
        parsed = json.loads(body or b"{}")
        json.dumps(parsed, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ParameterError(
            "A text in the body of a question has half a character (a lone surrogate)."
        ) from None
    except (ValueError, RecursionError):
        raise ParameterError("The body of a question is a JSON object.") from None
    return parsed


# --- what there is


def _document(content: Callable[[], Json]) -> Callable[[HttpRequest], Response]:
    """What answers a GET, as JSON only."""

    def answer(request: HttpRequest) -> Response:
        accepts = _accepted(request, [_JSON]) is not None
        return JSONResponse(content()) if accepts else _not_offered([_JSON])

    return answer


def _listed() -> Json:
    return {
        "version": named("vit_viz", "__version__"),
        "questions": [described(one) for one in QUESTIONS.values()],
    }


def openapi() -> Json:
    """The OpenAPI document."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "vit_viz",
            "version": named("vit_viz", "__version__"),
            "description": "See what a Vision Transformer looks at: the questions of vit_viz by name.",
        },
        "paths": {
            PREFIX: {
                "get": {
                    "summary": "What can be asked.",
                    "responses": {"200": {"description": "The questions."}},
                }
            },
            **{f"{PREFIX}/{name}": {"post": _operation(question)} for name, question in QUESTIONS.items()},
        },
    }


def _operation(question: AnyQuestion) -> Json:
    refused = {"description": "One sentence.", "content": {"application/json": {"schema": _ERROR}}}
    binary = {"schema": {"type": "string", "format": "binary"}}
    text = {"schema": {"type": "string"}}
    content: Json = {one: text if one.startswith("text/") else binary for one in _types_of(question)}
    content[_JSON] = {"schema": {"type": "object"}}
    return {
        "operationId": question.name,
        "summary": question.words.label,
        "description": sentence_of(question),
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": schema_of_body(question)}},
        },
        "responses": {
            "200": {"description": "Numbers, provenance, the request, a link.", "content": content},
            "4XX": refused,
        },
    }
