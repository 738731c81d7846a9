"""Print every figure of the model card: `python -m training.evaluate DATA [--model FILE]`.

Everything is measured through the app's own public functions: its loading, preprocessing, capture and relevance.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image
from torch import Tensor

import vit_viz as vv
from training import data
from vit_viz.analyses.relevance import relevance
from vit_viz.samples import sample, sample_names

CATS = frozenset({"n02123045", "n02123394", "n02124075", "n02125311", "n02129165"})  # tabby .. cougar, lion
LARGEST_BOX = 0.5


class Localisation(NamedTuple):
    """How a map and a box of one photo agree."""

    share_inside: float
    box_share: float
    peak_inside: bool
    centre_inside: bool


def accuracy(loaded: vv.LoadedModel, photos: npt.NDArray[np.uint8], labels: Tensor) -> tuple[float, float]:
    """Share of the photos whose class is the first, or among the first five, of the model's answers."""
    top1 = top5 = 0
    for start in range(0, len(photos), 100):
        batch = [Image.fromarray(photo) for photo in photos[start : start + 100]]
        pixels = torch.cat([loaded.preprocess.apply(photo, mode="crop").pixels for photo in batch])
        with torch.inference_mode():
            best = loaded.model(pixels).topk(5).indices
        hits = best == labels[start : start + 100, None]
        top1, top5 = top1 + int(hits[:, 0].sum()), top5 + int(hits.any(1).sum())
    return top1 / len(photos), top5 / len(photos)


def box_mask(box: list[int]) -> npt.NDArray[np.bool_]:
    """The pixels of a 64 x 64 photo inside a box (left, top, right, bottom; both ends included)."""
    left, top, right, bottom = box
    mask = np.zeros((data.SIDE, data.SIDE), dtype=bool)
    mask[top : bottom + 1, left : right + 1] = True
    return mask


def localisation(values: npt.NDArray[np.float32], box: list[int]) -> Localisation:
    """Compare a map [rows, cols] with a box: the map is spread evenly over the pixels of each patch."""
    rows, cols = values.shape
    mask = box_mask(box)
    spread = values.repeat(data.SIDE // rows, 0).repeat(data.SIDE // cols, 1)
    row, col = np.unravel_index(int(values.argmax()), values.shape)
    y, x = int((row + 0.5) * data.SIDE / rows), int((col + 0.5) * data.SIDE / cols)
    return Localisation(
        share_inside=float(spread[mask].sum() / spread.sum()),
        box_share=float(mask.mean()),
        peak_inside=bool(mask[y, x]),
        centre_inside=bool(mask[data.SIDE // 2, data.SIDE // 2]),
    )


def localisations(
    loaded: vv.LoadedModel, photos: npt.NDArray[np.uint8], boxes: list[list[int]], every: int
) -> Iterator[Localisation]:
    """Relevance of the true class against the box, where the box covers at most half of the photo."""
    small = [i for i, box in enumerate(boxes) if box_mask(box).mean() <= LARGEST_BOX]
    per_class = len(boxes) // 200
    for index in small[::every]:
        trace = vv.trace(loaded, Image.fromarray(photos[index]), mode="crop", target=index // per_class)
        yield localisation(relevance(trace).values, boxes[index])


def head_correlations(loaded: vv.LoadedModel, photos: npt.NDArray[np.uint8]) -> npt.NDArray[np.float64]:
    """Mean correlation of two heads' class-token maps over the patches, per layer: [layers]."""
    per_photo = []
    for photo in photos:
        trace = vv.trace(loaded, Image.fromarray(photo), mode="crop")
        maps = [
            trace.attention(i, queries=[0])[:, 0, trace.layout.patch_slice] for i in range(trace.num_layers)
        ]
        per_photo.append([mean_correlation(layer.cpu().numpy()) for layer in maps])
    means: npt.NDArray[np.float64] = np.asarray(per_photo).mean(axis=0)
    return means


def mean_correlation(maps: npt.NDArray[np.float32]) -> float:
    """Mean Pearson correlation over all pairs of maps [maps, patches]."""
    between = np.atleast_2d(np.corrcoef(maps.astype(np.float64)))
    return float(between[np.triu_indices(len(maps), 1)].mean())


def named(loaded: vv.LoadedModel, photo: Image.Image) -> list[tuple[str, str, float]]:
    """The five best answers on a photo: synset, name, probability."""
    with torch.inference_mode():
        probabilities = loaded.model(loaded.preprocess.apply(photo, mode="crop").pixels).softmax(1)[0]
    assert loaded.labels is not None
    best = probabilities.topk(5)
    return [
        (loaded.labels.synsets[i], loaded.labels.name(i), p)
        for p, i in zip(best.values.tolist(), best.indices.tolist(), strict=True)
    ]


def report_samples(loaded: vv.LoadedModel) -> None:
    """What the model calls the sample photos."""
    for name in sample_names():
        answers = named(loaded, sample(name))
        mark = "a cat" if answers[0][0] in CATS else "not a cat"
        listed = ", ".join(f"{label} {share:.2f}" for _, label, share in answers[:3])
        print(f"sample {name}: {listed} ({mark})")


def report_large(loaded: vv.LoadedModel, folder: Path) -> None:
    """How often the model is right on the large photos of ImageNet that show one of its classes."""
    assert loaded.labels is not None
    entries = json.loads((folder / "annotations.json").read_text())
    known = [entry for entry in entries if entry["synset"] in loaded.labels.synsets]
    ranks = []
    for entry in known:
        with Image.open(folder / entry["file"]) as photo:
            answers = [synset for synset, _, _ in named(loaded, photo.convert("RGB"))]
        ranks.append(answers.index(entry["synset"]) if entry["synset"] in answers else 5)
    print(f"large photos of its classes: {len(ranks)}, top-1 {np.mean([r == 0 for r in ranks]):.2f}, "
          f"top-5 {np.mean([r < 5 for r in ranks]):.2f}")  # fmt: skip


def report_localisation(figures: list[Localisation]) -> None:
    """The box figures, with what the centre of the photo and chance reach beside them."""
    inside, box, peak, centre = (np.asarray(column, dtype=float) for column in zip(*figures, strict=True))
    print(f"boxes of at most half of the photo: {len(figures)}")
    print(f"  relevance inside the box {inside.mean():.3f}, the box's share of the photo {box.mean():.3f}: "
          f"ratio {inside.mean() / box.mean():.2f} (mean of the ratios {np.mean(inside / box):.2f}; chance 1)")  # fmt: skip
    print(
        f"  peak inside the box {peak.mean():.3f} (centre of the photo {centre.mean():.3f}, chance {box.mean():.3f})"
    )


def report(loaded: vv.LoadedModel, folder: Path, cache: Path, every: int) -> None:
    """All figures, one after the other."""
    photos = data.photos(folder, "val", cache)
    boxes = [box for entry in data.classes(folder) for box in entry["val_boxes_xyxy"]]
    report_samples(loaded)
    report_large(loaded, folder / "photos")
    top1, top5 = accuracy(loaded, photos[::every], data.labels("val", len(photos))[::every])
    print(f"validation, {len(photos[::every])} photos: top-1 {top1:.4f}, top-5 {top5:.4f}", flush=True)
    correlations = head_correlations(loaded, photos[25::50])
    print("correlation of heads per layer: " + " ".join(f"{value:.3f}" for value in correlations)
          + f" ({int((correlations < 0.8).sum())} of {len(correlations)} layers below 0.8)", flush=True)  # fmt: skip
    report_localisation(list(localisations(loaded, photos, boxes, every)))


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, help="folder with train/ and photos/")
    parser.add_argument("--model", default="mini", help="the bundled model, or a file")
    parser.add_argument("--cache", type=Path, help="folder of the decoded photos (a temporary one)")
    parser.add_argument("--every", type=int, default=1, help="use every n-th validation photo")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    with tempfile.TemporaryDirectory() as folder:
        report(vv.load(args.model), args.data, args.cache or Path(folder), args.every)


if __name__ == "__main__":
    main()
