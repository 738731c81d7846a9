"""CLIP as OpenAI and open_clip save it: their training files, the vision tower alone, and OpenAI's TorchScript archive."""

from __future__ import annotations

import json
import warnings
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.checkpoints.test_families import check
from tests.comparing import assert_same
from tests.model.inside import randomise
from vit_viz.checkpoints import load

pytestmark = pytest.mark.numbers


class QuickGelu(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * torch.sigmoid(1.702 * x)


class LayerScale(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(64))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.gamma


class OpenClipBlock(nn.Module):
    """As ResidualAttentionBlock of OpenAI's clip/model.py and of open_clip."""

    def __init__(self, heads: int, act: type[nn.Module], scale: type[nn.Module]) -> None:
        super().__init__()
        self.attn = nn.MultiheadAttention(64, heads, batch_first=True)
        self.ln_1, self.ln_2, self.ls_1, self.ls_2 = nn.LayerNorm(64), nn.LayerNorm(64), scale(), scale()
        layers = {"c_fc": nn.Linear(64, 104), "gelu": act(), "c_proj": nn.Linear(104, 64)}
        self.mlp = nn.Sequential(OrderedDict(layers))

    def forward(self, x: Tensor) -> Tensor:
        packed = F.linear(self.ln_1(x), self.attn.in_proj_weight, self.attn.in_proj_bias)
        q, k, v = packed.unflatten(2, (3, self.attn.num_heads, -1)).permute(2, 0, 3, 1, 4)
        mixed = (
            F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        )  # as the module does, but seen
        x = x + self.ls_1(self.attn.out_proj(mixed))
        return x + self.ls_2(self.mlp(self.ln_2(x)))  # type: ignore[no-any-return]


class OpenClipTower(nn.Module):
    def __init__(
        self, heads: int, act: type[nn.Module] = nn.GELU, scale: type[nn.Module] = nn.Identity
    ) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 6, 6, bias=False)
        self.class_embedding = nn.Parameter(torch.zeros(64))
        self.positional_embedding = nn.Parameter(torch.zeros(17, 64))
        self.ln_pre, self.ln_post = nn.LayerNorm(64), nn.LayerNorm(64)
        self.transformer = nn.Module()
        self.transformer.resblocks = nn.Sequential(*(OpenClipBlock(heads, act, scale) for _ in range(3)))
        self.proj = nn.Parameter(torch.zeros(64, 7))

    def forward(self, pixels: Tensor) -> Tensor:
        x = self.conv1(pixels).flatten(2).transpose(1, 2)
        x = torch.cat([self.class_embedding.expand(len(x), 1, -1), x], 1) + self.positional_embedding
        x = self.transformer.resblocks(self.ln_pre(x))  # type: ignore[operator]
        return self.ln_post(x[:, 0]) @ self.proj  # type: ignore[no-any-return]


class OpenClip(nn.Module):
    """Two towers; the text tower has names that the other has, too, behind visual."""

    def __init__(self, tower: OpenClipTower) -> None:
        super().__init__()
        self.visual, self.transformer = tower, nn.Module()
        self.transformer.resblocks = nn.Sequential(
            *(OpenClipBlock(4, nn.GELU, nn.Identity) for _ in range(2))
        )
        self.token_embedding, self.ln_final = nn.Embedding(9, 64), nn.LayerNorm(64)
        self.positional_embedding = nn.Parameter(torch.zeros(5, 64))
        self.text_projection, self.logit_scale = (
            nn.Parameter(torch.zeros(64, 7)),
            nn.Parameter(torch.zeros(())),
        )
        self.register_buffer("input_resolution", torch.tensor(24))

    def forward(self, pixels: Tensor) -> Tensor:
        return self.visual(pixels)  # type: ignore[no-any-return]


QUICK = {"model_cfg": {"quick_gelu": True, "vision_cfg": {"image_size": 24, "head_width": 16}}}


@pytest.mark.parametrize("form", ["training", "tower", "plain"])
@pytest.mark.parametrize(("heads", "act", "config"), [(1, nn.GELU, None), (4, QuickGelu, QUICK)])
def test_open_clips_own_files_compute_the_same(
    tmp_path: Path, form: str, heads: int, act: type[nn.Module], config: Any
) -> None:
    both = randomise(OpenClip(OpenClipTower(heads, act, LayerScale if heads == 4 else nn.Identity))).eval()
    assert isinstance(both, OpenClip)
    del both.input_resolution
    state = both.state_dict()
    saved = {
        "training": {"epoch": 3, "name": "run", "state_dict": {f"module.{n}": t for n, t in state.items()}},
        "tower": both.visual.state_dict(),
        "plain": state,
    }
    torch.save(saved[form], tmp_path / "epoch_3.pt")
    if config is not None:
        (tmp_path / "config.json").write_text(json.dumps(config))
    loaded = check(
        tmp_path / "epoch_3.pt",
        both.visual,
        both.visual.transformer.resblocks,
        both.visual,
        torch.randn(2, 3, 24, 24),
    )
    told = dict(loaded.provenance.parameters)
    assert (loaded.family, loaded.config.projection) == ("open_clip", True)
    assert ("quick GELU" in told.get("assumed", "")) == (config is None)


def test_openais_archive_is_read_without_its_code(tmp_path: Path) -> None:
    both = randomise(OpenClip(OpenClipTower(1, QuickGelu)))
    pixels = torch.randn(1, 3, 24, 24)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own, about a thing of the past that people still load
        torch.jit.trace(both, pixels, check_trace=False).save(tmp_path / "ViT-T-6.pt")  # type: ignore[no-untyped-call]
    loaded = load(tmp_path / "ViT-T-6.pt", device="cpu")
    assert (loaded.config.mlp, "assumed" in dict(loaded.provenance.parameters)) == ("quick_gelu", False)
    assert_same(loaded.model(pixels), both(pixels), relative=1e-5)
