"""What a view is of, and the classes that it could be explained for: what all of the page begins with.

    POST /vit_viz/open     {"view": LINK}: what is known of a view once its pass is there; says how far the pass is
    POST /vit_viz/target   {"view": LINK}: the class that it names; and "find": a text, for classes of that name

The first answers with the tokens, where they lie on the photo, the addresses of both, the pictures that there are, what the model
says of the photo, its facts and its proof, the sizes to choose from, and under "about" the same as a question takes it
(vit_viz.rest). Where a view is not possible, and another one is: "refused" says why, and "instead" what of a link it takes. The
second answers with the first classes and the chosen ones, or with {"hits": ...}. Both are JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import anyio
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from vit_viz import samples
from vit_viz.analyses.position_tables import answerable
from vit_viz.analyses.positions import POSITIONS, position_similarity, positioned
from vit_viz.checkpoints import Model
from vit_viz.checkpoints.catalog import entry_of
from vit_viz.errors import Cancelled, CaptureError, ParameterError, VitVizError
from vit_viz.progress import StopCheck
from vit_viz.prompts import Prompts
from vit_viz.rest import THREADS, AnswerProgress, Computed, read_json, refusal
from vit_viz.sentences import sentence
from vit_viz.session.handles import VISITOR, visitor_in
from vit_viz.session.request import Subject
from vit_viz.session.session import Session
from vit_viz.surface import EVENTS, OWNER
from vit_viz.ui import target
from vit_viz.ui.header import sizes
from vit_viz.ui.payload import explorer_value, facts_value
from vit_viz.ui.scripts import PREFIX
from vit_viz.views.choices import arrived, default_name, subject_of
from vit_viz.views.state import ViewState


@dataclass(frozen=True)
class PageCall:
    """What a page asks of a view.

    Args:
        owner: who asks.
        problems: what of the link is not possible, a sentence each.
        body: all that was sent.
        cancelled: whether nobody waits any more.
        so_far: takes how far the answer is and, under `preview`, what there is of it as `preview` writes it.
    """

    session: Session
    owner: str
    view: ViewState
    problems: tuple[str, ...]
    body: dict[str, Any]
    cancelled: StopCheck
    so_far: AnswerProgress = field(default_factory=AnswerProgress)

    @property
    def subject(self) -> Subject:
        """What the view is of."""
        return subject_of(self.session, self.view, self.owner)

    def progress(self, share: float) -> None:
        """Say how much of the answer is done, in [0, 1]."""
        self.so_far.share = share

    def preview(self, value: dict[str, Any]) -> None:
        """Say what there is of the answer so far, or what is being done."""
        self.so_far.preview = json.dumps(value).encode()


def page_route(session: Session, name: str, answer: Callable[[PageCall], dict[str, Any]]) -> Route:
    """The route by which a page asks something of a view; what `answer` raises is its refusal."""
    threads = anyio.CapacityLimiter(THREADS)

    async def post(request: Request) -> Response:
        try:
            body = await run_in_threadpool(read_json, await request.body())
            if not isinstance(body, dict) or not isinstance(body.get("view"), str):
                raise ParameterError(f'A page asks {name!r} of a view: {{"view": LINK}}.')
        except ParameterError as error:
            return refusal(error)
        owner, visitor = request.scope[OWNER], visitor_in(request.cookies)

        def computed(progress: AnswerProgress | None, cancelled: StopCheck) -> Response:
            VISITOR.set(visitor)  # in the context of this thread: whose the handles are
            try:
                view, problems = arrived(session, body["view"], owner)
                called = PageCall(
                    session, owner, view, problems, body, cancelled, progress or AnswerProgress()
                )
                return JSONResponse(answer(called))
            except Exception as error:
                return refusal(error)

        return Computed(computed, threads, is_streamed=EVENTS in request.headers.get("accept", ""))

    return Route(f"{PREFIX}/{name}", post, methods=["POST"])


def routes(session: Session) -> list[Route]:
    """The two."""
    return [page_route(session, "open", _opened), page_route(session, "target", _target)]


def _opened(call: PageCall) -> dict[str, Any]:
    session, view, owner = call.session, call.view, call.owner
    try:
        load(call, call.subject.model)
    except Cancelled:
        raise
    except VitVizError as error:
        if view.model == default_name(session):
            raise
        return {"refused": sentence(error), "instead": {"model": default_name(session)}}
    call.preview({"words": f"Running {view.model} …"})
    try:
        session.run(call.subject.request("trace"), progress=call.progress, cancelled=call.cancelled)
    except (ParameterError, CaptureError) as error:
        given_up = {"size": 0, "part": "", "edits": "", "sentences": "", "templates": ""}
        if not any(getattr(view, name) for name in given_up):
            raise
        return {"refused": sentence(error), "instead": given_up}
    offered = {name: name for name in samples.sample_names()}
    offered |= {image: stored.name for image, stored in session.uploads.of(owner).items()}
    return {
        **explorer_value(session, view, owner),
        **facts_value(session, view, owner, notes=call.problems),
        "sizes": sizes.value(session, view, owner),
        "awaits": view.awaits_upload,
        "output_query": session.trace_of(call.subject).layout.output_query,
        "positions": _positions(session.model(call.subject.model)),
        "pictures": [{"id": image, "name": name} for image, name in offered.items()],
    }


def load(call: PageCall, ref: str) -> None:
    """Wait until a model is here, and say how far it is."""
    if not call.session.has_model(ref):
        entry = entry_of(ref)
        title = entry.title if entry else ref
        call.preview(far_words(title))

        def fetched(done: int, total: int) -> None:
            call.preview(far_words(title, done, total))

        call.session.model(ref, progress=fetched, cancelled=call.cancelled)


def far_words(title: str, done: int = 0, total: int = 0) -> dict[str, Any]:
    """How far a model is, in words: bytes that were fetched, of those that there are where that is known."""
    if not done:
        return {"words": f"Looking for {title} …", "loads": True}
    if done == total:
        return {"words": f"Loading {title} …", "of": 1.0, "loads": True}
    megabytes = f"{done / 1e6:.0f} of {total / 1e6:.0f} MB" if total else f"{done / 1e6:.0f} MB"
    share = {"of": done / total} if total else {}
    return {"words": f"Downloading {title}", "amount": megabytes, "loads": True} | share


def _target(call: PageCall) -> dict[str, Any]:
    if "sentences" in call.body:
        return target.with_sentences(call.view, str(call.body["sentences"]))
    if "templates" in call.body:
        return {"templates": Prompts(templates=str(call.body["templates"])).template_words}
    call.session.run(call.subject.request("trace"), cancelled=call.cancelled)
    find = str(call.body["find"])[:100] if "find" in call.body else None
    return target.value(call.session, call.subject, call.view, find)


def _positions(loaded: Model) -> dict[str, Any]:
    """What a model has of positions: the questions that it answers, its own grid, and the prefix tokens that have one.

    Under "why" stands why there are none to compare, in a sentence; "" where there are.
    """
    why, grid = "", None
    questions: list[str] = []
    prefix: tuple[str, ...] = ()
    try:
        questions = [question.name for question in answerable(loaded)]
        prefix, grid = positioned(loaded), loaded.config and loaded.config.grid
        if POSITIONS.name not in questions:
            position_similarity(loaded)  # which says why
    except ParameterError as error:
        why = str(error)
    return {"questions": questions, "grid": grid, "prefix": prefix, "why": why}
