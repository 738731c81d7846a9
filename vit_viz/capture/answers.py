"""Which tokens of the last layer the answer reads, against what the layout says."""

from __future__ import annotations

from collections.abc import Callable

from vit_viz.capture.clamped_pass import Change, Site
from vit_viz.capture.report import HOLDS, Check
from vit_viz.capture.responses import Responses
from vit_viz.geometry import TokenLayout
from vit_viz.lazy import Tensor, torch

_SAME = 1e-6  # share by which two equal answers may differ


Differing = Callable[[Tensor], Change]
"""An image in which these tokens alone, Boolean [tokens], differ from the photo's after the last layer."""


def differing_at(site: Site) -> Differing:
    """By another photo's tokens, where the sequence of tokens passes in one piece after the last layer."""
    return lambda tokens: Change(is_other=True, cut=site, replaced=~tokens)


def differing_by(push: float, depth: int) -> Differing:
    """By a change of the last layer's output, where only the tokens that are read are finished after it."""
    return lambda tokens: Change(pushes=[0.0] * (depth - 1) + [push], pushed=tokens)


def check_pool(run: Responses, layout: TokenLayout, differing: Differing, site: Site | None) -> Check:
    """Whether the answer reads each token that the layout calls pooled, and no other; patches as evenly as their mean does.

    Args:
        site: where the sequence of tokens passes in one piece after the last layer; None where it does not.
    """
    pooled = _pooled(layout)
    parts = token_sets(layout) & pooled
    parts = torch.unique(torch.cat([parts[parts.any(1)], pooled[None]]), dim=0)
    responses = run.of([differing(~pooled), *map(differing, parts)])
    if responses is None:
        return Check("unknown", "Which tokens the answer reads could not be checked.")
    rest, *each = (response.answer for response in responses)
    if rest > 0 or min(each) == 0:
        return Check("fails", _read_elsewhere(run, layout, differing))
    if layout.pooling != "mean" and not layout.joins_patches:
        return HOLDS
    if site is None:
        return Check(
            "unknown", "Whether the answer reads the patches of the last layer evenly could not be checked."
        )
    if not _is_mean(run, layout, site):
        return Check(
            "fails",
            "The answer does not read the patches of the last layer evenly, as the mean that the layout names would: the rows of "
            "each layer are right, but the map of the pool is not what the answer looks at.",
        )
    return HOLDS


def token_sets(layout: TokenLayout) -> Tensor:
    """Sets of tokens such that of any two tokens some set holds the first and not the second, Boolean [sets, tokens].

    The bits of the tokens' numbers, both ways, and each token that is no patch by itself.
    """
    numbers = torch.arange(layout.num_tokens)
    bits = 2 ** torch.arange(max(1, (layout.num_tokens - 1).bit_length()))
    of_bits = (numbers[None] & bits[:, None]) != 0
    named = torch.tensor([layout.token(name) for name in layout.named])
    sets = torch.cat([of_bits, ~of_bits, numbers[None] == named[:, None]])
    return sets[sets.any(1) & ~sets.all(1)]


def _pooled(layout: TokenLayout) -> Tensor:
    """Tokens that the answer should read, Boolean [tokens]."""
    if layout.pooling == "attention":
        return torch.ones(layout.num_tokens, dtype=torch.bool)
    pooled = torch.from_numpy(layout.weights("pool") > 0)
    if layout.joins_patches:
        pooled[layout.patch_slice] = True
    return pooled


def _is_mean(run: Responses, layout: TokenLayout, site: Site) -> bool:
    """Whether the answer stays when patches change places, and not when one of two kinds of patches becomes more frequent."""
    own = torch.arange(layout.num_tokens)
    first, count = layout.patch_slice.start, layout.num_patches
    if count < 4:
        return True
    orders = [own.clone() for _ in range(3)]
    orders[0][layout.patch_slice] = own[layout.patch_slice].roll(count // 3 + 1).flip(0)
    for order, share in zip(orders[1:], (1, count // 2), strict=True):
        order[layout.patch_slice] = first
        order[first : first + share] = first + 1
    responses = run.of([Change(is_other=True, cut=site, order=order) for order in orders])
    if responses is None:
        return False
    turned, few, many = (response.answer for response in responses)
    return turned == 0 and abs(few - many) > _SAME * max(few, many)


def _read_elsewhere(run: Responses, layout: TokenLayout, differing: Differing) -> str:
    """Which tokens the answer reads instead of those that the layout calls pooled, in a sentence."""
    groups = {name: [layout.token(name)] for name in layout.named}
    groups["patches"] = list(range(layout.num_tokens))[layout.patch_slice]
    nothing = torch.zeros(layout.num_tokens, dtype=torch.bool)
    masks = [nothing.index_fill(0, torch.tensor(group), True) for group in groups.values()]
    responses = run.of([differing(mask) for mask in masks]) or []
    read = [name for name, each in zip(groups, responses, strict=False) if each.answer > 0]
    return (
        f"After the last layer the answer reads {', '.join(read) or 'no token'}, but not as the layout says "
        f"({layout.describe('pool')}): the rows of each layer are right, but the map of the pool is not what the answer looks at; "
        "where only the layout is wrong, pass layout= with the right pooling."
    )
