"""What a report says of a trace, in one sentence."""

from __future__ import annotations

import re

import pytest

from vit_viz.capture.report import HOLDS, Check, CheckStatus, ProofReport, Reading

CHECKS = ("kernel", "placed", "complete", "effective", "pooled")


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
    reading = Reading(tuple(range(len(shares))), shares, before)
    assert re.match(words, reading.sentence)


@pytest.mark.parametrize("name", CHECKS)
@pytest.mark.parametrize("status", ["unknown", "fails"])
def test_each_check_alone_keeps_a_trace_from_being_proven(name: str, status: CheckStatus) -> None:
    whole = dict.fromkeys(CHECKS, HOLDS)
    assert (ProofReport(**whole).status, ProofReport(**whole).meaning) == ("proven", "right")
    report = ProofReport(**whole | {name: Check(status, "Why.")})
    assert report.status == ("refuted" if (name, status) == ("kernel", "fails") else "captured, not proven")
    assert (report.sentence, report.words) == ("Why.", "Why.")
    assert report.meaning != "right"


def test_what_fails_is_said_before_what_is_not_known_and_in_the_order_of_the_checks() -> None:
    for place, name in enumerate(CHECKS):
        before = dict.fromkeys(CHECKS[:place], Check("unknown", "Not known."))
        after = dict.fromkeys(CHECKS[place + 1 :], Check("fails", "Later."))
        report = ProofReport(**before, **{name: Check("fails", "First.")}, **after)
        assert (tuple(report.checks), report.sentence) == (CHECKS, "First.")
