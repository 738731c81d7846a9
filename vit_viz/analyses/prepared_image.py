"""One image in front of one model, from which every analysis that runs the model again starts: in batches for which the device has
room, and with its pixels as numbers of patches."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import wraps
from pathlib import Path
from typing import Any, TypeAlias

from numpy.typing import NDArray
from PIL import Image

from vit_viz.analyses.targets import Function, Target, TargetLike, as_target, function_of
from vit_viz.answer import Provenance
from vit_viz.capture import Trace, check_of_target, trace
from vit_viz.capture.buffers import BufferPool
from vit_viz.capture.edit_stack import innermost_edit
from vit_viz.capture.forward import answer_of, undisturbed
from vit_viz.capture.given import as_known_model, as_model, as_picture, as_pixels, dtype_of, labels_of
from vit_viz.capture.layouts import patch_size_of
from vit_viz.capture.returned import (
    ScoresPlace,
    image_of,
    is_of_all,
    is_per_image,
    no_scores,
    number_from,
    place_of_scores,
    scores_of,
)
from vit_viz.checkpoints import LoadedModel, Model
from vit_viz.checkpoints.declared_outputs import Outputs, declared_output, outputs_of
from vit_viz.errors import CaptureError, ParameterError
from vit_viz.geometry import CropBox, TokenLayout
from vit_viz.images import Mode, Preprocess, decode, image_hash
from vit_viz.labels import Labels
from vit_viz.lazy import F, Tensor, nn, torch
from vit_viz.model import SentenceHead, VisionTransformer
from vit_viz.outputs import Noun, Output, checked_output
from vit_viz.progress import Watch
from vit_viz.prompts import words_of

BATCH = 8
"""Images per forward; more is no faster on a CPU and needs more memory."""

Picture = Image.Image | NDArray[Any] | Path | str
ModelLike: TypeAlias = "Model | nn.Module | str | Path"
"""A loaded model, any module, or the name, the path or the Hub id of a model, which is then loaded."""

_logger = logging.getLogger(__name__)


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
        output: what one output is; None where nobody says it, see `output_kind`.
        reads: makes a number of what the model returns for one image, where that holds no scores.
        place: where the scores stand in what the model returns for this image; None takes each pass as it comes.
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
    output: Output | None = None
    reads: Function | None = None
    place: ScoresPlace | None = None

    def __post_init__(self) -> None:
        if self.pixels.is_inference():  # autograd takes no tensor that was made in inference mode
            with torch.inference_mode(False):
                object.__setattr__(self, "pixels", self.pixels.clone())

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
        place: ScoresPlace | None = None,
        has_classes: bool | None = None,
        output: Output | None = None,
        target: TargetLike = None,
    ) -> PreparedImage:
        """From a model (or its name) and a picture, or from any module and its pixels.

        Args:
            mode: how a picture becomes the model's input; see `Preprocess.apply`, also for `size` and `max_patches`.
            layout, place: which token is what, and where the scores stand in what the model returns; None asks the model by a pass.
            has_classes: whether the outputs are scores of classes; None decides by what the model says, see `outputs_of`.
            output: what one output is; None takes what the model says.
            target: what will be explained, of which a function is needed here.
        """
        named, picture = as_model(loaded), as_picture(image)
        if (
            isinstance(named, LoadedModel)
            and named.text is not None
            and not named.has_classes
            and (words := words_of(target))
        ):
            named = named.with_prompts(words)
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
            provenance = replace(provenance, image=image_hash(decoded), preprocess=prepared.words)
        pixels = as_pixels(picture, model)
        shape = (int(pixels.shape[-2]), int(pixels.shape[-1]))
        pixels = pixels.to(torch.promote_types(pixels.dtype, torch.float32))
        if isinstance(model, VisionTransformer) and model.config.drop_remainder:
            pixels = model.patch_embed.whole_patches(pixels)  # maps of pixels then have whole patches
        outputs, kind = _outputs(named, has_classes, output)
        if isinstance(model, VisionTransformer):
            layout = layout or model.layout(int(pixels.shape[-2]), int(pixels.shape[-1]))
            place = None
        elif layout is None:
            recorded = trace(model, pixels)
            layout, place = recorded.layout, recorded.place
        elif place is None:
            with undisturbed(model), torch.no_grad():
                place = place_of_scores(answer_of(model, pixels.to(dtype_of(model, pixels))), len(pixels))
        patch = patch_size_of(
            model, layout.grid, shape, declared=None if recipe is None else recipe.patch_size
        )
        subject = cls(
            model,
            pixels,
            layout,
            outputs != "embedding",
            (crop_box or CropBox.of_pixels(*shape)).of_patches(layout.grid, patch),
            provenance.with_parameters(scores=place.words)
            if place is not None and place.words
            else provenance,
            recipe,
            noun="sentence"
            if isinstance(getattr(model, "head", None), SentenceHead)
            else "output"
            if outputs == "unknown" or kind == "value"
            else "class",
            labels=labels_of(source),
            output=kind,
            place=place,
        )
        return subject.read_by(function_of(target))

    def read_by(self, function: Function | None) -> PreparedImage:
        """The same image with what makes a number of what the model returns; of all of it where that is what it is made for."""
        place = self.place
        if function is not None and place is not None and place.exists:
            with self.turn(), undisturbed(self.model), torch.no_grad():
                result = answer_of(self.model, self.pixels.to(self.dtype))
            place = ScoresPlace(exists=False) if is_of_all(function, result, len(self.pixels)) else place
        return replace(self, reads=function, place=place)

    @property
    def dtype(self) -> torch.dtype:
        """The precision that the model takes its input in."""
        return dtype_of(self.model, self.pixels)

    @property
    def patch_size(self) -> tuple[int, int]:
        """(height, width) of a patch in pixels of the input."""
        (height, width), (rows, cols) = self.pixels.shape[-2:], self.layout.grid
        declared = None if self.preprocess is None else self.preprocess.patch_size
        patch = patch_size_of(self.model, (rows, cols), (height, width), declared=declared)
        return patch or (-(-height // rows), -(-width // cols))

    def transformer(self, what: str) -> VisionTransformer:
        """The model, where it is ours, for what needs its parts."""
        if not isinstance(self.model, VisionTransformer):
            raise ParameterError(
                f"{what} needs the blocks of vit_viz's own VisionTransformer, not {type(self.model).__name__}; load the "
                "checkpoint with vit_viz.load."
            )
        return self.model

    def target(self, target: TargetLike = None) -> Target:
        """A target as given, by default the first class or the own embedding; not yet fixed by an output."""
        wanted = as_target(
            target, has_classes=self.has_classes, noun=self.noun, labels=self.labels, output=self.output
        )
        if wanted.function is None or self._has_scores:
            return wanted
        # `outputs` are what the function made already
        return replace(wanted, function=wraps(wanted.function)(lambda outputs: outputs[0]))

    @property
    def _has_scores(self) -> bool:
        return self.place is None or self.place.exists

    def outputs(self, pixels: Tensor) -> Tensor:
        """What the model says of a batch, [batch, outputs], in fp32 at least; gradients as the caller has them.

        The scores; where the model returns none, the number that is made of what it returns, [batch, 1].
        """
        with self.turn(), undisturbed(self.model):
            result = answer_of(self.model, pixels.to(self.dtype))
        place, name = place_of_scores(result, len(pixels)), type(self.model).__name__
        place = place if self._has_scores else ScoresPlace(exists=False)
        is_as_alone = place.is_as(self.place or place) and is_per_image(result, len(pixels))
        if not is_as_alone and len(pixels) > 1 and innermost_edit() is None:  # it may be of one image each
            return torch.cat([self.outputs(image) for image in torch.split(pixels, 1)])
        if not is_as_alone:
            raise CaptureError(
                f"The output of {name} changes its form with the number of images ({len(pixels)} here) or from pass to pass, so "
                "its numbers cannot be assigned to images: let forward always return one form, images along the first axis."
            )
        if not place.exists:
            if self.reads is None:
                raise no_scores(name, result)
            images = (image_of(result, image, len(pixels)) for image in range(len(pixels)))
            output = torch.stack([number_from(self.reads, one) for one in images])[:, None]
        else:
            scores = scores_of(result, len(pixels))
            assert scores is not None
            output = scores
        return output.float() if output.dtype in (torch.float16, torch.bfloat16) else output

    def scores(self, pixels: Tensor, target: Target) -> Tensor:
        """The target of each image of a batch, [batch], without gradients and in small batches."""
        return in_batches(lambda part: self.batch_scores(pixels[part], target), len(pixels))

    def batch_scores(
        self, pixels: Tensor, target: Callable[[Tensor], Tensor], *, watch: Watch | None = None
    ) -> Tensor:
        """As `scores`, for images that are one batch."""
        if watch is not None:
            watch.check()
        with torch.no_grad():
            scores = target(self.outputs(pixels))
        if watch is not None:
            watch.advance(len(scores))
        return scores

    def resolved(self, target: TargetLike = None) -> Target:
        """A target with its class or embedding fixed by this image; runs the model where it has to be asked."""
        wanted = self.target(target)
        with torch.no_grad():
            return wanted.resolved(self.outputs(self.pixels))

    def logits(self, recorded: Trace) -> Tensor:
        """The outputs [classes] of a recorded pass."""
        if recorded.logits is not None:
            return recorded.logits
        with torch.no_grad():
            return self.outputs(self.pixels)[0]

    def trace(
        self,
        target: Target | None = None,
        *,
        keep_values: bool = False,
        keep_residual: bool = False,
        keep_norms: bool = False,
        keep_features: bool = False,
        keep_gradients: bool = True,
        keep_graph: bool = False,
    ) -> Trace:
        """The recorded forward pass, with the gradient towards a target where one is given."""
        differentiated: Target | Function | None = target
        if target is not None and not self._has_scores:
            if self.reads is None:
                self.outputs(self.pixels)  # which says what there is in place of scores
            differentiated = self.reads
        with self.turn():
            recorded = trace(
                self.model,
                self.pixels,
                layout=self.layout,
                keep_values=keep_values,
                keep_residual=keep_residual,
                keep_norms=keep_norms,
                keep_features=keep_features,
                keep_gradients=keep_gradients,
                keep_graph=keep_graph,
                target=differentiated,
                pool=self.pool,
            )
        recorded.crop_box, recorded.provenance = self.crop_box, self.provenance
        if (
            target is None and self.reads is not None and not self._has_scores
        ):  # maps of no class start there, too
            recorded.of_target = check_of_target(
                self.model, self.pixels.to(self.dtype), self.layout, self.reads
            )
        return recorded


def in_batches(run: Callable[[slice], Tensor], count: int, *, size: int = BATCH) -> Tensor:
    """The results of `run` for consecutive slices of `count` variants, side by side.

    A batch for which a GPU has no room is halved, and so are all after it; each variant still runs exactly once to its end.

    Args:
        run: one number or row per variant of a slice, [variants, ...].
        size: variants per batch.
    """
    parts: list[Tensor] = []
    start = 0
    while start < count:
        part = slice(start, min(start + size, count))
        try:
            parts.append(run(part))
            start = part.stop
        except torch.OutOfMemoryError:
            # tried again only behind this block, where the exception no longer holds on to the batch's memory
            if part.stop - part.start == 1:
                raise
            size = (part.stop - part.start) // 2
            _logger.warning("the GPU has no room for %d images at once: %d from now on", 2 * size, size)
    return torch.cat(parts)


def patch_mask(subject: PreparedImage) -> Tensor:
    """The patch index of each pixel, [1, 1, height, width]; a pixel that no patch covers counts with the nearest one."""
    (height, width), (patch_h, patch_w) = subject.pixels.shape[-2:], subject.patch_size
    rows, cols = subject.layout.grid
    row = (torch.arange(height, device=subject.pixels.device) // patch_h).clamp(max=rows - 1)
    col = (torch.arange(width, device=subject.pixels.device) // patch_w).clamp(max=cols - 1)
    return (row[:, None] * cols + col)[None, None]


def patch_sum(subject: PreparedImage, attributions: Tensor) -> Tensor:
    """Sum over channels and the pixels of each patch: [1, channels, height, width] -> [rows, cols]."""
    return _pooled(subject, attributions.detach().sum(1))


def patch_mean(subject: PreparedImage, values: Tensor) -> Tensor:
    """Mean over the pixels of each patch: [1, height, width] -> [rows, cols]."""
    return _pooled(subject, values.detach()) / _pooled(subject, torch.ones_like(values))


def patch_colours(subject: PreparedImage) -> Tensor:
    """Mean of each channel over the pixels of each patch, [rows, cols, channels], on the CPU.

    In double precision a patch's sum is exact, so patches that look the same have the same mean on every device.
    """
    pixels = subject.pixels.cpu().double()
    count = _pooled(subject, torch.ones_like(pixels[:, 0]))
    return torch.stack([_pooled(subject, channel[None]) / count for channel in pixels[0]], dim=-1)


def _pooled(subject: PreparedImage, values: Tensor) -> Tensor:
    """[1, height, width] -> sums over patches [rows, cols]; a last, incomplete patch counts with what it has."""
    (rows, cols), (patch_h, patch_w) = subject.layout.grid, subject.patch_size
    missing = (0, cols * patch_w - values.shape[-1], 0, rows * patch_h - values.shape[-2])
    padded = F.pad(values[0], missing).reshape(rows, patch_h, cols, patch_w)
    return padded.sum((1, 3))


def _outputs(
    model: Model | nn.Module, has_classes: bool | None, output: Output | None
) -> tuple[Outputs, Output | None]:
    """What a model's outputs are, and what one of them is: as it is told, else as the model says."""
    if output is not None and has_classes is False:
        raise ParameterError(
            "An embedding has no separate outputs: pass output= or has_classes=False, not both."
        )
    kind = checked_output(output)
    if isinstance(model, nn.Module):
        kind = kind or declared_output(model)
        declared = outputs_of(model)
    else:
        kind = kind or model.output
        declared = "classes" if model.has_classes else "embedding"
    if has_classes is None:
        return declared if kind is None else "classes", kind
    return "classes" if has_classes else "embedding", kind
