"""Questions: each is declared once, beside the function that answers it.

Its name on every surface, option controls, links, progress, what is slow, words and formulas, when a GPU is asked for, its figure
and its row in the documentation are derived from the declaration. To add one: a module with its `Question`, and its line in
`vit_viz.analyses.registry`; a `Method` has its line in `vit_viz.analyses.methods`, and a card.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, fields
from functools import wraps
from inspect import signature
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from PIL import Image

from vit_viz.analyses.options import OptionField, Options, options_of
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.analyses.targets import TargetLike
from vit_viz.capture import Trace
from vit_viz.checkpoints import Model
from vit_viz.errors import ParameterError
from vit_viz.geometry import Query
from vit_viz.lazy import Tensor, named
from vit_viz.progress import Progress, StopCheck, Watch
from vit_viz.results import PatchMap
from vit_viz.sentences import did_you_mean

OptionsT = TypeVar("OptionsT", bound=Options)
AnswerT = TypeVar("AnswerT")
Cost = Literal["look-up", "pass", "many passes"]
"""A look-up reads a trace that is kept; "pass" means one recorded pass that all such analyses share; what costs many passes runs
the model for itself, is computed only when it is asked for, and says how far it is."""


@dataclass(frozen=True)
class Words:
    """An analysis in words.

    Args:
        label: its name on the screen.
        also_called: what else people call it or what they look for, by which the page finds it, with commas.
        shows: one sentence on what the result shows.
        hides: one sentence on what it does not show.
        formula: words, and mathematics as LaTeX between dollar signs.
        source: paper and its address.
        class_blind: whether the result is the same for every class.
        runs: how often the model runs, where it runs for this analysis alone.
    """

    label: str
    shows: str
    hides: str
    formula: str
    source: str
    class_blind: bool = False
    runs: str = ""
    also_called: str = ""


@dataclass(frozen=True)
class Passes:
    """How often the model runs for an analysis that runs it for itself, in forward passes; one backward counts as two.

    Args:
        of: from the recorded pass of what is asked about.
        bound: what stands before the time that they take: it may run on until its result is good enough, or end earlier.
        shared: parts that they make, which are kept for others.
    """

    of: Callable[[Trace], float]
    bound: Literal["about", "at least", "at most about"] = "about"
    shared: tuple[Part[Any], ...] = ()


Input = Literal["model", "photo", "trace", "tokens", "image"]
"""What an answer is made of: the model alone; its input as pixels; a recorded pass; one that kept the tokens of every layer; the
image in front of the model, which may run again."""

SECOND = "second"
"""The option of a question that names another picture, which is looked at beside the first."""

BESIDE_OPTIONS = ("query", "target", "options")
"""What a request holds beside the options of its question; "options" are those of a method whose map is put to the test."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Part(Generic[AnswerT]):
    """What is computed and kept under a name because answers are made of it; nobody asks for it by name.

    Args:
        name: in requests, with spaces between its words, so that no question has it.
        run: from a `Job`, which holds the parameters of the request.
        reads: decides what is recorded first, and which device answers.
        forwards: about how many forward passes it takes, which decides whether a GPU is asked for; 0 for a look-up.
        is_slow: whether a visitor gets one such answer at a time.
    """

    name: str
    run: Callable[[Job], AnswerT]
    reads: Input
    forwards: int = 0
    is_slow: bool = False

    def is_slow_with(self, _parameters: Mapping[str, Any]) -> bool:
        """As a `Question`."""
        return self.is_slow

    def answer(self, job: Job) -> AnswerT:
        """What is computed for a job."""
        return self.run(job)


@dataclass(frozen=True)
class Place:
    """Which tab draws an answer better than the panel does, in the words of links.

    Args:
        tab: that opens.
        view: what is chosen there, by name.
        options: names of options of the question, where links call them otherwise; "" for one that the tab does not have.
        also: what else is chosen there, from the parameters of a request.
        chooses: options of the question that the tab chooses for itself, whatever was asked with.
    """

    tab: str
    view: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    also: Callable[[Mapping[str, Any]], Mapping[str, str]] | None = None
    chooses: tuple[str, ...] = ()

    def link(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Everything that is chosen where a request is shown, by name in links; without parameters, where the question is."""
        options = {self.options.get(name, name): value for name, value in parameters.items()}
        also = self.also(parameters) if self.also and parameters else {}
        return options | {"tab": self.tab} | dict(self.view) | dict(also)


@dataclass(frozen=True, eq=False, kw_only=True)
class Question(Generic[OptionsT, AnswerT]):
    """One thing that can be asked by name: every surface offers it as it is declared here.

    Args:
        name: in links, commands, routes and Python: lower-case letters, digits and underscores.
        words: what people read.
        options: their type.
        run: from a `Job` and the options to the answer.
        reads: decides what is recorded first, and which device answers.
        place: the tab that draws the answer better than the panel does; None where no tab does.
        cost: decides how it is queued, whether it says how far it is, and whether a GPU is asked for.
        forwards: about how many forward passes it takes; 0 for a look-up.
        takes_query: whether it starts from a token.
        takes_target: whether it is about a class.
        takes_options: whether it is about the map of a method, whose options may be given, too.
        without_query: what it is about where no query is given, in words; "" for what the output is read from.
        passes: from which its duration is estimated before it is asked for; None where nobody knows.
    """

    name: str
    words: Words
    options: type[OptionsT]
    run: Callable[[Any, OptionsT], AnswerT]
    reads: Input
    place: Place | None = None
    cost: Cost = "look-up"
    forwards: int = 0
    takes_query: bool = False
    takes_target: bool = False
    takes_options: bool = False
    without_query: str = ""
    passes: Passes | None = None

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z][a-z0-9_]*", self.name):
            raise ParameterError(f"A question cannot be called {self.name!r}: links need a_name_like_this.")
        if self.is_slow != bool(self.words.runs):
            raise ParameterError(
                f"{self.words.label} says how often the model runs, `words.runs`, if it costs many passes."
            )

    @property
    def is_slow(self) -> bool:
        """Whether it runs only when it is asked for by name, and a visitor gets one such answer at a time."""
        return self.cost == "many passes"

    def is_slow_with(self, parameters: Mapping[str, Any]) -> bool:
        """Whether an answer with these parameters costs many passes: not where the options say that it is quick."""
        return self.is_slow and not getattr(self.chosen(parameters), "is_quick", False)

    @property
    def takes_image(self) -> bool:
        """Whether it is about an image, and not about the model alone."""
        return self.reads != "model"

    @property
    def follows_pin(self) -> bool:
        """Whether it starts from the token that is pinned on the page."""
        return self.takes_query

    def answer(self, job: Job) -> AnswerT:
        """What is computed for a job whose parameters hold the options."""
        return self.run(job, self.chosen(job.parameters))

    def option_in_words(self, option: OptionField) -> str:
        """What the page calls one of its options: "option “factor” of “Norms”"."""
        return f"{option.in_words} of “{self.words.label}”"

    def chosen(self, parameters: Mapping[str, Any]) -> OptionsT:
        """The options among the parameters of a request."""
        return self.options.of(
            (name, value) for name, value in parameters.items() if name not in BESIDE_OPTIONS
        )

    def read(self, values: Mapping[str, object], *, in_words: bool = False) -> OptionsT:
        """The options from text, JSON or Python values, by name.

        Args:
            in_words: whether errors call question and options as the page does, and not by the names that one types elsewhere.
        """
        fields = {one.name: one for one in self.options.schema()}
        title = f"“{self.words.label}”" if in_words else repr(self.name)
        titles = {
            name: self.option_in_words(one) if in_words else f"{self.name}'s {name}"
            for name, one in fields.items()
        }
        for name in values:
            if name not in fields:
                there = [one.option.label for one in fields.values()] if in_words else list(fields)
                ending = f"there are: {', '.join(there)}." if there else "it has none."
                raise ParameterError(f"{title} has no option {str(name)[:40]!r}; {ending}")
        read = {name: fields[name].read(titles[name], value) for name, value in values.items()}
        return self.options.of(read.items())


def asks(function: Callable[..., AnswerT], **declared: Any) -> Question[Any, AnswerT]:
    """The question that a function answers; it has the function's name where no other is given.

    The function is called with what the question reads, or with the `Job` where its first parameter is called `job`; with query,
    target, progress and cancellation where it takes them; and with the options that its signature annotates, or with `options`.

    Args:
        declared: fields of `Words` and of `Question`; options only where they have a type of their own.
    """
    return Question(**_declaration(function, declared))


def explains(function: Callable[..., PatchMap], **declared: Any) -> AnyMethod:
    """The same of a method, whose function takes a `MethodInput`, called `inputs`."""
    return Method(**_declaration(function, declared))


def _declaration(function: Callable[..., Any], declared: dict[str, Any]) -> dict[str, Any]:
    takes, reads = signature(function).parameters, declared.get("reads")
    first = next(iter(takes))
    words = {field.name: declared.pop(field.name) for field in fields(Words) if field.name in declared}

    @wraps(function)
    def run(job: Any, options: Options) -> Any:
        source = (
            job if first in ("job", "inputs") else getattr(job, "loaded" if reads == "model" else str(reads))
        )
        beside = {word: getattr(job, word) for word in ("query", "target", "cancelled") if word in takes}
        if (
            "progress" in takes
        ):  # told to somebody in any case: a public function that is given None draws a bar
            beside["progress"] = job.progress or (lambda _share: None)
        return function(
            source, **beside, **({"options": options} if "options" in takes else options.values())
        )

    about: dict[str, Any] = {f"takes_{word}": True for word in ("query", "target") if word in takes}
    about |= {"name": function.__name__.strip("_"), "options": options_of(function), "run": run}
    return about | declared | {"words": Words(**words)}


@dataclass(frozen=True)
class SharedPass:
    """What a quick method reads of the recorded pass that it shares with others.

    Args:
        gradient: the target's gradient for the attention of every layer.
        features: what the last attention reads, with the target's gradient, `Trace.last_features`.
        norms: how much each value moves, `Trace.value_norms`.
        chain: from the options to the `Chain` through the layers; chains of several methods are computed together.
    """

    gradient: bool = False
    features: bool = False
    norms: bool = False
    chain: Callable[[Any], Any] | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Method(Question[OptionsT, PatchMap]):
    """A question whose answer is a map that explains an output: a card of the Explain tab.

    Args:
        run: from a `MethodInput`, which several methods share, and the options to the map.
        shared: what a quick one needs of the shared pass.
        is_card: whether the Explain tab has a card for it.
    """

    reads: Input = "image"
    takes_target: bool = True
    shared: SharedPass = SharedPass()
    is_card: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.is_card:
            links = {one.name: one.link_name(self.name) for one in self.options.schema()}
            object.__setattr__(self, "place", Place("explain", {"method": self.name}, links))
        object.__setattr__(self, "forwards", _FORWARDS[self.cost])

    @property
    def follows_pin(self) -> bool:
        """Whether any token will do: what explains a target starts from what that is read from, unless it is told otherwise."""
        return self.takes_query and not self.takes_target

    @property
    def links(self) -> frozenset[str]:
        """Names of its options in links."""
        return frozenset(one.link_name(self.name) for one in self.options.schema())

    def answer(self, job: Job) -> PatchMap:
        """As a `Question`, by the function of a higher floor that knows what methods share."""
        patch_map: PatchMap = named("vit_viz.analyses.explain", "explained")(job, self)
        return patch_map


_FORWARDS: dict[Cost, int] = {"look-up": 0, "pass": 4, "many passes": 200}
"""Of a method, about: a quick one takes as many as all quick ones together, which share theirs."""

AnyMethod: TypeAlias = Method[Any]
AnyQuestion: TypeAlias = Question[Any, Any]


QuestionT = TypeVar("QuestionT", bound=Question[Any, Any])


class Registry(Mapping[str, QuestionT]):
    """Questions by name, in the order in which they are shown.

    Args:
        questions: to begin with; none has the name of another.
        after: those that stand before them.
        missing: how a sentence begins that says that there is none of a name.
        listed: how it ends on the page, where all are found by their titles.
    """

    def __init__(
        self,
        *questions: QuestionT,
        after: Mapping[str, QuestionT] | None = None,
        missing: str = "There is nothing called",
        listed: str = "“Find a question” (Ctrl+K) finds all that can be asked.",
    ) -> None:
        self._questions: dict[str, QuestionT] = {}
        self._after: Mapping[str, QuestionT] = after or {}
        self._missing, self._listed = missing, listed
        for question in questions:
            self._add(question)

    def __getitem__(self, name: str) -> QuestionT:
        return self._after[name] if name in self._after else self._questions[name]

    def __iter__(self) -> Iterator[str]:
        return iter((*self._after, *self._questions))

    def __len__(self) -> int:
        return len(self._after) + len(self._questions)

    def named(self, name: str) -> QuestionT:
        """The question of a name."""
        if name not in self:
            raise ParameterError(f"{self._missing} {str(name)[:40]!r}{did_you_mean(str(name), self)}")
        return self[name]

    def titled(self, name: str) -> QuestionT:
        """The question of a name, for those who know questions by their titles."""
        if name in self:
            return self[name]
        near = difflib.get_close_matches(str(name), list(self), 1)
        advice = f"did you mean “{self[near[0]].words.label}”?" if near else self._listed
        raise ParameterError(f"{self._missing} {str(name)[:40]!r}; {advice}")

    @contextmanager
    def including(self, question: QuestionT) -> Iterator[None]:
        """Offer one more, as the last, until the end of the block."""
        self._add(question)
        try:
            yield
        finally:
            del self._questions[question.name]

    def _add(self, question: QuestionT) -> None:
        if question.name in self:
            raise ParameterError(f"There is a question {question.name!r} already.")
        self._questions[question.name] = question


class Methods(Registry[AnyMethod]):
    """Methods by name, in the order in which the screen shows them; links tell their options apart."""

    @property
    def cards(self) -> tuple[AnyMethod, ...]:
        """Those that the Explain tab shows."""
        return tuple(method for method in self.values() if method.is_card)

    @property
    def usual(self) -> AnyMethod:
        """The one that is shown where none is chosen, or where a slow one is not at hand: the first quick card."""
        return next(method for method in self.cards if not method.is_slow)

    @property
    def quick(self) -> tuple[str, ...]:
        """Names of those that share one pass, or need none."""
        return tuple(name for name, method in self.items() if not method.is_slow)

    def _add(self, question: AnyMethod) -> None:
        taken = {link for name, other in self.items() if name != question.name for link in other.links}
        if not taken.isdisjoint(question.links):
            raise ParameterError(
                f"Links have options of these names already: {sorted(taken & question.links)}."
            )
        super()._add(question)


# --- what a question is answered from


@dataclass(frozen=True)
class Job:
    """One request as the function of its question sees it. What is not asked for is not computed.

    Args:
        loaded: the model.
        parameters: of the request, by name.
        answer_of: the answer to another request about the same image, by its name and parameters; kept as any other. `share` says
            where its progress begins and ends within that of the whole.
        prepare: makes the image as the model receives it, for what runs the model.
        see: the picture, or the part of it that is meant, and how `Preprocess.apply` makes the input of it.
        record: the recorded pass, or the one that kept the residual stream; refused where its pictures would mislead.
        record_of: the latter of another picture, by its name.
        single_copy: entered around what needs a copy of the model, of which there is one at a time.
        progress: told the share that is done.
        cancelled: asked between batches.
        preview: given what is there so far, where an answer can tell.
    """

    loaded: Model
    parameters: Mapping[str, Any]
    answer_of: Callable[..., Any]
    prepare: Callable[[], PreparedImage]
    see: Callable[[], tuple[Image.Image, dict[str, Any]]]
    record: Callable[[bool], Trace]
    record_of: Callable[[str], Trace]
    single_copy: Callable[[], AbstractContextManager[None]]
    progress: Progress | None = None
    cancelled: StopCheck | None = None
    preview: Callable[[Any], None] | None = None

    @property
    def trace(self) -> Trace:
        """The recorded pass."""
        return self.record(False)

    @property
    def tokens(self) -> Trace:
        """The recorded pass that kept the tokens of every layer."""
        return self.record(True)

    @property
    def image(self) -> PreparedImage:
        """The image as the model receives it."""
        return self.prepare()

    @property
    def query(self) -> Query | None:
        """The token that it starts from; None for what the question says."""
        query: Query | None = self.parameters.get("query")
        return query

    @property
    def target(self) -> TargetLike:
        """What is explained: a class, a pair of classes, or None for the model's own first choice."""
        target: TargetLike = self.parameters.get("target")
        return target

    @property
    def outputs(self) -> Tensor:
        """What the model says of the whole image, on the CPU; see `PreparedImage.logits`."""
        recorded = self.trace
        outputs = self.image.logits(recorded) if recorded.logits is None else recorded.logits
        return outputs.float().cpu()

    @property
    def watched(self) -> dict[str, Any]:
        """Progress and cancellation as functions take them."""
        return {"progress": self.progress, "cancelled": self.cancelled}

    def watch(self, total: int) -> Watch:
        """Counts the steps of a slow answer, says how far it is, and ends it when that is wanted."""
        return Watch(total, **self.watched)
