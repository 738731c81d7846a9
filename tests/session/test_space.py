"""A lent GPU, as ZeroGPU lends one: in a process of its own, with all that passes between pickled; here that process has a CPU."""

from __future__ import annotations

import functools
import multiprocessing
import pickle
import shutil
import sys
import threading
import types
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import vit_viz as vv
from tests.comparing import assert_unchanged
from vit_viz.analyses.explain import Explanations
from vit_viz.analyses.norms import TokenNorms
from vit_viz.analyses.registers import AddedRegister, RegisterNeuron
from vit_viz.errors import ParameterError, VitVizError
from vit_viz.results import PatchMap, TokenMaps
from vit_viz.session import engine as engine_module, space
from vit_viz.session.devices import REFUSED
from vit_viz.session.request import Request
from vit_viz.session.session import Session
from vit_viz.session.space import GpuWorker

ROOT = Path(__file__).resolve().parents[2]
HALF = 2.0**-11
"""Largest relative error of rounding to fp16."""


@dataclass
class FakeSpaces:
    """The package `spaces` of a ZeroGPU Space: its decorator runs a function in a forked process."""

    asked: list[int] = field(default_factory=list)  # seconds of each call
    refuse: Exception | None = None
    abort: bool = False

    def gpu(self, task: Callable[..., Any] | None = None, *, duration: Any = None, size: Any = None) -> Any:
        if task is None:
            return functools.partial(self.gpu, duration=duration, size=size)

        def lent(*args: Any) -> Any:
            self.asked.append(duration(*args))
            if self.refuse is not None:
                raise self.refuse
            return self._elsewhere(task, pickle.dumps(args))

        return lent

    def _elsewhere(self, task: Callable[..., Any], packed: bytes) -> Any:
        context = multiprocessing.get_context("fork")
        here, there = context.Pipe()
        child = context.Process(target=self._serve, args=(task, packed, there))
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", DeprecationWarning
            )  # forking with threads, which is what ZeroGPU does
            child.start()
        there.close()
        try:
            kind, answer = pickle.loads(here.recv_bytes())
        except EOFError:
            raise RuntimeError("GPU task aborted") from None
        finally:
            child.join(60)
        if kind == "error":
            raise RuntimeError(answer)  # `spaces` says no more of it than the name of its class
        return answer

    def _serve(self, task: Callable[..., Any], packed: bytes, there: Any) -> None:
        def run() -> None:
            try:
                answer = pickle.dumps(("ok", task(*pickle.loads(packed))))
            except Exception as error:
                answer = pickle.dumps(("error", type(error).__name__))
            there.send_bytes(answer)

        if not self.abort:
            thread = threading.Thread(target=run)
            thread.start()
            thread.join()


@pytest.fixture
def spaces(monkeypatch: pytest.MonkeyPatch) -> FakeSpaces:
    fake = FakeSpaces()
    module = types.ModuleType("spaces")
    module.GPU = fake.gpu  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "spaces", module)
    return fake


@pytest.fixture(autouse=True)
def _alike(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Parent and worker compute alike, so that their numbers can be equal: one thread, and torch's own matrix product."""
    monkeypatch.setenv("VIT_VIZ_LINEAR", "torch")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
    space._session.cache_clear()


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundled model as a file of the owner's: the bundled one itself never asks for a GPU."""
    return Path(
        shutil.copy(ROOT / "assets" / "mini.safetensors", tmp_path_factory.mktemp("own") / "own.safetensors")
    )


class Both:
    """The same picture in a session that is lent a GPU and in one that is not."""

    def __init__(self, checkpoint: Path, *, min_operations: float = 0.0) -> None:
        lender = GpuWorker.detect(device="cpu", min_operations=min_operations)
        assert lender is not None
        self.lent = Session(model=checkpoint, lender=lender)
        self.plain = Session(model=checkpoint, device="cpu")
        picture = Image.fromarray(np.random.default_rng(3).integers(0, 256, (90, 140, 3), dtype=np.uint8))
        self.images = {id(one): one.add_upload(picture, owner="ada") for one in (self.lent, self.plain)}
        self.notices: list[str] = []
        self.lent.notice = self.notices.append

    def run(self, session: Session, analysis: str, **parameters: Any) -> Any:
        request = Request.of(
            session.default_model, self.images[id(session)], analysis, mode="crop", owner="ada", **parameters
        )
        return session.run(request)

    def trace(self, session: Session) -> Any:
        return session.trace(None, self.images[id(session)], mode="crop", owner="ada")


@pytest.fixture
def both(spaces: FakeSpaces, checkpoint: Path) -> Both:
    return Both(checkpoint)


# --- where a GPU is lent, and where not


def test_without_the_package_no_gpu_is_lent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "spaces", None)
    assert GpuWorker.detect() is None


def test_where_the_decorator_changes_nothing_the_own_gpu_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("spaces")
    module.GPU = lambda task=None, **_: task or (lambda task: task)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "spaces", module)
    assert GpuWorker.detect() is None


def test_a_session_that_is_lent_gpus_stays_on_the_cpu(both: Both) -> None:
    assert both.lent.model().device.type == "cpu"


def test_the_bundled_model_never_asks_for_a_gpu(spaces: FakeSpaces) -> None:
    session = Session(model="mini", lender=GpuWorker.detect(device="cpu", min_operations=0.0))
    session.trace("mini", "lion")
    assert spaces.asked == []


def test_what_the_cpu_does_in_a_moment_asks_for_no_gpu(spaces: FakeSpaces, checkpoint: Path) -> None:
    both = Both(checkpoint, min_operations=space.MIN_OPERATIONS)
    both.trace(both.lent)
    both.run(both.lent, "relevance")
    assert spaces.asked == []


def test_a_gpu_is_asked_for_seconds_and_once_per_request(spaces: FakeSpaces, both: Both) -> None:
    for _ in range(2):
        both.run(both.lent, "relevance")
    assert len(spaces.asked) == 1
    assert 0 < spaces.asked[0] <= 60


def test_inside_an_edit_no_gpu_is_asked_for(spaces: FakeSpaces, both: Both) -> None:
    with vv.edit(temperature={1: 0.5}):  # which another process would not know of
        both.trace(both.lent)
    assert spaces.asked == []
    both.trace(both.lent)
    assert len(spaces.asked) == 1


def test_a_long_request_is_worth_a_gpu_sooner_than_a_short_one(both: Both) -> None:
    loaded = both.plain.model()
    work = [
        space._work(Request.of("", "", name), loaded)
        for name in ("rollout", "trace", "relevance", "occlusion", "trust")
    ]
    assert work == sorted(work)
    assert len(set(work)) == 5


def test_the_worker_is_told_nothing_of_the_visitor(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []
    lender = both.lent.lender
    assert isinstance(lender, GpuWorker)
    monkeypatch.setattr(lender, "_lent", lambda task: sent.append(task) or ParameterError("enough"))
    with pytest.raises(ParameterError, match="enough"):
        both.trace(both.lent)
    assert b"ada" not in pickle.dumps(sent)


# --- what comes back


def test_a_trace_of_the_worker_is_the_parents_rounded_to_fp16(both: Both, spaces: FakeSpaces) -> None:
    got, expected = both.trace(both.lent), both.trace(both.plain)
    assert spaces.asked
    for role in ("q", "k"):
        assert torch.equal(getattr(got, role), getattr(expected, role).half().float())
    for name in ("layout", "proof", "tolerance", "problems", "crop_box", "provenance", "scales"):
        assert getattr(got, name) == getattr(expected, name)
    assert torch.equal(got.logits, expected.logits)
    assert both.notices == []


def test_attention_of_a_workers_trace_is_off_by_no_more_than_rounding_allows(both: Both) -> None:
    # q and k are off by at most u = 2^-11 of each number, so a score s = scale sum(q k) by at most d = scale sum|q k| (2u + u^2).
    # A softmax whose scores are off by at most d changes each weight p by a factor within exp(+-2d): |dp| <= p (exp(2d) - 1).
    got, expected = both.trace(both.lent), both.trace(both.plain)
    for layer in range(expected.num_layers):
        q, k = expected.q[layer].double().abs(), expected.k[layer].double().abs()
        score_error = expected.scales[layer] * (q @ k.transpose(1, 2)) * (2 * HALF + HALF**2)
        rows = expected.attention(layer).double()
        bound = rows * torch.expm1(2 * score_error.amax(-1, keepdim=True)) + 1e-6  # and fp32 on both sides
        assert bool(((got.attention(layer).double() - rows).abs() <= bound).all())


def test_rows_and_columns_of_a_workers_trace_agree(both: Both) -> None:
    trace = both.trace(both.lent)
    for layer in range(trace.num_layers):
        rows = trace.attention(layer)
        # columns are exp(score - lse) with lse in fp32: 20 to 30 in size, so known to some 2^-20
        torch.testing.assert_close(trace.received(layer, None), rows, atol=0, rtol=1e-5)
        torch.testing.assert_close(rows.sum(-1), torch.ones_like(rows[..., 0]), atol=1e-5, rtol=0)


def test_value_norms_of_a_workers_trace_are_the_parents(both: Both) -> None:
    got, expected = both.trace(both.lent), both.trace(both.plain)
    assert expected.v is None
    for layer in range(expected.num_layers):
        assert torch.equal(got.value_norms(layer), expected.value_norms(layer))


@pytest.mark.parametrize(
    ("analysis", "parameters"),
    [
        ("explain all", {}),
        ("legrad", {"target": 3}),
        ("without_patches", {"gone": "0,1;2,3"}),
    ],
)
def test_results_of_the_worker_are_those_of_the_parent(
    both: Both, spaces: FakeSpaces, analysis: str, parameters: dict[str, Any]
) -> None:
    got = both.run(both.lent, analysis, **parameters)
    assert len(spaces.asked) == 1
    assert_unchanged(got, both.run(both.plain, analysis, **parameters))
    assert both.notices == []


def test_a_result_of_parts_travels_unchanged() -> None:
    """Of values, words, names and other results; tests/surfaces/test_same_numbers has the answers of all questions."""
    x = np.linspace(0, 1, 5)
    patch_map = PatchMap(x[None], "weight", (0, 1), False, "rollout", True, prefix={"class": 0.5})
    maps = TokenMaps(
        np.ones((3, 1, 5)), ("a", "b", "c"), "norm", (0, 9), False, "norms", named={"class": x[:3]}
    )
    norms = TokenNorms(maps, x[:3].astype(np.float32), ((1,), (), (2, 3)), x[:2].astype(np.float32), x[:2])
    neurons = (RegisterNeuron(1, 7, 0.5), RegisterNeuron(0, 2, 0.25))
    for result in (
        AddedRegister(norms, norms, (patch_map, patch_map), neurons, 2, (4, 0), "register 0"),
        Explanations({"rollout": patch_map}, {"legrad": "Not here."}),
    ):
        assert_unchanged(pickle.loads(pickle.dumps(result)), result)


def test_results_are_kept_by_the_parent(both: Both, spaces: FakeSpaces) -> None:
    first = both.run(both.lent, "explain all")
    assert both.run(both.lent, "explain all") is first
    assert len(spaces.asked) == 1


def test_an_error_of_the_visitor_comes_back_as_what_it_is(both: Both) -> None:
    said: list[tuple[type, str]] = []
    for session in (both.lent, both.plain):
        with pytest.raises(VitVizError) as error:
            both.run(session, "explain all", target=10**6)
        said.append((type(error.value), str(error.value)))
    assert said[0] == said[1]
    assert both.notices == []


def test_a_worker_keeps_no_picture(both: Both) -> None:
    request = Request.of(both.plain.default_model, "", "trace", mode="crop")
    picture = both.plain.image(both.images[id(both.plain)], owner="ada")
    space.compute(space.Task(request, picture, both.plain.default_model, "cpu", 1))
    assert space._session(both.plain.default_model, "cpu").uploads.used_bytes == 0


# --- when there is none


@pytest.mark.parametrize("why", ["quota", "aborted"])
def test_without_a_gpu_the_cpu_answers_and_says_so_once(both: Both, spaces: FakeSpaces, why: str) -> None:
    spaces.refuse = RuntimeError("You have exceeded your quota") if why == "quota" else None
    spaces.abort = why == "aborted"
    got = both.run(both.lent, "relevance")  # a part of which is "explain all"
    assert both.notices == [REFUSED]
    assert len(spaces.asked) == 1
    assert_unchanged(got, both.run(both.plain, "relevance"))


def test_a_refusal_is_forgotten_by_the_next_request(both: Both, spaces: FakeSpaces) -> None:
    spaces.refuse = RuntimeError("No GPU was available")
    both.run(both.lent, "explain all")
    spaces.refuse = None
    both.run(both.lent, "explain all", target=2)
    assert len(spaces.asked) == 2
    assert both.notices == [REFUSED]


def test_a_gpu_without_room_leaves_it_to_the_cpu(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    real = engine_module.trace

    def full(*args: Any, **options: Any) -> Any:
        if multiprocessing.parent_process() is None:
            return real(*args, **options)
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(engine_module, "trace", full)
    got, expected = both.trace(both.lent), both.trace(both.plain)
    assert both.notices == [REFUSED]
    assert torch.equal(got.q, expected.q)


def test_the_session_of_a_worker_is_on_the_named_model_and_device(both: Both) -> None:
    from vit_viz.session import space

    space._session.cache_clear()
    session = space._session("some-model", "cpu")
    assert (session.default_model, session.engine.device, session.cpu_engine) == ("some-model", "cpu", None)
    assert session.cache.max_bytes + session.engine.pool.max_idle_bytes == space.CACHE_BYTES
    assert space._session("some-model", "cpu") is session
    space._session.cache_clear()
