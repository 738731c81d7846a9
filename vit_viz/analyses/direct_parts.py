"""The parts of an output as numbers: what reads the residual stream, as linear functions, and what each module put into it.

What is read and summed is in double precision. What a head took from a token is in single precision, as the model computes it; the
rounding falls to the MLP behind it. A norm y = g (x - mean x) / s + b is linear in x once s is held, since the mean is linear, too.
So whatever stands between the residual stream and an output is pulled back to one direction per reading, and a head's part of it
is sum_t w_t sum_i A[t, i] (v_i . u), for the direction u that its output projection and its LayerScale leave of it. A cosine with
a sentence is linear once the length of the picture's embedding is held, too.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from vit_viz.capture.layers import exact
from vit_viz.capture.trace import Trace
from vit_viz.lazy import F, Tensor, nn, torch
from vit_viz.model import Block, LayerScale, SentenceHead, VisionTransformer

if TYPE_CHECKING:
    from vit_viz.capture.active_edits import ActiveEdits
    from vit_viz.capture.addends import Stream

Rest: TypeAlias = "dict[str, Tensor | float]"

_FEW = 8  # queries whose attention is formed by itself; of more, that of all is, tile by tile
_EMBEDDING, _ATTENTION = "embedding", "output biases of attention"
_NORM, _HEAD = "bias of the last norm", "bias of the output layer"
_BOTH = "biases behind the last layer"  # where a norm is written out
_ROUNDING = 1e-6  # of the largest part, below which a part of a module is none


@dataclass(frozen=True, eq=False)
class DirectParts:
    """What an output is the sum of.

    Args:
        layers: names of the rows: numbers of layers, or "pool".
        terms: of each head and each token that it took it from, [layers, heads, tokens].
        mlps: of each MLP, [layers].
        rest: of what is neither, by name.
    """

    layers: tuple[str, ...]
    terms: Tensor
    mlps: Tensor
    rest: dict[str, float]


@dataclass(frozen=True, eq=False)
class _Reading:
    """sum_t weights[t] (direction . z_t) of the residual stream z: one way in which the output reads it, or each of several."""

    direction: Tensor  # [..., dim]
    weights: Tensor  # [tokens]

    def of(self, stream: Tensor) -> Tensor:
        """What is read of a stream [tokens, dim]."""
        wanted = self.weights.nonzero().flatten()
        return self.weights[wanted] @ (stream[wanted].to(self.direction) @ self.direction)


def direct_parts(
    model: VisionTransformer, trace: Trace, weights: Tensor, edits: ActiveEdits | None
) -> DirectParts:
    """The parts of weights . outputs.

    Args:
        model: all of whose modules are ours.
        trace: that kept the residual stream.
        weights: of the outputs, [outputs], in double precision, where the computation takes place.
        edits: under which the trace was made.
    """
    rest: Rest = {}
    if model.attn_pool is not None:
        return _of_pool(model, trace, weights, rest)
    assert trace.residual is not None
    stream = trace.residual.to(weights.device)
    readings = _readings(model, model.head, stream[-1].double(), weights, edits, rest)
    states = [sum(float(reading.of(state)) for reading in readings) for state in stream]
    terms, mlps, biases = [], [], 0.0
    for layer, block in enumerate(model.blocks):
        assert isinstance(block, Block)
        of_heads, bias = _of_attention(block, trace, layer, stream[layer], readings, edits)
        terms.append(of_heads)
        # whatever of the block is not its attention
        mlps.append(states[layer + 1] - states[layer] - float(of_heads.sum()) - bias)
        biases += bias
    names = tuple(str(layer) for layer in range(len(terms)))
    rest |= {_EMBEDDING: states[0], _ATTENTION: biases}
    return DirectParts(names, torch.stack(terms), torch.tensor(mlps, dtype=torch.float64), _there(rest))


def written(
    model: VisionTransformer, trace: Trace, layer: int, head: int, edits: ActiveEdits | None
) -> Tensor:
    """What a head writes into the picture's embedding, [numbers], in units of its length: its part of a cosine, along a direction.

    With a learned pool, through the values of the pool, whose attention is held; without what the pool's MLP makes of it.

    Args:
        model: all of whose modules are ours, and whose head projects to an embedding, or scores by one.
        trace: that kept the residual stream.
        edits: under which the trace was made.
    """
    assert trace.residual is not None
    assert trace.logits is not None
    # MPS has no double precision
    stream, own = trace.residual.to("cpu" if trace.device.type == "mps" else trace.device), model.head
    projection, numbers = own, trace.logits.numel()
    if isinstance(own, SentenceHead):
        projection, numbers = own.projection, own.directions.shape[1]
    each = torch.eye(numbers, dtype=torch.float64, device=stream.device)
    along_axes, last = SentenceHead(projection, each, 1.0), stream[-1].double()
    if model.attn_pool is None:
        readings = _readings(model, along_axes, last, each, edits, {})
    else:
        readings = _readings_of_pool(model, along_axes, last, each, trace)
    block = model.blocks[layer]
    assert isinstance(block, Block)
    inputs, values, outputs = _inside(block, trace, layer, stream[layer], edits)
    of_head = slice(head * block.attn.head_dim, (head + 1) * block.attn.head_dim)
    total = each.new_zeros(numbers)
    for reading in readings:
        wanted, queries, _ = _at_heads(block, layer, outputs, reading, edits)
        gathered = _gathered(trace, layer, queries)[head] @ values.of(inputs)[head].double()
        total += wanted[:, of_head] @ gathered
    return total


def recorded_parts(stream: Stream) -> DirectParts:
    """The same of any module, from what its stream is a sum of."""
    terms = stream.terms
    mlps, biases = torch.zeros(len(terms), dtype=torch.float64), -float(terms.sum())
    for one in stream.addends:
        if one.calls:
            biases += one.part
        else:
            mlps[min(one.layer, len(mlps) - 1)] += one.part
    embedding = stream.part - float(terms.sum()) - biases - float(mlps.sum())
    rest = {_EMBEDDING: embedding, _ATTENTION: biases}
    behind = stream.value - stream.part
    rest |= {_BOTH: behind} if stream.norms is None else {_NORM: stream.norms, _HEAD: behind - stream.norms}
    least = _ROUNDING * max(
        float(part.abs().max()) for part in (terms.sum(-1), mlps, torch.tensor([*rest.values()]))
    )
    names = ("pool",) if stream.is_pool else tuple(str(layer) for layer in range(len(terms)))
    return DirectParts(names, terms, mlps, {name: part for name, part in rest.items() if abs(part) > least})


# --- from the output to the stream


def _readings(
    model: VisionTransformer,
    head: nn.Module,
    last: Tensor,
    weights: Tensor,
    edits: ActiveEdits | None,
    rest: Rest,
) -> list[_Reading]:
    """How the outputs [..., outputs] of a head read the stream after the last block, [tokens, dim].

    What does not depend on the stream is added to `rest`.
    """
    config, count = model.config, len(last)
    mean = mean_weights(model, count, edits).to(last)
    first, second = torch.zeros(2, count, dtype=last.dtype, device=last.device)
    first[0] = second[min(1, count - 1)] = 1
    if config.dist_head:
        parts = [(head, weights / 2, [first]), (model.head_dist, weights / 2, [second])]
    elif config.pool_concat:
        parts = [(head, weights, [first, mean])]
    elif config.pooling == "class":
        parts = [(head, weights, list(torch.eye(count).to(last)[list(config.class_read)]))]
    else:
        parts = [(head, weights, [mean])]
    readings = []
    for one, of_outputs, places in parts:
        pooled = torch.cat([place @ normed(model.norm, last) for place in places])
        wanted = _through_head(one, of_outputs, normed(model.fc_norm, pooled), rest)
        wanted, rates, bias = _held(model.fc_norm, pooled, wanted)
        rest[_NORM] = rest.get(_NORM, 0.0) + bias
        for place, share in zip(places, (wanted * rates).chunk(len(places), -1), strict=True):
            direction, of_tokens, bias = _held(model.norm, last, share)
            rest[_NORM] = rest[_NORM] + bias * float(place.sum())
            readings.append(_Reading(direction, place * of_tokens))
    return readings


def mean_weights(model: VisionTransformer, count: int, edits: ActiveEdits | None) -> Tensor:
    """By how much each token enters a mean over patches, [tokens]: removed ones are left out of it."""
    weights = torch.ones(count, dtype=torch.float64)
    if not model.config.pool_prefix:
        weights[: len(model.config.prefix)] = 0
    removed = None if edits is None else edits.removed(count, 1)
    if removed is not None:
        weights[removed[0].cpu()] = 0
    return weights / weights.sum()


def _through_head(head: nn.Module, weights: Tensor, features: Tensor, rest: Rest) -> Tensor:
    """The weights of features [..., features], of those of outputs; of sentences with the embedding's length held."""
    if isinstance(head, nn.Identity):
        return weights
    if isinstance(head, SentenceHead):
        rest[_HEAD] = rest.get(_HEAD, 0.0) + head.bias * weights.sum(-1)
        projection = copy.deepcopy(head.projection).to(features)
        along = head.scale / projection(features).norm() * (weights @ head.directions.to(weights))
        return _through_head(projection, along, features, rest)
    assert isinstance(head, nn.Linear)
    # of thousands of classes, one or two
    wanted = weights.reshape(-1, weights.shape[-1]).any(0).nonzero().flatten()
    chosen, weight, bias = weights[..., wanted], head.weight, head.bias
    if bias is not None:
        rest[_HEAD] = rest.get(_HEAD, 0.0) + chosen @ bias.to(weights.device)[wanted].double()
    return chosen @ weight.to(weights.device)[wanted].double()


def _held(norm: nn.Module, x: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """wanted . norm(x) as rate * (direction . x) + bias, with the scale of the norm held at that of each x.

    Args:
        x: [..., dim].
        wanted: [dim], or several, in the precision of what is returned.

    Returns:
        The directions, as `wanted`; the rates, [...]; the bias of each.
    """
    if isinstance(norm, nn.Identity):
        return wanted, wanted.new_ones(x.shape[:-1]), wanted.new_zeros(())
    assert isinstance(norm, nn.LayerNorm | nn.RMSNorm)
    direction = wanted * norm.weight.to(wanted)
    assert norm.eps is not None
    if isinstance(norm, nn.RMSNorm):
        return direction, (x.square().mean(-1) + norm.eps).rsqrt().to(wanted), wanted.new_zeros(())
    rates = (x.var(-1, correction=0) + norm.eps).rsqrt().to(wanted)
    return direction - direction.mean(-1, keepdim=True), rates, wanted @ norm.bias.to(wanted)


def normed(norm: nn.Module, x: Tensor) -> Tensor:
    """What a norm makes of x [..., dim], in the precision of x."""
    if isinstance(norm, nn.Identity):
        return x
    assert isinstance(norm, nn.LayerNorm | nn.RMSNorm)
    if isinstance(norm, nn.RMSNorm):
        return F.rms_norm(x, norm.normalized_shape, norm.weight.to(x), norm.eps)
    return F.layer_norm(x, norm.normalized_shape, norm.weight.to(x), norm.bias.to(x), norm.eps)


# --- from the stream to the heads


def _of_attention(
    block: Block,
    trace: Trace,
    layer: int,
    before: Tensor,
    readings: list[_Reading],
    edits: ActiveEdits | None,
) -> tuple[Tensor, float]:
    """What each head of a block took from each token, [heads, tokens], and what the biases behind the heads add."""
    inputs, values, outputs = _inside(block, trace, layer, before, edits)
    terms = torch.zeros(values.heads, len(before), dtype=torch.float64, device=before.device)
    biases = 0.0
    for reading in readings:
        wanted, queries, bias = _at_heads(block, layer, outputs, reading, edits)
        biases += float(bias)
        terms += _gathered(trace, layer, queries) * values.along(wanted.to(inputs), inputs).double()
    return terms, biases


def _inside(
    block: Block, trace: Trace, layer: int, before: Tensor, edits: ActiveEdits | None
) -> tuple[Tensor, Values, Tensor]:
    """What a block's attention reads, [tokens, dim]; its values; what a norm behind its heads reads, if there is one."""
    attn, inputs = block.attn, normed(block.norm1, before)
    values = Values(attn.qkv, attn.num_heads)
    if isinstance(attn.norm, nn.Identity):
        return inputs, values, before
    return inputs, values, head_outputs(trace, layer, values.of(inputs), edits)


def _at_heads(
    block: Block, layer: int, outputs: Tensor, reading: _Reading, edits: ActiveEdits | None
) -> tuple[Tensor, Tensor, Tensor | float]:
    """How a reading reads what heads hand on: its directions, [..., heads * head_dim], weights, [heads, tokens], and bias."""
    attn, wanted = block.attn, reading.direction
    if isinstance(block.ls1, LayerScale):
        wanted = wanted * block.ls1.gamma.to(wanted)
    bias = 0.0 if attn.proj.bias is None else wanted @ attn.proj.bias.to(wanted)
    along = (wanted.to(outputs) @ attn.proj.weight.to(outputs)).to(wanted)
    wanted, rates, more = _held(attn.norm, outputs, along)
    queries = (reading.weights * rates).expand(attn.num_heads, -1)
    if edits is not None:  # they change outputs linearly, and so the weights of outputs
        queries = edits.after(layer, queries[None, :, :, None])[0, :, :, 0]
    return wanted, queries, (bias + more) * float(reading.weights.sum())


@dataclass(frozen=True, eq=False)
class Values:
    """The values of all heads: the last of the projections that a linear layer holds."""

    layer: nn.Linear
    heads: int

    def of(self, inputs: Tensor) -> Tensor:
        """[heads, tokens, head_dim] of inputs [tokens, dim]."""
        weight, bias = self.weight(inputs), self._bias(inputs)
        values = torch.einsum("nc,hdc->hnd", inputs, weight)
        return values if bias is None else values + bias[:, None]

    def along(self, wanted: Tensor, inputs: Tensor) -> Tensor:
        """Each value along a direction [heads * head_dim] of all heads' outputs, [heads, tokens], without forming it."""
        parts = wanted.reshape(self.heads, -1)
        along = torch.einsum("hd,hdc->hc", parts, self.weight(inputs)) @ inputs.T
        bias = self._bias(inputs)
        return along if bias is None else along + (parts * bias).sum(1, keepdim=True)

    def weight(self, like: Tensor) -> Tensor:
        """What makes the values of inputs [..., dim], [heads, head_dim, dim]."""
        dim = like.shape[-1]
        return self.layer.weight[-dim:].to(like).reshape(self.heads, -1, dim)

    def _bias(self, like: Tensor) -> Tensor | None:
        bias = self.layer.bias
        return None if bias is None else bias[-like.shape[-1] :].to(like).reshape(self.heads, -1)


def _gathered(trace: Trace, layer: int, weights: Tensor) -> Tensor:
    """sum_t w[h, t] A[h, t, :], [heads, tokens]; only rows with weight are formed, and never all at once."""
    wanted = weights.any(0).nonzero().flatten()
    if len(wanted) <= _FEW:
        with exact():
            rows = trace.as_numbers(layer, trace.layers[layer].rows(None, wanted)).to(weights)
        return torch.einsum("ht,htn->hn", weights[:, wanted], rows)
    total = torch.zeros_like(weights)
    for queries, rows in trace.tiles(layer):
        total += torch.einsum("ht,htn->hn", weights[:, queries].to(rows), rows).to(total)
    return total


def head_outputs(trace: Trace, layer: int, values: Tensor, edits: ActiveEdits | None) -> Tensor:
    """What all heads hand on together, [tokens, heads * head_dim], of values [heads, tokens, head_dim]."""
    output = torch.cat([rows.to(values) @ values for _, rows in trace.tiles(layer)], dim=1)
    if edits is not None:
        output = edits.after(layer, output[None])[0]
    return output.transpose(0, 1).flatten(1)


def _of_pool(model: VisionTransformer, trace: Trace, weights: Tensor, rest: Rest) -> DirectParts:
    """The parts of a learned pool, which is the last layer: no layer before it writes into what it hands on."""
    pool = model.attn_pool
    assert pool is not None
    assert trace.residual is not None
    last = trace.residual[-1].to(weights.device).double()
    wanted, along, thought, attention = _through_pool(model, model.head, last, weights, trace, rest)
    terms = attention * Values(pool.kv, pool.num_heads).along(along, normed(model.norm, last))
    rest[_ATTENTION] = wanted @ pool.proj.bias.to(weights)
    return DirectParts(("pool",), terms[None], (wanted @ thought)[None], _there(rest))


def _through_pool(
    model: VisionTransformer, head: nn.Module, last: Tensor, weights: Tensor, trace: Trace, rest: Rest
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """How outputs read a learned pool: what it hands on, [..., dim], and its heads, [..., heads * head_dim].

    Beside it what its MLP adds, [dim], and where it looks, [heads, tokens].
    """
    pool = model.attn_pool
    assert pool is not None
    assert trace.pooling is not None
    attention, projection = trace.pooling.attention.to(weights), pool.proj
    values = Values(pool.kv, pool.num_heads).of(normed(model.norm, last))
    gathered = torch.einsum("hn,hnd->hd", attention, values).flatten()
    gathered = projection.weight.to(weights) @ gathered + projection.bias.to(weights)
    first = next(pool.mlp.parameters())
    thought = pool.mlp(normed(pool.norm, gathered).to(first)[None])[0].to(weights)
    pooled = gathered + thought
    wanted = _through_head(head, weights, normed(model.fc_norm, pooled), rest)
    wanted, rate, rest[_NORM] = _held(model.fc_norm, pooled, wanted)
    wanted = wanted * rate
    return wanted, wanted @ projection.weight.to(weights), thought, attention


def _readings_of_pool(
    model: VisionTransformer, head: nn.Module, last: Tensor, weights: Tensor, trace: Trace
) -> list[_Reading]:
    """As `_readings`, through the values of a learned pool: of each of its heads, whose attention is held."""
    pool = model.attn_pool
    assert pool is not None
    _, along, _, attention = _through_pool(model, head, last, weights, trace, {})
    each = along.reshape(*along.shape[:-1], pool.num_heads, -1).unbind(-2)
    readings = []
    for own, weight, looks in zip(each, Values(pool.kv, pool.num_heads).weight(last), attention, strict=True):
        direction, rates, _ = _held(model.norm, last, own @ weight)
        readings.append(_Reading(direction, looks * rates))
    return readings


def _there(rest: Rest) -> dict[str, float]:
    """In the order of the computation, without biases that a model does not have."""
    return {name: float(rest[name]) for name in (_EMBEDDING, _ATTENTION, _NORM, _HEAD) if rest.get(name)}
