"""Files that come with vit_viz and are no code: the bundled model and the names of ImageNet's classes.

In a checkout they lie beside the package, in assets/; a wheel carries the same folder inside the package.
"""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def bundled_file(name: str) -> Path:
    """Where a bundled file lies, or would lie: not every installation has each of them.

    Args:
        name: of the file in assets/, e.g. "mini.safetensors".
    """
    inside = _PACKAGE / "assets"
    return (inside if inside.is_dir() else _PACKAGE.parent / "assets") / name
