"""Small traces of odd sizes, made by hand, and their written-out matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.traces import trace_from
from vit_viz.answer import Provenance
from vit_viz.capture import Trace
from vit_viz.checkpoints import LoadedModel
from vit_viz.geometry import TokenLayout
from vit_viz.images import Preprocess
from vit_viz.model import VisionTransformer
from vit_viz.results import PatchMap

LAYERS, HEADS, HEAD_DIM, GRID, CLASSES = 3, 5, 8, (4, 6), 7
PREFIXES = {
    0: (),
    1: ("class",),
    2: ("class", "distillation"),
    5: ("class", "register 0", "register 1", "register 2", "register 3"),
}


RECIPE = Preprocess(input_size=(16, 36), patch_size=(4, 6))
MakeTrace = Callable[..., Any]


def loaded_from(model: VisionTransformer, **changes: Any) -> LoadedModel:
    return LoadedModel(
        model=model.requires_grad_(False),
        config=model.config,
        preprocess=RECIPE,
        labels=None,
        provenance=Provenance("odd", "odd"),
        name="odd",
        device=torch.device("cpu"),
        **changes,
    )


def patch_map(values: Any, *, method: str = "test", class_blind: bool = False) -> PatchMap:
    return PatchMap(
        np.asarray(values, np.float32),
        unit="weight",
        value_range=(0, 10),
        signed=False,
        method=method,
        class_blind=class_blind,
    )


@pytest.fixture
def make_trace() -> MakeTrace:
    """Builds a trace of random operands: make_trace(prefix=1, pooling=None, residual=..., ...)."""

    def make(
        *,
        prefix: int = 1,
        seed: int = 0,
        spread: float = 2.0,
        pooling: str | None = None,
        **options: Any,
    ) -> Trace:
        layout = TokenLayout(grid=GRID, prefix=PREFIXES[prefix], pooling=pooling)
        random = torch.Generator().manual_seed(seed)
        shape = (LAYERS, HEADS, layout.num_tokens, HEAD_DIM)
        q, k, v, grad = (torch.randn(shape, generator=random) for _ in range(4))
        operands = {"q": q * spread, "k": k, "v": v, "output_grad": grad}
        return trace_from(**operands | options, layout=layout)

    return make


@pytest.fixture
def trace_of() -> MakeTrace:
    """Builds a trace whose attention (and its gradient) is exactly what is given: trace_of(attention [layers, heads, N, N])."""

    def make(
        attention: Any,
        *,
        prefix: tuple[str, ...] = ("class",),
        grid: Any = None,
        gradient: Any = None,
        **options: Any,
    ) -> Trace:
        attention = torch.as_tensor(attention)
        tokens = attention.shape[-1]
        layout = TokenLayout(grid=grid or (1, tokens - len(prefix)), prefix=prefix)
        if gradient is not None:  # dA = do v^T with v = I
            same = torch.eye(tokens).expand(attention.shape).contiguous()
            options |= {"v": same, "output_grad": torch.as_tensor(gradient)}
        return trace_from(attention=attention, layout=layout, **options)

    return make


@pytest.fixture
def matrices() -> Callable[[Trace], Tensor]:
    """All attention of a trace, written out in fp64: [layers, heads, tokens, tokens]."""

    def written_out(trace: Trace) -> Tensor:
        scores = trace.q.double() @ trace.k.double().transpose(-1, -2) * HEAD_DIM**-0.5
        scores -= scores.amax(-1, keepdim=True)
        return torch.exp(scores) / torch.exp(scores).sum(-1, keepdim=True)

    return written_out


@pytest.fixture
def pixels() -> Tensor:
    """One random input of the tiny models, [1, 3, 16, 36]."""
    return torch.randn(1, 3, 16, 36, generator=torch.Generator().manual_seed(11))
