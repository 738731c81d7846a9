"""The file that the engine in the page reads: a checkpoint of ours, or int8 steps within half a step of its numbers."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

from tests.comparing import assert_same
from vit_viz.browser import Storage, write_weights
from vit_viz.checkpoints import LoadedModel, load
from vit_viz.errors import ParameterError
from vit_viz.labels import Labels
from vit_viz.model import VisionTransformer, ViTConfig


@pytest.fixture(scope="module")
def mini() -> LoadedModel:
    return load("mini", device="cpu")


def _small(mini: LoadedModel) -> LoadedModel:
    config = ViTConfig(
        img_size=(24, 42), patch_size=(6, 7), embed_dim=40, depth=1, num_heads=5, num_classes=7
    )
    return replace(mini, model=VisionTransformer(config), config=config, labels=None)


def test_the_file_of_fp16_is_a_checkpoint_that_loads_as_the_same_model(
    mini: LoadedModel, tmp_path: Path
) -> None:
    path = tmp_path / "mini.safetensors"
    write_weights(mini, path)
    again = load(path, device="cpu")
    assert (again.config, again.preprocess, again.labels and again.labels.names) == (
        mini.config,
        mini.preprocess,
        mini.labels and mini.labels.names,
    )
    for name, tensor in mini.model.state_dict().items():  # mini is stored as fp16 itself
        assert torch.equal(tensor, again.model.state_dict()[name]), name


def test_int8_matrices_are_within_half_a_step_of_each_row_and_all_else_is_exact(
    mini: LoadedModel, tmp_path: Path
) -> None:
    small, path = _small(mini), tmp_path / "small.safetensors"
    with torch.no_grad():
        small.model.head.weight[2] = 0  # a row without a largest number
        small.model.head.weight[3] *= 1000
    write_weights(small, path, storage="int8")
    stored, state = load_file(path), small.model.state_dict()
    steps = {name for name, tensor in stored.items() if tensor.dtype == torch.int8}
    assert steps == {
        name for name, tensor in state.items() if name.endswith(".weight") and "norm" not in name
    }
    assert set(stored) == set(state) | {f"{name}.scale" for name in steps}
    for name, tensor in state.items():
        if name not in steps:
            assert torch.equal(stored[name], tensor), name
            continue
        rows, scale = tensor.flatten(1), stored[f"{name}.scale"][:, None]
        assert_same(scale[:, 0], rows.abs().amax(1) / 127)
        assert bool(((stored[name].flatten(1) * scale - rows).abs() <= scale * 0.5001).all()), name


def test_what_the_file_says_of_the_model_is_json(mini: LoadedModel, tmp_path: Path) -> None:
    small, path = _small(mini), tmp_path / "small.safetensors"
    write_weights(small, path, storage="fp32")
    with safe_open(path, "pt") as file:
        metadata = {name: json.loads(text) for name, text in file.metadata().items()}
    assert metadata == {"config": small.config.to_dict(), "preprocess": small.preprocess.to_dict()}
    for name, tensor in load_file(path).items():
        assert torch.equal(tensor, small.model.state_dict()[name]), name


def test_what_cannot_be_stored_is_refused_by_name(mini: LoadedModel, tmp_path: Path) -> None:
    small, path = _small(mini), tmp_path / "small.safetensors"
    with pytest.raises(ParameterError, match="fp32, fp16 or int8, not 'fp8'"):
        write_weights(small, path, storage="fp8")  # type: ignore[arg-type]  # that is the test
    with torch.no_grad():
        small.model.norm.bias[3] = 65520.0
    with pytest.raises(ParameterError, match=r"norm\.bias holds numbers that are too large for fp16"):
        write_weights(small, path)
    with torch.no_grad():
        small.model.norm.bias[3] = float("nan")
    with pytest.raises(ParameterError, match=r"norm\.bias holds numbers that are not finite"):
        write_weights(small, path, storage="fp32")
    assert not path.exists()


@pytest.mark.parametrize("storage", ["int8", "fp16"])
def test_one_model_has_the_same_bytes_in_any_process(
    mini: LoadedModel, tmp_path: Path, storage: Storage
) -> None:
    named = replace(_small(mini), labels=Labels(tuple(f'"{i}" é \\ \n' for i in range(7))))
    write_weights(named, tmp_path / "a.safetensors", storage=storage)
    with safe_open(tmp_path / "a.safetensors", "pt") as weights:
        metadata = weights.metadata()
        assert json.loads(metadata["labels"]) == list(named.labels.names)
    header = (tmp_path / "a.safetensors").read_bytes()
    size = int.from_bytes(header[:8], "little")
    kept = list(
        json.loads(header[8 : 8 + size])["__metadata__"]
    )  # safetensors writes them in an order of chance
    assert kept == sorted(kept) == ["config", "labels", "preprocess"]
