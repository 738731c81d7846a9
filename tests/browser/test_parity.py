"""The engine computes what torch computes: every family's blocks, queries, keys, normalisers, norms of values and logits."""

from __future__ import annotations

import copy
from dataclasses import fields
from itertools import cycle
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file

from tests.browser.engine import Jobs, Kernels
from tests.browser.families import CASES, TINY, models
from tests.browser.oracle import PARITY, Oracle, differences, oracle
from vit_viz.browser import Storage, write_weights
from vit_viz.bundled import example_photos
from vit_viz.checkpoints import LoadedModel, load
from vit_viz.images import Mode
from vit_viz.model import VisionTransformer, ViTConfig
from vit_viz.model.config import _CHOICES
from vit_viz.samples import sample, sample_names

Pass = tuple[dict[str, Any], Oracle]
"""Of the engine, and of torch."""

HALF = 2.0**-11
"""Of a weight of attention kept as fp16."""


INT8 = {"q": 0.03, "k": 0.03, "lse": 0.02, "norms": 0.02, "residual": 0.02, "logits": 0.02}
"""By how much int8 changes mini, relative to the largest number. Measured: 0.020, 0.018, 0.011, 0.013, 0.011, 0.012."""


@pytest.fixture(scope="module")
def mini() -> LoadedModel:
    return load("mini", device="cpu")


@pytest.fixture(scope="module")
def passes(mini: LoadedModel, tmp_path_factory: pytest.TempPathFactory) -> dict[Kernels, dict[str, Pass]]:
    """With both kernels, of each tiny model the engine's pass, all in one process of Node.js, and torch's."""
    jobs, expected = Jobs(tmp_path_factory.mktemp("families")), []
    for model, pixels, about in models(mini, jobs):
        jobs.add("run", **about)
        expected.append(oracle(model, pixels))
    return {
        kernels: dict(zip(CASES, zip(jobs.run(kernels), expected, strict=True), strict=True))
        for kernels in get_args(Kernels)
    }


@pytest.mark.parametrize("kernels", get_args(Kernels))
@pytest.mark.parametrize("family", CASES)
def test_a_pass_is_torchs(passes: dict[Kernels, dict[str, Pass]], family: str, kernels: Kernels) -> None:
    result, expected = passes[kernels][family]
    apart = differences(result, expected)
    assert {name: value for name, value in apart.items() if value > PARITY} == {}
    config = ViTConfig(**TINY | CASES[family].config)
    layout = VisionTransformer(config).layout(*CASES[family].size)
    assert (tuple(result["grid"]), tuple(result["prefix"])) == (layout.grid, layout.prefix)
    is_biased = config.relative_bias or config.shared_bias
    for layer, attention in zip(result["layers"], expected.attention, strict=True):
        assert layer["kind"] == ("attention" if is_biased else "qk")
        assert (layer["norms"] is None) == config.attn_norm
        if is_biased:
            kept = layer["attention"].reshape(attention.shape)
            np.testing.assert_allclose(kept, attention, rtol=HALF + PARITY, atol=2**-24)


def test_the_families_have_every_choice_of_a_configuration() -> None:
    configs = [ViTConfig(**TINY | case.config) for case in CASES.values()]
    for name, choices in _CHOICES.items():
        there = set(choices) - {"radio", "radio_v4"}  # refused where a model is written for it
        assert {getattr(config, name) for config in configs} == there, name
    for one in fields(ViTConfig):
        if one.type == "bool":
            assert {getattr(config, one.name) for config in configs} == {False, True}, one.name


def photos(mini: LoadedModel, images: list[Image.Image], folder: Path, storage: Storage) -> list[Pass]:
    """Passes of mini on pictures that the engine prepares, beside torch's on what Pillow prepares; every mode in turn."""
    path, jobs, expected = folder / "mini.safetensors", Jobs(folder), []
    write_weights(mini, path, storage=storage)
    for image, mode in zip(images, cycle(get_args(Mode)), strict=False):
        jobs.add("photo", path=str(path), picture=jobs.picture(image), options={"mode": mode})
        expected.append(oracle(mini.model, mini.preprocess.apply(image, mode=mode).pixels))
    return list(zip(jobs.run(), expected, strict=True))


def top(logits: Any) -> list[int]:
    """The five likeliest classes, in order."""
    return [int(i) for i in np.argsort(-np.asarray(logits))[:5]]


def assert_photos(mini: LoadedModel, images: list[Image.Image], folder: Path) -> None:
    passes = photos(mini, images, folder, "fp16")  # as which mini is published, so that nothing is lost
    for result, expected in passes:
        apart = differences(result, expected)
        assert {name: value for name, value in apart.items() if value > PARITY} == {}
        assert top(result["logits"]) == top(expected.logits)
    assert len({tuple(top(expected.logits)) for _, expected in passes}) > 1


def test_mini_on_photos_is_torchs_and_names_the_same_five_classes(mini: LoadedModel, tmp_path: Path) -> None:
    assert_photos(mini, [sample(name) for name in ("lion", "tower", "shapes")], tmp_path)


@pytest.mark.slow
def test_mini_on_twenty_pictures_is_torchs(mini: LoadedModel, tmp_path: Path) -> None:
    scenes = sorted(path for path in (example_photos().parent).glob("*_[12].webp"))
    images = [sample(name) for name in sample_names()]
    images += [Image.open(path).convert("RGB") for path in scenes[: 20 - len(images)]]
    assert len(images) == 20
    assert_photos(mini, images, tmp_path)


def test_int8_is_what_its_steps_say_and_stays_near_the_model(mini: LoadedModel, tmp_path: Path) -> None:
    passes = photos(mini, [sample(name) for name in ("cheetah", "twins")], tmp_path, "int8")
    stored, rounded = load_file(tmp_path / "mini.safetensors"), copy.deepcopy(mini.model)
    with torch.no_grad():
        for name, parameter in rounded.named_parameters():
            scale = stored.get(f"{name}.scale", torch.ones(1)).reshape(-1, *[1] * (parameter.ndim - 1))
            parameter.copy_(stored[name].float() * scale)
    for (result, expected), (image, mode) in zip(
        passes, (("cheetah", "fit"), ("twins", "crop")), strict=True
    ):
        own = oracle(rounded, mini.preprocess.apply(sample(image), mode=mode).pixels)
        assert max(differences(result, own).values()) <= PARITY
        apart = differences(result, expected)
        assert {name: value for name, value in apart.items() if value > INT8[name]} == {}
        assert apart["logits"] > PARITY  # else nothing was rounded
        shares = torch.from_numpy(result["logits"].copy()).softmax(-1) - expected.logits.softmax(-1)
        assert float(shares.abs().max()) < 0.01
        assert top(result["logits"])[:3] == top(expected.logits)[:3]
