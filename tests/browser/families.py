"""Tiny models that between them have every choice of `ViTConfig`, and sizes of input that they were not trained for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from tests.browser.engine import Jobs
from tests.model.inside import randomise
from vit_viz.browser import write_weights
from vit_viz.checkpoints import LoadedModel
from vit_viz.model import VisionTransformer, ViTConfig

TINY = {
    "img_size": (24, 42), "patch_size": (6, 7), "embed_dim": 40, "depth": 3, "num_heads": 5, "mlp_hidden": 54, "num_classes": 7,
}  # fmt: skip
"""A grid of 4 x 6, a head_dim of 8; no two sizes are equal."""


@dataclass(frozen=True)
class Case:
    """A configuration beside `TINY`, and an input of it."""

    config: dict[str, Any] = field(default_factory=dict)
    size: tuple[int, int] = (24, 42)


BEIT = {"position": "none", "layer_scale": True, "pooling": "mean", "fc_norm": True, "final_norm": False}
EVA = {"rotary_grid": (3, 5), "rotary_base": 10_000.0, "qk_norm": True, "mlp": "swiglu"}
LARGER, SMALLER = (42, 70), (12, 21)

CASES: dict[str, Case] = {
    "plain": Case(),
    "registers": Case({"reg_tokens": 4, "no_embed_class": True}),
    "registers with positions": Case({"reg_tokens": 2}, LARGER),
    "distillation": Case({"dist_token": True, "dist_head": True}),
    "distillation, norm after": Case({"dist_token": True, "dist_head": True, "fc_norm": True, "final_norm": False}),
    "distillation token alone": Case({"dist_token": True, "reg_tokens": 1}, SMALLER),
    "no prefix, mean": Case({"class_token": False, "pooling": "mean"}),
    "mean with prefix": Case({"pooling": "mean", "pool_prefix": True, "reg_tokens": 1, "fc_norm": True}),
    "class token and mean": Case({"pool_concat": True, "reg_tokens": 1}),
    "attention pooling": Case({"class_token": False, "pooling": "attention"}),
    "attention pooling with prefix": Case({"pooling": "attention", "pool_prefix": True, "mlp_norm": True, "mlp": "gelu_tanh"}),
    "attention pooling beside a gate": Case({"pooling": "attention", "mlp": "swiglu_packed", "scale": 0.7, "mlp_norm": True}),
    "1-D sinusoids": Case({"position": "sinusoidal_1d"}, SMALLER),
    "2-D sinusoids": Case({"position": "sinusoidal_2d", "reg_tokens": 1}, LARGER),
    "2-D sinusoids of patches": Case({"position": "sinusoidal_2d", "no_embed_class": True}),
    "dinov3": Case({"position": "rotary", "reg_tokens": 4, "layer_scale": True}, LARGER),
    "rotary, another base": Case({"position": "rotary", "rotary_base": 33.0, "class_token": False, "pooling": "mean"}),
    "eva-02": Case(EVA, LARGER),
    "no positions": Case({"position": "none"}),
    "beit": Case(BEIT | {"relative_bias": True}),
    "beit, larger": Case(BEIT | {"relative_bias": True}, LARGER),
    "beit, as transformers": Case(BEIT | {"relative_bias": True, "resample": "transformers"}, SMALLER),
    "beit, shared": Case(BEIT | {"shared_bias": True}, SMALLER),
    "beit, shared and own": Case(BEIT | {"shared_bias": True, "relative_bias": True, "attn_norm": True}, LARGER),
    "no biases": Case({"qkv_bias": False, "proj_bias": False, "mlp_bias": False, "patch_bias": False, "head_bias": False}),
    "query and key norms": Case({"qk_norm": True, "scale": 1.3}),
    "inner norms": Case({"attn_norm": True, "mlp_norm": True}),
    "clip": Case({"pre_norm": True, "mlp": "quick_gelu", "patch_bias": False, "projection": True}),
    "tanh gelu": Case({"mlp": "gelu_tanh"}),
    "swiglu": Case({"mlp": "swiglu", "mlp_norm": True}),
    "packed swiglu": Case({"mlp": "swiglu_packed", "mlp_bias": False, "mlp_norm": True}),
    "aimv2": Case({"norm": "rms", "norm_eps": 1e-5, "patch_norm": True, "class_token": False, "pooling": "mean", "mlp": "swiglu"}),
    "rms norms everywhere": Case({"norm": "rms", "qk_norm": True, "attn_norm": True, "pre_norm": True, "fc_norm": True}),
    "no head": Case({"num_classes": 0}),
    "no head, joined": Case({"num_classes": 0, "pool_concat": True}),
    "one channel, unfolded": Case({"in_chans": 1, "patch_embed": "unfold"}),
    "five channels": Case({"in_chans": 5}),
    "padded": Case({"pad": True, "img_size": (23, 40)}, (29, 44)),
    "remainder dropped": Case({"drop_remainder": True, "img_size": (26, 45)}, (41, 50)),
    **{f"resampled as {name}, larger": Case({"resample": name}, LARGER) for name in (
        "timm", "bilinear", "dino", "dinov2", "dinov2_reg", "transformers", "torchvision",
    )},
    **{f"resampled as {name}, smaller": Case({"resample": name}, SMALLER) for name in (
        "timm", "bilinear", "dino", "dinov2", "dinov2_reg", "transformers", "torchvision",
    )},
    "one patch": Case({"resample": "torchvision"}, (6, 7)),
    "more tokens than a block": Case({"depth": 1}, (66, 91)),
    "biased, more tokens than a block": Case(BEIT | {"depth": 2, "relative_bias": True}, (66, 91)),
    "odd widths": Case({"embed_dim": 21, "num_heads": 3, "mlp_hidden": 13, "qk_norm": True}),
}  # fmt: skip


def models(like: LoadedModel, jobs: Jobs) -> Iterator[tuple[VisionTransformer, Tensor, dict[str, Any]]]:
    """Of each case a model of random weights, a random input of it, and what a job is told of both."""
    for number, case in enumerate(CASES.values()):
        config = ViTConfig(**TINY | case.config)
        torch.manual_seed(number)
        model = randomise(VisionTransformer(config)).eval()
        path = jobs.folder / f"{number}.safetensors"
        write_weights(replace(like, model=model, config=config, labels=None), path, storage="fp32")
        pixels = torch.randn(1, config.in_chans, *case.size)
        height, width = case.size
        about = {"path": str(path), "height": height, "width": width, "pixels": jobs.numbers(pixels.numpy())}
        yield model, pixels, about
