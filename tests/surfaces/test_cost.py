"""What is said of a slow method before it is asked for: how often the model runs, and about how long that takes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.registry import QUESTIONS
from vit_viz.analyses.trust import RANDOM, TRUST
from vit_viz.progress import duration
from vit_viz.service import cost_words

RECORDED: Any = SimpleNamespace(layout=SimpleNamespace(num_patches=256), num_layers=5, num_heads=7)


def test_a_duration_is_said_as_people_guess_it() -> None:
    said = [
        duration(seconds).replace("\N{NO-BREAK SPACE}", " ") for seconds in (0.01, 1.4, 8.7, 89.4, 90, 200)
    ]
    assert said == ["1 s", "1 s", "9 s", "89 s", "2 min", "3 min"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("occlusion", "one run per patch: about 26 s"),  # 256 patches, a tenth of a second each
        ("smoothgrad", "16 runs forwards and backwards: about 5 s"),  # a pass backwards counts as two
        ("kernel_shap", "about 800 runs: about 80 s"),
        ("integrated_gradients", "50 runs forwards and backwards or more, until it adds up: at least 10 s"),
        ("ablation", "about half a pass for each head: about 2 s"),  # 5 layers of 7 heads
        ("relevance", ""),  # shares one pass with others
    ],
)
def test_the_time_is_that_of_the_passes_of_a_method(name: str, words: str) -> None:
    assert cost_words(QUESTIONS[name], RECORDED, 0.1).replace("\N{NO-BREAK SPACE}", " ") == words


def test_the_test_of_a_map_costs_less_where_its_random_orders_are_done() -> None:
    whole, rest = (
        cost_words(TRUST, RECORDED, 0.1, done=done) for done in (0, sum(part.forwards for part in RANDOM))
    )
    assert whole == "some hundred passes: at most about 43\N{NO-BREAK SPACE}s"
    assert rest == "some hundred passes, most of which are done: at most about 5\N{NO-BREAK SPACE}s"


def test_without_a_measured_pass_there_is_no_time() -> None:
    assert cost_words(METHODS["occlusion"], RECORDED, None) == "one run per patch"


def test_every_method_that_runs_the_model_for_itself_says_how_often() -> None:
    unknown = [name for name in METHODS if METHODS[name].is_slow != (METHODS[name].passes is not None)]
    assert unknown == ["attention_flow"]  # which solves flows, and leaves the model alone
