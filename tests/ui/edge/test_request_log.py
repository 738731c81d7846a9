"""Log lines carry the number of the request that they are about."""

from __future__ import annotations

import asyncio
import io
import logging
import re

import pytest
from starlette.concurrency import run_in_threadpool

from tests.ui.loops import played
from vit_viz.ui.edge.request_log import REQUEST, log_with_request_numbers

logger = logging.getLogger("vit_viz.test_request_log")


def test_warnings_of_the_app_carry_the_number_of_their_request_also_in_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One handler is added to those that there are, and what other libraries say is not ours."""
    root, other, written = logging.getLogger("vit_viz"), logging.NullHandler(), io.StringIO()
    monkeypatch.setattr(root, "handlers", [other])
    monkeypatch.setattr("sys.stderr", written)
    for _ in range(3):
        log_with_request_numbers()
    assert (root.handlers[0], len(root.handlers)) == (other, 2)

    async def handle(number: int) -> None:
        REQUEST.set(number)
        await asyncio.sleep(0)
        await run_in_threadpool(logger.warning, "of %s", number)

    async def all_at_once() -> None:
        await asyncio.gather(*(handle(number) for number in (1007, 1011)))
        assert REQUEST.get() == 0

    played(all_at_once())
    logger.error("swept")
    monkeypatch.setattr(logger, "level", logging.INFO)
    logger.info("refused a request")
    logging.getLogger("PIL.test_request_log").warning("of a library")
    lines = sorted(line.partition(" ")[2].partition(" ")[2] for line in written.getvalue().splitlines())
    assert lines == [
        "ERROR vit_viz.test_request_log: swept",
        *(f"WARNING [request {n}] vit_viz.test_request_log: of {n}" for n in (1007, 1011)),
    ]
    assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d", written.getvalue())
