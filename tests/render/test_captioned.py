"""Captions: the picture is untouched, the words say what it is, and nothing is cut off or drawn as an empty box."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from vit_viz.errors import ParameterError
from vit_viz.geometry import CropBox
from vit_viz.render import captioned as captioning
from vit_viz.render.captioned import ColourBar, captioned, captioned_map, map_caption
from vit_viz.render.colormaps import table
from vit_viz.render.lettering import inks, number, spelled, text_width, wrap
from vit_viz.render.overlay import overlay
from vit_viz.render.styles import bar
from vit_viz.results import PatchMap, Provenance

LONG = "a caption that goes on and on about layer 11 and head 7 and " * 12


def noise(size: tuple[int, int]) -> Image.Image:
    return Image.fromarray(np.random.default_rng(0).integers(0, 256, (*size, 3), dtype=np.uint8))


def holds(page: NDArray[np.uint8], picture: NDArray[np.uint8]) -> bool:
    """Whether a picture appears in a page, pixel by pixel."""
    height, width = picture.shape[:2]
    rows, cols = page.shape[0] - height + 1, page.shape[1] - width + 1
    first = (page[:rows, :cols] == picture[0, 0]).all(axis=-1)
    return any(
        (page[y : y + height, x : x + width] == picture).all() for y, x in zip(*first.nonzero(), strict=True)
    )


def a_map(**changes: object) -> PatchMap:
    facts = {
        "values": np.arange(24.0).reshape(4, 6),
        "unit": "attention weight",
        "value_range": (0, 99),
        "signed": False,
        "method": "attention",
        "class_blind": True,
        "provenance": Provenance(model="mini", preprocess="fit, 32 x 48 pixels"),
        "caption": "layer 3, head 2: the class token looks at the patches",
        "note": "a test",
    }
    return PatchMap(**(facts | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [(500, 400), (200, 600), (600, 200)])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_pictures_own_pixels_are_unchanged(size: tuple[int, int], theme: str) -> None:
    bar = ColourBar("viridis", 0.0, 1.0, "weight")
    page = captioned(noise(size), title="A title", caption=LONG, bar=bar, theme=theme)  # type: ignore[arg-type]
    assert holds(np.array(page), np.array(noise(size)))


def test_small_pictures_are_enlarged_by_a_whole_factor() -> None:
    small = noise((20, 50))
    page = np.array(captioned(small, title="small"))
    assert holds(page, np.array(small).repeat(8, axis=0).repeat(8, axis=1))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_margin_stays_free_of_text(theme: str) -> None:
    bar = ColourBar("magma", -1.25e-7, 123456.0, LONG)
    page = np.array(captioned(noise((300, 400)), title=LONG, caption=LONG, bar=bar, theme=theme))  # type: ignore[arg-type]
    paper = inks(theme).paper  # type: ignore[arg-type]
    for edge in (page[:8], page[-8:], page[:, :8], page[:, -8:]):
        assert (edge == paper).all()


@pytest.mark.parametrize("part", ["title", "caption"])
def test_no_line_runs_into_the_right_edge_of_its_part(part: str) -> None:
    picture = Image.new("RGB", (400, 300), inks("light").paper)
    page = np.array(captioned(picture, **{part: LONG}))  # type: ignore[arg-type]
    inked = np.flatnonzero((page != inks("light").paper).any(axis=(0, 2)))
    assert inked[0] >= 15
    assert (
        inked[-1] < page.shape[1] - 17
    )  # the margin has 15 pixels; a line that was cut would fill the last ones


def test_a_long_unit_takes_more_lines() -> None:
    pages = [captioned(noise((300, 400)), bar=ColourBar("gray", 0.0, 1.0, unit)) for unit in ("nats", LONG)]
    assert pages[1].height > pages[0].height + 50


def test_captions_of_any_length_make_the_page_longer_not_wider() -> None:
    short, long = (captioned(noise((300, 400)), caption=text) for text in ("short", LONG))
    assert long.width == short.width
    assert long.height > short.height + 50


def test_letters_on_a_large_picture_are_larger() -> None:
    paper = inks("light").paper
    pages = [np.array(captioned(Image.new("RGB", (side, side), paper), title="A")) for side in (640, 2560)]
    heights = [int((page != paper).any(axis=(1, 2)).sum()) for page in pages]
    assert heights[1] > 3 * heights[0]


def test_the_bar_runs_through_the_whole_table_in_order() -> None:
    page = np.array(captioned(Image.new("RGB", (500, 400)), bar=ColourBar("viridis", 0.0, 1.0)))
    places = {tuple(colour): place for place, colour in enumerate(table("viridis").tolist())}
    rows = [[places[tuple(c)] for c in row if tuple(c) in places] for row in page[420:].tolist()]
    longest = max(rows, key=len)
    assert longest == sorted(longest)
    assert set(longest) >= set(places.values()) - {0, 255}  # the frame hides the first and the last


def test_the_bar_of_a_constant_map_has_one_colour() -> None:
    page = np.array(captioned(Image.new("RGB", (500, 400)), bar=ColourBar("viridis", 0.3, 0.3)))
    found = (page == table("viridis")[128]).all(axis=-1)
    assert found.sum() > 3000
    assert not (page == table("viridis")[0]).all(axis=-1).any()


def test_a_captioned_map_holds_the_overlay_itself() -> None:
    photo, patch_map = noise((400, 600)), a_map(crop_box=CropBox((400, 600), (32, 48), (0, 100, 400, 400)))
    page = captioned_map(photo, patch_map, alpha=0.4, smooth=True)
    assert holds(np.array(page), np.array(overlay(photo, patch_map, alpha=0.4, smooth=True)))


def test_a_figure_in_light_says_so_and_has_a_bar_from_dark_to_light() -> None:
    page = np.array(captioned(Image.new("RGB", (500, 400)), bar=ColourBar("viridis", 0.0, 1.0, "", "light")))
    for colour in bar("light", table("viridis"))[[1, 128, 254]]:
        assert (page[420:] == colour).all(axis=-1).any()
    assert "; light; patches as they are." in map_caption(
        a_map(), scale_name="own", style_name="light", alpha=1
    )


def test_a_dark_photo_gets_tint_and_the_caption_has_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []
    monkeypatch.setattr(
        captioning, "captioned", lambda picture, *, caption, **_: texts.append(caption) or picture
    )
    photo = Image.fromarray(np.random.default_rng(0).integers(0, 40, (40, 60, 3), dtype=np.uint8))
    drawn = captioned_map(photo, a_map(), style="light", alpha=1)
    np.testing.assert_array_equal(np.array(drawn), np.array(overlay(photo, a_map(), style="tint", alpha=1)))
    assert "this photo is too dark for light: tint; patches as they are." in texts[0]


def test_the_caption_says_model_layer_head_query_direction_and_scale() -> None:
    text = map_caption(a_map(), scale_name="shared over all heads", smooth=False, alpha=0.6)
    for part in (
        "Layer 3, head 2: the class token looks at the patches.",
        "Model mini; fit, 32 x 48 pixels.",
        "Scale: shared over all heads",
        "this map's own values 0 to 23",
        "patches as they are; strength 60%",
        "Class-blind",
        "A test.",
    ):
        assert part in text


def test_the_caption_says_what_fell_on_suffix_tokens_by_kind() -> None:
    suffix = {f"detection {i}": 0.0625 for i in range(3)} | {"text": 0.04}
    text = map_caption(a_map(prefix={"class": 0.3125}, suffix=suffix), scale_name="own")
    assert (
        "Prefix tokens, not drawn: class = 0.312. Suffix tokens, not drawn: detection = 0.188, text = 0.04."
        in text
    )


def test_the_caption_says_what_fell_on_prefix_tokens() -> None:
    text = map_caption(a_map(prefix={"class": 0.3125, "register 0": 0.04}), scale_name="own")
    assert "Prefix tokens, not drawn: class = 0.312, register 0 = 0.04." in text
    assert "Prefix" not in map_caption(a_map(), scale_name="own")


def test_the_caption_of_a_class_sensitive_map_does_not_call_it_blind() -> None:
    assert "Class-blind" not in map_caption(a_map(class_blind=False), scale_name="own")


@pytest.mark.parametrize(
    ("text", "drawn"),
    [
        ("naïve café", "naive cafe"),
        ("16 × 21 → 336", "16 x 21 -> 336"),
        ("猫 5", "? 5"),
        ("tab\there\x00", "tab here?"),
        ("two\nlines", "two\nlines"),
    ],
)
def test_letters_that_the_font_lacks_are_spelled_out(text: str, drawn: str) -> None:
    assert spelled(text) == drawn


@settings(deadline=None, max_examples=60)
@given(st.text(max_size=200), st.integers(8, 40), st.integers(60, 500))
def test_wrapped_lines_fit_and_lose_no_letter(text: str, size: int, width: int) -> None:
    lines = wrap(text, size=size, width=width)
    assert all(text_width(line, size=size) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(spelled(text).split())


def test_wrapping_breaks_between_words_where_it_can() -> None:
    lines = wrap("one two three four five", size=15, width=80)
    assert " ".join(lines) == "one two three four five"
    assert len(lines) > 1


def test_lines_of_a_caption_that_were_given_stay_lines() -> None:
    assert wrap("first\nsecond", size=15, width=500) == ["first", "second"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (-0.0, "0"), (0.081234, "0.0812"), (1e-7, "1e-07"), (-1.0, "-1"), (12345.0, "1.23e+04")],
)
def test_numbers_have_three_digits(value: float, text: str) -> None:
    assert number(value) == text


def test_bars_with_different_numbers_look_different() -> None:
    pages = [
        np.array(captioned(Image.new("RGB", (500, 400)), bar=ColourBar("gray", 0.0, high)))
        for high in (0.1, 0.2, 0.3)
    ]
    assert all((first != second).any() for first, second in pairwise(pages))


def test_an_unknown_theme_is_refused() -> None:
    with pytest.raises(ParameterError, match="light or dark"):
        captioned(noise((10, 10)), theme="sepia")  # type: ignore[arg-type]


def test_a_bar_may_have_words_at_one_end_and_a_number_at_the_other() -> None:
    for low, high in (("min of map", 3.0), (0.5, "max of map")):
        bar = ColourBar("viridis", low, high, "weight")
        page = captioned(Image.new("RGB", (700, 300)), title="", caption="", bar=bar)
        plain = captioned(
            Image.new("RGB", (700, 300)), title="", caption="", bar=ColourBar("viridis", 0.5, 3.0, "weight")
        )
        assert page.size == plain.size


def test_no_line_of_a_unit_covers_the_numbers_above_it() -> None:
    """With a unit the page is longer by its lines, and nothing above them changes."""
    pages = [
        np.array(
            captioned(
                Image.new("RGB", (700, 300)), title="", caption="", bar=ColourBar("gray", 0.25, 3.0, unit)
            )
        )
        for unit in ("", "share of the row")
    ]
    bare, with_unit = pages
    assert len(with_unit) > len(bare)
    changed = np.flatnonzero((with_unit[: len(bare)] != bare).any(axis=(1, 2)))
    ink = np.flatnonzero((bare != bare[0, 0]).any(axis=(1, 2)))
    assert len(changed) == 0 or changed.min() > ink.max()
