"""What a survey notes of a photo is what a trace of it says, also where a model pads or cuts off what its patches do not divide."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import vit_viz as vv
from vit_viz.analyses.localisation import object_on_grid
from vit_viz.checkpoints.plain_module import plain_module
from vit_viz.surveys.photos import Photo
from vit_viz.surveys.recording import Recording
from vit_viz.surveys.stages import Decoding, prepared

timm = pytest.importorskip("timm", reason="its models pad and cut their input")

SHAPE: dict[str, Any] = {"patch_size": (8, 12), "embed_dim": 40, "depth": 2, "num_heads": 5, "num_classes": 7}


@pytest.mark.parametrize("pads", [True, False])
def test_a_photo_and_its_boxes_lie_where_a_trace_places_them(tmp_path: Path, pads: bool) -> None:
    options = {"dynamic_img_size": pads, "dynamic_img_pad": pads}
    module = timm.create_model("vit_tiny_patch16_224", img_size=(35, 67), **SHAPE, **options).eval()
    file = tmp_path / "photo.png"
    levels = np.random.default_rng(0).integers(0, 256, (120, 171, 3), dtype=np.uint8)
    Image.fromarray(levels).save(file)
    model, box = plain_module(module), (90.0, 70.0, 171.0, 120.0)
    photo = Photo("photo.png", str(file), boxes=(box,))
    rows = Recording(model).rows(prepared([photo], Decoding(model.preprocess, mode="crop")))["photos"]
    traced = vv.trace(module, file, mode="crop")
    assert traced.crop_box is not None
    grid = traced.layout.grid
    assert (rows["rows"], rows["cols"]) == ([grid[0]], [grid[1]])
    assert rows["region"] == [list(traced.crop_box.region)]
    assert traced.crop_box.input_size == (grid[0] * 8, grid[1] * 12)
    share = object_on_grid(traced.crop_box, grid, boxes=[box]).share.mean()
    assert rows["box_share"] == [pytest.approx(share)]
