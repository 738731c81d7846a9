"""What a session keeps of explanations: one forward and backward for all quick maps, trust, patches taken away, cancelling."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch

from tests.session.test_session import Counted, picture
from tests.waiting import PATIENCE, until
from vit_viz.analyses.explain import Explanations
from vit_viz.analyses.faithfulness import random_band
from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.prepared_image import BATCH
from vit_viz.analyses.removal import WithoutPatches, outputs_without
from vit_viz.analyses.rollout import rollout
from vit_viz.analyses.trust import Trust
from vit_viz.answer import Provenance
from vit_viz.errors import Cancelled, ParameterError
from vit_viz.results import Curve, PatchMap
from vit_viz.session.engine import _COPY, Engine
from vit_viz.session.questions import request_for
from vit_viz.session.request import Request, Subject
from vit_viz.session.session import Session
from vit_viz.turns import GONE


@pytest.fixture
def image(counted: Counted) -> str:
    return counted.session.add_upload(picture(0))


def ask(session: Session, image: str, analysis: str, **parameters: object) -> object:
    return session.run(Request.of("tiny", image, analysis, **parameters))


def test_all_quick_maps_share_one_computation(counted: Counted, image: str) -> None:
    for method in METHODS.quick:
        found = ask(counted.session, image, method, target=3)
        assert isinstance(found, PatchMap)
        if method == METHODS.quick[0]:
            counted.forwards = 0
    assert counted.forwards == 0


def test_a_look_up_with_options_is_that_of_the_library_and_runs_no_model(
    counted: Counted, image: str
) -> None:
    trace = counted.session.trace("tiny", image)
    ask(counted.session, image, "without_patches")  # the image is prepared
    counted.forwards = 0
    options = (("attention_share", 0.25), ("head_fusion", "max"), ("first", 1))
    found = ask(counted.session, image, "rollout", query=(1, 2), **dict(options))
    expected = rollout(
        trace, query=(1, 2), attention_share=0.25, head_fusion="max", layers=(1, trace.num_layers)
    )
    assert isinstance(found, PatchMap)
    np.testing.assert_array_equal(found.values, expected.values)
    assert found.caption == expected.caption
    assert counted.forwards == 0


@pytest.mark.parametrize("options", [(("size", 1),), (("discard", 2.0),), (("head_fusion", "sum"),)])
def test_an_option_that_does_not_exist_is_refused(
    counted: Counted, image: str, options: tuple[tuple[str, object], ...]
) -> None:
    with pytest.raises(ParameterError):
        ask(counted.session, image, "rollout", **dict(options))


@pytest.mark.parametrize(
    ("method", "options"), [("rollout", {"head_fusion": "max"}), ("rollout", {}), ("relevance", {})]
)
def test_trust_puts_the_very_map_of_a_card_to_the_test(
    counted: Counted, image: str, monkeypatch: pytest.MonkeyPatch, method: str, options: dict[str, Any]
) -> None:
    """Asked as the page asks for the card, so that it is computed once."""
    session, asked = counted.session, list[Request]()
    run = Engine.run
    monkeypatch.setattr(
        Engine, "run", lambda self, request, **more: asked.append(request) or run(self, request, **more)
    )
    ask(session, image, "trust", method=method, target=3, options=tuple(options.items()))
    subject = Subject("tiny", image)
    takes_target = {"target": 3} if METHODS[method].takes_target else {}
    assert request_for(session, subject, method, **takes_target, **options) in asked


def test_random_orders_are_run_once_for_all_maps_and_classes(counted: Counted, image: str) -> None:
    session = counted.session
    one = ask(session, image, "trust", method="relevance", target=3)
    counted.forwards = 0
    own_steps = 2 * -(
        -19 // BATCH
    )  # batches of a map's order, taking away and putting back; the ends are known
    for method, target, resolved in (("rollout", 3, 2), ("rollout", 5, 2), ("relevance", 5, 2)):
        counted.forwards = 0
        found = ask(session, image, "trust", method=method, target=target)
        assert counted.forwards <= own_steps + resolved + 4, (method, target)  # 4: quick maps, also mirrored
        expected = random_band(session.prepared(Subject("tiny", image)), target=target)
        assert isinstance(found, Trust)
        np.testing.assert_array_equal(found.faithfulness.band.insertion, expected.insertion)
    assert isinstance(one, Trust)
    assert not np.array_equal(one.faithfulness.band.deletion, expected.deletion)


def test_a_map_is_judged_by_deletion_before_insertion_is_run(counted: Counted, image: str) -> None:
    told: list[tuple[int, Any]] = []
    request = Request.of("tiny", image, "trust", method="relevance", target=3)
    found = counted.session.run(request, preview=lambda half: told.append((counted.forwards, half)))
    assert isinstance(found, Trust)
    [(forwards, half)] = told
    assert forwards < 0.6 * counted.forwards
    scores = found.faithfulness
    known = {name: half["faithfulness"][name] for name in ("deletion_auc",)} | {"random": half["random"]}
    assert known == {"deletion_auc": scores.deletion_auc, "random": found.random}
    np.testing.assert_array_equal(half["faithfulness"]["deletion"].y, scores.deletion.y)


def test_patches_are_taken_away_as_by_hand_and_classes_that_are_asked_about_come_first(
    counted: Counted, image: str
) -> None:
    session, gone = counted.session, "0,1;2,3"
    expected = outputs_without(session.prepared(Subject("tiny", image)), [(0, 1), (2, 3)]).softmax(-1)
    logits = session.trace("tiny", image).logits
    assert logits is not None
    before = torch.softmax(logits, -1)
    usual = ask(session, image, "without_patches", gone=gone)
    assert isinstance(usual, WithoutPatches)
    assert usual.top.indices[0] == int(before.argmax())
    assert usual.share == pytest.approx(2 / 24)
    worst, best = int(expected.argmin()), int(expected.argmax())
    found = ask(session, image, "without_patches", gone=gone, target=(worst, best))
    assert isinstance(found, WithoutPatches)
    assert found.top.indices[:2] == (worst, best)
    assert len(set(found.top.indices)) == len(found.top.indices)
    for one in (usual, found):
        np.testing.assert_allclose(one.top.scores, expected[list(one.top.indices)].numpy(), rtol=1e-4)
        np.testing.assert_allclose(one.before, before[list(one.top.indices)].numpy(), rtol=1e-4)
    with pytest.raises(ParameterError, match="0-6"):
        ask(session, image, "without_patches", gone=gone, target=7)
    with pytest.raises(ParameterError, match="rows are 0-3"):
        ask(session, image, "without_patches", gone="4,0")


def test_taking_nothing_away_changes_nothing(counted: Counted, image: str) -> None:
    found = ask(counted.session, image, "without_patches")
    assert isinstance(found, WithoutPatches)
    np.testing.assert_allclose(found.top.scores, found.before, rtol=1e-4)


def test_a_slow_method_tells_how_far_it_is_and_can_be_cancelled(counted: Counted, image: str) -> None:
    told: list[float] = []
    request = Request.of("tiny", image, "occlusion", target=1)
    with pytest.raises(Cancelled):
        counted.session.run(request, progress=told.append, cancelled=lambda: bool(told))
    assert 0 < told[-1] < 1
    assert not counted.session.keeps(request)
    assert isinstance(counted.session.run(request), PatchMap)
    assert counted.session.keeps(request)


def test_what_a_question_asks_of_another_tells_how_far_it_is_and_ends_with_it(
    counted: Counted, image: str
) -> None:
    told: list[float] = []
    with pytest.raises(Cancelled):
        counted.session.run(
            Request.of("tiny", image, "trust", method="rollout"),
            progress=told.append,
            cancelled=lambda: bool(told),
        )
    assert 0 < told[-1] < 0.45  # where the random orders end


@pytest.mark.parametrize(
    "analysis", ["without_patches", "explain all", "randomisation", "saliency", "kernel_shap"]
)
def test_everything_that_runs_the_model_takes_turns(counted: Counted, image: str, analysis: str) -> None:
    session, running, outside = counted.session, list[str](), list[str]()
    model = session.model("tiny").model

    def check(*_: object) -> None:
        running.append(threading.current_thread().name)
        line = session.turns._queues.get(("cpu", 0))
        if line is None or threading.get_ident() not in {one.key for one in line.held}:
            outside.append(threading.current_thread().name)

    def check_there_and_back(_block: object, _inputs: object, output: torch.Tensor) -> None:
        check()
        if output.requires_grad:
            output.register_hook(check)

    for block in model.blocks:
        block.mlp.register_forward_hook(check_there_and_back)  # Grad-CAM runs parts of the last block
    if analysis in ("saliency", "kernel_shap"):
        ask(session, image, analysis, target=1)
    elif analysis == "randomisation":
        ask(session, image, analysis, method="legrad", target=1)
    else:
        ask(
            session,
            image,
            analysis,
            **({"gone": "0,1"} if analysis == "without_patches" else {"target": 1}),
        )
    assert running
    assert outside == []


def test_a_slow_method_lets_others_have_a_turn_between_its_batches(counted: Counted, image: str) -> None:
    session, other = counted.session, counted.session.add_upload(picture(1))
    order = list[str]()
    session.trace("tiny", image)
    slow = threading.Thread(target=lambda: ask(session, image, "occlusion", target=1), name="slow")
    quick = threading.Thread(target=lambda: session.trace("tiny", other), name="quick")
    counted.inside = lambda: order.append(threading.current_thread().name)
    counted.in_forward.clear()
    counted.may_go.clear()
    slow.start()
    assert counted.in_forward.wait(PATIENCE)
    quick.start()
    until(lambda: session.turns.waiting(("cpu", 0)) == 1, what="a quick question that waits")
    counted.may_go.set()
    for thread in (slow, quick):
        thread.join(PATIENCE)
    assert order.count("quick") == 1
    assert (order[0], order[-1]) == ("slow", "slow")


def test_who_waits_for_somebodys_computation_may_give_up_and_it_goes_on(counted: Counted, image: str) -> None:
    session, request = counted.session, Request.of("tiny", image, "occlusion", target=1)
    found, started, stop = list[object](), threading.Event(), threading.Event()

    def begun(_share: float) -> None:
        if not started.is_set():
            counted.may_go.clear()
            started.set()

    first = threading.Thread(target=lambda: found.append(session.run(request, progress=begun)))
    session.trace("tiny", image)
    first.start()
    assert started.wait(PATIENCE)

    def give_up() -> None:
        with pytest.raises(Cancelled):
            session.run(request, cancelled=stop.is_set)
        found.append("gave up")

    second = threading.Thread(target=give_up)
    second.start()
    stop.set()
    second.join(PATIENCE)
    counted.may_go.set()
    first.join(60)
    assert found[0] == "gave up"
    assert isinstance(found[1], PatchMap)


def test_whoever_hangs_up_ends_a_slow_method_that_nobody_watches(counted: Counted) -> None:
    session, gone = counted.session, threading.Event()
    image = session.add_upload(picture(0), owner="ada")
    request = Request.of("tiny", image, "occlusion", owner="ada", target=1)
    before = GONE.set(gone.is_set)
    try:
        with pytest.raises(Cancelled):
            session.run(request, progress=lambda _share: gone.set())
    finally:
        GONE.reset(before)
    assert not session.keeps(request)


def test_slow_answers_to_one_visitor_wait_for_each_other_and_quick_ones_do_not(counted: Counted) -> None:
    session = counted.session
    images = {o: session.add_upload(picture(i), owner=o) for i, o in enumerate(["ada", "bob"])}
    began, go, order = threading.Semaphore(0), threading.Event(), list[str]()

    def slow(owner: str, target: int) -> None:
        def hold(_share: float) -> None:
            if f"{owner} {target}" not in order:
                order.append(f"{owner} {target}")
                began.release()
            go.wait(60)

        request = Request.of("tiny", images[owner], "occlusion", owner=owner, target=target)
        session.run(request, progress=hold)

    threads = [threading.Thread(target=slow, args=task) for task in (("ada", 1), ("ada", 2), ("bob", 1))]
    for thread in threads:
        thread.start()
    assert began.acquire(timeout=60)
    assert began.acquire(timeout=60)
    session.run(Request.of("tiny", images["ada"], "relevance", owner="ada", target=1))
    until(lambda: session._slow.waiting("ada") == 1)  # the other of hers stands in the queue
    assert not began.acquire(blocking=False)
    assert len({entry.split()[0] for entry in order}) == 2
    go.set()
    for thread in threads:
        thread.join(60)
    assert len(order) == 3


def test_copies_of_a_model_are_made_one_at_a_time(
    counted: Counted, image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, begun, inside, most, lock = counted.session, 0, 0, 0, threading.Lock()

    def randomisation(*_args: object, **_options: object) -> Curve:
        nonlocal begun, inside, most
        with lock:
            begun += 1
            inside += 1
            most = max(most, inside)
        until(lambda: session.turns.waiting(_COPY) == 4 - begun or most > 1)  # all others stand outside
        with lock:
            inside -= 1
        values = np.ones(2, np.float32)
        return Curve(values, values, "x", "y", "method", Provenance())

    monkeypatch.setattr("vit_viz.analyses.trust.parameter_randomisation", randomisation)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda i: ask(session, image, "randomisation", method="relevance", target=i), range(4)))
    assert most == 1


def test_results_are_counted_with_all_their_arrays(counted: Counted, image: str) -> None:
    before = counted.session.cache.stats.used_bytes
    maps = ask(counted.session, image, "explain all", target=1, mirror=False)
    assert isinstance(maps, Explanations)
    size = sum(one.values.nbytes for one in maps.maps.values())
    assert counted.session.cache.stats.used_bytes - before >= size
