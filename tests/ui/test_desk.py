"""The whole page on a desk: every tab opened, every control used, on a model and a picture of which no two sizes are equal."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import gradio as gr
import numpy as np
import pytest
from PIL import Image

from tests.ui.desk import HEIGHT, OWNER, WIDTH, Desk, arrived, cards_of, layout
from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.removal import WithoutPatches
from vit_viz.analyses.rollout import RolloutOptions
from vit_viz.analyses.trust import Trust
from vit_viz.errors import ParameterError
from vit_viz.figures.lettering import number
from vit_viz.figures.maps import drawn_words
from vit_viz.figures.styles import STRENGTHS
from vit_viz.results import PatchMap
from vit_viz.session.request import Request, Subject
from vit_viz.session.session import Session
from vit_viz.ui.app import QUEUE_SECONDS
from vit_viz.ui.edge.user_errors import sentence
from vit_viz.ui.explain.answers import cost_words

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
    said = desk.shown["vv-explain-picture"]["value"]
    assert "no longer here" in (said.get("error") or said["note"])


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


def test_a_method_is_put_on_the_stage_with_its_options(
    visit: Callable[..., Desk], session: Session, image: str
) -> None:
    desk = visit("explain", "&q=2,5")
    desk.follow(method="rollout")
    assert desk.view().method == "rollout"
    picture = desk.shown["vv-explain-picture"]["value"]
    save = parse_qs(urlsplit(picture["save"]).query)
    assert save["kind"] == ["explain"]
    assert "bare" not in save
    assert "the same for every class" in picture["caption"]
    assert picture["pick"] is True
    assert "attention share 0.5" in picture["caption"]
    assert "mean over heads" in picture["caption"]
    assert "patch (2, 5)" in picture["caption"]
    assert picture["area"] == [0.0, 0.0, float(HEIGHT), float(WIDTH)]
    assert picture["cells"]["grid"] == [4, 6]
    assert picture["rings"][0] == pytest.approx(
        [2 * PATCH[0], LEFT + 5 * PATCH[1], 3 * PATCH[0], LEFT + 6 * PATCH[1]], abs=0.2
    )
    assert picture["note"].startswith("Outside the photo: class ")
    assert "registers" in picture["note"]
    controls = {name: desk.shown[name] for name in ("attention share", "discard ratio")}
    assert [controls[name]["visible"] for name in controls] == [True, True]
    desk.act("attention share", "input", 0.25)
    desk.act("discard ratio", "input", 0.5)
    assert desk.view().options == (("rollout", RolloutOptions(attention_share=0.25, discard=0.5)),)
    assert "discard 0.5" in desk.shown["vv-explain-picture"]["value"]["caption"]
    assert cards_of(session, desk)["rollout"]["options"] != "()"
    assert cards_of(session, desk)["relevance"]["options"] == "()"
    desk.follow(method="relevance")
    assert desk.shown["attention share"]["visible"] is False
    closely = desk.shown["vv-explain-picture"]["value"]["caption"]
    assert "explains the output, not the pinned patch (2, 5)" in closely
    assert desk.shown["vv-explain-picture"]["value"]["pick"] is False
    assert "scale: own" in closely
    assert drawn_words("light", smooth=True) in closely
    desk.act("style", "input", "heat")
    assert (desk.view().drawing.style, desk.view().drawing.alpha) == ("heat", STRENGTHS["heat"])
    assert desk.shown["colours of heat"]["visible"] is True
    assert (
        "heat; smooth between patch centres; strength 55%"
        in desk.shown["vv-explain-picture"]["value"]["caption"]
    )
    stops = desk.shown["vv-explain-picture"]["value"]["bar"]["stops"]
    desk.act("style", "input", "tint")
    assert desk.shown["colours of heat"]["visible"] is False
    assert desk.shown["vv-explain-picture"]["value"]["bar"]["stops"] != stops


def test_a_slow_method_gives_way_until_it_was_made(
    visit: Callable[..., Desk], session: Session, image: str
) -> None:
    desk = visit("explain")
    desk.follow(method="occlusion")
    assert "Relevance is shown instead" in desk.shown["vv-explain-picture"]["value"]["note"]
    assert desk.shown["vv-explain-picture"]["value"]["method"] == "Relevance"
    desk.act("vv-gallery", "compute", data={"method": "occlusion"})
    done = desk.shown["vv-gallery"]["progress"]
    assert done["key"] == f"{desk.view().about}|{first_class(session, image)}"
    assert list(done["of"]) == ["occlusion"]
    assert "map" in done["of"]["occlusion"]
    began = next(value["progress"] for _name, value in desk.told if value.get("progress"))["of"]["occlusion"]
    assert (began["share"], began["words"]) == (0.0, "Starting …")
    desk.act("vv-gallery", "made")  # the same view, but now it is there
    assert desk.shown["vv-explain-picture"]["value"]["method"] == "Occlusion"
    assert "instead" not in desk.shown["vv-explain-picture"]["value"]["note"]
    assert "map" in cards_of(session, desk)["occlusion"]
    desk.follow(ruler="share")
    assert "map" in cards_of(session, desk)["occlusion"]
    assert "instead" not in desk.shown["vv-explain-picture"]["value"]["note"]
    quick = [
        card["map"]["caption"]
        .split(" to ")[-1]
        .split(". Its largest value")[0]
        .rstrip(".")  # a peak, which is clipped
        for card in cards_of(session, desk).values()
        if not card["slow"]
    ]
    assert len(set(quick)) == 1
    with pytest.raises(gr.Error, match="needs no waiting"):
        desk.act("vv-gallery", "compute", data={"method": "rollout"})


def test_a_test_of_maps_sorts_them_and_has_their_curves(
    visit: Callable[..., Desk], session: Session, image: str
) -> None:
    desk = visit("explain")
    desk.act("vv-gallery", "trust", data={"methods": ["relevance"], "known": ["attention"]})
    trust = desk.shown["vv-gallery"]["trust"]
    assert set(trust["cards"]) == {"relevance", "attention"}
    assert sorted(trust["order"]) == ["attention", "relevance"]
    assert trust["key"] == f"{desk.view().about}|{first_class(session, image)}"
    shares = [
        v["trust"]["share"] for n, v in desk.told if n == "vv-gallery" and "share" in v.get("trust", {})
    ]
    assert shares == sorted(shares)
    assert shares[0] == 0.0
    assert shares[-1] == pytest.approx(0.7 + 0.3 / 2)
    known = trust["cards"]
    assert "The same for every class." in known["attention"]["sentences"]
    assert any(said.startswith("Mirrored photo, mirrored map: ") for said in known["relevance"]["sentences"])
    assert any(said.startswith("Changes with the class: ") for said in known["relevance"]["sentences"])
    for method, one in known.items():
        place = one["place"]
        assert 0 <= place["low"] <= place["mean"] <= place["high"]
        assert f"{place['area']:.4g}" in one["title"]
        assert "The lower, the better." in one["title"]
        assert one["better"] == (" x faster than at random" in one["falls"])
        request = Request.of(
            "odd",
            image,
            "trust",
            mode="crop",
            owner=OWNER,
            method=method,
            target=first_class(session, image),
            options=(),
        )
        found = session.run(request)
        assert isinstance(found, Trust)
        for name, curve in (
            ("deletion", found.faithfulness.deletion),
            ("insertion", found.faithfulness.insertion),
        ):
            drawn = one["curves"][name]
            assert drawn["x"] == pytest.approx(curve.x.tolist(), rel=1e-4)
            assert drawn["y"] == pytest.approx(curve.y.tolist(), rel=1e-4)
            low, high = drawn["ends"]
            assert low <= min(*drawn["y"], *drawn["low"])
            assert high >= max(*drawn["y"], *drawn["high"]) * 0.9999
            assert drawn["labels"][0] == "0"
            assert len(drawn["texts"]) == len(drawn["x"]) == len(drawn["low"]) == len(drawn["high"])
    ranked = sorted(known, key=lambda n: known[n]["place"]["area"] / known[n]["place"]["mean"])
    assert trust["order"] == ranked


def test_a_map_that_cannot_be_tested_says_why_and_the_others_go_on(
    visit: Callable[..., Desk], session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk, run = visit("explain", "&target=2"), session.run

    def refusing(request: Request, **options: Any) -> Any:
        if request.question == "trust" and dict(request.parameters)["method"] == "relevance":
            raise ParameterError("Not this one.")
        return run(request, **options)

    monkeypatch.setattr(session, "run", refusing)
    desk.act("vv-gallery", "trust", data={"methods": ["relevance", "attention"]})
    cards = desk.shown["vv-gallery"]["trust"]["cards"]
    assert cards["relevance"] == {"error": "Not this one.", "options": "()"}
    assert "falls" in cards["attention"]
    assert desk.shown["vv-gallery"]["trust"]["order"] == ["attention"]


def test_patches_are_taken_away_on_the_stage(
    visit: Callable[..., Desk], session: Session, image: str
) -> None:
    desk = visit("explain")
    value = desk.shown["vv-explain-picture"]["value"]
    assert value["grid"] == [4, 6]
    assert value["photo_size"] == [HEIGHT, WIDTH]
    assert value["region"] == pytest.approx([0, LEFT, HEIGHT, HEIGHT * 1.5], abs=0.2)
    best = first_class(session, image)
    assert (value["key"], value["target"]) == (desk.view().about, str(best))
    assert value["method"] == "Relevance"
    found = the_map(session, image, "relevance", target=best)
    assert [int(part) for part in value["order"].split(",")] == np.argsort(
        -found.values.ravel(), kind="stable"
    ).tolist()
    about = f"{value['key']}|{best}"
    desk.act("vv-explain-picture", "remove", data={"gone": "0,7,23", "seq": 3, "key": about})
    answer = desk.shown["vv-explain-picture"]["answer"]
    assert (answer["seq"], answer["key"]) == (3, about)
    without = session.run(
        Request.of("odd", image, "without patches", mode="crop", owner=OWNER, gone=[(0, 0), (1, 1), (3, 5)])
    )
    assert isinstance(without, WithoutPatches)
    now = dict(zip(without.top.names, without.top.scores.tolist(), strict=True))
    assert answer["top"][0]["name"] == f"animal {best}"
    assert [line["target"] for line in answer["top"]] == [True, *[False] * (len(answer["top"]) - 1)]
    assert {line["name"]: line["now"] for line in answer["top"] if line["name"] in now} == pytest.approx(
        {line["name"]: now[line["name"]] for line in answer["top"] if line["name"] in now}
    )
    assert set(without.top.names[:2]) <= {line["name"] for line in answer["top"]}
    assert answer["words"].startswith(f"Without 12% of the photo, animal {best} ")
    desk.act("vv-explain-picture", "remove", data={"gone": "24", "seq": 4, "key": about})
    assert "0 to 23" in desk.shown["vv-explain-picture"]["answer"]["error"]
    desk.act("vv-explain-picture", "remove", data={"gone": "", "seq": 5, "key": about})
    assert desk.shown["vv-explain-picture"]["answer"]["top"] == value["whole"]["top"]


def test_the_answers_are_about_the_target_whatever_it_scores(
    visit: Callable[..., Desk], session: Session, image: str
) -> None:
    desk = visit("explain")
    ranking = session.top_classes_of(Subject("odd", image, mode="crop", owner=OWNER), count=7)
    assert ranking is not None
    last, before_last = ranking.indices[6], ranking.indices[5]
    desk.follow(target=f"{last}-{before_last}")
    value = desk.shown["vv-explain-picture"]["value"]
    assert value["target"] == f"{last}-{before_last}"
    whole = value["whole"]["top"]
    expected = [last, before_last, *ranking.indices[:3]]
    assert [line["name"] for line in whole] == [f"animal {index}" for index in expected]
    assert [line["target"] for line in whole] == [True, True, False, False, False]
    assert [line["now"] for line in whole] == pytest.approx(
        [ranking.scores[list(ranking.indices).index(i)] for i in expected]
    )
    assert all("before" not in line and "→" not in line["text"] for line in whole)
    assert value["whole"]["words"].startswith(f"With all patches: animal {last} ")
    desk.act("vv-explain-picture", "remove", data={"gone": "1", "seq": 1, "key": "any"})
    answer = desk.shown["vv-explain-picture"]["answer"]
    assert [line["name"] for line in answer["top"][:2]] == [f"animal {last}", f"animal {before_last}"]
    assert [line["before"] for line in answer["top"][:5]] == pytest.approx([line["now"] for line in whole])
    assert all("→" in line["text"] for line in answer["top"])
    assert f"animal {last} " in answer["words"]


def test_the_sanity_check_follows_the_chosen_map(
    visit: Callable[..., Desk], session: Session, image: str
) -> None:
    desk = visit("explain")
    assert desk.shown["vv-sanity"]["value"]["words"] == "For Relevance."
    assert desk.shown["vv-sanity-curve"]["visible"] is False
    desk.act("vv-sanity", "start")
    assert desk.shown["vv-sanity-curve"]["visible"] is True
    assert desk.shown["vv-sanity"]["value"]["words"] == "For Relevance."
    said = desk.shown["vv-gallery"]["weights"]
    assert (said["key"], said["method"]) == (
        f"{desk.view().about}|{first_class(session, image)}",
        "relevance",
    )
    assert said["words"].startswith("With all weights re-initialised, ")
    figure = json.loads(desk.shown["vv-sanity-curve"]["value"].to_json())["layout"]
    assert figure["title"]["text"] == "Relevance, weights re-initialised"
    caption = figure["annotations"][0]["text"].replace("<br>", " ")
    assert re.match(r"odd · .+ · for animal \d · With all weights re-initialised, ", caption)
    assert caption.endswith(" · vit_viz")
    desk.follow(method="attention")
    assert desk.shown["vv-sanity"]["value"]["words"] == "For Last-layer attention."
    assert desk.shown["vv-sanity-curve"]["visible"] is False
    desk.follow(method="relevance")
    assert desk.shown["vv-sanity-curve"]["visible"] is True  # kept
    desk.follow(method="occlusion")
    desk.act("vv-sanity", "start")
    assert "would have to be recomputed" in desk.shown["vv-sanity"]["value"]["error"]


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


def middle(row: int, col: int) -> dict[str, float]:
    return {"y": (row + 0.5) * PATCH[0], "x": LEFT + (col + 0.5) * PATCH[1]}


def test_a_click_and_arrows_choose_the_query(visit: Callable[..., Desk]) -> None:
    desk, name = visit("explain"), "vv-explain-picture"
    desk.act(name, "pick", data=middle(1, 4))
    assert desk.view().query == "1,4"
    assert desk.shown["Address"]["value"]["push"] is True
    desk.act(name, "step", data={"down": 1, "across": 0})
    assert desk.view().query == "2,4"
    for _ in range(3):
        desk.act(name, "step", data={"down": 0, "across": 1})
    assert desk.view().query == "2,5"
    for _ in range(5):
        desk.act(name, "step", data={"down": 1, "across": -1})
    assert desk.view().query == "3,0"
    desk.act(name, "step", data={"down": -9, "across": 9})
    assert desk.view().query == "3,0"
    before = desk.view()
    desk.act(name, "pick", data={"y": 1.0, "x": LEFT - 1})
    assert desk.view() == before
    with pytest.raises(gr.Error, match="row and a column"):
        desk.act(name, "pick", data={"y": "a"})


def test_arrows_start_in_the_centre_where_no_patch_is_pinned(visit: Callable[..., Desk]) -> None:
    for query in ("class", "0,0;1,1", ""):
        desk = visit("explain", f"&q={query}" if query else "")
        desk.act("vv-explain-picture", "step", data={"down": 1, "across": 0})
        assert desk.view().query == "2,3"


# --- waking


def test_a_part_that_is_not_on_the_screen_sleeps(visit: Callable[..., Desk]) -> None:
    desk = visit("patches")
    assert not {"vv-explain-picture", "vv-heads"} & set(desk.shown)
    desk.act("", "follow", data={"set": {"tab": "explain"}, "told": 1})
    assert "vv-explain-picture" in desk.shown
    assert "vv-heads" not in desk.shown
    assert desk.view().tab == "explain"
    assert desk.shown["Address"]["value"]["set"] == {"tab": "explain"}
    told = len(desk.told)
    desk.act("", "follow", data={"set": {"tab": "explain"}, "told": 1})
    assert len(desk.told) == told  # nothing changed: nothing is written


@pytest.mark.parametrize(
    ("tab", "name", "act"),
    [
        ("explain", "vv-explain-picture", ("attention share", "input", 0.3)),
        ("explain", "vv-explain-picture", ("vv-explain-picture", "pick", None)),
    ],
)
def test_a_change_wakes_the_part_that_shows_it(
    visit: Callable[..., Desk], tab: str, name: str, act: tuple[str, str, Any]
) -> None:
    desk = visit(tab)
    before = len([one for one, _ in desk.told if one == name])
    data = {"data": [1, 1], "row": 0, "col": 0, **middle(0, 0)}
    desk.act(act[0], act[1], *([] if act[2] is None else [act[2]]), data=data)
    assert len([one for one, _ in desk.told if one == name]) > before


def test_errors_are_said_in_one_sentence() -> None:
    assert sentence(ValueError("x")).endswith(".")
