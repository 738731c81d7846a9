"""Taking patches away: painted over with a named baseline, or truly absent from the sequence."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.comparing import assert_same
from vit_viz.analyses.removal import baseline_pixels, outputs_without, painted_scores, removed_scores
from vit_viz.analyses.subject import Subject
from vit_viz.analyses.targets import class_logit
from vit_viz.errors import ParameterError

KINDS = [
    {},
    {"reg_tokens": 4},
    {"class_token": False, "pooling": "mean", "fc_norm": True},
    {"class_token": False, "pooling": "attention"},
    {"position": "rotary"},
]
GONE = [(0, 0), (1, 4), (3, 5), (2, 2)]


def absent(model, pixels, gone):
    """A forward whose sequence lacks these patches while the others keep their positions."""
    layout = model.layout(*pixels.shape[-2:])
    kept = [
        token for token in range(layout.num_tokens) if token not in {layout.token(patch) for patch in gone}
    ]
    rotary = model.rotary(layout.grid)
    if rotary is not None:
        patches = [token - layout.num_prefix for token in kept if token >= layout.num_prefix]
        rotary = tuple(table[patches] for table in rotary)
    x = model.tokens(pixels)[:, kept]
    for block in model.blocks:
        x = block(x, rotary)
    return model.classify(x)[0].detach()


@pytest.mark.parametrize("options", KINDS)
def test_removal_equals_a_forward_with_those_tokens_absent(make_model, pixels, options):
    model = make_model(**options)
    got = outputs_without(Subject.of(model, pixels), GONE)
    expected = absent(model, pixels, GONE)
    assert_same(got, expected)


def test_removing_nothing_changes_nothing(make_model, pixels):
    model = make_model()
    assert_same(outputs_without(Subject.of(model, pixels), []), model(pixels)[0].detach(), relative=3e-6)


def test_what_removed_patches_show_does_not_matter(make_model, pixels):
    subject = Subject.of(make_model(), pixels)
    other = pixels.clone()
    other[:, :, 4:8, 24:30] = 9  # patch (1, 4)
    changed = Subject.of(subject.model, other)
    assert_same(outputs_without(subject, GONE), outputs_without(changed, GONE), relative=3e-6)


def test_a_batch_of_sets_equals_one_set_at_a_time(make_model, pixels):
    subject = Subject.of(make_model(), pixels)
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
            outputs_without(Subject.of(make_model(**options), pixels), every)
    assert torch.isfinite(outputs_without(Subject.of(make_model(), pixels), every)).all()


def test_a_patch_that_does_not_exist_is_refused(make_model, pixels):
    with pytest.raises(ParameterError, match=r"rows are 0-3"):
        outputs_without(Subject.of(make_model(), pixels), [(4, 0)])


def test_painted_scores_are_those_of_images_painted_by_hand(make_model, pixels):
    subject = Subject.of(make_model(), pixels)
    gone = np.zeros((2, 24), dtype=bool)
    gone[1, [0, 10]] = True
    painted = pixels.clone()
    painted[:, :, 0:4, 0:6] = 0.5
    painted[:, :, 4:8, 24:30] = 0.5
    got = painted_scores(subject, class_logit(1), gone, torch.full_like(pixels, 0.5))
    expected = subject.model(torch.cat([pixels, painted]))[:, 1].detach()
    assert_same(got, expected, relative=3e-6)


def test_the_blur_keeps_a_constant_picture_and_the_mean_of_a_wide_one(make_model):
    subject = Subject.of(make_model(), torch.full((1, 3, 16, 36), 0.7))
    np.testing.assert_allclose(baseline_pixels(subject, "blur"), 0.7, atol=1e-5)
    point = torch.zeros(1, 3, 64, 96)
    point[0, 1, 32, 48] = 1
    blurred = baseline_pixels(Subject.of(make_model(img_size=(64, 96)), point), "blur")
    assert float(blurred[0, 1].sum()) == pytest.approx(1, abs=1e-4)
    assert float(blurred[0, 0].abs().max()) == 0  # channels do not mix
    rows, cols = blurred[0, 1].sum(1), blurred[0, 1].sum(0)
    places = torch.arange(64.0) - 32
    assert float((rows * places**2).sum()) == pytest.approx(4**2, rel=0.03)  # one patch is 4 x 6 pixels
    assert float((cols * (torch.arange(96.0) - 48) ** 2).sum()) == pytest.approx(6**2, rel=0.03)


def test_baselines_that_need_the_preprocessing_say_so(make_model, pixels):
    subject = Subject.of(make_model(), pixels)
    assert (baseline_pixels(subject, "mean") == 0).all()
    for baseline, words in (("gray", "preprocessing"), ("black", "preprocessing"), ("pink", "one of mean")):
        with pytest.raises(ParameterError, match=words):
            baseline_pixels(subject, baseline)


def test_gray_and_black_are_levels_of_the_picture(make_model, pixels):
    from dataclasses import replace

    from vit_viz.images import Preprocess

    recipe = Preprocess((16, 36), (4, 6), mean=(0.5, 0.4, 0.3), std=(0.2, 0.25, 0.5))
    subject = replace(Subject.of(make_model(), pixels), preprocess=recipe)
    for baseline, level in (("gray", 0.5), ("black", 0.0)):
        shown = baseline_pixels(subject, baseline)[0, :, 3, 3] * torch.tensor(recipe.std) + torch.tensor(
            recipe.mean
        )
        np.testing.assert_allclose(shown, level, atol=1e-6)
