"""Write a trained model as the app loads it: `python -m training.export DATA average.safetensors OUT --facts FACTS.json`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from training import data
from training.recipe import Recipe

PREPROCESS = {
    "size": 128,
    "resize": "short side 128, bicubic",
    "crop": "centre",
    "mean": [0.5, 0.5, 0.5],
    "std": [0.5, 0.5, 0.5],
}


def metadata(folder: Path, facts: dict[str, Any]) -> dict[str, str]:
    """What the file says about itself, each entry as JSON: config, preprocess, labels, synsets, provenance."""
    entries = data.classes(folder)
    parts = {
        "config": Recipe().model,
        "preprocess": PREPROCESS,
        "labels": [entry["names"].split(", ")[0] for entry in entries],
        "synsets": [entry["synset"] for entry in entries],
        "provenance": facts,
    }
    return {name: json.dumps(value) for name, value in parts.items()}


def export(weights: Mapping[str, Tensor], out: Path, notes: dict[str, str]) -> None:
    """Store the weights in float16; the file appears whole or not at all."""
    halves = {name: value.to(torch.float16).contiguous() for name, value in weights.items()}
    partial = out.with_suffix(".partial")
    save_file(halves, partial, notes)
    partial.chmod(0o644)
    partial.replace(out)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, help="folder with train/")
    parser.add_argument("weights", type=Path, help="average.safetensors of a run")
    parser.add_argument("out", type=Path)
    parser.add_argument("--facts", type=Path, required=True, help="JSON file: the provenance")
    args = parser.parse_args()
    export(load_file(args.weights), args.out, metadata(args.data, json.loads(args.facts.read_text())))


if __name__ == "__main__":
    main()
