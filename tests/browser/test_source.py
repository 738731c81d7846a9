"""A pass of the engine says what the server says of the same photo; its rows, and where a first look begins, are the trace's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.browser.engine import Jobs
from tests.browser.families import BEIT, TINY
from tests.browser.oracle import PARITY, difference
from tests.model.inside import randomise
from vit_viz.analyses.opening import opening
from vit_viz.browser import write_weights
from vit_viz.capture import trace
from vit_viz.checkpoints import LoadedModel, load
from vit_viz.explorer.value import trace_value
from vit_viz.figures.styles import lighting, unsuitable
from vit_viz.images import Preprocess
from vit_viz.model import VisionTransformer, ViTConfig
from vit_viz.samples import sample, sample_names

pytestmark = pytest.mark.numbers

MODELS: dict[str, dict[str, Any]] = {
    "class": {"reg_tokens": 2},
    "attention pooling": {"pooling": "attention", "scale": 0.7},
    "biased": BEIT | {"relative_bias": True},
    "padded": {"pad": True, "img_size": (23, 41)},
    "cut": {"drop_remainder": True, "img_size": (23, 41)},
    "without norms of values": {"attn_norm": True, "pooling": "mean", "class_token": False},
}
HALF = 2.0**-11


def _tiny(mini: LoadedModel, choices: dict[str, Any]) -> LoadedModel:
    torch.manual_seed(5)
    config = ViTConfig(**TINY | choices)
    model = randomise(VisionTransformer(config))
    recipe = Preprocess(config.img_size, config.patch_size, drop_remainder=config.drop_remainder)
    return replace(mini, model=model, config=config, preprocess=recipe, labels=None)


@pytest.mark.parametrize("name", MODELS)
def test_what_an_explorer_is_told_is_what_the_server_tells_it(name: str, tmp_path: Path) -> None:
    loaded = _tiny(load("mini", device="cpu"), MODELS[name])
    path, jobs, image = tmp_path / "tiny.safetensors", Jobs(tmp_path), sample("runner")
    write_weights(loaded, path, storage="fp32")
    jobs.add("photo", path=str(path), picture=jobs.picture(image), options={"mode": "crop"})
    (result,) = jobs.run()
    assert "error" not in result, result
    expected = trace(loaded, image, mode="crop", keep_norms=True)
    value = trace_value(expected)
    del value["options"]  # Python declares them, for every source
    assert result["value"].pop("scales") == pytest.approx(
        value.pop("scales"), rel=1e-15
    )  # a power, rounded by each language
    assert result["value"] == value
    begins = opening(expected)
    assert result["opening"] == {"layer": begins.layer, "head": begins.head, "tour": list(begins.tour)}
    weights = expected.query_weights(value["default_query"])
    rows = torch.einsum("q,hqk->hk", weights, expected.attention(1))
    assert difference(result["rows"], rows) <= PARITY + (HALF if name == "biased" else 0)


@pytest.mark.parametrize("kind", ["as they are", "dark", "gray and dark", "gray and bright"])
def test_what_keeps_a_photo_from_being_lit_is_what_python_finds(kind: str, tmp_path: Path) -> None:
    changed = {
        "as they are": lambda photo: photo,
        "dark": lambda photo: photo.point(lambda level: level // 5),
        "gray and dark": lambda photo: photo.convert("L").point(lambda level: level // 2).convert("RGB"),
        "gray and bright": lambda photo: (
            photo.convert("L").point(lambda level: 128 + level // 2).convert("RGB")
        ),
    }[kind]
    photos = [changed(sample(name)) for name in sample_names()]
    jobs = Jobs(tmp_path)
    for photo in photos:
        jobs.add("unlit", picture=jobs.picture(photo), lighting=lighting())
    found = [result["unlit"] for result in jobs.run()]
    assert found == [unsuitable(photo) for photo in photos]
    assert set(found) >= {
        {"as they are": "", "dark": "too dark", "gray and dark": "too gray", "gray and bright": ""}[kind]
    }
