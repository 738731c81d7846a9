"""What a capture must not do: leave anything behind, mix threads, hand out memory that is still read, or guess."""

from __future__ import annotations

import copy
import gc
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.capture.misleading import Model, attending, blocks
from tests.capture.models import SIZE, lively, own, pixels, timm_vit, torchvision_vit
from tests.capture.tutorials import FusedQkv, TutorialViT
from tests.comparing import assert_same
from tests.waiting import PATIENCE
from vit_viz.capture import trace
from vit_viz.capture.buffers import BufferPool
from vit_viz.errors import Cancelled, CaptureError
from vit_viz.geometry import TokenLayout
from vit_viz.model import VisionTransformer, ViTConfig

pytestmark = pytest.mark.numbers


def state_of(model: nn.Module) -> dict[str, object]:
    """Everything that a capture could leave on a module."""
    hooks = {
        (name, kind): len(getattr(part, kind))
        for name, part in model.named_modules()
        for kind in ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks")
    }
    return {
        "training": [part.training for part in model.modules()],
        "grad": [p.grad is None for p in model.parameters()],
        "requires_grad": [p.requires_grad for p in model.parameters()],
        "hooks": hooks,
        "attributes": {name: sorted(vars(part)) for name, part in model.named_modules()},
        "random": torch.get_rng_state().tolist(),
        "grad mode": torch.is_grad_enabled(),
        "modes": torch.overrides._len_torch_function_stack()
        if hasattr(torch.overrides, "_len_torch_function_stack")
        else 0,
    }


def broken(model: nn.Module) -> nn.Module:
    """The model with an exception in its last block, after attention was captured and random numbers drawn."""

    def fail(*_: object) -> None:
        torch.rand(3)
        raise RuntimeError("mid-forward")

    list(model.blocks)[-1].mlp.forward = fail  # type: ignore[arg-type, union-attr]
    return model


@pytest.mark.parametrize("make", [own, timm_vit])
@pytest.mark.parametrize("choices", [{}, {"target": 1, "keep_values": True, "keep_residual": True}])
def test_the_model_is_the_same_before_and_after(
    make: Callable[[], nn.Module], choices: dict[str, object]
) -> None:
    model = make().train()
    model.blocks[1].eval()  # a mixture, to be put back as it was
    before, weights = state_of(model), copy.deepcopy(model.state_dict())
    assert trace(model, pixels(), **choices).proof_status == "proven"
    assert state_of(model) == before
    assert all(torch.equal(weights[name], value) for name, value in model.state_dict().items())


@pytest.mark.parametrize("choices", [{}, {"target": 1, "keep_residual": True}])
def test_the_model_is_the_same_after_an_exception_mid_forward(choices: dict[str, object]) -> None:
    model = broken(timm_vit()).train()
    before = state_of(model)
    with pytest.raises(CaptureError, match="RuntimeError: mid-forward"):
        trace(model, pixels(), **choices)  # type: ignore[arg-type]
    assert state_of(model) == before


def test_a_model_that_draws_random_numbers_leaves_the_generator_as_it_was() -> None:
    class Random(FusedQkv):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x) + 0.1 * torch.randn(x.shape)

    model, image = TutorialViT(Random), pixels()
    before = torch.get_rng_state()
    trace(model, image, layout=TokenLayout(grid=(4, 6)))
    assert torch.equal(torch.get_rng_state(), before)


def test_two_threads_on_one_model_equal_two_serial_runs() -> None:
    model = own().train()
    images = [pixels(), 2 * pixels()]
    expected = [trace(model, image, keep_residual=True) for image in images]
    found: dict[tuple[int, int], object] = {}
    gate = threading.Barrier(2)

    def work(number: int) -> None:
        gate.wait()
        for run in range(5):
            found[number, run] = trace(model, images[number], keep_residual=True)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for (number, _), recorded in found.items():
        assert torch.equal(recorded.q, expected[number].q)  # type: ignore[attr-defined]
        assert torch.equal(recorded.residual, expected[number].residual)  # type: ignore[attr-defined]
    assert model.training


def test_a_plain_forward_in_another_thread_is_not_recorded() -> None:
    model, image = own(), pixels()
    inside, finished = threading.Event(), threading.Event()

    def wait_inside(*_: object) -> None:
        if threading.current_thread() is threading.main_thread():
            inside.set()
            assert finished.wait(PATIENCE)

    handle = model.blocks[1].register_forward_hook(wait_inside)
    other = threading.Thread(target=lambda: (inside.wait(PATIENCE), model(image), finished.set()))
    other.start()
    recorded = trace(model, image, keep_residual=True)
    other.join()
    handle.remove()
    assert recorded.num_layers == 3
    assert len(recorded.residual) == 4


def test_memory_is_recycled_when_the_trace_is_dropped() -> None:
    pool, model, image = BufferPool(), own(), pixels()
    first = trace(model, image, pool=pool)
    address, size = first.q.data_ptr(), first.q.nbytes
    assert pool.idle_bytes == 0
    del first
    assert pool.idle_bytes >= 2 * size
    assert address in (
        trace(model, image, pool=pool).q.data_ptr(),
        trace(model, image, pool=pool).k.data_ptr(),
    )


def test_a_tensor_that_outlives_its_trace_keeps_its_numbers() -> None:
    pool, model, image = BufferPool(), own(), pixels()
    kept = trace(model, image, pool=pool).q
    array = trace(model, image, pool=pool).k.numpy()
    expected = kept.clone(), array.copy()
    gc.collect()
    for _ in range(3):
        trace(model, 3 * image, pool=pool)
    assert torch.equal(kept, expected[0])
    assert (array == expected[1]).all()


def test_a_failed_capture_returns_its_memory() -> None:
    pool = BufferPool()
    with pytest.raises(CaptureError, match="RuntimeError: mid-forward"):
        trace(broken(timm_vit()), pixels(), pool=pool)
    gc.collect()
    assert pool.idle_bytes > 0


def test_nbytes_counts_operands_once() -> None:
    recorded = trace(own(), pixels())
    lse = 3 * 5 * 25 * 4
    assert recorded.nbytes == recorded.q.nbytes + recorded.k.nbytes + recorded.logits.nbytes + lse


def test_no_attention_is_an_error_that_says_what_was_seen() -> None:
    model = nn.Sequential(nn.Conv2d(3, 7, 16, 16), nn.Flatten(), nn.Linear(168, 7), nn.Softmax(dim=-1))
    with pytest.raises(
        CaptureError, match=r"No self-attention was seen in Sequential: .*seen: 1 x softmax over \[1, 7\]"
    ):
        trace(model, pixels())


def by_exponential(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    weights = (q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5).exp()
    return weights / weights.sum(-1, keepdim=True) @ v


class Sage(torch.autograd.Function):
    @staticmethod
    def forward(_: Any, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return by_exponential(q, k, v)


def sageattn(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    output: Tensor = Sage.apply(q, k, v)
    return output


def of_custom_operator(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    with torch.library._scoped_library("vit_viz_tests", "FRAGMENT") as library:
        library.define("flash_attn_forward(Tensor q, Tensor k, Tensor v) -> Tensor")
        library.impl("flash_attn_forward", by_exponential, "CPU")
        output: Tensor = torch.ops.vit_viz_tests.flash_attn_forward(q, k, v)
        return output


@pytest.mark.parametrize(
    ("attends", "words"),
    [
        (
            torch._scaled_dot_product_attention_math,
            r"of torch\._scaled_dot_product_attention_math are not seen",
        ),
        (
            sageattn,
            r"of tests\.capture\.test_clean\.sageattn are not seen: put scaled_dot_product_attention in",
        ),
        (of_custom_operator, r"calls of torch\.ops\.vit_viz_tests\.flash_attn_forward are not seen"),
        (
            by_exponential,
            r"seen: neither\. Attention without a softmax, or to more or fewer keys than queries",
        ),
    ],
)
def test_an_attention_that_is_not_seen_is_named(attends: Callable[..., Any], words: str) -> None:
    def gathered(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        output = attends(q, k, v)
        return output if isinstance(output, Tensor) else output[0]

    before = sys.getprofile()
    with pytest.raises(CaptureError, match=words):
        trace(lively(Model(blocks(*[attending(gathered)] * 2))), pixels())
    assert sys.getprofile() is before


def test_a_block_that_is_skipped_in_our_model_is_an_error() -> None:
    model = own()
    model.blocks[1].forward = lambda x, _: x  # type: ignore[assignment]
    with pytest.raises(CaptureError, match="3 layers, but 2 attention calls"):
        trace(model, pixels())


def test_a_windowed_model_is_refused_in_one_sentence() -> None:
    from timm.models.swin_transformer import SwinTransformer

    model = SwinTransformer(
        img_size=64, patch_size=4, embed_dim=24, depths=(2, 2), num_heads=(2, 4), window_size=4
    )
    with pytest.raises(CaptureError, match="windowed models"):
        trace(model, pixels(size=(64, 64)))


def test_a_matrix_beyond_the_limit_is_refused() -> None:
    model = TutorialViT(FusedQkv)
    with pytest.raises(CaptureError, match="allow more bytes of attention"):
        trace(model, pixels(), layout=TokenLayout(grid=(4, 6)), max_attention_bytes=30_000)


def test_a_kernel_that_computes_something_else_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    from vit_viz.capture.calls import AttentionCall

    honest: Callable[..., tuple[Tensor, Tensor | None]] = AttentionCall.run_with_normaliser
    monkeypatch.setattr(
        AttentionCall, "run_with_normaliser", lambda call: (honest(call)[0] + 1e-3, honest(call)[1])
    )
    assert trace(own(), pixels()).proof_status == "refuted"


def test_proof_can_be_left_out_or_made_whole() -> None:
    model, image = own(), pixels()
    assert trace(model, image, proof_rows=0).proof_status == "captured, not proven"
    assert trace(model, image, proof_rows=10_000).proof_status == "proven"


@pytest.mark.parametrize("make", [own, timm_vit, torchvision_vit, lambda: TutorialViT(FusedQkv)])
def test_norms_are_kept_without_the_values_bit_for_bit(make: Callable[[], nn.Module]) -> None:
    model, size = make(), (64, 64) if make is torchvision_vit else SIZE
    layout = TokenLayout(grid=(size[0] // 16, size[1] // 16))
    with_values = trace(model, pixels(size=size), layout=layout, keep_values=True)
    alone = trace(model, pixels(size=size), layout=layout, keep_norms=True)
    assert alone.v is None
    for layer in range(3):
        assert torch.equal(alone.value_norms(layer), with_values.value_norms(layer))
        assert float(alone.value_norms(layer).min()) > 0


@pytest.mark.parametrize("kept", ["keep_values", "keep_norms"])
def test_value_norms_without_a_direct_projection_are_refused(kept: str) -> None:
    recorded = trace(
        own(attn_norm=True), pixels(), keep_values=kept == "keep_values", keep_norms=kept == "keep_norms"
    )
    with pytest.raises(CaptureError, match="output projection of layer 0 is not known"):
        recorded.value_norms(0)


def test_a_value_that_is_changed_after_its_attention_counts_as_it_was() -> None:
    def changing(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        out = F.scaled_dot_product_attention(q, k, v)
        v.mul_(-3.0)
        return out

    model, layout = Model(blocks(*[attending(changing)] * 2)), TokenLayout(grid=(4, 6))
    expected = trace(model, pixels(), layout=layout, keep_values=True)
    got = trace(model, pixels(), layout=layout, keep_norms=True)
    assert torch.equal(got.value_norms(1), expected.value_norms(1))
    weight = model.blocks[1].attention.proj.weight.detach()
    assert_same(got.value_norms(1)[3], (expected.v[1, 3] @ weight[:, 24:32].T).norm(dim=-1))


def test_value_norms_with_the_other_linear_kernel() -> None:
    model, image = own(), pixels()
    expected = trace(model, image, keep_values=True).value_norms(2)
    for part in model.modules():
        if hasattr(part, "use_onednn"):
            part.use_onednn = True
    assert_same(trace(model, image, keep_values=True).value_norms(2), expected)


def test_nbytes_counts_a_recycled_buffer_whole() -> None:
    pool, model = (
        BufferPool(),
        VisionTransformer(
            ViTConfig(img_size=(32, 48), patch_size=(8, 8), embed_dim=40, depth=3, num_heads=5, num_classes=7)
        ),
    )
    trace(model, torch.randn(1, 3, 32, 48), pool=pool)
    idle = pool.idle_bytes
    smaller = trace(model, torch.randn(1, 3, 32, 32), pool=pool)
    assert smaller.q.untyped_storage().nbytes() > smaller.q.nbytes
    assert smaller.nbytes >= idle - pool.idle_bytes > smaller.q.nbytes + smaller.k.nbytes


@pytest.mark.parametrize(("make", "ends_after"), [(own, 1), (timm_vit, 2)])
def test_a_pass_says_how_far_it_is_and_can_be_ended_after_a_layer(
    make: Callable[[], nn.Module], ends_after: int
) -> None:
    model, told = make(), list[float]()
    trace(model, pixels(), progress=told.append)
    assert told == [1 / 3, 2 / 3, 1]
    before = state_of(model)
    told.clear()
    with pytest.raises(Cancelled):
        trace(model, pixels(), progress=told.append, cancelled=lambda: len(told) >= ends_after)
    assert told == [1 / 3, 2 / 3][:ends_after]
    assert state_of(model) == before
