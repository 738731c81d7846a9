"""The stage that runs the model: inputs -> rows, by `vit_viz.analyses` alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from vit_viz.analyses.explain import explain_subject
from vit_viz.analyses.faithfulness import RandomBand, faithfulness_of, random_band
from vit_viz.analyses.localisation import Box, localisation, object_on_grid
from vit_viz.analyses.many_photos import PhotoNumbers, begun_numbers
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.capture import trace, with_edits
from vit_viz.capture.interventions import Edits
from vit_viz.capture.layouts import patch_size_of
from vit_viz.capture.report import Structure
from vit_viz.checkpoints import Model
from vit_viz.geometry import TokenLayout
from vit_viz.lazy import Tensor, torch
from vit_viz.results import PatchMap
from vit_viz.session.edits import NO_EDITS, ModelEdits
from vit_viz.surveys.columns import Rows, Tables, joined
from vit_viz.surveys.stages import Failure, Shot

NAMED = 5
"""How many of the highest outputs are noted."""


@dataclass(frozen=True, eq=False)
class Recording:
    """The model of a survey, and what is asked of it.

    Args:
        methods: explanation methods that are scored, too.
        deletion: whether their scores include deletion and insertion.
        edits: of the model's inside; everything is recorded of the edited model.
    """

    model: Model
    methods: tuple[str, ...] = ()
    deletion: bool = True
    edits: ModelEdits = NO_EDITS
    _verified: dict[torch.Size, _Verified] = field(default_factory=dict, init=False)

    def rows(self, shots: Sequence[Shot | Failure]) -> Tables:
        """The rows of some photos, in their order; photos of one size run together."""
        return self.begun(shots)()

    def begun(self, shots: Sequence[Shot | Failure]) -> Callable[[], Tables]:
        """As `rows`, but what is returned waits for the device: until it is called, a GPU computes while the caller goes on."""
        good = [shot for shot in shots if isinstance(shot, Shot)]
        failures = [shot for shot in shots if isinstance(shot, Failure)]
        by_shape: dict[tuple[int, ...], list[Shot]] = {}
        for shot in good:
            by_shape.setdefault(shot.levels.shape, []).append(shot)
        parts = [self._begun(alike) for alike in by_shape.values()]

        def rows() -> Tables:
            of_photo: dict[str, Tables] = {}
            sums: list[Tables] = []
            for alike, waiting, methods in parts:
                numbers = waiting()
                sums.append({"maps": _map_rows(numbers)})
                heads = _head_columns(numbers)
                for index, shot in enumerate(alike):
                    tables: Tables = {
                        "photos": _photo_row(shot, numbers, index, self.model),
                        "heads": _head_rows(shot, numbers, index, heads),
                        "methods": methods[index],
                    }
                    if shot.thumbnail is not None:
                        width, height = shot.thumbnail.size
                        tables["thumbnails"] = {
                            "photo": [shot.photo.name],
                            "width": [width],
                            "height": [height],
                            "webp": [shot.thumbnail.webp],
                        }
                    of_photo[shot.photo.name] = tables
            failed: Rows = {
                "photo": [one.photo.name for one in failures],
                "sentence": [one.sentence for one in failures],
            }
            return joined([*(of_photo[shot.photo.name] for shot in good), *sums, {"failures": failed}])

        return rows

    def _begun(self, alike: Sequence[Shot]) -> tuple[list[Shot], Callable[[], PhotoNumbers], list[Rows]]:
        """Photos of one size with their patches in place, their numbers, which may be on their way, and their methods' rows."""
        device = self.model.device
        levels = torch.empty(
            (len(alike), *alike[0].levels.shape), dtype=torch.uint8, pin_memory=device.type == "cuda"
        )
        np.stack([shot.levels for shot in alike], out=levels.numpy())
        pixels = self.model.preprocess.normalised(levels.to(device, non_blocking=True))
        with self.edited(pixels):
            numbers = self._numbers(pixels)
            layout, declared = self._verified_of(pixels).layout, self.model.preprocess.patch_size
            size = (int(pixels.shape[-2]), int(pixels.shape[-1]))
            patch = patch_size_of(self.model.model, layout.grid, size, declared=declared)
            shots = [replace(shot, crop_box=shot.crop_box.of_patches(layout.grid, patch)) for shot in alike]
            methods = [
                method_rows(self.model, shot, self.methods, layout, deletion=self.deletion) for shot in shots
            ]
        return shots, numbers, methods

    def _numbers(self, pixels: Tensor) -> Callable[[], PhotoNumbers]:
        """The numbers of photos of one size; where a GPU has no room for all at once, of one half after the other."""
        verified = self._verified_of(pixels)
        module = self.model.model
        size = len(pixels)
        while True:
            try:
                parts = [
                    begun_numbers(module, part, layout=verified.layout, structure=verified.structure)
                    for part in torch.split(pixels, size)
                ]
            except torch.OutOfMemoryError:
                if size == 1:
                    raise
            else:
                return lambda: PhotoNumbers.joined([numbers() for numbers in parts])
            size = -(-size // 2)  # here, where the exception no longer holds on to the batch's memory

    def edited(self, pixels: Tensor) -> AbstractContextManager[None]:
        """The model's edits around whatever runs of it inside."""
        edits = self._verified_of(pixels).edits
        return nullcontext() if edits is None else with_edits(edits, self.model.model)

    def _verified_of(self, pixels: Tensor) -> _Verified:
        """What is asked of the first photo of each size, of the model as it was."""
        shape = pixels.shape[1:]
        if shape not in self._verified:
            first = trace(self.model.model, pixels[:1])
            edits = self.edits.of(first) if self.edits else None
            self._verified[shape] = _Verified(first.layout, first.structure, edits)
        return self._verified[shape]


@dataclass(frozen=True, eq=False)
class _Verified:
    """Which token is what in photos of one size, whether that was shown, and the edits for them."""

    layout: TokenLayout
    structure: Structure
    edits: Edits | None


def of_batch(parts: Sequence[Tables]) -> Tables:
    """The tables of a batch from those of its pieces: rows one below the other, and one sum of maps per head and grid."""
    tables = joined(parts)
    sums: dict[tuple[int, ...], NDArray[np.float64]] = {}
    maps = tables["maps"]
    keys = ("layer", "head", "rows", "cols")
    for *key, photos, total, squares in zip(
        *(maps[name] for name in (*keys, "photos", "sum", "squares")), strict=True
    ):
        row = np.array([photos, squares, *total])
        sums[tuple(key)] = row + sums[tuple(key)] if tuple(key) in sums else row
    columns = zip(*sums, strict=True) if sums else ((),) * len(keys)
    added: Rows = dict(zip(keys, map(list, columns), strict=True))
    added |= {"photos": [int(row[0]) for row in sums.values()], "squares": [row[1] for row in sums.values()]}
    added |= {"sum": [row[2:].tolist() for row in sums.values()]}
    return tables | {"maps": added}


def _photo_row(shot: Shot, numbers: PhotoNumbers, index: int, model: Model) -> Rows:
    photo, box = shot.photo, shot.crop_box
    grid = numbers.layout.grid
    share = object_on_grid(box, grid, boxes=photo.boxes).share.mean() if photo.boxes else None
    row = {
        "photo": photo.name,
        "sha256": shot.digest,
        "file_size": None if shot.file is None else shot.file.size,
        "file_time": None if shot.file is None else shot.file.time,
        "height": box.original_size[0],
        "width": box.original_size[1],
        "region": list(box.region),
        "rows": grid[0],
        "cols": grid[1],
        "label": photo.label or None,
        "label_class": photo.class_index,
        "boxes": [side for one in photo.boxes for side in one],
        "box_share": share,
        **_answer(shot, numbers, index, model),
        **_outliers(numbers, index),
    }
    return {name: [value] for name, value in row.items()}


_NO_ANSWER: dict[str, object] = {
    "top_classes": [],
    "top_names": [],
    "top_probabilities": [],
    **dict.fromkeys(("margin", "label_probability", "right", "right_in_five")),
}


def _answer(shot: Shot, numbers: PhotoNumbers, index: int, model: Model) -> dict[str, object]:
    """What the model says of a photo, and whether that is right."""
    if numbers.logits is None or not model.has_classes:
        return _NO_ANSWER
    answers, true = numbers.shown(index, model.output), shot.photo.class_index
    top = numbers.highest(index, NAMED)
    first = [float(answers[number]) for number in top]
    noun = "output " if model.output == "value" else ""
    names = [f"{noun}{number}" if model.labels is None else model.labels.name(number) for number in top]
    named = _NO_ANSWER | {"top_classes": top, "top_names": names}
    if model.output == "value":
        return named | {"top_values": first}
    true = None if true is None or true >= len(answers) else true
    return named | {
        "top_probabilities": first,
        "margin": first[0] - first[1] if len(first) > 1 else None,
        "label_probability": None if true is None else float(answers[true]),
        "right": None if true is None else top[0] == true,
        "right_in_five": None if true is None else true in top,
    }


def _outliers(numbers: PhotoNumbers, index: int) -> dict[str, object]:
    by_state = numbers.outliers(index)
    tokens = sorted({token for tokens in by_state for token in tokens})
    patches = [token for token in tokens if numbers.layout.place(token) is not None]
    first = next((state for state, outliers in enumerate(by_state) if outliers), None)
    return {"outlier_tokens": tokens, "outlier_patches": len(patches), "first_outlier_state": first}


def _head_columns(numbers: PhotoNumbers) -> dict[str, NDArray[np.generic]]:
    """What each head of each photo is noted with, [photos, layers * heads]."""
    photos, layers, heads = numbers.maps.shape[:3]
    places = np.broadcast_to(np.arange(layers * heads), (photos, layers * heads))
    layer, head = np.divmod(places, heads)
    columns: dict[str, NDArray[np.generic]] = {"layer": layer, "head": head}
    columns |= {str(name): values for name, values in numbers.tables.items()}
    columns |= {"concentration": numbers.concentrations}
    columns |= {"peak_row": numbers.peaks[..., 0], "peak_col": numbers.peaks[..., 1]}
    return {name: values.reshape(photos, -1) for name, values in columns.items()}


def _head_rows(
    shot: Shot, numbers: PhotoNumbers, index: int, columns: dict[str, NDArray[np.generic]]
) -> Rows:
    rows = {name: values[index] for name, values in columns.items()}
    peaks = numbers.peaks[index].reshape(-1, 2)
    return {"photo": [shot.photo.name] * len(peaks), **rows, **_inside(shot, numbers, index, peaks)}


def _inside(shot: Shot, numbers: PhotoNumbers, index: int, peaks: NDArray[np.int64]) -> Rows:
    """Where the maps of a photo lie beside its boxes."""
    boxes, grid = shot.photo.boxes, numbers.layout.grid
    if not boxes:
        return {"box_share": [None] * len(peaks), "peak_in_box": [None] * len(peaks)}
    there = object_on_grid(shot.crop_box, grid, boxes=boxes)
    share = numbers.share_inside(index, there.share).ravel()
    return {
        "box_share": share,
        "peak_in_box": [None if row < 0 else bool(there.centres[row, col] == 1) for row, col in peaks],
    }


def _map_rows(numbers: PhotoNumbers) -> Rows:
    photos, layers, heads, rows, cols = numbers.maps.shape
    wide = numbers.maps.astype(np.float64)
    layer, head = np.divmod(np.arange(layers * heads), heads)
    count = layers * heads
    return {
        "layer": layer.tolist(),
        "head": head.tolist(),
        "rows": [rows] * count,
        "cols": [cols] * count,
        "photos": [photos] * count,
        "sum": wide.sum(0).reshape(count, rows * cols).tolist(),
        "squares": np.square(wide).sum((0, 3, 4)).ravel().tolist(),
    }


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
    first = None  # the model's first class, where its outputs are classes
    if subject.has_classes:
        with torch.no_grad():
            first = int(subject.outputs(subject.pixels)[0].argmax())
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


def _place(patch_map: PatchMap, boxes: Sequence[Box]) -> dict[str, object]:
    if not boxes:
        return {"pointing": None, "energy": None}
    place = localisation(patch_map, boxes=boxes)
    return {"pointing": None if place.pointing is None else place.pointing == 1, "energy": place.energy}


def _faith(
    subject: PreparedImage, patch_map: PatchMap, band: RandomBand | None, target: int | None
) -> dict[str, object]:
    if band is None or patch_map.peak is None:
        return dict.fromkeys(_FAITH)
    followed = faithfulness_of(subject, patch_map, band, target=target)
    areas = (followed.deletion_auc, followed.insertion_auc)
    means = (band.interval("deletion")[0], band.interval("insertion")[0])
    return dict(zip(_FAITH, (*areas, *means, *followed.beats_random), strict=True))


_FAITH = (
    *("deletion", "insertion", "random_deletion", "random_insertion"),
    *("beats_deletion", "beats_insertion"),
)
