"""Tokens after the patches: every analysis gives what it gives for the same tokens before the patches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.capture.models import Detector
from tests.traces import trace_from
from vit_viz.analyses.ablation import ablate_heads
from vit_viz.analyses.attention import attention_map, mosaic_maps
from vit_viz.analyses.explain import explain
from vit_viz.analyses.heads import head_table
from vit_viz.analyses.norms import token_norms
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.analyses.relevance import gradient_rollout, relevance
from vit_viz.analyses.removal import outputs_without, removed_scores
from vit_viz.analyses.rollout import rollout
from vit_viz.analyses.targets import class_logit
from vit_viz.capture import Trace, trace
from vit_viz.errors import ParameterError
from vit_viz.geometry import TokenLayout
from vit_viz.results import PatchMap

PREFIX, SUFFIX = ("class", "register 0"), ("detection 0", "detection 1", "text")
GRID = Detector.GRID
LAST = TokenLayout(grid=GRID, prefix=PREFIX, suffix=SUFFIX)
FIRST = TokenLayout(grid=GRID, prefix=PREFIX + SUFFIX)
MOVED = [0, 1, 30, 31, 32, *range(2, 30)]
"""Which token of the sequence with a suffix stands where in the one without."""


def pair(*, pooling: Any = None, seed: int = 0, **extra: Any) -> tuple[Trace, Trace]:
    """The same pass with three tokens after the patches, and before them."""
    random = torch.Generator().manual_seed(seed)
    q, k, v, grad = (torch.randn(3, 5, 33, 8, generator=random) for _ in range(4))
    stream = torch.randn(4, 33, 40, generator=random)
    pool = torch.randn(2, 5, 33, generator=random) if pooling == "attention" else None
    projections = [torch.randn(40, 40, generator=random) for _ in range(3)]
    traces = []
    for names, order in ((LAST, list(range(33))), (FIRST, MOVED)):
        tensors = {"q": 2 * q, "k": k, "v": v, "output_grad": grad}
        options: dict[str, Any] = {name: tensor[:, :, order] for name, tensor in tensors.items()}
        if pool is not None:
            options |= {
                "pooling_attention": pool[0].softmax(-1)[:, order],
                "pooling_gradient": pool[1][:, order],
            }
        layout = TokenLayout(grid=GRID, prefix=names.prefix, pooling=pooling, suffix=names.suffix)
        options |= {"residual": stream[:, order], "projections": projections, **extra}
        traces.append(trace_from(layout=layout, **options))
    return traces[0], traces[1]


def assert_same(got: PatchMap, expected: PatchMap) -> None:
    """Equal on the patches and on every named token, and with the suffix where it belongs."""
    assert list(got.prefix) == list(PREFIX)
    assert list(got.suffix) == list(SUFFIX)
    assert not expected.suffix
    floor = 1e-5 * float(np.abs(expected.values).max())
    np.testing.assert_allclose(got.values, expected.values, rtol=0, atol=floor)
    assert dict(got.prefix) | dict(got.suffix) == pytest.approx(dict(expected.prefix), rel=1e-5, abs=floor)
    assert got.total == pytest.approx(expected.total, rel=1e-5, abs=1e-6)
    assert got.suffix_kinds == pytest.approx(
        {"detection": got.suffix["detection 0"] + got.suffix["detection 1"], "text": got.suffix["text"]}
    )


QUERIES = ["class", (3, 6), (0, 0), [(0, 1), (3, 5)], "detection 1", "text"]


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("direction", ["row", "column"])
@pytest.mark.parametrize("norm_weighted", [False, True])
def test_attention_maps_do_not_depend_on_where_named_tokens_stand(query, direction, norm_weighted):
    last, first = pair()
    for head in (3, "mean", "max", "min"):
        options = {
            "layer": 1,
            "query": query,
            "head": head,
            "direction": direction,
            "norm_weighted": norm_weighted,
        }
        assert_same(attention_map(last, **options), attention_map(first, **options))
    np.testing.assert_allclose(
        mosaic_maps(last, query=query, direction=direction),
        mosaic_maps(first, query=query, direction=direction),
        rtol=0,
        atol=1e-5,
    )


@pytest.mark.parametrize("pooling", [None, "mean", "attention"])
@pytest.mark.parametrize("discard", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("fusion", ["mean", "max"])
def test_rollout_does_not_depend_on_where_named_tokens_stand(pooling, discard, fusion):
    last, first = pair(pooling=pooling)
    for query in ("pool", *QUERIES):
        options = {"query": query, "discard": discard, "head_fusion": fusion}
        assert_same(rollout(last, **options), rollout(first, **options))


@pytest.mark.parametrize("pooling", [None, "mean", "attention"])
def test_gradient_methods_do_not_depend_on_where_named_tokens_stand(pooling):
    last, first = pair(pooling=pooling)
    for query in ("pool", "detection 1"):
        assert_same(relevance(last, query=query), relevance(first, query=query))
        assert_same(gradient_rollout(last, query=query), gradient_rollout(first, query=query))


def test_a_class_token_may_stand_last():
    random = torch.Generator().manual_seed(3)
    q, k = (torch.randn(2, 3, 11, 8, generator=random) for _ in range(2))
    order = [10, *range(10)]
    last = trace_from(q=q, k=k, layout=TokenLayout(grid=(2, 5), prefix=(), suffix=("class",)))
    first = trace_from(q=q[:, :, order], k=k[:, :, order], layout=TokenLayout(grid=(2, 5)))
    for query in (None, "class", "pool", (1, 3)):
        got, expected = rollout(last, query=query), rollout(first, query=query)
        np.testing.assert_allclose(got.values, expected.values, rtol=1e-5)
        assert (got.signed, got.note) == (expected.signed, expected.note)
        assert got.suffix == pytest.approx(dict(expected.prefix), rel=1e-5)


@pytest.mark.parametrize("measure", ["distance", "entropy", "diagonal_mass", "rollout_share", "norm"])
def test_head_statistics_do_not_depend_on_where_named_tokens_stand(measure):
    last, first = pair()
    tables = [head_table(one, measure=measure, patch_size=(16, 8)).values for one in (last, first)]
    np.testing.assert_allclose(tables[0], tables[1], rtol=1e-5)


def test_prefix_suffix_and_patches_share_the_attention_of_patches():
    last, first = pair()
    prefix, suffix = (head_table(last, measure=name).values for name in ("prefix_mass", "suffix_mass"))
    assert suffix.min() > 0
    np.testing.assert_allclose(prefix + suffix, head_table(first, measure="prefix_mass").values, rtol=1e-5)
    assert not head_table(first, measure="suffix_mass").values.any()


def test_a_kind_that_is_a_prefix_token_keeps_its_number():
    layout = TokenLayout(grid=(1, 3), prefix=("class",), suffix=("class 1", "class 2"))
    uniform = torch.full((1, 1, 6, 6), 1 / 6)
    row = attention_map(trace_from(attention=uniform, layout=layout), layer=0)
    assert row.suffix_kinds == pytest.approx({"class 1": 1 / 6, "class 2": 1 / 6})


def test_sinks_are_named_by_what_they_are():
    last, _ = pair()
    last.residual[1, [1, 7, 31]] *= 50
    outliers = token_norms(last).outliers[1]
    assert tuple(last.layout.name(token) for token in outliers) == (
        "register 0",
        "patch (0, 5)",
        "detection 1",
    )


@pytest.fixture
def image() -> Tensor:
    return torch.randn(1, 3, 16, 42, generator=torch.Generator().manual_seed(2))


METHODS = ("attention", "rollout", "gradient_rollout", "relevance", "integrated_gradients", "occlusion")


def test_explanations_do_not_depend_on_where_named_tokens_stand(image):
    last, first = (
        explain(Detector(LAST if last else FIRST), image, methods=METHODS, target=4) for last in (True, False)
    )
    for method in METHODS:
        floor = 1e-4 * float(np.abs(first[method].values).max())
        np.testing.assert_allclose(last[method].values, first[method].values, rtol=0, atol=floor)


def test_removal_takes_the_patches_and_leaves_the_suffix(image):
    gone = [(0, 0), (1, 6), (3, 6), (2, 3)]
    results = [
        outputs_without(PreparedImage.of(Detector(LAST if last else FIRST), image), gone)
        for last in (True, False)
    ]
    torch.testing.assert_close(results[0], results[1], rtol=0, atol=1e-5 * float(results[1].abs().max()))
    assert (results[0] - Detector(LAST)(image)[0]).abs().max() > 1e-2
    sets = np.random.default_rng(0).random((11, 28)) < 0.4
    scores = [
        removed_scores(PreparedImage.of(Detector(LAST if last else FIRST), image), class_logit(2), sets)
        for last in (True, False)
    ]
    np.testing.assert_allclose(scores[0], scores[1], rtol=0, atol=1e-5 * np.abs(scores[1]).max())


def test_relevance_starts_at_the_token_that_the_target_is_read_from(image):
    recorded = trace(Detector(LAST, read="detection 1"), image, target=4)
    with pytest.raises(ParameterError, match=r'not read from text token: .* such as query="detection 1"'):
        gradient_rollout(recorded, query="text")
    found = relevance(recorded)
    np.testing.assert_array_equal(found.values, relevance(recorded, query="detection 1").values)
    expected = torch.eye(33)
    for layer in range(3):
        product = recorded.attention_gradient(layer) * recorded.attention(layer)
        expected = expected + product.clamp(min=0).mean(0) @ expected
    row = expected[31, 2:30].reshape(GRID).numpy()
    np.testing.assert_allclose(found.values, row, rtol=0, atol=1e-5 * row.max())
    assert found.caption.endswith("from detection 1")


def test_a_model_without_class_scores_is_refused_in_a_sentence(image):
    class Boxes(Detector):
        def forward(self, pixels: Tensor) -> Tensor:
            return super().forward(pixels)[:, None].expand(-1, 3, -1)

    model = Boxes(LAST)
    assert trace(model, image).logits is None
    for refused in (lambda: explain(model, image, methods=("rollout",)), lambda: ablate_heads(model, image)):
        with pytest.raises(ParameterError, match=r"returns no scores .*, but output \[1, 3, "):
            refused()
