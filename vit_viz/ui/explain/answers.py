"""What the Explain tab asks that is no question of its own right; the maps and their tests are questions, which the page draws.

POST /vit_viz/costs     {"view": LINK}: what the maps of the slow methods cost, and the test of two classes subtracted, in words
POST /vit_viz/agree     {"view": LINK}: which of the maps that are quick or at hand agree
"""

from __future__ import annotations

from typing import Any

from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.spec import AnyMethod
from vit_viz.analyses.trust import RANDOM_BAND, TRUST
from vit_viz.progress import duration
from vit_viz.ui.explain import agree
from vit_viz.ui.explain.questions import Questions, target_of
from vit_viz.ui.page import Answers


def costs(questions: Questions) -> dict[str, Any]:
    """What the map of each slow method costs, in words, by its name, and what the test of two maps subtracted costs."""
    session, patches = questions.page.session, questions.trace.layout.num_patches
    seconds = session.pass_seconds(questions.subject)
    are_known = session.keeps(
        questions.subject.request(RANDOM_BAND.name, target=target_of(questions.targeted.view))
    )
    maps = {method.name: cost_words(method, patches, seconds) for method in METHODS.cards if method.is_slow}
    return {"words": maps, "lead": lead_cost(seconds, are_known=are_known)}


def cost_words(method: AnyMethod, patches: int, seconds: float | None) -> str:
    """How often the model runs for a method and, where a pass of it was measured, about how long that takes."""
    if method.passes is None or seconds is None:
        return method.words.runs
    least = "at least " if method.passes.at_least else "about "
    return f"{method.words.runs}: {least}{duration(seconds * method.passes.of(patches))}"


def lead_cost(seconds: float | None, *, are_known: bool) -> str:
    """How often the model runs for the test and how long that takes at most; less where the random orders are known.

    What was measured is a pass of one picture: in batches each takes less.
    """
    passes = TRUST.forwards - (RANDOM_BAND.forwards if are_known else 0)
    how_often = "the random orders are known" if are_known else TRUST.words.runs
    said = f"Takes them away, beside random orders of patches; {how_often}"
    return f"{said}." if seconds is None else f"{said}: at most about {duration(seconds * passes)}."


ANSWERS: Answers = {
    "costs": lambda asked: costs(Questions.of(asked, asked.view, asked.owner)),
    "agree": lambda asked: {"value": agree.value(Questions.of(asked, asked.view, asked.owner))},
}
