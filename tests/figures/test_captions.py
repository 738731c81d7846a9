"""Words beside a picture: what a map is, how it is drawn, and what it does not show."""

from __future__ import annotations

import numpy as np
import pytest

from vit_viz.answer import Provenance
from vit_viz.figures.lettering import number, spelled
from vit_viz.figures.maps import map_caption
from vit_viz.results import PatchMap


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


def test_the_caption_says_the_style() -> None:
    words = map_caption(a_map(), scale_name="own", style_name="light", alpha=1)
    assert "; light; patches as they are." in words


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


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (-0.0, "0"), (0.081234, "0.0812"), (1e-7, "1e-07"), (-1.0, "-1"), (12345.0, "1.23e+04")],
)
def test_numbers_have_three_digits(value: float, text: str) -> None:
    assert number(value) == text
