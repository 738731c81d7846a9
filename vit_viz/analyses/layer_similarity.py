"""How alike the layers are: linear centred kernel alignment (CKA) of the patches before and after every layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from vit_viz.analyses.attention import to_numpy
from vit_viz.analyses.options import Option
from vit_viz.analyses.spec import Job, Place, asks
from vit_viz.analyses.tokens import ROLE, Role, state_names, token_states
from vit_viz.capture.given import as_trace
from vit_viz.capture.trace import Trace
from vit_viz.errors import ParameterError
from vit_viz.lazy import Tensor, torch
from vit_viz.progress import Progress, StopCheck, Watch
from vit_viz.results import StateMatrix

_MOST_GRAM = 4096  # patches whose matrix of pairs is formed: 64 MB in fp32


def layer_similarity(
    traces: Trace | Sequence[Trace],
    *,
    role: Role = "tokens",
    debiased: bool | None = None,
    progress: Progress | None = None,
    cancelled: StopCheck | None = None,
) -> StateMatrix:
    """How alike the patches are to each other in any two layers: linear CKA.

    ||Y^T X||_F^2 / (||X^T X||_F ||Y^T Y||_F), with X [n, dim] the patches of one state and Y those of another, columns centred over
    patches (and photos). 1 where one is a rotation of the other, whatever its scale. With fewer patches than numbers per patch this
    is too high even for noise; then HSIC is estimated without bias from the matrices K = X X^T and L = Y Y^T with zero diagonals:
    (tr(K L) + sum(K) sum(L) / ((n - 1) (n - 2)) - 2 / (n - 2) * sum(K L)) / (n (n - 3)).

    Args:
        traces: one, or several of the same model.
        debiased: whether the second form is used; None uses it where there are fewer patches than numbers per patch.
        progress: told the share of states that are compared.
        cancelled: asked before each; True ends with `Cancelled`.

    Returns:
        [states, states], symmetric, diagonal 1; the first form lies in [0, 1], the second may fall a little below 0.

    Raises:
        ParameterError: traces of different models, fewer than 4 patches, or more than 4096 for the second form.
        CaptureError: the residual stream was not kept.
        Cancelled: `cancelled` said so.

    Source: Kornblith et al. 2019, arXiv:1905.00414, section 3; Song et al. 2012, JMLR 13 (HSIC without bias); Nguyen et al. 2021,
    arXiv:2010.15327 (its use for CKA).

    Example:
        >>> import vit_viz as vv
        >>> from vit_viz.samples import sample
        >>> similarity = vv.layer_similarity(vv.trace("mini", sample("shapes"), keep_residual=True))
        >>> similarity.names[1], similarity.values.shape
        ('after layer 0', (7, 7))
    """
    recorded = [as_trace(one) for one in ([traces] if isinstance(traces, Trace) else traces)]
    parts = [token_states(one, role)[:, one.layout.patch_slice] for one in recorded]
    if not parts or len({(part.shape[0], part.shape[2]) for part in parts}) > 1:
        raise ParameterError("Layers are compared over at least one trace, and over traces of one model.")
    states = torch.cat(parts, dim=1)  # [states, patches, dim]
    _, count, dim = states.shape
    if debiased is None:
        debiased = count < dim
    if count < 4 or (debiased and count > _MOST_GRAM):
        raise ParameterError(f"Layers are compared over 4 to {_MOST_GRAM} patches, not {count}.")
    watch = Watch(len(states), progress=progress, cancelled=cancelled)
    products = (_unbiased_products if debiased else _products)(states, watch)  # [states, states]
    sizes = products.diagonal().clamp(min=0).sqrt()
    scale = sizes[:, None] * sizes
    values = torch.where(scale > 0, products / scale.clamp(min=1e-300), 0)
    return StateMatrix(
        to_numpy(values.clamp(-1, 1)),
        state_names(recorded[0], role),
        unit="linear CKA, without bias" if debiased else "linear CKA",
        value_range=(-1.0, 1.0) if debiased else (0.0, 1.0),
        method="layer similarity",
        provenance=recorded[0].provenance.with_parameters(
            method="layer_similarity", role=role, debiased=debiased, photos=len(recorded)
        ),
        note=f"Over {count} patches of {dim} numbers.",
    )


def _products(states: Tensor, watch: Watch) -> Tensor:
    """||Y^T X||_F^2 of all pairs of states, [states, states], in fp64."""
    centred = _unit(states - states.mean(1, keepdim=True)).double()
    count = len(centred)
    products = torch.empty(count, count, dtype=torch.float64, device=states.device)
    for i in range(count):
        watch.check()
        crossed = centred[i].T @ centred[: i + 1]  # [i + 1, dim, dim]
        products[i, : i + 1] = products[: i + 1, i] = crossed.square().sum((1, 2))
        watch.advance()
    return products


def _unbiased_products(states: Tensor, watch: Watch) -> Tensor:
    """n (n - 3) HSIC without bias of all pairs of states, [states, states], in fp64."""
    unit = _unit(states - states.mean(1, keepdim=True)).double()  # centring changes nothing but the rounding
    n, count = states.shape[1], len(states)
    grams = [one @ one.T for one in unit]
    for gram in grams:
        gram.fill_diagonal_(0)
    rows = torch.stack([gram.sum(1) for gram in grams])  # [states, patches]
    sums = rows.sum(1)
    traces = torch.empty(count, count, dtype=torch.float64, device=states.device)
    for i in range(count):
        watch.check()
        for j in range(i + 1):
            traces[i, j] = traces[j, i] = (grams[i] * grams[j]).sum()
        watch.advance()
    return traces + sums[:, None] * sums / ((n - 1) * (n - 2)) - 2 / (n - 2) * (rows @ rows.T)


def _unit(states: Tensor) -> Tensor:
    """Each state divided by its own size, which CKA does not depend on, so that squares of squares do not overflow."""
    return states / states.abs().amax((1, 2), keepdim=True).clamp(min=1e-30)


Forms = Literal["as patches need", "biased", "without bias"]
_DEBIASED: dict[Forms, bool | None] = {"as patches need": None, "biased": False, "without bias": True}


def _layer_similarity(
    job: Job,
    *,
    role: Annotated[Role, ROLE] = "tokens",
    form: Annotated[
        Forms, Option("form", "With or without the bias that few patches bring; by default as they need.")
    ] = "as patches need",
) -> StateMatrix:
    return layer_similarity(job.tokens, role=role, debiased=_DEBIASED[form], **job.watched)


LAYER_SIMILARITY = asks(
    _layer_similarity,
    label="Layers compared",
    also_called="cka, representation similarity, centered kernel alignment",
    shows="how alike the patches are to each other in any two layers.",
    hides="by what they are alike.",
    formula=r"$\lVert Y^\top X \rVert_F^2 / (\lVert X^\top X \rVert_F \lVert Y^\top Y \rVert_F)$",
    source="Kornblith et al. 2019, arXiv:1905.00414",
    class_blind=True,
    reads="image",
    place=Place("tokens", {"token_measure": "layers"}, {"role": "token_role"}),
    forwards=1,
)
