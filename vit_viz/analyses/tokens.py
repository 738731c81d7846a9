"""Token vectors after each layer, from which every view of tokens starts, and what a token resembles.

A state is the residual stream before the first layer ("input") or after one ("after layer 0"); queries and keys have one state per
layer ("layer 0"), the operands of the dot product of all heads side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, get_args

from vit_viz.analyses.attention import to_numpy
from vit_viz.analyses.options import Option
from vit_viz.analyses.spec import Place, asks
from vit_viz.capture.given import as_trace
from vit_viz.capture.trace import Trace
from vit_viz.errors import CaptureError, ParameterError
from vit_viz.geometry import Query
from vit_viz.lazy import F, Tensor, torch
from vit_viz.results import TokenMaps

Role = Literal["tokens", "queries", "keys"]
ROLE = Option("role", "Which vectors: tokens of every layer, queries, or keys.")


def token_states(trace: Trace, role: Role = "tokens") -> Tensor:
    """The vectors of all tokens in all states, fp32: tokens [layers + 1, tokens, dim], else [layers, tokens, heads * head_dim]."""
    if role not in get_args(Role):
        raise ParameterError(f"Vectors are {', '.join(get_args(Role))}, not {role!r}.")
    if role == "tokens":
        if trace.residual is None:
            raise CaptureError(
                "The tokens of each layer need a trace that kept the residual stream: pass keep_residual=True to trace()."
            )
        return trace.residual.float()
    operand = trace.q if role == "queries" else trace.k  # [layers, heads, tokens, head_dim]
    return operand.float().transpose(1, 2).flatten(2)  # [layers, tokens, heads * head_dim]


def state_names(trace: Trace, role: Role = "tokens") -> tuple[str, ...]:
    """The states in words, in order."""
    if role != "tokens":
        return tuple(f"layer {layer}" for layer in range(trace.num_layers))
    return ("input", *(f"after layer {layer}" for layer in range(trace.num_layers)))


def patches_of(trace: Trace, values: Tensor) -> Tensor:
    """The patches of [states, tokens, ...] on their grid, [states, rows, cols, ...]."""
    patches = values[:, trace.layout.patch_slice]
    return patches.reshape(len(values), *trace.layout.grid, *values.shape[2:])


def token_maps(
    trace: Trace,
    values: Tensor,
    names: Sequence[str],
    *,
    unit: str,
    value_range: tuple[float, float],
    method: str,
    signed: bool = False,
    note: str = "",
    **parameters: object,
) -> TokenMaps:
    """Numbers of all tokens, [states, tokens] or [states, tokens, channels], as maps of a trace's patches."""
    return TokenMaps(
        to_numpy(patches_of(trace, values)),
        tuple(names),
        unit=unit,
        value_range=value_range,
        signed=signed,
        method=method,
        provenance=trace.provenance.with_parameters(method=method, **parameters),
        named={name: to_numpy(values[:, trace.layout.token(name)]) for name in trace.layout.named},
        crop_box=trace.crop_box,
        note=note,
    )


def token_similarity(
    trace: Trace, *, query: Query, role: Annotated[Role, ROLE] = "tokens", other: Trace | None = None
) -> TokenMaps:
    """How much each token resembles the chosen one, in every state: cos(x_query, x_j).

    x . y / (||x|| ||y||), 0 where one of them is 0; a region is the mean of its vectors.

    Args:
        query: a patch, a named token or a region, of `trace`.
        role: what is compared: the tokens themselves (before the first and after each layer), or the queries or keys of each layer.
        other: another image in the same model, whose tokens are compared with the query; None compares within the image.

    Returns:
        Cosines in [-1, 1]: [states, rows, cols] of `other`'s patches; `named` has the prefix and suffix tokens.

    Raises:
        ParameterError: the query or the role does not exist, or the other trace has other sizes.
        CaptureError: the residual stream was not kept.

    Source: Amir et al. 2021, arXiv:2112.05814, section 4 (keys and tokens as descriptors).

    Example:
        >>> import vit_viz as vv
        >>> from vit_viz.samples import sample
        >>> trace = vv.trace("mini", sample("shapes"), keep_residual=True)
        >>> vv.token_similarity(trace, query="3,4").values.shape  # states, rows, cols
        (7, 16, 16)
    """
    trace = as_trace(trace)
    searched = trace if other is None else as_trace(other)
    ours, theirs = token_states(trace, role), token_states(searched, role)
    if (len(ours), ours.shape[-1]) != (len(theirs), theirs.shape[-1]):
        raise ParameterError(
            "Tokens are compared within one model: the two traces differ in their layers or in the width of their tokens."
        )
    chosen = torch.einsum("n,snd->sd", trace.query_weights(query).to(ours), ours)  # [states, dim]
    values = cosines(theirs, chosen[:, None])  # [states, tokens]
    return token_maps(
        searched,
        values,
        state_names(trace, role),
        unit="cosine similarity",
        value_range=(-1.0, 1.0),
        method="token similarity",
        signed=True,
        role=role,
        query=query,
    )


def token_change(trace: Trace) -> TokenMaps:
    """How much of each token stays as it was in each layer: cos(x_l, x_{l-1}), the token after the layer against before it.

    Returns:
        Cosines in [-1, 1], [layers, rows, cols]: 1 where the layer at most made the token longer or shorter.

    Raises:
        CaptureError: the residual stream was not kept.

    Example:
        >>> import vit_viz as vv
        >>> from vit_viz.samples import sample
        >>> trace = vv.trace("mini", sample("shapes"), keep_residual=True)
        >>> vv.token_change(trace).named["class"].round(1)  # in the first layer it changes most
        array([0.3, 0.9, 0.9, 0.9, 0.9, 0.8], dtype=float32)
    """
    trace = as_trace(trace)
    states = token_states(trace)
    return token_maps(
        trace,
        cosines(states[1:], states[:-1]),
        state_names(trace, "keys"),
        unit="cosine with the token before the layer",
        value_range=(-1.0, 1.0),
        method="token change",
        signed=True,
    )


def cosines(a: Tensor, b: Tensor) -> Tensor:
    """Cosine of the last axes, broadcast over the others; 0 where a vector is 0."""
    return (F.normalize(a, dim=-1, eps=1e-30) * F.normalize(b, dim=-1, eps=1e-30)).sum(-1).clamp_(-1, 1)


TOKEN_SIMILARITY = asks(
    token_similarity,
    label="Similar tokens",
    also_called="cosine similarity, similar patches, patch similarity, correspondence, nearest neighbours",
    shows="how much every token resembles the chosen one, before and after every layer.",
    hides="whether the model uses the resemblance, or what it consists of.",
    formula=r"$\cos(x_q, x_j)$",
    source="Amir et al. 2021, arXiv:2112.05814",
    class_blind=True,
    reads="tokens",
    place=Place("tokens", {"token_measure": "similarity"}, {"role": "token_role"}),
)

TOKEN_CHANGE = asks(
    token_change,
    label="Change of tokens",
    also_called="residual updates, layer by layer change",
    shows="how much of each token stays as it was in each layer.",
    hides="what changes, and whether the answer depends on it.",
    formula=r"$\cos(x_l, x_{l-1})$",
    source="Dosovitskiy et al. 2021, arXiv:2010.11929",
    class_blind=True,
    reads="tokens",
    place=Place("tokens", {"token_measure": "norms"}),
)
