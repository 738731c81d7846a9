"""Tokens after the patches: YOLOS against its own eager attention, and a pool that sees patches only."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.capture.models import lively
from vit_viz.analyses.attention import attention_map
from vit_viz.analyses.rollout import rollout
from vit_viz.capture import Trace, trace
from vit_viz.capture.packed import PackedTrace
from vit_viz.errors import CaptureError, ParameterError
from vit_viz.geometry import TokenLayout

DETECTIONS, LAYERS, HEADS, GRID = 5, 4, 3, (4, 7)


def yolos(*, detects: bool = True, implementation: str = "sdpa") -> nn.Module:
    """As many blocks as no prediction head has layers; the image is not the one that the positions were made for."""
    from transformers import YolosConfig, YolosForObjectDetection, YolosModel

    config = YolosConfig(
        hidden_size=24, num_hidden_layers=LAYERS, num_attention_heads=HEADS, intermediate_size=44, image_size=[48, 40],
        patch_size=8, num_detection_tokens=DETECTIONS, num_labels=9, attn_implementation=implementation,
    )  # fmt: skip
    return lively(YolosForObjectDetection(config) if detects else YolosModel(config))


@pytest.fixture
def image() -> Tensor:
    return torch.randn(1, 3, 32, 56, generator=torch.Generator().manual_seed(4))


def truth_of(model: nn.Module, image: Tensor) -> list[Tensor]:
    """The model's own attention, [heads, tokens, tokens] per layer."""
    with torch.no_grad():
        return [attention[0] for attention in model(image, output_attentions=True).attentions]


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
@pytest.mark.parametrize("detects", [True, False])
def test_yolos_has_its_detection_tokens_after_the_patches(
    image: Tensor, implementation: str, detects: bool
) -> None:
    recorded = trace(yolos(detects=detects, implementation=implementation), image)
    assert recorded.layout == TokenLayout(
        grid=GRID, prefix=("class",), suffix=tuple(f"detection {i}" for i in range(DETECTIONS))
    )
    assert recorded.proof_status == "proven"
    assert recorded.logits is None
    for layer, expected in enumerate(truth_of(yolos(detects=detects, implementation="eager"), image)):
        got = recorded.attention(layer)
        assert float((got - expected).abs().max()) <= 1e-5 * float(expected.abs().max())


def test_maps_of_yolos_are_the_patch_part_of_its_own_attention(image: Tensor) -> None:
    recorded, truth = trace(yolos(), image), truth_of(yolos(implementation="eager"), image)
    for query, token in (("class", 0), ((0, 0), 1), ((3, 6), 28), ("detection 0", 29), ("detection 4", 33)):
        found = attention_map(recorded, layer=2, query=query, head=1)  # type: ignore[arg-type]
        row = truth[2][1, token]
        np.testing.assert_allclose(
            found.values, row[1:29].reshape(GRID), rtol=0, atol=1e-5 * float(row.max())
        )
        np.testing.assert_allclose(
            list(found.suffix.values()), row[29:], rtol=0, atol=1e-5 * float(row.max())
        )
        assert found.total == pytest.approx(1, abs=1e-6)
        assert found.suffix_kinds == pytest.approx({"detection": float(row[29:].sum())}, rel=1e-5)


def test_rollout_of_yolos_is_the_product_of_its_own_matrices(image: Tensor) -> None:
    truth = np.stack(
        [layer.mean(0).double().numpy() for layer in truth_of(yolos(implementation="eager"), image)]
    )
    product = np.eye(34)
    for layer in truth:
        product = (0.5 * layer + 0.5 * np.eye(34)) @ product
    recorded = trace(yolos(), image)
    for query, token in (("class", 0), ((2, 5), 20), ("detection 3", 32)):
        found = rollout(recorded, query=query)  # type: ignore[arg-type]
        row = product[token]
        np.testing.assert_allclose(found.values, row[1:29].reshape(GRID), rtol=0, atol=1e-5 * row.max())
        np.testing.assert_allclose(list(found.suffix.values()), row[29:], rtol=0, atol=1e-5 * row.max())
        assert found.total == pytest.approx(1, abs=1e-6)


def test_a_traced_yolos_travels_with_its_suffix(image: Tensor) -> None:
    recorded = trace(yolos(), image, keep_residual=True, keep_values=True)
    arrived = PackedTrace.of(recorded).unpacked()
    assert arrived.layout == recorded.layout
    assert recorded.residual.shape == (LAYERS + 1, 34, 24)
    shown = attention_map(arrived, layer=3, query="detection 2", norm_weighted=True)
    np.testing.assert_allclose(
        shown.values,
        attention_map(recorded, layer=3, query="detection 2", norm_weighted=True).values,
        rtol=2e-2,
    )


def test_a_target_of_yolos_is_refused_in_a_sentence(image: Tensor) -> None:
    with pytest.raises(ParameterError, match=r"returns no scores .*output\['logits'\] \["):
        trace(yolos(), image, target=3)


class Pooled(nn.Module):
    """Two layers over register, patches and two more tokens; a learned query pools the patches only."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Conv2d(3, 24, 8, 8)
        self.named, self.query = nn.Parameter(torch.zeros(1, 3, 24)), nn.Parameter(torch.zeros(1, 3, 1, 8))
        self.blocks = nn.ModuleList([nn.Linear(24, 72) for _ in range(2)])
        self.pool, self.head = nn.Linear(24, 48), nn.Linear(24, 7)

    def forward(self, pixels: Tensor) -> Tensor:
        patches = self.embed(pixels).flatten(2).transpose(1, 2)
        x = torch.cat([self.named[:, :1], patches, self.named[:, 1:]], 1)
        for block in self.blocks:
            q, k, v = block(F.layer_norm(x, (24,))).unflatten(-1, (3, 3, 8)).permute(2, 0, 3, 1, 4)
            x = x + F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        k, v = self.pool(x[:, 1:-2]).unflatten(-1, (2, 3, 8)).permute(2, 0, 3, 1, 4)
        logits: Tensor = self.head(
            F.scaled_dot_product_attention(self.query, k, v).transpose(1, 2).flatten(1)
        )
        return logits


def test_a_pool_over_patches_gives_prefix_and_suffix_tokens_no_weight(image: Tensor) -> None:
    layout = TokenLayout(
        grid=GRID, prefix=("register 0",), pooling="attention", suffix=("detection 0", "detection 1")
    )
    recorded = trace(lively(Pooled()), image, layout=layout, target=2)
    for pool in (recorded.pooling_attention, recorded.pooling_gradient):
        assert pool.shape == (3, 31)
        assert not pool[:, [0, 29, 30]].any()
        assert pool[:, 1:29].ne(0).all()


def test_a_layout_that_does_not_fit_tells_its_suffix(image: Tensor) -> None:
    layout = TokenLayout(grid=GRID, prefix=("class",), suffix=("detection 0", "detection 1"))
    with pytest.raises(
        (ParameterError, CaptureError), match=r"31 tokens \(1 prefix \+ 4 x 7 patches \+ 2 suffix\)"
    ):
        trace(yolos(), image, layout=layout)
    assert isinstance(trace(yolos(), image), Trace)
