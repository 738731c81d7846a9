"""What a report says of the answer, in one sentence."""

from __future__ import annotations

import re

import pytest

from vit_viz.capture.report import Reading


@pytest.mark.parametrize(
    ("before", "shares", "words"),
    [
        (1.0, (1.0, 1.0, 0.0), "The answer is read after layer 1 of 0-2, and not after the last"),
        (1.0, (1.0, 0.009, 0.002), "The answer is read after layer 0 of 0-2, and not after the last"),
        (1.0, (1.0, 0.01, 0.002), "Hardly anything of what the answer takes .* passes through layer 2;"),
        (1.0, (0.9, 0.6, 0.002), "Hardly anything of what the answer takes .* passes through layer 2;"),
        (0.9, (1.0, 1.0, 0.002), "Hardly anything of what the answer takes .* passes through layer 2;"),
        (1.0, (1.0, 0.3, 1.0), "Only 30% of what the answer takes from the image passes through layer 1;"),
        (0.2, (1.0, 0.3, 1.0), "Only 20% of what .* passes through the tokens before the first layer;"),
        (0.006, (1.0, 0.3, 1.0), "Only 1% of what .* passes through the tokens before the first layer;"),
        (0.005, (1.0, 0.3, 1.0), "Hardly anything of what .* through the tokens before the first layer;"),
    ],
)
def test_where_less_than_all_passes_through_the_layers_the_sentence_says_where(
    before: float, shares: tuple[float, ...], words: str
) -> None:
    reading = Reading(tuple(range(len(shares))), shares)
    assert re.match(words, reading.sentence(before=before))
