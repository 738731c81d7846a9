"""Tiny Vision Transformers that return what is no score of a class: maps, boxes, masks, states, read from wherever a test says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.capture.misleading import COLS, DIM, PATCH, ROWS, Attend, Block, ready
from vit_viz.geometry import TokenLayout

DEPTH, KINDS = 4, 3
GRID = (ROWS, COLS)
Read = Callable[["Readout", list[Tensor], Tensor], Any]


class Readout(nn.Module):
    """Returns what `read` makes of the tokens before the first and after each block, and of the image."""

    def __init__(
        self, read: Read, *, named: int = 1, after: int = 0, attend: Callable[[], nn.Module] = Attend
    ) -> None:
        super().__init__()
        self.named, self.after, self.how = named, after, read
        self.embed = nn.Conv2d(3, DIM, PATCH, PATCH)
        self.extra = nn.Parameter(torch.randn(1, named + after, DIM))
        self.positions = nn.Parameter(torch.randn(1, named + ROWS * COLS + after, DIM))
        self.blocks = nn.ModuleList(Block(attend) for _ in range(DEPTH))
        self.norm, self.head = nn.LayerNorm(DIM), nn.Linear(DIM, KINDS)
        self.heads = nn.ModuleList(nn.Linear(DIM, KINDS) for _ in range(DEPTH + 1))
        self.around, self.of_image = nn.Conv2d(DIM, KINDS, 3, padding=1), nn.Conv2d(3, KINDS, 3, padding=1)
        self.cross, self.queries = (
            nn.MultiheadAttention(DIM, 5, batch_first=True),
            nn.Parameter(torch.randn(1, 6, DIM)),
        )

    def layout(self, height: int, width: int) -> TokenLayout:
        assert (height // PATCH, width // PATCH) == GRID
        prefix = ("class", *(f"register {i}" for i in range(self.named - 1)))[: self.named]
        return TokenLayout(GRID, prefix, suffix=tuple(f"detection {i}" for i in range(self.after)))

    def forward(self, image: Tensor) -> Any:
        x = self.embed(image).flatten(2).transpose(1, 2)
        extra = self.extra.expand(len(x), -1, -1)
        x = torch.cat([extra[:, : self.named], x, extra[:, self.named :]], 1) + self.positions
        states = [x]
        for block in self.blocks:
            states.append(block(states[-1]))
        return self.how(self, states, image)

    def patches(self, x: Tensor) -> Tensor:
        """[images, dim, rows, cols]."""
        x = x[:, self.named : self.named + ROWS * COLS]
        return x.transpose(1, 2).unflatten(2, GRID)

    def map_of(self, x: Tensor, head: nn.Module) -> Tensor:
        """[images, kinds, rows, cols]."""
        return head(self.patches(x).movedim(1, -1)).movedim(-1, 1)  # type: ignore[no-any-return]


def readout(read: Read, **choices: Any) -> nn.Module:
    torch.manual_seed(6)
    return ready(Readout(read, **choices))


def large(values: Tensor, mode: str = "nearest") -> Tensor:
    """A map over patches as one over pixels."""
    corners = None if mode == "nearest" else False
    return F.interpolate(values, scale_factor=PATCH, mode=mode, align_corners=corners)


def segmenter(model: Readout, states: list[Tensor], _: Tensor) -> Tensor:
    """A linear head on each patch, [images, kinds, height, width]."""
    return large(model.map_of(states[-1], model.head))


def smooth_segmenter(model: Readout, states: list[Tensor], _: Tensor) -> Tensor:
    return large(model.map_of(model.norm(states[-1]), model.head), "bilinear")


def unetr(model: Readout, states: list[Tensor], image: Tensor) -> Tensor:
    """Reads the image, and three of the layers beside the last."""
    maps = [model.map_of(state, head) for state, head in zip(states, model.heads, strict=True)][1:]
    return F.relu(large(sum(maps), "bilinear") + model.of_image(image))  # type: ignore[arg-type]


def with_skips(model: Readout, states: list[Tensor], _: Tensor) -> Tensor:
    """Features of layers side by side, as in a dense prediction transformer."""
    return large(torch.cat([model.map_of(state, model.head) for state in states[2:]], 1))


def layer_before(model: Readout, states: list[Tensor], _: Tensor) -> Tensor:
    """Reads the layer before the last alone."""
    return large(model.map_of(states[-2], model.head))


def convolved(model: Readout, states: list[Tensor], _: Tensor) -> Tensor:
    """A convolution over the patches."""
    return model.around(model.patches(states[-1]))  # type: ignore[no-any-return]


def detector(model: Readout, states: list[Tensor], _: Tensor) -> dict[str, Tensor]:
    """A class and a box of each detection token."""
    x = model.norm(states[-1])[:, -model.after :]
    return {"logits": model.head(x), "boxes": x[..., :4].sigmoid()}


def decoder(model: Readout, states: list[Tensor], _: Tensor) -> dict[str, Tensor]:
    """Queries that look at all tokens once, and a mask of each."""
    queries = model.queries.expand(len(states[-1]), -1, -1)
    queries = queries + model.cross(queries, states[-1], states[-1])[0]
    masks = torch.einsum("bqd,bdhw->bqhw", queries, model.patches(states[-1]))
    return {"scores": model.head(queries), "masks": masks}
