"""What can be asked, as plain data: commands, help and completion are laid out of it, and torch is not imported for that.

The declarations of the questions stand beside the functions that answer them, so that importing them imports torch, which takes
seconds. `questions.json` is what they say; `python -m tests.declared` writes it, and a test compares it with them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from vit_viz.analyses.options import Option, OptionField

FILE = Path(__file__).with_name("questions.json")

KINDS: dict[str, type] = {"bool": bool, "float": float, "int": int, "str": str}
"""Of options."""


@dataclass(frozen=True)
class QuestionOutline:
    """What the command of one question is made of.

    Args:
        name: of the question and of its command.
        shows: its sentence in the list of commands.
        description: what it shows, under its label.
        epilog: what it does not show, and its source.
        takes_image: whether it is about photos.
        takes_target: whether it is about a class.
        query: what a query is; "" where it starts from none.
        has_shared_scale: whether its figure can have one scale for the maps of all methods.
        options: its own.
    """

    name: str
    shows: str
    description: str
    epilog: str
    takes_image: bool
    takes_target: bool
    query: str
    has_shared_scale: bool
    options: tuple[OptionField, ...]


@dataclass(frozen=True)
class Outline:
    """Everything that the commands are made of.

    Args:
        questions: in the order of the help text.
        method_options: options of methods with the names of those that take them.
        inputs: how a photo becomes the model's input.
        drawing: how a picture is drawn.
        output: of a picture in print.
        formats: of files.
        modes: of inputs.
        query, target: what they are, in words.
        default_model: where nothing names one.
        survey_batch: photos of a survey that are written together.
        survey_engines: what may run a survey.
    """

    questions: tuple[QuestionOutline, ...]
    method_options: tuple[tuple[OptionField, tuple[str, ...]], ...]
    inputs: tuple[OptionField, ...]
    drawing: tuple[OptionField, ...]
    output: tuple[OptionField, ...]
    formats: tuple[str, ...]
    modes: tuple[str, ...]
    query: str
    target: str
    default_model: str
    survey_batch: int
    survey_engines: tuple[str, ...]


@lru_cache(maxsize=1)
def outline() -> Outline:
    """The outline of this version."""
    facts: dict[str, Any] = json.loads(FILE.read_text("utf-8"))
    facts["questions"] = tuple(
        QuestionOutline(**one | {"options": tuple(map(_field, one["options"]))}) for one in facts["questions"]
    )
    facts["method_options"] = tuple((_field(one), tuple(names)) for one, names in facts["method_options"])
    for name in ("inputs", "drawing", "output"):
        facts[name] = tuple(map(_field, facts[name]))
    for name in ("formats", "modes", "survey_engines"):
        facts[name] = tuple(facts[name])
    return Outline(**facts)


def flag_of(option: str) -> str:
    """What an option is called on the command line."""
    return f"--{option.replace('_', '-')}"


def _field(facts: Mapping[str, Any]) -> OptionField:
    kind, choices, option = KINDS[facts["kind"]], tuple(facts["choices"]), Option(**facts["option"])
    return OptionField(facts["name"], kind, facts["default"], choices, option)
