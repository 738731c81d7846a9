"""What can be asked by name, in Python, on the command line, over HTTP and in a notebook alike: each question declared once.

Every method of the Explain tab is one (vit_viz.analyses.methods); the others are declared here. A question has options, says
whether it follows a query or a target, and becomes a `Request`: every surface takes the same path and gives the same numbers.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Any, TypeAlias

from vit_viz.analyses.attention import AttentionOptions, Direction
from vit_viz.analyses.head_estimate import Ablation
from vit_viz.analyses.head_statistics import Measure
from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.options import NoOptions, Option, Options
from vit_viz.analyses.spec import Method, Words
from vit_viz.capture.given import class_index
from vit_viz.errors import ParameterError
from vit_viz.geometry import Query, parse_query
from vit_viz.indices import as_index
from vit_viz.progress import Progress, StopCheck
from vit_viz.sentences import did_you_mean
from vit_viz.session.answers import Answer
from vit_viz.session.handles import Subject
from vit_viz.session.head_questions import OF_HEADS, OneHeadOptions
from vit_viz.session.input_questions import OF_THE_INPUT
from vit_viz.session.position_questions import OF_POSITIONS
from vit_viz.session.question import Question
from vit_viz.session.request import Request
from vit_viz.session.session import Session
from vit_viz.session.token_questions import OF_TOKENS

__all__ = ["ClassWord", "Question", "TargetWord", "ask", "question_named", "questions", "request_for"]

ClassWord: TypeAlias = int | str
TargetWord: TypeAlias = ClassWord | tuple[ClassWord, ClassWord] | None
"""A class by its index or name, a pair for "why the one and not the other", or None for the model's first."""


@dataclass(frozen=True)
class LookOptions(OneHeadOptions, AttentionOptions):
    """Which attention of a query is asked for."""


@dataclass(frozen=True)
class MosaicOptions(Options):
    """Which attention of a query is asked for, in all heads of all layers."""

    direction: Annotated[
        Direction,
        Option("direction", "What the query looks at (a row of A), or who looks at it (a column of A)."),
    ] = "row"


@dataclass(frozen=True)
class HeadsOptions(Options):
    """What heads are measured by."""

    measure: Annotated[Measure, Option("measure", "What is measured of each head.")] = "distance"


@dataclass(frozen=True)
class AblationOptions(Options):
    """How a head is switched off."""

    how: Annotated[
        Ablation,
        Option("how", "What replaces the head's output: zero, its mean over tokens, uniform attention."),
    ] = "zero"


@dataclass(frozen=True)
class OfMethodOptions(Options):
    """Whose map is put to the test."""

    method: Annotated[
        str, Option("method", "Name of the method whose map is tested.", pattern=r"[a-z][a-z0-9_]*")
    ] = METHODS.usual.name

    def __post_init__(self) -> None:
        super().__post_init__()
        METHODS.named(self.method)


def _of_method(method: Method) -> Question:
    """The question for the map of a method."""
    return Question(
        method.name,
        method.words,
        method.options,
        method.cost,
        analysis="explain",
        parameters=lambda options, layers: explain_parameters(method, options, layers),
        takes_query=method.follows_query,
        takes_target=method.cost != "look-up",
    )


def explain_parameters(method: Method, options: Options, layers: int) -> dict[str, Any]:
    """What the analysis "explain" is asked for the map of a method: its name, and of its options those that were changed."""
    changed = options.for_layers(layers).changed()
    return {"method": method.name} | ({"options": changed} if changed else {})


def _look_parameters(options: LookOptions, layers: int) -> dict[str, Any]:
    layer, head, direction = options.layer_of(layers), options.head_given, options.direction
    return {"layer": layer, "head": head, "direction": direction, "norm_weighted": options.norm}


def _as_they_are(options: Options, _layers: int) -> dict[str, Any]:
    return asdict(options)


_A = "Vaswani et al. 2017, arXiv:1706.03762"

_OWN = (
    Question(
        "look",
        Words(
            label="Attention",
            shows="what a token looks at in one layer, in one head or in all fused.",
            hides="whether the answer depends on it: what is looked at need not be used.",
            formula=r"$A_{l h}[q, :] = \mathrm{softmax}(q k^\top / \sqrt{d})$; as a column: $A_{l h}[:, q]$",
            source=_A,
            class_blind=True,
        ),
        LookOptions,
        "look-up",
        analysis="attention",
        parameters=_look_parameters,
        takes_query=True,
    ),
    Question(
        "mosaic",
        Words(
            label="All heads",
            shows="what a token looks at in every head of every layer.",
            hides="whether the answer depends on it: what is looked at need not be used.",
            formula=r"$A_{l h}[q, :]$ for all $l$, $h$",
            source=_A,
            class_blind=True,
        ),
        MosaicOptions,
        "look-up",
        analysis="mosaic",
        parameters=_as_they_are,
        takes_query=True,
    ),
    Question(
        "heads",
        Words(
            label="Heads",
            shows="one number for each head of each layer: how far it looks, how widely, at what.",
            hides="whether the answer depends on the head: see its ablation.",
            formula=r"distance: $\mathrm{mean}_i \sum_j a_{ij} d_{ij}$; entropy: $-\sum_j a_{ij} \ln a_{ij} / \ln N$; "
            "the others: shares of attention",
            source="Dosovitskiy et al. 2021, arXiv:2010.11929, Fig. 7",
            class_blind=True,
        ),
        HeadsOptions,
        "look-up",
        analysis="heads",
        parameters=_as_they_are,
    ),
    Question(
        "head_names",
        Words(
            label="Names of heads",
            shows="a name for each head, such as local or content, with the numbers that gave it.",
            hides="what else a head does: names are words for a few measures on one photo, with thresholds set by hand.",
            formula="the first rule whose numbers all pass their thresholds",
            source="Dosovitskiy et al. 2021, arXiv:2010.11929; Darcet et al. 2024, arXiv:2309.16588",
            class_blind=True,
        ),
        NoOptions,
        "look-up",
        analysis="head names",
        parameters=_as_they_are,
    ),
    Question(
        "head_importance",
        Words(
            label="Importance of heads",
            shows="by how much the target would change if one head were switched off, estimated from one gradient.",
            hides="what does change: the estimate is of first order, see the ablation.",
            formula=r"$\sum_i \frac{\partial f}{\partial o_{l h i}} \cdot (0 - o_{l h i})$",
            source="Michel et al. 2019, arXiv:1905.10650, section 4.1",
        ),
        AblationOptions,
        "pass",
        analysis="head importance",
        parameters=_as_they_are,
        takes_target=True,
    ),
    Question(
        "ablation",
        Words(
            label="Causal effect of heads",
            shows="by how much the target changes when one head is switched off, for every head.",
            hides="what heads do together: each is switched off alone.",
            formula=r"$f(x \mid o_{l h} \leftarrow 0) - f(x)$",
            source="Michel et al. 2019, arXiv:1905.10650",
            runs="about half a pass for each head",
        ),
        AblationOptions,
        "many passes",
        analysis="ablation",
        parameters=_as_they_are,
        takes_target=True,
    ),
    Question(
        "trust",
        Words(
            label="Trust",
            shows="how the answer changes as a map's patches are taken away or brought in, beside random orders.",
            hides="what a photo with removed patches means to a model that never saw one.",
            formula=r"areas under $p(c)$ over the share of patches removed, or brought in",
            source="Petsiuk et al. 2018, arXiv:1806.07421",
            runs="some hundred passes",
        ),
        OfMethodOptions,
        "many passes",
        analysis="trust",
        parameters=_as_they_are,
        takes_target=True,
    ),
    Question(
        "randomisation",
        Words(
            label="Sanity check",
            shows="how a map changes as the model's weights are made random, from the last layer to the first.",
            hides="whether the map of the trained model is right.",
            formula=r"Spearman correlation of the map with that of the randomised model",
            source="Adebayo et al. 2018, arXiv:1810.03292",
            runs="one explanation for each layer",
        ),
        OfMethodOptions,
        "many passes",
        analysis="randomisation",
        parameters=_as_they_are,
        takes_target=True,
    ),
    Question(
        "classes",
        Words(
            label="Answer",
            shows="the model's five most probable classes.",
            hides="how far its probabilities can be believed: they are seldom calibrated.",
            formula=r"$\mathrm{softmax}(z)$",
            source="Dosovitskiy et al. 2021, arXiv:2010.11929",
        ),
        NoOptions,
        "look-up",
        analysis="classes",
        parameters=_as_they_are,
    ),
)


def questions() -> dict[str, Question]:
    """Every question by its name: the methods that explain an output in their order, then the others."""
    named = {name: _of_method(method) for name, method in METHODS.items()}
    others = (*_OWN, *OF_THE_INPUT, *OF_HEADS, *OF_TOKENS, *OF_POSITIONS)
    return named | {question.name: question for question in others}


def question_named(name: str) -> Question:
    """The question of a name.

    Raises:
        ParameterError: there is none; the message says which there are.
    """
    known = questions()
    if name not in known:
        raise ParameterError(f"There is nothing called {str(name)[:40]!r}{did_you_mean(str(name), known)}")
    return known[name]


def request_for(
    session: Session,
    subject: Subject,
    name: str,
    *,
    query: Query | None = None,
    target: TargetWord = None,
    **options: object,
) -> Request:
    """The request for a question, with words resolved: names of classes, queries as text, "the last layer".

    Args:
        query: a token or patches, as a value or as `parse_query` reads it; None means what the output is read from, or what
            the question says.
        target: see `TargetWord`; a text may also be a pair such as "291-292".

    Raises:
        CheckpointError, ImageError, ParameterError: as the steps say.
    """
    question = question_named(name)
    chosen = question.read(options)
    if not question.takes_image:
        subject = Subject(subject.model, "", owner=subject.owner)
        return subject.request(question.analysis, **question.parameters(chosen, 0))
    if not subject.image:
        raise ParameterError(
            f"{name!r} is about a picture: pass a picture, its path or the name of a sample."
        )
    layers = session.trace_of(subject).num_layers
    parameters = dict(question.parameters(chosen, layers))
    parameters |= _start(session, subject, question, query) | _target(session, subject, question, target)
    return subject.request(question.analysis, **parameters)


def ask(
    session: Session,
    subject: Subject,
    name: str,
    *,
    progress: Progress | None = None,
    cancelled: StopCheck | None = None,
    **asked: Any,
) -> Answer:
    """The answer to a question; see `request_for` and `Session.run`."""
    return session.run(request_for(session, subject, name, **asked), progress=progress, cancelled=cancelled)


def _start(session: Session, subject: Subject, question: Question, query: Query | None) -> dict[str, Any]:
    """The query that a question starts from."""
    if not question.takes_query:
        if query is not None:
            raise ParameterError(f"{question.name!r} starts from no query.")
        return {}
    if query is None and question.without_query:
        return {"query": None}
    layout = session.trace_of(subject).layout
    parsed = parse_query(query) if isinstance(query, str) else query
    return {"query": layout.default_query if parsed is None else parsed}


def _target(session: Session, subject: Subject, question: Question, target: TargetWord) -> dict[str, Any]:
    """The class, or the pair of classes, that a question is about; None for the model's first."""
    if not question.takes_target:
        if target is not None:
            raise ParameterError(f"{question.name!r} is about no class.")
        return {}
    if isinstance(target, str) and all(part.isdigit() for part in target.split("-")):
        first, *others = (int(part) for part in target.split("-"))
        target = (first, *others) if others else first  # type: ignore[assignment]  # a longer one is refused by the analysis
    labels = session.model(subject.model).labels
    if isinstance(target, tuple):
        return {"target": tuple(_class(one, labels) for one in target)}
    return {"target": None if target is None else _class(target, labels)}


def _class(given: ClassWord, labels: Any) -> int:
    return class_index(given, labels) if isinstance(given, str) else as_index("A class", given)
