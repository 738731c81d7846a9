"""Which explanation methods find the object of a photo, and whose maps beat random orders: by the analyses of `explain`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from vit_viz.analyses.explain import explain_subject
from vit_viz.analyses.faithfulness import RandomBand, faithfulness_of, random_band
from vit_viz.analyses.localisation import Box, localisation
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.checkpoints import Model
from vit_viz.geometry import TokenLayout
from vit_viz.results import PatchMap
from vit_viz.surveys.columns import Rows
from vit_viz.surveys.stages import Shot


def method_rows(
    model: Model, shot: Shot, methods: Sequence[str], layout: TokenLayout, *, deletion: bool
) -> Rows:
    """One row per method.

    Pointing and energy are of the map towards the label's class, as benchmarks of pointing have it; deletion and insertion follow
    the model's first class, by the map towards it.

    Args:
        deletion: whether deletion and insertion are computed.
    """
    if not methods:
        return {}
    levels = torch.from_numpy(shot.levels)[None].to(model.device)
    subject = replace(
        PreparedImage.of(model, model.preprocess.normalised(levels), layout=layout),
        crop_box=shot.crop_box,
        preprocess=model.preprocess,
        provenance=model.provenance,
    )
    first = _first_class(subject)
    true = first if shot.photo.class_index is None else shot.photo.class_index
    located = explain_subject(subject, methods=methods, target=true)
    tested = (
        located if true == first or not deletion else explain_subject(subject, methods=methods, target=first)
    )
    band = random_band(subject, target=first) if deletion else None
    rows = [
        {"photo": shot.photo.name, "method": name, "target": true}
        | _place(located[name], shot.photo.boxes)
        | _faith(subject, tested[name], band, first)
        for name in methods
    ]
    return {name: [row[name] for row in rows] for name in rows[0]}


def _first_class(subject: PreparedImage) -> int | None:
    """The model's first class; None where its outputs are no classes."""
    if not subject.has_classes:
        return None
    with torch.no_grad():
        return int(subject.outputs(subject.pixels)[0].argmax())


def _place(patch_map: PatchMap, boxes: Sequence[Box]) -> dict[str, object]:
    if not boxes:
        return {"pointing": None, "energy": None}
    place = localisation(patch_map, boxes=boxes)
    return {"pointing": place.pointing, "energy": place.energy}


def _faith(
    subject: PreparedImage, patch_map: PatchMap, band: RandomBand | None, target: int | None
) -> dict[str, object]:
    if band is None:
        return dict.fromkeys(_FAITH)
    followed = faithfulness_of(subject, patch_map, band, target=target)
    areas = (followed.deletion_auc, followed.insertion_auc)
    means = (band.interval("deletion")[0], band.interval("insertion")[0])
    return dict(zip(_FAITH, (*areas, *means, *followed.beats_random), strict=True))


_FAITH = (
    *("deletion", "insertion", "random_deletion", "random_insertion"),
    *("beats_deletion", "beats_insertion"),
)
