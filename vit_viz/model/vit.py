"""The Vision Transformer, from pixels to logits, in the order in which the data flows.

Dosovitskiy et al. 2021 (arXiv:2010.11929) with what came after it: distillation token (DeiT, arXiv:2012.12877), LayerScale
(arXiv:2103.17239), relative positions (BEiT, arXiv:2106.08254), registers (arXiv:2309.16588), rotary positions (EVA-02,
arXiv:2303.11331; DINOv3, arXiv:2508.10104), attention pooling (SigLIP, arXiv:2303.15343). Parameters have timm's names, so that a
timm checkpoint loads without renaming.

Axes in the shape comments: B batch, C channels, n patches, p prefix tokens, N = p + n tokens, D embed_dim, H heads, d head_dim.
"""

from __future__ import annotations

from vit_viz.errors import ParameterError
from vit_viz.geometry import Grid, TokenLayout
from vit_viz.lazy import F, Tensor, nn, torch
from vit_viz.model.config import ViTConfig
from vit_viz.model.kernel import scaled_dot_product_attention
from vit_viz.model.linear import Linear, PatchConv2d
from vit_viz.model.positions import Places, bias_table, resample, rotate, sinusoidal_1d, sinusoidal_2d
from vit_viz.model.submodules import are_all_of, are_watched, submodules_of


class VisionTransformer(nn.Module):
    """Cuts an image into patches, lets them look at each other, and reads a class or an embedding from the result.

    Args:
        config: every choice of the architecture.
    """

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        self.config = config
        dim = config.embed_dim
        self.patch_embed = PatchEmbed(config)
        self.cls_token = _token(config.class_tokens, dim) if config.class_token else None
        self.dist_token = _token(1, dim) if config.dist_token else None
        self.reg_token = _token(config.reg_tokens, dim) if config.reg_tokens else None
        positions = len(config.positioned_prefix) + config.table_grid[0] * config.table_grid[1]
        self.pos_embed = _token(positions, dim) if config.position == "learned" else None
        shared = {"relative_position_bias_table": bias_table(config)} if config.shared_bias else None
        self.rel_pos_bias = nn.ParameterDict(shared) if shared else None
        self.norm_pre = _norm(config, dim) if config.pre_norm else nn.Identity()
        self.blocks = nn.ModuleList(Block(config, layer) for layer in range(config.depth))
        self.norm = _norm(config, dim) if config.final_norm else nn.Identity()
        self.attn_pool = AttentionPool(config) if config.pooling == "attention" else None
        self.fc_norm = _norm(config, dim) if config.fc_norm else nn.Identity()
        self.head = _head(config)
        if config.dist_head:
            self.head_dist = _head(config)

    def forward(self, pixels: Tensor) -> Tensor:
        """Logits [B, classes] of normalised pixels [B, C, height, width]; pooled features [B, D] where there is no head."""
        x = self.tokens(pixels)  # [B, C, height, width] -> [B, N, D]
        x = self.run_blocks(x, self.grid_of(*pixels.shape[-2:]), read=self.tokens_read())
        return self.classify(x)  # [B, N, D] -> [B, classes]

    def tokens(self, pixels: Tensor) -> Tensor:
        """The sequence that enters the first block, [B, N, D]: prefix tokens, then patches row by row, with their positions."""
        grid = self.grid_of(*pixels.shape[-2:])
        x = self.patch_embed(pixels)  # [B, C, height, width] -> [B, n, D]
        prefix = [token for token in (self.cls_token, self.dist_token, self.reg_token) if token is not None]
        x = torch.cat([*(token.expand(x.shape[0], -1, -1) for token in prefix), x], dim=1)  # [B, N, D]
        if self.config.position not in ("rotary", "none"):
            table = self.position_table(grid)  # [n, D] or [N, D]
            missing = x.shape[1] - table.shape[0]  # prefix tokens without a position of their own get zeros
            x = x + F.pad(table, (0, 0, missing, 0))
        return self.norm_pre(x)

    def run_blocks(
        self, x: Tensor, grid: Grid, *, start: int = 0, stop: int | None = None, read: int | None = None
    ) -> Tensor:
        """The residual stream before block `stop`, [B, N, D], from that before block `start`.

        Args:
            stop: None for the stream after the last block.
            read: how many tokens, from the first, are needed of it, see `tokens_read`: [B, read, D]; None for all.
        """
        places, blocks = self.places(grid), list(self.blocks)[start:stop]
        for block in blocks if read is None else blocks[:-1]:
            x = block(x, places)
        if read is None:
            return x
        last = blocks[-1]
        assert isinstance(last, Block)  # `tokens_read` found no other class
        return last.first_tokens(x, places, read)

    def classify(self, x: Tensor) -> Tensor:
        """Logits [B, classes] of the residual stream [B, N, D] after the last block."""
        if self.config.dist_head:
            x = self.norm(x)
            return (self.head(self.fc_norm(x[:, 0])) + self.head_dist(self.fc_norm(x[:, 1]))) / 2
        return self.head(self.pool(x))

    def pool(self, x: Tensor) -> Tensor:
        """One vector per image of the residual stream [B, N, D] after the last block: [B, D].

        Side by side it is [B, k D] of k class tokens (`class_read`), and [B, 2 D] with `pool_concat`.
        """
        x = self.norm(x)
        patches = x if self.config.pool_prefix else x[:, len(self.config.prefix) :]  # [B, n, D]
        if self.attn_pool is not None:
            pooled = self.attn_pool(patches)
        elif self.config.pool_concat:
            pooled = torch.cat((x[:, 0], patches.mean(dim=1)), dim=-1)  # [B, 2 D]
        elif self.config.pooling == "class" and self.config.class_tokens > 1:
            pooled = x[:, list(self.config.class_read)].flatten(1)  # [B, k D]
        else:
            pooled = x[:, 0] if self.config.pooling == "class" else patches.mean(dim=1)  # [B, D]
        return self.fc_norm(pooled)

    def grid_of(self, height: int, width: int) -> Grid:
        """Patches of an input of that many pixels as (rows, cols).

        Raises:
            ParameterError: the patch does not divide a side, and the configuration says neither to pad nor to drop the rest.
        """
        patch_height, patch_width = self.config.patch_size
        if self.config.drop_remainder:
            return height // patch_height, width // patch_width
        if (height % patch_height or width % patch_width) and not self.config.pad:
            raise ParameterError(
                f"An input of {height} x {width} pixels cannot be cut into patches of {patch_height} x {patch_width}: "
                "resize it so that the patch divides both sides, or use a configuration with pad=True or drop_remainder=True."
            )
        return -(-height // patch_height), -(-width // patch_width)

    def layout(self, height: int, width: int) -> TokenLayout:
        """Which token is what, for an input of that many pixels."""
        config = self.config
        return TokenLayout(
            grid=self.grid_of(height, width),
            prefix=config.prefix,
            pooling=config.pooling,
            joins_patches=config.pool_concat,
            unread=config.unread,
        )

    def position_table(self, grid: Grid) -> Tensor:
        """Position embedding at a grid, [prefix + rows * cols, D]; prefix: one row per name in `config.positioned_prefix`.

        Raises:
            ParameterError: this model has no table: its positions are rotary, or it has none.
        """
        config, prefix = self.config, len(self.config.positioned_prefix)
        weight = self.patch_embed.proj.weight
        if config.position == "sinusoidal_1d":
            return sinusoidal_1d(prefix + grid[0] * grid[1], config.embed_dim).to(weight)
        if config.position == "sinusoidal_2d":
            return F.pad(sinusoidal_2d(grid, config.embed_dim), (0, 0, prefix, 0)).to(weight)
        if self.pos_embed is None:
            raise ParameterError(
                f"This model has no position embedding to show: its positions are {config.position_kind!r}."
            )
        own, patches = self.pos_embed[0, :prefix], self.pos_embed[0, prefix:]  # [p, D], [n, D]
        return torch.cat((own, resample(patches, config.table_grid, grid, variant=config.resample)))

    def tokens_read(self) -> int | None:
        """How many tokens, from the first, the output is read from, so that the last block need not finish the others.

        None for all: the pooling sees patches, or somebody may look at the others, by a hook or by a part of their own.
        """
        config, last = self.config, submodules_of(self.blocks[-1])
        if config.pooling != "class" or config.pool_concat:
            return None
        if not are_all_of(last, OWN_PARTS) or are_watched([self.norm, *last]):
            return None
        return 2 if config.dist_head else 1 + max(config.class_read)

    def places(self, grid: Grid) -> Places:
        """Where the tokens of a grid are, as far as scores depend on it: angles of queries and keys, biases of offsets."""
        table = None if self.rel_pos_bias is None else self.rel_pos_bias["relative_position_bias_table"]
        return Places.of(self.config, grid, table=table, device=self.patch_embed.proj.weight.device)


class PatchEmbed(nn.Module):
    """One vector per patch: the same linear map of the pixels of each patch.

    As a convolution whose stride is its kernel, or as unfold and a linear layer. Both give the same numbers: the weight of
    one is that of the other, reshaped between [D, C, P, P] and [D, C * P * P].
    """

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        self.config = config
        channels, dim, size = config.in_chans, config.embed_dim, config.patch_size
        self.proj: PatchConv2d | Linear
        if config.patch_embed == "conv":
            self.proj = PatchConv2d(channels, dim, kernel_size=size, stride=size, bias=config.patch_bias)
        else:
            self.proj = Linear(channels * size[0] * size[1], dim, bias=config.patch_bias)
        self.norm = _norm(config, dim) if config.patch_norm else nn.Identity()

    def forward(self, pixels: Tensor) -> Tensor:
        """Embedded patches [B, n, D], row by row, of pixels [B, C, height, width]."""
        if pixels.ndim != 4 or pixels.shape[1] != self.config.in_chans:
            raise ParameterError(
                f"The model expects pixels [batch, {self.config.in_chans}, height, width], not {list(pixels.shape)}."
            )
        if self.config.patch_embed == "conv":
            x = self.proj(self.whole_patches(pixels))  # [B, D, rows, cols]
            x = x.flatten(2).transpose(1, 2)  # [B, n, D]
        else:
            x = self.proj(self.patches(pixels))  # [B, n, C * P * P] -> [B, n, D]
        return self.norm(x)

    def patches(self, pixels: Tensor) -> Tensor:
        """The pixels of each patch, [B, n, C * P * P]: channel by channel, each row by row."""
        size = self.config.patch_size
        columns = F.unfold(self.whole_patches(pixels), kernel_size=size, stride=size)  # [B, C * P * P, n]
        return columns.transpose(1, 2)  # [B, n, C * P * P]

    def whole_patches(self, pixels: Tensor) -> Tensor:
        """Zeros added, or pixels left out, at the bottom and on the right, as the configuration says, so that patches fill it."""
        (height, width), (patch_height, patch_width) = pixels.shape[-2:], self.config.patch_size
        if self.config.drop_remainder:
            return pixels[..., : height - height % patch_height, : width - width % patch_width]
        if not self.config.pad:
            return pixels
        # [B, C, rows * P, cols * P]
        return F.pad(pixels, (0, -width % patch_width, 0, -height % patch_height))


class Block(nn.Module):
    """Every token gathers from the others, then thinks for itself; both results are added to what it was."""

    def __init__(self, config: ViTConfig, layer: int = 0) -> None:
        super().__init__()
        dim = config.embed_dim
        self.norm1 = _norm(config, dim)  # two norms: each branch has statistics and a scale of its own
        self.attn = Attention(config, layer)
        self.ls1 = LayerScale(dim) if config.layer_scale else nn.Identity()
        self.norm2 = _norm(config, dim)
        self.mlp = _MLPS.get(config.mlp, Mlp)(config)
        self.ls2 = LayerScale(dim) if config.layer_scale else nn.Identity()

    def forward(self, x: Tensor, places: Places | None = None) -> Tensor:
        """The residual stream [B, N, D] after this block, of that before it."""
        x = x + self.ls1(self.attn(self.norm1(x), places))
        return x + self.ls2(self.mlp(self.norm2(x)))

    def first_tokens(self, x: Tensor, places: Places | None, read: int) -> Tensor:
        """The first `read` tokens of what `forward` returns, [B, read, D], without the work on the others after the attention."""
        x = x[:, :read] + self.ls1(self.attn(self.norm1(x), places, read=read))
        return x + self.ls2(self.mlp(self.norm2(x)))


class Attention(nn.Module):
    """softmax(q k^T * scale + bias) v in each head: what a token gathers, weighted by how well its query fits each key.

    The softmax runs over keys, so each query's weights sum to 1; the scale is head_dim ** -0.5, which keeps the scores' variance
    independent of the head's width.
    """

    def __init__(self, config: ViTConfig, layer: int = 0) -> None:
        super().__init__()
        self.layer = layer  # index of its block, for what runs a part of the model
        dim, head_dim = config.embed_dim, config.head_dim
        self.num_heads, self.head_dim = config.num_heads, head_dim
        self.scale = head_dim**-0.5 if config.scale is None else config.scale
        self.qkv = Linear(dim, 3 * dim, bias=config.qkv_bias)  # three projections in one matrix product
        self.q_norm = _norm(config, head_dim) if config.qk_norm else nn.Identity()
        self.k_norm = _norm(config, head_dim) if config.qk_norm else nn.Identity()
        self.relative_position_bias_table = bias_table(config) if config.relative_bias else None
        self.norm = _norm(config, dim) if config.attn_norm else nn.Identity()
        self.proj = Linear(dim, dim, bias=config.proj_bias)

    def forward(self, x: Tensor, places: Places | None = None, *, read: int | None = None) -> Tensor:
        """What each token gathers, [B, N, D]; all look, and `read` says how many of them, from the first, go on."""
        batch, tokens, _ = x.shape
        qkv = self.qkv(x)  # [B, N, 3 D]
        qkv = qkv.reshape(batch, tokens, 3, self.num_heads, self.head_dim)  # [B, N, 3, H, d]
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)  # each [B, H, N, d]
        q, k = self.q_norm(q), self.k_norm(k)
        places = places or Places()
        if places.rotary is not None:
            q, k = rotate(q, *places.rotary), rotate(k, *places.rotary)
        bias = places.bias(self.relative_position_bias_table)  # [1, H, N, N]
        x = scaled_dot_product_attention(q, k, v, bias=bias, scale=self.scale)  # [B, H, N, d]
        x = x[:, :, :read].transpose(1, 2).flatten(2)  # [B, N, D]
        return self.proj(self.norm(x))


class Mlp(nn.Module):
    """Two linear layers with a nonlinearity between them, on each token alone."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        dim, hidden = config.embed_dim, int(config.mlp_hidden or 0)
        self.activation = config.mlp
        self.fc1 = Linear(dim, hidden, bias=config.mlp_bias)
        self.norm = _norm(config, hidden) if config.mlp_norm else nn.Identity()
        self.fc2 = Linear(hidden, dim, bias=config.mlp_bias)

    def forward(self, x: Tensor) -> Tensor:
        """[B, N, D] -> [B, N, D]."""
        x = gelu(self.fc1(x), self.activation)  # [B, N, hidden]
        return self.fc2(self.norm(x))  # [B, N, D]


def gelu(x: Tensor, kind: str) -> Tensor:
    """The nonlinearity of an MLP without a gate, of a kind that `ViTConfig.mlp` names."""
    if kind == "quick_gelu":
        return x * torch.sigmoid(1.702 * x)
    return F.gelu(x, approximate="tanh" if kind == "gelu_tanh" else "none")


class SwiGLU(nn.Module):
    """An MLP whose hidden numbers are gated by a second projection: silu(gate(x)) * fc1(x)."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        dim, hidden = config.embed_dim, int(config.mlp_hidden or 0)
        self.fc1_g = Linear(dim, hidden, bias=config.mlp_bias)
        self.fc1_x = Linear(dim, hidden, bias=config.mlp_bias)
        self.norm = _norm(config, hidden) if config.mlp_norm else nn.Identity()
        self.fc2 = Linear(hidden, dim, bias=config.mlp_bias)

    def forward(self, x: Tensor) -> Tensor:
        """[B, N, D] -> [B, N, D]."""
        x = F.silu(self.fc1_g(x)) * self.fc1_x(x)  # [B, N, hidden]
        return self.fc2(self.norm(x))  # [B, N, D]


class PackedSwiGLU(nn.Module):
    """SwiGLU with gate and value in one matrix: the first half of fc1's output is the gate (DINOv2 giant)."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        dim, hidden = config.embed_dim, int(config.mlp_hidden or 0)
        self.fc1 = Linear(dim, hidden, bias=config.mlp_bias)
        self.norm = _norm(config, hidden // 2) if config.mlp_norm else nn.Identity()
        self.fc2 = Linear(hidden // 2, dim, bias=config.mlp_bias)

    def forward(self, x: Tensor) -> Tensor:
        """[B, N, D] -> [B, N, D]."""
        gate, x = self.fc1(x).chunk(2, dim=-1)  # each [B, N, hidden / 2]
        return self.fc2(self.norm(F.silu(gate) * x))  # [B, N, D]


_MLPS: dict[str, type[nn.Module]] = {"swiglu": SwiGLU, "swiglu_packed": PackedSwiGLU}


class LayerScale(nn.Module):
    """A learned factor per number, so that a deep model can start as nearly the identity."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.full((dim,), 1e-5))

    def forward(self, x: Tensor) -> Tensor:
        """[B, N, D] -> [B, N, D]."""
        return x * self.gamma


class AttentionPool(nn.Module):
    """A learned query looks at all patches; what it gathers is the image's vector (SigLIP)."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        dim = config.embed_dim
        self.num_heads, self.head_dim = config.num_heads, config.head_dim
        self.latent = _token(1, dim)
        self.q = Linear(dim, dim)
        self.kv = Linear(dim, 2 * dim)
        self.proj = Linear(dim, dim)
        self.norm = _norm(config, dim)
        self.mlp = Mlp(config)

    def forward(self, x: Tensor) -> Tensor:
        """[B, n, D] -> [B, D]."""
        batch, tokens, dim = x.shape
        q = self.q(self.latent.expand(batch, -1, -1))  # [B, 1, D]
        q = q.reshape(batch, 1, self.num_heads, self.head_dim).transpose(1, 2)  # [B, H, 1, d]
        kv = self.kv(x)  # [B, n, 2 D]
        kv = kv.reshape(batch, tokens, 2, self.num_heads, self.head_dim)  # [B, n, 2, H, d]
        k, v = kv.permute(2, 0, 3, 1, 4).unbind(0)  # each [B, H, n, d]
        x = scaled_dot_product_attention(q, k, v)  # [B, H, 1, d]
        x = self.proj(x.transpose(1, 2).reshape(batch, 1, dim))  # [B, 1, D]
        x = x + self.mlp(self.norm(x))
        return x[:, 0]  # [B, D]


class SentenceHead(nn.Module):
    """Scores a picture by sentences: scale * cosine(its embedding, that of each sentence) + bias.

    Args:
        projection: from pooled features to the embedding.
        directions: the sentences' embeddings, of length 1, [S, E].
        scale: what the model was trained to multiply cosines with; the logits of CLIP are these products.
        bias: what is added (SigLIP); 0 for CLIP.
    """

    directions: Tensor

    def __init__(self, projection: nn.Module, directions: Tensor, scale: float, bias: float = 0.0) -> None:
        super().__init__()
        self.projection, self.scale, self.bias = projection, scale, bias
        self.register_buffer("directions", directions)

    def forward(self, x: Tensor) -> Tensor:
        """Logits [..., S] of pooled features [..., D]."""
        return self.scores(self.projection(x))

    def scores(self, embedding: Tensor) -> Tensor:
        """The same of the embedding itself [..., E]."""
        return self.scale * F.normalize(embedding, dim=-1) @ self.directions.T + self.bias

    def cosines(self, scores: Tensor) -> Tensor:
        """Those that such scores stand for."""
        return (scores - self.bias) / self.scale


def _norm(config: ViTConfig, dim: int) -> nn.Module:
    kind = nn.LayerNorm if config.norm == "layer" else nn.RMSNorm
    return kind(dim, eps=config.norm_eps)


def _head(config: ViTConfig) -> nn.Module:
    if not config.num_classes:
        return nn.Identity()
    features = config.embed_dim * (2 if config.pool_concat else len(config.class_read))
    return Linear(features, config.num_classes, bias=config.head_bias)


def _token(count: int, dim: int) -> nn.Parameter:
    """Learned vectors [1, count, D]: the batch has no part in a parameter's shape, they are expanded where they are used.

    Not drawn on the meta device, where a checkpoint's model is laid out: torch would import its compiler for it, a second or two.
    """
    token = torch.empty(1, count, dim)
    return nn.Parameter(token if token.is_meta else 0.02 * torch.randn(1, count, dim))


OWN_PARTS = frozenset({
    VisionTransformer, PatchEmbed, Block, Attention, AttentionPool, LayerScale, Mlp, SwiGLU, PackedSwiGLU, Linear,
    PatchConv2d, SentenceHead, nn.Identity, nn.LayerNorm, nn.ModuleList, nn.ParameterDict, nn.RMSNorm,
})  # fmt: skip
"""What a model of ours consists of, unless somebody put a class of their own into it."""
