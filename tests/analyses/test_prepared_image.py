"""One image in front of one model, from the bundled checkpoint; and the figures that the issue asks of ViT-Tiny."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from PIL import Image

import vit_viz
from vit_viz.analyses.explain import explain_subject
from vit_viz.analyses.localisation import localisation, object_on_grid
from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.errors import ParameterError

pytestmark = pytest.mark.numbers


@pytest.fixture(scope="module")
def mini():
    return vit_viz.load("mini", device="cpu")


@pytest.fixture
def photo():
    noise = np.random.default_rng(2).integers(0, 256, (90, 210, 3), dtype=np.uint8)
    return Image.fromarray(noise)


@pytest.mark.parametrize("mode", ["fit", "crop", "stretch"])
def test_a_map_knows_where_it_lies_and_where_it_came_from(mini, photo, mode):
    subject = PreparedImage.of(mini, photo, mode=mode)
    trace = vit_viz.trace(mini, photo, mode=mode)
    maps = explain_subject(subject, methods=METHODS.quick)
    assert list(maps) == list(METHODS.quick)
    for method, result in maps.items():
        assert result.crop_box == trace.crop_box, method
        assert result.grid == trace.layout.grid
        assert result.provenance.weights == mini.provenance.weights
        assert result.provenance.image == trace.provenance.image
        assert dict(result.provenance.parameters)["method"]


def test_outputs_of_a_strange_shape_are_refused(pixels, make_model):
    class Strange(torch.nn.Module):
        def forward(self, pixels):
            return {"answer": pixels.sum()}

    subject = PreparedImage.of(Strange(), pixels, layout=make_model().layout(16, 36))
    with pytest.raises(
        ParameterError, match=r"^Strange returns no scores .*output\['answer'\] \[\]: pass as target="
    ):
        subject.outputs(pixels)


@pytest.mark.slow
def test_relevance_of_vit_tiny_points_at_the_object(shared_data):
    loaded = vit_viz.load(shared_data / "vit_tiny_patch16_224.fp16.safetensors", device="cpu")
    hits = {"relevance": [], "rollout": []}
    for photo in json.loads((shared_data / "photos" / "annotations.json").read_text()):
        subject = PreparedImage.of(loaded, shared_data / "photos" / photo["file"], mode="crop")
        boxes = photo["boxes_xyxy"]
        if object_on_grid(subject.crop_box, subject.layout.grid, boxes=boxes).share.mean() <= 0.75:
            maps = explain_subject(subject, methods=list(hits), target=photo["class_index"])
            for method, patch_map in maps.items():
                hits[method].append(localisation(patch_map, boxes=boxes).pointing)
    assert len(hits["relevance"]) == 81
    assert np.mean(hits["relevance"]) >= 0.84  # reference 0.864, image centre 0.79
    assert np.mean(hits["rollout"]) == pytest.approx(0.54, abs=0.03)
