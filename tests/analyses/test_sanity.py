"""Parameter randomisation of the methods."""

from __future__ import annotations

import copy

import pytest
import torch
from scipy.stats import spearmanr
from torch import nn

from vit_viz.analyses.explain import explain
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.analyses.trust import _fresh, parameter_randomisation
from vit_viz.errors import Cancelled
from vit_viz.model import VisionTransformer

pytestmark = pytest.mark.numbers


def test_randomisation_goes_from_the_head_down_and_leaves_the_model(make_model, pixels):
    model = make_model()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    curve = parameter_randomisation(PreparedImage.of(model, pixels), method="relevance", seed=4)
    assert curve.x.tolist() == [0, 1, 2, 3, 4]  # nothing, head, three blocks
    assert curve.y[0] == 1
    assert curve.y[-1] < 0.9
    for name, value in model.state_dict().items():
        assert torch.equal(before[name], value), name


def test_randomised_steps_equal_models_built_by_hand(make_model, pixels):
    model = make_model()
    target = int(model(pixels)[0].argmax())
    torch.manual_seed(4)
    fresh = VisionTransformer(model.config)
    changed = copy.deepcopy(model)
    changed.head, changed.norm, changed.blocks[2] = fresh.head, fresh.norm, fresh.blocks[2]
    original, after = (explain(m, pixels, target=target)["relevance"].values for m in (model, changed.eval()))
    curve = parameter_randomisation(PreparedImage.of(model, pixels), method="relevance", seed=4)
    assert curve.y[2] == pytest.approx(spearmanr(original.ravel(), after.ravel()).statistic, abs=1e-5)


@pytest.mark.parametrize("choices", [{}, {"class_token": False, "reg_tokens": 2, "pooling": "attention"}])
def test_a_fresh_model_does_not_depend_on_what_other_threads_draw(make_model, monkeypatch, choices):
    model, reset = make_model(**choices), nn.Linear.reset_parameters
    torch.manual_seed(4)
    expected = VisionTransformer(model.config).state_dict()

    def reset_later(linear):
        torch.manual_seed(5)  # as if another thread came between
        reset(linear)

    monkeypatch.setattr(nn.Linear, "reset_parameters", reset_later)
    fresh = _fresh(model, 4).state_dict()
    assert all(torch.equal(fresh[name], value) for name, value in expected.items())


def test_attention_of_the_first_layers_does_not_see_a_new_head(make_model, pixels):
    curve = parameter_randomisation(PreparedImage.of(make_model(), pixels), method="rollout")
    assert curve.y[1] == 1  # rollout does not use the head at all


def test_randomisation_can_be_cancelled(make_model, pixels):
    with pytest.raises(Cancelled):
        parameter_randomisation(
            PreparedImage.of(make_model(), pixels), method="relevance", cancelled=lambda: True
        )
