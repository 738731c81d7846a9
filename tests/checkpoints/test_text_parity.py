"""Both towers of CLIP and SigLIP under each of their names compute what their authors' code computes."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import Tensor, nn

from tests.checkpoints.fake_hub import COMMIT, Hub
from tests.checkpoints.test_text_towers import WORDS, word_tokenizer
from tests.comparing import assert_same
from tests.model.inside import randomise
from vit_viz.checkpoints import LoadedModel, load
from vit_viz.checkpoints.local import MAX_TOKENIZER_BYTES
from vit_viz.model import SentenceHead

pytestmark = pytest.mark.numbers

transformers = pytest.importorskip("transformers", reason="transformers is an oracle of these tests")
timm = pytest.importorskip("timm", reason="timm makes the vision tower of SigLIP in open_clip")

SENTENCES = ["a red circle", "blue", "a photo of a red square . . . . . . . . . . . . ."]
CONTEXT = 9
END, PAD = 1, 2


def tokens(*, fill: int = PAD) -> Tensor:
    """What the sentences' tokens are for a model of `CONTEXT` places."""
    rows = [[0, *(WORDS.index(word) for word in text.split()), END] for text in SENTENCES]
    rows = [row if len(row) <= CONTEXT else [*row[: CONTEXT - 1], END] for row in rows]
    return torch.tensor([row + [fill] * (CONTEXT - len(row)) for row in rows])


def lay_tokenizer(folder: Path) -> None:
    word_tokenizer().save(str(folder / "tokenizer.json"))


def logits(loaded: LoadedModel, pixels: Tensor) -> Tensor:
    """Of pictures by the sentences, as the head of sentences has them."""
    assert loaded.text is not None, loaded.text_missing
    with torch.no_grad():
        head = SentenceHead(nn.Identity(), loaded.encode_text(SENTENCES), loaded.text.scale, loaded.text.bias)
        scores: Tensor = head(loaded.model(pixels))
        return scores


# --- transformers

VISION = {
    "hidden_size": 40,
    "num_hidden_layers": 3,
    "num_attention_heads": 5,
    "image_size": 24,
    "patch_size": 6,
}
TEXT = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 56}
TEXT |= {"vocab_size": len(WORDS), "max_position_embeddings": CONTEXT}


def clip_of_transformers(**text: Any) -> Any:
    vision = {**VISION, "intermediate_size": 72, **({"hidden_act": text["hidden_act"]} if text else {})}
    config = transformers.CLIPConfig(
        text_config={**TEXT, "eos_token_id": END, "bos_token_id": 0, **text},
        vision_config=vision,
        projection_dim=14,
    )
    return randomise(transformers.CLIPModel(config)).eval()


def siglip_of_transformers(**text: Any) -> Any:
    # its picture embedding is as wide as its tokens, and so are those of sentences
    config = transformers.SiglipConfig(
        text_config={**TEXT, "projection_size": 40, **text}, vision_config={**VISION, "intermediate_size": 72}
    )
    model: Any = randomise(transformers.SiglipModel(config)).eval()
    with torch.no_grad():
        model.logit_bias.fill_(-3.5)
    return model


@pytest.mark.parametrize(
    ("build", "act", "config"),
    [(clip_of_transformers, act, (True, False, 0.0)) for act in (None, "gelu", "quick_gelu")]
    + [(siglip_of_transformers, act, (False, True, -3.5)) for act in (None, "gelu")],
)
def test_both_towers_of_transformers_compute_the_same(
    tmp_path: Path, build: Any, act: str | None, config: tuple[bool, bool, float]
) -> None:
    model = build(**({} if act is None else {"hidden_act": act}))
    model.save_pretrained(tmp_path)
    lay_tokenizer(tmp_path)
    loaded = load(tmp_path, device="cpu")
    pixels = torch.randn(2, 3, 24, 24)
    with torch.no_grad():
        theirs = model(input_ids=tokens(), pixel_values=pixels)
    assert_same(loaded.encode_text(SENTENCES), theirs.text_embeds, relative=1e-5)
    assert_same(logits(loaded, pixels), theirs.logits_per_image, relative=1e-5)
    assert loaded.text is not None
    assert (loaded.text.config.causal, loaded.text.sigmoid, loaded.text.bias) == config


def test_clips_end_token_of_old_configurations_is_the_one_with_the_highest_number(tmp_path: Path) -> None:
    """Where `eos_token_id` is 2, transformers reads at the largest number, as OpenAI did: here that is the end token, too."""
    model = clip_of_transformers(eos_token_id=2, hidden_act="quick_gelu")
    model.save_pretrained(tmp_path)
    content = json.loads(word_tokenizer().to_str())
    last = len(WORDS) - 1  # the end token takes the place of the full stop
    content["post_processor"]["special_tokens"]["<end>"]["ids"] = [last]
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    rows = tokens(fill=last)
    rows[rows == END] = last
    loaded = load(tmp_path, device="cpu")
    with torch.no_grad():
        theirs = F.normalize(model.get_text_features(input_ids=rows[:2]).pooler_output, dim=-1)
    assert_same(loaded.encode_text(SENTENCES[:2]), theirs, relative=1e-5)


@pytest.mark.parametrize(
    ("repo", "act"),
    [("openai/clip-vit-base-patch16", "quick_gelu"), ("laion/CLIP-ViT-B-32-laion2B-s34B-b79K", "gelu")],
)
def test_quick_gelu_is_decided_for_sentences_as_for_pictures(tmp_path: Path, repo: str, act: str) -> None:
    """By the repository, whatever the configuration says: OpenAI's conversions have been copied with "gelu" in it."""
    model = clip_of_transformers(hidden_act=act)
    model.save_pretrained(tmp_path)
    lay_tokenizer(tmp_path)
    settings = json.loads((tmp_path / "config.json").read_text())
    for tower in ("text_config", "vision_config"):
        settings[tower]["hidden_act"] = "gelu"
    (tmp_path / "config.json").write_text(json.dumps({**settings, "hub_id": repo}))
    loaded = load(tmp_path, device="cpu")
    assert loaded.text is not None
    assert (loaded.text.config.mlp, loaded.config.mlp) == (act, act)
    with torch.no_grad():
        theirs = model.get_text_features(input_ids=tokens()).pooler_output
    assert_same(loaded.encode_text(SENTENCES), F.normalize(theirs, dim=-1), relative=1e-5)


# --- the Hub

REPO = "someone/tiny-clip"


def offered(hub: Hub, folder: Path) -> Any:
    """A CLIP of transformers with its tokenizer, in a repository."""
    model = clip_of_transformers(hidden_act="gelu")
    model.save_pretrained(folder)
    lay_tokenizer(folder)
    (folder / "tokenizer_config.json").write_text("{}")
    for file in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"):
        hub.files[REPO, file] = (folder / file).read_bytes()
    return model


@pytest.mark.parametrize("local_files", [False, True])  # a visitor's, and the owner's
def test_a_tokenizer_comes_with_the_download(hub: Hub, tmp_path: Path, local_files: bool) -> None:
    model = offered(hub, tmp_path)
    loaded = load(REPO, device="cpu", local_files=local_files)
    with torch.no_grad():
        theirs = model.get_text_features(input_ids=tokens()).pooler_output
    assert_same(loaded.encode_text(SENTENCES), F.normalize(theirs, dim=-1), relative=1e-5)
    assert f"/{REPO}/resolve/{COMMIT}/tokenizer.json" in hub.fetched()
    hub.asked.clear()
    load(REPO, device="cpu", local_files=local_files).encode_text(SENTENCES)
    assert hub.fetched() == []


def test_a_tokenizer_that_is_too_large_is_not_fetched_and_pictures_are_seen(hub: Hub, tmp_path: Path) -> None:
    offered(hub, tmp_path)
    hub.fault["sizes"] = {"tokenizer.json": MAX_TOKENIZER_BYTES + 1}
    loaded = load(REPO, device="cpu")
    assert not any("tokenizer" in path for path in hub.fetched())
    assert "has a text tower and no tokenizer" in loaded.text_missing
    with torch.no_grad():
        assert loaded.model(torch.randn(1, 3, 24, 24)).shape == (1, 14)


def test_a_model_without_a_text_tower_asks_for_no_tokenizer(hub: Hub) -> None:
    hub.offer()
    load("someone/tiny-vit", device="cpu")
    assert not any("tokenizer" in path for _, path, _ in hub.asked)


# --- open_clip

VISION_CFG = {"image_size": 24, "patch_size": 6, "layers": 3, "width": 40, "head_width": 8}
TEXT_CFG = {"context_length": CONTEXT, "vocab_size": len(WORDS), "width": 24, "heads": 3, "layers": 2}
SIGLIP_TEXT = {"no_causal_mask": True, "proj_bias": True, "pool_type": "last", "norm_kwargs": {"eps": 1e-6}}


def clip_of_open_clip(**changes: Any) -> tuple[Any, dict[str, Any]]:
    """A model of open_clip's and the configuration that it saves beside it."""
    open_clip = pytest.importorskip("open_clip", reason="open_clip is the oracle of this test")
    config = {"embed_dim": 14, "vision_cfg": VISION_CFG, "text_cfg": TEXT_CFG, **changes}
    made = {key: value for key, value in config.items() if key != "custom_text"}
    kind = open_clip.CustomTextCLIP if config.get("custom_text") else open_clip.CLIP
    return randomise(kind(**made)).eval(), {"model_cfg": config}


def siglip_of_open_clip(
    monkeypatch: pytest.MonkeyPatch, *, width: int = 96, heads: int = 12, **text: Any
) -> tuple[Any, dict[str, Any]]:
    """As its configuration of ViT-B-16-SigLIP, with a tiny vision tower of timm's; `text` changes the other."""
    create = timm.create_model
    size = {"img_size": 24, "patch_size": 6, "embed_dim": width, "depth": 2, "num_heads": heads}

    def tiny(name: str, **settings: Any) -> nn.Module:
        return create(name, **settings | size)  # type: ignore[no-any-return]

    monkeypatch.setattr(timm, "create_model", tiny)
    vision = {
        "image_size": 24,
        "timm_model_name": "vit_base_patch16_siglip_224",
        "timm_model_pretrained": False,
    }
    vision |= {"timm_pool": "map", "timm_proj": "none"}
    return clip_of_open_clip(
        embed_dim=width,
        init_logit_bias=-10,
        custom_text=True,
        vision_cfg=vision,
        text_cfg={
            **TEXT_CFG,
            **SIGLIP_TEXT,
            **{name.removeprefix("text_"): value for name, value in text.items()},
        },
    )


def end_is_last(folder: Path) -> Tensor:
    """A tokenizer whose end token has the largest number, and the sentences in its tokens, filled up with 0."""
    last = len(WORDS) - 1
    content = json.loads(word_tokenizer().to_str())
    content["post_processor"]["special_tokens"]["<end>"]["ids"] = [last]
    (folder / "tokenizer.json").write_text(json.dumps(content))
    rows = tokens(fill=0)
    rows[rows == last] = 3  # a full stop would be the end: the sentences have none in these tests
    rows[rows == END] = last
    return rows[:2]


def check_open_clip(loaded: LoadedModel, model: Any, rows: Tensor) -> None:
    pixels = torch.randn(2, 3, 24, 24)
    with torch.no_grad():
        pictures, sentences = model.encode_image(pixels), model.encode_text(rows)
        expected = model.get_logits(pixels, rows)[0]
    assert loaded.text is not None, loaded.text_missing
    with torch.no_grad():
        assert_same(loaded.model(pixels), pictures, relative=1e-5)
    ours = loaded.encode_text(SENTENCES[: len(rows)])
    assert_same(ours, F.normalize(sentences, dim=-1), relative=1e-5)
    head = SentenceHead(nn.Identity(), ours, loaded.text.scale, loaded.text.bias)
    with torch.no_grad():
        assert_same(head(loaded.model(pixels)), expected, relative=1e-5)


@pytest.mark.parametrize("form", ["training", "plain", "safetensors"])
@pytest.mark.parametrize("custom", [False, True])
@pytest.mark.parametrize("quick", [False, True])
def test_both_towers_of_open_clips_files_compute_the_same(
    tmp_path: Path, form: str, custom: bool, quick: bool
) -> None:
    model, config = clip_of_open_clip(quick_gelu=quick, custom_text=custom)
    state = model.state_dict()
    if form == "training":
        wrapped = {f"module.{name}": tensor for name, tensor in state.items()}
        torch.save({"epoch": 3, "name": "run", "state_dict": wrapped}, tmp_path / "epoch_3.pt")
    elif form == "plain":
        torch.save(state, tmp_path / "open_clip_pytorch_model.bin")
    else:
        save_file(state, tmp_path / "open_clip_model.safetensors")
    (tmp_path / "open_clip_config.json").write_text(json.dumps(config))
    rows = end_is_last(tmp_path)
    loaded = load(tmp_path, device="cpu")
    check_open_clip(loaded, model, rows)
    assert loaded.config.mlp == ("quick_gelu" if quick else "gelu")


@pytest.mark.parametrize("tanh", [False, True])
@pytest.mark.parametrize("wrapped", ["", "module."])
def test_siglip_of_open_clip_computes_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tanh: bool, wrapped: str
) -> None:
    text: dict[str, Any] = {"act_kwargs": {"approximate": "tanh"}} if tanh else {}
    model, config = siglip_of_open_clip(monkeypatch, **text)
    state = {f"{wrapped}{name}": tensor for name, tensor in model.state_dict().items()}
    save_file(state, tmp_path / "open_clip_model.safetensors")
    (tmp_path / "open_clip_config.json").write_text(json.dumps(config))
    lay_tokenizer(tmp_path)
    loaded = load(tmp_path, device="cpu")
    check_open_clip(loaded, model, tokens())
    assert loaded.text is not None
    assert (loaded.text.sigmoid, loaded.text.config.mlp) == (True, "gelu_tanh" if tanh else "gelu")
    assert dict(loaded.provenance.parameters).get("left_out") is None


def test_what_open_clips_shapes_say_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a configuration: a projection with a bias is SigLIP's; heads are 64 wide."""
    model, _ = siglip_of_open_clip(monkeypatch, width=64, heads=1, text_width=128, text_heads=2)
    save_file(model.state_dict(), tmp_path / "open_clip_model.safetensors")
    lay_tokenizer(tmp_path)
    check_open_clip(load(tmp_path, device="cpu"), model, tokens())


def test_openais_archive_brings_its_text_tower(tmp_path: Path) -> None:
    """A TorchScript file has the size of its input as a number, and was trained with quick GELU."""
    model, _ = clip_of_open_clip(
        quick_gelu=True,
        vision_cfg={**VISION_CFG, "width": 64, "head_width": 64},
        text_cfg={**TEXT_CFG, "width": 64, "heads": 1},
    )
    numbers = {"input_resolution": 24, "context_length": CONTEXT, "vocab_size": len(WORDS)}
    state = model.state_dict() | {name: torch.tensor(number) for name, number in numbers.items()}
    torch.save(state, tmp_path / "ViT-T-6.pt")
    rows = end_is_last(tmp_path)
    check_open_clip(load(tmp_path / "ViT-T-6.pt", device="cpu"), model, rows)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ({"pool_type": "first"}, "reads a sentence by 'first'"),
        ({"pool_type": "last"}, "reads a sentence by 'last'"),
        ({"no_causal_mask": True}, "reads a sentence by 'argmax'"),
        ({"tokenizer_kwargs": {"strip_sep_token": True}}, "has a tokenizer with strip_sep_token"),
        ({"tokenizer_kwargs": {"clean": "thoroughly"}}, "clean its text by 'thoroughly'"),
        ({"ls_init_value": 1e-4}, "ls1.gamma"),
        ({"embed_cls": True}, "cls_emb"),
        ({"proj_type": "none"}, "cannot be used"),
    ],
)
def test_another_text_side_is_left_out_and_pictures_are_seen(
    tmp_path: Path, text: dict[str, Any], message: str
) -> None:
    changed = {**TEXT_CFG, **text}
    model, config = clip_of_open_clip(text_cfg=changed, custom_text=True)
    save_file(model.state_dict(), tmp_path / "open_clip_model.safetensors")
    (tmp_path / "open_clip_config.json").write_text(json.dumps(config))
    lay_tokenizer(tmp_path)
    loaded = load(tmp_path, device="cpu")
    assert loaded.text is None
    assert message in loaded.text_missing
    pixels = torch.randn(1, 3, 24, 24)
    with torch.no_grad():
        assert_same(loaded.model(pixels), model.encode_image(pixels), relative=1e-5)


def test_a_text_tower_of_a_language_model_is_left_out(tmp_path: Path) -> None:
    model, config = clip_of_open_clip(custom_text=True)
    state = {
        re.sub(r"^text\.", "text.transformer.encoder.", name): one for name, one in model.state_dict().items()
    }
    save_file(state, tmp_path / "open_clip_model.safetensors")
    (tmp_path / "open_clip_config.json").write_text(json.dumps(config))
    loaded = load(tmp_path, device="cpu")
    assert loaded.text is None
    assert "has no text tower" in loaded.text_missing


def test_a_projection_of_pictures_that_is_not_read_keeps_sentences_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, config = siglip_of_open_clip(monkeypatch)
    state = {**model.state_dict(), "visual.head.proj.weight": torch.eye(96)}
    save_file(state, tmp_path / "open_clip_model.safetensors")
    (tmp_path / "open_clip_config.json").write_text(json.dumps(config))
    lay_tokenizer(tmp_path)
    assert (
        "the projection of its pictures, visual.head, is not read"
        in load(tmp_path, device="cpu").text_missing
    )


def test_a_scale_is_the_number_that_cosines_are_multiplied_with(tmp_path: Path) -> None:
    model, config = clip_of_open_clip()
    with torch.no_grad():
        model.logit_scale.fill_(math.log(100))
    save_file(model.state_dict(), tmp_path / "open_clip_model.safetensors")
    (tmp_path / "open_clip_config.json").write_text(json.dumps(config))
    lay_tokenizer(tmp_path)
    loaded = load(tmp_path, device="cpu")
    assert loaded.text is not None
    assert loaded.text.scale == pytest.approx(100, rel=1e-6)
