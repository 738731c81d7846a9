"""Plotly figures: every cell is the right number, every text is escaped, one trace instead of hundreds of subplots."""

from __future__ import annotations

import json

import numpy as np
import pytest

from vit_viz.errors import ParameterError
from vit_viz.render.figures import (
    captioned_figure,
    curve_figure,
    extra_tile,
    position_tile,
    position_tiles,
)
from vit_viz.results import Curve, TokenMatrix

ROWS, COLS = 4, 6


def matrix(rows: int = ROWS, cols: int = COLS, unit: str = "cosine similarity") -> TokenMatrix:
    vectors = np.random.default_rng(0).normal(size=(rows * cols, 8))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    values = vectors @ vectors.T
    return TokenMatrix(values, unit, (-1, 1), True, "positions", (rows, cols), extra={"class": values[0] / 2})


def curve(x_label: str = "share removed", band: bool = False) -> Curve:
    x = np.linspace(0, 1, 5)
    return Curve(x, 1 - x, x_label, "probability", "deletion", band=(x - 0.1, x + 0.1) if band else None)


def all_figures() -> dict[str, object]:
    return {
        "tiles": position_tiles(matrix()),
        "tile": position_tile(matrix(), 1, 2),
        "extra": extra_tile(matrix()),
        "curves": curve_figure({"a": curve(band=True), "b": curve()}),
    }


def test_all_tiles_are_one_trace() -> None:
    figure = position_tiles(matrix(14, 14))
    assert [trace.type for trace in figure.data] == ["heatmap"]


def test_every_cell_is_the_similarity_of_the_positions_that_hovering_names() -> None:
    source = matrix()
    trace = position_tiles(source).data[0]
    seen = set()
    for cell, where in zip(trace.z.reshape(-1), trace.customdata.reshape(-1, 4).astype(int), strict=True):
        if np.isnan(cell):
            continue
        row, col, other_row, other_col = (int(n) for n in where)
        assert cell == source.values[row * COLS + col, other_row * COLS + other_col]
        seen.add((row, col, other_row, other_col))
    assert len(seen) == (ROWS * COLS) ** 2


def test_tiles_lie_where_their_positions_lie_with_a_gap_between() -> None:
    source = matrix()
    cells = position_tiles(source).data[0].z
    assert cells.shape == (ROWS * (ROWS + 1) - 1, COLS * (COLS + 1) - 1)
    assert np.isnan(cells[ROWS]).all()
    assert np.isnan(cells[:, COLS]).all()
    tile = cells[2 * (ROWS + 1) : 2 * (ROWS + 1) + ROWS, 3 * (COLS + 1) : 3 * (COLS + 1) + COLS]
    np.testing.assert_array_equal(tile, source.tile(2, 3))


def test_ticks_name_the_position_of_the_tile_they_stand_at() -> None:
    axis = position_tiles(matrix()).layout.xaxis
    for middle, text in zip(axis.tickvals, axis.ticktext, strict=True):
        assert int(middle) // (COLS + 1) == int(text)


def test_too_many_tiles_are_thinned_out_and_the_axes_say_so() -> None:
    source = matrix(8, 12)
    figure = position_tiles(source, max_cells=3000)
    trace = figure.data[0]
    assert trace.z.size < 1.3 * 3000
    assert "1 in 2 shown" in figure.layout.xaxis.title.text
    for cell, where in zip(trace.z.reshape(-1), trace.customdata.reshape(-1, 4).astype(int), strict=True):
        if not np.isnan(cell):
            row, col, other_row, other_col = (int(n) for n in where)
            assert row % 2 == col % 2 == 0
            assert cell == source.values[row * 12 + col, other_row * 12 + other_col]


def test_position_numbers_above_255_are_not_cut_off() -> None:
    figure = position_tiles(matrix(1, 300), max_cells=10**6)
    assert figure.data[0].customdata[..., 1].max() == 299


def test_the_enlarged_tile_rings_its_own_position() -> None:
    source = matrix()
    heatmap, ring = position_tile(source, 1, 4).data
    np.testing.assert_array_equal(heatmap.z, source.tile(1, 4))
    assert (ring.x, ring.y) == ((4,), (1,))


def test_the_enlarged_tile_has_the_scale_of_all_tiles() -> None:
    tiles, tile = position_tiles(matrix()).data[0], position_tile(matrix(), 0, 0).data[0]
    assert (tiles.zmin, tiles.zmax) == (tile.zmin, tile.zmax)


def test_signed_values_are_centred_at_zero() -> None:
    trace = position_tiles(matrix()).data[0]
    assert trace.zmin == -trace.zmax


def test_the_class_row_is_drawn_over_the_grid() -> None:
    source = matrix()
    np.testing.assert_array_equal(extra_tile(source).data[0].z, source.extra["class"].reshape(ROWS, COLS))


def test_a_missing_row_is_refused_by_name() -> None:
    with pytest.raises(ParameterError, match=r"'register 0'.*class"):
        extra_tile(matrix(), "register 0")


def test_a_position_outside_the_grid_is_refused() -> None:
    with pytest.raises(ParameterError, match="4 x 6"):
        position_tile(matrix(), 4, 0)


@pytest.mark.parametrize("name", all_figures())
def test_figures_fit_both_themes_and_name_their_axes(name: str) -> None:
    figure = all_figures()[name]
    assert figure.layout.paper_bgcolor == "rgba(0, 0, 0, 0)"  # type: ignore[attr-defined]
    assert figure.layout.title.text is None  # type: ignore[attr-defined]
    titled = [figure.layout.xaxis.title.text, figure.layout.yaxis.title.text]  # type: ignore[attr-defined]
    assert all(titled) or name == "bars"
    assert json.loads(figure.to_json())["data"]  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["tiles", "tile", "extra"])
def test_colour_bars_have_numbers_and_a_unit(name: str) -> None:
    bar = all_figures()[name].data[0].colorbar  # type: ignore[attr-defined]
    assert bar.title.text in ("cosine similarity", "change of logit")
    assert len(bar.ticktext) == 3


def test_fourteen_by_fourteen_tiles_stay_under_a_megabyte() -> None:
    assert len(position_tiles(matrix(14, 14)).to_json()) < 1_000_000


def test_the_band_lies_behind_the_curves_and_closes() -> None:
    band, first, second = curve_figure({"a": curve(band=True), "b": curve()}).data
    assert band.fill == "toself"
    assert len(band.x) == 2 * len(first.x)
    np.testing.assert_allclose(band.y[:5] - band.y[5:][::-1], 0.2, rtol=1e-5)
    assert (first.name, second.name) == ("a", "b")


def test_curves_are_told_apart_by_more_than_colour() -> None:
    lines = curve_figure({str(n): curve() for n in range(4)}).data
    assert len({line.line.dash for line in lines}) == 4


def test_curves_of_different_things_are_refused() -> None:
    with pytest.raises(ParameterError, match="2 kinds"):
        curve_figure({"a": curve(), "b": curve("share inserted")})


def test_no_curves_are_refused() -> None:
    with pytest.raises(ParameterError, match="at least one"):
        curve_figure({})


def test_text_from_outside_is_escaped() -> None:
    evil = "<a href='javascript:alert(1)'>x</a>"
    figures = [
        curve_figure({evil: curve(evil)}),
        position_tiles(matrix(unit=evil)),
    ]
    for figure in figures:
        assert "<a href" not in figure.to_json()
        assert "\\u003ca href" not in figure.to_json()


def test_a_saved_figure_holds_its_title_and_its_caption_below_the_axis_and_not_over_the_plot() -> None:
    plain, words = position_tile(matrix(), 1, 2), "Position <1, 2> " + "against all others, " * 9 + "vit_viz"
    figure = captioned_figure(position_tile(matrix(), 1, 2), title="mini: <b>", caption=words)
    (note,) = figure.layout.annotations
    lines = note.text.split("<br>")
    assert " ".join(lines) == words.replace("<1, 2>", "&lt;1, 2&gt;")
    assert max(map(len, lines)) <= 56 + len("&lt;&gt;")
    assert figure.layout.title.text == "mini: &lt;b&gt;"
    more = 17 * len(lines)
    assert figure.layout.margin.b == plain.layout.margin.b + more
    assert figure.layout.height == plain.layout.height + 34 + more  # what is drawn stays as large
    assert (note.y, note.yref, note.yanchor, note.yshift) == (0, "paper", "top", -plain.layout.margin.b)
    assert (note.x, note.xref, note.xanchor, note.xshift) == (0, "paper", "left", 4 - plain.layout.margin.l)
    assert (note.align, note.showarrow) == ("left", False)
    assert (figure.layout.title.x, figure.layout.title.xanchor) == (0, "left")
    assert figure.layout.margin.t == plain.layout.margin.t + 34
    assert not captioned_figure(position_tile(matrix(), 1, 2), title="t").layout.annotations


@pytest.mark.parametrize("name", sorted(all_figures()))
def test_all_figures_share_one_style_and_at_most_the_camera_of_the_tools(name: str) -> None:
    layout = all_figures()[name].layout  # type: ignore[attr-defined]
    assert (layout.font.size, layout.font.family.split(",")[0]) == (12, "system-ui")
    by_the_dialog = layout.meta is not None  # of square cells
    assert ("toimage" in layout.modebar.remove) == by_the_dialog
    assert {"zoom", "pan", "autoscale", "resetscale"} <= set(layout.modebar.remove)


@pytest.mark.parametrize(
    ("rows", "cols", "height"),
    [
        (4, 6, 320 + 130),  # a column of 480 pixels, and 24 + 52 + 54 around it
        (1, 9, 60 + 130),  # never lower than this
        (6, 5, 560 + 130),  # nor higher
    ],
)
def test_a_figure_of_square_cells_is_as_high_as_its_cells_ask_for(rows: int, cols: int, height: int) -> None:
    for figure in (position_tile(matrix(rows, cols), 0, 2), extra_tile(matrix(rows, cols))):
        assert figure.layout.height == height
        assert figure.layout.meta == {"aspect": pytest.approx(rows / cols), "bar": 54}
        assert (figure.layout.yaxis.scaleanchor, figure.layout.yaxis.autorange) == ("x", "reversed")


def test_all_tiles_together_are_as_high_as_their_cells_and_gaps_ask_for() -> None:
    layout = position_tiles(matrix()).layout
    down, across = 4 * 5 - 1, 6 * 7 - 1
    assert layout.height == 480 * down // across + 130
    assert layout.meta["aspect"] == pytest.approx(down / across)
