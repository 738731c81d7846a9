"""Whether the recorded calls are all of a model's attention, one after another, over tokens that keep their places.

Beside what flows between them (`flows`): a call whose queries and keys differ in number, a block whose attention is not recorded,
or layers of two stacks are found by looking at a pass; tokens that change places by changing the pixels of some patches, while all
attention is the photo's: those that differ at the first layer must differ at every later one, and no others. Where what attention
passes on is not seen, each token attends to itself alone meanwhile.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from vit_viz.capture.clamped_pass import Change
from vit_viz.capture.flows import exchange
from vit_viz.capture.report import Check
from vit_viz.capture.responses import Responses
from vit_viz.errors import CaptureError
from vit_viz.geometry import TokenLayout
from vit_viz.lazy import nn, torch


def check_calls(
    module: nn.Module, run: Responses, layout: TokenLayout, flow: Check, *, is_placed: bool
) -> Check:
    """Whether the recorded calls are all of a model's attention, each one after the other, see `report.Structure.complete`.

    Args:
        flow: what `check_flow` found, which is what is found here where nothing is missing.
        is_placed: patches reach no token but their own; else one patch in a corner is changed instead of half of them.
    """
    seen = run.photo
    if not seen.calls:
        return Check("unknown", "Its layers could not be checked: with other pixels its calls were not seen.")
    present = [states for call in seen.calls for states in call if states is not None]
    if flow.status != "holds" and not all(bool(states.isfinite().all()) for states in present):
        return Check("unknown", "Its layers could not be checked: its attention reads what is no number.")
    mixing = _first_mixing(module, run if seen.is_whole else run.alone(), layout, is_placed=is_placed)
    unseen = _unseen_blocks(module, seen.paths) if mixing is not None else []
    if unseen:
        names = ", ".join(unseen[:4]) + (", ..." if len(unseen) > 4 else "")
        raise CaptureError(
            f"{len(unseen)} of the {len(set(seen.paths)) + len(unseen)} blocks of {type(module).__name__} mix tokens in a way "
            f"that cannot be recorded ({names}), so layers would have wrong numbers. Recorded are scaled_dot_product_attention, "
            "nn.MultiheadAttention, and a softmax over queries x keys."
        )
    first, *between, last = seen.uneven
    apart = next((number for number, count in enumerate(between) if count), None)
    beside = (
        "before the first layer"
        if first
        else f"between layers {apart} and {apart + 1}"
        if apart is not None
        else "after the last layer"
        if last > 1  # beside one pool
        else ""
    )
    if beside:
        return Check(
            "fails",
            f"Further attention runs {beside}, with other numbers of queries and keys (a class token that attends by itself, or "
            "keys of merged patches), which is not shown.",
        )
    if flow.status == "fails":
        return flow
    if mixing:
        return Check("fails", exchange(mixing, run.depth))
    trunks = Counter(map(_trunk, seen.paths))
    if len(trunks) > 1:
        names = ", ".join(f"{count} in {name or 'the model'}" for name, count in trunks.items())
        return Check(
            "fails",
            f"The recorded layers belong to different parts of the model ({names}), so a layer here is one attention call and "
            "not one block.",
        )
    return flow


def _first_mixing(module: nn.Module, run: Responses, layout: TokenLayout, *, is_placed: bool) -> int | None:
    """The call before which tokens mix, so that one differs that no changed patch reached at the first; None where they do not.

    Where nothing tells tokens apart, because they mix before or are not seen, that is call 0.
    """
    chosen = torch.zeros(layout.grid, dtype=torch.bool)
    patches = torch.randperm(layout.num_patches, generator=torch.Generator().manual_seed(0))
    chosen.view(-1)[patches[: (layout.num_patches + 1) // 2] if is_placed else 0] = True
    responses = run.of([Change(patches=chosen)])
    if not responses:
        return 0
    (response,) = responses
    reached = response.calls[0] > 0
    if bool(response.calls[0].isnan().any()) or bool(reached.all()):
        return 0
    for number, both in enumerate(zip(response.calls, response.keys, strict=True)):
        for moves in both:
            # tokens that should differ, and others instead
            lost, won = (moves == 0) & reached, (moves > 0) & ~reached
            if bool(won.any()) and 10 * int(lost.sum()) > int(reached.sum()):
                raise CaptureError(
                    f"Between the first layer and layer {number}, tokens of {type(module).__name__} change places, so a map over "
                    "patches would mislead."
                )
    states = (*response.calls, response.later)
    return next((number for number, moves in enumerate(states) if bool((moves > 0)[~reached].any())), None)


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
        if not isinstance(modules.get(stack), nn.ModuleList | nn.Sequential):
            continue
        of_stack = [other for other in seen if other.rpartition(".")[0] == stack]
        outer = [
            other
            for other in _prefixes(stack)[:-1]
            if isinstance(modules[other], nn.ModuleList | nn.Sequential)
        ]
        if len(of_stack) == 1 and outer:  # the parts of one block, such as attention and MLP, and not blocks
            continue
        for child, block in modules[stack].named_children():
            path = f"{stack}.{child}" if stack else child
            is_alike = type(block) is type(modules[name])
            if path not in seen and (is_alike or isinstance(modules[stack], nn.ModuleList)):
                unseen[path] = None
    return list(unseen)


def _prefixes(path: str) -> list[str]:
    names = path.split(".")
    return [".".join(names[: end + 1]) for end in range(len(names))]
