"""Step 4: each token is told where it was, or the model could not tell a photo from its shuffled patches."""

from __future__ import annotations

import html
import math

import numpy as np
from PIL import Image

from vit_viz.figures.lettering import number
from vit_viz.lazy import torch
from vit_viz.model import VisionTransformer
from vit_viz.model.positions import (
    relative_index,
    resample,
    rotary_angles,
    rotate,
    sinusoidal_1d,
    sinusoidal_2d,
)
from vit_viz.outputs import output_kind, shown
from vit_viz.ui.walkthrough import drawings as draw
from vit_viz.ui.walkthrough.scene import StepInput
from vit_viz.ui.walkthrough.screen import Code, Screen, Slider
from vit_viz.walkthrough import Array, PositionStep

_SEEDS = 9
_WITH_FACTORS = ("scale = ((", "scale_factor=scale")
_RESAMPLING = {
    "dino": _WITH_FACTORS,
    "dinov2": _WITH_FACTORS,
    "torchvision": ("align_corners=True",),
    "bilinear": ('size=new_grid, mode="bilinear"',),
    "radio": ('align_corners=variant == "radio"', ":new_rows, :new_cols"),
    "radio_v4": ('align_corners=variant == "radio"', ":new_rows, :new_cols"),
} | dict.fromkeys(("timm", "dinov2_reg", "transformers"), ("antialias=variant",))
_KINDS = {
    "learned": "This model has learned one vector per place, its *position embedding*, and adds it to the embedding of the patch.",
    "sinusoidal_1d": "This model adds a fixed pattern of waves to each patch, its *position embedding*; each place has another.",
    "sinusoidal_2d": "This model adds a fixed pattern of waves to each patch, its *position embedding*: half of it says the "
    "column, half the row.",
    "rotary": "This model adds nothing: in each layer it rotates the vectors that tokens are compared by (next step), by angles "
    "that depend on the place.",
    "relative": "This model adds nothing here: where tokens are compared (next step), it adds a number that it has learned for how "
    "far apart the two patches are, down and across.",
    "none": "This model has no positions at all: it can only guess where a patch was from what the patch shows.",
}
_TURNED = " It also rotates the vectors that tokens are compared by (next step), by angles that depend on the place."
_ADDED = "$z_i$: the embedding of patch $i$; $p_i$: the position embedding of its place."
_FORMULAS = {
    "learned": ("$x_i = z_i + p_i$", f"$x_i$: the token that enters the first layer; {_ADDED}"),
    "sinusoidal_1d": (
        r"$x_i = z_i + p_i$ with $p_{i, 2k} = \sin(i / 10000^{2k / D})$ and $p_{i, 2k + 1} = \cos(i / 10000^{2k / D})$",
        f"{_ADDED[:-1]}, made of $D$ numbers, numbered by $2 k$ and $2 k + 1$.",
    ),
    "sinusoidal_2d": (
        r"$x_i = z_i + p_i$; $p_i$ holds $\sin(t w_k)$ and $\cos(t w_k)$ with $w_k = 10000^{-4 k / D}$",
        f"{_ADDED[:-1]}, made of $D$ numbers, with $t$ the column for one half of them and the row for the other; $w_k$: how fast "
        "wave $k$ turns.",
    ),
    "rotary": (
        r"$q_i \leftarrow R_i q_i$, $k_i \leftarrow R_i k_i$",
        "$q_i$ and $k_i$: the two vectors of token $i$ that the next step compares; $R_i$: a rotation by the angles of its place.",
    ),
    "relative": (
        r"$s_{ij} \leftarrow s_{ij} + b_{i - j}$",
        "$s_{ij}$: how well token $j$ fits token $i$, which the next step computes; $b_{i - j}$: what is learned for how far "
        "apart they are.",
    ),
    "none": (
        "$x_i = z_i$",
        "$x_i$: the token that enters the first layer; $z_i$: the embedding of patch $i$.",
    ),
}


def screen(scene: StepInput) -> Screen:
    """The screen of this step."""
    seed = 1 if scene.option is None else min(scene.option, _SEEDS)
    step = scene.step(PositionStep, place=scene.place, seed=seed)
    (rows, cols), dim, (tall, wide) = step.grid, scene.config.embed_dim, scene.config.patch_size
    source = scene.padded_input()
    mixed = Image.new(source.mode, source.size)  # the input with its patches in the order of the experiment
    for place, patch in enumerate(step.order.tolist()):
        down, across = divmod(patch, cols)
        tile = source.crop((across * wide, down * tall, (across + 1) * wide, (down + 1) * tall))
        mixed.paste(tile, (place % cols * wide, place // cols * tall))
    answers = [
        (name, _top(scene, one), _top(scene, other), _largest(one, other))
        for name, one, other in (
            ("with positions", step.output, step.shuffled),
            ("without positions", step.unplaced, step.unplaced_shuffled),
        )
    ]
    return Screen(
        title="Each token is told where it was",
        words=(
            "The layers that follow treat the tokens as a set: nothing in them says which patch was where.",
            _KINDS[step.kind] + (_TURNED if step.kind != "rotary" and step.angles is not None else ""),
            "To see what this is worth, the patches are shuffled, and the model answers twice: with its positions, and with "
            "positions switched off.",
        ),
        formula=_FORMULAS[step.kind][0],
        letters=_FORMULAS[step.kind][1],
        shapes=(
            ("tokens", f"[{len(step.order)}, {dim}]", "patches"),
            (
                ("angles", f"[{len(step.order)}, {scene.config.head_dim // 2}]", "one per pair of numbers")
                if step.kind == "rotary"
                else (
                    "positions",
                    f"[{rows} · {cols}, {dim}]" if step.table is not None else "none",
                    "one per place",
                )
            ),
            ("tokens", f"[{len(step.order)}, {dim}]", "same shape as before"),
        ),
        figures=draw.part(
            "The patches in this order",
            draw.picture(mixed, alt="The input with its patches in this order", width=130, sharp=False),
        )
        + _where(scene, step)
        + _grids(scene, step)
        + _waves(step),
        control=Slider("order of the patches (0: as they are; 1-9: shuffled)", 0, _SEEDS, seed),
        question="With positions switched off, does the model's answer change when the patches are shuffled?",
        answer=f"No: it is {_top(scene, step.unplaced_shuffled)} both times, and the outputs differ by at most "
        f"{_largest(step.unplaced, step.unplaced_shuffled):.0e}, which is rounding.",
        reveals=draw.part(
            "Does the order of the patches matter?",
            draw.grid(("", "photo", "patches in this order", "largest difference"), answers),
        ),
        played=scene.option is not None,
        code=_code(step),
        papers=("vit positions", "waves", *(("rotary",) if step.angles is not None else ())),
        hides="how much the layers make of positions. No model was trained with its positions switched off: that answer only "
        "shows that the order is lost.",
        follows="patch",
    )


def _code(step: PositionStep) -> tuple[Code, ...]:
    if step.kind == "rotary":
        return Code(rotary_angles, ("return",)), Code(rotate, ("first *",))
    if step.kind == "relative":
        return (Code(relative_index, ("index = ", "index[")),)
    if step.kind == "none":
        return (Code(VisionTransformer.tokens, ("if self.config.position not in",)),)
    tokens = Code(VisionTransformer.tokens, ("x = x + F.pad",))
    if step.kind == "learned":
        return tokens, Code(resample, _RESAMPLING[step.variant] if step.resampled else ("return table",))
    return tokens, Code(sinusoidal_2d if step.kind == "sinusoidal_2d" else sinusoidal_1d, ("sin()", "angle"))


def _where(scene: StepInput, step: PositionStep) -> str:
    if step.similarity is None:
        return ""
    near = draw.heat(
        step.similarity,
        name="similarity",
        width=130,
        caption=f"how similar the position of {scene.patch_name} is to every other: {number(float(step.similarity.min()))} to 1",
    )
    if step.table is None:
        words = "Cosine of the angle between two places, mean over all pairs of numbers: 1 where both are rotated by the same."
        return draw.part("Which places are similar", draw.row(near, draw.line(words)))
    index = step.place[0] * step.grid[1] + step.place[1]
    strip = draw.strip(step.table[index], name=f"position of {scene.patch_name}")
    words = f"Length of this position {number(step.position_norm)}, of the patch's embedding {number(step.patch_norm)}."
    return draw.part(
        "Which places are similar", draw.row(near, f"<div class=vv-w-fill>{strip}{draw.line(words)}</div>")
    )


def _grids(scene: StepInput, step: PositionStep) -> str:
    """Before and after resampling, in the three directions in which positions differ most."""
    if step.table is None or step.trained_table is None or scene.colours is None:
        return ""
    old, new = step.trained_grid, step.grid
    tables = (
        (step.trained_table, old, "Positions as trained", "as trained"),
        (step.table, new, "Positions of this photo", "of this photo"),
    )
    words = (
        f"{old[0]} x {old[1]} positions were learned; smooth interpolation between them ({step.variant}'s way) makes {new[0]} x "
        f"{new[1]}."
        if step.resampled
        else f"This photo has the grid of the training, {old[0]} x {old[1]}, so nothing is changed."
    )
    lost = [size for size in range(1, 65) if math.floor(old[0] * (size / old[0])) < size]
    where = (
        f"for g = {', '.join(map(str, lost[:4]))}"
        if lost
        else "on some grids, though on none up to 64 from this one"
    )
    history = (
        f"Sizes used to be passed as factors and rounded down, floor({old[0]} · (g / {old[0]})), which loses a row {where}; with "
        "g + 0.1 in place of g it never does."
    )
    pictures = draw.row(
        *(
            draw.picture(
                Image.fromarray(scene.colours.of(table).reshape(rows, cols, 3)),
                alt=alt,
                width=120,
                caption=f"{what}: {rows} x {cols}",
            )
            for table, (rows, cols), alt, what in tables
        ),
        draw.line(words),
    )
    return draw.part(
        "Brought to the grid of this photo (the first three principal components as red, green, blue)",
        pictures,
        "<details class=vv-w-more><summary>Why older code adds 0.1 to the size of the grid</summary>"
        f"<p>{html.escape(history)}</p></details>",
    )


def _waves(step: PositionStep) -> str:
    own = step.kind in ("sinusoidal_1d", "sinusoidal_2d")
    table: Array = step.table if own and step.table is not None else step.waves
    title = "The waves of this model" if own else "For comparison: fixed waves, which this model does not use"
    shown = draw.coloured(table[:64], signed=True, scale=(-1, 1))
    words = (
        f"Each line is a place (the first {min(64, len(table))} of {len(table)}), each column one of "
        f"{table.shape[1]} numbers: fast waves left, slow waves right; -1 blue, 1 orange."
    )
    waves = draw.part(title, draw.picture(shown, alt=words, width=460, caption=words))
    if step.angles is None:
        return waves
    turn = (
        f"Rotary angles of this model: cosine of {step.angles.shape[1]} angles at each of {len(step.angles)} "
        f"places; -1 blue, 1 orange."
    )
    picture = draw.coloured(np.cos(step.angles[:64]), signed=True, scale=(-1, 1))
    return (
        draw.part("The angles of this model", draw.picture(picture, alt=turn, width=300, caption=turn))
        + waves
    )


def _top(scene: StepInput, output: Array) -> str:
    if not scene.loaded.has_classes:
        return f"length {number(float(np.linalg.norm(output)))}"
    kind = output_kind(scene.loaded.output, output.size)
    best = int(output.argmax())
    value = float(shown(torch.from_numpy(output.astype(np.float64)), kind)[best])
    return f"{scene.class_name(best)} {number(value) if kind == 'value' else f'{value:.1%}'}"


def _largest(first: Array, second: Array) -> float:
    return float(abs(first - second).max())
