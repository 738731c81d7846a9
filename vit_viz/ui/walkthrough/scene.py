"""What a step is drawn from: the model, its input, the trace, and the token that the visitor follows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PIL import Image
from torch import Tensor

from vit_viz.analyses.walkthrough import Array, FilterComponents, Walk, filter_components
from vit_viz.analyses.walkthrough_tokens import PositionColours, position_colours
from vit_viz.capture import Trace
from vit_viz.checkpoints import LoadedModel
from vit_viz.session import Session
from vit_viz.ui.choices import subject_of
from vit_viz.ui.state import ViewState

_NAMED = ("class", "distillation")


@dataclass(frozen=True, eq=False)
class Scene:
    """One step's material.

    Args:
        view: as this model and image allow it, with a layer.
        received: the input as a picture, its normalisation undone; mode RGB or L.
        components: what the patch embedding reacts to.
        colours: of learned positions; None where the model has none.
    """

    loaded: LoadedModel
    walk: Walk
    trace: Trace
    view: ViewState
    received: Image.Image
    components: FilterComponents
    colours: PositionColours | None

    @classmethod
    def of(cls, session: Session, view: ViewState, owner: str) -> Scene:
        """The scene of a view; what several steps share is kept in the session's cache."""
        subject = subject_of(session, view, owner)
        loaded = session.model(subject.model)
        trace = session.trace(subject.model, subject.image, mode=subject.mode, owner=owner)
        view, _ = view.fitted(layers=trace.num_layers, heads=trace.num_heads, layout=trace.layout)
        weights = (loaded.provenance.weights, loaded.name)

        def run() -> tuple[Tensor, Tensor]:
            photo = session.image(subject.image, owner=owner)
            with session.turn(loaded):
                walk = Walk.of(loaded.model, loaded.preprocess.apply(photo, mode=subject.mode).pixels)
            return walk.pixels, walk.stream  # kept without the model

        digest = session.digest(subject.image, owner=owner)
        key = ("walkthrough", *weights, digest, subject.mode)
        kept = session.kept(key, run, subject.image, digest, size_of=lambda kept: sum(t.nbytes for t in kept))
        walk = Walk(loaded.model, *kept)
        components: FilterComponents = session.cache.get_or_compute(
            ("filter components", *weights),
            lambda: filter_components(loaded.model),
            size_of=lambda c: c.filters.nbytes,
        )
        colours: PositionColours | None = session.cache.get_or_compute(
            ("position colours", *weights), lambda: position_colours(loaded.model), size_of=lambda _: 65_536
        )
        received = loaded.preprocess.reverse(walk.pixels)
        return cls(loaded, walk, trace, view, received, components, colours)

    @property
    def layer(self) -> int:
        """The layer that is looked at."""
        return self.view.layer or 0

    @property
    def head(self) -> int:
        """The head that is looked at; where the view fuses heads, the first."""
        return self.view.head if isinstance(self.view.head, int) else 0

    @property
    def play(self) -> int | None:
        """The value of the step's own control; None means its default."""
        return self.view.play if self.view.play >= 0 else None

    @property
    def token(self) -> int:
        """The token that is followed: the pinned one; else the class token where the output is read from it; else a patch."""
        layout = self.trace.layout
        if self.view.query and self.view.query != "pool":
            return layout.tokens(self.view.query_of(layout))[0]
        if layout.default_query == "class":
            return layout.token("class")
        return layout.token(self.place)

    @property
    def place(self) -> tuple[int, int]:
        """The patch that is followed, (row, col): the pinned one, else the one in the middle."""
        layout = self.trace.layout
        if self.view.query[:1].isdigit():
            pinned = layout.place(layout.tokens(self.view.query_of(layout))[0])
            assert pinned is not None  # the query is a patch or a region
            return pinned
        return layout.grid[0] // 2, layout.grid[1] // 2

    @property
    def token_name(self) -> str:
        """The followed token in words, for sentences."""
        name = self.trace.layout.name(self.token)
        return name if name.startswith("patch") else f"the {name} token" if name in _NAMED else name

    @property
    def patch_name(self) -> str:
        """The followed patch in words."""
        return f"patch ({self.place[0]}, {self.place[1]})"

    def class_name(self, index: int) -> str:
        """What an output is called."""
        return self.loaded.labels.name(index) if self.loaded.labels else f"output {index}"

    def patch_map(self, values: Array) -> Array:
        """The patch part of one number per token, [rows, cols]."""
        found: Array = self.trace.layout.patches(np.asarray(values))
        return found

    def padded_input(self) -> Image.Image:
        """The input with the zeros that some models add, so that the grid divides it."""
        rows, cols = self.trace.layout.grid
        tall, wide = self.loaded.config.patch_size
        if self.received.size == (cols * wide, rows * tall):
            return self.received
        sheet = Image.new(self.received.mode, (cols * wide, rows * tall))
        sheet.paste(self.received)
        return sheet
