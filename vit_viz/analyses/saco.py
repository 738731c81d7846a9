"""Whether patches that a map ranks higher matter more: compared group by group, and weighted by how much higher (SaCo)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from vit_viz.analyses.faithfulness import patch_order
from vit_viz.analyses.options import Option
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.analyses.removal import baseline_pixels, painted_scores
from vit_viz.analyses.spec import asks
from vit_viz.analyses.targets import TargetLike
from vit_viz.analyses.trust import OfMethodOptions, watched_map
from vit_viz.errors import ParameterError
from vit_viz.progress import ProgressLike, StopCheck, Watch, bar
from vit_viz.results import Curve
from vit_viz.sentences import formatted

GROUPS = 10


def saco(
    subject: PreparedImage,
    *,
    method: str,
    target: TargetLike = None,
    groups: int = GROUPS,
    progress: ProgressLike = None,
    cancelled: StopCheck | None = None,
) -> Curve:
    """How much the target falls when each group of a map's patches is painted over, from its best patches to its last.

    The patches in the order of the map, in groups of equal size; s_i is the mean of the map in group i, d_i how far the target
    falls without it. SaCo = sum over i < j of (s_i - s_j) * (1 if d_i >= d_j else -1), over the sum of (s_i - s_j): 1 where every
    group matters as much as the map says in comparison with every other, -1 where it is the other way round, about 0 for a random
    map. It stands in the note, and as `saco` in the provenance.

    Args:
        groups: of patches; where they do not divide, the first ones have one more.
        progress: told the share that is done; None shows a bar at a terminal or in a notebook, False nothing.

    Returns:
        x: the groups, from 1; y: the fall of the target without each.

    Raises:
        ParameterError: the method cannot explain this model, there are not that many patches, or its map is the same everywhere.
        Cancelled: `cancelled` said so.

    Source: Wu et al. 2024, CVPR, "On the Faithfulness of Vision Transformer Explanations". Different here: s_i is a mean and not a
    sum, since groups may differ by one patch.

    Example:
        >>> import vit_viz as vv
        >>> from vit_viz.analyses.prepared_image import PreparedImage
        >>> vv.saco(PreparedImage.of("mini", "lion"), method="relevance").note
        'SaCo 0.8: 1 is as faithful as can be, random maps have about 0. Painted over with the preprocessing mean.'
    """
    if not 2 <= groups <= subject.layout.num_patches:
        raise ParameterError(f"There are 2 to {subject.layout.num_patches} groups of patches, not {groups}.")
    fixed = subject.resolved(target)
    with bar("saco", progress) as report:
        watch = Watch(groups + 2, progress=report, cancelled=cancelled)
        patch_map = watched_map(subject, method, fixed, watch)
        parts = np.array_split(patch_order(patch_map), groups)
        patches, nothing = np.arange(subject.layout.num_patches), np.empty(0)
        gone = np.array([np.isin(patches, part) for part in (nothing, *parts)])
        scores = painted_scores(subject, fixed.followed, gone, baseline_pixels(subject, "mean"), watch=watch)
    salience = np.array([patch_map.values.ravel()[part].mean(dtype=np.float64) for part in parts])
    falls = scores[0] - scores[1:]
    value = coefficient(salience, falls)
    return Curve(
        np.arange(1, groups + 1, dtype=np.float32),
        falls.astype(np.float32),
        "group of patches, from the map's best to its last",
        f"fall of the {fixed.followed.describe(subject.labels)} without it",
        f"SaCo of {method}",
        subject.provenance.with_parameters(
            method="saco", of=method, target=fixed.describe(), groups=groups, saco=round(value, 6)
        ),
        note=f"SaCo {formatted(value, '.2g')}: 1 is as faithful as can be, random maps have about 0. "
        "Painted over with the preprocessing mean.",
    )


def coefficient(salience: NDArray[np.float64], falls: NDArray[np.float64]) -> float:
    """SaCo of groups in the order of their salience, highest first, and of how far the target falls without each."""
    first, second = np.triu_indices(len(salience), 1)
    claimed = salience[first] - salience[second]
    if not claimed.sum() > 0:
        raise ParameterError("This map is the same everywhere: it ranks no patch before another.")
    return float(np.where(falls[first] >= falls[second], claimed, -claimed).sum() / claimed.sum())


@dataclass(frozen=True)
class SacoOptions(OfMethodOptions):
    """Whose map is put to the test, and how finely."""

    groups: Annotated[
        int, Option("groups", "How many groups of patches, from the best to the last.", low=2, high=100)
    ] = GROUPS


SACO = asks(
    saco,
    label="SaCo of a map",
    also_called="salience-guided faithfulness coefficient",
    shows="whether patches that the map ranks higher matter more to the answer, group by group.",
    hides="what patches do together: each group is painted over alone.",
    formula=r"$\sum_{i<j} \pm (s_i - s_j) \,/\, \sum_{i<j} (s_i - s_j)$, plus where the answer falls at least as far "
    r"without group $i$ as without group $j$",
    source="Wu et al. 2024, CVPR (SaCo)",
    runs="a dozen passes",
    options=SacoOptions,
    reads="image",
    cost="many passes",
    forwards=14,
)
