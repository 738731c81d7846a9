"""What the model says of the photo and of what is left of it, in lines and one sentence: the target first, whatever it scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from vit_viz.analyses.without import WithoutPatches
from vit_viz.errors import ParameterError
from vit_viz.ui.explain.questions import Questions

_LONGEST = 8000  # characters of a list of patches
_BEST = 3  # classes of the whole photo that stand beside the target
_NEW = 2  # of the best classes now, those that are shown even where they were not listed
_ALIKE = "similarity to the whole photo"


@dataclass(frozen=True)
class Line:
    """One class, or the similarity of an embedding: its score with all patches, and without those that are gone."""

    name: str
    before: float
    now: float
    is_target: bool

    def value(self, *, whole: bool, is_share: bool) -> dict[str, Any]:
        """As the page shows it; of the whole photo there is nothing to compare with."""
        show = percent if is_share else "{:.2f}".format
        text = show(self.now) if whole else f"{show(self.before)} → {show(self.now)}"
        line = {"name": self.name, "now": self.now, "text": text, "target": self.is_target}
        return line if whole else line | {"before": self.before}


def percent(share: float) -> str:
    """A probability for people, with a decimal where it is small or almost certain: 96%, 2.5%, <0.1%."""
    if 0 < share < 0.0005:
        return "<0.1%"
    return f"{share:.0%}" if 0.0995 <= share <= 0.99 else f"{share:.1%}"


def whole_value(questions: Questions) -> dict[str, Any]:
    """What the model says of the whole photo."""
    logits = questions.trace.logits
    assert logits is not None  # `with_target` refuses what has none
    if not questions.targeted.classes:
        return {"top": [Line(_ALIKE, 1.0, 1.0, True).value(whole=True, is_share=False)], "words": ""}
    scores = logits.float().softmax(-1).cpu().flatten().tolist()
    name, targets = questions.targeted.name, questions.targeted.chosen
    lines = [Line(name(i), scores[i], scores[i], i in targets) for i in _listed(questions)]
    words = f"With all patches: {lines[0].name} {percent(lines[0].now)}."
    return {"top": [line.value(whole=True, is_share=True) for line in lines], "words": words}


def answer_value(questions: Questions, gone: str) -> dict[str, Any]:
    """What the model says without these patches, given as numbers row by row with commas between.

    Raises:
        ParameterError: a patch does not exist, or nothing would be left.
    """
    rows, cols = questions.trace.layout.grid
    parts = [part for part in gone[:_LONGEST].split(",") if part]
    if not all(part.isascii() and part.isdigit() and int(part[:7]) < rows * cols for part in parts):
        raise ParameterError(f"Patches are numbered from 0 to {rows * cols - 1}.")
    patches = sorted({int(part) for part in parts})
    if not patches:
        return whole_value(questions)
    asked = _listed(questions) if questions.targeted.classes else ()
    answer = questions.without([divmod(patch, cols) for patch in patches], asked=asked)
    is_share = answer.top.unit == "probability"
    lines = _lines(answer, questions.targeted.chosen, len(asked))
    return {
        "top": [line.value(whole=False, is_share=is_share) for line in lines],
        "words": _sentence(lines, len(patches) / (rows * cols)) if is_share else "",
    }


def _listed(questions: Questions) -> tuple[int, ...]:
    """The target, what it is set against, and the best classes of the whole photo."""
    logits = questions.trace.logits
    assert logits is not None
    best = logits.flatten().topk(min(_BEST, questions.targeted.classes)).indices.tolist()
    return tuple(dict.fromkeys([*questions.targeted.chosen, *best]))


def _lines(answer: WithoutPatches, targets: tuple[int, ...], asked: int) -> list[Line]:
    """Those that were asked for, and others that are among the best now."""
    scores, indices = answer.top.scores.tolist(), answer.top.indices or (-1,)
    best = sorted(range(len(scores)), key=lambda place: -scores[place])[:_NEW]
    shown = [place for place in range(len(scores)) if place < asked or place in best]
    before = answer.before.tolist()
    return [
        Line(answer.top.names[i], before[i], scores[i], not asked or indices[i] in targets) for i in shown
    ]


def _sentence(lines: list[Line], gone: float) -> str:
    """What became of the target, and what comes first."""
    target, first = lines[0], max(lines, key=lambda line: line.now)
    came_first = max(lines, key=lambda line: line.before) is target
    old, new = percent(target.before), percent(target.now)
    way = "falls" if target.now < target.before else "rises"
    change = f"stays at {new}" if old == new else f"{way} from {old} to {new}"
    if first is target:
        rest = " and still comes first" if came_first else " and comes first"
    else:
        rest = f"; {first.name} comes first" + (" now" if came_first else "")
    return f"Without {percent(gone)} of the photo, {target.name} {change}{rest}."
