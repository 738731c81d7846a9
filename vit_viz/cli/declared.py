"""The outline of the command line, from the declarations of the questions: what `questions.json` holds."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import get_args

from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.options import OptionField
from vit_viz.analyses.registry import QUESTIONS
from vit_viz.analyses.spec import AnyQuestion
from vit_viz.checkpoints.catalog import DEFAULT_MODEL
from vit_viz.cli.outline import KINDS, Outline, QuestionOutline
from vit_viz.figures.files import FORMATS
from vit_viz.figures.request import DrawingOptions, Output, has_shared_scale
from vit_viz.images import Mode
from vit_viz.session.inputs import QUERY, TARGET, InputOptions, query_sentence
from vit_viz.surveys.run import BATCH, EngineName


def declared() -> Outline:
    """What the declarations say now."""
    return Outline(
        questions=tuple(map(_question, QUESTIONS.values())),
        method_options=tuple((field, tuple(names)) for field, names in options_of_methods().values()),
        inputs=InputOptions.schema(),
        drawing=DrawingOptions.schema(),
        output=tuple(field for field in Output.schema() if field.name != "format"),
        formats=tuple(FORMATS),
        modes=get_args(Mode),
        query=QUERY,
        target=TARGET,
        default_model=DEFAULT_MODEL,
        survey_batch=BATCH,
        survey_engines=get_args(EngineName),
    )


def text() -> str:
    """The same as `questions.json` holds it, with types by their names."""
    facts, names = asdict(declared()), {kind: name for name, kind in KINDS.items()}
    return json.dumps(facts, indent=1, ensure_ascii=False, allow_nan=False, default=names.__getitem__) + "\n"


def options_of_methods() -> dict[str, tuple[OptionField, list[str]]]:
    """Every option that a method has, by its name, with the methods that take it; they agree on what it is."""
    options: dict[str, tuple[OptionField, list[str]]] = {}
    for name, method in METHODS.items():
        for field in method.options.schema():
            options.setdefault(field.name, (field, []))[1].append(name)
    return options


def _question(question: AnyQuestion) -> QuestionOutline:
    words = question.words
    return QuestionOutline(
        name=question.name,
        shows=words.shows,
        description=f"{words.label}: {words.shows}",
        epilog=f"Does not show {words.hides} Source: {words.source}",
        takes_image=question.takes_image,
        takes_target=question.takes_target,
        query=query_sentence(question) if question.takes_query else "",
        has_shared_scale=has_shared_scale(question),
        options=question.options.schema(),
    )
