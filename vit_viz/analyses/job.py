"""What a question is answered from: one image in front of one model, with whom to tell how far the answer is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from PIL import Image

from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.analyses.targets import TargetLike
from vit_viz.capture import Trace
from vit_viz.checkpoints import Model
from vit_viz.geometry import Query
from vit_viz.lazy import Tensor
from vit_viz.progress import Progress, StopCheck, Watch


@dataclass(frozen=True)
class Job:
    """One request as the function of its question sees it. What is not asked for is not computed.

    Args:
        loaded: the model.
        parameters: of the request, by name.
        answer_of: the answer to another request about the same image, by its name and parameters; kept as any other.
        prepare: makes the image as the model receives it, for what runs the model.
        see: the picture, or the part of it that is meant, and how `Preprocess.apply` makes the input of it.
        record: the recorded pass, or the one that kept the residual stream; refused where its pictures would mislead.
        single_copy: entered around what needs a copy of the model, of which there is one at a time.
        progress: told the share that is done.
        cancelled: asked between batches.
        preview: given what is there so far, where an answer can tell.
    """

    loaded: Model
    parameters: Mapping[str, Any]
    answer_of: Callable[..., Any]
    prepare: Callable[[], PreparedImage]
    see: Callable[[], tuple[Image.Image, dict[str, Any]]]
    record: Callable[[bool], Trace]
    single_copy: Callable[[], AbstractContextManager[None]]
    progress: Progress | None = None
    cancelled: StopCheck | None = None
    preview: Callable[[Any], None] | None = None

    @property
    def trace(self) -> Trace:
        """The recorded pass."""
        return self.record(False)

    @property
    def tokens(self) -> Trace:
        """The recorded pass that kept the tokens of every layer.

        Raises:
            CaptureError: this model's residual stream cannot be recorded.
        """
        return self.record(True)

    @property
    def image(self) -> PreparedImage:
        """The image as the model receives it."""
        return self.prepare()

    @property
    def query(self) -> Query | None:
        """The token that it starts from; None for what the question says."""
        query: Query | None = self.parameters.get("query")
        return query

    @property
    def target(self) -> TargetLike:
        """What is explained: a class, a pair of classes, or None for the model's own first choice."""
        target: TargetLike = self.parameters.get("target")
        return target

    @property
    def outputs(self) -> Tensor:
        """What the model says of the whole image, on the CPU; see `PreparedImage.logits`."""
        recorded = self.trace
        outputs = self.image.logits(recorded) if recorded.logits is None else recorded.logits
        return outputs.float().cpu()

    @property
    def watched(self) -> dict[str, Any]:
        """Progress and cancellation as functions take them."""
        return {"progress": self.progress, "cancelled": self.cancelled}

    def watch(self, total: int) -> Watch:
        """Counts the steps of a slow answer, says how far it is, and ends it when that is wanted."""
        return Watch(total, **self.watched)
