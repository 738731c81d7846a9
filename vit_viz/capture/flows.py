"""Whether information flows through a model as it is drawn: between tokens by attention alone, and from each layer to the next.

The passes are cut where the drawing says that everything flows, and whatever still flows is found (`clamped_pass`):

- tokens whose attention outputs are changed, while all outputs are clamped, must differ alone. The sets of tokens are the bits of
  their numbers, both ways, and each token that is no patch by itself, so that every ordered pair is parted by some set;
- the output of one layer is changed: every token must differ at the next, else it was replaced in between;
- the pixels are another photo's up to one place, where the sequence of tokens is the photo's: all layers after it and the answer
  must be the photo's, else something flows around that place;
- after the last layer only the tokens are the photo's that the layout calls pooled: the answer must be the photo's, and must not be
  where one of them is the other photo's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import compress

from vit_viz.capture.clamped_pass import Change, Site
from vit_viz.capture.report import HOLDS, Check, Reading, Structure
from vit_viz.capture.responses import Response, Responses
from vit_viz.capture.tokens_read import HowPatches, TokensRead, as_source, layout_that_reads
from vit_viz.geometry import TokenLayout
from vit_viz.lazy import Tensor, torch

_PUSHES = (10.0, 1e3, 1e5, 1e8)
"""How strongly outputs are changed, relative to their size: stronger where a small LayerScale hides it."""
_VISIBLE = 0.03  # share of its largest number by which what the next layer reads should differ
_SAME = 1e-6  # share by which two equal answers may differ
SITES = 24  # of one gap between two layers that are tried

UNANSWERED = Check(
    "unknown",
    "Whether information flows as it is drawn could not be checked: the first layer reads the same of different photos.",
)
UNKNOWN = Check(
    "unknown",
    "Whether tokens exchange information elsewhere could not be checked: what its attention passes on was not seen, or not twice "
    "alike.",
)

NOT_READ = (
    "The recorded layers do not follow one another: layer {} does not read what layer {} wrote (parallel attentions of one block, "
    "cross-attention, or an output that is multiplied by zero), so maps through the layers would follow what nothing reads."
)


def check_flow(run: Responses, layout: TokenLayout) -> Structure:
    """Whether tokens exchange information by attention alone, and each layer and the answer read what the layer before wrote.

    What is placed and effective is not found out here, nor whether all attention is recorded (`structure`).

    Args:
        run: of a photo of noise.
    """
    if not run.photo.is_whole or not run.depth:
        return Structure(_not_read(run) or UNKNOWN)
    whole = run.of([Change(is_other=True)])
    if whole is None:
        return Structure(UNKNOWN)
    if not bool((whole[0].calls[0] > 0).any()):
        return Structure(UNANSWERED)
    written = _written(run, layout)
    if written is None or any(bool(each.response.calls.isnan().any()) for each in written):
        return Structure(UNKNOWN)
    if run.photo.dtype == torch.float16:  # too few numbers for changes of any strength
        check = _hidden_layer(written)
        if check is not None:
            return Structure(check)
    check = _each_reads_the_last(written, layout) or _none_exchange(run, layout, written)
    if check is not None:
        return Structure(check)
    places = _places(run)
    if places is None:
        return Structure(UNKNOWN)
    depth = max((layer + 1 for layer, each in enumerate(written) if each.response.answer > 0), default=0)
    return _around(run, layout, places, tuple(range(depth)), written[-1].push, _moved(run, whole[0]))


def _not_read(run: Responses) -> Check | None:
    """What is wrong where a layer reads nothing of what the one before gave; found also where outputs are not seen."""
    responses = run.of([Change(attends_otherwise=layer) for layer in range(run.depth - 1)]) or []
    for layer, response in enumerate(responses, 1):
        if bool((response.calls[layer] == 0).all()):
            return Check("fails", NOT_READ.format(layer, layer - 1))
    return None


@dataclass(frozen=True, eq=False)
class _Written:
    """A layer's output, changed."""

    push: float  # how strongly
    response: Response  # what differed
    visible: int  # tokens that differed clearly at the next layer
    moved: int  # tokens that differed there at all


def _written(run: Responses, layout: TokenLayout) -> list[_Written] | None:
    """Each layer with the weakest change of its output that shows at the next layer in as many tokens as any, clearly or at all."""
    everywhere = torch.ones(layout.num_tokens, dtype=torch.bool)
    clearest: dict[int, _Written] = {}
    hidden = list(range(run.depth))
    for push in _PUSHES:
        changes = [
            Change(pushes=[push * (layer == one) for layer in range(run.depth)], pushed=everywhere)
            for one in hidden
        ]
        responses = run.of(changes)
        if responses is None:
            return None
        for layer, response in zip(hidden, responses, strict=True):
            visible, moved = _shown(response, layer + 1, has_answer=run.photo.answer is not None)
            written = _Written(push, response, visible, moved)
            if layer not in clearest or (visible, moved) > (clearest[layer].visible, clearest[layer].moved):
                clearest[layer] = written
        hidden = [layer for layer in hidden if clearest[layer].visible < layout.num_tokens]
        if not hidden:
            break
    return [clearest[layer] for layer in range(run.depth)]


def _shown(response: Response, layer: int, *, has_answer: bool) -> tuple[int, int]:
    """How many tokens differ clearly at a layer, and at all; after the last one clearly all where the answer does.

    Or some, where there is no answer.
    """
    if layer < len(response.calls):
        moves = response.calls[layer]
        return int((moves >= _VISIBLE).sum()), int((moves > 0).sum())
    shows = response.answer >= _VISIBLE if has_answer else bool((response.later >= _VISIBLE).any())
    return len(response.later) if shows else 0, int((response.later > 0).sum())


def _hidden_layer(written: Sequence[_Written]) -> Check | None:
    """Which layer's output hardly shows at the next, however it is changed (a small LayerScale in fp16); None for none."""
    for layer, each in enumerate(written):
        # where nothing shows at all, it is not read; nor does the answer read a last layer that shows in other tokens
        is_last = layer == len(written) - 1
        later = each.response.later if is_last else each.response.calls[layer + 1]
        if is_last:
            is_hidden = each.response.answer == 0 and not bool((later >= _VISIBLE).any())
        else:
            is_hidden = bool((later == 0).any()) and bool((later > 0).any()) and 2 * each.visible < len(later)
        if is_hidden:
            where = "in the answer" if is_last else f"at layer {layer + 1}"
            return _hidden(layer, where)
    return None


def _hidden(layer: int, where: str) -> Check:
    return Check(
        "unknown",
        f"What layer {layer} writes hardly shows {where} in this precision, so that it could not be checked what passes there.",
    )


def _each_reads_the_last(written: Sequence[_Written], layout: TokenLayout) -> Check | None:
    """What is wrong where a layer does not read what the one before wrote; None where all do."""
    for layer, each in enumerate(written[:-1], 1):
        lost = (each.response.calls[layer] == 0).nonzero()[:, 0].tolist()
        if len(lost) == layout.num_tokens:
            return Check("fails", NOT_READ.format(layer, layer - 1))
        if lost and not each.visible:
            return _hidden(layer - 1, f"at layer {layer}")
        if lost:
            return Check(
                "fails",
                f"Between layer {layer - 1} and layer {layer} {_names(lost, layout)} replaced: the rows of each layer are right, "
                "but maps through the layers would follow what was thrown away.",
            )
    return None


def _names(tokens: Sequence[int], layout: TokenLayout) -> str:
    """Tokens in a sentence, with their verb."""
    names = [layout.name(token) for token in tokens]
    if len(names) == 1:
        return f"the token {names[0]} is"
    words = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
    return f"{len(names)} tokens ({words}) are"


def _none_exchange(run: Responses, layout: TokenLayout, written: Sequence[_Written]) -> Check | None:
    """What is wrong where tokens exchange information outside attention; None where they do not."""
    sets = token_sets(layout)
    pushes = [each.push for each in written]
    responses = run.of([Change(pushes=pushes, pushed=pushed) for pushed in sets]) if len(sets) else []
    if responses is None:
        return UNKNOWN
    for layer in range(1, run.depth + 1):
        states = [each.calls[layer] if layer < run.depth else each.later for each in responses]
        moved = torch.stack([(moves > 0) for moves in states]) if states else sets
        if bool((moved & ~sets).any()):
            return Check("fails", exchange(layer, run.depth, _pair(moved, sets, layout)))
    return None


def exchange(layer: int, depth: int, pair: str = "") -> str:
    """That tokens exchange information outside attention before a layer, or after the last one, in words.

    Args:
        pair: which token reaches which, after a colon; "" where that is not known.
    """
    where = f"before layer {layer}" if layer < depth else "after the last layer"
    return (
        f"Tokens also exchange information outside the recorded attention ({where}{pair}), so maps through the layers would miss "
        "it."
    )


def _pair(moved: Tensor, sets: Tensor, layout: TokenLayout) -> str:
    """Which token reaches which, where one alone explains what a token did, in words."""
    for target in (moved & ~sets).any(0).nonzero()[:, 0].tolist():
        apart = ~sets[:, target]  # images in which the token itself is not changed
        explains = torch.where(moved[apart, target, None], sets[apart], ~sets[apart]).all(0)
        if int(explains.sum()) == 1:
            return f": {layout.name(int(explains.nonzero()))} reaches {layout.name(target)}"
    return ""


@dataclass(frozen=True, eq=False)
class _Place:
    """Where the sequence of tokens was replaced by the photo's, while all before it was another photo's."""

    site: Site  # the best place found of a gap between two layers
    around: int | None  # the first later layer that differed all the same; None where none did
    answer: float  # by how much the answer did

    @property
    def order(self) -> tuple[bool, float]:
        """The smaller, the less flows around it."""
        return self.around is not None, self.answer


def _places(run: Responses) -> list[_Place | None] | None:
    """The best place before the first layer, between any two, and after the last; None where the model does not run.

    Where only the answer reads around places, others are tried of the worst alone: one that has none is enough to know that.
    """
    tightest: list[_Place | None] = [None] * (run.depth + 1)
    left = [[sites for sites in _candidates(run.photo.sites, gap) if sites] for gap in range(run.depth + 1)]
    wanted = [gap for gap, rounds in enumerate(left) if rounds]
    while wanted:
        sites = [site for gap in wanted for site in left[gap].pop(0)]
        responses = run.of([Change(is_other=True, cut=site) for site in sites])
        if responses is None:
            return None
        for site, response in zip(sites, responses, strict=True):
            differs = [
                layer for layer in range(site.calls, run.depth) if bool((response.calls[layer] > 0).any())
            ]
            place = _Place(site, differs[0] if differs else None, _moved(run, response))
            best = tightest[site.calls]
            if best is None or place.order < best.order:
                tightest[site.calls] = place
        wanted = [
            gap
            for gap, best in enumerate(tightest)
            if left[gap] and (best is None or best.around is not None)
        ]
        if not wanted:
            answers = [0.0 if best is None else best.answer for best in tightest]
            worst = answers.index(max(answers))
            wanted = [worst] if answers[worst] > 0 and left[worst] else []
    if tightest[-1] is None:  # no sequence of tokens follows the last call: its output is the place
        site = Site(run.depth - 1, -1)
        last = run.of([Change(is_other=True, cut=site)])
        tightest[-1] = None if last is None else _Place(site, None, _moved(run, last[0]))
    return tightest


def _moved(run: Responses, response: Response) -> float:
    """By how much the answer differs: of a map on average, of which some number always differs as much as it can."""
    return (
        response.answer
        if run.photo.has_scores
        else float(response.outputs.sum()) / max(1, len(response.outputs))
    )


def _candidates(sites: dict[Site, bool], gap: int) -> Iterator[list[Site]]:
    """Where the sequence of tokens may pass in one piece: most likely the last sum, else another, else anywhere."""
    here = sorted((site for site in sites if site.calls == gap), reverse=True)
    sums = [site for site in here if sites[site]]
    yield sums[:1]
    yield sums[1:SITES]
    yield [site for site in here if not sites[site]][:SITES]


def _around(
    run: Responses,
    layout: TokenLayout,
    places: Sequence[_Place | None],
    read: tuple[int, ...],
    push: float,
    whole: float,
) -> Structure:
    """What flows past the layers, and what the answer reads.

    Args:
        push: by which a change of the last layer's output shows.
        whole: how far another photo moves the answer.
    """
    for gap, place in enumerate(places):
        if place is None:
            return Structure(
                Check(
                    "unknown", f"Whether anything flows around layer {max(0, gap - 1)} could not be checked."
                )
            )
        if place.around is not None:
            wrote = f"what layer {gap - 1} wrote" if gap else "what the first layer is given"
            return Structure(
                Check(
                    "fails",
                    f"Layer {place.around} reads more of the image than {wrote} (sums over layers, cross-attention, or an "
                    "embedding added again): the rows of each layer are right, but maps through the layers would miss what flows "
                    "around them.",
                )
            )
    if run.photo.answer is None or whole == 0:
        return Structure(HOLDS)
    present = [place for place in places if place is not None]
    *earlier, last = present
    is_finished_in_part = last.site.number < 0 and last.answer > 0 and earlier[-1].answer == 0
    # what flows past the last attention is the residual stream of the tokens that are read
    if is_finished_in_part:
        present = [*earlier, replace(last, answer=0.0)]
    before, *shares = (max(0.0, 1 - place.answer / whole) for place in present)
    passed = [share * (layer in read) for layer, share in enumerate(shares)]
    reading = Reading(read, tuple(passed), before)
    if reading.sentence:
        return Structure(Check("fails", reading.sentence), reading=reading)
    if not run.photo.has_scores:
        return Structure(HOLDS, reading=reading)
    pooled, tokens = _check_pool(run, layout, None if is_finished_in_part else last.site, push=push)
    return Structure(HOLDS, reading=reading, pooled=pooled, read=tokens)


# --- what the answer reads of the last layer


def _check_pool(
    run: Responses, layout: TokenLayout, site: Site | None, *, push: float
) -> tuple[Check, TokensRead | None]:
    """Whether the answer reads the tokens that the layout calls pooled, patches as evenly as their mean does; and what it reads.

    A learned pool may give tokens that are no patches no weight, such as those that fill a batch up.

    Args:
        site: where the sequence of tokens passes in one piece after the last layer; None where only the tokens that are read are
            finished after it.
        push: by which a change of the last layer's output shows.

    Returns:
        What is read is None where it is not known, and where all outputs read what the layout says.
    """

    def differing(tokens: Tensor) -> Change:
        """An image in which these tokens alone, Boolean [tokens], differ from the photo's after the last layer."""
        if site is None:
            return Change(pushes=[0.0] * (run.depth - 1) + [push], pushed=tokens)
        return Change(is_other=True, cut=site, replaced=~tokens)

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
