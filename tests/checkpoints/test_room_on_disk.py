"""What does not fit: a download the disk (at the limit and below it), a tensor its own data."""

from __future__ import annotations

import shutil
from collections import namedtuple
from pathlib import Path

import pytest
import torch

from tests.checkpoints.fake_hub import REPO, Hub, weights
from vit_viz.checkpoints import load
from vit_viz.checkpoints.weights import read_weights
from vit_viz.errors import CheckpointError, UnsafeFile

Space = namedtuple("Space", "total used free")


def leave(free: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: Space(10**12, 10**12 - free, free))


@pytest.mark.parametrize("is_own", [True, False])
def test_the_size_of_the_file_counts(hub: Hub, monkeypatch: pytest.MonkeyPatch, is_own: bool) -> None:
    hub.offer()
    needed = len(weights()) + (0 if is_own else 10**9)
    leave(needed - 1, monkeypatch)
    with pytest.raises(CheckpointError, match="There is no room on the disk"):
        load(REPO, device="cpu", local_files=is_own)
    assert [path for path in hub.fetched() if path.endswith(".safetensors")] == []
    leave(needed, monkeypatch)
    assert load(REPO, device="cpu", local_files=is_own).name == REPO


def test_a_sparse_tensor_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "sparse.pth"
    rows, cols = 5, 7
    torch.save({"head.weight": torch.eye(cols)[:rows].to_sparse(), "head.bias": torch.zeros(rows)}, file)
    with pytest.raises(UnsafeFile, match=r"'head\.weight' that claims to be larger than its data"):
        read_weights(file)


def test_a_view_of_its_own_data_is_read(tmp_path: Path) -> None:
    file = tmp_path / "view.pth"
    whole = torch.arange(35.0).reshape(5, 7)
    torch.save({"w": whole.T}, file)
    assert torch.equal(read_weights(file).model.state["w"], whole.T)
