"""Step 4: a token learns where it was, or the model could not tell a photo from its shuffled patches."""

from __future__ import annotations

import math

import numpy as np
from PIL import Image

from vit_viz.analyses.walkthrough import Array
from vit_viz.analyses.walkthrough_tokens import PositionStep, position_step
from vit_viz.model.positions import resample, rotate, sinusoidal_1d, sinusoidal_2d
from vit_viz.model.vit import VisionTransformer
from vit_viz.render.lettering import number
from vit_viz.ui.walkthrough import drawings as draw
from vit_viz.ui.walkthrough import papers
from vit_viz.ui.walkthrough.scene import Scene
from vit_viz.ui.walkthrough.screen import Code, Screen, Slider

_SEEDS = 9
_KINDS = {
    "learned": "This model has learned one vector per place, its position embedding, and adds it to the patch's vector.",
    "sinusoidal_1d": "This model adds to each patch's vector a fixed pattern of waves, another one for each place in the sequence.",
    "sinusoidal_2d": "This model adds to each patch's vector a fixed pattern of waves, half for the column and half for the row.",
    "rotary": "This model adds nothing: in each layer it turns queries and keys (next step) by angles that depend on the place.",
    "none": "This model has no positions at all: it can only guess where a patch was from what the patch shows.",
}


def screen(scene: Scene) -> Screen:
    """The screen of this step."""
    seed = 1 if scene.play is None else min(scene.play, _SEEDS)
    step = position_step(scene.walk, place=scene.place, seed=seed)
    (rows, cols), dim = step.grid, scene.loaded.config.embed_dim
    return Screen(
        title="Each token learns where it was",
        words=(
            "What follows treats the tokens as a bag, not as a row: without help, the order of the patches would not matter.",
            _KINDS[step.kind],
            f"Shuffle the patches and compare: with positions the answer changes, without positions it does not "
            f"(here by at most {_largest(step.unplaced, step.unplaced_shuffled):.0e}).",
        ),
        formula="rotary: q_i → R_i q_i,  k_j → R_j k_j" if step.kind == "rotary" else "x_i = z_i + p_i",
        letters="z_i: the embedding of patch i; p_i: the position of its place. Waves: p[t, 2k] = sin(t / 10000^(2k / D)), "
        "p[t, 2k + 1] = cos of the same.  R_i: a rotation by angles of place i.",
        shapes=(
            ("tokens", f"[{len(step.order)}, {dim}]", "patches"),
            (
                (
                    "angles",
                    f"[{len(step.order)}, {scene.loaded.config.head_dim // 2}]",
                    "one per pair of numbers",
                )
                if step.kind == "rotary"
                else (
                    "positions",
                    f"[{rows} · {cols}, {dim}]" if step.table is not None else "none",
                    "one per place",
                )
            ),
            ("tokens", f"[{len(step.order)}, {dim}]", "same shape as before"),
        ),
        figures=_figures(scene, step),
        control=Slider("order of the patches (0: as they are; 1-9: shuffled)", 0, _SEEDS, seed),
        question="Without positions, what does the model say of the shuffled patches?",
        answer=f"The same as of the photo: {_top(scene, step.unplaced_shuffled)} both times; the outputs differ by at most "
        f"{_largest(step.unplaced, step.unplaced_shuffled):.0e}, which is rounding.",
        code=_code(step.kind),
        papers=(papers.VIT_POSITIONS, papers.WAVES, *((papers.ROTARY,) if step.kind == "rotary" else ())),
        hides="how much the layers make of positions. The model without positions was never trained so: its answer only shows "
        "that order is lost.",
        follows="patch",
    )


def _code(kind: str) -> tuple[Code, ...]:
    if kind == "rotary":
        return Code(VisionTransformer.rotary, ("angles",)), Code(rotate, ("first *",))
    tokens = Code(VisionTransformer.tokens, ("x = x + F.pad",))
    if kind == "learned":
        return tokens, Code(resample, ("F.interpolate", "new_rows + 0.1"))
    return tokens, Code(sinusoidal_2d if kind == "sinusoidal_2d" else sinusoidal_1d, ("sin()", "angle"))


def _figures(scene: Scene, step: PositionStep) -> str:
    return _shuffle(scene, step) + _where(scene, step) + _grids(scene, step) + _waves(step)


def _shuffle(scene: Scene, step: PositionStep) -> str:
    mixed = draw.picture(
        _mixed(scene, step), alt="The input with its patches in this order", width="130px", sharp=False
    )
    rows = [
        (
            "with positions",
            _top(scene, step.output),
            _top(scene, step.shuffled),
            _largest(step.output, step.shuffled),
        ),
        (
            "without positions",
            _top(scene, step.unplaced),
            _top(scene, step.unplaced_shuffled),
            _largest(step.unplaced, step.unplaced_shuffled),
        ),
    ]
    table = draw.grid(("", "photo", "patches in this order", "largest difference"), rows)
    return draw.part("Does the order of the patches matter?", draw.row(mixed, table))


def _where(scene: Scene, step: PositionStep) -> str:
    if step.similarity is None:
        return ""
    near = draw.heat(
        step.similarity,
        name="similarity",
        width="130px",
        caption=f"how alike the position of {scene.patch_name} is to every other: {number(float(step.similarity.min()))} to 1",
    )
    if step.table is None:
        words = "Cosine of the angle between two places, mean over all frequencies: 1 where both are turned alike."
        return draw.part("Which places are alike", draw.row(near, draw.line(words)))
    index = step.place[0] * step.grid[1] + step.place[1]
    strip = draw.strip(step.table[index], name=f"position of {scene.patch_name}")
    words = f"Length of this position {number(step.position_norm)}, of the patch's embedding {number(step.patch_norm)}."
    return draw.part(
        "Which places are alike", draw.row(near, f"<div class=vv-w-fill>{strip}{draw.line(words)}</div>")
    )


def _grids(scene: Scene, step: PositionStep) -> str:
    """Before and after resampling, in the three directions in which positions differ most."""
    if step.table is None or step.trained_table is None or scene.colours is None:
        return ""
    old, new = step.trained_grid, step.grid
    before, after = scene.colours.of(step.trained_table), scene.colours.of(step.table)
    pictures = draw.row(
        draw.picture(
            Image.fromarray(before.reshape(*old, 3)),
            alt="Positions as trained",
            width="120px",
            caption=f"as trained: {old[0]} x {old[1]}",
        ),
        draw.picture(
            Image.fromarray(after.reshape(*new, 3)),
            alt="Positions of this image",
            width="120px",
            caption=f"of this image: {new[0]} x {new[1]}",
        ),
        draw.line(_resampling_words(step)),
    )
    return draw.part(
        "Brought to the grid of this image (three main directions as red, green, blue)", pictures
    )


def _resampling_words(step: PositionStep) -> str:
    old, new = step.trained_grid, step.grid
    lost = [size for size in range(1, 65) if math.floor(old[0] * (size / old[0])) < size]
    history = (
        f"The 0.1 in old code: sizes were passed as factors and rounded down, floor({old[0]} · (g / {old[0]})), which loses a row "
        + (
            f"for g = {', '.join(map(str, lost[:4]))}"
            if lost
            else "on some grids, though on none up to 64 from this one"
        )
        + "; with (g + 0.1) it never does."
    )
    if not step.resampled:
        return (
            f"This image has the grid of the training, {old[0]} x {old[1]}, so nothing is changed. {history}"
        )
    return (
        f"{old[0]} x {old[1]} positions were learned; bicubic interpolation ({step.variant}) makes {new[0]} x "
        f"{new[1]} of them. {history}"
    )


def _waves(step: PositionStep) -> str:
    own = step.kind in ("sinusoidal_1d", "sinusoidal_2d")
    table: Array = step.table if own and step.table is not None else step.waves
    title = "The waves of this model" if own else "For comparison: fixed waves, which this model does not use"
    shown = draw.coloured(table[:64], signed=True, scale=(-1, 1))
    words = (
        f"Each line is a place (the first {min(64, len(table))} of {len(table)}), each column one of "
        f"{table.shape[1]} numbers: fast waves left, slow waves right; -1 blue, 1 red."
    )
    parts = [draw.picture(shown, alt=words, width="min(100%, 460px)", caption=words)]
    if step.angles is not None:
        turn = (
            f"Rotary angles of this model: cosine of {step.angles.shape[1]} angles at each of {len(step.angles)} "
            f"places; -1 blue, 1 red."
        )
        picture = draw.coloured(np.cos(step.angles[:64]), signed=True, scale=(-1, 1))
        return draw.part(
            "The angles of this model",
            draw.picture(picture, alt=turn, width="min(100%, 300px)", caption=turn),
        ) + draw.part(title, *parts)
    return draw.part(title, *parts)


def _mixed(scene: Scene, step: PositionStep) -> Image.Image:
    """The input with its patches in the order of the experiment."""
    source, cols = scene.padded_input(), step.grid[1]
    tall, wide = scene.loaded.config.patch_size
    sheet = Image.new(source.mode, source.size)
    for place, patch in enumerate(step.order.tolist()):
        down, across = divmod(patch, cols)
        tile = source.crop((across * wide, down * tall, (across + 1) * wide, (down + 1) * tall))
        sheet.paste(tile, (place % cols * wide, place // cols * tall))
    return sheet


def _top(scene: Scene, output: Array) -> str:
    if not scene.loaded.has_classes:
        return f"length {number(float(np.linalg.norm(output)))}"
    shifted = np.exp(output.astype(np.float64) - output.max())
    best = int(output.argmax())
    return f"{scene.class_name(best)} {shifted[best] / shifted.sum():.1%}"


def _largest(first: Array, second: Array) -> float:
    return float(abs(first - second).max())
