"""Surveys of photos that never were: random tables with a known answer, written through the package's own writer."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from vit_viz.surveys import manifest, parquet

LAYERS, HEADS, ROWS, COLS = 3, 5, 4, 6
LABELS = ("cat", "dog", "it's odd")
METHODS = ("rollout", "relevance")


def made_survey(
    folder: Path,
    *,
    photos: int = 47,
    layers: int = LAYERS,
    heads: int = HEADS,
    batch: int = 10,
    methods: tuple[str, ...] = METHODS,
    boxes: bool = True,
    thumbnails: bool = True,
    files: Path | None = None,
    seed: int = 0,
    wrong: tuple[str, ...] = ("something else",),
    **described: Any,
) -> Path:
    """Write a survey.

    Args:
        files: where its photos lie, noise of 64 x 48 pixels that is made there.
        wrong: the wrong answers, in turn.
    """
    random = np.random.default_rng(seed)
    identity = {
        "model": "mini",
        "weights": "none",
        "preprocess": "crop",
        "photos": photos,
        "digest": f"d{seed}" * 8,
    }
    identity |= {
        "methods": list(methods),
        "deletion": True,
        "batch": batch,
        "thumbnails": thumbnails,
    } | described
    request = {"photos": str(files or "nowhere"), "annotations": None, "mode": "crop", "size": 0}
    manifest.opened(folder, manifest.manifest(identity, request=request, classes=[], proof={}))
    picture = _webp(random)
    for number, first in enumerate(range(0, photos, batch)):
        names = [f"class {i % 3}/photo {i:05}.png" for i in range(first, min(first + batch, photos))]
        rows = [
            _photo_row(random, name, i + first, files, boxes, wrong[(i + seed) % len(wrong)])
            for i, name in enumerate(names)
        ]
        tables = {
            "photos": {key: [row[key] for row in rows] for key in rows[0]},
            "heads": _heads(random, names, layers, heads, boxes),
            "methods": _methods(random, names, methods, boxes),
            "maps": _maps(random, len(names), layers, heads),
            "failures": {},
            "thumbnails": {
                "photo": names if thumbnails else [],
                "width": [8] * len(names) if thumbnails else [],
                "height": [6] * len(names) if thumbnails else [],
                "webp": [picture] * len(names) if thumbnails else [],
            },
        }
        settings = manifest.settings(manifest.read(folder))
        parquet.write_batch(folder, number, parquet.encoded(tables), of=settings)
    return folder


def _webp(random: np.random.Generator) -> bytes:
    file = io.BytesIO()
    cells = random.integers(0, 256, (6, 8, 3), dtype=np.uint8)
    Image.fromarray(cells).resize((96, 72)).save(file, "WEBP")
    return file.getvalue()


def _photo_row(
    random: np.random.Generator, name: str, i: int, files: Path | None, boxes: bool, wrong: str
) -> dict[str, Any]:
    digest = "0" * 64
    if files is not None:
        path = files / name
        path.parent.mkdir(parents=True, exist_ok=True)
        cells = random.integers(0, 256, (48, 64, 3), dtype=np.uint8)
        Image.fromarray(cells).save(path)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
    first, second = np.sort(random.uniform(0, 0.5, 2))[::-1]
    has_label, has_box = i % 5 != 0, boxes and i % 2 == 0
    is_right = bool(random.uniform() < 0.6) if has_label else None
    label = LABELS[i % 3] if has_label else None
    return {
        "photo": name,
        "sha256": digest,
        "file_size": None,
        "file_time": None,
        "height": 48,
        "width": 64,
        "region": [0.0, 8.0, 48.0, 48.0],
        "rows": ROWS,
        "cols": COLS,
        "label": label,
        "label_class": i % 3 if has_label else None,
        "boxes": [1.0, 2.0, 30.0, 40.0] if has_box else [],
        "box_share": 0.25 if has_box else None,
        "top_classes": [i % 3 if is_right else 5 + len(wrong), 4],
        "top_names": [LABELS[i % 3] if is_right else wrong, "other"],
        "top_probabilities": [float(first), float(second)],
        "margin": float(first - second),
        "label_probability": float(first) if has_label else None,
        "right": is_right,
        "right_in_five": is_right,
        "outlier_tokens": [],
        "outlier_patches": int(random.integers(0, 4)),
        "first_outlier_state": None if i % 4 else 2,
    }


def _heads(
    random: np.random.Generator, names: list[str], layers: int, heads: int, boxes: bool
) -> dict[str, Any]:
    each = layers * heads
    count = len(names) * each
    layer, head = np.divmod(np.arange(each), heads)
    level = np.tile((1 + np.arange(each)) / (each + 1), len(names))
    has_box = [boxes and int(name[-9:-4]) % 2 == 0 for name in names for _ in range(each)]
    return {
        "photo": [name for name in names for _ in range(each)],
        "layer": np.tile(layer, len(names)).tolist(),
        "head": np.tile(head, len(names)).tolist(),
        "entropy": (level + random.uniform(0, 0.05, count)).clip(0, 1).tolist(),
        "distance": (60 * level + random.uniform(0, 9, count)).tolist(),
        "prefix_mass": (1 - level + random.uniform(-0.1, 0.1, count)).clip(0, 1).tolist(),
        "concentration": random.uniform(0, 1, count).tolist(),
        "peak_row": random.integers(0, ROWS, count).tolist(),
        "peak_col": random.integers(0, COLS, count).tolist(),
        "box_share": [float(random.uniform()) if one else None for one in has_box],
        "peak_in_box": [bool(random.uniform() < 0.5) if one else None for one in has_box],
    }


def _methods(
    random: np.random.Generator, names: list[str], methods: tuple[str, ...], boxes: bool
) -> dict[str, Any]:
    rows = [
        {
            "photo": name,
            "method": method,
            "target": 1,
            "pointing": bool(random.uniform() < 0.4 + 0.5 * at)
            if boxes and int(name[-9:-4]) % 2 == 0
            else None,
            "energy": float(random.uniform()) if boxes and int(name[-9:-4]) % 2 == 0 else None,
            "deletion": float(random.uniform(0, 0.5)),
            "insertion": float(random.uniform(0.3, 0.8)),
            "random_deletion": 0.3,
            "random_insertion": 0.4,
            "beats_deletion": True,
            "beats_insertion": True,
        }
        for name in names
        for at, method in enumerate(methods)
    ]
    return {key: [row[key] for row in rows] for key in rows[0]} if rows else {}


def _maps(random: np.random.Generator, photos: int, layers: int, heads: int) -> dict[str, Any]:
    """Head 0 of layer 0 has one map for all photos, all others a map for each."""
    each = layers * heads
    maps = random.uniform(0, 1, (photos, each, ROWS * COLS))
    maps[:, 0] = np.linspace(0, 1, ROWS * COLS)
    maps /= maps.sum(-1, keepdims=True)
    layer, head = np.divmod(np.arange(each), heads)
    return {
        "layer": layer.tolist(),
        "head": head.tolist(),
        "rows": [ROWS] * each,
        "cols": [COLS] * each,
        "photos": [photos] * each,
        "sum": maps.sum(0).tolist(),
        "squares": np.square(maps).sum((0, 2)).tolist(),
    }
