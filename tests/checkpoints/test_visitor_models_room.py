"""What visitors' models may take in the Hub's cache: the oldest make room, and what the owner put there stays."""

from __future__ import annotations

import importlib
import os
import shutil
from collections import namedtuple
from dataclasses import replace
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
from huggingface_hub import constants

from tests.checkpoints.fake_hub import COMMIT, CONFIG, REPO, Hub, remains, weights
from vit_viz.checkpoints import catalog, load, visitor_models
from vit_viz.checkpoints.source import find
from vit_viz.checkpoints.visitor_models import visitor_model_cache
from vit_viz.errors import CheckpointError, ParameterError

FIRST, SECOND, THIRD = "someone/first", "else/second", "third/third"
LARGER = replace(CONFIG, depth=3)
LATER = "89abcdef0123456789abcdef0123456789abcdef"
Space = namedtuple("Space", "total used free")
FULL = "There is no room among the models that visitors chose"


@pytest.fixture(autouse=True)
def three_models(hub: Hub) -> None:
    for repo in (FIRST, SECOND, THIRD):
        hub.offer(repo)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def bound(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIT_VIZ_HUB_BYTES", str(number))


def visit(repo: str, **options: Any) -> None:
    """A visitor opens a model."""
    assert load(repo, device="cpu", local_files=False, **options).name == repo.split("@")[0]


def age(repo: str, seconds: float, cache: Path) -> None:
    """Make the last use of a visitor's model so long ago."""
    marks = list((cache / visitor_models.repository_folder(repo) / ".strangers").iterdir())
    assert len(marks) == 2
    for mark in marks:
        os.utime(mark, (mark.stat().st_mtime - seconds,) * 2)


def size_of(hub: Hub, repo: str = FIRST) -> int:
    """Bytes of one model; the three are alike."""
    return sum(len(content) for (owner, _), content in hub.files.items() if owner == repo)


def here(cache: Path) -> set[str]:
    """Models whose weights lie in the cache."""
    return {
        path.parents[2].name.removeprefix("models--").replace("--", "/")
        for path in cache.glob("models--*/snapshots/*/model.safetensors")
        if path.exists()
    }


@pytest.mark.parametrize(("spare", "left"), [(1, {FIRST, SECOND}), (0, {FIRST, SECOND}), (-1, {SECOND})])
def test_models_of_visitors_stay_up_to_the_bound(
    hub: Hub, cache: Path, monkeypatch: pytest.MonkeyPatch, spare: int, left: set[str]
) -> None:
    bound(2 * size_of(hub) + spare, monkeypatch)
    visit(FIRST)
    visit(SECOND)
    assert here(cache) == left


def test_the_bound_is_twenty_gigabytes_unless_it_is_set(
    hub: Hub, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert visitor_models.HUB_BYTES == 20 * 10**9
    monkeypatch.delenv("VIT_VIZ_HUB_BYTES", raising=False)
    monkeypatch.setattr(visitor_models, "HUB_BYTES", size_of(hub))
    visit(FIRST)
    visit(SECOND)
    assert here(cache) == {SECOND}


def test_the_least_recently_used_goes_first_and_nothing_of_it_stays(
    hub: Hub, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bound(2 * size_of(hub), monkeypatch)
    visit(FIRST)
    visit(SECOND)
    age(FIRST, 3000, cache)
    age(SECOND, 2000, cache)
    visit(FIRST)
    visit(THIRD)
    assert here(cache) == {FIRST, THIRD}
    assert not (cache / visitor_models.repository_folder(SECOND)).exists()
    visit(SECOND)
    assert here(cache) == {SECOND, THIRD}
    assert huggingface_hub.scan_cache_dir(cache).warnings == []


def test_what_the_owner_loaded_is_never_removed(
    hub: Hub, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = catalog.CATALOG[0]
    hub.offer(entry.hub_id)
    load(FIRST, device="cpu")
    load(entry.name, device="cpu", local_files=False)
    visit(FIRST)  # does not become a visitor's by that
    bound(size_of(hub), monkeypatch)
    visit(SECOND)
    visit(THIRD)
    assert here(cache) == {FIRST, entry.hub_id, THIRD}


def test_what_lay_in_the_cache_before_is_never_removed(
    hub: Hub, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    huggingface_hub.hf_hub_download(FIRST, "model.safetensors")
    visit(FIRST)
    bound(size_of(hub), monkeypatch)
    visit(SECOND)
    visit(THIRD)
    assert here(cache) == {FIRST, THIRD}


def test_a_model_that_the_owner_loads_later_is_the_owners(
    hub: Hub, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    visit(FIRST)
    load(FIRST, device="cpu")
    bound(size_of(hub), monkeypatch)
    visit(SECOND)
    visit(THIRD)
    assert here(cache) == {FIRST, THIRD}


def test_a_visitors_revision_of_the_owners_model_goes_alone(
    hub: Hub, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(FIRST, device="cpu")
    hub.offer(FIRST, content=weights(LARGER), proposed=True)
    hub.fault.update(commit=LATER, revisions=["proposal"])
    visit(f"{FIRST}@proposal")
    folder = cache / visitor_models.repository_folder(FIRST)
    assert [path.name for path in (folder / "snapshots").iterdir() if path.name == LATER]
    bound(size_of(hub, SECOND), monkeypatch)
    visit(SECOND)
    assert [path.name for path in (folder / "snapshots").iterdir()] == [COMMIT]
    assert here(cache) == {FIRST, SECOND}


def test_a_model_that_is_being_loaded_is_not_removed(
    hub: Hub, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bound(size_of(hub), monkeypatch)
    visit(FIRST)
    with visitor_model_cache().in_use(FIRST), pytest.raises(CheckpointError, match=FULL):
        visit(SECOND)
    assert here(cache) == {FIRST}
    visit(SECOND)
    assert here(cache) == {SECOND}


def test_a_model_is_in_use_until_its_parameters_are_read(
    hub: Hub, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = importlib.import_module("vit_viz.checkpoints.load")
    read = module.read_weights

    def meanwhile(path: Path, **options: Any) -> Any:
        if "first" in str(path):
            with pytest.raises(CheckpointError, match=FULL):
                visit(SECOND)
        return read(path, **options)

    monkeypatch.setattr(module, "read_weights", meanwhile)
    bound(size_of(hub), monkeypatch)
    visit(FIRST)
    visit(SECOND)
    assert here(cache) == {SECOND}


def test_bytes_that_still_arrive_count(hub: Hub, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bound(size_of(hub) * 3 // 2, monkeypatch)
    tried = []

    def meanwhile(done: int, total: int) -> None:
        if not tried:
            tried.append(SECOND)
            with pytest.raises(CheckpointError, match=FULL):
                visit(SECOND)

    visit(FIRST, progress=meanwhile)
    assert tried
    assert here(cache) == {FIRST}
    visit(SECOND)
    assert here(cache) == {SECOND}


def test_what_has_arrived_of_a_model_that_is_being_fetched_is_not_removed(
    hub: Hub, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bound(size_of(hub), monkeypatch)

    def meanwhile(done: int, total: int) -> None:
        if not any("second" in path for _, path, _ in hub.asked):
            with pytest.raises(CheckpointError, match=FULL):
                visit(SECOND)

    source = find(FIRST, local_files=False, progress=meanwhile)
    assert any("second" in path for _, path, _ in hub.asked)
    assert (source.weights.parent / "config.json").exists()


def test_nothing_is_removed_for_a_model_that_fits_in_no_case(
    hub: Hub, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    visit(FIRST)
    bound(size_of(hub) * 5 // 4, monkeypatch)
    hub.offer(SECOND, content=weights(LARGER))
    with pytest.raises(CheckpointError, match=rf"{FULL} for the \d+ MB of '{SECOND}'; choose a model"):
        visit(SECOND)
    assert here(cache) == {FIRST}


def test_a_bound_that_is_no_number_is_one_sentence(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIT_VIZ_HUB_BYTES", "20 GB")
    with pytest.raises(ParameterError, match="VIT_VIZ_HUB_BYTES is a number of bytes such as 20000000000"):
        visit(FIRST)


@pytest.mark.parametrize("is_own", [True, False])
def test_visitors_models_make_room_on_the_disk(
    hub: Hub, cache: Path, monkeypatch: pytest.MonkeyPatch, is_own: bool
) -> None:
    visit(FIRST)
    reserve = 0 if is_own else visitor_models.RESERVE_BYTES

    def usage(_folder: object) -> Space:
        free = reserve + len(weights()) - 1 + (0 if FIRST in here(cache) else size_of(hub))
        return Space(10**12, 10**12 - free, free)

    monkeypatch.setattr(shutil, "disk_usage", usage)
    load(SECOND, device="cpu", local_files=is_own)
    assert here(cache) == {SECOND}


def test_a_part_that_a_killed_process_left_is_removed_with_the_next_model(hub: Hub, cache: Path) -> None:
    folder = cache / visitor_models.repository_folder(FIRST) / ".strangers"
    folder.mkdir(parents=True)
    old, young, mark = folder / "a.1.incomplete", folder / "b.2.incomplete", folder / "c"
    for path in (old, young, mark):
        path.write_bytes(b"half")
    os.utime(old, (1, 1))
    visit(SECOND)
    assert list(folder.iterdir()) == [young]  # the mark of no file is gone, too


def test_a_damaged_file_loses_its_mark(hub: Hub, cache: Path) -> None:
    hub.fault["announced"] = "0" * 64
    with pytest.raises(CheckpointError, match="arrived damaged"):
        visit(FIRST)
    assert remains(cache) == []
    marks = list(cache.glob("models--*/.strangers/*"))
    assert [mark.name for mark in marks if mark.name == "0" * 64] == []
    assert len(marks) == 1


def test_the_files_of_a_model_are_of_one_commit_although_its_branch_moves(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    download = huggingface_hub.hf_hub_download

    def note(repo: str, filename: str, *, revision: str, **options: Any) -> str:
        asked.append(revision)
        return str(download(repo, filename, revision=revision, **options))

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", note)
    hub.files.pop((FIRST, "config.json"))
    hub.offer(REPO)
    visit(REPO)
    assert asked == [COMMIT, COMMIT]
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    visit(REPO)
    assert asked[2:4] == ["main", COMMIT]
