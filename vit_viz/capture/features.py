"""What the last attention reads of the tokens, found in any module: the features that class activation maps are made of.

Nothing is read from names or code. Autograd's graph of a pass says what the attention's output is made of: followed back from
there, the nearest tensor through which everything passes that comes from the image, and which goes through a projection on the way,
is what queries, keys and values are projected from, whether by one matrix or by three, with rotations or norms of heads behind it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch.overrides import TorchFunctionMode

from vit_viz.errors import CaptureError
from vit_viz.geometry import TokenLayout
from vit_viz.lazy import Tensor, torch

_PROJECTIONS = re.compile(r"(?i)mm|mv|linear|conv")
VIEWS = re.compile(
    r"(Transpose|View|UnsafeView|Permute|Squeeze|Unsqueeze|Alias|Reshape\w*|T|Clone|ToCopy)Backward"
)
"""Names of autograd's functions: those that multiply by a matrix, and those that hold the same numbers in another arrangement."""

Result = tuple[Any, int]
"""A function of the graph, and which of its results."""


@dataclass(frozen=True, eq=False)
class Features:
    """What the last attention reads of each token, and the target's gradient for it: fp32 [tokens, dim] each."""

    values: Tensor
    gradient: Tensor

    @classmethod
    def of(cls, read: Tensor, gradient: Tensor | None, layout: TokenLayout) -> Features:
        """From what the attention reads in the model's own arrangement; without a gradient it is 0."""
        both = (read.detach(), torch.zeros_like(read) if gradient is None else gradient)
        return cls(*(one.reshape(layout.num_tokens, -1).float() for one in both))


class TensorsSeen(TorchFunctionMode):
    """Remembers the tensors that functions of a pass were given and returned, from one attention call to the next.

    Args:
        calls: the attention calls so far; grows while the model runs.
        source: the pixels, which want a gradient.
    """

    def __init__(self, calls: Sequence[object], source: Tensor) -> None:
        super().__init__()
        self._calls, self._source, self._count = calls, source, 0
        self._before: dict[Result, Tensor] = {}
        self._since: dict[Result, Tensor] = {}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Called by torch in place of `func`."""
        with torch._C.DisableTorchFunction():  # what we ask a tensor is no part of the pass
            self._note(args)
        output = func(*args, **(kwargs or {}))
        with torch._C.DisableTorchFunction():
            if len(self._calls) != self._count:
                self._count, self._before, self._since = len(self._calls), self._since, {}
            self._note((output,))
        return output

    def _note(self, values: Sequence[Any]) -> None:
        for value in values:
            if isinstance(value, torch.Tensor) and value.grad_fn is not None:
                self._since[value.grad_fn, value.output_nr] = value

    def read_by(
        self, output: Tensor | None, leaves: Sequence[Tensor | None], layout: TokenLayout
    ) -> Tensor | CaptureError:
        """The tensor that the last attention reads, in autograd's graph; an error where that was not found or is overwritten.

        Args:
            output: of the last attention; None where it was not seen.
            leaves: tensors of the pass at which its graph may begin anew.
        """
        of_image: set[Any] = set()
        frontier: set[Result] = set()
        read, is_projected, width = None, False, 0
        if output is not None and output.grad_fn is not None:
            of_image = made_of(output.grad_fn, [self._source, *leaves])
            frontier, width = set(edges(output.grad_fn, of_image)), output.numel() // layout.num_tokens
        while frontier:
            last = max((node for node, _ in frontier), key=order)
            tensor = self._before.get(next(iter(frontier))) if len(frontier) == 1 else None
            # without a projection on the way it may be that itself: queries, keys and values side by side, wider than one of them
            if (
                tensor is not None
                and _has_tokens(tensor, layout)
                and (is_projected or tensor.shape[-1] <= width)
            ):
                read = tensor
                if read.grad_fn is not last:
                    return CaptureError(
                        "What the last attention reads is overwritten before the model answers."
                    )
            if read is not None and not VIEWS.match(last.name()):
                break
            frontier = {one for one in frontier if one[0] is not last}
            before = edges(last, of_image)
            is_projected |= len(before) == 1 and _PROJECTIONS.search(last.name()) is not None
            frontier |= set(before)
        if read is not None:
            return read
        return CaptureError(
            "What the last attention reads was not found: no tensor with one vector for each token from which its queries, keys "
            "and values are all projected."
        )


def _has_tokens(tensor: Tensor, layout: TokenLayout) -> bool:
    """Whether it is [1, tokens, dim], [tokens, 1, dim] or [1, rows, cols, dim]."""
    lead = [size for size in tensor.shape[:-1] if size > 1]
    is_grid = not layout.named and lead == [size for size in layout.grid if size > 1]
    return lead == [layout.num_tokens] or is_grid


def made_of(last: Any, sources: Sequence[Tensor | None]) -> set[Any]:
    """The functions up to this one of autograd's graph whose results depend on one of the sources."""
    nodes, waiting = {last}, [last]
    while waiting:
        new = {node for node, _ in waiting.pop().next_functions if node is not None} - nodes
        nodes |= new
        waiting += new
    wanted = {id(source) for source in sources}
    depending = {
        node for node in nodes if not node.next_functions and id(getattr(node, "variable", None)) in wanted
    }
    for node in sorted(nodes - depending, key=order):
        if any(one in depending for one, _ in node.next_functions):
            depending.add(node)
    return depending


def edges(node: Any, of_image: set[Any]) -> list[Result]:
    """What a function was given that comes from the image."""
    return [one for one in node.next_functions if one[0] in of_image]


def order(node: Any) -> int:
    """A function of the graph runs after those that it reads."""
    number: int = node._sequence_nr()
    return number
