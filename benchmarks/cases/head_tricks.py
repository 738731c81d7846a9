"""What the projection reads of a head, with honest twins; softmax by hand and tokens of zeros, in half precision too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor, nn

from benchmarks.cases.from_timm import softmaxes
from benchmarks.cases.stand_ins import NOT_PROVEN, PROVEN, of_blocks
from benchmarks.cases.truth import Case, Truth, raster
from tests.capture import head_tricks
from tests.capture.stand_ins import Attention, StandIn

GRID, SIZE = (3, 5), (48, 80)
HALVES = (torch.float16, torch.bfloat16)
SIZES = {
    "hidden_size": 40, "num_hidden_layers": 3, "num_attention_heads": 5, "intermediate_size": 56, "patch_size": 16,
    "image_size": [48, 80],
}  # fmt: skip


def cases() -> Iterator[Case]:
    """Tricks and twins, each in all blocks and in one of three; then the models in half precision."""
    for kind in head_tricks.TRICKS:
        yield of_blocks(f"heads, {kind.__name__}", [kind] * 3, NOT_PROVEN)
        yield of_blocks(f"heads, {kind.__name__} in the last block", [Attention, Attention, kind], NOT_PROVEN)
    for kind in head_tricks.TWINS:
        yield of_blocks(f"heads, {kind.__name__}", [kind] * 3, PROVEN)
    for dtype in (torch.float32, *HALVES):
        yield from _written_out(dtype)


def _written_out(dtype: torch.dtype) -> Iterator[Case]:
    precision = str(dtype).removeprefix("torch.")
    builds: dict[str, Callable[[], nn.Module]] = {
        "timm ViT, unfused": _timm,
        "transformers ViT, eager": partial(_transformers, "ViTModel", "ViTConfig"),
        "transformers YOLOS, eager": partial(_transformers, "YolosModel", "YolosConfig"),
        "top-k attention": partial(StandIn, [head_tricks.TopKeys] * 3),
    }
    for name, build in builds.items():
        for is_fresh in (False, True):
            size, oracle = (SIZE, truth) if "top-k" not in name else ((24, 40), truth)
            words = f"{precision}: {name}{', with fresh weights' if is_fresh else ''}"
            yield Case(words, build, oracle, size, PROVEN, dtype=dtype, is_fresh=is_fresh)


def truth(model: nn.Module, pixels: Tensor) -> Truth:
    """What each softmax of the model gives, in its own precision; the class token stands first."""
    calls = [attention[0].float() for attention in softmaxes(model, pixels)]
    return Truth(calls, GRID, raster(GRID, first=1), 0)


def _timm() -> nn.Module:
    from timm.models.vision_transformer import VisionTransformer

    model = VisionTransformer(img_size=SIZE, patch_size=16, embed_dim=40, depth=3, num_heads=5, num_classes=7)
    for block in model.blocks:
        block.attn.fused_attn = False
    return model


def _transformers(model: str, config: str) -> nn.Module:
    import transformers

    choices = SIZES | ({"num_detection_tokens": 4} if model.startswith("Yolos") else {})
    made = getattr(transformers, model)(getattr(transformers, config)(**choices))
    made.set_attn_implementation("eager")
    for name, parameter in made.embeddings.named_parameters():
        if "token" in name or "position" in name:
            nn.init.zeros_(parameter)
    return made
