"""Figures with axes that answer the pointer: curves, photos of a survey. The only door to plotly.

Every figure has a transparent background, ink that can be read on white and on near-black (the page gives it its own, see
vit_viz/ui/kit/kit.css) and titled axes. Of plotly's tools it has the camera, beside the title; what the camera saves holds title
and caption. Its data travel as typed arrays.
"""

from __future__ import annotations

import html
import textwrap
from collections.abc import Mapping
from typing import Any

import numpy as np
import plotly.graph_objects as go

from vit_viz.errors import ParameterError
from vit_viz.results import Curve

_INK = "#767676"  # 4.5 against white, 4.2 against the dark theme's ground
_LINE = "rgba(128, 128, 128, 0.35)"
_BAND = "rgba(128, 128, 128, 0.25)"
_CLEAR = "rgba(0, 0, 0, 0)"
_LINES = ("#3b82c4", "#d55e00", "#009e73", "#c96a9c", "#b07d00", "#7a6fd0")  # after Okabe and Ito
_DASHES = ("solid", "dash", "dot", "dashdot")
_FONT = "system-ui, -apple-system, Segoe UI, Roboto, sans-serif"
_TYPE, _TITLE = 12, 14  # --vv-type-small and --vv-type of the page
_LINE_HEIGHT = 17
_ABOVE, _BELOW = 24, 52  # pixels of the margins
_LONGEST_LINE = 56  # characters of a caption, so that its lines end within a phone's screen
_TOOLS = (
    "zoom",
    "pan",
    "select",
    "lasso",
    "zoomin",
    "zoomout",
    "autoscale",
    "resetscale",
    "hoverclosest",
    "hovercompare",
)


def curve_figure(curves: Mapping[str, Curve]) -> go.Figure:
    """Curves over one pair of axes, told apart by colour and dash; the band of the first curve that has one lies behind.

    Args:
        curves: by name, as the legend shows it; all with the same labels of axes.

    Raises:
        ParameterError: there is no curve, or two curves measure different things.
    """
    if not curves:
        raise ParameterError("A figure of curves needs at least one curve.")
    labels = {(curve.x_label, curve.y_label) for curve in curves.values()}
    if len(labels) > 1:
        raise ParameterError(
            f"Curves in one figure share their axes; these have {len(labels)} kinds of axes."
        )
    figure = _blank()
    banded = next(((curve.x, curve.band) for curve in curves.values() if curve.band is not None), None)
    if banded is not None:
        x, (low, high) = banded
        figure.add_trace(
            go.Scatter(
                x=np.concatenate([x, x[::-1]]),
                y=np.concatenate([high, low[::-1]]),  # one closed outline
                fill="toself",
                fillcolor=_BAND,
                line={"width": 0},
                mode="lines",
                name="random order, 95%",
                hoverinfo="skip",
            )
        )
    for place, (name, curve) in enumerate(curves.items()):
        figure.add_trace(
            go.Scatter(
                x=curve.x,
                y=curve.y,
                mode="lines",
                name=html.escape(name),
                line={
                    "color": _LINES[place % len(_LINES)],
                    "dash": _DASHES[place % len(_DASHES)],
                    "width": 2,
                },
                hovertemplate="%{x:.3g}: %{y:.4g}",
            )
        )
    ((x_label, y_label),) = labels
    figure.update_xaxes(title_text=html.escape(x_label))
    figure.update_yaxes(title_text=html.escape(y_label))
    figure.update_layout(legend={"orientation": "h", "y": -0.25}, hovermode="x unified")
    return _finished(figure, 380)


def captioned_figure(figure: go.Figure, *, title: str, caption: str = "") -> go.Figure:
    """A figure with a title above and a caption below, both inside, so that a saved picture has them, too."""
    lines = [html.escape(line) for line in textwrap.wrap(caption, _LONGEST_LINE, break_on_hyphens=False)]
    below, more = figure.layout.margin.b, _LINE_HEIGHT * len(lines)
    figure.update_layout(
        title={"text": html.escape(title), "font": {"size": _TITLE}, "x": 0, "xanchor": "left"},
        margin={"t": figure.layout.margin.t + 2 * _LINE_HEIGHT, "b": below + more},
        height=figure.layout.height + 2 * _LINE_HEIGHT + more,
    )
    if lines:
        place = {"xref": "paper", "x": 0, "xanchor": "left", "yref": "paper", "y": 0, "yanchor": "top"}
        figure.add_annotation(
            text="<br>".join(lines),
            align="left",
            showarrow=False,
            xshift=4 - figure.layout.margin.l,
            yshift=-below,
            **place,
        )
    return figure


def photo_scatter() -> go.Figure:
    """Axes, legend and brush for the photos of a survey by two of its numbers; ui/survey/scatter.js paints the dots.

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
            ("right", _LINES[0], "circle"),
            ("wrong", _LINES[1], "diamond"),
            ("no label", _INK, "circle"),
        )
    ]
    figure = _finished(_blank(*traces), 420)
    legend = {
        "orientation": "h",
        "x": 0,
        "y": 1,
        "yanchor": "bottom",
        "itemclick": False,
        "itemdoubleclick": False,
    }
    return figure.update_layout(showlegend=True, legend=legend, modebar={"remove": [*_TOOLS, "toimage"]})


def _blank(*traces: Any) -> go.Figure:
    """A figure without plotly's own template, whose colours would fit one theme only."""
    return go.Figure(data=list(traces), layout={"template": "none", "plot_bgcolor": _CLEAR})


def _finished(figure: go.Figure, height: int) -> go.Figure:
    """What all figures share: no background of their own, quiet lines, room for the labels."""
    figure.update_layout(
        height=height,
        paper_bgcolor=_CLEAR,
        font={"color": _INK, "size": _TYPE, "family": _FONT},
        modebar={"remove": list(_TOOLS), "bgcolor": _CLEAR, "color": _INK, "activecolor": _INK},
        margin={"l": 56, "r": 24, "t": _ABOVE, "b": _BELOW},
        dragmode=False,
    )
    figure.update_xaxes(zeroline=False, gridcolor=_LINE, automargin=True)
    figure.update_yaxes(zeroline=False, gridcolor=_LINE, automargin=True)
    return figure
