"""Arguments of public functions: accepted in every obvious form, else refused in a sentence that says what to pass."""

from __future__ import annotations

import math
from pathlib import Path

import torch
from PIL import Image
from torch import Tensor, nn

from vit_viz.capture.trace import Trace
from vit_viz.checkpoints import Model, load
from vit_viz.errors import ParameterError
from vit_viz.labels import Labels


def as_model(given: object) -> Model | nn.Module:
    """The model: a loaded one or a module is returned as it is; a name, a path or a Hub id is loaded at every call.

    Raises:
        ParameterError: it is something else, e.g. a trace, which does not hold its model.
        CheckpointError: there is no model of that name.
    """
    if isinstance(given, nn.Module) or isinstance(getattr(given, "model", None), nn.Module):
        return given  # type: ignore[return-value]  # also what has the attributes of a Model
    if isinstance(given, str | Path):
        return load(given)
    if isinstance(given, Trace):
        raise ParameterError(
            "The model has to run again here, and a trace does not hold it: pass the model and the image instead of the trace."
        )
    raise ParameterError(
        f"A model is what vit_viz.load returns, a torch.nn.Module or a name such as 'mini', not {_kind(given)}."
    )


def as_trace(given: object) -> Trace:
    """The trace, checked to be one.

    Raises:
        ParameterError: it is something else, e.g. a photo without a model.
    """
    if isinstance(given, Trace):
        return given
    raise ParameterError(
        f"A trace is needed here, not {_kind(given)}: pass what vit_viz.trace(model, image) returns."
    )


def as_picture(given: object) -> Image.Image | Path | Tensor:
    """The picture or the pixels; a string is a path.

    Raises:
        ParameterError: it is neither.
    """
    if isinstance(given, Image.Image | Path | Tensor):
        return given
    if isinstance(given, str):
        return Path(given)
    what = "none was given" if given is None else f"not {_kind(given)}"
    raise ParameterError(
        f"An image is a picture (PIL.Image), its path, or pixels [1, channels, height, width] as a tensor, {what}."
    )


def as_pixels(pixels: Tensor, module: nn.Module) -> Tensor:
    """The pixels of one image on a module's device and in its precision, [1, channels, height, width].

    Raises:
        ParameterError: they are of more than one image, or not finite.
    """
    if pixels.ndim != 4 or len(pixels) != 1:
        raise ParameterError(
            f"A trace is of one image: it needs pixels [1, channels, height, width], not {list(pixels.shape)}."
        )
    return as_batch(pixels, module)


def as_batch(pixels: Tensor, module: nn.Module) -> Tensor:
    """The pixels of several images on a module's device and in its precision, [images, channels, height, width].

    Raises:
        ParameterError: they have another shape, or are not finite.
    """
    if pixels.ndim != 4 or len(pixels) == 0:
        raise ParameterError(
            f"A batch is of pixels [images, channels, height, width], not {list(pixels.shape)}."
        )
    first = next(module.parameters(), pixels)
    dtype = first.dtype if first.is_floating_point() else dtype_of(module, pixels)
    placed = pixels.detach().to(first.device, dtype)
    # A sum costs a tenth of testing each number. It is not finite if one of them is not, or if finite ones overflow.
    if not math.isfinite(placed.sum()) and not torch.isfinite(placed).all():
        wrong = int((~torch.isfinite(placed)).sum())
        raise ParameterError(
            f"Pixels must be finite numbers of {str(placed.dtype).removeprefix('torch.')}, but {wrong:,} of {placed.numel():,} are "
            "NaN or infinite."
        )
    return placed


def dtype_of(module: nn.Module, pixels: Tensor) -> torch.dtype:
    """The precision of a module's parameters; that of its pixels where it has none."""
    return next((p.dtype for p in module.parameters() if p.is_floating_point()), pixels.dtype)


def class_index(name: str, labels: Labels | None) -> int:
    """Index of the class with this name, among the names that came with the model; digits are the index itself.

    Raises:
        ParameterError: no class has this name, more than one has it, or the names are not known.
    """
    if labels is None and name.strip().isdecimal():
        return int(name)
    if labels is None:
        raise ParameterError(
            f"The class {name[:60]!r} cannot be found, since this model came without names of classes: pass its index."
        )
    return labels.find(name)


def labels_of(model: Model | nn.Module) -> Labels | None:
    """Names of a model's classes, where they are known; a module has none."""
    return None if isinstance(model, nn.Module) else model.labels


def _kind(given: object) -> str:
    """What something is, in words."""
    if isinstance(given, str | Path):
        return f"the text {str(given)[:60]!r}"
    if isinstance(given, nn.Module) or isinstance(getattr(given, "model", None), nn.Module):
        return "a model"
    return "None" if given is None else f"an object of type {type(given).__name__}"
