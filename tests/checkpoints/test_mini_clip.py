"""The bundled model of sentences: "a red circle" lights the red circle, with no network."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors import safe_open

import vit_viz as vv
from tests.comparing import assert_same
from training.evaluate_words import cases, of_maps, segmentation
from vit_viz.analyses.localisation import localisation
from vit_viz.bundled import bundled_file
from vit_viz.samples import sample
from vit_viz.session.session import Session
from vit_viz.ui.target import value
from vit_viz.views.choices import subject_of
from vit_viz.views.state import ViewState

pytestmark = pytest.mark.numbers
FILE = bundled_file("mini-clip.safetensors")
COLOURS = {
    "a red circle": (196, 61, 48),
    "a yellow triangle": (236, 178, 45),
    "a blue square": (38, 97, 156),
    "a green star": (62, 132, 92),
}
SENTENCES = " | ".join(COLOURS)


def mask_of(sentence: str) -> NDArray[np.bool_]:
    """Where the drawing has the colour of a sentence."""
    pixels = np.asarray(sample("shapes"), dtype=np.int64)
    found: NDArray[np.bool_] = np.abs(pixels - COLOURS[sentence]).max(-1) < 40
    assert 0.02 < found.mean() < 0.2
    return found


def test_it_is_small_and_says_what_it_is() -> None:
    assert FILE.stat().st_size <= 3_000_000
    with safe_open(FILE, "pt") as file:
        assert {file.get_slice(name).get_dtype() for name in file.keys()} == {"F16"}  # noqa: SIM118  # not a dict
        provenance = json.loads(file.metadata()["provenance"])
    assert {"trained_on", "recipe", "minutes", "steps", "license", "date"} <= set(provenance)


@pytest.mark.parametrize(("target", "sentence"), list(enumerate(COLOURS)), ids=list(COLOURS))
def test_a_sentence_lights_its_thing(target: int, sentence: str) -> None:
    found = vv.run("mini-clip", "shapes", "relevance", sentences=SENTENCES, target=target)
    assert localisation(found, mask=mask_of(sentence)).pointing == 1
    (alone,) = vv.explain("mini-clip", "shapes", methods="relevance", target=sentence).values()
    assert_same(torch.tensor(alone.values), torch.tensor(found.values), relative=1e-5)


def test_patches_are_told_apart_by_sentences() -> None:
    patches = vv.run("mini-clip", "shapes", "sentence_patches", sentences=f"{SENTENCES} | the background")
    assert vv.sentence_overlap(patches, {one: mask_of(one) for one in COLOURS}).mean() >= 0.5


def test_on_drawn_scenes_relevance_finds_what_a_rollout_does_not() -> None:
    loaded, few = vv.load("mini-clip", device="cpu"), list(cases(20))
    rows = [of_maps(loaded, case, ["relevance", "rollout"]) for case in few]
    peak = {name: float(np.mean([row[name][0] for row in rows])) for name in rows[0]}
    assert peak["relevance"] >= 0.8
    assert max(peak["rollout"], peak["random"], peak["centre"]) <= 0.6
    assert np.mean([segmentation(loaded, case, "itself")[0] for case in few]) >= 0.6


def test_words_that_it_does_not_know_are_named() -> None:
    session = Session(model="mini-clip", device="cpu")
    view = ViewState(image="shapes", sentences="a red dog | a blue square | @lion")
    told = value(session, subject_of(session, view, ""), view)
    assert "does not know “dog”: all such words are one to it." in told["words"]
    known = ViewState(image="shapes", sentences="A RED circle, on the left.")
    assert "know" not in value(session, subject_of(session, known, ""), known)["words"]
    assert "a red circle" in value(session, subject_of(session, ViewState(), ""), ViewState())["examples"]
