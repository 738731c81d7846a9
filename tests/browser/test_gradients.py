"""The engine's reverse pass: the gradients that torch's autograd finds, in every family, and under edits."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

import pytest
import torch
from torch import Tensor

from tests.browser.engine import Jobs, Kernels
from tests.browser.families import CASES, models
from tests.browser.oracle import difference
from tests.browser.test_answers import TINIES, _loaded
from vit_viz.analyses.explain import explain
from vit_viz.browser import as_stored, write_weights
from vit_viz.checkpoints import LoadedModel, load
from vit_viz.model import VisionTransformer
from vit_viz.model.kernel import attending_through
from vit_viz.samples import sample

pytestmark = pytest.mark.numbers

TOLERANCE = 1e-5
"""Largest difference, relative to the largest number of what is compared."""

Gradients = dict[str, list[Tensor]]


def autograd(model: VisionTransformer, pixels: Tensor, weights: Tensor) -> Gradients:
    """Of the sum of the outputs, each with its weight: by each attention's output, and by each block's input; with all values."""
    found: Gradients = {"g": [], "v": [], "before": []}
    read: list[Tensor] = []

    def kernel(
        q: Tensor, k: Tensor, v: Tensor, *, attn_mask: Tensor | None = None, scale: float | None = None
    ) -> Tensor:
        output = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=attn_mask, scale=scale)
        if q.shape[2] == k.shape[2]:
            output.retain_grad()
            found["g"].append(output)
            found["v"].append(v)
        else:
            read.extend((output, v))
        return output

    x = model.tokens(pixels).detach().requires_grad_()
    with attending_through(kernel), torch.enable_grad():
        places = model.places(model.grid_of(*pixels.shape[-2:]))
        for block in model.blocks:
            found["before"].append(x)
            x.retain_grad()
            x = block(x, places)
        for one in read:
            one.retain_grad()
        (model.classify(x)[0] @ weights).backward()
    flat = {
        "g": lambda one: one.grad[0].transpose(0, 1).flatten(1),
        "v": lambda one: one.detach()[0].transpose(0, 1).flatten(1),
    }
    result = {name: [take(one) for one in found[name]] for name, take in flat.items()}
    result["before"] = [one.grad[0] for one in found["before"]]
    return result


@pytest.fixture(scope="module")
def mini() -> LoadedModel:
    return load("mini", device="cpu")


@pytest.fixture(scope="module")
def passes(
    mini: LoadedModel, tmp_path_factory: pytest.TempPathFactory
) -> dict[Kernels, dict[str, tuple[Any, Gradients]]]:
    """With both kernels, of each tiny model the engine's gradients, all in one process of Node.js, and torch's."""
    jobs, expected = Jobs(tmp_path_factory.mktemp("gradients")), []
    for model, pixels, about in models(mini, jobs):
        weights = torch.randn(len(model(pixels)[0]))
        jobs.add("gradients", **about, edits="", weights=weights.tolist())
        expected.append(autograd(model, pixels, weights))
    return {
        kernels: dict(zip(CASES, zip(jobs.run(kernels), expected, strict=True), strict=True))
        for kernels in get_args(Kernels)
    }


@pytest.mark.parametrize("kernels", get_args(Kernels))
@pytest.mark.parametrize("family", CASES)
def test_gradients_are_those_of_autograd(
    passes: dict[Kernels, dict[str, tuple[Any, Gradients]]], family: str, kernels: Kernels
) -> None:
    result, expected = passes[kernels][family]
    assert "error" not in result, result["error"]
    apart = {
        (name, layer): difference(result["layers"][layer][name], wanted)
        for name, all_layers in expected.items()
        for layer, wanted in enumerate(all_layers)
    }
    assert {where: value for where, value in apart.items() if not value <= TOLERANCE} == {}


# --- maps, in double precision


@dataclass
class Recorded:
    """Of one pass in double precision that is followed back: attention of blocks and of a learned pool, with their gradients."""

    blocks: list[Tensor] = field(default_factory=list)
    pool: list[Tensor] = field(default_factory=list)

    @staticmethod
    def influence(attention: Tensor) -> Tensor:
        assert attention.grad is not None
        return (attention.grad * attention.detach())[0].clamp(min=0).mean(0)


def recorded(model: VisionTransformer, pixels: Tensor, weights: Tensor) -> Recorded:
    found = Recorded()

    def kernel(
        q: Tensor, k: Tensor, v: Tensor, *, attn_mask: Tensor | None = None, scale: float | None = None
    ) -> Tensor:
        scores = q @ k.transpose(-1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
        attention = (scores if attn_mask is None else scores + attn_mask).softmax(-1)
        attention.retain_grad()
        (found.blocks if q.shape[2] == k.shape[2] else found.pool).append(attention)
        return attention @ v

    x = model.tokens(pixels).detach().requires_grad_()
    with attending_through(kernel), torch.enable_grad():
        places = model.places(model.grid_of(*pixels.shape[-2:]))
        for block in model.blocks:
            x = block(x, places)
        (model.classify(x)[0] @ weights).backward()
    return found


def test_of_int8_relevance_is_that_of_the_rounded_model_which_its_note_says(
    mini: LoadedModel, tmp_path: Path
) -> None:
    path, jobs = tmp_path / "mini.safetensors", Jobs(tmp_path)
    write_weights(mini, path, storage="int8")
    photo, questions = jobs.picture(sample("twins")), [("relevance", {"target": 17}), ("rollout", {})]
    jobs.add("answers", path=str(path), picture=photo, options={"mode": "crop"}, questions=questions)
    relevance, rollout = jobs.run()[0]["answers"]
    got = relevance["arrays"]["values"]["values"]
    exact, rounded = (
        torch.tensor(explain(one, sample("twins"), mode="crop", target=17)["relevance"].values).flatten()
        for one in (mini, as_stored(mini, "int8"))
    )
    assert difference(got, rounded) <= TOLERANCE
    assert 100 * TOLERANCE < difference(got, exact) < 0.05
    assert "int8" in relevance["facts"]["note"]
    assert "int8" not in rollout["facts"]["note"]


@pytest.mark.parametrize("name", TINIES)
def test_relevance_and_gradient_rollout_are_their_products_of_matrices_in_double_precision(
    name: str, tmp_path: Path
) -> None:
    loaded, path = _loaded(name, tmp_path)
    config, model = loaded.config, copy.deepcopy(loaded.model).double()
    pixels = loaded.preprocess.apply(sample("runner"), mode="crop").pixels.double()
    with torch.no_grad():
        outputs = model(pixels)[0]
    first = torch.zeros_like(outputs).index_fill_(0, outputs.argmax(), 1)
    found = recorded(model, pixels, first if config.num_classes else outputs / outputs.norm())
    products = [found.influence(attention) for attention in found.blocks]
    tokens, prefix = len(products[0]), len(config.prefix)
    start = torch.zeros(tokens, dtype=torch.double)
    if config.pooling == "class":
        start[: 2 if config.dist_head else 1] = 0.5 if config.dist_head else 1
    else:
        start[prefix:] = 1 / (tokens - prefix)
    if found.pool:
        start[prefix:] = found.pool[0].detach()[0, :, 0].mean(0)
    begun = start.clone()
    if found.pool:
        begun[prefix:] = found.influence(found.pool[0])[0]
    relevance, rollout, identity = begun, start, torch.eye(tokens, dtype=torch.double)
    for product in reversed(products):
        relevance = relevance + relevance @ product
        matrix = (product + identity) / 2
        rollout = rollout @ (matrix / matrix.sum(-1, keepdim=True))
    if config.pooling != "class":
        relevance, rollout = relevance - begun, rollout - start
    jobs = Jobs(tmp_path)
    photo, options, about = jobs.picture(sample("runner")), {"mode": "crop"}, {"model": loaded.name}
    questions = [("relevance", about), ("gradient_rollout", about)]
    jobs.add("answers", path=str(path), picture=photo, options=options, questions=questions)
    (result,) = jobs.run()
    for wanted, answer in zip((relevance, rollout), result["answers"], strict=True):
        assert difference(answer["arrays"]["values"]["values"], wanted[prefix:]) <= TOLERANCE
