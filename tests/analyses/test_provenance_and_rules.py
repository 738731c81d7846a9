"""What links and names of heads say of how they were made, and a rule by itself: what a run of mutations found unseen."""

from __future__ import annotations

import pytest
import torch

from vit_viz.analyses.head_names import HeadNames, Rule
from vit_viz.analyses.heads import head_tables
from vit_viz.analyses.links import links

RULE = Rule("local", "A rule with a bound on both sides.", {"content": 0.5}, {"distance": 0.2})


@pytest.mark.parametrize(
    ("content", "distance", "slack", "holds"),
    [
        (0.5, 0.2, 0.0, True),
        (0.49, 0.2, 0.0, False),
        (0.5, 0.21, 0.0, False),
        (0.46, 0.2, 0.1, True),  # easier: from 0.45
        (0.44, 0.2, 0.1, False),
        (0.5, 0.21, 0.1, True),  # to 0.22
        (0.5, 0.23, 0.1, False),
        (0.56, 0.17, -0.1, True),  # harder: from 0.55, to 0.18
        (0.54, 0.17, -0.1, False),
        (0.56, 0.19, -0.1, False),
    ],
)
def test_slack_moves_both_bounds_of_a_rule_apart(
    content: float, distance: float, slack: float, holds: bool
) -> None:
    assert RULE.holds({"content": content, "distance": distance}, slack=slack) is holds


def test_links_say_what_they_were_asked(trace_of) -> None:
    trace = trace_of(torch.rand(2, 3, 5, 5))
    found = links(trace, layer=1, head=2, query="class", count=4, tokens="all", own=True)
    assert dict(found.provenance.parameters) == {
        **dict(trace.provenance.parameters),
        "method": "strongest links",
        "layer": "1",
        "head": "2",
        "query": "class",
        "count": "4",
        "tokens": "all",
        "own": "True",
    }


def test_names_of_heads_say_that_they_were_made_of_all_measures(make_trace) -> None:
    names = HeadNames.of(head_tables(make_trace(prefix=2), patch_size=(3, 4)))
    made = dict(names.provenance.parameters)
    assert (made["method"], made["measure"]) == ("head_names", "all")
