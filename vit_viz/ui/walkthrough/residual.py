"""The residual stream of one token as a band that each block adds to, drawn with the model's real lengths."""

from __future__ import annotations

import html

from vit_viz.render.lettering import number
from vit_viz.walkthrough.layers import BlockStep

_WIDE, _TALL, _TOP = 330, 40, 24
_MIDDLE, _HALF = 112, 44  # where the band runs, and half of its greatest width
_BOX, _SUM = (196, 60), 272  # left edge and width of a block; where its sum is written


def residual_picture(step: BlockStep, name: str) -> str:
    """A band from top to bottom, as wide as the stream is long; beside it each block, which reads it and adds to it."""
    layers = len(step.added)
    tall = _TOP + layers * _TALL + 24
    largest = float(step.norms.max()) or 1.0
    halves = [max(1.0, _HALF * float(norm) / largest) for norm in step.norms]
    inside = _band(halves) + "".join(
        _block(layer, float(step.added[layer]), chosen=layer == step.layer) for layer in range(layers)
    )
    lengths = "".join(
        f'<text class=vv-w-letters x=0 y="{_TOP + place * _TALL + 4}">{number(float(norm))}</text>'
        for place, norm in enumerate(step.norms)
    )
    words = (
        f"The band is {name} on its way down; its width is the length of its vector (numbers on the left). Each block reads it and "
        "adds a vector (its length on the right) instead of replacing it. Lengths do not add up, because the vectors point in "
        "different directions."
    )
    return (
        f"<figure class='vv-w-plot vv-w-scroll' tabindex=0><svg class=vv-w-residual "
        f'viewBox="0 0 {_WIDE} {tall}" role=img aria-label="{html.escape(_said(step, name))}">'
        f"{inside}{lengths}</svg></figure><p class=vv-w-line>{html.escape(words)}</p>"
    )


def _band(halves: list[float]) -> str:
    """The outline of the stream: down its right side, up its left."""
    right = [(_MIDDLE + half, _TOP + place * _TALL) for place, half in enumerate(halves)]
    left = [(_MIDDLE - half, _TOP + place * _TALL) for place, half in enumerate(halves)]
    points = " ".join(f"{x:.1f},{y}" for x, y in (*right, *reversed(left)))
    return f'<polygon class=vv-w-band points="{points}" />'


def _block(layer: int, added: float, *, chosen: bool) -> str:
    """A block between two heights: an arrow out of the stream, and one back into it with what is added."""
    top, (left, width) = _TOP + layer * _TALL, _BOX
    reads, adds = top + 12, top + 28
    mark = " vv-w-chosen" if chosen else ""
    return (
        f'<path class=vv-w-arrow d="M{_MIDDLE} {reads}H{left - 6}m-5 -4l5 4l-5 4" />'
        f'<path class=vv-w-arrow d="M{left} {adds}H{_MIDDLE + 8}m5 -4l-5 4l5 4" />'
        f'<circle class=vv-w-plus cx={_MIDDLE} cy={adds} r=7 /><path class=vv-w-arrow d="M{_MIDDLE - 4} {adds}h8m-4 -4v8" />'
        f'<rect class="vv-w-block{mark}" x={left} y={top + 5} width={width} height={_TALL - 10} rx=6 />'
        f"<text class=vv-w-letters x={left + 8} y={top + 24}>block {layer}</text>"
        f"<text class=vv-w-letters x={_SUM - 8} y={top + 24}>+ {number(added)}</text>"
    )


def _said(step: BlockStep, name: str) -> str:
    """The picture for people who hear it."""
    first, last = number(float(step.norms[0])), number(float(step.norms[-1]))
    added = ", ".join(number(float(length)) for length in step.added)
    return (
        f"The residual stream of {name}: length {first} before the first block, {last} after the last; the blocks add vectors of "
        f"length {added}."
    )
