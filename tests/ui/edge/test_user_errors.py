"""Exceptions end in one escaped sentence."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable
from typing import Any

import gradio as gr
import pytest
from gradio.state_holder import SessionState
from starlette.requests import Request as HttpRequest

from tests.ui.loops import played
from vit_viz.errors import BusyError, ImageError, ParameterError
from vit_viz.session.handles import OWNER, PAGE, VISITOR, new_visitor
from vit_viz.ui.edge.uploads import UploadFiles
from vit_viz.ui.edge.user_errors import (
    GENERIC,
    NO_FILES_HERE,
    NOT_OFFERED,
    NOT_READABLE,
    NUMBER,
    REQUEST,
    GuardedBlocks,
    escaped,
    sentence,
    toast,
)

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


class Door(gr.Textbox):
    """Admits nothing that says no."""

    def admit(self, value: object, _files: UploadFiles) -> None:
        if value == "no":
            raise toast("This is not admitted.")


def call(value: object, answer: Callable[[Any], Any] = str, **more: Any) -> Any:
    """What Blocks answer to an event with a value; the inputs are a `Door` and a plain component."""

    async def play() -> Any:
        with GuardedBlocks() as blocks:
            door, plain = Door(), gr.JSON()
            door.change(lambda one, _two: answer(one), [door, plain], door)
        values = value if isinstance(value, list) else [value, None]
        return await blocks.process_api(blocks.fns[0], values, state=None, **more)

    return played(play())["data"][0]


def test_guarded_blocks_answer_as_blocks_do() -> None:
    assert call("yes") == "yes"


def test_a_component_judges_what_it_receives() -> None:
    with pytest.raises(gr.Error, match="not admitted"):
        call("no")


FILE = {"path": "http://127.0.0.1:9/x.png", "meta": {"_type": "gradio.FileData"}}


@pytest.mark.parametrize("value", [FILE, [FILE], {"deep": [{"er": FILE}]}, {"url": "x"}])
def test_a_file_is_refused_where_none_is_admitted(value: object) -> None:
    with pytest.raises(gr.Error) as caught:
        call(["yes", value])
    assert caught.value.message == NO_FILES_HERE


def test_what_cannot_be_read_is_refused_and_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), pytest.raises(gr.Error) as caught:
        call(["too few"])
    assert caught.value.message == NOT_READABLE
    assert not caught.value.print_exception
    assert caplog.text == ""


@pytest.mark.parametrize("data", ["x", 5, [], [["a", 1]]])
def test_what_an_event_says_is_a_dict_or_nothing(data: object) -> None:
    assert call("yes", event_data=gr.EventData(None, {"x": 1})) == "yes"
    assert call("yes", event_data=gr.EventData(None, None)) == "yes"
    with pytest.raises(gr.Error) as caught:
        call("yes", event_data=gr.EventData(None, data))
    assert caught.value.message == NOT_READABLE


def test_a_choice_that_is_not_offered_is_not_repeated() -> None:
    async def play() -> None:
        with GuardedBlocks() as blocks:
            radio = gr.Radio(["a", "b"])
            radio.change(lambda value: value, radio, radio)
        await blocks.process_api(blocks.fns[0], [HOSTILE], state=None)

    with pytest.raises(gr.Error) as caught:
        played(play())
    assert caught.value.message == NOT_OFFERED


def test_a_handler_that_fails_unguarded_ends_in_the_generic_sentence() -> None:
    with pytest.raises(gr.Error) as caught:
        call("yes", lambda _: 1 / 0)
    assert "went wrong" in caught.value.message
    assert not caught.value.print_exception


def test_a_handler_that_fails_raises_the_sentence_as_a_toast() -> None:
    def fail(_: object) -> None:
        raise BusyError(HOSTILE)

    with pytest.raises(gr.Error) as caught:
        call("yes", fail)
    assert caught.value.message == escaped(BusyError(HOSTILE))
    assert "<img" not in caught.value.message


def test_a_generator_that_fails_raises_the_sentence_after_what_it_yielded() -> None:
    def steps():  # type: ignore[no-untyped-def]
        yield "1"
        raise ValueError("inner detail")

    async def play() -> None:
        with GuardedBlocks() as blocks:
            box = gr.Textbox()
            box.change(steps, [], box)
        answer = await blocks.process_api(blocks.fns[0], [], state=None)
        assert answer["data"] == ["1"]
        with pytest.raises(gr.Error) as caught:
            await blocks.process_api(blocks.fns[0], [], state=None, iterator=answer["iterator"])
        assert caught.value.message == escaped(RuntimeError())

    played(play())


def test_a_message_of_gradio_itself_is_escaped() -> None:
    def fail(_: object) -> None:
        raise gr.Error(HOSTILE)

    with pytest.raises(gr.Error) as caught:
        call("yes", fail)
    assert "<img" not in caught.value.message
    assert not caught.value.print_exception


def test_a_handler_knows_the_browser_that_asks() -> None:
    ada = new_visitor()
    scope = {"type": "http", "headers": [(b"cookie", f"vit_viz={ada}".encode())], NUMBER: 71}
    request = gr.Request(HttpRequest(scope))
    assert call("x", lambda _: VISITOR.get(), request=request) == ada
    assert call("x", lambda _: OWNER.get(), request=request) == ada
    assert call("x", lambda _: str(REQUEST.get()), request=request) == "71"
    assert call("x", lambda _: VISITOR.get()) == ""
    assert VISITOR.get() == ""


def test_a_handler_knows_the_page_that_asks() -> None:
    request = gr.Request(HttpRequest({"type": "http", "headers": []}), session_hash="a page")
    assert call("x", lambda _: PAGE.get(), request=request) == "a page"
    assert call("x", lambda _: VISITOR.get(), request=request) == ""
    assert call("x", lambda _: OWNER.get(), request=request) == "page a page"  # which keeps no cookies
    alone = gr.Request(session_hash="another page")
    assert call("x", lambda _: PAGE.get(), request=alone) == "another page"
    assert call("x", lambda _: str(REQUEST.get()), request=alone) == "0"
    assert call("x", lambda _: f"<{PAGE.get()}>") == "<>"
    assert PAGE.get() == ""


@pytest.mark.parametrize("is_input", [True, False])
def test_a_session_keeps_no_component_that_an_update_replaced(is_input: bool) -> None:
    async def play() -> list[int]:
        with GuardedBlocks() as blocks:
            box, shown = gr.Textbox(), gr.Textbox()
            answers = itertools.cycle([gr.update(value=None, visible=True), "a value"])
            box.change(lambda _: next(answers), box, box if is_input else shown)
        state = SessionState(blocks)
        counts = []
        for _ in range(6):
            await blocks.process_api(blocks.fns[0], ["x"], state=state)
            counts.append(len(state.blocks_config.blocks) + len(state.config_values))
        return counts

    assert len(set(played(play()))) == 1


def test_an_answer_after_the_first_changes_nothing_in_the_one_before() -> None:
    """The page changes that one in place, perhaps before it has shown it; see tests/ui/visit/test_answers.py."""
    answers = ({"chosen": "lion"}, gr.skip(), {"chosen": "tower"})

    async def play() -> list[list[Any]]:
        with GuardedBlocks() as blocks:
            gr.Button().click(lambda: None, None, [gr.JSON()])
        said = [blocks.handle_streaming_diffs(blocks.fns[0], [one], "page", "run", False) for one in answers]
        return [*said, blocks.handle_streaming_diffs(blocks.fns[0], [None], "page", "run", True)]

    later = [[[["replace", [], one]]] for one in answers[1:]]
    assert played(play()) == [[answers[0]], *later, [answers[2]]]
