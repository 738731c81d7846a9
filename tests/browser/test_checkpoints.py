"""A checkpoint that others have written is to the engine what it is to `vit_viz.load`: architecture, preprocessing, numbers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from tests.browser.engine import Jobs
from tests.browser.oracle import PARITY, differences, oracle
from tests.checkpoints.test_processors import CONFIG, CROP_48, PROCESSORS, REFUSED, SIDE_48, STATISTICS, TIMM
from tests.checkpoints.test_recipes import INNER, JUNK
from tests.model.inside import randomise
from vit_viz.browser.published import published_models
from vit_viz.checkpoints import LoadedModel, load
from vit_viz.checkpoints.families.base import Recipe
from vit_viz.checkpoints.local import read_settings
from vit_viz.checkpoints.recipes import preprocess_of
from vit_viz.errors import ParameterError
from vit_viz.images import Preprocess
from vit_viz.samples import sample

pytestmark = pytest.mark.numbers

timm = pytest.importorskip("timm", reason="timm is an oracle of these tests")
transformers = pytest.importorskip("transformers", reason="transformers is an oracle of these tests")
transformers.utils.logging.set_verbosity_error()

State = dict[str, Tensor]
SIZES = {"img_size": 24, "patch_size": 6, "embed_dim": 128, "depth": 3, "num_heads": 2, "num_classes": 7}
NARROW = SIZES | {"embed_dim": 40, "num_heads": 5}  # which the name alone tells
HF = {"hidden_size": 128, "num_hidden_layers": 3, "num_attention_heads": 2, "image_size": 24, "patch_size": 6}


def of_timm(architecture: str, **sizes: Any) -> State:
    model = randomise(timm.create_model(architecture, pretrained=False, **{**SIZES, **sizes}))
    return dict(model.state_dict())


def of_transformers(kind: str, **config: Any) -> State:
    model = getattr(transformers, kind)
    return dict(randomise(model(model.config_class(**{**HF, "num_labels": 7, **config}))).state_dict())


def as_dinov2(state: State) -> State:
    """Under the names of its authors: the class token has a position, registers have none."""
    names = {"reg_token": "register_tokens", ".mlp.fc1.": ".mlp.w12.", ".mlp.fc2.": ".mlp.w3."}
    gated = state["blocks.0.mlp.fc1.weight"].shape[0] == 2 * state["blocks.0.mlp.fc2.weight"].shape[1]
    renamed = {}
    for name, tensor in state.items():
        for timms, own in names.items():
            name = name.replace(timms, own) if gated or "mlp" not in timms else name
        renamed[name] = tensor
    if "reg_token" in state:
        renamed["pos_embed"] = torch.cat([torch.randn(1, 1, 128), state["pos_embed"]], dim=1)
    return renamed | {"mask_token": torch.randn(1, 128)}


CASES: dict[str, tuple[str, Callable[[], State]]] = {
    "timm ViT": ("mine", lambda: of_timm("vit_tiny_patch16_224")),
    "timm ViT, no head": ("mine", lambda: of_timm("vit_tiny_patch16_224", num_classes=0)),
    "timm DeiT, distilled": ("mine", lambda: of_timm("deit_tiny_distilled_patch16_224")),
    "timm DeiT III": ("deit3_small_patch16_224.fb_in1k", lambda: of_timm("deit3_small_patch16_224", num_heads=6, embed_dim=48)),
    "timm DINOv2": ("model", lambda: of_timm("vit_small_patch14_reg4_dinov2")),
    "timm DINOv2, gated": ("mine", lambda: of_timm("vit_giant_patch14_dinov2")),
    "timm, mean": ("vit_little_patch16_reg4_gap_256", lambda: of_timm("vit_little_patch16_reg4_gap_256", **NARROW)),
    "timm ViT, named": ("vit_tiny_patch16_224", lambda: of_timm("vit_tiny_patch16_224", embed_dim=48, num_heads=3)),
    "timm MAE, named": (
        "vit_base_patch16_224.mae", lambda: of_timm("vit_base_patch16_224", embed_dim=48, num_heads=12, num_classes=0)
    ),
    "timm MIIL, named": ("vit_base_patch16_224_miil", lambda: of_timm("vit_base_patch16_224_miil", embed_dim=48, num_heads=12)),
    "timm CLIP, squashed": (
        "vit_base_patch16_clip_384.openai_ft_in1k", lambda: of_timm("vit_base_patch16_clip_384", embed_dim=48, num_heads=12)
    ),
    "timm SigLIP": ("mine", lambda: of_timm("vit_base_patch16_siglip_224")),
    "timm CLIP": ("mine", lambda: of_timm("vit_base_patch16_clip_224")),
    "timm CLIP of OpenAI": (
        "vit_base_patch16_clip_224.openai",
        lambda: of_timm("vit_base_patch16_clip_quickgelu_224", embed_dim=48, num_heads=12, num_classes=512),
    ),
    "timm, patches as a linear layer": ("mine", lambda: {
        name: tensor.flatten(1) if name == "patch_embed.proj.weight" else tensor
        for name, tensor in of_timm("vit_tiny_patch16_224").items()
    }),
    "timm, bfloat16": ("mine", lambda: {
        name: tensor.bfloat16() for name, tensor in of_timm("vit_tiny_patch16_224").items()
    }),
    "timm, one channel": ("mine", lambda: of_timm("vit_tiny_patch16_224", in_chans=1)),
    "DINO": ("dino_deitsmall16", lambda: of_timm("vit_small_patch16_224", num_classes=0)),
    "DINO with its training": ("mine", lambda: {
        **{f"backbone.{name}": tensor for name, tensor in of_timm("vit_small_patch16_224", num_classes=0).items()},
        "head.mlp.0.weight": torch.randn(4, 4), "head.last_layer.weight_g": torch.randn(4, 1),
    }),
    "DINOv2": ("mine", lambda: as_dinov2(of_timm("vit_small_patch14_dinov2", num_classes=0))),
    "DINOv2, registers": ("mine", lambda: as_dinov2(of_timm("vit_small_patch14_reg4_dinov2", num_classes=0))),
    "DINOv2, gated": ("mine", lambda: as_dinov2(of_timm("vit_giant_patch14_reg4_dinov2", num_classes=0))),
    "transformers ViT": ("mine", lambda: of_transformers("ViTForImageClassification", intermediate_size=60)),
    "transformers DeiT": ("mine", lambda: of_transformers("DeiTForImageClassificationWithTeacher")),
    "transformers DINOv2": ("mine", lambda: of_transformers("Dinov2Model")),
    "transformers DINOv2, gated": ("mine", lambda: of_transformers("Dinov2Model", use_swiglu_ffn=True)),
    "transformers DINOv2, registers": ("mine", lambda: of_transformers("Dinov2WithRegistersModel")),
}  # fmt: skip


NAMES = ["bee", "cat", "dog", "elk", "fox", "gnu", "hen"]
OF_TIMM: dict[str, Any] = {
    "input_size": [3, 24, 24],
    "crop_pct": 0.8,
    "mean": [0.1, 0.2, 0.3],
    "std": [0.2, 0.3, 0.4],
}
NAMED = {"id2label": {str(i): name for i, name in enumerate(NAMES)}}
BESIDE: dict[str, tuple[dict[str, Any], dict[str, Any] | None, Callable[[], State]]] = {
    "timm, config.json": (
        {"architecture": "vit_little_patch16_reg4_gap_256", "num_features": 40, "global_pool": "token",
         "label_names": ["n1", *NAMES[1:]], "label_descriptions": {"n1": "bee"}, "pretrained_cfg": OF_TIMM},
        None, lambda: of_timm("vit_tiny_patch16_224", **NARROW),
    ),
    "timm, flat config.json of older files": (
        {"architecture": "vit_base_patch16_clip_224", "interpolation": "bilinear", "crop_mode": "squash", **OF_TIMM},
        None, lambda: of_timm("vit_base_patch16_clip_224", embed_dim=48, num_heads=12),
    ),
    "timm, natively quick GELU": (
        {"architecture": "vit_base_patch16_clip_224", "pretrained_cfg": {"tag": "openai", **OF_TIMM}, "labels": NAMES},
        None, lambda: of_timm("vit_base_patch16_clip_quickgelu_224", embed_dim=48, num_heads=12, num_classes=512),
    ),
    "timm, heads and size": (
        {"architecture": "mine", "model_args": {"num_heads": 8, "img_size": [18, 30]},
         "pretrained_cfg": {"input_size": [3, 18, 30]}},
        None, lambda: of_timm("vit_tiny_patch16_224", img_size=(18, 30), num_heads=8),
    ),
    "transformers ViT, both files": (
        {"model_type": "vit", "hidden_size": 40, "num_hidden_layers": 3, "num_attention_heads": 5,
         "hidden_act": "gelu_pytorch_tanh", "layer_norm_eps": 0.01, "image_size": [18, 30],
         "problem_type": "multi_label_classification", **NAMED},
        {"size": {"height": 24, "width": 36}, **STATISTICS},
        lambda: of_transformers(
            "ViTForImageClassification", hidden_size=40, num_attention_heads=5, layer_norm_eps=0.01, image_size=[18, 30],
            hidden_act="gelu_pytorch_tanh",
        ),
    ),
    "transformers DINOv2, both files": (
        {"model_type": "dinov2", "num_attention_heads": 4},
        {"size": {"shortest_edge": 30}, "crop_size": 24, "do_center_crop": True},
        lambda: of_transformers("Dinov2Model", num_attention_heads=4),
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def passes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Of each checkpoint what the engine makes of it and a photo, all in one process of Node.js, and what Python loads."""
    folder, image = tmp_path_factory.mktemp("checkpoints"), sample("runner")
    jobs, loaded = Jobs(folder), []
    published = published_models()
    for number, (name, make) in enumerate(
        [*CASES.values(), *(("model", make) for *_, make in BESIDE.values())]
    ):
        torch.manual_seed(number)
        path = folder / str(number) / f"{name}.safetensors"
        path.parent.mkdir()
        save_file({key: tensor.contiguous() for key, tensor in make().items()}, path)
        about = published | {"name": name}
        if number >= len(CASES):
            config, preprocessor, _ = list(BESIDE.values())[number - len(CASES)]
            beside = [path.parent / "config.json", path.parent / "preprocessor_config.json"]
            for file, said in zip(beside, (config, preprocessor), strict=True):
                file.write_text(json.dumps(said or {}))
            about["settings"] = read_settings(beside[0], beside[1], None)
        jobs.add("photo", path=str(path), picture=jobs.picture(image), options={"mode": "crop"}, about=about)
        loaded.append(load(path, device="cpu"))
    return dict(zip([*CASES, *BESIDE], zip(jobs.run(), loaded, strict=True), strict=True))


@pytest.mark.parametrize("case", CASES)
def test_a_file_of_others_is_what_python_makes_of_it(passes: dict[str, Any], case: str) -> None:
    result, loaded = passes[case]
    assumed = checked(result, loaded)
    assert result["said"]["labels"] is None
    guessed = "heads" in dict(loaded.provenance.parameters).get("assumed", "")
    assert ("2 heads of 64 numbers" in assumed) == guessed
    is_published = dict(loaded.provenance.parameters)["preprocessing"] == "of timm's weights of this name"
    assert ("Pictures are prepared as timm does it for its weights of this name" in assumed) == is_published
    assert ("a preprocessing (bicubic; channels less 0." in assumed) != is_published


@pytest.mark.parametrize("case", BESIDE)
def test_what_lies_beside_a_file_says_to_the_engine_what_it_says_to_python(
    passes: dict[str, Any], case: str
) -> None:
    result, loaded = passes[case]
    notes = checked(result, loaded)
    preprocessor = BESIDE[case][1]
    file = "config.json" if preprocessor is None else "preprocessor_config.json"
    assert f"Pictures are prepared as its {file} says (channels less" in notes
    assert ("Assumed" in notes) == (
        case == "timm, heads and size"
    )  # of an architecture that timm does not have
    labels = None if loaded.labels is None else list(loaded.labels.names)
    assert result["said"]["labels"] == labels
    assert (labels == NAMES) == (case in ("timm, config.json", "transformers ViT, both files"))
    assert result["said"]["output"] == ("sigmoid" if loaded.output == "sigmoid" else None)


def checked(result: dict[str, Any], loaded: LoadedModel) -> str:
    """Compare configuration, preprocessing and numbers with those of Python; returns the notes but for the first."""
    assert "error" not in result, result["error"]
    assert result["said"]["config"] == loaded.config.to_dict()
    assert result["said"]["recipe"] == approximately(loaded.preprocess)
    family, *notes = result["said"]["notes"]
    assert family.startswith(f"Recognised as {loaded.family.split(' / ')[0]}")
    pixels = loaded.preprocess.apply(sample("runner"), mode="crop").pixels
    apart = differences(result, oracle(loaded.model, pixels))
    assert {name: value for name, value in apart.items() if value > PARITY} == {}
    return " ".join(notes)


def approximately(preprocess: Preprocess) -> dict[str, Any]:
    recipe = preprocess.to_dict()
    return recipe | {name: pytest.approx(recipe[name], rel=1e-15) for name in ("mean", "std")}


def test_each_preprocessing_of_transformers_and_timm_is_read_or_refused_as_in_python(tmp_path: Path) -> None:
    """Of values that no library writes, too; some of these only Python reads ("12" as 12), but none is read differently."""
    usual = {"image_processor_type": "ViTImageProcessor", **SIDE_48}
    written: list[tuple[dict[str, Any], str]] = [
        *(({"preprocessor": {"image_processor_type": kind, **values}}, "") for kind, values in PROCESSORS.values()),
        *(({"preprocessor": values, "model_type": kind}, "") for kind, values in (
            ("vit_mae", SIDE_48), ("clip_vision_model", CROP_48), ("siglip", SIDE_48), ("dinov2", CROP_48),
        )),
        *(({"pretrained_cfg": {"input_size": [3, 48, 48], **cfg}}, "") for cfg in TIMM.values()),
        *(({"pretrained_cfg": {key: "random"}}, key) for key in ("crop_mode", "interpolation")),
        ({"preprocessor": SIDE_48, "model_type": "unknown"}, "image_mean"),
        *(({"preprocessor": usual | values}, key) for key, values in REFUSED),
        *(({"preprocessor": usual | CROP_48 | {"do_pad": True, key: junk}}, "?") for junk in JUNK for key in (
            "size", "crop_size", "resample", "image_mean", "image_std", "rescale_factor", "crop_pct", "pad_size",
        )),
        *(({"pretrained_cfg": {"input_size": [3, 48, 48], key: junk}}, "?") for junk in JUNK for key in INNER),
    ]  # fmt: skip
    about = published_models() | {"name": "mine"}
    config, jobs = CONFIG.to_dict(), Jobs(tmp_path)
    plain = {"mean": [0.5] * 3, "std": [0.5] * 3, "crop_pct": 0.9}
    written = [(json.loads(json.dumps(said).replace("NaN", "null")), key) for said, key in written]
    for settings, _ in written:
        jobs.add("recipe", config=config, about=about | {"settings": settings}, usual=plain)
    for (settings, key), result in zip(written, jobs.run(), strict=True):
        if "error" in result:
            assert result["error"].startswith("The preprocessing that came with"), (settings, result)
            assert key, (settings, result)
            if key != "?":
                assert f"cannot be followed here: {key} is " in result["error"]
                with pytest.raises(ParameterError):
                    preprocess_of(CONFIG, settings, Recipe())
        else:
            assert result == approximately(preprocess_of(CONFIG, settings, Recipe())[0]), settings


def test_a_thousand_classes_are_those_of_imagenet(tmp_path: Path) -> None:
    path, jobs = tmp_path / "mine.safetensors", Jobs(tmp_path)
    save_file(of_timm("vit_tiny_patch16_224", num_classes=1000), path)
    about = published_models() | {"name": "mine"}
    jobs.add("photo", path=str(path), picture=jobs.picture(sample("lion")), options={}, about=about)
    (named,) = jobs.run()
    labels = load(path, device="cpu").labels
    assert labels is not None
    assert named["said"]["labels"] == list(labels.names)
