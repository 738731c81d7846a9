"""Our own model hands over its attention calls alone: the same trace as through the mode, in one thread, nothing left behind."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.capture.models import SIZE, own, pixels
from tests.comparing import assert_same
from vit_viz.capture import Trace, edit, trace
from vit_viz.capture.interception import Interception
from vit_viz.geometry import TokenLayout
from vit_viz.model import VisionTransformer, ViTConfig
from vit_viz.model.kernel import attending_through, scaled_dot_product_attention
from vit_viz.model.vit import Attention

pytestmark = pytest.mark.numbers

LAYOUT = TokenLayout(grid=(4, 6), prefix=("class",))


class Wrapped(nn.Module):
    """A foreign module around our model, which is watched through the mode."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.model(x)
        return logits


class Sharper(Attention):
    """A user's own attention in our model's block."""

    def forward(self, x: Tensor, rotary: object = None) -> Tensor:
        return super().forward(2 * x, rotary)  # type: ignore[arg-type]


class WrittenOut(Attention):
    """Attention by hand, which does not call our kernel."""

    def forward(self, x: Tensor, rotary: object = None) -> Tensor:  # noqa: ARG002
        q, k, v = self.qkv(x).reshape(1, -1, 3, 5, 8).permute(2, 0, 3, 1, 4)
        attention = (q @ k.transpose(-2, -1) * self.scale).softmax(-1)
        out: Tensor = self.proj((attention @ v).transpose(1, 2).reshape(1, -1, 40))
        return out


@pytest.fixture
def calls_of_the_mode(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Every function that a mode is asked about."""
    seen: list[object] = []
    honest = Interception.__torch_function__

    def asked(self: Interception, func: object, *rest: object) -> object:
        seen.append(func)
        return honest(self, func, *rest)

    monkeypatch.setattr(Interception, "__torch_function__", asked)
    return seen


def tensors(recorded: Trace) -> Iterator[Tensor]:
    """Everything that a trace holds."""
    for layer in recorded.layers:
        yield from (part for part in vars(layer).values() if isinstance(part, Tensor))
    pooling = recorded.pooling
    for tensor in (recorded.logits, recorded.residual, pooling and pooling.attention):
        if tensor is not None:
            yield tensor


@pytest.mark.parametrize(
    "choices",
    [
        {},
        {"target": 2},
        {"keep_residual": True},
        {"keep_values": True},
        {"keep_norms": True},
        {"proof_rows": 0},
    ],
)
def test_both_ways_record_the_same_bits(choices: dict[str, object]) -> None:
    model = own()
    ours = trace(model, pixels(), **choices)  # type: ignore[arg-type]
    through_the_mode = trace(Wrapped(model), pixels(), layout=LAYOUT, **choices)  # type: ignore[arg-type]
    pairs = list(zip(tensors(ours), tensors(through_the_mode), strict=True))
    assert len(pairs) >= 4
    for mine, other in pairs:
        torch.testing.assert_close(mine, other, rtol=0, atol=0)
    assert ours.proof_status == through_the_mode.proof_status


def test_only_a_foreign_module_is_watched_through_the_mode(calls_of_the_mode: list[object]) -> None:
    model = own()
    trace(model, pixels())
    trace(model, pixels(), keep_values=True)
    assert calls_of_the_mode == []
    trace(Wrapped(model), pixels(), layout=LAYOUT)
    assert calls_of_the_mode.count(F.scaled_dot_product_attention) == 3


@pytest.mark.parametrize("choices", [
    {"mlp": "swiglu", "norm": "rms", "layer_scale": True}, {"mlp": "swiglu_packed", "qk_norm": True, "attn_norm": True},
    {"patch_embed": "unfold", "pooling": "attention", "class_token": False}, {"dist_token": True, "dist_head": True},
])  # fmt: skip
def test_every_kind_of_our_model_is_ours(calls_of_the_mode: list[object], choices: dict[str, object]) -> None:
    report = trace(own(**choices), pixels()).proof_report
    assert report.status == ("captured, not proven" if "attn_norm" in choices else "proven")
    assert calls_of_the_mode == []


@pytest.mark.parametrize("kind", [Sharper, WrittenOut])
def test_a_class_of_the_users_own_inside_our_model_is_seen_too(kind: type[Attention]) -> None:
    model = own()
    attention = kind(model.config)
    attention.load_state_dict(model.blocks[1].attn.state_dict())  # type: ignore[union-attr]
    model.blocks[1].attn = attention
    recorded = trace(model, pixels())
    assert recorded.num_layers == 3
    assert recorded.proof_status == "proven"


@pytest.mark.parametrize("choices", [{}, {"pooling": "attention", "class_token": False}])
@pytest.mark.parametrize("kept", [{}, {"keep_residual": True}, {"keep_values": True}, {"keep_norms": True}])
def test_a_trace_holds_ordinary_tensors(choices: dict[str, object], kept: dict[str, bool]) -> None:
    recorded = trace(own(**choices), pixels(), **kept)  # type: ignore[arg-type]
    found = list(tensors(recorded))
    assert len(found) >= 3 * 3 + 1
    assert not any(tensor.is_inference() for tensor in found)


class Remembering(nn.Module):
    """A user's head that keeps a tensor of the pass."""

    def __init__(self, head: nn.Module) -> None:
        super().__init__()
        self.head, self.kept = head, torch.empty(0)

    def forward(self, x: Tensor) -> Tensor:
        self.kept = x
        logits: Tensor = self.head(x)
        return logits


def test_what_a_hook_or_a_part_of_the_users_own_keeps_can_be_differentiated_later() -> None:
    seen: list[Tensor] = []
    hooked, replaced = own(), own()
    hooked.blocks[1].register_forward_hook(lambda *call: seen.append(call[2]))
    replaced.head = Remembering(replaced.head)
    trace(hooked, pixels())
    trace(replaced, pixels())
    for kept in (seen[0], replaced.head.kept):
        weight = torch.ones(kept.shape[-1], requires_grad=True)
        assert isinstance(kept, Tensor)
        (kept * weight).sum().backward()
        assert_same(weight.grad, kept.flatten(0, -2).sum(0), relative=1e-6)


def test_ordinary_tensors_also_where_the_memory_had_to_grow() -> None:
    model = own(depth=2)
    trace(model, pixels())  # two layers are expected from now on
    model.blocks.append(own(depth=1).blocks[0])
    model.config = ViTConfig(**(vars(model.config) | {"depth": 3}))
    recorded = trace(model, pixels())
    assert recorded.num_layers == 3
    assert not any(tensor.is_inference() for tensor in tensors(recorded))


def test_removed_tokens_are_left_out_of_a_mean_pooling() -> None:
    model = own(pooling="mean", class_token=False)
    with edit(mask_keys=[3, 4]):
        inside = trace(model, pixels())
        assert_same(inside.logits, model(pixels())[0].detach())


def test_another_thread_and_the_time_after_keep_torchs_function() -> None:
    q = torch.randn(1, 2, 5, 4)
    expected = F.scaled_dot_product_attention(q, q, q)
    elsewhere: list[Tensor] = []

    def fail(*_: Tensor, **__: object) -> Tensor:
        raise RuntimeError("in the seat")

    with suppress(RuntimeError), attending_through(fail):
        other = threading.Thread(target=lambda: elsewhere.append(scaled_dot_product_attention(q, q, q)))
        other.start()
        other.join()
        scaled_dot_product_attention(q, q, q)
        pytest.fail("the kernel in the seat was not called")
    torch.testing.assert_close(elsewhere[0], expected, rtol=0, atol=0)
    torch.testing.assert_close(scaled_dot_product_attention(q, q, q), expected, rtol=0, atol=0)


def test_a_model_of_ours_compiles_in_one_piece() -> None:
    model = VisionTransformer(
        ViTConfig(img_size=SIZE, patch_size=(16, 16), embed_dim=16, num_heads=2, depth=1)
    )
    with torch.no_grad():
        compiled = torch.compile(model.eval(), backend="eager", fullgraph=True)
        assert_same(compiled(pixels()), model(pixels()), relative=3e-6)


@pytest.mark.parametrize("has_norm", [True, False])
def test_a_norm_before_the_projection_is_told_as_of_a_model_of_others(has_norm: bool) -> None:
    ours = trace(own(attn_norm=has_norm), pixels()).proof_report
    watched = trace(Wrapped(own(attn_norm=has_norm)), pixels(), layout=LAYOUT).proof_report
    assert ours.effective == watched.effective
    assert (ours.status, ours.meaning) == (watched.status, watched.meaning)
    assert (ours.status == "proven") == (not has_norm)
