"""The command that compares two surveys."""

from __future__ import annotations

import argparse
import json
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from vit_viz.cli.command import Command
from vit_viz.cli.terminal import table

if TYPE_CHECKING:
    from vit_viz.surveys.comparison import SurveyComparison

MOST_LISTED = 12
"""Heads and photos that are named; --json has all of them."""


def compare(flags: argparse.Namespace) -> int:
    """Compare two surveys."""
    from vit_viz.surveys.comparison import compare_surveys

    compared = compare_surveys(flags.before, flags.after, heads=not flags.photos_only)
    if flags.json:
        print(json.dumps(_plain(asdict(compared)), allow_nan=False))
        return 0
    for line in _lines(compared):
        print(line)
    return 0


def _lines(compared: SurveyComparison) -> Iterator[str]:
    yield f"{compared.photos:,} photos in both"
    if (of := compared.accuracy) is not None:
        yield (
            f"top-1 {of.before:.3f} before, {of.after:.3f} after, of {of.photos:,} labelled photos: {of.lost:,} right to wrong, "
            f"{of.won:,} wrong to right (McNemar's exact p = {of.p:.2g})"
        )
    yield from _answers(compared)
    if compared.heads:
        yield from _heads(compared)


def _answers(compared: SurveyComparison) -> Iterator[str]:
    counts = Counter(one.kind for one in compared.answers)
    said = ", ".join(f"{count:,} {kind}" for kind, count in counts.most_common())
    yield f"{len(compared.answers):,} photos changed their answer{f': {said}' if said else ''}"
    rows = [
        [
            one.photo,
            one.kind,
            f"{one.before} {one.before_probability:.2f}",
            f"{one.after} {one.after_probability:.2f}",
        ]
        for one in compared.answers[:MOST_LISTED]
    ]
    if rows:
        yield table(rows, head=("photo", "what", "before", "after"))


def _heads(compared: SurveyComparison) -> Iterator[str]:
    from vit_viz.surveys.comparison import unit_of

    beyond = sum(one.is_beyond_chance for one in compared.heads)
    yield (
        f"{beyond:,} of {len(compared.heads):,} statistics of heads moved: their 95% interval over photos leaves out 0, which "
        f"chance alone would do to about {len(compared.heads) / 20:.0f}"
    )
    rows = [
        [
            f"{one.layer}.{one.head}",
            one.statistic,
            f"{one.difference:+.4g}",
            f"{one.low:+.4g} to {one.high:+.4g}",
            f"{one.effect:+.2f}",
            unit_of(one.statistic),
        ]
        for one in compared.heads[:MOST_LISTED]
        if one.is_beyond_chance
    ]
    if rows:
        yield table(rows, head=("head", "statistic", "mean difference", "95% interval", "effect", "unit"))


def _plain(value: Any) -> Any:
    """As JSON has it: null for what is no finite number."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _add_compare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("before", metavar="BEFORE", help="The folder of a survey.")
    parser.add_argument("after", metavar="AFTER", help="The folder of a survey of the same photos.")
    parser.add_argument(
        "--photos-only",
        action="store_true",
        help="Compare answers only, as for models with other numbers of layers or heads.",
    )
    parser.add_argument("--json", action="store_true", help="Print all of it as JSON.")


COMMAND = Command(
    "compare-surveys",
    "Compare two surveys of the same photos: which heads moved, which answers changed.",
    _add_compare,
    compare,
)
