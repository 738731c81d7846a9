"""Step 8: from the last block to the answer, and what the answer would have been earlier."""

from __future__ import annotations

import numpy as np

from vit_viz.figures.lettering import number
from vit_viz.model import VisionTransformer, ViTConfig
from vit_viz.ui.walkthrough import drawings as draw
from vit_viz.ui.walkthrough.scene import StepInput
from vit_viz.ui.walkthrough.screen import Code, Screen, Slider
from vit_viz.walkthrough import ClassStep

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
    step, config = scene.step(ClassStep), scene.config
    layers = scene.trace.num_layers
    chosen = layers if scene.option is None else min(scene.option, layers)
    tokens, dim, outputs = scene.trace.num_tokens, config.embed_dim, step.logits.size
    pooled = {"class": "the class token", "mean": "mean of patches"}.get(config.pooling, "learned attention")
    said = _said(scene, step, chosen)
    title, read = _TITLES[step.pooling], _READ[config.pooling]
    if _has_several(config):
        title, pooled = "From class tokens to the answer", _class_names(config)
        read = f"The answer is read from the tokens {pooled}"
    if config.pool_concat:
        read = "The answer is read from the class token, the first of the sequence, together with the mean of all patches"
    if config.dist_head:
        read = (
            "The answer is read from the first two tokens, the class and the distillation token, and averaged"
        )
    return Screen(
        title=title,
        words=(
            f"{read}{', after a last norm' if config.final_norm else ''}.",
            said["words"],
            "Applied to the residual stream after an earlier block, the same last steps show how the answer came about: the *logit "
            "lens*.",
        ),
        terms=(
            "In code the classifier is often named head, but it has nothing to do with the heads of step 6.",
        )
        if step.probabilities is not None
        else (),
        formula=said["formula"],
        letters=f"$x$: what is read after the last block; {said['letters']}",
        shapes=(
            ("stream", f"[{tokens}, {dim}]", "after the last block"),
            ("pooled", f"[{step.pooled.size}]", pooled),
            ("output", f"[{outputs}]", _OUTPUTS[step.output]),
        ),
        figures=said["figures"],
        reveals=_journey(scene, step, chosen),
        played=scene.option is not None,
        control=Slider("stop after this many blocks", 0, layers, chosen),
        question=said["question"],
        answer=said["answer"],
        code=_code(config),
        papers=("vit", "lens"),
        hides=f"what the earlier blocks really hold: the {said['last']} was trained on the last block only, so earlier answers are "
        "a guess.",
    )


def _said(scene: StepInput, step: ClassStep, chosen: int) -> dict[str, str]:
    """What is said of an embedding, of values, or of classes: of the last map, and of the answer with it after so many blocks."""
    config, count, blocks = scene.config, step.logits.size, len(step.lens) - 1
    size, first = (
        f"{count} x {step.pooled.size}",
        "" if step.output is None else scene.class_name(step.top[0]),
    )
    if step.output is None:
        near = int(np.argmax(step.agreement > 0.9))
        has_map = config.num_classes > 0
        return {
            "words": "This model has no classes: what comes out is a vector that describes the photo, its embedding.",
            "formula": r"$y = W\, \mathrm{norm}(x)$" if has_map else r"$y = \mathrm{norm}(x)$",
            "letters": f"$W$: a last linear map, {size}; $y$: the output."
            if has_map
            else f"$y$: the output, {config.embed_dim} numbers.",
            "figures": draw.part(
                "The vector of this photo",
                draw.vector(step.logits, name="output"),
                draw.vector(step.lens[chosen], name=f"output if the model stopped after {chosen} blocks"),
                draw.line(f"Cosine similarity of the two: {number(float(step.agreement[chosen]))}."),
            ),
            "question": "After which block is the vector already similar to the final one?",
            "answer": f"After {near} blocks its cosine similarity to the final one is above 0.9 for the first time.",
            "last": "last linear map" if has_map else "norm",
        }
    read = draw.vector(step.pooled, name="the vector that is read, after the norm")
    if step.output == "value":
        numbers = "one number, the value" if count == 1 else f"{count} numbers, the values"
        rows = [(scene.class_name(i), float(step.lens[chosen, i]), float(step.logits[i])) for i in step.top]
        head = ("output", f"if the model stopped after {chosen} blocks", "what the model returns")
        return {
            "words": f"A last linear map turns its numbers into {numbers} that the model returns.",
            "formula": r"$y = W\, \mathrm{norm}(x) + b$",
            "letters": f"$W$ and $b$: weights and bias of a last linear map, {size}; $y$: what the model returns.",
            "figures": draw.part("What the model returns", draw.grid(head, rows))
            + draw.part("What the last linear map reads", read),
            "question": f"After how many of the {blocks} blocks is {first} near its final value?",
            "answer": f"After {_settled(step)} of {blocks} blocks it is within a tenth of it, and it stays so.",
            "last": "last linear map",
        }
    is_softmax = step.output == "softmax"
    turns = (
        "softmax turns these into probabilities"
        if is_softmax
        else "a sigmoid turns each of them into the probability of its class, whatever the others are"
    )
    sums = "which sum to 1" if is_softmax else "each of its own"
    return {
        "words": f"A last linear map, the *classifier*, turns its numbers into {count} scores, called *logits*, and {turns}.",
        "formula": rf"$y = W\, \mathrm{{norm}}(x) + b$, $p = \mathrm{{{step.output}}}(y)$",
        "letters": f"$W$ and $b$: weights and bias of the classifier, {size}; $y$: the logits; $p$: one probability per class, "
        f"{sums}.",
        "figures": _classes(scene, step, chosen, read),
        "question": f"After how many of the {blocks} blocks does the answer settle on {first}?",
        "answer": f"After {_settled(step)} of {blocks} blocks it is the most probable class, and it stays so.",
        "last": "classifier",
    }


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


def _classes(scene: StepInput, step: ClassStep, chosen: int, read: str) -> str:
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
    wins = (
        f"The largest of {step.logits.size} wins." if step.output == "softmax" else "Each stands for itself."
    )
    best_logits = ", ".join(f"{scene.class_name(i)} {number(float(step.logits[i]))}" for i in step.top)
    return draw.part(f"Five most probable: {after}", top) + draw.part(
        "What the classifier reads", read, draw.line(f"Logits: {best_logits}, ... {wins}")
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
    table = ""
    if lens is not None:
        final, best = step.top[0], lens.argmax(-1).tolist()
        rows = [
            (
                layer,
                scene.class_name(one),
                f"{float(lens[layer, one]):.1%}",
                f"{float(lens[layer, final]):.1%}",
            )
            for layer, one in enumerate(best)
        ]
        head = ("blocks done", "most probable", "its probability", scene.class_name(final))
        table = draw.grid(head, rows, chosen=chosen)
    similar = "cosine similarity of the outputs with the final ones"
    curve = draw.curves(
        [(similar, np.arange(len(step.agreement)), step.agreement)],
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
