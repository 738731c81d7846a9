"""Step 7: a block: attention and an MLP, each adding to the residual stream."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

import numpy as np

from vit_viz.figures.lettering import number
from vit_viz.model import Block
from vit_viz.ui.walkthrough import drawings as draw
from vit_viz.ui.walkthrough.prefix_tokens import COSINE
from vit_viz.ui.walkthrough.scene import StepInput
from vit_viz.ui.walkthrough.screen import Code, Screen
from vit_viz.walkthrough import Array, BlockStep, block_of

_NAMES = {
    "gelu": "GELU",
    "quick_gelu": "quick GELU",
    "gelu_tanh": "GELU (tanh form)",
    "swiglu": "SiLU (gate)",
    "swiglu_packed": "SiLU (gate)",
}


_MARKS = {
    "gelu": ("F.gelu",),
    "quick_gelu": ("torch.sigmoid",),
    "gelu_tanh": ("F.gelu",),
    "swiglu": ("F.silu",),
    "swiglu_packed": ("F.silu",),
}


def screen(scene: StepInput) -> Screen:
    """The screen of this step."""
    step = scene.step(BlockStep, layer=scene.layer, token=scene.token)
    tokens, dim, hidden = scene.trace.num_tokens, step.before.size, step.hidden.size
    layers = scene.trace.num_layers
    gated = step.activation.startswith("swiglu")
    attended, thought = _length(step.attended), _length(step.thought)
    forward: Callable[..., Any] = type(
        block_of(scene.transformer, step.layer).mlp
    ).forward  # of the MLP that this model has
    return Screen(
        title="A block: gather, compute, add",
        words=(
            "A layer consists of one *block* with two parts: attention, in which tokens exchange what they know, and an *MLP*, "
            f"which works on each token alone: two linear maps, and between them a curve ({_NAMES[step.activation]}) that makes "
            "the two more than one linear map.",
            "Neither part replaces the token: it reads a copy of it after a norm, and its result is added to the token, which is "
            "called a *residual connection*; what is added to all the way is the *residual stream*.",
            f"{layers} such blocks follow one another; here the norm stands before each part (pre-norm), while the first "
            "transformers had it after the sum (post-norm), which is harder to train when there are many blocks.",
        ),
        terms=() if scene.trace.layout.num_prefix else (COSINE,),
        formula=r"$x \leftarrow x + \mathrm{Attention}(\mathrm{norm}(x))$; then "
        r"$x \leftarrow x + \mathrm{MLP}(\mathrm{norm}(x))$ with "
        + (
            "$\\mathrm{MLP}(y) = W_2 (g(W_1 y) \\circ V y)$"
            if gated
            else "$\\mathrm{MLP}(y) = W_2\\, g(W_1 y)$"
        ),
        letters=f"$x$: the residual stream of a token, {dim} numbers; $y$: what the MLP reads; $g$: {_NAMES[step.activation]}; "
        f"$W_1$ leads to {hidden} numbers, $W_2$ back to {dim}"
        + ("; $V$: a second linear map, which $g$ opens or shuts number by number." if gated else "."),
        shapes=(
            ("stream", f"[{tokens}, {dim}]", "before"),
            ("hidden", f"[{tokens}, {hidden}]", "inside the MLP"),
            ("stream", f"[{tokens}, {dim}]", f"after block {step.layer}"),
        ),
        figures=_figures(step, scene.token_name),
        shared=("layer",),
        question=f"Which adds more to {scene.token_name} in block {step.layer}: attention or the MLP?",
        answer=f"{'Attention' if attended > thought else 'The MLP'}: what attention adds has length {number(attended)}, what the "
        f"MLP adds {number(thought)}.",
        reveals=_lengths(step, scene.token_name),
        code=(Code(Block.forward, ("x +",)), Code(forward, _MARKS[step.activation])),
        papers=("vit", "gelu", "pre-norm"),
        hides="what the MLP has learned: none of its numbers has a name.",
        follows="token",
    )


def _lengths(step: BlockStep, name: str) -> str:
    """The stream inside the block, and what is added to it."""
    parts = (
        ("stream before the block", step.before),
        ("+ attention adds", step.attended),
        ("= stream between", step.middle),
        ("+ MLP adds", step.thought),
        ("= stream after the block", step.after),
    )
    largest = max(_length(values) for _, values in parts) or 1.0
    lengths = draw.bars(
        [(name, _length(values) / largest, number(_length(values))) for name, values in parts]
    )
    turned = float(step.before @ step.after / ((_length(step.before) * _length(step.after)) or 1))
    return draw.part(
        f"{name[0].upper()}{name[1:]} in block {step.layer}: lengths of the vectors",
        lengths,
        draw.line(
            "Lengths do not add up, as the vectors point in different directions; before and after have a cosine similarity of "
            f"{number(turned)}."
        ),
    )


def _figures(step: BlockStep, name: str) -> str:
    x, y = step.curve
    curve = draw.curves(
        [(_NAMES[step.activation], x, y)],
        label=f"The curve of {_NAMES[step.activation]}, over how often each input occurs",
        x_label="input",
        histogram=(step.histogram, step.bins),
    )
    active = (
        f"Of the {step.hidden.size} numbers between the two linear maps, {step.active[0]:.0%} are above 0 for {name} and pass, "
        f"the others become almost 0; over all tokens {step.active[1]:.0%}. Gray: how often each input occurs."
    )
    layers = np.arange(len(step.norms))
    stream = draw.curves(
        [(name, layers, step.norms), ("median of all tokens", layers, step.median_norms)],
        label="Length of the residual stream before the first and after each block",
        x_label="blocks done",
        mark=float(step.layer + 1),
    )
    return (
        draw.part("What residual connections do", residual_picture(step, name))
        + draw.part(f"The curve in the MLP: {_NAMES[step.activation]}", curve, draw.line(active))
        + draw.part("The stream through all blocks", stream)
    )


def _length(values: Array) -> float:
    return float(np.linalg.norm(values))


_WIDE, _TALL, _TOP = 330, 40, 24
_MIDDLE, _HALF = 112, 44  # where the band runs, and half of its greatest width
_BOX, _SUM = (196, 60), 272  # left edge and width of a block; where its sum is written


def residual_picture(step: BlockStep, name: str) -> str:
    """A band from top to bottom, as wide as the stream is long; beside it each block, which reads it and adds to it."""
    layers = len(step.added)
    tall = _TOP + layers * _TALL + 24
    largest = float(step.norms.max()) or 1.0
    halves = [max(1.0, _HALF * float(norm) / largest) for norm in step.norms]
    # down its right side, up its left
    outline = [(_MIDDLE + half, _TOP + place * _TALL) for place, half in enumerate(halves)]
    outline += [(_MIDDLE - half, _TOP + place * _TALL) for place, half in reversed([*enumerate(halves)])]
    points = " ".join(f"{x:.1f},{y}" for x, y in outline)
    inside = f'<polygon class=vv-w-band points="{points}" />' + "".join(
        _block(layer, float(step.added[layer]), chosen=layer == step.layer) for layer in range(layers)
    )
    lengths = "".join(
        f'<text class=vv-w-letters x=0 y="{_TOP + place * _TALL + 4}">{number(float(norm))}</text>'
        for place, norm in enumerate(step.norms)
    )
    first, last = number(float(step.norms[0])), number(float(step.norms[-1]))
    said = (
        f"The residual stream of {name}: length {first} before the first block, {last} after the last; the blocks add vectors of "
        f"length {', '.join(number(float(length)) for length in step.added)}."
    )
    words = (
        f"The band is {name} on its way down; its width is the length of its vector (numbers on the left). Each block reads it and "
        "adds a vector (its length on the right) instead of replacing it. Lengths do not add up, because the vectors point in "
        "different directions."
    )
    return (
        f"<figure class='vv-w-plot vv-w-scroll' tabindex=0><svg class=vv-w-residual "
        f'viewBox="0 0 {_WIDE} {tall}" role=img aria-label="{html.escape(said)}">'
        f"{inside}{lengths}</svg></figure><p class=vv-w-line>{html.escape(words)}</p>"
    )


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
