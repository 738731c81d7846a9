"""Edits as tensors: masks and tables of factors from the arguments of `edit`, and attention calls changed by them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vit_viz.capture.calls import AttentionCall, as_bias
from vit_viz.errors import ParameterError
from vit_viz.indices import checked_index
from vit_viz.lazy import Tensor, torch


@dataclass(frozen=True, eq=False)
class Edits:
    """The changes of one `edit`."""

    heads: dict[tuple[int, int], Any]
    knockout: dict[int, Any]
    mask_keys: Any
    temperature: dict[int, Any]
    tables: dict[Any, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for layer in sorted(self.layers):
            if layer < 0:
                raise ParameterError(
                    f"Layer {layer} does not exist: an edit counts layers from 0, as their number is only known after the pass."
                )
        for (layer, head), values in self.heads.items():
            for value in items_of(values):
                if isinstance(value, str) and value not in ("mean", "uniform"):
                    raise ParameterError(
                        f'Head {head} of layer {layer} can get a factor, "mean" or "uniform", not {value!r}.'
                    )
        for layer, values in self.temperature.items():
            if any(not value > 0 for value in items_of(values)):
                raise ParameterError(f"The temperature of layer {layer} must be positive, not {values}.")

    @property
    def layers(self) -> set[int]:
        """Layers that are named."""
        masked = set(self.mask_keys) if isinstance(self.mask_keys, Mapping) else set()
        return {layer for layer, _ in self.heads} | set(self.knockout) | set(self.temperature) | masked

    @property
    def nbytes(self) -> int:
        """Memory of the forbidden edges, with the mask that is made of them."""
        edges = {id(one): one.nbytes for one in self.knockout.values() if isinstance(one, Tensor)}
        return 4096 + 2 * sum(edges.values())

    @property
    def masks_everywhere(self) -> bool:
        """Whether tokens are removed from every layer and the pooling."""
        return self.mask_keys is not None and not isinstance(self.mask_keys, Mapping)

    def head_table(self, layer: int | None, what: str, shape: tuple[int, int], like: Tensor) -> Tensor | None:
        """Per item and head of a layer [batch | 1, heads, 1, 1]: the factor, or whether "mean" or "uniform" is requested."""
        key = (layer, what, shape, like.device, like.dtype)
        if key not in self.tables:
            chosen = {head: values for (number, head), values in self.heads.items() if number == layer}
            self.tables[key] = _head_table(chosen, what, shape, like)
        table: Tensor | None = self.tables[key]
        return table

    def allowed(
        self,
        layer: int | None,
        batch: int,
        queries: int,
        keys: int,
        tokens: int,
        device: torch.device,
        *,
        first: int = 0,
    ) -> Tensor | None:
        """Which keys, from token `first` on, each query may see, Boolean [batch | 1, 1, queries | 1, keys]; None for all."""
        removed = self.mask_keys.get(layer) if isinstance(self.mask_keys, Mapping) else self.mask_keys
        edges = None if layer is None else self.knockout.get(layer)
        # layers with the same edges share one mask, of which a trace then holds one copy
        key = (id(removed), id(edges), batch, queries, keys, tokens, device, first)
        if key not in self.tables:
            allowed = None
            if removed is not None:
                allowed = ~token_mask(removed, tokens, batch)[:, None, None, first : first + keys]
            if edges is not None:
                kept = ~edge_mask(edges, queries, keys, batch)[:, None]
                allowed = kept if allowed is None else allowed & kept
            if allowed is not None and not allowed.any(-1).all():
                raise ParameterError(
                    "Masking every key leaves nothing to look at: keep at least one token for each query."
                )
            self.tables[key] = None if allowed is None else allowed.to(device)
        mask: Tensor | None = self.tables[key]
        return mask

    def temperatures(self, layer: int | None, batch: int, like: Tensor) -> Tensor | None:
        """Temperature of a layer, [batch | 1, 1, 1, 1]."""
        if layer not in self.temperature:
            return None
        values = torch.tensor(items_of(self.temperature[layer]), dtype=like.dtype, device=like.device)
        check_batch(len(values), batch)
        return values.view(-1, 1, 1, 1)


def items_of(values: Any) -> list[Any]:
    """One value, or one per image, as a list."""
    if isinstance(values, str) or not isinstance(values, Sequence | Tensor | np.ndarray):
        return [values]
    return list(values) if isinstance(values, Sequence) else values.reshape(-1).tolist()


def check_batch(count: int, batch: int) -> None:
    """Check that there is one value, or one per image."""
    if count not in (1, batch):
        raise ParameterError(f"An edit has one value, or one per image of the batch of {batch}, not {count}.")


def _head_table(chosen: Mapping[int, Any], what: str, shape: tuple[int, int], like: Tensor) -> Tensor | None:
    """As `Edits.head_table`, of heads with these values, or values of the images; None where all are neutral."""
    batch, heads = shape
    columns = {}
    for head, values in chosen.items():
        checked_index("Head", head, heads)
        items = items_of(values)
        check_batch(len(items), batch)
        if what == "factor":
            columns[head] = [1.0 if isinstance(item, str) else float(item) for item in items]
        else:
            columns[head] = [item == what for item in items]
    neutral = 1.0 if what == "factor" else False
    if all(value == neutral for column in columns.values() for value in column):
        return None
    length = max(len(column) for column in columns.values())
    table = torch.full((length, heads), neutral, dtype=like.dtype if what == "factor" else torch.bool)
    for head, column in columns.items():
        table[:, head] = torch.tensor(column, dtype=table.dtype)
    return table.to(like.device)[:, :, None, None]


def token_mask(chosen: Any, tokens: int, batch: int) -> Tensor:
    """Which tokens are removed, Boolean [batch | 1, tokens]."""
    if isinstance(chosen, Tensor | np.ndarray) and (chosen.dtype in (torch.bool, np.bool_)):
        mask = torch.as_tensor(chosen).cpu().reshape(-1, chosen.shape[-1])
        if mask.shape[1] != tokens:
            raise ParameterError(f"A mask of keys has one value per token ({tokens}), not {mask.shape[1]}.")
        check_batch(len(mask), batch)
        return mask
    per_item = list(chosen)
    if not per_item or isinstance(per_item[0], int | np.integer):
        per_item = [per_item]
    check_batch(len(per_item), batch)
    mask = torch.zeros(len(per_item), tokens, dtype=torch.bool)
    for row, indices in zip(mask, per_item, strict=True):
        for index in indices:
            if not 0 <= index < tokens:
                raise ParameterError(f"Token {index} does not exist: tokens are 0-{tokens - 1}.")
            row[int(index)] = True
    return mask


def edge_mask(edges: Any, queries: int, keys: int, batch: int) -> Tensor:
    """Which edges are forbidden, Boolean [batch | 1, queries, keys]."""
    if isinstance(edges, Tensor):
        if edges.dtype != torch.bool or edges.shape != (queries, keys):
            raise ParameterError(
                f"Forbidden edges are between {' x '.join(map(str, edges.shape))} tokens, but this pass has {queries} x {keys}."
            )
        return edges[None]
    items = list(edges)
    per_item = items if items and items[0] and not isinstance(items[0][0], int | np.integer) else [items]
    check_batch(len(per_item), batch)
    mask = torch.zeros(len(per_item), queries, keys, dtype=torch.bool)
    for item, pairs in enumerate(per_item):
        for i, j in pairs:
            if not (0 <= i < queries and 0 <= j < keys):
                raise ParameterError(f"The edge {i} -> {j} does not exist: tokens are 0-{keys - 1}.")
            mask[item, i, j] = True
    return mask


def masked(call: AttentionCall, allowed: Tensor) -> AttentionCall:
    """The call with keys masked in addition to its own mask."""
    if call.is_causal:
        past = torch.ones(
            call.query.shape[-2], call.key.shape[-2], dtype=torch.bool, device=allowed.device
        ).tril()
        allowed = allowed & past
    mask = call.attn_mask
    if mask is not None and mask.dtype == torch.bool:
        mask = mask & allowed
    elif mask is not None:
        mask = mask.masked_fill(~allowed, -torch.inf)
    return call._replace(attn_mask=allowed if mask is None else mask, is_causal=False)


def without_scores(call: AttentionCall, uniform: Tensor) -> AttentionCall:
    """The call with equal scores in some heads, [batch | 1, heads, 1, 1]; masked keys stay masked."""
    call = call._replace(query=torch.where(uniform, 0, call.query), scale=call.factor)
    if call.attn_mask is None or call.attn_mask.dtype == torch.bool:
        return call
    bias = as_bias(call.attn_mask)
    return call._replace(attn_mask=torch.where(uniform & ~bias.isneginf(), 0, bias).to(call.query.dtype))
