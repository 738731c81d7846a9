"""What the Explain tab is asked on one visit, and the requests that answer it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from vit_viz.analyses.removal import WithoutPatches
from vit_viz.analyses.spec import AnyMethod
from vit_viz.capture import Trace
from vit_viz.errors import ParameterError
from vit_viz.figures.lettering import number
from vit_viz.labels import Labels
from vit_viz.outputs import Noun, Output, noun_of, output_kind, output_name, shown
from vit_viz.progress import StopCheck
from vit_viz.sentences import formatted
from vit_viz.session.request import Request, Subject
from vit_viz.session.session import Session
from vit_viz.ui import pictures
from vit_viz.ui.pictures import target_of
from vit_viz.views.choices import subject_of
from vit_viz.views.state import ViewState

MOST_HITS = 12
_CHIPS = 3  # classes that are offered at once; the search has all
_LONGEST = 8000  # characters of a list of patches
_BEST = 3  # classes of the whole photo that stand beside the target
_NEW = 2  # of the best classes now, those that are shown even where they were not listed
_ALIKE = "similarity to the whole photo"


@dataclass(frozen=True)
class TargetedView:
    """A view whose target is fixed and exists in its model.

    Args:
        view: with the model's first class where none was chosen.
        words: the target in words; "" for the image's own embedding.
        problem: one sentence where the chosen target does not exist.
        labels: names of the classes, or None where they have none.
        classes: how many there are; 0 for a model without a head.
        output: what one of them is.
    """

    view: ViewState
    words: str
    problem: str
    labels: Labels | None
    classes: int
    output: Output = "softmax"

    @property
    def chosen(self) -> tuple[int, ...]:
        """The class that is explained, then the one that it is set against, if any; none for an embedding."""
        return tuple(int(part) for part in self.view.target.split("-") if part)

    @property
    def names(self) -> tuple[str, ...]:
        """What those classes are called."""
        return tuple(map(self.name, self.chosen))

    def name(self, index: int) -> str:
        """What a class is called."""
        return output_name(index, self.labels, noun_of(self.output))

    @property
    def is_value(self) -> bool:
        """Whether outputs are values, and no probabilities of classes."""
        return self.output == "value"


def with_target(session: Session, subject: Subject, view: ViewState) -> TargetedView:
    """Fix the target of a view: the model's first class unless one that exists was chosen."""
    trace = session.trace_of(subject)
    prepared = session.prepared(subject)
    labels = session.model(subject.model).labels
    if trace.logits is None:
        raise ParameterError("This model returns no scores of classes, so there is nothing to explain.")
    classes = trace.logits.numel() if prepared.has_classes else 0
    chosen, problem = tuple(int(part) for part in view.target.split("-") if part), ""
    is_against_itself = len(set(chosen)) < len(chosen)
    if is_against_itself or any(index >= classes for index in chosen):
        problem = (
            "This model has one output, which is explained."
            if classes == 1
            else "A class was asked for, but this model has none."
            if not classes
            else "A class cannot be set against itself; the first class is explained."
            if is_against_itself
            else f"This model has classes 0-{classes - 1}; its first class is explained instead."
        )
        chosen = ()
    if not classes:
        return TargetedView(replace(view, target=""), "", problem, None, 0)
    if not chosen:
        chosen = (int(trace.logits.argmax()),)
    fixed = replace(view, target="-".join(map(str, chosen)))
    targeted = TargetedView(fixed, "", problem, labels, classes, output_kind(prepared.output, classes))
    return replace(targeted, words=" and not ".join(targeted.names))


def target_value(session: Session, subject: Subject, targeted: TargetedView) -> dict[str, Any]:
    """The value of the component of targets: the first classes, those that are chosen, and what this means."""
    if not targeted.classes:
        words = (
            "This model has no classes. The maps explain its own embedding of this photo: what makes the embedding what it is. "
            "Whether a map changes with the class cannot be measured without classes."
        )
        return {"classes": [], "words": f"{words} {targeted.problem}".strip()}
    trace = session.trace_of(subject)
    assert trace.logits is not None
    answers = shown(trace.logits.float(), targeted.output).cpu()
    best = answers.topk(min(_CHIPS, targeted.classes)).indices.tolist()
    chosen = targeted.chosen
    listed = list(dict.fromkeys([*best, *chosen]))
    amount = "value" if targeted.is_value else "probability"
    entries = [{"index": i, "name": targeted.name(i), amount: float(answers[i])} for i in listed]
    return {
        "classes": entries,
        "chosen": chosen[0],
        "other": chosen[1] if len(chosen) == 2 else None,
        "words": targeted.problem,
    }


def matching_classes(
    labels: Labels | None, classes: int, text: str, *, noun: Noun = "class"
) -> list[dict[str, Any]]:
    """Classes that a text means, the best first."""
    if labels is None:
        digits = text.strip()
        indices: tuple[int, ...] = (
            (int(digits),) if digits.isascii() and digits.isdigit() and len(digits) < 7 else ()
        )
    else:
        indices = labels.search(text, limit=MOST_HITS)
    return [{"index": i, "name": output_name(i, labels, noun)} for i in indices if i < classes]


class HasSession(Protocol):
    """A page, or what a page asks."""

    @property
    def session(self) -> Session:
        """Of the app."""


@dataclass(frozen=True)
class Questions:
    """One picture of a visit as the tab sees it: its subject, and its view with the target fixed."""

    page: HasSession
    subject: Subject
    targeted: TargetedView

    @classmethod
    def of(cls, page: HasSession, view: ViewState, owner: str) -> Questions:
        """From what a handler is given."""
        subject = subject_of(page.session, view, owner)
        return cls(page, subject, with_target(page.session, subject, view))

    @property
    def key(self) -> str:
        """What the maps are about: equal for equal image, model, mode and target."""
        view = self.targeted.view
        return f"{view.about}|{view.target}"

    @property
    def trace(self) -> Trace:
        """The recorded forward pass."""
        return self.page.session.trace_of(self.subject)

    def view(self, method: AnyMethod) -> ViewState:
        """The view of one card: every card explains the output, whatever token is pinned."""
        view = replace(self.targeted.view, method=method.name, query="")
        return view.with_option("explain", "sides", "lead")

    def request(self, method: AnyMethod) -> Request:
        """What is asked for the map of a card."""
        return pictures.map_request(self.page.session, self.subject, self.view(method))

    def options(self, method: AnyMethod) -> tuple[tuple[str, Any], ...]:
        """The options of a method that are not at their defaults."""
        options = self.targeted.view.options_of(method.name)
        return options.for_layers(self.trace.num_layers).changed()

    def trust_request(self, method: AnyMethod) -> Request:
        """What is asked for the trust of a card."""
        options = self.options(method)
        view = self.view(method)
        follows = (
            {"query": pictures.start_of(self.page.session, self.subject, view)}
            if options and method.follows_pin
            else {}
        )
        target = target_of(self.targeted.view)
        return self.subject.request("trust", method=method.name, target=target, options=options, **follows)

    def band_request(self) -> Request:
        """What is asked for the random orders that all cards are compared with."""
        return self.subject.request("random band", target=target_of(self.targeted.view))


@dataclass(frozen=True)
class Line:
    """One class, value, or the similarity of an embedding: its score with all patches, and without those that are gone."""

    name: str
    before: float
    now: float
    is_target: bool

    def value(self, *, whole: bool, show: Callable[[float], str]) -> dict[str, Any]:
        """As the page shows it; of the whole photo there is nothing to compare with. A value has no bar."""
        text = show(self.now) if whole else f"{show(self.before)} → {show(self.now)}"
        line: dict[str, Any] = {"name": self.name, "text": text, "target": self.is_target}
        if show is not number:
            line |= {"now": self.now} if whole else {"now": self.now, "before": self.before}
        return line


def percent(share: float) -> str:
    """A probability for people, with a decimal where it is small or almost certain: 96%, 2.5%, <0.1%."""
    if 0 < share < 0.0005:
        return "<0.1%"
    return formatted(share, ".0%" if 0.0995 <= share <= 0.99 else ".1%")


def whole_value(questions: Questions) -> dict[str, Any]:
    """What the model says of the whole photo."""
    logits = questions.trace.logits
    assert logits is not None  # `with_target` refuses what has none
    if not questions.targeted.classes:
        return {"top": [Line(_ALIKE, 1.0, 1.0, True).value(whole=True, show=_two_digits)], "words": ""}
    scores = shown(logits.float(), questions.targeted.output).cpu().flatten().tolist()
    name, targets, show = questions.targeted.name, questions.targeted.chosen, _written(questions.targeted)
    lines = [Line(name(i), scores[i], scores[i], i in targets) for i in _listed(questions)]
    words = f"With all patches: {lines[0].name} {show(lines[0].now)}."
    return {"top": [line.value(whole=True, show=show) for line in lines], "words": words}


def _two_digits(value: float) -> str:
    return formatted(value, ".2f")


def _written(targeted: TargetedView) -> Callable[[float], str]:
    """How people read what the model says of one output."""
    return number if targeted.is_value else percent if targeted.classes else _two_digits


def answer_value(questions: Questions, gone: str, *, cancelled: StopCheck | None = None) -> dict[str, Any]:
    """What the model says without these patches, given as numbers row by row with commas between."""
    rows, cols = questions.trace.layout.grid
    parts = [part for part in gone[:_LONGEST].split(",") if part]
    if not all(part.isascii() and part.isdigit() and int(part[:7]) < rows * cols for part in parts):
        raise ParameterError(f"Patches are numbered from 0 to {rows * cols - 1}.")
    patches = sorted({int(part) for part in parts})
    if not patches:
        return whole_value(questions)
    asked = _listed(questions) if questions.targeted.classes else ()
    request = questions.subject.request(
        "without patches",
        gone=[divmod(patch, cols) for patch in patches],
        **({"asked": asked} if asked else {}),
    )
    answer: WithoutPatches = questions.page.session.run(request, cancelled=cancelled)
    show = _written(questions.targeted)
    scores, before = answer.top.scores.tolist(), answer.before.tolist()
    indices, targets = answer.top.indices or (-1,), questions.targeted.chosen
    best = sorted(range(len(scores)), key=lambda place: -scores[place])[:_NEW]
    lines = [
        Line(name, before[place], scores[place], not asked or indices[place] in targets)
        for place, name in enumerate(answer.top.names)
        if place < len(asked) or place in best
    ]
    return {
        "top": [line.value(whole=False, show=show) for line in lines],
        "words": _sentence(lines, len(patches) / (rows * cols), show) if asked else "",
    }


def _listed(questions: Questions) -> tuple[int, ...]:
    """The target, what it is set against, and the best classes of the whole photo."""
    logits = questions.trace.logits
    assert logits is not None
    best = logits.flatten().topk(min(_BEST, questions.targeted.classes)).indices.tolist()
    return tuple(dict.fromkeys([*questions.targeted.chosen, *best]))


def _sentence(lines: list[Line], gone: float, show: Callable[[float], str]) -> str:
    """What became of the target, and what comes first; of values none does."""
    target, first = lines[0], max(lines, key=lambda line: line.now)
    came_first = max(lines, key=lambda line: line.before) is target
    old, new = show(target.before), show(target.now)
    way = "falls" if target.now < target.before else "rises"
    change = f"stays at {new}" if old == new else f"{way} from {old} to {new}"
    if show is number:
        rest = ""
    elif first is target:
        rest = " and still comes first" if came_first else " and comes first"
    else:
        rest = f"; {first.name} comes first" + (" now" if came_first else "")
    return f"Without {percent(gone)} of the photo, {target.name} {change}{rest}."
