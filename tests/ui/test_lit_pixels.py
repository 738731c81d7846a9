"""Light and tint on the screen: what the browser puts together has the pixels of the formulas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from vit_viz.figures.colormaps import table
from vit_viz.figures.styles import TINT, Style, drawn

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LIT_CELL = """
([layer, column]) => {
  const one = (name) => document.querySelector(`#vv-explorer [data-vv=${name}]`);
  const [lit, atlas, photo] = ['lit', 'atlas', 'photo'].map(one);
  const css = (name) => parseFloat(one('mosaic').style.getPropertyValue(`--vx-cell-${name}`));
  const [width, height, gap] = ['width', 'height', 'gap'].map(css);
  const tile = new OffscreenCanvas(width - gap, height - gap).getContext('2d');
  tile.imageSmoothingQuality = 'high';
  tile.drawImage(photo, 0, 0, width - gap, height - gap);
  const read = (context, ...box) => ({ size: box.slice(2), data: [...context.getImageData(...box).data] });
  const [rows, cols] = [16, 16];
  return {
    lit: read(lit.getContext('2d'), column * width, layer * height, width - gap, height - gap),
    layer: read(atlas.getContext('2d'), column * cols, layer * rows, cols, rows),
    photo: read(tile, 0, 0, width - gap, height - gap),
  };
}
"""


@pytest.mark.parametrize("style", ["light", "tint"])
def test_the_screen_has_the_pixels_of_the_formulas(
    visit: Callable[..., Any], app_url: str, style: Style
) -> None:
    """What Chromium puts together for one cell of the mosaic is what vit_viz/figures/styles.py draws."""
    page = visit(f"{app_url}?image=lion&style={style}&smooth=0")
    page.wait_for_function(
        "!document.querySelector('#vv-explorer [data-vv=progress]').textContent"
        " && document.querySelector('#vv-explorer [data-vv=photo]').complete"
    )
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    found = {
        name: np.array(part["data"], np.uint8).reshape(*part["size"][::-1], 4)
        for name, part in page.evaluate(LIT_CELL, [4, 3]).items()
    }
    tall, wide = found["photo"].shape[:2]
    rows, cols = np.arange(2, 14), np.arange(2, 14)  # off the round corners
    at = np.ix_(((rows + 0.5) * tall / 16).astype(int), ((cols + 0.5) * wide / 16).astype(int))
    alpha = found["layer"][2:14, 2:14, 3] / 255
    shares = 1 - alpha if style == "light" else alpha / TINT
    wanted = drawn(found["photo"][at][..., :3], shares, style=style, strength=1, colours=table("gray"))
    assert np.ptp(shares) > 0.5
    assert abs(found["lit"][at][..., :3].astype(int) - wanted).max() <= 3  # opacities have 8 bits
