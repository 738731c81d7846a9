"""Step 6: all heads side by side, put in one row, and mixed."""

from __future__ import annotations

import numpy as np

from vit_viz.analyses.walkthrough_layers import HeadsStep, heads_step
from vit_viz.model.vit import Attention
from vit_viz.render.colormaps import limits
from vit_viz.render.lettering import number
from vit_viz.ui.walkthrough import drawings as draw
from vit_viz.ui.walkthrough import papers
from vit_viz.ui.walkthrough.scene import Scene
from vit_viz.ui.walkthrough.screen import Code, Screen, Slider

_SHOWN = 0.99  # share of the weights that the scale tells apart; a few peaks would leave all else black


def screen(scene: Scene) -> Screen:
    """The screen of this step."""
    heads = scene.trace.num_heads
    chosen = min(scene.play or 0, heads - 1)
    step = heads_step(scene.walk, layer=scene.layer, token=scene.token, left_out=chosen)
    head_dim, dim = step.outputs.shape[1], step.concatenated.size
    lengths = np.linalg.norm(step.contributions, axis=-1)
    tokens = scene.trace.num_tokens
    return Screen(
        title="Several heads look at once",
        words=(
            f"The same is done {heads} times side by side, each time with queries, keys and values of its own: each "
            f"time is called a head.",
            "So one head can look at neighbours while another looks at the same colour far away.",
            f"What the heads gather is put in one row of {heads} x {head_dim} = {dim} numbers, and a last linear map, "
            f"the output projection, mixes it.",
        ),
        formula="MultiHead = W_O [o_1; o_2; ...; o_H] + b = Σ_h W_O,h o_h + b",
        letters=f"o_h: what head h gathers, {head_dim} numbers; [;]: put in one row; W_O: the output projection, "
        f"{dim} x {dim}; H: heads, here {heads}.",
        shapes=(
            ("per head", f"[{heads}, {tokens}, {head_dim}]", "gathered values"),
            ("one row", f"[{tokens}, {dim}]", f"{heads} x {head_dim}"),
            ("projected", f"[{tokens}, {dim}]", "mixed by W_O"),
        ),
        figures=_figures(scene, step, lengths),
        control=Slider("head to leave out", 0, heads - 1, chosen),
        shared=("layer",),
        question=f"Which head of layer {step.layer} moves {scene.token_name} most?",
        answer=f"Head {int(lengths.argmax())}: its part of the projected row has length "
        f"{number(float(lengths.max()))}. Not always is "
        "that the head with the most striking map.",
        code=(Code(Attention.forward, ("transpose(1, 2)", "self.proj")),),
        papers=(papers.HEADS,),
        hides="what a head is for: heads have no names, and many do several things.",
        follows="map",
    )


def _figures(scene: Scene, step: HeadsStep, lengths: np.ndarray) -> str:
    maps = scene.patch_map(step.weights)  # [heads, rows, cols]
    scale = (float(maps.min()), float(np.quantile(maps, _SHOWN)))
    scale = scale if scale[0] < scale[1] else limits(maps)
    side = "84px" if len(maps) <= 8 else "66px"
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
    largest = float(lengths.max()) or 1.0
    parts = draw.bars(
        [(f"head {h}", float(length) / largest, number(float(length))) for h, length in enumerate(lengths)]
    )
    change = float(np.linalg.norm(step.projected - step.remaining) / (np.linalg.norm(step.projected) or 1))
    size = len(step.concatenated)
    lines = 2 if size > 256 else 1
    return (
        draw.part("The heads side by side", pictures, scale_words)
        + draw.part("How far each head moves the token (length of its part after the projection)", parts)
        + draw.part(
            "In one row, and mixed",
            draw.strip(step.concatenated, name="all heads in one row", rows=lines),
            draw.strip(step.projected, name="after the output projection", rows=lines),
            draw.strip(step.remaining, name=f"without head {step.left_out}", rows=lines),
            draw.line(
                f"Without head {step.left_out} the projected row changes by {change:.0%} of its length."
            ),
        )
    )
