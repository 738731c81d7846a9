"""The whole page on a desk: every tab opened, every control used, on a model and a picture of which no two sizes are equal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import gradio as gr
import pytest
from PIL import Image

from tests.ui.desk import HEIGHT, OWNER, WIDTH, Desk, arrived, call_of, cards_of, layout, stage_of
from vit_viz.analyses.methods import METHODS
from vit_viz.figures.lettering import number
from vit_viz.results import PatchMap
from vit_viz.session.request import Request, Subject
from vit_viz.session.session import Session
from vit_viz.ui.app import QUEUE_SECONDS
from vit_viz.ui.edge.user_errors import sentence
from vit_viz.ui.explain.answers import cost_words, slow_map

LEFT = (WIDTH - HEIGHT * 48 / 32) / 2  # of the crop, in pixels of the photo
PATCH = (HEIGHT / 4, HEIGHT * 1.5 / 6)


@pytest.fixture
def visit(demo: gr.Blocks, image: str) -> Callable[..., Desk]:
    def arrive(tab: str, more: str = "&layer=1&head=3&q=2,5", mode: str = "crop") -> Desk:
        return arrived(demo, image, tab, more, mode=mode)

    return arrive


def the_map(session: Session, image: str, method: str, **more: Any) -> PatchMap:
    found = session.run(Request.of("odd", image, method, mode="crop", owner=OWNER, **more))
    assert isinstance(found, PatchMap)
    return found


def first_class(session: Session, image: str) -> int:
    ranking = session.top_classes_of(Subject("odd", image, mode="crop", owner=OWNER))
    assert ranking is not None
    return int(ranking.indices[0])


# --- the layout


def test_an_app_that_does_nothing_seldom_looks_at_its_queue(demo: gr.Blocks) -> None:
    assert demo._queue.sleep_when_free == QUEUE_SECONDS
    assert demo._queue.progress_update_sleep_when_free == 5 * QUEUE_SECONDS


def test_the_layout_is_the_one_that_was_reviewed(demo: gr.Blocks) -> None:
    """`python -m tests.ui.desk` writes it again; a change of it is to be looked at."""
    assert layout(demo) == (Path(__file__).with_name("layout.txt")).read_text("utf-8")


# --- arriving


# --- look


def test_a_picture_that_is_gone_is_one_sentence(demo: gr.Blocks, session: Session) -> None:
    image = session.add_upload(Image.new("RGB", (31, 17)), owner=OWNER)
    desk = Desk(demo, page="going")
    desk.arrive(f"?model=odd&image={image}&tab=look")
    session.uploads._drop(image)
    desk.act("", "follow", data={"set": {"tab": "explain"}, "told": 1})
    assert "no longer here" in desk.shown["vv-sanity"]["value"]["words"]


# --- explain


def test_every_quick_method_has_a_map_for_the_first_class(
    visit: Callable[..., Desk], session: Session, image: str
) -> None:
    desk = visit("explain")
    logits = session.trace("odd", image, mode="crop", owner=OWNER).logits
    assert logits is not None
    best = int(logits.argmax())
    cards = cards_of(session, desk)
    assert list(cards) == [method.name for method in METHODS.cards]
    for method in METHODS.cards:
        card = cards[method.name]
        assert ("map" in card) == (method.name in METHODS.quick)
        assert card["slow"] == (method.name in METHODS.slow)
        assert card["ratio"] == pytest.approx(WIDTH / HEIGHT)
        assert card["label"] == method.words.label
        assert card["blind"] == method.words.class_blind
        assert card["options"] == "()"
        source = urlsplit(card["src"])
        assert parse_qs(source.query)["kind"] == ["card"]
        assert parse_qs(source.query)["bare"] == ["1"]
        assert (card["shows"], card["hides"]) == (method.words.shows, method.words.hides)
        assert parse_qs(source.query).get("method", ["relevance"]) == [method.name]
        if method.name in METHODS.quick:
            assert f"for animal {best}" in card["map"]["caption"] or method.words.class_blind
            assert card["words"] == ""
        else:
            subject = Subject("odd", image, "crop", OWNER)
            seconds = session.pass_seconds(subject)
            assert seconds is not None
            rows, cols = session.trace_of(subject).layout.grid
            assert card["words"] == cost_words(method, rows * cols, seconds)
            assert (card["words"] == method.words.runs) == (method.passes is None)
    found = the_map(session, image, "relevance", target=best)
    ends = f"from {number(float(found.values.min()))} to {number(float(found.values.max()))}"
    assert cards["relevance"]["map"]["caption"].endswith(f"Scale: {found.unit} {ends}.")


def test_a_slow_method_gives_way_until_it_was_made(
    visit: Callable[..., Desk], session: Session, image: str
) -> None:
    desk = visit("explain")
    desk.follow(method="occlusion")
    assert "Relevance is shown instead" in stage_of(session, desk)["note"]
    assert stage_of(session, desk)["method"] == "Relevance"
    assert stage_of(session, desk)["shows"] == "relevance"
    slow_map(call_of(session, desk.view(), method="occlusion")[0])
    assert stage_of(session, desk)["method"] == "Occlusion"  # the same view, but now it is there
    assert stage_of(session, desk)["shows"] == "occlusion"
    assert "instead" not in stage_of(session, desk)["note"]
    assert "map" in cards_of(session, desk)["occlusion"]
    desk.follow(ruler="share")
    assert "map" in cards_of(session, desk)["occlusion"]
    assert "instead" not in stage_of(session, desk)["note"]
    quick = [
        card["map"]["caption"]
        .split(" to ")[-1]
        .split(". Its largest value")[0]
        .rstrip(".")  # a peak, which is clipped
        for card in cards_of(session, desk).values()
        if not card["slow"]
    ]
    assert len(set(quick)) == 1




# --- the query


def test_what_a_room_writes_into_the_link_is_in_the_view_and_said_to_be_heard(
    visit: Callable[..., Desk],
) -> None:
    desk = visit("patches", "&q=class&numbers=1")
    before = desk.view()
    desk.act("", "follow", data={"set": {"q": "1,4", "numbers": None}, "told": 3})
    view = desk.view()
    assert (view.query, view.patches.numbers, view.told) == ("1,4", False, 3)
    assert (view.revision, view.about) == (before.revision + 1, before.about)
    told = desk.shown["Address"]["value"]
    assert (told["heard"], told["push"], told["set"]) == (3, True, {"q": "1,4", "numbers": None})
    kept = desk.view()
    nowhere = {"set": {"tab": "nowhere"}, "told": 4}
    for forged in ({}, {"set": 3, "told": 4}, {"set": {}, "told": "x"}, {"set": {"q": 7}}, nowhere):
        desk.act("", "follow", data=forged)
        assert desk.view() == kept
    desk.act("", "follow", data={"set": {"q": "9;9", "layer": "many", "nothing": "1"}, "told": 5})
    assert (desk.view().query, desk.view().layer) == ("", None)  # what is not possible has its default


def test_what_was_done_before_back_was_pressed_is_not_done_after_it(visit: Callable[..., Desk]) -> None:
    desk = visit("look")
    desk.act("", "follow", data={"set": {"q": "1,4"}, "told": 2})
    desk.act("", "arrive", data={"search": "?tab=look&q=1,1", "arrival": 2, "told": 3})
    assert (desk.view().query, desk.view().told) == ("1,1", 3)
    assert desk.shown["Address"]["value"]["heard"] == 3
    desk.act("", "follow", data={"set": {"q": "1,5"}, "told": 3})  # it was on its way
    assert desk.view().query == "1,1"
    desk.act("", "follow", data={"set": {"q": "1,5"}, "told": 4})
    assert desk.view().query == "1,5"


# --- waking


def test_a_part_that_is_not_on_the_screen_sleeps(visit: Callable[..., Desk]) -> None:
    desk = visit("patches")
    assert not {"vv-sanity", "vv-heads"} & set(desk.shown)
    desk.act("", "follow", data={"set": {"tab": "explain"}, "told": 1})
    assert "vv-sanity" in desk.shown
    assert "vv-heads" not in desk.shown
    assert desk.view().tab == "explain"
    assert desk.shown["Address"]["value"]["set"] == {"tab": "explain"}
    told = len(desk.told)
    desk.act("", "follow", data={"set": {"tab": "explain"}, "told": 1})
    assert len(desk.told) == told  # nothing changed: nothing is written


def test_errors_are_said_in_one_sentence() -> None:
    assert sentence(ValueError("x")).endswith(".")
