"""What a session keeps: one result for each request that differs in anything, and nothing of a picture that is gone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from tests.session.test_session import Counted, picture
from tests.ui.desk import odd_session
from tests.waiting import PATIENCE
from vit_viz.results import PatchMap
from vit_viz.session import engine
from vit_viz.session.models import MODEL_BYTES
from vit_viz.session.request import Request, Subject, is_about
from vit_viz.session.session import Session


def with_a_full_gpu(monkeypatch: pytest.MonkeyPatch) -> Session:
    """A session as if on a GPU that has no room for anything, so that its engine on the CPU computes."""
    real, session = engine.trace, Counted(device="cuda").session
    full = session.model("tiny").model

    def trace(loaded: Any, *args: Any, **options: Any) -> Any:
        if loaded.model is full:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return real(loaded, *args, **options)

    monkeypatch.setattr(engine, "trace", trace)
    session.notice = lambda _sentence: None
    return session


def test_a_trace_keeps_the_norms_of_its_values_and_not_the_values(counted: Counted) -> None:
    session = counted.session
    kept = session.trace("tiny", session.add_upload(picture(0)))
    assert kept.v is None
    assert kept.value_norms(2).shape == (kept.num_heads, kept.num_tokens)


def test_a_single_output_is_explained_as_a_score_of_a_model_without_classes() -> None:
    session = odd_session(embed_dim=1, num_heads=1, num_classes=0)
    image = session.add_upload(picture(0))
    assert not session.model("odd").has_classes
    assert session.prepared(Subject("odd", image)).has_classes


# --- keys: two requests that differ in one field have two results


def test_equal_weights_under_two_names_are_two_traces_and_two_subjects(counted: Counted) -> None:
    session, image = counted.session, counted.session.add_upload(picture(0))
    loaded = session.model("tiny")
    provenance = replace(loaded.provenance, model="namesake")
    session.add_model(replace(loaded, name="namesake", provenance=provenance))
    for model in ("tiny", "namesake"):
        assert session.trace(model, image).provenance.model == model
        assert session.prepared(Subject(model, image)).provenance.model == model
    assert counted.forwards == 2


def test_another_mode_is_another_subject(counted: Counted) -> None:
    session, image = counted.session, counted.session.add_upload(picture(0).crop((0, 0, 50, 37)))
    found = {mode: session.prepared(Subject("tiny", image, mode=mode)).pixels for mode in ("crop", "stretch")}  # type: ignore[arg-type]
    assert not torch.equal(found["crop"], found["stretch"])


def test_other_weights_under_the_same_name_are_another_trace(counted: Counted) -> None:
    session, image = counted.session, counted.session.add_upload(picture(0))
    first = session.trace("tiny", image)
    rollout = Request.of("tiny", image, "rollout", query="class")
    before = session.run(rollout)
    other = session.model("other")
    session.add_model(replace(other, name="tiny"))
    assert not torch.equal(session.trace("tiny", image).q, first.q)
    assert session.run(rollout) is not before


def changed(request: Request, change: dict[str, Any]) -> Request:
    """The request with another value in one field, its own or its subject's."""
    (name,) = {*change} - {"parameters"} or {"parameters"}
    if name in ("model", "image", "mode"):
        return replace(request, subject=replace(request.subject, **change))
    return replace(request, **change)


@pytest.mark.parametrize(
    "change",
    [
        {"model": "other"},
        {"image": "second"},
        {"mode": "stretch"},
        {"question": "rollout", "parameters": (("query", "class"),)},
        {"parameters": (("layer", 2), ("query", "class"))},
        {"parameters": (("layer", 1), ("query", (0, 1)))},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_request_that_differs_in_one_field_has_a_result_of_its_own(
    counted: Counted, change: dict[str, Any]
) -> None:
    session = counted.session
    first, second = (picture(seed).crop((0, 0, 50, 37)) for seed in range(2))  # not of the model's shape
    images = {"first": session.add_upload(first), "second": session.add_upload(second)}
    request = Request.of("tiny", images["first"], "look", layer=1, query="class")
    if "image" in change:
        change = {"image": images[change["image"]]}
    one, other = session.run(request), session.run(changed(request, change))
    assert isinstance(one, PatchMap)
    assert isinstance(other, PatchMap)
    assert not np.array_equal(one.values, other.values)
    assert session.run(request) is one


def test_a_key_is_about_its_picture_wherever_it_stands() -> None:
    request = Request.of("tiny", "digest", "rollout")
    assert is_about(("trace", "weights", "tiny", "digest", "fit"), "digest")
    assert is_about((request, "weights"), "digest")
    assert is_about("digest", "digest")
    assert not is_about((request.of_picture("another"), "weights"), "digest")
    assert not is_about(("trace", "weights", "tiny", "another", "fit"), "digest")


# --- a picture that is gone


def test_the_engine_on_the_cpu_forgets_a_picture_too(monkeypatch: pytest.MonkeyPatch) -> None:
    session = with_a_full_gpu(monkeypatch)
    image = session.add_upload(picture(0), owner="ada")
    session.run(Request.of("tiny", image, "explain all", owner="ada", target=1))
    cpu = session.cpu_engine
    assert cpu is not None
    assert cpu.cache.stats.entries > 0
    digest = session.digest(image, owner="ada")
    session.kept(("a thumbnail", digest), lambda: 1, image, digest, size_of=lambda _: 1)
    assert session.cache.stats.entries == 1
    session.uploads.forget("ada")
    assert cpu.cache.stats.entries == 0
    assert session.cache.stats.entries == 0


def test_the_engine_on_the_cpu_keeps_what_is_about_other_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    session = with_a_full_gpu(monkeypatch)
    images = {owner: session.add_upload(picture(i), owner=owner) for i, owner in enumerate(["ada", "bob"])}
    for owner, image in images.items():
        session.trace("tiny", image, owner=owner)
    assert session.cpu_engine is not None
    assert session.cpu_engine.cache.stats.entries == 2
    session.uploads.forget("ada")
    assert session.cpu_engine.cache.stats.entries == 1


def test_forgetting_a_picture_copies_no_model_to_the_cpu() -> None:
    session = Counted(device="cuda").session
    session.add_upload(picture(0), owner="ada")
    session.uploads.forget("ada")
    assert session.cpu_engine is not None
    assert not session.cpu_engine.models.has("tiny")


def test_what_was_being_computed_of_a_picture_when_it_went_is_not_kept(counted: Counted) -> None:
    session = counted.session
    image = session.add_upload(picture(0), owner="ada")
    counted.may_go.clear()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(session.run, Request.of("tiny", image, "rollout", owner="ada", query="class"))
        assert counted.in_forward.wait(PATIENCE)
        session.uploads.forget("ada")
        counted.may_go.set()
        assert running.result(PATIENCE).values.shape == (4, 6)
    assert session.cache.stats.entries == 0


def test_models_have_a_bound_of_their_own_which_a_small_cache_does_not_lower() -> None:
    assert Session(device="cpu", cache_bytes=10_000).engine.models._loaded.max_bytes == MODEL_BYTES
    assert Session(device="cpu", cache_bytes=3 * 2**30).engine.models._loaded.max_bytes == 3 * 2**30


def test_a_model_that_is_given_again_leaves_no_copy_of_the_one_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = with_a_full_gpu(monkeypatch)
    image = session.add_upload(picture(0), owner="ada")
    session.trace("tiny", image, owner="ada")  # on the CPU, since the device is full
    cpu = session.cpu_engine
    assert cpu is not None
    assert cpu.models.has("tiny")
    given = cpu.models.get("tiny")
    session.add_model(replace(given, name="other"))  # type: ignore[type-var]  # a dataclass, as every model is
    assert cpu.models.has("tiny")
    session.add_model(given)
    assert not cpu.models.has("tiny")
