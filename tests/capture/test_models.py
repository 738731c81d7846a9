"""trace() on models of every origin: what it records is what the model computed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from tests.capture import stand_ins
from tests.capture.models import own, pixels, timm_vit, torchvision_vit, transformers_vit, written_out
from tests.capture.tutorials import (
    FusedQkv,
    KeysFirst,
    MultiHead,
    SeparateEinops,
    TutorialViT,
    UnfoldSinusoidal,
    WrongAxis,
)
from tests.comparing import assert_same
from vit_viz.capture import Trace, trace
from vit_viz.geometry import TokenLayout

pytestmark = pytest.mark.numbers

TUTORIAL = TokenLayout(grid=(4, 6))


def assert_attends(recorded: Trace, expected: list[Tensor]) -> None:
    """Every row of every layer, against the oracle's [1, heads, tokens, tokens]."""
    assert recorded.num_layers == len(expected)
    for layer, weights in enumerate(expected):
        assert_same(recorded.attention(layer), weights[0].detach())


@pytest.mark.parametrize(
    "choices",
    [
        {},
        {"class_token": False, "pooling": "mean"},
        {"dist_token": True},
        {"reg_tokens": 4},
        {"qk_norm": True, "scale": 0.2},
        {"position": "rotary", "reg_tokens": 1},
    ],
)
def test_our_model_is_proven_and_agrees_with_the_formula(choices: dict[str, object]) -> None:
    model, image = own(**choices), pixels()
    recorded = trace(model, image)
    seen: list[Tensor] = []
    with written_out(seen), torch.no_grad():
        model(image)
    assert_attends(recorded, seen)
    assert recorded.proof_status == "proven"
    assert recorded.layout == model.layout(64, 96)


@pytest.mark.parametrize("keep_residual", [False, True])
def test_logits_are_those_of_the_plain_forward_bit_for_bit(keep_residual: bool) -> None:
    model, image = own(), pixels()
    if (
        keep_residual
    ):  # whoever looks at a block sees all tokens of it, also those that the logits do not need
        model.blocks[-1].register_forward_hook(lambda *_: None)
    with torch.no_grad():
        expected = model(image)[0]
    recorded = trace(model, image, keep_values=True, keep_residual=keep_residual)
    assert torch.equal(recorded.logits, expected)


@pytest.mark.parametrize(
    ("choices", "prefix", "pooling"),
    [
        ({}, ("class",), "class"),
        ({"class_token": False, "global_pool": "avg"}, (), "mean"),
        ({"reg_tokens": 2}, ("class", "register 0", "register 1"), "class"),
        ({"global_pool": "avg"}, ("class",), "mean"),
        ({"qk_norm": True, "qkv_bias": False}, ("class",), "class"),
    ],
)
def test_timm_agrees_with_its_own_unfused_attention(
    choices: dict[str, object], prefix: tuple[str, ...], pooling: str
) -> None:
    model, image = timm_vit(**choices), pixels()
    recorded = trace(model, image)
    seen = unfused(model, image)
    assert_attends(recorded, seen)
    assert recorded.proof_status == "proven"
    assert (recorded.layout.prefix, recorded.layout.grid, recorded.layout.pooling) == (
        prefix,
        (4, 6),
        pooling,
    )


def unfused(model: nn.Module, image: Tensor) -> list[Tensor]:
    """timm's attention with its fused kernel off, read where it drops out: the way that hooks need."""
    seen: list[Tensor] = []
    blocks = list(model.blocks)  # type: ignore[arg-type]
    handles = [
        block.attn.attn_drop.register_forward_hook(lambda *call: seen.append(call[2])) for block in blocks
    ]
    for block in blocks:
        block.attn.fused_attn = False
    with torch.no_grad():
        model(image)
    for handle in handles:
        handle.remove()
    return seen


def test_timm_distilled_model_has_a_distillation_token() -> None:
    from timm.models.deit import VisionTransformerDistilled

    model = VisionTransformerDistilled(
        img_size=(64, 96), patch_size=16, embed_dim=40, depth=3, num_heads=5, num_classes=7
    ).eval()
    assert trace(model, pixels()).layout.prefix == ("class", "distillation")


def test_timm_with_its_fused_kernel_off_is_captured_from_the_softmax() -> None:
    model, image = timm_vit(), pixels()
    expected = trace(model, image)
    for block in model.blocks:  # type: ignore[union-attr]
        block.attn.fused_attn = False
    recorded = trace(model, image)
    assert recorded.source(0) == "attention"
    assert recorded.proof_status == "proven"
    assert_same(recorded.attention(1), expected.attention(1))


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
def test_transformers_agrees_with_its_own_output_attentions(implementation: str) -> None:
    image = pixels()
    with torch.no_grad():
        eager = transformers_vit("eager")
        expected = eager(image, output_attentions=True).attentions
    recorded = trace(transformers_vit(implementation), image)
    assert_attends(recorded, list(expected))
    assert recorded.proof_status == "proven"
    assert recorded.layout == TUTORIAL
    assert recorded.logits is not None


def test_torchvision_agrees_with_weights_that_its_layers_return() -> None:
    model, image = torchvision_vit(), pixels(size=(64, 64))
    recorded = trace(model, image)
    seen: list[Tensor] = []
    x = model.class_token.expand(1, -1, -1)  # type: ignore[operator, union-attr]
    with torch.no_grad():
        x = torch.cat([x, model._process_input(image)], dim=1) + model.encoder.pos_embedding  # type: ignore[operator, union-attr]
        for layer in model.encoder.layers:  # type: ignore[union-attr]
            y = layer.ln_1(x)
            seen.append(layer.self_attention(y, y, y, average_attn_weights=False)[1])
            x = layer(x)
    assert_attends(recorded, seen)
    assert recorded.proof_status == "proven"
    assert recorded.determined_by_qk(0)
    assert recorded.layout == TokenLayout(grid=(4, 4))


def test_siglip_pooling_attention_is_kept_apart() -> None:
    from transformers import SiglipVisionConfig, SiglipVisionModel

    model = SiglipVisionModel(
        SiglipVisionConfig(
            hidden_size=40, num_hidden_layers=3, num_attention_heads=5, intermediate_size=56, image_size=64, patch_size=16
        )
    ).eval()  # fmt: skip
    recorded = trace(model, pixels(size=(64, 64)))
    assert recorded.num_layers == 3
    assert recorded.layout.pooling == "attention"
    assert_same(recorded.pooling_attention.sum(-1), torch.ones(5))
    assert_same(recorded.query_weights("pool"), recorded.pooling_attention.mean(0))


def test_pooling_attention_of_our_model_gives_prefix_tokens_no_weight() -> None:
    model, image = own(pooling="attention", reg_tokens=2, class_token=False), pixels()
    recorded = trace(model, image)
    seen: list[Tensor] = []
    with written_out(seen), torch.no_grad():
        model(image)
    assert recorded.pooling_attention[:, :2].abs().max() == 0
    assert_same(recorded.pooling_attention[:, 2:], seen[-1][0, :, 0])


@pytest.mark.parametrize("attention", [FusedQkv, SeparateEinops, KeysFirst, MultiHead])
def test_tutorial_models_are_proven(attention: type[nn.Module]) -> None:
    model = TutorialViT(attention).eval()
    recorded = trace(model, pixels(), layout=TUTORIAL)
    assert recorded.proof_status == "proven"
    assert max(recorded.proof) <= 1e-4
    assert recorded.problems == ()
    assert_same(recorded.attention(1).sum(-1), torch.ones(5, 25))


def test_tutorial_attention_is_softmax_of_its_own_projections() -> None:
    model, image = TutorialViT(SeparateEinops).eval(), pixels()
    recorded = trace(model, image, layout=TUTORIAL, keep_residual=True)
    layer = model.layers[1]
    x = layer.norm1(recorded.residual[1])
    q, k = (to(x).reshape(25, 5, 8).transpose(0, 1) for to in (layer.attention.to_q, layer.attention.to_k))
    expected = (q @ k.transpose(1, 2) / 8**0.5).softmax(-1)
    assert_same(recorded.attention(1), expected.detach(), relative=3e-6)


def test_unfold_model_on_one_channel_is_proven() -> None:
    recorded = trace(
        UnfoldSinusoidal().eval(), pixels(1, 1, (60, 100)), layout=TokenLayout(grid=(3, 5), prefix=())
    )
    assert recorded.proof_status == "proven"
    assert recorded.layout.default_query == "pool"


def test_softmax_over_the_wrong_axis_is_reported() -> None:
    recorded = trace(TutorialViT(WrongAxis).eval(), pixels(), layout=TUTORIAL)
    assert len(recorded.problems) == 3
    assert "softmax over the wrong axis" in recorded.problems[1]
    assert "the queries" in recorded.problems[1]
    assert recorded.proof_status == "proven"  # these are the numbers that the model uses


def test_keys_before_queries_is_not_a_mistake() -> None:
    model, image = TutorialViT(KeysFirst).eval(), pixels()
    usual = TutorialViT(FusedQkv).eval()
    usual.load_state_dict(model.state_dict())
    expected = trace(usual, image, layout=TUTORIAL)
    recorded = trace(model, image, layout=TUTORIAL)
    assert_same(recorded.attention(2), expected.attention(2), relative=3e-6)


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("fast_path", [True, False])
def test_transformer_encoder_is_captured_also_where_it_would_take_its_fast_path(
    batch_first: bool, fast_path: bool
) -> None:
    model = stand_ins.EncoderViT(batch_first=batch_first, norm_first=not fast_path).eval()
    image = pixels(size=stand_ins.SIZE)
    with torch.no_grad():
        expected = model(image)[0]
    recorded = trace(model, image, layout=TokenLayout(grid=stand_ins.GRID, prefix=()))
    assert recorded.num_layers == 3
    assert recorded.proof_status == "proven"
    assert_same(recorded.logits, expected)


@pytest.mark.parametrize("average", [True, False])
def test_weights_that_a_model_asks_of_multihead_attention_still_reach_it(average: bool) -> None:
    class Curious(MultiHead):
        def forward(self, x: Tensor) -> Tensor:
            out, weights = self.attention(x, x, x, average_attn_weights=average)
            returned.append(weights)
            return out

    returned: list[Tensor] = []
    model, image = TutorialViT(Curious).eval(), pixels()
    with torch.no_grad():
        model(image)
    expected, returned = returned, []
    trace(model, image, layout=TUTORIAL)
    assert len(returned) >= len(expected) == 3
    own = returned[:3]  # the passes that check the module come after its trace
    for mine, theirs in zip(own, expected, strict=True):
        assert_same(mine, theirs)


class Masked(nn.Module):
    """One attention layer with a mask of any kind."""

    def __init__(self, **choices: object) -> None:
        super().__init__()
        self.choices, self.inner = choices, nn.Linear(24, 3 * 40)
        self.embed = nn.Conv2d(3, 24, 16, 16)

    def forward(self, image: Tensor) -> Tensor:
        x = self.embed(image).flatten(2).transpose(1, 2)
        q, k, v = self.inner(x).reshape(1, -1, 3, 5, 8).permute(2, 0, 3, 1, 4)
        x = torch.nn.functional.scaled_dot_product_attention(q, k, v, **self.choices)  # type: ignore[arg-type]
        return x.mean(2).flatten(1)


@pytest.mark.parametrize(
    "choices",
    [
        lambda: {"attn_mask": torch.rand(1, 5, 24, 24) > 0.3},
        lambda: {"attn_mask": torch.randn(24, 24)},
        lambda: {"attn_mask": torch.randn(1, 1, 1, 24), "scale": 0.7},
        lambda: {"is_causal": True},
    ],
)
def test_masks_and_biases_are_part_of_the_attention(choices: Callable[[], dict[str, object]]) -> None:
    given = choices()
    model, image = Masked(**given).eval(), pixels()
    recorded = trace(model, image, layout=TokenLayout(grid=(4, 6), prefix=()))
    if "is_causal" in given:
        given = {"attn_mask": torch.ones(24, 24).tril().bool()}
    model.choices = given
    seen: list[Tensor] = []
    with written_out(seen), torch.no_grad():
        model(image)
    assert_attends(recorded, seen)
    assert recorded.proof_status == "proven"
    assert not recorded.determined_by_qk(0)


def test_grouped_queries_share_keys_and_values() -> None:
    class Grouped(Masked):
        def forward(self, image: Tensor) -> Tensor:
            x = self.embed(image).flatten(2).transpose(1, 2)
            qkv = self.inner(x).reshape(1, -1, 15, 8).transpose(1, 2)  # 15 = 6 + ... heads of 8
            return (
                torch.nn.functional.scaled_dot_product_attention(
                    qkv[:, :6], qkv[:, 6:8], qkv[:, 8:10], enable_gqa=True
                )
                .mean(2)
                .flatten(1)
            )

    recorded = trace(Grouped().eval(), pixels(), layout=TokenLayout(grid=(4, 6), prefix=()))
    assert recorded.num_heads == 6
    assert recorded.proof_status == "proven"
    assert_same(recorded.k[0, 0], recorded.k[0, 2])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_operands_are_recorded_in_fp32(dtype: torch.dtype) -> None:
    model = own().to(dtype)
    recorded = trace(model, pixels())
    assert recorded.q.dtype == torch.float32
    assert recorded.proof_status == "proven"
    assert_same(recorded.attention(1).sum(-1), torch.ones(5, 25))


def test_under_autocast_the_operands_of_the_kernel_are_recorded() -> None:
    model, image = own(qk_norm=True), pixels()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        recorded = trace(model, image)
    assert torch.equal(recorded.q, recorded.q.bfloat16().float())
    assert recorded.proof_status == "proven"


@pytest.mark.parametrize("make", [own, timm_vit, transformers_vit])
def test_residual_stream_is_what_enters_and_leaves_each_block(make: Callable[[], nn.Module]) -> None:
    from vit_viz.capture.forward import block_list

    model, image = make(), pixels()
    recorded = trace(model, image, keep_residual=True)
    states: list[Tensor] = []
    blocks = block_list(model)
    handles = [block.register_forward_hook(lambda *call: states.append(call[2])) for block in blocks]
    with torch.no_grad():
        model(image)
    for handle in handles:
        handle.remove()
    assert recorded.residual.shape == (4, 25, 40)
    outputs = [state[0] if isinstance(state, tuple) else state for state in states]
    assert_same(recorded.residual[1:], torch.cat(outputs), relative=1e-6)
