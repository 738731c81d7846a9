"""Models that pass information where no attention is, one group per line of what "proven" must prove, beside their honest twins."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor, nn

from benchmarks.cases.truth import REFUSED, RIGHT, TOLD, Case, Flow, Truth, raster
from tests.capture import readouts, tricks
from tests.capture.misleading import HEAD_DIM, HEADS, Attend, Block, Model
from tests.capture.models import SIZE
from tests.capture.tricks import AROUND, ATTENTIONS, EXCHANGE, HONEST, REPLACED, Build
from vit_viz.geometry import TokenLayout

PROVEN, TOLD_OR_REFUSED = frozenset({RIGHT}), frozenset({TOLD, REFUSED})
CLASS = TokenLayout(grid=(4, 6))
MEAN = TokenLayout(grid=(4, 6), pooling="mean")
JOINED = TokenLayout(grid=(4, 6), joins_patches=True)
PROMPTS = TokenLayout(grid=(4, 6), prefix=("class", "prompt 0", "prompt 1", "prompt 2"))

TWINS: dict[str, tuple[str, ...]] = {
    "between tokens": (
        "each token changed by itself",
        "each token normalised by itself",
        "each token gated by itself in the MLP",
        "batch norm in eval mode",
    ),
    "from layer to layer": (
        "plain",
        "more tokens that stay",
        "norm after the sum",
        "LayerScale of 1e-5",
        "a class token of zeros",
    ),
    "around the layers": (
        "positions in every block",
        "attention and MLP side by side",
        "norms by hand, dropout and sums in place",
    ),
}
"""Which honest models come close to the tricks of each line."""


def cases() -> Iterator[Case]:
    """Each trick and each twin with one kind of attention, by turns; the first of each line with all kinds and precisions."""
    groups = {"between tokens": EXCHANGE, "from layer to layer": REPLACED, "around the layers": AROUND}
    for line, group in groups.items():
        yield from _by_turns(line, group, TOLD_OR_REFUSED, "other")
        yield from _by_turns(f"{line}, honest", {name: HONEST[name] for name in TWINS[line]}, PROVEN, "chain")
    yield from _answers()


def _by_turns(line: str, group: dict[str, Build], ends: frozenset[str], flow: Flow) -> Iterator[Case]:
    kinds = list(ATTENTIONS)
    for number, (name, build) in enumerate(group.items()):
        for kind in kinds if number == 0 else [kinds[number % len(kinds)]]:
            layout = PROMPTS if "prompts" in name or "more tokens" in name else CLASS
            yield _case(f"{line}: {name}, {kind}", partial(build, ATTENTIONS[kind]), layout, ends, flow)
        if number == 0:
            for dtype in (torch.float16, torch.bfloat16):
                made = partial(_in_precision, partial(build, Attend), dtype)
                words = f"{line}: {name}, {str(dtype).removeprefix('torch.')}"
                yield _case(words, made, PROMPTS if "prompts" in name else CLASS, ends, flow)


def _answers() -> Iterator[Case]:
    """What the answer reads, against the layout."""
    named = [
        *((kind, CLASS) for kind in tricks.POOLED_AS_CLASS),
        *((kind, MEAN) for kind in tricks.POOLED_AS_MEAN),
    ]
    named.append((tricks.ReadsAPatchToo, JOINED))
    for kind, layout in named:
        words = f"the answer: {kind.__name__}, named {'both' if layout.joins_patches else layout.pooling}"
        # the blocks are a chain, so that maps from a token are right: only what the pool is called is not
        yield _case(words, partial(_of_blocks, kind), layout, TOLD_OR_REFUSED, "chain")
    for read in (readouts.unetr, readouts.with_skips, readouts.layer_before):
        yield _case(
            f"the answer: a map, {read.__name__}",
            partial(readouts.readout, read),
            CLASS,
            TOLD_OR_REFUSED,
            "altered",
        )
    for read in (readouts.segmenter, readouts.smooth_segmenter, readouts.convolved):
        yield _case(
            f"the answer, honest: a map, {read.__name__}",
            partial(readouts.readout, read),
            CLASS,
            PROVEN,
            "chain",
        )
    for kind, layout in ((Model, CLASS), (tricks.ReadsTheMean, MEAN), (tricks.ReadsTheMeanToo, JOINED)):
        yield _case(
            f"the answer, honest: {kind.__name__}", partial(_of_blocks, kind), layout, PROVEN, "chain"
        )


def _of_blocks(kind: type[Model]) -> nn.Module:
    return kind([Block(Attend) for _ in range(3)])


def _case(
    name: str, build: Callable[[], nn.Module], layout: TokenLayout, ends: frozenset[str], flow: Flow
) -> Case:
    return Case(name, partial(_told, build, layout), partial(truth, layout=layout, flow=flow), SIZE, ends)


def _told(build: Callable[[], nn.Module], layout: TokenLayout) -> nn.Module:
    """A model that tells its layout."""
    model = build()
    model.layout = lambda *_: layout  # type: ignore[assignment, method-assign, operator]
    return model


class _Converting(nn.Module):
    """A model of another precision, for pixels in fp32."""

    def __init__(self, inner: nn.Module, dtype: torch.dtype) -> None:
        super().__init__()
        self.inner, self.dtype = inner.to(dtype), dtype

    def forward(self, image: Tensor) -> Tensor:
        return self.inner(image.to(self.dtype)).float()  # type: ignore[no-any-return]


def _in_precision(build: Callable[[], nn.Module], dtype: torch.dtype) -> nn.Module:
    return _Converting(build(), dtype)


def truth(model: nn.Module, pixels: Tensor, *, layout: TokenLayout, flow: Flow) -> Truth:
    """The formula of each attention, from what enters it."""
    seen: list[Tensor] = []
    for part in model.modules():
        if isinstance(part, Attend | tricks.MultiHead):
            part.register_forward_pre_hook(lambda module, given: seen.append(weights_of(module, *given)))
    with torch.no_grad():
        model(pixels)
    return Truth(seen, layout.grid, raster(layout.grid, first=layout.num_prefix), 0, flow=flow)


def weights_of(attention: nn.Module, x: Tensor) -> Tensor:
    """softmax(q k^T / sqrt(head_dim)) of one image, [heads, queries, keys]."""
    if isinstance(attention, tricks.MultiHead):
        inner = attention.inner
        assert inner.in_proj_weight is not None
        projected = x[0] @ inner.in_proj_weight.T + inner.in_proj_bias
    else:
        projected = attention.qkv(x)[0]  # type: ignore[operator]
    q, k = (part.reshape(len(part), HEADS, HEAD_DIM).transpose(0, 1) for part in projected.chunk(3, -1)[:2])
    return (q.float() @ k.float().transpose(1, 2) * HEAD_DIM**-0.5).softmax(-1)  # type: ignore[no-any-return]
