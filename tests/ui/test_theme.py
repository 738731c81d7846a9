"""The look of the page: Gradio's own in our tokens, with nothing that comes from elsewhere, and colours that can be read."""

from __future__ import annotations

import colorsys
import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from vit_viz.figures.colormaps import table
from vit_viz.figures.styles import AGAINST, FOR
from vit_viz.offline.stylesheet import stylesheet
from vit_viz.ui import theme as look

_HERE = Path(look.__file__).parent
_PACKAGE = _HERE.parent
_TOKENS = (_HERE / "tokens.css").read_text("utf-8")


def _colours(selector: str) -> dict[str, tuple[int, ...]]:
    block = re.search(rf"^{re.escape(selector)} {{(.*?)^}}", _TOKENS, re.S | re.M)
    assert block is not None
    found = re.findall(r"--vv-([a-z-]+): #([0-9a-f]{6});", block[1])
    return {name: tuple(bytes.fromhex(colour)) for name, colour in found}


def _luminance(colour: tuple[int, ...]) -> float:
    """Relative luminance of WCAG 2.2."""
    shares = [part / 255 for part in colour]
    linear = [s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: tuple[int, ...], other: tuple[int, ...]) -> float:
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("look", [":root", ".dark"])
@pytest.mark.parametrize("text", ["text", "muted", "accent-text", "good", "bad", "for-text", "against-text"])
def test_every_text_can_be_read_on_every_ground(look: str, text: str) -> None:
    colours = _colours(look)
    for ground in ("ground", "card", "soft"):
        assert _contrast(colours[text], colours[ground]) >= 4.7, ground


@pytest.mark.parametrize("look", [":root", ".dark"])
@pytest.mark.parametrize("shape", ["accent", "for", "against"])
def test_every_bar_stands_out_from_its_track(look: str, shape: str) -> None:
    colours = _colours(look)
    for ground in ("ground", "card", "soft", "line"):
        assert _contrast(colours[shape], colours[ground]) >= 3, ground


def _hue(colour: Iterable[int]) -> float:
    return colorsys.rgb_to_hsv(*(part / 255 for part in colour))[0] * 360


def test_orange_is_for_and_blue_against_in_css_scripts_and_figures() -> None:
    script = (_PACKAGE / "web" / "kit" / "signed.js").read_text("utf-8")
    for name, meant, end in (("for", FOR, -1), ("against", AGAINST, 0)):
        written = re.search(rf"export const {name.upper()} = \[(\d+), (\d+), (\d+)\]", script)
        assert written is not None
        assert tuple(map(int, written.groups())) == meant
        found = [_colours(look)[part] for look in (":root", ".dark") for part in (name, f"{name}-text")]
        for colour in (*found, table("diverging")[end].tolist()):
            assert abs(_hue(colour) - _hue(meant)) < 12, (name, colour)


def test_no_rule_has_an_orange_or_a_blue_of_its_own() -> None:
    for file in sorted(set(_PACKAGE.rglob("*.css")) - {_HERE / "tokens.css"}):
        for written in re.findall(r"#([0-9a-f]{6})\b", file.read_text("utf-8")):
            colour = tuple(bytes.fromhex(written))
            vivid = (max(colour) - min(colour)) / max(1, *colour) > 0.4
            assert not (vivid and any(abs(_hue(colour) - _hue(meant)) < 12 for meant in (FOR, AGAINST))), (
                file.name,
                written,
            )


def test_no_rule_for_all_screens_looks_through_the_page_or_a_whole_tab() -> None:
    """The browser looks through all that lies below :has at each change, unless only children are named."""
    through = re.compile(r"(?:&|body|html|#vv-tab-\w+|#vv-\w+-tab):(?:not\(:)?has\((?!> )")
    for file in _PACKAGE.rglob("*.css"):
        lines = file.read_text("utf-8").splitlines()
        assert [line for line in lines if through.match(line)] == [], file


def test_no_legend_has_another_colour_for_more_or_less() -> None:
    channels = re.compile(r"red[^.\n]{0,20},? green", re.I)  # of a picture, not of a scale
    legend = re.compile(
        r"\bred\b[^.\n]{0,40}\b(more|less|for|against|above|below)\b|\b(blue|0|1),? \(?red\b", re.I
    )
    for file in sorted({*_PACKAGE.rglob("*.py"), *_PACKAGE.rglob("*.js")} - {_PACKAGE / "web/kit/preact.js"}):
        lines = file.read_text("utf-8").splitlines()
        assert [line for line in lines if legend.search(line) and not channels.search(line)] == [], file


@pytest.mark.parametrize("look", [":root", ".dark"])
def test_what_is_pressed_can_be_read(look: str) -> None:
    colours = _colours(look)
    assert _contrast(colours["on-inverse"], colours["inverse"]) >= 4.7


def test_what_says_nothing_inside_a_rule_stands_outside_of_any() -> None:
    tokens, _, inside = stylesheet().partition(":root:root:root {")
    assert "@keyframes" in tokens
    assert re.findall(r"(?m)^(?:html|:root|@(?:keyframes|import|font-face|property))\b.*", inside) == []
