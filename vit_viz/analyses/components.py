"""By what the patches differ most: principal components, three of them drawn as red, green and blue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from vit_viz.analyses.attention import to_numpy
from vit_viz.analyses.options import Option, options_of
from vit_viz.analyses.spec import SECOND, Job, Place, asks
from vit_viz.analyses.tokens import ROLE, Role, patches_of, state_names, token_states
from vit_viz.answer import Answer, axes
from vit_viz.capture.given import as_trace
from vit_viz.capture.trace import Trace
from vit_viz.errors import ParameterError
from vit_viz.lazy import Tensor, torch
from vit_viz.results import TokenMaps


@dataclass(frozen=True, eq=False)
class Basis:
    """Principal components of a set of vectors.

    Args:
        components: unit vectors, [count, dim]; the entry of each with the largest absolute value is positive.
        variances: variance along each, [count], with n in the denominator.
        total: variance in all directions together.
    """

    components: Tensor
    variances: Tensor
    total: float

    @property
    def shares(self) -> Tensor:
        """Share of the total variance, [count]; 0 where nothing varies."""
        return self.variances / self.total if self.total > 0 else torch.zeros_like(self.variances)


@dataclass(frozen=True, eq=False, repr=False)
class TokenComponents(Answer):
    """The patches of every state in one common basis.

    Args:
        maps: coordinates, one stack [states, rows, cols, count] per image; 0 is the mean. With whitening in standard deviations.
        explained: share of the variance of each state that each component explains, [states, count].
        overall: the same of all states together, [count].
        foreground: which patches the basis was fitted on, [states, rows, cols] per image, where it was split; else empty.
        whitened: whether each coordinate has variance 1 over what the basis was fitted on.
    """

    maps: tuple[TokenMaps, ...]
    explained: NDArray[np.float32]
    overall: NDArray[np.float32]
    foreground: tuple[NDArray[np.bool_], ...] = ()
    whitened: bool = False

    AXES = axes(explained=("state", "component"), overall=("component",))
    DRAWN = ("maps", "explained")


def principal_components(vectors: Tensor, count: int) -> Basis:
    """Along which directions vectors differ most.

    With centred X [n, dim], the first eigenvectors of X^T X / n, computed in fp64; of a vector and its negative, which are equally
    right, the one whose entry of largest absolute value is positive (the first of equals), so that pictures do not flip.

    Args:
        vectors: [n, dim], centred already.

    Source: Pearson 1901; Jolliffe 2002, section 3.5 (singular values).
    """
    if not 1 <= count <= vectors.shape[1]:
        raise ParameterError(f"Vectors of {vectors.shape[1]} numbers have no {count} principal components.")
    wide = vectors.double()
    variances, directions = torch.linalg.eigh(wide.T @ wide / max(1, len(wide)))  # ascending
    components = directions.T.flip(0)[:count]
    largest = components.abs().argmax(1, keepdim=True)
    signs = components.gather(1, largest).sign()
    return Basis(
        components * signs, variances.flip(0)[:count].clamp(min=0), float(variances.clamp(min=0).sum())
    )


def token_components(
    traces: Trace | Sequence[Trace],
    *,
    role: Annotated[Role, ROLE] = "tokens",
    count: int = 3,
    balanced: Annotated[
        bool, Option("balanced", "Let every layer count alike, though late tokens are longer.")
    ] = True,
    foreground: Annotated[
        bool, Option("foreground", "Split at the first component and fit the inner side alone.")
    ] = False,
    whitened: Annotated[bool, Option("whitened", "Give each component the same variance.")] = False,
) -> TokenComponents:
    """The patches of all layers (and of several photos) in three common colours: their coordinates along the directions in which
    they differ most.

    Each state is centred on the mean of its patches over all photos, then one basis is fitted on all of them together, so that a
    colour means the same in every layer and photo. Signs are fixed: see `principal_components`.

    Args:
        traces: one, or several of the same model.
        role: tokens, queries or keys.
        balanced: divide each state by the root of its total variance first, so that late layers, whose tokens are longer, do not
            decide alone.
        foreground: split each state's patches at 0 of the first component and fit anew on one side: on the one that holds the
            smaller share of the photo's border. The other side is 0.
        whitened: divide each coordinate by its standard deviation.

    Raises:
        ParameterError: no trace, traces of different models, or more components than dimensions.
        CaptureError: the residual stream was not kept.

    Source: Oquab et al. 2023, arXiv:2304.07193, Fig. 1 (three components as colours; the split); DINOv3, arXiv:2508.10104
    (whitening). Different here: one basis for all layers.

    Example:
        >>> import vit_viz as vv
        >>> from vit_viz.samples import sample
        >>> vv.token_components(vv.trace("mini", sample("shapes"), keep_residual=True)).explained.shape
        (7, 3)
    """
    recorded = [as_trace(one) for one in ([traces] if isinstance(traces, Trace) else traces)]
    grids = [patches_of(one, token_states(one, role)) for one in recorded]  # each [states, rows, cols, dim]
    if not grids:
        raise ParameterError("Components need at least one trace.")
    if len({(grid.shape[0], grid.shape[-1]) for grid in grids}) > 1:
        raise ParameterError(
            "Photos share colours within one model: these traces differ in their layers or in the width of their tokens."
        )
    states = torch.cat([grid.flatten(1, 2) for grid in grids], dim=1)  # [states, patches, dim]
    centred = states - states.mean(1, keepdim=True)
    if balanced:  # of total variance 1; 0 where nothing varies
        size = centred.square().sum((1, 2), keepdim=True).div(centred.shape[1]).sqrt()
        centred = torch.where(size > 0, centred / size.clamp(min=1e-30), 0)
    kept = torch.ones(centred.shape[:2], dtype=torch.bool, device=centred.device)  # [states, patches]
    if foreground:
        first = centred @ principal_components(centred.flatten(0, 1), 1).components[0].to(centred)
        kept = _foreground(first, grids)
        mask = kept[..., None].to(centred)
        centred = centred - (centred * mask).sum(1, keepdim=True) / mask.sum(1, keepdim=True)
    basis = principal_components(centred[kept], count)
    coordinates = centred @ basis.components.T.to(centred) * kept[..., None]  # [states, patches, count]
    whole = (centred * kept[..., None]).square().sum((1, 2))[:, None]  # of each state's squares
    explained = torch.where(whole > 0, coordinates.square().sum(1) / whole.clamp(min=1e-30), 0)
    if whitened:
        coordinates = coordinates / basis.variances.sqrt().clamp(min=1e-12).to(coordinates)
    words = {"role": role, "balanced": balanced, "foreground": foreground, "whitened": whitened}
    parts = _split(coordinates, grids)
    return TokenComponents(
        tuple(_maps(one, part, role, words) for one, part in zip(recorded, parts, strict=True)),
        to_numpy(explained),
        to_numpy(basis.shares.float()),
        tuple(to_numpy(part[..., 0]) for part in _split(kept[..., None], grids)) if foreground else (),
        whitened,
    )


def colours_of(components: TokenComponents) -> tuple[NDArray[np.float32], ...]:
    """Coordinates as red, green and blue in [0, 1], [states, rows, cols, 3] per image, on one scale for all states and images.

    From the 1st to the 99th percentile of each component; whitened ones by sigmoid(2 c), as DINOv3 draws them. What was left out of
    a foreground is black.
    """
    values = [maps.values for maps in components.maps]
    if values[0].shape[-1] != 3:
        raise ParameterError(f"Colours need three components, not {values[0].shape[-1]}.")
    seen = components.foreground or tuple(np.ones(one.shape[:-1], dtype=bool) for one in values)
    if components.whitened:
        scaled = [1 / (1 + np.exp(-2 * one)) for one in values]
    else:
        everything = np.concatenate([one[mask] for one, mask in zip(values, seen, strict=True)])
        low, high = np.percentile(everything, (1, 99), axis=0)
        spread = np.where(high > low, high - low, 1)
        scaled = [np.clip((one - low) / spread, 0, 1) for one in values]
    return tuple(
        (colour * mask[..., None]).astype(np.float32) for colour, mask in zip(scaled, seen, strict=True)
    )


# --- parts


def _foreground(first: Tensor, grids: Sequence[Tensor]) -> Tensor:
    """Which patches lie on the inner side of the first component, [states, patches]: the side that fewer border patches lie on."""
    borders = [torch.ones(grid.shape[1:3], dtype=torch.bool) for grid in grids]
    for one in borders:
        one[1:-1, 1:-1] = False
    border = torch.cat([one.flatten() for one in borders]).to(first.device)
    above = first > 0
    outside, inside = above[:, border].float().mean(1), above[:, ~border].float().mean(1)
    kept = torch.where((inside >= outside)[:, None], above, ~above)
    none = ~kept.any(1, keepdim=True)
    return kept | none  # a state in which nothing differs is kept whole


def _split(values: Tensor, grids: Sequence[Tensor]) -> list[Tensor]:
    """[states, patches of all images, ...] as one [states, rows, cols, ...] per image."""
    parts = torch.split(values, [grid.shape[1] * grid.shape[2] for grid in grids], dim=1)
    return [
        part.reshape(len(part), *grid.shape[1:3], *part.shape[2:])
        for part, grid in zip(parts, grids, strict=True)
    ]


def _maps(trace: Trace, values: Tensor, role: Role, words: Mapping[str, object]) -> TokenMaps:
    whitened = words["whitened"]
    return TokenMaps(
        to_numpy(values),
        state_names(trace, role),
        unit="standard deviations" if whitened else "coordinate along the component",
        value_range=(-float("inf"), float("inf")),
        signed=True,
        method="principal components",
        provenance=trace.provenance.with_parameters(method="token_components", **words),
        crop_box=trace.crop_box,
        note="One basis for all states; the sign of each component is that of its largest entry.",
    )


@dataclass(frozen=True)
class ComponentsOptions(options_of(token_components)):  # type: ignore[misc]  # the type is made of the signature
    """The options of the function, and the other photo by its name."""

    second: Annotated[
        str,
        Option("second photo", "A photo to share the colours with.", pattern=r"[\w .-]{0,200}"),
    ] = ""


def _token_components(job: Job, options: ComponentsOptions) -> TokenComponents:
    chosen = options.values()
    second = chosen.pop(SECOND)
    return token_components([job.tokens, *([job.record_of(second)] if second else [])], **chosen)


TOKEN_COMPONENTS = asks(
    _token_components,
    label="Common colours",
    also_called="pca, principal components, dino features, feature colours, embeddings",
    shows="by what the patches differ most: three components of all layers, as colours.",
    hides="the rest of the variance: the shares say how much that is.",
    formula=r"the first eigenvectors of $X^\top X / n$, each layer centred",
    source="Oquab et al. 2023, arXiv:2304.07193, Fig. 1",
    class_blind=True,
    options=ComponentsOptions,
    reads="tokens",
    place=Place(
        "tokens",
        {"token_measure": "components"},
        {
            "role": "token_role",
            "foreground": "token_foreground",
            "whitened": "token_whitened",
            SECOND: "token_second",
        },
    ),
)
