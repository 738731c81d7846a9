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
