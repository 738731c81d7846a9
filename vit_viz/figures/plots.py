"""Axes that answer the pointer, for the photos of a survey. The only door to plotly.

The background is transparent, and the ink can be read on white and on near-black (the page gives it its own, see
vit_viz/ui/kit/kit.css).
"""

from __future__ import annotations

import gzip
from functools import cache

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs, get_plotlyjs_version

VERSION = str(get_plotlyjs_version())
"""Of plotly for the browser."""

_INK = "#767676"  # 4.5 against white, 4.2 against the dark theme's ground
_LINE = "rgba(128, 128, 128, 0.35)"
_CLEAR = "rgba(0, 0, 0, 0)"
_RIGHT, _WRONG = "#009e73", "#cc79a7"  # after Okabe and Ito; not orange or blue, which mean more and less
_FONT = "system-ui, -apple-system, Segoe UI, Roboto, sans-serif"
_TYPE = 12  # --vv-type-small of the page
_TOOLS = (
    *("zoom", "pan", "select", "lasso", "zoomin", "zoomout", "autoscale", "resetscale"),
    *("hoverclosest", "hovercompare", "toimage"),
)


@cache
def script(*, packed: bool) -> bytes:
    """plotly itself, as browsers run it; packed: by gzip."""
    content = str(get_plotlyjs()).encode()
    return gzip.compress(content, 6, mtime=0) if packed else content


def photo_scatter() -> go.Figure:
    """Axes, legend and brush for the photos of a survey by two of its numbers; web/survey/scatter.js paints the dots.

    Three traces without points, for the legend: right, wrong, no label.
    """
    traces = [
        go.Scatter(
            x=[None],
            y=[None],
            name=name,
            mode="markers",
            marker={"color": colour, "size": 7, "symbol": symbol, "line": {"width": 0}},
            hoverinfo="skip",
        )
        for name, colour, symbol in (
            ("right", _RIGHT, "circle"),
            ("wrong", _WRONG, "diamond"),
            ("no label", _INK, "circle"),
        )
    ]
    figure = go.Figure(data=traces, layout={"template": "none"})  # whose colours would fit one theme only
    figure.update_layout(
        height=420,
        plot_bgcolor=_CLEAR,
        paper_bgcolor=_CLEAR,
        font={"color": _INK, "size": _TYPE, "family": _FONT},
        modebar={"remove": list(_TOOLS), "bgcolor": _CLEAR, "color": _INK, "activecolor": _INK},
        margin={"l": 56, "r": 24, "t": 24, "b": 52},
        dragmode=False,
        showlegend=True,
        legend={
            "orientation": "h",
            "x": 0,
            "y": 1,
            "yanchor": "bottom",
            "itemclick": False,
            "itemdoubleclick": False,
        },
    )
    figure.update_xaxes(zeroline=False, gridcolor=_LINE, automargin=True)
    figure.update_yaxes(zeroline=False, gridcolor=_LINE, automargin=True)
    return figure
