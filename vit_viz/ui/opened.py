"""What a view of the page is of, opened for the browser: one recorded pass, and where what belongs to it is fetched.

    POST /vit_viz/open   {"view": "image=lion&model=mini"}: the part of a link that says model, photo and edits

The answer is JSON: the tokens, where they lie on the photo, the addresses of both, and under "about" the same as a question takes
it (vit_viz.rest). Rooms that keep their state in the browser (vit_viz/web) begin with it.
"""

from __future__ import annotations

from typing import Any

import anyio
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from vit_viz import samples
from vit_viz.analyses.position_tables import answerable
from vit_viz.analyses.positions import POSITIONS, position_similarity, positioned
from vit_viz.checkpoints import Model
from vit_viz.errors import ParameterError
from vit_viz.progress import Progress, StopCheck
from vit_viz.rest import THREADS, Computed, read_body, refusal
from vit_viz.session.handles import VISITOR, visitor_in
from vit_viz.session.session import Session
from vit_viz.session.uploads import UPLOAD
from vit_viz.surface import OWNER
from vit_viz.ui.payload import explorer_value
from vit_viz.ui.scripts import PREFIX
from vit_viz.views.choices import arrived, subject_of
from vit_viz.views.state import ViewState


def routes(session: Session) -> list[Route]:
    """Its route."""
    threads = anyio.CapacityLimiter(THREADS)

    async def answer(request: Request) -> Response:
        try:
            asked = read_body(await request.body())
            if not isinstance(asked, dict) or not isinstance(asked.get("view"), str):
                raise ParameterError('What is opened is {"view": LINK}.')
        except ParameterError as error:
            return refusal(error)
        search, owner, visitor = asked["view"], request.scope[OWNER], visitor_in(request.cookies)

        def opened(_progress: Progress | None, cancelled: StopCheck) -> Response:
            VISITOR.set(visitor)  # in the context of this thread: whose the handles are
            try:
                view, problems = arrived(session, search, owner)
                subject = subject_of(session, view, owner)
                session.run(subject.request("trace"), cancelled=cancelled)
                value = explorer_value(session, view, owner, notes=problems)
                told = {"about": _about(view), "positions": _positions(session.model(subject.model))}
                return JSONResponse(value | told)
            except Exception as error:
                return refusal(error)

        return Computed(opened, threads, is_told=False)

    return [Route(f"{PREFIX}/open", answer, methods=["POST"])]


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


def _about(view: ViewState) -> dict[str, Any]:
    """What a view is of, as a question takes it."""
    kind = (
        "sample"
        if view.image in samples.sample_names()
        else "upload"
        if UPLOAD.fullmatch(view.image)
        else "survey"
    )
    given = {"mode": view.mode, "size": view.size, "part": view.part, "edits": view.edits}
    return {"model": view.model, "image": {kind: view.image}} | given
