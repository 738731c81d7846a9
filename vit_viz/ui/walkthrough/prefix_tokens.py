"""Step 3: learned tokens are put before the patches: class token, registers."""

from __future__ import annotations

import numpy as np

from vit_viz.figures.lettering import Theme, number
from vit_viz.figures.patches import patch_sequence
from vit_viz.model import VisionTransformer
from vit_viz.ui.walkthrough import drawings as draw
from vit_viz.ui.walkthrough.scene import StepInput
from vit_viz.ui.walkthrough.screen import Code, Screen
from vit_viz.walkthrough import PrefixStep

_STRIPS = 5
_PATCHES = 48
LENGTH = "The *length* of a vector is the root of the sum of its squared numbers."
COSINE = "The *cosine similarity* of two vectors compares their directions: 1 for the same, 0 for unrelated, -1 for opposite ones."
_TERMS = (
    "How much a token takes from another is its *attention* to it (step 5 shows how it is computed).",
    LENGTH,
    COSINE,
)
_FOR = {
    "class": "gathers what the answer is read from",
    "distillation": "gathers the answer of a teacher model",
    "register": "a notepad: holds what belongs to no place",
}


def screen(scene: StepInput) -> Screen:
    """The screen of this step."""
    step = scene.step(PrefixStep, layer=scene.layer)
    count, total = len(step.names), len(step.names) + step.num_patches
    most = int(step.received.argmax()) if count else 0
    return Screen(
        title="Tokens that are not patches" if count else "This model adds no extra tokens",
        words=_words(step) if count else _words_without(step),
        terms=_TERMS if count else (),
        formula=r"$[e_1; \dots; e_p; z_1; \dots; z_n]$, a table of $(p + n) \times D$ numbers"
        if count
        else r"$[z_1; \dots; z_n]$, a table of $n \times D$ numbers",
        letters=(f"$e_1$ to $e_p$: the extra tokens, here $p$ = {count}; " if count else "")
        + f"$z_1$ to $z_n$: the embedded patches, here $n$ = {step.num_patches}; $D$: numbers per token, here {step.dim}.",
        shapes=(
            ("embedding", f"[{step.num_patches}, {step.dim}]", "patches"),
            ("tokens", f"[{total}, {step.dim}]", f"{count} extra + {step.num_patches} patches"),
        ),
        figures=_figures(scene, step),
        shared=("layer",),
        question="How many tokens of this sequence are not patches?"
        if not count
        else f"How much of their attention do the patches give to the {step.names[0]} token in layer {step.layer}?"
        if count == 1
        else f"Which of these tokens do the patches look at most in layer {step.layer}?",
        answer=f"{step.names[most]}: it receives {float(step.received[most]):.1%} of the attention of all patches. Other layers "
        "differ."
        if count
        else f"None: all {step.num_patches} tokens are patches.",
        reveals=_table(step) if count else "",
        code=(Code(VisionTransformer.tokens, ("prefix =", "torch.cat")),),
        papers=("vit", *(("registers",) if count else ())),
        hides="what an extra token holds in the end: it starts the same for every photo and is filled in the layers that follow."
        if count
        else "why this model does without extra tokens: others do well with them.",
    )


def _words_without(step: PrefixStep) -> tuple[str, str, str]:
    """The words of a model without extra tokens."""
    read = (
        "a weighted mean of all tokens whose weights it has learned to choose"
        if step.pooling == "attention"
        else "the mean of all patches"
    )
    return (
        "Many models put a learned vector before the patches, the *class token*, and read their answer from it.",
        f"This model has none: its answer is read from {read}.",
        f"So the sequence keeps its {step.num_patches} tokens in every *layer*, a round in which tokens exchange what they "
        "know (steps 5 to 7).",
    )


def _words(step: PrefixStep) -> tuple[str, str, str]:
    """On the vectors, on those that the answer may be read from, and on registers."""
    count = len(step.names)
    vectors = "One learned vector is" if count == 1 else f"{count} learned vectors are"
    it = "it is" if count == 1 else "they are"
    layer = "in every *layer*, a round in which tokens exchange what they know (steps 5 to 7)"
    is_read = step.pooling == "class"
    if "class 0" in step.names:
        first = sum(name.startswith("class ") for name in step.names)
        read = ", ".join(step.read) if is_read else "elsewhere"
        collect = f"The first {first} are *class tokens*: {layer}, they collect from the patches; the answer is read from {read}."
    elif "class" not in step.names:
        collect = f"They collect from the patches {layer}, but the answer is read from elsewhere."
    else:
        end = (
            "and the answer is read from it at the end"
            if is_read
            else "though this model reads its answer from elsewhere"
        )
        collect = f"The first is the *class token*: {layer}, it collects from the patches, {end}."
    registers = sum(name.startswith("register") for name in step.names)
    spare = (
        "The *register* is a spare vector"
        if registers == 1
        else f"The {registers} *registers* are spare vectors"
    )
    return (
        f"{vectors} put before the patches; {it} the same for every photo.",
        collect,
        f"{spare} in which the model can keep what belongs to no place in the photo, instead of writing it over patches that "
        "matter little."
        if registers
        else "This model has no *registers*: spare vectors that newer models add for what belongs to no place in the photo.",
    )


def _figures(scene: StepInput, step: PrefixStep) -> str:
    (tall, cols), shown = scene.trace.layout.grid, scene.padded_input()
    lines = min(tall, max(1, _PATCHES // cols))
    first = shown.crop((0, 0, shown.width, shown.height // tall * lines))
    count = len(step.names)
    others = f"{count} tokens that are not patches" if count > 1 else "one token that is not a patch"
    words = f"The first {lines * cols} of {step.num_patches} patches, line by line{f', after {others}' if count else ''}."
    looks: tuple[Theme, ...] = ("light", "dark")
    orders = {
        look: patch_sequence(first, grid=(lines, cols), prefix=step.names, width=880, tile=68, theme=look)
        for look in looks
    }
    sequence = draw.part(
        "How the sequence begins",
        *(
            draw.picture(order, alt=words, width=440, caption=words, sharp=False, look=look)
            for look, order in orders.items()
        ),
    )
    if not step.names:
        return sequence
    strips = "".join(
        draw.strip(step.vectors[place], name=f"{name}, as learned")
        for place, name in enumerate(step.names[:_STRIPS])
    )
    return sequence + draw.part("The vectors themselves", strips)


def _table(step: PrefixStep) -> str:
    """What each extra token is for, and how much the patches look at it."""
    rows = [
        (
            name,
            _FOR.get(name.split(" ")[0], ""),
            float(np.linalg.norm(step.vectors[place])),
            f"{float(step.received[place]):.1%}",
            float(step.changed[place]),
        )
        for place, name in enumerate(step.names)
    ]
    head = (
        "token",
        "what for",
        "length",
        f"attention from the patches in layer {step.layer}",
        "similarity of start and end",
    )
    return draw.part(
        "What the patches look at among them",
        draw.grid(head, rows),
        draw.line(
            f"In layer {step.layer} the patches give {float(step.received.sum()):.1%} of their attention to these tokens. "
            f"The embedding of a patch has length {number(step.patch_norm)} (median). Similarity of start and end: cosine "
            "similarity of the token before the first layer and after the last."
        ),
    )
