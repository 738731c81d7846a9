"""Checkpoints that lie on this machine: a file, a folder as save_pretrained writes it, and the JSON beside them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vit_viz.checkpoints.families.base import mapping_of
from vit_viz.checkpoints.weights import SUFFIXES, check_regular
from vit_viz.errors import CheckpointError
from vit_viz.model.config import highest, words_of

MAX_JSON_BYTES = 10_000_000
MAX_TOKENIZER_BYTES = 50_000_000
"""Of a tokenizer.json; that of SigLIP 2, with 256,000 tokens, has 34 MB."""

SETTINGS_FILES = ("config.json", "preprocessor_config.json", "processor_config.json")
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")
"""What a repository of the Hub has beside its weights."""

_OPEN_CLIPS = "open_clip_config.json"
_GENERIC = ("model", "pytorch_model", "open_clip_model", "open_clip_pytorch_model")
"""Names of save_pretrained and of open_clip, which do not name the model."""


@dataclass(frozen=True)
class Source:
    """A checkpoint that lies on this machine now.

    Args:
        name: what the user calls it.
        weights: the file with the parameters.
        origin: in words, for the model card: "bundled with vit_viz", "a local file", "timm/... on the Hub at 0a1b2c3".
        settings: what config.json says, and under "preprocessor" what preprocessor_config.json or processor_config.json says.
        may_be_of_another: config.json lies beside a file of any name, alone in its folder: what it says counts where it fits.
        is_visitors: chosen by a visitor of the app, not by the owner of the process: its size is bounded.
    """

    name: str
    weights: Path
    origin: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    may_be_of_another: bool = False
    is_visitors: bool = False


def local_checkpoint(ref: str | Path) -> Source | None:
    """The checkpoint at a path: a file, or a folder as save_pretrained writes it; None where nothing is there."""
    try:
        path = Path(ref).expanduser()
        is_folder, is_there = path.is_dir(), path.exists()
    except (OSError, RuntimeError, ValueError):  # too long, an unknown ~user, a NUL
        return None
    if is_folder:
        return _folder(path)
    if not is_there:
        return None
    origin = f"the local file {path.name}"
    if path.stem in _GENERIC:
        return Source(path.stem, path, origin, _settings_in(path.parent))
    settings: dict[str, Any] = {}
    with suppress(CheckpointError, OSError):  # it may be of anything
        if any((path.parent / name).exists() for name in (SETTINGS_FILES[0], _OPEN_CLIPS)) and _is_alone(
            path
        ):
            settings = _settings_in(path.parent)
    return Source(path.stem, path, origin, settings, may_be_of_another=bool(settings))


def read_settings(config: Path | None, preprocessor: Path | None, processor: Path | None) -> dict[str, Any]:
    """The JSON files that accompany a checkpoint, as one dictionary; a missing file adds nothing.

    Args:
        processor: where transformers 5 keeps the processor of pictures beside that of texts.
    """
    settings = read_json(config)
    nested = read_json(processor).get("image_processor")
    if extra := nested if isinstance(nested, dict) else read_json(preprocessor):
        settings["preprocessor"] = extra
    return settings


def _settings_in(folder: Path) -> dict[str, Any]:
    """The JSON files of a folder, where open_clip's own stands for config.json."""
    settings = read_settings(*(folder / name for name in SETTINGS_FILES))
    return settings or _of_open_clip(read_json(folder / _OPEN_CLIPS))


def _of_open_clip(settings: dict[str, Any]) -> dict[str, Any]:
    """open_clip's configuration, with what it says of a vision tower of timm's and of preprocessing under timm's names."""
    recipe = settings.get("preprocess_cfg")
    tower = mapping_of(mapping_of(settings.get("model_cfg")).get("vision_cfg"))
    if "timm_model_name" in tower:
        settings["architecture"] = tower["timm_model_name"]
    if isinstance(recipe, dict):
        mode = _RESIZE_MODES.get(str(recipe.get("resize_mode", "shortest")))
        settings["pretrained_cfg"] = recipe | {"crop_pct": 1.0, "crop_mode": mode}
    return settings


_RESIZE_MODES = {"shortest": "center", "squash": "squash", "longest": "border"}


def _is_alone(path: Path) -> bool:
    """Whether no other checkpoint lies in the folder of this one."""
    return not any(
        file.suffix.lower() in SUFFIXES and file.name != path.name for file in path.parent.iterdir()
    )


def _folder(path: Path) -> Source:
    if (path / "model.safetensors.index.json").exists():
        raise CheckpointError(
            f"The folder {path.name!r} holds a model in several files; join them into one model.safetensors."
        )
    safe = sorted(path.glob("*.safetensors"))
    preferred = [file for file in safe if file.name == "model.safetensors"]
    files = preferred or safe or sorted(file for file in path.iterdir() if file.suffix.lower() in SUFFIXES)
    folder = path.resolve().name
    if len(files) != 1:
        what = "no checkpoint" if not files else f"{len(files)} checkpoints"
        raise CheckpointError(
            f"The folder {folder!r} holds {what}: expected one model.safetensors beside config.json."
        )
    return Source(
        name=folder if files[0].stem in _GENERIC else files[0].stem,
        weights=files[0],
        origin=f"the local folder {folder}",
        settings=_settings_in(path),
    )


def read_json(path: Path | None) -> dict[str, Any]:
    """What a JSON file beside the weights says; nothing where it is missing, CheckpointError where it holds no object."""
    if path is None or not path.exists():
        return {}
    check_regular(path)
    kind, most = json_limit(path.name)
    if path.stat().st_size > most:
        raise CheckpointError(f"{path.name} is larger than any {kind}.")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError, RecursionError) as error:
        raise CheckpointError(f"{path.name} cannot be read: it is not JSON.") from error
    if not isinstance(content, dict):
        raise CheckpointError(f"{path.name} must hold a JSON object.")
    return content


def json_limit(filename: str) -> tuple[str, int]:
    """What a JSON file beside the weights is, and how many bytes such a file may have."""
    if filename in TOKENIZER_FILES:
        return "tokenizer", MAX_TOKENIZER_BYTES
    return "configuration", MAX_JSON_BYTES


_SIZES = {  # as timm and we call them -> as transformers does
    "depth": "num_hidden_layers",
    "num_heads": "num_attention_heads",
    "in_chans": "num_channels",
    "reg_tokens": "num_register_tokens",
    "embed_dim": "hidden_size",
    "img_size": "image_size",
    "patch_size": "patch_size",
    "mlp_hidden": "intermediate_size",
    "num_classes": "num_labels",
}
_NESTED = ("vision_config", "backbone_config", "model_args", "config")


def check_declared(settings: Mapping[str, Any], name: str, *, max_numbers: int) -> None:
    """Refuse a model whose config.json declares impossible sizes; values that are not numbers are left to its family.

    Args:
        settings: config.json of transformers, timm or our own.
        name: what the user calls the model.
        max_numbers: parameters that it may have.
    """
    for part in (settings, *(settings.get(key) for key in _NESTED)):
        if not isinstance(part, Mapping):
            continue
        for ours, theirs in _SIZES.items():
            limit = highest(ours)
            for value in (value for key in (theirs, ours) for value in _numbers(part.get(key))):
                if not 0 <= value <= limit:
                    raise CheckpointError(
                        f"The configuration of {name!r} asks for {str(value)[:20]} as the {words_of(ours)}; at most {limit:,} is "
                        "possible."
                    )
        if (announced := _parameters(part)) > max_numbers:
            raise CheckpointError(
                f"The configuration of {name!r} asks for {announced / 1e6:,.0f} million parameters; at most "
                f"{max_numbers / 1e6:,.0f} million are loaded here."
            )


def _parameters(part: Mapping[str, Any]) -> float:
    """About how many parameters the blocks of a declared architecture have; 0 where it does not say."""

    def first(*names: str) -> float:
        return next((value for name in names for value in _numbers(part.get(name))), 0)

    width = first("hidden_size", "embed_dim")
    hidden = first("intermediate_size", "mlp_hidden") or 4 * width
    return first("num_hidden_layers", "depth") * width * (4 * width + 2 * hidden)


def _numbers(value: Any) -> Iterator[float]:
    for item in value[:3] if isinstance(value, list) else (value,):
        if isinstance(item, int | float) and not isinstance(item, bool):
            yield item
