"""Whether the maps lie on the object: pointing game and energy of every method on labelled photos, and deletion against random.

    python benchmarks/localisation.py --data FOLDER --model vit_tiny_patch16_224.safetensors

FOLDER holds annotations.json: a list of {"file", "class_index", "boxes_xyxy"}, boxes in pixels of the file. Photos whose boxes
cover more than 75% of the crop are left out, since any point would hit. Beside the methods stand the image centre and chance (a
random patch). The explained class is the true one; deletion follows the model's first class.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run from a checkout that is not installed

import vit_viz
from vit_viz.analyses.correlation import spearman
from vit_viz.analyses.explain import explain_subject
from vit_viz.analyses.faithfulness import RANDOM_ORDERS, faithfulness_of, random_band
from vit_viz.analyses.localisation import ObjectOnGrid, localisation, object_on_grid
from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.results import PatchMap


@dataclass
class Scores:
    """One number per photo, by method."""

    pointing: dict[str, list[float]] = field(default_factory=dict)
    energy: dict[str, list[float]] = field(default_factory=dict)
    deletion: list[float] = field(default_factory=list)  # relevance, as a share of the random mean
    below: list[bool] = field(default_factory=list)
    ahead: list[bool] = field(default_factory=list)
    sensitivity: list[float] = field(default_factory=list)

    def add(self, method: str, pointing: float | None, energy: float | None) -> None:
        """Note one photo."""
        self.pointing.setdefault(method, []).append(np.nan if pointing is None else pointing)
        self.energy.setdefault(method, []).append(np.nan if energy is None else energy)


def main() -> None:
    arguments = parse()
    torch.set_num_threads(arguments.threads)
    loaded = vit_viz.load(arguments.model)
    photos = json.loads((arguments.data / "annotations.json").read_text())[: arguments.limit]
    scores = Scores()
    for photo in photos:
        subject = PreparedImage.of(loaded, arguments.data / photo["file"], mode=arguments.mode)
        assert subject.crop_box is not None
        there = object_on_grid(subject.crop_box, subject.layout.grid, boxes=photo["boxes_xyxy"])
        if there.share.mean() > arguments.largest:
            continue
        maps = explain_subject(subject, methods=arguments.methods, target=photo["class_index"])
        score(scores, subject, photo, maps, there)
        if len(scores.deletion) < arguments.deletion and "relevance" in maps:
            score_deletion(scores, subject)
    report(scores)


def score(
    scores: Scores,
    subject: PreparedImage,
    photo: dict[str, Any],
    maps: dict[str, PatchMap],
    there: ObjectOnGrid,
) -> None:
    assert subject.crop_box is not None
    for method, patch_map in maps.items():
        result = localisation(patch_map, boxes=photo["boxes_xyxy"])
        scores.add(method, result.pointing, result.energy)
    middle = object_on_grid(subject.crop_box, (1, 1), boxes=photo["boxes_xyxy"])
    scores.add("(centre of the crop)", float(middle.centres[0, 0]), float("nan"))
    scores.add("(chance)", float(there.centres.mean()), float(there.share.mean()))


def score_deletion(scores: Scores, subject: PreparedImage) -> None:
    """Deletion of the relevance map against ten random orders, following the model's first class; and class sensitivity."""
    band = random_band(subject)
    relevance = explain_subject(subject, methods=["relevance"])["relevance"]
    result = faithfulness_of(subject, relevance, band)
    scores.deletion.append(result.relative_deletion)
    scores.below.append(result.beats_random[0])
    scores.ahead.append(result.beaten[0] == RANDOM_ORDERS)
    with torch.no_grad():
        second = int(subject.outputs(subject.pixels)[0].topk(2).indices[1])
    other = explain_subject(subject, methods=["relevance"], target=second)["relevance"]
    scores.sensitivity.append(1 - spearman(relevance.values, other.values))


def report(scores: Scores) -> None:
    count = len(next(iter(scores.pointing.values()), []))
    print(f"{'method, ' + str(count) + ' photos':32} {'pointing':>9} {'energy':>9}")
    ranked = sorted(scores.pointing, key=lambda method: -np.mean(scores.pointing[method]))
    for method in ranked:
        print(f"{method:32} {np.mean(scores.pointing[method]):9.3f} {np.mean(scores.energy[method]):9.3f}")
    if scores.deletion:
        print(
            f"relevance, deletion on {len(scores.deletion)} photos: AUC / random mean {np.mean(scores.deletion):.2f}, "
            f"below the 95% band of random orders in {100 * np.mean(scores.below):.0f}%, "
            f"below each of the {RANDOM_ORDERS} orders in {100 * np.mean(scores.ahead):.0f}%; "
            f"class sensitivity (top-1 against top-2) {np.mean(scores.sensitivity):.2f}"
        )


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with photos and annotations.json")
    parser.add_argument("--model", required=True, help="what vit_viz.load takes")
    parser.add_argument(
        "--methods", nargs="+", default=list(METHODS.quick), help="methods of vit_viz.explain; slow ones too"
    )
    parser.add_argument("--mode", default="crop", choices=["fit", "crop", "stretch"])
    parser.add_argument(
        "--largest", type=float, default=0.75, help="largest share of the crop that boxes may cover"
    )
    parser.add_argument("--limit", type=int, default=None, help="first photos only")
    parser.add_argument(
        "--deletion", type=int, default=1000, help="photos for deletion, the slow part; 0 leaves it out"
    )
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    return parser.parse_args()


if __name__ == "__main__":
    main()
