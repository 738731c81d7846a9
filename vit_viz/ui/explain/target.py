"""What the Explain tab explains, in words for people: a class, one class and not another, or the image's own embedding."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from vit_viz.errors import ParameterError
from vit_viz.labels import Labels
from vit_viz.session.handles import Subject
from vit_viz.session.session import Session
from vit_viz.ui.explain.methods import target_of
from vit_viz.views.state import ViewState

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
    """

    view: ViewState
    words: str
    problem: str
    labels: Labels | None
    classes: int

    @property
    def chosen(self) -> tuple[int, ...]:
        """The class that is explained, then the one that it is set against, if any; none for an embedding."""
        return tuple(int(part) for part in self.view.target.split("-") if part)

    def name(self, index: int) -> str:
        """What a class is called."""
        return class_name(self.labels, index)


def class_name(labels: Labels | None, index: int) -> str:
    """What a class is called; its number where names are not known."""
    return labels.name(index) if labels else f"class {index}"


def with_target(session: Session, subject: Subject, view: ViewState) -> TargetedView:
    """Fix the target of a view: the model's first class unless one that exists was chosen."""
    trace = session.trace_of(subject)
    prepared = session.prepared(subject)
    labels = session.model(subject.model).labels
    if trace.logits is None:
        raise ParameterError("This model returns no scores [1, classes], so there is nothing to explain.")
    classes = trace.logits.numel() if prepared.has_classes else 0
    wanted = target_of(view)
    chosen: tuple[int, ...] = () if wanted is None else (wanted,) if isinstance(wanted, int) else wanted
    problem = ""
    if any(index >= classes for index in chosen) or len(set(chosen)) < len(chosen):
        problem = _refused(chosen, classes)
        chosen = ()
    if not classes:
        return TargetedView(replace(view, target=""), "", problem, None, 0)
    if not chosen:
        chosen = (int(trace.logits.argmax()),)
    words = " and not ".join(class_name(labels, index) for index in chosen)
    fixed = replace(view, target="-".join(map(str, chosen)))
    return TargetedView(fixed, words, problem, labels, classes)


def target_value(session: Session, subject: Subject, targeted: TargetedView) -> dict[str, Any]:
    """The value of the Target component: the first classes, those that are chosen, and what this means."""
    if not targeted.classes:
        words = (
            "This model has no classes. The maps explain its own embedding of this photo: what makes the embedding what it is. "
            "Whether a map changes with the class cannot be measured without classes."
        )
        return {"classes": [], "words": f"{words} {targeted.problem}".strip()}
    trace = session.trace_of(subject)
    assert trace.logits is not None
    probabilities = trace.logits.float().softmax(-1).cpu()
    best = probabilities.topk(min(_CHIPS, targeted.classes)).indices.tolist()
    chosen = targeted.chosen
    shown = list(dict.fromkeys([*best, *chosen]))
    entries = [{"index": i, "name": targeted.name(i), "probability": float(probabilities[i])} for i in shown]
    return {
        "classes": entries,
        "chosen": chosen[0],
        "other": chosen[1] if len(chosen) == 2 else None,
        "words": targeted.problem,
    }


def matching_classes(labels: Labels | None, classes: int, text: str) -> list[dict[str, Any]]:
    """Classes that a text means, the best first."""
    if labels is None:
        number = text.strip()
        indices: tuple[int, ...] = (
            (int(number),) if number.isascii() and number.isdigit() and len(number) < 7 else ()
        )
    else:
        indices = labels.search(text, limit=MOST_HITS)
    return [{"index": i, "name": class_name(labels, i)} for i in indices if i < classes]


def _refused(chosen: tuple[int, ...], classes: int) -> str:
    if not classes:
        return "A class was asked for, but this model has none."
    if len(set(chosen)) < len(chosen):
        return "A class cannot be set against itself; the first class is explained."
    return f"This model has classes 0-{classes - 1}; its first class is explained instead."
