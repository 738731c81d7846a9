"""Files as trainings save them: the model in them is found whatever is around it, and what was chosen is told."""

from __future__ import annotations

import argparse
import io
import pickle
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from tests.comparing import assert_same
from vit_viz.checkpoints import load, torch_files, unwrapping
from vit_viz.checkpoints.weights import read_weights
from vit_viz.errors import CheckpointError, UnknownFamily, UnsafeFile
from vit_viz.model import VisionTransformer, ViTConfig

State = dict[str, Tensor]


def state(seed: int = 1) -> State:
    torch.manual_seed(seed)
    sizes: dict[str, Any] = {"img_size": 24, "patch_size": 6, "embed_dim": 64, "num_heads": 1}
    return dict(VisionTransformer(ViTConfig(depth=2, num_classes=7, **sizes)).state_dict())


MODEL, OTHER = state(), state(2)
BODY = {name: tensor for name, tensor in MODEL.items() if not name.startswith("head.")}
HEAD = {"weight": MODEL["head.weight"], "bias": MODEL["head.bias"]}


def behind(prefix: str, parameters: Mapping[str, Tensor] = MODEL) -> State:
    return {prefix + name: tensor for name, tensor in parameters.items()}


def optimizer() -> dict[str, Any]:
    """As AdamW's state_dict: a dictionary of moments for each number of a parameter."""
    moments = {
        i: {"exp_avg": torch.zeros(t.shape), "step": torch.tensor(3.0)} for i, t in enumerate(MODEL.values())
    }
    return {"state": moments, "param_groups": [{"lr": 0.1, "params": list(moments)}]}


def deep(name: str) -> str:
    return name.replace("blocks.1.", "blocks.1._orig_mod.").replace(
        ".attn.", "._checkpoint_wrapped_module.attn."
    )


FORMS: dict[str, tuple[Any, str, tuple[str, ...]]] = {
    "nothing around it": (MODEL, "", ()),
    "lightning": (
        {
            "epoch": 3, "state_dict": behind("model.") | {"criterion.weight": torch.ones(7)}, "optimizer_states": [optimizer()],
            "hyper_parameters": {"lr": 0.1, "betas": (0.9, 0.99)}, "loops": {}, "pytorch-lightning_version": "2.5",
        },
        "state_dict.model", ("criterion",),
    ),
    "modules in modules": (behind("model.module.backbone."), "model.module.backbone", ()),
    "compiled": (behind("_orig_mod."), "", ()),
    "compiled within": ({"net": behind("module._orig_mod.", {deep(n): t for n, t in MODEL.items()})}, "net.module", ()),
    "dictionaries": ({"optimizer": optimizer(), "net": {"module": MODEL}, "scheduler": {"last_epoch": 3}}, "net.module", ()),
    "an average before": ({"model_ema": OTHER, "model": MODEL}, "model", ("model_ema",)),
    "an average after": ({"state_dict": MODEL, "state_dict_ema": OTHER}, "state_dict", ("state_dict_ema",)),
    "an average alone": ({"shadow": MODEL, "decay": 0.99}, "shadow", ()),
    "an average beside": (
        behind("ema_model.", OTHER) | {"step": torch.tensor(5)} | behind("online_model."),
        "online_model", ("ema_model", "step"),
    ),
    "an average within": (MODEL | behind("ema.", OTHER), "", ("ema",)),
    "averaged": (behind("module.") | {"n_averaged": torch.tensor(2)}, "module", ("n_averaged",)),
    "a teacher": ({"student": behind("module.", OTHER), "teacher": MODEL}, "teacher", ("student.module",)),
    "a teacher in names": (
        {"state_dict": behind("student.", OTHER) | behind("teacher.")}, "state_dict.teacher", ("state_dict.student",),
    ),
    "a decoder": (
        behind("net.encoder.") | behind("net.decoder.", {"blocks.0.attn.qkv.weight": torch.zeros(6, 2)}),
        "net.encoder", ("net.decoder",),
    ),
    "two whole ones": (behind("first.") | behind("second.", OTHER), "first", ("second",)),
    "a step of a sequence": (behind("1.") | {"0.mean": torch.zeros(3)}, "1", ("0",)),
    "a head beside it": (behind("backbone.", BODY) | behind("head.", HEAD), "backbone", ()),
    "a head of another name": ({"state_dict": behind("m.vit.", BODY) | behind("m.fc.", HEAD)}, "state_dict.m.vit", ()),
    "a head as a part": ({"backbone": BODY, "classifier": HEAD, "epoch": 3}, "backbone", ()),
    "numbers among tensors": ({"model": MODEL | {"blocks.0._extra_state": None}}, "model", ()),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_the_model_of_a_file_is_found_whatever_is_around_it(tmp_path: Path, form: str) -> None:
    content, place, left_out = FORMS[form]
    torch.save(content, tmp_path / "run.ckpt")
    model = read_weights(tmp_path / "run.ckpt").model
    assert model.state.keys() == MODEL.keys()
    assert all(torch.equal(model.state[name], tensor) for name, tensor in MODEL.items())
    assert (model.place, (*model.models_left_out, *model.left_out)) == (place, left_out)
    assert bool(model.assumed) == form.startswith("a head")


@pytest.mark.parametrize("form", ["modules in modules", "an average beside", "compiled", "a head beside it"])
def test_it_is_found_in_safetensors_too(tmp_path: Path, form: str) -> None:
    content, place, _ = FORMS[form]
    save_file({name: tensor.clone() for name, tensor in content.items()}, tmp_path / "run.safetensors")
    model = read_weights(tmp_path / "run.safetensors").model
    assert (model.place, model.state.keys()) == (place, MODEL.keys())


def test_a_head_beside_it_is_the_models_only_where_it_fits_and_is_the_only_one(tmp_path: Path) -> None:
    for beside in (
        {"head.weight": torch.zeros(7, 65)},
        {"head.0.weight": torch.zeros(64), "head.1.weight": torch.zeros(7, 64)},
        {"fc.weight": torch.zeros(7, 64), "classifier.weight": torch.zeros(3, 64)},
    ):
        torch.save(behind("backbone.", BODY) | beside, tmp_path / "run.pt")
        model = read_weights(tmp_path / "run.pt").model
        assert model.state.keys() == BODY.keys()
        assert set(model.left_out) == {name.split(".")[0] for name in beside}
    torch.save(behind("backbone.") | behind("fc.", HEAD), tmp_path / "run.pt")  # it has its own
    assert read_weights(tmp_path / "run.pt").model.left_out == ("fc",)
    torch.save(
        behind("teacher.", BODY) | behind("student.", OTHER) | behind("fc.", HEAD), tmp_path / "run.pt"
    )
    assert read_weights(tmp_path / "run.pt").model.state.keys() == BODY.keys()  # perhaps the student's


def test_what_was_chosen_and_left_out_is_told(tmp_path: Path) -> None:
    content = {"state_dict": behind("model.") | behind("model_ema.module.", OTHER), "epoch": 3}
    torch.save(content, tmp_path / "run.ckpt")
    loaded = load(tmp_path / "run.ckpt", device="cpu")
    told = dict(loaded.provenance.parameters)
    assert (told["part"], told["left_out"]) == ("state_dict.model", "state_dict.model_ema.module")
    assert loaded.origin == "the local file run.ckpt: state_dict.model"
    torch.save(MODEL, tmp_path / "plain.pt")
    plain = load(tmp_path / "plain.pt", device="cpu")
    assert not {"part", "left_out"} & dict(plain.provenance.parameters).keys()
    assert plain.origin == "the local file plain.pt"
    pixels = torch.randn(1, 3, 24, 24)
    assert_same(loaded.model(pixels), plain.model(pixels))


def test_dinos_own_file_is_its_teacher_and_keeps_the_name_that_tells_its_family(tmp_path: Path) -> None:
    teacher = behind("module.backbone.", BODY) | {"module.head.last_layer.weight_v": torch.zeros(9, 4)}
    torch.save({"student": behind("module.backbone.", OTHER), "teacher": teacher}, tmp_path / "run.pth")
    assert load(tmp_path / "run.pth", device="cpu").family.startswith("DINO")
    torch.save({"state_dict": behind("backbone.", BODY)}, tmp_path / "run.pth")  # anybody's
    assert load(tmp_path / "run.pth", device="cpu").family.startswith("timm")


def test_of_an_mae_with_its_decoder_the_encoder_is_loaded(tmp_path: Path) -> None:
    decoder = {
        "mask_token": torch.zeros(1, 1, 5),
        "decoder_pos_embed": torch.zeros(1, 17, 5),
        "decoder_embed.bias": torch.zeros(5),
    }
    torch.save({"model": BODY | decoder, "epoch": 3}, tmp_path / "mae.pth")
    torch.save({"model": BODY}, tmp_path / "encoder.pth")
    pixels = torch.randn(1, 3, 24, 24)
    whole, encoder = (load(tmp_path / f"{name}.pth", device="cpu").model for name in ("mae", "encoder"))
    assert_same(whole(pixels), encoder(pixels))


@pytest.mark.numbers
@pytest.mark.parametrize("prefix", ["", "model.", "net.module.", "_orig_mod."])
def test_models_of_transformers_keep_the_names_that_are_theirs(tmp_path: Path, prefix: str) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is the oracle of this test")
    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 1, "intermediate_size": 96}
    config = transformers.ViTConfig(**sizes, image_size=24, patch_size=6, num_labels=7)
    model = transformers.ViTForImageClassification(config).eval()
    pixels = torch.randn(1, 3, 24, 24)
    torch.save({"state_dict": behind(prefix, model.state_dict())}, tmp_path / "run.ckpt")
    with torch.no_grad():
        assert_same(load(tmp_path / "run.ckpt", device="cpu").model(pixels), model(pixels).logits)
    bare, linear = transformers.ViTModel(config).eval(), nn.Linear(64, 7)
    parts = behind(f"{prefix}backbone.", bare.state_dict()) | behind(f"{prefix}fc.", linear.state_dict())
    torch.save(parts, tmp_path / "run.ckpt")
    with torch.no_grad():
        expected = linear(bare(pixels).last_hidden_state[:, 0])
        assert_same(load(tmp_path / "run.ckpt", device="cpu").model(pixels), expected)


def test_blocks_alone_keep_their_names(tmp_path: Path) -> None:
    blocks = {name: tensor for name, tensor in MODEL.items() if name.startswith("blocks.")}
    torch.save({"state_dict": blocks}, tmp_path / "run.pth")
    with pytest.raises(UnknownFamily, match=r"parameters begin with blocks\.0\."):
        load(tmp_path / "run.pth")


# --- what lies beside


class Settings(dict[str, Any]):
    """As Lightning's AttributeDict."""


class Config:
    """Of a script of somebody."""

    def __init__(self) -> None:
        self.lr, self.rates, self.inner = 0.1, Settings(a=1), argparse.Namespace(out=Path("/tmp"))

    def __setstate__(self, state: Any) -> None:
        raise AssertionError("it was built")


NOTES: dict[str, Any] = {
    "arguments": argparse.Namespace(lr=0.1, output=Path("runs")),
    "attributes": Settings(lr=0.1, inner=Settings(depth=3)),
    "objects": Config(),
    "a loss": nn.CrossEntropyLoss(),
    "torch's version": torch.__version__,
    "a number of numpy": {"best": np.float64(0.9), "epoch": np.int64(3), "is_best": np.bool_(True), "b": "b"},
    "arrays of numpy": [np.arange(6.0).reshape(2, 3), np.arange(3), np.array(["a", 1], dtype=object)],
    "types of numpy": argparse.Namespace(
        dtype=np.dtype("f4"), record=np.zeros(2, dtype=[("a", "f4")]), lr=np.float32(1)
    ),
    "random states": (np.random.get_state(), np.random.default_rng(0)),
}


@pytest.mark.parametrize("note", NOTES)
def test_objects_beside_the_parameters_are_passed_over_unbuilt(tmp_path: Path, note: str) -> None:
    torch.save({"model": MODEL, "hyper_parameters": NOTES[note]}, tmp_path / "run.pth")
    before = set(torch.serialization.get_safe_globals())
    assert read_weights(tmp_path / "run.pth").model.state.keys() == MODEL.keys()
    assert set(torch.serialization.get_safe_globals()) == before  # nothing more is allowed to others


@pytest.mark.parametrize(
    "name", ["time sleep", "__builtin__ print", "torch._dynamo.config x", "os Path", "commands getoutput"]
)
def test_names_of_what_could_do_something_are_refused(tmp_path: Path, name: str) -> None:
    module, _, called = name.partition(" ")
    assert torch_files._is_note(f"{module} {called}") is False


TEXT = b"X\x05\x00\x00\x00abcde"
LATIN1 = b"X\x06\x00\x00\x00latin1"
ENCODE = b"c_codecs\nencode\n"
ENCODINGS: dict[str, tuple[bytes, bool]] = {
    "a text of its own": (ENCODE + TEXT + b"q\x01" + LATIN1 + b"q\x02\x86q\x03R", True),
    "by what was kept": (ENCODE + b"q\x00" + TEXT + LATIN1 + b"q\x02\x86R0h\x00" + TEXT + b"h\x02\x86R", True),
    "another codec": (ENCODE + TEXT + b"X\x08\x00\x00\x00punycode\x86R", False),
    "a kept text": (TEXT + b"q\x010" + ENCODE + b"h\x01" + LATIN1 + b"\x86R", False),
    "another codec at the place of latin1": (
        LATIN1 + b"q\x020X\x03\x00\x00\x00hexq\x020" + ENCODE + TEXT + b"h\x02\x86R", False,
    ),
    "a kept call": (TEXT + LATIN1 + b"\x86q\x010" + ENCODE + b"h\x01R", False),
    "a kept call in its middle": (TEXT + LATIN1 + b"\x86q\x010" + ENCODE + TEXT + LATIN1 + b"h\x01R", False),
    "no call": (ENCODE + b"q\x000h\x000" + ENCODE, False),
    "a text that was dropped": (ENCODE + TEXT + b"0h\x01" + LATIN1 + b"\x86R", False),
}  # fmt: skip


@pytest.mark.parametrize("way", ENCODINGS)
def test_bytes_are_read_only_as_torch_writes_them(way: str) -> None:
    """Otherwise one text could be encoded a million times, or by a codec that takes hours."""
    codes, is_read = ENCODINGS[way]
    pickled = io.BytesIO(b"\x80\x02" + codes + b".")
    with nullcontext() if is_read else pytest.raises(UnsafeFile, match="could run code"):
        torch_files._check_imports(pickled, "a.pth", pickles=1)


class Bomb:
    def __reduce__(self) -> Any:
        return print, ("this must never run",)


@pytest.mark.parametrize(
    "content", [Bomb(), {"state_dict": Bomb()}, {"model": MODEL, "args": Bomb()}, nn.Linear(3, 5), {"model": nn.Linear(3, 5)}]
)  # fmt: skip
def test_what_could_run_code_is_refused_unrun_with_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: Any
) -> None:
    torch.save(content, tmp_path / "run.pth")
    with pytest.raises(UnsafeFile, match=r"could run code.*save its state_dict as safetensors"):
        load(tmp_path / "run.pth")
    (tmp_path / "old.pth").write_bytes(pickle.dumps(content))
    with pytest.raises(UnsafeFile, match="could run code"):
        load(tmp_path / "old.pth")
    assert capsys.readouterr().out == ""


def test_a_file_without_tensors_is_refused(tmp_path: Path) -> None:
    torch.save({"epoch": 3, "losses": [1.0]}, tmp_path / "run.pth")
    with pytest.raises(CheckpointError, match="holds no state dict"):
        read_weights(tmp_path / "run.pth")


@pytest.mark.parametrize("spare", [1, 0, -1])
def test_dictionaries_that_stand_in_each_other_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spare: int
) -> None:
    inner: dict[str, Any] = {"t": torch.zeros(3)}
    for _ in range(3):
        inner = {str(i): inner for i in range(5)}
    torch.save(inner, tmp_path / "run.pth")
    monkeypatch.setattr(unwrapping, "MAX_ENTRIES", 5 + 25 + 125 + 125 + spare)
    if spare < 0:
        with pytest.raises(UnsafeFile, match="asks for more than"):
            read_weights(tmp_path / "run.pth")
    else:
        assert read_weights(tmp_path / "run.pth").model.state.keys() == {"t"}


def test_a_dictionary_within_itself_is_read_once_a_level(tmp_path: Path) -> None:
    content: dict[str, Any] = {"model": MODEL}
    content["self"] = content
    torch.save(content, tmp_path / "run.pth")
    assert read_weights(tmp_path / "run.pth").model.state.keys() == MODEL.keys()
