from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open

from training.evaluate import localisation, mean_correlation

MINI = Path(__file__).parents[2] / "assets" / "mini.safetensors"


@pytest.fixture(scope="module")
def notes() -> dict[str, Any]:
    with safe_open(MINI, "pt") as file:
        return {name: json.loads(value) for name, value in file.metadata().items()}


def test_the_bundled_model_is_small() -> None:
    assert MINI.stat().st_size <= 12_000_000


def test_the_bundled_model_says_what_it_is(notes: dict[str, Any]) -> None:
    assert {"config", "preprocess", "labels", "synsets", "provenance"} <= set(notes)
    assert len(notes["labels"]) == len(notes["synsets"]) == notes["config"]["num_classes"] == 200
    assert notes["config"]["reg_tokens"] > 0
    assert notes["config"]["img_size"] // notes["config"]["patch_size"] >= 16
    assert {"trained_on", "recipe", "minutes", "top1", "top5", "license", "date"} <= set(notes["provenance"])


def test_the_bundled_weights_are_half_precision() -> None:
    with safe_open(MINI, "pt") as file:
        assert {file.get_slice(name).get_dtype() for name in file.keys()} == {"F16"}  # noqa: SIM118  # not a dict


def test_localisation_of_a_map_that_lies_inside_the_box() -> None:
    values = np.zeros((16, 16), dtype=np.float32)
    values[2, 3] = 3  # pixels rows 8-11, columns 12-15
    values[10, 10] = 1
    found = localisation(values, [12, 8, 15, 11])
    assert found.share_inside == pytest.approx(0.75)
    assert found.box_share == pytest.approx(16 / 64**2)
    assert found.peak_inside
    assert not found.centre_inside


def test_correlation_of_equal_and_opposite_maps() -> None:
    a = np.array([0.0, 1.0, 2.0], dtype=np.float32)
    assert mean_correlation(np.stack([a, a * 2])) == pytest.approx(1.0)
    assert mean_correlation(np.stack([a, -a])) == pytest.approx(-1.0)
