"""A tiny odd model, and a folder of odd photos."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from tests.capture.models import own
from vit_viz.answer import Provenance
from vit_viz.checkpoints import LoadedModel
from vit_viz.cli import asking, main
from vit_viz.images import Preprocess
from vit_viz.labels import Labels
from vit_viz.surveys.columns import TABLES
from vit_viz.surveys.run import Survey

pytest.importorskip("pyarrow", reason="surveys are written by pyarrow, which is not installed here")

SIZES = ((40, 52), (61, 33), (36, 70), (52, 40), (48, 48))
Make = Callable[..., LoadedModel]


def loaded(seed: int = 0) -> LoadedModel:
    """4 x 6 patches of 16, 5 heads, 3 layers, 7 classes, a class token and 2 registers."""
    model = own(reg_tokens=2).requires_grad_(False)
    with torch.no_grad():
        model.head.weight.add_(seed)
    return LoadedModel(
        model=model,
        config=model.config,
        preprocess=Preprocess(input_size=(64, 96), patch_size=(16, 16)),
        labels=Labels(
            tuple(f"animal {i}" for i in range(7)), synsets=tuple(f"n0000000{i}" for i in range(7))
        ),
        provenance=Provenance(model="odd", weights=f"weights {seed}"),
        name="odd",
        family="timm",
        origin="a test",
        device=torch.device("cpu"),
    )


def save_photo(path: Path, seed: int) -> None:
    """Noise in large cells, of a size that depends on the seed."""
    height, width = SIZES[seed % len(SIZES)]
    cells = np.random.default_rng(seed).integers(0, 256, (5, 7, 3), dtype=np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(cells).resize((width, height), Image.Resampling.BICUBIC).save(path)


def rows_of(done: Survey) -> dict[str, list[dict[str, Any]]]:
    """All tables of a survey."""
    return {level: done.table(level).to_pylist() for level in TABLES}


@pytest.fixture(scope="session")
def model() -> LoadedModel:
    return loaded()


@pytest.fixture(scope="session")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """11 photos, two of them one folder down."""
    folder = tmp_path_factory.mktemp("photos")
    for seed in range(11):
        save_photo(folder / ("inside" if seed > 8 else "") / f"photo {seed:02}.png", seed)
    return folder


@pytest.fixture
def command(model: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run `vit-viz survey` on the tiny model: its exit code, its lines, what it said on stderr."""
    session = type("Session", (), {"model": lambda _self: model})()
    monkeypatch.setattr(asking, "session_of", lambda _flags: session)

    def run(*argv: object) -> tuple[int, list[str], str]:
        code = main(["survey", *map(str, argv)])
        said = capsys.readouterr()
        return code, said.out.splitlines(), said.err

    return run
