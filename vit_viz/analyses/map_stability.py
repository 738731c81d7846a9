"""Whether a map stays when the photo changes in ways that do not matter: mirrored, moved a little, with noise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from vit_viz.analyses.correlation import check_ranks, spearman
from vit_viz.analyses.options import Option
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.analyses.spec import asks
from vit_viz.analyses.targets import TargetLike
from vit_viz.analyses.trust import OfMethodOptions, watched_map
from vit_viz.lazy import F, Tensor, torch
from vit_viz.progress import ProgressLike, StopCheck, Watch, bar
from vit_viz.results import StateMatrix

_Back = Callable[[NDArray[np.float32]], NDArray[np.float32]]


def map_stability(
    subject: PreparedImage,
    *,
    method: str,
    target: TargetLike = None,
    tries: int = 10,
    noise: float = 0.05,
    seed: int = 0,
    progress: ProgressLike = None,
    cancelled: StopCheck | None = None,
) -> StateMatrix:
    """How well the map of a changed photo, mapped back, agrees with that of the photo itself: Spearman's correlation.

    Rows: the photo mirrored left to right, once; the crop moved by up to half a patch down and right or up and left, edge pixels
    repeated; and noise added, of `noise` times the standard deviation of the input. The target stays that of the photo as it is.

    Args:
        tries: how often the photo is moved, and how often noise is added.
        noise: standard deviation of what is added, as a share of that of all numbers of the input.
        progress: told the share that is done; None shows a bar at a terminal or in a notebook, False nothing.

    Returns:
        [3, 3]: mean, and the ends of the band that holds the middle 90% of the tries, in [-1, 1].

    Raises:
        ParameterError: the method does not exist or cannot explain this model, or its map is the same everywhere.
        Cancelled: `cancelled` said so.

    Source: after Alvarez-Melis & Jaakkola 2018, arXiv:1806.08049, which looks for the worst small change; ours draws small ones.

    Example:
        >>> import vit_viz as vv
        >>> from vit_viz.analyses.prepared_image import PreparedImage
        >>> vv.map_stability(PreparedImage.of("mini", "lion"), method="rollout", tries=2).values[0].round(1)
        array([1., 1., 1.], dtype=float32)
    """
    fixed = subject.resolved(target)

    with bar("map_stability", progress) as report:
        watch = Watch(2 + 2 * tries, progress=report, cancelled=cancelled)
        whole = watched_map(subject, method, fixed, watch)
        check_ranks(whole)
        original = whole.values
        agreements = dict[str, list[float]]()
        for name, pixels, back in _changed(subject, tries, noise, seed):
            changed = watched_map(replace(subject, pixels=pixels), method, fixed, watch)
            agreements.setdefault(name, []).append(spearman(original, back(changed.values)))
    drawn = {"tries": tries, "noise": noise, "seed": seed}
    bands = [(np.mean(one), *np.quantile(one, (0.05, 0.95))) for one in agreements.values()]
    return StateMatrix(
        np.array(bands, dtype=np.float32),
        tuple(agreements),
        unit="Spearman correlation",
        value_range=(-1.0, 1.0),
        method=f"stability of {method}",
        provenance=subject.provenance.with_parameters(
            method="map_stability", of=method, target=fixed.describe(), **drawn
        ),
        others=("mean", "low", "high"),
        note=f"Low and high hold the middle 90% of {tries} tries.",
    )


def _changed(
    subject: PreparedImage, tries: int, noise: float, seed: int
) -> Iterator[tuple[str, Tensor, _Back]]:
    """The changed inputs by name, with what brings their maps back."""
    pixels, random = subject.pixels, torch.Generator().manual_seed(seed)
    yield "mirrored", pixels.flip(-1), lambda values: values[:, ::-1]
    down, across = (size // 2 for size in subject.patch_size)
    (height, width), wider = pixels.shape[-2:], F.pad(pixels, (across, across, down, down), mode="replicate")
    for _ in range(tries):  # less than a patch: each patch comes nearest to itself
        top, left = (int(torch.randint(0, 2 * most + 1, (), generator=random)) for most in (down, across))
        yield "moved", wider[..., top : top + height, left : left + width], lambda values: values
    for _ in range(tries):
        added = torch.randn(pixels.shape, generator=random).to(pixels)
        yield "noise", pixels + noise * pixels.std() * added, lambda values: values


@dataclass(frozen=True)
class StabilityOptions(OfMethodOptions):
    """Whose map is put to the test, and how."""

    tries: Annotated[int, Option("tries", "How many moves, and as many times noise.", low=1, high=50)] = 10
    noise: Annotated[
        float,
        Option("noise", "Standard deviation of the noise, as a share of the input's.", high=1, step=0.01),
    ] = 0.05
    seed: Annotated[int, Option("seed", "Seed of the random numbers.", high=9999)] = 0


MAP_STABILITY = asks(
    map_stability,
    label="Stability of a map",
    also_called="robustness, flip, mirror, noise",
    shows="whether a method's map stays when the photo is mirrored, moved by a little, or has noise.",
    hides="whether the map is right: one that never changes is perfectly stable.",
    formula=r"$\rho(m(x), T^{-1} m(T x))$, rank correlation, with the band of its tries",
    source="after Alvarez-Melis & Jaakkola 2018, arXiv:1806.08049",
    runs="one explanation for each try",
    options=StabilityOptions,
    reads="image",
    cost="many passes",
    forwards=88,
)
