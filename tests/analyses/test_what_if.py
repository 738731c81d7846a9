"""The model with one part changed: each answer is that of a forward pass written out by hand with the same change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import vit_viz as vv
from tests.comparing import assert_same
from vit_viz.analyses.what_if import OtherPatches, WhatIf
from vit_viz.errors import ParameterError
from vit_viz.model import Block, VisionTransformer
from vit_viz.model.positions import rotate

pytestmark = pytest.mark.numbers

MakeModel = Callable[..., VisionTransformer]
KINDS: dict[str, dict[str, Any]] = {
    "registers": {"reg_tokens": 4},
    "distilled": {"dist_token": True, "dist_head": True},
    "mean": {"class_token": False, "pooling": "mean", "fc_norm": True},
    "attention pooling": {"class_token": False, "pooling": "attention"},
    "rotary": {"position": "rotary", "reg_tokens": 2, "qk_norm": True, "layer_scale": True},
    "biases": {"position": "none", "relative_bias": True, "shared_bias": True, "scale": 0.7},
    "table and rotary, inner norms": {"rotary_grid": (3, 5), "attn_norm": True, "mlp": "swiglu"},
    "class token and mean": {"pool_concat": True, "pre_norm": True},
    "no head": {"num_classes": 0},
}
LAYER, HEAD, SEED = 1, 3, 5
ORDER = np.random.default_rng([SEED, 0]).permutation(24)


def by_hand(
    model: VisionTransformer,
    pixels: Tensor,
    *,
    order: Sequence[int] | None = None,
    places: bool = True,
    scale: float | None = None,
    axis: int = -1,
    off: tuple[int, int] | None = None,
    blind: Sequence[int] = (),
) -> Tensor:
    """The outputs of one image, block by block, [outputs].

    Args:
        order: of the patches.
        places: whether anything says where a patch is.
        scale: of all scores; None is the model's own.
        axis: of the softmax.
        off: (layer, head) whose output is 0.
        blind: tokens that see no patch.
    """
    config = model.config
    patches = model.patch_embed(pixels)[0]  # [n, dim]
    prefix = [one[0] for one in (model.cls_token, model.dist_token, model.reg_token) if one is not None]
    x = torch.cat([*prefix, patches if order is None else patches[list(order)]])  # [tokens, dim]
    if places and model.pos_embed is not None:
        x = x + model.pos_embed[0]
    x = model.norm_pre(x)
    where = model.places((4, 6))
    hidden = torch.zeros(len(x), len(x))
    hidden[list(blind), len(config.prefix) :] = -torch.inf
    for layer, block in enumerate(model.blocks):
        assert isinstance(block, Block)
        attn = block.attn
        qkv = attn.qkv(block.norm1(x)).reshape(len(x), 3, config.num_heads, config.head_dim)
        outputs = []
        for head in range(config.num_heads):
            q, k, v = attn.q_norm(qkv[:, 0, head]), attn.k_norm(qkv[:, 1, head]), qkv[:, 2, head]
            if places and where.rotary is not None:
                q, k = rotate(q, *where.rotary), rotate(k, *where.rotary)
            scores = (attn.scale if scale is None else scale) * (q @ k.T) + hidden
            bias = where.bias(attn.relative_position_bias_table)
            if places and bias is not None:
                scores = scores + bias[0, head]
            output = scores.softmax(axis) @ v
            outputs.append(torch.zeros_like(output) if off == (layer, head) else output)
        x = x + block.ls1(attn.proj(attn.norm(torch.cat(outputs, dim=-1))))
        x = x + block.ls2(block.mlp(block.norm2(x)))
    return model.classify(x[None])[0].detach()


def answer(model: nn.Module, pixels: Tensor, change: str, **options: Any) -> WhatIf:
    found = vv.run(model, pixels, "lesson_what_if", change=change, **options)
    assert isinstance(found, WhatIf)
    return found


CHANGES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "shuffle": ({"seed": SEED}, {"order": ORDER}),
    "positions": ({"seed": 0}, {"places": False}),
    "positions, shuffled": ({"seed": SEED}, {"places": False, "order": ORDER}),
    "scale": ({}, {"scale": 1.0}),
    "axis": ({}, {"axis": 0}),
    "head": ({"layer": LAYER, "head": HEAD}, {"off": (LAYER, HEAD)}),
    "cut": ({}, {"blind": (0,)}),
}


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (change, kind)
        for change in CHANGES
        for kind, options in KINDS.items()
        if change != "cut" or options.get("class_token", True)
    ],
)
def test_a_change_is_a_forward_pass_with_that_change(
    change: str, kind: str, make_model: MakeModel, pixels: Tensor
) -> None:
    model = make_model(**KINDS[kind])
    options, by = CHANGES[change]
    if change == "cut" and kind == "distilled":
        by = {"blind": (0, 1)}
    before, after = by_hand(model, pixels), by_hand(model, pixels, **by)
    assert not torch.allclose(before, after, rtol=1e-3), "the change by hand changes nothing"
    got = answer(model, pixels, change.split(",")[0], **options)
    if kind == "no head":
        assert (got.kind, got.classes, got.before.tolist()) == ("embedding", (), [1])
        assert_same(got.after, F.cosine_similarity(before, after, dim=0)[None], relative=1e-5)
        return
    chosen = list(got.classes)
    assert_same(got.before, before.softmax(-1)[chosen], relative=1e-5)
    assert_same(got.after, after.softmax(-1)[chosen], relative=1e-5)
    assert chosen == list(dict.fromkeys([*before.topk(5).indices.tolist(), *after.topk(5).indices.tolist()]))


def test_another_seed_is_another_order_and_none_leaves_the_patches(
    make_model: MakeModel, pixels: Tensor
) -> None:
    model = make_model()
    one, other, none = (answer(model, pixels, "shuffle", seed=seed) for seed in (1, 2, 0))
    assert not np.allclose(one.after[:5], other.after[:5], rtol=1e-3)
    assert_same(none.after, none.before, relative=1e-6)


def test_without_positions_the_order_of_patches_says_nothing(make_model: MakeModel, pixels: Tensor) -> None:
    model = make_model(position="rotary")
    one, other = (answer(model, pixels, "positions", seed=seed) for seed in (0, 4))
    assert one.classes == other.classes
    assert_same(one.after, other.after, relative=1e-5)


def test_the_cut_of_several_class_tokens_leaves_out_those_that_are_not_read(
    make_model: MakeModel, pixels: Tensor
) -> None:
    model = make_model(class_tokens=3, class_read=(0, 2), reg_tokens=1, no_embed_class=True)
    got = answer(model, pixels, "cut")
    assert got.sentence.startswith("With the class 0 and class 2 cut off from all patches, ")


def test_edits_of_the_model_stay_beside_a_change(make_model: MakeModel, pixels: Tensor) -> None:
    model = make_model()
    edited = answer(model, pixels, "head", layer=LAYER, head=HEAD, edits="off 0.2")
    plain = answer(model, pixels, "head", layer=LAYER, head=HEAD, edits=f"off 0.2 {LAYER}.{HEAD}")
    numbers = dict(zip(plain.classes, plain.before, strict=True))
    both = [place for place, one in enumerate(edited.classes) if one in numbers]
    assert len(both) >= 5
    assert_same(edited.after[both], [numbers[edited.classes[place]] for place in both], relative=1e-6)


@pytest.mark.parametrize(
    ("options", "about", "error", "words"),
    [
        ({"class_token": False, "pooling": "mean"}, {"change": "cut"}, ParameterError, "no class token"),
        ({"position": "none"}, {"change": "positions"}, ParameterError, "has no positions"),
        ({}, {"change": "head", "head": 5}, ParameterError, "Head 5 does not exist"),
        ({}, {"change": "head", "layer": 3}, ParameterError, "Layer 3 does not exist"),
        ({}, {"change": "patch", "patch": 17}, ParameterError, "larger than the input of 16 x 36"),
        ({}, {"change": "axis", "edits": "off 0.1"}, ParameterError, "take the edits back"),
    ],
)
def test_a_change_that_a_model_cannot_have_is_refused(
    options: dict[str, Any],
    about: dict[str, Any],
    error: type[Exception],
    words: str,
    make_model: MakeModel,
    pixels: Tensor,
) -> None:
    with pytest.raises(error, match=words):
        vv.run(make_model(**options), pixels, "lesson_what_if", **about)


def test_other_patches_are_counted(make_model: MakeModel, pixels: Tensor) -> None:
    got = vv.run(make_model(reg_tokens=4), pixels, "lesson_what_if", change="patch", patch=5)
    assert isinstance(got, OtherPatches)
    assert (got.grid, got.tokens, got.pairs) == ((3, 7), 26, 676)  # 5 tokens before 21 patches
    assert got.left_out == pytest.approx(1 - 21 * 25 / (16 * 36))
    assert got.sentence == (
        "Patches of 5 x 5 pixels would be 3 x 7; 8.9% of the pixels fit into none: 26 tokens, and 676 pairs of them for each head "
        "to compare."
    )


def test_a_value_is_told_as_it_is(make_model: MakeModel, pixels: Tensor) -> None:
    model = make_model(num_classes=1)
    got = answer(model, pixels, "head", layer=LAYER, head=HEAD)
    assert (got.kind, got.unit, got.words) == ("value", "value", ("output 0",))
    assert_same(got.after, by_hand(model, pixels, off=(LAYER, HEAD)), relative=1e-5)
    assert f"to {got.after[0]:.3g}." in got.sentence
