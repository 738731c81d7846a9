"""Step 1: the image is cut into patches, and a patch is a row of numbers."""

from __future__ import annotations

from PIL import Image

from vit_viz.model import ViTConfig
from vit_viz.model.vit import PatchEmbed, VisionTransformer
from vit_viz.render.lettering import number
from vit_viz.ui.walkthrough import drawings as draw
from vit_viz.ui.walkthrough import papers
from vit_viz.ui.walkthrough.scene import Scene
from vit_viz.ui.walkthrough.screen import Code, Screen, Slider
from vit_viz.walkthrough.embedding import Cut, PatchStep, cut

_LARGEST = 64


def screen(scene: Scene) -> Screen:
    """The screen of this step."""
    step = scene.step(PatchStep, place=scene.place)
    tall, wide = step.patch_size
    tried = cut(step.size, patch=scene.option or _another(step))
    height, width = step.size
    shape = "squares" if tall == wide else "rectangles"
    return Screen(
        title="The photo is cut into patches",
        words=(
            f"The photo is resized to {height} x {width} pixels and cut into {shape} of {tall} x {wide} pixels, called *patches*.",
            f"A pixel is {_channels(step)}, so one patch is a row of {step.flat.size} numbers: this row is all that the model "
            "will ever see of that part of the photo.",
            f"The {step.count} patches are read line by line, like words on a page; from here on, each is one item of a sequence, "
            "called a *token*.",
        ),
        formula=r"$n = \frac{H}{P} \cdot \frac{W}{P}$"
        if tall == wide
        else r"$n = \frac{H}{P_h} \cdot \frac{W}{P_w}$",
        letters=f"$n$: number of patches; $H$ and $W$: height and width of the input, here {step.padded[0]} and "
        f"{step.padded[1]}; {_side(step)}.",
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
        answer=f"{tried.grid[0] * tried.grid[1]} instead of {step.count}: {_law(step, tried)}.",
        reveals=_comparison(scene, tried),
        played=scene.option is not None,
        code=_code(scene.config),
        papers=(papers.VIT,),
        hides="what the resizing lost: details of the photo that were finer than the pixels of the input.",
        follows="patch",
    )


def _law(step: PatchStep, tried: Cut) -> str:
    if step.patch_size == (tried.patch // 2, tried.patch // 2) and tried.patch % 2 == 0:
        return "twice the side means a quarter of the patches"
    return "the number of patches falls with the square of their side"


def _another(step: PatchStep) -> int:
    """A patch size to compare with the model's own: twice as large where that fits, else half."""
    side = max(step.patch_size)
    return 2 * side if 2 * side <= min(_LARGEST, *step.size) else max(2, side // 2)


def _code(config: ViTConfig) -> tuple[Code, ...]:
    """How this model counts its patches and cuts them; a convolution cuts while it multiplies, in the next step."""
    counted = "height // patch_height, width" if config.drop_remainder else "-(-height // patch_height)"
    if config.patch_embed == "unfold":
        cutting = Code(PatchEmbed.patches, ("F.unfold", "transpose"))
    else:
        cutting = Code(PatchEmbed.whole_patches, (_whole(config),))
    return Code(VisionTransformer.grid_of, (counted,)), cutting


def _whole(config: ViTConfig) -> str:
    if config.drop_remainder:
        return "return pixels[..., "
    return "pixels, (0, -width % patch_width" if config.pad else "if not self.config.pad"


def _figures(scene: Scene, step: PatchStep) -> str:
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


def _comparison(scene: Scene, tried: Cut) -> str:
    """The input, cut with another patch size."""
    return draw.part(
        f"If patches had {tried.patch} x {tried.patch} pixels",
        draw.row(
            draw.picture(
                draw.ruled(scene.received, patch=tried.patch),
                alt=f"The input cut into patches of {tried.patch} pixels",
                width=300,
                sharp=False,
            ),
            draw.line(_tried_words(tried)),
        ),
    )


def patch_picture(scene: Scene) -> Image.Image:
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


def _tried_words(tried: Cut) -> str:
    (rows, cols), (down, across) = tried.grid, tried.remainder
    count = rows * cols
    words = (
        f"{rows} rows x {cols} columns = {count} patches; later on every patch is compared with every patch (step 5), which "
        f"would make {count**2:,} pairs. "
    )
    if not down and not across:
        return words + f"{tried.patch} divides both sides: every pixel is in a patch."
    return words + (
        f"{tried.patch} does not divide {tried.size[0]} x {tried.size[1]}: {down} rows and {across} columns of pixels remain "
        f"(hatched, {tried.left_out:.1%} of the image). Some models drop them, some add zeros at the edge; here the photo is "
        "resized beforehand to a size that the patches fill."
    )


def _channels(step: PatchStep) -> str:
    return "three numbers (red, green, blue)" if step.channels == 3 else "one number (its brightness)"


def _side(step: PatchStep) -> str:
    tall, wide = step.patch_size
    if tall == wide:
        return f"$P$: side of a patch, here {tall}"
    return f"$P_h$ and $P_w$: height and width of a patch, here {tall} and {wide}"
