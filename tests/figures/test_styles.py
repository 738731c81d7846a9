"""Light, tint and heat: their formulas, their ends, and the pixels that the page's own arithmetic must reach."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from vit_viz.errors import ParameterError
from vit_viz.figures import styles
from vit_viz.figures.colormaps import table
from vit_viz.figures.styles import STYLES, Style, chosen, drawn, unsuitable

PIXELS = Path(__file__).parents[1] / "js" / "styles.json"
STRENGTHS = (0.0, 0.35, 1.0)


def some_photo(rows: int = 7, cols: int = 11, seed: int = 0) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (rows, cols, 3), dtype=np.uint8)


def some_shares(rows: int = 7, cols: int = 11, seed: int = 1) -> NDArray[np.float64]:
    shares = np.random.default_rng(seed).random((rows, cols)).round(4)
    shares[0, :2] = 0, 1
    return shares


def styled(style: Style, strength: float) -> NDArray[np.uint8]:
    return drawn(some_photo(), some_shares(), style=style, strength=strength, colours=table("magma"))


@pytest.mark.parametrize("style", STYLES)
def test_strength_0_is_the_photo_bit_for_bit(style: Style) -> None:
    np.testing.assert_array_equal(styled(style, 0.0), some_photo())


def test_light_is_the_photo_at_1_and_a_fifth_of_its_luma_at_0() -> None:
    lit = styled("light", 1.0)
    np.testing.assert_array_equal(lit[0, 1], some_photo()[0, 1])
    red, green, blue = some_photo()[0, 0].astype(float)
    np.testing.assert_allclose(lit[0, 0], 0.2 * (0.2126 * red + 0.7152 * green + 0.0722 * blue), atol=0.51)


def test_light_is_linear_in_the_value() -> None:
    photo = np.broadcast_to(np.array([200, 120, 40], np.uint8), (5, 3))
    lit = styles.light(photo, np.linspace(0, 1, 5))
    np.testing.assert_allclose(
        np.diff(lit, axis=0), np.broadcast_to((lit[4] - lit[0]) / 4, (4, 3)), atol=1e-3
    )


def test_tint_leaves_the_photo_at_0_and_goes_towards_one_colour() -> None:
    tinted, photo = styled("tint", 1.0), some_photo().astype(float)
    np.testing.assert_array_equal(tinted[0, 0], some_photo()[0, 0])
    np.testing.assert_allclose(
        tinted[0, 1], photo[0, 1] + 0.75 * (np.array([255, 213, 74]) - photo[0, 1]), atol=0.51
    )


def test_heat_is_the_table_and_hides_the_photo_at_strength_1() -> None:
    entries = np.floor(255 * some_shares() + 0.5).astype(int)
    np.testing.assert_array_equal(styled("heat", 1.0), table("magma")[entries])


@pytest.mark.parametrize("style", STYLES)
def test_a_half_strength_lies_half_way(style: Style) -> None:
    ends = styled(style, 0.0).astype(float), styled(style, 1.0).astype(float)
    np.testing.assert_allclose(styled(style, 0.5), (ends[0] + ends[1]) / 2, atol=1.01)


def test_a_bar_runs_from_its_low_to_its_high_end() -> None:
    bar = styles.bar("light", table("gray"), count=9).astype(int)
    assert (np.diff(bar.sum(axis=-1)) > 0).all()
    np.testing.assert_array_equal(bar[-1], styles.LIT)
    np.testing.assert_array_equal(styles.bar("heat", table("magma")), table("magma"))


def photo_of(colour: tuple[int, int, int], *, rest: tuple[int, int, int], share: float) -> Image.Image:
    """A picture of which a share of the rows has a colour, and the others another."""
    image = Image.new("RGB", (40, 100), rest)
    image.paste(colour, (0, 0, 40, round(100 * share)))
    return image


@pytest.mark.parametrize(
    ("photo", "reason"),
    [
        (photo_of((64, 64, 60), rest=(9, 9, 30), share=1.0), "too dark"),
        (photo_of((200, 60, 30), rest=(9, 9, 30), share=0.24), "too dark"),
        (photo_of((200, 60, 30), rest=(9, 9, 30), share=0.26), ""),
        (Image.new("RGB", (30, 20), (100, 100, 100)), "too gray"),
        (Image.new("RGB", (30, 20), (100, 107, 100)), "too gray"),
        (Image.new("RGB", (30, 20), (100, 108, 100)), ""),
        (Image.new("RGB", (30, 20), (130, 130, 130)), ""),
    ],
)
def test_a_photo_that_cannot_be_lit_gets_tint_and_says_why(photo: Image.Image, reason: str) -> None:
    assert unsuitable(photo) == reason
    words = f"this photo is {reason} for light: tint" if reason else ""
    assert chosen("light", photo) == ("tint" if reason else "light", words)


@pytest.mark.parametrize("style", ["tint", "heat"])
def test_only_light_needs_a_bright_photo(style: Style) -> None:
    assert chosen(style, Image.new("RGB", (30, 20))) == (style, "")


@pytest.mark.parametrize(("style", "strength"), [("glow", 1.0), ("light", 1.01), ("light", -0.01)])
def test_what_is_no_style_and_no_strength_is_refused(style: str, strength: float) -> None:
    with pytest.raises(ParameterError, match=r"light, tint, heat|between 0 and 1"):
        styles.check(style, strength)
    styles.check("heat", 0.0)


def expected() -> dict[str, Any]:
    """What tests/js/styles.test.js compares the browser's arithmetic with."""

    def text(array: NDArray[np.uint8]) -> str:
        return base64.b64encode(array.tobytes()).decode("ascii")

    cases = [
        {"style": style, "strength": strength, "pixels": text(styled(style, strength))}
        for style in STYLES
        for strength in STRENGTHS
    ]
    bars = {style: text(styles.bar(style, table("magma"))) for style in STYLES}
    shares = some_shares().ravel().tolist()
    return {
        "photo": text(some_photo()),
        "shares": shares,
        "table": text(table("magma")),
        "cases": cases,
        "bars": bars,
    }


def test_the_pixels_that_the_page_is_compared_with_are_these() -> None:
    """To write them anew: `python -m tests.figures.test_styles`."""
    assert json.loads(PIXELS.read_text(encoding="utf-8")) == expected()


if __name__ == "__main__":
    PIXELS.write_text(json.dumps(expected(), indent=2) + "\n", encoding="utf-8")
