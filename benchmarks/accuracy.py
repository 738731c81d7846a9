"""Top-1 and top-5 of a checkpoint on labelled photos, through our own decoding, preprocessing, model and class names.

    python benchmarks/accuracy.py --data FOLDER --model vit_tiny_patch16_224.safetensors

One number checks all four at once. FOLDER holds annotations.json: a list of {"file", "class_index" or "synset"}. With --with-timm
the same is computed by timm's model and transform, and the largest difference of logits is shown.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run from a checkout that is not installed

import vit_viz
from vit_viz.images import Mode, decode


def main() -> None:
    arguments = parse()
    torch.set_num_threads(arguments.threads)
    photos = json.loads((arguments.data / "annotations.json").read_text())[: arguments.limit]
    loaded = vit_viz.load(arguments.model)
    truth = [class_of(photo, loaded.labels) for photo in photos]
    ours = logits_of(arguments.data, photos, lambda path: our_logits(loaded, path, arguments.mode))
    report("vit_viz", ours, truth)
    if arguments.with_timm:
        theirs = logits_of(arguments.data, photos, timm_logits(arguments.model, arguments.timm_name))
        report("timm", theirs, truth)
        print(f"largest difference of logits: {(ours - theirs).abs().max():.2e}")


def class_of(photo: dict[str, Any], labels: vit_viz.Labels | None) -> int:
    """The class by its synset where the checkpoint knows synsets, so that the names are checked too."""
    if labels is not None and labels.synsets and "synset" in photo:
        return labels.index(photo["synset"])
    return int(photo["class_index"])


def logits_of(folder: Path, photos: list[dict[str, Any]], model: Callable[[Path], Tensor]) -> Tensor:
    """Logits of all photos, [photos, classes]."""
    with torch.inference_mode():
        return torch.stack([model(folder / photo["file"]) for photo in photos])


def our_logits(loaded: vit_viz.LoadedModel, path: Path, mode: Mode) -> Tensor:
    pixels = loaded.preprocess.apply(decode(path), mode=mode).pixels
    logits: Tensor = loaded.model(pixels.to(next(loaded.model.parameters()).device))
    return logits[0].float().cpu()


def timm_logits(weights: str, name: str) -> Callable[[Path], Tensor]:
    """The same by timm alone: its model, its transform."""
    import timm
    from safetensors.torch import load_file
    from timm.data import create_transform, resolve_model_data_config

    import tests.conftest  # noqa: F401 - lets timm import beside a CPU build of torch

    model = timm.create_model(name).eval()
    model.load_state_dict({key: value.float() for key, value in load_file(weights).items()})
    transform = create_transform(**resolve_model_data_config(model), is_training=False)

    def run(path: Path) -> Tensor:
        with Image.open(path) as image:
            logits: Tensor = model(transform(image.convert("RGB"))[None])
        return logits[0]

    return run


def report(name: str, logits: Tensor, truth: list[int]) -> None:
    hits = logits.topk(5).indices == torch.tensor(truth)[:, None]
    top1, top5 = hits[:, 0].float().mean(), hits.any(1).float().mean()
    print(f"{name}: top-1 {top1:.3f}, top-5 {top5:.3f} on {len(truth)} photos")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of photos with annotations.json")
    parser.add_argument("--model", required=True, help="what vit_viz.load takes: a file, a folder, a name")
    parser.add_argument("--mode", choices=("crop", "fit", "stretch"), default="crop")
    parser.add_argument("--limit", type=int, default=None, help="only the first photos")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--with-timm", action="store_true", help="compute the same with timm")
    parser.add_argument("--timm-name", default="vit_tiny_patch16_224.augreg_in21k_ft_in1k")
    return parser.parse_args()


if __name__ == "__main__":
    main()
