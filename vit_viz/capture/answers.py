"""Which tokens of the last layer the answer reads, against what the layout says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import compress

from vit_viz.capture.clamped_pass import Change, Site
from vit_viz.capture.report import HOLDS, Check
from vit_viz.capture.responses import Responses
from vit_viz.capture.tokens_read import HowPatches, TokensRead, as_source, layout_that_reads
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


def check_pool(
    run: Responses, layout: TokenLayout, differing: Differing, site: Site | None
) -> tuple[Check, TokensRead | None]:
    """Whether the answer reads the tokens that the layout calls pooled, patches as evenly as their mean does; and what it reads.

    A learned pool may give tokens that are no patches no weight, such as those that fill a batch up.

    Args:
        site: where the sequence of tokens passes in one piece after the last layer; None where it does not.

    Returns:
        What is read is None where it is not known, and where all outputs read what the layout says.
    """
    groups = {name: (layout.token(name),) for name in layout.named}
    if layout.pooling == "class" and len(layout.class_tokens) == 1 and not layout.joins_patches:
        own = _mask(groups[layout.class_tokens[0]], layout)
        responses = run.of([differing(~own), differing(own)])
        if responses is not None and responses[0].answer == 0 < responses[1].answer:
            return HOLDS, None
    patches = tuple(range(layout.num_tokens)[layout.patch_slice])
    among_patches = torch.unique(token_sets(layout) & _mask(patches, layout), dim=0)
    among_patches = among_patches[among_patches.any(1)]
    each = [_mask(group, layout) for group in (*groups.values(), patches)]
    responses = run.of([differing(tokens) for tokens in (*each, *among_patches)])
    if responses is None:
        return Check("unknown", "Which tokens the answer reads could not be checked."), None
    moved = torch.stack([response.outputs > 0 for response in responses[: len(each)]])  # [groups, outputs]
    union = moved.any(1, keepdim=True)
    read_it_all = (moved == union).all(0)  # [outputs]
    if 2 * int(read_it_all.sum()) >= len(read_it_all):  # the others move too little for it to be seen
        moved = union.expand_as(moved)
    matters = torch.tensor([response.answer > 0 for response in responses[len(each) :]])  # [sets of patches]
    read_in_each = (matters[:, None] | ~among_patches).all(0) & _mask(patches, layout)
    how: HowPatches = "evenly"
    if int(read_in_each.sum()) == 1:
        patches = (int(read_in_each.nonzero()),)
    elif bool(moved[-1].any()):
        if not bool(matters.all()) or run.photo.picks:
            how = "unevenly"
        elif _reads_a_pool(run):
            how = "by a softmax" if run.photo.weighs else "by attention"
        else:
            is_mean = None if site is None else _is_mean(run, layout, site)
            if is_mean is None:
                unknown = (
                    "Whether the answer reads the patches of the last layer evenly could not be checked."
                )
                return Check("unknown", unknown), None
            how = "evenly" if is_mean else "unevenly"
    kinds, of_output = torch.unique(moved.T, dim=0, return_inverse=True)
    read_by = [
        tuple(sorted(sum(compress((*groups.values(), patches), kind), start=()))) for kind in kinds.tolist()
    ]
    read = TokensRead(tuple(read_by[kind] for kind in of_output.tolist()), how)
    if read.is_as_in(layout):
        return HOLDS, read if len(read_by) > 1 else None
    return Check("fails", _read_elsewhere(read, layout)), read


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


def _mask(tokens: Sequence[int], layout: TokenLayout) -> Tensor:
    return torch.zeros(layout.num_tokens, dtype=torch.bool).index_fill(0, torch.tensor(tokens), True)


def _reads_a_pool(run: Responses) -> bool:
    """Whether what an attention or a softmax over tokens gives, after the last layer, reaches the answer; it may run beside it."""
    if not (run.photo.weighs or run.photo.pools):
        return False
    responses = run.of([Change(pools_otherwise=True)])
    return responses is None or responses[0].answer > 0


def _is_mean(run: Responses, layout: TokenLayout, site: Site) -> bool | None:
    """Whether the answer stays when patches change places, and not when one of two kinds of patches becomes more frequent.

    The two kinds are a patch of the photo and one of another photo, since patches of one photo may be alike. None where neither
    shows in the answer.
    """
    own = torch.arange(layout.num_tokens)
    first, count = layout.patch_slice.start, layout.num_patches
    if count < 4:
        return True
    turned, one_kind = own.clone(), own.clone()
    turned[layout.patch_slice] = own[layout.patch_slice].roll(count // 3 + 1).flip(0)
    one_kind[layout.patch_slice] = first
    changes = [Change(is_other=True, cut=site, order=turned)]
    for share in (1, count // 2):
        of_other = (own >= first) & (own < first + share)
        changes.append(Change(is_other=True, cut=site, order=one_kind, replaced=~of_other))
    responses = run.of(changes)
    if responses is None:
        return None
    moved, few, many = (response.answer for response in responses)
    if moved == few == many == 0:
        return None
    return moved == 0 and abs(few - many) > _SAME * max(few, many)


def _read_elsewhere(read: TokensRead, layout: TokenLayout) -> str:
    """What the answer reads instead of what the layout says, in a sentence."""
    fitting = layout_that_reads(layout, read)
    if all(len(tokens) < 2 for tokens in read.outputs):
        what = (
            "start from it"
            if len(read.tokens) == 1
            else "start from the token of the output that they explain"
        )
        then = f"and maps of the answer {what}"
    else:
        then = "but no map of the answer is drawn"
    return (
        f"After the last layer the answer reads {read.in_words(layout)}, but not as the layout says ({layout.describe('pool')}): "
        f"the rows of each layer are right, {then}"
        f"{f'; the layout that says so is {as_source(fitting)}' if fitting else ''}."
    )
