"""Back pressed twice: the page may hear of the second before the first, and shows the address of the second."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import gradio as gr
import pytest

from tests.ui.desk import Desk, arrived
from vit_viz.ui.header import models


@pytest.fixture
def desk(demo: gr.Blocks, image: str) -> Desk:
    return arrived(demo, image, "patches")


def back(desk: Desk, tab: str, number: int) -> None:
    image = desk.view().image
    search = f"?model=odd&image={image}&mode=crop&tab={tab}"
    desk.act("", "arrive", data={"search": search, "arrival": number})


def answered(desk: Desk) -> list[int]:
    """The arrivals that the address bar heard of."""
    return [
        what["value"]["arrival"] for name, what in desk.told if "arrival" in str(what) and name == "Address"
    ]


@pytest.mark.parametrize("order", [[2, 3], [3, 2], [2, 3, 1], [3, 1, 2]])
def test_the_last_arrival_stands_in_whichever_order_they_come(desk: Desk, order: list[int]) -> None:
    tabs = {1: "heads", 2: "tokens", 3: "look"}
    for number in order:
        back(desk, tabs[number], number)
    assert desk.view().tab == "look"
    assert desk.shown["vv-tabs"]["value"].selected == "look"
    assert answered(desk)[-1] == 3
    desk.act("", "follow", data={"set": {"tab": "positions"}, "told": 1})
    back(desk, "heads", 4)
    assert desk.view().tab == "heads"


@pytest.mark.parametrize("acts", [False, True])
def test_an_older_arrival_ends_no_wait_and_is_no_act_of_the_visitor(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, acts: bool
) -> None:
    fetched, held = models.fetched, []

    async def slow(*arguments: Any) -> AsyncIterator[dict[str, Any]]:
        if not held:  # number 3 waits for its model when number 2 comes
            held.append(True)
            await asyncio.to_thread(back, desk, "tokens", 2)
            if acts:
                await asyncio.to_thread(desk.act, "", "follow", data={"set": {"tab": "heads"}, "told": 1})
        async for value in fetched(*arguments):
            yield value

    monkeypatch.setattr(models, "fetched", slow)
    back(desk, "look", 3)
    assert desk.view().tab == ("heads" if acts else "look")
