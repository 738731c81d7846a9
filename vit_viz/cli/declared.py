"""The outline of the command line, from the declarations of the questions: `python -m vit_viz.cli.declared` writes it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, get_args

from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.options import OptionField
from vit_viz.analyses.registry import QUESTIONS
from vit_viz.analyses.spec import AnyQuestion
from vit_viz.checkpoints.catalog import DEFAULT_MODEL
from vit_viz.cli.outline import FILE, KINDS
from vit_viz.drawing.answers import FORMATS
from vit_viz.drawing.figures import Output
from vit_viz.drawing.options import DrawingOptions
from vit_viz.images import Mode
from vit_viz.session.inputs import QUERY, TARGET, InputOptions, query_sentence
from vit_viz.surveys.engine import Word
from vit_viz.surveys.run import BATCH

_KIND_NAMES = {kind: name for name, kind in KINDS.items()}


def declared() -> dict[str, Any]:
    """What the declarations say now, as `vit_viz.cli.outline` reads it."""
    return {
        "questions": [_question(question) for question in QUESTIONS.values()],
        "method_options": [
            {"option": _field(field), "methods": names} for field, names in options_of_methods().values()
        ],
        "inputs": _fields(InputOptions.schema()),
        "drawing": _fields(DrawingOptions.schema()),
        "output": _fields(field for field in Output.schema() if field.name != "format"),
        "formats": list(FORMATS),
        "modes": list(get_args(Mode)),
        "query": QUERY,
        "target": TARGET,
        "default_model": DEFAULT_MODEL,
        "survey_batch": BATCH,
        "survey_engines": list(get_args(Word)),
    }


def text() -> str:
    """The same as `questions.json` holds it."""
    return json.dumps(declared(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def options_of_methods() -> dict[str, tuple[OptionField, list[str]]]:
    """Every option that a method has, by its name, with the methods that take it; they agree on what it is."""
    options: dict[str, tuple[OptionField, list[str]]] = {}
    for name, method in METHODS.items():
        for field in method.options.schema():
            options.setdefault(field.name, (field, []))[1].append(name)
    return options


def _question(question: AnyQuestion) -> dict[str, Any]:
    words = question.words
    return {
        "name": question.name,
        "shows": words.shows,
        "description": f"{words.label}: {words.shows}",
        "epilog": f"Does not show {words.hides} Source: {words.source}",
        "takes_image": question.takes_image,
        "takes_target": question.takes_target,
        "query": query_sentence(question) if question.takes_query else "",
        "options": _fields(question.options.schema()),
    }


def _fields(fields: Iterable[OptionField]) -> list[dict[str, Any]]:
    return [_field(field) for field in fields]


def _field(field: OptionField) -> dict[str, Any]:
    return {
        "name": field.name,
        "kind": _KIND_NAMES[field.kind],
        "default": field.default,
        "choices": list(field.choices),
        "option": asdict(field.option),
    }


if __name__ == "__main__":
    FILE.write_text(text(), "utf-8")
