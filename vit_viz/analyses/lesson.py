"""The numbers of the lesson: one token of one photo on its way through a model, part by part.

Everything is read from the recorded pass and from the weights, so that it belongs to the edited model where the model is edited.

Source: Dosovitskiy et al. 2021, arXiv:2010.11929, section 3.1 and appendix D.4; Vaswani et al. 2017, arXiv:1706.03762, section 3.2;
nostalgebraist 2020, "interpreting GPT: the logit lens".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from vit_viz.analyses.attention import to_numpy, weighted_rows
from vit_viz.analyses.direct_parts import Values, head_outputs, mean_weights, normed
from vit_viz.analyses.options import Option
from vit_viz.analyses.positions import position_vectors
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.analyses.spec import Job, Place, asks
from vit_viz.analyses.tokens import cosines, patches_of, token_states
from vit_viz.answer import Answer, Provenance, axes
from vit_viz.capture import Trace, is_edited, surrounding_edits
from vit_viz.capture.forward import undisturbed
from vit_viz.capture.layers import exact
from vit_viz.geometry import Query, TokenLayout, as_query
from vit_viz.indices import checked_index, layer_index
from vit_viz.lazy import F, Tensor, nn, torch
from vit_viz.model import Block, Mlp, PackedSwiGLU, SwiGLU, VisionTransformer, ViTConfig, gelu
from vit_viz.outputs import UNITS, output_kind, output_name, shown

if TYPE_CHECKING:
    from vit_viz.capture.active_edits import ActiveEdits

Array = NDArray[np.float32]

_LAYER = Option("layer", "The layer, counted from 0; -1 is the last.", low=-999, high=999, is_layer=True)
_READ = "what the answer is read from where that is a token, else the patch in the middle"
_MOST_CLASSES = 24


@dataclass(frozen=True, eq=False, repr=False)
class LessonTokens(Answer):
    """How a patch becomes a token, and the tokens that stand before the patches.

    Args:
        pixels: of the patch as the model receives them, in [0, 1] of each channel, the normalisation undone, [channels, patch
            height, patch width].
        flat: the same normalised, in one row in the model's order, channel by channel, [channels * patch height * patch width].
        embedded: their linear map, after the norm that some models have there, [dim].
        position: what is added because of the place, [dim]; zeros where nothing is.
        token: the row that enters the first block, [dim]: the sum of both, after a `pre_norm`.
        prefix: the same rows of the tokens before the patches, [prefix, dim].
        places: how alike the patch's position is to that of each patch: cosine, of rotary positions the mean cosine of the
            relative phase, [rows, cols]; [0, 0] where positions are neither.
        place: the patch, (row, col).
        shape: what a drawing of the model and its words depend on: its `ViTConfig`, and hidden (numbers inside an MLP), classes
            (outputs; 0 of an embedding), rotary and relative (whether scores depend on places, and on offsets), read (what the
            answer is read from, in words).
    """

    pixels: Array
    flat: Array
    embedded: Array
    position: Array
    token: Array
    prefix: Array
    places: Array
    place: tuple[int, int]
    shape: Mapping[str, object]
    provenance: Provenance

    AXES = axes(
        pixels=("channel", "pixel row", "pixel col"),
        flat=("pixel",),
        prefix=("token", "number"),
        places=("row", "col"),
        **dict.fromkeys(("embedded", "position", "token"), ("number",)),
    )
    DRAWN = ("pixels", "token", "places")


@dataclass(frozen=True, eq=False, repr=False)
class LessonAttention(Answer):
    """One token asks in one head: from its query to what it gathers.

    Args:
        query: of the token as the dot product sees it, after a norm and turned by its place where the model does so, [head_dim].
        keys: of all tokens, likewise, [tokens, head_dim].
        values: of all tokens, [tokens, head_dim].
        products: query times each key, [tokens].
        scores: products * scale, and what the model adds for the offset of the key, [tokens]; -inf where an edit forbids to look
            there.
        weights: their softmax, [tokens]; the sum is 1.
        output: values weighted and added, as the head hands it on, [head_dim].
        token: index of the token that asks; `name`: in words.
        scale: factor of the products.
        has_bias: whether the model adds anything to the scores.
    """

    query: Array
    keys: Array
    values: Array
    products: Array
    scores: Array
    weights: Array
    output: Array
    token: int
    name: str
    layer: int
    head: int
    scale: float
    has_bias: bool
    provenance: Provenance

    AXES = axes(
        query=("number",),
        keys=("token", "number"),
        values=("token", "number"),
        output=("number",),
        **dict.fromkeys(("products", "scores", "weights"), ("token",)),
    )
    DRAWN = ("products", "weights", "output")


@dataclass(frozen=True, eq=False, repr=False)
class LessonBlock(Answer):
    """One token in one block: what each head hands on, and what attention and MLP add to the token.

    Args:
        weights: what the token looks at in each head, [heads, tokens].
        outputs: what each head gathers, [heads, head_dim].
        contributions: what of that reaches the token, behind output projection and LayerScale, [heads, dim].
        rest: of biases, [dim]; contributions + rest = attended.
        before: the token as it enters the block; `attended`: what attention adds; `middle`: before + attended; `thought`: what
            the MLP adds; `after`: middle + thought, each [dim].
        hidden: inputs of the MLP's nonlinearity; of a gated MLP, of its gate, [hidden].
        activated: the nonlinearity of each, [hidden].
        token: index of the token; `name`: in words.
    """

    weights: Array
    outputs: Array
    contributions: Array
    rest: Array
    before: Array
    attended: Array
    middle: Array
    thought: Array
    after: Array
    hidden: Array
    activated: Array
    token: int
    name: str
    layer: int
    provenance: Provenance

    AXES = axes(
        weights=("head", "token"),
        outputs=("head", "number"),
        contributions=("head", "number"),
        **dict.fromkeys(
            ("rest", "before", "attended", "middle", "thought", "after", "hidden", "activated"), ("number",)
        ),
    )
    DRAWN = ("contributions", "before", "attended", "thought", "after")


@dataclass(frozen=True, eq=False, repr=False)
class LessonDepth(Answer):
    """One token, and what the answer is read from, through all blocks; states are before the first and after each block.

    Args:
        stream: the token in each state, [layers + 1, dim].
        answer_looks: what the tokens look at that the answer is read from, in each layer, mean of the heads, [layers, tokens];
            where a learned query reads at the end, of all patches alike.
        alike: cosine of the token with each patch in each state, [layers + 1, rows, cols].
        tops: what the head would say of `classes` if it read each state, [layers + 1, classes]: shares, or values; none of an
            embedding. An extrapolation: the head was trained on the last state alone.
        agreement: cosine of what the head would say of each state with what it says of the last, [layers + 1].
        token: index of the token; `name`: in words.
        classes: the first five of the last state, then what is among the first three of an earlier one, the last state first; at
            most 24; `words`: their names.
        kind: what `tops` are: "probability" or "value"; "embedding" where there are none.
        unit: of them, in words.
    """

    stream: Array
    answer_looks: Array
    alike: Array
    tops: Array
    agreement: Array
    token: int
    name: str
    classes: tuple[int, ...]
    words: tuple[str, ...]
    kind: Literal["probability", "value", "embedding"]
    unit: str
    provenance: Provenance

    AXES = axes(
        stream=("state", "number"),
        answer_looks=("layer", "token"),
        alike=("state", "row", "col"),
        tops=("state", "class"),
        agreement=("state",),
    )
    DRAWN = ("answer_looks", "alike", "tops")


# --- the questions


def _tokens(job: Job, *, query: Query | None) -> LessonTokens:
    """How a patch becomes a token; of another token, or of none, that in the middle."""
    with _followed(job, query, method="lesson tokens") as of:
        model, config, layout = of.model, of.model.config, of.trace.layout
        place = layout.place(of.token) or _middle(layout)
        index = layout.token(place) - layout.num_prefix
        with exact():
            flat = model.patch_embed.patches(of.subject.pixels)[0, index].float()
            pixels = flat.reshape(config.in_chans, *config.patch_size).cpu()
            if (recipe := of.subject.preprocess) is not None:
                mean, std = (torch.tensor(one)[:, None, None] for one in (recipe.mean, recipe.std))
                pixels = pixels * std + mean
            embedded = model.patch_embed(of.subject.pixels.to(of.subject.dtype))[0, index]
            position = torch.zeros_like(embedded)
            if config.position not in ("rotary", "none"):
                position = model.position_table(layout.grid)[len(config.positioned_prefix) + index]
            vectors = position_vectors(model, layout.grid)
            places = torch.zeros(0, 0) if vectors is None else (vectors @ vectors[index]).reshape(layout.grid)
        prefix, token = of.stream[0, : layout.num_prefix], of.stream[0, layout.num_prefix + index]
        return LessonTokens(
            **_fp32(pixels=pixels, flat=flat, embedded=embedded, position=position, token=token),
            **_fp32(prefix=prefix, places=places),
            place=place,
            shape=_shape(config, layout, has_classes=of.subject.has_classes),
            provenance=of.provenance.with_parameters(query=layout.name(layout.token(place))),
        )


def _attention(
    job: Job,
    *,
    query: Query | None,
    layer: Annotated[int, _LAYER] = -1,
    head: Annotated[int, Option("head", "The head, counted from 0.", low=0, high=999)] = 0,
) -> LessonAttention:
    """One token asks in one head, step by step."""
    with _followed(job, query, method="lesson attention", layer=layer, head=head) as of, exact():
        number, token = layer_index(layer, of.trace.num_layers), of.token
        checked_index("Head", head, of.trace.num_heads)
        attention = of.trace.layers[number]
        assert attention.q is not None
        assert attention.k is not None
        asks_with, keys = attention.q[head, token].cpu().double(), attention.k[head].cpu().double()
        products, bias = keys @ asks_with, torch.zeros(len(keys), dtype=torch.float64)
        if attention.bias is not None:
            bias = attention.bias.expand(attention.shape)[head, token].cpu().double()
        scores = products * attention.scale + bias
        values, outputs, weights = (of_heads[head] for of_heads in of.gathered(number))
        return LessonAttention(
            **_fp32(query=asks_with, keys=keys, values=values, products=products, scores=scores),
            **_fp32(weights=weights, output=outputs),
            layer=number,
            head=head,
            scale=float(attention.scale),
            has_bias=bool((bias.isfinite() & (bias != 0)).any()),  # a key that edits forbid adds no bias
            **of.named,
        )


def _block(job: Job, *, query: Query | None, layer: Annotated[int, _LAYER] = -1) -> LessonBlock:
    """All heads of a layer together, and what the block adds to one token."""
    with _followed(job, query, method="lesson block", layer=layer) as of, exact():
        number = layer_index(layer, of.trace.num_layers)
        block, before = of.blocks[number], of.stream[number, of.token]
        attn, mlp = block.attn, block.mlp
        _, outputs, weights = of.gathered(number)
        mixed = normed(attn.norm, outputs.flatten()).reshape(outputs.shape)  # most models have no norm here
        matrix = attn.proj.weight.to(before).reshape(-1, *outputs.shape)  # [dim, heads, head_dim]
        contributions = block.ls1(torch.einsum("ohd,hd->ho", matrix, mixed))
        rest = torch.zeros_like(before) if attn.proj.bias is None else block.ls1(attn.proj.bias.to(before))
        attended = contributions.sum(0) + rest
        middle = before + attended
        inputs = normed(block.norm2, middle).to(next(mlp.parameters()))
        (hidden, activated), thought = _hidden(mlp, inputs), block.ls2(mlp(inputs)).to(before)
        return LessonBlock(
            **_fp32(weights=weights, outputs=outputs, contributions=contributions, rest=rest),
            **_fp32(before=before, attended=attended, middle=middle, thought=thought, after=middle + thought),
            **_fp32(hidden=hidden, activated=activated),
            layer=number,
            **of.named,
        )


def _depth(job: Job, *, query: Query | None) -> LessonDepth:
    """One token and the answer through all blocks."""
    with _followed(job, query, method="lesson depth") as of:
        trace, subject, layout = of.trace, of.subject, of.trace.layout
        read = mean_weights(of.model, layout.num_tokens, of.edits)  # where a query pools, as in a mean
        pooled = read > 0  # all but patches that edits remove
        if not of.model.config.pool_prefix:
            pooled[: layout.num_prefix] = True
        said = of.model.classify(of.stream[:, pooled.to(trace.device)].to(subject.dtype)).float()
        if layout.pooling == "class":
            read = torch.from_numpy(layout.weights("pool"))
        read = read.to(trace.device, torch.float32)
        with exact():
            rows = [weighted_rows(trace, layer, read).mean(0) for layer in range(trace.num_layers)]
            alike = cosines(of.stream, of.stream[:, of.token, None])
        kind = output_kind(subject.output, said.shape[1]) if subject.has_classes else None
        told = said[:, :0] if kind is None else shown(said, kind)
        classes = _classes(told)
        return LessonDepth(
            **_fp32(
                stream=of.stream[:, of.token], answer_looks=torch.stack(rows), alike=patches_of(trace, alike)
            ),
            **_fp32(tops=told[:, list(classes)], agreement=cosines(said, said[-1])),
            classes=classes,
            words=tuple(output_name(index, subject.labels, subject.noun) for index in classes),
            kind="embedding" if kind is None else "value" if kind == "value" else "probability",
            unit="" if kind is None else UNITS[kind],
            **of.named,
        )


# --- parts


@dataclass(frozen=True, eq=False)
class _Followed:
    """A token of a recorded pass, and what it went through."""

    subject: PreparedImage
    model: VisionTransformer
    trace: Trace
    token: int
    edits: ActiveEdits | None
    provenance: Provenance

    @property
    def blocks(self) -> list[Block]:
        """Of the model."""
        return [block for block in self.model.blocks if isinstance(block, Block)]

    @property
    def stream(self) -> Tensor:
        """The residual stream before the first and after each block, fp32 [layers + 1, tokens, dim]."""
        return token_states(self.trace)

    @property
    def named(self) -> dict[str, Any]:
        """What every answer says of the token, and where it comes from."""
        name = self.trace.layout.name(self.token)
        return {"token": self.token, "name": name, "provenance": self.provenance}

    def gathered(self, layer: int) -> tuple[Tensor, Tensor, Tensor]:
        """Of each head the values, [heads, tokens, head_dim]; what the token gathers of them, [heads, head_dim]; and its weights,
        [heads, tokens]."""
        block = self.blocks[layer]
        values = Values(block.attn.qkv, block.attn.num_heads).of(normed(block.norm1, self.stream[layer]))
        weights = self.trace.attention(layer, queries=[self.token])[:, 0]
        if self.edits is None:
            return values, torch.einsum("hn,hnd->hd", weights, values), weights
        outputs = head_outputs(self.trace, layer, values, self.edits)[self.token]
        return values, outputs.reshape(len(values), -1), weights


@contextmanager
def _followed(job: Job, query: Query | None, **parameters: Any) -> Iterator[_Followed]:
    """The token that is asked about, in a turn at the model."""
    subject, trace = job.image, job.tokens
    model, layout = subject.transformer("The lesson"), trace.layout
    query = None if query is None else as_query(query)
    if query not in (None, "pool"):
        token = layout.tokens(query)[0]
    else:
        token = layout.token(layout.class_tokens[0] if layout.pooling == "class" else _middle(layout))
    provenance = trace.provenance.with_parameters(query=layout.name(token), **parameters)
    with torch.no_grad(), subject.turn(), undisturbed(model):
        edits = surrounding_edits(images=1) if is_edited() else None
        yield _Followed(subject, model, trace, token, edits, provenance)


def _middle(layout: TokenLayout) -> tuple[int, int]:
    return layout.grid[0] // 2, layout.grid[1] // 2


def _classes(told: Tensor) -> tuple[int, ...]:
    """Which outputs are followed through the states, of what each state says, [states, outputs]; see `LessonDepth`."""
    count = told.shape[1]
    order = told.argsort(dim=-1, descending=True, stable=True).tolist()
    chosen = order[-1][: min(5, count)] + [index for row in order[-2::-1] for index in row[: min(3, count)]]
    return tuple(dict.fromkeys(chosen))[:_MOST_CLASSES]


def _hidden(mlp: nn.Module, inputs: Tensor) -> tuple[Tensor, Tensor]:
    """What the nonlinearity of an MLP receives, or that of its gate, and what it makes of that, each [hidden]."""
    if isinstance(mlp, Mlp):
        hidden = mlp.fc1(inputs)
        return hidden, gelu(hidden, mlp.activation)
    assert isinstance(mlp, SwiGLU | PackedSwiGLU)
    gate = mlp.fc1_g(inputs) if isinstance(mlp, SwiGLU) else mlp.fc1(inputs).chunk(2, dim=-1)[0]
    return gate, F.silu(gate)


def _shape(config: ViTConfig, layout: TokenLayout, *, has_classes: bool) -> dict[str, object]:
    """What a drawing of the model and its words depend on; see `LessonTokens`."""
    classes = " and ".join(layout.class_tokens)
    seen = "all tokens" if config.pool_prefix else "the patches"
    pools = {
        "class": f"the tokens {classes}" if len(layout.class_tokens) > 1 else "the class token",
        "mean": f"the mean of {seen}",
        "attention": f"what a learned query gathers from {seen}",
    }
    return config.to_dict() | {
        "hidden": int(config.mlp_hidden or 0) // (2 if config.mlp == "swiglu_packed" else 1),
        "classes": config.num_classes if has_classes else 0,
        "rotary": config.position == "rotary" or config.rotary_grid is not None,
        "relative": config.relative_bias or config.shared_bias,
        "read": "the class token and the mean of the patches"
        if config.pool_concat
        else pools[config.pooling],
    }


def _fp32(**values: Tensor) -> dict[str, Any]:
    """Copies: an answer holds neither weights, which may change, nor a whole trace."""
    return {name: to_numpy(one.float()).copy() for name, one in values.items()}


# --- declared

_VIT, _ATTENTION = "Dosovitskiy et al. 2021, arXiv:2010.11929", "Vaswani et al. 2017, arXiv:1706.03762"

LESSON_TOKENS = asks(
    _tokens,
    name="lesson_tokens",
    label="Lesson: a patch becomes a token",
    also_called="patch embedding, linear projection, flatten, positional encoding",
    shows="a patch's pixels, their embedding, its position, and the token that they make.",
    hides="what the numbers of a token stand for: none has a name.",
    formula=r"$x_i = W p_i + b + e_i$, with the pixels $p_i$ of patch $i$ and its position $e_i$",
    source=f"{_VIT}, section 3.1",
    class_blind=True,
    reads="tokens",
    place=Place("lesson", {"beat": "cut-patch"}),
    without_query="the patch in the middle",
)

LESSON_ATTENTION = asks(
    _attention,
    name="lesson_attention",
    label="Lesson: one patch asks",
    also_called="query, key, value, qkv, scores, softmax, scaled dot product, self-attention",
    shows="one token in one head: query, keys, scores, weights, and what is gathered.",
    hides="what the other heads do, and whether the answer depends on this one.",
    formula=r"$o = \sum_j a_j v_j$ with $a = \mathrm{softmax}(s\, q k^\top + b)$",
    source=f"{_ATTENTION}, section 3.2.1",
    class_blind=True,
    reads="tokens",
    place=Place("lesson", {"beat": "ask-stop"}),
    without_query=_READ,
)

LESSON_BLOCK = asks(
    _block,
    name="lesson_block",
    label="Lesson: heads together, and a block",
    also_called="multi-head attention, output projection, residual connection, feed-forward, mlp, gelu",
    shows="what heads, attention and MLP of a layer add to a token.",
    hides="what the added vectors mean: lengths say how much, not what.",
    formula=r"$x \leftarrow x + \sum_h W_{O, h} o_h + b$; then $x \leftarrow x + \mathrm{MLP}(\mathrm{norm}(x))$",
    source=f"{_ATTENTION}, section 3.2.2; {_VIT}, section 3.1",
    class_blind=True,
    reads="tokens",
    place=Place("lesson", {"beat": "heads-all"}),
    without_query=_READ,
)

LESSON_DEPTH = asks(
    _depth,
    name="lesson_depth",
    label="Lesson: through all blocks",
    also_called="residual stream, logit lens, layer by layer",
    shows="one token and the answer through all blocks: what both look at, and what the head would say.",
    hides="what an early state really holds: the head was trained on the last one alone.",
    formula=r"$x_{l + 1} = x_l + a_l + m_l$; what is said of a state: $\mathrm{softmax}(\mathrm{head}(\mathrm{norm}(x_l)))$",
    source="nostalgebraist 2020; Vilas et al. 2023, arXiv:2310.18969",
    reads="tokens",
    place=Place("lesson", {"beat": "depth-alike"}),
    without_query=_READ,
)
