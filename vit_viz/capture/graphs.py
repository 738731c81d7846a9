"""Passes of our own models as CUDA graphs: hundreds of launches become one.

A small model is done with a layer before Python has asked for the next. From the second pass of a kind on, its kernels are captured
once and replayed as a whole; they read the weights where these lie, so that the numbers are those of the model as it is then.
`VIT_VIZ_CUDA_GRAPHS=0` turns this off.

Source: https://docs.pytorch.org/docs/stable/notes/cuda.html, "CUDA Graphs".
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

from vit_viz.capture.edit_stack import edit_stack
from vit_viz.capture.forward import lock_of
from vit_viz.capture.interception import are_ours
from vit_viz.capture.per_module import PerModule
from vit_viz.lazy import Tensor, nn, torch
from vit_viz.model.submodules import are_watched, submodules_of
from vit_viz.settings import switch

Passed = TypeVar("Passed")
Result = TypeVar("Result")

MAX_GRAPHS = 4
"""Kinds of passes of a module that are kept as graphs, those that were not used for longest dropped first."""
MAX_BYTES = 4 * 2**30
"""Memory of one graph: what its pass needs at its peak, which stays its own."""

_logger = logging.getLogger(__name__)


def graphed(
    module: nn.Module,
    pixels: Tensor,
    run: Callable[[Tensor], Passed],
    then: Callable[[Passed], Result],
    *,
    key: Hashable,
    constants: object = None,
) -> Result:
    """`then(run(pixels))`, with the pass as a replay of a CUDA graph from the second time on, where the module allows it.

    Args:
        pixels: where the module is, and checked.
        run: a pass of the module that waits for no number on the device.
        then: takes what is wanted out of what the pass returned, before the next replay overwrites it.
        key: what the kernels depend on beside the module and the shape of its pixels.
        constants: what they read beside the weights and pixels; kept with the graph.
    """
    kind = _kind(module, pixels)
    if kind is None:
        return then(run(pixels))
    with lock_of(module):
        kept = _GRAPHS.of(module)
        name = (key, *kind)
        graph = kept.pop(name, _NEW)
        if graph is _SEEN:
            graph = _captured(run, pixels, constants)
        passed = graph.replay(pixels) if isinstance(graph, _Graph) else run(pixels)
        kept[name] = _SEEN if graph is _NEW else graph
        while len(kept) > MAX_GRAPHS:
            kept.popitem(last=False)
        return then(passed)


class _Graph(Generic[Passed]):
    """The kernels of one pass, with the memory that they read and write."""

    def __init__(self, run: Callable[[Tensor], Passed], pixels: Tensor, constants: object) -> None:
        self._constants, self._pixels = constants, pixels.clone()
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph, capture_error_mode="thread_local"):
            self._passed = run(self._pixels)

    def replay(self, pixels: Tensor) -> Passed:
        """What the pass returns for these pixels, until the next replay."""
        self._pixels.copy_(pixels)
        self._graph.replay()
        return self._passed


_NEW, _SEEN = "new", "seen"
_Kept = OrderedDict[Hashable, Any]  # of each kind: _SEEN, its graph, or None where there can be none
_GRAPHS: PerModule[_Kept] = PerModule(OrderedDict)


def _captured(run: Callable[[Tensor], Passed], pixels: Tensor, constants: object) -> _Graph[Passed] | None:
    """A graph of a pass that has run before; None where it cannot be captured, or would keep too much memory."""
    torch.cuda.empty_cache()
    before = torch.cuda.memory_reserved(pixels.device)
    try:
        graph = _Graph(run, pixels, constants)
    except Exception as error:  # whatever the pass does that a graph cannot hold, it runs without one
        _logger.info("no CUDA graph of this pass: %s", error)
        return None
    size = torch.cuda.memory_reserved(pixels.device) - before
    _logger.debug("a CUDA graph of %.0f MiB", size / 2**20)
    return graph if size <= MAX_BYTES else None


def _kind(module: nn.Module, pixels: Tensor) -> tuple[Hashable, ...] | None:
    """What decides the kernels of a pass of our own model on a GPU; None where it has to run call by call."""
    if not pixels.is_cuda or not switch("VIT_VIZ_CUDA_GRAPHS"):
        return None
    parts = submodules_of(module)
    if not are_ours(parts) or are_watched(parts) or any(not edits.is_set_aside for edits in edit_stack()):
        return None
    if torch.is_autocast_enabled("cuda") or torch._C._is_torch_function_mode_enabled():
        return None
    tensors = [p for part in parts for p in part._parameters.values() if p is not None]
    attributes = [vars(part) for part in parts]
    return (
        tuple(pixels.shape),
        pixels.dtype,
        torch.get_float32_matmul_precision(),
        tuple([(p.data_ptr(), p.dtype, p.stride()) for p in tensors]),
        tuple([(values.get("scale"), values.get("eps")) for values in attributes]),
    )
