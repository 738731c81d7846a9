"""What the stage of the Explain tab asks: the chosen map on the photo, its controls, and what the model says without patches.

POST /vit_viz/stage     {"view": LINK}: the map, its numbers and words, what else can be chosen, and the controls with the formula
POST /vit_viz/without   {"view": LINK, "gone": "7,3,20"}: what the model says of the photo without these patches
POST /vit_viz/lead      {"view": LINK}: whether the lead of one class over another goes with the patches that two classes' maps,
                        subtracted, give to the one; it takes long, and says how far it is
"""

from __future__ import annotations

from dataclasses import replace

from vit_viz.analyses.faithfulness import patch_order
from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.options import OptionField
from vit_viz.explorer.value import Value, control
from vit_viz.figures.lettering import number
from vit_viz.figures.maps import drawn_words
from vit_viz.figures.request import DrawingOptions
from vit_viz.figures.screen import style_of
from vit_viz.geometry import TokenLayout, format_query
from vit_viz.progress import StopCheck
from vit_viz.results import PatchMap
from vit_viz.sentences import formatted
from vit_viz.ui import pictures
from vit_viz.ui.explain import lead, sides
from vit_viz.ui.explain.questions import Questions, answer_value, whole_value
from vit_viz.ui.explain.sides import Shown
from vit_viz.ui.kit import words
from vit_viz.ui.opened import PageCall
from vit_viz.ui.page import Answers
from vit_viz.ui.payload import bar_value, cells_value, picture_address, picture_value, saved_value
from vit_viz.ui.pictures import card_named, is_subtracted

_DRAWING = {"style": "style", "alpha": "strength", "table": "colours of heat", "smooth": "smooth"}
"""Options of how the map is drawn, and what their controls are called."""


def _stage(asked: PageCall) -> Value:
    shown = _shown(Questions.of(asked, asked.view, asked.owner), asked.cancelled)
    return stage_value(shown) | controls_value(shown)


def _without(asked: PageCall) -> Value:
    return answer_value(
        Questions.of(asked, asked.view, asked.owner),
        str(asked.body.get("gone", "")),
        cancelled=asked.cancelled,
    )


def _lead(asked: PageCall) -> Value:
    return lead.measured(_shown(Questions.of(asked, asked.view, asked.owner), asked.cancelled), asked)


def _shown(questions: Questions, cancelled: StopCheck | None = None) -> Shown:
    """The chosen map; a slow one that was not made gives way to the first quick one."""
    session, subject, trace = questions.page.session, questions.subject, questions.trace
    view, problems = questions.targeted.view.fitted(
        layers=trace.num_layers, heads=trace.num_heads, layout=trace.layout
    )
    method = card_named(view.method)
    if method.is_slow and not session.keeps(pictures.map_request(session, subject, view)):
        usual = METHODS.usual
        problems += (
            f"{method.words.label} takes longer: its card computes it. {usual.words.label} is shown instead.",
        )
        method, view = usual, replace(view, method=usual.name)
    view, why = sides.fitted(view, method)
    problems += (why,) if why else ()
    patch_map = pictures.explanation(session, subject, view, cancelled=cancelled)
    return Shown(questions, view, method, patch_map, problems)


def stage_value(shown: Shown) -> Value:
    """The picture of the map, the numbers of its patches, their order, and what the model says of the whole photo."""
    questions, view, patch_map = shown.questions, shown.view, shown.patch_map
    session, subject, trace = questions.page.session, questions.subject, questions.trace
    drawn, (low, high), scale = pictures.on_scale(session, subject, view, patch_map)
    style, why = style_of(session, subject, view.drawing.style, signed=drawn.signed)
    box = trace.crop_box
    assert box is not None  # a session traces photos, which have one
    height, width = box.original_size
    figure = pictures.explanation_figure(session, subject, view)
    asked = figure.parameters
    if "query" in asked:
        asked["query"] = format_query(asked["query"])
    if "options" in asked:
        asked["options"] = dict(asked["options"])
    saved = saved_value(view, figure.request.question, **asked)
    saved[1]["figure"]["shared_scale"] = figure.beside is not None and not is_subtracted(view)
    value = picture_value(
        view,
        picture_address(session, subject, view, "explain"),
        saved=saved,
        caption=_caption(shown, scale, why or style),
        trace=trace,
        bar=bar_value(
            low,
            high,
            table="diverging" if drawn.signed else view.drawing.table,
            unit=sides.unit(shown, drawn.unit),
            style=style,
        ),
        note=" ".join([*shown.problems, patch_map.note, _prefix_words(patch_map)]).strip(),
        pick=shown.method.follows_pin,
    )
    return value | {
        "cells": cells_value(drawn),
        "key": view.about,
        "target": view.target,
        "method": shown.method.words.label,
        "shows": shown.method.name,
        "grid": list(trace.layout.grid),
        "region": list(box.region),
        "photo_size": [height, width],
        "order": ",".join(str(patch) for patch in patch_order(patch_map).tolist()),
        "whole": whole_value(questions),
        "said": sides.sentence(shown),
        "sides": sides.value(shown),
        "lead": lead.value(shown),
        "is_own": pictures.explanation_request(session, subject, view) == questions.request(shown.method),
    }


def _caption(shown: Shown, scale: str, style: str) -> str:
    view, method, how = shown.view, shown.method, shown.view.drawing
    target, layout = sides.words(shown) or "its own embedding", shown.questions.trace.layout
    is_ignored = view.query and not method.follows_pin and view.query != layout.default_query
    parts = [
        view.model,
        shown.patch_map.caption.split(", towards the ")[0],
        view.options_of(method.name).caption(),
        "the same for every class" if shown.patch_map.class_blind else f"for {target}",
        f"explains the output, not the pinned {layout.describe(view.query_of(layout))}" if is_ignored else "",
        f"scale: {scale}",
        drawn_words(style, smooth=how.smooth, alpha=how.alpha),
    ]
    return " · ".join(part for part in parts if part)


def _prefix_words(patch_map: PatchMap) -> str:
    """What fell on other tokens, which no map over the photo shows; the registers as one, suffix tokens by kind."""
    prefix = patch_map.prefix
    known = {name: value for name, value in prefix.items() if not name.startswith("register")}
    if len(known) < len(prefix):
        known["registers"] = sum(prefix.values()) - sum(known.values())
    known |= patch_map.suffix_kinds
    is_share = patch_map.value_range[1] <= 1.0
    parts = [
        f"{name} {formatted(value, '.1%') if is_share else number(value)}" for name, value in known.items()
    ]
    return f"Outside the photo: {', '.join(parts)}." if parts else ""


# --- what can be chosen


def controls_value(shown: Shown) -> Value:
    """The formula of the method as HTML, and its controls, then those of how its map is drawn."""
    method, trace = shown.method, shown.questions.trace
    queries = _query_controls(trace.layout) if method.follows_pin else []
    return {
        "formula": words.formulas((method.words.formula, method.words.source)),
        "options": queries
        + [_control(field, method.name, trace.num_layers) for field in method.options.schema()],
        "drawing": [
            _control(field, "", trace.num_layers) | {"label": _DRAWING[field.name]}
            for field in DrawingOptions.schema()
            if field.name in _DRAWING
        ],
    }


def _control(field: OptionField, method: str, layers: int) -> Value:
    """A control of an option; that of a layer offers those that the model has, and says how many there are."""
    said = control(field, layers) | {"link": field.link_name(method)}
    return said | ({"layers": layers} if field.option.is_layer else {})


def _query_controls(layout: TokenLayout) -> list[Value]:
    """The tokens that are no patches, at which a map may begin, with what the output is read from; then those after the patches."""
    queries = [
        query for query in dict.fromkeys([layout.output_query, *layout.prefix]) if query not in layout.suffix
    ]
    of_link = {"link": "q", "default": layout.output_query}
    query = {
        "name": "query",
        "label": "from which token (or “choose the query” on the photo)",
        "sentence": "The token that the map begins at.",
        "choices": queries,
    }
    suffix = {
        "name": "suffix",
        "label": "or from a token after the patches",
        "sentence": "The same, of tokens that the model has after those of the patches.",
        "choices": list(layout.suffix),
    }
    return [control | of_link for control in (query, suffix) if control["choices"]]


ANSWERS: Answers = {"stage": _stage, "without": _without, "lead": _lead}
