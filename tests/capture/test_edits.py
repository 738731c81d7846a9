"""edit(): heads silenced, edges forbidden, keys masked, temperatures, against the same change made by hand."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
import torch
from torch import Tensor, nn

from tests.capture.models import own, pixels, timm_vit, torchvision_vit, transformers_vit
from tests.capture.tutorials import FusedQkv, MultiHead, TutorialViT
from tests.comparing import assert_same
from vit_viz.capture import edit, is_edited, trace
from vit_viz.capture.active_edits import suspended, unedited
from vit_viz.capture.edits import with_edits
from vit_viz.capture.interventions import Edits
from vit_viz.errors import CaptureError, ParameterError
from vit_viz.geometry import TokenLayout

pytestmark = pytest.mark.numbers

TUTORIAL = TokenLayout(grid=(4, 6))
MAKERS = [own, timm_vit, lambda: TutorialViT(FusedQkv).eval(), lambda: TutorialViT(MultiHead).eval()]


def run(model: nn.Module, image: Tensor) -> Tensor:
    with torch.no_grad():
        output = model(image)
    return output if isinstance(output, Tensor) else output.logits


def in_another_thread(work: Callable[[], object]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def projections(model: nn.Module) -> list[nn.Linear]:
    """The layers that read the attention's output, in order."""
    names = ("attn.proj", "attention.proj", "attention.attention.out_proj")
    return [part for name, part in model.named_modules() if name.endswith(names)]  # type: ignore[misc]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("factor", [0.0, 0.5, -2.0])
def test_a_scaled_head_is_a_scaled_slice_of_the_output_projection(
    make: Callable[[], nn.Module], factor: float
) -> None:
    model, image = make(), pixels(2)
    with edit(heads={(1, 3): factor}):
        edited = run(model, image)
    plain = run(model, image)
    with torch.no_grad():
        projections(model)[1].weight[:, 3 * 8 : 4 * 8] *= factor
    assert_same(edited, run(model, image))
    assert (edited - plain).abs().max() > 1e-4


@pytest.mark.parametrize("what", ["mean", "uniform"])
@pytest.mark.parametrize("make", MAKERS)
def test_mean_and_uniform_heads(make: Callable[[], nn.Module], what: str) -> None:
    model, image = make(), pixels()
    recorded = trace(model, image, layout=TUTORIAL, keep_values=True)
    output = recorded.attention(1) @ recorded.v[1]  # [heads, tokens, head_dim]
    said = output[3].mean(0) if what == "mean" else recorded.v[1, 3].mean(0)
    expected = output.clone()
    expected[3] = said
    with edit(heads={(1, 3): what}):
        edited = run(model, image)
    assert_same(edited, run_with_output(model, image, 1, expected))


def run_with_output(model: nn.Module, image: Tensor, layer: int, output: Tensor) -> Tensor:
    """Logits where the output projection of a layer reads given numbers, [heads, tokens, head_dim]."""
    projection = projections(model)[layer]
    weight, bias = projection.weight.detach(), projection.bias.detach()
    said = output.transpose(0, 1).reshape(1, output.shape[1], -1) @ weight.T + bias
    for name, part in model.named_modules():
        if name.endswith((f"blocks.{layer}.attn", f"layers.{layer}.attention")):
            handle = part.register_forward_hook(lambda *_: said)
    try:
        return run(model, image)
    finally:
        handle.remove()


def test_keys_masked_in_one_layer_change_that_layer_only() -> None:
    model, image = own(), pixels()
    plain = trace(model, image)
    with edit(mask_keys={1: [5, 6]}):
        edited = trace(model, image)
    assert_same(edited.attention(0), plain.attention(0))
    assert edited.attention(1)[..., [5, 6]].abs().max() == 0
    assert_same(edited.attention(1).sum(-1), torch.ones(5, 25))
    assert edited.attention(2)[..., [5, 6]].min() > 0


def test_a_forbidden_edge_is_a_row_renormalised_without_it() -> None:
    model, image = own(), pixels()
    plain = trace(model, image)
    with edit(knockout={1: [(0, 4), (0, 9), (7, 7)]}):
        edited = trace(model, image)
    expected = plain.attention(1).clone()
    for i, j in [(0, 4), (0, 9), (7, 7)]:
        expected[:, i, j] = 0
    expected /= expected.sum(-1, keepdim=True)
    assert_same(edited.attention(1), expected, relative=1e-6)
    assert edited.proof_status == "proven"


@pytest.mark.parametrize("make", [own, timm_vit, transformers_vit])
def test_temperature_divides_the_scores(make: Callable[[], nn.Module]) -> None:
    model, image = make(), pixels()
    plain = trace(model, image)
    with edit(temperature={1: 2.5}):
        edited = trace(model, image)
    expected = (plain.q[1] @ plain.k[1].transpose(1, 2) * plain.scales[1] / 2.5).softmax(-1)
    assert_same(edited.attention(1), expected, relative=1e-6)
    assert edited.scales == pytest.approx((8**-0.5, 8**-0.5 / 2.5, 8**-0.5))


def test_uniform_attention_ignores_a_bias_of_the_positions() -> None:
    from tests.capture.test_models import Masked

    model = Masked(attn_mask=torch.randn(1, 5, 24, 24)).eval()
    with edit(heads={(0, 2): "uniform"}):
        recorded = trace(model, pixels(), layout=TokenLayout(grid=(4, 6), prefix=()))
    assert_same(recorded.attention(0, heads=2), torch.full((1, 24, 24), 1 / 24))


@pytest.mark.parametrize("make", [own, timm_vit, torchvision_vit])
def test_values_per_image_equal_one_run_each(make: Callable[[], nn.Module]) -> None:
    model = make()
    image = pixels(4, size=(64, 64) if make is torchvision_vit else (64, 96))
    edits = [0.0, "mean", "uniform", 1.0]
    with edit(heads={(1, 2): edits}, temperature={0: [1.0, 2.0, 0.5, 1.0]}):
        together = run(model, image)
    for i, (value, temperature) in enumerate(zip(edits, [1.0, 2.0, 0.5, 1.0], strict=True)):
        with edit(heads={(1, 2): value}, temperature={0: temperature}):
            assert_same(together[[i]], run(model, image[[i]]))


def test_masks_per_image_equal_one_run_each() -> None:
    model, image = own(), pixels(3)
    removed = [[1, 2], [], [24]]
    edges = [[(0, 1)], [(0, 2), (3, 3)], []]
    with edit(mask_keys=removed, knockout={1: edges}):
        together = run(model, image)
    for i in range(3):
        with edit(mask_keys=removed[i], knockout={1: edges[i]}):
            assert_same(together[[i]], run(model, image[[i]]))


def test_a_boolean_mask_equals_a_list_of_tokens() -> None:
    model, image = own(), pixels(2)
    mask = torch.zeros(2, 25, dtype=torch.bool)
    mask[0, [2, 3]] = mask[1, [20]] = True
    with edit(mask_keys=mask):
        edited = run(model, image)
    with edit(mask_keys=[[2, 3], [20]]):
        assert_same(edited, run(model, image), relative=3e-6)


def test_a_mask_is_added_to_the_models_own() -> None:
    from tests.capture.test_models import Masked

    bias = torch.randn(24, 24)
    layout = TokenLayout(grid=(4, 6), prefix=())
    with edit(knockout={0: [(1, 2)]}):
        recorded = trace(Masked(attn_mask=bias).eval(), pixels(), layout=layout)
        causal = trace(Masked(is_causal=True).eval(), pixels(), layout=layout)
    expected = bias.clone()
    expected[1, 2] = -torch.inf
    assert_same(recorded.layers[0].bias[0], expected)
    assert causal.attention(0)[:, 5, 6:].abs().max() == 0
    assert causal.attention(0)[:, 1, 2].abs().max() == 0


@torch.no_grad()
def test_attention_may_be_asked_for_inside_an_edit() -> None:
    model, image = own(), pixels()
    with edit(heads={(1, 2): 0.0}, temperature={0: 2.0}):
        recorded = trace(model, image)
        inside = recorded.attention(0), recorded.received(0, [3]), list(recorded.tiles(0))
    torch.testing.assert_close(inside[0], recorded.attention(0), rtol=0, atol=0)
    assert_same(inside[1][..., 0], inside[0][..., 3])
    assert_same(torch.cat([tile for _, tile in inside[2]], dim=1), inside[0])


def test_nested_edits_add_up() -> None:
    model, image = own(), pixels()
    with edit(heads={(0, 1): 0.0}), edit(heads={(2, 3): 0.5}, mask_keys=[7]):
        nested, recorded = run(model, image), trace(model, image)
    with edit(heads={(0, 1): 0.0, (2, 3): 0.5}, mask_keys=[7]):
        expected = run(model, image)
    assert_same(nested, expected, relative=3e-6)
    assert_same(recorded.logits, expected[0], relative=3e-6)


@pytest.mark.parametrize("make", [*MAKERS, transformers_vit, lambda: transformers_vit("eager")])
def test_a_trace_inside_an_edit_is_the_edited_pass(make: Callable[[], nn.Module]) -> None:
    model, image = make(), pixels()
    with edit(heads={(0, 1): 0.0}, mask_keys=[7]):
        recorded, expected = trace(model, image, layout=TUTORIAL), run(model, image)
    assert_same(recorded.logits, expected[0])
    assert recorded.attention(1)[..., 7].abs().max() == 0


def test_blocks_called_one_by_one_count_as_layers() -> None:
    model, image = own(), pixels()
    with edit(heads={(2, 0): 0.0}):
        expected = run(model, image)
        with torch.no_grad():
            x = model.tokens(image)
            for block in model.blocks:
                x = block(x)
            stepwise = model.classify(x)
    assert_same(stepwise, expected, relative=3e-6)


def test_a_pass_may_be_restarted_within_the_model() -> None:
    model, image = own(), pixels()
    with edit(heads={(2, 0): 0.0}):
        expected = run(model, image)
    with torch.no_grad():
        x = model.blocks[1](model.blocks[0](model.tokens(image)))
        with edit(heads={(2, 0): 0.0}, first_layer=2):
            restarted = model.classify(model.run_blocks(x, (4, 6), start=2))
    assert_same(restarted, expected, relative=3e-6)


def test_a_model_whose_layers_share_one_module_counts_calls() -> None:
    class Looped(TutorialViT):
        def forward(self, image: Tensor) -> Tensor:
            x = self.embed(image).flatten(2).transpose(1, 2)
            for _ in range(3):
                x = self.layers[0](x)
            return self.head(x.mean(1))

    model, image = Looped(FusedQkv).eval(), pixels()
    with edit(heads={(1, 0): 0.0}):
        one = run(model, image), run(model, image)
    with edit(heads={(0, 0): 0.0, (1, 0): 0.0, (2, 0): 0.0}):
        every = run(model, image)
    assert torch.equal(*one)
    assert (one[0] - every).abs().max() > 1e-4


def test_an_edit_acts_in_its_own_thread_only() -> None:
    model, image = own(), pixels()
    expected, found = run(model, image), []
    with edit(heads={(0, 0): 0.0}):
        in_another_thread(lambda: found.append(run(model, image)))
        run(model, image)
    assert torch.equal(found[0], expected)


def test_a_trace_in_another_thread_is_made_without_the_edits_of_this_one() -> None:
    model, image = own(), pixels()
    plain, elsewhere = trace(model, image), []
    with edit(heads={(0, 0): 0.0}):
        in_another_thread(lambda: elsewhere.append((trace(model, image), is_edited())))
        here = trace(model, image)
    ((recorded, was_edited),) = elsewhere
    assert torch.equal(recorded.q, plain.q)
    assert not was_edited
    assert not torch.equal(here.q, plain.q)


def test_an_edit_acts_while_another_thread_makes_a_trace() -> None:
    model, other, image = own(), own(), pixels()
    with edit(heads={(0, 0): 0.0}):
        expected = run(other, image)
    edited = []

    def beside() -> None:
        with edit(heads={(0, 0): 0.0}):
            edited.append(run(other, image))

    model.blocks[1].register_forward_hook(lambda *_: in_another_thread(beside))
    trace(model, image)
    assert len(edited) == 1
    assert torch.equal(edited[0], expected)


def test_an_edit_acts_again_after_a_trace_inside_it_has_failed() -> None:
    model, image = own(), pixels()
    with edit(heads={(0, 0): 0.0}):
        expected = run(model, image)
        failing = model.blocks[1].register_forward_hook(lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            trace(model, image)
        failing.remove()
        after = run(model, image)
    assert torch.equal(after, expected)


@pytest.mark.parametrize("stand_aside", [suspended, unedited])
def test_edits_that_stand_aside_twice_act_after_the_outer_end(
    stand_aside: Callable[[], AbstractContextManager[None]],
) -> None:
    model, image = own(), pixels()
    plain = run(model, image)
    with with_edits(Edits({(0, 0): 0.0}, {}, None, {}), model):
        edited = run(model, image)
        with stand_aside():
            with stand_aside():
                pass
            assert torch.equal(run(model, image), plain)
        assert torch.equal(run(model, image), edited)
    assert not torch.equal(edited, plain)


def test_edits_of_a_model_stand_aside_in_one_thread_only() -> None:
    model, image, elsewhere = own(), pixels(), []
    edits = Edits({(0, 0): 0.0}, {}, None, {})
    with with_edits(edits, model):
        edited = run(model, image)

    def beside() -> None:
        with with_edits(edits, model):
            elsewhere.append(run(model, image))

    with unedited():
        in_another_thread(beside)
    assert torch.equal(elsewhere[0], edited)


def test_nothing_is_left_after_an_exception() -> None:
    model, image = own(), pixels()
    expected = run(model, image)
    with pytest.raises(RuntimeError, match="stop"), edit(heads={(0, 0): 0.0}):
        raise RuntimeError("stop")
    assert torch.equal(run(model, image), expected)


def test_gradients_pass_through_an_edit() -> None:
    model, image = own(), pixels()
    with edit(heads={(2, 1): 0.0}):
        recorded = trace(model, image, target=0)
    assert recorded.attention_gradient(2, heads=1).abs().max() == 0
    assert recorded.attention_gradient(2, heads=2).abs().max() > 0


@pytest.mark.parametrize(
    ("edits", "message"),
    [
        ({"mask_keys": list(range(25))}, "Masking every key"),
        ({"knockout": {0: [(2, j) for j in range(25)]}}, "Masking every key"),
        ({"mask_keys": list(range(1, 25)), "knockout": {1: [(3, 0)]}}, "Masking every key"),
        ({"mask_keys": [25]}, "Token 25 does not exist: tokens are 0-24"),
        ({"knockout": {0: [(0, 25)]}}, "The edge 0 -> 25 does not exist"),
        ({"heads": {(0, 5): 0.0}}, "Head 5 does not exist: this model has heads 0-4"),
        ({"heads": {(3, 0): 0.0}}, "Layer 3 does not exist: this model has layers 0-2"),
        ({"temperature": {0: 0.0}}, "must be positive"),
        ({"heads": {(0, 0): "median"}}, '"mean" or "uniform"'),
        ({"heads": {(0, 0): [0.0, 1.0, 0.0]}}, "one per image of the batch of 1, not 3"),
    ],
)
@pytest.mark.parametrize("how", ["forward", "trace"])
def test_an_impossible_edit_is_one_sentence(edits: dict[str, object], message: str, how: str) -> None:
    model, image = own(), pixels()
    with pytest.raises(ParameterError, match=message), edit(**edits):  # type: ignore[arg-type]
        run(model, image) if how == "forward" else trace(model, image)


def test_an_edit_that_met_no_attention_is_an_error() -> None:
    with pytest.raises(CaptureError, match="nothing was edited"), edit(heads={(0, 0): 0.0}):
        run(nn.Linear(3, 3), torch.randn(1, 3))


def test_heads_that_share_an_axis_with_the_batch_are_refused() -> None:
    class Flat(FusedQkv):
        def forward(self, x: Tensor) -> Tensor:
            q, k, v = self.qkv(x).reshape(len(x), -1, 3, 5, 8).permute(2, 0, 3, 1, 4).flatten(1, 2)
            out = ((q @ k.transpose(1, 2)).softmax(-1) @ v).unflatten(0, (len(x), 5))
            return self.proj(out.transpose(1, 2).flatten(2))

    model = TutorialViT(Flat).eval()
    with pytest.raises(CaptureError, match="axes of their own"), edit(heads={(0, 0): 0.0}):
        run(model, pixels(2))
    with edit(heads={(0, 0): 0.0}):
        recorded = trace(model, pixels(), layout=TUTORIAL)  # one image: the axis can only be heads
    assert recorded.num_heads == 5
