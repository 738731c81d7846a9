"""Names of heads over many photos, of a survey of 2 layers and 3 heads whose numbers are written down here."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("duckdb", reason="surveys are opened by duckdb, which is not installed here")

from vit_viz.surveys import atlas

ROWS = np.array([0, 1, 3, 4])  # photo 2 is filtered out
DIAGONAL = 26.0  # between the outermost of 4 x 6 patches of 8 x 2 pixels: 24 down, 10 across
PATCH = (8, 2)


def sums(share, photos=5, patches=24):
    """Of a head whose maps' variance the place explains this share of."""
    mean = np.linspace(0, 1, patches)
    flat = patches * mean.mean() ** 2
    whole = (mean @ mean - flat) / share
    return photos, photos * mean, photos * (whole + flat)


def of_heads(*numbers):
    """[photos, layers, heads] from the four photos of each of six heads; photo 2 would change every mean."""
    chosen = np.array(numbers, np.float32).T.reshape(4, 2, 3)
    return np.insert(chosen, 2, 90.0, axis=0)


@pytest.fixture
def survey():
    none, even = [0.0] * 4, [0.5] * 4
    return SimpleNamespace(
        num_layers=2,
        num_heads=3,
        heads={
            "prefix_mass": of_heads([0.25, 0.75, 0.5, 0.5], none, none, none, [0.75] * 4, [0.375] * 4),
            "distance": DIAGONAL * of_heads(even, even, [0.125, 0.0625, 0.25, 0.0625], even, even, even),
            "entropy": of_heads(even, even, even, [0.9375, 0.875, 0.8125, 0.9375], even, even),
        },
        places={"rows": np.full(5, 4.0), "cols": np.full(5, 6.0)},
        map_sums={
            (layer, head, 4, 6): sums(0.75 if (layer, head) == (1, 2) else 0.25)
            for layer, head in np.ndindex(2, 3)
        },
    )


def test_the_first_rule_that_holds_names_the_head_of_that_layer(survey):
    found = [(one.layer, one.head, one.name) for one in atlas.names(survey, ROWS, patch_size=PATCH)]
    assert found == [
        (0, 0, "prefix reader"),
        (0, 1, "depends on the photo"),
        (0, 2, "local"),
        (1, 0, "global"),
        (1, 1, "prefix reader"),
        (1, 2, "positional"),
    ]


def test_the_sentence_has_the_number_that_decided_and_its_threshold(survey):
    said = [one.sentence for one in atlas.names(survey, ROWS, patch_size=PATCH)]
    place = "of the variance of its output's maps over all photos is explained by the place"
    assert said == [
        "0.50 of the attention of patches falls on tokens that are no patches (at least 0.5).",
        f"Only 0.25 {place}.",
        "0.12 of the largest distance between patches (at most 0.2).",
        "0.11 from even attention (at most 0.13).",
        "0.75 of the attention of patches falls on tokens that are no patches (at least 0.5).",
        f"0.75 {place} (at least 0.5).",
    ]


def test_the_evidence_is_the_share_of_photos_and_thin_where_a_tenth_decides(survey):
    found = [(one.evidence, one.is_thin) for one in atlas.names(survey, ROWS, patch_size=PATCH)]
    assert found == [(0.75, True), (None, False), (0.75, False), (0.75, False), (1.0, False), (None, False)]


def test_a_name_that_an_easier_threshold_would_give_makes_the_evidence_thin(survey):
    survey.map_sums[1, 2, 4, 6] = sums(0.54)
    survey.map_sums[0, 1, 4, 6] = sums(0.46)
    found = atlas.names(survey, ROWS, patch_size=PATCH)
    assert (found[5].name, found[5].is_thin) == ("positional", True)
    assert (found[1].name, found[1].is_thin) == ("depends on the photo", True)


def test_a_photo_of_which_a_number_is_not_known_is_no_evidence(survey):
    survey.heads["prefix_mass"][0, 0, 0] = np.nan  # of 0.25
    first = atlas.names(survey, ROWS, patch_size=PATCH)[0]
    assert (first.name, first.evidence) == ("prefix reader", 1.0)
    assert first.sentence.startswith("0.58 ")


def test_distances_are_shares_of_each_photos_own_diagonal(survey):
    survey.places = {"rows": np.array([4.0, 2, 9, 4, 4]), "cols": np.array([6.0, 1, 9, 6, 6])}
    pixels = survey.heads["distance"][:, 0, 2]
    pixels[1] = 0.0625 * 8  # 2 x 1 patches are 8 pixels apart
    assert atlas.names(survey, ROWS, patch_size=PATCH)[2].sentence.startswith("0.12 ")
    survey.places["rows"][1] = 1  # a single patch, at no distance from itself
    pixels[1] = 0
    found = atlas.names(survey, ROWS, patch_size=PATCH)[2]
    assert (found.name, found.sentence[:5]) == ("local", "0.11 ")


def test_too_few_photos_leave_a_head_unnamed(survey):
    survey.map_sums = {key: sums(0.75, photos=1) for key in survey.map_sums}
    found = atlas.names(survey, ROWS, patch_size=PATCH)
    assert [one.name for one in found[3:]] == ["global", "prefix reader", "unnamed"]
    last = found[-1]
    assert (last.layer, last.head, last.sentence) == (1, 2, "Too few photos to tell.")
    assert (last.evidence, last.is_thin) == (None, True)


def test_without_a_photo_only_what_is_of_all_photos_is_said(survey):
    found = atlas.names(survey, ROWS[:0], patch_size=PATCH)
    assert [one.name for one in found] == [
        *["depends on the photo"] * 5,
        "positional",
    ]


def test_grids_count_by_their_number_of_photos(survey):
    survey.map_sums = {
        (0, 1, 4, 6): sums(0.75, photos=9),
        (0, 1, 5, 3): sums(0.25, photos=3, patches=15),
        (0, 1, 2, 7): sums(0.9, photos=1, patches=14),
        (1, 0, 4, 6): sums(0.25, photos=2),
    }
    expected = np.full((2, 3), np.nan)
    expected[0, 1], expected[1, 0] = (9 * 0.75 + 3 * 0.25) / 12, 0.25
    np.testing.assert_allclose(atlas.positional_shares(survey), expected, rtol=1e-12)


def test_the_place_explains_nothing_of_maps_that_are_even(survey):
    even = np.full(24, 1 / 24)
    survey.map_sums = {(1, 2, 4, 6): (7, 7 * even, 7 * float(even @ even))}
    assert atlas.positional_shares(survey)[1, 2] == 0
