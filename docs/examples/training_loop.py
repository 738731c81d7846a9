"""The relevance of one photo while a small Vision Transformer is trained: a picture every few steps.

    python docs/examples/training_loop.py [FOLDER]

Writes to TensorBoard where that is installed (torch.utils.tensorboard), else PNG files of the same names into FOLDER.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional as F

import vit_viz as vv

PATCH, ROWS, COLS, HEADS, DIM = 8, 4, 6, 2, 32
LAYOUT = vv.TokenLayout(grid=(ROWS, COLS), prefix=("class",))
"""Which token is what; a model of timm or transformers tells it itself."""
COLOURS = np.array([(220, 60, 40), (40, 160, 90), (60, 90, 220)], np.uint8)
"""One for each class: which colour is the square?"""


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.proj = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (3, HEADS, DIM // HEADS)).permute(2, 0, 3, 1, 4)
        return self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.attn, self.norm2 = nn.LayerNorm(DIM), Attention(), nn.LayerNorm(DIM)
        self.mlp = nn.Sequential(nn.Linear(DIM, 2 * DIM), nn.GELU(), nn.Dropout(0.1), nn.Linear(2 * DIM, DIM))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class SmallViT(nn.Module):
    """A classifier as a tutorial writes it; vit_viz knows nothing about it."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Conv2d(3, DIM, PATCH, PATCH)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, DIM))
        self.pos_embed = nn.Parameter(torch.randn(1, 1 + ROWS * COLS, DIM) * 0.02)
        self.blocks = nn.Sequential(Block(), Block())
        self.norm, self.head = nn.LayerNorm(DIM), nn.Linear(DIM, len(COLOURS))

    def forward(self, pixels: Tensor) -> Tensor:
        x = self.embed(pixels).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls_token.expand(len(x), -1, -1), x], dim=1) + self.pos_embed
        return self.head(self.norm(self.blocks(x))[:, 0])


def photo_of(label: int, rng: np.random.Generator) -> Image.Image:
    """Grey noise with one patch in the colour of a class."""
    pixels = rng.integers(90, 160, (ROWS * PATCH, COLS * PATCH, 3), dtype=np.uint8)
    row, col = rng.integers(ROWS), rng.integers(COLS)
    pixels[row * PATCH : (row + 1) * PATCH, col * PATCH : (col + 1) * PATCH] = COLOURS[label]
    return Image.fromarray(pixels)


def pixels_of(photos: list[Image.Image]) -> Tensor:
    """What the model takes, [photos, 3, height, width]: in your loop, the transform of the evaluation."""
    return torch.stack([torch.from_numpy(np.array(one)).permute(2, 0, 1) for one in photos]) / 127.5 - 1


class PngWriter:
    """Stands for TensorBoard's writer where that is not installed: `add_image` writes a file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add_image(self, tag: str, picture: np.ndarray[Any, Any], step: int, dataformats: str = "HWC") -> None:
        assert dataformats == "HWC"
        Image.fromarray(picture).save(self.folder / f"{tag}_{step:04}.png")


def writer_to(folder: Path) -> Any:
    folder.mkdir(parents=True, exist_ok=True)
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return PngWriter(folder)
    return SummaryWriter(str(folder))


def train(writer: Any, *, steps: int = 60, every: int = 20) -> SmallViT:
    """Train, and write the relevance of one photo before the first step and after every few; 0 writes none."""
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    model = SmallViT()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    label = 1
    photo = photo_of(label, rng)  # always this one, so that only the model differs between two pictures
    pixels = pixels_of([photo])
    for step in range(steps + 1):
        if every and step % every == 0:
            patch_map = vv.explain(model, pixels, target=label, layout=LAYOUT, progress=False)["relevance"]
            writer.add_image("relevance", np.asarray(patch_map.overlay(photo)), step, dataformats="HWC")
        labels = rng.integers(len(COLOURS), size=32)
        loss = F.cross_entropy(
            model(pixels_of([photo_of(int(one), rng) for one in labels])), torch.tensor(labels)
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/relevance")
    train(writer_to(folder))
    print(folder)
