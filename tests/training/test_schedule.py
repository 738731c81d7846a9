from __future__ import annotations

import pytest

from training.recipe import Recipe, Stage

RECIPE = Recipe(
    stages=(Stage(until=0.5, size=8, batch=3), Stage(until=1.0, size=16, batch=2)),
    warm_up=0.1,
    decay_from=0.6,
)


@pytest.mark.parametrize(
    ("progress", "factor"),
    [(0.0, 0.0), (0.05, 0.5), (0.1, 1.0), (0.59, 1.0), (0.8, 0.5), (1.0, 0.0), (1.1, 0.0)],
)
def test_rate_warms_up_stays_and_decays_to_zero(progress: float, factor: float) -> None:
    assert RECIPE.rate(progress) == pytest.approx(factor)


def test_a_stage_ends_where_the_next_begins() -> None:
    assert RECIPE.stage(0.0).size == 8
    assert RECIPE.stage(0.499).size == 8
    assert RECIPE.stage(0.5).size == 16
    assert RECIPE.stage(1.0).size == 16


def test_the_real_stages_cover_the_whole_run_in_order() -> None:
    ends = [stage.until for stage in Recipe().stages]
    assert ends == sorted(ends)
    assert ends[-1] == 1.0
    assert Recipe().stages[-1].size == Recipe().model["img_size"]
