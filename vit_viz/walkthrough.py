"""The numbers of the Walkthrough: one image on its way through a model, step by step.

Each step is a frozen value with every number that the screen shows. The numbers are recomputed from the model's own parts and
its input; tests compare them with the trace, which recorded the model itself.

Source: Dosovitskiy et al. 2021, arXiv:2010.11929, section 3.1, Fig. 7, appendices A and D.4; Vaswani et al. 2017, arXiv:1706.03762,
section 3.2; Darcet et al. 2024, arXiv:2309.16588 (registers).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vit_viz.analyses.attention import to_numpy
from vit_viz.analyses.lesson import activated, hidden_inputs, position_similarity_of
from vit_viz.analyses.what_if import rearranged, without_positions
from vit_viz.capture import Trace
from vit_viz.capture.forward import undisturbed
from vit_viz.errors import ParameterError
from vit_viz.geometry import Grid, TokenLayout
from vit_viz.indices import checked_index
from vit_viz.lazy import F, Tensor, nn, torch, without_gradients
from vit_viz.model import Block, VisionTransformer
from vit_viz.model.positions import angles_of, rotate, sinusoidal_1d
from vit_viz.outputs import Output, output_kind, shown

Array = NDArray[Any]
Size = tuple[int, int]


@dataclass(frozen=True, eq=False)
class Walk:
    """One input on its way through one model: what every step is computed from.

    Args:
        model: in eval mode.
        pixels: normalised input, [1, channels, height, width].
        stream: the residual stream before the first and after each block, [layers + 1, tokens, dim].
    """

    model: VisionTransformer
    pixels: Tensor
    stream: Tensor

    @classmethod
    def of(cls, model: nn.Module, pixels: Tensor) -> Walk:
        """Run the model block by block and keep what is between the blocks."""
        model = own_transformer(model)
        if pixels.ndim != 4 or len(pixels) != 1:
            raise ParameterError(
                f"A walkthrough is of one image [1, channels, height, width], not {list(pixels.shape)}."
            )
        pixels = pixels.detach().to(model.patch_embed.proj.weight)
        with torch.no_grad(), undisturbed(model):
            x = model.tokens(pixels)
            places = model.places(model.grid_of(*pixels.shape[-2:]))
            stream = [x]
            for block in model.blocks:
                stream.append(block(stream[-1], places))
        return cls(model, pixels, torch.cat(stream))

    @property
    def layout(self) -> TokenLayout:
        """Which token is what."""
        return self.model.layout(*self.pixels.shape[-2:])

    @property
    def grid(self) -> Grid:
        """Patches as (rows, cols)."""
        return self.layout.grid


def own_transformer(model: nn.Module) -> VisionTransformer:
    """The model, where it is ours."""
    if isinstance(model, VisionTransformer):
        return model
    raise ParameterError(
        f"The walkthrough needs the parts of vit_viz's own VisionTransformer, not {type(model).__name__}; load the "
        "checkpoint with vit_viz.load."
    )


# --- pixels, patches, embedding


@dataclass(frozen=True, eq=False)
class PatchStep:
    """An image cut into patches, and one patch as the row of numbers that it is.

    Args:
        size: (height, width) of the input in pixels.
        padded: the same after the zeros that this model adds where the patch does not divide a side.
        values: the patch as the model receives it, normalised, [channels, patch height, patch width].
        flat: the same numbers in one row, channel by channel, [channels * patch height * patch width].
    """

    size: Size
    padded: Size
    patch_size: Size
    channels: int
    grid: Grid
    place: Size
    index: int
    values: Array
    flat: Array

    @property
    def count(self) -> int:
        """Patches of the image: n."""
        return self.grid[0] * self.grid[1]


def patch_step(walk: Walk, *, place: Size) -> PatchStep:
    """The patch at (row, col) of the grid."""
    embed, config = walk.model.patch_embed, walk.model.config
    index = patch_index(walk, place)
    flat = embed.patches(walk.pixels)[0, index]
    (height, width), padded = walk.pixels.shape[-2:], embed.whole_patches(walk.pixels).shape[-2:]
    return PatchStep(
        size=(int(height), int(width)),
        padded=(int(padded[0]), int(padded[1])),
        patch_size=config.patch_size,
        channels=config.in_chans,
        grid=walk.grid,
        place=place,
        index=index,
        values=to_numpy(flat.reshape(config.in_chans, *config.patch_size)),
        flat=to_numpy(flat),
    )


@dataclass(frozen=True)
class Cut:
    """What another patch size would do to the same input: whole patches, and the pixels that fit into none."""

    size: Size
    patch: int

    @property
    def grid(self) -> Grid:
        """Whole patches as (rows, cols)."""
        return self.size[0] // self.patch, self.size[1] // self.patch

    @property
    def remainder(self) -> Size:
        """Pixels at the end of each side that fit into no patch."""
        return self.size[0] % self.patch, self.size[1] % self.patch

    @property
    def left_out(self) -> float:
        """Share of the pixels that fit into no whole patch."""
        inside = self.grid[0] * self.grid[1] * self.patch**2
        return 1 - inside / (self.size[0] * self.size[1])


@dataclass(frozen=True, eq=False)
class EmbeddingStep:
    """One patch turned into one vector by a linear map, in two ways.

    Args:
        weight: the linear map, [dim, channels * patch height * patch width].
        bias: [dim]; zeros where the model has none.
        linear: the embedded patch by unfold and matrix product, [dim].
        convolution: the same by a convolution whose stride is its kernel, [dim].
        embedded: what the model continues with: the same, after the norm that some models have here, [dim].
        difference: largest difference between the two over ALL patches.
        number: index of the output number that is taken apart.
        products: pixel times weight for that number, [channels, patch height, patch width]; their sum plus the bias is the number.
    """

    weight: Array
    bias: Array
    linear: Array
    convolution: Array
    embedded: Array
    difference: float
    number: int
    products: Array
    flat: Array
    shape: tuple[int, int]


@without_gradients()
def embedding_step(walk: Walk, *, place: Size, number: int = 0) -> EmbeddingStep:
    """The embedding of the patch at (row, col), and how one of its numbers comes about."""
    model, config = walk.model, walk.model.config
    if not 0 <= number < config.embed_dim:
        raise ParameterError(
            f"Number {number} does not exist: an embedding has numbers 0-{config.embed_dim - 1}."
        )
    index = patch_index(walk, place)
    projection = model.patch_embed.proj
    weight = projection.weight.detach().flatten(1).clone()  # a step does not change when the model does
    bias = None if projection.bias is None else projection.bias.detach().clone()
    flat = model.patch_embed.patches(walk.pixels)[0]  # [n, channels * P * P]
    linear = F.linear(flat, weight, bias)  # [n, dim]
    kernel = weight.reshape(-1, config.in_chans, *config.patch_size)
    by_conv = F.conv2d(model.patch_embed.whole_patches(walk.pixels), kernel, bias, stride=config.patch_size)
    by_conv = by_conv[0].flatten(1).T  # [n, dim]
    embedded = model.patch_embed(walk.pixels)[0]
    products = (flat[index] * weight[number]).reshape(config.in_chans, *config.patch_size)
    return EmbeddingStep(
        weight=to_numpy(weight),
        bias=np.zeros(len(weight), np.float32) if bias is None else to_numpy(bias),
        linear=to_numpy(linear[index]),
        convolution=to_numpy(by_conv[index]),
        embedded=to_numpy(embedded[index]),
        difference=float((linear - by_conv).abs().max()),
        number=number,
        products=to_numpy(products),
        flat=to_numpy(flat[index]),
        shape=(int(embedded.shape[0]), int(embedded.shape[1])),
    )


def patch_index(walk: Walk, place: Size) -> int:
    """Index of the patch (row, col) among the patches."""
    return walk.layout.token(place) - walk.layout.patch_slice.start


# --- tokens before the patches, and positions


@dataclass(frozen=True, eq=False)
class PrefixStep:
    """The tokens that come from no patch: learned vectors put before the sequence.

    Args:
        names: of the prefix tokens, in order.
        vectors: as they are learned, before positions, [prefix, dim].
        patch_norm: median length of an embedded patch, to compare with.
        layer: the layer whose attention is looked at.
        received: share of the attention of all patches that each prefix token receives there, mean over heads, [prefix].
        changed: cosine similarity of each prefix token before the first and after the last block, [prefix].
    """

    names: tuple[str, ...]
    vectors: Array
    patch_norm: float
    layer: int
    received: Array
    changed: Array
    num_patches: int
    dim: int
    pooling: str
    read: tuple[str, ...]


@without_gradients()
def prefix_step(walk: Walk, trace: Trace, *, layer: int) -> PrefixStep:
    """The prefix tokens, and how much of the patches' attention they draw in a layer."""
    model, layout = walk.model, walk.layout
    names, count = layout.prefix, layout.num_prefix
    parts = [part[0] for part in (model.cls_token, model.dist_token, model.reg_token) if part is not None]
    dim = model.config.embed_dim
    vectors = torch.cat(parts).clone() if parts else torch.zeros(0, dim)
    received = torch.zeros(0)
    if count:
        columns = trace.received(layer, list(range(count)))  # [heads, tokens, prefix]
        received = columns[:, layout.patch_slice].mean((0, 1))
    return PrefixStep(
        names=names,
        vectors=to_numpy(vectors),
        patch_norm=float(model.patch_embed(walk.pixels)[0].norm(dim=-1).median()),
        layer=layer,
        received=to_numpy(received),
        changed=to_numpy(F.cosine_similarity(walk.stream[0, :count], walk.stream[-1, :count], dim=-1)),
        num_patches=layout.num_patches,
        dim=dim,
        pooling=str(layout.pooling),
        read=layout.class_tokens,
    )


@dataclass(frozen=True, eq=False)
class PositionStep:
    """How the model knows where a patch was, and what it answers when it does not.

    Args:
        kind: as `ViTConfig.position_kind` calls it.
        trained_grid: grid that the positions were made for.
        table: position of each patch of this image, [n, dim]; None where nothing is added to the patches.
        trained_table: the same on the trained grid.
        waves: for comparison, the sine and cosine table of n places, [n, dim].
        angles: for rotary positions, the angle of each pair of numbers at each patch, [n, head_dim / 2].
        similarity: cosine similarity of the followed patch's position with every other, [rows, cols]; None for no positions.
        position_norm: length of the followed patch's position; 0 without a table.
        patch_norm: length of the followed patch's embedding.
        output: what the model says of the image, [outputs].
        shuffled: what it says when the patches are shuffled, [outputs].
        unplaced: what it says without positions, [outputs].
        unplaced_shuffled: without positions, shuffled: the same up to rounding.
        order: which patch stands where after shuffling, [n].
    """

    kind: str
    grid: Grid
    trained_grid: Grid
    variant: str
    place: Size
    table: Array | None
    trained_table: Array | None
    waves: Array
    angles: Array | None
    similarity: Array | None
    position_norm: float
    patch_norm: float
    output: Array
    shuffled: Array
    unplaced: Array
    unplaced_shuffled: Array
    order: Array

    @property
    def resampled(self) -> bool:
        """Whether the positions had to be brought to another grid."""
        return self.trained_table is not None and self.grid != self.trained_grid


@without_gradients()
def position_step(walk: Walk, *, place: Size, seed: int = 1) -> PositionStep:
    """Positions at the patch (row, col), and the model's answer to the same patches in another order.

    Args:
        seed: of the shuffle; 0 leaves the patches where they are.
    """
    model, config, grid = walk.model, walk.model.config, walk.grid
    index, own = patch_index(walk, place), len(config.positioned_prefix)
    order = torch.arange(grid[0] * grid[1])
    if seed:
        order = order[torch.randperm(len(order), generator=torch.Generator().manual_seed(seed))]
    mixed = rearranged(model, walk.pixels, order)
    with undisturbed(model):
        output, shuffled = model.classify(walk.stream[-1:])[0], model(mixed)[0]
        unplaced, unplaced_shuffled = without_positions(model)(
            torch.cat((model.patch_embed.whole_patches(walk.pixels), mixed))
        )
    has_table = config.position not in ("rotary", "none")
    table = model.position_table(grid)[own:] if has_table else None
    angles = angles_of(config, grid)
    embedded = model.patch_embed(walk.pixels)[0, index]
    return PositionStep(
        kind=config.position_kind,
        grid=grid,
        trained_grid=config.table_grid,
        variant=config.resample,
        place=place,
        table=None if table is None else to_numpy(table.clone()),
        trained_table=to_numpy(model.position_table(config.table_grid)[own:].clone()) if has_table else None,
        waves=to_numpy(sinusoidal_1d(len(order), config.embed_dim)),
        angles=None if angles is None else to_numpy(angles),
        similarity=position_similarity_of(table, angles, index, grid),
        position_norm=0.0 if table is None else float(table[index].norm()),
        patch_norm=float(embedded.norm()),
        output=to_numpy(output),
        shuffled=to_numpy(shuffled),
        unplaced=to_numpy(unplaced),
        unplaced_shuffled=to_numpy(unplaced_shuffled),
        order=to_numpy(order),
    )


@dataclass(frozen=True, eq=False)
class PositionColours:
    """Three directions in which learned positions differ most, so that each position becomes a colour.

    Args:
        mean: of the positions as trained, [dim].
        axes: the directions, [3, dim], sign fixed by the largest entry; zeros where there are fewer.
        low, high: ends of the positions as trained along each direction, [3].
    """

    mean: Array
    axes: Array
    low: Array
    high: Array

    def of(self, table: Array) -> Array:
        """Positions [n, dim] as colours, bytes [n, 3]; what lies beyond the trained ends is clipped."""
        along = (table - self.mean) @ self.axes.T
        share = np.clip((along - self.low) / np.maximum(self.high - self.low, 1e-12), 0, 1)
        colours: Array = np.round(255 * share).astype(np.uint8)
        return colours


@without_gradients()
def position_colours(model: VisionTransformer) -> PositionColours | None:
    """Colours for the positions of a model; None where it has learned none."""
    if model.config.position != "learned":
        return None
    table = (
        model.position_table(model.config.table_grid)[len(model.config.positioned_prefix) :].double().cpu()
    )
    mean = table.mean(0)
    axes = torch.linalg.svd(table - mean, full_matrices=False).Vh[:3]
    axes = axes * axes.gather(1, axes.abs().argmax(1, keepdim=True)).sign()
    axes = F.pad(axes, (0, 0, 0, 3 - len(axes)))
    along = (table - mean) @ axes.T
    ends = along.min(0).values, along.max(0).values
    return PositionColours(to_numpy(mean), to_numpy(axes), to_numpy(ends[0]), to_numpy(ends[1]))


# --- attention, heads, a block, the class

CURVE_POINTS = 161
_BINS = 60


@dataclass(frozen=True, eq=False)
class AttentionStep:
    """One query of one head: its scores, their softmax, and what it gathers.

    Args:
        token: index of the token that asks.
        qkv: the three projections of that token in one row, [3 * dim].
        query: its query in this head as the dot product sees it, [head_dim].
        keys: of all tokens in this head, [tokens, head_dim]; `values` likewise.
        scale: factor on the dot products.
        products: query times each key, [tokens].
        bias: what the model adds to the scores for the offset of each key, [tokens]; None where it adds nothing.
        scores: products times the scale, plus the bias.
        weights: softmax of the scores along the keys; the sum is 1.
        unscaled: softmax of the products without the scale; the sum is 1, too.
        over_queries: the weights if the softmax ran along the queries, the wrong axis; the sum is anything.
        output: the values weighted and added, [head_dim].
    """

    layer: int
    head: int
    token: int
    name: str
    qkv: Array
    query: Array
    keys: Array
    values: Array
    scale: float
    products: Array
    bias: Array | None
    scores: Array
    weights: Array
    unscaled: Array
    over_queries: Array
    output: Array
    num_heads: int
    turned: bool


@without_gradients()
def attention_step(walk: Walk, *, layer: int, head: int, token: int) -> AttentionStep:
    """What one token looks at in one head, from its projections to what it gathers."""
    attn = block_of(walk.model, layer).attn
    checked_index("Head", head, attn.num_heads)
    name = walk.layout.name(token)
    qkv, q, k, v, bias = _operands(walk, layer)
    q, k, v = q[head], k[head], v[head]  # each [tokens, head_dim]
    products = q @ k.T  # [queries, keys]
    added = torch.zeros_like(products) if bias is None else bias[head]
    row, scores = products[token], products * attn.scale + added
    weights = scores[token].softmax(-1)
    return AttentionStep(
        layer=layer,
        head=head,
        token=token,
        name=name,
        qkv=to_numpy(qkv[token]),
        query=to_numpy(q[token]),
        keys=to_numpy(k),
        values=to_numpy(v),
        scale=float(attn.scale),
        products=to_numpy(row),
        bias=None if bias is None else to_numpy(added[token]),
        scores=to_numpy(scores[token]),
        weights=to_numpy(weights),
        unscaled=to_numpy((row + added[token]).softmax(-1)),
        over_queries=to_numpy((scores[token] - scores.logsumexp(0)).exp()),
        output=to_numpy(weights @ v),
        num_heads=attn.num_heads,
        turned=walk.model.places(walk.grid).rotary is not None,
    )


@dataclass(frozen=True, eq=False)
class HeadsStep:
    """All heads of a layer for one query: side by side, put in one row, mixed by the output projection.

    Args:
        weights: what the token looks at in each head, [heads, tokens].
        outputs: what it gathers in each head, [heads, head_dim].
        concatenated: the same in one row, [dim].
        projected: after the output projection: what attention hands to the residual stream, [dim].
        contributions: how much of that came from each head; with the bias they add up to it, [heads, dim].
        bias: of the output projection, [dim].
        left_out: the head that is left out; `remaining`: the projected row without it, [dim].
    """

    layer: int
    token: int
    name: str
    weights: Array
    outputs: Array
    concatenated: Array
    projected: Array
    contributions: Array
    bias: Array
    left_out: int
    remaining: Array


@without_gradients()
def heads_step(walk: Walk, *, layer: int, token: int, left_out: int = 0) -> HeadsStep:
    """What all heads of a layer gather for one token, and what one of them adds."""
    attn = block_of(walk.model, layer).attn
    checked_index("Head", left_out, attn.num_heads)
    name = walk.layout.name(token)
    _, q, k, v, bias = _operands(walk, layer)
    scores = q[:, token : token + 1] @ k.transpose(-1, -2) * attn.scale  # [heads, 1, tokens]
    weights = (scores if bias is None else scores + bias[:, token : token + 1]).softmax(-1)
    outputs = (weights @ v)[:, 0]  # [heads, head_dim]
    mixed = attn.norm(outputs.flatten())  # [dim]; most models have no norm here
    matrix = attn.proj.weight.reshape(-1, attn.num_heads, attn.head_dim)  # [dim, heads, head_dim]
    parts = torch.einsum("ohd,hd->ho", matrix, mixed.reshape(attn.num_heads, -1))  # [heads, dim]
    projected = attn.proj(mixed)
    bias = torch.zeros_like(projected) if attn.proj.bias is None else attn.proj.bias.clone()
    return HeadsStep(
        layer=layer,
        token=token,
        name=name,
        weights=to_numpy(weights[:, 0]),
        outputs=to_numpy(outputs),
        concatenated=to_numpy(outputs.flatten()),
        projected=to_numpy(projected),
        contributions=to_numpy(parts),
        bias=to_numpy(bias),
        left_out=left_out,
        remaining=to_numpy(projected - parts[left_out]),
    )


@dataclass(frozen=True, eq=False)
class BlockStep:
    """One block: two branches that each read a normalised copy of the stream and add to the stream itself.

    Args:
        before: the token's residual stream before the block, [dim].
        attended: what the attention branch adds, `middle` the stream after it, `thought` what the MLP adds, `after` the stream
            after the block, each [dim].
        activation: name of the nonlinearity.
        hidden: its inputs for this token, [hidden].
        active: share of the inputs above 0: for this token, and over all tokens.
        histogram: inputs of all tokens counted in `bins`, [bins].
        curve: the nonlinearity itself, as (x, y), each [points].
        norms: length of this token's stream before the first and after each block, [layers + 1]; `median_norms` over all tokens.
        added: length of what each block adds to this token, [layers].
    """

    layer: int
    token: int
    name: str
    before: Array
    attended: Array
    middle: Array
    thought: Array
    after: Array
    activation: str
    hidden: Array
    active: tuple[float, float]
    histogram: Array
    bins: Array
    curve: tuple[Array, Array]
    norms: Array
    median_norms: Array
    added: Array


@without_gradients()
def block_step(walk: Walk, *, layer: int, token: int) -> BlockStep:
    """One token on its way through one block."""
    block, name = block_of(walk.model, layer), walk.layout.name(token)
    before = walk.stream[layer]
    attended = block.ls1(block.attn(block.norm1(before)[None], walk.model.places(walk.grid)))[0]
    middle = before + attended
    normed = block.norm2(middle)
    hidden = hidden_inputs(block, normed)  # [tokens, hidden]
    thought = block.ls2(block.mlp(normed))
    low, high = (float(end) for end in torch.aminmax(hidden))
    counts = torch.histc(hidden.float(), _BINS, low, high)
    edges = torch.linspace(low, high, _BINS + 1)
    x = torch.linspace(min(-4.0, low), max(4.0, high), CURVE_POINTS)
    norms = walk.stream.norm(dim=-1)  # [layers + 1, tokens]
    activation = walk.model.config.mlp
    return BlockStep(
        layer=layer,
        token=token,
        name=name,
        before=to_numpy(before[token]),
        attended=to_numpy(attended[token]),
        middle=to_numpy(middle[token]),
        thought=to_numpy(thought[token]),
        after=to_numpy((middle + thought)[token]),
        activation=activation,
        hidden=to_numpy(hidden[token]),
        active=(float((hidden[token] > 0).float().mean()), float((hidden > 0).float().mean())),
        histogram=to_numpy(counts),
        bins=to_numpy(edges),
        curve=(to_numpy(x), to_numpy(activated(activation, x))),
        norms=to_numpy(norms[:, token]),
        median_norms=to_numpy(norms.median(dim=-1).values),
        added=to_numpy(walk.stream[:, token].diff(dim=0).norm(dim=-1)),
    )


@dataclass(frozen=True, eq=False)
class ClassStep:
    """From the last block to the answer, and what the answer would have been after each earlier block.

    Args:
        pooled: the one vector that the head reads, [features].
        logits: the model's output, [outputs].
        output: what one output is; None where they are an embedding.
        probabilities: their softmax, or the sigmoid of each; None where outputs are not classes.
        top: indices of the five largest, the largest first; none of an embedding.
        lens: the outputs if the model stopped after 0, 1, ... blocks, [layers + 1, outputs]: an extrapolation, as the head was
            trained on the last block only.
        lens_probabilities: the same of these, [layers + 1, classes]; None where outputs are not classes.
        agreement: cosine similarity of those outputs with the final one, [layers + 1].
    """

    pooling: str
    pooled: Array
    logits: Array
    output: Output | None
    probabilities: Array | None
    top: tuple[int, ...]
    lens: Array
    lens_probabilities: Array | None
    agreement: Array


@without_gradients()
def class_step(walk: Walk, *, output: Output | None = None) -> ClassStep:
    """The answer, and how it grows through the layers (logit lens).

    Args:
        output: what one output is; None where nobody says it.
    """
    model, config = walk.model, walk.model.config
    lens = model.classify(walk.stream)  # [layers + 1, outputs]
    logits = lens[-1]
    has_classes = config.num_classes > 0 and not config.projection
    kind = output_kind(output, config.num_classes) if has_classes else None
    probabilities = None if kind in (None, "value") else shown(lens, kind)
    pooled = model.pool(walk.stream[-1:])[0]
    top = logits.topk(min(5, len(logits))).indices.tolist() if has_classes else []
    return ClassStep(
        pooling=config.pooling,
        pooled=to_numpy(pooled),
        logits=to_numpy(logits),
        output=kind,
        probabilities=None if probabilities is None else to_numpy(probabilities[-1]),
        top=tuple(int(i) for i in top),
        lens=to_numpy(lens),
        lens_probabilities=None if probabilities is None else to_numpy(probabilities),
        agreement=to_numpy(F.cosine_similarity(lens, logits[None], dim=-1)),
    )


def _operands(walk: Walk, layer: int) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor | None]:
    """The three projections in one row [tokens, 3 * dim]; query, key, value of each head [heads, tokens, head_dim]; and what is
    added to the scores, [heads, tokens, tokens], where anything is."""
    block = block_of(walk.model, layer)
    attn = block.attn
    qkv = attn.qkv(block.norm1(walk.stream[layer]))  # [tokens, 3 * dim]
    q, k, v = qkv.reshape(len(qkv), 3, attn.num_heads, attn.head_dim).permute(1, 2, 0, 3).unbind(0)
    q, k = attn.q_norm(q), attn.k_norm(k)
    places = walk.model.places(walk.grid)
    if places.rotary is not None:
        q, k = rotate(q, *places.rotary), rotate(k, *places.rotary)
    bias = places.bias(attn.relative_position_bias_table)
    return qkv, q, k, v, None if bias is None else bias[0]


def block_of(model: VisionTransformer, layer: int) -> Block:
    """One block of the model."""
    checked_index("Layer", layer, len(model.blocks))
    block = model.blocks[layer]
    assert isinstance(block, Block)
    return block
