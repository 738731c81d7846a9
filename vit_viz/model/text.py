"""The text tower that was trained beside a Vision Transformer.

CLIP (Radford et al. 2021, arXiv:2103.00020) reads the vector of the end token behind a causal mask; SigLIP (Zhai et al. 2023,
arXiv:2303.15343) that of the last of 64 places, all of which see each other.

Axes in the shape comments: S sentences, T places, W width, E numbers of an embedding.
"""

from __future__ import annotations

from dataclasses import dataclass

from vit_viz.errors import ParameterError
from vit_viz.lazy import Tensor, nn, torch
from vit_viz.model.config import MlpKind, ViTConfig
from vit_viz.model.linear import Linear
from vit_viz.model.positions import Places
from vit_viz.model.vit import Block

_LIMITS = {"vocabulary": 1_000_000, "context": 4096, "embed_dim": 16_384}


@dataclass(frozen=True)
class TextConfig:
    """The architecture of a text tower.

    Args:
        vocabulary: how many tokens there are.
        context: the most of them that a sentence has, with those of its start and end.
        width: of a token.
        embed_dim: of a sentence's embedding, as of a picture's.
        causal: a token sees those before it alone, and the end token is read; else all see each other, and the last place is read.
        head_bias: the projection has a bias.

    Raises:
        ParameterError: a value is outside its range, or two choices exclude each other.
    """

    vocabulary: int
    context: int
    width: int
    depth: int
    num_heads: int
    embed_dim: int
    mlp_hidden: int | None = None
    mlp: MlpKind = "gelu"
    norm_eps: float = 1e-5
    causal: bool = True
    head_bias: bool = False

    def __post_init__(self) -> None:
        for name, most in _LIMITS.items():
            value = getattr(self, name)
            if type(value) is not int or not 1 <= value <= most:
                raise ParameterError(
                    f"The {name} of a text tower lies between 1 and {most}, not {str(value)[:40]!r}."
                )
        if not all(type(getattr(self, name)) is bool for name in ("causal", "head_bias")):
            raise ParameterError("causal and head_bias of a text tower are true or false.")
        assert self.blocks  # which checks the rest

    @property
    def blocks(self) -> ViTConfig:
        """What a block of it is made of, as of a Vision Transformer of the same size."""
        return ViTConfig(
            embed_dim=self.width,
            depth=self.depth,
            num_heads=self.num_heads,
            mlp_hidden=self.mlp_hidden,
            mlp=self.mlp,
            norm_eps=self.norm_eps,
        )


class TextTransformer(nn.Module):
    """Reads a sentence: tokens with their positions, blocks as in the Vision Transformer, one vector, its projection."""

    def __init__(self, config: TextConfig) -> None:
        super().__init__()
        self.config = config
        self.token_embed = nn.Embedding(config.vocabulary, config.width)
        self.pos_embed = nn.Parameter(0.01 * torch.randn(config.context, config.width))
        self.blocks = nn.ModuleList(Block(config.blocks, layer) for layer in range(config.depth))
        self.norm = nn.LayerNorm(config.width, eps=config.norm_eps)
        self.head = Linear(config.width, config.embed_dim, bias=config.head_bias)

    def forward(self, tokens: Tensor, ends: Tensor) -> Tensor:
        """Embeddings [S, E], not yet of length 1, of tokens [S, T], read at the places `ends` [S].

        Behind a causal mask no token sees what comes after it, so T may end with the longest sentence; else it is `context`.
        """
        count = tokens.shape[1]
        x = self.token_embed(tokens) + self.pos_embed[:count]  # [S, T, W]
        mask = None
        if self.config.causal:
            mask = x.new_full((count, count), -torch.inf).triu(1)[None, None]  # [1, 1, T, T]
        for block in self.blocks:
            x = block(x, Places(shared=mask))
        read = x[torch.arange(len(x), device=x.device), ends]  # [S, W]
        embeddings: Tensor = self.head(self.norm(read))
        return embeddings
