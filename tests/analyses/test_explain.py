"""explain(): many methods from one shared pass, each equal to the method alone, each saying what it is."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.comparing import assert_same
from vit_viz.analyses.attention import attention_map
from vit_viz.analyses.explain import explain, parameters_of
from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.analyses.relevance import gradient_rollout, legrad, relevance
from vit_viz.analyses.rollout import rollout
from vit_viz.analyses.targets import Target, class_logit, similarity
from vit_viz.capture import trace as capture
from vit_viz.errors import Cancelled, ParameterError

pytestmark = pytest.mark.numbers

KINDS = [
    {},
    {"reg_tokens": 4},
    {"dist_token": True, "dist_head": True},
    {"class_token": False, "pooling": "mean", "fc_norm": True},
    {"class_token": False, "pooling": "attention"},
    {"num_classes": 0},
    {"num_classes": 0, "class_token": False, "pooling": "mean"},
]


@pytest.mark.parametrize("options", KINDS)
def test_the_shared_pass_gives_the_numbers_of_each_method_alone(make_model, pixels, options):
    model = make_model(**options)
    together = explain(model, pixels, methods=METHODS.quick)
    has_query = options.get("pooling") != "mean"  # of the output, which Grad-ECLIP needs
    assert list(together) == [name for name in METHODS.quick if has_query or name != "grad_eclip"]
    assert all(np.ptp(one.values) > 0 for one in together.values())  # no method is silent
    target = PreparedImage.of(model, pixels).target()
    trace = capture(model, pixels, target=target)
    query = "pool" if "distillation" in trace.layout.prefix else None
    alone = {
        "attention": attention_map(trace, layer=2, query=query),
        "rollout": rollout(trace),
        "gradient_rollout": gradient_rollout(trace),
        "relevance": relevance(trace),
        "legrad": legrad(PreparedImage.of(model, pixels), target.resolved(trace.logits)),
    }
    for method, result in alone.items():
        assert_same(together[method].values, result.values, what=method)


def test_one_forward_is_shared_and_legrad_adds_one(make_model, pixels):
    model = make_model()
    calls = []
    model.patch_embed.register_forward_hook(lambda *_: calls.append(1))
    explain(model, pixels, methods=["attention", "rollout", "gradient_rollout", "relevance", "gradcam"])
    assert len(calls) == 1
    explain(model, pixels, methods=METHODS.quick)
    assert len(calls) == 3


def test_a_slow_method_runs_only_if_it_is_named(make_model, pixels):
    assert set(explain(make_model(), pixels)) == {"relevance"}
    assert not any(METHODS[name].is_slow for name in METHODS.quick)


def test_class_blind_methods_say_so_and_do_not_change_with_the_target(make_model, pixels):
    model = make_model()
    one, other = (explain(model, pixels, methods=METHODS.quick, target=index) for index in (0, 6))
    for method in METHODS.quick:
        same = np.array_equal(one[method].values, other[method].values)
        assert one[method].class_blind == same, method
        assert ("target" in dict(one[method].provenance.parameters)) != same
    assert "towards the logit of class 6" in other["relevance"].caption


@pytest.mark.parametrize(
    "target", [3, (3, 5), class_logit(3), Target("probability", 3), similarity(torch.linspace(-1, 1, 7))]
)
def test_any_scalar_of_the_output_can_be_explained(make_model, pixels, target):
    result = explain(make_model(), pixels, methods=["relevance", "gradcam"], target=target)
    assert result["relevance"].values.max() > 0


def test_relevance_towards_a_difference_is_that_of_the_difference(make_model, pixels):
    model = make_model()
    expected = relevance(capture(model, pixels, target=lambda logits: logits[3] - logits[5]))
    got = explain(model, pixels, target=(3, 5))["relevance"]
    assert_same(got.values, expected.values)


def test_a_model_without_head_is_explained_by_its_own_embedding(make_model, pixels):
    result = explain(make_model(num_classes=0), pixels)["relevance"]
    assert "own embedding" in result.caption
    assert result.values.max() > 0


def test_progress_reaches_one_and_never_falls(make_model, pixels):
    seen = []
    explain(make_model(), pixels, methods=["relevance", "saliency", "occlusion"], progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == pytest.approx(1)


def test_a_slow_method_can_be_cancelled_between_batches(make_model, pixels):
    calls = []

    def cancelled():
        calls.append(1)
        return len(calls) > 2

    with pytest.raises(Cancelled):
        explain(make_model(), pixels, methods=["occlusion"], cancelled=cancelled)
    assert len(calls) == 3


def test_the_model_is_left_as_it_was(make_model, pixels):
    model = make_model().train()
    before = torch.random.get_rng_state()
    explain(model, pixels, methods=[*METHODS.quick, "smoothgrad", "kernel_shap", "gradient_shap"])
    assert model.training
    assert all(block.training for block in model.blocks)
    assert all(parameter.grad is None for parameter in model.parameters())
    assert torch.equal(before, torch.random.get_rng_state())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"methods": ["magic"]}, "no method 'magic'"),
        ({"target": 7}, "classes 0-6"),
        ({"target": -1}, "classes 0-6"),
        ({"layers": (2, 2)}, "not a range"),
    ],
)
def test_what_does_not_exist_is_refused(make_model, pixels, options, words):
    with pytest.raises(ParameterError, match=words):
        explain(make_model(), pixels, **options)


def test_a_class_of_a_model_without_classes_is_refused(make_model, pixels):
    with pytest.raises(ParameterError, match="no classes"):
        explain(make_model(num_classes=0), pixels, target=3)


def test_every_method_but_a_look_up_is_asked_towards_a_class() -> None:
    rollouts = {"rollout", "value_rollout"}
    asked = {
        name: parameters_of(method, method.options(), query="class", target=(3, 5))
        for name, method in METHODS.items()
    }
    assert {name for name, parameters in asked.items() if "target" not in parameters} == rollouts
    assert {name for name, parameters in asked.items() if "query" in parameters} == rollouts
    for name, parameters in asked.items():
        beside = {"query": "class"} if name in rollouts else {"target": (3, 5)}
        assert parameters == METHODS[name].options().values() | beside
