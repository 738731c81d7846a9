"""Colour tables against matplotlib and colour science; scaling against hand cases."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from vit_viz.errors import ParameterError
from vit_viz.figures.colormaps import TABLES, apply, grid_limits, indices, limits, table

Floats = NDArray[np.float64]

# linear RGB as people without green or red cones see it: Machado, Oliveira & Fernandes 2009, severity 1
DEUTERANOPIA = np.array(
    [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
)
PROTANOPIA = np.array(
    [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
)


def linear(colours: NDArray[np.uint8]) -> Floats:
    share = colours / 255
    return np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)


def lightness(colours: NDArray[np.uint8]) -> Floats:
    """CIE L* of sRGB colours."""
    luminance = linear(colours) @ [0.2126, 0.7152, 0.0722]
    return np.where(luminance > 216 / 24389, 116 * np.cbrt(luminance) - 16, luminance * 24389 / 27)


def oklab(rgb: Floats) -> Floats:
    """OKLab of linear RGB (Ottosson 2020)."""
    cones = np.array(
        [
            [0.4122214708, 0.5363325363, 0.0514459929],
            [0.2119034982, 0.6806995451, 0.1073969566],
            [0.0883024619, 0.2817188376, 0.6299787005],
        ]
    )
    mix = np.array(
        [
            [0.2104542553, 0.7936177850, -0.0040720468],
            [1.9779984951, -2.4285922050, 0.4505937099],
            [0.0259040371, 0.7827717662, -0.8086757660],
        ]
    )
    return np.cbrt(np.clip(rgb, 0, None) @ cones.T) @ mix.T


@pytest.mark.parametrize("name", ["viridis", "magma", "cividis"])
def test_tables_equal_matplotlibs(name: str) -> None:
    matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is the oracle of the colour tables")
    expected = np.round(np.array(matplotlib.colormaps[name].colors) * 255)
    np.testing.assert_array_equal(table(name), expected)


@pytest.mark.parametrize("name", ["viridis", "magma", "cividis", "gray"])
def test_sequential_tables_only_get_lighter(name: str) -> None:
    # a step of one in 255 may round the wrong way; four steps never do
    assert (np.diff(lightness(table(name))) > -0.3).all()
    assert (lightness(table(name))[4:] > lightness(table(name))[:-4]).all()


def test_diverging_table_is_neutral_in_its_centre_and_equally_light_on_both_sides() -> None:
    colours = table("diverging")
    assert len(set(colours[127].tolist())) == 1
    assert (colours[127] == colours[128]).all()
    np.testing.assert_allclose(lightness(colours), lightness(colours[::-1]), atol=4)
    assert (lightness(colours)[4:128] > lightness(colours)[:124]).all()


def test_diverging_table_has_equal_steps() -> None:
    places = oklab(linear(table("diverging")))
    blue, orange = places[:128], places[128:]
    steps = np.concatenate([np.linalg.norm(side[8:] - side[:-8], axis=1) for side in (blue, orange)])
    np.testing.assert_allclose(steps, steps.mean(), rtol=0.08)


@pytest.mark.parametrize("eye", [DEUTERANOPIA, PROTANOPIA])
def test_colour_blind_people_can_tell_the_signs_of_the_diverging_table(eye: Floats) -> None:
    seen = oklab(linear(table("diverging")) @ eye.T)
    apart = np.linalg.norm(seen - seen[::-1], axis=1)
    assert (apart[:97] > 0.08).all()  # ten times a step that is just seen, from a quarter of the scale on


def test_tables_cannot_be_written_to() -> None:
    for name in TABLES:
        with pytest.raises(ValueError, match="read-only"):
            table(name)[0, 0] = 1


def test_unknown_table_is_refused_by_name() -> None:
    with pytest.raises(ParameterError, match="'jet'"):
        table("jet")  # type: ignore[arg-type]


def test_values_land_where_the_scale_says() -> None:
    np.testing.assert_array_equal(indices([2.0, 2.5, 3.0, 4.0], vmin=2, vmax=4), [0, 64, 128, 255])


def test_values_beyond_the_scale_get_its_ends() -> None:
    np.testing.assert_array_equal(indices([-9.0, 9.0], vmin=0, vmax=1), [0, 255])


def test_colours_are_those_of_the_table() -> None:
    drawn = apply(np.array([[-1.0, 0.0, 1.0]]), vmin=-1, vmax=1, table="diverging")
    np.testing.assert_array_equal(drawn[0], table("diverging")[[0, 128, 255]])


def test_constant_map_is_drawn_in_the_middle() -> None:
    np.testing.assert_array_equal(indices([0.3, 0.3], vmin=0.3, vmax=0.3), [128, 128])
    np.testing.assert_array_equal(indices([0.2, 0.4], vmin=0.3, vmax=0.3), [0, 255])


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_values_that_are_no_numbers_are_refused_and_counted(wrong: float) -> None:
    with pytest.raises(ParameterError, match="1 of 3 values"):
        apply([0.0, wrong, 1.0], vmin=0, vmax=1)


@pytest.mark.parametrize("ends", [(1.0, 0.0), (0.0, np.inf), (np.nan, 1.0)])
def test_a_scale_needs_finite_ends_in_order(ends: tuple[float, float]) -> None:
    with pytest.raises(ParameterError, match="colour scale"):
        indices([0.5], vmin=ends[0], vmax=ends[1])


def test_limits_are_the_extrema_and_signed_ones_are_centred() -> None:
    assert limits([0.25, -0.5, 0.125]) == (-0.5, 0.25)
    assert limits([0.25, -0.5, 0.125], signed=True) == (-0.5, 0.5)


def test_limits_of_nothing_are_refused() -> None:
    with pytest.raises(ParameterError, match="at least one"):
        limits([])


def test_grid_limits_equal_limits_of_what_shares_a_scale() -> None:
    maps = np.random.default_rng(0).normal(size=(3, 5, 4, 6))
    shared = grid_limits(maps, scale="shared")
    layer = grid_limits(maps, scale="layer")
    own = grid_limits(maps, scale="own")
    for at in np.ndindex(3, 5):
        np.testing.assert_array_equal(shared[at], limits(maps))
        np.testing.assert_array_equal(layer[at], limits(maps[at[0]]))
        np.testing.assert_array_equal(own[at], limits(maps[at]))


def test_unknown_scale_is_refused() -> None:
    with pytest.raises(ParameterError, match="shared, layer, own"):
        grid_limits(np.zeros((1, 1, 2, 2)), scale="global")  # type: ignore[arg-type]


@pytest.mark.parametrize("maps", [np.zeros((2, 3)), np.zeros((2, 0, 3))])
def test_a_grid_has_layers_heads_and_values(maps: Floats) -> None:
    with pytest.raises(ParameterError, match=f"not {maps.ndim} axes"):
        grid_limits(maps, scale="own")


def test_a_maps_own_scale_hides_its_size_and_offset() -> None:
    values = np.random.default_rng(1).random((4, 6))
    other = 5 * values - 2
    first, second = limits(values), limits(other)
    drawn = indices(values, vmin=first[0], vmax=first[1]).astype(int)
    assert abs(drawn - indices(other, vmin=second[0], vmax=second[1])).max() <= 1
