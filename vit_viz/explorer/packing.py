"""Layers on their way to the browser: as the server sends them, and packed for a file or a notebook.

The browser's half is `parseLayer` in attention.js, and packed.js.
"""

from __future__ import annotations

import zlib
from typing import Literal

import numpy as np

from vit_viz.capture import Trace
from vit_viz.errors import CaptureError, ParameterError
from vit_viz.lazy import Tensor, torch

LAYER_BYTES = 60 * 2**20  # of a larger layer the server answers row by row

Storage = Literal["fp16", "int8"]
"""The type of packed queries and keys; int8 has a scale for each row, 1 / 127 of its largest number."""

_MEASURED = 24  # queries of each layer for the error: the first, and others at even distances


def source_of(trace: Trace, layer: int) -> str:
    """How a layer reaches the browser: "qk", "attention" where q and k do not determine it, "rows" where it is too large."""
    heads, tokens = trace.num_heads, trace.num_tokens
    kind = "qk" if trace.source(layer) == "qk" else "attention"
    size = heads * tokens * (4 * trace.head_dim + 8 if kind == "qk" else 2 * tokens + 4)
    return kind if size <= LAYER_BYTES else "rows"


def has_norms(trace: Trace) -> bool:
    """Whether ||v_j W_O,h|| is known, so that the browser can weigh attention by it."""
    try:
        return trace.value_norms(0) is not None
    except CaptureError:
        return False


def layer_bytes(trace: Trace, layer: int) -> tuple[str, bytes]:
    """A layer for the browser: its kind and its little-endian bytes.

    "qk": lse float32 [heads, tokens], value norms float32 [heads, tokens] (zeros where unknown), q float16 [heads, tokens,
    head_dim], k float16 likewise. "attention": value norms as there, then the attention, float16 [heads, tokens, tokens].
    """
    if not 0 <= layer < trace.num_layers:
        raise ParameterError(f"Layer {layer} does not exist: this model has layers 0-{trace.num_layers - 1}.")
    kind = source_of(trace, layer)
    if kind == "rows":
        raise ParameterError("This layer is too large to be sent whole; ask for its rows.")
    if kind == "attention":
        attention = trace.attention(layer)
        return kind, _norms(trace, layer, attention[..., 0]) + plain_bytes(attention, np.float16)
    q, k = _operands(trace, layer)
    parts = [_sums_and_norms(trace, layer, trace.normaliser(layer))]
    return kind, b"".join([*parts, plain_bytes(q, np.float16), plain_bytes(k, np.float16)])


def packed_layer(trace: Trace, layer: int, *, storage: Storage = "fp16") -> bytes:
    """A layer as small as it gets: compressed (zlib), for packed.js to open.

    fp16: the bytes of `layer_bytes`, first all low ones, then all high ones, which compress better. int8, for kind "qk" alone: lse
    and norms as there, lse being that of the stored numbers, so that rows still sum to 1; the scales of q and of k, float32 [heads,
    tokens]; then q and k, int8 [heads, tokens, head_dim].
    """
    kind, data = layer_bytes(trace, layer)
    if storage == "fp16" or kind != "qk":
        pairs = np.frombuffer(data, np.uint8).reshape(-1, 2)
        return zlib.compress(np.ascontiguousarray(pairs.T).tobytes())
    steps = [_steps(values) for values in _operands(trace, layer)]
    heads = zip(*map(_restored, steps), strict=True)
    lse = torch.stack([torch.logsumexp(_scores(trace, layer, q, k), -1) for q, k in heads])
    scales = [plain_bytes(scale, np.float32) for _, scale in steps]
    numbers = [values.cpu().numpy().tobytes() for values, _ in steps]
    return zlib.compress(b"".join([_sums_and_norms(trace, layer, lse), *scales, *numbers]))


def packed_error(trace: Trace, *, storage: Storage) -> float:
    """By how much rows of the packed layers differ from the trace's own at most, as a share of the largest weight of each row.

    Measured on all heads of 24 queries of each layer.
    """
    queries = sorted({round(i) for i in np.linspace(0, trace.num_tokens - 1, _MEASURED)})
    return max(_layer_error(trace, layer, queries, storage) for layer in range(trace.num_layers))


def _layer_error(trace: Trace, layer: int, queries: list[int], storage: Storage) -> float:
    own = trace.attention(layer, queries=queries)
    if trace.source(layer) == "qk":
        q, k = (_stored(values, storage) for values in _operands(trace, layer))
        stored = _scores(trace, layer, q[:, queries], k).softmax(-1)
    else:
        stored = own.half().float()
    return float(((stored - own).abs().amax(-1) / own.amax(-1)).max())


def plain_bytes(values: object, dtype: type[np.floating]) -> bytes:
    """Numbers as little-endian bytes; those beyond the type's largest number are that number."""
    array = np.asarray(values.detach().cpu().numpy() if isinstance(values, Tensor) else values)
    largest = np.finfo(dtype).max
    packed: bytes = np.clip(array, -largest, largest).astype(np.dtype(dtype).newbyteorder("<")).tobytes()
    return packed


def _sums_and_norms(trace: Trace, layer: int, lse: Tensor) -> bytes:
    return plain_bytes(lse, np.float32) + _norms(trace, layer, lse)


def _norms(trace: Trace, layer: int, like: Tensor) -> bytes:
    """Value norms [heads, tokens], or zeros where they are unknown."""
    return plain_bytes(trace.value_norms(layer) if has_norms(trace) else like * 0, np.float32)


def _operands(trace: Trace, layer: int) -> tuple[Tensor, Tensor]:
    """q and k of a layer, fp32 [heads, tokens, head_dim]."""
    attention = trace.layers[layer]
    assert attention.q is not None
    assert attention.k is not None
    return attention.q.detach().float(), attention.k.detach().float()


def _scores(trace: Trace, layer: int, q: Tensor, k: Tensor) -> Tensor:
    return q @ k.transpose(-1, -2) * trace.scales[layer]


def _steps(values: Tensor) -> tuple[Tensor, Tensor]:
    """Rows as whole steps from -127 to 127, and the length of a step of each row."""
    scale = values.abs().amax(-1).clamp_min(torch.finfo(torch.float32).tiny) / 127
    return torch.round(values / scale[..., None]).to(torch.int8), scale


def _restored(steps: tuple[Tensor, Tensor]) -> Tensor:
    return steps[0].float() * steps[1][..., None]


def _stored(values: Tensor, storage: Storage) -> Tensor:
    """Numbers as they come out of the file."""
    return values.half().float() if storage == "fp16" else _restored(_steps(values))
