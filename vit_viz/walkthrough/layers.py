"""One image on its way through a model, second half: attention, heads, a block, the class. See `embedding` for the first.

Source: Dosovitskiy et al. 2021, arXiv:2010.11929, section 3.1 and appendix A; Vaswani et al. 2017, arXiv:1706.03762, section 3.2.
"""

from __future__ import annotations

from dataclasses import dataclass

from vit_viz.analyses.attention import to_numpy
from vit_viz.indices import checked_index
from vit_viz.lazy import F, Tensor, torch, without_gradients
from vit_viz.model import Block, Mlp, PackedSwiGLU, SwiGLU, VisionTransformer
from vit_viz.model.positions import rotate
from vit_viz.outputs import Output, output_kind, shown
from vit_viz.walkthrough.embedding import Array, Walk

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
    """What one token looks at in one head, from its projections to what it gathers.

    Raises:
        ParameterError: there is no such layer, head or token.
    """
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
    """What all heads of a layer gather for one token, and what one of them adds.

    Raises:
        ParameterError: there is no such layer, head or token.
    """
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
    """One token on its way through one block.

    Raises:
        ParameterError: there is no such layer or token.
    """
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


def hidden_inputs(block: Block, normed: Tensor) -> Tensor:
    """What the nonlinearity of a block's MLP receives: [..., dim] -> [..., hidden]; of a gated MLP, its gate."""
    mlp = block.mlp
    if isinstance(mlp, SwiGLU):
        return mlp.fc1_g(normed)  # type: ignore[no-any-return]  # calling a module is untyped
    assert isinstance(mlp, Mlp | PackedSwiGLU)
    hidden: Tensor = mlp.fc1(normed)
    return hidden.chunk(2, dim=-1)[0] if isinstance(mlp, PackedSwiGLU) else hidden


def activated(activation: str, x: Tensor) -> Tensor:
    """The nonlinearity of a configuration's MLP at x."""
    if activation.startswith("swiglu"):
        return F.silu(x)
    if activation == "quick_gelu":
        return x * torch.sigmoid(1.702 * x)
    return F.gelu(x, approximate="tanh" if activation == "gelu_tanh" else "none")


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
    """One block of the model.

    Raises:
        ParameterError: there is no such layer.
    """
    checked_index("Layer", layer, len(model.blocks))
    block = model.blocks[layer]
    assert isinstance(block, Block)
    return block
