"""The look of the page: Gradio's own in our tokens, with nothing that comes from elsewhere, and colours that can be read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from vit_viz.ui import theme as look
from vit_viz.ui.theme import stylesheet

_HERE = Path(look.__file__).parent
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
@pytest.mark.parametrize("text", ["text", "muted", "accent-text", "good", "bad"])
def test_every_text_can_be_read_on_every_ground(look: str, text: str) -> None:
    colours = _colours(look)
    for ground in ("ground", "card", "soft"):
        assert _contrast(colours[text], colours[ground]) >= 4.7, ground


@pytest.mark.parametrize("look", [":root", ".dark"])
def test_what_is_pressed_can_be_read(look: str) -> None:
    colours = _colours(look)
    assert _contrast(colours["on-inverse"], colours["inverse"]) >= 4.7


def test_what_says_nothing_inside_a_rule_stands_outside_of_any() -> None:
    tokens, _, inside = stylesheet().partition(":root:root:root {")
    assert "@keyframes" in tokens
    assert re.findall(r"(?m)^(?:html|:root|@(?:keyframes|import|font-face|property))\b.*", inside) == []
