"""The numbers of the lesson, and what-ifs, of models with parts that those of `test_answers` lack: gates, norms, one channel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch

from tests.browser.engine import Jobs
from tests.browser.families import TINY
from tests.browser.test_answers import _expected, check
from tests.model.inside import randomise
from vit_viz.browser import write_weights
from vit_viz.checkpoints import load
from vit_viz.images import Preprocess
from vit_viz.model import VisionTransformer, ViTConfig
from vit_viz.samples import sample
from vit_viz.session.session import Session

pytestmark = pytest.mark.numbers

KINDS: dict[str, dict[str, Any]] = {
    "gray, gated, rms norms": {
        "in_chans": 1,
        "mlp": "swiglu",
        "mlp_norm": True,
        "norm": "rms",
        "patch_norm": True,
        "class_token": False,
        "pooling": "mean",
    },
    "packed gate, norm before the blocks": {
        "mlp": "swiglu_packed",
        "pre_norm": True,
        "layer_scale": True,
        "patch_embed": "unfold",
    },
    "no biases, own scale": {
        "mlp": "quick_gelu",
        "qk_norm": True,
        "scale": 1.3,
        "reg_tokens": 2,
        **dict.fromkeys(("qkv_bias", "proj_bias", "mlp_bias", "patch_bias", "head_bias"), False),
    },
    "table and rotary": {"rotary_grid": (3, 5), "rotary_base": 10_000.0, "mlp": "gelu_tanh"},
    "turned by places, no table": {"position": "none", "rotary_grid": (3, 5)},
    "a mean of all tokens": {"pooling": "mean", "pool_prefix": True, "reg_tokens": 1},
    "a distillation token that is not read": {"dist_token": True},
    "a pool behind registers": {"pooling": "attention", "reg_tokens": 2},
    "padded": {"pad": True, "img_size": (23, 40), "position": "sinusoidal_1d"},
    "remainder dropped": {"drop_remainder": True, "img_size": (26, 45)},
}
CASES: list[tuple[str, dict[str, Any]]] = [
    ("lesson_tokens", {"query": "1,2"}),
    ("lesson_tokens", {"query": "3,5"}),
    ("lesson_attention", {"query": "1,1", "layer": 1, "head": 2}),
    ("lesson_block", {"query": "3,5", "layer": 0}),
    ("lesson_block", {}),
    ("lesson_depth", {"query": "0,3"}),
    *(("lesson_what_if", {"change": change}) for change in ("shuffle", "positions", "axis", "head", "cut")),
    ("lesson_what_if", {"change": "patch", "patch": 5}),
]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Session, list[Any]]]:
    """By a model's name: a session of it, and the engine's answers to all cases."""

    @cache
    def of(name: str) -> tuple[Session, list[Any]]:
        folder = tmp_path_factory.mktemp("lesson")
        torch.manual_seed(5)
        config = ViTConfig(**TINY | KINDS[name])
        recipe = Preprocess(
            config.img_size,
            config.patch_size,
            mean=(0.4, 0.5, 0.6)[: config.in_chans],
            std=(0.2, 0.25, 0.3)[: config.in_chans],
            channels=config.in_chans,
            drop_remainder=config.drop_remainder,
        )
        model = randomise(VisionTransformer(config))
        mini = load("mini", device="cpu")
        loaded = replace(mini, model=model, config=config, preprocess=recipe, labels=None, name=name)
        path = folder / "model.safetensors"
        write_weights(loaded, path, storage="fp32")
        session, jobs = Session(model=name, device="cpu"), Jobs(folder)
        session.add_model(loaded)
        questions = [(question, {"model": name} | body) for question, body in CASES]
        photo = jobs.picture(sample("runner"))
        jobs.add("answers", path=str(path), picture=photo, options={"mode": "crop"}, questions=questions)
        (result,) = jobs.run()
        assert "error" not in result, result
        return session, result["answers"]

    return of


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_the_engine_tells_the_lesson_as_the_server_does(
    kind: str, case: tuple[str, dict[str, Any]], answers: Callable[[str], tuple[Session, list[Any]]]
) -> None:
    session, got = answers(kind)
    check(got[CASES.index(case)], _expected(session, *case))
