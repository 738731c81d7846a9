"""Tiny models whose recorded calls are not what they seem: each breaks one of the three checks of the structure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.capture.models import SIZE, lively

DIM, HEADS, HEAD_DIM, CLASSES, PATCH = 40, 5, 8, 7, 16
ROWS, COLS = SIZE[0] // PATCH, SIZE[1] // PATCH


class Attend(nn.Module):
    """Multi-head attention whose weighting of the values is a method of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.proj = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, _ = x.shape
        q, k, v = self.qkv(x).reshape(batch, tokens, 3, HEADS, HEAD_DIM).permute(2, 0, 3, 1, 4)
        return self.proj(self.gathered(q, k, v, x).transpose(1, 2).reshape(batch, tokens, DIM))  # type: ignore[no-any-return]

    def gathered(self, q: Tensor, k: Tensor, v: Tensor, x: Tensor) -> Tensor:  # noqa: ARG002
        return F.scaled_dot_product_attention(q, k, v)


class Aten(Attend):
    def gathered(self, q: Tensor, k: Tensor, v: Tensor, x: Tensor) -> Tensor:  # noqa: ARG002
        return torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, k, v)[0]  # type: ignore[no-any-return]


class Exponential(Attend):
    def gathered(self, q: Tensor, k: Tensor, v: Tensor, x: Tensor) -> Tensor:  # noqa: ARG002
        weights = (q @ k.transpose(-2, -1) / HEAD_DIM**0.5).exp()
        return weights / weights.sum(-1, keepdim=True) @ v


class Sigmoid(Attend):
    def gathered(self, q: Tensor, k: Tensor, v: Tensor, x: Tensor) -> Tensor:  # noqa: ARG002
        return (q @ k.transpose(-2, -1)).sigmoid() / k.shape[-2] @ v


class Kernelised(Attend):
    """Linear attention: no tokens x tokens matrix at all."""

    def gathered(self, q: Tensor, k: Tensor, v: Tensor, x: Tensor) -> Tensor:  # noqa: ARG002
        return F.elu(q) @ (F.elu(k).transpose(-2, -1) @ v) / k.shape[-2]


class Gated(Attend):
    def gathered(self, q: Tensor, k: Tensor, v: Tensor, x: Tensor) -> Tensor:  # noqa: ARG002
        return F.scaled_dot_product_attention(q, k, v) * q.sigmoid()


class Differential(Attend):
    """Two attentions of one block, one subtracted from the other."""

    def gathered(self, q: Tensor, k: Tensor, v: Tensor, x: Tensor) -> Tensor:  # noqa: ARG002
        return F.scaled_dot_product_attention(q, k, v) - 0.4 * F.scaled_dot_product_attention(k, q, v)


class TalkingHeads(Attend):
    """Weights of the heads are mixed after the softmax."""

    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Linear(HEADS, HEADS)

    def gathered(self, q: Tensor, k: Tensor, v: Tensor, x: Tensor) -> Tensor:  # noqa: ARG002
        weights = (q @ k.transpose(-2, -1) / HEAD_DIM**0.5).softmax(-1)
        return self.mix(weights.permute(0, 2, 3, 1)).permute(0, 3, 1, 2) @ v  # type: ignore[no-any-return]


class Twice(Attend):
    """One attention that is applied to the values, and to what that gave."""

    def gathered(self, q: Tensor, k: Tensor, v: Tensor, x: Tensor) -> Tensor:  # noqa: ARG002
        weights = (q @ k.transpose(-2, -1) / HEAD_DIM**0.5).softmax(-1)
        return weights @ (weights @ v)


class RolledKeys(Attend):
    """Each token finds its neighbour's key and value in its own place."""

    def gathered(self, q: Tensor, k: Tensor, v: Tensor, x: Tensor) -> Tensor:  # noqa: ARG002
        return F.scaled_dot_product_attention(q, k.roll(4, 2), v.roll(4, 2))


class WithConvolution(Attend):
    """A convolution of the values over the grid beside the attention."""

    def __init__(self) -> None:
        super().__init__()
        self.around = nn.Conv2d(DIM, DIM, 3, padding=1, groups=DIM)

    def forward(self, x: Tensor) -> Tensor:
        patches = x[:, 1:].transpose(1, 2).reshape(-1, DIM, ROWS, COLS)
        local = self.around(patches).flatten(2).transpose(1, 2)
        return super().forward(x) + torch.cat([x[:, :1], local], dim=1)


class Block(nn.Module):
    def __init__(self, attend: Callable[[], nn.Module]) -> None:
        super().__init__()
        self.norm1, self.attention, self.norm2 = nn.LayerNorm(DIM), attend(), nn.LayerNorm(DIM)
        self.mlp = nn.Sequential(nn.Linear(DIM, 56), nn.GELU(), nn.Linear(56, DIM))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))  # type: ignore[no-any-return]


class ParallelBlock(nn.Module):
    """Two attentions that read the same tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(DIM) for _ in range(2))
        self.attentions = nn.ModuleList(Attend() for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        pairs = zip(self.norms, self.attentions, strict=True)
        return x + torch.stack([attention(norm(x)) for norm, attention in pairs]).sum(0)


class Model(nn.Module):
    """A Vision Transformer with blocks of choice; class token first, unless `arranged` puts tokens elsewhere."""

    def __init__(self, blocks: Sequence[nn.Module]) -> None:
        super().__init__()
        self.embed = nn.Conv2d(3, DIM, PATCH, PATCH)
        self.class_token = nn.Parameter(torch.randn(1, 1, DIM))
        self.positions = nn.Parameter(torch.randn(1, 1 + ROWS * COLS, DIM))
        self.blocks = nn.ModuleList(blocks)
        self.norm, self.head = nn.LayerNorm(DIM), nn.Linear(DIM, CLASSES)

    def forward(self, image: Tensor) -> Tensor:
        x = self.embed(image).flatten(2).transpose(1, 2)
        x = torch.cat([self.class_token.expand(len(x), -1, -1), x], dim=1) + self.positions
        x = self.arranged(x)
        for block in self.blocks:
            x = block(x)
        return self.read(x)

    def arranged(self, x: Tensor) -> Tensor:
        return x

    def read(self, x: Tensor) -> Tensor:
        return self.head(self.norm(x)[:, 0])  # type: ignore[no-any-return]


class ClassLast(Model):
    def arranged(self, x: Tensor) -> Tensor:
        return x.roll(-1, dims=1)

    def read(self, x: Tensor) -> Tensor:
        return self.head(self.norm(x)[:, -1])  # type: ignore[no-any-return]


class Shuffled(Model):
    """Each image's patches in an order of chance, as in ViT-MAE."""

    def arranged(self, x: Tensor) -> Tensor:
        order = torch.rand(len(x), ROWS * COLS).argsort(1)[:, :, None].expand(-1, -1, DIM)
        return torch.cat([x[:, :1], x[:, 1:].gather(1, order)], dim=1)


class ColumnByColumn(Model):
    def arranged(self, x: Tensor) -> Tensor:
        patches = x[:, 1:].reshape(-1, ROWS, COLS, DIM).transpose(1, 2).flatten(1, 2)
        return torch.cat([x[:, :1], patches], dim=1)


class Reversed(nn.Module):
    """A block after which the tokens stand in reverse."""

    def __init__(self) -> None:
        super().__init__()
        self.block = Block(Attend)

    def forward(self, x: Tensor) -> Tensor:
        return self.block(x).flip(1)  # type: ignore[no-any-return]


class TwoPasses(Model):
    """The image and its mirror image, averaged."""

    def forward(self, image: Tensor) -> Tensor:
        return (super().forward(image) + super().forward(image.flip(-1))) / 2


class MeanAddedToAll(Model):
    """Tokens exchange their mean after the last block."""

    def read(self, x: Tensor) -> Tensor:
        return super().read(self.norm(x + x.mean(1, keepdim=True)))


class OverlappingEmbedding(Model):
    def __init__(self, blocks: Sequence[nn.Module]) -> None:
        super().__init__(blocks)
        self.embed = nn.Conv2d(3, DIM, PATCH + 8, PATCH, padding=4)


class Neighbours(nn.Conv2d):
    """Patches, each with a little of those at most two rows and columns away."""

    def forward(self, image: Tensor) -> Tensor:
        x = super().forward(image)
        return x + 0.1 * F.avg_pool2d(x, 5, 1, 2)


class FarOverlappingEmbedding(Model):
    """Every patch reaches tokens of others, and no class token is there that none reaches."""

    def __init__(self, blocks: Sequence[nn.Module]) -> None:
        super().__init__(blocks)
        self.embed = Neighbours(3, DIM, PATCH, PATCH)

    def arranged(self, x: Tensor) -> Tensor:
        return x[:, 1:]

    def read(self, x: Tensor) -> Tensor:
        return self.head(self.norm(x).mean(1))  # type: ignore[no-any-return]


class Decoder(nn.Module):
    """A block that attends to itself, and then to the image's own tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2, self.itself = nn.LayerNorm(DIM), nn.LayerNorm(DIM), Attend()
        self.q, self.kv, self.proj = nn.Linear(DIM, DIM), nn.Linear(DIM, 2 * DIM), nn.Linear(DIM, DIM)

    def forward(self, x: Tensor, memory: Tensor) -> Tensor:
        x = x + self.itself(self.norm1(x))
        batch, tokens, _ = x.shape
        q = self.q(self.norm2(x)).reshape(batch, tokens, HEADS, HEAD_DIM).transpose(1, 2)
        k, v = self.kv(memory).reshape(batch, tokens, 2, HEADS, HEAD_DIM).permute(2, 0, 3, 1, 4)
        return x + self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))  # type: ignore[no-any-return]


class CrossAttending(Model):
    """The tokens look at the embedding again, which is as long as they are."""

    def forward(self, image: Tensor) -> Tensor:
        x = self.embed(image).flatten(2).transpose(1, 2)
        memory = torch.cat([self.class_token.expand(len(x), -1, -1), x], dim=1) + self.positions
        x = memory
        for block in self.blocks:
            x = block(x, memory)
        return self.read(x)


class ClassApart(Model):
    """Patches attend to each other, and the class token to all of them by a call of its own."""

    def forward(self, image: Tensor) -> Tensor:
        x = self.embed(image).flatten(2).transpose(1, 2)
        own = self.class_token.expand(len(x), -1, -1)
        for block in self.blocks:
            x = block(x)
            own = own + F.scaled_dot_product_attention(own[:, None], x[:, None], x[:, None])[:, 0]
        return self.read(own)


class TwoStacks(Model):
    """Encoder and decoder, both over all tokens."""

    def __init__(self, blocks: Sequence[nn.Module]) -> None:
        super().__init__(blocks)
        self.decoder = nn.ModuleList(Block(Attend) for _ in range(2))

    def read(self, x: Tensor) -> Tensor:
        for block in self.decoder:
            x = block(x)
        return super().read(x)


class Channels(nn.Module):
    """Attention over channels (XCiT): as many "tokens" as features of a head."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.proj = nn.Linear(48, 3 * 48), nn.Linear(48, 48)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (
            self.qkv(x).reshape(len(x), -1, 3, 2, 24).permute(2, 0, 3, 4, 1)
        )  # [B, heads, features, tokens]
        weights = (F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(-2, -1)).softmax(-1)
        return self.proj((weights @ v).permute(0, 3, 1, 2).flatten(2))  # type: ignore[no-any-return]


class ChannelModel(nn.Module):
    """24 patches and heads of 24 features."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.blocks = nn.Conv2d(3, 48, PATCH, PATCH), nn.ModuleList(Channels() for _ in range(3))

    def forward(self, image: Tensor) -> Tensor:
        x = self.embed(image).flatten(2).transpose(1, 2)
        for block in self.blocks:
            x = x + block(x)
        return x.mean(1)


class Windows(nn.Module):
    """Attention within two windows, with one head."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.proj = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, _ = x.shape
        q, k, v = self.qkv(x).reshape(batch * 2, tokens // 2, 3, 1, DIM).permute(2, 0, 3, 1, 4)
        return self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, tokens, DIM))  # type: ignore[no-any-return]


class WindowModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.blocks = (
            nn.Conv2d(3, DIM, PATCH, PATCH),
            nn.ModuleList(Block(Windows) for _ in range(3)),
        )

    def forward(self, image: Tensor) -> Tensor:
        x = self.embed(image).flatten(2).transpose(1, 2)
        for block in self.blocks:
            x = block(x)
        return x.mean(1)


def blocks(*kinds: Callable[[], nn.Module]) -> list[nn.Module]:
    """One block for each kind of attention."""
    return [Block(kind) for kind in kinds]


def ready(model: nn.Module) -> nn.Module:
    return lively(model)
