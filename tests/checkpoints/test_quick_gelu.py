"""Weights that were trained with quick-GELU compute with it, whatever their configuration calls the architecture."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save, save_file
from torch import Tensor, nn

from tests.checkpoints.fake_hub import Hub
from tests.model.inside import randomise
from vit_viz.checkpoints import load
from vit_viz.checkpoints.architectures import ARCHITECTURES, architecture
from vit_viz.checkpoints.quick_gelu import PUBLISHED, timm_weights_are

pytestmark = pytest.mark.numbers

timm = pytest.importorskip("timm", reason="timm is the oracle of these tests")
transformers = pytest.importorskip("transformers", reason="transformers is an oracle of these tests")

SIZE = {"img_size": 24, "patch_size": 6, "embed_dim": 40, "depth": 3, "num_heads": 5}
ARGUMENTS = {"num_heads": 5, "img_size": 24}
BASE, QUICK = "vit_base_patch16_clip_224", "vit_base_patch16_clip_quickgelu_224"
HF = {
    "hidden_size": 40,
    "num_hidden_layers": 3,
    "num_attention_heads": 5,
    "image_size": 24,
    "patch_size": 6,
    "intermediate_size": 120,
}


def registry() -> list[tuple[str, Any]]:
    """(architecture.tag, what timm knows of it) of all architectures of timm's that we load."""
    from timm.models._registry import _model_pretrained_cfgs

    return [
        (name, cfg)
        for name, cfg in sorted(_model_pretrained_cfgs.items())
        if "refused" not in (architecture(name) or {"refused": ""})
    ]


def is_native(cfg: Any) -> bool:
    return any("natively QuickGELU" in note for note in cfg.notes or ())


def test_our_rule_agrees_with_timms_notes_for_every_tag() -> None:
    wrong, native = [], 0
    for full, cfg in registry():
        base, _, tag = full.partition(".")
        if not tag:  # timm's default of that architecture, not a name of weights
            assert not timm_weights_are(full, {}, head=cfg.num_classes)
            continue
        native += is_native(cfg)
        described: tuple[tuple[str, dict[str, Any]], ...] = (
            (full, {}),  # a file of that name
            (
                "model",
                {"architecture": base, "pretrained_cfg": {"tag": tag}},
            ),  # a folder with timm's config.json
            ("clip", {"architecture": base, "hub_id": f"timm/{full}"}),  # the Hub
        )
        for name, settings in described:
            named = ARCHITECTURES[base].get("mlp") == "quick_gelu"
            ours = named or timm_weights_are(name, settings, head=cfg.num_classes or None)
            if ours != is_native(cfg):
                wrong.append((full, name, ours))
    assert wrong == []
    assert native >= 30


def test_the_table_holds_no_tag_that_timm_does_not_have() -> None:
    known = dict(registry())
    for base, (tags, width) in PUBLISHED.items():
        for tag in tags:
            assert known[f"{base}.{tag}"].num_classes == width


def test_a_note_is_enough_for_a_tag_that_the_table_does_not_have() -> None:
    note = "natively QuickGELU, use quickgelu model variant for original results"
    recipe = {"tag": "of_tomorrow", "notes": [note], "num_classes": 640}
    settings = {"architecture": "vit_base_patch16_plus_clip_240", "pretrained_cfg": recipe}
    assert timm_weights_are("model", settings, head=640)
    assert not timm_weights_are("model", settings, head=639)
    assert not timm_weights_are(
        "model", {**settings, "pretrained_cfg": {**recipe, "notes": ["fast"]}}, head=640
    )


def tiny(architecture_name: str, classes: int) -> nn.Module:
    torch.manual_seed(0)
    return randomise(timm.create_model(architecture_name, **SIZE, num_classes=classes))


def logits(model: nn.Module) -> tuple[Tensor, Tensor]:
    pixels = torch.randn(2, 3, 24, 24)
    with torch.no_grad():
        return pixels, model(pixels)


def is_close(ours: Tensor, theirs: Tensor) -> bool:
    return float((ours - theirs).abs().max()) <= 1e-5 * float(theirs.abs().max())


@pytest.mark.parametrize(
    ("file", "config", "classes", "reference"),
    [
        ("model", {"pretrained_cfg": {"tag": "openai"}}, 512, QUICK),
        ("vit_base_patch16_clip_224.metaclip_400m", {}, 512, QUICK),
        ("model", {"pretrained_cfg": {"tag": "openai"}}, 0, QUICK),  # features: the head was taken off
        (
            "model",
            {"pretrained_cfg": {"tag": "openai"}},
            7,
            BASE,
        ),  # fine-tuned with the activation of its name
        ("model", {"pretrained_cfg": {"tag": "laion2b"}}, 512, BASE),
        ("vit_base_patch16_clip_224.fp16", {}, 512, BASE),
    ],
)
def test_timms_clip_computes_with_the_activation_that_it_was_trained_with(
    tmp_path: Path, file: str, config: dict[str, Any], classes: int, reference: str
) -> None:
    model = tiny(reference, classes)
    save_file(dict(model.state_dict()), tmp_path / f"{file}.safetensors")
    settings = {"architecture": BASE, "model_args": ARGUMENTS, **config}
    (tmp_path / "config.json").write_text(json.dumps(settings))
    loaded = load(tmp_path, device="cpu")
    pixels, expected = logits(model)
    assert loaded.config.mlp == ("quick_gelu" if reference == QUICK else "gelu")
    with torch.no_grad():
        assert is_close(loaded.model(pixels), expected)
    assumed = dict(loaded.provenance.parameters).get("assumed", "")
    assert ("quick-GELU" in assumed) == (reference == QUICK)


def test_clip_of_the_catalog_is_quick_gelu_without_a_tag_in_its_configuration(hub: Hub) -> None:
    repo = "timm/vit_base_patch16_clip_224.openai"
    model = tiny(QUICK, 512)
    hub.offer(repo, content=save(dict(model.state_dict())), architecture=BASE, model_args=ARGUMENTS)
    loaded = load("clip-b16", device="cpu")
    pixels, expected = logits(model)
    with torch.no_grad():
        assert is_close(loaded.model(pixels), expected)


@pytest.mark.parametrize(
    ("repo", "stated", "computed"),
    [
        ("openai/clip-vit-base-patch16", "gelu", "quick_gelu"),
        ("facebook/metaclip-b32-400m", "gelu", "quick_gelu"),
        ("somebody/clip-vit-base-patch16", "gelu", "gelu"),
        ("somebody/clip-vit-base-patch16", "quick_gelu", "quick_gelu"),
        ("somebody/clip-vit-base-patch16", None, "quick_gelu"),  # transformers' default
        ("laion/CLIP-ViT-B-32-laion2B-s34B-b79K", "gelu", "gelu"),
    ],
)
def test_transformers_clip_follows_its_configuration_unless_its_publisher_is_known(
    hub: Hub, tmp_path: Path, repo: str, stated: str | None, computed: str
) -> None:
    config = transformers.CLIPVisionConfig(**HF, hidden_act=computed, projection_dim=9)
    model = randomise(transformers.CLIPVisionModelWithProjection(config))
    model.save_pretrained(tmp_path / "saved")
    settings = json.loads((tmp_path / "saved" / "config.json").read_text())
    settings["hidden_act"] = stated
    hub.files[repo, "config.json"] = json.dumps({k: v for k, v in settings.items() if v is not None}).encode()
    hub.files[repo, "model.safetensors"] = (tmp_path / "saved" / "model.safetensors").read_bytes()
    loaded = load(repo, device="cpu")
    pixels = torch.randn(2, 3, 24, 24)
    with torch.no_grad():
        assert is_close(loaded.model(pixels), model(pixels).image_embeds)
    assert ("assumed" in dict(loaded.provenance.parameters)) == (stated == "gelu" != computed)
