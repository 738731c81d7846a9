"""Exceptions end in one escaped sentence."""

from __future__ import annotations

import logging

import gradio as gr
import pytest

from vit_viz.errors import BusyError, ImageError, ParameterError
from vit_viz.ui.boundary import GENERIC, escaped, guarded, sentence

HOSTILE = "<img src=x onerror=alert(1)> ${window.x} `tick`"


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


def test_user_text_is_escaped() -> None:
    assert "<" not in escaped(ImageError(HOSTILE))
    assert "&lt;img" in escaped(ImageError(HOSTILE))


@pytest.mark.parametrize("text", ["", "two\nlines\tand a tab", "x" * 5000, "bell \a and null \0"])
def test_a_sentence_is_one_readable_line(text: str) -> None:
    said = sentence(ParameterError(text))
    assert said.isprintable()
    assert 0 < len(said) <= 400


def test_a_guarded_handler_raises_the_sentence_as_a_toast() -> None:
    @guarded
    def handler() -> None:
        raise BusyError(HOSTILE)

    with pytest.raises(gr.Error) as caught:
        handler()
    assert "<img" not in str(caught.value.message)


def test_a_guarded_generator_raises_the_sentence_after_what_it_yielded() -> None:
    @guarded
    def steps():  # type: ignore[no-untyped-def]
        yield 1
        raise ValueError("inner detail")

    iterator = steps()
    assert next(iterator) == 1
    with pytest.raises(gr.Error) as caught:
        next(iterator)
    assert caught.value.message == gr.Error(escaped(RuntimeError())).message


def test_a_guarded_handler_returns_what_it_returns() -> None:
    assert guarded(lambda x: x + 1)(2) == 3
