"""How a module attends: checked once per module and layout, and remembered while the module lives."""

from __future__ import annotations

import threading
import weakref
from typing import Any

from torch import Tensor, nn

from vit_viz.capture.interception import are_ours
from vit_viz.capture.placement import check_placement
from vit_viz.capture.report import SOUND, Structure
from vit_viz.capture.structure import check_structure
from vit_viz.errors import CaptureError
from vit_viz.geometry import TokenLayout
from vit_viz.model.submodules import submodules_of


class _Findings:
    """Findings by module, stored outside it and freed with it."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._known: weakref.WeakKeyDictionary[nn.Module, dict[Any, Structure | CaptureError]] = (
            weakref.WeakKeyDictionary()
        )

    def get(self, module: nn.Module, key: Any) -> Structure | CaptureError | None:
        with self._guard:
            return self._known.get(module, {}).get(key)

    def put(self, module: nn.Module, key: Any, finding: Structure | CaptureError) -> None:
        with self._guard:
            self._known.setdefault(module, {})[key] = finding


_FINDINGS = _Findings()  # of the process, since two sessions may hold the same module


def verified_structure(module: nn.Module, pixels: Tensor, layout: TokenLayout) -> Structure:
    """Whether a module's calls are complete, placed and effective (`Structure`); runs it where that is not known yet.

    Of our own model it is known: its code names every attention call, and each goes through `Block`.

    Args:
        pixels: [1, channels, height, width].

    Raises:
        CaptureError: the pictures would mislead; the message says why.
    """
    parts = submodules_of(module)
    if are_ours(parts):
        return SOUND
    key = (layout, tuple(pixels.shape), pixels.dtype, tuple(type(part) for part in parts))
    finding = _FINDINGS.get(module, key)
    if finding is None:
        finding = _find(module, pixels, layout)
        _FINDINGS.put(module, key, finding)
    if isinstance(finding, CaptureError):
        raise CaptureError(str(finding))
    return finding


def _find(module: nn.Module, pixels: Tensor, layout: TokenLayout) -> Structure | CaptureError:
    try:
        placed = check_placement(module, pixels, layout)
        complete, effective = check_structure(module, pixels, layout, is_placed=placed.status == "holds")
    except CaptureError as error:
        return error
    return Structure(complete=complete, placed=placed, effective=effective)
