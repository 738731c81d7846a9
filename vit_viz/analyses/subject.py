"""One image in front of one model: what every analysis that runs the model again starts from."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import torch
from PIL import Image
from torch import Tensor, nn

from vit_viz.analyses.batches import in_batches
from vit_viz.analyses.targets import Target, TargetLike, as_target
from vit_viz.analyses.watch import Watch
from vit_viz.capture import Trace, trace
from vit_viz.capture.buffers import BufferPool
from vit_viz.capture.forward import undisturbed
from vit_viz.checkpoints import LoadedModel
from vit_viz.errors import ParameterError
from vit_viz.geometry import CropBox, TokenLayout
from vit_viz.images import Mode, Preprocess, decode, image_hash
from vit_viz.model import VisionTransformer
from vit_viz.results import Provenance

Picture = Image.Image | Path | str


@dataclass(frozen=True, eq=False)
class Subject:
    """One image as one model receives it.

    Args:
        model: in eval mode while it runs.
        pixels: normalised input on the model's device, [1, channels, height, width].
        layout: which token is what.
        has_classes: whether the outputs are scores of classes, and not an embedding.
        crop_box: where the input lies in the original image.
        provenance: of model and image.
        preprocess: how the input was made, where that is known.
        turn: entered around everything that runs the model, one batch at a time; waits where the device is shared.
        pool: where the memory of traces comes from; None is the pool of the process.
    """

    model: nn.Module
    pixels: Tensor
    layout: TokenLayout
    has_classes: bool
    crop_box: CropBox | None = None
    provenance: Provenance = field(default_factory=Provenance)
    preprocess: Preprocess | None = None
    turn: Callable[[], AbstractContextManager[None]] = nullcontext
    pool: BufferPool | None = None

    @classmethod
    def of(
        cls,
        loaded: LoadedModel | nn.Module,
        image: Picture | Tensor,
        *,
        mode: Mode = "fit",
        layout: TokenLayout | None = None,
    ) -> Subject:
        """From a loaded model and a picture, or from any module and its pixels.

        Raises:
            ImageError: the picture cannot be read.
            ParameterError: a module got a picture without its preprocessing, or its layout cannot be told.
            CaptureError: the module has no attention that can be seen.
        """
        model = loaded if isinstance(loaded, nn.Module) else loaded.model
        crop_box: CropBox | None = None
        provenance = Provenance() if isinstance(loaded, nn.Module) else loaded.provenance
        if isinstance(image, Tensor):
            pixels = image
        elif not isinstance(loaded, nn.Module):
            picture = image if isinstance(image, Image.Image) else decode(Path(image))
            prepared = loaded.preprocess.apply(picture, mode=mode)
            pixels, crop_box = prepared.pixels, prepared.crop_box
            provenance = Provenance(
                provenance.model,
                provenance.weights,
                image_hash(picture),
                loaded.preprocess.describe(mode=mode),
            ).with_parameters(**dict(provenance.parameters))
        else:
            raise ParameterError(
                "A module without preprocessing takes pixels [1, channels, height, width], not a picture."
            )
        pixels = pixels.to(device_of(model))
        ours = model if isinstance(model, VisionTransformer) else None
        if ours is not None and ours.config.drop_remainder:  # maps of pixels then have whole patches
            pixels = ours.patch_embed.whole_patches(pixels)
        if layout is None:
            layout = ours.layout(*pixels.shape[-2:]) if ours else trace(model, pixels).layout
        recipe = None if isinstance(loaded, nn.Module) else loaded.preprocess
        classes = _has_classes(loaded) if isinstance(loaded, nn.Module) else loaded.has_classes
        return cls(model, pixels, layout, classes, crop_box, provenance, recipe)

    @property
    def patch_size(self) -> tuple[int, int]:
        """(height, width) of a patch in pixels of the input."""
        if isinstance(self.model, VisionTransformer):
            return self.model.config.patch_size
        (height, width), (rows, cols) = self.pixels.shape[-2:], self.layout.grid
        return -(-height // rows), -(-width // cols)

    def transformer(self, what: str) -> VisionTransformer:
        """The model, where it is ours, for what needs its parts.

        Raises:
            ParameterError: it is another module; `what` says what it was needed for.
        """
        if not isinstance(self.model, VisionTransformer):
            raise ParameterError(
                f"{what} needs the blocks of vit_viz's own VisionTransformer, not {type(self.model).__name__}; load the "
                "checkpoint with vit_viz.load."
            )
        return self.model

    def target(self, target: TargetLike = None) -> Target:
        """A target as given, by default the first class or the own embedding; not yet fixed by an output."""
        return as_target(target, has_classes=self.has_classes)

    def outputs(self, pixels: Tensor) -> Tensor:
        """What the model says of a batch, [batch, outputs]; gradients as the caller has them."""
        with self.turn(), undisturbed(self.model):
            result = self.model(pixels)
        output = result if isinstance(result, Tensor) else getattr(result, "logits", None)
        if not isinstance(output, Tensor) or output.ndim != 2:
            raise ParameterError(
                "The model must return a tensor [batch, outputs], or an object with such .logits."
            )
        return output

    def scores(self, pixels: Tensor, target: Target, *, watch: Watch | None = None) -> Tensor:
        """The target of each image of a batch, [batch], without gradients and in small batches."""
        return in_batches(lambda part: self.batch_scores(pixels[part], target, watch=watch), len(pixels))

    def batch_scores(self, pixels: Tensor, target: Target, *, watch: Watch | None = None) -> Tensor:
        """As `scores`, for images that are one batch."""
        if watch is not None:
            watch.check()
        with torch.no_grad():
            scores = target(self.outputs(pixels))
        if watch is not None:
            watch.advance(len(scores))
        return scores

    def resolved(self, target: TargetLike = None) -> Target:
        """A target with its class or embedding fixed by this image; runs the model where it has to be asked.

        Raises:
            ParameterError: the class does not exist, or the model has none.
        """
        wanted = self.target(target)
        with torch.no_grad():
            return wanted.resolved(self.outputs(self.pixels))

    def logits(self, recorded: Trace) -> Tensor:
        """The outputs [classes] of a recorded pass.

        Raises:
            ParameterError: the model returns something else, such as boxes or tokens.
        """
        if recorded.logits is None:
            raise ParameterError(
                "This model returns no scores [1, classes], so there is nothing to explain; rollout(trace) needs none."
            )
        return recorded.logits

    def trace(
        self, target: Target | None = None, *, keep_values: bool = False, keep_residual: bool = False
    ) -> Trace:
        """The recorded forward pass, with the gradient towards a target where one is given."""
        with self.turn():
            recorded = trace(
                self.model,
                self.pixels,
                layout=self.layout,
                keep_values=keep_values,
                keep_residual=keep_residual,
                target=target,
                pool=self.pool,
            )
        recorded.crop_box, recorded.provenance = self.crop_box, self.provenance
        return recorded


def device_of(model: nn.Module) -> torch.device:
    """Where a module's parameters are; the CPU for a module without any."""
    return next((parameter.device for parameter in model.parameters()), torch.device("cpu"))


def _has_classes(model: nn.Module) -> bool:
    if not isinstance(model, VisionTransformer):
        return True  # what a stranger's module returns is taken for scores of classes
    return model.config.num_classes > 0 and not model.config.projection
