"""The view: what a link says, what it cannot say, and what fits a model."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, strategies as st

from tests.ui.views import view_with
from vit_viz.analyses.opening import first_of_last_third
from vit_viz.analyses.rollout import RolloutOptions
from vit_viz.errors import ParameterError
from vit_viz.explorer.value import link_fields
from vit_viz.geometry import TokenLayout
from vit_viz.session.edits import ModelEdits
from vit_viz.views.state import ViewState, _query

LAYOUT = TokenLayout(grid=(4, 6), prefix=("class", "register 0"))


def test_an_empty_address_is_the_default_view() -> None:
    assert ViewState.from_address("") == (ViewState(), ())


def test_a_view_survives_its_address() -> None:
    view = view_with(
        model="dino-s16",
        image="lion",
        mode="crop",
        tab="explain",
        layer=2,
        head=3,
        query="1,2;3,4",
        direction="column",
        scale="own",
        alpha=0.25,
        table="magma",
        smooth=True,
        mask=0.6,
        norm=True,
        options=(
            ("rollout", RolloutOptions(attention_share=0.9, head_fusion="max", discard=0.3, first=1, last=2)),
        ),
        numbers=True,
        position_grid="trained",
        token_measure="segments",
        token_second="a photo (2).png",
        token_factor=2.5,
        token_box="1,2,30,40",
        token_register=True,
    )
    assert ViewState.from_address("?" + view.to_address()) == (view, ())


def test_what_is_at_its_default_is_left_out_of_the_address() -> None:
    assert ViewState(model="mini", layer=3).to_address() == "model=mini&layer=3"


def test_a_picture_that_is_waited_for_is_not_in_the_address() -> None:
    assert ViewState(awaits_upload=True).to_address() == ""


@pytest.mark.parametrize(
    ("search", "named"),
    [
        ("layer=abc", "layer"),
        ("layer=-1", "layer"),
        ("head=none", "head"),
        ("q=1,2,3", "row,col"),
        ("dir=up", "direction"),
        ("alpha=nan", "strength"),
        ("alpha=2", "strength"),
        ("mode=sideways", "mode"),
        ("smooth=perhaps", "smooth"),
        ("model=" + "x" * 300, "model"),
        ("gone=best.0", "taken away"),
        ("gone=best.123456", "taken away"),
        ("gone=patches.%D9%A3", "taken away"),
        ("gone=patches." + "A" * 4097, "taken away"),
        ("gone=<script>", "taken away"),
    ],
)
def test_what_is_not_possible_falls_back_with_one_sentence(search: str, named: str) -> None:
    view, problems = ViewState.from_address(search)
    assert view == ViewState()
    assert len(problems) == 1
    assert named in problems[0]


def test_one_bad_option_does_not_take_the_others_with_it() -> None:
    view, problems = ViewState.from_address("layer=abc&head=2&q=3,4")
    assert (view.layer, view.head, view.query) == (None, 2, "3,4")
    assert len(problems) == 1


@given(st.text(max_size=300))
def test_no_address_whatsoever_raises(search: str) -> None:
    view, _ = ViewState.from_address(search)
    assert isinstance(view, ViewState)


@given(
    st.dictionaries(
        st.sampled_from(["layer", "q", "head", "alpha", "mask", "first", "model"]), st.text(max_size=40)
    )
)
def test_no_value_of_an_option_raises_anything_but_a_sentence(options: dict[str, str]) -> None:
    with suppress(ParameterError):
        ViewState().with_options(options)


def test_the_first_layer_shown_lies_in_the_last_third() -> None:
    for layers in range(1, 49):
        assert 2 * layers <= 3 * (first_of_last_third(layers) + 1)
        assert first_of_last_third(layers) < layers


def test_a_layer_that_the_model_has_not_falls_back_with_a_sentence() -> None:
    view, problems = ViewState(layer=9).fitted(layers=3, heads=5, layout=LAYOUT)
    assert view.layer == first_of_last_third(3)
    assert problems == ("Layer 9 does not exist: this model has layers 0-2.",)


def test_a_query_outside_the_grid_falls_back_with_a_sentence() -> None:
    view, problems = ViewState(query="4,0", layer=0).fitted(layers=3, heads=5, layout=LAYOUT)
    assert view.query == ""
    assert "rows are 0-3" in problems[0]


def test_a_fitting_view_is_left_as_it_is() -> None:
    view = ViewState(layer=1, head=4, query="3,5", options=(("rollout", RolloutOptions(first=1, last=2)),))
    assert view.fitted(layers=3, heads=5, layout=LAYOUT) == (view, ())


def test_another_image_drops_a_patch_and_keeps_a_token() -> None:
    assert ViewState(query="3,4").on_subject(image="tower").query == ""
    assert ViewState(query="register 0").on_subject(image="tower").query == "register 0"


def test_what_is_taken_away_is_in_the_link_and_another_image_has_all_patches() -> None:
    for gone in ("best.12", "patches." + "_" * 4096):
        view, problems = ViewState.from_address(f"?gone={gone}")
        assert (view.to_address(), problems) == (f"gone={gone}", ())
        assert view.on_subject(image="tower") == ViewState(image="tower")


def test_a_link_with_too_many_options_is_not_read_and_says_so() -> None:
    view, problems = ViewState.from_address("?" + "&".join(f"a{i}=1" for i in range(101)) + "&layer=3")
    assert view == ViewState()
    assert "more options" in problems[0]


@pytest.mark.parametrize(
    ("layers", "layer"), [(1, 0), (2, 1), (3, 2), (4, 3), (5, 3), (6, 4), (12, 8), (24, 16), (32, 21)]
)
def test_the_layer_that_a_view_opens_with(layers: int, layer: int) -> None:
    assert first_of_last_third(layers) == layer


@pytest.mark.parametrize("target", ["", "0", "291", "999999", "291-292"])
def test_a_target_is_a_class_or_a_pair(target: str) -> None:
    assert ViewState().with_options({"target": target}).target == target


@pytest.mark.parametrize(
    "target", ["1000000", "1-1000000", "a", "1-b", "-", "12-", "1-2-3", "\u0663", "\u00b2", "1.5"]
)
def test_what_is_no_class_is_no_target(target: str) -> None:
    with pytest.raises(ParameterError, match="The target is a class like 291"):
        ViewState().with_options({"target": target})


def test_a_link_counts_the_layer_that_it_shows_from_the_first() -> None:
    _, problems = ViewState.from_address("layer=-1")
    assert problems == ("The layer is a whole number from 0 to 4095, not '-1'.",)


def test_a_tab_a_face_and_a_picture_are_places_and_what_slides_is_none() -> None:
    fields = link_fields({})
    places = {field["link"] for field in fields if field.get("place")}
    assert {"tab", "tokens", "measure", "face", "explain", "image", "edits", "ask"} <= places
    assert not {"layer", "head", "beat", "alpha", "state"} & places
    assert {"layer", "head", "beat", "alpha", "state"} <= {field["link"] for field in fields}


def test_what_is_long_stays_whole_in_the_address() -> None:
    region = ";".join(f"{row},{col}" for row in range(100, 132) for col in range(100, 132))[:7900].rpartition(
        ";"
    )[0]
    edits = "off " + " ".join(f"{layer}.{head}" for layer in range(40) for head in range(40))
    view = view_with(query=region, edits=str(ModelEdits.parse(edits)))
    assert len(view.to_address()) > 16_000
    link = view.to_link()
    assert (link["q"], link["edits"]) == (view.query, view.edits)


def test_edits_by_place_end_with_the_grid_and_all_with_the_model() -> None:
    view = ViewState(model="odd", image="lion", edits="off 1.3;forbid class>patches;forbid class>1,2")
    for change in ({"image": "tower"}, {"mode": "crop"}, {"size": 9}, {"part": "0,0,40,50"}):
        assert view.on_subject(**change).edits == "off 1.3;forbid class>patches"
    assert view.on_subject(model="mini").edits == ""


def test_a_region_of_as_many_patches_as_a_link_holds_is_taken_and_one_more_is_refused() -> None:
    patches = [[row, col] for row in range(32) for col in range(33)]
    assert _query("query", patches[:1024]).count(";") == 1023
    with pytest.raises(ParameterError, match="at most 1024 patches"):
        _query("query", patches[:1025])
