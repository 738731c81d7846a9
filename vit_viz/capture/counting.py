"""Which layer an attention call belongs to."""

from __future__ import annotations

import sys
from types import FrameType

from torch import nn

from vit_viz.errors import CaptureError
from vit_viz.model.vit import Attention, AttentionPool, Block


class LayerCounter:
    """Which layer an attention call belongs to, for code that may run a model several times, or only a part of it.

    Within one call of a module the layers count up. In a later call, an attention module that was seen
    before keeps its layer; a new one is the next layer (blocks that are called one by one). A block of our own model that is
    called by itself, or its attention, has its own.

    Args:
        first: index of the first layer.
        outside: frame of the `with` statement; modules further out do not count.
    """

    def __init__(self, first: int, outside: FrameType | None) -> None:
        self._first, self.outside = first, outside
        self._root: FrameType | None = None
        self._layer: int | None = None
        self._known: dict[tuple[int, ...], int] = {}
        self.seen: set[int] = set()

    def next(self) -> int:
        """The layer of the call that is being made."""
        root, site = self._where()
        part = None if root is None else root.f_locals["self"]
        if isinstance(part, Block | Attention):  # of our own model, by itself: it knows its place
            layer = (part.attn if isinstance(part, Block) else part).layer
        elif self._layer is None:
            layer = self._first
        elif root is self._root or site not in self._known:
            layer = self._layer + 1
        else:
            layer = self._known[site]
        self._root, self._layer = root, layer
        self._known.setdefault(site, layer)
        self.seen.add(layer)
        return layer

    def forget(self) -> None:
        """Release the frames that were inspected."""
        self._root = self.outside = None

    def _where(self) -> tuple[FrameType | None, tuple[int, ...]]:
        """The outermost call of a module on the stack, and the two innermost modules."""
        frame: FrameType | None = sys._getframe(2)
        root: FrameType | None = None
        owners: list[int] = []
        while frame is not None and frame is not self.outside:
            code = frame.f_code
            owner = frame.f_locals.get("self") if code.co_argcount and code.co_varnames[0] == "self" else None
            if isinstance(owner, nn.Module):
                root = frame
                if not owners or owners[-1] != id(owner):
                    owners.append(id(owner))
            frame = frame.f_back
        return root, tuple(owners[:2])


class PassCounter(LayerCounter):
    """Layers of one forward pass, in order."""

    def __init__(self) -> None:
        super().__init__(0, None)

    def next(self) -> int:
        """The layer of the call that is being made."""
        self._layer = 0 if self._layer is None else self._layer + 1
        self.seen.add(self._layer)
        return self._layer


class OwnLayers(LayerCounter):
    """Layers of our own model, whichever part of it runs: each attention knows the block that it stands in."""

    def __init__(self) -> None:
        super().__init__(0, None)

    def next(self) -> int:
        """The layer of the call that is being made; -1 for the pool's attention over one token, which is none."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            code = frame.f_code
            owner = frame.f_locals.get("self") if code.co_argcount and code.co_varnames[0] == "self" else None
            if isinstance(owner, Attention | AttentionPool):
                layer = owner.layer if isinstance(owner, Attention) else -1
                self.seen.add(layer)
                return layer
            frame = frame.f_back
        return super().next()  # somebody put an attention of their own into it


class GivenLayers(LayerCounter):
    """Layers that are known already: those of a checkpointed block that runs again.

    Args:
        layers: in the order of the calls.
    """

    def __init__(self, layers: list[int]) -> None:
        super().__init__(0, None)
        self._given, self._calls = layers, 0

    def next(self) -> int:
        """The layer of the call that is being made.

        Raises:
            CaptureError: there are more calls than the first time.
        """
        if self._calls == len(self._given):
            raise CaptureError(
                "A checkpointed block called attention more often when it ran again, so edits cannot follow it."
            )
        self._calls += 1
        return self._given[self._calls - 1]
