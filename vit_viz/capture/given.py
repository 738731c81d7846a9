"""Arguments of public functions: accepted in every obvious form, else refused in a sentence that says what to pass."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from vit_viz.capture.trace import Trace
from vit_viz.capture.wrappers import preprocess_within, unwrapped_module
from vit_viz.checkpoints import Model, load
from vit_viz.checkpoints.declared_outputs import declared_labels
from vit_viz.checkpoints.digest import weights_of
from vit_viz.checkpoints.plain_module import device_of, plain_module
from vit_viz.checkpoints.unwrapping import listed
from vit_viz.errors import ImageError, ParameterError
from vit_viz.labels import Labels
from vit_viz.lazy import Tensor, nn, torch
from vit_viz.samples import sample, sample_names
from vit_viz.sentences import did_you_mean


def as_model(given: object) -> Model | nn.Module:
    """The model: a loaded one as it is now, a module without torch's wrappers; names, paths and Hub ids are loaded at each call."""
    if isinstance(given, nn.Module):
        module = unwrapped_module(given)
        if isinstance(module, torch.jit.ScriptModule):
            raise ParameterError(
                "A TorchScript module runs outside of Python, where its attention cannot be seen: pass the module that it was made "
                "of, with load_state_dict(scripted.state_dict())."
            )
        return module
    exported = sys.modules.get("torch.export")  # which is large, and imported where there is such a program
    if isinstance(given, getattr(exported, "ExportedProgram", ())):
        raise ParameterError(
            "An ExportedProgram is not a module: pass its module(), as in trace(program.module(), pixels)."
        )
    if isinstance(given, Model):
        return as_it_is(given)
    if isinstance(getattr(given, "model", None), nn.Module):
        return given  # type: ignore[return-value]  # what has the attributes of a Model
    if isinstance(given, str | Path):
        return load(given)
    if isinstance(given, Trace):
        raise ParameterError(
            "The model has to run again here, and a trace does not hold it: pass the model and the image instead of the trace."
        )
    bound = "; bind inputs of a module by model.forward = functools.partial(model.forward, ...)"
    raise ParameterError(
        f"A model is what vit_viz.load returns, a torch.nn.Module or a name such as 'mini', not {_kind(given)}"
        f"{bound if callable(given) else ''}."
    )


def as_it_is(loaded: Model) -> Model:
    """The same model, whose provenance names the weights that it has now."""
    return loaded.with_weights(weights_of(loaded.model))


def as_trace(given: object) -> Trace:
    """The trace, checked to be one, and that what is drawn from it does not mislead; waits as `Trace.structure` does."""
    if isinstance(given, Trace):
        given.wait()
        return given
    raise ParameterError(
        f"A trace is needed here, not {_kind(given)}: pass what vit_viz.trace(model, image) returns."
    )


def as_picture(given: object) -> Image.Image | Path | Tensor:
    """The picture, its path, or the pixels; a string is the name of a sample or a path, an array is a picture.

    What a processor of transformers returns stands for its pixels.
    """
    if isinstance(given, Image.Image | Tensor):
        return given
    if isinstance(given, str | Path):
        known, path = sample_names(), Path(given)
        if isinstance(given, str) and given in known:
            return sample(given)
        if isinstance(given, str) and path.name == given and not path.suffix and not path.exists():
            raise ImageError(f"There is no file and no sample {given[:60]!r}{did_you_mean(given, known)}")
        return path
    if isinstance(given, np.ndarray):
        return _drawn(given)
    if isinstance(given, Mapping):
        return _processed(given)
    if isinstance(given, list | tuple):
        raise ParameterError(
            f"One image is looked at, not a {type(given).__name__} of {len(given)}: pass its pictures one by one, and numbers as a "
            "NumPy array or a tensor."
        )
    what = "none was given" if given is None else f"not {_kind(given)}"
    raise ParameterError(
        f"An image is a picture (PIL.Image or an array), its path, the name of a sample, or pixels [1, channels, height, width] "
        f"as a tensor, {what}."
    )


def as_known_model(model: Model | nn.Module, picture: object) -> Model | nn.Module:
    """The same, but a module as a `Model` where it is to see a picture and not pixels."""
    if isinstance(model, nn.Module) and not isinstance(picture, Tensor):
        preprocess, origin = preprocess_within(model)
        return plain_module(model, preprocess=preprocess, origin=origin)
    return model


def as_pixels(pixels: Tensor, module: nn.Module) -> Tensor:
    """The pixels of one image on a module's device and in its precision, [1, channels, height, width]."""
    if pixels.ndim != 4 or len(pixels) != 1:
        hint = {3: ": pass pixels[None]", 4: ": pass one of them, as pixels[:1]"}.get(pixels.ndim, "")
        raise ParameterError(
            f"A trace is of one image: it needs pixels [1, channels, height, width], not {list(pixels.shape)}{hint}."
        )
    return as_batch(pixels, module)


def as_batch(pixels: Tensor, module: nn.Module) -> Tensor:
    """The pixels of several images on a module's device and in its precision, [images, channels, height, width]."""
    placed = placed_batch(pixels, module)
    if placed.is_cuda and torch.cuda.is_current_stream_capturing():
        return placed  # of a graph: nothing is computed yet
    # A sum costs a tenth of testing each number. It is not finite if one of them is not, or if finite ones overflow.
    if not math.isfinite(placed.sum()) and not torch.isfinite(placed).all():
        wrong = int((~torch.isfinite(placed)).sum())
        raise ParameterError(
            f"Pixels must be finite numbers of {str(placed.dtype).removeprefix('torch.')}, but {wrong:,} of {placed.numel():,} are "
            "NaN or infinite."
        )
    return placed


def placed_batch(pixels: Tensor, module: nn.Module) -> Tensor:
    """As `as_batch`, of pixels that are finite for certain: whether they are, a GPU says only when it is done with all before."""
    if pixels.ndim != 4 or len(pixels) == 0:
        raise ParameterError(
            f"A batch is of pixels [images, channels, height, width], not {list(pixels.shape)}."
        )
    if pixels.is_meta:
        raise ParameterError(
            "These pixels are on the meta device, where a tensor has a shape and no numbers."
        )
    if not pixels.is_floating_point():
        raise ParameterError(
            f"Pixels are normalised numbers, floats, not {str(pixels.dtype).removeprefix('torch.')}: pass a photo as a NumPy array "
            "[height, width, 3] or a PIL image, or pixels.float() where the module itself takes bytes."
        )
    if pixels.is_inference():  # autograd takes no tensor that was made in inference mode
        with torch.inference_mode(False):
            pixels = pixels.clone()
    first = next(module.parameters(), pixels)
    dtype = first.dtype if first.is_floating_point() else dtype_of(module, pixels)
    return pixels.detach().to(device_of(module) if first.is_meta else first.device, dtype)


def dtype_of(module: nn.Module, pixels: Tensor) -> torch.dtype:
    """The precision of a module's parameters; that of its pixels where it has none."""
    return next((p.dtype for p in module.parameters() if p.is_floating_point()), pixels.dtype)


def class_index(name: str, labels: Labels | None) -> int:
    """Index of the class with this name, among the names that came with the model; digits are the index itself."""
    if labels is None and name.strip().isdecimal():
        return int(name)
    if labels is None:
        raise ParameterError(
            f"The class {name[:60]!r} cannot be found, since this model came without names of classes: pass its index."
        )
    return labels.find(name)


def labels_of(model: Model | nn.Module) -> Labels | None:
    """Names of a model's classes, where they are known."""
    return declared_labels(model) if isinstance(model, nn.Module) else model.labels


def _processed(given: Mapping[str, Any]) -> Tensor:
    """The pixels of a processor's output; masks that mask nothing and labels, which change no pass, are left out."""
    if "pixel_values" not in given:
        raise ParameterError(
            f"Of a dictionary the 'pixel_values' are taken, and this one has {listed(map(str, given), 4) or 'nothing'}: pass a "
            "picture, or pixels [1, channels, height, width] as a tensor."
        )
    for name, value in given.items():
        if name in ("pixel_values", "labels") or (name == "pixel_mask" and np.all(np.asarray(value))):
            continue
        raise ParameterError(
            f"Beside 'pixel_values' {name!r} is given: where the model needs it, bind it first, by "
            f"model.forward = functools.partial(model.forward, {name}=...), and pass the pixel_values alone."
        )
    pixels = given["pixel_values"]
    if isinstance(pixels, Tensor):
        return pixels
    array = np.array(pixels)
    if array.dtype.kind not in "fiub":
        raise ParameterError(f"The pixel_values are a tensor or an array of numbers, not {_kind(pixels)}.")
    return torch.from_numpy(array)


def _drawn(array: NDArray[Any]) -> Image.Image:
    """The picture of an array [height, width] or [height, width, 1, 3 or 4]: bytes, or floats in [0, 1]."""
    shape = array.shape[:2] if array.ndim == 3 and array.shape[2] == 1 else array.shape
    is_picture = len(shape) == 2 or (len(shape) == 3 and shape[2] in (3, 4))
    if not is_picture or 0 in shape:
        raise ParameterError(
            f"A picture as an array is [height, width] or [height, width, 3 or 4], not {list(array.shape)}; pixels of a batch are "
            "a torch tensor."
        )
    values = array.reshape(shape)
    if values.dtype.kind == "f":
        if not (np.isfinite(values).all() and values.min() >= 0 and values.max() <= 1):
            raise ParameterError("A picture as an array of floats has values from 0 to 1.")
        values = np.floor(values * 255 + 0.5).astype(np.uint8)
    if values.dtype != np.uint8:
        raise ParameterError(
            f"A picture as an array has bytes (uint8) or floats from 0 to 1, not {values.dtype}."
        )
    return Image.fromarray(values)


def _kind(given: object) -> str:
    if isinstance(given, str | Path):
        return f"the text {str(given)[:60]!r}"
    if isinstance(given, nn.Module) or isinstance(getattr(given, "model", None), nn.Module):
        return "a model"
    return "None" if given is None else f"an object of type {type(given).__name__}"
