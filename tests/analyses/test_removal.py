"""Taking patches away: painted over with a named baseline, or truly absent from the sequence."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.capture.models import lively, timm_vit, torchvision_vit, transformers_vit
from tests.capture.tutorials import DIM, Block, FusedQkv, MultiHead
from tests.comparing import assert_same
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.analyses.removal import _tokens, baseline_pixels, outputs_without, painted_scores, removed_scores
from vit_viz.analyses.targets import class_logit
from vit_viz.capture import edit
from vit_viz.errors import CaptureError, ParameterError
from vit_viz.geometry import TokenLayout
from vit_viz.model.positions import Rotary

pytestmark = pytest.mark.numbers

KINDS = [
    {},
    {"reg_tokens": 4},
    {"class_token": False, "pooling": "mean", "fc_norm": True},
    {"class_token": False, "pooling": "attention"},
    {"position": "rotary"},
    {"position": "none", "relative_bias": True},
    {"shared_bias": True, "pooling": "mean"},
    {"rotary_grid": (3, 5)},
]
GONE = [(0, 0), (1, 4), (3, 5), (2, 2)]


def absent(model, pixels, gone):
    """A forward whose sequence lacks these patches while the others keep their positions."""
    layout = model.layout(*pixels.shape[-2:])
    kept = [
        token for token in range(layout.num_tokens) if token not in {layout.token(patch) for patch in gone}
    ]
    places = model.places(layout.grid)
    if places.rotary is not None:
        patches = [token - layout.num_prefix for token in kept if token >= layout.num_prefix]
        cos, sin, adjacent = places.rotary
        places = replace(places, rotary=Rotary(cos[patches], sin[patches], adjacent))
    if places.offsets is not None:
        index = places.offsets.index[kept][:, kept]
        shared = places.shared if places.shared is None else places.shared[:, :, kept][..., kept]
        places = replace(places, offsets=replace(places.offsets, index=index), shared=shared)
    x = model.tokens(pixels)[:, kept]
    for block in model.blocks:
        x = block(x, places)
    return model.classify(x)[0].detach()


@pytest.mark.parametrize("options", KINDS)
def test_removal_equals_a_forward_with_those_tokens_absent(make_model, pixels, options):
    model = make_model(**options)
    got = outputs_without(PreparedImage.of(model, pixels), GONE)
    expected = absent(model, pixels, GONE)
    assert_same(got, expected)


def test_a_batch_of_sets_equals_one_set_at_a_time(make_model, pixels):
    subject = PreparedImage.of(make_model(), pixels)
    gone = np.random.default_rng(0).random((11, 24)) < 0.4
    together = removed_scores(subject, class_logit(2), gone)
    alone = [
        float(outputs_without(subject, [divmod(int(i), 6) for i in np.flatnonzero(row)])[2]) for row in gone
    ]
    assert_same(together, alone, relative=3e-6)


def test_removing_every_patch_is_refused_where_nothing_is_left_to_pool(make_model, pixels):
    every = [(row, col) for row in range(4) for col in range(6)]
    for options in (
        {"class_token": False, "pooling": "mean"},
        {"class_token": False, "pooling": "attention"},
    ):
        with pytest.raises(ParameterError, match="nothing to look at"):
            outputs_without(PreparedImage.of(make_model(**options), pixels), every)
    assert torch.isfinite(outputs_without(PreparedImage.of(make_model(), pixels), every)).all()


def test_a_patch_that_does_not_exist_is_refused(make_model, pixels):
    with pytest.raises(ParameterError, match=r"rows are 0-3"):
        outputs_without(PreparedImage.of(make_model(), pixels), [(4, 0)])


def test_painted_scores_are_those_of_images_painted_by_hand(make_model, pixels):
    subject = PreparedImage.of(make_model(), pixels)
    gone = np.zeros((2, 24), dtype=bool)
    gone[1, [0, 10]] = True
    painted = pixels.clone()
    painted[:, :, 0:4, 0:6] = 0.5
    painted[:, :, 4:8, 24:30] = 0.5
    got = painted_scores(subject, class_logit(1), gone, torch.full_like(pixels, 0.5))
    expected = subject.model(torch.cat([pixels, painted]))[:, 1].detach()
    assert_same(got, expected, relative=3e-6)


def test_the_blur_keeps_a_constant_picture_and_the_mean_of_a_wide_one(make_model):
    subject = PreparedImage.of(make_model(), torch.full((1, 3, 16, 36), 0.7))
    np.testing.assert_allclose(baseline_pixels(subject, "blur"), 0.7, atol=1e-5)
    point = torch.zeros(1, 3, 64, 96)
    point[0, 1, 32, 48] = 1
    blurred = baseline_pixels(PreparedImage.of(make_model(img_size=(64, 96)), point), "blur")
    assert float(blurred[0, 1].sum()) == pytest.approx(1, abs=1e-4)
    assert float(blurred[0, 0].abs().max()) == 0  # channels do not mix
    rows, cols = blurred[0, 1].sum(1), blurred[0, 1].sum(0)
    places = torch.arange(64.0) - 32
    assert float((rows * places**2).sum()) == pytest.approx(4**2, rel=0.03)  # one patch is 4 x 6 pixels
    assert float((cols * (torch.arange(96.0) - 48) ** 2).sum()) == pytest.approx(6**2, rel=0.03)


def test_baselines_that_need_the_preprocessing_say_so(make_model, pixels):
    subject = PreparedImage.of(make_model(), pixels)
    assert (baseline_pixels(subject, "mean") == 0).all()
    for baseline, words in (("gray", "preprocessing"), ("black", "preprocessing"), ("pink", "one of mean")):
        with pytest.raises(ParameterError, match=words):
            baseline_pixels(subject, baseline)


def test_gray_and_black_are_levels_of_the_picture(make_model, pixels):
    from vit_viz.images import Preprocess

    recipe = Preprocess((16, 36), (4, 6), mean=(0.5, 0.4, 0.3), std=(0.2, 0.25, 0.5))
    subject = replace(PreparedImage.of(make_model(), pixels), preprocess=recipe)
    for baseline, level in (("gray", 0.5), ("black", 0.0)):
        shown = baseline_pixels(subject, baseline)[0, :, 3, 3] * torch.tensor(recipe.std) + torch.tensor(
            recipe.mean
        )
        np.testing.assert_allclose(shown, level, atol=1e-6)


# --- modules that are not ours


class Foreign(nn.Module):
    """A class token and 4 x 6 patches; the head is one's choice."""

    def __init__(
        self, head: nn.Module, *, reads: str = "tokens", attention: type[nn.Module] = FusedQkv
    ) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.embed = nn.Conv2d(3, DIM, kernel_size=16, stride=16)
        self.token, self.positions = (
            nn.Parameter(torch.randn(1, 1, DIM)),
            nn.Parameter(torch.randn(1, 25, DIM)),
        )
        self.layers = nn.ModuleList(Block(attention()) for _ in range(3))
        self.head, self.classify = head, nn.Linear(DIM, 7)
        self.reads, self.passes = reads, 0

    def forward(self, image):
        self.passes += 1
        embedded = self.embed(image).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(image), -1, -1), embedded], dim=1) + self.positions
        for layer in self.layers:
            x = layer(x)
        return self.classify(self.head(embedded if self.reads == "embedding" else x))


class Pool(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


class Flattened(nn.Module):
    """Reads all tokens with weights of their own; no reduction is called."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(25 * DIM, DIM)

    def forward(self, x):
        return self.linear(x.flatten(1))


class Mixing(nn.Module):
    """A convolution over the sequence before the class token is read."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(DIM, DIM, 3, padding=1)

    def forward(self, x):
        return self.conv(x.transpose(1, 2))[..., 0]


WRONG = {
    "a flattened head": (Flattened, "tokens", "still depends on what removed tokens hold"),
    "a convolution over tokens": (Mixing, "tokens", "still depends on what removed tokens hold"),
    "a product with ones": (
        lambda: Pool(lambda x: (torch.full((1, x.shape[1]), 1 / x.shape[1]) @ x)[:, 0]),
        "tokens",
        "still depends on what removed tokens hold",
    ),
    "a skip past the blocks": (
        lambda: Pool(lambda x: x.flatten(1)[:, 3::24]),
        "embedding",
        "still depends on what removed tokens hold",
    ),
    "a sum by the root of n": (
        lambda: Pool(lambda x: x.sum(1) / x.shape[1] ** 0.5),
        "tokens",
        "its pooling is not understood",
    ),
    "a median": (lambda: Pool(lambda x: x.median(1).values), "tokens", "median over tokens"),
}


def foreign(head, reads="tokens"):
    image = torch.randn(1, 3, 64, 96, generator=torch.Generator().manual_seed(8))
    return PreparedImage.of(lively(Foreign(head(), reads=reads)), image, layout=TokenLayout(grid=(4, 6)))


@pytest.mark.parametrize("name", WRONG)
def test_a_module_that_reads_removed_tokens_is_refused(name):
    head, reads, words = WRONG[name]
    subject = foreign(head, reads)
    for _ in range(2):  # the second answer is remembered
        with pytest.raises(CaptureError, match=words):
            outputs_without(subject, GONE)


@pytest.mark.parametrize("grey", [0.0, 0.5])
def test_a_module_that_reads_removed_pixels_is_refused_though_the_first_photo_is_grey(grey):
    head, reads, words = WRONG["a skip past the blocks"]
    subject = foreign(head, reads)
    for pixels in (torch.full_like(subject.pixels, grey), subject.pixels):
        with pytest.raises(CaptureError, match=words):
            outputs_without(replace(subject, pixels=pixels), GONE)


@pytest.mark.parametrize(
    "pool", [lambda x: x[:, 0], lambda x: x.sum(1) / x.shape[1], lambda x: x[:, 1:].amax(1)]
)
def test_a_module_is_asked_once_and_runs_as_it_is_afterwards(pool):
    subject = foreign(lambda: Pool(pool))
    model = subject.model
    before = model(subject.pixels).detach()
    model.train()
    model.passes = 0
    first = outputs_without(subject, GONE)
    assert model.passes == 5  # as it is, disturbed, repainted, absent; and the answer
    assert torch.equal(outputs_without(subject, GONE), first)
    assert model.passes == 6
    outputs_without(replace(subject, pixels=subject.pixels + 1), GONE[:2])
    assert model.passes == 7
    assert all(part.training for part in model.modules())
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in model.modules())
    assert torch.equal(model.eval()(subject.pixels), before)


@pytest.mark.parametrize("reach", [(16, 0), (24, 4)])
def test_patches_that_overlap_are_no_reason_to_refuse(reach):
    subject = foreign(lambda: Pool(lambda x: x.mean(1)))
    kernel, padding = reach
    subject.model.embed = nn.Conv2d(3, DIM, kernel, stride=16, padding=padding)
    assert torch.isfinite(outputs_without(subject, GONE)).all()


@pytest.mark.parametrize("attention", [FusedQkv, MultiHead])
def test_what_reads_removed_tokens_is_seen_though_patches_overlap(attention):
    model = lively(Foreign(Mixing(), attention=attention))
    model.embed = nn.Conv2d(3, DIM, 24, stride=16, padding=4)
    image = torch.randn(1, 3, 64, 96, generator=torch.Generator().manual_seed(8))
    with pytest.raises(CaptureError, match="still depends on what removed tokens hold"):
        outputs_without(PreparedImage.of(model, image, layout=TokenLayout(grid=(4, 6))), GONE)


def test_a_module_that_takes_no_shorter_sequence_is_not_refused():
    subject = foreign(lambda: Pool(lambda x: F.avg_pool1d(x.transpose(1, 2), 25).squeeze(-1)))
    got = outputs_without(subject, GONE)
    other = foreign(lambda: Pool(lambda x: x.mean(1)))
    other.model.load_state_dict(subject.model.state_dict())
    expected = outputs_without(other, GONE)
    assert_same(got, expected)


@pytest.mark.parametrize("make", [lambda: timm_vit(global_pool="avgmax"), torchvision_vit, transformers_vit])
def test_models_of_libraries_are_not_refused(make):
    model = make()
    size = (64, 64) if make is torchvision_vit else (64, 96)
    image = torch.randn(1, 3, *size, generator=torch.Generator().manual_seed(8))
    subject = PreparedImage.of(model, image)
    assert torch.isfinite(outputs_without(subject, [(0, 0), (3, 2)])).all()


def test_tokens_after_the_patches_stay():
    layout = TokenLayout(grid=(4, 5), suffix=("detection 0", "detection 1", "detection 2", "detection 3"))
    subject = replace(foreign(lambda: Pool(lambda x: x[:, 0])), layout=layout)
    tokens = _tokens(subject, torch.ones(2, 20, dtype=torch.bool))
    assert tokens.sum(0).tolist() == [0] + 20 * [2] + 4 * [0]


def test_what_was_found_inside_an_edit_is_not_remembered_of_the_module(monkeypatch):
    subject, found = foreign(lambda: Pool(lambda x: x.mean(1))), ["the edit did it.", ""]
    monkeypatch.setattr("vit_viz.capture.absence._problem", lambda *_: found.pop(0))
    with edit(temperature={1: 0.5}):
        with pytest.raises(CaptureError, match="the edit did it"):
            outputs_without(subject, GONE)
        subject.outputs(subject.pixels)
    for _ in range(2):
        assert torch.isfinite(outputs_without(subject, GONE)).all()
    assert not found, "asked once inside and once outside"
