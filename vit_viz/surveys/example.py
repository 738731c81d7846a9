"""The survey that comes with vit_viz: drawn scenes with known answers, seen by the bundled model.

`benchmarks/example_survey.py` draws the scenes and makes the survey; the photos lie beside it, so that each of them opens anywhere.
"""

from __future__ import annotations

from pathlib import Path

from vit_viz.bundled import bundled_file


def folder() -> Path:
    """Where the example survey lies: a folder that `Survey` opens."""
    return bundled_file("example") / "survey"


def photos() -> Path:
    """The list of its photos, with labels and boxes: what `survey` takes to make it again."""
    return bundled_file("example") / "photos" / "annotations.json"
