"""The reshape of one token's projections, [3 D] -> 3 x [heads, head_dim], drawn with its real numbers; it moves once."""

from __future__ import annotations

import base64
import html
import io

import numpy as np
from PIL import Image

from vit_viz.render.colormaps import apply
from vit_viz.render.lettering import number
from vit_viz.walkthrough.embedding import Array

_WIDE, _LINE, _GAP = 720, 20, 5
_TOP = 40  # where the lines of heads begin
_LEFT = 66  # room for the names q, k, v


def reshape_picture(qkv: Array, *, heads: int, chosen: int) -> str:
    """One long row above; below it the same numbers as three lines of heads, to which each piece moves.

    Args:
        qkv: the three projections of a token in one row, [3 * heads * head_dim].
        chosen: head that is framed.
    """
    ends = float(abs(qkv).max()) or 1.0
    colours = apply(qkv.reshape(3, heads, -1), vmin=-ends, vmax=ends, table="diverging")
    piece, inside = (_WIDE - _LEFT) / heads, []
    for part in range(3):
        down = _TOP + part * (_LINE + _GAP)
        inside.append(
            f'<text class=vv-w-letters x=0 y="{down + 15}">{("query", "key", "value")[part]}</text>'
        )
        for head in range(heads):
            start = _LEFT + (part * heads + head) * piece / 3
            inside.append(
                _piece(colours[part, head], (start, 0.0, piece / 3), (_LEFT + head * piece, down, piece - 3))
            )
    frame = _LEFT + chosen * piece
    tall = _TOP + 3 * (_LINE + _GAP)
    inside.append(
        f'<rect class=vv-w-frame x="{frame - 1:.1f}" y={_TOP - 2} width="{piece - 1:.1f}" height="{3 * (_LINE + _GAP)}" />'
        f'<text class=vv-w-letters x="{frame:.1f}" y="{tall + 18}">head {chosen}</text>'
    )
    words = (
        f"Above: one row of {len(qkv)} numbers, {number(float(qkv.min()))} to {number(float(qkv.max()))}. Below: the "
        f"same numbers as "
        f"3 lines of {heads} heads x {len(qkv) // 3 // heads}; no number changes, they only move."
    )
    return (
        f'<figure class="vv-w-plot vv-w-scroll" tabindex=0><svg class=vv-w-wide viewBox="0 0 {_WIDE} {tall + 24}" '
        f'role=img aria-label="{html.escape(words)}">'
        f"<text class=vv-w-letters x=0 y=15>all</text>{''.join(inside)}</svg><figcaption>{html.escape(words)}</figcaption></figure>"
    )


def _piece(colours: Array, start: tuple[float, float, float], end: tuple[float, float, float]) -> str:
    """A head's numbers where they begin, and a copy that moves to where they belong; (x, y, width)."""
    file = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(colours[None])).save(file, "PNG")
    data = "data:image/png;base64," + base64.b64encode(file.getvalue()).decode("ascii")
    still = _image(data, start)
    across, down, wider = start[0] - end[0], start[1] - end[1], start[2] / end[2]
    moves = f"--across:{across:.1f}px;--down:{down:.1f}px;--wider:{wider:.3f}"
    return still + _image(data, end, f'class=vv-w-moves style="{moves}"')


def _image(data: str, place: tuple[float, float, float], attributes: str = "") -> str:
    x, y, width = place
    return (
        f'<image {attributes} x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{_LINE}" preserveAspectRatio="none" '
        f'href="{data}"></image>'
    )
