"""Edits at the edge of what is possible, and what their words mean on one model and another."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from vit_viz.errors import ParameterError
from vit_viz.geometry import TokenLayout
from vit_viz.session.edits import NO_EDITS, ModelEdits, numbers_of, places_of, ranges_of, region_of

NAN, INF = float("nan"), float("inf")


class Shape:
    """What edits ask of a trace: 3 layers, 5 heads, 4 x 6 patches behind some prefix tokens."""

    num_layers, num_heads = 3, 5

    def __init__(self, *prefix: str) -> None:
        self.layout = TokenLayout(grid=(4, 6), prefix=prefix)


def masks(words: str, *prefix: str) -> dict[int, set[tuple[int, int]]]:
    """By layer, which (seeing, seen) tokens are forbidden."""
    forbidden: Any = ModelEdits.parse(words).of(Shape(*prefix)).knockout  # type: ignore[arg-type]
    return {layer: {(i, j) for i, j in mask.nonzero().tolist()} for layer, mask in forbidden.items()}


# --- temperatures


@pytest.mark.parametrize("value", [0.01, 100.0])
def test_the_lowest_and_the_highest_temperature_are_possible(value: float) -> None:
    assert ModelEdits(temperatures=((2, value),)).temperatures == ((2, value),)
    assert ModelEdits.parse(f"temperature 2={value:g}").temperatures == ((2, value),)


@pytest.mark.parametrize(
    ("value", "said"),
    [(0.009999, "0.009999"), (100.001, "100.001"), (-1.0, "-1"), (NAN, "nan"), (INF, "inf")],
)
def test_a_temperature_beyond_them_is_refused(value: float, said: str) -> None:
    with pytest.raises(ParameterError) as refused:
        ModelEdits(temperatures=((2, value),))
    assert str(refused.value) == f"The temperature of layer 2 is a number from 0.01 to 100, not {said}."


def test_a_temperature_of_1_is_no_edit_but_still_cannot_be_given_twice() -> None:
    assert ModelEdits.parse("temperature 0=1 2=1.0") == NO_EDITS
    assert not NO_EDITS
    with pytest.raises(ParameterError, match="The temperature of layer 0 is edited twice"):
        ModelEdits.parse("temperature 0=1 0=3")


def test_a_temperature_is_known_to_six_digits() -> None:
    first, second = (ModelEdits(temperatures=((1, value),)) for value in (0.1234567, 0.1234568))
    assert first == second
    assert str(first) == "temperature 1=0.123457"


# --- how many


def test_at_most_4096_heads_are_edited_at_once() -> None:
    heads = tuple(((layer, head), "off") for layer in range(64) for head in range(64))
    assert len(ModelEdits(heads=heads).heads) == 4096  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="At most 4096 heads or layers can be edited at once"):
        ModelEdits(heads=(*heads, ((64, 0), "off")))  # type: ignore[arg-type]


def test_words_have_at_most_16000_characters() -> None:
    longest = "off 1.1".ljust(16_000)
    assert ModelEdits.parse(longest) == ModelEdits.parse("off 1.1")
    for longer in (f"{longest} ", [longest, " "]):
        with pytest.raises(ParameterError, match="at most 16000 characters"):
            ModelEdits.parse(longer)


# --- tokens of a model


def test_registers_are_those_of_the_model() -> None:
    found = masks("forbid registers>class@1", "class", "register 0", "register 1", "register 2")
    assert found == {1: {(1, 0), (2, 0), (3, 0)}}
    found = masks("forbid class>registers@2", "register 0", "class", "register 1")
    assert found == {2: {(1, 0), (1, 2)}}


@pytest.mark.parametrize("words", ["forbid registers>class", "forbid class>registers@1"])
def test_a_model_without_registers_says_so(words: str) -> None:
    with pytest.raises(ParameterError) as refused:
        masks(words, "class")
    assert str(refused.value) == "This model has no registers."


def test_patches_are_counted_by_rows_behind_the_prefix() -> None:
    found = masks("forbid 1-2,4+3,0>class", "class")
    patches = [1 + row * 6 + col for row, col in ((1, 4), (2, 4), (3, 0))]
    assert found == {layer: {(patch, 0) for patch in patches} for layer in range(3)}


def test_everything_and_patches_are_all_of_them() -> None:
    assert masks("forbid everything>class@0", "class", "register 0") == {0: {(i, 0) for i in range(26)}}
    assert masks("forbid patches>class@0", "class", "register 0") == {0: {(i, 0) for i in range(2, 26)}}


def test_views_of_one_layer_add_up_and_those_of_others_do_not() -> None:
    found = masks("forbid class>0,0@0-1;forbid class>0,1@1+2", "class")
    assert found == {0: {(0, 1)}, 1: {(0, 1), (0, 2)}, 2: {(0, 2)}}


def test_views_that_together_leave_a_token_nothing_are_refused() -> None:
    both = "forbid 0,1>class@1-2;forbid 0,1>patches@2"
    with pytest.raises(ParameterError) as refused:
        masks(both, "class")
    said = str(refused.value)
    assert said.startswith("Every token has to see at least one, but ")
    assert said.endswith(" would see none in layer 2: forbid less.")
    masks(both.replace("patches@2", "patches@0"), "class")


def test_layers_share_a_mask_only_where_the_same_is_forbidden() -> None:
    edits = ModelEdits.parse("forbid class>0,0@0+2;forbid class>0,1@1")
    forbidden: Any = edits.of(Shape("class")).knockout  # type: ignore[arg-type]
    assert forbidden[0] is forbidden[2]
    assert not torch.equal(forbidden[0], forbidden[1])


def test_the_last_layer_and_head_are_edited() -> None:
    edits = ModelEdits.parse("off 2.4;mean 0.3;uniform 1.0;temperature 2=0.5").of(Shape("class"))  # type: ignore[arg-type]
    assert edits.heads == {(2, 4): 0.0, (0, 3): "mean", (1, 0): "uniform"}
    assert edits.temperature == {2: 0.5}


# --- where edits matter


@pytest.mark.parametrize(
    ("words", "layers"),
    [
        ("off 3.1;temperature 7=2", {3, 7}),
        ("forbid class>patches@1-2;mean 5.0", {1, 2, 5}),
        ("forbid class>patches@1;forbid patches>class", None),
        ("", set()),
    ],
)
def test_edits_know_which_layers_they_change(words: str, layers: set[int] | None) -> None:
    edits = ModelEdits.parse(words)
    assert edits.layers == layers
    expected = [bool(words) if layers is None else layer in layers for layer in range(9)]
    assert [edits.touches(layer) for layer in range(9)] == expected


def test_only_what_names_no_place_means_the_same_on_another_grid() -> None:
    edits = ModelEdits.parse("off 1.1;temperature 2=3;forbid class>patches;forbid class>1,2;forbid 1,2>class")
    assert str(edits.on_any_grid) == "off 1.1;temperature 2=3;forbid class>patches"


# --- regions


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("2,3", [(2, 3)]),
        ("2-3,5", [(2, 5), (3, 5)]),
        ("2,5-6", [(2, 5), (2, 6)]),
        ("4,1+2,0", [(2, 0), (4, 1)]),
        (" 1,1 + 1,1 ", [(1, 1)]),
    ],
)
def test_patches_are_read_as_row_and_column(text: str, places: list[tuple[int, int]]) -> None:
    assert places_of(text) == places


def test_a_region_has_at_most_4096_patches_altogether() -> None:
    assert len(places_of("0-31,0-127")) == 4096
    assert len(places_of("0-31,0-127+0,0")) == 4096  # one that is there already
    for text, said in (
        ("0-31,0-127+32,0", "A region has 1 to 4096 patches, not 4097."),
        ("0-16,0-240", "A region has 1 to 4096 patches; '0-16,0-240' has not."),
        ("3,5-4", "A region has 1 to 4096 patches; '3,5-4' has not."),
    ):
        with pytest.raises(ParameterError) as refused:
            places_of(text)
        assert str(refused.value) == said


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0,0+0,1+1,0+1,1", "0-1,0-1"),
        ("0,0+1,0+3,0", "0-1,0+3,0"),
        ("0,1+0,3+1,1+1,3", "0-1,1+0-1,3"),
        ("2,4+1,4+1,5", "1,4-5+2,4"),
        (" registers ", "registers"),
        ("register 12", "register 12"),
    ],
)
def test_a_region_is_written_in_one_way(text: str, words: str) -> None:
    assert region_of(text) == words


def test_numbers_and_ranges_are_each_others_reverse() -> None:
    assert numbers_of("8+3-5+4") == [3, 4, 5, 8]
    assert ranges_of([3, 4, 5, 8]) == "3-5+8"
    assert (numbers_of("7-7"), ranges_of([7])) == ([7], "7")
    assert (ranges_of([1, 2, 4, 5]), ranges_of([])) == ("1-2+4-5", "")


# --- in words


@pytest.mark.parametrize(
    ("edits", "sentence"),
    [
        ("off 3.1", "1 head off"),
        ("off 3.1 3.2", "2 heads off"),
        ("mean 3.1", "1 head at its mean"),
        ("mean 3.1 3.2 4.0", "3 heads at their mean"),
        ("temperature 7=0.5", "temperature of layer 7"),
        ("temperature 7=0.5 9=2", "temperature of layers 7, 9"),
        ("forbid class>2,3", "1 view forbidden"),
        ("forbid class>2,3;forbid class>2,4", "2 views forbidden"),
        (
            "mean 2.0;off 3.2;uniform 3.1;temperature 7=0.5;forbid class>2,3",
            "1 head off, 1 head at its mean, 1 head uniform, temperature of layer 7, 1 view forbidden",
        ),
        ("", ""),
    ],
)
def test_one_and_many_changes_are_said(edits: str, sentence: str) -> None:
    assert ModelEdits.parse(edits).sentence == sentence
