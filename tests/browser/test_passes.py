"""Questions that run the model again, under edits or on changed input: the page's engine answers what the server answers."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.browser.engine import Jobs
from tests.browser.test_answers import TINIES, _expected, _loaded, check
from vit_viz.browser import write_weights
from vit_viz.checkpoints import LoadedModel, load
from vit_viz.samples import sample
from vit_viz.session.session import Session

pytestmark = pytest.mark.numbers

MODELS = (
    "mini",
    "registers",
    "mean",
    "attention pooling",
    "distilled",
    "joined",
    "rotary",
    "biases",
    "no head",
    "inner norms",
    "one value",
)
TINIES |= {
    "registers": {"reg_tokens": 2},
    "mean": {"class_token": False, "pooling": "mean"},
    "no head": {"num_classes": 0},
    "biases": {"position": "none", "relative_bias": True, "pooling": "mean", "fc_norm": True, "final_norm": False},
    "one value": {"num_classes": 1},
}  # fmt: skip

EDITS = [
    "off 0.1 2.3", "mean 1.0 1.4", "uniform 0.2 2.0", "temperature 0=0.5 2=3", "forbid patches>0-1,2-4@1;forbid 1,1>everything@0",
    "off 1.2;mean 2.1;uniform 1.1;temperature 1=0.31;forbid everything>2,2", "mean 1.0;off 0.0 0.1 0.2 0.3 0.4",
]  # fmt: skip
REFUSED = [
    *(
        "off 7.1",
        "off 0.17",
        "off 0.1 0.1",
        "off x",
        "mean",
        "melt 3.1",
        "temperature 0=2 0=3",
        "temperature 1=200",
    ),
    *(
        "temperature 1",
        "forbid class",
        "forbid registers>1,1",
        "forbid 1,1>everything",
        "forbid 0,0>99,1",
        "forbid token 999>1,1",
    ),
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
    *(("lesson_what_if", about) for about in (
        {}, {"seed": 7, "edits": "off 1.1;temperature 0=2"}, {"seed": 0},
        {"change": "positions"}, {"change": "positions", "seed": 0}, {"change": "scale"},
        {"change": "scale", "edits": "temperature 1=0.5;forbid everything>2,2;mean 2.0"}, {"change": "axis"},
        {"change": "axis", "edits": "off 1.1"}, {"change": "head"},
        {"change": "head", "layer": 1, "head": 3, "edits": "uniform 1.3"},
        {"change": "head", "layer": 6}, {"change": "head", "head": 9}, {"change": "cut"}, {"change": "cut", "edits": "off 1.1"},
        {"change": "patch", "patch": 5}, {"change": "patch", "patch": 400}, {"change": "melt"},
    )),
    *(("occlusion", about) for about in (
        {}, {"target": "1"}, {"target": "0-2"}, {"edits": "off 1.1;temperature 0=2"}, {"query": "class"}, {"target": "9999"},
    )),
    *(("trust", about) for about in (
        {"method": "rollout"}, {"method": "attention", "target": "1-2"}, {"method": "value_rollout", "edits": "temperature 1=0.4"},
        {"method": "rollout", "options": {"discard": 0.5}, "target": "2"}, {"method": "occlusion"},
        {}, {"method": "gradient_rollout", "target": "1"}, {"method": "legrad", "edits": "temperature 1=0.4"},
        {"method": "gradcam"}, {"method": "rollout", "target": "9999"}, {"sides": "difference", "target": "0-6"},
        {"sides": "difference", "target": "2-1", "method": "gradient_rollout", "edits": "off 1.1"},
        {"sides": "difference", "method": "rollout"},
    )),
]  # fmt: skip


def small_mini(folder: Path) -> tuple[LoadedModel, Path]:
    """The model with an input of 5 x 5 patches, so that a pass for each of them is not long, and its file."""
    mini, path = load("mini", device="cpu"), folder / "model.safetensors"
    recipe = replace(mini.preprocess, input_size=(80, 80), resize_to=80)
    write_weights(replace(mini, preprocess=recipe), path, storage="fp32")
    return load(path, device="cpu"), path


DIFFERENCES = ("ablation", "occlusion")
ROUNDING = 2e-6
"""Of a difference of two outputs, relative to the largest output: each is off by some units in the last place of fp32. The server's
kernels can be as far off as the engine, to the other side, so such differences are compared with those of the model in fp64."""


NEAR_ONE = 5e-5
"""Of bands over cosines that are almost 1: their log-odds magnify what fp32 rounds off on the server."""
SLOW = {"occlusion": ("mini", "registers", "mean", "no head"), "trust": ("registers", "no head", "one value")}
"""Questions of many passes, and the models for which they are asked."""


def cases_of(model: str) -> list[tuple[str, dict[str, Any]]]:
    return [(name, body) for name, body in CASES if model in SLOW.get(name, MODELS)]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Session, list[Any]]]:
    """By a model's name: a session of it, and the engine's answers to all cases."""

    @cache
    def of(name: str) -> tuple[Session, list[Any]]:
        folder = tmp_path_factory.mktemp("passes")
        loaded, path = small_mini(folder) if name == "mini" else _loaded(name, folder)
        session = Session(model=loaded.name, device="cpu")
        session.add_model(loaded)
        jobs = Jobs(folder)
        photo, options = jobs.picture(sample("runner")), {"mode": "crop"}
        questions = [(question, {"model": loaded.name} | body) for question, body in cases_of(name)]
        jobs.add("answers", path=str(path), picture=photo, options=options, questions=questions)
        (result,) = jobs.run()
        assert "error" not in result, result
        return session, result["answers"]

    return of


ASKED = [(model, case) for model in MODELS for case in range(len(cases_of(model)))]


@pytest.mark.parametrize(
    ("model", "case"), ASKED, ids=[f"{model} {cases_of(model)[case]}" for model, case in ASKED]
)
def test_a_question_that_runs_the_model_again_is_answered_as_the_server_answers_it(
    model: str, case: int, answers: Callable[[str], tuple[Session, list[Any]]]
) -> None:
    session, got = answers(model)
    name, body = cases_of(model)[case]
    largest = largest_output(session)
    terms = ROUNDING * largest if name in DIFFERENCES else 0.0
    is_unscaled = body.get("change") == "scale"
    session = in_fp64(session) if name in DIFFERENCES or is_unscaled else session
    terms = NEAR_ONE if (model, name) == ("no head", "trust") else terms
    expected = _expected(session, name, body)
    if (
        is_unscaled
    ):  # scores are larger by the scale, and so is what is rounded off; a share is off by its part of that
        times = session.model(session.default_model).config.head_dim ** 0.5
        terms = times * ROUNDING * largest * float(expected["arrays"]["after"].max())
    check(got[case], expected, terms=terms)


def in_fp64(session: Session) -> Session:
    """One whose model computes in fp64."""
    loaded = session.model(session.default_model)
    precise = Session(model=loaded.name, device="cpu")
    model = copy.deepcopy(loaded.model).double()
    model.register_forward_pre_hook(lambda _model, given: (given[0].double(), *given[1:]))
    precise.add_model(replace(loaded, model=model))
    return precise


def largest_output(session: Session) -> float:
    loaded = session.model(session.default_model)
    with torch.no_grad():
        return float(loaded.model(loaded.preprocess.apply(sample("runner"), mode="crop").pixels).abs().max())
