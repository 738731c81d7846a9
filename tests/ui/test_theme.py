"""The look of the page: Gradio's own in our tokens, with nothing that comes from elsewhere, and colours that can be read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from vit_viz.ui import theme as look
from vit_viz.ui.theme import stylesheet, theme

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


def test_the_contrast_is_that_of_the_standard() -> None:
    assert _contrast((0, 0, 0), (255, 255, 255)) == pytest.approx(21)
    assert _contrast((0x76,) * 3, (255, 255, 255)) == pytest.approx(4.54, abs=0.005)


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


def test_light_and_dark_define_the_same_colours() -> None:
    assert set(_colours(":root")) == set(_colours(".dark"))


def test_the_fonts_are_those_of_the_readers_system() -> None:
    chosen = theme()
    assert chosen._stylesheets == []
    assert chosen._font_css == []
    assert "system-ui" in chosen.font
    assert "Menlo" in chosen.font_mono


def test_gradio_takes_its_colours_from_the_tokens_in_light_and_dark() -> None:
    chosen = theme()
    assert chosen.body_text_color == chosen.body_text_color_dark == "var(--vv-text)"
    assert chosen.border_color_primary == chosen.border_color_primary_dark == "var(--vv-line)"


def test_the_parts_that_all_rooms_share_have_no_colour_or_type_size_of_their_own() -> None:
    rules = (_HERE / "kit/system.css").read_text("utf-8")
    assert set(re.findall(r"font-size: ([^;]+);", rules)) == {
        f"var(--vv-type{s})" for s in ("", "-small", "-large")
    }
    assert not re.findall(r"#[0-9a-f]{3,8}\b|\b(?:rgb|hsl|oklch)a?\(", rules)
    defined = set(re.findall(r"(--vv-[a-z0-9-]+):", _TOKENS))
    assert set(re.findall(r"var\((--vv-[a-z0-9-]+)", rules)) <= defined


def test_the_rooms_come_after_what_they_are_made_of() -> None:
    rules = stylesheet()
    places = [rules.index(text) for text in ("--vv-ground:", ".vv-toggle >", ".vv-view {", "#vv-header")]
    assert places == sorted(places)


def test_no_selector_has_a_comma_inside_brackets() -> None:
    """Gradio repeats each rule with its own class before every part between commas, and cuts `:is(a, b)` in two."""
    rules = re.sub(r"/\*.*?\*/", "", stylesheet(), flags=re.S)
    selectors = re.findall(r"(?:^|[{}])([^{}@;]+)(?=\{)", rules)
    assert len(selectors) > 100
    assert [text.strip() for text in selectors if re.search(r"\([^()]*,|,[^()]*\)", text)] == []
