"""What the Explain tab asks that is no question of its own right.

POST /vit_viz/gallery  {"view": LINK}: a card per method, with its map in words where it is quick or at hand; which maps agree
POST /vit_viz/map      {"view": LINK, "method": name}: computes the map of a slow method; what is said of it
POST /vit_viz/trust    {"view": LINK, "methods": names}: how far to trust each map, and which comes first; previews with the first
POST /vit_viz/sanity   {"view": LINK}: computes how the chosen map changes as the model unlearns
POST /vit_viz/checked  {"view": LINK}: the same, where it is at hand
"""

from __future__ import annotations

from typing import Any

from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.spec import AnyMethod
from vit_viz.errors import ParameterError, VitVizError
from vit_viz.figures.lettering import number
from vit_viz.progress import duration
from vit_viz.results import PatchMap
from vit_viz.sentences import sentence
from vit_viz.ui import pictures
from vit_viz.ui.explain import agree, trust
from vit_viz.ui.explain.questions import Questions
from vit_viz.ui.opened import PageCall
from vit_viz.ui.page import Answers
from vit_viz.ui.payload import picture_address
from vit_viz.ui.pictures import card_named


def gallery_value(questions: Questions) -> dict[str, Any]:
    """The cards of the gallery: one per method, with its map where it is quick or at hand."""
    return {
        "key": questions.key,
        "about": questions.targeted.view.about,
        "target": questions.targeted.words,
        "rule": agree.scale_words(questions),
        "agreement": agree.value(questions),
        "cards": [_card(questions, method) for method in METHODS.cards],
    }


def _card(questions: Questions, method: AnyMethod) -> dict[str, Any]:
    session, subject, view = questions.page.session, questions.subject, questions.view(method)
    box = questions.trace.crop_box
    height, width = box.original_size if box else (1, 1)
    card = {
        "name": method.name,
        "label": method.words.label,
        "blind": method.words.class_blind,
        "slow": method.is_slow,
        "words": cost_words(method, questions.trace.layout.num_patches, session.pass_seconds(subject)),
        "runs": method.words.runs,
        "shows": method.words.shows,
        "hides": method.words.hides,
        "ratio": width / height,
        "options": repr(questions.options(method)),
        "src": picture_address(session, subject, view, "card") + "&bare=1",
    }
    if not method.is_slow or session.keeps(questions.request(method)):
        try:
            card["map"] = map_value(questions, method, pictures.explanation(session, subject, view))
        except VitVizError as error:
            card["words"] = sentence(error)
    return card


def cost_words(method: AnyMethod, patches: int, seconds: float | None) -> str:
    """How often the model runs for a method and, where a pass of it was measured, about how long that takes."""
    if method.passes is None or seconds is None:
        return method.words.runs
    least = "at least " if method.passes.at_least else "about "
    return f"{method.words.runs}: {least}{duration(seconds * method.passes.of(patches))}"


def slow_map(asked: PageCall) -> dict[str, Any]:
    """Compute the map of a slow method; what is said of it."""
    method = card_named(str(asked.body.get("method", "")))
    if not method.is_slow:
        raise ParameterError(f"{method.words.label} needs no waiting.")
    questions = Questions.of(asked, asked.view, asked.owner)
    patch_map = pictures.explanation(
        asked.session,
        questions.subject,
        questions.view(method),
        progress=asked.progress,
        cancelled=asked.cancelled,
    )
    return map_value(questions, method, patch_map)


def map_value(questions: Questions, method: AnyMethod, patch_map: PatchMap) -> dict[str, Any]:
    """What is said of a map: what it is, and its scale with numbers."""
    view = questions.view(method)
    drawn, (low, high), _name = pictures.on_scale(questions.page.session, questions.subject, view, patch_map)
    largest = float(abs(drawn.values).max())
    note = (
        f" Its largest value, {number(largest)}, lies beyond this scale." if largest > high * 1.0001 else ""
    )
    words_of = caption_of(patch_map, method, questions.targeted.words)
    scale = f"{drawn.unit} from {number(low)} to {number(high)}"
    return {"caption": f"{words_of}. Scale: {scale}.{note}"}


def caption_of(patch_map: PatchMap, method: AnyMethod, target: str) -> str:
    """A map in words, with the names of the classes where the analysis knows their numbers."""
    what = patch_map.caption.split(", towards the ")[0]
    targeted = "" if method.words.class_blind else f", for {target}" if target else ", for its own embedding"
    note = f". {patch_map.note.rstrip('.')}" if patch_map.note else ""
    return f"{what[:1].upper()}{what[1:]}{targeted}{note}"


ANSWERS: Answers = {
    "gallery": lambda asked: gallery_value(Questions.of(asked, asked.view, asked.owner)),
    "map": slow_map,
    "trust": trust.trust_of_all,
    "sanity": trust.sanity,
    "checked": trust.checked,
}
