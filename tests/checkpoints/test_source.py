"""The Hub, spoken by a server on this machine: what is fetched, what is refused, and that nothing half-written stays."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
import torch
from huggingface_hub import constants

from tests.checkpoints.fake_hub import COMMIT, REPO, Hub, remains, weights
from vit_viz.checkpoints import CATALOG, catalog, default_model, load, source
from vit_viz.errors import CheckpointError, UnknownFamily


def test_a_hub_id_is_fetched_at_one_commit_and_says_so(hub: Hub) -> None:
    hub.offer()
    loaded = load(REPO, device="cpu")
    assert loaded.origin == f"{REPO} on the Hub at 0123456"
    assert loaded.config.num_heads == 2
    assert loaded.provenance.weights == hashlib.sha256(hub.files[REPO, "model.safetensors"]).hexdigest()
    fetched = [path for method, path, _ in hub.asked if method == "GET"]
    assert f"/{REPO}/resolve/{COMMIT}/model.safetensors" in fetched


def test_the_preprocessing_comes_with_the_download(hub: Hub) -> None:
    hub.offer(
        pretrained_cfg={
            "input_size": [3, 24, 24],
            "crop_pct": 0.8,
            "mean": [0.1, 0.2, 0.3],
            "std": [0.4, 0.5, 0.6],
        },
    )
    preprocess = load(REPO, device="cpu").preprocess
    assert preprocess.resize_to == 30
    assert preprocess.mean == (0.1, 0.2, 0.3)


def test_the_second_load_fetches_nothing(hub: Hub) -> None:
    hub.offer()
    load(REPO, device="cpu")
    hub.asked.clear()
    load(REPO, device="cpu")
    assert not [path for method, path, _ in hub.asked if method == "GET"]


def test_the_cache_answers_when_the_hub_is_out_of_reach(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.offer()
    expected = load(REPO, device="cpu").provenance.weights
    hub.asked.clear()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert load(REPO, device="cpu").provenance.weights == expected
    assert not hub.asked


def test_an_unreachable_hub_is_one_sentence(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    dead = "http://127.0.0.1:9"
    monkeypatch.setattr(constants, "ENDPOINT", dead)
    monkeypatch.setattr(
        constants, "HUGGINGFACE_CO_URL_TEMPLATE", dead + "/{repo_id}/resolve/{revision}/{filename}"
    )
    with pytest.raises(CheckpointError, match="the Hub cannot be reached: check the network"):
        load(REPO)


def test_offline_without_a_cache_is_one_sentence(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(CheckpointError, match="is not on this machine and the Hub cannot be reached"):
        load(REPO)


def test_an_unknown_id_is_one_sentence(hub: Hub) -> None:
    with pytest.raises(
        CheckpointError, match="The Hub has no model 'nobody/nothing', or it is private: check the spelling"
    ):
        load("nobody/nothing")


def test_an_unknown_revision_is_one_sentence(hub: Hub) -> None:
    hub.offer()
    with pytest.raises(CheckpointError, match="has no revision 'v9'"):
        load(f"{REPO}@v9")


def test_a_gated_model_says_how_to_get_in(hub: Hub) -> None:
    hub.offer()
    hub.fault["gated"] = True
    with pytest.raises(
        CheckpointError,
        match="is gated: accept its licence on the Hub, set the environment variable HF_TOKEN",
    ):
        load(REPO)


def test_the_owners_token_goes_to_catalog_models_only(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    entry = catalog.entry_of("augreg-ti16")
    assert entry is not None
    for repo in (REPO, entry.hub_id):
        hub.offer(repo)
    load(REPO, device="cpu")
    assert {token for _, _, token in hub.asked} == {None}
    hub.asked.clear()
    loaded = load("augreg-ti16", device="cpu")
    assert {token for _, _, token in hub.asked} == {"Bearer hf_secret"}
    assert loaded.name == "augreg-ti16"


def test_a_token_can_be_allowed_for_an_own_model(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    hub.offer()
    hub.fault["gated"] = True
    assert load(REPO, device="cpu", use_token=True).name == REPO


def test_a_wrong_hash_is_noticed_and_the_file_deleted(hub: Hub, tmp_path: Path) -> None:
    hub.offer()
    hub.fault["announced"] = "0" * 64
    with pytest.raises(CheckpointError, match=r"arrived damaged .* were deleted"):
        load(REPO)
    assert remains(tmp_path / "cache") == []
    hub.fault.clear()
    assert load(REPO, device="cpu").name == REPO


def test_a_file_that_was_damaged_in_the_cache_is_noticed_too(hub: Hub, tmp_path: Path) -> None:
    hub.offer()
    load(REPO, device="cpu")
    (blob,) = [path for path in (tmp_path / "cache").rglob("blobs/*") if path.stat().st_size > 10_000]
    blob.chmod(0o644)
    blob.write_bytes(blob.read_bytes()[:-1] + b"!")
    with pytest.raises(CheckpointError, match="arrived damaged"):
        load(REPO)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"architecture": "resnet50"}, "timm's 'resnet50', which is not one of the Vision Transformers"),
        ({"architecture": "swin_tiny_patch4_window7_224"}, "timm's 'swin_tiny"),
        ({"architecture": "vit_base_patch16_rpn_224"}, "norms after the branches"),
        ({"architecture": None, "model_type": "swin"}, "is a 'swin' model, not a Vision Transformer"),
        ({"architecture": None, "model_type": "bert"}, "is a 'bert' model, not a Vision Transformer"),
    ],
)
def test_what_is_no_vit_is_refused_before_its_weights_are_fetched(
    hub: Hub, config: dict[str, Any], message: str
) -> None:
    hub.offer(**config)
    with pytest.raises(UnknownFamily, match=message):
        load(REPO)
    assert not [path for method, path, _ in hub.asked if method == "GET" and path.endswith("safetensors")]


def test_a_model_without_safetensors_is_refused(hub: Hub) -> None:
    hub.offer()
    hub.files[REPO, "pytorch_model.bin"] = hub.files.pop((REPO, "model.safetensors"))
    with pytest.raises(CheckpointError, match=r"has no model.safetensors; other formats can run code"):
        load(REPO)


def test_a_path_does_not_count_where_references_come_from_a_browser(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "private.safetensors"
    path.write_bytes(weights())
    monkeypatch.chdir(tmp_path)
    for ref in (str(path), "private.safetensors", "../private.safetensors", str(tmp_path)):
        with pytest.raises(CheckpointError, match="There is no model"):
            load(ref, local_files=False)


def test_a_local_folder_cannot_pose_as_a_hub_id_for_a_browser(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hub: Hub
) -> None:
    (tmp_path / "someone" / "tiny-vit").mkdir(parents=True)
    (tmp_path / "someone" / "tiny-vit" / "model.safetensors").write_bytes(b"local")
    monkeypatch.chdir(tmp_path)
    hub.offer()
    assert "on the Hub" in load(REPO, device="cpu", local_files=False).origin


@pytest.mark.parametrize(
    "ref",
    [
        *("a/b/c", "../../etc/passwd", "owner/..", "/etc/passwd", "a//b", "-a/b", "", "a" * 5000),
        *("~/model", "~root/model", ".", "..", "./a", "a/", "/a", "C:\\models\\a", "a\\b", "\\\\host\\share"),
        *(
            "http://127.0.0.1/a",
            "https://huggingface.co/a/b",
            "file:///etc/passwd",
            "file:/etc/passwd",
            "hf://a/b",
        ),
        *(
            "a/b\n",
            "a/b\x00",
            "\ta/b",
            "a/b c",
            " a/b",
            "a/b\u202e",
            "оwner/name",
            "a/名前",
            "a/nаme",
            "a/b.git",
            "a/b.",
            "a/b-",
        ),
        *(
            "owner/name@../x y",
            "a/b@/etc/passwd",
            "a/b@..",
            "a/b@x//y",
            "a/b@-x",
            "a/b@",
            "a/b@x@y",
            "a/b@refs/../main",
        ),
        *(
            "mini@main",
            "dino-s16@main",
            "dino-s16@../../x",
            "mini/",
            "a/b?x=1",
            "a/b#x",
            "a/b%2f..",
            "a--b/c",
        ),
    ],
)
def test_what_is_no_hub_id_never_reaches_the_network(hub: Hub, ref: str) -> None:
    with pytest.raises(CheckpointError):
        load(ref, local_files=False)
    assert not hub.asked


def test_the_default_model_can_be_set_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VIT_VIZ_MODEL", raising=False)
    assert default_model() == "mini"
    monkeypatch.setenv("VIT_VIZ_MODEL", "dino-s16")
    assert default_model() == "dino-s16"


TIMMS = [entry for entry in CATALOG if entry.hub_id.startswith("timm/")]


@pytest.mark.parametrize("entry", TIMMS, ids=lambda entry: entry.name)
def test_the_catalog_agrees_with_timms_registry(entry: catalog.Entry) -> None:
    timm = pytest.importorskip("timm")
    cfg = timm.get_pretrained_cfg(entry.hub_id.removeprefix("timm/"))
    assert cfg.hf_hub_id == entry.hub_id
    assert cfg.license == entry.licence
    theirs = {name: getattr(cfg, name) for name in entry.settings}
    assert entry.settings == {
        name: list(value) if isinstance(value, tuple) else value for name, value in theirs.items()
    }


@pytest.mark.parametrize("entry", CATALOG, ids=lambda entry: entry.name)
def test_the_catalog_states_the_true_size(entry: catalog.Entry) -> None:
    timm = pytest.importorskip("timm")
    transformers = pytest.importorskip("transformers")
    both = {"clip-b32": ("CLIPConfig", "CLIPModel"), "siglip-b16-text": ("SiglipConfig", "SiglipModel")}
    with torch.device("meta"):
        if entry in TIMMS:
            name = entry.hub_id.removeprefix("timm/")
            model = timm.create_model(name, num_classes=timm.get_pretrained_cfg(name).num_classes)
        else:  # whose sizes are the defaults of transformers
            config, kind = (getattr(transformers, part) for part in both[entry.name])
            model = kind(config())
    numbers = sum(parameter.numel() for parameter in model.parameters())
    assert entry.megabytes == pytest.approx(4 * numbers / 1e6, abs=1)


def test_catalog_names_are_unique_and_no_hub_ids() -> None:
    names = [entry.name for entry in CATALOG]
    assert len(names) == len(set(names)) == 14
    assert not any("/" in name or name in source.BUNDLED for name in names)
