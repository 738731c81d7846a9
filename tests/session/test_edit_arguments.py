"""Edits as the arguments of `vit_viz.edit`: the words that mean them, and the numbers of both."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import vit_viz as vv
from vit_viz.errors import ParameterError
from vit_viz.session.edits import ModelEdits

EQUAL: list[tuple[dict[str, Any], str]] = [
    ({"heads": {(3, 1): 0.0, (4, 0): 0, (5, 2): "mean", (5, 3): "uniform"}}, "off 3.1 4.0;mean 5.2;uniform 5.3"),
    ({"temperature": {4: 0.5, 2: 3}}, "temperature 4=0.5 2=3"),
    ({"knockout": {5: [(0, 7), (0, 9)], 4: [(0, 7)]}}, "forbid token 0>token 7@4-5;forbid token 0>token 9@5"),
    ({"mask_keys": {5: [6, 8]}}, "forbid everything>token 6@5;forbid everything>token 8@5"),
    (
        {"heads": {(np.int64(5), torch.tensor(1)): np.float32(0)}, "knockout": {5: [(0, 260)]}},
        "off 5.1;forbid token 0>token 260@5",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "words"), EQUAL, ids=[words for _, words in EQUAL])
def test_arguments_are_the_edits_of_their_words_and_of_edit(arguments: dict[str, Any], words: str) -> None:
    assert ModelEdits.parse(arguments) == ModelEdits.parse(words)
    got = vv.run("mini", "lion", "rollout", edits=arguments)
    assert dict(got.provenance.parameters)["edits"] == str(ModelEdits.parse(words))
    with vv.edit(**arguments):
        expected = vv.rollout("mini", "lion")
    np.testing.assert_allclose(got.values, expected.values, rtol=1e-5, atol=1e-7 * expected.values.max())
    plain = vv.run("mini", "lion", "rollout").values
    assert np.abs(got.values - plain).max() > 1e-4 * plain.max()


def test_a_figure_and_a_survey_take_the_same(tmp_path: Any) -> None:
    arguments, words = EQUAL[0]
    first, second = (
        vv.figure("mini", "lion", "rollout", format="csv", edits=one).data for one in (arguments, words)
    )
    assert first == second
    vv.samples.sample("lion").resize((96, 96)).save(tmp_path / "lion.png")
    made = vv.survey("mini", tmp_path, tmp_path / "out", edits=arguments)
    assert made.manifest["edits"] == words


def test_a_matrix_of_edges_and_a_mask_of_tokens_are_their_indices() -> None:
    edges = torch.zeros(9, 9, dtype=torch.bool)
    edges[2, 5] = edges[4, 1] = True
    assert ModelEdits.parse({"knockout": {1: edges}}) == ModelEdits.parse({"knockout": {1: [(2, 5), (4, 1)]}})
    mask = torch.arange(9) % 4 == 3
    assert ModelEdits.parse({"mask_keys": {1: mask}}) == ModelEdits.parse({"mask_keys": {1: [3, 7]}})


def test_what_changes_nothing_is_no_edit() -> None:
    for nothing in ({}, {"heads": {}}, {"heads": {(3, 1): 1.0}}, {"temperature": {2: 1}}, {"knockout": None}):
        assert not ModelEdits.parse(nothing)


def test_a_token_by_number_belongs_to_its_grid() -> None:
    edits = ModelEdits.parse("forbid token 0>token 7;off 3.1")
    assert str(edits.on_any_grid) == "off 3.1"
    assert ModelEdits.parse(str(edits)) == edits


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            {"head": {(3, 1): 0}},
            "Edits as a dict have heads, temperature, knockout, mask_keys, .* not 'head'",
        ),
        ({"heads": {(3, 1): 0.5}}, "turn a head off"),
        ({"heads": {(3, 1): "of"}}, "turn a head off"),
        ({"heads": {(3, 1): [0, 1]}}, "'heads' is not"),
        ({"heads": {3: 0}}, "'heads' is not"),
        ({"heads": [(3, 1)]}, "'heads' is not"),
        ({"heads": {(-1, 1): 0}}, "A head is layer.head"),
        ({"temperature": {3: "warm"}}, "'temperature' is not"),
        ({"temperature": {3: 0}}, "a number from 0.01 to 100"),
        ({"knockout": {3: [[(0, 1)], [(2, 3)]]}}, "'knockout' is not"),
        ({"knockout": {3: [4]}}, "'knockout' is not"),
        ({"mask_keys": [5]}, "mask keys by layer"),
        ({"mask_keys": torch.ones(7, dtype=torch.bool)}, "mask keys by layer"),
        ({"mask_keys": {3: 5}}, "'mask_keys' is not"),
        ({"mask_keys": {3: [10**40]}}, "'mask_keys' is not"),
        ({"mask_keys": {3: [-5]}}, "Tokens are a name"),
        ({"mask_keys": {3: list(range(900))}}, "at most 16000 characters"),
    ],
)
def test_what_words_cannot_say_is_refused_in_a_sentence(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words) as refused:
        ModelEdits.parse(arguments)
    assert str(refused.value).endswith(".")


def test_a_token_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"^Token 261 does not exist: this model has tokens 0-\d+\.$"):
        vv.run("mini", "lion", "rollout", edits={"knockout": {3: [(0, 261)]}})


def test_what_edit_returns_goes_around_the_call() -> None:
    with pytest.raises(ParameterError, match=r"goes around the call, `with vit_viz\.edit\("):
        vv.run("mini", "lion", "rollout", edits=vv.edit(heads={(3, 1): 0}))  # type: ignore[arg-type]
