"""A checkpoint that others have written is to the engine what it is to `vit_viz.load`: architecture, preprocessing, numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from tests.browser.engine import Jobs
from tests.browser.oracle import PARITY, differences, oracle
from tests.model.inside import randomise
from vit_viz.browser.published import published_models
from vit_viz.checkpoints import load
from vit_viz.samples import sample

pytestmark = pytest.mark.numbers

timm = pytest.importorskip("timm", reason="timm is an oracle of these tests")
transformers = pytest.importorskip("transformers", reason="transformers is an oracle of these tests")
transformers.utils.logging.set_verbosity_error()

State = dict[str, Tensor]
SIZES = {"img_size": 24, "patch_size": 6, "embed_dim": 128, "depth": 3, "num_heads": 2, "num_classes": 7}
NARROW = SIZES | {"embed_dim": 40, "num_heads": 5}  # which the name alone tells
HF = {"hidden_size": 128, "num_hidden_layers": 3, "num_attention_heads": 2, "image_size": 24, "patch_size": 6}


def of_timm(architecture: str, **sizes: Any) -> State:
    model = randomise(timm.create_model(architecture, pretrained=False, **{**SIZES, **sizes}))
    return dict(model.state_dict())


def of_transformers(kind: str, **config: Any) -> State:
    model = getattr(transformers, kind)
    return dict(randomise(model(model.config_class(**HF, num_labels=7, **config))).state_dict())


def as_dinov2(state: State) -> State:
    """Under the names of its authors: the class token has a position, registers have none."""
    names = {"reg_token": "register_tokens", ".mlp.fc1.": ".mlp.w12.", ".mlp.fc2.": ".mlp.w3."}
    gated = state["blocks.0.mlp.fc1.weight"].shape[0] == 2 * state["blocks.0.mlp.fc2.weight"].shape[1]
    renamed = {}
    for name, tensor in state.items():
        for timms, own in names.items():
            name = name.replace(timms, own) if gated or "mlp" not in timms else name
        renamed[name] = tensor
    if "reg_token" in state:
        renamed["pos_embed"] = torch.cat([torch.randn(1, 1, 128), state["pos_embed"]], dim=1)
    return renamed | {"mask_token": torch.randn(1, 128)}


CASES: dict[str, tuple[str, Callable[[], State]]] = {
    "timm ViT": ("mine", lambda: of_timm("vit_tiny_patch16_224")),
    "timm ViT, no head": ("mine", lambda: of_timm("vit_tiny_patch16_224", num_classes=0)),
    "timm DeiT, distilled": ("mine", lambda: of_timm("deit_tiny_distilled_patch16_224")),
    "timm DeiT III": ("deit3_small_patch16_224.fb_in1k", lambda: of_timm("deit3_small_patch16_224", num_heads=6, embed_dim=48)),
    "timm DINOv2": ("model", lambda: of_timm("vit_small_patch14_reg4_dinov2")),
    "timm DINOv2, gated": ("mine", lambda: of_timm("vit_giant_patch14_dinov2")),
    "timm, mean": ("vit_little_patch16_reg4_gap_256", lambda: of_timm("vit_little_patch16_reg4_gap_256", **NARROW)),
    "timm ViT, named": ("vit_tiny_patch16_224", lambda: of_timm("vit_tiny_patch16_224", embed_dim=48, num_heads=3)),
    "timm MAE, named": (
        "vit_base_patch16_224.mae", lambda: of_timm("vit_base_patch16_224", embed_dim=48, num_heads=12, num_classes=0)
    ),
    "timm MIIL, named": ("vit_base_patch16_224_miil", lambda: of_timm("vit_base_patch16_224_miil", embed_dim=48, num_heads=12)),
    "timm CLIP, squashed": (
        "vit_base_patch16_clip_384.openai_ft_in1k", lambda: of_timm("vit_base_patch16_clip_384", embed_dim=48, num_heads=12)
    ),
    "timm SigLIP": ("mine", lambda: of_timm("vit_base_patch16_siglip_224")),
    "timm CLIP": ("mine", lambda: of_timm("vit_base_patch16_clip_224")),
    "timm CLIP of OpenAI": (
        "vit_base_patch16_clip_224.openai",
        lambda: of_timm("vit_base_patch16_clip_quickgelu_224", embed_dim=48, num_heads=12, num_classes=512),
    ),
    "timm, patches as a linear layer": ("mine", lambda: {
        name: tensor.flatten(1) if name == "patch_embed.proj.weight" else tensor
        for name, tensor in of_timm("vit_tiny_patch16_224").items()
    }),
    "timm, bfloat16": ("mine", lambda: {
        name: tensor.bfloat16() for name, tensor in of_timm("vit_tiny_patch16_224").items()
    }),
    "timm, one channel": ("mine", lambda: of_timm("vit_tiny_patch16_224", in_chans=1)),
    "DINO": ("dino_deitsmall16", lambda: of_timm("vit_small_patch16_224", num_classes=0)),
    "DINO with its training": ("mine", lambda: {
        **{f"backbone.{name}": tensor for name, tensor in of_timm("vit_small_patch16_224", num_classes=0).items()},
        "head.mlp.0.weight": torch.randn(4, 4), "head.last_layer.weight_g": torch.randn(4, 1),
    }),
    "DINOv2": ("mine", lambda: as_dinov2(of_timm("vit_small_patch14_dinov2", num_classes=0))),
    "DINOv2, registers": ("mine", lambda: as_dinov2(of_timm("vit_small_patch14_reg4_dinov2", num_classes=0))),
    "DINOv2, gated": ("mine", lambda: as_dinov2(of_timm("vit_giant_patch14_reg4_dinov2", num_classes=0))),
    "transformers ViT": ("mine", lambda: of_transformers("ViTForImageClassification", intermediate_size=60)),
    "transformers DeiT": ("mine", lambda: of_transformers("DeiTForImageClassificationWithTeacher")),
    "transformers DINOv2": ("mine", lambda: of_transformers("Dinov2Model")),
    "transformers DINOv2, gated": ("mine", lambda: of_transformers("Dinov2Model", use_swiglu_ffn=True)),
    "transformers DINOv2, registers": ("mine", lambda: of_transformers("Dinov2WithRegistersModel")),
}  # fmt: skip


@pytest.fixture(scope="module")
def passes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Of each checkpoint what the engine makes of it and a photo, all in one process of Node.js, and what Python loads."""
    folder, image = tmp_path_factory.mktemp("checkpoints"), sample("runner")
    jobs, loaded = Jobs(folder), []
    for number, (name, make) in enumerate(CASES.values()):
        torch.manual_seed(number)
        path = folder / str(number) / f"{name}.safetensors"
        path.parent.mkdir()
        save_file({key: tensor.contiguous() for key, tensor in make().items()}, path)
        about = published_models() | {"name": name}
        jobs.add("photo", path=str(path), picture=jobs.picture(image), options={"mode": "crop"}, about=about)
        loaded.append(load(path, device="cpu"))
    return dict(zip(CASES, zip(jobs.run(), loaded, strict=True), strict=True))


@pytest.mark.parametrize("case", CASES)
def test_a_file_of_others_is_what_python_makes_of_it(passes: dict[str, Any], case: str) -> None:
    result, loaded = passes[case]
    assert "error" not in result, result["error"]
    assert result["said"]["config"] == loaded.config.to_dict()
    recipe = loaded.preprocess.to_dict()
    assert result["said"]["recipe"] == recipe | {
        name: pytest.approx(recipe[name], rel=1e-15) for name in ("mean", "std")
    }
    assert result["said"]["labels"] is None
    family, *notes = result["said"]["notes"]
    assumed = " ".join(notes)
    assert family.startswith(f"Recognised as {loaded.family.split(' / ')[0]}")
    pixels = loaded.preprocess.apply(sample("runner"), mode="crop").pixels
    apart = differences(result, oracle(loaded.model, pixels))
    assert {name: value for name, value in apart.items() if value > PARITY} == {}
    guessed = "heads" in dict(loaded.provenance.parameters).get("assumed", "")
    assert ("2 heads of 64 numbers" in assumed) == guessed
    is_published = dict(loaded.provenance.parameters)["preprocessing"] == "of timm's weights of this name"
    assert ("Pictures are prepared as timm does it for its weights of this name" in assumed) == is_published
    assert ("a preprocessing (bicubic; channels less 0." in assumed) != is_published


def test_a_thousand_classes_are_those_of_imagenet(tmp_path: Path) -> None:
    path, jobs = tmp_path / "mine.safetensors", Jobs(tmp_path)
    save_file(of_timm("vit_tiny_patch16_224", num_classes=1000), path)
    about = published_models() | {"name": "mine"}
    jobs.add("photo", path=str(path), picture=jobs.picture(sample("lion")), options={}, about=about)
    (named,) = jobs.run()
    labels = load(path, device="cpu").labels
    assert labels is not None
    assert named["said"]["labels"] == list(labels.names)
