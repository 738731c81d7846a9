"""Gradio's real queue, behind pages that come and go: it lives, and each question is answered or taken out, once."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Awaitable, Callable, Iterator
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pytest
from gradio.data_classes import PredictBodyInternal
from gradio.queueing import Event
from gradio.routes import App
from gradio.server_messages import ProcessCompletedMessage, ProcessGeneratingMessage
from starlette.requests import Request

from tests.ui.loops import played
from vit_viz.ui.edge.http_guard import keep_queue_running
from vit_viz.ui.edge.question_queue import PageSession, QuestionQueue
from vit_viz.ui.edge.user_errors import GuardedBlocks

SECONDS = 30  # after which a test that would hang ends
QUICK, SLOW, STEPS = 0, 1, 2


class Asked:
    """An app with a quick handler, a slow one, and one that answers in steps; and its queue, running."""

    def __init__(self) -> None:
        self.released = threading.Event()
        self.begun: list[str] = []
        with GuardedBlocks(analytics_enabled=False) as self.blocks:
            box = gr.Textbox()
            box.change(lambda value: value, box, box, concurrency_limit=None)
            box.input(self.wait, box, box, concurrency_limit=1, concurrency_id="slow")
            box.submit(self.steps, box, box, concurrency_limit=1, concurrency_id="steps")
        self.blocks.queue()
        self.queue.sleep_when_free = 0.001
        self.queue.set_server_app(self.blocks.app)
        self.queue.start()
        self.blocks.create_limiter()

    @property
    def queue(self) -> QuestionQueue:
        return self.blocks.questions

    def wait(self, value: str) -> str:
        """A slow answer, which the test lets go."""
        self.begun.append(value)
        assert self.released.wait(SECONDS)
        return value

    def steps(self, value: str) -> Iterator[str]:
        """An answer in two steps, the second of which the test lets go."""
        self.begun.append(value)
        yield "half"
        assert self.released.wait(SECONDS)
        yield value

    async def ask(self, page: str, number: int = QUICK, value: str = "x") -> Event:
        """Join the queue as Gradio's route does."""
        body = PredictBodyInternal(session_hash=page, fn_index=number, data=[value])
        body.request = a_request()
        _success, event_id, _state = await self.queue.push(body, body.request, None)  # type: ignore[arg-type]
        return self.queue.event_ids_to_events.get(str(event_id)) or SimpleNamespace(_id=event_id)  # type: ignore[return-value]

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(SECONDS):
            while not condition():
                await asyncio.sleep(0.001)

    async def answer(self, page: str) -> Any:
        """The next completed answer that a page hears, and whether it is one."""
        async with asyncio.timeout(SECONDS):
            while True:
                message = await self.queue.pending_messages_per_session[page].get()
                if isinstance(message, ProcessCompletedMessage):
                    return (message.output.get("data"), message.success)

    async def is_answered(self, page: str = "honest") -> bool:
        await self.ask(page, QUICK, "hello")
        return bool(await self.answer(page) == (["hello"], True))


def a_request() -> Any:
    """The request with which a question came."""
    scope = {"type": "http", "method": "POST", "path": "/gradio_api/queue/join", "root_path": "", "scheme": "http",
             "query_string": b"", "server": ("127.0.0.1", 7860), "headers": [(b"host", b"127.0.0.1:7860")]}  # fmt: skip
    return Request(scope, asyncio.Event().wait)  # who sent it stays


def play(story: Callable[[Asked], Awaitable[None]]) -> None:
    """Let a story happen to a running queue, and end it."""

    async def run() -> None:
        asked = Asked()
        try:
            await story(asked)
        finally:
            asked.released.set()
            asked.queue.close()
            await asked.until(lambda: not asked.queue._asyncio_tasks)

    played(run())


def endpoint(routes: Any, ending: str) -> Any:
    """The function of Gradio's that answers at an address, in whichever router it lies."""
    for route in routes:
        if getattr(route, "path", "").endswith(ending):
            return route.endpoint
        router = getattr(route, "original_router", None) or getattr(route, "app", None)
        if found := endpoint(getattr(router, "routes", ()), ending):
            return found
    return None


# --- a page that is gone


@pytest.mark.parametrize("lost", ["messages", "ids", "both"])
def test_a_page_that_is_gone_while_its_question_waits_stops_nothing(lost: str) -> None:
    async def story(asked: Asked) -> None:
        for page in ("first", "gone", "last"):
            await asked.ask(page, SLOW, page)
        await asked.until(lambda: asked.begun)
        if lost != "ids":
            asked.queue.pending_messages_per_session.forget("gone")
        if lost != "messages":
            del asked.queue.pending_event_ids_session["gone"]
        asked.queue.broadcast_estimations("slow")
        assert await asked.is_answered()
        asked.released.set()
        assert await asked.answer("last") == (["last"], True)
        assert asked.begun == ["first", "gone", "last"]
        assert asked.queue.is_alive

    play(story)


def test_messages_to_a_page_that_is_gone_are_kept_nowhere() -> None:
    async def story(asked: Asked) -> None:
        event = await asked.ask("gone", SLOW)
        asked.queue.pending_messages_per_session.forget("gone")
        for _ in range(3):
            asked.queue.send_message(event, ProcessGeneratingMessage(output={}, success=True))
        assert "gone" not in asked.queue.pending_messages_per_session
        assert asked.queue.pending_messages_per_session["gone"].empty()
        asked.queue.pending_event_ids_session["nobody"].add("x")
        assert "nobody" not in asked.queue.pending_event_ids_session
        asked.queue.pending_messages_per_session.forget("gone")

    play(story)


def test_a_stream_that_is_cut_takes_nothing_of_what_its_page_asked_since() -> None:
    """A browser may ask again before the server knows that its last stream has ended; Gradio then answered the next with 404."""

    async def story(asked: Asked) -> None:
        App.create_app(asked.blocks, mcp_server=False)
        listen = endpoint(asked.blocks.app.routes, "/queue/data")

        async def heard() -> list[Any]:
            lines = [line async for line in (await listen(a_request(), "page")).body_iterator]
            return [json.loads(line.removeprefix("data: ")) for line in lines]

        await asked.ask("page", SLOW, "first")
        before = asyncio.create_task(heard())
        await asked.until(lambda: asked.begun)
        before.cancel()
        await asked.ask("page", QUICK, "second")
        await asyncio.wait([before])
        asked.released.set()
        after = [one["output"]["data"] for one in await heard() if one["msg"] == "process_completed"]
        assert sorted(after) == [["first"], ["second"]]

    play(story)


# --- a page that is forgotten


def test_a_page_takes_its_questions_along_when_it_is_forgotten() -> None:
    async def story(asked: Asked) -> None:
        for page in ("running", "waiting", "waiting", "other"):
            await asked.ask(page, SLOW, page)
        await asked.until(lambda: asked.begun)
        assert asked.queue.pages() == {"running", "waiting", "other"}
        asked.queue.forget("waiting")
        assert asked.queue.pages() == {"running", "other"}
        assert len(asked.queue) == 1
        asked.queue.forget("running")
        assert asked.queue.pages() == {"running", "other"}  # until the handler has ended
        asked.released.set()
        assert await asked.answer("other") == (["other"], True)
        assert asked.begun == ["running", "other"]
        await asked.until(lambda: not asked.queue.pages())
        assert set(asked.queue.pending_messages_per_session) == {"other"}
        assert set(asked.queue.pending_event_ids_session) == {"other"}

    play(story)


def test_a_page_that_was_forgotten_asks_again_under_its_name() -> None:
    async def story(asked: Asked) -> None:
        await asked.ask("again", SLOW, "before")
        await asked.until(lambda: asked.begun)
        asked.queue.forget("again")
        await asked.ask("again", SLOW, "after")
        asked.released.set()
        assert await asked.answer("again") == (["after"], True)  # and nothing of the one before

    play(story)


def test_the_place_of_a_page_without_questions_is_given_away_and_not_that_of_one_that_waits() -> None:
    async def story(asked: Asked) -> None:
        asked.blocks.open_pages.most_of_one = 2
        for page in ("slow", "idle"):
            asked.blocks.open_pages.admit(page, "eve", "eve")
        await asked.ask("slow", SLOW)
        await asked.until(lambda: asked.begun)
        await asked.ask("idle")
        await asked.answer("idle")
        await asked.until(lambda: asked.queue.pages() == {"slow"})
        asked.blocks.open_pages.admit("new", "eve", "eve")
        assert asked.blocks.open_pages.find("slow")
        assert not asked.blocks.open_pages.find("idle")
        assert "idle" not in asked.queue.pending_messages_per_session

    play(story)


# --- cancelling


def test_a_question_that_waits_is_cancelled_and_its_page_is_told() -> None:
    async def story(asked: Asked) -> None:
        await asked.ask("first", SLOW, "first")
        await asked.until(lambda: asked.begun)
        event = await asked.ask("eve", SLOW, "eve")
        asked.queue.cancel(event._id)
        asked.queue.cancel(event._id)
        assert await asked.answer("eve") == (None, True)
        assert asked.queue.pending_messages_per_session["eve"].empty()
        asked.released.set()
        await asked.until(lambda: not asked.queue.pages())
        assert asked.begun == ["first"]

    play(story)


@pytest.mark.parametrize("number", [SLOW, STEPS])
def test_a_question_that_is_being_answered_is_cancelled_and_gives_its_place_back(number: int) -> None:
    async def story(asked: Asked) -> None:
        event = await asked.ask("eve", number, "eve")
        await asked.until(lambda: asked.begun)
        asked.queue.cancel(event._id)
        assert await asked.answer("eve") == (None, True)
        asked.released.set()
        await asked.ask("next", number, "next")
        while (await asked.answer("next"))[0] is None:
            pass
        await asked.until(lambda: not asked.queue.pages())
        assert asked.queue.pending_messages_per_session["eve"].empty()
        assert asked.begun == ["eve", "next"]

    play(story)


def test_a_question_that_is_cancelled_while_it_is_being_started_gives_its_place_back() -> None:
    """Between the task that answers a question and its first step; Gradio's own way to cancel loses the place for good."""

    async def story(asked: Asked) -> None:
        original = asked.queue.process_events

        def started(events: list[Event], *args: Any) -> Any:
            if events[0].session_hash == "eve":
                asyncio.get_running_loop().call_soon(asked.queue.cancel, events[0]._id)
            return original(events, *args)

        asked.queue.process_events = started  # type: ignore[method-assign]
        asked.released.set()
        for _ in range(3):
            await asked.ask("eve", SLOW, "eve")
        await asked.ask("honest", SLOW, "honest")
        assert await asked.answer("honest") == (["honest"], True)

    play(story)


def test_cancelling_what_is_not_there_does_nothing() -> None:
    async def story(asked: Asked) -> None:
        for name in ("", "unknown"):
            asked.queue.cancel(name)
        assert await asked.is_answered()

    play(story)


# --- a queue that stops all the same


def fail_once(asked: Asked, name: str) -> None:
    """Let a part of the queue fail the next time that it is used."""
    original = getattr(asked.queue, name)

    def fail(*_args: Any, **_kwargs: Any) -> Any:
        setattr(asked.queue, name, original)
        raise KeyError("gone")

    setattr(asked.queue, name, fail)


@pytest.mark.parametrize("how", ["get_events", "process_events", "closed flag", "cancelled"])
def test_a_queue_that_stopped_is_started_again_and_it_is_logged(
    how: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(asked: Asked) -> None:
        tending = asyncio.create_task(keep_queue_running(asked.blocks))
        await asked.ask("slow", SLOW, "slow")
        await asked.until(lambda: asked.begun)
        assert asked.queue.is_alive
        if how == "closed flag":
            asked.queue.stopped = True
        elif how == "cancelled":
            asked.queue._loops["start_processing"].cancel()
        else:
            fail_once(asked, how)
        await asked.ask("next", SLOW, "next")
        await asked.ask("waits", QUICK, "waits")
        await asked.until(lambda: not asked.queue.is_alive)
        await asked.until(lambda: asked.queue.is_alive)
        assert await asked.is_answered()
        asked.released.set()
        assert await asked.answer("slow") == (["slow"], True)  # it went on meanwhile
        tending.cancel()

    with caplog.at_level(logging.ERROR):
        play(story)
    assert "the queue had stopped; it is started again" in caplog.text
    assert ("KeyError" in caplog.text) == (how in ("get_events", "process_events"))


def test_telling_of_progress_that_ended_is_started_again_and_what_runs_is_not() -> None:
    async def story(asked: Asked) -> None:
        processing, telling = asked.queue._loops.values()
        telling.cancel()
        await asked.until(lambda: asked.queue.has_failed)
        asked.queue.revive()
        assert asked.queue.is_alive
        assert [loop in (processing, telling) for loop in asked.queue._loops.values()] == [True, False]

    play(story)


def test_a_queue_that_tells_now_and_then_how_long_it_takes_is_started_whole() -> None:
    async def story(asked: Asked) -> None:
        asked.queue.live_updates = False
        asked.queue.revive()
        assert len(asked.queue._loops) == 3
        asked.queue._loops["notify_clients"].cancel()
        await asked.until(lambda: asked.queue.has_failed)

    play(story)


def test_what_is_being_answered_ends_with_the_app() -> None:
    async def story(asked: Asked) -> None:
        await asked.ask("slow", SLOW, "slow")
        await asked.until(lambda: asked.begun)
        asked.queue.close()
        await asked.until(lambda: asked.queue._loops["start_processing"].done())
        asked.released.set()
        await asked.until(lambda: not asked.queue.pages())
        assert asked.queue.pending_event_ids_session["slow"]
        box = asked.queue.pending_messages_per_session["slow"]
        assert not any(isinstance(box.get_nowait(), ProcessCompletedMessage) for _ in range(box.qsize()))

    play(story)


def test_a_queue_that_was_closed_stays_closed() -> None:
    async def story(asked: Asked) -> None:
        tending = asyncio.create_task(keep_queue_running(asked.blocks))
        asked.queue.close()
        await asked.until(lambda: all(loop.done() for loop in asked.queue._loops.values()))
        assert not asked.queue.is_alive
        assert not asked.queue.has_failed
        asked.queue.start()
        assert asked.queue.is_alive
        assert await asked.is_answered()
        tending.cancel()

    play(story)


def test_a_queue_that_has_not_begun_is_not_alive_and_has_not_failed() -> None:
    async def build() -> QuestionQueue:
        with GuardedBlocks(analytics_enabled=False) as blocks:
            gr.Textbox()
        return blocks.queue().questions

    queue = played(build())
    assert (queue.is_alive, queue.has_failed) == (False, False)


def test_the_queue_has_the_options_that_gradio_was_given() -> None:
    async def build() -> GuardedBlocks:
        with GuardedBlocks(analytics_enabled=False) as blocks:
            gr.Textbox()
        return blocks.queue(7, max_size=11, default_concurrency_limit=3)

    queue = played(build()).questions
    assert (queue.live_updates, queue.update_intervals, queue.max_size) == (False, 7, 11)
    assert queue.default_concurrency_limit == 3
    assert queue.max_thread_count == 40


def test_a_question_whose_answer_fails_in_gradio_is_logged_and_not_counted_for_ever(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    async def story(asked: Asked) -> None:
        async def fail(_event_id: str) -> None:
            raise KeyError("gone")

        asked.queue.reset_iterators = fail  # type: ignore[method-assign]
        await asked.ask("eve", QUICK)
        await asked.answer("eve")
        await asked.until(lambda: not asked.queue._asyncio_tasks)
        assert asked.queue.pages() == set()

    play(story)
    capsys.readouterr()
    assert [record.getMessage() for record in caplog.records if record.exc_info] == [
        "a question was not answered"
    ]


# --- what a question costs


def test_no_statistics_are_made_of_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    monkeypatch.setattr(QuestionQueue, "_get_df", staticmethod(lambda records: made.append(len(records))))

    async def story(asked: Asked) -> None:
        for page in ("one", "two", "three"):
            assert await asked.is_answered(page)
        assert len(asked.queue.event_analytics) == 1

    play(story)
    assert made == []


def test_a_new_page_costs_no_look_at_every_component(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    original = gr.Textbox.get_config

    def look(self: Any, *args: Any) -> Any:
        looked.append(self._id)
        return original(self, *args)

    async def story(asked: Asked) -> None:
        monkeypatch.setattr(gr.Textbox, "get_config", look)
        for _ in range(2):
            for page in ("one", "two"):
                assert await asked.is_answered(page)
        holder = asked.blocks.state_holder
        assert set(holder.session_data) == {"one", "two"}
        assert [session.config_values for session in holder.session_data.values()] == [{}, {}]

    play(story)
    assert looked == []


def test_a_page_keeps_its_state_and_no_other_page_s() -> None:
    async def count() -> list[Any]:
        with GuardedBlocks(analytics_enabled=False) as blocks:
            state, box = gr.State(0), gr.Textbox()
            box.change(lambda number: (number + 1, str(number + 1)), state, [state, box])
        blocks.queue()
        sessions = [PageSession(blocks) for _ in range(2)]
        return [
            (await blocks.process_api(blocks.fns[0], [None], state=sessions[which]))["data"][1]
            for which in (0, 0, 1, 0)
        ]

    assert played(count()) == ["1", "2", "1", "3"]
