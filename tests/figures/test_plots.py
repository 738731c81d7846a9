"""Plotly figures: every curve has the right numbers, every text is escaped."""

from __future__ import annotations

import json

import numpy as np
import pytest

from vit_viz.errors import ParameterError
from vit_viz.figures.plots import captioned_figure, curve_figure, photo_scatter
from vit_viz.results import Curve


def curve(x_label: str = "share removed", band: bool = False) -> Curve:
    x = np.linspace(0, 1, 5)
    return Curve(x, 1 - x, x_label, "probability", "deletion", band=(x - 0.1, x + 0.1) if band else None)


def all_figures() -> dict[str, object]:
    return {"curves": curve_figure({"a": curve(band=True), "b": curve()}), "photos": photo_scatter()}


@pytest.mark.parametrize("name", all_figures())
def test_figures_fit_both_themes_and_name_their_axes(name: str) -> None:
    figure = all_figures()[name]
    assert figure.layout.paper_bgcolor == "rgba(0, 0, 0, 0)"  # type: ignore[attr-defined]
    assert figure.layout.title.text is None  # type: ignore[attr-defined]
    titled = [figure.layout.xaxis.title.text, figure.layout.yaxis.title.text]  # type: ignore[attr-defined]
    assert all(titled) or name == "photos"  # whose axes the page names
    assert json.loads(figure.to_json())["data"]  # type: ignore[attr-defined]


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
    figure = curve_figure({evil: curve(evil)})
    assert "<a href" not in figure.to_json()
    assert "\\u003ca href" not in figure.to_json()


def test_a_saved_figure_holds_its_title_and_its_caption_below_the_axis_and_not_over_the_plot() -> None:
    plain, words = curve_figure({"a": curve()}), "Position <1, 2> " + "against all others, " * 9 + "vit_viz"
    figure = captioned_figure(curve_figure({"a": curve()}), title="mini: <b>", caption=words)
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
    assert not captioned_figure(curve_figure({"a": curve()}), title="t").layout.annotations


@pytest.mark.parametrize("name", sorted(all_figures()))
def test_all_figures_share_one_style_and_at_most_the_camera_of_the_tools(name: str) -> None:
    layout = all_figures()[name].layout  # type: ignore[attr-defined]
    assert (layout.font.size, layout.font.family.split(",")[0]) == (12, "system-ui")
    assert ("toimage" in layout.modebar.remove) == (name == "photos")
    assert {"zoom", "pan", "autoscale", "resetscale"} <= set(layout.modebar.remove)
