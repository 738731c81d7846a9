"""Every place of the page: nothing lost at 200%, nothing moves where that is unwelcome, and what axe finds there.

Each impact counts, and so do colours, in both themes and at both widths.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

import pytest

from tests.effort import WINDOWS
from tests.ui.access import places
from tests.ui.access.conftest import nothing
from tests.ui.access.probes import CONTROLS, LOST_AT_ZOOM, MOTION
from tests.ui.test_access import axe

pytestmark = [pytest.mark.browser, pytest.mark.slow]

OVER = (
    "dialog:modal, .vv-popover, #vv-more.vv-opened, .vv-tour, .vv-help-card, .vv-lost, .vv-bring-note, "
    "#vv-loading .vv-job, #vv-top .vv-status"
)
"""What lies over the page, or comes and goes above it."""

FOUND = """async (over) => {
  const open = [...document.querySelectorAll(over)].filter((one) => one.checkVisibility({ visibilityProperty: true }));
  const pixel = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
  const paint = (colour, alpha = 1) => {
    [pixel.fillStyle, pixel.globalAlpha] = [colour, alpha];
    pixel.fillRect(0, 0, 1, 1);
    const [r, g, b] = [...pixel.getImageData(0, 0, 1, 1).data].map((value) => value / 255)
      .map((value) => (value > 0.04045 ? ((value + 0.055) / 1.055) ** 2.4 : value / 12.92));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
  };
  const contrast = (one) => {
    const around = [];
    for (let node = one; node; node = node.parentElement) {
      const { backgroundColor, color, opacity } = getComputedStyle(node);
      const fades = node.getAnimations().some(({ playState }) => playState === 'running'); // it comes or goes
      around.unshift({ backgroundColor, color, opacity: fades ? 1 : opacity });
    }
    let ground = paint('#fff');
    for (const { backgroundColor } of around) ground = paint(backgroundColor);
    const alpha = around.reduce((product, { opacity }) => product * opacity, 1);
    const ink = paint(around.at(-1).color, alpha);
    return Math.max(ink, ground) / Math.min(ink, ground);
  };
  const told = ({ html }) => html.slice(0, 160);
  const { violations, passes, incomplete } = await axe.run(open, { rules: { 'color-contrast': { enabled: true } } });
  const found = violations.map(({ id, nodes }) => [id, nodes.slice(0, 4).map(told)]);
  const isOfColour = ({ id }) => id === 'color-contrast';
  const unsure = incomplete.filter(isOfColour).flatMap(({ nodes }) => nodes);
  for (const node of unsure) {
    const ratio = contrast(document.querySelector(node.target.join(' ')));
    const least = parseFloat(node.any[0].data.expectedContrastRatio);
    if (ratio < least) found.push([`contrast ${ratio.toFixed(2)}`, [told(node)]]);
  }
  const looked = unsure.length + passes.filter(isOfColour).flatMap(({ nodes }) => nodes).length;
  return { open: open.map((one) => one.id || one.className), looked, found };
}"""
"""What axe says of what is open, and the contrast of text where axe does not know the ground: it does not see that a dialog lies
over everything, nor what a box that scrolls cuts off."""


def test_nothing_is_cut_off_or_covered_at_200_percent(open_page: Callable[..., Any], whole_app: str) -> None:
    page = open_page(whole_app, viewport={"width": 720, "height": 450}, device_scale_factor=2)
    everywhere = chain(places.tabs(page), places.over(page, has_menu=True))
    nothing({place: page.evaluate(LOST_AT_ZOOM, CONTROLS) for place in everywhere})


@pytest.mark.parametrize(("width", "dark"), WINDOWS)
def test_nothing_moves_and_axe_finds_nothing_of_any_impact_on_the_page_and_in_what_opens_over_it(
    open_page: Callable[..., Any], whole_app: str, width: int, dark: bool
) -> None:
    theme = "dark" if dark else "light"
    window = {"viewport": {"width": width, "height": 844}, "color_scheme": theme, "reduced_motion": "reduce"}
    page = open_page(f"{whole_app}?__theme={theme}", script=axe() + MOTION, **window)
    moved, found = {}, {}
    for place in places.tabs(page):
        moved[place] = page.evaluate("moved.splice(0)")
        answer = page.evaluate("axe.run(document, { rules: { 'color-contrast': { enabled: true } } })")
        assert any(rule["id"] == "color-contrast" for rule in answer["passes"]), place
        found[place] = [
            [v["id"], [node["html"][:160] for node in v["nodes"]][:4]] for v in answer["violations"]
        ]
    for place in chain(places.bringing(page), places.over(page, has_menu=width < 640)):
        moved[place] = page.evaluate("moved.splice(0)")
        answer = page.evaluate(FOUND, OVER)
        assert answer["open"], place
        assert answer["looked"], place
        found[place] = answer["found"]
    nothing(found)
    nothing({place: sorted(set(what)) for place, what in moved.items()})
