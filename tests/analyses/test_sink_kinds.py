"""Kinds of sinks: two heads by hand, a loop over whole matrices, and LayerScale in models of several makers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import vit_viz as vv
from tests.analyses.conftest import HEADS, LAYERS
from tests.capture.models import lively, own, timm_vit
from tests.traces import trace_from
from vit_viz.errors import CaptureError
from vit_viz.geometry import TokenLayout

TOKENS, WIDTH = 10, 3


def hand_made() -> vv.Trace:
    """Four heads of one layer over the class token, a register and eight patches; token 1 is the sink of three of them."""
    sink = torch.full((TOKENS, TOKENS), 0.3 / 9)
    sink[:, 1] = 0.7
    sink[4] = 0.1  # one query in ten may look elsewhere
    even = torch.full((TOKENS, TOKENS), 0.1)
    values = torch.randn(4, TOKENS, WIDTH, generator=torch.Generator().manual_seed(1))
    values = torch.nn.functional.normalize(values, dim=-1)
    values[0, 1] *= 0.1
    values[1] = torch.tensor([0.0, 2, 0])
    values[2, 1] *= 0.3
    return trace_from(
        attention=torch.stack([sink, sink, sink, even])[None],
        v=values[None],
        projections=torch.eye(4 * WIDTH)[None],
        layout=TokenLayout(grid=(2, 4), prefix=("class", "register 0")),
    )


def test_a_silent_value_is_a_no_op_and_equal_values_are_a_broadcast():
    found = vv.sink_kinds(hand_made())
    assert found.kinds == (("no-op", "broadcast", "sink, of neither kind", "no sink"),)
    assert found.tokens[0][:3] == ("register 0",) * 3
    np.testing.assert_allclose(found.ratio[0, :3], [0.1, 1, 0.3], rtol=1e-5)
    np.testing.assert_allclose(found.received[0], [0.64, 0.64, 0.64, 0.1], rtol=1e-5)
    np.testing.assert_allclose(found.queries[0], [0.9, 0.9, 0.9, 0], rtol=1e-5)
    assert found.stable_rank[0, 1] == pytest.approx(1, rel=1e-5)
    assert found.written[0, 1] == pytest.approx(2, rel=1e-5)
    row = list(found.to_table().rows)[2]
    assert row[:4] == (0, 2, "sink, of neither kind", "register 0")


@pytest.mark.parametrize("weight", ["fused", "written out"])
def test_it_is_what_whole_matrices_say(make_trace, matrices, weight):
    random = torch.Generator().manual_seed(5)
    given = make_trace(prefix=2)
    attention, tokens = matrices(given), given.num_tokens
    values = torch.randn(LAYERS, HEADS, tokens, 4, generator=random)
    projections = torch.randn(LAYERS, 6, HEADS * 4, generator=random)
    operands = {"q": given.q, "k": given.k} if weight == "fused" else {"attention": attention.float()}
    found = vv.sink_kinds(trace_from(**operands, v=values, projections=projections, layout=given.layout))
    for layer in range(LAYERS):
        for head in range(HEADS):
            a, v = attention[layer, head].numpy(), values[layer, head].double().numpy()
            u = v @ projections[layer][:, 4 * head : 4 * head + 4].double().numpy().T
            written = a @ u
            s = a.mean(0).argmax()
            others = np.arange(tokens) != s
            expected = {
                "received": a.mean(0)[s],
                "queries": (a[:, s] >= 0.5).mean(),
                "ratio": np.linalg.norm(u[s]) / np.linalg.norm(u[others], axis=1).mean(),
                "value_ratio": np.linalg.norm(v[s]) / np.linalg.norm(v[others], axis=1).mean(),
                "stable_rank": (np.linalg.norm(written) / np.linalg.norm(written, 2)) ** 2,
                "written": np.linalg.norm(written, axis=1).mean(),
            }
            for name, value in expected.items():
                assert found.numbers[name][layer, head] == pytest.approx(value, rel=1e-5), name
            assert found.tokens[layer][head] == given.layout.name(int(s))


def test_a_head_that_writes_nothing_is_a_no_op_where_it_has_a_sink():
    given = hand_made()
    assert given.v is not None
    given.layers[0].v[:2] = 0
    found = vv.sink_kinds(given)
    assert found.kinds[0][:2] == ("no-op", "no-op")
    assert not np.stack([found.stable_rank, found.ratio, found.value_ratio])[:, 0, :2].any()


def dinov2() -> nn.Module:
    from transformers import Dinov2Config, Dinov2Model

    settings = {"hidden_size": 40, "num_hidden_layers": 3, "num_attention_heads": 5, "image_size": 64}
    return lively(Dinov2Model(Dinov2Config(**settings, patch_size=16)))


class LayerScaled(nn.Module):
    """Scores written out, one projection, and a factor for each channel behind a dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 40, 16, stride=16)
        self.qkv, self.proj, self.head = nn.Linear(40, 120), nn.Linear(40, 40), nn.Linear(40, 7)
        self.scale, self.drop = nn.Parameter(torch.ones(40)), nn.Dropout(0.3)

    def forward(self, image: Tensor) -> Tensor:
        x = self.patches(image).flatten(2).transpose(1, 2)
        for _ in range(2):
            q, k, v = self.qkv(x).unflatten(-1, (3, 5, 8)).permute(2, 0, 3, 1, 4)
            attention = (q @ k.transpose(-1, -2) * 8**-0.5).softmax(-1)
            branch = self.drop(self.proj((attention @ v).transpose(1, 2).flatten(2)))
            x = x + self.scale * branch
        return self.head(x.mean(1))


def of_blocks(model: nn.Module) -> list[tuple[Tensor, Tensor]]:
    """The output projection and the LayerScale of each layer, by the names of each maker."""
    if isinstance(model, LayerScaled):
        return [(model.proj.weight, model.scale)] * 2
    if hasattr(model, "blocks"):
        return [(block.attn.proj.weight, block.ls1.gamma) for block in model.blocks]
    layers = model.encoder.layer  # type: ignore[union-attr]
    linear = [[part for part in layer.attention.modules() if isinstance(part, nn.Linear)] for layer in layers]  # type: ignore[union-attr]
    return [(own[-1].weight, layer.layer_scale1.lambda1) for own, layer in zip(linear, layers, strict=True)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "make",
    [
        lambda: own(layer_scale=True, img_size=(64, 64)),
        lambda: timm_vit(init_values=1e-5, img_size=64),
        dinov2,
        LayerScaled,
    ],
)
def test_a_layer_scale_behind_the_projection_counts(make: Callable[[], nn.Module]):
    torch.manual_seed(3)
    model = make().eval()
    with torch.no_grad():
        for _, scale in of_blocks(model):
            scale.copy_(torch.rand(40).pow(4))
    image = torch.randn(1, 3, 64, 64)
    layout = TokenLayout(grid=(4, 4), prefix=()) if isinstance(model, LayerScaled) else None
    recorded = vv.trace(model, image, layout=layout, keep_values=True)
    assert recorded.v is not None
    found = vv.sink_kinds(recorded)
    for layer, (weight, scale) in enumerate(of_blocks(model)):
        for head in range(5):
            weights = (weight * scale[:, None])[:, 8 * head : 8 * head + 8].detach().double()
            written = recorded.attention(layer)[head].double() @ recorded.v[layer, head].double() @ weights.T
            assert found.written[layer, head] == pytest.approx(float(written.norm(dim=-1).mean()), rel=1e-4)


class Gated(nn.Module):
    def forward(self, branch: Tensor) -> Tensor:
        return branch * torch.linspace(0, 1, 16)[:, None]


class Shifted(nn.Module):
    def forward(self, branch: Tensor) -> Tensor:
        return branch.add_(1.0)


@pytest.mark.parametrize("between", [Gated, Shifted])
def test_a_factor_behind_something_else_is_no_layer_scale(between: type[nn.Module]):
    model, image, written = LayerScaled().eval(), torch.randn(1, 3, 64, 64), []
    model.drop = between()
    for factor in (1.0, 3.0):
        nn.init.constant_(model.scale, factor)
        recorded = vv.trace(
            model, image, layout=TokenLayout(grid=(4, 4), prefix=()), target=2, keep_values=True
        )
        written.append(vv.sink_kinds(recorded).written[0])
    np.testing.assert_array_equal(*written)


EDITS: list[dict[str, Any]] = [
    {"heads": {(0, 0): "mean", (1, 2): "mean", (1, 4): 0.25, (0, 3): -2.0, (0, 1): 0.0, (1, 1): "uniform"}},
    {"knockout": {0: [(i, j) for i in range(16) for j in (2, 5, 7)]}, "heads": {(0, 2): "mean"}},
    {"temperature": {1: 0.3}, "mask_keys": {0: [3, 4]}, "heads": {(1, 0): 0.5}},
]


@pytest.mark.parametrize("edits", EDITS)
@pytest.mark.parametrize(
    "make",
    [
        lambda: own(layer_scale=True, img_size=(64, 64), class_token=False, pooling="mean"),
        lambda: timm_vit(init_values=1e-5, img_size=64, class_token=False, global_pool="avg"),
        LayerScaled,
    ],
)
def test_what_a_head_really_writes_under_an_edit_is_measured(
    make: Callable[[], nn.Module], edits: dict[str, Any]
) -> None:
    """Against what the projection reads, by a hook of our own."""
    torch.manual_seed(4)
    model = make().eval()
    if isinstance(model, LayerScaled) and "temperature" in edits:
        pytest.skip("the scores of this model cannot be followed")
    with torch.no_grad():
        for _, scale in of_blocks(model):
            scale.copy_(torch.rand(40).pow(3))
    image, read = torch.randn(1, 3, 64, 64), []
    layout = TokenLayout(grid=(4, 4), prefix=()) if isinstance(model, LayerScaled) else None
    with vv.edit(**edits):
        found = vv.sink_kinds(vv.trace(model, image, layout=layout, keep_values=True))
        projections = [
            part for name, part in model.named_modules() if name.endswith("attn.proj") or name == "proj"
        ]
        hooks = [
            part.register_forward_pre_hook(lambda _, inputs: read.append(inputs[0][0].detach().double()))
            for part in projections
        ]
        with torch.no_grad():
            model(image)
    for hook in hooks:
        hook.remove()
    for layer, (weight, scale) in enumerate(of_blocks(model)[:2]):
        for head in range(5):
            part = slice(8 * head, 8 * head + 8)
            written = read[layer][:, part] @ (weight * scale[:, None])[:, part].detach().double().T
            lengths = torch.linalg.svdvals(written).square()
            rank = float(lengths.sum() / lengths[0]) if lengths[0] > 0 else 0.0
            assert found.written[layer, head] == pytest.approx(
                float(written.norm(dim=-1).mean()), rel=1e-4, abs=1e-9
            )
            assert found.stable_rank[layer, head] == pytest.approx(rank, rel=1e-4), (layer, head)


def test_a_sink_whose_head_is_at_its_mean_is_a_broadcast() -> None:
    model, image = own(), torch.randn(1, 3, 64, 96)
    with vv.edit(temperature={1: 1e-3}, heads={(1, head): "mean" for head in range(5)}):
        found = vv.sink_kinds(vv.trace(model, image, keep_values=True))
    np.testing.assert_allclose(found.stable_rank[1], 1, rtol=1e-5)
    assert (found.written[1] > 0).all()
    assert (found.ratio[1] > 0).all()


def test_it_needs_values_and_a_projection():
    with pytest.raises(CaptureError, match="keep_values"):
        vv.sink_kinds(vv.trace(own(), torch.randn(1, 3, 64, 96)))
    with pytest.raises(CaptureError, match="output projection of layer 0"):
        vv.sink_kinds(vv.trace(own(attn_norm=True), torch.randn(1, 3, 64, 96), keep_values=True))
