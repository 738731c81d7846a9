"""Every number of the walkthrough is the model's own: it equals the trace, and it changes with the weights.

The tiny models have random weights; nothing that they say means anything.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.comparing import assert_same
from vit_viz.capture import Trace, trace
from vit_viz.checkpoints import load
from vit_viz.errors import ParameterError
from vit_viz.images import Preprocess
from vit_viz.model import VisionTransformer
from vit_viz.samples import sample
from vit_viz.walkthrough import (
    Cut,
    Walk,
    activated,
    attention_step,
    block_step,
    class_step,
    embedding_step,
    heads_step,
    patch_step,
    position_colours,
    position_step,
    prefix_step,
)

pytestmark = pytest.mark.numbers

SMALL_GRAY: dict[str, Any] = {"img_size": (60, 100), "patch_size": (20, 20), "in_chans": 1}
RANDOM_MODELS: dict[str, dict[str, Any]] = {
    "class token and registers": {"reg_tokens": 4},
    "registers without positions of their own": {"reg_tokens": 4, "no_embed_class": True},
    "distilled": {"dist_token": True, "dist_head": True},
    "several class tokens, a table of its own size": {
        "class_tokens": 3,
        "class_read": (0, 2),
        "reg_tokens": 1,
        "no_embed_class": True,
        "position_grid": (5, 5),
        "resample": "radio",
    },
    "no class token, mean pooling": {"class_token": False, "pooling": "mean", "fc_norm": True},
    "no class token, attention pooling": {"class_token": False, "pooling": "attention"},
    "rotary, class token and registers": {
        "position": "rotary",
        "reg_tokens": 4,
        "layer_scale": True,
        "qk_norm": True,
        "rotary_base": 50.0,
    },
    "a bias for offsets in each block": {"position": "none", "relative_bias": True, "layer_scale": True},
    "positions, and a bias for offsets of all blocks": {"shared_bias": True, "pooling": "mean"},
    "positions, and rotated queries": {"rotary_grid": (3, 5), "rotary_base": 100.0, "mlp": "swiglu_packed"},
    "gray 60 x 100, patch 20, sinusoidal": {**SMALL_GRAY, "position": "sinusoidal_1d"},
    "no head, gated MLP": {"num_classes": 0, "mlp": "swiglu_packed", "norm": "rms"},
    "unfold, gated MLP, norm inside attention": {"patch_embed": "unfold", "mlp": "swiglu", "attn_norm": True},
    "embedding of an image, quick GELU": {"projection": True, "pre_norm": True, "mlp": "quick_gelu"},
    "no positions, tanh GELU, own scale": {"position": "none", "mlp": "gelu_tanh", "scale": 0.5},
}
PLACE, TOKEN_PLACE, HEAD = (1, 2), (2, 4), 3

Subject = tuple[Walk, Trace]


@pytest.fixture(params=RANDOM_MODELS.values(), ids=RANDOM_MODELS.keys())
def subject(request: pytest.FixtureRequest, make_model: Callable[..., VisionTransformer]) -> Subject:
    """A tiny model of random weights with a random input of its size."""
    return _subject(make_model(**request.param))


@pytest.fixture
def registers(make_model: Callable[..., VisionTransformer]) -> Subject:
    """The tiny model with class token and four registers."""
    return _subject(make_model(**RANDOM_MODELS["class token and registers"]))


@pytest.fixture
def gray(make_model: Callable[..., VisionTransformer]) -> Subject:
    """A small sinusoidal model of random weights for 60 x 100 pixels with one channel and patches of 20."""
    return _subject(make_model(**RANDOM_MODELS["gray 60 x 100, patch 20, sinusoidal"]))


def _subject(model: VisionTransformer) -> Subject:
    config = model.config
    random = torch.Generator().manual_seed(5)
    pixels = torch.randn(1, config.in_chans, *config.img_size, generator=random)
    return Walk.of(model, pixels), trace(model, pixels, keep_values=True, keep_residual=True)


def _place(walk: Walk) -> tuple[int, int]:
    return min(2, walk.grid[0] - 1), min(4, walk.grid[1] - 1)


def _close(found: Any, expected: Any, tolerance: float = 1e-5) -> None:
    assert_same(_tensor(found).double(), _tensor(expected).double(), relative=tolerance)


def _tensor(values: Any) -> Tensor:
    return values.detach() if isinstance(values, Tensor) else torch.from_numpy(np.array(values))


# --- equal to the trace


def test_the_stream_is_what_the_trace_recorded(subject: Subject) -> None:
    walk, recorded = subject
    _close(walk.stream, recorded.residual)


def test_queries_keys_values_and_weights_equal_the_trace(subject: Subject) -> None:
    walk, recorded = subject
    token = walk.layout.token(_place(walk))
    assert recorded.v is not None
    for layer in range(recorded.num_layers):
        step = attention_step(walk, layer=layer, head=HEAD, token=token)
        _close(step.query, recorded.q[layer, HEAD, token])
        _close(step.keys, recorded.k[layer, HEAD])
        _close(step.values, recorded.v[layer, HEAD])
        _close(step.weights, recorded.attention(layer, HEAD, token)[0, 0])
        assert step.scale == pytest.approx(recorded.scales[layer])


def test_all_heads_equal_the_trace(subject: Subject) -> None:
    walk, recorded = subject
    assert recorded.v is not None
    rows = recorded.attention(1, queries=0)[:, 0]
    step = heads_step(walk, layer=1, token=0)
    _close(step.weights, rows)
    _close(step.outputs, (rows[:, None] @ recorded.v[1])[:, 0])


def test_a_block_equals_the_trace(subject: Subject) -> None:
    walk, recorded = subject
    assert recorded.residual is not None
    for layer in range(recorded.num_layers):
        step = block_step(walk, layer=layer, token=1)
        _close(step.before, recorded.residual[layer, 1])
        _close(step.after, recorded.residual[layer + 1, 1])
        _close(step.norms, recorded.residual[:, 1].norm(dim=-1))


def test_the_output_equals_the_trace(subject: Subject) -> None:
    walk, recorded = subject
    assert recorded.logits is not None
    _close(class_step(walk).logits, recorded.logits)
    _close(position_step(walk, place=(0, 0)).output, recorded.logits)


def test_prefix_tokens_receive_what_the_trace_says(registers: Subject) -> None:
    walk, recorded = registers
    step = prefix_step(walk, recorded, layer=2)
    _close(step.received, recorded.attention(2)[:, 5:, :5].mean((0, 1)))
    assert step.names == ("class", "register 0", "register 1", "register 2", "register 3")


# --- identities and cases by hand


def test_a_patch_is_the_pixels_of_its_rectangle(subject: Subject) -> None:
    walk, _ = subject
    row, col = _place(walk)
    height, width = walk.model.config.patch_size
    step = patch_step(walk, place=(row, col))
    expected = walk.pixels[0, :, row * height : (row + 1) * height, col * width : (col + 1) * width]
    _close(step.values, expected, 0)
    _close(step.flat, expected.flatten(), 0)


def test_a_gray_image_of_60_x_100_has_15_patches_of_400_values(gray: Subject) -> None:
    step = patch_step(gray[0], place=(2, 4))
    assert (step.grid, step.count, step.flat.shape, step.index) == ((3, 5), 15, (400,), 14)


def test_a_side_that_the_patch_does_not_divide_leaves_pixels_out() -> None:
    tried = Cut((60, 100), 16)
    assert (tried.grid, tried.remainder) == ((3, 6), (12, 4))
    assert tried.left_out == pytest.approx(1 - 3 * 6 * 256 / 6000)
    assert Cut((60, 100), 20).left_out == 0


def test_zeros_fill_up_a_side_where_the_model_says_so(make_model: Callable[..., VisionTransformer]) -> None:
    model = make_model(img_size=(15, 36), pad=True)
    walk, _ = _subject(model)
    step = patch_step(walk, place=(3, 0))
    assert (step.size, step.padded) == ((15, 36), (16, 36))
    assert not step.values[:, -1].any()


def test_convolution_and_unfold_give_the_same_embedding(subject: Subject) -> None:
    walk, _ = subject
    step = embedding_step(walk, place=_place(walk), number=7)
    assert step.difference <= 1e-5 * abs(step.linear).max()
    _close(step.linear, step.convolution)
    one = step.products.sum() + step.bias[7]  # 400 products that nearly cancel: judged by what is added
    assert_same(one, step.linear[7], relative=0, floor=1e-5)
    _close(
        step.embedded,
        walk.model.patch_embed(walk.pixels)[0, walk.grid[1] * _place(walk)[0] + _place(walk)[1]].detach(),
    )


def test_a_model_without_prefix_tokens_has_an_empty_step(
    make_model: Callable[..., VisionTransformer],
) -> None:
    walk, recorded = _subject(make_model(class_token=False, pooling="mean"))
    step = prefix_step(walk, recorded, layer=0)
    assert step.names == ()
    assert step.vectors.shape == (0, 40)
    assert step.received.size == 0


def test_order_does_not_matter_without_positions(subject: Subject) -> None:
    walk, _ = subject
    step = position_step(walk, place=(0, 0))
    _close(step.unplaced_shuffled, step.unplaced, 1e-4)
    difference = abs(step.shuffled - step.output).max()
    assert difference > 1e-3 or step.kind == "none"


def test_an_order_that_is_kept_changes_nothing(registers: Subject) -> None:
    step = position_step(registers[0], place=(0, 0), seed=0)
    _close(step.order, np.arange(24))
    _close(step.shuffled, step.output)


def test_a_shuffled_patch_stands_where_the_order_says(registers: Subject) -> None:
    walk, _ = registers
    step = position_step(walk, place=(0, 0), seed=3)
    embedded = walk.model.patch_embed(walk.pixels)[:, torch.as_tensor(step.order)]

    class _Given(torch.nn.Module):
        def forward(self, _pixels: Tensor) -> Tensor:
            return embedded

    model = copy.deepcopy(walk.model)
    model.patch_embed.forward = _Given().forward  # type: ignore[method-assign]
    _close(step.shuffled, model(walk.pixels)[0].detach())


def test_the_model_keeps_its_configuration(registers: Subject) -> None:
    walk, _ = registers
    before = walk.model.config
    position_step(walk, place=(0, 0))
    assert walk.model.config is before
    assert before.position == "learned"


def test_positions_on_another_grid_are_the_models_own(registers: Subject) -> None:
    model = registers[0].model
    walk = Walk.of(model, torch.randn(1, 3, 20, 30))
    step = position_step(walk, place=(4, 1))
    assert step.resampled
    assert (step.grid, step.trained_grid) == ((5, 5), (4, 6))
    _close(step.table, model.position_table((5, 5))[5:].detach())
    _close(step.trained_table, model.pos_embed[0, 5:].detach())  # type: ignore[index]


def test_similarity_of_a_position_with_itself_is_1(subject: Subject) -> None:
    walk, _ = subject
    step = position_step(walk, place=_place(walk))
    if step.kind in ("none", "relative"):
        assert step.similarity is None
    else:
        assert step.similarity is not None
        assert step.similarity[_place(walk)] == pytest.approx(1, abs=1e-6)
        assert step.similarity.max() == pytest.approx(1, abs=1e-6)


def test_softmax_along_the_keys_sums_to_1_and_along_the_queries_does_not(subject: Subject) -> None:
    walk, recorded = subject
    step = attention_step(walk, layer=1, head=HEAD, token=1)
    assert step.weights.sum() == pytest.approx(1, abs=1e-5)
    assert step.unscaled.sum() == pytest.approx(1, abs=1e-5)
    bias = recorded.layers[1].bias
    scores = recorded.q[1, HEAD] @ recorded.k[1, HEAD].T * recorded.scales[1]
    scores = scores if bias is None else scores + bias[HEAD]
    _close(step.scores, scores[1])
    _close(step.over_queries, scores.softmax(0)[1])
    assert (step.bias is None) == (bias is None)
    if bias is not None:
        _close(step.bias, bias[HEAD, 1])
    assert abs(step.over_queries.sum() - 1) > 1e-3


def test_without_the_scale_a_row_is_sharper(registers: Subject) -> None:
    step = attention_step(registers[0], layer=1, head=HEAD, token=1)
    assert step.unscaled.max() > step.weights.max()
    _close(step.scores, step.products * 8**-0.5)


def test_the_query_is_a_part_of_the_long_row(registers: Subject) -> None:
    step = attention_step(registers[0], layer=1, head=HEAD, token=6)
    _close(step.qkv.reshape(3, 5, 8)[0, HEAD], step.query, 0)
    _close(step.qkv.reshape(3, 5, 8)[2, HEAD], step.values[6], 0)


def test_what_heads_contribute_adds_up_to_the_projection(subject: Subject) -> None:
    walk, _ = subject
    step = heads_step(walk, layer=2, token=0, left_out=4)
    _close(step.contributions.sum(0) + step.bias, step.projected)
    _close(step.remaining + step.contributions[4], step.projected)
    _close(step.concatenated, step.outputs.ravel(), 0)


def test_the_projected_row_is_what_the_attention_module_returns(subject: Subject) -> None:
    walk, _ = subject
    block = walk.model.blocks[1]
    expected = block.attn(block.norm1(walk.stream[1])[None], walk.model.places(walk.grid))[0]
    _close(heads_step(walk, layer=1, token=3).projected, expected[3])


def test_branches_add_up_to_the_block(subject: Subject) -> None:
    walk, _ = subject
    step = block_step(walk, layer=1, token=2)
    _close(step.before + step.attended, step.middle)
    _close(step.middle + step.thought, step.after)
    assert step.histogram.sum() == walk.layout.num_tokens * step.hidden.size
    assert step.active[0] == pytest.approx((step.hidden > 0).mean())


def test_the_curve_is_that_of_the_configured_mlp() -> None:
    x = torch.tensor([-1.0, 0.0, 2.0])
    _close(activated("gelu", x), [-0.15865525, 0, 1.9544997])
    _close(activated("quick_gelu", x), [-1 / (1 + np.exp(1.702)), 0, 2 / (1 + np.exp(-3.404))])
    _close(activated("swiglu", x), [-1 / (1 + np.e), 0, 2 / (1 + np.exp(-2))])
    assert activated("gelu_tanh", x)[0] != activated("gelu", x)[0]


def test_probabilities_sum_to_1_and_the_lens_ends_at_the_answer(registers: Subject) -> None:
    step = class_step(registers[0])
    assert step.probabilities is not None
    assert step.lens_probabilities is not None
    _close(step.lens_probabilities.sum(-1), np.ones(4))
    _close(step.lens[-1], step.logits, 0)
    _close(step.lens_probabilities[-1], step.probabilities, 0)
    assert step.agreement[-1] == pytest.approx(1, abs=1e-6)
    assert step.top[0] == int(step.logits.argmax())
    assert len(step.top) == 5


def test_an_embedding_is_not_taken_for_classes(make_model: Callable[..., VisionTransformer]) -> None:
    for options in ({"num_classes": 0}, {"projection": True}):
        step = class_step(_subject(make_model(**options))[0])
        assert step.probabilities is None
        assert step.lens_probabilities is None
        assert step.top == ()


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (lambda w: patch_step(w, place=(4, 0)), "rows are 0-3"),
        (lambda w: embedding_step(w, place=(0, 0), number=40), "numbers 0-39"),
        (lambda w: attention_step(w, layer=3, head=0, token=0), "layers 0-2"),
        (lambda w: attention_step(w, layer=0, head=5, token=0), "heads 0-4"),
        (lambda w: attention_step(w, layer=0, head=0, token=29), "tokens are 0-28"),
        (lambda w: heads_step(w, layer=0, token=0, left_out=-1), "heads 0-4"),
        (lambda w: Walk.of(torch.nn.Linear(2, 2), w.pixels), "not Linear"),  # type: ignore[arg-type]
        (lambda w: Walk.of(w.model, w.pixels[0]), "one image"),
    ],
)
def test_what_does_not_exist_is_refused_in_words(registers: Subject, step: Any, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        step(registers[0])


# --- every step depends on the model


def _all_steps(walk: Walk, recorded: Trace) -> dict[str, Any]:
    return {
        "patches": patch_step(walk, place=PLACE),
        "embedding": embedding_step(walk, place=PLACE, number=3),
        "prefix": prefix_step(walk, recorded, layer=1),
        "positions": position_step(walk, place=PLACE),
        "attention": attention_step(walk, layer=1, head=2, token=7),
        "heads": heads_step(walk, layer=1, token=7, left_out=1),
        "block": block_step(walk, layer=1, token=7),
        "class": class_step(walk),
    }


FIXED = {  # what follows from the shapes alone
    "positions": {"waves", "order"},
    "block": {"curve"},
}


def test_every_number_changes_with_the_model(make_model: Callable[..., VisionTransformer]) -> None:
    model = make_model(reg_tokens=4)
    pixels = torch.randn(1, 3, 16, 36)
    before = _all_steps(Walk.of(model, pixels), trace(model, pixels))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    after = _all_steps(Walk.of(model, pixels), trace(model, pixels))
    del before[
        "patches"
    ]  # pixels, which no weight has touched; a model with another patch size changes them, see below
    for name, step in before.items():
        fixed = FIXED.get(name, set()) | {"flat"}
        arrays = {field.name: getattr(step, field.name) for field in fields(step) if field.name not in fixed}
        numbers = {field: old for field, old in arrays.items() if isinstance(old, np.ndarray)}
        assert numbers, name
        for field, old in numbers.items():
            new = getattr(after[name], field)
            assert not np.array_equal(old, new), f"{name}: {field} is the same for another model"


def test_patches_change_with_the_model_and_the_image(make_model: Callable[..., VisionTransformer]) -> None:
    pixels = torch.randn(1, 3, 16, 36)
    coarse = Walk.of(make_model(patch_size=(8, 6), position="none"), pixels)
    fine = Walk.of(make_model(position="none"), pixels)
    first, second = patch_step(coarse, place=(1, 1)), patch_step(fine, place=(1, 1))
    assert (first.count, second.count) == (12, 24)
    assert (first.flat.size, second.flat.size) == (144, 72)
    other = patch_step(Walk.of(fine.model, pixels + 1), place=(1, 1))
    assert not np.array_equal(second.flat, other.flat)


# --- real checkpoints


def _against_its_trace(walk: Walk, recorded: Trace) -> None:
    layer, token = recorded.num_layers - 1, walk.layout.num_tokens // 2
    step = attention_step(walk, layer=layer, head=1, token=token)
    _close(step.weights, recorded.attention(layer, 1, token)[0, 0])
    _close(step.query, recorded.q[layer, 1, token])
    assert recorded.logits is not None
    _close(class_step(walk).logits, recorded.logits)
    embedding = embedding_step(walk, place=(0, 0))
    assert embedding.difference <= 1e-5 * abs(embedding.linear).max()


def test_the_bundled_model_equals_its_trace() -> None:
    loaded = load("mini", device="cpu")
    pixels = loaded.preprocess.apply(sample("shapes"), mode="fit").pixels
    _against_its_trace(Walk.of(loaded.model, pixels), trace(loaded, pixels))


def test_vit_tiny_equals_its_trace(shared_data: Path) -> None:
    loaded = load(shared_data / "vit_tiny_patch16_224.fp16.safetensors", device="cpu")
    pixels = loaded.preprocess.apply(sample("shapes"), mode="fit").pixels
    _against_its_trace(Walk.of(loaded.model, pixels), trace(loaded, pixels))


def test_a_photo_becomes_15_gray_patches(make_model: Callable[..., VisionTransformer]) -> None:
    model = make_model(**RANDOM_MODELS["gray 60 x 100, patch 20, sinusoidal"])
    recipe = Preprocess(input_size=(60, 100), patch_size=(20, 20), channels=1, mean=(0.5,), std=(0.5,))
    walk = Walk.of(model, recipe.apply(sample("shapes"), mode="stretch").pixels)
    assert [patch_step(walk, place=(r, c)).flat.size for r in range(3) for c in range(5)] == [400] * 15


def test_colours_of_positions_are_their_three_main_directions(registers: Subject) -> None:
    model = registers[0].model
    found = position_colours(model)
    assert found is not None
    assert model.pos_embed is not None
    table = model.pos_embed[0, 5:].detach().double().numpy()
    values, vectors = np.linalg.eigh(np.cov(table.T))
    assert values[-1] > values[-4]
    for place in range(3):
        assert abs(found.axes[place] @ vectors[:, -1 - place]) == pytest.approx(1, abs=1e-6)
    colours = found.of(table)
    assert (colours.min(0), colours.max(0)) == (pytest.approx([0, 0, 0]), pytest.approx([255, 255, 255]))
    assert colours.shape == (24, 3)


def test_positions_that_are_not_learned_have_no_colours(gray: Subject) -> None:
    assert position_colours(gray[0].model) is None
