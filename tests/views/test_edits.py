"""Edits and the view that they belong to: which of them another view keeps."""

from __future__ import annotations

from vit_viz.views.state import ViewState


def test_edits_by_place_end_with_the_grid_and_all_with_the_model() -> None:
    view = ViewState(model="odd", image="lion", edits="off 1.3;forbid class>patches;forbid class>1,2")
    for change in ({"image": "tower"}, {"mode": "crop"}, {"size": 9}, {"part": "0,0,40,50"}):
        assert view.on_subject(**change).edits == "off 1.3;forbid class>patches"
    assert view.on_subject(model="mini").edits == ""
