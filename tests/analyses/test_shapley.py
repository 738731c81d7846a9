"""KernelShap on segments: which patches go together, what the regression solves, and how far two runs agree."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
import torch
from torch import nn

import vit_viz
from tests.effort import EFFORT
from vit_viz.analyses.method_input import MethodInput
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.analyses.shapley import SAMPLES, SEGMENTS, kernel_shap, segments_of
from vit_viz.analyses.targets import class_logit
from vit_viz.errors import ParameterError
from vit_viz.figures.export import npz
from vit_viz.figures.record import record_text
from vit_viz.geometry import TokenLayout

GRID = (5, 7)


class Additive(nn.Module):
    """Each pixel adds its weight: Shapley values are known, whatever the segments. One pixel per patch."""

    def __init__(self, interaction=0.0):
        super().__init__()
        generator = torch.Generator().manual_seed(4)
        self.weight = nn.Parameter(torch.randn(35, generator=generator))
        self.interaction = interaction

    def forward(self, pixels):
        flat = pixels[:, 0].flatten(1)
        value = flat @ self.weight + self.interaction * (flat.abs().sum(1) ** 2)
        return torch.stack([value + 2, value], dim=1)


@pytest.fixture
def subject():
    pixels = torch.randn(1, 1, *GRID, generator=torch.Generator().manual_seed(8))
    return PreparedImage(Additive(), pixels, TokenLayout(grid=GRID, prefix=()), has_classes=True)


def test_the_order_in_which_a_patchs_pixels_are_added_changes_no_segment():
    """As on another device: on flat drawings many merges cost the same, and the last digit of a sum would decide."""
    random = torch.Generator().manual_seed(2)
    shades = torch.randn(24, generator=random)
    patches = torch.stack([shades[torch.randperm(24, generator=random)] for _ in range(24)])
    shuffled, ordered = (
        PreparedImage(
            nn.Identity(),
            each.reshape(4, 6, 4, 6).permute(0, 2, 1, 3).reshape(1, 1, 16, 36),
            TokenLayout(grid=(4, 6), prefix=()),
            has_classes=True,
        )
        for each in (patches, shades.expand(24, 24))
    )
    for count in range(2, 12):
        np.testing.assert_array_equal(segments_of(shuffled, count), segments_of(ordered, count))


@pytest.mark.parametrize("segments", [5, 20, 35])
def test_an_additive_model_gives_each_segment_its_sum(subject, segments):
    got = kernel_shap(MethodInput(subject, class_logit(0)), segments=segments)
    weight = subject.model.weight.detach().reshape(GRID)
    exact = (subject.pixels[0, 0] * weight).numpy()
    groups = np.arange(35).reshape(GRID) if segments == 35 else segments_of(subject, segments)
    expected = (np.bincount(groups.ravel(), exact.ravel()) / np.bincount(groups.ravel()))[groups]
    np.testing.assert_allclose(got.values, expected, atol=1e-4 * np.abs(expected).max())
    assert got.values.sum() == pytest.approx(exact.sum(), rel=1e-4)
    assert (got.stability is None) == (segments == 5)
    if got.stability is not None:
        assert got.stability == pytest.approx(
            1, abs=1e-2
        )  # no interaction, so nothing depends on what is drawn


def test_no_more_subsets_are_tried_than_samples_were_asked_for(subject):
    rows = []
    subject.model.register_forward_pre_hook(lambda _, args: rows.append(len(args[0])))
    got = kernel_shap(MethodInput(subject, class_logit(0)))
    assert sum(rows) == SAMPLES + 2  # and the two ends
    facts = dict(got.provenance.parameters)
    assert (facts["samples"], facts["segments"]) == (str(SAMPLES), str(SEGMENTS))


@pytest.mark.parametrize(
    ("options", "words"),
    [({"samples": 43}, "at least 44 samples, not 43"), ({"segments": 1}, "two segments")],
)
def test_too_few_samples_or_segments_are_refused(subject, options, words):
    with pytest.raises(ParameterError, match=words):
        kernel_shap(MethodInput(subject, class_logit(0)), **options)


def test_the_fewest_samples_that_have_two_halves_are_enough(subject):
    assert kernel_shap(MethodInput(subject, class_logit(0)), samples=44).stability is not None


def test_the_stability_goes_into_the_note_and_into_files(subject):
    got = kernel_shap(MethodInput(subject, class_logit(0)))
    assert "agree to 1.00 (rank correlation); the map is their mean" in got.note
    facts = json.loads(str(np.load(io.BytesIO(npz(got, record_text(got.provenance))))["vit_viz"]))
    assert facts["stability"] == pytest.approx(got.stability)
    assert facts["provenance"]["parameters"]["stability"] == f"{got.stability:.3f}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("mini", 2),
        pytest.param(
            "vit_tiny_patch16_224.fp16.safetensors",
            2,
            marks=pytest.mark.skipif(EFFORT < 2, reason="minutes; VIT_VIZ_TEST_EFFORT=2 runs it"),
        ),
    ],
)
def test_halves_agree_on_photos(shared_data, name, count):
    """Before segments, two seeds of 784 subsets of the 196 patches correlated 0.12 and -0.05 on two photos.

    The two halves of one run agree less than two runs do, so this asks for more than that.
    """
    loaded = vit_viz.load(name if name == "mini" else shared_data / name, device="cpu")
    photos = sorted((shared_data / "photos").glob("*.jpg"))[:: 120 // count]
    subjects = [PreparedImage.of(loaded, photo, mode="crop") for photo in photos]
    stabilities = [kernel_shap(MethodInput(subject, subject.resolved())).stability for subject in subjects]
    assert len(stabilities) == count
    assert np.mean(stabilities) >= 0.8
