"""What a step is drawn from: the model, its input, the trace, and the token that the visitor follows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from PIL import Image

from vit_viz.analyses.patches import SEQUENCE, ReceivedImage
from vit_viz.analyses.position_tables import FilterComponents
from vit_viz.capture import Trace
from vit_viz.checkpoints import Model
from vit_viz.geometry import place_words
from vit_viz.model import VisionTransformer, ViTConfig
from vit_viz.session.request import Request, Subject
from vit_viz.session.session import Session
from vit_viz.session.walkthrough import LEARNED_INPUT, LearnedInput, Step
from vit_viz.views.choices import subject_of
from vit_viz.views.state import ViewState
from vit_viz.walkthrough import PositionColours, own_transformer

AnyStep = TypeVar("AnyStep", bound=Step)

_NAMED = ("class", "distillation")


@dataclass(frozen=True, eq=False)
class StepInput:
    """One step's material.

    Args:
        view: as this model and image allow it, with a layer.
        received: the input as a picture, its normalisation undone; mode RGB or L.
        components: what the patch embedding reacts to.
        colours: of learned positions; None where the model has none.
    """

    session: Session
    subject: Subject
    loaded: Model
    trace: Trace
    view: ViewState
    received: Image.Image
    components: FilterComponents
    colours: PositionColours | None

    @classmethod
    def of(cls, session: Session, view: ViewState, owner: str) -> StepInput:
        """The scene of a view."""
        subject = subject_of(session, view, owner)
        loaded = session.model(subject.model)
        trace = session.trace_of(subject)
        view, _ = view.fitted(layers=trace.num_layers, heads=trace.num_heads, layout=trace.layout)
        received: ReceivedImage = session.run(subject.request(SEQUENCE.name))
        learned: LearnedInput = session.run(Request.of(subject.model, "", LEARNED_INPUT.name, owner=owner))
        picture = received.picture
        return cls(session, subject, loaded, trace, view, picture, learned.components, learned.colours)

    def step(self, kind: type[AnyStep], **options: object) -> AnyStep:
        """The numbers of a step, by the class of what they are."""
        answer = self.session.run(self.subject.request("walkthrough", step=kind.__name__, **options))
        assert isinstance(answer, kind)
        return answer

    @property
    def transformer(self) -> VisionTransformer:
        """The model, which is ours: no other can be walked through."""
        return own_transformer(self.loaded.model)

    @property
    def config(self) -> ViTConfig:
        """The shape of the model."""
        return self.transformer.config

    @property
    def layer(self) -> int:
        """The layer that is looked at."""
        return self.view.layer or 0

    @property
    def head(self) -> int:
        """The head that is looked at; where the view fuses heads, the first."""
        return self.view.head if isinstance(self.view.head, int) else 0

    @property
    def option(self) -> int | None:
        """The value of the step's own control; None means its default."""
        return self.view.walkthrough.step_option if self.view.walkthrough.step_option >= 0 else None

    @property
    def token(self) -> int:
        """The token that is followed: the pinned one; else the (first) class token that the output is read from; else a patch."""
        layout = self.trace.layout
        if self.view.query and self.view.query != "pool":
            return layout.tokens(self.view.query_of(layout))[0]
        if layout.pooling == "class":
            return layout.token(layout.class_tokens[0])
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
        return f"patch {place_words(self.place)}"

    def class_name(self, index: int) -> str:
        """What an output is called."""
        return self.loaded.labels.name(index) if self.loaded.labels else f"output {index}"

    def padded_input(self) -> Image.Image:
        """The input with the zeros that some models add, so that the grid divides it."""
        rows, cols = self.trace.layout.grid
        tall, wide = self.config.patch_size
        if self.received.size == (cols * wide, rows * tall):
            return self.received
        sheet = Image.new(self.received.mode, (cols * wide, rows * tall))
        sheet.paste(self.received)
        return sheet
