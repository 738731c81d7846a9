"""Figures with axes: position tiles, curves, bars, tables of heads. The only door to plotly.

Every figure has a transparent background, ink that can be read on white and on near-black (the page gives it its own, see
vit_viz/ui/kit/plots.css), titled axes and a colour bar with its unit. Of plotly's tools it has the camera, beside the title;
what the camera saves holds title and caption; figures of square cells have none, as the page's own dialog saves them. Its data
travel as typed arrays, and a mosaic of tiles is one trace, never one subplot per tile.
"""

from __future__ import annotations

import html
import textwrap
from collections.abc import Mapping
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from vit_viz.errors import ParameterError
from vit_viz.render.colormaps import Table, limits
from vit_viz.render.colormaps import table as colour_table
from vit_viz.render.overlay import default_table
from vit_viz.results import Curve, HeadTable, TokenMatrix

_INK = "#767676"  # 4.5 against white, 4.2 against the dark theme's ground
_LINE = "rgba(128, 128, 128, 0.35)"
_BAND = "rgba(128, 128, 128, 0.25)"
_CLEAR = "rgba(0, 0, 0, 0)"
_GAP = "rgba(128, 128, 128, 0.6)"  # between cells: white is a colour of the diverging table
_LINES = ("#3b82c4", "#d55e00", "#009e73", "#c96a9c", "#b07d00", "#7a6fd0")  # after Okabe and Ito
_DASHES = ("solid", "dash", "dot", "dashdot")
_FONT = "system-ui, -apple-system, Segoe UI, Roboto, sans-serif"
_TYPE, _TITLE = 12, 14  # --vv-type-small and --vv-type of the page
_LINE_HEIGHT = 17
_ABOVE, _BELOW, _BAR = 24, 52, 54  # pixels of the margins, and of a colour bar with its numbers
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
_MAX_CELLS = 160_000  # cells of one figure: beyond it the browser takes seconds
_MAX_TICKS = 8  # numbers on the longer axis, so that they stay apart on a phone


def position_tiles(
    matrix: TokenMatrix, *, table: Table | None = None, max_cells: int = _MAX_CELLS
) -> go.Figure:
    """What each position knows of all others: a small map per position, laid out where the position lies in the image.

    One heatmap trace; hovering shows both positions and the value. All tiles share one scale. Where there would be more than
    `max_cells` cells, every k-th position is shown in both directions, and the axes say so.

    Source: Dosovitskiy et al. 2021, arXiv:2010.11929, Fig. 7 centre.
    """
    rows, cols = matrix.grid
    every = 1
    while -(-rows // every) * -(-cols // every) * rows * cols > max_cells and every < max(rows, cols):
        every += 1
    cells, positions = _tile_cells(matrix, every)
    figure = _blank(_heatmap(cells, limits(matrix.values, signed=matrix.signed), matrix, table))
    figure.update_traces(customdata=positions, hovertemplate=_position_hover(matrix))
    shown = f" (1 in {every} shown)" if every > 1 else ""
    ticks = _tick_counts(*cells.shape)
    figure.update_xaxes(
        title_text=f"column of the position{shown}", **_tile_ticks(range(0, cols, every), cols, ticks[1])
    )
    figure.update_yaxes(
        title_text=f"row of the position{shown}", **_tile_ticks(range(0, rows, every), rows, ticks[0])
    )
    return _square(figure, *cells.shape)


def position_tile(matrix: TokenMatrix, row: int, col: int, *, table: Table | None = None) -> go.Figure:
    """What one position knows of all others, enlarged; the position itself is ringed.

    Raises:
        ParameterError: the grid has no such position.
    """
    figure = _tile_figure(matrix.tile(row, col), matrix, table, f"position ({row}, {col})")
    figure.add_trace(
        go.Scatter(
            x=[col],
            y=[row],
            mode="markers",
            marker={
                "symbol": "circle-open",
                "size": 14,
                "color": "#ffffff",
                "line": {"width": 2, "color": "#000000"},
            },
            hoverinfo="skip",
            showlegend=False,
        )
    )
    return figure


def extra_tile(matrix: TokenMatrix, name: str = "class", *, table: Table | None = None) -> go.Figure:
    """How similar a further position, such as that of the class token, is to every patch position.

    Raises:
        ParameterError: the matrix has no row of this name.
    """
    if name not in matrix.extra:
        known = ", ".join(matrix.extra) or "none"
        raise ParameterError(f"There is no position {name!r} beside the patches; there is: {known}.")
    return _tile_figure(matrix.extra[name].reshape(matrix.grid), matrix, table, f"{name} position")


def curve_figure(curves: Mapping[str, Curve], *, band_name: str = "random order, 95%") -> go.Figure:
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
    banded = next((curve for curve in curves.values() if curve.band is not None), None)
    if banded is not None:
        _add_band(figure, banded, band_name)
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


def _tile_cells(matrix: TokenMatrix, every: int) -> tuple[NDArray[np.float32], NDArray[np.unsignedinteger]]:
    """The tiles with a gap of one NaN cell between them, and for each cell (row, col, other row, other col)."""
    rows, cols = matrix.grid
    tiles = matrix.values.reshape(rows, cols, rows, cols)[::every, ::every]
    down, across = tiles.shape[:2]
    cells = np.full((down, rows + 1, across, cols + 1), np.nan, np.float32)
    cells[:, :rows, :, :cols] = tiles.transpose(0, 2, 1, 3)
    row, other_row, col, other_col = np.indices(cells.shape)
    positions = np.stack([row * every, col * every, other_row, other_col], axis=-1)
    shape = (down * (rows + 1), across * (cols + 1))
    small = np.min_scalar_type(
        max(rows, cols)
    )  # sent to the browser: the smallest dtype that holds the values
    flat = positions.astype(small).reshape(*shape, 4)
    return cells.reshape(shape)[:-1, :-1], flat[:-1, :-1]


def _tile_figure(tile: NDArray[np.float32], matrix: TokenMatrix, table: Table | None, what: str) -> go.Figure:
    """One tile with patch columns and rows as axes, on the scale of the whole matrix."""
    figure = _blank(_heatmap(tile, limits(matrix.values, signed=matrix.signed), matrix, table))
    unit = html.escape(matrix.unit)
    template = f"{html.escape(what)}<br>with (%{{y}}, %{{x}})<br>{unit} %{{z:.3f}}<extra></extra>"
    figure.update_traces(hovertemplate=template)
    ticks = _tick_counts(*tile.shape)
    figure.update_xaxes(title_text="column of the other position", **_few_ticks(tile.shape[1], ticks[1]))
    figure.update_yaxes(title_text="row of the other position", **_few_ticks(tile.shape[0], ticks[0]))
    return _square(figure, *tile.shape)


def _position_hover(matrix: TokenMatrix) -> str:
    return (
        "position (%{customdata[0]}, %{customdata[1]})<br>with (%{customdata[2]}, %{customdata[3]})<br>"
        f"{html.escape(matrix.unit)} %{{z:.3f}}<extra></extra>"
    )


def _heatmap(
    values: NDArray[np.float32],
    ends: tuple[float, float],
    result: TokenMatrix | HeadTable,
    table: Table | None,
) -> go.Heatmap:
    """Values in a colour table with their unit beside the bar."""
    colours = colour_table(table or default_table(signed=result.signed))
    stops = [(place / 255, f"rgb{tuple(map(int, colours[place]))}") for place in range(0, 256, 5)]
    low, high = ends
    return go.Heatmap(
        z=values,
        zmin=low,
        zmax=high if high > low else low + 1e-9,
        colorscale=stops,
        hoverongaps=False,
        colorbar={
            "title": {"text": html.escape(result.unit), "side": "top"},
            "orientation": "h",
            "y": 1.0,
            "yanchor": "bottom",
            "thickness": 12,
            "xpad": 0,
            "ypad": 6,
            "tickvals": [low, (low + high) / 2, high],
            "ticktext": [f"{tick:.3g}" for tick in (low, (low + high) / 2, high)],
            "outlinewidth": 0,
        },
    )


def _tick_counts(rows: int, cols: int) -> tuple[int, int]:
    """How many numbers fit on the vertical and the horizontal axis of a figure with square cells."""
    longer = max(rows, cols)
    return max(2, _MAX_TICKS * rows // longer), max(2, _MAX_TICKS * cols // longer)


def _tile_ticks(positions: range, size: int, most: int) -> dict[str, Any]:
    """Numbers of at most `most` positions, in the middle of their tiles of `size` cells and a gap."""
    ticks = range(0, len(positions), -(-len(positions) // most))
    middles = [place * (size + 1) + (size - 1) / 2 for place in ticks]
    return {"tickvals": middles, "ticktext": [str(positions[place]) for place in ticks]}


def _few_ticks(count: int, most: int) -> dict[str, Any]:
    """Whole numbers from 0, at most `most` of them."""
    return {"tickvals": list(range(0, count, -(-count // most)))}


def _square(figure: go.Figure, rows: int, cols: int) -> go.Figure:
    """Finish a figure with square cells, at a height that suits a column of about 560 px."""
    figure.update_xaxes(constrain="domain", showgrid=False, tickangle=0)
    figure.update_yaxes(
        constrain="domain", constraintoward="top", scaleanchor="x", autorange="reversed", showgrid=False
    )
    # the page fits the height to its column by the aspect (vit_viz/ui/kit/plots.js)
    figure.update_layout(plot_bgcolor=_GAP, meta={"aspect": rows / cols, "bar": _BAR})
    finished = _finished(figure, int(np.clip(480 * rows / cols, 60, 560)) + _ABOVE + _BELOW + _BAR)
    return finished.update_layout(modebar={"remove": [*_TOOLS, "toimage"]})


def _add_band(figure: go.Figure, curve: Curve, name: str) -> None:
    """The area between the band's edges, as one closed outline."""
    assert curve.band is not None
    low, high = curve.band
    figure.add_trace(
        go.Scatter(
            x=np.concatenate([curve.x, curve.x[::-1]]),
            y=np.concatenate([high, low[::-1]]),
            fill="toself",
            fillcolor=_BAND,
            line={"width": 0},
            mode="lines",
            name=html.escape(name),
            hoverinfo="skip",
        )
    )


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
