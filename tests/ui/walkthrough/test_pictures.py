"""The pictures of the steps: which are smoothed like photos, and which say below them what they show."""

from __future__ import annotations

import re

import pytest

from tests.ui.walkthrough.kinds import screens_of_kind
from vit_viz.ui.walkthrough.screen import html_of

PICTURE = re.compile(
    r'<figure class="vv-w-picture[^"]*"><img alt="(.*?)" style="(.*?)" src="data:image/(\w+);[^"]*">(.*?)</figure>'
)
PHOTOS = {
    "The input cut into patches": 1,
    "The first": 2,
    "The input with its patches": 1,
}  # the sequence twice, for the light and for the dark look
UNDER_A_TITLE = ("The input cut into patches", "The input with its patches")


@pytest.mark.parametrize(
    "kind",
    [
        "class token and registers",
        "rotary, class token and registers",
        "no class token, mean pooling",
        "gray 60 x 100, patch 20, sinusoidal",
    ],
)
def test_photos_are_smoothed_squares_of_numbers_are_not_and_each_says_what_it_shows(kind: str) -> None:
    pages = (html_of(screen, step) for step, screen in enumerate(screens_of_kind(kind), start=1))
    pictures = [one.groups() for page in pages for one in PICTURE.finditer(page)]
    smooth = [words for words, style, *_ in pictures if "pixelated" not in style]
    assert len(pictures) > len(smooth) == sum(PHOTOS.values())
    for start, count in PHOTOS.items():
        assert sum(words.startswith(start) for words in smooth) == count, start
    assert {form for _, style, form, _ in pictures if "pixelated" in style} == {"png"}
    silent = [words for words, *_, below in pictures if not re.search("<figcaption>.+<", below)]
    assert len(silent) == 2
    assert all(words.startswith(UNDER_A_TITLE) for words in silent)
