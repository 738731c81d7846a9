"""Log lines carry the number of the request that they are about."""

from __future__ import annotations

import asyncio
import io
import logging
import re
from collections.abc import Iterator

import pytest
from starlette.concurrency import run_in_threadpool

from tests.ui.loops import played
from vit_viz.ui.edge import request_log
from vit_viz.ui.edge.request_log import REQUEST, log_with_request_numbers, next_number

logger = logging.getLogger("vit_viz.test_request_log")


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What the app's own handler writes; the handlers of the test run are as before afterwards."""
    root, written = logging.getLogger("vit_viz"), io.StringIO()
    monkeypatch.setattr(root, "handlers", [])
    monkeypatch.setattr("sys.stderr", written)
    log_with_request_numbers()
    return written


@pytest.fixture
def number() -> Iterator[int]:
    """A request that is being handled."""
    number = next_number()
    before = REQUEST.set(number)
    yield number
    REQUEST.reset(before)


def test_numbers_count_up() -> None:
    numbers = [next_number() for _ in range(5)]
    assert numbers == list(range(numbers[0], numbers[0] + 5))
    assert numbers[0] > 0


def test_a_line_carries_the_number_of_its_request(log: io.StringIO, number: int) -> None:
    logger.warning("the disk is %s", "full")
    assert re.fullmatch(
        rf"\S+ \S+ WARNING \[request {number}\] vit_viz\.test_request_log: the disk is full\n", log.getvalue()
    )


def test_a_line_outside_of_any_request_carries_none(log: io.StringIO) -> None:
    logger.error("swept")
    assert re.fullmatch(r"\S+ \S+ ERROR vit_viz\.test_request_log: swept\n", log.getvalue())


def test_requests_at_once_and_their_threads_keep_their_numbers(log: io.StringIO) -> None:
    async def handle(number: int) -> None:
        REQUEST.set(number)
        await asyncio.sleep(0)
        await run_in_threadpool(logger.warning, "of %s", number)

    async def all_at_once() -> None:
        await asyncio.gather(*(handle(number) for number in (1007, 1011, 1013)))
        assert REQUEST.get() == 0

    played(all_at_once())
    assert sorted(re.findall(r"\[request (\d+)\].* of (\d+)", log.getvalue())) == [
        ("1007", "1007"),
        ("1011", "1011"),
        ("1013", "1013"),
    ]


@pytest.mark.usefixtures("number")
def test_what_is_no_warning_is_not_written(log: io.StringIO) -> None:
    logger.setLevel(logging.INFO)
    try:
        logger.info("refused a request")
    finally:
        logger.setLevel(logging.NOTSET)
    assert log.getvalue() == ""


def test_lines_of_other_libraries_are_not_ours(log: io.StringIO) -> None:
    logging.getLogger("PIL.test_request_log").warning("of a library")
    assert log.getvalue() == ""


def test_the_handler_is_installed_once(log: io.StringIO) -> None:
    for _ in range(3):
        log_with_request_numbers()
    logger.warning("once")
    assert log.getvalue().count("once") == 1
    assert len(logging.getLogger("vit_viz").handlers) == 1


def test_a_handler_of_somebody_else_is_left_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    root, other = logging.getLogger("vit_viz"), logging.NullHandler()
    monkeypatch.setattr(root, "handlers", [other])
    log_with_request_numbers()
    assert root.handlers[0] is other
    assert len(root.handlers) == 2
    assert isinstance(root.handlers[1].formatter, request_log._Numbered)
