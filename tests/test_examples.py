"""Examples of the docs run as they stand, and do what the docs say of them."""

from __future__ import annotations

import ast
import importlib.util
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import vit_viz as vv

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
