"""Inputs that the patch does not divide (SigLIP SO400M: patches of 14 in 384 px): the last pixels are left out, and shown so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from tests.model.inside import look_inside, randomise
from vit_viz.analyses.patches import _left_out
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.capture import trace
from vit_viz.checkpoints import LoadedModel, load

pytestmark = pytest.mark.numbers

timm = pytest.importorskip("timm", reason="timm is an oracle of these tests")
transformers = pytest.importorskip("transformers", reason="transformers is an oracle of these tests")

SIDE, PATCH = 48, 14  # 3 x 3 patches, and 6 pixels that are left over, as 27 x 27 in 384
GRID, COVERED = (3, 3), 42
SQUASHED = {"mean": [0.5] * 3, "std": [0.5] * 3, "crop_pct": 1.0, "crop_mode": "squash"}


def saved_by_timm(folder: Path, **options: Any) -> Any:
    name = "vit_so400m_patch14_siglip_384"
    size = {
        "img_size": SIDE,
        "patch_size": PATCH,
        "embed_dim": 40,
        "depth": 3,
        "num_heads": 5,
        "num_classes": 0,
    }
    model = randomise(timm.create_model(name, **size))
    save_file(dict(model.state_dict()), folder / "model.safetensors")
    recipe = {"input_size": [3, SIDE, SIDE], **SQUASHED, **options}
    settings = {"architecture": name, "pretrained_cfg": recipe, "model_args": {"num_heads": 5}}
    (folder / "config.json").write_text(json.dumps(settings))
    return model


def saved_by_transformers(folder: Path) -> Any:
    config = transformers.SiglipVisionConfig(
        hidden_size=40,
        num_hidden_layers=3,
        num_attention_heads=5,
        intermediate_size=120,
        image_size=SIDE,
        patch_size=PATCH,
    )
    model = randomise(transformers.SiglipVisionModel(config))
    model.save_pretrained(folder)
    recipe = {
        "size": {"height": SIDE, "width": SIDE},
        "resample": 3,
        "image_mean": [0.5] * 3,
        "image_std": [0.5] * 3,
    }
    (folder / "preprocessor_config.json").write_text(json.dumps(recipe))
    return model


@pytest.mark.parametrize("library", ["timm", "transformers"])
def test_patch_14_with_pixels_left_over_computes_the_same(tmp_path: Path, library: str) -> None:
    model = saved_by_timm(tmp_path) if library == "timm" else saved_by_transformers(tmp_path)
    blocks = model.blocks if library == "timm" else model.encoder.layers
    loaded, pixels = load(tmp_path, device="cpu"), torch.randn(2, 3, SIDE, SIDE)
    ours, inside = look_inside(loaded.model, loaded.model.blocks, lambda: loaded.model(pixels))
    theirs, other = look_inside(
        model, blocks, lambda: model(pixels) if library == "timm" else model(pixels).pooler_output
    )
    assert loaded.config.grid == GRID
    assert loaded.config.img_size == loaded.preprocess.input_size == (SIDE, SIDE)
    for a, b in zip([ours, *inside.blocks], [theirs, *other.blocks], strict=True):
        assert float((a - b).abs().max()) <= 1e-5 * float(b.abs().max())
    assert len(other.attention) >= 3  # the pool of transformers attends in one kernel, which forms no matrix
    for a, b in zip(inside.attention[: len(other.attention)], other.attention, strict=True):
        assert float((a - b).abs().max()) <= 1e-5 * float(b.abs().max())


def test_the_architectures_name_alone_tells_the_size_of_the_input() -> None:
    from vit_viz.checkpoints.families import timm as family
    from vit_viz.checkpoints.families.base import Checkpoint

    name = "vit_so400m_patch14_siglip_384"
    with torch.device("meta"):
        model = timm.create_model(name, depth=1)
    checkpoint = Checkpoint(state=model.state_dict(), name=name)
    config = family.infer_config(checkpoint, dict(checkpoint.state)).config
    assert (config.img_size, config.grid, config.drop_remainder) == ((384, 384), (27, 27), True)


def photo() -> Image.Image:
    return Image.fromarray(np.random.default_rng(0).integers(0, 256, (96, 144, 3), dtype=np.uint8))


@pytest.mark.parametrize(
    ("mode", "region", "input_size"),
    [
        ("stretch", (0, 0, 96 * 42 / 48, 144 * 42 / 48), (42, 42)),
        ("crop", (0, 0, 96 * 42 / 48, 144 * 42 / 48), (42, 42)),  # squashed: nothing else is cut off
        ("fit", (0, 0, 96, 144), (42, 70)),
    ],
)
def test_the_crop_box_is_what_the_patches_cover(
    tmp_path: Path, mode: Any, region: tuple[float, ...], input_size: tuple[int, int]
) -> None:
    saved_by_timm(tmp_path)
    recorded = trace(load(tmp_path, device="cpu"), photo(), mode=mode)
    box = recorded.crop_box
    assert box is not None
    assert box.region == pytest.approx(region)
    assert box.input_size == input_size
    assert recorded.layout.grid == (input_size[0] // PATCH, input_size[1] // PATCH)


def test_dropping_before_the_model_changes_nothing(tmp_path: Path) -> None:
    saved_by_transformers(tmp_path)
    loaded = load(tmp_path, device="cpu")
    pixels = torch.randn(1, 3, SIDE, SIDE)
    with torch.no_grad():
        assert torch.equal(loaded.model(pixels), loaded.model(pixels[..., :COVERED, :COVERED]))


def test_pixels_of_the_whole_input_are_traced_and_explained_on_the_grid(tmp_path: Path) -> None:
    saved_by_timm(tmp_path)
    loaded, pixels = load(tmp_path, device="cpu"), torch.randn(1, 3, SIDE, SIDE)
    assert trace(loaded, pixels).layout.grid == GRID
    assert PreparedImage.of(loaded, pixels).pixels.shape[-2:] == (COVERED, COVERED)


def words(loaded: LoadedModel, mode: Any) -> str:
    box = trace(loaded, photo(), mode=mode).crop_box
    assert box is not None
    return _left_out(box, loaded.preprocess)


def test_the_patches_view_says_what_was_left_out_and_why(tmp_path: Path) -> None:
    saved_by_timm(tmp_path)
    loaded = load(tmp_path, device="cpu")
    assert words(loaded, "fit") == "photo 96 x 144 px to input 42 x 70 px, the whole photo"
    assert words(loaded, "stretch") == (
        "photo 96 x 144 px to input 42 x 42 px, 23.4% of the photo left out: "
        "the last 6 rows and 6 columns of its 48 x 48 px fill no patch"
    )
