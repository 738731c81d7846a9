"""A model as the file that the engine in the page reads: safetensors, its configuration and preprocessing beside the weights."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Literal

from safetensors.torch import save

from vit_viz.checkpoints import LoadedModel
from vit_viz.errors import ParameterError
from vit_viz.lazy import Tensor, torch

Storage = Literal["fp32", "fp16", "int8"]
"""The type of stored numbers; int8 is for matrices alone, with a scale for each row, 1 / 127 of its largest number."""

_SCALES = ".scale"


def write_weights(loaded: LoadedModel, path: str | Path, *, storage: Storage = "fp16") -> None:
    """Write a model for the engine in the page.

    The file is a safetensors checkpoint under timm's names. Its metadata hold `config` (`ViTConfig.to_dict`), `preprocess`
    (`Preprocess.to_dict`) and, where classes have names, `labels`, each as JSON; `output`, where that is no
    softmax. With fp32 and fp16 `vit_viz.load` opens it, too.

    Args:
        storage: with int8, matrices are whole steps beside NAME.scale, float32 [rows], and all else is float32.
    """
    if (
        loaded.config.class_tokens > 1
        or loaded.config.position_grid
        or loaded.config.resample.startswith("radio")
    ):
        raise ParameterError(
            f"The engine in the page knows neither several class tokens nor RADIO's positions, so {loaded.name!r} cannot run "
            "there: look at it with vit-viz serve --model, or write what it computed for one photo with vit-viz page PHOTO --model."
        )
    if storage not in ("fp32", "fp16", "int8"):
        raise ParameterError(f"storage must be fp32, fp16 or int8, not {str(storage)[:40]!r}.")
    metadata = {"config": loaded.config.to_dict(), "preprocess": loaded.preprocess.to_dict()}
    texts = {name: json.dumps(value) for name, value in metadata.items()}
    if loaded.labels is not None:
        texts["labels"] = json.dumps(list(loaded.labels.names))
    if loaded.output in ("sigmoid", "value"):
        texts["output"] = json.dumps(loaded.output)
    tensors: dict[str, Tensor] = {}
    for name, tensor in loaded.model.state_dict().items():
        tensors |= _stored(name, tensor.detach().to("cpu", torch.float32), storage)
    Path(path).write_bytes(_in_order(save(tensors, metadata=texts)))


def _in_order(file: bytes) -> bytes:
    """The file with its metadata in the order of their names, so that one model always has the same bytes."""
    size = int.from_bytes(file[:8], "little")
    header = json.loads(file[8 : 8 + size])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    assert len(text) <= size  # the same text in another order, but for spaces at its end
    return file[:8] + text.ljust(size) + file[8 + size :]


def as_stored(loaded: LoadedModel, storage: Storage) -> LoadedModel:
    """The model with the numbers that a page has of it, to measure what their storage changes."""
    model = copy.deepcopy(loaded.model).to("cpu", torch.float32)
    for name, tensor in model.state_dict().items():
        stored = _stored(name, tensor, storage)
        values = stored[name].float()
        if name + _SCALES in stored:
            values *= stored[name + _SCALES].reshape(-1, *[1] * (values.ndim - 1))
        tensor.copy_(values)
    return replace(loaded, model=model, device=torch.device("cpu"))


def _stored(name: str, tensor: Tensor, storage: Storage) -> dict[str, Tensor]:
    """A parameter as it is stored, with its scales where it has some."""
    if not bool(tensor.isfinite().all()):
        raise ParameterError(f"{name} holds numbers that are not finite, so it is not stored.")
    if storage == "fp16":
        if float(tensor.abs().max()) > torch.finfo(torch.float16).max:
            raise ParameterError(
                f"{name} holds numbers that are too large for fp16: store it as fp32 or int8."
            )
        return {name: tensor.half().contiguous()}
    is_matrix = name.endswith(".weight") and tensor.ndim in (
        2,
        4,
    )  # of a linear layer, or the patches' convolution
    if storage == "fp32" or not is_matrix:
        return {name: tensor.contiguous()}
    rows = tensor.flatten(1)  # [rows, columns]
    scale = rows.abs().amax(1).clamp_min(torch.finfo(torch.float32).tiny) / 127
    steps = torch.round(rows / scale[:, None]).clamp(-127, 127).to(torch.int8)
    return {name: steps.reshape(tensor.shape).contiguous(), name + _SCALES: scale}
