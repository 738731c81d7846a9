"""Where a first look begins: the score of a map by hand, the head that is chosen, and the patches that are visited."""

from __future__ import annotations

import numpy as np
import pytest

from vit_viz.analyses.opening import first_of_last_third, opening, score

ROWS, COLS, TOKENS = 4, 5, 21  # a tenth of 20 patches are two


def grid(**places: float) -> np.ndarray:
    """A map of 4 x 5 patches that is 1 everywhere but at the named places, as r1c2=7."""
    values = np.ones((ROWS, COLS))
    for name, value in places.items():
        row, col = name[1:].split("c")
        values[int(row), int(col)] = value
    return values


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (grid(r1c2=9, r1c3=9), 18 / 36),  # two of twenty, side by side
        (grid(r1c2=9, r2c3=9), 18 / 36 / 2),  # they share a corner only
        (grid(r0c4=9, r1c0=9), 18 / 36 / 2),  # the end of a row and the start of the next do not touch
        (grid(r3c4=17), 18 / 36 / 2),  # a single one, and the first of the others, far away
        (np.ones((ROWS, COLS)), 0.0),  # nothing is brighter than the rest
        (np.full((ROWS, COLS), 1 / 20, np.float32), 0.0),
        (np.zeros((ROWS, COLS)), 0.0),
        (np.array([[3.0, 1.0, 0.0]]), 3 / 4),  # of fewer than ten patches, one
    ],
)
def test_the_score_of_a_map_worked_by_hand(values, expected):
    assert score(values) == pytest.approx(expected)


def trace_with(trace_of, rows):
    """A trace of 3 layers and 2 heads, even but for rows {(layer, head, token): map}, with a class token before 4 x 5 patches."""
    attention = np.full((3, 2, TOKENS, TOKENS), 1 / TOKENS, dtype=np.float32)
    for (layer, head, token), values in rows.items():
        row = np.append(2.0, values.ravel())
        attention[layer, head, token] = row / row.sum()
    return trace_of(attention, grid=(ROWS, COLS))


def test_the_head_with_the_best_map_of_the_last_third_is_chosen(trace_of):
    good, better = grid(r1c2=5, r1c3=5), grid(r1c2=9, r1c3=9)
    rows = {(0, 0, 0): better, (1, 0, 0): better, (2, 1, 0): good, (2, 0, 7): better}
    found = opening(trace_with(trace_of, rows))
    assert (found.layer, found.head) == (2, 1)
    assert found.score == pytest.approx(score(good))
    rows[2, 0, 0] = better
    found = opening(trace_with(trace_of, rows))
    assert (found.layer, found.head) == (2, 0)
    assert opening(trace_with(trace_of, rows)) == found


def test_the_tour_visits_the_best_patches_of_that_head_apart_from_each_other(trace_of):
    places = {
        7: 30.0,
        8: 20.0,
        12: 9.0,
        19: 8.0,
        0: 5.0,
    }  # patches 8 and 12 lie beside 7; a third of five columns is 1.67
    rows = {(2, 1, patch + 1): grid(r2c2=value, r2c3=value) for patch, value in places.items()}
    found = opening(trace_with(trace_of, rows | {(2, 1, 0): grid(r1c2=9, r1c3=9)}))
    assert found.tour == (7, 19, 0)


def test_a_patch_whose_row_is_even_is_not_visited(trace_of):
    best = grid(r1c2=9, r1c3=9)
    assert opening(trace_with(trace_of, {(2, 1, 0): best})).tour == ()
    assert opening(trace_with(trace_of, {(2, 1, 0): best, (2, 1, 18): best})).tour == (17,)
    assert opening(trace_with(trace_of, {})).score == 0


@pytest.mark.parametrize(("layers", "first"), [(1, 0), (2, 1), (3, 2), (6, 4), (12, 8), (24, 16)])
def test_the_last_third_begins_where_two_thirds_end(layers, first):
    assert first_of_last_third(layers) == first
