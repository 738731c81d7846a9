"""Step 2: each patch becomes a vector by the same linear map."""

from __future__ import annotations

import numpy as np

from vit_viz.model.vit import PatchEmbed
from vit_viz.render.lettering import number
from vit_viz.ui.walkthrough import drawings as draw
from vit_viz.ui.walkthrough import papers
from vit_viz.ui.walkthrough.patches import patch_picture
from vit_viz.ui.walkthrough.scene import Scene
from vit_viz.ui.walkthrough.screen import Code, Screen, Slider
from vit_viz.walkthrough.embedding import EmbeddingStep

_SHOWN = 28
_MARKS = {
    "conv": ("self.proj(self.whole_patches", "x.flatten(2)"),
    "unfold": ("self.proj(self.patches",),
}


def screen(scene: Scene) -> Screen:
    """The screen of this step."""
    config = scene.config
    dim = config.embed_dim
    chosen = min(scene.option or 0, dim - 1)
    step = scene.step(EmbeddingStep, place=scene.place, number=chosen)
    count, size = step.shape[0], step.flat.size
    return Screen(
        title="Each patch becomes a vector",
        words=(
            f"Every patch of {size} numbers is turned into a list of {dim} numbers (a *vector*), called its *embedding*.",
            f"Each of these numbers is a weighted sum of all numbers of the patch plus a constant, the *bias*"
            f"{'' if scene.config.patch_bias else ' (which this model leaves out here)'}; the weights were learned in training and "
            "are the same for every patch, and drawn as a picture they are called a *filter*.",
            "A step made of weighted sums is called a *linear map*; a program may cut out the patches and then multiply, or slide "
            "the filters over the photo in steps of one patch (a *convolution*): both give the same numbers.",
        ),
        terms=(
            f"The *principal components* of the {dim} filters are the patterns from which all of them are mixed, the most "
            "important first.",
        ),
        formula="$z = E x + b$",
        letters=f"$x$: the patch as a row of {size} numbers; $E$: the learned weights, {dim} x {size}; $b$: the bias; $z$: "
        f"the embedding, {dim} numbers.",
        shapes=(
            ("patches", f"[{count}, {size}]", "rows of pixels"),
            ("embedding", f"[{count}, {dim}]", "one vector per patch"),
        ),
        figures=_figures(scene, step),
        control=Slider("number of the vector to take apart", 0, dim - 1, chosen),
        question=f"How much of the variety among all {dim} filters do the first {min(3, _count(scene))} principal components "
        "explain: a tenth, half, nearly all?",
        answer=f"{_explained(scene, 3):.0%}; all {min(_SHOWN, _count(scene))} that are shown explain "
        f"{_explained(scene, _SHOWN):.0%}. After long training a few are enough, and the first are even colour, light against "
        "dark, and stripes: a patch is too small to show whole objects.",
        reveals=draw.part("What all filters have in common", _components(scene)),
        code=(Code(PatchEmbed.forward, _MARKS[scene.config.patch_embed]),),
        papers=(papers.VIT, papers.VIT_FILTERS),
        hides="what a vector means: no single one of its numbers stands for something that has a name.",
        follows="patch",
    )


def _figures(scene: Scene, step: EmbeddingStep) -> str:
    place, total = step.number, float(step.products.sum())
    weight = step.weight[place].reshape(step.products.shape)
    bias, value = float(step.bias[place]), float(step.linear[place])
    across = draw.row(
        draw.picture(patch_picture(scene), alt="The patch", width=104, caption=f"{scene.patch_name}"),
        draw.picture(
            draw.weights_picture(weight), alt=f"Filter {place}", width=104, caption=f"x filter {place}"
        ),
        draw.heat(
            step.products.sum(0),
            name="products",
            width=104,
            signed=True,
            caption="= products (red: above 0)",
        ),
    )
    sums = (
        f"sum of {step.flat.size} products {number(total)} + bias {number(bias)} = {number(value)} = number "
        f"{place} of the vector"
    )
    compared = (
        draw.strip(step.linear, name="cut out, then multiplied", rows=_lines(step.linear.size))
        + draw.strip(step.convolution, name="convolution", rows=_lines(step.linear.size))
        + draw.line(
            f"Largest difference over all {step.shape[0]} patches: {step.difference:.1e}, the rounding of 32-bit numbers."
        )
    )
    return draw.part(
        f"How number {place} of the vector comes about", across, draw.sum_line(sums)
    ) + draw.part("The whole vector, computed in two ways", compared)


def _components(scene: Scene) -> str:
    shown = scene.components.values[:_SHOWN]
    sheet = draw.sheet_of([draw.weights_picture(one) for one in shown], across=14)
    words = (
        f"The first {len(shown)} principal components of the {scene.config.embed_dim} filters; the first explains "
        f"{float(scene.components.shares[0]):.0%} of their variety, all that are shown "
        f"{_explained(scene, len(shown)):.0%}."
    )
    return draw.picture(sheet, alt=words, width=620, caption=words)


def _lines(size: int) -> int:
    """In how many lines a vector is drawn, so that its numbers can be told apart."""
    return 2 if size % 2 == 0 and size > 256 else 1


def _count(scene: Scene) -> int:
    return len(scene.components.shares)


def _explained(scene: Scene, count: int) -> float:
    return float(np.sum(scene.components.shares[:count]))
