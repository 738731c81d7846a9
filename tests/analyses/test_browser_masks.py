"""The masks that the page paints by itself: tests/js/mass_mask.test.js compares its arithmetic with what is written here."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vit_viz.analyses.attention import mass_mask
from vit_viz.results import PatchMap

MASKS = Path(__file__).parents[1] / "js" / "masks.json"
SHARES = (0.05, 0.37, 0.6, 0.95, 1.0)


def some_maps() -> dict[str, NDArray[np.float32]]:
    """Maps of 7 x 11 patches; made with sums and products alone, which every machine rounds alike."""
    uniform = np.random.default_rng(5).random((7, 11))
    steep = uniform * uniform * uniform * uniform
    lone = np.full((7, 11), 1e-3)
    lone[4, 9] = 0.9
    maps = {
        "a random map": uniform,
        "a steep map": steep * steep * 1e-3,
        "a map of few numbers": np.floor(5 * uniform) / 64,
        "a map of one number": np.full((7, 11), 1 / 77),
        "a lone peak": lone,
        "a map of zeros": np.zeros((7, 11)),
    }
    return {name: values.astype(np.float32) for name, values in maps.items()}


def expected() -> list[dict[str, Any]]:
    """Every map with every share: the map as fp32 and its mask as bytes, in base64."""
    return [
        {
            "name": name,
            "share": share,
            "values": _text(values),
            "mask": _text(
                mass_mask(PatchMap(values, "weight", (0, 1), False, "test", True), share).astype(np.uint8)
            ),
        }
        for name, values in some_maps().items()
        for share in SHARES
    ]


def _text(array: NDArray[Any]) -> str:
    return base64.b64encode(array.tobytes()).decode("ascii")


def test_the_browser_is_compared_with_the_masks_of_today() -> None:
    """To write them anew: `python -m tests.analyses.test_browser_masks`."""
    assert json.loads(MASKS.read_text(encoding="utf-8")) == expected()


if __name__ == "__main__":
    MASKS.write_text(json.dumps(expected(), indent=2) + "\n", encoding="utf-8")
