"""Maps as shares, subtracted: worked by hand, as an identity, and against loops over the patches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import vit_viz as vv
from tests.analyses.conftest import patch_map
from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.share_maps import class_difference, own_parts, shares
from vit_viz.errors import ParameterError

pytestmark = pytest.mark.numbers


def test_two_classes_are_subtracted_as_shares_by_hand() -> None:
    one, other = patch_map(np.array([[1, 3], [0, 0]])), patch_map(np.array([[20, 0], [0, 60]]))
    got = class_difference(one, other, names=("cat", "dog"))
    np.testing.assert_allclose(got.values, [[0.25 - 0.25, 0.75], [0, -0.75]], atol=1e-7)
    assert got.signed
    assert "for cat less share of the map for dog" in got.caption


def test_a_map_of_both_signs_counts_by_its_magnitudes() -> None:
    signed = replace(patch_map([[-3, 1, 0], [0, 4, -2]]), signed=True, stability=0.5, class_blind=False)
    even = patch_map([[0.01, 0.01, 0.01], [0.03, 0.02, 0.02]])
    np.testing.assert_allclose(shares(signed).values, [[-0.3, 0.1, 0], [0, 0.4, -0.2]], atol=1e-7)
    np.testing.assert_allclose(shares(even).values, [[0.1, 0.1, 0.1], [0.3, 0.2, 0.2]], atol=1e-7)
    assert (shares(signed).value_range, shares(even).value_range) == ((-1, 1), (0, 1))
    zeros = patch_map(np.zeros((2, 3)))
    assert not shares(zeros).values.any()
    less, plain = (class_difference(one, even, names=("a", "b")) for one in (signed, even))
    np.testing.assert_allclose(less.values, [[-0.4, 0, -0.1], [-0.3, 0.2, -0.4]], atol=1e-7)
    assert (less.value_range, plain.value_range) == ((-2, 2), (-1, 1))
    assert (less.stability, less.signed, plain.signed, plain.class_blind) == (None, True, True, False)


@pytest.mark.parametrize("pair", [("lion", "cougar"), ("cougar", "banana")])
def test_the_difference_of_a_real_photo_is_that_of_its_two_maps_and_sums_to_zero(
    pair: tuple[str, str],
) -> None:
    difference = vv.run("mini", "lion", "class_difference", target=pair)
    got, find = difference.values, vv.load("mini").labels.find  # type: ignore[union-attr]
    assert dict(difference.provenance.parameters)["target"] == "-".join(str(find(name)) for name in pair)
    one, other = (vv.explain("mini", "lion", target=name)["relevance"].values for name in pair)
    for place in np.ndindex(got.shape):
        expected = one[place] / one.sum() - other[place] / other.sum()
        assert got[place] == pytest.approx(expected, abs=1e-6)
    assert got.sum() == pytest.approx(0, abs=1e-5)
    turned = vv.run("mini", "lion", "class_difference", target=pair[::-1]).values
    np.testing.assert_allclose(turned, -got, atol=1e-6)


def test_without_a_second_class_the_strongest_of_the_rest_is_set_against_it() -> None:
    got = vv.run("mini", "lion", "class_difference")
    assert "for lion less share of the map for cougar" in got.caption


def test_a_class_is_not_set_against_itself_nor_by_a_method_that_sees_no_class() -> None:
    with pytest.raises(ParameterError, match="class 3 twice"):
        vv.run("mini", "lion", "class_difference", target=(3, 3))
    with pytest.raises(ParameterError, match="nothing to subtract"):
        vv.run("mini", "lion", "class_difference", method="rollout")
    with pytest.raises(ParameterError, match="one grid"):
        class_difference(patch_map(np.ones((2, 3))), patch_map(np.ones((3, 2))), names=("a", "b"))


def test_what_only_a_method_says_is_nothing_where_all_say_the_same() -> None:
    values = np.random.default_rng(3).random((3, 5)).astype(np.float32)
    same = own_parts({"one": patch_map(values), "scaled": patch_map(7 * values)})
    assert all(np.abs(one.values).max() < 1e-6 for one in same.maps.values())
    apart = own_parts({"left": patch_map(np.array([[1, 0]])), "right": patch_map(np.array([[0, 4]]))})
    np.testing.assert_allclose(apart.maps["left"].values, [[0.5, -0.5]], atol=1e-7)
    np.testing.assert_allclose(apart.maps["right"].values, [[-0.5, 0.5]], atol=1e-7)
    with pytest.raises(ParameterError, match="one at least"):
        own_parts({})


def test_what_only_a_method_says_sums_to_nothing_over_the_methods() -> None:
    maps = vv.run("mini", "lion", "comparison").maps
    own = {
        name: vv.run("mini", "lion", "own_part", method=name).values for name in maps if name in METHODS.quick
    }
    for row, col in ((0, 0), (7, 9), (15, 3)):
        at = [one.values[row, col] / np.abs(one.values).sum() for one in maps.values()]
        for name, one in maps.items():
            expected = one.values[row, col] / np.abs(one.values).sum() - sum(at) / len(at)
            assert own[name][row, col] == pytest.approx(expected, abs=1e-6)
    assert np.abs(np.sum(list(own.values()), axis=0)).max() < 1e-6
    with pytest.raises(ParameterError, match="takes long"):
        vv.run("mini", "lion", "own_part", method="saliency")


def test_what_is_said_of_tokens_beside_the_patches_is_no_share_of_a_difference() -> None:
    values = np.array([[1, 3, 2]])
    blind = replace(patch_map(values, class_blind=True), prefix={"class": 0.3}, suffix={"end": 0.1})
    own = own_parts({"blind": blind, "other": patch_map(values[:, ::-1])}).maps["blind"]
    assert (own.prefix, own.suffix, own.class_blind) == ({}, {}, False)
    assert "less the mean of 2 methods" in own.caption
    with pytest.raises(ParameterError, match="one method"):
        class_difference(patch_map(values), patch_map(values, method="another"), names=("a", "b"))


def test_what_only_a_method_says_is_of_the_options_that_are_asked_for() -> None:
    own, changed = (
        vv.run("mini", "lion", "own_part", method="rollout", options=how) for how in ({}, {"discard": 0.5})
    )
    one, other = (shares(vv.run("mini", "lion", "rollout", discard=share)).values for share in (0.0, 0.5))
    assert np.abs(other - one).max() > 1e-4
    np.testing.assert_allclose(changed.values - own.values, other - one, atol=1e-6)
    assert changed.caption == own.caption


def test_what_only_a_method_says_of_a_class_is_less_the_mean_of_maps_of_that_class() -> None:
    maps = vv.run("mini", "lion", "comparison", target="banana").maps
    own = vv.run("mini", "lion", "own_part", method="relevance", target="banana").values
    mean = np.mean([shares(one).values for one in maps.values()], axis=0)
    np.testing.assert_allclose(own, shares(maps["relevance"]).values - mean, atol=1e-6)
