"""Measures of heads say how far they are, and end when they are stopped."""

from __future__ import annotations

import pytest

import vit_viz as vv
from vit_viz.analyses.head_sums import LayerInput, Offsets, layer_sums
from vit_viz.analyses.heads import head_tables
from vit_viz.errors import Cancelled
from vit_viz.samples import sample


def test_the_share_grows_layer_by_layer_up_to_all() -> None:
    trace, told = vv.trace("mini", sample("shapes")), list[float]()
    head_tables(trace, measures=("entropy",), progress=told.append)
    assert told == [(layer + 1) / trace.num_layers for layer in range(trace.num_layers)]


def test_a_stop_ends_it_within_a_layer() -> None:
    trace = vv.trace("mini", sample("shapes"))
    given = LayerInput(trace, 0, Offsets(trace.layout.grid))
    with pytest.raises(Cancelled):
        layer_sums(given, ["entropy"], cancelled=lambda: True)


def test_a_stop_after_two_layers_ends_it_there() -> None:
    trace, told = vv.trace("mini", sample("shapes")), list[float]()
    with pytest.raises(Cancelled):
        head_tables(trace, measures=("entropy",), progress=told.append, cancelled=lambda: len(told) >= 2)
    assert len(told) == 2
