"""The one path: equal requests compute once, nobody sees another's image, evicted traces come back, memory stays bounded."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from vit_viz.checkpoints import LoadedModel, load
from vit_viz.errors import ImageError, ParameterError
from vit_viz.images import Preprocess
from vit_viz.labels import Labels
from vit_viz.model import VisionTransformer, ViTConfig
from vit_viz.results import PatchMap, Provenance
from vit_viz.session import Request, Session


class Counted:
    """A session on a tiny model whose forwards are counted."""

    def __init__(self, *, cache_bytes: int | None = None) -> None:
        torch.manual_seed(1)
        config = ViTConfig(
            img_size=(32, 48),
            patch_size=(8, 8),
            embed_dim=40,
            depth=3,
            num_heads=5,
            num_classes=7,
            reg_tokens=1,
        )
        self.session = Session(model="tiny", device="cpu", cache_bytes=cache_bytes)
        self.forwards = 0
        self.at_once = 0
        self.most_at_once = 0
        lock = threading.Lock()

        def before(*_: object) -> None:
            with lock:
                self.forwards += 1
                self.at_once += 1
                self.most_at_once = max(self.most_at_once, self.at_once)
            time.sleep(0.02)  # long enough for another thread to walk in

        def after(*_: object) -> None:
            with lock:
                self.at_once -= 1

        for name in ("tiny", "other"):
            model = VisionTransformer(config).eval()
            model.register_forward_pre_hook(before)
            model.register_forward_hook(after)
            self.session.add_model(
                LoadedModel(
                    model=model,
                    config=config,
                    preprocess=Preprocess(input_size=(32, 48), patch_size=(8, 8)),
                    labels=Labels(tuple(f"class {i}" for i in range(7))),
                    provenance=Provenance(model=name, weights=name),
                    name=name,
                    family="ours",
                    origin="a test",
                    device=torch.device("cpu"),
                )
            )


@pytest.fixture
def counted() -> Counted:
    return Counted()


def picture(seed: int) -> Image.Image:
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, (40, 60, 3), dtype=np.uint8))


def test_a_trace_is_computed_once_for_all_views_and_queries(counted: Counted) -> None:
    image = counted.session.add_upload(picture(0))
    for query in ("class", (1, 2)):
        for analysis in ("attention", "rollout"):
            options = {"layer": 1} if analysis == "attention" else {}
            counted.session.run(Request.of("tiny", image, analysis, query=query, **options))
    assert counted.forwards == 1


def test_equal_requests_at_the_same_moment_compute_once(counted: Counted) -> None:
    image = counted.session.add_upload(picture(0))
    request = Request.of("tiny", image, "rollout", query="class")
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: counted.session.run(request), range(16)))
    assert counted.forwards == 1
    assert all(result is results[0] for result in results)


def test_the_same_picture_of_two_owners_is_traced_once(counted: Counted) -> None:
    for owner in ("ada", "bob"):
        counted.session.trace("tiny", counted.session.add_upload(picture(0), owner=owner), owner=owner)
    assert counted.forwards == 1


def test_two_sessions_at_once_get_what_each_would_get_alone(counted: Counted) -> None:
    owners = [f"owner {i}" for i in range(6)]
    images = {o: counted.session.add_upload(picture(i), owner=o) for i, o in enumerate(owners)}

    def ask(owner: str) -> np.ndarray:
        request = Request.of("tiny", images[owner], "attention", owner=owner, layer=2, query=(1, 1))
        result = counted.session.run(request)
        assert isinstance(result, PatchMap)
        return result.values

    with ThreadPoolExecutor(6) as pool:
        together = list(pool.map(ask, owners))
    for i, values in enumerate(together):
        alone = Counted().session
        image = alone.add_upload(picture(i))
        expected = alone.run(Request.of("tiny", image, "attention", layer=2, query=(1, 1)))
        assert isinstance(expected, PatchMap)
        np.testing.assert_allclose(values, expected.values, atol=1e-6)


def test_one_forward_runs_at_a_time_whatever_the_model(counted: Counted) -> None:
    image = counted.session.add_upload(picture(0))
    tasks = [(model, mode) for model in ("tiny", "other") for mode in ("fit", "crop", "stretch")]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda task: counted.session.trace(task[0], image, mode=task[1]), tasks))
    assert counted.forwards == 6
    assert counted.most_at_once == 1


def test_another_owner_cannot_ask_about_an_upload(counted: Counted) -> None:
    image = counted.session.add_upload(picture(0), owner="ada")
    with pytest.raises(ImageError):
        counted.session.run(Request.of("tiny", image, "rollout", owner="bob", query="class"))


def test_an_evicted_trace_is_computed_again_and_is_the_same(counted: Counted) -> None:
    image = counted.session.add_upload(picture(0))
    before = counted.session.trace("tiny", image).attention(1).clone()
    counted.session.cache.clear()
    after = counted.session.trace("tiny", image).attention(1)
    assert counted.forwards == 2
    torch.testing.assert_close(after, before)


def test_evicting_traces_leaves_uploads_alone(counted: Counted) -> None:
    image = counted.session.add_upload(picture(0))
    counted.session.cache.clear()
    assert counted.session.image(image).size == (60, 40)


def test_traces_and_results_stay_within_the_budget() -> None:
    first = Counted()
    one = first.session.trace("tiny", first.session.add_upload(picture(0))).nbytes
    bounded = Counted(cache_bytes=3 * one)
    for i in range(12):
        image = bounded.session.add_upload(picture(i))
        bounded.session.run(Request.of("tiny", image, "rollout", query="class"))
        assert bounded.session.cache.stats.used_bytes <= 3 * one
    assert bounded.session.cache.stats.evictions > 0


def test_another_mode_is_another_trace(counted: Counted) -> None:
    image = counted.session.add_upload(picture(0))
    counted.session.trace("tiny", image, mode="fit")
    counted.session.trace("tiny", image, mode="stretch")
    assert counted.forwards == 2


def test_an_unknown_analysis_or_mode_is_refused_in_one_sentence(counted: Counted) -> None:
    image = counted.session.add_upload(picture(0))
    with pytest.raises(ParameterError, match="rollout"):
        counted.session.run(Request.of("tiny", image, "astrology"))
    with pytest.raises(ParameterError, match="stretch"):
        counted.session.trace("tiny", image, mode="sideways")  # type: ignore[arg-type]


def test_an_error_is_not_kept(counted: Counted) -> None:
    image = counted.session.add_upload(picture(0))
    for _ in range(2):
        with pytest.raises(ParameterError):
            counted.session.run(Request.of("tiny", image, "attention", layer=99))
    assert counted.session.run(Request.of("tiny", image, "attention", layer=0)) is not None


def test_top_classes_are_sorted_probabilities_with_names(counted: Counted) -> None:
    image = counted.session.add_upload(picture(0))
    ranking = counted.session.top_classes("tiny", image)
    assert ranking is not None
    assert len(ranking.names) == 5
    assert list(ranking.scores) == sorted(ranking.scores, reverse=True)
    logits = counted.session.trace("tiny", image).logits
    assert logits is not None
    best = int(logits.argmax())
    assert ranking.names[0] == f"class {best}"
    np.testing.assert_allclose(ranking.scores[0], torch.softmax(logits, -1)[best].item(), rtol=1e-5)


def test_classes_without_names_are_numbered(counted: Counted) -> None:
    session = counted.session
    loaded = session.model("tiny")
    session.add_model(replace(loaded, labels=None, name="nameless"))
    image = session.add_upload(picture(3))
    named, numbered = session.top_classes("tiny", image), session.top_classes("nameless", image)
    assert named is not None
    assert numbered is not None
    assert numbered.names == tuple(f"class {index}" for index in named.indices)


@pytest.mark.parametrize("text", ["2GB", "-1", "0", ""])
def test_a_cache_size_that_is_no_number_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("VIT_VIZ_CACHE_BYTES", text)
    with pytest.raises(ParameterError, match="VIT_VIZ_CACHE_BYTES is a number of bytes"):
        Session()


def test_the_own_model_is_kept_however_large(monkeypatch: pytest.MonkeyPatch) -> None:
    session, loads = Session(model="mini", device="cpu"), []

    def counting(name: str, **options: Any) -> LoadedModel:
        loads.append(name)
        return load(name, **options)

    monkeypatch.setattr("vit_viz.session.load", counting)
    monkeypatch.setattr("vit_viz.session._model_bytes", lambda _loaded: 2**40)
    session.model()
    session.model("mini")
    assert loads == ["mini"]
