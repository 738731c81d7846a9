"""What is wrong with a link is said in words: no names of Python, whichever option it is."""

from __future__ import annotations

import re

import pytest

from vit_viz.analyses.registry import QUESTIONS
from vit_viz.views.state import ViewState, link_options

PYTHON = re.compile(r"\b[a-z]+_[a-z_]+\b|\bNone\b|<class|\b[a-z]\w*=")


FREE = {"compared_with", "second", "where"}
"""Texts that may be anything."""


@pytest.mark.parametrize("name", sorted(link_options().keys() - FREE))
def test_a_bad_value_is_refused_in_words(name: str) -> None:
    _, problems = ViewState.from_address(f"{name}=%3F%3F")
    assert problems
    assert not [problem for problem in problems if PYTHON.search(problem)]


def test_a_choice_may_be_written_as_the_sentence_writes_it() -> None:
    (problem,) = ViewState.from_address("measure=foo")[1]
    assert "prefix mass" in problem
    assert ViewState.from_address("measure=prefix%20mass")[0].heads.measure == "prefix_mass"


@pytest.mark.parametrize(
    ("search", "said"),
    [
        (
            "ask=zzqq",
            "There is nothing called 'zzqq'; “Find a question” (Ctrl+K) finds all that can be asked.",
        ),
        ("ask=hed_names", "There is nothing called 'hed_names'; did you mean “Names of heads”?"),
        (
            "ask=rollout&ask.colour=1",
            "“Attention rollout” has no option 'colour'; there are: attention share, discard ratio,",
        ),
        ("ask=sequence&ask.colour=1", "“Sequence” has no option 'colour'; it has none."),
        (
            "ask=token_norms&ask.factor=low",
            "The option “factor” of “Norms” is a number from 1.5 to 100, not 'low'.",
        ),
        (
            "share=low",
            "The option “attention share” of “Attention rollout” is a number from 0 to 1, not 'low'.",
        ),
    ],
)
def test_a_link_is_told_of_questions_by_their_titles(search: str, said: str) -> None:
    (problem,) = ViewState.from_address(search)[1]
    assert problem.startswith(said)


@pytest.mark.parametrize("name", sorted(QUESTIONS))
def test_a_bad_option_of_any_question_is_refused_in_words(name: str) -> None:
    for option in QUESTIONS[name].options.schema():
        problems = ViewState.from_address(f"ask={name}&ask.{option.name}=%3F%3F")[1]
        assert problems
        assert not [problem for problem in problems if PYTHON.search(problem)]
