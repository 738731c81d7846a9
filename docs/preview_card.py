"""Draws the picture by which a shared link previews: a sample lit where the bundled model's class token looks, and every head.

    python docs/preview_card.py

Drawn from the model's own attention in light (vit_viz/figures/styles.py), from 0 to the map's largest value, in the small ones to
the 99th percentile of their layer.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run from a checkout that is not installed

from vit_viz.analyses.attention import HeadMaps
from vit_viz.figures.lettering import font
from vit_viz.figures.styles import light
from vit_viz.samples import sample
from vit_viz.session.request import Subject
from vit_viz.session.session import Session
from vit_viz.ui.preview import PICTURE, PICTURE_SIZE

IMAGE, LAYER = "lion", 4
EDGE, PHOTO, GAP = 45, 540, 6
GROUND, TEXT, QUIET, ACCENT = (14, 16, 20), (236, 238, 242), (154, 163, 178), (245, 184, 61)


def lit(photo: Image.Image, weights: NDArray[np.float32], side: int) -> Image.Image:
    """A square photo, lit where the weights [rows, cols], in [0, 1], are high."""
    pixels = np.asarray(photo.resize((side, side), Image.Resampling.LANCZOS), np.float32)
    smooth = Image.fromarray(weights).resize((side, side), Image.Resampling.BICUBIC)
    return Image.fromarray(light(pixels, np.clip(np.asarray(smooth), 0, 1)).round().astype(np.uint8))


def main() -> None:
    """Draw the picture and write it beside the page's head."""
    photo = sample(IMAGE)
    side = min(photo.size)
    left, top = (photo.width - side) // 2, (photo.height - side) // 2
    square = photo.crop((left, top, left + side, top + side))
    session = Session(model="mini", device="cpu")
    subject = Subject("mini", IMAGE, "crop")
    found = session.run(subject.request("mosaic", query="class", direction="row"))
    assert isinstance(found, HeadMaps)
    maps = found.values  # [layers, heads, rows, cols]
    card = Image.new("RGB", PICTURE_SIZE, GROUND)
    mean = maps[LAYER].mean(0)
    card.paste(lit(square, mean / mean.max(), PHOTO), (EDGE, EDGE))
    layers, heads = maps.shape[:2]
    start = EDGE + PHOTO + 36
    cell = (PICTURE_SIZE[0] - EDGE - start - (heads - 1) * GAP) // heads
    top = PICTURE_SIZE[1] - EDGE - 4 * (cell + GAP) + GAP
    for row, layer in enumerate(range(layers - 4, layers)):
        for head in range(heads):
            weights = maps[layer, head] / np.quantile(maps[layer], 0.99)
            card.paste(lit(square, weights, cell), (start + head * (cell + GAP), top + row * (cell + GAP)))
    _letter(card, start)
    card.save(PICTURE, "JPEG", quality=86, optimize=True, progressive=True)
    print(f"{PICTURE.name}: {PICTURE.stat().st_size} bytes")


def _letter(card: Image.Image, left: int) -> None:
    draw = ImageDraw.Draw(card)
    x = float(left)
    for text, colour in (("vit", TEXT), ("_", ACCENT), ("viz", TEXT)):
        draw.text((x, EDGE - 6), text, colour, font(58))
        x += draw.textlength(text, font(58))
    for line, text in enumerate(("See what a Vision Transformer looks at.", "Point at the photo.")):
        draw.text((left, EDGE + 74 + 36 * line), text, QUIET, font(27))


if __name__ == "__main__":
    main()
