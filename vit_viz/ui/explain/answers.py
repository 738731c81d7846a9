"""What the Explain tab asks that is no question of its own right; the maps of the cards are questions, which the page draws.

POST /vit_viz/costs     {"view": LINK}: what the maps of the slow methods cost, in words
POST /vit_viz/agree     {"view": LINK}: which of the maps that are quick or at hand agree
POST /vit_viz/trust     {"view": LINK, "methods": names}: how far to trust each map, and which comes first; previews with the first
POST /vit_viz/sanity    {"view": LINK}: computes how the chosen map changes as the model unlearns
POST /vit_viz/checked   {"view": LINK}: the same, where it is at hand
POST /vit_viz/lead      {"view": LINK}: whether the lead of one class over another goes with the patches that two classes' maps,
                        subtracted, give to the one; with "known" no more than what is at hand of it, and what it costs
"""

from __future__ import annotations

from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.spec import AnyMethod
from vit_viz.progress import duration
from vit_viz.ui.explain import agree, lead, trust
from vit_viz.ui.explain.questions import Questions
from vit_viz.ui.page import Answers


def costs(questions: Questions) -> dict[str, str]:
    """What the map of each slow method costs, in words, by its name."""
    patches, seconds = (
        questions.trace.layout.num_patches,
        questions.page.session.pass_seconds(questions.subject),
    )
    return {method.name: cost_words(method, patches, seconds) for method in METHODS.cards if method.is_slow}


def cost_words(method: AnyMethod, patches: int, seconds: float | None) -> str:
    """How often the model runs for a method and, where a pass of it was measured, about how long that takes."""
    if method.passes is None or seconds is None:
        return method.words.runs
    least = "at least " if method.passes.at_least else "about "
    return f"{method.words.runs}: {least}{duration(seconds * method.passes.of(patches))}"


ANSWERS: Answers = {
    "costs": lambda asked: {"words": costs(Questions.of(asked, asked.view, asked.owner))},
    "agree": lambda asked: {"value": agree.value(Questions.of(asked, asked.view, asked.owner))},
    "trust": trust.trust_of_all,
    "sanity": trust.sanity,
    "checked": trust.checked,
    "lead": lead.lead,
}
