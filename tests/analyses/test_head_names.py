"""Names of heads: attention made to have them, and the thresholds at, below and above."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
import torch

from vit_viz.analyses.head_names import MARGIN, RULES, Name, name_heads
from vit_viz.analyses.heads import head_tables
from vit_viz.errors import ParameterError
from vit_viz.geometry import TokenLayout
from vit_viz.results import HeadTable

ROWS, COLS = 5, 7
PATCHES = ROWS * COLS
PLACES = np.array([divmod(i, COLS) for i in range(PATCHES)])
KINDS = torch.from_numpy(np.random.default_rng(3).integers(0, 4, PATCHES))


def normalised(weights):
    return weights / weights.sum(-1, keepdim=True)


def by_offset(weigh):
    """Attention between patches that depends on (rows down, columns right) alone."""
    down, right = (torch.from_numpy(PLACES[None, :, axis] - PLACES[:, None, axis]).float() for axis in (0, 1))
    return normalised(weigh(down, right) + 1e-6)


BETWEEN = {
    "left neighbour": by_offset(lambda down, right: ((down == 0) & (right == -1)).float()),
    "right neighbour": by_offset(lambda down, right: ((down == 0) & (right == 1)).float()),
    "upper neighbour": by_offset(lambda down, right: ((down == -1) & (right == 0)).float()),
    "lower neighbour": by_offset(lambda down, right: ((down == 1) & (right == 0)).float()),
    "local": by_offset(lambda down, right: torch.exp(-(down**2 + right**2) / 2)),
    "content": normalised((KINDS[:, None] == KINDS[None]).float() + 0.01),
    "positional": by_offset(lambda down, right: ((down.abs() == 2) & (right.abs() >= 2)).float()),
    "global": torch.full((PATCHES, PATCHES), 1 / PATCHES),
}


def one_head(between, *, to_class=0.05, to_register=0.05):
    full = torch.zeros(PATCHES + 2, PATCHES + 2)
    full[:, 0], full[:, 1] = to_class, to_register
    full[2:, 2:] = (1 - to_class - to_register) * between
    full[:2, 2:] = (1 - to_class - to_register) / PATCHES
    return full


def tables_of(trace_of, *heads):
    residual = torch.cat((torch.ones(2, 4) / 2, torch.eye(4)[KINDS])).expand(2, -1, -1)
    trace = trace_of(
        torch.stack(heads)[None], prefix=("class", "register 0"), grid=(ROWS, COLS), residual=residual
    )
    return head_tables(trace, patch_size=(3, 4))


@pytest.mark.parametrize("label", BETWEEN)
def test_attention_made_for_a_name_gets_it_with_the_number_that_decided(trace_of, label):
    (name,) = name_heads([tables_of(trace_of, one_head(BETWEEN[label]))])
    assert name.label == label
    rule = next(rule for rule in RULES if rule.name == name.name)
    assert name.sentence.startswith(rule.sentence)
    (number,) = {**rule.at_least, **rule.at_most}
    said = ".2f" if number in ("content", "unevenness") else ".0%"  # the others are shares
    assert f"{number} {name.numbers[number]:{said}}".lower() in name.sentence.lower()


def test_what_drains_attention_names_a_head_whatever_else_it_does(trace_of):
    heads = [
        one_head(BETWEEN["left neighbour"], to_class=0.6),
        one_head(BETWEEN["left neighbour"], to_register=0.6),
    ]
    names = name_heads([tables_of(trace_of, *heads)])
    assert [one.label for one in names] == ["class-token reader", "register or sink"]
    assert [(one.layer, one.head) for one in names] == [(0, 0), (0, 1)]


def with_numbers(trace_of, **values):
    """The measures of an ordinary head, some of them set to these values."""
    tables = dict(tables_of(trace_of, one_head(BETWEEN["positional"])))
    plain = {"positional_share": 0.0, "content_correlation": 0.0, "entropy": 0.5, "distance": 10.0}
    for measure, value in {**plain, **values}.items():
        tables[measure] = HeadTable(
            np.array([[value]], np.float32),
            unit="",
            value_range=(0.0, 20.0) if measure == "distance" else (-1.0, 1.0),
            signed=False,
            method=measure,
        )
    return tables


@pytest.mark.parametrize(
    ("measure", "bound", "name"),
    [
        ("class_mass", 0.5, "class-token reader"),
        ("sink_share", 0.25, "register or sink"),
        ("right_neighbour", 0.2, "neighbour"),
        ("content_correlation", 0.16, "content"),
        ("positional_share", 0.5, "positional"),
    ],
)
def test_a_threshold_names_at_and_above_it_and_evidence_close_to_it_is_thin(trace_of, measure, bound, name):
    named = {
        factor: name_heads([with_numbers(trace_of, **{measure: bound * factor})])[0]
        for factor in (1 - 1.2 * MARGIN, 0.99, 1.01, 1 + 1.2 * MARGIN)
    }
    assert [one.name for one in named.values()] == ["mixed", "mixed", name, name]
    assert [one.could_be for one in named.values()] == [(), (name,), ("mixed",), ()]
    assert [one.is_thin for one in named.values()] == [True, True, True, False]


def test_the_class_token_is_no_register(trace_of):
    heads = [
        one_head(BETWEEN["positional"], to_class=0.3),
        one_head(BETWEEN["positional"], to_class=0.3, to_register=0.3),
    ]
    names = name_heads([tables_of(trace_of, *heads)])
    assert [one.name for one in names] == ["positional", "register or sink"]
    assert [one.numbers["registers and sinks"] for one in names] == [
        pytest.approx(0.05, abs=1e-6),
        pytest.approx(0.3, abs=1e-6),
    ]


@pytest.mark.parametrize(
    ("measure", "just", "beyond", "name"),
    [("distance", 3.9, 4.1, "local"), ("entropy", 0.875, 0.865, "global")],
)
def test_small_distances_and_high_entropies_name_too(trace_of, measure, just, beyond, name):
    labels = [name_heads([with_numbers(trace_of, **{measure: value})])[0].name for value in (just, beyond)]
    assert labels == [name, "mixed"]


def test_numbers_are_means_over_photos(trace_of):
    photos = [with_numbers(trace_of, content_correlation=value) for value in (0.0, 0.5)]
    (name,) = name_heads(photos)
    assert name.numbers["content"] == pytest.approx(0.25)
    assert name.name == "content"
    assert name_heads(photos[:1])[0].name == "mixed"


def test_every_name_has_a_rule_but_the_one_for_none():
    assert {*get_args(Name)} == {rule.name for rule in RULES} | {"mixed"}


def test_names_need_photos_and_their_measures(trace_of, make_trace):
    with pytest.raises(ParameterError, match="at least one photo"):
        name_heads([])
    without = {k: v for k, v in with_numbers(trace_of).items() if k != "entropy"}
    with pytest.raises(ParameterError, match="entropy"):
        name_heads([without])


def test_a_trace_without_its_residual_stream_is_named_by_the_other_measures(make_trace):
    trace = make_trace(prefix=1)
    names = name_heads([head_tables(trace, patch_size=(16, 8))])
    assert len(names) == 15
    assert {one.numbers["content"] for one in names} == {0.0}
    assert trace.layout == TokenLayout(grid=(4, 6), prefix=("class",))
