"""What the model says when patches are truly gone, beside what it said of the whole photo."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from vit_viz.analyses.job import Job
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.analyses.removal import outputs_without
from vit_viz.analyses.spec import Part
from vit_viz.brief import Brief
from vit_viz.errors import ParameterError
from vit_viz.results import Ranking


@dataclass(frozen=True, eq=False, repr=False)
class WithoutPatches(Brief):
    """What the model says when patches are gone.

    Args:
        top: the classes that were asked about, then the best classes now; without classes, the similarity to the whole photo's
            embedding.
        before: scores of the same names with all patches there.
        first: (name, score before, score now) of what came first with all patches.
    """

    top: Ranking
    before: NDArray[np.float32]
    first: tuple[str, float, float]


def without_patches(
    subject: PreparedImage,
    gone: tuple[tuple[int, int], ...],
    whole_outputs: Tensor,
    names: Mapping[int, str] | None,
    *,
    count: int = 5,
    asked: tuple[int, ...] = (),
) -> WithoutPatches:
    """What the model says of the image without these patches, truly removed, beside what it said of the whole.

    Args:
        gone: patches (row, col).
        whole_outputs: outputs for the whole image, [outputs].
        names: of the classes, or None where the outputs are an embedding.
        asked: classes that are told of whatever they score.

    Raises:
        ParameterError: there is no such class.
    """
    outputs = outputs_without(subject, gone).float().cpu()
    whole_outputs = whole_outputs.float().cpu()
    if names is None:
        words = "similarity to the whole photo"
        now = float(F.cosine_similarity(outputs, whole_outputs, dim=0))
        top = Ranking(
            (words,), np.array([now], np.float32), "cosine similarity", "patches removed", subject.provenance
        )
        return WithoutPatches(top, np.ones(1, np.float32), (words, 1.0, now))
    before, after = whole_outputs.softmax(-1), outputs.softmax(-1)
    if not all(0 <= index < after.numel() for index in asked):
        raise ParameterError(f"Classes are numbered from 0 to {after.numel() - 1}.")
    first = after.topk(min(count, after.numel())).indices.tolist()
    chosen = tuple(dict.fromkeys([*asked, *first]))
    best = int(before.argmax())
    top = Ranking(
        tuple(names.get(i, f"class {i}") for i in chosen),
        after[list(chosen)].numpy(),
        "probability",
        "patches removed",
        subject.provenance,
        chosen,
    )
    told = (names.get(best, f"class {best}"), float(before[best]), float(after[best]))
    return WithoutPatches(top, before[list(chosen)].numpy(), told)


def _without(job: Job) -> WithoutPatches:
    subject, labels = job.image, job.loaded.labels
    names = dict(enumerate(labels.names if labels else ())) if subject.has_classes else None
    gone, asked = job.parameters.get("gone", ()), job.parameters.get("asked", ())
    return without_patches(subject, gone, job.outputs, names, asked=asked)


WITHOUT_PATCHES = Part(name="without patches", run=_without, reads="image", forwards=1)
