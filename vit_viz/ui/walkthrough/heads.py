"""Step 6: all heads side by side, put in one row, and mixed."""

from __future__ import annotations

import numpy as np

from vit_viz.model.vit import Attention
from vit_viz.render.colormaps import limits
from vit_viz.render.lettering import number
from vit_viz.ui.walkthrough import drawings as draw
from vit_viz.ui.walkthrough import papers
from vit_viz.ui.walkthrough.prefix_tokens import LENGTH
from vit_viz.ui.walkthrough.scene import Scene
from vit_viz.ui.walkthrough.screen import Code, Screen, Slider
from vit_viz.walkthrough.embedding import Array
from vit_viz.walkthrough.layers import HeadsStep

_SHOWN = 0.99  # share of the weights that the scale tells apart; a few peaks would leave all else black


def screen(scene: Scene) -> Screen:
    """The screen of this step."""
    heads = scene.trace.num_heads
    chosen = min(scene.option or 0, heads - 1)
    step = scene.step(HeadsStep, layer=scene.layer, token=scene.token, left_out=chosen)
    head_dim, dim = step.outputs.shape[1], step.concatenated.size
    lengths = np.linalg.norm(step.contributions, axis=-1)
    tokens = scene.trace.num_tokens
    return Screen(
        title="Several heads look at once",
        words=(
            f"The last step is done {heads} times side by side by {heads} heads, each with queries, keys and values of its own.",
            "So one head can look at neighbours while another looks at the same colour far away.",
            f"What the heads gather is put in one row of {heads} x {head_dim} = {dim} numbers, and one more linear map, "
            "the *output projection*, mixes it.",
        ),
        terms=() if scene.trace.layout.num_prefix else (LENGTH,),
        formula=r"$y = W_O [o_1; \dots; o_H] + b$, which is $\sum_h W_{O, h}\, o_h + b$",
        letters=f"$o_h$: what head $h$ gathers, {head_dim} numbers; $H$: number of heads, here {heads}; $W_O$: the output "
        f"projection, {dim} x {dim}; $W_{{O, h}}$: its columns for head $h$; $b$: its bias; $y$: what all heads add together.",
        shapes=(
            ("per head", f"[{heads}, {tokens}, {head_dim}]", "gathered values"),
            ("one row", f"[{tokens}, {dim}]", f"{heads} x {head_dim}"),
            ("projected", f"[{tokens}, {dim}]", "mixed by the projection"),
        ),
        figures=_figures(scene, step),
        control=Slider("head to leave out", 0, heads - 1, chosen),
        shared=("layer",),
        question=f"Which head of layer {step.layer} moves {scene.token_name} most?",
        answer=f"Head {int(lengths.argmax())}: its part of the projected row has length "
        f"{number(float(lengths.max()))}. It need not be the head with the most striking map.",
        reveals=_moves(lengths),
        code=(Code(Attention.forward, ("transpose(1, 2)", "self.proj")),),
        papers=(papers.HEADS,),
        hides="what a head is for: nothing names it, and many heads do several things.",
        follows="map",
    )


def _moves(lengths: Array) -> str:
    """How much each head adds."""
    largest = float(lengths.max()) or 1.0
    bars = draw.bars(
        [(f"head {h}", float(length) / largest, number(float(length))) for h, length in enumerate(lengths)]
    )
    return draw.part("How far each head moves the token (length of its part after the projection)", bars)


def _figures(scene: Scene, step: HeadsStep) -> str:
    maps = scene.patch_map(step.weights)  # [heads, rows, cols]
    scale = (float(maps.min()), float(np.quantile(maps, _SHOWN)))
    scale = scale if scale[0] < scale[1] else limits(maps)
    side = 84 if len(maps) <= 8 else 66
    pictures = draw.row(
        *(
            draw.heat(one, name=f"head {h}", width=side, scale=scale, caption=f"head {h}")
            for h, one in enumerate(maps)
        )
    )
    scale_words = draw.line(
        f"What {scene.token_name} looks at in each head of layer {step.layer}; one scale for all, {number(scale[0])} to "
        f"{number(scale[1])}, which {_SHOWN:.0%} of the weights do not exceed."
    )
    change = float(np.linalg.norm(step.projected - step.remaining) / (np.linalg.norm(step.projected) or 1))
    size = len(step.concatenated)
    lines = 2 if size > 256 else 1
    return draw.part("The heads side by side", pictures, scale_words) + draw.part(
        "In one row, and mixed",
        draw.strip(step.concatenated, name="all heads in one row", rows=lines),
        draw.strip(step.projected, name="after the output projection", rows=lines),
        draw.strip(step.remaining, name=f"without head {step.left_out}", rows=lines),
        draw.line(f"Without head {step.left_out} the projected row changes by {change:.0%} of its length."),
    )
