"""Step 8: from the last block to the answer, and what the answer would have been earlier."""

from __future__ import annotations

import numpy as np

from vit_viz.figures.lettering import number
from vit_viz.model import VisionTransformer, ViTConfig
from vit_viz.ui.walkthrough import drawings as draw
from vit_viz.ui.walkthrough.scene import StepInput
from vit_viz.ui.walkthrough.screen import Code, Screen, Slider
from vit_viz.walkthrough import Array, ClassStep

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


_OUTPUTS = {"softmax": "classes", "sigmoid": "classes", "value": "values", None: "numbers"}
_TENTH = 0.1  # of a value, within which it counts as near


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
        title="From class tokens to the answer" if _has_several(scene.config) else _TITLES[step.pooling],
        words=(
            f"{_read(scene.config)}{', after a last norm' if scene.config.final_norm else ''}.",
            _output_words(step),
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
            ("pooled", f"[{step.pooled.size}]", _pooled_words(scene.config)),
            ("output", f"[{outputs}]", _OUTPUTS[step.output]),
        ),
        figures=_values(scene, step, chosen)
        if step.output == "value"
        else _embedding(step, chosen)
        if step.output is None
        else _classes(scene, step, chosen),
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


def _output_words(step: ClassStep) -> str:
    """What the last map makes of the vector."""
    if step.output is None:
        return (
            "This model has no classes: what comes out is a vector that describes the photo, its embedding."
        )
    count = step.logits.size
    if step.output == "value":
        said = "one number, the value" if count == 1 else f"{count} numbers, the values"
        return f"A last linear map turns its numbers into {said} that the model returns."
    turns = (
        "softmax turns these into probabilities"
        if step.output == "softmax"
        else "a sigmoid turns each of them into the probability of its class, whatever the others are"
    )
    return f"A last linear map, the *classifier*, turns its numbers into {count} scores, called *logits*, and {turns}."


def _read(config: ViTConfig) -> str:
    if config.dist_head:
        return (
            "The answer is read from the first two tokens, the class and the distillation token, and averaged"
        )
    if config.pool_concat:
        return "The answer is read from the class token, the first of the sequence, together with the mean of all patches"
    if _has_several(config):
        return f"The answer is read from the tokens {_class_names(config)}"
    return _READ[config.pooling]


def _has_several(config: ViTConfig) -> bool:
    """Whether there are several class tokens, and the answer is read from them."""
    return config.pooling == "class" and config.class_tokens > 1


def _class_names(config: ViTConfig) -> str:
    """Those that are read."""
    return f"{', '.join(config.prefix[i] for i in config.class_read)}, side by side"


def _code(config: ViTConfig) -> tuple[Code, ...]:
    """How this model reads its output: the branches that it takes."""
    if config.dist_head:
        return (Code(VisionTransformer.classify, ("self.head_dist",)),)
    branch = "torch.cat((x[:, 0]" if config.pool_concat else "pooled = x[:, 0] if"
    if _has_several(config):
        branch = "list(self.config.class_read)"
    if config.pooling == "attention":
        branch = "self.attn_pool(patches)"
    return (
        Code(VisionTransformer.classify, ("return self.head(self.pool(x))",)),
        Code(VisionTransformer.pool, ("self.norm(x)", branch)),
    )


def _formula(scene: StepInput, step: ClassStep) -> str:
    if scene.config.num_classes == 0:
        return r"$y = \mathrm{norm}(x)$"
    if step.output is None:
        return r"$y = W\, \mathrm{norm}(x)$"
    linear = r"$y = W\, \mathrm{norm}(x) + b$"
    return linear if step.output == "value" else rf"{linear}, $p = \mathrm{{{step.output}}}(y)$"


def _letters(scene: StepInput, step: ClassStep, dim: int) -> str:
    read = "$x$: what is read after the last block"
    if scene.config.num_classes == 0:
        return f"{read}; $y$: the output, {dim} numbers."
    size = f"{step.logits.size} x {step.pooled.size}"
    if step.output is None:
        return f"{read}; $W$: a last linear map, {size}; $y$: the output."
    if step.output == "value":
        return f"{read}; $W$ and $b$: weights and bias of a last linear map, {size}; $y$: what the model returns."
    sums = "which sum to 1" if step.output == "softmax" else "each of its own"
    return (
        f"{read}; $W$ and $b$: weights and bias of the classifier, {size}; $y$: the logits; $p$: one probability per class, "
        f"{sums}."
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
        draw.line(f"Logits: {best_logits}, ... {_wins(step)}"),
    )


def _wins(step: ClassStep) -> str:
    return (
        f"The largest of {step.logits.size} wins." if step.output == "softmax" else "Each stands for itself."
    )


def _values(scene: StepInput, step: ClassStep, chosen: int) -> str:
    """The values after so many blocks beside those of the whole model."""
    rows = [(scene.class_name(i), float(step.lens[chosen, i]), float(step.logits[i])) for i in step.top]
    head = ("output", f"if the model stopped after {chosen} blocks", "what the model returns")
    return draw.part("What the model returns", draw.grid(head, rows)) + draw.part(
        "What the last linear map reads",
        draw.vector(step.pooled, name="the vector that is read, after the norm"),
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
    if step.output == "value":
        name, blocks = scene.class_name(step.top[0]), np.arange(len(step.lens))
        label = f"{name} if the model stopped after each block"
        series = [(f"value of {name}", blocks, step.lens[:, step.top[0]])]
        value = draw.curves(series, label=label, x_label="blocks done", mark=float(chosen))
        return draw.part("The value through the blocks", value)
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
    """After how many blocks the final class is the most probable from then on, or the largest value is near the final one."""
    first = step.top[0]
    if step.output == "value":
        wrong = np.flatnonzero(
            abs(step.lens[:, first] - step.logits[first]) > _TENTH * abs(step.logits[first])
        )
    else:
        wrong = np.flatnonzero(step.lens.argmax(-1) != first)
    return int(wrong[-1]) + 1 if len(wrong) else 0


def _question(scene: StepInput, step: ClassStep) -> str:
    if step.output is None:
        return "After which block is the vector already similar to the final one?"
    if step.output == "value":
        return f"After how many of the {len(step.lens) - 1} blocks is {scene.class_name(step.top[0])} near its final value?"
    return f"After how many of the {len(step.lens) - 1} blocks does the answer settle on {scene.class_name(step.top[0])}?"


def _answer(step: ClassStep) -> str:
    if step.output is None:
        near = int(np.argmax(step.agreement > 0.9))
        return f"After {near} blocks its cosine similarity to the final one is above 0.9 for the first time."
    if step.output == "value":
        return f"After {_settled(step)} of {len(step.lens) - 1} blocks it is within a tenth of it, and it stays so."
    return f"After {_settled(step)} of {len(step.lens) - 1} blocks it is the most probable class, and it stays so."


def _pooled_words(config: ViTConfig) -> str:
    if _has_several(config):
        return _class_names(config)
    return {"class": "the class token", "mean": "mean of patches"}.get(config.pooling, "learned attention")
