"""Whether removing tokens from a module is the same as their absence: tested on the module once, and remembered while it lives.

An edit sees only calls of torch. A part of a model that reads tokens in another way (a convolution over them, a flattened head)
would still read removed ones, unnoticed.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from vit_viz.capture.edit_stack import innermost_edit
from vit_viz.capture.edits import removing
from vit_viz.capture.forward import block_list, undisturbed
from vit_viz.capture.per_module import PerModule
from vit_viz.capture.returned import scores_of
from vit_viz.capture.state import construction_of
from vit_viz.errors import CaptureError
from vit_viz.lazy import Tensor, nn, torch

_CLOSE = {torch.float32: 1e-3, torch.float64: 1e-3}
"""Largest difference between equal runs, as a share of the largest number; half precision is coarser."""


_RESULTS: PerModule[dict[Any, str]] = PerModule(dict)
"""The result for each module and construction of it: a message, or "" where removal is exact."""


def check_removal(module: nn.Module, pixels: Tensor, changed: Tensor, removed: Tensor) -> None:
    """Check that masked tokens (`edit(mask_keys=...)`) change nothing, neither by other content nor by being there at all.

    Four small passes, once per module, size of the input and set of tokens. Where the module accepts no shorter sequence, only
    their content can be tested.

    Args:
        pixels: one image, [1, channels, height, width]; of noise, since the result is remembered for all images.
        changed: the same image with other noise in the removed patches.
        removed: which tokens, Boolean [tokens].
    """
    key = (construction_of(module), tuple(pixels.shape), pixels.dtype, tuple(removed.tolist()))
    results = _RESULTS.of(module)
    message = results.get(key)
    if message is None:
        with undisturbed(module), torch.inference_mode(False), torch.no_grad():
            message = _problem(_Runs(module, removed), pixels, changed)
        if innermost_edit() is None:  # else it is true of the edited module only
            results[key] = message
    if message:
        raise CaptureError(f"Patches cannot be removed from {type(module).__name__}: {message}")


def _problem(runs: _Runs, pixels: Tensor, changed: Tensor) -> str:
    output, entering, leaving = runs.masked(pixels)
    others = [runs.masked(pixels, disturbs=True)[0]]
    repainted, embedded, _ = runs.masked(changed)
    if _agree(entering, embedded) is not False:  # else a patch reaches further than its own token
        others.append(repainted)
    if any(_agree(output, other) is False for other in others):
        return "its output still depends on what removed tokens hold, so something besides attention and the pool reads them."
    without = runs.absent(pixels)
    if without is not None and _agree(leaving, without[1]) and _agree(output, without[0]) is False:
        return (
            "with the same tokens after its last block, its output differs when the removed tokens are truly absent, so its "
            "pooling is not understood."
        )
    return ""


class _Runs:
    """Passes of a module without some tokens, and its other tokens before the first block and after the last."""

    def __init__(self, module: nn.Module, removed: Tensor) -> None:
        self._module, self._blocks = module, block_list(module)
        self._removed, self._thread = removed, threading.get_ident()

    def masked(
        self, pixels: Tensor, *, disturbs: bool = False
    ) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        """Output, tokens before the first block and after the last, with the removed tokens masked."""
        states: list[Tensor | None] = [None, None]
        with self._watched(states), removing(self._removed, disturbs=disturbs):
            output = scores_of(self._module(pixels), len(pixels))
        return output, self._kept(states[0]), self._kept(states[1])

    def absent(self, pixels: Tensor) -> tuple[Tensor | None, Tensor | None] | None:
        """Output, and tokens after the last block, where the first block receives no removed tokens; None where that fails."""
        states: list[Tensor | None] = [None, None]
        try:
            with self._watched(states, drops=True):
                return scores_of(self._module(pixels), len(pixels)), states[1]
        except Exception:  # a module may raise anything on a sequence that it was not built for
            return None

    def _kept(self, state: Tensor | None) -> Tensor | None:
        if state is None or state.ndim != 3 or state.shape[1] != len(self._removed):
            return None
        return state[:, ~self._removed.to(state.device)]

    @contextmanager
    def _watched(self, states: list[Tensor | None], *, drops: bool = False) -> Iterator[None]:
        """Store what enters the first block and leaves the last in `states`; with `drops`, removed tokens do not enter."""

        def before(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            if threading.get_ident() != self._thread:
                return None
            states[0] = args[0] if args else kwargs.get("hidden_states")
            if not drops:
                return None
            kept = self._kept(states[0])
            if kept is None:
                raise CaptureError("The first block does not receive [batch, tokens, dim].")
            return ((kept, *args[1:]), kwargs) if args else (args, kwargs | {"hidden_states": kept})

        def after(_: nn.Module, __: tuple[Any, ...], output: Any) -> None:
            if threading.get_ident() == self._thread:
                states[1] = output[0] if isinstance(output, tuple) else output

        handles = []
        if self._blocks:
            handles.append(self._blocks[0].register_forward_pre_hook(before, with_kwargs=True))
            handles.append(self._blocks[-1].register_forward_hook(after))
        elif drops:
            raise CaptureError("There is no list of blocks.")
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()


def _agree(one: Tensor | None, other: Tensor | None) -> bool | None:
    """Whether two tensors are the same up to rounding; None where they cannot be compared."""
    if one is None or other is None or one.shape != other.shape:
        return None
    size = float(one.abs().max())
    return float((one - other).abs().max()) <= _CLOSE.get(one.dtype, 5e-2) * size
