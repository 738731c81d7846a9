"""Questions that run the model again, under edits or on changed input: the page's engine answers what the server answers."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from tests.browser.engine import Jobs
from tests.browser.test_answers import TINIES, _expected, _loaded, check
from vit_viz.samples import sample
from vit_viz.session.session import Session

pytestmark = pytest.mark.numbers

MODELS = ("mini", "registers", "mean", "attention pooling", "joined", "rotary", "biases", "no head", "inner norms", "one value")
TINIES |= {
    "biases": {"position": "none", "relative_bias": True, "pooling": "mean", "fc_norm": True, "final_norm": False},
    "one value": {"num_classes": 1},
}  # fmt: skip

EDITS = [
    "off 0.1 2.3", "mean 1.0 1.4", "uniform 0.2 2.0", "temperature 0=0.5 2=3", "forbid patches>0-1,2-4@1;forbid 1,1>everything@0",
    "off 1.2;mean 2.1;uniform 1.1;temperature 1=0.31;forbid everything>2,2", "mean 1.0;off 0.0 0.1 0.2 0.3 0.4",
]  # fmt: skip
REFUSED = [
    *("off 7.1", "off 0.17", "off 0.1 0.1", "off x", "mean", "melt 3.1", "temperature 0=2 0=3", "temperature 1=200"),
    *("temperature 1", "forbid class", "forbid registers>1,1", "forbid 1,1>everything", "forbid 0,0>99,1", "forbid token 999>1,1"),
    *("forbid 1,1>2,2@5-3", "forbid 4-2,1>1,1", "forbid sky>1,1"),
]
CASES: list[tuple[str, dict[str, Any]]] = [
    *(("token_norms", {"edits": edits}) for edits in (*EDITS, *REFUSED)),
    ("token_change", {"edits": ["off 0.1", "temperature 1=2"]}),
    *(("ablation", about) for about in (
        {}, {"how": "mean"}, {"how": "uniform", "target": "0"}, {"target": "2-1"}, {"edits": "off 0.1;temperature 1=0.5"},
        {"edits": "mean 1.0;forbid everything>2,2", "how": "uniform"}, {"how": "half"}, {"target": "9999"},
    )),
    *(("without_patches", about) for about in (
        {}, {"gone": "0,0"}, {"gone": "0,0;1,2;1,3;0,0", "target": "1"}, {"gone": "1,1;2,2", "target": "0-2"}, {"gone": "99,1"},
        {"gone": "1,1", "edits": "off 1.1"}, {"gone": "all"},
        {"gone": ";".join(f"{row},{col}" for row in range(4) for col in range(6) if (row, col) != (2, 3))},
    )),
]  # fmt: skip


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Session, list[Any]]]:
    """By a model's name: a session of it, and the engine's answers to all cases."""

    @cache
    def of(name: str) -> tuple[Session, list[Any]]:
        folder = tmp_path_factory.mktemp("passes")
        loaded, path = _loaded(name, folder)
        session = Session(model=loaded.name, device="cpu")
        session.add_model(loaded)
        jobs = Jobs(folder)
        photo, options = jobs.picture(sample("runner")), {"mode": "crop"}
        jobs.add("answers", path=str(path), picture=photo, options=options, questions=CASES)
        (result,) = jobs.run()
        assert "error" not in result, result
        return session, result["answers"]

    return of


@pytest.mark.parametrize("case", range(len(CASES)), ids=lambda case: str(CASES[case]))
@pytest.mark.parametrize("model", MODELS)
def test_a_question_that_runs_the_model_again_is_answered_as_the_server_answers_it(
    model: str, case: int, answers: Callable[[str], tuple[Session, list[Any]]]
) -> None:
    session, got = answers(model)
    check(got[case], _expected(session, *CASES[case]))
