"""Pictures in the place of sentences: "more like this photo", "more like this patch"."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import vit_viz as vv
from tests.checkpoints.test_text_towers import own_file
from tests.comparing import assert_same
from vit_viz.analyses.targets import Target
from vit_viz.checkpoints import LoadedModel, load
from vit_viz.errors import CheckpointError, ImageError, ParameterError
from vit_viz.prompts import Prompts
from vit_viz.samples import sample
from vit_viz.session.devices import GpuRefusedError
from vit_viz.session.engine import Engine
from vit_viz.session.request import Request, Subject, is_about
from vit_viz.session.run import session_and_subjects
from vit_viz.session.session import Session

pytestmark = pytest.mark.numbers


@pytest.fixture(params=[True, False], ids=["with a text tower", "without one"])
def loaded(tmp_path: Path, request: pytest.FixtureRequest) -> LoadedModel:
    own_file(tmp_path / "both.safetensors")
    both = load(tmp_path / "both.safetensors", device="cpu")
    return both if request.param else replace(both, text=None, text_missing="No text tower here.")


def embedding(loaded: LoadedModel, photo: str) -> torch.Tensor:
    logits = vv.trace(loaded, photo).logits
    assert logits is not None
    return F.normalize(logits, dim=0)


def test_more_like_that_photo_is_the_scaled_cosine_of_both_embeddings(loaded: LoadedModel) -> None:
    scale = 9.974182 if loaded.text else 1
    answer = vv.run(loaded, "shapes", "classes", sentences="@lion | @")
    by_hand = scale * embedding(loaded, "shapes") @ embedding(loaded, "lion")
    assert answer.names == ("this photo", "the photo ‘lion’")
    assert answer.scores.tolist() == pytest.approx([scale, by_hand.item()], rel=1e-5)
    assert answer.method == "outputs"  # and no shares
    target = Target("similarity", embedding=embedding(loaded, "lion"))
    expected = vv.explain(loaded, "shapes", methods="gradcam", target=target)["gradcam"].values
    found = vv.run(loaded, "shapes", "gradcam", sentences="@lion", target=0).values
    assert_same(torch.tensor(found), torch.tensor(expected * scale), relative=1e-4)


def test_a_patch_is_most_like_itself_as_patches_are_read(loaded: LoadedModel) -> None:
    asked = vv.run(loaded, "lion", "sentence_patches", sentences="@lion 2,1 | @ 0,3 | @shapes 2,1")
    assert asked.maps.names == (
        "patch (2, 1) of the photo ‘lion’",
        "patch (0, 3) of this photo",
        "patch (2, 1) of the photo ‘shapes’",
    )
    assert asked.maps.values[0, 2, 1] == pytest.approx(1, abs=1e-5)
    assert asked.maps.values[1, 0, 3] == pytest.approx(1, abs=1e-5)
    assert asked.maps.values[2].max() < 0.9999
    there = vv.run(loaded, "shapes", "sentence_patches", sentences="@shapes 2,1")
    assert there.maps.values[0, 2, 1] == pytest.approx(1, abs=1e-5)


def test_an_edit_changes_what_is_asked_and_not_the_picture_that_it_is_compared_with(
    loaded: LoadedModel,
) -> None:
    scale = 9.974182 if loaded.text else 1
    edited = vv.run(loaded, "lion", "classes", sentences="@ | @lion", edits="off 0.1").scores
    assert edited[0] == pytest.approx(edited[1], rel=1e-6)
    assert edited[0] < 0.9999 * scale


def test_the_photo_itself_is_the_one_that_is_asked_about_at_its_size(loaded: LoadedModel) -> None:
    session, (subject, other) = session_and_subjects(loaded, ["lion", "shapes"], edits="")
    own = Prompts(("@",))
    scale = 9.974182 if loaded.text else 1
    for one in (subject, other, replace(subject, size=8), replace(subject, mode="crop")):
        logits = session.trace_of(replace(one, prompts=own)).logits
        assert logits is not None
        assert logits.item() == pytest.approx(scale, rel=1e-5)


def test_another_visitors_photo_is_no_target_and_one_that_is_gone_leaves_nothing(loaded: LoadedModel) -> None:
    session = Session(device="cpu")
    session.add_model(loaded)
    mine = session.add_upload(sample("lion"), owner="ada")
    _, (subject,) = session_and_subjects(loaded, ["shapes"], edits="")
    asked = replace(subject, model=loaded.name, prompts=Prompts((f"@{mine}",)), owner="ada")
    assert session.trace_of(asked).logits is not None
    assert session.run(asked.request("classes")).names == ("another photo",)
    with pytest.raises(ImageError):
        session.trace_of(replace(asked, owner="bob"))
    with pytest.raises(ImageError):
        session.run(replace(asked, owner="bob").request("classes"))
    digest = session.digest(mine, owner="ada")
    session.uploads.forget("ada")
    kept: list[object] = []
    session.cache.evict(lambda key: bool(kept.append(key)))
    assert kept
    assert not [key for key in kept if is_about(key, digest)]
    with pytest.raises(ImageError):
        session.run(asked.request("classes"))


def test_nothing_is_kept_of_a_photo_that_goes_while_it_is_compared_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_file(tmp_path / "both.safetensors")
    session = Session(model=str(tmp_path / "both.safetensors"), device="cpu")
    mine = session.add_upload(sample("lion"), owner="ada")
    digest = session.digest(mine, owner="ada")
    subject = Subject(session.default_model, "shapes", owner="ada", prompts=Prompts((f"@{mine}",)))
    compute = Engine._compute

    def gone(engine: Engine, request: Request, *how: Any) -> Any:
        value = compute(engine, request, *how)
        if request.question == "rollout":
            session.uploads.forget("ada")
        return value

    monkeypatch.setattr(Engine, "_compute", gone)
    session.run(subject.request("rollout", query="class"))
    kept: list[object] = []
    session.cache.evict(lambda key: bool(kept.append(key)))
    assert kept
    assert not [key for key in kept if is_about(key, digest)]


def test_a_lent_gpu_is_not_asked_for_what_another_picture_is_needed_for(tmp_path: Path) -> None:
    own_file(tmp_path / "both.safetensors")
    lent: list[str] = []

    class Lender:
        def is_worth_it(self, *_: object) -> bool:
            return True

        def compute(self, request: Request, *_: object, **__: object) -> object:
            lent.append(request.question)
            raise GpuRefusedError

    session = Session(model=str(tmp_path / "both.safetensors"), device="cpu", lender=Lender())  # type: ignore[arg-type]
    subject = Subject(session.default_model, "shapes", prompts=Prompts(("@lion",)))
    session.run(subject.request("relevance", target=0))
    assert set(lent) <= {"trace"}  # of the photos themselves
    session.run(replace(subject, prompts=Prompts(("red",))).request("relevance", target=0))
    assert "relevance" in lent


@pytest.mark.parametrize("text", ["@lion 3", "@lion 3,4,5", "@lion x,y", "@@", "@lion  a", "@a b"])
def test_what_names_no_picture_is_refused(text: str) -> None:
    with pytest.raises(ParameterError, match="as in '@lion 3,4'"):
        Prompts((text,))


def test_where_no_picture_is_at_hand_it_is_said(loaded: LoadedModel) -> None:
    with pytest.raises(ParameterError, match="not at hand here"):
        loaded.with_prompts("@lion")
    with pytest.raises(ParameterError, match=r"rows are 0-"):
        vv.run(loaded, "lion", "classes", sentences="@lion 99,0")
    with pytest.raises(ImageError, match=r"There is no picture .nosuchphoto. here"):
        vv.run(loaded, "lion", "classes", sentences="@nosuchphoto")
    with pytest.raises(CheckpointError, match="'mini' has no text tower"):
        vv.run("mini", "lion", "classes", sentences="@lion")
    if loaded.text is None:
        with pytest.raises(CheckpointError, match="No text tower here"):
            vv.run(loaded, "lion", "classes", sentences="@lion | a dog")
