"""Exceptions as sentences, and numbers of things in words."""

import logging

import pytest

from vit_viz.errors import ImageError, ParameterError
from vit_viz.sentences import GENERIC, counted, formatted, sentence


@pytest.mark.parametrize(
    ("count", "thing", "words"),
    [
        (0, "head", "0 heads"),
        (1, "head", "1 head"),
        (15, "head", "15 heads"),
        (1, "patch", "1 patch"),
        (2, "patch", "2 patches"),
    ],
)
def test_one_thing_is_not_several(count: int, thing: str, words: str) -> None:
    assert counted(count, thing) == words


def test_our_own_errors_speak_for_themselves() -> None:
    assert sentence(ImageError("This file is no picture.")) == "This file is no picture."


def test_other_exceptions_become_the_generic_sentence_and_are_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.ERROR):
        said = sentence(KeyError("/secret/path"))
    assert said == GENERIC
    assert "secret" in caplog.text  # with its traceback, for the one who runs the server


def test_running_out_of_memory_says_what_helps() -> None:
    assert "memory" in sentence(MemoryError())


@pytest.mark.parametrize("text", ["", "two\nlines\tand a tab", "x" * 5000, "bell \a and null \0"])
def test_a_sentence_is_one_readable_line(text: str) -> None:
    said = sentence(ParameterError(text))
    assert said.isprintable()
    assert 0 < len(said) <= 400


@pytest.mark.parametrize(
    ("value", "form", "text"),
    [
        (-0.0004, ".1%", "0.0%"),
        (-0.0, "g", "0"),
        (-0.0, ".3g", "0"),
        (0.004, "+.2f", "0.00"),
        (-0.004, "+.2f", "0.00"),
        (-0.0, "+.3e", "0.000e+00"),
        (-0.006, ".2f", "-0.01"),
        (0.006, "+.2f", "+0.01"),
        (-1e-9, ".3g", "-1e-09"),
        (-1234.4, ",.0f", "-1,234"),
        (float("-inf"), ".2f", "-inf"),
        (float("nan"), "+.1f", "+nan"),
    ],
)
def test_a_zero_has_no_sign_however_it_came_about(value: float, form: str, text: str) -> None:
    assert formatted(value, form) == text
