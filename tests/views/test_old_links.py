"""Links that were copied from earlier versions open the same view as on the day they were copied."""

from __future__ import annotations

from typing import Any

import pytest

from tests.ui.views import view_with
from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.rollout import RolloutOptions, ValueRolloutOptions
from vit_viz.views.state import _READERS, ViewState, link_options


def rollout(**options: Any) -> tuple[tuple[str, RolloutOptions], ...]:
    """The options of a view in which only rollout's are changed."""
    return (("rollout", RolloutOptions(**options)),)


OLD: dict[str, dict[str, Any]] = {
    "": {},
    "?model=mini": {"model": "mini"},
    "?model=facebook%2Fdino-vits16&image=lion": {"model": "facebook/dino-vits16", "image": "lion"},
    "?image=u3f2a": {"image": "u3f2a"},
    "?mode=crop": {"mode": "crop"},
    "?mode=stretch&tab=patches": {"mode": "stretch", "tab": "patches"},
    "?tab=explain": {"tab": "explain"},
    "?tab=heads&face=matrix&matrix_scale=linear&links=head&strongest=20&zoom=2.5%2C0.1%2C0.25": {
        "tab": "heads",
        "face": "matrix",
        "matrix_scale": "linear",
        "matrix_links": "head",
        "matrix_count": 20,
        "matrix_zoom": "2.5,0.1,0.25",
    },
    "?tab=heads&measure=effect&how=mean&order=value": {
        "tab": "heads",
        "measure": "effect",
        "how": "mean",
        "head_order": "value",
    },
    "?tab=heads&face=surgery&edits=off+1.3": {"tab": "heads", "face": "surgery", "edits": "off 1.3"},
    "?tab=heads&edits=off+1.3&zoom=2%2C0%2C0": {"tab": "heads", "edits": "off 1.3", "matrix_zoom": "2,0,0"},
    "?edits=off+1.3&links=head": {"edits": "off 1.3", "matrix_links": "head"},
    "?tab=positions&places=trained": {"tab": "positions", "position_grid": "trained"},
    "?tab=positions&positions=resampled": {"tab": "positions", "position_part": "resampled"},
    "?tab=tokens&tokens=components&vectors=keys&state=3&token_scale=shared": {
        "tab": "tokens",
        "token_measure": "components",
        "token_role": "keys",
        "token_state": 3,
        "token_scale": "shared",
    },
    "?tokens=components&foreground=1&whitened=1&second=lion": {
        "token_measure": "components",
        "token_foreground": True,
        "token_whitened": True,
        "token_second": "lion",
    },
    "?tokens=norms&outliers=2.5&register=1": {
        "token_measure": "norms",
        "token_factor": 2.5,
        "token_register": True,
    },
    "?tokens=segments&segments_of=queries&segments_by=cut&segments=7&box=1,2,30,40": {
        "token_measure": "segments",
        "token_segment_role": "queries",
        "token_method": "cut",
        "token_count": 7,
        "token_box": "1,2,30,40",
    },
    "?where=not+is_right&across=margin&up=mean_distance&of_heads=entropy&photos=elsewhere": {
        "survey_where": "not is_right",
        "survey_across": "margin",
        "survey_up": "mean_distance",
        "survey_measure": "entropy",
        "survey_list": "elsewhere",
    },
    "?tab=survey&photos=changed&compared_with=tuned%2Fsurvey": {
        "tab": "survey",
        "survey_list": "changed",
        "survey_second": "tuned/survey",
    },
    "?tab=walkthrough&step=5": {"tab": "lesson", "step": 5},
    "?tab=explain&explain=parts&target=291": {"tab": "explain", "explain_face": "parts", "target": "291"},
    "?tab=walkthrough&step=2&play=17": {"tab": "lesson", "step": 2},
    "?tab=lesson&beat=ask-query&full=1": {"tab": "lesson", "beat": "ask-query", "full": True},
    "?tab=patches&numbers=1": {"tab": "patches", "numbers": True},
    "?size=40&part=120,40,300,400": {"size": 40, "part": "120,40,300,400"},
    "?layer=7&head=3": {"layer": 7, "head": 3},
    "?edits=off+3.1;temperature+7%3D0.5;forbid+class%3E2-4,3": {
        "edits": "off 3.1;temperature 7=0.5;forbid class>2-4,3"
    },
    "?sentences=a+dog+%7C+a+%22cat%22%3F&templates=a+photo+of+%7B%7D.": {
        "sentences": 'a dog | a "cat"?',
        "templates": "a photo of {}.",
    },
    "?head=max": {"head": "max"},
    "?head=min&layer=0": {"head": "min", "layer": 0},
    "?head=3&extremes=1": {"head": 3, "extremes": True},
    "?q=2,3": {"query": "2,3"},
    "?q=class": {"query": "class"},
    "?q=register%200": {"query": "register 0"},
    "?q=2,3;2,4;3,3": {"query": "2,3;2,4;3,3"},
    "?q=pool&dir=column": {"query": "pool", "direction": "column"},
    "?dir=column&scale=layer": {"direction": "column", "scale": "layer"},
    "?scale=own&alpha=0.3": {"scale": "own", "alpha": 0.3},
    "?colors=magma&smooth=1": {"table": "magma"},
    "?colors=gray&alpha=1": {"table": "gray"},
    "?colors=cividis&scale=own&alpha=0.3": {"table": "cividis", "scale": "own", "alpha": 0.3},
    "?style=tint&colors=magma": {"style": "tint", "table": "magma"},
    "?mask=0.6&norm=1": {"mask": 0.6, "norm": True},
    "?clip=0&smooth=0": {"clip": False, "smooth": False},
    "?tab=explain&method=rollout&share=0.7": {
        "tab": "explain",
        "method": "rollout",
        "options": rollout(attention_share=0.7),
    },
    "?method=rollout&fusion=max&discard=0.9": {
        "method": "rollout",
        "options": rollout(head_fusion="max", discard=0.9),
    },
    "?method=value_rollout&value_rollout.attention_share=0.7": {
        "method": "value_rollout",
        "options": (("value_rollout", ValueRolloutOptions(attention_share=0.7)),),
    },
    "?method=attention_flow&attention_flow.attention_share=0.7": {
        "method": "attention_flow",
        "options": (("attention_flow", METHODS["attention_flow"].options(attention_share=0.7)),),
    },
    "?method=rollout&first=2&last=9": {"method": "rollout", "options": rollout(first=2, last=9)},
    "?tab=explain&target=291": {"tab": "explain", "target": "291"},
    "?tab=explain&target=291-292&method=grad_cam": {
        "tab": "explain",
        "target": "291-292",
        "method": "grad_cam",
    },
    "?tab=explain&ruler=only&target=184-102&sides=difference": {
        "tab": "explain",
        "map_scale": "only",
        "target": "184-102",
        "sides": "difference",
    },
    "?tab=explain&ruler=share": {"tab": "explain", "map_scale": "share"},
    "?tab=explain&gone=best.12": {"tab": "explain", "gone": "best.12"},
    "?tab=explain&gone=patches.ICgk": {"tab": "explain", "gone": "patches.ICgk"},
    "?utm_source=mail&layer=4": {"layer": 4},
    "layer=5&image=cheetah": {"layer": 5, "image": "cheetah"},
}


@pytest.mark.parametrize("address", OLD)
def test_an_old_link_opens_its_view(address: str) -> None:
    view, problems = ViewState.from_address(address)
    assert problems == ()
    assert view == view_with(**OLD[address])


def test_every_option_that_a_link_may_hold_is_in_the_table() -> None:
    views = [view_with(**values) for values in OLD.values()]
    assert {name for values in OLD.values() for name in values} >= set(_READERS)
    changed = {
        (owner, name) for view in views for owner, options in view.options for name, _ in options.changed()
    }
    assert {(owner, field.name) for owner, field in link_options().values()} == changed
    assert len(OLD) >= 30


@pytest.mark.parametrize("address", OLD)
def test_a_link_is_written_as_it_was(address: str) -> None:
    view = view_with(**OLD[address])
    assert ViewState.from_address(view.to_address()) == (view, ())
    written = {pair.partition("=")[0] for pair in view.to_address().split("&") if pair}
    pairs = dict(pair.split("=") for pair in address.lstrip("?").split("&") if pair)
    defaults = {"scale": "layer", "smooth": "1", "alpha": "1"}  # which are left out
    pairs = {name: text for name, text in pairs.items() if defaults.get(name) != text}
    assert written == pairs.keys() - {"utm_source", "play"}


@pytest.mark.parametrize("face", ["atlas", "surgery", "matrix", "depth"])
@pytest.mark.parametrize("more", [{}, {"edits": "off 1.3"}, {"matrix_links": "head"}])
def test_a_face_of_the_heads_tab_comes_back_from_its_link(face: str, more: dict[str, str]) -> None:
    view = view_with(tab="heads", face=face, **more)
    assert ViewState.from_address(view.to_address()) == (view, ())
