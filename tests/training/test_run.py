from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import vit_viz
from training.optimizer import orthogonalised
from training.recipe import Recipe, Stage
from training.student import Guess, Targets, losses, student_tokens
from training.targets import Hint, Teacher
from training.train import Material, Run, order, steps, store

MODEL: dict[str, object] = {
    "patch_size": 4,
    "img_size": 24,
    "embed_dim": 40,
    "depth": 2,
    "num_heads": 5,
    "num_classes": 7,
    "reg_tokens": 2,
    "no_embed_class": True,
}
RECIPE = Recipe(
    stages=(Stage(until=0.5, size=12, batch=6), Stage(until=1.0, size=24, batch=4, keep=0.5)), model=MODEL
)


class FixedAnswers:
    """A teacher whose answer depends on the photo's number alone."""

    def about(self, chosen: npt.NDArray[np.int64], crops: Tensor, grid: int) -> Hint:  # noqa: ARG002  # as the real one
        base = torch.from_numpy(chosen).float()[:, None] / 23
        tokens = base[:, :, None].expand(-1, grid**2, 192)
        evidence = base * torch.arange(grid**2)
        return Hint(base * torch.arange(7), base.expand(-1, 192), tokens, evidence)


@pytest.fixture
def material() -> Material:
    photos = np.random.default_rng(0).integers(0, 256, (23, 64, 64, 3), dtype=np.uint8)
    return Material(photos, FixedAnswers(), RECIPE)  # type: ignore[arg-type]  # stands in for the stored answers


def advance(run: Run, material: Material, count: int) -> list[dict[str, float]]:
    """That many steps of a clock that ticks once per step; the whole run has 8."""
    return [
        terms
        for _, terms in itertools.islice(
            steps(run, material, seconds=8, clock=itertools.count().__next__), count
        )
    ]


def test_a_resumed_run_takes_the_same_next_steps(material: Material, tmp_path: Path) -> None:
    whole = Run(RECIPE, seed=3)
    expected = advance(whole, material, 6)
    first = Run(RECIPE, seed=3)
    advance(first, material, 3)
    store(tmp_path / "last.pt", first.state())
    resumed = Run(RECIPE, seed=99)
    resumed.restore(torch.load(tmp_path / "last.pt", weights_only=True))
    assert advance(resumed, material, 3) == expected[3:]
    for name, value in whole.average.state_dict().items():
        assert torch.equal(value, resumed.average.state_dict()[name]), name


def test_a_run_ends_when_its_time_is_spent(material: Material) -> None:
    run = Run(RECIPE)
    assert len(advance(run, material, 100)) == 8
    assert run.spent == 8


def test_training_lowers_the_loss_on_a_fixed_batch(material: Material) -> None:
    run = Run(RECIPE)
    batch = material.batch(np.arange(6), RECIPE.stages[0], rng=run.rng)
    history = [sum(run.train_step(batch, 0.3).values()) for _ in range(12)]
    assert history[-1] < 0.9 * history[0]


def test_each_epoch_shows_every_photo_once_in_another_order() -> None:
    first = np.concatenate([order(24, 0, seen, 6) for seen in range(0, 24, 6)])
    second = np.concatenate([order(24, 0, seen, 6) for seen in range(24, 48, 6)])
    assert sorted(first) == sorted(second) == list(range(24))
    assert list(first) != list(second)


@pytest.mark.parametrize("size", [12, 24, 32])
def test_the_trainings_forward_pass_is_the_models(size: int) -> None:
    run = Run(RECIPE)
    pixels = torch.randn(2, 3, size, size, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(run.student(pixels).logits, run.student.model(pixels))


def test_the_students_looks_are_the_class_tokens_attention_to_the_patches() -> None:
    run = Run(RECIPE)
    pixels = torch.randn(1, 3, 24, 24, generator=torch.Generator().manual_seed(0))
    recorded = vit_viz.trace(run.student.model, pixels)
    looks = run.student(pixels).looks  # [layers, batch, patches]
    for layer in range(2):
        seen = recorded.attention(layer, queries=0)[:, 0, 3:].mean(0)
        torch.testing.assert_close(looks[layer, 0], seen / seen.sum())


def test_looking_where_the_evidence_is_costs_nothing_and_elsewhere_something() -> None:
    evidence = torch.tensor([[0.0, 3.0, 1.0, 0.0]])
    nothing = torch.zeros(1, 4, 192)
    targets = Targets(torch.eye(7)[:1], torch.eye(7)[:1], nothing, nothing[:, 0], evidence)

    def look(*shares: float) -> float:
        guess = Guess(torch.zeros(1, 7), nothing, nothing[:, 0], torch.tensor([[shares]]))
        return float(losses(guess, targets, RECIPE)["look"])

    assert look(0.0, 0.75, 0.25, 0.0) == pytest.approx(0.0, abs=1e-6)
    by_hand = 0.75 * np.log(0.75 / 0.25) + 0.25 * np.log(0.25 / 0.25)
    assert look(0.25, 0.25, 0.25, 0.25) == pytest.approx(RECIPE.look_weight * by_hand, rel=1e-5)


def test_evidence_is_attention_times_what_each_value_adds_to_the_label(shared_data: Path) -> None:
    teacher = Teacher(shared_data)
    photos = np.random.default_rng(0).integers(0, 256, (2, 64, 64, 3), dtype=np.uint8)
    normed = F.layer_norm(teacher.before_last(photos)[:, 1:], (192,))
    query = teacher.query(photos)
    found = teacher.evidence(normed, torch.tensor([3, 150]), query)
    block, rows = teacher.model.blocks[-1], teacher.model.head.weight[teacher.columns]
    inputs = normed[1] * block.norm1.weight + block.norm1.bias
    _, keys, values = block.attn.qkv(inputs).chunk(3, dim=-1)
    total = torch.zeros(121)
    for head in range(3):
        part = slice(64 * head, 64 * head + 64)
        weights = (keys[:, part] @ query[head] / 8).softmax(0)
        added = F.linear(values[:, part], block.attn.proj.weight[:, part]) * teacher.model.norm.weight
        total += (weights * (added @ (rows[150] - rows.mean(0)))).clamp(min=0) / 3
    torch.testing.assert_close(found[1], total)


def test_dropping_no_patch_but_shuffling_them_changes_nothing() -> None:
    model = Run(RECIPE).student.model
    pixels = torch.randn(2, 3, 24, 24, generator=torch.Generator().manual_seed(0))
    keep = torch.stack([torch.randperm(36, generator=torch.Generator().manual_seed(i)) for i in range(2)])
    shuffled, _ = student_tokens(model, pixels, keep)
    plain, _ = student_tokens(model, pixels)
    torch.testing.assert_close(shuffled[:, :3], plain[:, :3])
    torch.testing.assert_close(shuffled[0, 3:], plain[0, 3:][keep[0]])


def test_orthogonalised_matrices_have_singular_values_near_one() -> None:
    matrices = torch.randn(3, 8, 20, generator=torch.Generator().manual_seed(0))
    values = torch.linalg.svdvals(orthogonalised(matrices).float())
    assert values.min() > 0.5
    assert values.max() < 1.4
