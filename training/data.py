"""Tiny-ImageNet in memory, and its augmentation: crops that the photo and the teacher's map share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor

SIDE = 64
SHEETS = {"train": (20, 25), "val": (5, 10)}


def classes(data: Path) -> list[dict[str, Any]]:
    """The 200 classes in the order of their index: synset, names, validation boxes."""
    entries: list[dict[str, Any]] = json.loads((data / "train" / "classes.json").read_text())
    return sorted(entries, key=lambda entry: int(entry["index"]))


def photos(data: Path, split: str, cache: Path) -> npt.NDArray[np.uint8]:
    """All photos of a split, class after class: uint8 [photos, 64, 64, 3], decoded once into a file of `cache`."""
    path = cache / f"{split}.npy"
    if not path.exists():
        _decode(data, split, path)
    return np.asarray(np.load(path, mmap_mode="r"))


def labels(split: str, count: int) -> Tensor:
    """The class index of each photo: int64 [photos]."""
    rows, cols = SHEETS[split]
    return torch.arange(count) // (rows * cols)


def _decode(data: Path, split: str, path: Path) -> None:
    rows, cols = SHEETS[split]
    each, count = rows * cols, len(classes(data))
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    out = np.lib.format.open_memmap(partial, "w+", np.uint8, (count * each, SIDE, SIDE, 3))
    for index in range(count):
        with Image.open(data / "train" / split / f"{index:03d}.webp") as sheet:
            tiles = np.asarray(sheet.convert("RGB")).reshape(rows, SIDE, cols, SIDE, 3)
        out[index * each : (index + 1) * each] = tiles.transpose(0, 2, 1, 3, 4).reshape(each, SIDE, SIDE, 3)
    out.flush()
    partial.replace(path)


def pixels(batch: npt.NDArray[np.uint8]) -> Tensor:
    """Photos as the model reads them: float32 in [-1, 1], [batch, 3, 64, 64]."""
    return torch.from_numpy(np.array(batch)).permute(0, 3, 1, 2).float().div_(127.5).sub_(1.0)


def enlarge(batch: Tensor, size: int) -> Tensor:
    """Resample whole photos to `size` x `size`, bicubic, as the evaluation does: [batch, 3, size, size]."""
    if batch.shape[-1] == size:
        return batch
    resampled = F.interpolate(batch, size=(size, size), mode="bicubic", antialias=True, align_corners=False)
    return resampled.clamp_(-1.0, 1.0)


def random_crops(
    count: int, *, area: tuple[float, float], ratio: tuple[float, float], rng: torch.Generator
) -> Tensor:
    """Random resized crops, half of them flipped, as affine maps from crop to photo: [count, 2, 3].

    Coordinates are those of `grid_sample` without aligned corners: -1 and 1 are the outer edges, so one map
    serves every resolution, that of the photo and that of the teacher's patch grid.

    An area above 1 shows the photo small, somewhere in a larger frame: objects in people's photos are smaller than in these.
    """
    largest = max(1.0, area[1]) ** 0.5
    share = torch.empty(count).uniform_(*area, generator=rng)
    low, high = (float(np.log(bound)) for bound in ratio)
    aspect = torch.empty(count).uniform_(low, high, generator=rng).exp()
    width = (share * aspect).sqrt().clamp_(max=largest)
    height = (share / aspect).sqrt().clamp_(max=largest)
    x = (torch.rand(count, generator=rng) * 2 - 1) * (1 - width)
    y = (torch.rand(count, generator=rng) * 2 - 1) * (1 - height)
    flip = torch.randint(0, 2, (count,), generator=rng) * 2.0 - 1.0
    zero = torch.zeros(count)
    return torch.stack([torch.stack([width * flip, zero, x], 1), torch.stack([zero, height, y], 1)], 1)


def sample(maps: Tensor, crops: Tensor, size: int, *, around: str = "border") -> Tensor:
    """What lies under the crops, at `size` x `size`: [batch, channels, size, size]. Bilinear.

    Args:
        around: what lies around the photo: "border" repeats its outermost pixels, "zeros" is empty.
    """
    grid = F.affine_grid(crops, [len(maps), maps.shape[1], size, size], align_corners=False)
    return F.grid_sample(maps, grid, mode="bilinear", padding_mode=around, align_corners=False)


def jitter(batch: Tensor, strength: float, grey_share: float, *, rng: torch.Generator) -> Tensor:
    """Change brightness, contrast, saturation and sharpness of each photo by a random amount; some lose all colour."""
    brightness, contrast, saturation, sharpness = (
        (torch.rand(len(batch), 1, 1, 1, generator=rng) * 2 - 1) * strength for _ in range(4)
    )
    colourless = torch.rand(len(batch), 1, 1, 1, generator=rng) < grey_share
    mean = batch.mean((1, 2, 3), keepdim=True)
    grey = batch.mean(1, keepdim=True)
    batch = torch.where(colourless, grey, batch)
    smooth = F.avg_pool2d(batch, 3, 1, 1, count_include_pad=False)
    changed = (
        batch + contrast * (batch - mean) + saturation * (batch - grey) + 3 * sharpness * (batch - smooth)
    )
    return changed.add_(brightness).clamp_(-1.0, 1.0)
