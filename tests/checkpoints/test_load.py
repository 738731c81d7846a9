"""Loading: the bundled and the real checkpoint, what is inferred, and one refusal per kind of wrong file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from tests.comparing import assert_same
from tests.model.inside import randomise
from tests.spending import LargestTensor
from vit_viz.checkpoints import load
from vit_viz.checkpoints.building import build
from vit_viz.errors import CheckpointError, KeyMismatch, ParameterError, UnknownFamily
from vit_viz.model import VisionTransformer, ViTConfig

pytestmark = pytest.mark.numbers

CONFIG = ViTConfig(
    img_size=(24, 36), patch_size=6, embed_dim=40, depth=3, num_heads=5, num_classes=7, reg_tokens=2
)


def tiny_state() -> dict[str, Tensor]:
    return dict(randomise(VisionTransformer(CONFIG)).state_dict())


def write(path: Path, state: dict[str, Tensor], **metadata: Any) -> Path:
    metadata.setdefault("config", CONFIG.to_dict())
    save_file(state, path, metadata={name: json.dumps(value) for name, value in metadata.items()})
    return path


def test_the_bundled_model_loads_with_its_own_recipe_and_names() -> None:
    loaded = load("mini", device="cpu")
    assert loaded.name == "mini"
    assert loaded.labels is not None
    assert len(loaded.labels) == loaded.config.num_classes
    assert dict(loaded.provenance.parameters)["preprocessing"] == "from the checkpoint (preprocess)"
    assert "assumed" not in dict(loaded.provenance.parameters)
    assert not loaded.model.training


def test_the_card_says_everything_in_one_line() -> None:
    loaded = load("mini", device="cpu")
    config = loaded.config
    for part in (f"{config.depth} layers x {config.num_heads} heads", "registers", "M parameters", "bundled"):
        assert part in loaded.card
    assert "\n" not in loaded.card


def test_a_nameless_half_precision_vit_tiny_is_recognised(shared_data: Path) -> None:
    loaded = load(shared_data / "vit_tiny_patch16_224.fp16.safetensors", device="cpu")
    assert (loaded.config.depth, loaded.config.num_heads, loaded.config.img_size) == (12, 3, (224, 224))
    assert (loaded.preprocess.resize_to, loaded.preprocess.interpolation) == (248, "bicubic")
    assert loaded.preprocess.mean == loaded.preprocess.std == (0.5, 0.5, 0.5)
    assert loaded.labels is not None
    assert "goldfish" in loaded.labels.name(1)
    assert {parameter.dtype for parameter in loaded.model.parameters()} == {torch.float32}


def test_the_real_vit_tiny_gives_timms_logits(shared_data: Path) -> None:
    timm = pytest.importorskip("timm")
    path = shared_data / "vit_tiny_patch16_224.fp16.safetensors"
    loaded = load(path, device="cpu")
    reference = timm.create_model("vit_tiny_patch16_224").eval()
    reference.load_state_dict({name: tensor.float() for name, tensor in load_file(path).items()})
    pixels = torch.randn(2, 3, 224, 224)
    with torch.no_grad():
        assert_same(loaded.model(pixels), reference(pixels))


def test_heads_of_64_are_assumed_and_said_where_nothing_else_is_known(tmp_path: Path) -> None:
    config = ViTConfig(img_size=24, patch_size=6, embed_dim=192, depth=1, num_heads=3, num_classes=7)
    save_file(dict(VisionTransformer(config).state_dict()), tmp_path / "nobody.safetensors")
    loaded = load(tmp_path / "nobody.safetensors", device="cpu")
    assert loaded.config.num_heads == 3
    assert (
        dict(loaded.provenance.parameters)["assumed"]
        == "3 heads of 64, because the file does not say how many"
    )


def test_a_width_that_64_does_not_divide_asks_for_the_number_of_heads(tmp_path: Path) -> None:
    config = ViTConfig(img_size=24, patch_size=6, embed_dim=40, depth=1, num_heads=5, num_classes=7)
    save_file(dict(VisionTransformer(config).state_dict()), tmp_path / "nobody.safetensors")
    with pytest.raises(KeyMismatch, match=r"with a config.json that says the number of heads"):
        load(tmp_path / "nobody.safetensors")


def test_a_configuration_beside_a_file_counts_where_it_is_alone_with_it(tmp_path: Path) -> None:
    config = ViTConfig(img_size=24, patch_size=6, embed_dim=128, depth=2, num_heads=4, num_classes=7)
    state = VisionTransformer(config).state_dict()
    run = tmp_path / "last.ckpt"
    average = {f"ema.{name}": tensor for name, tensor in state.items()}
    named = {f"net.{name}": tensor for name, tensor in state.items()}
    torch.save({"state_dict": named | average, "hyper_parameters": {"lr": 0.1}, "epoch": 3}, run)
    beside = tmp_path / "config.json"
    beside.write_text(json.dumps({"architecture": "vit_tiny", "model_args": {"num_heads": 4}}))
    assert load(run, device="cpu").config == config
    for text in (
        '{"embed_dim": 3, "depth": 1, "optimizer": "adam"}',
        '{"model_args": {"num_heads": 7}}',
        "{",
    ):
        beside.write_text(text)  # of a training, of another model, of nothing
        assert load(run, device="cpu").config.num_heads == 2  # heads of 64, as without it
    beside.write_text(json.dumps({"model_args": {"num_heads": 4}}))
    (tmp_path / "epoch=2.ckpt").touch()  # whose it is now nobody knows
    assert load(run, device="cpu").config.num_heads == 2


def test_a_file_of_our_own_comes_back_as_it_was(tmp_path: Path) -> None:
    state = tiny_state()
    loaded = load(
        write(tmp_path / "own.safetensors", state, labels=[f"thing {i}" for i in range(7)]), device="cpu"
    )
    assert loaded.config == CONFIG
    assert loaded.labels is not None
    assert loaded.labels.name(6) == "thing 6"
    for name, tensor in loaded.model.state_dict().items():
        assert_same(tensor, state[name], relative=3e-6)


def test_a_model_shares_no_memory_with_what_it_was_built_from() -> None:
    state = tiny_state()
    model = build(VisionTransformer, CONFIG, state)
    before = model.head.weight.clone()
    with torch.no_grad():
        state["head.weight"].zero_()
    assert_same(model.head.weight, before)


def test_missing_extra_and_misshapen_parameters_are_listed_together(tmp_path: Path) -> None:
    state = tiny_state()
    del state["blocks.1.norm1.weight"]
    state["blocks.9.surprise"] = torch.zeros(1)
    state["head.weight"] = torch.zeros(7, 41)
    path = write(tmp_path / "bad.safetensors", state)
    with pytest.raises(KeyMismatch) as caught:
        load(path)
    message = str(caught.value)
    assert "1 missing: blocks.1.norm1.weight" in message
    assert "1 extra: blocks.9.surprise" in message
    assert "1 misshapen: head.weight [7, 41] instead of [7, 40]" in message


def test_a_long_list_of_problems_is_cut_short() -> None:
    with pytest.raises(KeyMismatch, match=r"missing: .* and \d+ more"):
        build(VisionTransformer, CONFIG, {})


def test_parameters_that_are_no_floating_point_numbers_are_refused() -> None:
    state = tiny_state()
    state["head.weight"] = state["head.weight"].to(torch.int8)
    with pytest.raises(KeyMismatch, match=r"1 not floating-point: head.weight"):
        build(VisionTransformer, CONFIG, state)


def test_parameters_that_are_not_finite_are_refused() -> None:
    state = tiny_state()
    state["blocks.2.mlp.fc2.bias"][3] = float("nan")
    with pytest.raises(CheckpointError, match=r"blocks.2.mlp.fc2.bias holds numbers that are not finite"):
        build(VisionTransformer, CONFIG, state)


@pytest.mark.parametrize("suffix", [".safetensors", ".pth", ".bin"])
@pytest.mark.parametrize(
    "content", [b"", b"hello, this is a text file\n" * 9, b"\x00" * 4096, b"\xff" * 64, b"PK\x03\x04broken"]
)
def test_what_is_no_checkpoint_is_refused_in_one_sentence(
    tmp_path: Path, suffix: str, content: bytes
) -> None:
    path = tmp_path / f"odd{suffix}"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="odd"):
        load(path)


@pytest.mark.parametrize("suffix", [".safetensors", ".pth"])
def test_a_file_that_is_cut_short_is_refused(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"cut{suffix}"
    if suffix == ".pth":
        torch.save(tiny_state(), path)
    else:
        write(path, tiny_state())
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(CheckpointError, match="cut"):
        load(path)


def test_another_kind_of_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "photo.png").write_bytes(b"\x89PNG")
    with pytest.raises(CheckpointError, match=r"'photo.png' is not a checkpoint"):
        load(tmp_path / "photo.png")


@pytest.mark.parametrize(
    ("name", "likeness"),
    [("swin_tiny_patch4_window7_224", "Swin"), ("resnet18", "ResNet"), ("convnext_atto", "ConvNeXt")],
)
def test_other_architectures_are_refused_by_name(tmp_path: Path, name: str, likeness: str) -> None:
    timm = pytest.importorskip("timm")
    with torch.device("meta"):
        model = timm.create_model(name)
    save_file({key: torch.zeros(1) for key in model.state_dict()}, tmp_path / "model.safetensors")
    with pytest.raises(
        UnknownFamily, match=rf"not a Vision Transformer that we know: it looks like .*{likeness}"
    ):
        load(tmp_path)


def test_unknown_names_are_shown(tmp_path: Path) -> None:
    save_file({"apple": torch.zeros(1), "pear": torch.zeros(1)}, tmp_path / "fruit.safetensors")
    with pytest.raises(UnknownFamily, match="2 parameters begin with apple, pear"):
        load(tmp_path / "fruit.safetensors")


def test_a_monstrous_configuration_is_refused_before_anything_is_allocated(tmp_path: Path) -> None:
    path = write(tmp_path / "monster.safetensors", tiny_state(), config={**CONFIG.to_dict(), "depth": 10**9})
    with LargestTensor() as tensors, pytest.raises(ParameterError, match="number of layers must lie between"):
        load(path)
    assert tensors.bytes <= path.stat().st_size  # what the file holds is read; nothing else is made


def test_a_configuration_that_asks_for_more_than_the_file_has_is_refused(tmp_path: Path) -> None:
    path = write(
        tmp_path / "thin.safetensors",
        tiny_state(),
        config={**CONFIG.to_dict(), "depth": 200, "embed_dim": 2560},
    )
    with LargestTensor() as tensors, pytest.raises(KeyMismatch, match="missing"):
        load(path)
    assert tensors.bytes <= path.stat().st_size  # no part of the 60 GB that it asks for


def test_a_reference_to_nothing_says_what_would_be_something() -> None:
    with pytest.raises(
        CheckpointError, match="There is no model 'no such thing': expected mini, mini-clip, dino-s16"
    ):
        load("no such thing")


def test_a_folder_without_a_checkpoint_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(CheckpointError, match="holds no checkpoint"):
        load(tmp_path)


@pytest.mark.parametrize("text", ["[1, 2]", "{broken", "[" * 100_000])
def test_a_config_that_is_no_json_object_is_refused(tmp_path: Path, text: str) -> None:
    write(tmp_path / "model.safetensors", tiny_state())
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(CheckpointError, match=r"config.json"):
        load(tmp_path)


def test_an_unknown_device_is_refused_in_words() -> None:
    with pytest.raises(ParameterError, match="There is no device 'abacus' here"):
        load("mini", device="abacus")
