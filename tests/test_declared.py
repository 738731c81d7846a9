"""What files repeat of the declarations is what these say now."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

import pytest

import vit_viz
from tests.declared import FILES
from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.registry import QUESTIONS


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_file_repeats_what_is_declared_now(path: Path) -> None:
    there = path.read_text("utf-8")
    assert there == FILES[path](there), "python -m tests.declared writes it again"


def test_a_formula_is_no_column_of_its_own_in_a_table() -> None:
    assert [name for name, method in METHODS.items() if "|" in method.words.formula] == []


def test_the_function_of_a_question_is_public() -> None:
    """A method is asked for by its name; these three are made of maps, or are first guesses of others."""
    own = {
        name
        for name, question in QUESTIONS.items()
        if inspect.isfunction(getattr(sys.modules[question.run.__module__], name, None))
        and name not in METHODS
    }
    assert len(own) > 15
    assert own - set(vit_viz.__all__) == {"head_importance", "on_object", "class_difference"}


def test_an_option_has_the_default_of_its_parameter() -> None:
    """Of the functions that stand beside a question; None is how Python leaves a choice to the function."""
    compared, other = 0, set()
    for name, question in QUESTIONS.items():
        beside = sys.modules[question.run.__module__]
        functions = [
            one
            for one in vars(beside).values()
            if inspect.isfunction(one) and one.__module__ == beside.__name__
        ]
        for parameters in (
            inspect.signature(one).parameters for one in functions if not one.__name__.startswith("_")
        ):
            for option in question.options.schema():
                default = parameters[option.name].default if option.name in parameters else None
                if default not in (None, inspect.Parameter.empty):
                    compared += 1
                    other |= {(name, option.name)} if default != option.default else set()
    assert compared > 40
    assert other == {("comparison", "methods")}  # the words for all quick ones, not their names
