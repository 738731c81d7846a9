"""What the Explain tab asks that is no question of its own right; the maps of the cards are questions, which the page draws.

POST /vit_viz/gallery   {"view": LINK}: a card per method: what it is, what it costs, whether its map is at hand
POST /vit_viz/agree     {"view": LINK}: which of the maps that are quick or at hand agree
POST /vit_viz/trust     {"view": LINK, "methods": names}: how far to trust each map, and which comes first; previews with the first
POST /vit_viz/sanity    {"view": LINK}: computes how the chosen map changes as the model unlearns
POST /vit_viz/checked   {"view": LINK}: the same, where it is at hand
"""

from __future__ import annotations

from typing import Any

from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.spec import AnyMethod
from vit_viz.progress import duration
from vit_viz.ui.explain import agree, trust
from vit_viz.ui.explain.questions import Questions
from vit_viz.ui.page import Answers


def gallery_value(questions: Questions) -> dict[str, Any]:
    """The cards of the gallery: one per method."""
    return {
        "key": questions.key,
        "about": questions.targeted.view.about,
        "target": questions.targeted.words,
        "names": list(questions.targeted.names),
        "cards": [_card(questions, method) for method in METHODS.cards],
    }


def _card(questions: Questions, method: AnyMethod) -> dict[str, Any]:
    session, words = questions.page.session, method.words
    seconds = session.pass_seconds(questions.subject)
    return {
        "name": method.name,
        "label": words.label,
        "blind": words.class_blind,
        "aimed": method.takes_target,
        "slow": method.is_slow,
        "kept": method.is_slow and session.keeps(questions.request(method)),
        "words": cost_words(method, questions.trace.layout.num_patches, seconds),
        "runs": words.runs,
        "shows": words.shows,
        "hides": words.hides,
        "options": repr(questions.options(method)),
    }


def cost_words(method: AnyMethod, patches: int, seconds: float | None) -> str:
    """How often the model runs for a method and, where a pass of it was measured, about how long that takes."""
    if method.passes is None or seconds is None:
        return method.words.runs
    least = "at least " if method.passes.at_least else "about "
    return f"{method.words.runs}: {least}{duration(seconds * method.passes.of(patches))}"


ANSWERS: Answers = {
    "gallery": lambda asked: gallery_value(Questions.of(asked, asked.view, asked.owner)),
    "agree": lambda asked: {"value": agree.value(Questions.of(asked, asked.view, asked.owner))},
    "trust": trust.trust_of_all,
    "sanity": trust.sanity,
    "checked": trust.checked,
}
