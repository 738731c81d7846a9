"""Whether the recorded calls are all of a model's attention, one after another; what happens to their output is `head_mixing`.

Measured in one pass without attention: every call returns its values, as if each token looked at itself only. Nothing then passes
between tokens, unless something else mixes them. Three images go through together: the image itself; one with other pixels in half
of its patches, so that only their tokens may differ; and the image once more, where the output of each layer is changed strongly at
one token, so that the values of the next layer must differ there.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from vit_viz.capture.head_mixing import check_heads
from vit_viz.capture.placement import changed
from vit_viz.capture.report import HOLDS, UNCHECKED, Check
from vit_viz.capture.structure_pass import ProbedCall, probed_calls, pushed_token
from vit_viz.errors import CaptureError
from vit_viz.geometry import TokenLayout


def check_structure(
    module: nn.Module, pixels: Tensor, layout: TokenLayout, *, is_placed: bool, flow: Check = UNCHECKED
) -> tuple[Check, Check]:
    """Whether the recorded calls are complete and effective, see `report.Structure`.

    Args:
        pixels: [1, channels, height, width].
        is_placed: patches reach no token but their own; else one patch in a corner is changed instead of half of them.
        flow: what `flows` found; where that is unknown, this pass has to do.

    Raises:
        CaptureError: blocks of the model attend in a way that is not seen, so that layers would have wrong numbers.
    """
    chosen = torch.zeros(1, *layout.grid, dtype=torch.bool)
    patches = torch.randperm(layout.num_patches, generator=torch.Generator().manual_seed(0))
    chosen.view(-1)[patches[: (layout.num_patches + 1) // 2] if is_placed else 0] = True
    pitch = (max(1, pixels.shape[-2] // layout.grid[0]), max(1, pixels.shape[-1] // layout.grid[1]))
    images = torch.cat([pixels, changed(pixels, chosen, pitch), pixels])
    calls = probed_calls(module, images, layout)
    if calls is None:
        unknown = Check(
            "unknown", "Its layers could not be checked: the model does not run on changed pixels."
        )
        return unknown, check_heads(module, pixels)
    return _complete(module, calls, layout, flow), check_heads(module, pixels)


def _complete(module: nn.Module, calls: list[ProbedCall], layout: TokenLayout, flow: Check) -> Check:
    """One attention per layer, each after the other, and nothing else that mixes tokens."""
    reached = calls[0].moves(calls[0].known, "changed")
    if reached is None or bool((reached > 0).all()):
        _check_blocks(module, [call.path for call in calls], mixes=True)
        if flow.status != "unknown":
            return flow
        return Check(
            "unknown",
            "Each patch reaches every token before the first layer, so what mixes them later cannot be seen.",
        )
    _check_places(module, calls, reached > 0)
    place = _first_mixing(calls, reached > 0)
    _check_blocks(module, [call.path for call in calls], mixes=place is not None)
    beside = _uneven_attention(calls)
    if beside:
        return Check(
            "fails",
            f"Further attention runs {beside}, with other numbers of queries and keys (a class token that attends by itself, or "
            "keys of merged patches), which is not shown.",
        )
    if flow.status == "fails":
        return flow
    if place is not None:
        where = f"before layer {place}" if place < len(calls) else "after the last layer"
        return Check(
            "fails",
            f"Tokens also exchange information outside the recorded attention ({where}), so maps through the layers would miss it.",
        )
    apart = None if flow.status == "holds" else _first_apart(calls, layout)
    if apart is not None:
        return Check(
            "fails",
            f"The recorded layers do not follow one another: layer {apart} does not read what layer {apart - 1} wrote "
            "(parallel attentions of one block, or cross-attention), so a layer here is one attention call and not one block.",
        )
    trunks = Counter(_trunk(call.path) for call in calls)
    if len(trunks) > 1:
        names = ", ".join(f"{count} in {name or 'the model'}" for name, count in trunks.items())
        return Check(
            "fails",
            f"The recorded layers belong to different parts of the model ({names}), so a layer here is one attention call and "
            "not one block.",
        )
    return flow if flow is not UNCHECKED else HOLDS


def _first_mixing(calls: list[ProbedCall], reached: Tensor) -> int | None:
    """The call before which tokens mix (a token differs that no changed patch reaches); None where they do not."""
    for number, call in enumerate(calls):
        moves = call.moves(call.known, "changed")
        if moves is None or bool(((moves > 0) & ~reached).any()):
            return number
    later = (calls[-1].moves(states, "changed") for states in calls[-1].later)
    is_mixed = any(moves is not None and bool(((moves > 0) & ~reached).any()) for moves in later)
    return len(calls) if is_mixed else None


def _check_places(module: nn.Module, calls: list[ProbedCall], reached: Tensor) -> None:
    """Check that tokens keep their places: those that a patch reaches at the first call differ at every call, not others."""
    for number, call in enumerate(calls):
        if any(_are_elsewhere(call.moves(states, "changed"), reached) for states in (call.known, call.keys)):
            raise CaptureError(
                f"Between the first layer and layer {number}, tokens of {type(module).__name__} change places, so a map over "
                "patches would mislead."
            )


def _uneven_attention(calls: list[ProbedCall]) -> str:
    """Where attention runs whose queries and keys differ in number, beside one pool at the end; "" where none does."""
    if calls[0].uneven_before:
        return "before the first layer"
    between = next((number for number, call in enumerate(calls[:-1]) if call.uneven), None)
    if between is not None:
        return f"between layers {between} and {between + 1}"
    return "after the last layer" if calls[-1].uneven > 1 else ""


def _are_elsewhere(moves: Tensor | None, reached: Tensor) -> bool:
    """Whether tokens that should differ do not, and others do instead."""
    if moves is None:
        return False
    lost, won = (moves == 0) & reached, (moves > 0) & ~reached
    return bool(won.any()) and 10 * int(lost.sum()) > int(reached.sum())


def _first_apart(calls: list[ProbedCall], layout: TokenLayout) -> int | None:
    """The first call whose values do not depend on the output of the call before it; None where all do."""
    for number, call in enumerate(calls[1 : layout.num_patches + 1], 1):
        moves = call.moves(call.values, "pushed")
        if moves is None or float(moves[pushed_token(layout, number - 1)]) == 0:
            return number
    return None


def _check_blocks(module: nn.Module, paths: Sequence[str], *, mixes: bool) -> None:
    """Check that the attention of every block can be recorded."""
    unseen = _unseen_blocks(module, paths) if mixes else []
    if unseen:
        names = ", ".join(unseen[:4]) + (", ..." if len(unseen) > 4 else "")
        raise CaptureError(
            f"{len(unseen)} of the {len(set(paths)) + len(unseen)} blocks of {type(module).__name__} mix tokens in a way that "
            f"cannot be recorded ({names}), so layers would have wrong numbers. Recorded are scaled_dot_product_attention, "
            "nn.MultiheadAttention, and a softmax over queries x keys."
        )


def _trunk(path: str) -> str:
    """The path of a layer without its number, which all layers of one stack share."""
    names = path.split(".")
    first = next((place for place, name in enumerate(names) if re.search(r"\d$", name)), None)
    if first is not None:  # blocks.3, layer3, encoder_layer_3
        names[first] = re.sub(r"\d+$", "*", names[first])
    return ".".join("*" if name.isdigit() else name for name in names)


def _unseen_blocks(module: nn.Module, paths: Sequence[str]) -> list[str]:
    """Siblings of the blocks that attend, where tokens were also seen to mix without recorded attention."""
    modules = dict(module.named_modules())
    seen = {prefix for path in paths for prefix in _prefixes(path)}
    unseen: dict[str, None] = {}
    for name in sorted(seen):
        stack = name.rpartition(".")[0]
        if not _is_stack(modules.get(stack)) or _is_within_block(stack, modules, seen):
            continue
        for child, block in modules[stack].named_children():
            path = f"{stack}.{child}" if stack else child
            is_alike = type(block) is type(modules[name])
            if path not in seen and (is_alike or isinstance(modules[stack], nn.ModuleList)):
                unseen[path] = None
    return list(unseen)


def _is_stack(part: nn.Module | None) -> bool:
    return isinstance(part, nn.ModuleList | nn.Sequential)


def _is_within_block(stack: str, modules: dict[str, nn.Module], seen: set[str]) -> bool:
    """Whether a list holds the parts of one block, such as attention and MLP, and not blocks."""
    of_stack = [name for name in seen if name.rpartition(".")[0] == stack]
    outer = [name for name in _prefixes(stack)[:-1] if _is_stack(modules[name])]
    return len(of_stack) == 1 and bool(outer)


def _prefixes(path: str) -> list[str]:
    names = path.split(".")
    return [".".join(names[: end + 1]) for end in range(len(names))]
