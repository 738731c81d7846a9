"""What can be chosen on single tabs: the measures of heads in words, and the matrix in links."""

from __future__ import annotations

from itertools import pairwise
from typing import get_args

from vit_viz.analyses.head_statistics import Measure
from vit_viz.views.state import ViewState
from vit_viz.views.tab_options import HEAD_MEASURES, HeadMeasure


def test_every_measure_has_words_of_its_own() -> None:
    assert set(HEAD_MEASURES) == {*get_args(HeadMeasure)} == {*get_args(Measure), "estimate", "effect"}
    assert len({said.label for said in HEAD_MEASURES.values()}) == len(HEAD_MEASURES)
    for said in HEAD_MEASURES.values():
        assert said.sentence.endswith(".")
        assert len(said.sentence) < 140
    groups = [said.group for said in HEAD_MEASURES.values()]
    assert len(set(groups)) == 1 + sum(a != b for a, b in pairwise(groups))


def test_the_matrix_is_in_the_link_and_a_zoom_that_is_none_is_refused() -> None:
    view, problems = ViewState.from_address("?matrix_scale=linear&links=head&strongest=7&zoom=4.5,0.25,0.5")
    assert problems == ()
    assert (view.matrix.matrix_scale, view.matrix.matrix_links) == ("linear", "head")
    assert (view.matrix.matrix_count, view.matrix.matrix_zoom) == (7, "4.5,0.25,0.5")
    changed = view.with_options({"matrix_zoom": "", "matrix_count": 8})
    assert changed.to_address() == "matrix_scale=linear&links=head&strongest=8"
    for zoom in ("0,0,0", "2,0", "12345,0,0", "2,0,0,0", "1e3,0,0", "2,-0.1,0"):
        view, problems = ViewState.from_address(f"?zoom={zoom}")
        assert (view.matrix.matrix_zoom, len(problems)) == ("", 1), zoom
