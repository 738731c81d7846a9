"""Tiny models that pass information where no attention is, each beside honest models that come close to it.

Every trick breaks one line of what "proven" must prove, and is given the kind of attention of its blocks: fused, torch's own
and written-out attention are tried alike.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.capture.misleading import CLASSES, COLS, DIM, HEAD_DIM, HEADS, ROWS, Attend, Block, ByHand, Model

Attention = Callable[[], nn.Module]
Build = Callable[[Attention], nn.Module]
Step = Callable[[Tensor], Tensor]
TOKENS = 1 + ROWS * COLS


class ByEinsum(Attend):
    """Written out with the heads last."""

    def gathered(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        weights = torch.softmax(torch.einsum("bhid,bhjd->bhij", q, k) / HEAD_DIM**0.5, dim=-1)
        return torch.einsum("bhij,bjhd->bihd", weights, v.transpose(1, 2)).transpose(1, 2)


class MultiHead(nn.Module):
    """torch's own layer."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.MultiheadAttention(DIM, HEADS, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x, x, x, need_weights=False)[0]  # type: ignore[no-any-return]


ATTENTIONS: dict[str, Attention] = {
    "fused": Attend,
    "nn.MultiheadAttention": MultiHead,
    "by hand": ByHand,
    "by einsum": ByEinsum,
}


class Stepped(Block):
    """A block before which something is done to all tokens."""

    def __init__(self, attention: Attention, step: Step) -> None:
        super().__init__(attention)
        self.step = step

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(self.step(x))


class InMlp(Block):
    """A block whose MLP reads something done to all tokens."""

    def __init__(self, attention: Attention, step: Step) -> None:
        super().__init__(attention)
        self.step = step

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.step(self.norm2(x)))  # type: ignore[no-any-return]


def stepped(step: Step, *, block: type[nn.Module] = Stepped) -> Build:
    """Three blocks, with a step in the last but one."""
    return lambda attention: Model([Block(attention), block(attention, step), Block(attention)])


def onto_patches(change: Callable[[Tensor, Tensor], Tensor]) -> Step:
    """Patches changed by the class token: change(patches, class token)."""
    return lambda x: torch.cat([x[:, :1], change(x[:, 1:], x[:, :1])], dim=1)


def copied(source: int, target: int) -> Step:
    """One token's state added to another's."""

    def step(x: Tensor) -> Tensor:
        mask = F.one_hot(torch.tensor(target), TOKENS).to(x.dtype)[None, :, None]
        return x + mask * x[:, source : source + 1]

    return step


def routed(x: Tensor) -> Tensor:
    """The token with the largest mean is added to token 5."""
    source = x.mean(-1).argmax(1)
    chosen = x[torch.arange(len(x)), source][:, None]
    return x + F.one_hot(torch.tensor(5), TOKENS).to(x.dtype)[None, :, None] * chosen


def ranked(x: Tensor) -> Tensor:
    """Tokens sorted by their mean, marked by their rank, and put back."""
    rank = x.mean(-1).argsort(1).argsort(1).to(x.dtype) / TOKENS
    return x + rank[..., None] * torch.linspace(-1, 1, DIM, dtype=x.dtype)


def convolved(x: Tensor) -> Tensor:
    """Each patch with a tenth of its neighbour to the left."""
    grid = x[:, 1:].unflatten(1, (ROWS, COLS))
    grid = grid + 0.1 * F.pad(grid, (0, 0, 1, 0))[:, :, :-1]
    return torch.cat([x[:, :1], grid.flatten(1, 2)], dim=1)


def shifted(x: Tensor) -> Tensor:
    """A few channels of each token taken from the one before it."""
    return torch.cat([x[..., :5].roll(1, 1), x[..., 5:]], dim=-1)


def normed_over_tokens(x: Tensor) -> Tensor:
    """Each channel normalised over the batch and all tokens, as batch norm without running statistics."""
    return F.batch_norm(x.transpose(1, 2), None, None, training=True).transpose(1, 2)


def response_normed(x: Tensor) -> Tensor:
    """Each channel weighted with its norm over all tokens, as in ConvNeXt V2."""
    norm = x.norm(dim=1, keepdim=True)
    return x + 0.3 * x * norm / norm.mean(-1, keepdim=True)


def excited(x: Tensor) -> Tensor:
    """Each channel weighted with what its mean over all tokens says."""
    return x * x.mean(1, keepdim=True).sigmoid()


def competing(x: Tensor) -> Tensor:
    """Each token weighted with a softmax over all tokens."""
    return x * (1 + x.mean(-1, keepdim=True).softmax(1))


EXCHANGE: dict[str, Build] = {
    "class token added to all patches": stepped(onto_patches(lambda x, own: x + own)),
    "patches gated by the class token": stepped(onto_patches(lambda x, own: x * own.sigmoid())),
    "patches scaled and shifted by the class token": stepped(
        onto_patches(lambda x, own: x * (1 + own.tanh()) + own.roll(1, -1))
    ),
    "class token added to what the MLP reads": stepped(lambda y: y + y[:, :1], block=InMlp),
    **{f"token {a} copied to token {b}": stepped(copied(a, b)) for a, b in ((3, 12), (0, 7), (9, 5), (9, 0))},
    "a copy routed by argmax": stepped(routed),
    "tokens marked by their rank": stepped(ranked),
    "a convolution between blocks": stepped(convolved),
    "channels shifted between tokens": stepped(shifted),
    "a norm over all tokens": stepped(normed_over_tokens),
    "a response norm over all tokens": stepped(response_normed),
    "channels excited by all tokens": stepped(excited),
    "a softmax over all tokens": stepped(competing),
}
"""Tokens exchange information outside attention."""


class Prompted(Block):
    """A block that is given prompts of its own in place of those before it (VPT-deep)."""

    def __init__(self, attention: Attention, tokens: slice) -> None:
        super().__init__(attention)
        self.tokens = tokens
        self.prompts = nn.Parameter(torch.randn(1, tokens.stop - tokens.start, DIM))

    def forward(self, x: Tensor) -> Tensor:
        before, after = x[:, : self.tokens.start], x[:, self.tokens.stop :]
        return super().forward(torch.cat([before, self.prompts.expand(len(x), -1, -1), after], dim=1))


class WithPrompts(Model):
    """Three more tokens after the class token."""

    def __init__(self, blocks: list[nn.Module]) -> None:
        super().__init__(blocks)
        self.prompts = nn.Parameter(torch.randn(1, 3, DIM))

    def arranged(self, x: Tensor) -> Tensor:
        return torch.cat([x[:, :1], self.prompts.expand(len(x), -1, -1), x[:, 1:]], dim=1)


REPLACED: dict[str, Build] = {
    "prompts of each block its own (VPT-deep)": lambda attention: WithPrompts(
        [Block(attention), *(Prompted(attention, slice(1, 4)) for _ in range(2))]
    ),
    "class token replaced": lambda attention: Model(
        [Block(attention), Prompted(attention, slice(0, 1)), Block(attention)]
    ),
    "one patch replaced": lambda attention: Model(
        [Block(attention), Block(attention), Prompted(attention, slice(9, 10))]
    ),
}
"""A layer does not read all of what the one before wrote."""


class Around(Model):
    """Subclasses let something flow past the blocks."""

    def forward(self, image: Tensor) -> Tensor:
        x = self.embed(image).flatten(2).transpose(1, 2)
        x = torch.cat([self.class_token.expand(len(x), -1, -1), x], dim=1) + self.positions
        return self.through(x)

    def through(self, x: Tensor) -> Tensor:
        raise NotImplementedError


class EarlyHead(Around):
    def through(self, x: Tensor) -> Tensor:
        answer = x
        for number, block in enumerate(self.blocks):
            x = block(x)
            answer = x if number == 1 else answer
        return self.read(answer)


class SideBranch(Model):
    """The head also sees the mean of the pixels."""

    def __init__(self, blocks: list[nn.Module]) -> None:
        super().__init__(blocks)
        self.beside = nn.Linear(3, CLASSES)

    def forward(self, image: Tensor) -> Tensor:
        return super().forward(image) + self.beside(image.mean((2, 3)))  # type: ignore[no-any-return]


class SumOfLayers(Around):
    """The head reads the class tokens of all layers."""

    def through(self, x: Tensor) -> Tensor:
        answer = torch.zeros_like(x)
        for block in self.blocks:
            x = block(x)
            answer = answer + x
        return self.read(answer)


class Dense(Around):
    """Each block reads the sum of all before it."""

    def through(self, x: Tensor) -> Tensor:
        states = [x]
        for block in self.blocks:
            states.append(block(sum(states)))
        return self.read(states[-1])


class EmbeddedAgain(Around):
    """The embedding is added before every block."""

    def through(self, x: Tensor) -> Tensor:
        embedding = x.clone()
        for block in self.blocks:
            x = block(x + 0.3 * embedding)
        return self.read(x)


AROUND: dict[str, Build] = {
    kind.__name__: lambda attention, kind=kind: kind([Block(attention) for _ in range(3)])  # type: ignore[misc]
    for kind in (EarlyHead, SideBranch, SumOfLayers, Dense, EmbeddedAgain)
}
"""Something flows past the layers."""


def reading(name: str, read: Step) -> type[Model]:
    """A model whose head reads this of the normed tokens."""
    return type(name, (Model,), {"read": lambda self, x: self.head(read(self.norm(x)))})


def middle(x: Tensor) -> Tensor:
    """A mean in which the patches in the middle count more."""
    weights = torch.hann_window(TOKENS, periodic=False)[1:].to(x.dtype) + 0.1
    return (x[:, 1:] * weights[:, None]).mean(1)


ReadsAPatchToo = reading("ReadsAPatchToo", lambda x: x[:, 0] + 0.3 * x[:, 16])
ReadsTheMean = reading("ReadsTheMean", lambda x: x[:, 1:].mean(1))
ReadsTheMeanToo = reading("ReadsTheMeanToo", lambda x: x[:, 0] + x[:, 1:].mean(1))
ReadsOnePatch = reading("ReadsOnePatch", lambda x: x[:, 16])
ReadsHalf = reading("ReadsHalf", lambda x: x[:, 1::2].mean(1))
ReadsTheMiddle = reading("ReadsTheMiddle", middle)
ReadsTheMaximum = reading("ReadsTheMaximum", lambda x: x[:, 1:].amax(1))


POOLED_AS_CLASS = (ReadsAPatchToo, ReadsTheMean, ReadsTheMeanToo, ReadsOnePatch)
"""Not read from the class token alone."""

POOLED_AS_MEAN = (Model, ReadsOnePatch, ReadsHalf, ReadsTheMiddle, ReadsTheMaximum, ReadsTheMeanToo)
"""Not read from the mean of the patches."""


class PostNorm(Block):
    def forward(self, x: Tensor) -> Tensor:
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + self.mlp(x))  # type: ignore[no-any-return]


class SideBySide(Block):
    """Attention and MLP read the same tokens (ViT-22B)."""

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm1(x)
        return x + self.attention(y) + self.mlp(y)  # type: ignore[no-any-return]


class Scaled(Block):
    """Both branches begin near nothing (LayerScale)."""

    def forward(self, x: Tensor) -> Tensor:
        x = x + 1e-5 * self.attention(self.norm1(x))
        return x + 1e-5 * self.mlp(self.norm2(x))  # type: ignore[no-any-return]


class Positioned(Block):
    """Positions are added in every block."""

    def __init__(self, attention: Attention) -> None:
        super().__init__(attention)
        self.positions = nn.Parameter(torch.randn(1, TOKENS, DIM))

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x + self.positions)


class ByHandNorm(Block):
    """A norm written out, a dropout that eval mode ends, and sums in place."""

    def forward(self, x: Tensor) -> Tensor:
        y = (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True) + 1e-5).sqrt()
        x = x.clone()
        x += F.dropout(self.attention(y * 0.7 + 0.1), 0.4, self.training)
        x += F.dropout(self.mlp(self.norm2(x)), 0.4, self.training)
        return x


class EvalNormed(Block):
    """Batch norm with the statistics of its training."""

    def __init__(self, attention: Attention) -> None:
        super().__init__(attention)
        self.norm = nn.BatchNorm1d(DIM)

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(self.norm(x.transpose(1, 2)).transpose(1, 2))


def of(block: Callable[[Attention], nn.Module]) -> Build:
    return lambda attention: Model([block(attention) for _ in range(3)])


def zeroed(attention: Attention) -> nn.Module:
    """A class token of zeros without a position, as models begin."""
    model = Model([Block(attention) for _ in range(3)])

    def arranged(x: Tensor) -> Tensor:
        return torch.cat([torch.zeros_like(x[:, :1]), x[:, 1:]], dim=1)

    model.arranged = arranged  # type: ignore[method-assign]
    return model


HONEST: dict[str, Build] = {
    "plain": of(Block),
    "norm after the sum": of(PostNorm),
    "attention and MLP side by side": of(SideBySide),
    "LayerScale of 1e-5": of(Scaled),
    "positions in every block": of(Positioned),
    "norms by hand, dropout and sums in place": of(ByHandNorm),
    "batch norm in eval mode": of(EvalNormed),
    "more tokens that stay": lambda attention: WithPrompts([Block(attention) for _ in range(3)]),
    "each token changed by itself": stepped(lambda x: x * x.sigmoid() + x.roll(1, -1)),
    "each token normalised by itself": stepped(lambda x: x / x.norm(dim=-1, keepdim=True)),
    "each token gated by itself in the MLP": stepped(
        lambda y: y * y.mean(-1, keepdim=True).sigmoid(), block=InMlp
    ),
    "a class token of zeros": zeroed,
}
"""Nothing flows but through attention, from layer to layer."""
