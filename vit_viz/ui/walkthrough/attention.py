"""Steps 5 and 6: each token gathers from all tokens, by query, key, value and softmax; and all heads side by side, mixed."""

from __future__ import annotations

import html

import numpy as np
from PIL import Image

from vit_viz.figures.colormaps import apply, limits
from vit_viz.figures.lettering import number
from vit_viz.model import Attention
from vit_viz.ui.walkthrough import drawings as draw
from vit_viz.ui.walkthrough.prefix_tokens import LENGTH
from vit_viz.ui.walkthrough.scene import StepInput
from vit_viz.ui.walkthrough.screen import Choice, Code, Screen, Slider
from vit_viz.walkthrough import Array, AttentionStep, HeadsStep

_VARIANTS = ("as the model does", "without the scale", "softmax over the wrong axis")
_KEYS = 40  # rows of the table of keys


def screen(scene: StepInput) -> Screen:
    """The screen of step 5: each token gathers from all tokens."""
    step = scene.step(AttentionStep, layer=scene.layer, head=scene.head, token=scene.token)
    tokens, head_dim = step.keys.shape
    dim, heads = len(step.qkv) // 3, step.num_heads
    variant = min(scene.option or 0, len(_VARIANTS) - 1)
    config, scale = scene.config, number(step.scale)
    has_bias = config.relative_bias or config.shared_bias
    learned = "$b_j$: a learned number for the offset from token $j$ to this one; " if has_bias else ""
    # in keys that hold 90% of the weights
    (*_, scaled), (*_, unscaled) = _statistics(step.weights), _statistics(step.unscaled)
    which = "Over fewer" if unscaled < scaled else "Over more" if unscaled > scaled else "Neither"
    return Screen(
        title="Each token gathers from all tokens",
        words=(
            "Each token makes three short vectors of itself: a *query* (what it looks for), a *key* (what it can be found by) and "
            "a *value* (what it passes on).",
            "The query is compared with every key by multiplying number by number and adding up; *softmax* turns these *scores* "
            "into weights that are positive and sum to 1.",
            "The token then gathers the values of all tokens, each as strongly as its weight says: this is *attention*.",
        ),
        terms=(
            f"All this happens {heads} times side by side; each time is called a *head* (next step).",
            "Before a token is read, a *norm* rescales its numbers to a standard size, so that no token drowns out the others.",
        ),
        formula=rf"$a_j = \mathrm{{softmax}}_j(s\, q \cdot k_j{' + b_j' if has_bias else ''})$"
        + (r" with $s = \frac{1}{\sqrt{d}}$" if config.scale is None else "")
        + r"; $o = \sum_j a_j v_j$",
        letters="$q$: the query of this token; $k_j$ and $v_j$: key and value of token $j$; "
        f"$s$: the scale, here {scale}{f' ($d$ = {head_dim} numbers per head)' if config.scale is None else ''}; "
        f"{learned}$a_j$: the weight of token $j$; $o$: what is gathered.",
        shapes=(
            ("tokens", f"[{tokens}, {dim}]", "after the norm"),
            ("q, k, v in one", f"[{tokens}, {3 * dim}]", f"3 x {dim}"),
            (
                "per head",
                f"3 x [{heads}, {tokens}, {head_dim}]",
                f"{heads} heads, next step: {heads} x {head_dim} = {dim}",
            ),
            ("weights", f"[{heads}, {tokens}, {tokens}]", "each row sums to 1"),
        ),
        figures=draw.part(
            f"The {len(step.qkv)} numbers of {scene.token_name}, cut into queries, keys and values of {heads} heads",
            reshape_picture(step.qkv, heads=heads, chosen=step.head),
        )
        + _scores(scene, step)
        + draw.part(
            "What the token gathers",
            draw.strip(step.output, name=f"sum of {tokens} values, each times its weight"),
        ),
        control=Choice("softmax", _VARIANTS, variant),
        shared=("layer", "head"),
        question=f"Before softmax, every product is multiplied by the scale, {scale}. Without it, would the weights "
        "be spread over more tokens, or over fewer?",
        answer=f"{which}: with the scale, 90% of the weight lies on {scaled} of {tokens} tokens, without it on {unscaled}.",
        reveals=_softmax(scene, step, variant),
        played=scene.option is not None,
        code=(Code(Attention.forward, ("qkv", "scaled_dot_product")),),
        papers=("attention",),
        hides="importance: a large weight on a small value moves little, and most weights of one head are no "
        "explanation of the answer.",
        follows="map",
    )


def _scores(scene: StepInput, step: AttentionStep) -> str:
    best = np.argsort(-step.weights, kind="stable")[:_KEYS]
    ends = float(max(abs(step.query).max(), abs(step.keys[best[0]]).max()))
    turned = ", after their rotation by position" if step.turned else ""
    strips = draw.strip(
        step.query, name=f"query of {scene.token_name}{turned}", scale=(-ends, ends)
    ) + draw.strip(
        step.keys[best[0]], name=f"key of {scene.trace.layout.name(int(best[0]))}", scale=(-ends, ends)
    )
    added = "" if step.bias is None else f" + {number(float(step.bias[best[0]]))} for its offset"
    sums = (
        f"q · k = {number(float(step.products[best[0]]))};  x {number(step.scale)}{added} = "
        f"{number(float(step.scores[best[0]]))};  "
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


def _softmax(scene: StepInput, step: AttentionStep, variant: int) -> str:
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
        scene.trace.layout.patches(chosen),
        name=_VARIANTS[variant],
        width=150,
        caption=f"{_VARIANTS[variant]}: weights on patches{outside}",
    )
    words = (
        f"The more numbers a query has (here {step.query.size}), the larger the products; without the scale a few keys would "
        "take most of the weight, and training would stall. Over the wrong axis, queries instead of keys, the weights of a query "
        "no longer sum to 1."
    )
    return draw.part(
        "What softmax makes of the scores",
        draw.row(heat, f"<div class=vv-w-fill>{table}{draw.line(words)}</div>"),
    )


def _statistics(weights: Array) -> tuple[float, str, int]:
    """Sum, largest weight, and how many keys hold 90% of the sum."""
    total = float(weights.sum(dtype=np.float64))
    falling = np.sort(weights.astype(np.float64))[::-1]
    keys = int(np.searchsorted(np.cumsum(falling), 0.9 * total) + 1)
    return total, f"{float(weights.max()):.2%}", min(keys, len(weights))


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
            data = draw.data_uri(Image.fromarray(np.ascontiguousarray(colours[part, head][None])))
            left, wide = _LEFT + head * piece, piece - 3
            moves = f"--across:{start - left:.1f}px;--down:{-down:.1f}px;--wider:{piece / 3 / wide:.3f}"
            inside.append(_image(data, (start, 0.0, piece / 3)))
            inside.append(_image(data, (left, down, wide), f'class=vv-w-moves style="{moves}"'))
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


def _image(data: str, place: tuple[float, float, float], attributes: str = "") -> str:
    """A head's numbers at (x, y, width): where they begin, or the copy that moves to where they belong."""
    x, y, width = place
    return (
        f'<image {attributes} x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{_LINE}" preserveAspectRatio="none" '
        f'href="{data}"></image>'
    )


_TOLD_APART = 0.99  # share of the weights that the scale tells apart; a few peaks would leave all else black


def heads_screen(scene: StepInput) -> Screen:
    """The screen of step 6: all heads side by side, put in one row, and mixed."""
    heads = scene.trace.num_heads
    chosen = min(scene.option or 0, heads - 1)
    step = scene.step(HeadsStep, layer=scene.layer, token=scene.token, left_out=chosen)
    head_dim, dim = step.outputs.shape[1], step.concatenated.size
    lengths = np.linalg.norm(step.contributions, axis=-1)
    tokens, largest = scene.trace.num_tokens, float(lengths.max()) or 1.0
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
        figures=_heads_figures(scene, step),
        control=Slider("head to leave out", 0, heads - 1, chosen),
        shared=("layer",),
        question=f"Which head of layer {step.layer} moves {scene.token_name} most?",
        answer=f"Head {int(lengths.argmax())}: its part of the projected row has length "
        f"{number(float(lengths.max()))}. It need not be the head with the most striking map.",
        reveals=draw.part(
            "How far each head moves the token (length of its part after the projection)",
            draw.bars([(f"head {h}", one / largest, number(one)) for h, one in enumerate(lengths.tolist())]),
        ),
        code=(Code(Attention.forward, ("transpose(1, 2)", "self.proj")),),
        papers=("heads",),
        hides="what a head is for: nothing names it, and many heads do several things.",
        follows="map",
    )


def _heads_figures(scene: StepInput, step: HeadsStep) -> str:
    maps = scene.trace.layout.patches(step.weights)  # [heads, rows, cols]
    scale = (float(maps.min()), float(np.quantile(maps, _TOLD_APART)))
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
        f"{number(scale[1])}, which {_TOLD_APART:.0%} of the weights do not exceed."
    )
    change = float(np.linalg.norm(step.projected - step.remaining) / (np.linalg.norm(step.projected) or 1))
    return draw.part("The heads side by side", pictures, scale_words) + draw.part(
        "In one row, and mixed",
        draw.vector(step.concatenated, name="all heads in one row"),
        draw.vector(step.projected, name="after the output projection"),
        draw.vector(step.remaining, name=f"without head {step.left_out}"),
        draw.line(f"Without head {step.left_out} the projected row changes by {change:.0%} of its length."),
    )
