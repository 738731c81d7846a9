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
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from vit_viz.capture import flows, placement
from vit_viz.capture.flows import check_flow
from vit_viz.capture.forward import lock_of
from vit_viz.capture.head_mixing import NORMED, check_heads
from vit_viz.capture.interception import are_ours
from vit_viz.capture.noise import photos_of_noise
from vit_viz.capture.per_module import PerModule
from vit_viz.capture.placement import check_placement
from vit_viz.capture.report import SOUND, Check, Structure
from vit_viz.capture.responses import Responses
from vit_viz.capture.state import construction_of
from vit_viz.capture.structure import check_calls
from vit_viz.capture.structure_check import Finding, StructureCheck, raise_interruption, result_or_raise
from vit_viz.capture.tokens_read import TokensRead
from vit_viz.errors import BusyError, Cancelled, CaptureError
from vit_viz.geometry import TokenLayout
from vit_viz.lazy import Tensor, nn, torch
from vit_viz.model import VisionTransformer
from vit_viz.model.submodules import submodules_of

logger = logging.getLogger(__name__)


def structure_of(
    module: nn.Module, pixels: Tensor, layout: TokenLayout, *, is_ours: bool = False
) -> Structure | StructureCheck:
    """How a module attends where that is known, else the check that finds it out; placement is checked at once.

    Of our own model it is known: its code names every attention call, and each goes through `Block`.

    Args:
        pixels: [1, channels, height, width].
        is_ours: it was recognised as our own model, without another walk through it.
    """
    parts = [module] if is_ours else submodules_of(module)
    if is_ours or are_ours(parts):
        assert isinstance(module, VisionTransformer)
        config = module.config
        # a norm before the projections lets no head through as it is
        ours = replace(SOUND, effective=NORMED) if config.attn_norm else SOUND
        if config.dist_token and config.pooling == "class" and not config.dist_head:  # the class token alone
            read = (layout.token("class"),)
            ours = replace(ours, read=TokensRead((read,) * (config.num_classes or config.embed_dim)))
        if layout.pooling == "class" and len(config.class_read) > 1 and not config.num_classes:
            each = [(layout.token(config.prefix[i]),) for i in config.class_read]  # side by side
            ours = replace(ours, read=TokensRead(tuple(one for one in each for _ in range(config.embed_dim))))
        return ours
    key = _key(module, pixels, layout)
    findings = _FINDINGS.of(module)
    if key in findings.findings:
        return result_or_raise(findings.findings[key])
    placed = findings.placed(module, key, lambda: check_placement(module, pixels, layout))
    find = partial(_find, pixels=pixels, layout=layout, placed=placed, kinds=list(map(type, parts)))
    return findings.check(module, key, lambda: StructureCheck(module, find, device=pixels.device))


def verified_structure(module: nn.Module, pixels: Tensor, layout: TokenLayout) -> Structure:
    """How a module attends, found out now where that is not known; as `structure_of`."""
    structure = structure_of(module, pixels, layout)
    return structure.result() if isinstance(structure, StructureCheck) else structure


class _OfModule:
    """What is known of one module, by layout and shape of the input; checks are kept by those who want their finding."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._placed: dict[Any, Check] = {}
        self.findings: dict[Any, Finding] = {}
        self._checks: weakref.WeakValueDictionary[Any, StructureCheck] = weakref.WeakValueDictionary()

    def placed(self, module: nn.Module, key: Any, measure: Callable[[], Check]) -> Check:
        """What is known of the places of a module's tokens, measured once, also where two threads ask at the same moment."""
        with lock_of(module):
            if key not in self._placed:
                try:
                    placed = measure()
                except CaptureError as error:
                    self.findings[key] = _without_frames(error)  # to be result_or_raise again
                    raise
                if placed == placement.UNANSWERED:
                    return placed
                self._placed[key] = placed
            return self._placed[key]

    def check(
        self, module: nn.Module, key: Any, make: Callable[[], StructureCheck]
    ) -> Structure | StructureCheck:
        """The check that others hold, or a new one."""
        with self._guard:
            if key in self.findings:  # meanwhile
                return result_or_raise(self.findings[key])
            check = self._checks.get(key)
            if check is None:
                check = self._checks[key] = make()
            check.hold(module)
            return check


_FINDINGS = PerModule(_OfModule)
_IS_UNANSWERED = frozenset((flows.UNANSWERED, placement.UNANSWERED))


def _find(
    module: nn.Module, *, pixels: Tensor, layout: TokenLayout, placed: Check, kinds: list[type]
) -> Finding:
    """Run the check; what it finds out is remembered with the module as it is, unless it was interrupted (Cancelled, BusyError).

    Nor is what says nothing of the module, because its tokens answered to no change: pixels of another range may show more.
    """
    key = _key(module, pixels, layout)
    if list(map(type, submodules_of(module))) != kinds:
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
        reason = " ".join(str(error).split())[:200]
        finding = _unknown(
            f"the model raised {type(error).__name__}{f' ({reason})' if reason else ''}.", placed
        )
    raise_interruption()
    if not isinstance(finding, Structure) or _IS_UNANSWERED.isdisjoint((finding.placed, finding.complete)):
        _FINDINGS.of(module).findings[key] = finding
    return finding


def _measured(module: nn.Module, pixels: Tensor, layout: TokenLayout, placed: Check) -> Structure:
    """What the passes of the check show; CaptureError where the pictures would mislead."""
    photo, brighter = photos_of_noise(pixels)
    run = Responses(module, photo, layout)
    flow = check_flow(run, layout)
    if flow.complete == flows.UNANSWERED:
        photo, run = brighter, Responses(module, brighter, layout)
        flow = check_flow(run, layout)
    complete = check_calls(module, run, layout, flow.complete, is_placed=placed.status == "holds")
    return replace(flow, complete=complete, placed=placed, effective=check_heads(module, photo))


def _key(module: nn.Module, pixels: Tensor, layout: TokenLayout) -> Any:
    """What a finding holds for: another layout, input or construction of the module is asked anew, other numbers in it are not."""
    return layout, tuple(pixels.shape), pixels.dtype, construction_of(module)


def _without_frames(error: CaptureError) -> CaptureError:
    """The same refusal without its traceback, whose frames hold the module."""
    return CaptureError(str(error))


def _unknown(why: str, placed: Check) -> Structure:
    missing = Check(
        "unknown", f"Whether the layers are all of the model's attention could not be checked: {why}"
    )
    return Structure(complete=missing, placed=placed, effective=missing)
