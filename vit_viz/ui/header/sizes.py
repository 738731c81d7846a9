"""The sizes to choose from: how the photo becomes the model's input, in how many patches, and what that costs."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, get_args

from vit_viz.checkpoints import Model
from vit_viz.errors import ParameterError
from vit_viz.images import Mode
from vit_viz.session.models import forward_work
from vit_viz.session.session import Session
from vit_viz.views.choices import subject_of
from vit_viz.views.state import ViewState

OWN = "0"
DINO = "dino"
DINO_SIDE = 480
"""Pixels on each side of the photos in the figures of the DINO paper, arXiv:2104.14294."""

_FACTORS = (1.5, 2, 3, 4, 6, 8)
_COST = "The work is counted from the model's shape: 2 P N + 4 N² D for N tokens of D numbers and P weights per block."


def value(session: Session, view: ViewState, owner: str) -> dict[str, Any]:
    """The sizes to choose from, in each shape, as pairs of words and value, the checkpoint's own first; and what a size costs."""
    subject = subject_of(session, view, owner)
    loaded, photo = session.model(subject.model), session.photo_of(subject)
    sizes = Sizes(loaded, (photo.height, photo.width), session.max_patches)
    return {
        "offered": {mode: sizes.offered(mode, view.size) for mode in get_args(Mode)},
        "cost": f"Up to {session.max_patches:,} patches are computed here. {_COST}",
    }


@dataclass(frozen=True)
class Sizes:
    """The sizes in which a model can be given a photo.

    Args:
        photo: (height, width) in pixels.
        most: patches of a size that is chosen.
    """

    loaded: Model
    photo: tuple[int, int]
    most: int

    def offered(self, mode: Mode, present: int) -> list[tuple[str, str]]:
        """The checkpoint's own, some multiples of it, the largest, the present one, and that of the DINO paper's figures."""
        rows, cols = self._own(mode)
        choices = [(f"{rows} x {cols} patches, {rows * cols:,}: the model's own size", OWN)]
        short, possible = self.loaded.preprocess.short_side, self._possible(mode)
        wanted = {round(short * factor) for factor in _FACTORS} | {present, *possible[-1:]}
        if self._is_of_dino():
            wanted.add(DINO_SIDE // 8)
        for size in possible:
            if size in wanted:
                choices.append((self._words(mode, size), str(size)))
        paper = DINO_SIDE // 8
        is_there = paper in possible and self._is_paper(self._grid(mode, paper))
        if self._is_of_dino() and not is_there and paper in self._possible("stretch"):
            choices.append((f"{self._words('stretch', paper)}; stretched to a square", DINO))
        return choices

    def _words(self, mode: Mode, size: int) -> str:
        """A size and what it costs."""
        rows, cols = self._grid(mode, size)
        own = self._own(mode)
        work = self._work(self._tokens(rows * cols)) / self._work(self._tokens(own[0] * own[1]))
        of = f"about {work:.{0 if work >= 3 else 1}f} x the work of {own[0]} x {own[1]}"
        paper = f"; {DINO_SIDE} px, as in the figures of DINO" if self._is_paper((rows, cols)) else ""
        return f"{rows} x {cols} patches, {rows * cols:,}: {of}{paper}"

    def _is_paper(self, grid: tuple[int, int]) -> bool:
        return self._is_of_dino() and grid == (DINO_SIDE // 8, DINO_SIDE // 8)

    def _possible(self, mode: Mode) -> range:
        """Every size above the checkpoint's own; beyond the first that is too large all are."""

        def is_too_large(size: int) -> bool:
            try:
                self._grid(mode, size)
            except ParameterError:
                return True
            return False

        sizes = range(self.loaded.preprocess.short_side + 1, math.isqrt(self.most) + 1)
        return sizes[: bisect_left(sizes, True, key=is_too_large)]

    @cached_property
    def _work(self) -> Callable[[int], float]:
        return forward_work(self.loaded)

    def _own(self, mode: Mode) -> tuple[int, int]:
        return self.loaded.preprocess.grid(*self.photo, mode=mode)

    def _grid(self, mode: Mode, size: int) -> tuple[int, int]:
        return self.loaded.preprocess.grid(*self.photo, mode=mode, size=size, max_patches=self.most)

    def _tokens(self, patches: int) -> int:
        config = self.loaded.config
        return patches + (0 if config is None else len(config.prefix))

    def _is_of_dino(self) -> bool:
        """Whether the model has patches of 8 pixels and a square input, as the one in the paper's figures."""
        recipe = self.loaded.preprocess
        return recipe.patch_size == (8, 8) and recipe.input_size[0] == recipe.input_size[1]
