"""Token layouts that a module's attributes determine, and what is advised where they do not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from vit_viz.capture.layouts import inferred_layout, plain_layout
from vit_viz.capture.tokens_read import as_source
from vit_viz.geometry import TokenLayout

SIZE, GRID = (64, 96), (4, 6)
REGISTERS = ("register 0", "register 1")


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (0, 0, "prefix=()"),
        (1, 0, "prefix=('class',)"),
        (3, 2, "prefix=('class', 'register 0', 'register 1'), suffix=('token 0', 'token 1')"),
    ],
)
def test_the_advised_layout_is_python(before: int, after: int, words: str) -> None:
    advised = as_source(plain_layout((4, 6), before, after))
    assert advised == f"TokenLayout(grid=(4, 6), {words})"
    layout = eval(advised, {"TokenLayout": TokenLayout})
    assert layout.num_tokens == before + 24 + after


def of_timm(**more: Any) -> SimpleNamespace:
    facts = {"cls_token": 1, "num_prefix_tokens": 1, "patch_embed": SimpleNamespace(grid_size=(4, 6))}
    return SimpleNamespace(**facts | more)


def of_transformers(kind: str, *, patch: Any = 16, **more: Any) -> SimpleNamespace:
    return SimpleNamespace(config=SimpleNamespace(model_type=kind, patch_size=patch, hidden_size=40, **more))


def of_torchvision(**more: Any) -> SimpleNamespace:
    return SimpleNamespace(**{"patch_size": 16, "class_token": 1} | more)


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        (of_timm(), TokenLayout(GRID)),
        (of_timm(global_pool="avg"), TokenLayout(GRID, pooling="mean")),
        (of_timm(global_pool="map"), TokenLayout(GRID, pooling="attention")),
        (of_timm(num_prefix_tokens=2, dist_token=1), TokenLayout(GRID, ("class", "distillation"))),
        (
            of_timm(num_prefix_tokens=2, cls_token=None, global_pool="token"),
            TokenLayout(GRID, REGISTERS, pooling="mean"),
        ),
        (
            of_timm(patch_embed=SimpleNamespace(grid_size=(9, 9), dynamic_feat_size=lambda _: (4, 6))),
            TokenLayout(GRID),
        ),
        (
            of_timm(
                patch_embed=None,
                cls_token=None,
                num_prefix_tokens=3,
                global_pool="map",
                embeds=SimpleNamespace(cls_token=1, dynamic_feat_size=lambda _: (4, 6)),
            ),
            TokenLayout(GRID, ("class", *REGISTERS), pooling="attention"),
        ),
        (of_transformers("vit"), TokenLayout(GRID)),
        (of_transformers("vit", patch=(16, 16)), TokenLayout(GRID)),
        (of_transformers("dinov2"), TokenLayout(GRID, ("class",))),
        (
            of_transformers("dinov2_with_registers", num_register_tokens=2),
            TokenLayout(GRID, ("class", *REGISTERS)),
        ),
        (of_transformers("deit"), TokenLayout(GRID, ("class", "distillation"))),
        (of_transformers("siglip"), TokenLayout(GRID, (), pooling="attention")),
        (of_transformers("beit", use_mean_pooling=True), TokenLayout(GRID, pooling="mean")),
        (
            of_transformers("yolos", num_detection_tokens=3),
            TokenLayout(GRID, suffix=("detection 0", "detection 1", "detection 2")),
        ),
        (of_torchvision(), TokenLayout(GRID)),
    ],
)
def test_a_layout_that_the_attributes_determine_is_known(module: Any, expected: TokenLayout) -> None:
    assert inferred_layout(module, size=SIZE, tokens=expected.num_tokens) == expected


@pytest.mark.parametrize(
    ("module", "tokens"),
    [
        (of_timm(), 26),
        (of_timm(patch_embed=SimpleNamespace()), 25),
        (of_timm(num_prefix_tokens=0), 25),
        (of_transformers("deit"), 25),
        (of_transformers("vit", patch=(16, 16, 16)), 25),
        (of_transformers("vit", patch="16"), 25),
        (of_transformers("vit", patch=(65, 16)), 25),
        (of_transformers("vit", patch=(16, 97)), 25),
        (of_torchvision(class_token=None), 25),
        (of_torchvision(patch_size=None), 25),
        (SimpleNamespace(layout=lambda *_: "none"), 25),
    ],
)
def test_a_layout_that_does_not_fit_is_not_known(module: Any, tokens: int) -> None:
    assert inferred_layout(module, size=SIZE, tokens=tokens) is None


def test_a_model_that_says_its_layout_is_believed() -> None:
    layout = TokenLayout(grid=(2, 3), prefix=())
    module = SimpleNamespace(layout=lambda height, width: layout if (height, width) == SIZE else None)
    assert inferred_layout(module, size=SIZE, tokens=6) == layout
