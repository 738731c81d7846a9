"""What an engine can be asked for by the name in a request: questions, the parts of answers, and what it records itself."""

from __future__ import annotations

from typing import Any

from vit_viz.analyses.registry import PARTS, QUESTIONS
from vit_viz.analyses.spec import AnyQuestion, Part
from vit_viz.session.request import Request
from vit_viz.session.walkthrough import LEARNED_INPUT, Step


def _by_the_engine(_job: Any) -> Any:
    raise AssertionError("an engine records this itself")


TRACE: Part[Any] = Part(name="trace", run=_by_the_engine, reads="photo", forwards=1)
TOKEN_TRACE: Part[Any] = Part(name="token trace", run=_by_the_engine, reads="photo")
WALKTHROUGH: Part[Step] = Part(name="walkthrough", run=_by_the_engine, reads="trace")
_PARTS = PARTS | {part.name: part for part in (TRACE, TOKEN_TRACE, WALKTHROUGH, LEARNED_INPUT)}


def computed(request: Request) -> AnyQuestion | Part[Any]:
    """What a request asks for.

    Raises:
        ParameterError: there is nothing of its name.
    """
    name = request.question
    return QUESTIONS.named(name) if name not in _PARTS else _PARTS[name]
