"""Targets: which scalar of the output is explained."""

from __future__ import annotations

import math

import pytest
import torch

from vit_viz.analyses.targets import (
    Target,
    as_target,
    class_logit,
    logit_difference,
    similarity,
)
from vit_viz.errors import ParameterError
from vit_viz.labels import Labels

LOGITS = torch.tensor([0.0, math.log(2), math.log(5), -1e9])


def test_logit_probability_and_difference_worked_by_hand():
    assert class_logit(1)(LOGITS).item() == pytest.approx(math.log(2))
    assert Target("probability", 1)(LOGITS).item() == pytest.approx(2 / 8)
    assert logit_difference(2, 1)(LOGITS).item() == pytest.approx(math.log(2.5))


@pytest.mark.parametrize(
    ("dtype", "computed"),
    [
        (torch.float16, torch.float32),
        (torch.bfloat16, torch.float32),
        (torch.float32,) * 2,
        (torch.float64,) * 2,
    ],
)
def test_a_softmax_over_classes_is_taken_in_single_precision_or_better(dtype, computed):
    logits = torch.tensor([0.0, 1.0, 3.0], dtype=dtype)
    probability = Target("probability", 1)(logits)
    assert probability.dtype == computed
    assert float(probability) == pytest.approx(math.e / (1 + math.e + math.e**3), rel=1e-6)


def test_a_batch_gives_one_number_per_image():
    batch = torch.stack([LOGITS, LOGITS.flip(0)])
    assert class_logit(0)(batch).tolist() == [0.0, -1e9]
    assert Target("probability", 0)(batch).shape == (2,)


def test_similarity_is_the_cosine():
    target = similarity(torch.tensor([3.0, 4.0]))
    assert target(torch.tensor([4.0, 3.0])).item() == pytest.approx(24 / 25)
    assert target(torch.tensor([[30.0, 40.0]])).tolist() == pytest.approx([1.0])


def test_the_gradient_of_the_own_embedding_is_its_direction_and_not_zero():
    features = torch.tensor([3.0, 4.0], requires_grad=True)
    Target("own embedding")(features).backward()
    assert features.grad.tolist() == pytest.approx([0.6, 0.8])
    fixed = Target("own embedding").resolved(features)
    cosine = torch.tensor([3.0, 4.0], requires_grad=True)
    fixed.followed(cosine).backward()
    assert cosine.grad.abs().max() < 1e-6  # why the cosine to itself explains nothing


def test_a_target_fixed_by_one_output_stays_fixed_on_another():
    fixed = class_logit().resolved(LOGITS)
    assert fixed(LOGITS.flip(0)) == LOGITS.flip(0)[2]


def test_deletion_follows_the_probability_of_a_class_and_the_lead_over_another():
    assert class_logit(1).followed(LOGITS).item() == pytest.approx(0.25)
    assert logit_difference(1, 2).followed(LOGITS).item() == pytest.approx(-math.log(2.5))


def test_numbers_and_pairs_are_short_forms():
    assert as_target(1, has_classes=True).describe() == "logit of class 1"
    assert as_target((1, 2), has_classes=True).describe() == "logit of class 1 minus logit of class 2"


def test_a_class_has_its_name_beside_it_where_names_are_known():
    labels = Labels(("cat", "dog"))
    assert as_target(1, has_classes=True).describe(labels) == "logit of class 1 (dog)"
    words = as_target((0, 5), has_classes=True).describe(labels)
    assert words == "logit of class 0 (cat) minus logit of class 5"


@pytest.mark.parametrize("index", [-1, 4])
def test_a_class_that_does_not_exist_is_refused(index):
    with pytest.raises(ParameterError, match="classes 0-3"):
        class_logit(index)(LOGITS)


def test_a_model_without_classes_explains_its_own_embedding_or_says_what_is_missing():
    assert as_target(None, has_classes=False).kind == "own embedding"
    with pytest.raises(ParameterError, match="no classes"):
        as_target(3, has_classes=False)


def test_a_difference_needs_two_classes():
    with pytest.raises(ParameterError, match="twice"):
        as_target((2, 2), has_classes=True)


@pytest.mark.parametrize(
    "embedding",
    [
        torch.zeros(3),
        torch.tensor([1.0, float("nan")]),
        torch.tensor([float("inf"), 2.0]),
        torch.ones(2, 1, 3),
    ],
)
def test_an_embedding_without_direction_is_refused(embedding):
    with pytest.raises(ParameterError, match="embedding"):
        similarity(embedding)


def test_an_embedding_may_have_zeros_and_is_one_vector_whether_or_not_it_has_a_batch_axis():
    for embedding in (torch.tensor([0.0, 3.0, 4.0]), torch.tensor([[0.0, 3.0, 4.0]])):
        target = similarity(embedding.requires_grad_())
        assert target.embedding.tolist() == [0.0, 3.0, 4.0]
        assert not target.embedding.requires_grad
        assert target(torch.tensor([9.0, 4.0, 3.0])).item() == pytest.approx(24 / 5 / math.sqrt(106))


def test_an_embedding_of_another_length_is_refused():
    with pytest.raises(ParameterError, match="4 numbers"):
        similarity(torch.ones(3))(LOGITS)
