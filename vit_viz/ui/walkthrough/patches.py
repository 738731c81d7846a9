"""Step 1: the image is cut into patches, and a patch is a row of numbers."""

from __future__ import annotations

from PIL import Image

from vit_viz.analyses.walkthrough import Cut, PatchStep, cut, patch_step
from vit_viz.model.vit import PatchEmbed, VisionTransformer
from vit_viz.render.lettering import number
from vit_viz.ui.walkthrough import drawings as draw
from vit_viz.ui.walkthrough import papers
from vit_viz.ui.walkthrough.scene import Scene
from vit_viz.ui.walkthrough.screen import Code, Screen, Slider

_LARGEST = 64


def screen(scene: Scene) -> Screen:
    """The screen of this step."""
    step = patch_step(scene.walk, place=scene.place)
    tall, wide = step.patch_size
    tried = cut(step.size, patch=scene.play or tall)
    height, width = step.size
    return Screen(
        title="The image is cut into patches",
        words=(
            f"The photo is resized to {height} x {width} pixels and cut into squares of {tall} x {wide} pixels, called patches.",
            f"A pixel is {_channels(step)}, so one patch is a row of {step.flat.size} numbers: this row is all that the model "
            "will ever see of that place.",
            f"The {step.count} patches, read line by line like words, become a sequence; a patch that has become one item of the "
            "sequence is called a token.",
        ),
        formula="n = (H / P) · (W / P) = H · W / P²",
        letters=f"H, W: height and width of the input, here {height} and {width}; P: side of a patch, here "
        f"{_side(step)}; n: number of patches.",
        shapes=(
            ("image", f"[{step.channels}, {height}, {width}]", "channels, height, width"),
            (
                "patches",
                f"[{step.count}, {step.flat.size}]",
                f"{tall} x {wide} pixels x {step.channels} channels each",
            ),
        ),
        figures=_figures(scene, step, tried),
        control=Slider("try another patch size (the model keeps its own)", 2, _LARGEST, tried.patch),
        question=f"How many numbers does the model receive for {scene.patch_name}, and how many for the whole image?",
        answer=f"{step.flat.size} for the patch: {tall} x {wide} x {step.channels}, the length of the strip. "
        f"{step.count} patches of {step.flat.size} make {step.count * step.flat.size} for the image: nothing is left out "
        "by the cutting itself.",
        code=(
            Code(PatchEmbed.patches, ("F.unfold", "transpose")),
            Code(VisionTransformer.grid_of, ("//", "% patch")),
        ),
        papers=(papers.VIT,),
        hides="what the resizing lost: the photo was larger or smaller before. The frame beside it shows what was left out.",
        follows="patch",
    )


def _figures(scene: Scene, step: PatchStep, tried: Cut) -> str:
    values = step.flat
    first = ", ".join(number(float(value)) for value in values[:6])
    lines = ("red, green, blue" if step.channels == 3 else "one channel") + ", each row by row"
    patch = draw.picture(
        patch_picture(scene),
        alt=f"{scene.patch_name} enlarged",
        width="150px",
        caption=f"{scene.patch_name}, token {step.index}",
    )
    strip = draw.strip(values, name=f"the same patch, flattened ({lines})", rows=step.channels)
    return (
        draw.part(
            "One patch, and the same patch as a row of numbers",
            draw.row(patch, strip),
            draw.line(
                f"It begins {first}, ... and ends {number(float(values[-1]))}. Numbers are pixels after "
                f"normalisation: 0 is a middle tone."
            ),
        )
        + draw.part("How many patches", draw.sum_line(_arithmetic(step)))
        + draw.part(
            f"If patches had {tried.patch} x {tried.patch} pixels",
            draw.row(
                draw.picture(
                    draw.ruled(scene.received, patch=tried.patch),
                    alt=f"The input cut into patches of {tried.patch} pixels",
                    width="min(100%, 300px)",
                    sharp=False,
                ),
                draw.line(_tried_words(tried)),
            ),
        )
    )


def patch_picture(scene: Scene) -> Image.Image:
    """The followed patch as the model receives it, one pixel per pixel."""
    (row, col), (tall, wide) = scene.place, scene.loaded.config.patch_size
    return scene.padded_input().crop((col * wide, row * tall, (col + 1) * wide, (row + 1) * tall))


def _arithmetic(step: PatchStep) -> str:
    (height, width), (tall, wide), (rows, cols) = step.padded, step.patch_size, step.grid
    pad = "" if step.padded == step.size else f" (filled up with zeros from {step.size[0]} x {step.size[1]})"
    return f"n = {height} / {tall} x {width} / {wide} = {rows} x {cols} = {step.count}{pad}"


def _tried_words(tried: Cut) -> str:
    (rows, cols), (down, across) = tried.grid, tried.remainder
    count = rows * cols
    words = (
        f"{rows} rows x {cols} columns = {count} patches; attention compares every patch with every patch, so "
        f"{count**2:,} pairs. "
    )
    if not down and not across:
        return words + f"{tried.patch} divides both sides: every pixel is in a patch."
    return words + (
        f"{tried.patch} does not divide {tried.size[0]} x {tried.size[1]}: {down} rows and {across} columns of pixels remain "
        f"(hatched, {tried.left_out:.1%} of the image). A model then drops them, fills up with zeros, or, as here, the photo is "
        "resized first so that nothing remains."
    )


def _channels(step: PatchStep) -> str:
    return "three numbers (red, green, blue)" if step.channels == 3 else "one number (its brightness)"


def _side(step: PatchStep) -> str:
    tall, wide = step.patch_size
    return str(tall) if tall == wide else f"{tall} down and {wide} across"
