"""Result values refuse what cannot be drawn honestly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import vit_viz as vv
from vit_viz.answer import Answer, Provenance
from vit_viz.errors import ParameterError
from vit_viz.results import Curve, HeadTable, PatchMap, Ranking, TokenMatrix


def patch_map(values: Any, **options: Any) -> PatchMap:
    defaults = {
        "unit": "weight",
        "value_range": (0, 1),
        "signed": False,
        "method": "test",
        "class_blind": True,
    }
    return PatchMap(values, **(defaults | options))


def test_values_are_a_read_only_copy() -> None:
    values = np.zeros((2, 3))
    result = patch_map(values)
    values[0, 0] = 7
    assert result.values[0, 0] == 0
    with pytest.raises(ValueError, match="read-only"):
        result.values[0, 0] = 1


@dataclass(frozen=True, eq=False, repr=False)
class Parts(Answer):
    """A kind that says nothing of how it is kept."""

    values: Any
    named: Any
    within: tuple[Any, ...] = ()


def test_what_is_kept_is_written_to_by_nobody_who_got_it() -> None:
    given = {"class": np.ones(2)}
    parts = Parts(np.zeros(3), given, (np.zeros(1),))
    given["other"] = np.ones(2)
    assert list(parts.named) == ["class"]
    for array in (parts.values, parts.named["class"], parts.within[0]):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(TypeError):
        parts.named["class"] = 0


def test_what_was_answered_is_answered_again_whatever_was_done_with_it() -> None:
    first = vv.run("mini", "twins", "mosaic")
    before = first.values.copy()
    with pytest.raises(ValueError, match="read-only"):
        first.values[:] = 0
    assert np.array_equal(vv.run("mini", "twins", "mosaic").values, before)


@pytest.mark.parametrize("stability", [-1.01, 1.01, float("nan")])
def test_a_stability_is_a_correlation(stability: float) -> None:
    assert patch_map([[0.0]], stability=-1.0).stability == -1
    with pytest.raises(ParameterError, match="correlation from -1 to 1"):
        patch_map([[0.0]], stability=stability)


def test_peak_is_the_first_of_equals() -> None:
    assert patch_map([[0, 2, 1], [0, 2, 0]]).peak == (0, 1)


def test_what_only_rounding_tells_apart_has_no_peak() -> None:
    one, next_one = np.float32(0.0352), np.nextafter(np.float32(0.0352), np.float32(1))
    assert patch_map([[one, next_one, one]]).peak is None
    assert patch_map([[one, one * np.float32(1.00001), one]]).peak == (0, 1)


@pytest.mark.parametrize(
    ("values", "signed", "words"),
    [
        ([[0, 2, 1], [0, 2, 0]], False, "Half of the map lies on 2 of 6 patches; most on patch (0, 1)."),
        ([[-9, 1, 4]], True, "Half of what is above 0 lies on 1 of 3 patches; most on patch (0, 2)."),
        ([[-2, -1]], True, ""),
        ([[3, 3, 3]], False, "The map is the same everywhere: it has no peak."),
    ],
)
def test_a_map_says_on_how_few_patches_half_of_it_lies(values: Any, signed: bool, words: str) -> None:
    assert patch_map(values, signed=signed).to_words() == words


@pytest.mark.parametrize("values", [[1.0, 2.0], [[np.nan]]])
def test_unusable_values_are_refused(values: Any) -> None:
    with pytest.raises(ParameterError):
        patch_map(values)


def test_empty_value_range_is_refused() -> None:
    with pytest.raises(ParameterError, match="range"):
        patch_map([[0.0]], value_range=(1, 1))
    with pytest.raises(ParameterError, match="range"):
        HeadTable([[0.0]], "nats", (1, 0), False, "entropy")  # type: ignore[arg-type]


def test_tile_is_the_row_of_a_position() -> None:
    values = np.arange(36).reshape(6, 6)
    matrix = TokenMatrix(values, "cosine", (0, 40), False, "positions", grid=(2, 3))
    assert repr(matrix).startswith("TokenMatrix(positions: 2 x 3 positions, ")
    assert matrix.tile(1, 2).tolist() == values[5].reshape(2, 3).tolist()
    with pytest.raises(ParameterError, match="2 x 3"):
        matrix.tile(2, 0)


def test_matrix_must_fit_its_grid() -> None:
    with pytest.raises(ParameterError, match="6 x 6"):
        TokenMatrix(np.zeros((5, 5)), "cosine", (-1, 1), True, "positions", grid=(2, 3))


def test_curve_and_band_have_one_length() -> None:
    with pytest.raises(ParameterError, match="as many"):
        Curve(np.zeros(3), np.zeros(4), "x", "y", "deletion")
    with pytest.raises(ParameterError, match="band"):
        Curve(np.zeros(3), np.zeros(3), "x", "y", "deletion", band=(np.zeros(2), np.zeros(3)))


def test_ranking_needs_a_name_for_each_score() -> None:
    with pytest.raises(ParameterError, match="2 and 1"):
        Ranking(("lion", "cougar"), np.ones(1), "probability", "top classes")


def test_provenance_parameters_are_replaced_not_repeated() -> None:
    provenance = Provenance(model="mini").with_parameters(layer=1).with_parameters(layer=2, head=0)
    assert provenance.to_dict()["parameters"] == {"layer": "2", "head": "0"}
