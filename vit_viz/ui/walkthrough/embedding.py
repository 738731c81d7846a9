"""Step 2: each patch becomes a vector by the same linear map."""

from __future__ import annotations

import numpy as np

from vit_viz.analyses.walkthrough import EmbeddingStep, embedding_step
from vit_viz.model.vit import PatchEmbed
from vit_viz.render.lettering import number
from vit_viz.ui.walkthrough import drawings as draw
from vit_viz.ui.walkthrough import papers
from vit_viz.ui.walkthrough.patches import patch_picture
from vit_viz.ui.walkthrough.scene import Scene
from vit_viz.ui.walkthrough.screen import Code, Screen, Slider

_SHOWN = 28


def screen(scene: Scene) -> Screen:
    """The screen of this step."""
    config = scene.loaded.config
    dim = config.embed_dim
    chosen = min(scene.play or 0, dim - 1)
    step = embedding_step(scene.walk, place=scene.place, number=chosen)
    count, size = step.shape[0], step.flat.size
    return Screen(
        title="Each patch becomes a vector",
        words=(
            f"A vector is a list of numbers; here every patch of {size} numbers is turned into a vector of {dim} "
            f"numbers, its embedding.",
            "Each of these numbers is a weighted sum of all pixels of the patch; the weights were learned in training and are the "
            "same for every patch, and drawn as a picture they are called a filter.",
            "Such a map made of weighted sums is called linear; a program can cut first and multiply then, or slide the filters "
            "over the image in strides of one patch (a convolution): both give the same numbers.",
        ),
        formula="z = E x + b        (convolution with stride P  =  unfold, then linear)",
        letters=f"x: the flattened patch, {size} numbers; E: the learned weights, {dim} x {size}; b: the bias; z: the "
        f"embedding, {dim} numbers.",
        shapes=(
            ("patches", f"[{count}, {size}]", "rows of pixels"),
            ("embedding", f"[{count}, {dim}]", "one vector per patch"),
        ),
        figures=_figures(scene, step),
        control=Slider("number of the vector to take apart", 0, dim - 1, chosen),
        question=f"How much of the variety of all {dim} filters do the first {min(3, _count(scene))} components explain?",
        answer=f"{_explained(scene, 3):.0%}; all {min(_SHOWN, _count(scene))} that are shown explain "
        f"{_explained(scene, _SHOWN):.0%}. After a "
        "long training few are enough, and the first are even colour, light against dark, and stripes: a patch is too small "
        "for objects.",
        code=(Code(PatchEmbed.forward, ("self.proj",)),),
        papers=(papers.VIT, papers.VIT_FILTERS),
        hides="what a vector means: no single one of its numbers stands for something that has a name.",
        follows="patch",
    )


def _figures(scene: Scene, step: EmbeddingStep) -> str:
    place, total = step.number, float(step.products.sum())
    weight = step.weight[place].reshape(step.products.shape)
    bias, found = float(step.bias[place]), float(step.linear[place])
    across = draw.row(
        draw.picture(patch_picture(scene), alt="The patch", width="104px", caption=f"{scene.patch_name}"),
        draw.picture(
            draw.weights_picture(weight), alt=f"Filter {place}", width="104px", caption=f"x filter {place}"
        ),
        draw.heat(
            step.products.sum(0),
            name="products",
            width="104px",
            signed=True,
            caption="= products (red: above 0)",
        ),
    )
    sums = (
        f"sum of {step.flat.size} products {number(total)} + bias {number(bias)} = {number(found)} = number "
        f"{place} of the vector"
    )
    compared = (
        draw.strip(step.linear, name="unfold + linear", rows=_lines(step.linear.size))
        + draw.strip(step.convolution, name="convolution", rows=_lines(step.linear.size))
        + draw.line(
            f"Largest difference over all {step.shape[0]} patches: {step.difference:.1e}, the rounding of 32-bit numbers."
        )
    )
    return (
        draw.part(f"How number {place} of the vector comes about", across, draw.sum_line(sums))
        + draw.part("The whole vector, computed in two ways", compared)
        + draw.part("What all filters have in common", _components(scene))
    )


def _components(scene: Scene) -> str:
    shown = scene.components.filters[:_SHOWN]
    sheet = draw.sheet_of([draw.weights_picture(one) for one in shown], across=14)
    words = (
        f"The first {len(shown)} principal components of the {scene.loaded.config.embed_dim} filters (the patterns that all of "
        "them are mixed from), the most important first; "
        f"the first explains {float(scene.components.shares[0]):.0%} of their variance, all shown "
        f"{_explained(scene, len(shown)):.0%}."
    )
    return draw.picture(sheet, alt=words, width="min(100%, 620px)", caption=words)


def _lines(size: int) -> int:
    """In how many lines a vector is drawn, so that its numbers can be told apart."""
    return 2 if size % 2 == 0 and size > 256 else 1


def _count(scene: Scene) -> int:
    return len(scene.components.shares)


def _explained(scene: Scene, count: int) -> float:
    return float(np.sum(scene.components.shares[:count]))
