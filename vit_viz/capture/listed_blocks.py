"""Blocks that are lists of parts, which a model runs one by one: `for attend, mlp in layers: x = attend(x) + x; x = mlp(x) + x`.

Such a list never runs itself, so nothing returns what a block returns. Where it ends is seen in the functions of a pass: in the sum
that the output of its last part enters, as it is or scaled, or at that output, where its first reader is no sum. That this is what
the first part of the next block is given is checked.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from torch.overrides import TorchFunctionMode

from vit_viz.capture.explicit_softmax import CASTS, named_functions
from vit_viz.lazy import F, Tensor, nn, torch

if TYPE_CHECKING:
    from torch.utils.hooks import RemovableHandle

_SUMS = {*named_functions("add", "add_", "__add__", "__iadd__", "__radd__")}
_SCALED = {
    F.dropout,
    torch.dropout,
    *named_functions("mul", "mul_", "__mul__", "__imul__", "__rmul__"),
    *CASTS,
}


class ListedBlocks(TorchFunctionMode):
    """The context of a pass of this thread in which the ends of such blocks are seen.

    Args:
        blocks: lists of parts.
        seen: is given what enters the first block, then what each block ends with; makes what the model goes on with of that.

    Attributes:
        returned: of each part.
        count: how many states were seen; None where one was not found.
    """

    def __init__(self, blocks: Sequence[nn.Module], seen: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self._blocks = [
            [part for part in block.children() if not isinstance(part, nn.ModuleList | nn.ModuleDict)]
            for block in blocks
        ]
        self._seen = seen
        self._thread = threading.get_ident()
        self._handles: list[RemovableHandle] = []
        self._last: Tensor | None = None  # output of a block's last part, until it is read
        self._goes_on: tuple[Tensor, ...] = ()  # the last state, and what the model goes on with in its place
        self.returned: dict[nn.Module, Any] = {}
        self.count: int | None = 0

    @property
    def is_found(self) -> bool:
        """Whether all states were, once the pass is over."""
        return self.count == len(self._blocks) + 1

    def __enter__(self) -> ListedBlocks:
        for parts in self._blocks:
            self._handles.append(parts[0].register_forward_pre_hook(self._begins, with_kwargs=True))
            self._handles += [part.register_forward_hook(self._returns) for part in parts]
        super().__enter__()  # type: ignore[no-untyped-call]  # torch's
        return self

    def __exit__(self, *exception: Any) -> None:
        super().__exit__(*exception)  # type: ignore[no-untyped-call]  # torch's
        for handle in self._handles:
            handle.remove()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Called by torch in place of `func`."""
        kwargs, last = kwargs or {}, self._last
        if last is None or not any(one is last for one in args):
            return func(*self._replaced(args), **kwargs)
        if func in _SCALED:
            self._last = output = func(*args, **kwargs)
            return output
        if func in _SUMS and all(isinstance(one, Tensor) and one.shape == last.shape for one in args[:2]):
            return self._ends(func(*args, **kwargs))
        self._ends(last)
        return func(*self._replaced(args), **kwargs)

    def _ends(self, state: Tensor) -> Tensor:
        """What the model goes on with after a block that ends with this."""
        self._last = None
        if self.count is None:
            return state
        self.count += 1
        with torch._C.DisableTorchFunction():
            new = self._seen(state)
        self._goes_on = (state, new)
        return new

    def _replaced(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Arguments with what the model goes on with, where it was handed the state itself."""
        if not self._goes_on:
            return args
        state, new = self._goes_on
        return tuple(new if one is state else one for one in args)

    def _begins(self, part: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if threading.get_ident() != self._thread or self.count is None:
            return
        given = next((one for one in (*args, *kwargs.values()) if isinstance(one, Tensor)), None)
        is_first = part is self._blocks[0][0]
        if given is not None and (given is self._last or (is_first and not self.count)):
            self._ends(given)
        number = next(number for number, parts in enumerate(self._blocks) if parts[0] is part)
        if self.count != number + 1 or not any(given is one for one in self._goes_on):
            self.count = None

    def _returns(self, part: nn.Module, args: tuple[Any, ...], returned: Any) -> None:  # noqa: ARG002
        if threading.get_ident() != self._thread:
            return
        self.returned[part] = returned
        if any(part is parts[-1] for parts in self._blocks):
            self._last = returned if isinstance(returned, Tensor) else None
