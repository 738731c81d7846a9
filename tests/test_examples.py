"""Examples of the docs run as they stand, and do what the docs say of them."""

from __future__ import annotations

import ast
import base64
import importlib.util
import io
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import vit_viz as vv
from vit_viz.notebook import MISSING

ROOT = Path(__file__).resolve().parents[1]
TRAINING = (ROOT / "docs/TRAINING.md").read_text("utf-8")


@pytest.fixture(scope="module")
def loop() -> ModuleType:
    """The training loop of the docs."""
    spec = importlib.util.spec_from_file_location("training_loop", ROOT / "docs/examples/training_loop.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Pictures:
    """A writer that keeps what it is given."""

    def __init__(self) -> None:
        self.taken: list[tuple[str, int, Any]] = []

    def add_image(self, tag: str, picture: Any, step: int, dataformats: str) -> None:
        assert dataformats == "HWC"
        self.taken.append((tag, step, picture))


def test_the_training_loop_writes_what_the_model_looks_at_and_trains_as_without_it(loop: ModuleType) -> None:
    writer = Pictures()
    watched = loop.train(writer, steps=30, every=15)
    alone = loop.train(writer, steps=30, every=0)
    assert [(tag, step) for tag, step, _ in writer.taken] == [("relevance", step) for step in (0, 15, 30)]
    for _, _, picture in writer.taken:
        assert (picture.shape, picture.dtype) == ((32, 48, 3), np.uint8)
    pictures = [picture.tobytes() for _, _, picture in writer.taken]
    assert len({*pictures}) == 3  # the weights of each step, not those of the first
    assert watched.training
    for one, other in zip(watched.state_dict().values(), alone.state_dict().values(), strict=True):
        assert torch.equal(one, other)


def test_relevance_moves_to_what_the_classes_differ_by(loop: ModuleType) -> None:
    model = loop.train(Pictures(), steps=30, every=0)
    for seed in range(3):
        photo = loop.photo_of(2, np.random.default_rng(seed))
        blue = (np.asarray(photo) == loop.COLOURS[2]).all(-1)
        row, col = (int(places[0]) // loop.PATCH for places in np.nonzero(blue))
        maps = vv.explain(model, loop.pixels_of([photo]), target=2, layout=loop.LAYOUT, progress=False)
        assert maps["relevance"].peak == (row, col)


def test_without_tensorboard_the_pictures_are_files(loop: ModuleType, tmp_path: Path) -> None:
    loop.PngWriter(tmp_path).add_image("relevance", np.full((32, 48, 3), 7, np.uint8), 20, dataformats="HWC")
    with Image.open(tmp_path / "relevance_0020.png") as picture:
        assert picture.size == (48, 32)


def test_what_the_docs_say_of_training_is_what_the_example_does(loop: ModuleType) -> None:
    source = (ROOT / "docs/examples/training_loop.py").read_text("utf-8")
    first, names, steps = re.findall(r"^```python\n(.*?)^```", TRAINING, re.MULTILINE | re.DOTALL)
    for line in first.splitlines()[1:]:
        assert line.strip().replace("layout=layout", "layout=LAYOUT") in source
    photo = loop.photo_of(2, np.random.default_rng(1))
    known: dict[str, Any] = {
        "vv": vv, "model": loop.SmallViT(), "pixels": loop.pixels_of([photo]), "layout": loop.LAYOUT
    }  # fmt: skip
    last = ast.parse(names).body.pop()
    assert isinstance(last, ast.Expr)
    exec(names.rpartition("\n")[0].rpartition("\n")[0], known)
    maps = eval(compile(ast.Expression(last.value), "docs", "eval"), known)
    assert maps["relevance"].caption.endswith("towards the logit of class 2 (blue)")
    exec(steps, known)
    assert known["patch_map"].note.startswith("Convergence delta ")
    assert known["patch_map"].note.endswith(" at 200 steps.")
    usual = vv.explain(
        known["model"], known["pixels"], methods="integrated_gradients", target=2, layout=loop.LAYOUT
    )
    assert usual["integrated_gradients"].note.endswith(" at 50 steps.")


NOTEBOOK = ROOT / "docs/examples/explorer.ipynb"


def run_cell(source: str, names: dict[str, Any]) -> Any:
    """Run a cell as IPython does; returns the value of its last line, where that is an expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<cell>", "exec"), names)
    return None if last is None else eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)  # type: ignore[attr-defined]


def bundle_of(value: Any) -> dict[str, Any]:
    """What a notebook keeps of a value."""
    if not hasattr(value, "_repr_mimebundle_"):
        return {"text/plain": repr(value)}
    bundle = value._repr_mimebundle_()
    return dict(bundle[0] if isinstance(bundle, tuple) else bundle)


def test_the_notebook_is_valid_small_and_says_nothing_of_the_machine_that_ran_it() -> None:
    text = NOTEBOOK.read_text("utf-8")
    notebook = json.loads(text)
    assert len(text) < 400_000
    assert (notebook["nbformat"], {*notebook["metadata"]}) == (4, {"kernelspec", "language_info"})
    if importlib.util.find_spec("nbformat") is not None:
        import nbformat

        nbformat.validate(notebook)
    assert re.findall(r"/(?:home|root|tmp|Users|work)/", text) == []


def test_the_notebook_runs_cell_by_cell_and_its_outputs_are_what_it_keeps(
    capsys: pytest.CaptureFixture[str],
) -> None:
    cells = [cell for cell in json.loads(NOTEBOOK.read_text("utf-8"))["cells"] if cell["cell_type"] == "code"]
    names: dict[str, Any] = {}
    pictures = 0
    for number, cell in enumerate(cells, start=1):
        assert cell["execution_count"] == number
        value = run_cell("".join(cell["source"]), names)
        printed = capsys.readouterr().out
        kept = {one["output_type"]: one for one in cell["outputs"]}
        assert "".join(kept.pop("stream", {"text": ""})["text"]) == printed
        data = kept.pop("execute_result", {"data": {}})["data"]
        assert kept == {}
        assert ("text/plain" in data) == (value is not None)
        if value is not None:
            assert "".join(data["text/plain"]) == bundle_of(value)["text/plain"].removesuffix(f"\n{MISSING}")
        for kind in {*data} & {"image/jpeg", "image/png"}:  # a saved notebook has pictures without a kernel
            with Image.open(io.BytesIO(base64.b64decode("".join(data[kind])))) as picture:
                assert picture.width > 300
            assert "<img " in "".join(data["text/html"])
            pictures += 1
    assert pictures == 2
