"""The agreement of methods: by hand, against SciPy, and with maps slid around the grid one by one."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr

import vit_viz as vv
from tests.analyses.conftest import loaded_from, patch_map
from vit_viz.analyses.agreement import AGREEMENT, Agreement
from vit_viz.analyses.explain import COMPARISON
from vit_viz.analyses.methods import METHODS
from vit_viz.errors import ParameterError
from vit_viz.model import VisionTransformer
from vit_viz.session.inputs import parse_arguments


def test_maps_agree_wholly_with_themselves_and_not_with_their_opposite() -> None:
    values = np.random.default_rng(2).random((4, 5)).astype(np.float32)
    got = vv.agreement(
        {"one": patch_map(values), "same": patch_map(3 * values), "opposite": patch_map(-values)}
    )
    assert got.names == ("one", "same", "opposite")
    np.testing.assert_allclose(got.values, [[1, 1, -1], [1, 1, -1], [-1, -1, 1]], atol=1e-6)
    np.testing.assert_allclose(got.top_fifth, [[1, 1, 0], [1, 1, 0], [0, 0, 1]])
    np.testing.assert_allclose(got.by_chance, [[0.05, 0.05, 1], [0.05, 0.05, 1], [1, 1, 0.05]])


def test_it_is_worked_by_hand() -> None:
    one = np.zeros((3, 5), np.float32)  # 15 patches: the highest three
    other = one.copy()
    one[0, :3], other[0, 1:4] = (3, 2, 1), (5, 6, 7)
    got = vv.agreement({"one": patch_map(one), "other": patch_map(other)})
    assert got.top_fifth[0, 1] == pytest.approx(2 / 3)
    # less their mean of 8, ranks are 7, 6, 5 and 12 times -1.5; over each other lie 6 and 5, 5 and 6, and 11 of -1.5
    assert got.values[0, 1] == pytest.approx((30 + 30 - 1.5 * (7 + 7) + 11 * 1.5**2) / (110 + 12 * 1.5**2))
    # slid by one place more, 7 * 5 + 6 * 6 + 5 * 7; by two, 7 * 6 + 6 * 7; nowhere else so much as 60
    assert got.by_chance[0, 1] == pytest.approx(3 / 15)


@pytest.mark.parametrize(
    ("shape", "count"), [((1, 2), 1), ((2, 3), 1), ((1, 7), 1), ((2, 4), 2), ((3, 6), 4), ((4, 7), 6)]
)
def test_the_top_fifth_is_rounded_and_at_least_one_patch(shape: tuple[int, int], count: int) -> None:
    size = shape[0] * shape[1]
    rising = np.arange(size, dtype=np.float32)
    kept = rising.copy()
    kept[: size - 1] = rising[: size - 1][::-1]  # the highest patch alone stays where it is
    maps = {"one": rising, "other": kept}
    got = vv.agreement({name: patch_map(one.reshape(shape)) for name, one in maps.items()})
    common = len({*rising.argsort()[-count:]} & {*kept.argsort()[-count:]})
    assert got.top_fifth[0, 1] == pytest.approx(common / count)
    assert got.value_range == (-1, 1)
    opposite = patch_map(-rising.reshape(shape))
    assert vv.agreement({"one": patch_map(rising.reshape(shape)), "o": opposite}).top_fifth[0, 1] == 0


def test_tied_patches_share_the_last_places_of_the_top_fifth_and_a_constant_map_has_none() -> None:
    one = np.zeros((3, 5), np.float32)  # three places: two of them are shared by the other 14 patches
    one[1, 1] = 7
    falling = -np.arange(15, dtype=np.float32).reshape(3, 5)
    got = vv.agreement(
        {"tied": patch_map(one), "falling": patch_map(falling), "flat": patch_map(np.full((3, 5), 0.25))}
    )
    assert got.top_fifth[:2, :2].ravel() == pytest.approx([1, 3 * 2 / 14 / 3, 3 * 2 / 14 / 3, 1])
    assert np.isnan(got.top_fifth[2]).all()
    assert np.isnan(got.top_fifth[:, 2]).all()
    assert got.note == "flat is the same everywhere: its correlations say nothing."
    assert vv.agreement({"tied": patch_map(one)}).note == ""


def test_it_is_scipys_correlation_and_its_chance_that_of_maps_slid_one_by_one() -> None:
    random = np.random.default_rng(5)
    smooth = random.random((3, 5, 7)).cumsum(1).cumsum(2).round(1).astype(np.float32)  # with ties
    got = vv.agreement({str(i): patch_map(values) for i, values in enumerate(smooth)})
    for a, one in enumerate(smooth):
        for b, other in enumerate(smooth):
            slid = [
                spearmanr(np.roll(one, (down, right), (0, 1)).ravel(), other.ravel()).statistic
                for down in range(5)
                for right in range(7)
            ]
            assert got.values[a, b] == pytest.approx(slid[0], abs=1e-6)
            assert got.by_chance[a, b] == pytest.approx(np.mean(np.array(slid) >= slid[0] - 1e-9))


def test_maps_of_different_grids_are_not_compared() -> None:
    with pytest.raises(ParameterError, match="one grid"):
        vv.agreement({"one": patch_map(np.ones((2, 3))), "other": patch_map(np.ones((3, 2)))})
    with pytest.raises(ParameterError, match="one at least"):
        vv.agreement({})


@pytest.mark.parametrize("methods", ["quick", "all"])
def test_asked_by_name_it_compares_the_methods_of_the_explain_tab(
    methods: str, make_model: Callable[..., VisionTransformer]
) -> None:
    loaded = loaded_from(make_model())
    got = vv.run(loaded, "lion", "agreement", methods=methods, target=5)
    compared = [one for one in METHODS.cards if methods == "all" or not one.is_slow]
    assert got.names == tuple(sorted((one.words.label for one in compared), key=got.names.index))
    assert len(got.names) == len(compared)
    place = {one.name: got.names.index(one.words.label) for one in compared}
    maps = vv.explain(loaded, "lion", methods=("relevance", "legrad"), target=5)
    expected = spearmanr(*(one.values.ravel() for one in maps.values())).statistic
    assert got.values[place["relevance"], place["legrad"]] == pytest.approx(expected, abs=1e-4)
    assert dict(got.provenance.parameters)["target"] == "5"


def test_named_methods_are_compared_by_their_maps_with_the_options_of_each(
    make_model: Callable[..., VisionTransformer],
) -> None:
    loaded = loaded_from(make_model())
    own: dict[str, dict[str, Any]] = {"rollout": {"discard": 0.5, "first": -2}, "saliency": {}, "legrad": {}}
    got = vv.run(loaded, "lion", "agreement", methods=list(own), options=own, target=5)
    maps = {}
    for name, options in own.items():
        towards = {"target": 5} if METHODS[name].takes_target else {}
        maps[METHODS[name].words.label] = vv.run(loaded, "lion", name, **towards, **options)
    side_by_side = vv.run(loaded, "lion", "comparison", methods=list(own), options=own, target=5)
    for one, other in zip(side_by_side.maps.values(), maps.values(), strict=True):
        np.testing.assert_array_equal(one.values, other.values)
    expected = vv.agreement(maps)
    assert (got.names, got.to_words()) == (expected.names, expected.to_words())
    np.testing.assert_array_equal(got.values, expected.values)
    usual = vv.run(loaded, "lion", "agreement", methods=",".join(own), target=5)
    assert (usual.values[0, 1:] != got.values[0, 1:]).any()
    np.testing.assert_array_equal(usual.values[1:, 1:], got.values[1:, 1:])


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"methods": ["relevance", "magic"]}, "There is no method 'magic'"),
        ({"methods": ["relevance", ""]}, "methods cannot be 'relevance,'"),
        ({"methods": ["relevance"], "options": {"rollout": {}}}, "'rollout' is not among the methods"),
        ({"options": {"rollout": {"power": 1}}}, "'rollout' has no option 'power'"),
        ({"options": {"rollout": 0.5}}, "given by name, not as '0.5'"),
        ({"options": [0.5]}, "given by name"),
        ({"methods": "saliency,nothing"}, "There is no method 'nothing'"),
    ],
)
def test_methods_and_options_that_there_are_not_are_refused_before_a_model_is_loaded(
    body: dict[str, Any], error: str
) -> None:
    with pytest.raises(ParameterError, match=re.escape(error)):
        parse_arguments(AGREEMENT, body)


def test_a_comparison_is_slow_only_where_a_method_that_it_names_is() -> None:
    quick, slow = ("", "quick", "rollout,relevance"), ("all", "rollout,saliency")
    for question in (AGREEMENT, COMPARISON):
        for methods in (*quick, *slow):
            assert question.is_slow_with({"methods": methods, "target": 3}) == (methods in slow)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            [[1, 0.95, 0.92, 0.1], [0.95, 1, 0.94, 0.2], [0.92, 0.94, 1, 0.3], [0.1, 0.2, 0.3, 1]],
            "A, B and C look alike (0.92 or more); D agrees least with the others (0.20 in the mean).",
        ),
        ([[1, 0.93], [0.93, 1]], "A and B look alike (0.93)."),
        (
            [[1, 0.4, -0.5], [0.4, 1, 0.3], [-0.5, 0.3, 1]],
            "No two maps look alike: the closest are A and B (0.40); C agrees least with the others (-0.10 in the mean).",
        ),
    ],
)
def test_which_maps_look_alike_is_said_with_numbers(values: list[list[float]], words: str) -> None:
    matrix = np.array(values, np.float32)
    assert Agreement(matrix, tuple("ABCD"[: len(values)]), "", (-1, 1), "").to_words() == words
    beside = np.insert(np.insert(matrix, 1, 0.99, 0), 1, 0.99, 1)  # of a map that is the same everywhere
    tops = np.where(np.isin(np.indices(beside.shape), 1).any(0), np.nan, 0).astype(np.float32)
    names = tuple("A-BCD"[: len(beside)])
    assert Agreement(beside, names, "", (-1, 1), "", top_fifth=tops).to_words() == words
