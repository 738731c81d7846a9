"""What a module would answer if other tokens came out of its last block: the rest of it runs by itself, whatever that is.

The blocks do not run meanwhile: each returns zeros of what it returned in a pass before, and the last one returns the given tokens.
That the model's own tokens give its own answer in this way is checked first, so that nothing else of the blocks is read.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from vit_viz.capture.forward import are_lists, block_list
from vit_viz.errors import CaptureError
from vit_viz.lazy import Tensor, nn, torch

_SAME = 1e-4  # share of its largest number by which an answer may differ from the same answer


class Blocks:
    """The blocks of a module, its longest list of equal children, apart from what stands around them."""

    def __init__(self, module: nn.Module) -> None:
        self._blocks, self._name = block_list(module), type(module).__name__
        if not self._blocks:
            raise CaptureError(
                f"Where one layer of {self._name} ends and the next begins was not found: it has no list of blocks (ModuleList or "
                "Sequential)."
            )
        self._returned: list[Any] = []
        self._of_parts: dict[nn.Module, Any] = {}  # what parts of blocks that are lists returned

    def check_layers(self, count: int) -> None:
        """Check that each block is one of so many layers of attention."""
        if len(self._blocks) != count:
            raise CaptureError(
                f"Where one layer of {self._name} ends and the next begins was not found: it has {count} layers of attention, but "
                f"{len(self._blocks)} blocks in its longest list."
            )

    @property
    def states(self) -> list[Tensor]:
        """What each block returned in the last pass within `apart`, as the model has it."""
        return [one[0] if isinstance(one, tuple | list) and one else one for one in self._returned]

    @contextmanager
    def apart(self, *, cut: bool = False) -> Iterator[None]:
        """The context of a pass whose blocks are noted; with `cut`, each is given its input without the graph that leads to it."""
        from vit_viz.capture.replay import mapped  # it imports torch, for which a start need not wait

        thread, handles = threading.get_ident(), []
        self._returned = []

        if are_lists(self._blocks):
            yield from self._lists_apart(cut=cut)
            return

        def apart(tensor: Tensor) -> Tensor:
            return tensor.detach().clone()  # a block may add to its input in place

        def before(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            if threading.get_ident() != thread:
                return None
            with torch._C.DisableTorchFunction():  # meant so: unseen by what looks for lost gradients
                return mapped(args, apart), mapped(kwargs, apart)

        def after(_: nn.Module, args: tuple[Any, ...], returned: Any) -> None:  # noqa: ARG001
            if threading.get_ident() == thread:
                self._returned.append(returned)

        try:
            for block in self._blocks:
                if cut:
                    handles.append(block.register_forward_pre_hook(before, with_kwargs=True))
                handles.append(block.register_forward_hook(after))
            yield
        finally:
            for handle in handles:
                handle.remove()
        if len(self._returned) != len(self._blocks) or not all(
            isinstance(one, Tensor) for one in self.states
        ):
            raise CaptureError(
                f"What each layer of {self._name} returns was not found: its blocks do not run once each, or return no tokens."
            )

    def _lists_apart(self, *, cut: bool) -> Iterator[None]:
        from vit_viz.capture.listed_blocks import ListedBlocks

        def seen(state: Tensor) -> Tensor:
            self._returned.append(state)
            return state.detach().clone() if cut else state  # the next block may add to it in place

        with ListedBlocks(self._blocks, seen) as listed:
            yield
        if not listed.is_found:
            raise CaptureError(
                f"Where one layer of {self._name} ends and the next begins was not found: its blocks are lists of parts, and what "
                "the first part of one reads is not what the last part of the one before it ends with."
            )
        self._returned, self._of_parts = self._returned[1:], listed.returned

    def sequences(self, tokens: Tensor) -> Tensor:
        """A sequence of nothing but it for each of some tokens [images, dim], arranged as what the last block returned."""
        like = self.states[-1]
        if 1 not in like.shape[:-1]:
            raise CaptureError(
                f"The last block of {self._name} returns {list(like.shape)}, which has no axis for the images."
            )
        axis = like.shape.index(1)
        size, one_each = list(like.shape), [1] * like.ndim
        size[axis] = one_each[axis] = len(tokens)
        one_each[-1] = size[-1]
        return tokens.to(like).reshape(one_each).expand(size).contiguous()

    @contextmanager
    def answering_from(self, state: Tensor) -> Iterator[None]:
        """The context of a pass, under the module's lock, in which the last block returns these tokens.

        Args:
            state: as the last of `states`, of one image or of several.
        """
        from vit_viz.capture.replay import mapped

        around: AbstractContextManager[object] = nullcontext()
        if self._of_parts:
            from vit_viz.capture.listed_blocks import ListedBlocks

            ends = iter([*[None] * len(self._blocks), state])
            around = ListedBlocks(self._blocks, lambda own: own if (given := next(ends)) is None else given)
            instead = {part: mapped(returned, torch.zeros_like) for part, returned in self._of_parts.items()}
        else:
            zeros = [mapped(returned, torch.zeros_like) for returned in self._returned[:-1]]
            instead = dict(zip(self._blocks, [*zeros, _with_state(self._returned[-1], state)], strict=True))
        own = {part: part.__dict__.get("forward") for part in instead}
        try:
            for part, returned in instead.items():
                part.__dict__["forward"] = _returning(returned)
            with around:
                yield
        finally:
            for part, forward in own.items():
                part.__dict__.pop("forward", None)
                if forward is not None:
                    part.__dict__["forward"] = forward

    def check_answer(self, again: Tensor, answer: Tensor) -> None:
        """Check that the last block's own tokens give the model's own answer."""
        away = (again.detach() - answer.detach()).abs().max()
        if not bool(away <= _SAME * answer.detach().abs().max()):
            raise CaptureError(
                f"{self._name} computes its output from more than its last block, so no other layer can replace that block."
            )


def _returning(value: Any) -> Any:
    return lambda *_args, **_kwargs: value


def _with_state(returned: Any, state: Tensor) -> Any:
    if isinstance(returned, tuple | list):
        return type(returned)((state, *returned[1:]))
    return state
