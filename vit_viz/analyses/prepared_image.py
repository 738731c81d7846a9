"""One image in front of one model: what every analysis that runs the model again starts from."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor, nn

from vit_viz.analyses.batches import in_batches
from vit_viz.analyses.outputs import outputs_of
from vit_viz.analyses.targets import Noun, Target, TargetLike, as_target
from vit_viz.capture import Trace, trace
from vit_viz.capture.buffers import BufferPool
from vit_viz.capture.forward import undisturbed
from vit_viz.capture.given import as_known_model, as_model, as_picture, as_pixels, dtype_of, labels_of
from vit_viz.checkpoints import Model
from vit_viz.errors import ParameterError
from vit_viz.geometry import CropBox, TokenLayout
from vit_viz.images import Mode, Preprocess, decode, image_hash
from vit_viz.labels import Labels
from vit_viz.model import VisionTransformer
from vit_viz.progress import Watch
from vit_viz.results import Provenance

Picture = Image.Image | NDArray[Any] | Path | str
ModelLike = Model | nn.Module | str | Path
"""A loaded model, any module, or the name, the path or the Hub id of a model, which is then loaded."""


@dataclass(frozen=True, eq=False)
class PreparedImage:
    """One image as one model receives it.

    Args:
        model: in eval mode while it runs.
        pixels: normalised input on the model's device, [1, channels, height, width], in fp32 at least: half precision is too coarse
            for what is added and averaged there.
        layout: which token is what.
        has_classes: whether the outputs are scores of classes, and not an embedding; so are those that nothing is known of.
        crop_box: where the input lies in the original image.
        provenance: of model and image.
        preprocess: how the input was made, where that is known.
        turn: entered around everything that runs the model, one batch at a time; waits where the device is shared.
        pool: where the memory of traces comes from; None is the pool of the process.
        noun: what one output is called in words: "output" where nobody says that they are classes.
        labels: names of the classes, where they are known.
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
    noun: Noun = "class"
    labels: Labels | None = None

    @classmethod
    def of(
        cls,
        loaded: ModelLike,
        image: Picture | Tensor | None,
        *,
        mode: Mode = "fit",
        size: int = 0,
        max_patches: int | None = None,
        layout: TokenLayout | None = None,
        has_classes: bool | None = None,
    ) -> PreparedImage:
        """From a model (or its name) and a picture, or from any module and its pixels.

        Args:
            mode: how a picture becomes the model's input; see `Preprocess.apply`, also for `size` and `max_patches`.
            has_classes: whether the outputs are scores of classes; None decides by what the model says, see `outputs_of`.

        Raises:
            ImageError: the picture cannot be read.
            ParameterError: a module got a picture without its preprocessing, or its layout cannot be told, or the pixels are not
                finite.
            CaptureError: the module has no attention that can be seen.
        """
        named, picture = as_model(loaded), as_picture(image)
        source = as_known_model(named, picture)
        crop_box: CropBox | None = None
        if isinstance(source, nn.Module):
            model, provenance, recipe = source, Provenance(), None
        else:
            model, provenance, recipe = source.model, source.provenance, source.preprocess
        if not isinstance(picture, Tensor):
            assert recipe is not None  # see `as_known_model`
            decoded = decode(picture)
            prepared = recipe.apply(decoded, mode=mode, size=size, max_patches=max_patches)
            picture, crop_box = prepared.pixels, prepared.crop_box
            words = recipe.sized(size).describe(mode=mode)
            provenance = replace(provenance, image=image_hash(decoded), preprocess=words)
        pixels = as_pixels(picture, model)
        pixels = pixels.to(torch.promote_types(pixels.dtype, torch.float32))
        if isinstance(model, VisionTransformer) and model.config.drop_remainder:
            pixels = model.patch_embed.whole_patches(pixels)  # maps of pixels then have whole patches
        outputs = outputs_of(named) if has_classes is None else "classes" if has_classes else "embedding"
        return cls(
            model,
            pixels,
            _layout(model, pixels, layout),
            outputs != "embedding",
            crop_box,
            provenance,
            recipe,
            noun="output" if outputs == "unknown" else "class",
            labels=labels_of(source),
        )

    @property
    def dtype(self) -> torch.dtype:
        """The precision that the model takes its input in."""
        return dtype_of(self.model, self.pixels)

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
        return as_target(target, has_classes=self.has_classes, noun=self.noun, labels=self.labels)

    def outputs(self, pixels: Tensor) -> Tensor:
        """What the model says of a batch, [batch, outputs], in fp32 at least; gradients as the caller has them."""
        with self.turn(), undisturbed(self.model):
            result = self.model(pixels.to(self.dtype))
        output = result if isinstance(result, Tensor) else getattr(result, "logits", None)
        if not isinstance(output, Tensor) or output.ndim != 2:
            raise ParameterError(
                "The model must return a tensor [batch, outputs], or an object with such .logits."
            )
        return output.float() if output.dtype in (torch.float16, torch.bfloat16) else output

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


def _layout(module: nn.Module, pixels: Tensor, layout: TokenLayout | None) -> TokenLayout:
    """Which token is what: as given, as our own model says, or as a pass shows."""
    if layout is not None:
        return layout
    if isinstance(module, VisionTransformer):
        return module.layout(int(pixels.shape[-2]), int(pixels.shape[-1]))
    return trace(module, pixels).layout
