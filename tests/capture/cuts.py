"""A tiny Vision Transformer whose forward ends gradients where it is told to, as models with a frozen backbone do."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.capture.models import lively
from vit_viz.geometry import TokenLayout

HEADS, HEAD_DIM, CLASSES = 5, 8, 7
DIM = HEADS * HEAD_DIM
LAYOUT = TokenLayout(grid=(4, 6), prefix=("class",))
"""Of pixels of 64 x 96."""


class CutBlock(nn.Module):
    """A block; `how` says what of it is cut: "attention", "attention no_grad", "weights", "weights no_grad", "mlp" or "output"."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.qkv, self.proj = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)
        self.mlp = nn.Sequential(nn.Linear(DIM, 56), nn.GELU(), nn.Linear(56, DIM))
        self.scale = nn.Parameter(torch.ones(DIM))
        self.how = ""

    def attend(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(self.norm1(x)).unflatten(-1, (3, HEADS, HEAD_DIM)).permute(2, 0, 3, 1, 4)
        if not self.how.startswith("weights"):
            return self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        with torch.no_grad() if self.how == "weights no_grad" else nullcontext():
            weights = (q @ k.transpose(-1, -2) * HEAD_DIM**-0.5).softmax(-1)
        weights = weights.detach() if self.how == "weights" else weights
        return self.proj((weights @ v).transpose(1, 2).flatten(2))

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad() if self.how == "attention no_grad" else nullcontext():
            attended = self.attend(x)
        x = x + self.scale * (attended.detach() if self.how == "attention" else attended)
        hidden = self.mlp(self.norm2(x))
        x = x + (hidden.detach() if self.how == "mlp" else hidden)
        return x.detach() if self.how == "output" else x


class Backbone(nn.Module):
    """Three blocks; `after` says what happens to the tokens after block 0, `below` in which context block 0 runs."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Conv2d(3, DIM, 16, 16)
        self.named, self.places = nn.Parameter(torch.randn(1, 1, DIM)), nn.Parameter(torch.randn(1, 25, DIM))
        self.blocks = nn.ModuleList(CutBlock() for _ in range(3))
        self.norm = nn.LayerNorm(DIM)
        self.after: Callable[[Tensor], Tensor] = lambda x: x
        self.below: Callable[[], AbstractContextManager[object]] = nullcontext

    def forward(self, pixels: Tensor) -> Tensor:
        patches = self.embed(pixels).flatten(2).transpose(1, 2)
        x = torch.cat((self.named.expand(len(pixels), -1, -1), patches), 1) + self.places
        with self.below():
            x = self.blocks[0](x)
        x = self.after(x)
        return self.norm(self.blocks[2](self.blocks[1](x)))[:, 0]


class Cut(nn.Module):
    """A backbone and a head; `around` is the context of the backbone, `features` what happens to what it returns."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone, self.head = Backbone(), nn.Linear(DIM, CLASSES)
        self.around: Callable[[], AbstractContextManager[object]] = nullcontext
        self.features: Callable[[Tensor], Tensor] = lambda x: x

    def forward(self, pixels: Tensor) -> Tensor:
        with self.around():
            x = self.backbone(pixels)
        return self.head(self.features(x))


def whole() -> Cut:
    torch.manual_seed(3)
    model = Cut()
    lively(model)
    return model


def cut_whole(how: str) -> Cut:
    """A model whose backbone is cut off from its head."""
    model = whole()
    if how in ("no_grad", "inference_mode"):
        model.around = getattr(torch, how)
        model.features = torch.clone
    elif how == "numpy":
        model.features = lambda x: torch.from_numpy(x.detach().numpy())
    else:
        model.features = lambda x: x.detach() if how == "detach" else x.data
    return model


def cut_after(how: str) -> Cut:
    """A model in which nothing comes back to layer 0."""
    model = whole()
    if how == "no_grad":
        model.backbone.below = torch.no_grad
    elif how == "output":
        model.backbone.blocks[0].how = "output"
    else:
        model.backbone.after = lambda x: x.detach() if how == "detach" else x.data
    return model


def cut_within(how: str, block: int = 1) -> Cut:
    """A model of which one branch is cut, while the skip connection lets a part of the gradient by."""
    model = whole()
    model.backbone.blocks[block].how = how
    return model


class OfLayer(nn.Module):
    """Stands in the place of a linear layer."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.layer = layer


class Rounded(OfLayer):
    """A linear layer that multiplies in eight bits."""

    def forward(self, x: Tensor) -> Tensor:
        step = x.detach().abs().amax() / 127
        levels = (x / step).round().to(torch.int8).to(torch.int32)
        return levels.float() @ self.layer.weight.T * step + self.layer.bias


class Stored(nn.Module):
    """A linear layer whose weights alone are stored in eight bits."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        step = layer.weight.detach().abs().amax(1, keepdim=True) / 127
        self.register_buffer("levels", (layer.weight.detach() / step).round().to(torch.int8))
        self.register_buffer("step", step)
        self.register_buffer("bias", layer.bias.detach())

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.levels.to(x.dtype) * self.step, self.bias)


class StraightThrough(OfLayer):
    """A linear layer of rounded input, which has the gradient of the one that is not rounded."""

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x + ((16 * x).round() / 16 - x).detach())


class Keeping(OfLayer):
    """A linear layer that keeps what it returned, for others to look at."""

    def forward(self, x: Tensor) -> Tensor:
        x = self.layer(x)
        self.kept = [x.detach(), x.detach().cpu().numpy(), x.data.mean()]
        return x


class Unseen(OfLayer):
    """A linear layer in NumPy."""

    def forward(self, x: Tensor) -> Tensor:
        product = x.detach().numpy() @ self.layer.weight.detach().numpy().T
        return torch.from_numpy(product) + self.layer.bias


def with_layers(kind: Callable[[nn.Linear], nn.Module], name: str = "proj") -> Cut:
    """The whole model with another linear layer in each block."""
    model = whole()
    for block in model.backbone.blocks:
        setattr(block, name, kind(getattr(block, name)))
    return model
