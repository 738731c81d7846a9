"""Models that a visitor names: without the owner's token, safetensors only, of bounded size, and never a path."""

from __future__ import annotations

import contextlib
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from huggingface_hub import constants
from safetensors.torch import load as read, save

from tests.checkpoints.fake_hub import COMMIT, CONFIG, REPO, Hub, remains, running_hub, weights
from tests.spending import LargestTensor, python_memory
from vit_viz.checkpoints import catalog, load, source
from vit_viz.checkpoints.load import load_source
from vit_viz.checkpoints.local import Source
from vit_viz.errors import Cancelled, CheckpointError, UnsafeFile, VitVizError
from vit_viz.model import ViTConfig

ENTRY = catalog.CATALOG[0]


def of_a_visitor(**options: Any) -> Any:
    """The model as a visitor of the app gets it."""
    return load(REPO, device="cpu", local_files=False, **options)


@pytest.mark.parametrize("place", ["HF_TOKEN", "a token file"])
def test_a_visitors_model_is_fetched_without_the_owners_token(
    hub: Hub, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if place == "HF_TOKEN":
        monkeypatch.setenv("HF_TOKEN", "hf_secret")
    else:
        (tmp_path / "token").write_text("hf_secret")
        monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
    hub.offer()
    of_a_visitor()
    assert len(hub.fetched()) == 2
    assert {token for _, _, token in hub.asked} == {None}
    hub.asked.clear()
    hub.offer(ENTRY.hub_id)
    load(ENTRY.name, device="cpu", local_files=False)
    assert {token for _, _, token in hub.asked} == {"Bearer hf_secret"}


def test_a_visitors_revision_of_a_catalog_model_belongs_to_the_visitor(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    hub.offer(ENTRY.hub_id)
    hub.fault["revisions"] = ["refs%2Fpr%2F7"]
    load(f"{ENTRY.hub_id}@refs/pr/7", device="cpu", local_files=False)
    assert {token for _, _, token in hub.asked} == {None}


def test_the_token_does_not_follow_to_another_host(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    hub.offer(ENTRY.hub_id)
    with running_hub() as store:
        store.files.update(hub.files)
        hub.fault["elsewhere"] = store.endpoint
        load(ENTRY.name, device="cpu")
        assert [token for _, _, token in store.asked] == [None]


def test_nothing_but_json_and_safetensors_is_asked_for(hub: Hub) -> None:
    hub.offer(auto_map={"AutoModel": "modeling.Evil"}, trust_remote_code=True)
    for name in ("modeling.py", "pytorch_model.bin", "model.pkl"):
        hub.files[REPO, name] = b"raise SystemExit"
    of_a_visitor()
    names = {path.split("/")[-1] for _, path, _ in hub.asked}
    assert names == {"config.json", "preprocessor_config.json", "processor_config.json", "model.safetensors"}


def test_a_size_over_the_limit_is_refused_before_the_download(hub: Hub, tmp_path: Path) -> None:
    hub.offer()
    hub.fault["sizes"] = {"model.safetensors": source.MAX_VISITORS_BYTES + 1}
    with pytest.raises(
        CheckpointError, match="is too large to be opened here: its weights take more than 2 GB"
    ):
        of_a_visitor()
    assert not any(path.endswith("safetensors") for path in hub.fetched())
    assert remains(tmp_path / "cache") == []


def test_a_size_that_is_not_told_is_bounded_while_it_arrives(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.offer()
    hub.fault["unsized"] = True
    monkeypatch.setattr(source, "MAX_VISITORS_BYTES", len(weights()) // 2)
    with pytest.raises(CheckpointError, match="is too large to be opened here"):
        of_a_visitor()
    assert remains(tmp_path / "cache") == []


def test_more_bytes_than_announced_are_not_kept(hub: Hub, tmp_path: Path) -> None:
    hub.offer()
    hub.fault["sizes"] = {"model.safetensors": 1000}
    with pytest.raises(CheckpointError, match="failed midway; nothing was kept"):
        of_a_visitor()
    assert remains(tmp_path / "cache") == []


def test_the_owners_own_choice_has_no_such_limit(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.offer()
    monkeypatch.setattr(source, "MAX_VISITORS_BYTES", 1000)
    assert load(REPO, device="cpu").name == REPO


def test_small_numbers_count_as_what_they_become(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    halves = save({name: tensor.half() for name, tensor in read(weights()).items()})
    hub.offer(content=halves)
    monkeypatch.setattr(source, "MAX_VISITORS_BYTES", len(halves) * 3 // 2)
    with pytest.raises(UnsafeFile, match=r"asks for more than the .* million parameters"):
        of_a_visitor()


def test_a_configuration_of_megabytes_is_refused_before_the_download(hub: Hub) -> None:
    hub.offer()
    hub.fault["sizes"] = {"config.json": 10_000_001}
    with pytest.raises(CheckpointError, match=r"The config.json of .* is larger than any configuration"):
        of_a_visitor()
    assert not hub.fetched()


@pytest.mark.parametrize(
    ("announced", "message"),
    [
        (
            {"model_type": "vit", "num_hidden_layers": 10**9},
            "asks for 1000000000 as the number of layers; at most 256",
        ),
        ({"model_type": "vit", "image_size": 10**9}, "asks for 1000000000 as the size of the picture"),
        ({"model_type": "vit", "image_size": [224, -1]}, "asks for -1 as the size of the picture"),
        ({"model_type": "vit", "patch_size": 1e300}, "asks for 1e.* as the size of a patch"),
        ({"model_type": "vit", "num_attention_heads": float("inf")}, "asks for inf as the number of heads"),
        ({"model_type": "vit", "hidden_size": float("nan")}, "asks for nan as the width of a token"),
        (
            {"model_type": "clip", "vision_config": {"num_hidden_layers": 10**9}},
            "asks for 1000000000 as the number of layers",
        ),
        ({"model_args": {"depth": 10**9}}, "asks for 1000000000 as the number of layers"),
        (
            {"model_type": "vit", "num_hidden_layers": 48, "hidden_size": 1664},
            "asks for 1,595 million parameters",
        ),
        ({"model_args": {"depth": 200, "embed_dim": 16000, "mlp_hidden": 200_000}}, "million parameters"),
    ],
)
def test_a_monstrous_announcement_is_refused_before_the_weights_are_fetched(
    hub: Hub, announced: dict[str, Any], message: str
) -> None:
    hub.offer(**({"architecture": None} if "model_type" in announced else {}), **announced)
    with LargestTensor() as tensors, pytest.raises(CheckpointError, match=message):
        of_a_visitor()
    assert tensors.bytes == 0
    assert not any(path.endswith("safetensors") for path in hub.fetched())


HOSTILE = (0, -1, 10**9, 10**400, float("inf"), float("nan"), "x", [[]], {}, None)
ENTRIES = (
    "num_heads",
    "img_size",
    "embed_dim",
    "depth",
    "patch_size",
    "mlp_ratio",
    "norm_eps",
    "num_classes",
)


@pytest.mark.parametrize("entry", [*ENTRIES, "pretrained_cfg"])
def test_whatever_a_configuration_holds_it_is_refused_cheaply_or_harmless(tmp_path: Path, entry: str) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(weights())
    for value in HOSTILE:
        recipe = {"input_size": value, "crop_pct": value, "mean": value}
        settings = {**CONFIG.to_dict(), entry: recipe if entry == "pretrained_cfg" else value}
        for told in (settings, {"model_args": {"num_heads": 2, entry: value}, "pretrained_cfg": recipe}):
            odd = Source("odd", path, "a test", told, is_visitors=True)
            with LargestTensor() as tensors, contextlib.suppress(VitVizError):
                assert load_source(odd, device="cpu").config.depth == 2
            assert tensors.bytes <= path.stat().st_size


@pytest.mark.parametrize(
    "shapes",
    [
        {"patch_embed.proj.weight": (128, 3, 1)},
        {"pos_embed": ()},
        {"cls_token": ()},
        {"blocks.0.attn.qkv.weight": (1,)},
        {"blocks.999999999.norm1.weight": (4,)},
        {"head.weight": ()},
        {"reg_token": ()},
        {"blocks.0.mlp.fc1.weight": ()},
    ],
)
def test_impossible_shapes_are_one_sentence(tmp_path: Path, shapes: dict[str, tuple[int, ...]]) -> None:
    state = read(weights()) | {name: torch.zeros(shape) for name, shape in shapes.items()}
    path = tmp_path / "model.safetensors"
    path.write_bytes(save(state))
    odd = Source("odd", path, "a test", {"model_args": {"num_heads": 2}}, is_visitors=True)
    with LargestTensor() as tensors, pytest.raises(VitVizError):
        load_source(odd, device="cpu")
    assert tensors.bytes <= path.stat().st_size


def header(entries: Any, data: bytes = b"", *, length: int | None = None) -> bytes:
    """A safetensors file with this table of contents, true or not."""
    text = entries if isinstance(entries, bytes) else json.dumps(entries).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + data


def entry(shape: list[int], begin: int, end: int, dtype: str = "F32") -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


@pytest.mark.parametrize(
    "content",
    [
        header({"a": entry([4], 0, 16)}, b"\0" * 8),
        header({"a": entry([4], 16, 32)}, b"\0" * 32),
        header({"a": entry([10**12], 0, 16)}, b"\0" * 16),
        header({"a": entry([2**63, 2], 0, 0)}),
        header({"a": entry([0, 2**64 - 1], 0, 0)}),
        header({"a": entry([0, 10**18], 0, 0)}),
        header({"a": entry([1] * 5000, 0, 4)}, b"\0" * 4),
        header({f"t{i}": entry([1], 4 * i, 4 * i + 4) for i in range(20_001)}, b"\0" * 80_004),
        header({}, length=2**62),
        header(b" " * 100, length=10_000_001),
        header(b'{"a":' + b"[" * 100_000),
    ],
    ids=lambda content: hashlib.sha256(content).hexdigest()[:8],
)
def test_a_table_of_contents_that_lies_is_refused_cheaply(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "liar.safetensors"
    path.write_bytes(content)
    with LargestTensor() as tensors, python_memory() as memory, pytest.raises(CheckpointError, match="liar"):
        load(path)
    assert tensors.bytes <= len(content)
    assert memory.bytes < 32 * 2**20  # of the largest of them, a table of 20,001 entries, JSON makes 10 MB


FORMLESS: dict[str, Any] = {
    "a table that is a list": [1, 2],
    "a table that is a number": 7,
    "a table that is nothing": None,
    "a tensor that is a text": {"a": "hello"},
    "a tensor that is a number": {"x": 1},
    "a tensor that is nothing": {"a": None},
    "a tensor within a tensor": {"a": {"a": entry([4], 0, 16)}},
    "a shape that is a dictionary": {"a": {**entry([4], 0, 16), "shape": {"x": 1}}},
    "a shape that is a text": {"a": {**entry([4], 0, 16), "shape": "4"}},
    "a shape that is a number": {"a": {**entry([4], 0, 16), "shape": 4}},
    "a shape of text": {"a": {**entry([4], 0, 16), "shape": ["4"]}},
    "a shape of lists": {"a": {**entry([4], 0, 16), "shape": [[4]]}},
    "a shape of truths": {"a": {**entry([4], 0, 4), "shape": [True]}},
    "a shape of fractions": {"a": {**entry([4], 0, 16), "shape": [4.0]}},
    "a shape of infinity": {"a": {**entry([4], 0, 16), "shape": [float("inf")]}},
    "a shape below zero": {"a": entry([-4], 0, 16)},
    "a shape of huge numbers": {"a": entry([10**400, 10**400], 0, 16)},
    "no shape": {"a": {"dtype": "F32", "data_offsets": [0, 16]}},
    "offsets below zero": {"a": entry([4], -16, 0)},
    "offsets in the wrong order": {"a": entry([4], 16, 0)},
    "three offsets": {"a": {**entry([4], 0, 16), "data_offsets": [0, 8, 16]}},
    "offsets of text": {"a": {**entry([4], 0, 16), "data_offsets": ["0", "16"]}},
    "fewer bytes than the shape needs": {"a": entry([4], 0, 8)},
    "an unknown dtype": {"a": entry([4], 0, 16, "F99")},
    "a dtype that is a list": {"a": {**entry([4], 0, 16), "dtype": ["F32"]}},
    "metadata that is a list": {"__metadata__": [1], "a": entry([4], 0, 16)},
    "metadata of numbers": {"__metadata__": {"format": 1}, "a": entry([4], 0, 16)},
}


@pytest.mark.parametrize("contents", FORMLESS.values(), ids=FORMLESS)
def test_a_table_of_contents_of_another_form_is_unsafe(tmp_path: Path, contents: Any) -> None:
    path = tmp_path / "formless.safetensors"
    path.write_bytes(header(contents, b"\0" * 16))
    with pytest.raises(
        UnsafeFile,
        match=r"^'formless.safetensors' has no valid safetensors table of contents, so it is not read: .*\.$",
    ):
        load(path)


def test_tensors_that_overlap_leave_gaps_or_lie_beyond_the_file_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "gaps.safetensors"
    for second in (
        entry([4], 8, 24),
        entry([4], 20, 36),
        entry([4], 0, 16),
        entry([4], 10**400, 10**400 + 16),
    ):
        path.write_bytes(header({"a": entry([4], 0, 16), "b": second}, b"\0" * 36))
        with pytest.raises(CheckpointError, match="gaps"):
            load(path)


def test_a_model_of_too_many_patches_is_not_opened_for_a_visitor(hub: Hub) -> None:
    config = ViTConfig(img_size=65, patch_size=1, embed_dim=64, depth=1, num_heads=1, num_classes=7)
    hub.offer(content=weights(config), model_args={"num_heads": 1})
    with pytest.raises(CheckpointError, match="cuts a picture into 4,225 patches"):
        of_a_visitor()
    hub.offer("someone/greedy", pretrained_cfg={"input_size": [3, 1024, 1024]})
    with pytest.raises(CheckpointError, match="cuts a picture into 29,241 patches"):
        load("someone/greedy", device="cpu", local_files=False)


# --- the Hub goes away in the middle


@pytest.mark.parametrize("fault", ["cut", "reset", "stall"])
def test_a_hub_that_goes_away_midway_leaves_nothing(
    hub: Hub, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_DOWNLOAD_TIMEOUT", 0.3)
    hub.offer()
    hub.fault[fault] = 30
    with pytest.raises(CheckpointError, match="from the Hub failed midway; nothing was kept, try again"):
        of_a_visitor()
    assert (
        len([path for path in hub.fetched() if path.endswith("safetensors")]) <= 6
    )  # as often as the client tries again
    assert remains(tmp_path / "cache") == []
    hub.fault.clear()
    assert of_a_visitor().name == REPO


def test_a_cut_download_goes_on_where_it_ended(hub: Hub, tmp_path: Path) -> None:
    hub.offer()
    hub.fault.update(cut=True, ranges=True, times=1)
    seen: list[tuple[int, int]] = []
    loaded = of_a_visitor(progress=lambda done, total: seen.append((done, total)))
    size = len(weights())
    assert loaded.provenance.weights == hashlib.sha256(weights()).hexdigest()
    assert hub.ranges == [None, f"bytes={size // 2}-"]
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1] == (size, size)


def test_a_cut_download_begins_anew_where_the_hub_cannot_go_on(hub: Hub) -> None:
    hub.offer()
    hub.fault.update(cut=True, times=1)
    assert of_a_visitor().provenance.weights == hashlib.sha256(weights()).hexdigest()


def test_a_download_ends_when_it_is_told_to(hub: Hub, tmp_path: Path) -> None:
    hub.offer()
    hub.fault["pace"] = 0.05
    told: list[int] = []
    with pytest.raises(Cancelled, match="was cancelled; nothing of it was kept"):
        of_a_visitor(progress=lambda done, _: told.append(done), cancelled=lambda: len(told) >= 2)
    assert len(told) == 2
    assert remains(tmp_path / "cache") == []


def test_a_part_that_a_killed_process_left_is_removed(hub: Hub, tmp_path: Path) -> None:
    hub.offer()
    blobs = tmp_path / "cache" / "models--someone--tiny-vit" / "blobs"
    blobs.mkdir(parents=True)
    old, young = blobs / "a.1.incomplete", blobs / "a.2.incomplete"
    for part in (old, young):
        part.write_bytes(b"half")
    import os

    os.utime(old, (1, 1))
    of_a_visitor()
    assert [part.name for part in (tmp_path / "cache").rglob("*.incomplete")] == [young.name]


def test_the_cache_is_the_one_that_huggingface_hub_reads(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    hub.offer()
    of_a_visitor()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    path = huggingface_hub.hf_hub_download(REPO, "model.safetensors")
    assert COMMIT in path
    assert Path(path).read_bytes() == weights()
