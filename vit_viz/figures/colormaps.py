"""From values to colours: scaling is one visible choice, the colour table another.

viridis, magma and cividis are the tables of Smith, van der Walt and Firing (viridis, magma) and of Nunez, Anderton and Renslow
(cividis), both CC0. "diverging" was made for this project: blue - white - orange, in the hues of AGAINST and FOR
(vit_viz/figures/styles.py), with equal lightness on both sides and equal steps in OKLab (Ottosson 2020). All have lightness that
only rises, or only falls away from the centre, so they read the same to colour-blind people and in print.
"""

from __future__ import annotations

import base64
import math
import zlib
from functools import cache
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vit_viz.errors import ParameterError

Table = Literal["viridis", "magma", "cividis", "gray", "diverging"]
TABLES: tuple[Table, ...] = get_args(Table)

Scale = Literal["shared", "layer", "own"]
"""Over what minimum and maximum are taken: all maps that are drawn together, the maps of a layer, or each map alone."""

Limits = tuple[float, float]

CLIPPED = 0.01
"""Share of the values that a clipped scale shows in its last colour."""

_BIN_BITS = 17  # of a 32-bit number, which the explorer's bins leave out

# Each table: the byte differences from colour to colour, channel after channel, compressed.
_PACKED: dict[str, str] = {
    "viridis": (
        "eNqFUokRhCAMTLC1K+H6L+VQshtYyehlv+AoyEw+5hcsBNPqaZ2k3ZoKjTRJbTPQ4Qcc8JB7CxGD9zqgoCCtkoYvZOsAT9PI"
        "nkbP2Nqt7P8Te1vb3tlyW0IY+wIwk0R857WbXHTeSA8qGy7J6JQZeqj+MGFzdjhMg1Nb/aBkII2kxiJe7xgzXrK1EyuPiAo="
    ),
    "magma": (
        "eNp9UgESwyAIE9z/v+xuAUOwdhAD55lWgWFjAGZYMGfYcAdFssPetfSX5En3VHRwXMOtbCTghaTkP7Yu2X59uIJ/AS3qFmWi"
        "arrS96B+pgU2wrUHWnqvcEnagReu9BMf9+m0mQQkTZ74XSOuFiOjzWg9sKPQSwoIJMEbsEiJEJxNq5mtyWXJ7DF0+vqIX8rJ"
        "Lbk="
    ),
    "cividis": (
        "eNqNUgESgCAIA/QlPaj/v0YTQQPFqzHGrA4vFCAE5pRTIgFKKHHoCbC5pUL48tAjBv14TJsjU1jaj166GTjalS//F6cOpix2"
        "y4PZrZ+sGR98zJRu5PNlqvBJtwFA7fegTlF9a3htvEEnmoO4fu4bL/ub7LQyQ9hkpoigqBQORhsIPU3nQx8="
    ),
    "diverging": (
        "eNqdUscBwzAIxHii7JLZsm0gooOlVyhXkD9Cfl0r4KrAQDQWhc5mzCWF2dvV3fyd7AqAVxa0LBqVbZC0BRXSqMxV77r0uDmm"
        "xDbLndRyEjcz/Ji1BuJ/82x20BUUJWp87G38JZ+XAd8JSKpMlhKjDTFoyaFAP9AyrWeB9CWpRtoNHIuf2oMPms8oK5C/CeAH"
        "/pNi2g=="
    ),
}


@cache
def table(name: Table) -> NDArray[np.uint8]:
    """The 256 colours of a table, from the low end to the high end: read-only uint8 [256, 3], sRGB."""
    if name == "gray":
        colours = np.repeat(np.arange(256, dtype=np.uint8)[:, None], 3, axis=1)
    elif name in _PACKED:
        steps = np.frombuffer(zlib.decompress(base64.b64decode(_PACKED[name])), np.uint8)
        colours = np.ascontiguousarray(np.cumsum(steps.reshape(3, 256), axis=1, dtype=np.uint8).T)
    else:
        raise ParameterError(f"There is no colour table {name!r}; there are {', '.join(TABLES)}.")
    colours.setflags(write=False)
    return colours


def default_table(*, signed: bool) -> Table:
    """The colour table of values for which none was chosen."""
    return "diverging" if signed else "viridis"


def apply(values: ArrayLike, *, vmin: float, vmax: float, table: Table = "viridis") -> NDArray[np.uint8]:
    """Colours for values: vmin gets the low end of the table, vmax the high end.

    Args:
        values: [...], finite.
        vmin: value of the low end; what lies below is drawn as the low end.
        vmax: value of the high end; what lies above is drawn as the high end.
        table: name of the colour table.

    Returns:
        uint8 [..., 3].
    """
    colours: NDArray[np.uint8] = _table(table)[indices(values, vmin=vmin, vmax=vmax)]
    return colours


def indices(values: ArrayLike, *, vmin: float, vmax: float) -> NDArray[np.uint8]:
    """Position of values in a colour table: round(255 (v - vmin) / (vmax - vmin)), halves up.

    Where vmin equals vmax the values that equal them get the centre, 128: a constant map is neither low nor high, and in the
    diverging table a map of zeros is white.

    Returns:
        uint8 [...], shape of `values`.
    """
    if not (np.isfinite(vmin) and np.isfinite(vmax) and vmin <= vmax):
        raise ParameterError(f"A colour scale needs finite ends, the low one first, not {vmin} and {vmax}.")
    array = finite(values)
    if vmin == vmax:
        return (128 + 127 * (array > vmax) - 128 * (array < vmin)).astype(np.uint8)
    share = (np.clip(array, vmin, vmax) - vmin) / (vmax - vmin)
    return np.floor(share * 255 + 0.5).astype(np.uint8)


def limits(values: ArrayLike, *, signed: bool = False) -> Limits:
    """The ends of the scale on which these values fill the colour table: minimum and maximum.

    Signed values get a scale that is centred at 0: (-m, m) with m the largest magnitude.
    """
    array = finite(values)
    if not array.size:
        raise ParameterError("A colour scale needs at least one value.")
    low, high = float(array.min()), float(array.max())
    if signed:
        high = max(abs(low), abs(high))
        low = -high
    return low, high


def clipped(values: ArrayLike, *, signed: bool = False) -> Limits:
    """The ends of the scale on which the brightest hundredth of the values shares the top, as the explorer has it.

    Of n values, sorted from the largest, the one at floor(n / 100) is the top, rounded up to the next number of six binary digits
    after the first; no more than the largest. Of signed values, the magnitudes are meant. The low end stays where `limits` has it.
    """
    low, high = limits(values, signed=signed)
    sizes = np.abs(finite(values)) if signed else finite(values)
    high = max(0.0 if signed else low, min(high, _top(sizes.ravel())))
    return (-high if signed else low), high


def _top(values: NDArray[np.float64]) -> float:
    """The value above which a hundredth lies; `Quantile` in vit_viz/explorer/attention.js counts in the same bins."""
    place = len(values) - 1 - math.floor(CLIPPED * len(values))
    top = np.partition(values, place)[place].astype(np.float32)
    if top < 0:
        return float(top)
    return float((((top.view(np.uint32) >> _BIN_BITS) + 1) << _BIN_BITS).astype(np.uint32).view(np.float32))


def grid_limits(maps: ArrayLike, *, scale: Scale = "shared", clip: bool = False) -> NDArray[np.float64]:
    """The ends of the scale of every map in a layers x heads grid.

    Args:
        maps: [layers, heads, ...], finite.
        scale: over what minimum and maximum are taken.
        clip: whether the brightest hundredth of the values on a scale shares its top, as `clipped` says.

    Returns:
        [layers, heads, 2]: low and high end for each map.
    """
    array = finite(maps)
    if scale not in get_args(Scale):
        raise ParameterError(f"A scale is one of {', '.join(get_args(Scale))}, not {scale!r}.")
    if array.ndim < 3 or not array.size:
        raise ParameterError(f"A grid of maps has the axes layers, heads and values, not {array.ndim} axes.")
    count = {"shared": 0, "layer": 1, "own": 2}[scale]
    sharing = array.reshape(-1, math.prod(array.shape[count:]))  # one row per scale
    ends = np.array([(clipped if clip else limits)(values) for values in sharing])
    return np.broadcast_to(ends.reshape((*array.shape[:count], *[1] * (2 - count), 2)), (*array.shape[:2], 2))


def finite(values: ArrayLike) -> NDArray[np.float64]:
    """The values in double precision; NaN and infinity are refused, because they have no colour."""
    array = np.asarray(values, dtype=np.float64)
    wrong = array.size - int(np.isfinite(array).sum())
    if wrong:
        raise ParameterError(f"{wrong} of {array.size} values are NaN or infinite and cannot be drawn.")
    return array


_table = table  # `apply` has a parameter of the same name
