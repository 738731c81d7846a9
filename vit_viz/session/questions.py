"""A question by its name becomes a request: in Python, on the page, on the command line, over HTTP and in a notebook alike."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeAlias

from vit_viz.analyses.explain import ComparisonOptions
from vit_viz.analyses.options import Options
from vit_viz.analyses.registry import QUESTIONS
from vit_viz.analyses.spec import AnyQuestion
from vit_viz.analyses.targets import Function
from vit_viz.analyses.trust import OfMethodOptions
from vit_viz.capture.given import class_index
from vit_viz.errors import ParameterError
from vit_viz.geometry import Query, as_query, parse_query
from vit_viz.indices import as_index
from vit_viz.progress import Progress, StopCheck
from vit_viz.prompts import Text, words_of
from vit_viz.session.request import Request, Subject
from vit_viz.session.session import Session

ClassWord: TypeAlias = int | str | Text
TargetWord: TypeAlias = ClassWord | tuple[ClassWord, ClassWord] | Function | None
"""A class by its index or name, a pair for "why the one and not the other", a function that makes one number of the scores (of what
the model returns, where that holds none), or None for the model's first."""


def request_for(
    session: Session,
    subject: Subject,
    name: str | AnyQuestion,
    *,
    query: Query | None = None,
    target: TargetWord = None,
    **options: object,
) -> Request:
    """The request for a question, with words resolved: names of classes, queries as text, "the last layer".

    Args:
        name: of the question, or the question itself.
        query: a token or patches, as a value or as `parse_query` reads it; None means what the output is read from, or what
            the question says.
        target: see `TargetWord`; a text may also be a pair such as "291-292".
        options: of the question; as "options" those of the method, whose map it is about, by name; of several methods by theirs.
    """
    question = QUESTIONS.named(name if isinstance(name, str) else name.name)
    of_method = options.pop("options", None)
    chosen = question.read(options)
    if not question.takes_image:
        return Subject(subject.model, "", owner=subject.owner).request(question.name, **chosen.values())
    if not subject.image:
        raise ParameterError(
            f"{question.name!r} is about a picture: pass a picture, its path or the name of a sample."
        )
    is_unasked = question.takes_target and not subject.prompts and not _is_numbered(target)
    if is_unasked and session.model(subject.model).text is not None:
        subject = replace(subject, prompts=words_of(target, subject.prompts.templates))
    layers = session.trace_of(subject).num_layers
    parameters = chosen.for_layers(layers).values()
    if of_method is not None:
        changed = options_of_methods(question, chosen, of_method, layers)
        parameters |= {"options": changed} if changed else {}
    beside = _start(session, subject, question, query) | _target(session, subject, question, target)
    return subject.request(question.name, **parameters, **beside)


def options_of_methods(
    question: AnyQuestion, chosen: Options, options: object, layers: int = 0
) -> tuple[tuple[str, Any], ...]:
    """The changed options of the method whose map a question is about, or of several methods by their names."""
    if not question.takes_options or not isinstance(chosen, OfMethodOptions | ComparisonOptions):
        raise ParameterError(f"{question.name!r} takes no options of a method.")
    return chosen.of_methods(options, layers)


def ask(
    session: Session,
    subject: Subject,
    name: str | AnyQuestion,
    *,
    progress: Progress | None = None,
    cancelled: StopCheck | None = None,
    **options: Any,
) -> Any:
    """The answer to a question; see `request_for` and `Session.run`."""
    return session.run(request_for(session, subject, name, **options), progress=progress, cancelled=cancelled)


def _start(session: Session, subject: Subject, question: AnyQuestion, query: Query | None) -> dict[str, Any]:
    if not question.takes_query:
        if query is not None:
            raise ParameterError(f"{question.name!r} takes no query.")
        return {}
    if query is None and question.without_query:
        return {"query": None}
    if query is None and not question.follows_pin:
        return {}
    if query is None:
        return {"query": session.checked_trace_of(subject).output_query()}
    return {"query": parse_query(query) if isinstance(query, str) else as_query(query)}


def _target(session: Session, subject: Subject, question: AnyQuestion, target: TargetWord) -> dict[str, Any]:
    """The class, or the pair of classes, that a question is about; None for the model's first."""
    if not question.takes_target:
        if target is not None:
            raise ParameterError(f"{question.name!r} takes no target.")
        return {}
    if isinstance(target, str) and _is_numbered(target):
        first, *others = (int(part) for part in target.split("-"))
        target = (first, *others) if others else first  # type: ignore[assignment]  # a longer one is refused by the analysis
    labels = session.model_of(subject).labels
    if isinstance(target, tuple):
        return {"target": tuple(_class(one, labels) for one in target)}
    return {"target": target if target is None or callable(target) else _class(target, labels)}


def _is_numbered(target: TargetWord) -> bool:
    """Whether a text names classes by numbers, as "291-292" does."""
    return isinstance(target, str) and all(part.isdigit() for part in target.split("-"))


def _class(value: ClassWord, labels: Any) -> int:
    return class_index(str(value), labels) if isinstance(value, str | Text) else as_index("A class", value)
