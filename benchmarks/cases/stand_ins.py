"""Small models written for this: unusual blocks, tokens in unusual places, and models as tutorials write them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.cases.truth import REFUSED, RIGHT, SOUND, TOLD, Case, Flow, Truth, nothing, raster
from tests.capture import stand_ins, tutorials
from tests.capture.stand_ins import GRID, PATCHES, SIZE, Attention, StandIn

PROVEN = frozenset({RIGHT})
NOT_PROVEN = frozenset({TOLD, REFUSED})
_FLOWS: tuple[Flow, ...] = ("chain", "altered", "other")

UNUSUAL: dict[str, type[nn.Module]] = {
    "aten flash kernel": stand_ins.AtenFlash,
    "aten attention": stand_ins.AtenAttention,
    "aten softmax": stand_ins.AtenSoftmax,
    "a manual exponential": stand_ins.ManualExponential,
    "sigmoid attention": stand_ins.SigmoidAttention,
    "linear attention": stand_ins.LinearAttention,
    "a scripted attention": stand_ins.Scripted,
    "queries in chunks": stand_ins.ChunkedQueries,
    "a call per head": stand_ins.HeadByHead,
    "a learned key prefix": stand_ins.KeyPrefix,
    "softmax plus one": stand_ins.SoftmaxPlusOne,
    "a token mixer": stand_ins.TokenMixer,
    "channel attention": stand_ins.ChannelAttention,
}
"""May be seen or not: whatever a trace says of them must be true."""

ALTERED: dict[str, type[nn.Module]] = {
    "a gate after attention": stand_ins.Gated,
    "talking heads after the softmax": stand_ins.TalkingAfter,
    "weights sharpened after the softmax": stand_ins.Sharpened,
    "weights changed in place": stand_ins.ChangedInPlace,
    "values convolved beside attention": stand_ins.WithConvolution,
    "a difference of two attentions": stand_ins.Difference,
    "a gated mixture of two attentions": stand_ins.Mixture,
    "attention of its own output": stand_ins.Twice,
    "one attention applied twice": stand_ins.AppliedTwice,
    "values added to attention": stand_ins.ValuesAdded,
    "the mean of values subtracted": stand_ins.MeanRemoved,
}
"""Never proven: what reaches the output is not the attention alone."""

SEEN: dict[str, tuple[type[nn.Module], frozenset[str]]] = {
    "plain attention": (Attention, PROVEN),
    "nn.MultiheadAttention": (stand_ins.MultiHead, PROVEN),
    "talking heads before the softmax": (stand_ins.TalkingBefore, PROVEN),
    "one window": (stand_ins.OneWindow, PROVEN),
    "shared keys by broadcasting": (stand_ins.SharedKeys, SOUND),
    "tokens rolled within attention": (stand_ins.Rolled, NOT_PROVEN),
    "keys rolled within attention": (stand_ins.TurnedKeys, NOT_PROVEN),
}


def cases() -> Iterator[Case]:
    """All stand-ins."""
    yield from (of_blocks(name, [kind] * 3, ends) for name, (kind, ends) in SEEN.items())
    yield from (
        of_blocks(f"{name}, in 2 of 4 blocks", [Attention, kind] * 2) for name, kind in UNUSUAL.items()
    )
    yield from (of_blocks(f"{name}, in all blocks", [kind] * 3) for name, kind in UNUSUAL.items())
    yield from (of_blocks(name, [kind] * 3, NOT_PROVEN) for name, kind in ALTERED.items())
    yield from _mlps()
    yield from _orders()
    yield from _structures()
    yield from _tutorials()


def of_blocks(
    name: str,
    attentions: Sequence[Callable[[], nn.Module]],
    ends: frozenset[str] | None = None,
    **choices: Any,
) -> Case:
    """A stand-in of these blocks."""
    return _case(name, partial(StandIn, attentions, **choices), ends)


def stand_in_truth(model: nn.Module, pixels: Tensor) -> Truth:
    """What each attention says of itself, with the tokens where the model is built to have them."""
    assert isinstance(model, StandIn)
    calls: list[Tensor] = []
    blocks: list[nn.Module] = []
    for part in model.modules():
        if hasattr(part, "calls"):
            part.register_forward_pre_hook(lambda module, args: calls.extend(module.calls(*args)))
        if isinstance(part, stand_ins.Block):
            part.register_forward_pre_hook(lambda module, _: blocks.append(module))
    with torch.no_grad():
        model(pixels)
    flows = [getattr(part, "flow", "chain") for part in model.modules()]
    return Truth(
        calls,
        GRID,
        model.places(),
        model.class_place,
        flow=max(flows, key=_FLOWS.index),
        blocks=len(blocks) or None,
    )


def _case(name: str, build: Callable[[], nn.Module], ends: frozenset[str] | None = None) -> Case:
    chosen = {} if ends is None else {"ends": ends}
    return Case(f"stand-in: {name}", build, stand_in_truth, SIZE, **chosen)


def _mlps() -> Iterator[Case]:
    yield of_blocks("convolutions in the MLP", [Attention] * 3, NOT_PROVEN, mlp=stand_ins.ConvolutionMlp)
    yield of_blocks("dilated convolutions in the MLP", [Attention] * 3, NOT_PROVEN, mlp=stand_ins.DilatedMlp)
    yield of_blocks(
        "squeeze and excitation in the MLP", [Attention] * 3, NOT_PROVEN, mlp=stand_ins.SqueezeMlp
    )
    yield of_blocks("a square router in the MLP", [Attention] * 3, mlp=stand_ins.RoutedMlp)


def _orders() -> Iterator[Case]:
    columns = torch.arange(PATCHES).reshape(GRID).T.flatten()
    shuffled = torch.randperm(PATCHES, generator=torch.Generator().manual_seed(2))
    snake = torch.arange(PATCHES).reshape(GRID)
    snake[1::2] = snake[1::2].flip(1)
    orders = {
        "columns": columns,
        "reverse": torch.arange(PATCHES).flip(0),
        "a fixed shuffle": shuffled,
        "a snake": snake.flatten(),
    }
    for name, order in orders.items():
        yield of_blocks(f"patches in {name}", [Attention] * 3, NOT_PROVEN, order=order)
    yield of_blocks("class token last", [Attention] * 3, class_token="last")
    yield of_blocks("no class token", [Attention] * 3, PROVEN, class_token="none")
    yield of_blocks("one head in windows", [stand_ins.WindowsAsHeads] * 3, NOT_PROVEN, class_token="none")
    yield _case(
        "patches shuffled anew in each pass", partial(stand_ins.RandomShuffle, [Attention] * 3), NOT_PROVEN
    )
    yield _case(
        "patches shuffled between blocks", partial(stand_ins.ShuffledBetween, [Attention] * 3), NOT_PROVEN
    )
    yield _case(
        "patches dropped before the blocks", partial(stand_ins.DropsFirst, [Attention] * 3), NOT_PROVEN
    )
    yield _case("patches merged after block 0", partial(stand_ins.MergesLater, [Attention] * 3), NOT_PROVEN)
    for name, kind in (("tokens", stand_ins.Rolled), ("keys", stand_ins.TurnedKeys)):
        yield of_blocks(f"{name} rolled in the later blocks", [Attention, Attention, kind, kind], NOT_PROVEN)
    for name, model in (
        ("rows mirrored", stand_ins.MirroredBetween),
        ("two patches swapped", stand_ins.SwappedBetween),
    ):
        yield _case(f"{name} between blocks", partial(model, [Attention] * 3), NOT_PROVEN)


def _structures() -> Iterator[Case]:
    yield _case("checkpointed blocks", partial(stand_ins.Checkpointed, [Attention] * 3), PROVEN)
    yield _case("one block run three times", partial(stand_ins.Shared, [Attention]))
    yield _case("blocks as attributes", stand_ins.Attributes)
    yield _case("image and mirror image averaged", partial(stand_ins.TwoPasses, [Attention] * 3), NOT_PROVEN)
    yield _case("cross-attention of equal length", stand_ins.Decoder, NOT_PROVEN)
    yield _case("encoder and decoder", stand_ins.EncoderDecoder, NOT_PROVEN)
    yield _case("two attentions in sequence", stand_ins.InSequence)
    yield _case("class token attends apart", stand_ins.ClassApart, NOT_PROVEN)
    yield _case("attention and MLP in turn", stand_ins.Flat, PROVEN)
    yield _case("attention and MLP in pairs", stand_ins.Pairs, PROVEN)
    yield _case("attention and MLP in one pair", partial(stand_ins.Pairs, depth=1), PROVEN)
    yield _case("a buffer that counts passes", stand_ins.Counting, PROVEN)
    yield Case(
        "stand-in: pixels left over", partial(StandIn, [Attention] * 3), stand_in_truth, (29, 47), PROVEN
    )
    yield _case("two attentions in parallel", stand_ins.Parallel, NOT_PROVEN)


def _tutorials() -> Iterator[Case]:
    for attention in (
        tutorials.FusedQkv,
        tutorials.SeparateEinops,
        tutorials.KeysFirst,
        tutorials.WrongAxis,
        tutorials.MultiHead,
    ):
        build = partial(tutorials.TutorialViT, attention)
        yield Case(
            f"tutorial: {attention.__name__}", build, partial(tutorial_truth, grid=(4, 6)), (64, 96), PROVEN
        )
    oracle = partial(tutorial_truth, grid=(3, 5), has_class=False)
    yield Case(
        "tutorial: UnfoldSinusoidal", tutorials.UnfoldSinusoidal, oracle, (60, 100), PROVEN, channels=1
    )
    for norm_first in (True, False):
        for batch_first in (True, False):
            words = f"norm {'first' if norm_first else 'last'}, batch {'first' if batch_first else 'second'}"
            build = partial(stand_ins.EncoderViT, batch_first=batch_first, norm_first=norm_first)
            yield Case(f"nn.TransformerEncoder, {words}", build, encoder_truth, SIZE, PROVEN)
    yield Case("no attention at all", _Convolutions, nothing, SIZE, frozenset({REFUSED}))


def tutorial_truth(
    model: nn.Module, pixels: Tensor, *, grid: tuple[int, int], has_class: bool = True
) -> Truth:
    """The formula of each tutorial's attention, from what enters it."""
    seen: list[Tensor] = []
    for layer in model.layers:  # type: ignore[union-attr]
        layer.attention.register_forward_pre_hook(lambda module, args: seen.append(_formula(module, *args)))
    with torch.no_grad():
        model(pixels)
    return Truth(seen, grid, raster(grid, first=int(has_class)), 0 if has_class else None)


def _formula(attention: Any, x: Tensor) -> Tensor:
    """[heads, queries, keys]"""
    heads = tutorials.HEADS
    if isinstance(attention, tutorials.MultiHead):
        weight, bias = attention.attention.in_proj_weight, attention.attention.in_proj_bias
        projected = [*(x[0] @ weight.T + bias).chunk(3, dim=-1)]
    elif isinstance(attention, tutorials.SeparateEinops):
        projected = [attention.to_q(x)[0], attention.to_k(x)[0]]
    else:
        projected = [*attention.qkv(x)[0].chunk(3, dim=-1)]
    q, k = (each.reshape(len(each), heads, -1).transpose(0, 1) for each in projected[:2])
    return (q @ k.transpose(1, 2) * tutorials.HEAD_DIM**-0.5).softmax(
        -2 if isinstance(attention, tutorials.WrongAxis) else -1
    )


def encoder_truth(model: nn.Module, pixels: Tensor) -> Truth:
    """What torch's own layers return of their weights, given what enters each of them."""
    seen: list[Tensor] = []

    def look(layer: Any, args: tuple[Tensor, ...]) -> None:
        x = layer.norm1(args[0]) if layer.norm_first else args[0]
        seen.append(layer.self_attn(x, x, x, average_attn_weights=False)[1][0])

    for layer in model.encoder.layers:  # type: ignore[union-attr]
        layer.register_forward_pre_hook(look)
    with torch.no_grad():
        model(pixels)
    return Truth(seen, GRID, raster(GRID, first=0))


class _Convolutions(nn.Sequential):
    """A small network of convolutions."""

    def __init__(self) -> None:
        super().__init__(
            nn.Conv2d(3, 12, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(12, 7)
        )
