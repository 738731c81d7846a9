"""Files that come with vit_viz and are no code: the bundled model, the names of ImageNet's classes, an example survey.

In a checkout they lie beside the package, in assets/; a wheel carries the same folder inside the package.
"""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def bundled_file(name: str) -> Path:
    """Where a file of assets/, e.g. "mini.safetensors", lies or would lie: not every installation has each of them."""
    inside = _PACKAGE / "assets"
    return (inside if inside.is_dir() else _PACKAGE.parent / "assets") / name


def example_survey() -> Path:
    """Where the example survey lies, which `Survey` opens: drawn scenes with known answers, seen by the bundled model.

    `benchmarks/example_survey.py` draws the scenes and makes it; the photos lie beside it, so that each of them opens anywhere.
    """
    return bundled_file("example") / "survey"


def example_photos() -> Path:
    """The list of its photos, with labels and boxes: what `survey` takes to make it again."""
    return bundled_file("example") / "photos" / "annotations.json"
