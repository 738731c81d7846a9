"""The one path: equal requests compute once, nobody sees another's image, evicted traces come back, memory stays bounded."""

from __future__ import annotations

import gc
import itertools
import sys
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from tests.ui.desk import odd_session
from tests.waiting import PATIENCE, until
from vit_viz.answer import Provenance
from vit_viz.checkpoints import LoadedModel, load
from vit_viz.errors import BusyError, Cancelled, ImageError, ParameterError
from vit_viz.images import Preprocess
from vit_viz.model import VisionTransformer
from vit_viz.results import PatchMap
from vit_viz.session.models import MOST_LOADS
from vit_viz.session.request import Request, Subject
from vit_viz.session.session import Session
from vit_viz.turns import GONE


class Counted:
    """A session on a tiny model whose forwards are counted."""

    def __init__(self, *, cache_bytes: int | None = None, device: str = "cpu") -> None:
        odd = odd_session().model()
        assert isinstance(odd, LoadedModel)
        self.session = Session(model="tiny", device=device, cache_bytes=cache_bytes)
        self.forwards = 0
        self.at_once = 0
        self.most_at_once = 0
        self.in_forward, self.may_go = threading.Event(), threading.Event()
        self.may_go.set()
        self.inside: Callable[[], object] = lambda: None  # what a forward does before it computes
        lock = threading.Lock()

        def before(*_: object) -> None:
            with lock:
                self.forwards += 1
                self.at_once += 1
                self.most_at_once = max(self.most_at_once, self.at_once)
            self.in_forward.set()
            self.may_go.wait(60)
            self.inside()

        def after(*_: object) -> None:
            with lock:
                self.at_once -= 1

        for name in ("tiny", "other"):
            model = VisionTransformer(odd.config).eval()
            model.register_forward_pre_hook(before)
            model.register_forward_hook(after)
            provenance = Provenance(model=name, weights=name)
            self.session.add_model(replace(odd, model=model, name=name, provenance=provenance))


def picture(seed: int) -> Image.Image:
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, (40, 60, 3), dtype=np.uint8))


def test_a_trace_is_computed_once_for_all_views_and_queries(counted: Counted) -> None:
    image = counted.session.add_upload(picture(0))
    for query in ("class", (1, 2)):
        for analysis in ("look", "rollout"):
            options = {"layer": 1} if analysis == "look" else {}
            counted.session.run(Request.of("tiny", image, analysis, query=query, **options))
    assert counted.forwards == 1


def test_uploads_are_decoded_by_what_the_session_was_given(counted: Counted) -> None:
    seen: list[object] = []

    def decode(source: object) -> Image.Image:
        seen.append(source)
        return picture(3)

    counted.session.decode = decode
    image = counted.session.add_upload(b"a file", owner="ada")
    assert seen == [b"a file"]
    assert counted.session.image(image, owner="ada") == picture(3)


def test_two_sessions_at_once_get_what_each_would_get_alone(counted: Counted) -> None:
    owners = [f"owner {i}" for i in range(6)]
    images = {o: counted.session.add_upload(picture(i), owner=o) for i, o in enumerate(owners)}

    def ask(owner: str) -> np.ndarray:
        request = Request.of("tiny", images[owner], "look", owner=owner, layer=2, query=(1, 1))
        result = counted.session.run(request)
        assert isinstance(result, PatchMap)
        return result.values

    with ThreadPoolExecutor(6) as pool:
        together = list(pool.map(ask, owners))
    for i, values in enumerate(together):
        alone = Counted().session
        image = alone.add_upload(picture(i))
        expected = alone.run(Request.of("tiny", image, "look", layer=2, query=(1, 1)))
        assert isinstance(expected, PatchMap)
        np.testing.assert_allclose(values, expected.values, atol=1e-6)


def test_an_evicted_trace_is_computed_again_and_is_the_same(counted: Counted) -> None:
    image = counted.session.add_upload(picture(0))
    before = counted.session.trace("tiny", image).attention(1).clone()
    counted.session.cache.clear()
    after = counted.session.trace("tiny", image).attention(1)
    assert counted.forwards == 2
    torch.testing.assert_close(after, before)


def test_traces_and_results_stay_within_the_budget() -> None:
    first = Counted()
    one = first.session.trace("tiny", first.session.add_upload(picture(0))).nbytes
    bounded = Counted(cache_bytes=3 * one)
    for i in range(12):
        image = bounded.session.add_upload(picture(i))
        bounded.session.run(Request.of("tiny", image, "rollout", query="class"))
        assert bounded.session.cache.stats.used_bytes <= 3 * one
    assert bounded.session.cache.stats.evictions > 0


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
            counted.session.run(Request.of("tiny", image, "look", layer=99))
    assert counted.session.run(Request.of("tiny", image, "look", layer=0)) is not None


def test_top_classes_are_sorted_probabilities_with_names(counted: Counted) -> None:
    image = counted.session.add_upload(picture(0))
    ranking = counted.session.top_classes_of(Subject("tiny", image))
    assert ranking is not None
    assert len(ranking.names) == 5
    assert list(ranking.scores) == sorted(ranking.scores, reverse=True)
    logits = counted.session.trace("tiny", image).logits
    assert logits is not None
    best = int(logits.argmax())
    assert ranking.names[0] == f"animal {best}"
    np.testing.assert_allclose(ranking.scores[0], torch.softmax(logits, -1)[best].item(), rtol=1e-5)


def test_classes_without_names_are_numbered(counted: Counted) -> None:
    session = counted.session
    loaded = session.model("tiny")
    session.add_model(replace(loaded, labels=None, name="nameless"))
    image = session.add_upload(picture(3))
    named, numbered = (
        session.top_classes_of(Subject("tiny", image)),
        session.top_classes_of(Subject("nameless", image)),
    )
    assert named is not None
    assert numbered is not None
    assert numbered.names == tuple(f"class {index}" for index in named.indices)


def test_the_own_model_is_kept_however_large(monkeypatch: pytest.MonkeyPatch) -> None:
    session, loads = Session(model="mini", device="cpu"), []

    def counting(name: str, **options: Any) -> LoadedModel:
        loads.append(name)
        return load(name, **options)

    monkeypatch.setattr("vit_viz.session.models.load", counting)
    monkeypatch.setattr("vit_viz.session.models.model_bytes", lambda _loaded: 2**40)
    session.model()
    session.model("mini")
    assert loads == ["mini"]


# --- crowds


def test_a_crowd_that_asks_equal_and_different_things_computes_each_once(counted: Counted) -> None:
    owners = [f"owner {i}" for i in range(4)]
    images = {owner: counted.session.add_upload(picture(i), owner=owner) for i, owner in enumerate(owners)}
    session, start = counted.session, threading.Barrier(16)

    def others_are_at_the_door() -> None:
        """Hold the first forward until the three other pictures ask for theirs, so that they could walk in."""
        if counted.forwards == 1:
            until(lambda: session.turns.waiting(("cpu", 0)) == 3 or counted.most_at_once > 1)

    counted.inside = others_are_at_the_door

    def ask(owner: str) -> PatchMap:
        start.wait()
        found = [
            session.run(Request.of(model, images[owner], "rollout", owner=owner, query="class"))
            for model in ("tiny", "other")
        ]
        assert isinstance(found[0], PatchMap)
        return found[0]

    with ThreadPoolExecutor(16) as pool:
        maps = list(pool.map(ask, 4 * owners))
    assert counted.forwards == 8  # four pictures, two models
    assert counted.most_at_once == 1
    for i, found in enumerate(maps):
        assert found is maps[i % 4]
        owner = owners[i % 4]
        assert found.provenance.image == session.digest(images[owner], owner=owner)


def test_a_full_queue_says_that_the_machine_is_busy_and_nobody_is_stuck(counted: Counted) -> None:
    session, outcomes = counted.session, list[object]()
    session.turns.max_waiting = 2
    images = [session.add_upload(picture(i)) for i in range(8)]
    counted.may_go.clear()

    def ask(image: str) -> None:
        try:
            outcomes.append(session.trace("tiny", image))
        except BusyError as error:
            outcomes.append(str(error))

    threads = [threading.Thread(target=ask, args=(image,)) for image in images]
    for thread in threads:
        thread.start()
    until(lambda: len(outcomes) == 5)
    counted.may_go.set()
    for thread in threads:
        thread.join(PATIENCE)
    assert len([outcome for outcome in outcomes if isinstance(outcome, str)]) == 5
    assert len([session.trace("tiny", image) for image in images]) == 8  # who was refused is served later


def test_a_visitor_who_leaves_does_not_wait_any_more_and_others_do(counted: Counted) -> None:
    session, outcomes = counted.session, dict[str, object]()
    images = {o: session.add_upload(picture(i), owner=o) for i, o in enumerate(["ada", "bob", "eve"])}
    counted.may_go.clear()

    gone = {owner: threading.Event() for owner in images}

    def ask(owner: str) -> None:
        GONE.set(gone[owner].is_set)
        try:
            outcomes[owner] = session.trace("tiny", images[owner], owner=owner)
        except Cancelled as error:
            outcomes[owner] = error

    threads = {owner: threading.Thread(target=ask, args=(owner,)) for owner in images}
    threads["ada"].start()
    assert counted.in_forward.wait(PATIENCE)
    for place, owner in enumerate(["bob", "eve"]):
        threads[owner].start()
        until(lambda place=place: session.turns.waiting(("cpu", 0)) == place + 1)  # type: ignore[misc]
    gone["bob"].set()
    threads["bob"].join(PATIENCE)
    assert isinstance(outcomes["bob"], Cancelled)
    counted.may_go.set()
    for thread in threads.values():
        thread.join(PATIENCE)
    assert not isinstance(outcomes["eve"], Cancelled)
    assert counted.forwards == 2


def test_a_forward_that_fails_gives_the_device_back(
    counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = counted.session.add_upload(picture(0))
    with monkeypatch.context() as patch:
        patch.setattr("vit_viz.session.engine.trace", lambda *_args, **_options: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            counted.session.trace("tiny", image)
    assert ThreadPoolExecutor(1).submit(counted.session.trace, "tiny", image).result(PATIENCE).num_layers == 3


# --- limits


def test_an_analysis_that_takes_too_long_ends_in_one_sentence(
    counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vit_viz.session.session.LONGEST_SECONDS", 1e-3)
    request = Request.of("tiny", counted.session.add_upload(picture(0)), "occlusion", target=1)
    with pytest.raises(Cancelled, match="took longer than"):
        counted.session.run(request)
    assert not counted.session.keeps(request)


@pytest.mark.parametrize("mode", ["crop", "stretch"])
def test_a_checkpoint_cannot_ask_for_an_input_without_measure(counted: Counted, mode: Any) -> None:
    session = counted.session
    wide = Preprocess(input_size=(2048, 2048), patch_size=(8, 8))
    session.add_model(replace(session.model("tiny"), preprocess=wide, name="wide"))
    with pytest.raises(ParameterError, match="65536 patches, more than the 4096"):
        session.trace("wide", session.add_upload(picture(0)), mode=mode)
    assert counted.forwards == 0


# --- memory


def test_an_evicted_model_is_gone_though_traces_and_subjects_of_it_are_kept(counted: Counted) -> None:
    session, loaded = counted.session, counted.session.model("tiny")
    image = session.add_upload(picture(0))
    session.trace("tiny", image)
    session.prepared(Subject("tiny", image))
    session.run(Request.of("tiny", image, "explain all", target=1, mirror=False))
    model = weakref.ref(loaded.model)
    del loaded
    session.engine.models.remove("tiny")
    gc.collect()
    assert model() is None
    assert session.cache.stats.entries == 3


def test_what_is_kept_of_an_upload_goes_with_it(counted: Counted) -> None:
    session = counted.session
    image = session.add_upload(picture(0), owner="ada")
    session.prepared(Subject("tiny", image, owner="ada"))
    session.run(Request.of("tiny", image, "rollout", owner="ada", query="class"))
    session.trace("tiny", "lion")
    session.uploads.forget("ada")
    assert session.cache.stats.entries == 1  # the sample's


def test_nobody_learns_by_the_time_of_an_answer_whether_somebody_else_has_brought_a_picture(
    counted: Counted,
) -> None:
    """Each computes of their own, the same picture or not; of a sample one computes for all."""
    session = counted.session
    images = {owner: session.add_upload(picture(0), owner=owner) for owner in ("ada", "bob")}
    for owner, image in images.items():
        request = Request.of("tiny", image, "rollout", owner=owner, query="class")
        assert not session.keeps(request)
        session.run(request)
        assert session.keeps(request)
        assert session.keeps(Request.of("tiny", image, "trace", owner=owner))
    assert counted.forwards == 2
    session.uploads.forget("ada")
    session.trace("tiny", images["bob"], owner="bob")
    assert counted.forwards == 2  # what is bob's stays
    for owner in ("ada", "bob"):
        session.trace("tiny", "lion", owner=owner)
    assert counted.forwards == 3


def test_what_is_drawn_of_a_picture_tells_nobody_else_of_it_either(counted: Counted) -> None:
    session, made = counted.session, list[str]()
    for owner in ("ada", "bob", "ada"):
        image = next(iter(session.uploads.of(owner)), "") or session.add_upload(picture(0), owner=owner)
        digest = session.digest(image, owner=owner)
        key = ("drawn", digest)
        session.kept(key, lambda owner=owner: made.append(owner) or b"x", image, digest, size_of=len)  # type: ignore[func-returns-value,misc]
    assert made == ["ada", "bob"]


def test_an_id_that_is_nobody_s_and_one_that_is_another_s_answer_the_same_in_the_same_work(
    counted: Counted,
) -> None:
    session = counted.session
    theirs = session.add_upload(picture(0), owner="ada")
    calls: dict[str, list[str]] = {}
    for image in (theirs, "u" + "x" * 24):
        seen = calls[image] = []

        def follow(frame: Any, event: str, _arg: object, seen: list[str] = seen) -> None:
            if event == "call":
                seen.append(frame.f_code.co_qualname)

        sys.setprofile(follow)
        try:
            with pytest.raises(ImageError) as refused:
                session.image(image, owner="bob")
        finally:
            sys.setprofile(None)
        seen.append(str(refused.value))
    assert calls[theirs] == calls["u" + "x" * 24]


def test_memory_that_waits_for_the_next_trace_is_part_of_the_budget() -> None:
    first = Counted()
    one = first.session.trace("tiny", first.session.add_upload(picture(0))).nbytes
    bounded = Counted(cache_bytes=16 * one)
    for i in range(24):
        bounded.session.trace("tiny", bounded.session.add_upload(picture(i)))
    session = bounded.session
    assert session.engine.pool.idle_bytes > 0
    assert session.cache.max_bytes + session.engine.pool.max_idle_bytes == 16 * one
    assert session.engine.pool.idle_bytes <= 2 * one


def test_regions_in_keys_are_counted(counted: Counted) -> None:
    image = counted.session.add_upload(picture(0))
    counted.session.trace("tiny", image)
    used = []
    for patches in ([(0, 0)], [(row, col) for row in range(4) for col in range(6)]):
        before = counted.session.cache.stats.used_bytes
        counted.session.run(Request.of("tiny", image, "look", layer=0, query=patches))
        used.append(counted.session.cache.stats.used_bytes - before)
    assert used[1] > used[0] + 23 * 100  # a pair of whole numbers takes more than that


# --- loading


class Loading:
    """Loads of models that wait until they may go on, after some progress."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self.go = list[str](), threading.Event()
        monkeypatch.setattr("vit_viz.session.models.load", self._load)

    def _load(self, name: str, *, progress: Callable[[int, int], None], **_options: Any) -> LoadedModel:
        self.begun.append(name)
        progress(5, 10)
        assert self.go.wait(PATIENCE)
        progress(10, 10)
        return load("mini", device="cpu")


def test_everyone_who_waits_for_a_model_is_told_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    session, loading = Session(model="mini", device="cpu"), Loading(monkeypatch)
    told: dict[int, list[int]] = {}

    def ask(place: int) -> None:
        session.model("another", progress=lambda done, _total: told.setdefault(place, []).append(done))

    threads = [threading.Thread(target=ask, args=(place,)) for place in range(2)]
    for thread in threads:
        thread.start()
    until(lambda: len(told) == 2)
    loading.go.set()
    for thread in threads:
        thread.join(PATIENCE)
    assert loading.begun == ["another"]
    assert told[0][0] == told[1][0] == 5
    assert session.engine.models._fetched == {}


def test_loading_does_not_hold_the_device(monkeypatch: pytest.MonkeyPatch, counted: Counted) -> None:
    session, loading = counted.session, Loading(monkeypatch)
    thread = threading.Thread(target=session.model, args=("another",))
    thread.start()
    until(lambda: loading.begun)
    session.trace("tiny", session.add_upload(picture(0)))
    loading.go.set()
    thread.join(PATIENCE)
    assert counted.forwards == 1


@pytest.mark.parametrize("ask", ["model", "run"])
def test_a_load_that_nobody_wants_any_more_ends(monkeypatch: pytest.MonkeyPatch, ask: str) -> None:
    session, fetched, wanted = Session(model="mini", device="cpu"), list[int](), threading.Event()
    wanted.set()

    def endless(name: str, *, progress: Callable[[int, int], None], **options: Any) -> LoadedModel:
        for done in range(10_000):
            fetched.append(done)
            progress(done, 10_000)
            if done == 3:
                wanted.clear()
        raise AssertionError("it went on")

    monkeypatch.setattr("vit_viz.session.models.load", endless)
    asked = "another" if ask == "model" else Subject("another", "lion").request("trace")
    with pytest.raises(Cancelled):
        getattr(session, ask)(asked, cancelled=lambda: not wanted.is_set())
    assert len(fetched) == 5


def test_a_load_goes_on_for_those_who_still_wait_and_ends_with_the_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session, fetched = Session(model="mini", device="cpu"), list[int]()
    left, ended = [threading.Event(), threading.Event()], list[int]()

    def endless(name: str, *, progress: Callable[[int, int], None], **options: Any) -> LoadedModel:
        for done in itertools.count():
            fetched.append(done)
            progress(done, 0)
        raise AssertionError("it went on")

    def wait(who: int) -> None:
        with pytest.raises(Cancelled):
            session.model("another", cancelled=left[who].is_set)
        ended.append(who)

    monkeypatch.setattr("vit_viz.session.models.load", endless)
    threads = [threading.Thread(target=wait, args=(who,), daemon=True) for who in range(2)]
    threads[0].start()
    until(lambda: fetched)
    threads[1].start()
    until(lambda: session.engine.models._waiting["another"] == 2)
    left[0].set()  # whose load it is
    before = len(fetched)
    until(lambda: len(fetched) > before + 5)
    left[1].set()
    for thread in threads:
        thread.join(PATIENCE)
    assert sorted(ended) == [0, 1]
    assert not session.engine.models._waiting


def test_no_more_models_are_loaded_at_once_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    session, loading = Session(model="mini", device="cpu"), Loading(monkeypatch)
    names = [f"model {i}" for i in range(MOST_LOADS)]
    threads = [threading.Thread(target=session.model, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    until(lambda: len(loading.begun) == MOST_LOADS)
    with pytest.raises(BusyError, match="try again in a minute"):
        session.model("one more")
    threads.append(threading.Thread(target=session.model, args=("mini",)))  # the owner's own always
    threads[-1].start()
    until(lambda: "mini" in loading.begun)
    loading.go.set()
    for thread in threads:
        thread.join(PATIENCE)
    session.model("one more")
