"""Captum's methods: what the view shows is what captum gives; completeness; exact values where they are known."""

from __future__ import annotations

import itertools
from contextlib import contextmanager
from dataclasses import replace

import captum.attr
import numpy as np
import pytest
import scipy.stats
import torch
from captum.attr import FeatureAblation
from torch import nn

from tests.comparing import assert_same
from vit_viz.analyses import attribution
from vit_viz.analyses.method_input import MethodInput
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.analyses.shapley import kernel_shap
from vit_viz.analyses.targets import class_logit
from vit_viz.errors import Cancelled, ParameterError
from vit_viz.geometry import TokenLayout

pytestmark = pytest.mark.numbers

METHODS = ["saliency", "input_x_gradient", "integrated_gradients", "smoothgrad", "gradient_shap", "occlusion"]
METHODS += ["kernel_shap"]


def function_of(method):
    """The function of a method; KernelShap alone is not captum's."""
    return kernel_shap if method == "kernel_shap" else getattr(attribution, method)


def by_patch(values):
    """Sum over channels and pixels of each 4 x 6 patch: [1, channels, 16, 36] -> [4, 6]."""
    return values.detach().sum((0, 1)).reshape(4, 4, 6, 6).sum((1, 3)).numpy()


class Linear(nn.Module):
    """A model that is linear in its pixels, so that every attribution is known: logits [batch, 2]."""

    def __init__(self, shape):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(2, *shape, generator=torch.Generator().manual_seed(5)))

    def forward(self, pixels):
        return torch.einsum("bchw,kchw->bk", pixels, self.weight) + 3


@pytest.fixture
def linear(pixels):
    return PreparedImage(
        Linear(pixels.shape[1:]), pixels, TokenLayout(grid=(4, 6), prefix=()), has_classes=True
    )


@pytest.fixture
def subject(make_model, pixels):
    model = make_model()
    with torch.no_grad():
        model.patch_embed.proj.weight.mul_(
            0.05
        )  # a smooth way from the mean image, so that few steps suffice
    return PreparedImage.of(model, pixels)


@pytest.mark.parametrize("method", METHODS[1:3] + METHODS[4:])
def test_a_linear_model_gives_its_exact_contributions(linear, method):
    exact = by_patch(linear.pixels * linear.model.weight[1])
    options = {"samples": 200, "segments": 24} if method == "kernel_shap" else {}
    got = function_of(method)(MethodInput(linear, class_logit(1)), **options)
    tolerance = 0.35 if method == "gradient_shap" else 2e-3  # GradientShap adds noise to the input
    assert_same(got.values, exact, relative=tolerance)
    assert got.signed


@pytest.mark.parametrize("method", ["saliency", "smoothgrad"])
def test_a_linear_model_reacts_by_its_weights(linear, method):
    exact = linear.model.weight[1].detach().abs().amax(0).reshape(4, 4, 6, 6).mean((1, 3)).numpy()
    got = function_of(method)(MethodInput(linear, class_logit(1)))
    assert_same(got.values, exact)
    assert not got.signed


def test_maps_are_what_captum_gives(subject):
    def forward(pixels):
        return subject.model(pixels)[:, 2]

    inputs = subject.pixels.clone().requires_grad_()
    expected = {
        "input_x_gradient": captum.attr.InputXGradient(forward).attribute(inputs),
        "integrated_gradients": captum.attr.IntegratedGradients(forward).attribute(inputs, n_steps=50),
        "occlusion": captum.attr.Occlusion(forward).attribute(inputs, (3, 4, 6), strides=(3, 4, 6)) / 72,
    }
    for method, values in expected.items():
        options = {"tolerance": 1.0} if method == "integrated_gradients" else {}
        got = function_of(method)(MethodInput(subject, class_logit(2)), **options)
        assert_same(got.values, by_patch(values), what=method)


def test_occlusion_is_the_plain_loop_over_patches_and_equals_feature_ablation_of_captum(subject):
    with torch.no_grad():
        whole = subject.model(subject.pixels)[0, 2]
        expected = np.zeros((4, 6))
        for row, col in itertools.product(range(4), range(6)):
            painted = subject.pixels.clone()
            painted[:, :, 4 * row : 4 * row + 4, 6 * col : 6 * col + 6] = 0
            expected[row, col] = float(whole - subject.model(painted)[0, 2])
        patches = torch.arange(24).reshape(4, 6).repeat_interleave(4, 0).repeat_interleave(6, 1)
        ablated = FeatureAblation(subject.model).attribute(
            subject.pixels, target=2, feature_mask=patches.expand(1, 3, 16, 36)
        )
    got = attribution.occlusion(MethodInput(subject, class_logit(2))).values
    assert_same(got, expected)
    assert_same(got, ablated[0, 0, ::4, ::6].numpy())


def test_integrated_gradients_add_up_to_the_change_of_the_target(subject):
    result = attribution.integrated_gradients(MethodInput(subject, class_logit(2)))
    with torch.no_grad():
        change = subject.model(subject.pixels)[0, 2] - subject.model(torch.zeros_like(subject.pixels))[0, 2]
    assert abs(result.values.sum() - float(change)) < 0.02 * abs(float(change))
    assert result.note.startswith("Convergence delta")


def test_steps_are_added_until_the_delta_is_small_and_its_failure_is_said(subject):
    few = attribution.integrated_gradients(MethodInput(subject, class_logit(2)), steps=1, tolerance=1e-3)
    assert int(dict(few.provenance.parameters)["steps"]) > 1
    never = attribution.integrated_gradients(
        MethodInput(subject, class_logit(2)), steps=1, max_steps=1, tolerance=1e-9
    )
    assert never.note.startswith("Not converged")


def test_smoothgrad_averages_signed_gradients_as_captum_does(subject):
    def forward(pixels):
        return subject.model(pixels)[:, 2]

    spread = float(subject.pixels.max() - subject.pixels.min())
    torch.manual_seed(7)
    gradient = captum.attr.NoiseTunnel(captum.attr.Saliency(forward)).attribute(
        subject.pixels.clone().requires_grad_(), nt_samples=6, stdevs=0.5 * spread, abs=False
    )
    expected = gradient.abs().amax(1).reshape(4, 4, 6, 6).mean((1, 3))
    got = attribution.smoothgrad(MethodInput(subject, class_logit(2)), samples=6, noise=0.5, seed=7)
    assert_same(got.values, expected)


def test_gradient_shap_is_captums_with_the_numbers_of_its_seed(subject):
    def forward(pixels):
        return subject.model(pixels)[:, 2]

    torch.manual_seed(7)
    np.random.seed(7)
    halves = [
        captum.attr.GradientShap(forward).attribute(
            subject.pixels, baselines=torch.zeros_like(subject.pixels), n_samples=3, stdevs=0.09
        )
        for _ in range(2)
    ]
    got = attribution.gradient_shap(MethodInput(subject, class_logit(2)), samples=6, seed=7)
    assert_same(got.values, by_patch(sum(halves) / 2))


@pytest.mark.parametrize("method", ["smoothgrad", "gradient_shap", "kernel_shap"])
def test_random_methods_do_not_depend_on_what_other_threads_draw(subject, method):
    function = function_of(method)
    one = function(MethodInput(subject, class_logit(2)))

    @contextmanager
    def turn():
        yield
        torch.manual_seed(len(turns))  # as if another thread came between two batches
        np.random.seed(len(turns))
        turns.append(method)

    turns = []
    given = MethodInput(replace(subject, turn=turn), class_logit(2))
    np.testing.assert_array_equal(function(given).values, one.values)
    assert len(turns) > 1


@pytest.mark.skipif(not torch.cuda.is_available(), reason="compares a GPU with the CPU")
@pytest.mark.parametrize("method", ["smoothgrad", "gradient_shap"])
def test_random_methods_draw_the_same_on_a_gpu(make_model, pixels, method):
    function, model = function_of(method), make_model()
    expected = function(MethodInput(PreparedImage.of(model, pixels), class_logit(2))).values
    got = function(MethodInput(PreparedImage.of(model.cuda(), pixels.cuda()), class_logit(2))).values
    assert np.abs(got - expected).max() < 1e-4 * np.abs(expected).max()


@pytest.mark.parametrize("method", ["smoothgrad", "gradient_shap", "kernel_shap"])
def test_random_methods_repeat_for_a_seed_and_leave_the_random_state(subject, method):
    function = function_of(method)
    before, numpy_before = torch.random.get_rng_state(), np.random.get_state()[1].copy()
    one, again, other = (function(MethodInput(subject, class_logit(2)), seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.values, again.values)
    assert not np.array_equal(one.values, other.values)
    assert torch.equal(before, torch.random.get_rng_state())
    assert (numpy_before == np.random.get_state()[1]).all()


@pytest.mark.parametrize("method", METHODS)
def test_every_method_reports_progress_and_can_be_cancelled(subject, method):
    function, seen = function_of(method), []
    result = function(MethodInput(subject, class_logit(2), progress=seen.append))
    assert seen[-1] == pytest.approx(1)
    assert not result.class_blind
    assert dict(result.provenance.parameters)["method"]
    with pytest.raises(Cancelled):
        function(MethodInput(subject, class_logit(2), cancelled=lambda: True))


def test_an_incomplete_last_patch_is_filled_with_nothing(make_model):
    model = make_model(img_size=(14, 32), pad=True)
    pixels = torch.randn(1, 3, 14, 32)
    subject = PreparedImage.of(model, pixels)
    result = attribution.input_x_gradient(MethodInput(subject, class_logit(2)))
    inputs = pixels.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(model(inputs)[0, 2], inputs)
    assert result.values.sum() == pytest.approx(float((gradient * pixels).sum()), rel=1e-4)
    assert np.isfinite(attribution.occlusion(MethodInput(subject, class_logit(2))).values).all()


@pytest.mark.parametrize("options", [{"steps": 0}, {"steps": 9, "max_steps": 8}, {"tolerance": 0.0}])
def test_steps_out_of_range_are_refused(subject, options):
    with pytest.raises(ParameterError):
        attribution.integrated_gradients(MethodInput(subject, class_logit(0)), **options)


@pytest.mark.parametrize("method", ["smoothgrad", "gradient_shap", "kernel_shap"])
def test_no_samples_are_refused(subject, method):
    with pytest.raises(ParameterError, match="At least one sample"):
        function_of(method)(MethodInput(subject, class_logit(0)), samples=0)


RANDOM = ["smoothgrad", "gradient_shap", "kernel_shap"]


@pytest.mark.parametrize("method", RANDOM)
def test_every_sampled_map_tells_how_well_its_halves_agree(subject, method):
    got = function_of(method)(MethodInput(subject, class_logit(2)))
    assert -1 <= got.stability <= 1
    assert f"agree to {got.stability:.2f} (rank correlation)" in got.note
    assert got.note.startswith("Not stable") == (got.stability < 0.8)
    assert dict(got.provenance.parameters)["stability"] == f"{got.stability:.3f}"


@pytest.mark.parametrize("method", [name for name in METHODS if name not in RANDOM])
def test_a_map_that_draws_nothing_has_no_stability(subject, method):
    got = function_of(method)(MethodInput(subject, class_logit(2)))
    assert got.stability is None
    assert "stability" not in dict(got.provenance.parameters)


@pytest.mark.parametrize("method", ["smoothgrad", "gradient_shap"])
def test_the_stability_is_the_rank_correlation_of_two_independent_halves(subject, method):
    """The first half draws what a run of half the samples draws; the map is the mean of the signed attributions of both."""
    function = function_of(method)
    whole = function(MethodInput(subject, class_logit(2)), samples=6)
    first = function(MethodInput(subject, class_logit(2)), samples=3)
    same = function(MethodInput(subject, class_logit(2)), samples=1)
    assert same.stability is None  # one sample has no halves
    if method == "gradient_shap":  # linear in its samples, so that the second half follows
        second = 2 * whole.values - first.values
        assert whole.stability == pytest.approx(
            scipy.stats.spearmanr(first.values, second, axis=None)[0], abs=1e-5
        )
    assert not np.array_equal(first.values, whole.values)
