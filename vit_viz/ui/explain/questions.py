"""What the Explain tab is asked on one visit, and the requests that answer it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

from vit_viz.analyses.explain import parameters_of
from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.spec import AnyMethod
from vit_viz.capture import Trace
from vit_viz.errors import ParameterError
from vit_viz.geometry import Query, parse_query
from vit_viz.labels import Labels
from vit_viz.outputs import Noun, Output, noun_of, output_kind, output_name, shown
from vit_viz.session.request import Request, Subject
from vit_viz.session.session import Session
from vit_viz.views.choices import subject_of
from vit_viz.views.state import ViewState

Target = int | tuple[int, int] | None

MOST_HITS = 12
_CHIPS = 3  # classes that are offered at once; the search has all


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
        return map_request(self.page.session, self.subject, self.view(method))

    def options(self, method: AnyMethod) -> tuple[tuple[str, Any], ...]:
        """The options of a method that are not at their defaults."""
        options = self.targeted.view.options_of(method.name)
        return options.for_layers(self.trace.num_layers).changed()

    def trust_request(self, method: AnyMethod) -> Request:
        """What is asked for the trust of a card."""
        options = self.options(method)
        view = self.view(method)
        follows = (
            {"query": start_of(self.page.session, self.subject, view)}
            if options and method.follows_pin
            else {}
        )
        target = target_of(self.targeted.view)
        return self.subject.request("trust", method=method.name, target=target, options=options, **follows)

    def band_request(self) -> Request:
        """What is asked for the random orders that all cards are compared with."""
        return self.subject.request("random band", target=target_of(self.targeted.view))


def map_request(session: Session, subject: Subject, view: ViewState) -> Request:
    """What is asked for the map of a method; only methods that can follow any token follow the pinned query."""
    method, trace = card_named(view.method), session.trace_of(subject)
    options = view.options_of(method.name).for_layers(trace.num_layers)
    asked = {"target": side_of(view)} | (
        {"query": start_of(session, subject, view)} if method.follows_pin else {}
    )
    return subject.request(method.name, **parameters_of(method, options, **asked))


def start_of(session: Session, subject: Subject, view: ViewState) -> Query:
    """The query that is pinned, else what the view's target is read from."""
    if view.query:
        return parse_query(view.query)
    target = side_of(view)
    outputs = None if target is None else target if isinstance(target, tuple) else (target,)
    return session.checked_trace_of(subject).output_query(outputs=outputs)


def is_subtracted(view: ViewState) -> bool:
    """Whether a view shows the maps of two classes subtracted."""
    return view.explain.sides == "difference" and isinstance(target_of(view), tuple)


def target_of(view: ViewState) -> Target:
    """The target of a view as analyses take it: a class, a pair of classes, or None for the model's own."""
    classes = [int(part) for part in view.target.split("-") if part]
    if len(classes) == 2:
        return classes[0], classes[1]
    return classes[0] if classes else None


def side_of(view: ViewState) -> Target:
    """The target of a view, or the one of its two classes that is looked at."""
    target = target_of(view)
    if isinstance(target, tuple) and view.explain.sides in ("one", "other"):
        return target[view.explain.sides == "other"]
    return target


def card_named(name: str) -> AnyMethod:
    """The method of a card."""
    method = METHODS.titled(name)
    if not method.is_card:
        raise ParameterError(f"“{method.words.label}” has no card on the Explain tab.")
    return method
