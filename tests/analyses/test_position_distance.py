"""How alike positions are by distance: every pair once, where it belongs, and sentences that the numbers say."""

from __future__ import annotations

import numpy as np
import pytest

from vit_viz.analyses.positions import LikenessByDistance, by_direction, finding, likeness_by_distance
from vit_viz.results import TokenMatrix


def matrix(rows: int, cols: int, seed: int = 0) -> TokenMatrix:
    vectors = np.random.default_rng(seed).normal(size=(rows * cols, 3))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return TokenMatrix(vectors @ vectors.T, "cosine similarity", (-1, 1), True, "positions", (rows, cols))


@pytest.mark.parametrize(("rows", "cols"), [(3, 5), (4, 2), (1, 6), (5, 1), (1, 1)])
def test_every_pair_is_counted_once_at_its_distance(rows: int, cols: int) -> None:
    source = matrix(rows, cols)
    likeness = likeness_by_distance(source)
    places = [(row, col) for row in range(rows) for col in range(cols)]
    groups: dict[int, list[float]] = {}
    lines: dict[tuple[int, bool], list[float]] = {}
    for one, (row, col) in enumerate(places):
        for other in range(one, len(places)):
            down, across = places[other][0] - row, places[other][1] - col
            step = round((down**2 + across**2) ** 0.5)
            value = float(source.values[one, other])
            groups.setdefault(step, []).append(value)
            lines.setdefault((step, not (down and across)), []).append(value)
    assert likeness.pairs.tolist() == [len(groups[step]) for step in range(len(groups))]
    for step, values in groups.items():
        assert likeness.mean[step] == pytest.approx(np.mean(values), abs=1e-6)
        ends = np.percentile(values, (10, 90))
        assert (likeness.low[step], likeness.high[step]) == pytest.approx(tuple(ends), abs=1e-6)
        for told, is_straight in ((likeness.straight, True), (likeness.askew, False)):
            found = lines.get((step, is_straight))
            assert (
                np.isnan(told[step])
                if found is None
                else told[step] == pytest.approx(np.mean(found), abs=1e-6)
            )


def test_along_a_row_and_down_a_column_are_told_apart() -> None:
    source = matrix(3, 5, seed=4)
    likeness = likeness_by_distance(source)
    tiles = source.values.reshape(3, 5, 3, 5)
    along = np.mean([tiles[row, col, row, col + 3] for row in range(3) for col in range(2)])
    down = np.mean([tiles[0, col, 2, col] for col in range(5)])
    assert (likeness.along[3], likeness.down[2]) == pytest.approx((along, down), abs=1e-6)
    assert (len(likeness.along), len(likeness.down)) == (5, 3)


def told(mean: list[float], *, straight: float = 0, along: float = 0, down: float = 0) -> LikenessByDistance:
    """Likeness with the same excess of pairs in one line, and of one direction, at every distance but 0."""
    middle = np.array(mean, np.float32)
    lines = [middle[:4] + np.float32(more) * (np.arange(4) > 0) for more in (along, down)]
    return LikenessByDistance(
        middle, middle, middle, np.ones(len(mean), int), middle + np.float32(straight), middle, *lines
    )


@pytest.mark.parametrize(
    ("likeness", "words"),
    [
        (told([1, 0.9, 0.5, 0.09, -0.2]), "tell near from far: neighbours are 0.90 alike, places 3 steps apart 0.09"),
        (told([1, 0.9, 0.5, 0.09], straight=0.2), "know rows and columns: neighbours are 0.90 alike, places 3 steps apart 0.09"),
        (told([1, 0.9, 0.5, 0.4, 0.6]), "tell near from far: neighbours are 0.90 alike, places 3 steps apart 0.40"),
        (told([1, 0.52, 0.5, 0.5, 0.49]), "hardly tell near from far: neighbours are 0.52 alike, places 4 steps apart 0.49"),
        (told([1, 0.02, 0.01, 0, 0]), "tell each place from all others: even neighbours are 0.02 alike"),
    ],
)  # fmt: skip
def test_the_title_says_what_the_numbers_say(likeness: LikenessByDistance, words: str) -> None:
    assert finding(likeness) == f"Positions {words}"


def test_one_position_has_nothing_to_be_compared_with() -> None:
    assert finding(likeness_by_distance(matrix(1, 1))) == "There is one position, and none to compare it with"


def test_a_direction_is_named_only_where_it_differs() -> None:
    mean = [1, 0.9, 0.5, 0.1]
    assert by_direction(told(mean, along=0.2)).startswith(
        "Along a row it falls more slowly than down a column: at "
    )
    assert by_direction(told(mean, down=0.2)).startswith(
        "Along a row it falls more quickly than down a column: at "
    )
    assert by_direction(told(mean, along=0.04)) == "Along a row it falls as it does down a column."
    assert by_direction(likeness_by_distance(matrix(1, 6))) == ""
