"""What an import and a first trace bring with them: nothing large that only one analysis, one view or training needs."""

from __future__ import annotations

import subprocess
import sys

import pytest

LARGE = (
    "captum",
    "scipy",
    "sympy",
    "torch._dynamo",
    "torch._inductor",
    "matplotlib",
    "torchvision",
    "timm",
    "transformers",
)
"""Half a second each, or more."""

PAGE = ("gradio", "huggingface_hub", "pandas", "plotly")
"""What belongs to the page, or to a download."""

FIRST_TRACE = """
from vit_viz.samples import sample
loaded = vit_viz.load("mini")
vit_viz.trace(loaded, sample("shapes"))
vit_viz.explain(loaded, sample("shapes"))
"""

READ_PICTURE = """
import io
from PIL import Image
from vit_viz.images import decode
file = io.BytesIO()
Image.new("RGB", (30, 20)).save(file, "PNG")
decode(file.getvalue())
"""


def modules_after(code: str) -> set[str]:
    """Names of the modules that a fresh interpreter has imported after running the code."""
    command = [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


@pytest.mark.parametrize(
    ("code", "large"),
    [
        ("import vit_viz" + FIRST_TRACE, (*LARGE, *PAGE)),
        ("import vit_viz.ui.app", LARGE),
    ],
    ids=["the package", "the app"],
)
def test_nothing_large_is_imported_before_it_is_needed(code: str, large: tuple[str, ...]) -> None:
    modules = modules_after(code)
    assert {"vit_viz", "torch", "numpy"} <= modules  # the list is read
    assert modules & set(large) == set()


def test_reading_a_picture_imports_neither_torch_nor_the_page() -> None:
    modules = modules_after(READ_PICTURE)
    assert {"vit_viz.images.reading", "numpy", "PIL.Image"} <= modules
    assert modules & {"torch", *LARGE, *PAGE} == set()
