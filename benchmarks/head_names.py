"""Whether the names of heads depend on the photos: names from one half of some photos against names from the other half.

    python benchmarks/head_names.py --data FOLDER --model vit_tiny_patch16_224.safetensors

FOLDER holds annotations.json: a list of {"file", "boxes_xyxy", ...}. Every second photo is in the first half, in the order of the
file; --shuffles does the same for so many random halves. Agreed: the same name for at least 90% of the heads. For each head it
prints the name from all photos with its numbers, and how much more of what the patches on the object look at lies on the object
than lies there for the patches beside it: what "content" should be seen in, though no rule reads it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run from a checkout that is not installed

import vit_viz
from vit_viz.analyses.head_names import HeadName, name_heads
from vit_viz.analyses.head_statistics import Measure
from vit_viz.analyses.heads import head_tables
from vit_viz.analyses.localisation import object_on_grid
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.capture import Trace
from vit_viz.results import HeadTable

Tables = Mapping[Measure, HeadTable]


def main() -> None:
    arguments = parse()
    torch.set_num_threads(arguments.threads)
    loaded = vit_viz.load(arguments.model)
    photos = json.loads((arguments.data / "annotations.json").read_text())[: arguments.limit]
    tables, contrasts = [], []
    for photo in photos:
        subject = PreparedImage.of(loaded, arguments.data / photo["file"], mode="crop")
        trace = subject.trace(keep_values=True, keep_residual=True)
        tables.append(head_tables(trace))
        assert subject.crop_box is not None
        share = object_on_grid(subject.crop_box, subject.layout.grid, boxes=photo["boxes_xyxy"]).share
        contrasts.append(contrast(trace, share))
    told(name_heads(tables), np.nanmean(contrasts, axis=0))
    print(f"every second photo: {100 * agreement(tables[::2], tables[1::2]):.1f}% of the names agree")
    random = np.random.default_rng(0)
    shares = []
    for _ in range(arguments.shuffles):
        order = random.permutation(len(tables))
        halves = [[tables[i] for i in part] for part in np.array_split(order, 2)]
        shares.append(100 * agreement(*halves))
    if shares:
        print(f"{len(shares)} random halves: {np.mean(shares):.1f}%, {min(shares):.1f} to {max(shares):.1f}%")


def agreement(one: Sequence[Tables], other: Sequence[Tables]) -> float:
    """Share of the heads with the same name; a neighbour on another side is another name."""
    pairs = zip(name_heads(one), name_heads(other), strict=True)
    return float(np.mean([first.label == second.label for first, second in pairs]))


def contrast(trace: Trace, share: NDArray[np.float32]) -> NDArray[np.float64]:
    """Mass on the object from patches on it minus that from patches beside it, [layers, heads]; NaN where one is missing."""
    inside = torch.from_numpy(share.ravel() > 0.5)
    if inside.all() or not inside.any():
        return np.full((trace.num_layers, trace.num_heads), np.nan)
    patches = trace.layout.patch_slice
    values = []
    for layer in range(trace.num_layers):
        between = trace.attention(layer)[:, patches, patches]
        mass = (between[..., inside].sum(-1) / between.sum(-1)).numpy()
        values.append(mass[:, inside].mean(1) - mass[:, ~inside].mean(1))
    return np.array(values, dtype=np.float64)


def told(names: Sequence[HeadName], contrasts: NDArray[np.float64]) -> None:
    """One line for each head: its name, whether the evidence is thin, and the numbers."""
    columns = list(names[0].numbers)
    print("head   name                   thin  " + "  ".join(columns) + "  (on the object)")
    for one in names:
        numbers = "  ".join(f"{one.numbers[name]:{len(name)}.2f}" for name in columns)
        thin = ", ".join(one.could_be) if one.could_be else "none holds" if one.is_thin else ""
        last = contrasts[one.layer, one.head]
        print(
            f"{one.layer:2d}.{one.head:<2d}  {one.label:22} {'thin' if one.is_thin else '':5} {numbers}  {last:.2f}  {thin}"
        )


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with photos and annotations.json")
    parser.add_argument("--model", required=True, help="what vit_viz.load takes")
    parser.add_argument("--limit", type=int, default=None, help="first photos only")
    parser.add_argument("--shuffles", type=int, default=20, help="random halves beside every second photo")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    return parser.parse_args()


if __name__ == "__main__":
    main()
