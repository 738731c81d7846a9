"""How a module attends: found out once per module and layout, and remembered while the module lives.

Which token is which patch is known before a picture is drawn: it takes part of a pass. Whether anything flows beside the attention
takes dozens of passes (`vit_viz.capture.structure`), so it is found out when somebody asks for it, or beside the first picture by
whoever serves one (`vit_viz.session.checks`). A library runs nothing behind its caller's back: in Python the thread that asks finds
it out, because a pass sets the module to eval mode and restores torch's random state, which are the caller's meanwhile.
"""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from vit_viz.capture.flows import check_flow
from vit_viz.capture.forward import lock_of
from vit_viz.capture.guarded_passes import raise_interruption
from vit_viz.capture.head_mixing import NORMED
from vit_viz.capture.interception import are_ours
from vit_viz.capture.placement import check_placement
from vit_viz.capture.report import SOUND, Check, Structure
from vit_viz.capture.structure import check_structure
from vit_viz.capture.structure_check import Finding, StructureCheck, said
from vit_viz.errors import BusyError, Cancelled, CaptureError
from vit_viz.geometry import TokenLayout
from vit_viz.model import VisionTransformer
from vit_viz.model.submodules import submodules_of

logger = logging.getLogger(__name__)


def structure_of(module: nn.Module, pixels: Tensor, layout: TokenLayout) -> Structure | StructureCheck:
    """How a module attends where that is known, else the check that finds it out; placement is checked at once.

    Of our own model it is known: its code names every attention call, and each goes through `Block`.

    Args:
        pixels: [1, channels, height, width].

    Raises:
        CaptureError: the pictures would mislead; the message says why.
    """
    parts = submodules_of(module)
    if are_ours(parts):
        return structure_of_ours(parts[0])
    key = _key(parts, pixels, layout)
    finding = _FINDINGS.of(module, key)
    if finding is None:
        placed = _FINDINGS.placed(module, key, lambda: check_placement(module, pixels, layout))
        find = partial(_find, pixels=pixels, layout=layout, placed=placed, key=key)
        return _FINDINGS.check(module, key, lambda: StructureCheck(module, find, device=pixels.device))
    return said(finding)


def structure_of_ours(model: nn.Module) -> Structure:
    """What the configuration of our own model says: a norm before the projections lets no head through as it is."""
    assert isinstance(model, VisionTransformer)
    return replace(SOUND, effective=NORMED) if model.config.attn_norm else SOUND


def verified_structure(module: nn.Module, pixels: Tensor, layout: TokenLayout) -> Structure:
    """How a module attends, found out now where that is not known; as `structure_of`."""
    known = structure_of(module, pixels, layout)
    return known.result() if isinstance(known, StructureCheck) else known


class _Findings:
    """What is known by module, stored outside it and freed with it."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._of: weakref.WeakKeyDictionary[nn.Module, _OfModule] = weakref.WeakKeyDictionary()

    def of(self, module: nn.Module, key: Any) -> Finding | None:
        """What is known."""
        with self._guard:
            return self._known(module).findings.get(key)

    def keep(self, module: nn.Module, key: Any, finding: Finding) -> None:
        """Remember what was found out."""
        with self._guard:
            self._known(module).findings[key] = finding

    def placed(self, module: nn.Module, key: Any, measure: Callable[[], Check]) -> Check:
        """What is known of the places of a module's tokens, measured once, also where two threads ask at the same moment."""
        with lock_of(module):
            known = self._known(module)
            if key not in known.placed:
                with _remembered(known.findings, key):
                    known.placed[key] = measure()
            return known.placed[key]

    def check(
        self, module: nn.Module, key: Any, make: Callable[[], StructureCheck]
    ) -> Structure | StructureCheck:
        """The check that others hold, or a new one."""
        with self._guard:
            known = self._known(module)
            if key in known.findings:  # meanwhile
                return said(known.findings[key])
            check = known.checks.get(key)
            if check is None:
                check = known.checks[key] = make()
            check.hold(module)
            return check

    def _known(self, module: nn.Module) -> _OfModule:
        return self._of.setdefault(module, _OfModule())


class _OfModule:
    """What is known of one module, by layout and shape of the input; checks are kept by those who want their finding."""

    def __init__(self) -> None:
        self.placed: dict[Any, Check] = {}
        self.findings: dict[Any, Finding] = {}
        self.checks: weakref.WeakValueDictionary[Any, StructureCheck] = weakref.WeakValueDictionary()


_FINDINGS = _Findings()  # of the process, since two sessions may hold the same module


@contextmanager
def _remembered(findings: dict[Any, Finding], key: Any) -> Iterator[None]:
    """Keep a refusal, to be said again."""
    try:
        yield
    except CaptureError as error:
        findings[key] = _without_frames(error)
        raise


def _find(module: nn.Module, *, pixels: Tensor, layout: TokenLayout, placed: Check, key: Any) -> Finding:
    """Run the check; what it finds out is remembered with the module.

    Raises:
        Cancelled, BusyError: it did not come to an end, so nothing was found out.
    """
    if _key(submodules_of(module), pixels, layout) != key:
        return _unknown("the model was changed before it was.", placed)
    finding: Finding
    try:
        finding = _measured(module, pixels, layout, placed)
    except CaptureError as error:
        finding = _without_frames(error)
    except (BusyError, Cancelled):
        raise
    except (MemoryError, torch.OutOfMemoryError):
        finding = _unknown("the memory was too small.", placed)
    except Exception as error:  # a module may raise anything on a batch that it was not built for
        logger.exception("the structure of %s could not be checked", type(module).__name__)
        finding = _unknown(f"the model raised {_named(error)}.", placed)
    raise_interruption()
    _FINDINGS.keep(module, key, finding)
    return finding


def _measured(module: nn.Module, pixels: Tensor, layout: TokenLayout, placed: Check) -> Structure:
    """What the passes of the check show.

    Raises:
        CaptureError: the pictures would mislead; the message says why.
    """
    flow = check_flow(module, pixels, layout)
    is_placed = placed.status == "holds"
    complete, effective = check_structure(module, pixels, layout, is_placed=is_placed, flow=flow.check)
    return Structure(
        complete=complete, placed=placed, effective=effective, reading=flow.reading, pooled=flow.pooled
    )


def _key(parts: list[nn.Module], pixels: Tensor, layout: TokenLayout) -> Any:
    """What a finding holds for, beside the module itself: another layout, input or make-up of the module is asked anew."""
    return layout, tuple(pixels.shape), pixels.dtype, tuple(type(part) for part in parts)


def _without_frames(error: CaptureError) -> CaptureError:
    """The same refusal without its traceback, whose frames hold the module."""
    return CaptureError(str(error))


def _unknown(why: str, placed: Check) -> Structure:
    missing = Check(
        "unknown", f"Whether the layers are all of the model's attention could not be checked: {why}"
    )
    return Structure(complete=missing, placed=placed, effective=missing)


def _named(error: Exception) -> str:
    """An exception in few words."""
    text = " ".join(str(error).split())[:200]
    return f"{type(error).__name__}{f' ({text})' if text else ''}"
