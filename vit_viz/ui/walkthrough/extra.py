"""Step 3: learned tokens are put before the patches: class token, registers."""

from __future__ import annotations

import numpy as np

from vit_viz.analyses.walkthrough_tokens import PrefixStep, prefix_step
from vit_viz.model.vit import VisionTransformer
from vit_viz.render.lettering import number
from vit_viz.render.patches import patch_sequence
from vit_viz.ui.walkthrough import drawings as draw
from vit_viz.ui.walkthrough import papers
from vit_viz.ui.walkthrough.scene import Scene
from vit_viz.ui.walkthrough.screen import Code, Screen

_STRIPS = 5
_PATCHES = 48
_FOR = {
    "class": "gathers what the answer is read from",
    "distillation": "gathers the answer of a teacher model",
    "register": "a notepad: holds what belongs to no place",
}


def screen(scene: Scene) -> Screen:
    """The screen of this step."""
    step = prefix_step(scene.walk, scene.trace, layer=scene.layer)
    count, total = len(step.names), len(step.names) + step.num_patches
    return Screen(
        title="Tokens that are no patch" if count else "This model adds no extra tokens",
        words=_words(step),
        formula="[class; registers; z_1; ...; z_n]: [p + n, D]" if count else "[z_1; ...; z_n]: [n, D]",
        letters=f"p: extra tokens put before the patches, here {count}; n: patches, here {step.num_patches}; D: "
        f"numbers per token, here {step.dim}.",
        shapes=(
            ("embedding", f"[{step.num_patches}, {step.dim}]", "patches"),
            ("tokens", f"[{total}, {step.dim}]", f"{count} extra + {step.num_patches} patches"),
        ),
        figures=_figures(scene, step),
        shared=("layer",),
        question=_question(step),
        answer=_answer(step),
        code=(Code(VisionTransformer.tokens, ("prefix =", "torch.cat")),),
        papers=(papers.VIT, papers.REGISTERS),
        hides="what an extra token holds: it starts the same for every image and is filled in the layers that follow.",
    )


def _words(step: PrefixStep) -> tuple[str, str, str]:
    if not step.names:
        read = (
            "an attention of its own over all tokens"
            if step.pooling == "attention"
            else "the mean of all patch tokens"
        )
        return (
            "Many models put a learned vector before the patches, the class token, and read their answer from it.",
            f"This model has none: its answer is read from {read}.",
            f"So the sequence stays as long as it was: {step.num_patches} tokens.",
        )
    registers = sum(name.startswith("register") for name in step.names)
    return (
        f"{len(step.names)} learned vectors are put before the patches; they are the same for every image.",
        "The class token is an empty page: in every layer, a round in which tokens look at each other (steps 5 to 7), it "
        "collects from the patches, and the answer is read from it at the end."
        if step.pooling == "class" and "class" in step.names
        else "They collect from the patches in every layer, a round in which tokens look at each other (steps 5 to 7), but the "
        "answer is read from elsewhere.",
        f"The {registers} registers are spare pages where the model can note what belongs to no place, instead of writing it over "
        "unimportant patches."
        if registers
        else "This model has no registers: spare pages that newer models add for what belongs to no place.",
    )


def _figures(scene: Scene, step: PrefixStep) -> str:
    (tall, cols), shown = scene.trace.layout.grid, scene.padded_input()
    lines = min(tall, max(1, _PATCHES // cols))
    first = shown.crop((0, 0, shown.width, shown.height // tall * lines))
    order = patch_sequence(first, grid=(lines, cols), prefix=step.names, width=440, tile=34)
    words = f"The first {lines * cols} of {step.num_patches} patches, line by line" + (
        f", after {len(step.names)} tokens that are no patch." if step.names else "."
    )
    sequence = draw.part(
        "How the sequence begins",
        draw.picture(order, alt=words, width="min(100%, 440px)", caption=words, sharp=False),
    )
    if not step.names:
        return sequence
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
        f"drawn from the patches in layer {step.layer}",
        "start and end alike",
    )
    strips = "".join(
        draw.strip(step.vectors[place], name=f"{name}, as learned")
        for place, name in enumerate(step.names[:_STRIPS])
    )
    return (
        sequence
        + draw.part(
            "What the patches look at among them",
            draw.grid(head, rows),
            draw.line(
                f"Of all looking that the patches do in layer {step.layer} (their attention), "
                f"{float(step.received.sum()):.1%} goes to these tokens. "
                f"The length of a vector is the root of its sum of squares; a patch's has {number(step.patch_norm)} (median). "
                "Start and end alike: cosine similarity of the token before the first and after the last layer: 1 for the same "
                "direction, 0 for unrelated, -1 for the opposite."
            ),
        )
        + draw.part("The vectors themselves", strips)
    )


def _question(step: PrefixStep) -> str:
    if not step.names:
        return "How many tokens of this sequence are no patch?"
    return f"Which of these tokens do the patches look at most in layer {step.layer}?"


def _answer(step: PrefixStep) -> str:
    if not step.names:
        return f"None: all {step.num_patches} tokens are patches."
    most = int(step.received.argmax())
    return (
        f"{step.names[most]}: it draws {float(step.received[most]):.1%} of the attention of all patches. Move the "
        f"layer and it may be another."
    )
