"""Plotly's figure: it fits both themes, and has none of plotly's tools."""

from __future__ import annotations

import json

from vit_viz.figures.plots import photo_scatter


def test_the_figure_fits_both_themes_and_the_page_names_its_axes() -> None:
    layout = photo_scatter().layout
    assert (layout.paper_bgcolor, layout.plot_bgcolor) == ("rgba(0, 0, 0, 0)", "rgba(0, 0, 0, 0)")
    assert layout.title.text is None
    assert [layout.xaxis.title.text, layout.yaxis.title.text] == [None, None]
    assert (layout.font.size, layout.font.family.split(",")[0]) == (12, "system-ui")
    assert {"zoom", "pan", "autoscale", "resetscale", "toimage"} <= set(layout.modebar.remove)


def test_the_legend_tells_photos_apart_by_more_than_colour() -> None:
    traces = json.loads(photo_scatter().to_json())["data"]
    assert [one["name"] for one in traces] == ["right", "wrong", "no label"]
    marks = {(one["marker"]["color"], one["marker"]["symbol"]) for one in traces}
    assert len(marks) == 3
    assert traces[0]["marker"]["symbol"] != traces[1]["marker"]["symbol"]
