"""Requests of files that were saved before questions had one name everywhere ask for the same today."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.ui.desk import odd_session
from vit_viz.analyses.registry import QUESTIONS
from vit_viz.errors import ParameterError
from vit_viz.session.questions import request_for
from vit_viz.session.request import Request, Subject
from vit_viz.session.session import Session

EARLIER: list[tuple[str, dict[str, Any], str, dict[str, Any]]] = [
    (
        "attention",
        {"layer": 1, "head": 2, "direction": "column", "norm_weighted": True, "query": [1, 2]},
        "look",
        {"layer": 1, "head": "2", "direction": "column", "norm": True, "query": "1,2"},
    ),
    (
        "attention",
        {"layer": 2, "head": "mean", "direction": "row", "norm_weighted": False, "query": "class"},
        "look",
        {"layer": -1, "query": "class"},
    ),
    (
        "explain",
        {"method": "rollout", "options": [["discard", 0.3], ["head_fusion", "max"]], "query": [[0, 1], [0, 2]]},
        "rollout",
        {"discard": 0.3, "head_fusion": "max", "query": "0,1;0,2"},
    ),
    ("explain", {"method": "attention", "target": 3}, "attention", {"target": 3}),
    ("explain", {"method": "relevance", "target": [3, 5]}, "relevance", {"target": (3, 5)}),
    ("received image", {}, "sequence", {}),
    ("patches", {"numbers": True}, "patches", {"numbers": True}),
    ("positions", {"grid": [5, 7], "place": [2, 2]}, "positions", {"grid": "5,7", "place": "2,2"}),
    ("positions", {"place": "class"}, "positions", {"place": "class"}),
    ("resampling", {"grid": [9, 11]}, "resampling", {"rows": 9, "cols": 11}),
    ("rotary similarity", {"grid": None}, "rotary_similarity", {}),
    ("position components", {"grid": [3, 4]}, "position_components", {"rows": 3, "cols": 4}),
    ("filter components", {"count": 9}, "filter_components", {"count": 9}),
    ("token similarity", {"role": "keys", "query": [1, 1]}, "token_similarity", {"role": "keys", "query": "1,1"}),
    ("token norms", {"factor": 3.0}, "token_norms", {"factor": 3.0}),
    ("layer similarity", {"role": "keys", "debiased": None}, "layer_similarity", {"role": "keys"}),
    ("layer similarity", {"role": "tokens", "debiased": False}, "layer_similarity", {"form": "biased"}),
    (
        "segments",
        {"layer": 1, "role": "keys", "method": "cut", "count": 2, "seed": 0, "boxes": [[1, 2, 30, 40]]},
        "segments",
        {"layer": 1, "method": "cut", "box": "1,2,30,40"},
    ),
    ("segments", {"layer": 2, "role": "keys", "method": "k-means", "count": 3, "seed": 5}, "segments", {"count": 3, "seed": 5}),
    (
        "links",
        {"layer": 1, "head": 3, "count": 7, "tokens": "all", "own": False, "query": None},
        "links",
        {"layer": 1, "head": "3", "count": 7, "tokens": "all"},
    ),
    ("register", {"count": 4, "factor": 5.0}, "added_register", {"count": 4}),
    ("lens", {"target": None}, "logit_lens", {}),
    ("head importance", {"how": "mean", "target": 2}, "head_importance", {"how": "mean", "target": 2}),
    ("head names", {}, "head_names", {}),
    ("trust", {"method": "rollout", "target": None}, "trust", {"method": "rollout"}),
]  # fmt: skip


@pytest.fixture(scope="module")
def session() -> Session:
    return odd_session()


@pytest.mark.parametrize(
    ("analysis", "parameters", "name", "asked"), EARLIER, ids=[f"{one[0]}-{i}" for i, one in enumerate(EARLIER)]
)  # fmt: skip
def test_it_asks_for_what_it_asked_for(
    session: Session, analysis: str, parameters: dict[str, Any], name: str, asked: dict[str, Any]
) -> None:
    subject = Subject("odd", "twins")
    expected = request_for(session, subject, name, **asked)
    written = json.loads(expected.to_json())
    del written["question"]
    found = Request.from_json(json.dumps(written | {"analysis": analysis, "parameters": parameters}))
    question = QUESTIONS[name]
    assert (found.question, found.subject) == (name, expected.subject)
    mine, wanted = dict(found.parameters), dict(expected.parameters)
    assert question.chosen(mine) == question.chosen(wanted)
    assert {k: mine[k] for k in ("query", "target") if k in mine} == {
        k: wanted[k] for k in ("query", "target") if k in wanted
    }


def test_every_question_of_then_is_among_them() -> None:
    """Or had the same name and parameters then, or parameters alone that are the same now; later ones need no name of then."""
    same = {"mosaic", "heads", "ablation", "randomisation", "classes", "token_change", "token_components"}
    assert {name for _, _, name, _ in EARLIER} | same <= set(QUESTIONS)


@pytest.mark.parametrize(
    "parameters",
    [{"method": 3}, {"method": "rollout", "options": 7}, {"method": "rollout", "options": [["discard"]]}, []],
)
def test_what_was_none_then_is_refused_or_read_without_it(parameters: Any) -> None:
    written = json.loads(Request.of("mini", "lion", "rollout").to_json()) | {"analysis": "explain"}
    del written["question"]
    try:
        found = Request.from_json(json.dumps(written | {"parameters": parameters}))
    except ParameterError:
        return
    assert (found.question, dict(found.parameters)) == ("rollout", {})
