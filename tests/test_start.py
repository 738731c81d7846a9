"""What an import and a first trace bring with them: nothing large that only one analysis, one view or training needs."""

from __future__ import annotations

import subprocess
import sys

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

LAY_OUT = """
import vit_viz
from vit_viz.session.session import Session
from vit_viz.ui.app import build_app, launch_options
session = Session()
launch_options(session)
build_app(session)
"""

READ_PICTURE = """
import io
from PIL import Image
from vit_viz.images import decode
file = io.BytesIO()
Image.new("RGB", (30, 20)).save(file, "PNG")
decode(file.getvalue())
"""


def modules_after(*steps: str) -> list[set[str]]:
    """Names of the modules that a fresh interpreter has imported after each step."""
    code = "\nimport sys; print(*sys.modules)\n".join((*steps, ""))
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    return [set(line.split()) for line in told.splitlines()]


def test_nothing_large_is_imported_before_the_package_needs_it() -> None:
    (modules,) = modules_after("import vit_viz" + FIRST_TRACE)
    assert {"vit_viz", "torch", "numpy"} <= modules  # the list is read
    assert modules & {*LARGE, *PAGE} == set()


def test_the_page_is_laid_out_without_torch_and_traces_without_what_is_large() -> None:
    laid_out, traced = modules_after(LAY_OUT, FIRST_TRACE)
    assert {"vit_viz.analyses.registry", "vit_viz.capture.trace", "gradio"} <= laid_out
    assert laid_out & {"torch", *LARGE} == set()
    assert "torch" in traced
    assert traced & set(LARGE) == set()


def test_reading_a_picture_imports_neither_torch_nor_the_page() -> None:
    (modules,) = modules_after(READ_PICTURE)
    assert {"vit_viz.images.reading", "numpy", "PIL.Image"} <= modules
    assert modules & {"torch", *LARGE, *PAGE} == set()
