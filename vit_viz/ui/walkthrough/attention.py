"""Step 5: one token asks, all tokens answer: query, key, value, softmax."""

from __future__ import annotations

import numpy as np

from vit_viz.analyses.walkthrough import Array
from vit_viz.analyses.walkthrough_layers import AttentionStep, attention_step
from vit_viz.model.vit import Attention
from vit_viz.render.lettering import number
from vit_viz.ui.walkthrough import drawings as draw
from vit_viz.ui.walkthrough import papers
from vit_viz.ui.walkthrough.reshape import reshape_picture
from vit_viz.ui.walkthrough.scene import Scene
from vit_viz.ui.walkthrough.screen import Choice, Code, Screen

_VARIANTS = ("as the model does", "without the scale", "softmax over the wrong axis")
_TOP = 5


def screen(scene: Scene) -> Screen:
    """The screen of this step."""
    step = attention_step(scene.walk, layer=scene.layer, head=scene.head, token=scene.token)
    tokens, head_dim = step.keys.shape
    dim, heads = len(step.qkv) // 3, step.num_heads
    variant = min(scene.play or 0, len(_VARIANTS) - 1)
    best = int(step.weights.argmax())
    return Screen(
        title="One token asks, all tokens answer",
        words=(
            "Each token makes three short vectors of itself: a query (what it looks for), a key (what it can be found by) and a "
            "value (what it hands over).",
            "The query is compared with every key by multiplying number by number and adding up; softmax turns these scores into "
            "weights that are positive and sum to 1.",
            "The token then gathers the values of all tokens, each as strongly as its weight says: this is attention.",
        ),
        formula="a_j = softmax_j(q · k_j · s),   s = 1 / √d,   o = Σ_j a_j v_j",
        letters=f"q: the query of this token; k_j, v_j: key and value of token j; d: numbers per head, here "
        f"{head_dim}; s: the scale, here "
        f"{number(step.scale)}; a_j: the weights, one per key.",
        shapes=(
            ("tokens", f"[{tokens}, {dim}]", "brought to one size (norm)"),
            ("q, k, v in one", f"[{tokens}, {3 * dim}]", f"3 x {dim}"),
            (
                "per head",
                f"3 x [{heads}, {tokens}, {head_dim}]",
                f"{heads} heads, next step: {heads} x {head_dim} = {dim}",
            ),
            ("weights", f"[{heads}, {tokens}, {tokens}]", "each row sums to 1"),
        ),
        figures=_figures(scene, step, variant),
        control=Choice("softmax", _VARIANTS, variant),
        shared=("layer", "head"),
        question=f"What does {scene.token_name} look at most in this head, and with which weight?",
        answer=f"{scene.trace.layout.name(best)}: weight {float(step.weights[best]):.2%}, where equal weights would be "
        f"{1 / tokens:.2%} each.",
        code=(Code(Attention.forward, ("qkv", "scaled_dot_product")),),
        papers=(papers.ATTENTION,),
        hides="importance: a large weight on a small value moves little, and most weights of one head are no "
        "explanation of the answer.",
        follows="map",
    )


def _figures(scene: Scene, step: AttentionStep, variant: int) -> str:
    reshaped = draw.part(
        f"The {len(step.qkv)} numbers of {scene.token_name}, cut into queries, keys and values of {step.num_heads} heads",
        reshape_picture(step.qkv, heads=step.num_heads, chosen=step.head),
    )
    return reshaped + _scores(scene, step) + _softmax(scene, step, variant) + _gathered(step)


def _scores(scene: Scene, step: AttentionStep) -> str:
    best = np.argsort(-step.weights, kind="stable")[:_TOP]
    ends = float(max(abs(step.query).max(), abs(step.keys[best[0]]).max()))
    turned = ", after their rotation by position" if step.turned else ""
    strips = draw.strip(
        step.query, name=f"query of {scene.token_name}{turned}", scale=(-ends, ends)
    ) + draw.strip(
        step.keys[best[0]], name=f"key of {scene.trace.layout.name(int(best[0]))}", scale=(-ends, ends)
    )
    sums = (
        f"q · k = {number(float(step.products[best[0]]))};  x {number(step.scale)} = {number(float(step.scores[best[0]]))};  "
        f"softmax: {float(step.weights[best[0]]):.2%}"
    )
    rows = [
        (
            scene.trace.layout.name(int(j)),
            float(step.products[j]),
            float(step.scores[j]),
            f"{float(step.weights[j]):.2%}",
        )
        for j in best
    ]
    table = draw.grid(("key", "q · k", "score", "weight"), rows)
    return draw.part(
        f"The query and the key that fits it best (layer {step.layer}, head {step.head})",
        strips,
        draw.sum_line(sums),
        table,
    )


def _softmax(scene: Scene, step: AttentionStep, variant: int) -> str:
    rows = [
        (_VARIANTS[0], *_statistics(step.weights)),
        (_VARIANTS[1], *_statistics(step.unscaled)),
        (_VARIANTS[2], *_statistics(step.over_queries)),
    ]
    table = draw.grid(("softmax", "sum", "largest", "keys that hold 90%"), rows, chosen=variant)
    chosen = (step.weights, step.unscaled, step.over_queries)[variant]
    count = scene.trace.layout.num_prefix
    outside = f", {float(chosen[:count].sum()):.0%} on extra tokens" if count else ""
    heat = draw.heat(
        scene.patch_map(chosen),
        name=_VARIANTS[variant],
        width="150px",
        caption=f"{_VARIANTS[variant]}: weights on patches{outside}",
    )
    words = (
        f"With d = {step.query.size} numbers the products grow like √d; without the scale softmax is dominated by few "
        f"keys and hardly "
        "learns. Over the wrong axis the weights of a query sum to anything."
    )
    return draw.part(
        "What softmax makes of the scores",
        draw.row(heat, f"<div class=vv-w-fill>{table}{draw.line(words)}</div>"),
    )


def _gathered(step: AttentionStep) -> str:
    return draw.part(
        "What the token gathers",
        draw.strip(step.output, name=f"sum of {len(step.weights)} values, each times its weight"),
    )


def _statistics(weights: Array) -> tuple[float, str, int]:
    """Sum, largest weight, and how many keys hold 90% of the sum."""
    total = float(weights.sum(dtype=np.float64))
    falling = np.sort(weights.astype(np.float64))[::-1]
    keys = int(np.searchsorted(np.cumsum(falling), 0.9 * total) + 1)
    return total, f"{float(weights.max()):.2%}", min(keys, len(weights))
