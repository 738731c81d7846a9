"""What a target reads that is a function of what the model returns, such as a pixel of a segmentation.

The passes are those of `flows`, with the number that the function makes in place of the answer. They begin with the photo of the
trace, for which a function may be made, and are taken anew with each trace: nothing is remembered of a function.

- All before one place after the last layer is another photo's: the number must stay, else the target reads around that place.
- How strongly each token is read is the size of the number's gradient at that place; of a linear readout that is its weights.
- What the last layer passes on to other tokens is changed a little: the number must stay, else it reads them without a gradient.
- Where the gradient is 0, as behind a ReLU, sets of tokens are the other photo's by turns: one token may be in all that matter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from vit_viz.capture.clamped_pass import Change, Site
from vit_viz.capture.flows import SITES, token_sets
from vit_viz.capture.report import HOLDS, Check, Reading, Structure
from vit_viz.capture.responses import Responses
from vit_viz.capture.returned import image_of, is_per_image, number_from
from vit_viz.capture.structure_check import StructureCheck, raise_interruption
from vit_viz.capture.tokens_read import TargetRead
from vit_viz.capture.verified import verified_structure
from vit_viz.errors import ParameterError
from vit_viz.geometry import TokenLayout
from vit_viz.lazy import Tensor, nn, torch

_UNKNOWN = "Which tokens the target reads could not be found out, as where rounding changes it as much as another photo"
_LITTLE = 1e-2  # of its largest number, by which what the last layer passes on is changed
_SAME = 1e-4  # share of what another photo changes up to which a target stays
_FIRST_SUMS = 3  # after the last attention that are tried: of its block, at least
_AFTER = 2  # places right after the last sum that are tried: of the last norm, at least
_NONE = 1e-6  # share of the largest gradient below which a token is not read


def check_of_target(
    module: nn.Module, pixels: Tensor, layout: TokenLayout, function: Callable[[Any], Tensor]
) -> StructureCheck:
    """The check that finds out how a module attends and what a target reads of it, `Structure.target`.

    Args:
        pixels: of the photo, [1, channels, height, width], in the precision of the module.
        function: makes a number of what the module returns for one image.
    """
    find = partial(_found, pixels=pixels, layout=layout, function=function)
    check = StructureCheck(module, find, device=pixels.device)
    check.hold(module)
    return check


def _found(
    module: nn.Module, *, pixels: Tensor, layout: TokenLayout, function: Callable[[Any], Tensor]
) -> Structure:
    structure = verified_structure(module, pixels, layout)
    complete = structure.complete
    if structure.reading is not None and complete.sentence == structure.reading.sentence:
        complete = HOLDS  # what flows around the layers to all that is returned need not flow to the target
    run = _Run(module, pixels, layout, function)
    read = run.read()
    raise_interruption()
    reading = run.reading
    if complete.status != "fails" and reading is not None and reading.sentence:
        complete = Check("fails", reading.sentence)
    pooled = Check("unknown", f"{read.problem}.") if read.problem and complete.status != "fails" else HOLDS
    return replace(structure, complete=complete, reading=reading, pooled=pooled, read=None, target=read)


class _Number:
    """The number of each image, as an answer, and beside it a size that differences are compared with: the number may be near 0."""

    def __init__(self, function: Callable[[Any], Tensor]) -> None:
        self._function, self.size = function, 0.0

    def __call__(self, returned: Any, images: int) -> Tensor | None:
        if not is_per_image(returned, images):
            return None
        try:
            each = [number_from(self._function, image_of(returned, image, images)) for image in range(images)]
        except ParameterError:  # made for one image of its own
            return None
        numbers = torch.stack(each).float()
        return torch.stack([numbers, torch.full_like(numbers, self.size)], dim=1)


class _Run:
    """The passes in front of one photo.

    Attributes:
        reading: how much of the target passes through each layer; None where that could not be found out.
    """

    def __init__(
        self, module: nn.Module, pixels: Tensor, layout: TokenLayout, function: Callable[[Any], Tensor]
    ) -> None:
        self._layout, self._number = layout, _Number(function)
        self._module, self._pixels = module, pixels
        self.reading: Reading | None = None

    def read(self) -> TargetRead:
        """Which tokens after the last layer the target reads."""
        run = Responses(self._module, self._pixels, self._layout, answer=self._number)
        photo, other = run.photo.answer, run.answer_of(Change(is_other=True))
        if photo is None or other is None or not run.photo.is_whole:
            return TargetRead(problem=_UNKNOWN)
        whole, size = float((other - photo).abs().max()), float(photo.abs().max())
        if not whole > _SAME * size:
            return TargetRead(
                problem="The target is the same for another photo, so that it is not known which tokens it reads"
            )
        self._number.size = whole
        self._run = Responses(self._module, self._pixels, self._layout, answer=self._number)
        self._share = max(whole, size) / whole
        return self._of_places()

    def _of_places(self) -> TargetRead:
        depth, places = self._run.depth, self._run.photo.sites
        last = sorted((site for site in places if site.calls == depth), reverse=True)
        sums = [site for site in last if places[site]]
        normed = [site for site in last if sums and site > sums[0]][-_AFTER:]
        likely = list(dict.fromkeys((*last[:1], *normed, *sums[:1], *sums[-_FIRST_SUMS:])))
        least, tight = 1.0, list[Site]()
        for sites in (likely, [site for site in last if site not in likely][:SITES]):
            moved = self._moved([Change(is_other=True, cut=site) for site in sites])
            if moved is None or not last:
                return TargetRead(problem=_UNKNOWN)
            tight = [site for site, share in zip(sites, moved, strict=True) if not share]
            least = min([least, *moved])
            if tight:
                break
        self.reading = Reading(tuple(range(depth)), (1.0,) * depth, of="target")
        if not tight:
            self.reading = self._earlier(1 - least)
            return TargetRead(
                problem="The target reads around the last layer, so that no token after it stands for it"
            )
        return self._of_tokens(tight)

    def _earlier(self, last: float) -> Reading:
        """How much of the target passes through what is given to the first layer, and through what each layer wrote.

        Args:
            last: how much passes through what the last layer wrote.
        """
        places = self._run.photo.sites
        likely = {site.calls: site for site in sorted(places, key=lambda site: (places[site], site))}
        gaps = [gap for gap in range(self._run.depth) if gap in likely]
        moved = self._moved([Change(is_other=True, cut=likely[gap]) for gap in gaps]) or [0.0] * len(gaps)
        passes = dict(zip(gaps, (max(0.0, 1 - share) for share in moved), strict=True))
        before, *shares = (passes.get(gap, 1.0) for gap in range(self._run.depth))  # all, where nobody knows
        read = tuple(layer for layer, share in enumerate((*shares, last)) if share)
        return Reading(read, (*shares, last), before, of="target")

    def _of_tokens(self, tight: Sequence[Site]) -> TargetRead:
        """By the gradient at the last of these places behind which tokens are mixed no more than behind the first."""
        *later, first = sorted(tight, reverse=True)
        weights = self._weights(first)
        if weights is None:
            return self._by_sets(first)
        others = weights == 0
        if self._reads_the_pool(others):
            return TargetRead()
        pushes = [0.0] * (self._run.depth - 1) + [_LITTLE]
        if others.any() and self._moved([Change(pushes=pushes, pushed=others)]) != [0.0]:
            return TargetRead(
                problem="The target also changes with tokens after the last layer that its gradient does not reach"
            )
        weights_of = (self._weights(site) for site in later)
        alike = (one for one in weights_of if one is not None and torch.equal(one == 0, others))
        return TargetRead(tuple(next(alike, weights).tolist()))

    def _weights(self, site: Site) -> Tensor | None:
        """Share of each token in the size of the gradient at a place, [tokens]; None where there is no gradient."""
        slopes = self._run.slopes(site)
        if slopes is None or not slopes.any():
            return None
        weights = torch.where(slopes > _NONE * slopes.max(), slopes, 0).cpu()
        return weights / weights.sum()

    def _by_sets(self, site: Site) -> TargetRead:
        """The one token that each set has whose change moves the target."""
        sets = token_sets(self._layout)
        moved = self._moved([Change(is_other=True, cut=site, replaced=~tokens) for tokens in sets])
        matters = torch.tensor(moved or [0.0] * len(sets)) > 0
        read = (matters[:, None] | ~sets).all(0)  # by every set that has it
        if int(read.sum()) != 1:
            return TargetRead(
                problem="The target has no gradient after the last layer, so that it is not known which tokens it reads"
            )
        return TargetRead(tuple(read.float().tolist()))

    def _reads_the_pool(self, others: Tensor) -> bool:
        """Whether the target reads all patches by the attention that pools them, which has its own weights."""
        if self._layout.pooling != "attention" or bool(others[self._layout.patch_slice].any()):
            return False
        return self._moved([Change(pools_otherwise=True)]) not in (None, [0.0])

    def _moved(self, changes: Sequence[Change]) -> list[float] | None:
        """How far each change moves the target, as a share of what another photo does; None where that is not known."""
        responses = self._run.of(changes)
        if responses is None or any(len(response.outputs) == 0 for response in responses):
            return None
        shares = [response.answer * self._share for response in responses]
        return [share if share > _SAME else 0.0 for share in shares]
