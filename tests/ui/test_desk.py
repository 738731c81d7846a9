"""The whole page on a desk: every tab opened, every control used, on a model and a picture of which no two sizes are equal."""

from __future__ import annotations

import itertools
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

from tests.ui.desk import HEIGHT, OWNER, WIDTH, Desk, app_of, layout, odd_picture, odd_session
from vit_viz import samples
from vit_viz.analyses.positions import position_similarity
from vit_viz.errors import ParameterError
from vit_viz.handles import Subject
from vit_viz.render.lettering import number
from vit_viz.results import PatchMap
from vit_viz.session import Request, Session
from vit_viz.ui.boundary import sentence
from vit_viz.ui.methods import FAST_METHODS, METHODS
from vit_viz.ui.walkthrough import STEPS

LEFT = (WIDTH - HEIGHT * 48 / 32) / 2  # of the crop, in pixels of the photo
PAGES = itertools.count()
PATCH = (HEIGHT / 4, HEIGHT * 1.5 / 6)


@pytest.fixture(scope="module")
def session() -> Session:
    return odd_session()


@pytest.fixture(scope="module")
def demo(session: Session) -> gr.Blocks:
    return app_of(session)


@pytest.fixture(scope="module")
def image(session: Session) -> str:
    return session.add_upload(odd_picture(), owner=OWNER)


@pytest.fixture
def visit(demo: gr.Blocks, image: str) -> Callable[..., Desk]:
    def arrive(tab: str, more: str = "&layer=1&head=3&q=2,5", mode: str = "crop") -> Desk:
        desk = Desk(demo, page=f"page {next(PAGES)}")
        desk.arrive(f"?model=odd&image={image}&mode={mode}&tab={tab}{more}")
        return desk

    return arrive


def the_map(session: Session, image: str, method: str, **more: Any) -> PatchMap:
    found = session.run(Request.of("odd", image, "explain", mode="crop", owner=OWNER, method=method, **more))
    assert isinstance(found, PatchMap)
    return found


# --- the layout


def test_the_layout_is_the_one_that_was_reviewed(demo: gr.Blocks) -> None:
    """`python -m tests.ui.desk` writes it again; a change of it is to be looked at."""
    assert layout(demo) == (Path(__file__).with_name("layout.txt")).read_text("utf-8")


# --- arriving


def test_a_page_shows_what_its_address_says(visit: Callable[..., Desk], image: str) -> None:
    desk = visit("look")
    view = desk.view()
    assert (view.model, view.image, view.mode, view.tab, view.layer, view.head, view.query) == (
        "odd",
        image,
        "crop",
        "look",
        1,
        3,
        "2,5",
    )
    facts, top = desk.shown["vv-facts"]["value"], desk.shown["vv-top"]["value"]
    assert facts == top
    assert facts["turn"] == view.turn
    assert desk.shown["vv-mode"] == {"value": "crop"}
    assert desk.shown["vv-model"] == {"value": "odd"}
    assert desk.shown["vv-loading"]["value"] == {}
    samples_shown = desk.shown["vv-samples"]["value"]
    assert samples_shown["chosen"] == image
    assert [entry["name"] for entry in samples_shown["samples"]] == list(samples.sample_names())
    busy = next(value for name, value in desk.told if name == "vv-facts")["value"]
    assert busy == {"turn": view.turn, "busy": "Running odd on your image …"}


def test_a_link_to_a_picture_that_is_gone_says_so_and_waits_for_it(demo: gr.Blocks) -> None:
    desk = Desk(demo, page="gone")
    desk.arrive("?model=odd&image=unothing&layer=2&tab=look")
    assert any("is no longer kept" in note for note in desk.shown["vv-facts"]["value"]["notes"])
    assert desk.view().awaits_upload
    assert desk.view().image in samples.sample_names()
    assert desk.view().layer == 2


def test_what_is_not_possible_in_a_link_is_told(demo: gr.Blocks) -> None:
    desk = Desk(demo, page="wrong")
    desk.arrive("?model=odd&image=shapes&alpha=9&tab=look")
    assert desk.shown["vv-facts"]["value"]["notes"]
    assert desk.shown["vv-facts"]["value"]["top"]


def test_an_unknown_model_leaves_the_page_on_its_own_and_says_why(demo: gr.Blocks) -> None:
    desk = Desk(demo, page="unknown")
    desk.arrive("?model=../../etc&image=shapes&tab=look")
    assert desk.view().model == "odd"
    assert desk.shown["vv-facts"]["value"]["notes"]


def test_choosing_a_model_that_does_not_exist_changes_nothing(visit: Callable[..., Desk]) -> None:
    desk = visit("look")
    before = desk.view()
    desk.act("vv-model", "input", "../../etc")
    assert desk.view() == before
    assert desk.shown["vv-loading"]["value"]["error"].endswith(".")
    assert desk.shown["vv-model"]["value"] == "odd"


def test_choosing_a_model_keeps_the_picture_and_forgets_the_target(
    visit: Callable[..., Desk], session: Session, image: str
) -> None:
    desk = visit("look", "&target=3&layer=1")
    desk.act("vv-model", "input", "mini")
    view = desk.view()
    assert (view.model, view.image, view.mode, view.target) == ("mini", image, "crop", "")
    assert desk.shown["vv-loading"]["value"] == {"error": ""}
    assert "this image: 16 x 16 patches" in desk.shown["vv-facts"]["value"]["card"]


def test_a_sample_and_a_mode_are_chosen(visit: Callable[..., Desk]) -> None:
    desk = visit("look")
    desk.act("vv-samples", "choose", data={"name": "twins"})
    assert desk.view().image == "twins"
    assert desk.shown["Address"]["value"]["push"] is True
    assert desk.shown["Address"]["value"]["set"]["image"] == "twins"
    desk.act("vv-mode", "input", "stretch")
    assert desk.view().mode == "stretch"
    assert desk.shown["vv-explorer"]["value"]["mode"] == "stretch"
    before = desk.view()
    with pytest.raises(gr.Error, match="There is no sample"):
        desk.act("vv-samples", "choose", data={"name": "nothing"})
    assert desk.view() == before


def test_a_page_that_is_closed_ends_what_runs_for_its_visitor(
    demo: gr.Blocks, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    left: list[str] = []
    monkeypatch.setattr(session, "leave", left.append)
    owner = "fedcba9876543210" * 3
    pages = [Desk(demo, page=f"closing {i}", owner=owner) for i in range(2)]
    for desk in pages:
        desk.arrive("?model=odd&image=shapes")
    pages[0].leave()
    assert left == []
    pages[1].leave()
    pages[1].leave()
    assert left == [owner]


# --- look


def test_the_explorer_follows_what_is_pinned_and_tells_other_tabs(visit: Callable[..., Desk]) -> None:
    desk = visit("look")
    assert desk.told[-1][0] in ("vv-explorer", "vv-tabs", "Address")
    told = desk.shown["vv-explorer"]["value"]
    assert (told["pooling"], told["default_query"], told["source"], told["norms"]) == (
        "class",
        "class",
        ["qk"] * 3,
        True,
    )
    assert told["proof"] is None
    busy = next(value for name, value in desk.told if name == "vv-explorer")
    assert busy == {"busy": "Running odd …"}
    assert desk.shown["vv-explorer"]["busy"] == ""
    desk.act(
        "vv-explorer",
        "pin",
        data={"seq": 7, "layer": 2, "head": "max", "query": "1,1", "table": "gray", "evil": 1},
    )
    view = desk.view()
    assert (view.layer, view.head, view.query, view.table, view.heard) == (2, "max", "1,1", "gray", 7)
    desk.act("vv-explorer", "view", data={"seq": -1, "layer": "x", "alpha": 0.25, "query": "2,2"})
    view = desk.view()
    assert (view.layer, view.alpha, view.query, view.heard) == (2, 0.25, "2,2", 7)
    turn = view.turn
    desk.act("vv-explorer", "recompute", data={})
    assert desk.view().turn == turn + 1
    assert desk.shown["vv-explorer"]["value"]["seq"] == turn + 1


def test_a_picture_that_is_gone_is_one_sentence_in_every_tab(demo: gr.Blocks, session: Session) -> None:
    for tab, name in [
        ("look", "vv-explorer"),
        ("explain", "vv-gallery"),
        ("patches", "vv-grid-picture"),
        ("walkthrough", "vv-w-photo"),
    ]:
        image = session.add_upload(Image.new("RGB", (31, 17)), owner=OWNER)
        desk = Desk(demo, page=f"going {tab}")
        desk.arrive(f"?model=odd&image={image}&tab=look")
        session.uploads._drop(image)
        desk.act(f"vv-tab-{tab}", "select") if tab != "look" else desk.act(
            "vv-explorer", "recompute", data={}
        )
        said = desk.shown[name]["value"]
        assert "no longer here" in (said.get("error") or said["note"])


# --- explain


def gallery(desk: Desk) -> dict[str, Any]:
    return {card["name"]: card for card in desk.shown["vv-gallery"]["value"]["cards"]}


def test_every_quick_method_has_a_map_for_the_first_class(
    visit: Callable[..., Desk], session: Session, image: str
) -> None:
    desk = visit("explain")
    logits = session.trace("odd", image, mode="crop", owner=OWNER).logits
    assert logits is not None
    best = int(logits.argmax())
    cards = gallery(desk)
    assert list(cards) == [method.name for method in METHODS]
    value = desk.shown["vv-gallery"]["value"]
    assert value["key"] == f"odd|{image}|crop|{best}"
    assert (value["turn"], value["ruler"]) == (desk.view().turn, "own")
    for method in METHODS:
        card = cards[method.name]
        assert ("map" in card) == (method in FAST_METHODS)
        assert card["slow"] == (method not in FAST_METHODS)
        assert card["ratio"] == pytest.approx(WIDTH / HEIGHT)
        assert card["label"] == method.label
        assert card["blind"] == method.class_blind
        assert card["options"] == "()"
        assert card["chosen"] == (method.name == desk.view().method)
        source, save = urlsplit(card["src"]), urlsplit(card["save"])
        assert parse_qs(source.query)["kind"] == ["card"]
        assert parse_qs(source.query)["bare"] == ["1"]
        assert parse_qs(save.query)["kind"] == ["explain"]
        assert "bare" not in parse_qs(save.query)
        assert parse_qs(source.query).get("method", ["relevance"]) == [method.name]
        if method in FAST_METHODS:
            assert f"for animal {best}" in card["map"]["caption"] or method.class_blind
            assert card["words"] == ""
        else:
            assert card["words"] == f"Takes longer: {method.runs}."
    found = the_map(session, image, "relevance", target=best)
    bar = cards["relevance"]["map"]["bar"]
    assert (bar["low"], bar["high"]) == (number(float(found.values.min())), number(float(found.values.max())))


def test_the_chips_are_the_first_five_classes_and_those_that_are_chosen(
    visit: Callable[..., Desk], session: Session, image: str
) -> None:
    desk = visit("explain")
    ranking = session.top_classes("odd", image, mode="crop", owner=OWNER, count=7)
    assert ranking is not None
    aim = desk.shown["vv-aim"]["value"]
    assert [entry["index"] for entry in aim["classes"]] == list(ranking.indices[:5])
    assert [entry["probability"] for entry in aim["classes"]] == pytest.approx(ranking.scores[:5].tolist())
    assert (aim["chosen"], aim["other"], aim["words"]) == (ranking.indices[0], None, "")
    assert aim["turn"] == desk.view().turn
    last, second = ranking.indices[6], ranking.indices[1]
    desk.act("vv-aim", "why", data={"index": last})
    assert desk.view().target == str(last)
    desk.act("vv-aim", "unlike", data={"index": second})
    assert desk.view().target == f"{last}-{second}"
    aim = desk.shown["vv-aim"]["value"]
    assert (aim["chosen"], aim["other"]) == (last, second)
    assert [entry["index"] for entry in aim["classes"]] == [*ranking.indices[:5], last]
    assert f"for animal {last} and not animal {second}" in gallery(desk)["relevance"]["map"]["caption"]
    desk.act("vv-aim", "why", data={"index": 3})
    assert desk.view().target == ("3" if second == 3 else f"3-{second}")
    desk.act("vv-aim", "unlike", data={"index": 3})
    assert desk.view().target.startswith("3")
    desk.act("vv-aim", "unlike", data={"index": None})
    assert desk.view().target == "3"
    for wrong in (7, -1, True, "1", None):
        with pytest.raises(gr.Error, match="from 0 to 6"):
            desk.act("vv-aim", "why", data={"index": wrong})


def test_the_class_that_is_set_against_itself_is_dropped(visit: Callable[..., Desk]) -> None:
    desk = visit("explain", "&target=2-4")
    desk.act("vv-aim", "why", data={"index": 4})
    assert desk.view().target == "4"


def test_a_search_answers_with_its_own_number(visit: Callable[..., Desk]) -> None:
    desk = visit("explain")
    desk.act("vv-aim", "search", data={"text": "animal 6", "seq": 12})
    assert desk.shown["vv-aim"]["found"] == {"seq": 12, "hits": [{"index": 6, "name": "animal 6"}]}


def test_a_method_is_looked_at_closely_with_its_options(
    visit: Callable[..., Desk], session: Session, image: str
) -> None:
    desk = visit("explain", "&q=2,5")
    desk.act("vv-gallery", "open", data={"method": "rollout"})
    assert desk.view().method == "rollout"
    picture = desk.shown["vv-explain-picture"]["value"]
    assert "the same for every class" in picture["caption"]
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
    assert (desk.view().share, desk.view().discard) == (0.25, 0.5)
    assert "discard 0.5" in desk.shown["vv-explain-picture"]["value"]["caption"]
    assert gallery(desk)["rollout"]["options"] != "()"
    assert gallery(desk)["relevance"]["options"] == "()"
    desk.act("vv-gallery", "open", data={"method": "relevance"})
    assert desk.shown["attention share"]["visible"] is False
    closely = desk.shown["vv-explain-picture"]["value"]["caption"]
    assert "explains the output, not the pinned patch (2, 5)" in closely
    assert "scale: own" in closely
    assert f"overlay {desk.view().alpha:.0%}" in closely


def test_a_slow_method_gives_way_until_it_was_made(visit: Callable[..., Desk]) -> None:
    desk = visit("explain")
    desk.act("vv-gallery", "open", data={"method": "occlusion"})
    assert "Relevance is shown instead" in desk.shown["vv-explain-picture"]["value"]["note"]
    desk.act("vv-gallery", "compute", data={"method": "occlusion"})
    (prop,) = [name for name in desk.shown["vv-gallery"] if name.startswith("slow_")]
    done = desk.shown["vv-gallery"][prop]
    assert (done["method"], done["key"]) == ("occlusion", desk.shown["vv-gallery"]["value"]["key"])
    assert "map" in done
    began = next(value[prop] for name, value in desk.told if prop in value)
    assert (began["share"], began["words"]) == (0.0, "Starting …")
    desk.act("vv-gallery", "ruler", data={"ruler": "share"})
    assert "map" in gallery(desk)["occlusion"]
    assert desk.shown["vv-gallery"]["value"]["ruler"] == "share"
    assert "instead" not in desk.shown["vv-explain-picture"]["value"]["note"]
    quick = [card["map"]["bar"]["high"] for card in gallery(desk).values() if not card["slow"]]
    assert len(set(quick)) == 1
    with pytest.raises(gr.Error, match="needs no waiting"):
        desk.act("vv-gallery", "compute", data={"method": "rollout"})


def test_a_test_of_maps_sorts_them_and_draws_curves(visit: Callable[..., Desk]) -> None:
    desk = visit("explain")
    desk.act("vv-gallery", "trust", data={"methods": ["relevance"], "known": ["attention"]})
    trust = desk.shown["vv-gallery"]["trust"]
    assert set(trust["cards"]) == {"relevance", "attention"}
    assert sorted(trust["order"]) == ["attention", "relevance"]
    assert trust["key"] == desk.shown["vv-gallery"]["value"]["key"]
    shares = [
        v["trust"]["share"] for n, v in desk.told if n == "vv-gallery" and "share" in v.get("trust", {})
    ]
    assert shares == sorted(shares)
    assert shares[0] == 0.0
    assert shares[-1] == pytest.approx(0.7 + 0.3 / 2)
    strips = trust["cards"]
    assert "class sensitivity 0.00" in strips["attention"]["numbers"]
    assert "mirror stability" in strips["relevance"]["numbers"]
    for strip in strips.values():
        for area in (strip["deletion"], strip["insertion"]):
            assert area["low"] <= area["mean"] <= area["high"]
            assert area["low"] >= 0
            assert f"{area['area']:.4g}" in area["title"]
        assert "The lower, the better." in strip["deletion"]["title"]
        assert "The higher, the better." in strip["insertion"]["title"]
        assert strip["better"] == (strip["verdict"] == "Better than random")
        assert strip["deletion"]["better"] == (
            strip["verdict"] in ("Better than random", "Better than random in deletion only")
        )
    ranked = sorted(strips, key=lambda n: strips[n]["deletion"]["area"] / strips[n]["deletion"]["mean"])
    assert trust["order"] == ranked
    desk.act("vv-gallery", "curves", data={"method": "relevance"})
    figures = [desk.shown[name]["value"] for name in ("vv-deletion", "vv-insertion")]
    assert all("Relevance" in str(figure.data) or figure.data for figure in figures)
    with pytest.raises(gr.Error, match="There is no method"):
        desk.act("vv-gallery", "curves", data={"method": "astrology"})


def test_a_map_that_cannot_be_tested_says_why_and_the_others_go_on(
    visit: Callable[..., Desk], session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk, run = visit("explain", "&target=2"), session.run

    def refusing(request: Request, **options: Any) -> Any:
        if request.analysis == "trust" and dict(request.parameters)["method"] == "relevance":
            raise ParameterError("Not this one.")
        return run(request, **options)

    monkeypatch.setattr(session, "run", refusing)
    desk.act("vv-gallery", "trust", data={"methods": ["relevance", "attention"]})
    cards = desk.shown["vv-gallery"]["trust"]["cards"]
    assert cards["relevance"] == {"error": "Not this one.", "options": "()"}
    assert "verdict" in cards["attention"]
    assert desk.shown["vv-gallery"]["trust"]["order"] == ["attention"]


def test_patches_are_taken_away_on_the_playground(
    visit: Callable[..., Desk], session: Session, image: str
) -> None:
    desk = visit("explain")
    value = desk.shown["vv-playground"]["value"]
    assert value["grid"] == [4, 6]
    assert value["photo_size"] == [HEIGHT, WIDTH]
    assert value["region"] == pytest.approx([0, LEFT, HEIGHT, HEIGHT * 1.5], abs=0.2)
    assert value["key"] == f"odd|{image}|crop"
    assert value["slider"] == "Take the most relevant patches first, by Relevance"
    found = the_map(session, image, "relevance", target=int(desk.shown["vv-aim"]["value"]["chosen"]))
    assert [int(part) for part in value["order"].split(",")] == np.argsort(
        -found.values.ravel(), kind="stable"
    ).tolist()
    desk.act("vv-playground", "remove", data={"gone": "0,7,23", "seq": 3, "key": value["key"]})
    answer = desk.shown["vv-playground"]["answer"]
    assert (answer["seq"], answer["key"]) == (3, value["key"])
    without = session.run(
        Request.of("odd", image, "without", mode="crop", owner=OWNER, gone=[(0, 0), (1, 1), (3, 5)])
    )
    assert [entry["now"] for entry in answer["top"]] == pytest.approx(without.top.scores.tolist())  # type: ignore[union-attr]
    assert "12% of the photo" in answer["words"]
    desk.act("vv-playground", "remove", data={"gone": "24", "seq": 4, "key": value["key"]})
    assert "0 to 23" in desk.shown["vv-playground"]["answer"]["error"]
    desk.act("vv-playground", "remove", data={"gone": "", "seq": 5, "key": value["key"]})
    assert desk.shown["vv-playground"]["answer"]["words"].startswith("With all patches: animal")


def test_the_sanity_check_follows_the_chosen_map(visit: Callable[..., Desk]) -> None:
    desk = visit("explain")
    assert desk.shown["vv-sanity"]["value"]["words"] == "For Relevance."
    assert desk.shown["vv-sanity-curve"]["visible"] is False
    desk.act("vv-sanity", "start")
    assert desk.shown["vv-sanity-curve"]["visible"] is True
    assert desk.shown["vv-sanity"]["value"]["words"] == "For Relevance."
    desk.act("vv-gallery", "open", data={"method": "attention"})
    assert desk.shown["vv-sanity"]["value"]["words"] == "For Last-layer attention."
    assert desk.shown["vv-sanity-curve"]["visible"] is False
    desk.act("vv-gallery", "open", data={"method": "relevance"})
    assert desk.shown["vv-sanity-curve"]["visible"] is True  # kept
    desk.act("vv-gallery", "open", data={"method": "occlusion"})
    desk.act("vv-sanity", "start")
    assert "would have to be made anew" in desk.shown["vv-sanity"]["value"]["error"]


# --- positions


def test_positions_show_the_pinned_patch_among_all(visit: Callable[..., Desk], session: Session) -> None:
    desk = visit("positions")
    tile = desk.shown["vv-position-tile"]["value"]
    matrix = position_similarity(session.model("odd"), grid=(4, 6))
    heat = np.asarray(tile.data[0].z, dtype=float)
    assert heat.shape == (4, 6)
    np.testing.assert_allclose(heat, matrix.values[2 * 6 + 5].reshape(4, 6), atol=1e-5)
    captions = [
        value["value"] for name, value in desk.told if name == "HTML" and "position (2, 5)" in str(value)
    ]
    assert captions
    assert "4 x 6 patch positions" in captions[0]
    assert desk.shown["vv-prefix-tile"]["visible"] is True
    desk.act("vv-position-clicks", "point", data={"data": [1, 4]})
    assert desk.view().query == "1,4"
    before = desk.view()
    for wrong in ({"data": [4, 0]}, {"data": [0, 6]}, {"data": []}, {"data": ["x", 1]}, {}):
        desk.act("vv-position-clicks", "point", data=wrong)
        assert desk.view() == before


# --- patches


def test_the_patches_tab_says_every_size(visit: Callable[..., Desk]) -> None:
    desk = visit("patches")
    grid, sequence = (desk.shown[name]["value"] for name in ("vv-grid-picture", "vv-sequence-picture"))
    assert "4 rows x 6 columns" in grid["caption"]
    assert "photo 37 x 90 px to input 32 x 48 px" in grid["caption"]
    assert "38.5% of the photo left out" in grid["caption"]
    assert "class, register 0, then 24 patches" in sequence["caption"]
    assert sequence["area"] is None
    assert sequence["rings"] == []
    assert sequence["pick"] is False
    assert "kind=sequence" in sequence["src"]
    assert "kind=patches" in grid["src"]
    shapes = next(str(v["value"]) for n, v in desk.told if n == "HTML" and "vv-steps" in str(v))
    assert re.findall(r"<code>(.*?)</code>", shapes) == ["[3, 32, 48]", "[24, 192]", "[26, 40]"]
    assert "8 x 8 pixels x 3 channels" in shapes
    assert "2 prefix + 24 patches" in shapes
    desk.act("vv-numbers", "input", True)
    assert "kind=numbered" in desk.shown["vv-grid-picture"]["value"]["src"]


def middle(row: int, col: int) -> dict[str, float]:
    return {"y": (row + 0.5) * PATCH[0], "x": LEFT + (col + 0.5) * PATCH[1]}


@pytest.mark.parametrize(
    ("tab", "name"),
    [("patches", "vv-grid-picture"), ("explain", "vv-explain-picture"), ("walkthrough", "vv-w-photo")],
)
def test_a_click_and_arrows_choose_the_query(visit: Callable[..., Desk], tab: str, name: str) -> None:
    desk = visit(tab)
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
        desk = visit("patches", f"&q={query}" if query else "")
        desk.act("vv-grid-picture", "step", data={"down": 1, "across": 0})
        assert desk.view().query == "2,3"


# --- walkthrough


def test_the_walkthrough_goes_from_step_to_step(visit: Callable[..., Desk]) -> None:
    desk = visit("walkthrough")
    assert desk.told[0][0] != ""
    for place, name in enumerate(STEPS, start=1):
        if place > 1:
            desk.act("vv-w-next", "click")
        assert desk.view().step == place
        content = desk.shown["vv-w-content"]
        assert f"<h2>{place}. " in content["value"]
        assert content["elem_classes"] == ["vv-w-ready"]
        assert desk.shown["vv-w-steps"]["value"] == place
        assert desk.shown["vv-w-previous"]["interactive"] == (place > 1)
        assert desk.shown["vv-w-next"]["interactive"] == (place < len(STEPS))
        photo = desk.shown["vv-w-photo"]["value"]
        assert photo["turn"] == desk.view().turn
        assert name
    desk.act("vv-w-next", "click")
    assert desk.view().step == len(STEPS)
    desk.act("vv-w-steps", "input", 2)
    desk.act("vv-w-previous", "click")
    desk.act("vv-w-previous", "click")
    assert desk.view().step == 1


def test_the_photo_beside_a_step_shows_what_is_followed(
    visit: Callable[..., Desk], session: Session, image: str
) -> None:
    kinds = {}
    for place in range(1, len(STEPS) + 1):
        desk = visit("walkthrough", f"&step={place}&layer=1&head=3&q=2,5")
        photo = desk.shown["vv-w-photo"]["value"]
        kind = parse_qs(urlsplit(photo["src"]).query)["kind"][0]
        kinds[place] = kind
        if kind == "map":
            assert photo["area"] == [0.0, 0.0, float(HEIGHT), float(WIDTH)]
            assert "patch (2, 5) looks at, layer 1" in photo["caption"]
            found = session.run(
                Request.of(
                    "odd",
                    image,
                    "attention",
                    mode="crop",
                    owner=OWNER,
                    layer=1,
                    query=(2, 5),
                    norm_weighted=False,
                    head=3 if "head 3" in photo["caption"] else "mean",
                    direction="row",
                )
            )
            assert isinstance(found, PatchMap)
            assert photo["bar"]["high"] == number(float(found.values.max()))
            assert "layer" in desk.shown["vv-w-layer"] or desk.shown["vv-w-layer"]["visible"] is True
        else:
            top, left, bottom, right = photo["area"]
            assert 0 <= top < bottom <= HEIGHT
            assert 0 <= left < right <= WIDTH
            assert right - left > bottom - top
        if photo["rings"]:
            assert photo["rings"][0] == pytest.approx(
                [2 * PATCH[0], LEFT + 5 * PATCH[1], 3 * PATCH[0], LEFT + 6 * PATCH[1]], abs=0.2
            )
    assert "map" in kinds.values()
    assert "patches" in kinds.values()
    assert len(kinds) == 8


def test_the_controls_of_a_step_have_the_bounds_of_the_model(visit: Callable[..., Desk]) -> None:
    seen = {"layer": 0, "head": 0, "slider": 0, "choice": 0}
    for place in range(1, len(STEPS) + 1):
        desk = visit("walkthrough", f"&step={place}&layer=1&head=3")
        layer, head = desk.shown["vv-w-layer"], desk.shown["vv-w-head"]
        assert (layer["maximum"], layer["value"]) == (2, 1)
        assert (head["maximum"], head["value"]) == (4, 3)
        for name in seen:
            seen[name] += bool(desk.shown[f"vv-w-{name}"]["visible"])
    assert all(seen.values())
    desk = visit("walkthrough", "&step=5")
    desk.act("vv-w-layer", "input", 2)
    desk.act("vv-w-head", "input", 4)
    assert (desk.view().layer, desk.view().head) == (2, 4)
    desk.act("vv-w-slider", "input", 1)
    assert desk.view().play == 1


# --- waking


def test_a_part_that_is_not_on_the_screen_sleeps(visit: Callable[..., Desk]) -> None:
    desk = visit("patches")
    assert not {"vv-gallery", "vv-explorer", "vv-position-tiles", "vv-w-content"} & set(desk.shown)
    desk.act("vv-tab-positions", "select")
    assert "vv-position-tiles" in desk.shown
    assert "vv-gallery" not in desk.shown
    assert desk.shown["Address"]["value"]["set"] == {"tab": "positions"}
    assert desk.shown["Address"]["value"]["push"] is False
    told = len(desk.told)
    desk.act("vv-tab-positions", "select")
    assert len(desk.told) == told  # nothing changed: nothing is written


@pytest.mark.parametrize(
    ("tab", "name", "act"),
    [
        ("explain", "vv-gallery", ("attention share", "input", 0.3)),
        ("explain", "vv-explain-picture", ("vv-explain-picture", "pick", None)),
        ("positions", "vv-position-tile", ("vv-position-clicks", "point", None)),
        ("patches", "vv-grid-picture", ("vv-numbers", "input", True)),
        ("walkthrough", "vv-w-content", ("vv-w-steps", "input", 3)),
        ("walkthrough", "vv-w-photo", ("vv-w-layer", "input", 2)),
    ],
)
def test_a_change_wakes_the_part_that_shows_it(
    visit: Callable[..., Desk], tab: str, name: str, act: tuple[str, str, Any]
) -> None:
    desk = visit(tab)
    before = len([one for one, _ in desk.told if one == name])
    data = {"data": [1, 1], **middle(0, 0)}
    desk.act(act[0], act[1], *([] if act[2] is None else [act[2]]), data=data)
    assert len([one for one, _ in desk.told if one == name]) > before


def test_a_handle_in_an_address_stands_for_this_picture_in_this_mode(
    visit: Callable[..., Desk], session: Session, image: str
) -> None:
    desk = visit("patches")
    source = desk.shown["vv-grid-picture"]["value"]["src"]
    handle = urlsplit(source).path.rsplit("/", 1)[1].removesuffix(".png")
    assert session.handles.find(handle) == Subject("odd", image, "crop", OWNER)
    assert json.dumps(desk.shown["vv-grid-picture"]["value"])


def test_errors_are_said_in_one_sentence() -> None:
    assert sentence(ValueError("x")).endswith(".")
