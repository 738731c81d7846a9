"""Progress in a log: a line every ten seconds, with the rate since this run began."""

from __future__ import annotations

import io

import pytest

from vit_viz.cli.output import ProgressLines, duration


def lines(*calls: tuple[float, int, int]) -> list[str]:
    """What is printed of calls at (second, done, total)."""
    file, now = io.StringIO(), [0.0]
    told = ProgressLines("photos", file, lambda: now[0])
    for second, done, total in calls:
        now[0] = second
        told.follow(done, total)
    return file.getvalue().splitlines()


def test_a_line_every_ten_seconds_and_one_at_the_end() -> None:
    assert lines((100, 0, 5000), (105, 99, 5000), (110, 100, 5000), (119.9, 800, 5000), (120, 1000, 5000), (121, 5000, 5000)) == [
        "100 of 5,000 photos, 10 photos/s, 8 min left",
        "1,000 of 5,000 photos, 50 photos/s, 80 s left",
        "5,000 of 5,000 photos, 238 photos/s",
    ]  # fmt: skip


def test_what_an_earlier_run_has_done_says_nothing_about_the_rate() -> None:
    assert lines((0, 900, 1000), (10, 920, 1000)) == ["920 of 1,000 photos, 2 photos/s, 40 s left"]


def test_what_is_done_soon_is_no_line_and_no_progress_has_no_rate() -> None:
    assert lines((0, 0, 7), (9.9, 7, 7)) == []
    assert lines((0, 3, 7), (10, 3, 7)) == ["3 of 7 photos"]


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "0 s"), (89.4, "89 s"), (90, "2 min"), (5399, "90 min"), (5400, "1.5 h"), (360000, "100.0 h")],
)
def test_a_time_is_told_in_the_unit_that_suits_it(seconds: float, said: str) -> None:
    assert duration(seconds) == said
