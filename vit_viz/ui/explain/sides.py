"""Two classes on the stage of the Explain tab: the map of each, the two subtracted, and what that says in a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from vit_viz.analyses.spec import AnyMethod
from vit_viz.results import PatchMap, half_words
from vit_viz.ui import pictures
from vit_viz.ui.explain.questions import Questions
from vit_viz.views.state import ViewState

SIDES = ("one", "other", "difference", "lead")


@dataclass(frozen=True)
class Shown:
    """What stands on the stage: the method, which may not be the chosen one, its map, and what had to give way in sentences."""

    questions: Questions
    view: ViewState
    method: AnyMethod
    patch_map: PatchMap
    problems: tuple[str, ...]


def _refused(method: AnyMethod) -> str:
    """Why there is no map of each class by itself; "" where there is."""
    label = method.words.label
    if method.words.class_blind:
        return f"{label} is the same for every class, so there is nothing to subtract."
    return (
        f"{label} takes long: only quick maps of two classes are subtracted here." if method.is_slow else ""
    )


def fitted(view: ViewState, method: AnyMethod) -> tuple[ViewState, str]:
    """The view on one map for both classes where a method has none for each, and why."""
    if view.explain.map_scale == "only" and method.is_slow:
        why = f"{method.words.label} is not set against the quick maps: this is its own."
        return view.with_option("explain", "sides", "lead").with_option("explain", "map_scale", "own"), why
    if not isinstance(pictures.target_of(view), tuple) or view.explain.sides == "lead":
        return view, ""
    why = _refused(method)
    return (view.with_option("explain", "sides", "lead") if why else view), why


def value(shown: Shown) -> list[dict[str, Any]]:
    """The maps that can be chosen of a pair of classes; none of one class, or of a method that sees none."""
    chosen = shown.questions.targeted.chosen
    if len(chosen) != 2 or _refused(shown.method):
        return []
    one, other = shown.questions.targeted.names
    names = (f"for {one}", f"for {other}", f"{one}, and not {other}", f"{one}'s lead over {other}")
    return [
        {"side": side, "label": name, "chosen": side == shown.view.explain.sides}
        for side, name in zip(SIDES, names, strict=True)
    ]


def words(shown: Shown) -> str:
    """What the map on the stage is for, in words."""
    targeted, side = shown.questions.targeted, shown.view.explain.sides
    if len(targeted.chosen) == 2 and side in ("one", "other"):
        return targeted.name(targeted.chosen[side == "other"])
    return targeted.words


def unit(shown: Shown, usual: str) -> str:
    """What the bar counts, with what its two colours mean."""
    if not pictures.is_subtracted(shown.view):
        return usual
    one, other = shown.questions.targeted.names
    return f"{usual}; orange {one}, blue {other}"


def sentence(shown: Shown) -> str:
    """On how few patches half of a map lies, of a signed one half of what is above 0, and which has most of it; of two maps
    subtracted where each class has the most that the other has not, and less where they are alike."""
    values = shown.patch_map.values
    if not pictures.is_subtracted(shown.view):
        if shown.patch_map.peak is None:
            return shown.patch_map.to_words()
        if shown.view.explain.map_scale == "only":
            return ""
        return half_words(values, f"what speaks for {words(shown)}" if shown.patch_map.signed else "the map")
    most, least = (np.unravel_index(int(place), values.shape) for place in (values.argmax(), values.argmin()))
    one, other = shown.questions.targeted.names
    apart = float(np.abs(values).sum(dtype=np.float64)) / 2
    if apart < 0.0005:
        return (
            "The two maps are alike: less than 0.1% of a map would have to move to turn one into the other."
        )
    return (
        f"Most for {one} at row {most[0]}, column {most[1]}; most for {other} at row {least[0]}, column {least[1]}. "
        f"{apart:.1%} of the map lies elsewhere."
    )
