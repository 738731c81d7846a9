"""Step 8: from the last block to the answer, and what the answer would have been earlier."""

from __future__ import annotations

import numpy as np

from vit_viz.figures.lettering import number
from vit_viz.model import VisionTransformer, ViTConfig
from vit_viz.ui.walkthrough import drawings as draw
from vit_viz.ui.walkthrough.scene import StepInput
from vit_viz.ui.walkthrough.screen import Code, Screen, Slider
from vit_viz.walkthrough.embedding import Array
from vit_viz.walkthrough.layers import ClassStep

_TITLES = {
    "class": "From the class token to the answer",
    "mean": "From the patches to the answer",
    "attention": "From all tokens to the answer",
}
_READ = {
    "class": "The answer is read from the class token alone, the first of the sequence",
    "mean": "The answer is read from the mean of all patches",
    "attention": "The answer is read by one more attention, with a learned query, over the tokens",
}


def screen(scene: StepInput) -> Screen:
    """The screen of this step."""
    step = scene.step(ClassStep)
    layers = scene.trace.num_layers
    chosen = layers if scene.option is None else min(scene.option, layers)
    tokens, dim, outputs = scene.trace.num_tokens, scene.config.embed_dim, step.logits.size
    last = (
        "classifier"
        if step.probabilities is not None
        else "last linear map"
        if scene.config.num_classes
        else "norm"
    )
    return Screen(
        title=_TITLES[step.pooling],
        words=(
            f"{_read(scene.config)}{', after a last norm' if scene.config.final_norm else ''}.",
            f"A last linear map, the *classifier*, turns its numbers into {outputs} scores, called *logits*, and softmax turns "
            "these into probabilities."
            if step.probabilities is not None
            else "This model has no classes: what comes out is a vector that describes the photo, its embedding.",
            "Applied to the residual stream after an earlier block, the same last steps show how the answer came about: the *logit "
            "lens*.",
        ),
        terms=(
            "In code the classifier is often named head, but it has nothing to do with the heads of step 6.",
        )
        if step.probabilities is not None
        else (),
        formula=_formula(scene, step),
        letters=_letters(scene, step, dim),
        shapes=(
            ("stream", f"[{tokens}, {dim}]", "after the last block"),
            ("pooled", f"[{step.pooled.size}]", _pooled_words(step)),
            ("output", f"[{outputs}]", "classes" if step.probabilities is not None else "numbers"),
        ),
        figures=_classes(scene, step, chosen) if step.probabilities is not None else _embedding(step, chosen),
        reveals=_journey(scene, step, chosen),
        played=scene.option is not None,
        control=Slider("stop after this many blocks", 0, layers, chosen),
        question=_question(scene, step),
        answer=_answer(step),
        code=_code(scene.config),
        papers=("vit", "lens"),
        hides=f"what the earlier blocks really hold: the {last} was trained on the last block only, so earlier answers are "
        "a guess.",
    )


def _read(config: ViTConfig) -> str:
    if config.dist_head:
        return (
            "The answer is read from the first two tokens, the class and the distillation token, and averaged"
        )
    if config.pool_concat:
        return "The answer is read from the class token, the first of the sequence, together with the mean of all patches"
    return _READ[config.pooling]


def _code(config: ViTConfig) -> tuple[Code, ...]:
    """How this model reads its output: the branches that it takes."""
    if config.dist_head:
        return (Code(VisionTransformer.classify, ("self.head_dist",)),)
    branch = "torch.cat((x[:, 0]" if config.pool_concat else "pooled = x[:, 0] if"
    if config.pooling == "attention":
        branch = "self.attn_pool(patches)"
    return (
        Code(VisionTransformer.classify, ("return self.head(self.pool(x))",)),
        Code(VisionTransformer.pool, ("self.norm(x)", branch)),
    )


def _formula(scene: StepInput, step: ClassStep) -> str:
    if scene.config.num_classes == 0:
        return r"$y = \mathrm{norm}(x)$"
    if step.probabilities is None:
        return r"$y = W\, \mathrm{norm}(x)$"
    return r"$y = W\, \mathrm{norm}(x) + b$, $p = \mathrm{softmax}(y)$"


def _letters(scene: StepInput, step: ClassStep, dim: int) -> str:
    read = "$x$: what is read after the last block"
    if scene.config.num_classes == 0:
        return f"{read}; $y$: the output, {dim} numbers."
    if step.probabilities is None:
        return f"{read}; $W$: a last linear map, {step.logits.size} x {step.pooled.size}; $y$: the output."
    return (
        f"{read}; $W$ and $b$: weights and bias of the classifier, {step.logits.size} x {step.pooled.size}; $y$: the logits; $p$: "
        "one probability per class, which sum to 1."
    )


def _classes(scene: StepInput, step: ClassStep, chosen: int) -> str:
    assert step.lens_probabilities is not None
    lens = step.lens_probabilities
    layers = len(lens) - 1
    order = np.argsort(-lens[chosen], kind="stable")[:5]
    top = draw.bars(
        [(scene.class_name(int(i)), float(lens[chosen, i]), f"{float(lens[chosen, i]):.1%}") for i in order]
    )
    after = (
        "the model's answer"
        if chosen == layers
        else f"the answer if the model stopped after {chosen} of {layers} blocks"
    )
    best_logits = ", ".join(f"{scene.class_name(i)} {number(float(step.logits[i]))}" for i in step.top)
    return draw.part(f"Five most probable: {after}", top) + draw.part(
        "What the classifier reads",
        draw.vector(step.pooled, name="the vector that is read, after the norm"),
        draw.line(f"Logits: {best_logits}, ... The largest of {step.logits.size} wins."),
    )


def _through_blocks(scene: StepInput, lens: Array, final: int, chosen: int) -> str:
    """The most probable class after each block, beside the class that the model ends on."""
    rows = []
    for layer, probabilities in enumerate(lens):
        best = int(probabilities.argmax())
        rows.append(
            (
                layer,
                scene.class_name(best),
                f"{float(probabilities[best]):.1%}",
                f"{float(probabilities[final]):.1%}",
            )
        )
    return draw.grid(
        ("blocks done", "most probable", "its probability", scene.class_name(final)), rows, chosen=chosen
    )


def _embedding(step: ClassStep, chosen: int) -> str:
    return draw.part(
        "The vector of this photo",
        draw.vector(step.logits, name="output"),
        draw.vector(step.lens[chosen], name=f"output if the model stopped after {chosen} blocks"),
        draw.line(f"Cosine similarity of the two: {number(float(step.agreement[chosen]))}."),
    )


def _journey(scene: StepInput, step: ClassStep, chosen: int) -> str:
    """The answer after each block."""
    lens = step.lens_probabilities
    table = "" if lens is None else _through_blocks(scene, lens, step.top[0], chosen)
    curve = draw.curves(
        [
            (
                "cosine similarity of the outputs with the final ones",
                np.arange(len(step.agreement)),
                step.agreement,
            )
        ],
        label="How similar the outputs after each block are to the final ones",
        x_label="blocks done",
        mark=float(chosen),
    )
    return draw.part("The answer through the blocks", table, curve)


def _settled(step: ClassStep) -> int:
    """After how many blocks the final class is the most probable from then on."""
    assert step.lens_probabilities is not None
    best = step.lens_probabilities.argmax(-1)
    wrong = np.flatnonzero(best != step.top[0])
    return int(wrong[-1]) + 1 if len(wrong) else 0


def _question(scene: StepInput, step: ClassStep) -> str:
    if step.probabilities is None:
        return "After which block is the vector already similar to the final one?"
    return f"After how many of the {len(step.lens) - 1} blocks does the answer settle on {scene.class_name(step.top[0])}?"


def _answer(step: ClassStep) -> str:
    if step.probabilities is None:
        near = int(np.argmax(step.agreement > 0.9))
        return f"After {near} blocks its cosine similarity to the final one is above 0.9 for the first time."
    return f"After {_settled(step)} of {len(step.lens) - 1} blocks it is the most probable class, and it stays so."


def _pooled_words(step: ClassStep) -> str:
    return {"class": "the class token", "mean": "mean of patches"}.get(step.pooling, "learned attention")
