"""The size control: how the photo becomes the model's input, in how many patches, and what that costs, said before it is chosen."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import gradio as gr

from vit_viz.checkpoints import Model
from vit_viz.errors import ParameterError, VitVizError
from vit_viz.images import Mode
from vit_viz.session.handles import OWNER
from vit_viz.session.models import relative_work
from vit_viz.session.session import Session
from vit_viz.ui.kit import Opener
from vit_viz.ui.page import Page
from vit_viz.views.choices import MODES, subject_of
from vit_viz.views.state import ViewState

OWN = "0"
DINO = "dino"
DINO_SIDE = 480
"""Pixels on each side of the photos in the figures of the DINO paper, arXiv:2104.14294."""

_FACTORS = (1.5, 2, 3, 4, 6, 8)
_UNKNOWN = [("the model's own size", OWN)]
_COST = "The work is counted from the model's shape: 2 P N + 4 N² D for N tokens of D numbers and P weights per block."


def build(page: Page) -> list[Any]:
    """Lay out the control, behind a small button, and let it choose mode and size; returns what `updates` gives values for."""
    with gr.Column(elem_id="vv-size-place", elem_classes="vv-anchor", min_width=0):
        Opener(
            {"words": "Size", "label": "Size of the photo for the model", "panel": "vv-size"},
            elem_id="vv-size-opener",
        )
        with gr.Column(elem_id="vv-size", elem_classes=["vv-panel", "vv-popover"], min_width=0):
            patches = gr.Radio(_UNKNOWN, value=OWN, label="patches", info=_COST, elem_id="vv-patches-count")
            mode = gr.Dropdown(MODES, value="fit", label="shape", elem_id="vv-mode")
    page.action(patches.input, chosen, inputs=[patches])
    page.action(mode.input, lambda view, value: reshaped(page.session, view, value), inputs=[mode])
    return [mode, patches]


def updates(session: Session, view: ViewState, owner: str) -> tuple[Any, Any]:
    """The control for a view: its sizes with what they cost, where the model and the photo are known."""
    size, most = str(view.size), f"Up to {session.max_patches:,} patches are computed here."
    try:
        choices = offered(session, view, owner)
    except VitVizError:
        choices = _UNKNOWN
    if size not in [value for _, value in choices]:
        choices = [*choices, (f"a short side of {size} patches, which is not possible here", size)]
    return gr.update(value=view.mode), gr.update(choices=choices, value=size, info=f"{most} {_COST}")


def chosen(view: ViewState, value: Any) -> ViewState:
    """The view at a size; at that of the DINO paper's figures stretched, as they are.

    Raises:
        ParameterError: it is no size.
    """
    if value == DINO:
        return view.on_subject(mode="stretch", size=DINO_SIDE // 8)
    return view.on_subject(size=view.with_options({"size": value}).size)


def reshaped(session: Session, view: ViewState, mode: Mode) -> ViewState:
    """The view in another mode, at its size where that is possible there."""
    other = view.on_subject(mode=mode)
    if not view.size or not session.has_model(subject_of(session, other, "").model):
        return other.on_subject(mode=mode, size=0) if view.size else other
    sizes = [value for _, value in offered(session, other, OWNER.get())]
    return other if str(view.size) in sizes else view.on_subject(mode=mode, size=0)


def offered(session: Session, view: ViewState, owner: str) -> list[tuple[str, str]]:
    """Pairs (words, value) of the sizes to choose from, the checkpoint's own first.

    Raises:
        VitVizError: the model or the photo is not there.
    """
    subject = subject_of(session, view, owner)
    loaded, photo = session.model(subject.model), session.photo_of(subject)
    sizes = Sizes(loaded, (photo.height, photo.width), session.max_patches)
    return sizes.offered(view.mode, view.size)


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
        is_paper = any(self._is_paper(self._grid(mode, size)) for size in possible)
        if not is_paper and self._is_of_dino() and (DINO_SIDE // 8) in self._possible("stretch"):
            choices.append((f"{self._words('stretch', DINO_SIDE // 8)}; stretched to a square", DINO))
        return choices

    def _words(self, mode: Mode, size: int) -> str:
        """A size and what it costs."""
        rows, cols = self._grid(mode, size)
        own = self._own(mode)
        work = relative_work(self.loaded, self._tokens(rows * cols), self._tokens(own[0] * own[1]))
        of = f"about {work:.{0 if work >= 3 else 1}f} x the work of {own[0]} x {own[1]}"
        paper = f"; {DINO_SIDE} px, as in the figures of DINO" if self._is_paper((rows, cols)) else ""
        return f"{rows} x {cols} patches, {rows * cols:,}: {of}{paper}"

    def _is_paper(self, grid: tuple[int, int]) -> bool:
        return self._is_of_dino() and grid == (DINO_SIDE // 8, DINO_SIDE // 8)

    def _possible(self, mode: Mode) -> list[int]:
        """Every size above the checkpoint's own, ascending."""
        sizes = []
        for size in range(self.loaded.preprocess.short_side + 1, math.isqrt(self.most) + 1):
            try:
                self._grid(mode, size)
            except ParameterError:
                break
            sizes.append(size)
        return sizes

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
