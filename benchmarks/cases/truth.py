"""What a model truly attends to, found without vit_viz.capture, and the models that are compared with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import torch
from torch import Tensor, nn

Flow = Literal["chain", "altered", "other"]
Oracle = Callable[[nn.Module, Tensor], "Truth"]

RIGHT, TOLD, REFUSED = "right and proven", "right, told", "refused"
WRONG, WRONG_TOLD, ERROR = "WRONG and proven", "wrong, told", "error"
SOUND = frozenset({RIGHT, TOLD, REFUSED})


@dataclass(frozen=True, eq=False)
class Truth:
    """A model's own attention on one image.

    Args:
        calls: every softmax over all tokens of the image in the order in which it ran, [heads, queries, keys]; none where the model
            attends over something else.
        grid: rows and columns of patches.
        places: which token each patch is, row by row, [patches], for all calls or one tensor per call; none where tokens are not
            patches.
        class_token: which token is the class token, where there is one.
        flow: "chain" where each block is one of `calls` and nothing else mixes tokens; "altered" where something stands between
            a block's attention and its output, or mixes tokens beside it; "other" where blocks are not one call each.
        blocks: how many blocks the model has; None: as many as calls.
        tolerance: largest relative difference of a map that its precision explains.
    """

    calls: list[Tensor]
    grid: tuple[int, int] = (1, 1)
    places: list[Tensor] = field(default_factory=list)
    class_token: int | None = None
    flow: Flow = "chain"
    blocks: int | None = None
    tolerance: float = 1e-4

    @property
    def num_blocks(self) -> int:
        """Blocks of the model."""
        return len(self.calls) if self.blocks is None else self.blocks

    def place(self, call: int) -> Tensor | None:
        """Which token each patch is in one call; None where tokens are not patches."""
        return self.places[min(call, len(self.places) - 1)] if self.places else None


@dataclass(frozen=True, eq=False)
class Case:
    """One model of the table.

    Args:
        name: of the model, unique.
        build: makes it, with random weights.
        oracle: what it attends to; is given a copy that it may change.
        size: height and width of its input.
        ends: verdicts that are right for it; by default any that does not mislead.
        channels: of its input.
        dtype: precision of the model and its input.
        is_fresh: its weights are as its library makes them, and not lively ones.
    """

    name: str
    build: Callable[[], nn.Module]
    oracle: Oracle
    size: tuple[int, int]
    ends: frozenset[str] = SOUND
    channels: int = 3
    dtype: torch.dtype = torch.float32
    is_fresh: bool = False

    def pixels(self) -> Tensor:
        """One random image."""
        generator = torch.Generator().manual_seed(1)
        return torch.randn(1, self.channels, *self.size, generator=generator).to(self.dtype)

    def model(self) -> nn.Module:
        """The model in eval mode, with the same weights each time."""
        torch.manual_seed(0)
        model = self.build()
        model = model.eval() if self.is_fresh else lively(model)
        return model if self.dtype == torch.float32 else model.to(self.dtype)


def lively(model: nn.Module) -> nn.Module:
    """Weights large enough that attention is far from uniform and every branch counts, so that a wrong formula shows."""
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                spread = 1.2 / (parameter.numel() / len(parameter)) ** 0.5
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * spread)
            elif 0 < parameter.abs().max() < 0.1:  # a layer scale that begins near 0
                parameter.fill_(0.5)
    return model.eval()


def first_block(model: nn.Module) -> nn.Module:
    """The first of the longest list of children of one class."""
    lists = [
        list(part.children()) for part in model.modules() if isinstance(part, nn.ModuleList | nn.Sequential)
    ]
    alike = [children for children in lists if len({type(child) for child in children}) == 1]
    return max(alike, key=len)[0]


@torch.no_grad()
def probed_places(
    model: nn.Module, pixels: Tensor, grid: tuple[int, int], block: nn.Module | None = None
) -> list[Tensor]:
    """Which token at the first block changes most where the pixels of one patch change, [patches]; none where two share a token."""
    with entering(block or first_block(model)) as states:
        model(pixels)
        for changed in changed_patches(pixels, grid):
            model(changed)
    moved = [(state - states[0]).norm(dim=1) for state in states[1:]]
    places = torch.stack([each.argmax() for each in moved])
    return [places] if len(places.unique()) == len(places) else []


def changed_patches(pixels: Tensor, grid: tuple[int, int]) -> Iterator[Tensor]:
    """The image with one patch changed, patch by patch."""
    height, width = pixels.shape[-2] / grid[0], pixels.shape[-1] / grid[1]
    noise = torch.randn(pixels.shape, generator=torch.Generator().manual_seed(3))
    for row in range(grid[0]):
        for col in range(grid[1]):
            part = (
                ...,
                slice(round(row * height), round((row + 1) * height)),
                slice(round(col * width), round((col + 1) * width)),
            )
            changed = pixels.clone()
            changed[part] += noise[part]
            yield changed


@contextmanager
def entering(block: nn.Module) -> Iterator[list[Tensor]]:
    """What enters a block, one vector per token, [tokens, dim], for each forward pass."""
    states: list[Tensor] = []

    def keep(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        state = args[0] if args else kwargs["hidden_states"]
        states.append(state.detach().reshape(-1, state.shape[-1]).clone())

    handle = block.register_forward_pre_hook(keep, with_kwargs=True)
    try:
        yield states
    finally:
        handle.remove()


def raster(grid: tuple[int, int], *, first: int) -> list[Tensor]:
    """Places of patches that follow `first` other tokens row by row."""
    return [torch.arange(grid[0] * grid[1]) + first]


def nothing(_: nn.Module, __: Tensor) -> Truth:
    """The truth of a model none of whose attention is over all patches of the image: no map of it can be right."""
    return Truth([], flow="other")


def with_flow(oracle: Oracle, flow: Flow, *, blocks: int | None = None) -> Oracle:
    """The same calls, of a model that uses them in another way."""
    return lambda model, pixels: replace(oracle(model, pixels), flow=flow, blocks=blocks)
