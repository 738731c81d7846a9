"""Step 7: a block: attention and an MLP, each adding to the residual stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from vit_viz.analyses.walkthrough import Array
from vit_viz.analyses.walkthrough_layers import BlockStep, block_of, block_step
from vit_viz.model.vit import Block
from vit_viz.render.lettering import number
from vit_viz.ui.walkthrough import drawings as draw
from vit_viz.ui.walkthrough import papers
from vit_viz.ui.walkthrough.scene import Scene
from vit_viz.ui.walkthrough.screen import Code, Screen

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


def screen(scene: Scene) -> Screen:
    """The screen of this step."""
    step = block_step(scene.walk, layer=scene.layer, token=scene.token)
    tokens, dim, hidden = scene.trace.num_tokens, step.before.size, step.hidden.size
    layers = scene.trace.num_layers
    grown = _length(step.after) / (_length(step.before) or 1)
    direction = "grows" if step.norms[-1] > step.norms[0] else "shrinks"
    return Screen(
        title="A block: gather, think, add",
        words=(
            "A block (also called a layer) has two parts: attention, in which tokens exchange what they know, and an "
            "MLP, two linear "
            "maps with a bend between them, in which each token thinks for itself.",
            "Each part reads a normalised copy of the token and ADDS its result to the token: this running sum is "
            "called the residual stream.",
            f"{layers} such blocks follow one another; here the norm stands before each part (pre-norm), while the first "
            "transformers normalised after the sum (post-norm), which is harder to train when there are many blocks.",
        ),
        formula="x ← x + Attention(norm(x));   x ← x + MLP(norm(x)),   MLP(y) = W_2 g(W_1 y)",
        letters=f"x: the residual stream of a token, {dim} numbers; g: {_NAMES[step.activation]}; W_1 leads to "
        f"{hidden} numbers, W_2 back to {dim}.",
        shapes=(
            ("stream", f"[{tokens}, {dim}]", "before"),
            ("hidden", f"[{tokens}, {hidden}]", "inside the MLP"),
            ("stream", f"[{tokens}, {dim}]", f"after block {step.layer}"),
        ),
        figures=_figures(step, scene.token_name),
        shared=("layer",),
        question=f"From the first block to the last, does the length of {scene.token_name} grow or shrink?",
        answer=f"It {direction}: from {number(float(step.norms[0]))} to {number(float(step.norms[-1]))}; block {step.layer} alone "
        f"multiplies it by {number(grown)}.",
        code=(
            Code(Block.forward, ("x +",)),
            Code(_forward_of(scene, step.layer), _MARKS[step.activation]),
        ),
        papers=(papers.VIT, papers.GELU, papers.PRE_NORM),
        hides="what the MLP knows: its hidden numbers have no names either.",
        follows="token",
    )


def _forward_of(scene: Scene, layer: int) -> Callable[..., Any]:
    """The source of the very MLP that this model has."""
    forward: Callable[..., Any] = type(block_of(scene.walk, layer).mlp).forward
    return forward


def _figures(step: BlockStep, name: str) -> str:
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
    x, y = step.curve
    curve = draw.curves(
        [(_NAMES[step.activation], x, y)],
        label=f"The curve of {_NAMES[step.activation]}, over how often each input occurs",
        x_label="input",
        histogram=(step.histogram, step.bins),
    )
    active = (
        f"Of the {step.hidden.size} hidden numbers of {name}, {step.active[0]:.0%} are above 0 and pass, the "
        f"others are almost "
        f"silenced; over all tokens {step.active[1]:.0%}. Gray: how often each input occurs."
    )
    layers = np.arange(len(step.norms))
    stream = draw.curves(
        [(name, layers, step.norms), ("median of all tokens", layers, step.median_norms)],
        label="Length of the residual stream before the first and after each block",
        x_label="blocks done",
        mark=float(step.layer + 1),
    )
    return draw.part(
        f"{name[0].upper()}{name[1:]} in block {step.layer}: lengths of the vectors",
        lengths,
        draw.line(
            f"Lengths do not add up, as the vectors point elsewhere; before and after have a cosine similarity of {number(turned)}."
        ),
    ) + draw.row(
        draw.part(f"The bend in the MLP: {_NAMES[step.activation]}", curve, draw.line(active)),
        draw.part("The stream through all blocks", stream),
    )


def _length(values: Array) -> float:
    return float(np.linalg.norm(values))
