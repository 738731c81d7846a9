"""RADIO: a small one written after its paper and its published code's formulas computes the same in our model."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import save, save_file
from torch import Tensor, nn

from tests.checkpoints.fake_hub import Hub
from tests.comparing import assert_same
from tests.kinds import loaded as own_loaded
from tests.model.inside import assert_same_inside, look_inside, randomise
from vit_viz.browser import write_weights
from vit_viz.capture import trace
from vit_viz.checkpoints import LoadedModel, load
from vit_viz.errors import CheckpointError, KeyMismatch, ParameterError, UnknownFamily

pytestmark = pytest.mark.numbers

timm = pytest.importorskip("timm", reason="the blocks of these models are timm's")
transformers = pytest.importorskip("transformers", reason="transformers is an oracle of these tests")

DIM, HEADS, DEPTH, PATCH, SIDE = 40, 5, 3, 4, 9  # a table of 9 x 9 positions
TEACHERS = [{"name": "clip"}, {"name": "siglip", "use_summary": True}, {"name": "sam", "use_summary": False}]
SIZES = [(24, 24), (16, 28), (36, 20), (36, 36), (44, 52)]  # smaller than the table, the same, and larger


class Radio(nn.Module):
    """The published forward: pixels of 0..1 in, the class tokens of the summary side by side out.

    Args:
        corners: whether resampled positions have their corners aligned.
    """

    def __init__(
        self, *, classes: int, registers: int, read: list[int], corners: bool, scale: bool = False
    ) -> None:
        super().__init__()
        options = {"init_values": 0.1} if scale else {}
        norm = partial(nn.LayerNorm, eps=1e-6)
        make = timm.models.vision_transformer.Block
        self.blocks = nn.Sequential(
            *(make(DIM, HEADS, mlp_ratio=3, qkv_bias=True, norm_layer=norm, **options) for _ in range(DEPTH))
        )
        self.embedder = nn.Linear(3 * PATCH * PATCH, DIM, bias=False)
        self.pos_embed = nn.Parameter(torch.randn(1, SIDE * SIDE, DIM))
        self.token = nn.Parameter(torch.randn(classes + registers, DIM))
        self.norm_mean = nn.Parameter(torch.tensor([0.4, 0.5, 0.6])[:, None, None])
        self.norm_std = nn.Parameter(torch.tensor([0.2, 0.25, 0.3])[:, None, None])
        self.classes, self.read, self.corners = classes, read, corners

    def positions(self, rows: int, cols: int) -> Tensor:
        if (rows, cols) == (SIDE, SIDE):
            return self.pos_embed
        picture, side = self.pos_embed.reshape(1, SIDE, SIDE, DIM).movedim(-1, 1), max(rows, cols)
        picture = F.interpolate(picture, size=(side, side), mode="bilinear", align_corners=self.corners)
        return picture[:, :, :rows, :cols].flatten(2).transpose(1, 2)

    def forward(self, pixels: Tensor) -> Tensor:
        x = (pixels - self.norm_mean) / self.norm_std
        rows, cols = x.shape[-2] // PATCH, x.shape[-1] // PATCH
        x = x.reshape(len(x), 3, rows, PATCH, cols, PATCH).permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2)
        x = self.embedder(x) + self.positions(rows, cols)
        x = self.blocks(torch.cat((self.token.expand(len(x), -1, -1), x), dim=1))
        return x[:, self.read].flatten(1)

    def state(self) -> dict[str, Tensor]:
        """As its safetensors name it."""
        names = {"token": "cls_token.token", "pos_embed": "pos_embed", "embedder.weight": "embedder.weight"}
        renamed = {}
        for name, tensor in self.state_dict().items():
            if name.startswith("norm_"):
                key = f"input_conditioner.{name}"
            else:
                key = "model." + (f"patch_generator.{names[name]}" if name in names else name)
            renamed["radio_model." + key.replace(".gamma", ".grandma")] = tensor
        return renamed | {"radio_model.summary_idxs": torch.tensor(self.read)}


def config(version: str = "c-radio_v2-b", *, size: int = 24, **arguments: Any) -> dict[str, Any]:
    given = {
        "model": "vit_base_patch16_224",
        "model_kwargs": {"num_heads": HEADS},
        "cls_token_per_teacher": True,
        "cpe_max_size": SIDE * PATCH,
        "register_multiple": 5,
        "teachers": TEACHERS,
    }
    return {
        "architectures": ["RADIOModel"],
        "version": version,
        "patch_size": PATCH,
        "preferred_resolution": [size, size],
        "args": given | arguments,
    }


def radio(**changes: Any) -> Radio:
    torch.manual_seed(5)
    values: dict[str, Any] = {"classes": 3, "registers": 2, "read": [0, 1], "corners": True} | changes
    model: Radio = randomise(Radio(**values))
    model.norm_std.data = torch.tensor([0.2, 0.25, 0.3])[:, None, None]
    return model


def saved(folder: Path, state: dict[str, Tensor], settings: dict[str, Any] | None) -> Path:
    save_file({name: one.contiguous() for name, one in state.items()}, folder / "model.safetensors")
    if settings is not None:
        (folder / "config.json").write_text(json.dumps(settings))
    return folder


def check(loaded: LoadedModel, model: Radio, size: tuple[int, int]) -> None:
    """Output, every block's tokens and every row of attention are those of the published forward."""
    pixels = torch.rand(2, 3, *size)
    recipe = loaded.preprocess
    ours_in = (pixels - torch.tensor(recipe.mean)[:, None, None]) / torch.tensor(recipe.std)[:, None, None]
    ours = look_inside(loaded.model, loaded.model.blocks, lambda: loaded.model(ours_in))
    assert_same_inside(ours, look_inside(model, model.blocks, lambda: model(pixels)))


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("version", ["c-radio_v2-b", "c-radio_v4-h"])
def test_radio_computes_the_same_at_any_shape(tmp_path: Path, version: str, size: tuple[int, int]) -> None:
    model = radio(corners=version != "c-radio_v4-h")
    check(load(saved(tmp_path, model.state(), config(version)), device="cpu"), model, size)


def test_its_class_tokens_have_numbers_and_what_is_not_read_is_told(tmp_path: Path) -> None:
    loaded = load(saved(tmp_path, radio().state(), config()), device="cpu")
    layout = loaded.model.layout(16, 28)
    assert layout.prefix == ("class 0", "class 1", "class 2", "register 0", "register 1")
    assert layout.class_tokens == ("class 0", "class 1")
    assert layout.unread == ("class 2",)
    assert layout.describe("pool") == "pool (class 0, class 1)"
    assert loaded.config.grid == (6, 6)
    assert loaded.preprocess.input_size == (24, 24)
    assert loaded.preprocess.mean == pytest.approx(radio().norm_mean.flatten().tolist())
    assert "assumed" not in dict(loaded.provenance.parameters)


@pytest.mark.parametrize(
    ("changes", "arguments"),
    [
        (
            {"classes": 1, "registers": 0, "read": [0]},
            {"cls_token_per_teacher": False, "register_multiple": None},
        ),
        ({"classes": 1, "registers": 4, "read": [0]}, {"cls_token_per_teacher": False, "teachers": []}),
        ({"classes": 3, "registers": 4, "read": [2, 0], "scale": True}, {"cpe_num_registers": 4}),
        ({"classes": 2, "registers": 3, "read": [0, 1]}, {"teachers": [*TEACHERS[:2], {"name": "clip"}]}),
    ],
    ids=["one class token", "one with registers", "in another order, with LayerScale", "a teacher twice"],
)
def test_other_teachers_give_other_tokens(
    tmp_path: Path, changes: dict[str, Any], arguments: dict[str, Any]
) -> None:
    model = radio(**changes)
    loaded = load(saved(tmp_path, model.state(), config(**arguments)), device="cpu")
    named = loaded.config.prefix
    assert named[0] == ("class 0" if model.classes > 1 else "class")
    assert sum(name.startswith("register") for name in named) == changes["registers"]
    check(loaded, model, (16, 28))


def test_a_config_without_teachers_takes_what_the_file_says_and_tells_it(tmp_path: Path) -> None:
    model = radio(classes=2, registers=3)
    settings = config()
    del settings["args"]["teachers"]
    loaded = load(saved(tmp_path, model.state(), settings), device="cpu")
    assert loaded.config.prefix[:3] == ("class 0", "class 1", "register 0")
    assert "2 class tokens before 3 registers" in dict(loaded.provenance.parameters)["assumed"]
    check(loaded, model, (16, 28))


def test_without_stored_indices_the_teachers_say_which_tokens_are_read(tmp_path: Path) -> None:
    model = radio()
    state = model.state()
    del state["radio_model.summary_idxs"]
    check(load(saved(tmp_path, state, config()), device="cpu"), model, (16, 28))


def test_a_lone_file_needs_the_number_of_heads(tmp_path: Path) -> None:
    save_file(radio().state(), tmp_path / "mine.safetensors")
    with pytest.raises(KeyMismatch, match=r"with a config\.json that says the number of heads"):
        load(tmp_path / "mine.safetensors")


def test_a_file_and_a_hub_id_load_as_the_folder_does(tmp_path: Path, hub: Hub) -> None:
    model = radio()
    folder = saved(tmp_path, model.state(), config())
    check(load(folder / "model.safetensors", device="cpu"), model, (16, 28))
    hub.files["nvidia/C-RADIOv9-B", "config.json"] = json.dumps(config(version="c-radio_v9-b")).encode()
    hub.files["nvidia/C-RADIOv9-B", "model.safetensors"] = save(
        {name: one.contiguous() for name, one in model.state().items()}
    )
    loaded = load("nvidia/C-RADIOv9-B", device="cpu")
    check(loaded, model, (16, 28))
    assert "corners aligned" in dict(loaded.provenance.parameters)["assumed"]


def test_what_reads_it_for_something_else_is_left_out_and_told(tmp_path: Path) -> None:
    model = radio()
    inside = {
        "radio_model.adaptors.clip.head_mlp.fc1.weight": torch.randn(7, DIM),
        "radio_model.feature_normalizer.mean": torch.randn(DIM),
        "radio_model.model.reg_token": torch.randn(1, 4, DIM),
    }
    loaded = load(saved(tmp_path, model.state() | inside, config()), device="cpu")
    told = dict(loaded.provenance.parameters)
    assert sorted(told["left_out"].split(", ")) == [
        "radio_model.adaptors.clip",
        "radio_model.feature_normalizer",
        "radio_model.model.reg_token",
    ]
    check(loaded, model, (16, 28))


def test_the_vision_tower_of_a_language_model_is_found(tmp_path: Path) -> None:
    model = radio()
    state = {f"vision_model.{name}": tensor for name, tensor in model.state().items()}
    state |= {"language_model.fc.weight": torch.randn(6, DIM)}
    loaded = load(saved(tmp_path, state, {"vision_config": config()}), device="cpu")
    told = dict(loaded.provenance.parameters)
    assert (told["part"], told["left_out"]) == ("vision_model", "language_model")
    assert "assumed" not in told
    check(loaded, model, (16, 28))


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("model.blocks.1.attn.proj.weight", "1 missing: blocks.1.attn.proj.weight"),
        ("model.patch_generator.pos_embed", "patch_generator.pos_embed is missing"),
        ("model.patch_generator.cls_token.token", "patch_generator.cls_token.token is missing"),
        ("model.patch_generator.embedder.weight", "patch_embed.proj.weight is missing"),
    ],
)
def test_a_missing_parameter_is_refused_by_name(tmp_path: Path, name: str, told: str) -> None:
    state = radio().state()
    del state[f"radio_model.{name}"]
    with pytest.raises(KeyMismatch, match=re.escape(told)):
        load(saved(tmp_path, state, config()))


def test_an_extra_parameter_is_refused_by_name(tmp_path: Path) -> None:
    state = radio().state() | {"radio_model.model.blocks.0.attn.gate": torch.randn(3)}
    with pytest.raises(KeyMismatch, match=r"1 extra: blocks\.0\.attn\.gate"):
        load(saved(tmp_path, state, config()))


@pytest.mark.parametrize("read", [[0, 3], [1, 1], [-1]])
def test_indices_of_no_class_token_are_refused(tmp_path: Path, read: list[int]) -> None:
    state = radio().state() | {"radio_model.summary_idxs": torch.tensor(read)}
    with pytest.raises(ParameterError, match="class token that is read must be one of 0-2"):
        load(saved(tmp_path, state, config()))


def test_a_config_of_other_tokens_is_refused(tmp_path: Path) -> None:
    with pytest.raises(KeyMismatch, match="3 class tokens and 5 registers, and the file has 5"):
        load(saved(tmp_path, radio().state(), config(register_multiple=8)))


REFUSED = [
    ({"model": "eradio_large_fullres_ws16"}, "x", "E-RADIO: most of its layers are convolutions"),
    ({}, "model.levels.0.blocks.0.conv1.weight", "E-RADIO: most of its layers"),
    ({"model": "radio1d_base_patch16_224"}, "x", "RADIO1D: it squeezes"),
    ({"model": "dino_v2_g_student"}, "x", "a RADIO around DINOv2: .*vv.trace"),
    ({}, "model.inner.blocks.0.norm1.weight", "a RADIO around DINOv2"),
    ({}, "model.blocks.0.mlp.norm.weight", "a RADIO with norms in its MLPs"),
    ({"model": "vit_huge_patch16_224_mlpnorm"}, "x", "a RADIO with norms in its MLPs"),
    ({}, "model.blocks.0.attn.qkv.parametrizations.weight.original", "remove_parametrizations"),
]


@pytest.mark.parametrize(("arguments", "name", "told"), REFUSED)
def test_what_our_model_cannot_compute_is_refused_with_the_reason(
    tmp_path: Path, hub: Hub, arguments: dict[str, Any], name: str, told: str
) -> None:
    state = radio().state() | {f"radio_model.{name}": torch.randn(3)}
    with pytest.raises(UnknownFamily, match=told):
        load(saved(tmp_path, state, config(**arguments)))
    if arguments:  # before anything large is fetched
        hub.files["nvidia/it", "config.json"] = json.dumps(config(**arguments)).encode()
        with pytest.raises(CheckpointError, match=told):
            load("nvidia/it")


def test_windows_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownFamily, match="RADIO with windows: most of its layers attend within windows"):
        load(saved(tmp_path, radio().state(), config() | {"vitdet_window_size": 8}))


@pytest.mark.parametrize("gated", [False, True])
def test_radio_of_transformers_computes_the_same(tmp_path: Path, gated: bool) -> None:
    settings = transformers.RadioConfig(
        hidden_size=DIM, num_hidden_layers=DEPTH, num_attention_heads=HEADS, patch_size=PATCH, mlp_ratio=3.0,
        max_img_size=SIDE * PATCH, image_size=24, num_cls_tokens=3, num_registers=2, summary_idxs=[0, 2],
        use_swiglu_ffn=gated, attn_implementation="eager",
    )  # fmt: skip
    model = randomise(transformers.RadioModel(settings)).eval()
    model.input_conditioner.norm_std.copy_(torch.tensor([0.2, 0.25, 0.3])[:, None, None])
    model.save_pretrained(tmp_path)
    loaded = load(tmp_path, device="cpu")
    pixels = torch.rand(2, 3, 16, 28)
    mean, std = (torch.tensor(one)[:, None, None] for one in (loaded.preprocess.mean, loaded.preprocess.std))
    with torch.no_grad():
        assert_same(loaded.model((pixels - mean) / std), model(pixels).summary)


# --- what the app makes of several class tokens


@pytest.fixture
def several() -> LoadedModel:
    """Our own model with three class tokens of which the first and the last are read, and one register."""
    return own_loaded(
        in_chans=3, img_size=24, patch_size=PATCH, embed_dim=DIM, depth=DEPTH, num_heads=HEADS, num_classes=0,
        class_tokens=3, class_read=(0, 2), reg_tokens=1, no_embed_class=True, position_grid=(SIDE, SIDE), resample="radio",
    )  # fmt: skip


def test_it_is_not_written_for_the_engine_in_the_page(several: LoadedModel, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="knows neither several class tokens"):
        write_weights(several, tmp_path / "it.safetensors")


def test_a_map_of_the_answer_starts_from_the_tokens_that_are_read(several: LoadedModel) -> None:
    recorded = trace(several.model, torch.randn(1, 3, 16, 28))
    assert recorded.output_query() == "pool"
    assert recorded.query_weights("pool").nonzero().flatten().tolist() == [0, 2]
    assert recorded.output_query(outputs=[3]) == "class 0"
    assert recorded.output_query(outputs=[DIM + 3]) == "class 2"
