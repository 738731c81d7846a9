"""Steps 1 and 2: the image is cut into patches, each a row of numbers; and each becomes a vector by the same linear map."""

from __future__ import annotations

import numpy as np
from PIL import Image

from vit_viz.figures.lettering import number
from vit_viz.model import PatchEmbed, VisionTransformer
from vit_viz.ui.walkthrough import drawings as draw
from vit_viz.ui.walkthrough.scene import StepInput
from vit_viz.ui.walkthrough.screen import Code, Screen, Slider
from vit_viz.walkthrough import Cut, EmbeddingStep, PatchStep

_LARGEST = 64


def screen(scene: StepInput) -> Screen:
    """The screen of step 1: the image is cut into patches, and a patch is a row of numbers."""
    step = scene.step(PatchStep, place=scene.place)
    tall, wide = step.patch_size
    (height, width), side = step.size, max(step.patch_size)
    # twice as large as the model's own where that fits, else half
    another = 2 * side if 2 * side <= min(_LARGEST, *step.size) else max(2, side // 2)
    tried = Cut(step.size, scene.option or another)
    is_double = step.patch_size == (tried.patch // 2, tried.patch // 2) and tried.patch % 2 == 0
    config, is_square = scene.config, tall == wide
    shape = "squares" if is_square else "rectangles"
    pixel = "three numbers (red, green, blue)" if step.channels == 3 else "one number (its brightness)"
    # a convolution cuts while it multiplies, in the next step
    counted = "height // patch_height, width" if config.drop_remainder else "-(-height // patch_height)"
    whole = "pixels, (0, -width % patch_width" if config.pad else "if not self.config.pad"
    cutting = (
        Code(PatchEmbed.patches, ("F.unfold", "transpose"))
        if config.patch_embed == "unfold"
        else Code(PatchEmbed.whole_patches, ("return pixels[..., " if config.drop_remainder else whole,))
    )
    return Screen(
        title="The photo is cut into patches",
        words=(
            f"The photo is resized to {height} x {width} pixels and cut into {shape} of {tall} x {wide} pixels, called *patches*.",
            f"A pixel is {pixel}, so one patch is a row of {step.flat.size} numbers: this row is all that the model "
            "will ever see of that part of the photo.",
            f"The {step.count} patches are read line by line, like words on a page; from here on, each is one item of a sequence, "
            "called a *token*.",
        ),
        formula=r"$n = \frac{H}{P} \cdot \frac{W}{P}$"
        if is_square
        else r"$n = \frac{H}{P_h} \cdot \frac{W}{P_w}$",
        letters=f"$n$: number of patches; $H$ and $W$: height and width of the input, here {step.padded[0]} and "
        f"{step.padded[1]}; "
        + (
            f"$P$: side of a patch, here {tall}."
            if is_square
            else f"$P_h$ and $P_w$: height and width of a patch, here {tall} and {wide}."
        ),
        shapes=(
            ("image", f"[{step.channels}, {height}, {width}]", "channels, height, width"),
            (
                "patches",
                f"[{step.count}, {step.flat.size}]",
                f"{tall} x {wide} pixels x {step.channels} channels each",
            ),
        ),
        figures=_figures(scene, step),
        control=Slider("try another patch size (the model keeps its own)", 2, _LARGEST, tried.patch),
        question=f"This model cuts {tall} x {wide} pixels per patch and gets {step.count} patches. How many would patches of "
        f"{tried.patch} x {tried.patch} pixels be?",
        answer=f"{tried.grid[0] * tried.grid[1]} instead of {step.count}: "
        + (
            "twice the side means a quarter of the patches."
            if is_double
            else "the number of patches falls with the square of their side."
        ),
        reveals=_comparison(scene, tried),
        played=scene.option is not None,
        code=(Code(VisionTransformer.grid_of, (counted,)), cutting),
        papers=("vit",),
        hides="what the resizing lost: details of the photo that were finer than the pixels of the input.",
        follows="patch",
    )


def _figures(scene: StepInput, step: PatchStep) -> str:
    values = step.flat
    first = ", ".join(number(float(value)) for value in values[:6])
    lines = ("red, green, blue" if step.channels == 3 else "one channel") + ", each row by row"
    patch = draw.picture(
        patch_picture(scene),
        alt=f"{scene.patch_name} enlarged",
        width=150,
        caption=f"{scene.patch_name}, token {step.index}",
    )
    strip = draw.strip(values, name=f"the same patch, flattened ({lines})", rows=step.channels)
    return draw.part(
        "One patch, and the same patch as a row of numbers",
        draw.row(patch, strip),
        draw.line(
            f"It begins {first}, ... and ends {number(float(values[-1]))}. The numbers are the pixels, shifted and scaled so "
            "that 0 is a middle tone."
        ),
    ) + draw.part("How many patches", draw.sum_line(_arithmetic(step)))


def _comparison(scene: StepInput, tried: Cut) -> str:
    """The input, cut with another patch size."""
    (rows, cols), (down, across) = tried.grid, tried.remainder
    count = rows * cols
    remains = (
        f"{tried.patch} does not divide {tried.size[0]} x {tried.size[1]}: {down} rows and {across} columns of pixels remain "
        f"(hatched, {tried.left_out:.1%} of the image). Some models drop them, some add zeros at the edge; here the photo is "
        "resized beforehand to a size that the patches fill."
        if down or across
        else f"{tried.patch} divides both sides: every pixel is in a patch."
    )
    words = (
        f"{rows} rows x {cols} columns = {count} patches; later on every patch is compared with every patch (step 5), which "
        f"would make {count**2:,} pairs. {remains}"
    )
    cut, alt = (
        draw.ruled(scene.received, patch=tried.patch),
        f"The input cut into patches of {tried.patch} pixels",
    )
    inside = draw.row(draw.picture(cut, alt=alt, width=300, sharp=False), draw.line(words))
    return draw.part(f"If patches had {tried.patch} x {tried.patch} pixels", inside)


def patch_picture(scene: StepInput) -> Image.Image:
    """The followed patch as the model receives it, one pixel per pixel."""
    (row, col), (tall, wide) = scene.place, scene.config.patch_size
    return scene.padded_input().crop((col * wide, row * tall, (col + 1) * wide, (row + 1) * tall))


def _arithmetic(step: PatchStep) -> str:
    (height, width), (tall, wide), (rows, cols) = step.padded, step.patch_size, step.grid
    pad = ""
    if step.padded != step.size:
        how = "filled up with zeros from" if step.padded > step.size else "without the last pixels of"
        pad = f" ({how} {step.size[0]} x {step.size[1]})"
    return f"n = {height} / {tall} x {width} / {wide} = {rows} x {cols} = {step.count}{pad}"


_SHOWN = 28
_MARKS = {"conv": ("self.proj(self.whole_patches", "x.flatten(2)"), "unfold": ("self.proj(self.patches",)}


def embedding_screen(scene: StepInput) -> Screen:
    """The screen of step 2: each patch becomes a vector by the same linear map."""
    config = scene.config
    dim = config.embed_dim
    chosen = min(scene.option or 0, dim - 1)
    step = scene.step(EmbeddingStep, place=scene.place, number=chosen)
    count, size, most = step.shape[0], step.flat.size, len(scene.components.shares)
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
        figures=_embedding_figures(scene, step),
        control=Slider("number of the vector to take apart", 0, dim - 1, chosen),
        question=f"How much of the variety among all {dim} filters do the first {min(3, most)} principal components "
        "explain: a tenth, half, nearly all?",
        answer=f"{_explained(scene, 3):.0%}; all {min(_SHOWN, most)} that are shown explain "
        f"{_explained(scene, _SHOWN):.0%}. After long training a few are enough, and the first are even colour, light against "
        "dark, and stripes: a patch is too small to show whole objects.",
        reveals=draw.part("What all filters have in common", _components(scene)),
        code=(Code(PatchEmbed.forward, _MARKS[scene.config.patch_embed]),),
        papers=("vit", "vit filters"),
        hides="what a vector means: no single one of its numbers stands for something that has a name.",
        follows="patch",
    )


def _embedding_figures(scene: StepInput, step: EmbeddingStep) -> str:
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
            caption="= products (orange: above 0)",
        ),
    )
    sums = (
        f"sum of {step.flat.size} products {number(total)} + bias {number(bias)} = {number(value)} = number "
        f"{place} of the vector"
    )
    compared = (
        draw.vector(step.linear, name="cut out, then multiplied")
        + draw.vector(step.convolution, name="convolution")
        + draw.line(
            f"Largest difference over all {step.shape[0]} patches: {step.difference:.1e}, the rounding of 32-bit numbers."
        )
    )
    return draw.part(
        f"How number {place} of the vector comes about", across, draw.sum_line(sums)
    ) + draw.part("The whole vector, computed in two ways", compared)


def _components(scene: StepInput) -> str:
    shown = scene.components.values[:_SHOWN]
    sheet = draw.sheet_of([draw.weights_picture(one) for one in shown], across=14)
    words = (
        f"The first {len(shown)} principal components of the {scene.config.embed_dim} filters; the first explains "
        f"{float(scene.components.shares[0]):.0%} of their variety, all that are shown "
        f"{_explained(scene, len(shown)):.0%}."
    )
    return draw.picture(sheet, alt=words, width=620, caption=words)


def _explained(scene: StepInput, count: int) -> float:
    return float(np.sum(scene.components.shares[:count]))
