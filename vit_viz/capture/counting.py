"""The layer that an attention call belongs to."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from types import FrameType

from vit_viz.errors import CaptureError
from vit_viz.lazy import nn
from vit_viz.model import Attention, AttentionPool, Block


class LayerCounter:
    """Which layer an attention call belongs to, for code that may run a model several times, or only a part of it.

    Within one call of a module the layers count up. In a later call, an attention module that was seen
    before keeps its layer; a new one is the next layer (blocks that are called one by one). A block of our own model that is
    called by itself, or its attention, has its own.

    Args:
        first: index of the first layer.
        outside: frame of the `with` statement; modules further out do not count.
    """

    def __init__(self, first: int = 0, outside: FrameType | None = None) -> None:
        self._first, self.outside = first, outside
        self._root: FrameType | None = None
        self._layer: int | None = None
        self._layers: dict[tuple[int, ...], int] = {}
        self.seen: set[int] = set()

    def next(self) -> int:
        """The layer of the call that is being made."""
        root, site = self._where()
        part = None if root is None else root.f_locals["self"]
        if isinstance(part, Block | Attention):  # of our own model, by itself: it knows its place
            layer = (part.attn if isinstance(part, Block) else part).layer
        elif self._layer is None:
            layer = self._first
        elif root is self._root or site not in self._layers:
            layer = self._layer + 1
        else:
            layer = self._layers[site]
        self._root, self._layer = root, layer
        self._layers.setdefault(site, layer)
        self.seen.add(layer)
        return layer

    def forget(self) -> None:
        """Release the frames that were inspected."""
        self._root = self.outside = None

    def _where(self) -> tuple[FrameType | None, tuple[int, ...]]:
        """The outermost call of a module on the stack, and the two innermost modules."""
        root: FrameType | None = None
        owners: list[int] = []
        for frame, module in modules_around(self.outside):
            root = frame
            if not owners or owners[-1] != id(module):
                owners.append(id(module))
        return root, tuple(owners[:2])


class OwnLayers(LayerCounter):
    """Layers of our own model, whichever part of it runs: each attention knows the block that it stands in."""

    def next(self) -> int:
        """The layer of the call that is being made; -1 for the pool's attention over one token, which is none."""
        for _, module in modules_around():
            if isinstance(module, Attention | AttentionPool):
                layer = module.layer if isinstance(module, Attention) else -1
                self.seen.add(layer)
                return layer
        return super().next()  # somebody put an attention of their own into it


class ListedLayers(LayerCounter):
    """Layers that are known already, in the order of the calls: of a whole pass, or of a checkpointed block that runs again."""

    def __init__(self, layers: Iterable[int]) -> None:
        super().__init__()
        self._listed = iter(layers)

    def next(self) -> int:
        """The layer of the call that is being made."""
        layer = next(self._listed, None)
        if layer is None:
            raise CaptureError(
                "A checkpointed block called attention more often when it ran again, so edits cannot follow it."
            )
        self.seen.add(layer)
        return layer


def modules_around(outside: FrameType | None = None) -> Iterator[tuple[FrameType, nn.Module]]:
    """The calls of modules that this point lies in, from the innermost outwards, up to the frame `outside`."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame is not outside:
        code = frame.f_code
        owner = frame.f_locals.get("self") if code.co_argcount and code.co_varnames[0] == "self" else None
        if isinstance(owner, nn.Module):
            yield frame, owner
        frame = frame.f_back
