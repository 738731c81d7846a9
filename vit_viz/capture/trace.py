"""One recorded forward pass: what every head of every layer looked at, on demand.

A trace keeps q and k of each layer and forms rows (softmax(q_i k^T * scale)), columns and tiles from them, so it needs
2 head_dim / tokens of the memory of the attention itself. Where a model wrote its attention out, the trace keeps that matrix.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from vit_viz.answer import Provenance
from vit_viz.capture.buffers import Arena
from vit_viz.capture.gradients import WITHOUT
from vit_viz.capture.layers import LayerAttention
from vit_viz.capture.report import SOUND, ProofReport, ProofStatus, Structure, kernel_check, trace_words
from vit_viz.capture.returned import ScoresPlace
from vit_viz.capture.structure_check import StructureCheck
from vit_viz.capture.tokens_read import TargetRead
from vit_viz.errors import CaptureError
from vit_viz.geometry import CropBox, Query, TokenLayout, as_query
from vit_viz.indices import Index, Indices, Tokens, as_indices, layer_index
from vit_viz.lazy import Tensor, torch

if TYPE_CHECKING:
    from vit_viz.capture.features import Features

Source = Literal["qk", "attention", "rows"]


_QUERIES_AT_ONCE = 256


@dataclass(frozen=True, eq=False)
class PoolAttention:
    """The learned attention by which a model reads its output from the tokens.

    Args:
        attention: [heads, tokens]; prefix and suffix tokens that the pool does not see have weight 0.
        gradient: gradient of the target with respect to it, where a target was given.
        cosines: of its query with each key, the numbers of all heads as one vector, [tokens]; 0 for tokens that it does not see.
    """

    attention: Tensor
    gradient: Tensor | None = None
    cosines: Tensor | None = None


@dataclass(eq=False, repr=False)
class Trace:
    """One forward pass of a model on one image: its attention, on demand, and what came with it.

    Args:
        layers: the attention of each layer, in order.
        layout: which token is what.
        logits: the model's output, [classes]; None where it returned something else.
        residual: the stream before the first and after each layer, [layers + 1, tokens, dim], where it was asked for.
        differences: per layer the largest difference between attention @ v, recomputed from this trace, and what the model
            computed, relative to the largest number that it computed; NaN where it could not be compared.
        tolerance: up to which difference a layer counts as proven.
        problems: what a reader has to know beside the proof, e.g. that a softmax is over the wrong axis, or that the model takes
            only a part of the photo; one sentence each.
        known: whether the layers are all of the model's attention, and its tokens the patches, or the check that finds it out.
        of_target: finds out which tokens a target reads that is a function of what the model returns; None without one, and once it
            is known.
        pooling: the pooling attention, where the model has one.
        features: what the last attention reads, with the target's gradient, where they were asked for; the error where they were
            not found.
        outputs: of the model, those that the target changes with; None without a target.
        unreached: layers that the target's gradient does not reach, or not all of it, with words on what keeps it from them.
        place: where the scores stood in what this pass returned.
        crop_box: which part of the photo its patches cover, or of the pixels that were given in place of one.
        provenance: model, weights, image and preprocessing.
        arena: the recycled memory that the layers lie in.
        again: differentiates the same pass towards another target, where its graph was kept.

    Raises:
        CaptureError: there is no layer, or layers differ in heads or tokens.
        ParameterError: the layout does not have as many tokens as the layers.
    """

    layers: tuple[LayerAttention, ...]
    layout: TokenLayout
    logits: Tensor | None = None
    residual: Tensor | None = None
    differences: list[float] = field(default_factory=list)
    tolerance: float = 1e-4
    problems: tuple[str, ...] = ()
    known: Structure | StructureCheck = SOUND
    of_target: StructureCheck | None = None
    pooling: PoolAttention | None = None
    features: Features | CaptureError | None = None
    outputs: tuple[int, ...] | None = None
    unreached: Mapping[int, str] = field(default_factory=dict)
    place: ScoresPlace | None = None
    crop_box: CropBox | None = None
    provenance: Provenance = field(default_factory=Provenance)
    arena: Arena | None = None
    again: Callable[[Trace, Any], Trace] | None = None
    _stacks: dict[str, Tensor | None] = field(default_factory=dict, init=False)
    _lse: dict[int, Tensor] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        if not self.layers:
            raise CaptureError("A trace needs at least one layer.")
        shapes = [layer.shape for layer in self.layers]
        if len(set(shapes)) > 1:
            words = ", ".join(f"layer {i}: {heads} x {tokens}" for i, (heads, tokens, _) in enumerate(shapes))
            raise CaptureError(
                "All layers of a trace need the same numbers of heads and tokens (those of windows, pyramids and branches "
                f"cannot be traced), but this model has heads x tokens of {words}."
            )
        self.layout.check_tokens(self.num_tokens)
        self.differences = self.differences or [math.nan] * len(self.layers)

    def __repr__(self) -> str:
        try:
            shown = self.proof_report.words
        except CaptureError as refusal:
            shown = f"refused: {refusal}"
        return trace_words(self.provenance, (self.num_layers, self.num_heads), self.layout, shown)

    @property
    def num_layers(self) -> int:
        """Attention layers, in the order in which they ran."""
        return len(self.layers)

    @property
    def num_heads(self) -> int:
        """Heads per layer."""
        return self.layers[0].shape[0]

    @property
    def num_tokens(self) -> int:
        """Prefix tokens, patches and suffix tokens together."""
        return self.layers[0].shape[2]

    @property
    def head_dim(self) -> int:
        """Numbers per query and key; 0 where only the attention itself is known."""
        return 0 if self.layers[0].q is None else self.layers[0].q.shape[-1]

    @property
    def device(self) -> torch.device:
        """Where the operands are."""
        return self.layers[0].device

    @property
    def scales(self) -> tuple[float, ...]:
        """Factor of the dot products, per layer."""
        return tuple(layer.scale for layer in self.layers)

    @property
    def q(self) -> Tensor:
        """Queries as the dot product saw them, [layers, heads, tokens, head_dim]."""
        return self._operands("q")

    @property
    def k(self) -> Tensor:
        """Keys as the dot product saw them, [layers, heads, tokens, head_dim]."""
        return self._operands("k")

    @property
    def v(self) -> Tensor | None:
        """Values, [layers, heads, tokens, head_dim]; None where they were not kept."""
        return self._stack("v")

    @property
    def output_grad(self) -> Tensor | None:
        """Gradient of the target with respect to each layer's attention @ v, same shape as v; None without a target.

        Raises:
            CaptureError: the model keeps it from a layer; the message says how.
        """
        for words in self.unreached.values():
            raise CaptureError(f"{words}; {WITHOUT}.")
        return self._stack("output_grad")

    @property
    def lse(self) -> Tensor:
        """log sum exp of each row's scores, [layers, heads, tokens]: attention = exp(score - lse)."""
        return torch.stack([self.normaliser(layer) for layer in range(self.num_layers)])

    @property
    def pooling_attention(self) -> Tensor | None:
        """By how much each token enters the model's output, [heads, tokens], where the model pools by a learned attention."""
        return None if self.pooling is None else self.pooling.attention

    @property
    def pooling_gradient(self) -> Tensor | None:
        """Gradient of the target with respect to the pooling attention, [heads, tokens]."""
        return None if self.pooling is None else self.pooling.gradient

    @property
    def nbytes(self) -> int:
        """Memory of this trace, counting whole buffers: a recycled one may be larger than its content."""
        tensors = [
            tensor for layer in self.layers for tensor in vars(layer).values() if isinstance(tensor, Tensor)
        ]
        tensors += [
            tensor for tensor in (self.logits, self.residual, *self._lse.values()) if tensor is not None
        ]
        storages = [tensor.untyped_storage() for tensor in tensors]
        return sum({storage.data_ptr(): storage.nbytes() for storage in storages}.values())

    def attention(self, layer: Index, heads: Indices = None, queries: Tokens = None) -> Tensor:
        """What these queries look at: fp32 [heads, queries, tokens]; each row sums to 1.

        Args:
            layer: index of the layer; -1 is the last, as in Python and in every other method with a layer.
            heads: indices of heads, a Boolean mask over all heads, or None for all.
            queries: a list of indices of tokens, a Boolean mask over all tokens, words such as "class" or "3,4", the patch
                (row, col), or None for all.

        Raises:
            ParameterError: an index lies outside this trace, or a mask does not fit it.
            CaptureError: the model made no numbers of what is asked for.
        """
        chosen = as_indices("Token", queries, self.num_tokens, words=self.layout.tokens)
        rows = self._layer(layer).exact_rows(as_indices("Head", heads, self.num_heads), chosen)
        return self.as_numbers(layer, rows)

    def received(self, layer: Index, keys: Tokens, heads: Indices = None) -> Tensor:
        """Who looks at these keys: fp32 [heads, tokens, keys], columns of the attention; they do not sum to 1.

        Raises:
            ParameterError: an index lies outside this trace.
            CaptureError: the model made no numbers of what is asked for.
        """
        chosen = as_indices("Token", keys, self.num_tokens, words=self.layout.tokens)
        columns = list(range(self.num_tokens)) if chosen is None else chosen
        heads = as_indices("Head", heads, self.num_heads)
        return self.as_numbers(layer, self._layer(layer).columns(heads, columns, self.normaliser(layer)))

    def tiles(
        self, layer: Index, block: int | None = None, heads: Indices = None
    ) -> Iterator[tuple[slice, Tensor]]:
        """The attention of a layer in blocks of queries: (slice of queries, fp32 [heads, block, tokens]), in order.

        Args:
            block: queries per tile; None takes as many as a core's cache holds.
        """
        attention, chosen = self._layer(layer), as_indices("Head", heads, self.num_heads)
        for rows in attention.blocks(block, None if chosen is None else len(chosen)):
            yield rows, self.as_numbers(layer, attention.rows(chosen, rows))

    def as_numbers(self, layer: Index, attention: Tensor) -> Tensor:
        """Attention that was read of a layer, as it is.

        Raises:
            CaptureError: some of it is NaN; the sentence names the first layer that has any.
        """
        number = self._number(layer)
        is_doubtful = self.layers[number].weights is not None or math.isnan(self.differences[number])
        if is_doubtful and bool(attention.isnan().any()):
            first = next(i for i, one in enumerate(self.layers) if one.rows(None, slice(None)).isnan().any())
            raise CaptureError(
                f"The attention of layer {first} is no number (NaN) for some tokens: a softmax there is over keys that are all "
                "masked, or over scores that are NaN or infinite."
            )
        return attention

    def normaliser(self, layer: Index) -> Tensor:
        """log sum exp of each row's scores in one layer, [heads, tokens]; computed when first needed."""
        number = self._number(layer)
        if number not in self._lse:
            self._lse[number] = self.layers[number].normaliser()
        return self._lse[number]

    def attention_gradient(self, layer: Index, heads: Indices = None, queries: Tokens = None) -> Tensor:
        """How the target would change with each attention weight: dL/dA = (dL/do) v^T, fp32 [heads, queries, tokens].

        Raises:
            CaptureError: the trace was made without a target, or the model keeps its gradient from this layer.
            ParameterError: an index lies outside this trace.
        """
        chosen = as_indices("Token", queries, self.num_tokens, words=self.layout.tokens)
        number = self._number(layer)
        if number in self.unreached:
            raise CaptureError(f"{self.unreached[number]}; {WITHOUT}.")
        gradient = self._layer(layer).gradient(as_indices("Head", heads, self.num_heads), chosen)
        if gradient is None:
            raise CaptureError("This trace holds no gradients: pass target= to trace(), e.g. a class index.")
        return gradient

    def last_features(self) -> Features:
        """What the last attention reads of each token, and the target's gradient there.

        Raises:
            CaptureError: they were not kept or not found, or the model keeps the gradient from them.
        """
        if isinstance(self.features, CaptureError):
            raise CaptureError(str(self.features))
        if self.features is None:
            raise CaptureError(
                "This trace holds no features of the last attention: pass target= and keep_features=True to trace()."
            )
        if self.num_layers - 1 in self.unreached:
            raise CaptureError(f"{self.unreached[self.num_layers - 1]}; {WITHOUT}.")
        return self.features

    def towards(self, target: Any) -> Trace:
        """The same pass with the gradient of another target, which takes the place of this one's: one is read at a time.

        Raises:
            CaptureError: the pass was not kept for it.
        """
        if self.again is None:
            raise CaptureError("This pass cannot be differentiated again: its graph was not kept.")
        return self.again(self, target)

    def query_weights(self, query: Query) -> Tensor:
        """Weight of each token in a query, fp32 [tokens]; the sum is 1. The pool of a model with attention pooling is included.

        Raises:
            ParameterError: the query names no token of this trace.
        """
        query = as_query(query)
        if query == "pool" and self.target_read is not None and self.target_read.weights is not None:
            return torch.tensor(self.target_read.weights, device=self.device)
        if query == "pool" and self.layout.pooling == "attention" and self.pooling is not None:
            return self.pooling.attention.mean(0)
        return torch.from_numpy(self.layout.weights(query)).to(self.device, torch.float32)

    def output_query(self, query: Query | None = None, *, outputs: Sequence[int] | None = None) -> Query:
        """The query that a map of the answer starts from: what the answer was measured to read; waits as `structure` does.

        Of a model whose outputs have a token each it is that of the target, without a target that of the first class. Where a
        function was measured to read several tokens it is "pool", which has their weights then.

        Args:
            query: None and "pool" stand for what the answer is read from; any other is returned as it is.
            outputs: those that the map is about; None for those of the trace's target.

        Raises:
            ParameterError: the layout names other tokens than the answer reads, and no query stands for them.
            CaptureError: no token stands for the target, which reads around the last layer.
        """
        query = None if query is None else as_query(query)
        if query is not None and query != "pool":
            return query
        if self.target_read is not None:
            return self.target_read.query(self.layout) or self.layout.output_query
        layout, read = self.layout, self.structure.read
        start: Query | None = None
        if read is not None:
            about = self.outputs if outputs is None else outputs
            if about is None and read.has_one_each and self.logits is not None:
                about = [int(self.logits.argmax())]
            start = (read if about is None else read.of(about)).query(layout)
        return start or query or layout.output_query

    @property
    def target_read(self) -> TargetRead | None:
        """Which tokens the target reads, where it is a function of what the model returns; waits as `structure` does."""
        if self.of_target is None and isinstance(self.known, StructureCheck):
            return None
        return self.structure.target

    def describe(self, query: Query) -> str:
        """A query in words, for captions: as the layout has it, or the tokens that the target was measured to read."""
        read = self.target_read if query == "pool" else None
        return (
            self.layout.describe(query)
            if read is None or read.weights is None
            else read.in_words(self.layout)
        )

    def as_parameter(self, query: Query) -> Query:
        """A query for provenance: itself, or the tokens that the target was measured to read."""
        words = self.describe(query)
        return query if words == self.layout.describe(query) else words

    def tokens_of_target(self) -> list[int]:
        """Which tokens after the last layer the target changes with, by its gradient.

        Raises:
            CaptureError: the trace was made without a target.
        """
        blocks = torch.split(torch.arange(self.num_tokens, device=self.device), _QUERIES_AT_ONCE)
        gradients = (self.attention_gradient(-1, queries=block) for block in blocks)  # [heads, block, tokens]
        changes = torch.cat([(gradient != 0).any(2).any(0) for gradient in gradients])
        tokens: list[int] = changes.nonzero().flatten().tolist()
        return tokens

    def value_norms(self, layer: Index) -> Tensor:
        """How much each token contributes per unit of attention: ||v_j W_O,h||, fp32 [heads, tokens].

        Raises:
            CaptureError: the trace kept neither values nor their norms, or the layer's output projection is not known.
        """
        norms = self._layer(layer).value_norms
        if norms is None:
            raise CaptureError(
                "This trace holds no norms of values: pass keep_norms=True or keep_values=True to trace()."
            )
        if bool(norms.isnan().all()):
            raise CaptureError(
                f"The output projection of layer {layer} is not known: no linear layer reads the attention's output directly."
            )
        return norms

    def determined_by_qk(self, layer: Index) -> bool:
        """Whether softmax(q k^T * scale) is the attention: nothing is masked, added or written out."""
        return self._layer(layer).is_plain

    def source(self, layer: Index) -> Source:
        """What a viewer needs to form rows: "qk" (q and k suffice), "attention" (the matrix is kept) or "rows" (ask for each)."""
        attention = self._layer(layer)
        if attention.is_plain:
            return "qk"
        return "attention" if attention.weights is not None else "rows"

    @property
    def structure(self) -> Structure:
        """How the layers make up the model; found out now where that is not known, once for all traces of the module.

        Raises:
            CaptureError: pictures of this trace would mislead; the message says why.
        """
        if isinstance(self.known, StructureCheck):
            self.known = self.known.result()
        of_target = self.of_target
        if of_target is not None:
            self.known, self.of_target = of_target.result(), None
        return self.known

    @property
    def is_being_checked(self) -> bool:
        """Whether it is not known yet how the layers make up the model, so that asking for the proof takes a while."""
        return isinstance(self.known, StructureCheck) and self.known.finding is None

    def check_not_refused(self) -> None:
        """Check what is known by now, without waiting for the rest.

        Raises:
            CaptureError: pictures of this trace would mislead; the message says why.
        """
        if not self.is_being_checked:
            self.wait()

    def wait(self) -> None:
        """Wait until it is known that pictures of this trace do not mislead.

        Raises:
            CaptureError: they would; the message says why.
        """
        assert self.structure

    def let_model_go(self) -> None:
        """Keep the model no longer than others do; where it goes before it was checked, nothing is known of its structure."""
        for check in (self.known, self.of_target):
            if isinstance(check, StructureCheck):
                check.let_go()

    @property
    def proof(self) -> list[float]:
        """The differences, per layer, once it is known that they are the whole proof; waits as `structure` does.

        Raises:
            CaptureError: pictures of this trace would mislead.
        """
        self.wait()
        return self.differences

    @property
    def proof_report(self) -> ProofReport:
        """What was shown about this trace, check by check: kernel, placed, complete, effective, pooled; waits as `structure` does.

        Raises:
            CaptureError: pictures of this trace would mislead.
        """
        return ProofReport(**vars(self.structure), kernel=kernel_check(self.differences, self.tolerance))

    @property
    def proof_status(self) -> ProofStatus:
        """Whether all of it was shown: the numbers are the kernel's, all of the model's attention, and placed where they belong."""
        return self.proof_report.status

    def check_layers_follow(self) -> None:
        """Check what methods that multiply layers need: each layer reads what the one before it wrote, and nothing else.

        Raises:
            CaptureError: it does not.
        """
        if self.structure.complete.status == "fails":
            of = "model" if self.structure.target is None else "target"
            raise CaptureError(
                f"Maps through the layers are not defined for this {of}. {self.structure.complete.sentence} Occlusion, "
                "saliency and integrated gradients follow no layers."
            )

    def _layer(self, layer: Index) -> LayerAttention:
        return self.layers[self._number(layer)]

    def _number(self, layer: Index) -> int:
        return layer_index(layer, self.num_layers)

    def _operands(self, role: str) -> Tensor:
        stack = self._stack(role)
        if stack is None:
            raise CaptureError(
                f"This trace has no {role}: the model writes its attention out, so the trace holds the attention itself."
            )
        return stack

    def _stack(self, role: str) -> Tensor | None:
        """One role of all layers as one tensor: a view of the arena where it stores them side by side."""
        if role not in self._stacks:
            parts = [getattr(layer, role) for layer in self.layers]
            stacked = None if self.arena is None else self.arena.stacked(role)
            if any(part is None for part in parts):
                self._stacks[role] = None
            elif stacked is not None and len(stacked) == len(parts):
                self._stacks[role] = stacked
            else:
                self._stacks[role] = torch.stack(parts)
        return self._stacks[role]
