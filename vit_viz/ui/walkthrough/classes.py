"""Step 8: from the last block to the answer, and what the answer would have been earlier."""

from __future__ import annotations

import numpy as np

from vit_viz.analyses.walkthrough_layers import ClassStep, class_step
from vit_viz.model.vit import VisionTransformer
from vit_viz.render.lettering import number
from vit_viz.ui.walkthrough import drawings as draw
from vit_viz.ui.walkthrough import papers
from vit_viz.ui.walkthrough.scene import Scene
from vit_viz.ui.walkthrough.screen import Code, Screen, Slider

_READ = {
    "class": "The answer is read from the class token alone",
    "mean": "The answer is read from the mean of all patch tokens",
    "attention": "The answer is read by one more attention, with a learned query, over the tokens",
}


def screen(scene: Scene) -> Screen:
    """The screen of this step."""
    step = class_step(scene.walk)
    layers = scene.trace.num_layers
    chosen = layers if scene.play is None else min(scene.play, layers)
    tokens, dim, outputs = scene.trace.num_tokens, scene.loaded.config.embed_dim, step.logits.size
    has_head = scene.loaded.config.num_classes > 0
    return Screen(
        title="From the last token to the answer",
        words=(
            f"{_READ[step.pooling]}, after a last norm.",
            f"A linear map, the head, turns its numbers into {outputs} scores, called logits, and softmax into probabilities."
            if step.probabilities is not None
            else "This model has no classes: what comes out is a vector that describes the image, an embedding.",
            "Applied to the stream after an earlier block, the same head shows how the answer grew: the logit lens.",
        ),
        formula="logits = W norm(x_pool) + b,   p = softmax(logits)" if has_head else "y = norm(x_pool)",
        letters=f"x_pool: what is read after the last block; W: the head, {outputs} x {step.pooled.size}; p: one "
        f"probability per class, sum 1."
        if has_head
        else f"x_pool: what is read after the last block, {dim} numbers.",
        shapes=(
            ("stream", f"[{tokens}, {dim}]", "after the last block"),
            ("pooled", f"[{step.pooled.size}]", _pooled_words(step)),
            ("output", f"[{outputs}]", "classes" if step.probabilities is not None else "numbers"),
        ),
        figures=_classes(scene, step, chosen) if step.probabilities is not None else _embedding(step, chosen),
        control=Slider("stop after this many blocks", 0, layers, chosen),
        question=_question(scene, step),
        answer=_answer(step),
        code=(
            Code(VisionTransformer.classify, ("self.head",)),
            Code(VisionTransformer.pool, ("self.norm", "x[:, 0]", "attn_pool(")),
        ),
        papers=(papers.VIT, papers.LENS),
        hides="what the earlier blocks really hold: the head was trained on the last block only, so earlier answers "
        "are an extrapolation.",
    )


def _classes(scene: Scene, step: ClassStep, chosen: int) -> str:
    assert step.lens_probabilities is not None
    lens = step.lens_probabilities
    final, layers = step.top[0], len(lens) - 1
    order = np.argsort(-lens[chosen], kind="stable")[:5]
    top = draw.bars(
        [(scene.class_name(int(i)), float(lens[chosen, i]), f"{float(lens[chosen, i]):.1%}") for i in order]
    )
    after = (
        "the model's answer"
        if chosen == layers
        else f"the answer if the model stopped after {chosen} of {layers} blocks"
    )
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
    table = draw.grid(
        ("blocks done", "most probable", "its probability", scene.class_name(final)), rows, chosen=chosen
    )
    best_logits = ", ".join(f"{scene.class_name(i)} {number(float(step.logits[i]))}" for i in step.top)
    return (
        draw.part(f"Five most probable: {after}", top)
        + draw.part("The answer through the blocks", table, _journey(step, chosen))
        + draw.part(
            "What the head reads",
            draw.strip(
                step.pooled, name="pooled vector, after the norm", rows=2 if step.pooled.size > 256 else 1
            ),
            draw.line(f"Logits: {best_logits}, ... The largest of {step.logits.size} wins."),
        )
    )


def _embedding(step: ClassStep, chosen: int) -> str:
    rows = 2 if step.logits.size > 256 else 1
    return draw.part(
        "The vector of this image",
        draw.strip(step.logits, name="output", rows=rows),
        draw.strip(step.lens[chosen], name=f"output if the model stopped after {chosen} blocks", rows=rows),
        draw.line(f"Cosine similarity of the two: {number(float(step.agreement[chosen]))}."),
    ) + draw.part("How it comes about", _journey(step, chosen))


def _journey(step: ClassStep, chosen: int) -> str:
    return draw.curves(
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


def _settled(step: ClassStep) -> int:
    """After how many blocks the final class is the most probable, and stays it."""
    assert step.lens_probabilities is not None
    best = step.lens_probabilities.argmax(-1)
    wrong = np.flatnonzero(best != step.top[0])
    return int(wrong[-1]) + 1 if len(wrong) else 0


def _question(scene: Scene, step: ClassStep) -> str:
    if step.probabilities is None:
        return "After which block is the vector already much like the final one?"
    return f"After how many blocks is {scene.class_name(step.top[0])} the most probable class, and stays it?"


def _answer(step: ClassStep) -> str:
    if step.probabilities is None:
        near = int(np.argmax(step.agreement > 0.9))
        return (
            f"After {near} blocks its cosine similarity with the final one is above 0.9 for the first time."
        )
    count = _settled(step)
    share = float(step.probabilities[step.top[0]])
    return f"After {count} of {len(step.lens) - 1} blocks; in the end its probability is {share:.1%}."


def _pooled_words(step: ClassStep) -> str:
    return {"class": "the class token", "mean": "mean of patches"}.get(step.pooling, "learned attention")
