"""A model that is trained or changed between two questions: each answer is of the weights that the model has then."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import anyio
import numpy as np
import pytest
import timm
import torch
import torch.nn.functional as F
import transformers
from PIL import Image
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.testclient import TestClient
from torch import Tensor, nn
from torch.nn.utils import prune

import vit_viz as vv
from tests.session.test_session import Counted, picture
from tests.session.test_session_keeps import with_a_full_gpu
from vit_viz.checkpoints import LoadedModel, Model
from vit_viz.checkpoints.digest import weights_digest, weights_of
from vit_viz.checkpoints.plain_module import plain_module
from vit_viz.figures.replay import record_of, replay
from vit_viz.rest import Computed
from vit_viz.session.request import Request
from vit_viz.ui.app import session_of as served

CLASSES = 7
SHAPE: dict[str, Any] = {"image_size": 32, "patch_size": 8, "hidden_size": 40, "num_attention_heads": 5}


def of_timm() -> nn.Module:
    shape = {"img_size": 32, "patch_size": 8, "embed_dim": 40, "depth": 3, "num_heads": 5}
    module: nn.Module = timm.create_model("vit_tiny_patch16_224", num_classes=CLASSES, **shape)
    return module


def normed() -> nn.Module:
    """With running numbers: buffers, which training changes, too."""
    module: Any = of_timm()
    module.head = nn.Sequential(module.head, nn.BatchNorm1d(CLASSES))
    return module


def of_transformers() -> nn.Module:
    config = transformers.ViTConfig(**SHAPE, num_hidden_layers=2, intermediate_size=56, num_labels=CLASSES)
    return transformers.ViTForImageClassification(config)


def ours() -> LoadedModel:
    loaded = Counted().session.model("tiny")
    assert isinstance(loaded, LoadedModel)
    return loaded


KINDS: dict[str, Callable[[], Any]] = {
    "timm": of_timm,
    "transformers": of_transformers,
    "with a norm": normed,
    "wrapped": lambda: nn.DataParallel(of_timm()),
    "ours": ours,
}


class Watched:
    """A model, what it says of a photo by itself, and how often it ran."""

    def __init__(self, kind: str) -> None:
        self.loaded = KINDS[kind]()
        within = getattr(self.loaded, "module", self.loaded)
        model = within if isinstance(within, Model) else plain_module(within)
        self.module: Any = model.model.eval()
        self.preprocess = model.preprocess
        for parameter in self.module.parameters():
            parameter.requires_grad_(True)
            parameter.data.normal_(0, 0.3)
        self.photo, self.passes = picture(0), 0
        self.module.register_forward_pre_hook(self._count)

    def scores(self, *photos: Image.Image) -> Tensor:
        """By its own pass, [photos, classes]."""
        returned = self.module(torch.cat([self.preprocess.apply(photo).pixels for photo in photos]))
        scores: Tensor = getattr(returned, "logits", returned)
        return scores

    def train(self) -> None:
        """One step, after which it is in eval mode again."""
        self.module.train()
        optimizer = torch.optim.AdamW(self.module.parameters(), lr=0.02)
        F.cross_entropy(self.scores(*map(picture, range(1, 4))), torch.tensor([2, 5, 0])).backward()
        optimizer.step()
        self.module.eval()

    def check(self, *, runs: bool = True) -> None:
        """Whether `run` says what the model says, and whether it had to run for that; asked again, it never has to."""
        with torch.no_grad():
            wanted = self.scores(self.photo)[0].softmax(-1)
        for is_new in (runs, False):
            self.passes = 0
            ranking = vv.run(self.loaded, self.photo, "classes", count=len(wanted), progress=False)
            assert (self.passes > 0) == is_new
            found = torch.zeros(len(wanted)).scatter(
                0, torch.tensor(ranking.indices), torch.tensor(ranking.scores)
            )
            assert torch.allclose(found, wanted, atol=1e-5)

    def _count(self, *_: object) -> None:
        self.passes += 1


@pytest.mark.parametrize("kind", KINDS)
def test_run_says_what_the_model_says_at_each_step_of_its_training(kind: str) -> None:
    watched = Watched(kind)
    watched.check()
    for _ in range(3):
        watched.train()
        watched.check()


def last(module: nn.Module) -> nn.Linear:
    return [part for part in module.modules() if isinstance(part, nn.Linear)][-1]


def swapped(module: Any) -> None:
    name = "head" if hasattr(module, "head") else "classifier"
    setattr(module, name, nn.Linear(getattr(module, name).in_features, 5))


def tripled(_part: nn.Module, _args: object, output: Tensor) -> Tensor:
    return output * 3


CHANGES: dict[str, Callable[[Any], object]] = {
    "load_state_dict": lambda m: m.load_state_dict({name: one * 0.7 for name, one in m.state_dict().items()}),
    "in place": lambda m: last(m).weight.requires_grad_(False).mul_(-1),
    "data in place": lambda m: last(m).weight.data.mul_(-1),
    "data copied": lambda m: last(m).bias.data.copy_(torch.arange(CLASSES)),
    "one number of data": lambda m: last(m).bias.data[3:4].add_(2),
    "other data": lambda m: setattr(last(m).weight, "data", last(m).weight.data * 2),
    "two rows that changed places": lambda m: last(m).weight.data.copy_(last(m).weight.data.flip(0)),
    "another parameter": lambda m: setattr(last(m), "bias", nn.Parameter(torch.randn(CLASSES))),
    "another head": swapped,
    "pruned": lambda m: prune.l1_unstructured(last(m), "weight", 0.8),  # each pass makes the weight anew
    "parametrised": lambda m: nn.utils.parametrizations.spectral_norm(last(m)),
    "a hook": lambda m: last(m).register_forward_hook(tripled),
    "another forward": lambda m: setattr(last(m), "forward", lambda x: F.linear(x, last(m).weight) * 2),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("kind", ["timm", "transformers", "ours"])
def test_whatever_changes_what_a_model_says_changes_the_answer(
    kind: str, change: Callable[[Any], object]
) -> None:
    watched = Watched(kind)
    watched.check()
    change(watched.module)
    watched.check()


def test_buffers_belong_to_the_weights() -> None:
    watched = Watched("with a norm")
    watched.check()
    watched.module.head[1].running_mean.data += torch.arange(CLASSES)
    watched.check()


def test_weights_that_come_back_have_their_answers_and_a_switch_to_training_mode_changes_nothing() -> None:
    watched = Watched("timm")
    watched.check()
    before = {name: one.clone() for name, one in watched.module.state_dict().items()}
    watched.train()
    watched.check()
    watched.module.load_state_dict(before)
    watched.check(runs=False)
    watched.module.train()
    vv.run(watched.loaded, watched.photo, "classes", progress=False)
    watched.module.eval()
    watched.check(runs=False)


@pytest.mark.parametrize("kind", ["timm", "ours"])
def test_a_figure_is_of_the_weights_that_it_names(kind: str) -> None:
    watched, files = Watched(kind), list[bytes]()
    for _ in range(3):
        for form in ("csv", "png"):
            saved = vv.figure(watched.loaded, watched.photo, "rollout", format=form, progress=False).data
            again = vv.figure(watched.loaded, watched.photo, "rollout", format=form, progress=False).data
            assert saved == again
            files.append(saved)
        traced = vv.trace(watched.loaded, watched.photo)
        assert traced.provenance.weights == record_of(files[-1])["weights"] == record_of(files[-2])["weights"]
        own = vv.rollout(traced, query=traced.layout.default_query).values
        asked = vv.run(watched.loaded, watched.photo, "rollout", progress=False).values
        assert np.array_equal(own, asked)
        watched.module.blocks[0].attn.qkv.weight.data.mul_(3)
    assert len(set(files)) == 6
    assert len({record_of(file)["weights"] for file in files}) == 3


def test_each_answer_reads_the_weights_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[nn.Module] = []
    monkeypatch.setattr(
        "vit_viz.checkpoints.digest.weights_digest", lambda m: read.append(m) or weights_digest(m)
    )
    loaded = ours()
    asked = {"progress": False}
    for ask in (
        lambda: vv.trace(loaded, picture(0)),
        lambda: vv.explain(loaded, picture(0)),
        lambda: vv.run(loaded, picture(0), "rollout", **asked),
        lambda: vv.run(loaded, picture(0), "rollout", **asked),
        lambda: vv.figure(loaded, picture(0), "rollout", format="csv", **asked),
    ):
        read.clear()
        ask()
        assert read == [loaded.model]


def test_a_loaded_model_keeps_the_name_of_its_file_as_long_as_its_weights_are_those() -> None:
    loaded = vv.load("mini")
    weights = loaded.provenance.weights
    first = vv.run(loaded, "lion", "rollout").provenance.weights
    loaded.model.head.bias.data.add_(1)
    second = vv.run(loaded, "lion", "rollout").provenance.weights
    loaded.model.head.bias.data.sub_(1)
    assert first == weights != second
    assert vv.explain(loaded, "lion", methods=["rollout"])["rollout"].provenance.weights == weights


def test_a_file_of_other_weights_is_not_made_again_and_one_of_equal_weights_is() -> None:
    watched, saved = Watched("timm"), []
    for _ in range(2):
        saved.append(vv.figure(watched.loaded, watched.photo, "rollout", format="csv", progress=False).data)
        watched.train()
    again = of_timm().eval()
    again.load_state_dict(watched.module.state_dict())
    session = served(again)
    with pytest.raises(vv.VitVizError, match="weights"):
        replay(saved[1], session, image=png(watched.photo))
    final = vv.figure(watched.loaded, watched.photo, "rollout", format="csv", progress=False).data
    assert replay(final, session, image=png(watched.photo)).data.splitlines()[-9:] == final.splitlines()[-9:]


def png(photo: Image.Image) -> bytes:
    import io

    file = io.BytesIO()
    photo.save(file, "PNG")
    return file.getvalue()


# --- served, and changed by another thread


def test_a_module_that_is_served_answers_with_its_weights_of_now() -> None:
    watched = Watched("timm")
    session = served(watched.loaded)
    image = session.add_upload(watched.photo)
    request = Request.of(session.default_model, image, "classes", count=3)
    found = []
    for _ in range(3):
        found.append(session.run(request).scores.tolist())
        assert session.keeps(request)
        watched.train()
        assert not session.keeps(request)
    assert found[0] != found[1] != found[2]


def test_an_answer_that_was_computed_while_weights_changed_is_not_kept_for_those_of_before(
    counted: Counted,
) -> None:
    """The other thread puts the old weights back afterwards, so that the question is the same again."""
    session, image = counted.session, counted.session.add_upload(picture(0))
    module = session.model("tiny").model
    before = {name: one.clone() for name, one in module.state_dict().items()}
    wanted = session.trace("tiny", image)
    session.cache.clear()

    def trained() -> None:
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.mul_(2)

    def in_another_thread() -> None:
        counted.inside = lambda: None
        thread = threading.Thread(target=trained)
        thread.start()
        thread.join()

    counted.inside = in_another_thread
    session.trace("tiny", image)
    module.load_state_dict(before)
    assert torch.equal(session.trace("tiny", image).q, wanted.q)


def test_the_copy_of_a_model_on_the_cpu_follows_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    session = with_a_full_gpu(monkeypatch)
    image = session.add_upload(picture(0))
    module = session.model("tiny").model
    first = session.trace("tiny", image)
    assert session.trace("tiny", image) is first
    module.blocks[0].attn.qkv.weight.data.mul_(2)
    second = session.trace("tiny", image)
    assert second.provenance.weights != first.provenance.weights
    assert torch.equal(second.q, vv.trace(module, session.prepared(request_subject(image)).pixels).q)


def request_subject(image: str) -> Any:
    return Request.of("tiny", image, "trace").subject


def test_one_answer_over_http_is_of_one_state_of_the_weights() -> None:
    """A page opens by some ten looks at its model, which another thread may train meanwhile."""
    module, seen = of_timm(), list[str]()

    def compute(*_: object) -> JSONResponse:
        for _look in range(2):
            seen.append(weights_of(module))
            module.head.weight.data.mul_(2)  # type: ignore[union-attr]
        return JSONResponse({})

    async def ask(_request: object) -> Computed:
        return Computed(compute, anyio.CapacityLimiter(1), is_streamed=False)

    app = Starlette(routes=[Route("/", ask)])
    with TestClient(app) as client:
        for _ in range(2):
            assert client.get("/").status_code == 200
    assert seen[0] == seen[1] != seen[2] == seen[3]
