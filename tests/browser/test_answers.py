"""What the engine answers to a question is what the server answers: the same arrays, facts and words, or the same refusal."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.browser.engine import Jobs
from tests.browser.families import BEIT, TINY
from tests.model.inside import randomise
from vit_viz.analyses.registry import QUESTIONS
from vit_viz.answer import arrays_of
from vit_viz.browser import write_weights
from vit_viz.checkpoints import LoadedModel, load
from vit_viz.errors import VitVizError
from vit_viz.figures.files import Answered
from vit_viz.images import Preprocess
from vit_viz.model import VisionTransformer, ViTConfig
from vit_viz.samples import sample
from vit_viz.sentences import sentence
from vit_viz.service import read_body, requested
from vit_viz.session.request import Subject
from vit_viz.session.session import Session
from vit_viz.ui.tokens.routes import vector_bytes

pytestmark = pytest.mark.numbers

TOLERANCE = 1e-5
"""Largest difference, relative to the largest number of an array."""

GRAD_CAM = 2e-5
"""Of Grad-CAM, a small difference of large sums: of ViT-Tiny's the engine is off by 1.6e-5, the server by 9e-6."""
QUOTIENTS = 1e-4
"""Of XGrad-CAM, which divides by sums over patches: what fp32 rounds off is magnified by how nearly these cancel (6,000 times)."""
POOLED = 2.0**-21
"""Of a chain from a pool, relative to the pool's own weights, which are subtracted: 8 roundings of the server's fp32. The engine's
numbers, in fp64, are held to more in test_gradients.py."""

KINDS = {
    "float32": "Float32Array",
    "float64": "Float64Array",
    "int64": "BigInt64Array",
    "bool": "Uint8Array",
    "uint8": "Uint8Array",
}
"""Types of arrays, as the page reads them of the server."""

TINIES: dict[str, dict[str, Any]] = {
    "no class token, no head": {"class_token": False, "pooling": "mean", "num_classes": 0},
    "attention pooling": {"class_token": False, "pooling": "attention"},
    "distilled": {"dist_token": True, "dist_head": True},
    "rotary": {"position": "rotary", "reg_tokens": 4, "layer_scale": True},
    "joined": {"pool_concat": True, "reg_tokens": 1},
    "inner norms": {"attn_norm": True, "mlp_norm": True, "position": "sinusoidal_2d", "reg_tokens": 2},
    "biased": BEIT | {"relative_bias": True},
}
MODELS = ("mini", "mini fp16", *TINIES)

AS_WRITTEN = ("query", "options", "last", "count")
"""Parameters that the page tells as they were asked for; the server counts layers from the first, and a cut has two segments."""

CUT = ("segments", {"method": "cut", "layer": 0})
CASES: list[tuple[str, dict[str, Any]]] = [
    ("token_similarity", {"query": "class"}),
    ("token_similarity", {}),
    ("token_similarity", {"query": "1,2;1,3;2,3", "role": "keys"}),
    ("token_similarity", {"query": "9,99"}),
    ("token_similarity", {"query": "register 1", "role": "queries"}),
    ("token_similarity", {"role": "values"}),
    ("token_similarity", {"target": "1"}),
    ("token_change", {}),
    ("token_change", {"query": "0,0"}),
    ("token_norms", {}),
    ("token_norms", {"factor": 1.5}),
    ("token_norms", {"factor": 1}),
    ("token_norms", {"size": 3, "count": 2}),
    ("token_components", {}),
    ("token_components", {"role": "keys", "balanced": False}),
    ("token_components", {"second": "tower"}),
    ("token_components", {"second": "tower", "foreground": True, "role": "keys"}),
    ("token_components", {"role": "queries", "foreground": True, "whitened": True}),
    ("logit_lens", {}),
    ("logit_lens", {"target": 3}),
    ("logit_lens", {"target": "2-1"}),
    ("logit_lens", {"target": 1000}),
    ("logit_lens", {"target": "lions"}),
    ("logit_lens", {"target": "cat"}),
    ("logit_lens", {"target": "no such thing"}),
    ("logit_lens", {"target": "Lion "}),
    ("layer_similarity", {}),
    ("layer_similarity", {"role": "keys", "form": "biased"}),
    ("layer_similarity", {"role": "queries", "form": "without bias"}),
    ("classes", {}),
    ("classes", {"count": 20}),
    ("patches", {}),
    ("patches", {"numbers": True}),
    ("sequence", {}),
    ("look", {}),
    ("look", {"layer": 1, "head": "2", "direction": "column", "query": "2,1"}),
    ("look", {"layer": -2, "head": "max", "norm": True, "query": "2,1;1,1"}),
    ("look", {"layer": 0, "head": 1, "norm": True, "direction": "column"}),
    ("look", {"layer": 77}),
    ("look", {"head": "99"}),
    ("look", {"head": "all"}),
    ("mosaic", {"query": "1,1"}),
    ("mosaic", {"direction": "column"}),
    ("heads", {}),
    ("heads", {"measure": "norm"}),
    ("heads", {"measure": "size"}),
    ("head_tables", {}),
    ("head_names", {}),
    ("links", {"layer": 2, "head": "0"}),
    ("links", {"layer": 1, "head": "max", "count": 5, "tokens": "all", "own": True}),
    ("links", {"layer": 1, "query": "1,1;2,2", "count": 3}),
    ("links", {"count": 0}),
    ("rollout", {}),
    ("rollout", {"query": "1,1", "attention_share": 0.9, "discard": 0.4, "head_fusion": "max"}),
    ("rollout", {"query": "0,0;0,1", "first": 1, "last": -2, "head_fusion": "min"}),
    ("rollout", {"attention_share": 1, "discard": 0.95}),
    ("rollout", {"target": 2}),
    ("rollout", {"discard": 1}),
    ("value_rollout", {}),
    ("value_rollout", {"query": "2,2", "attention_share": 0.25}),
    ("attention", {}),
    ("attention", {"target": 1, "query": "1,2"}),
    ("attention", {"target": 1000}),
    ("relevance", {}),
    ("relevance", {"target": "2-1"}),
    ("relevance", {"query": "1,1"}),
    ("relevance", {"query": "pool", "target": 0}),
    ("relevance", {"edits": "off 0.1;mean 1.0;uniform 2.0;temperature 0=0.5 2=3;forbid patches>0-1,2-4@1"}),
    ("relevance", {"edits": "mean 2.1;forbid 1,1>2,2@0", "query": "1,1"}),
    ("relevance", {"target": 1000}),
    ("relevance", {"discard": 0.5}),
    ("gradient_rollout", {}),
    ("gradient_rollout", {"query": "1,1", "target": "1"}),
    ("gradient_rollout", {"edits": "uniform 0.1 1.2;forbid everything>2,2@2"}),
    ("legrad", {}),
    ("legrad", {"target": "0-2"}),
    ("legrad", {"edits": "mean 0.0 2.2;off 1.1;temperature 2=0.3"}),
    ("gradcam", {}),
    ("gradcam", {"target": "1", "edits": "uniform 2.1;mean 2.0"}),
    ("hirescam", {}),
    ("layercam", {}),
    ("xgradcam", {}),
    ("grad_eclip", {}),
    ("grad_eclip", {"target": "2-1", "edits": "off 1.1;mean 2.0"}),
    ("grad_eclip", {"query": "1,1"}),
    ("grad_eclip", {"query": "1,1;1,2"}),
    ("class_difference", {}),
    ("class_difference", {"target": "2-1", "method": "gradcam", "edits": "off 1.1"}),
    ("class_difference", {"method": "rollout"}),
    ("class_difference", {"method": "occlusion"}),
    ("own_part", {}),
    ("own_part", {"method": "rollout", "options": {"discard": 0.5}, "target": 1}),
    ("comparison", {}),
    (
        "comparison",
        {"methods": "relevance,rollout", "options": {"rollout": {"discard": 0.5}}, "target": "0-2"},
    ),
    ("rollout", {"edits": "uniform 0.1;temperature 1=3;forbid patches>0-1,2-4@1"}),
    ("ledger", {}),
    ("ledger", {"rows": "heads", "factor": 1.5, "query": "1,1"}),
    ("sink_kinds", {}),
    ("decomposition", {}),
    ("decomposition", {"target": "2-1"}),
    ("decomposition", {"target": 3, "maps": "layers"}),
    ("decomposition", {"target": "1-1"}),
    ("segments", {}),
    ("segments", {"role": "tokens", "layer": 1, "count": 3, "seed": 7, "box": "40,30,260,210"}),
    ("lesson_tokens", {}),
    ("lesson_tokens", {"query": "1,2"}),
    ("lesson_tokens", {"query": "class"}),
    ("lesson_attention", {}),
    ("lesson_attention", {"query": "1,1", "layer": 1, "head": 2}),
    ("lesson_attention", {"query": "0,0", "layer": 0, "edits": "temperature 0=0.5;off 0.0;mean 0.1"}),
    ("lesson_attention", {"query": "register 0", "layer": 2, "head": 3, "edits": "uniform 2.3"}),
    ("lesson_attention", {"layer": 77}),
    ("lesson_attention", {"head": 77}),
    ("lesson_block", {}),
    ("lesson_block", {"query": "3,5", "layer": 0}),
    ("lesson_block", {"query": "2,2", "layer": 1, "edits": "off 1.1;mean 1.2;forbid patches>0-1,2-4@1"}),
    ("lesson_depth", {}),
    ("lesson_depth", {"query": "1,1"}),
    ("lesson_depth", {"query": "2,3", "edits": "off 0.1;temperature 2=2"}),
    CUT,
    ("segments", {"box": "40,30,20,210"}),
    ("positions", {}),
    ("positions", {"grid": "3,5", "place": "1,2"}),
    ("positions", {"place": "class"}),
    ("positions", {"place": "77,1"}),
    ("positions", {"grid": "100,100"}),
    ("position_distance", {}),
    ("position_distance", {"rows": 9, "cols": 5}),
    ("position_distance", {"rows": 9}),
    ("resampling", {"rows": 7, "cols": 11}),
    ("resampling", {"rows": 3, "cols": 2}),
    ("rotary_similarity", {}),
    ("rotary_similarity", {"rows": 3, "cols": 5}),
    ("position_components", {}),
    ("position_components", {"rows": 3, "cols": 5}),
    ("filter_components", {}),
    ("filter_components", {"count": 3}),
    ("filter_components", {"image": "runner"}),
]


def _loaded(name: str, folder: Path) -> tuple[LoadedModel, Path]:
    """A model, and its file as the engine reads it."""
    mini, path = load("mini", device="cpu"), folder / "model.safetensors"
    if name.startswith("mini"):
        write_weights(mini, path, storage="fp16" if "fp16" in name else "fp32")
        return load(path, device="cpu"), path
    torch.manual_seed(5)
    config = ViTConfig(**TINY | TINIES[name])
    model = randomise(VisionTransformer(config))
    recipe = Preprocess(config.img_size, config.patch_size, drop_remainder=config.drop_remainder)
    loaded = replace(mini, model=model, config=config, preprocess=recipe, labels=None, name=name)
    write_weights(loaded, path, storage="fp32")
    return loaded, path


def _expected(session: Session, name: str, body: dict[str, Any]) -> dict[str, Any]:
    """What the server answers, or why it refuses."""
    question = QUESTIONS[name]
    about = {"model": session.default_model}  # as in `answers`
    about |= {"image": "runner", "mode": "crop"} if question.takes_image else {}
    try:
        read = read_body(question, about | body)
        with requested(session, question, read, owner="test") as request:
            answered = Answered(session, request, session.run(request))
            told = answered.to_json(with_numbers=False)
            parameters = told["request"]["parameters"]
            return {key: told[key] for key in ("facts", "words")} | {
                "arrays": arrays_of(answered.answer),
                "parameters": {key: value for key, value in parameters.items() if key not in AS_WRITTEN},
            }
    except VitVizError as error:
        return {"refused": sentence(error)}


@pytest.mark.parametrize("role", ["tokens", "queries", "keys"])
def test_vectors_of_tokens_are_those_of_the_server(role: str, tmp_path: Path) -> None:
    loaded, path = _loaded("rotary", tmp_path)
    session, jobs = Session(model=loaded.name, device="cpu"), Jobs(tmp_path)
    session.add_model(loaded)
    photo, options = jobs.picture(sample("runner")), {"mode": "crop"}
    jobs.add("vectors", path=str(path), picture=photo, options=options, role=role, state=2)
    (result,) = jobs.run()
    told = vector_bytes(session, Subject(loaded.name, "runner", "crop"), 2, role)
    wanted = np.frombuffer(told, np.float16).astype(np.float32)
    assert np.abs(result["data"] - wanted).max() <= 2.0**-11  # half of what float16 tells apart
    lengths = np.linalg.norm(result["data"].reshape(result["tokens"], result["dim"]), axis=1)
    assert lengths == pytest.approx(1, rel=1e-6)


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Session, list[Any]]]:
    """By a model's name: a session of it, and the engine's answers to all cases."""

    @cache
    def of(name: str) -> tuple[Session, list[Any]]:
        folder = tmp_path_factory.mktemp("answers")
        loaded, path = _loaded(name, folder)
        session = Session(model=loaded.name, device="cpu")
        session.add_model(loaded)
        jobs = Jobs(folder)
        photo, options = jobs.picture(sample("runner")), {"mode": "crop"}
        questions = [(question, {"model": loaded.name} | body) for question, body in CASES]
        second = jobs.picture(sample("tower"))
        jobs.add(
            "answers", path=str(path), picture=photo, second=second, options=options, questions=questions
        )
        (result,) = jobs.run()
        assert "error" not in result, result
        return session, result["answers"]

    return of


def _facts(value: Any) -> Any:
    """Without where numbers came from: hashes of weights and photos are the server's, and no room shows them."""
    if isinstance(value, dict):
        return {name: _facts(one) for name, one in value.items() if name != "provenance"}
    return [_facts(one) for one in value] if isinstance(value, list) else value


def _leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every single fact with its path."""
    parts = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    )
    if not parts:
        yield path, value
    for name, part in parts or ():
        yield from _leaves(part, (*path, str(name)))


def _check_facts(got: Any, wanted: Any, of_map: float) -> None:
    """Equal words; and numbers as near as those of arrays, relative to the largest of their name, or of their map."""
    found, expected = dict(_leaves(got)), dict(_leaves(wanted))
    assert set(found) == set(expected)
    most: dict[str, float] = defaultdict(float)
    for path, value in expected.items():
        if isinstance(value, float):
            most[path[-1]] = max(most[path[-1]], abs(value))
    for path, value in expected.items():
        if isinstance(value, float):
            largest = max(most[path[-1]], of_map if path[0] == "prefix" else 0.0)
            assert found[path] == pytest.approx(value, rel=0, abs=TOLERANCE * largest), path
        else:
            assert found[path] == value, path


def check(got: Any, wanted: Any, *, terms: float = 0.0) -> None:
    """Compare two answers; `terms`: how far numbers may be apart at most that are differences, as what is subtracted is rounded."""
    if "refused" in wanted:
        assert got.get("refused") == wanted["refused"]
        return
    assert "refused" not in got, got["refused"]
    assert set(got["arrays"]) == set(wanted["arrays"])
    for name, array in wanted["arrays"].items():
        one = got["arrays"][name]
        assert (one["shape"], one["kind"]) == (list(array.shape), KINDS[str(array.dtype)]), name
        values, wide = one["values"].reshape(array.shape).astype(np.float64), array.astype(np.float64)
        if array.dtype not in (np.float32, np.float64):
            assert np.array_equal(values, wide), name
        elif array.size:
            near = GRAD_CAM if got["facts"].get("method") == "token Grad-CAM" else TOLERANCE
            is_quotient = "xgradcam" in name or got["facts"].get("method") == "token XGrad-CAM"
            near = QUOTIENTS if is_quotient else near
            assert np.abs(values - wide).max() <= max(near * np.abs(wide).max(), terms), name
    of_map = np.abs(wanted["arrays"]["values"]).max(initial=0.0) if "values" in wanted["arrays"] else 0.0
    _check_facts(got["facts"], _facts(wanted["facts"]), float(of_map))
    if "parameters" in wanted:
        understood = got["request"]["parameters"]
        assert {name: understood[name] for name in wanted["parameters"]} == wanted["parameters"]
    assert got["words"] == wanted["words"]


def _is_tried(model: str, case: tuple[str, dict[str, Any]]) -> bool:
    """Half precision with the usual options alone; in tiny models all patches are alike, and one cut is as good as another.

    Without a class token and a head, the change of a pool is so small that shares of it show how the server rounds.
    """
    if case == ("own_part", {}) and model == "no class token, no head":
        return False
    return (model != "mini fp16" or not case[1]) and (case != CUT or model in ("mini", "mini fp16"))


@pytest.mark.parametrize(
    ("model", "case"),
    [(model, case) for model in MODELS for case in CASES if _is_tried(model, case)],
    ids=str,
)
def test_the_engine_answers_what_the_server_answers(
    model: str, case: tuple[str, dict[str, Any]], answers: Callable[[str], tuple[Session, list[Any]]]
) -> None:
    session, got = answers(model)
    config = session.model(session.default_model).config
    is_pooled = case[0] in ("relevance", "gradient_rollout", "comparison") and config.pooling != "class"
    terms = POOLED / (4 * 6) if is_pooled else 0.0  # of 4 x 6 patches
    check(got[CASES.index(case)], _expected(session, *case), terms=terms)
