"""Files that are none, or that would grow when they are read: refused in one sentence, at once, before anything is unpacked."""

from __future__ import annotations

import contextlib
import os
import pickle
import random
import socket
import warnings
import zipfile
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.checkpoints.fake_hub import CONFIG, weights
from tests.spending import LargestTensor, python_memory
from vit_viz.checkpoints import load, torch_files
from vit_viz.checkpoints.weights import read_weights
from vit_viz.errors import CheckpointError, UnsafeFile, VitVizError
from vit_viz.model import VisionTransformer

pytestmark = pytest.mark.timeout(60)  # opening a named pipe would wait for ever
KINDS = {"pipe": "a named pipe", "socket": "a socket", "device": "a device"}
WRITTEN = {"zip": True, "older": False}


@pytest.fixture(params=KINDS)
def special(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """Makes a file of another kind at a path; returns what it is called."""
    sockets = []

    def make(path: Path) -> str:
        if request.param == "pipe":
            os.mkfifo(path)
        elif request.param == "socket":
            served = socket.socket(socket.AF_UNIX)
            sockets.append(served)
            here = os.getcwd()
            os.chdir(path.parent)  # the address of a socket is short
            served.bind(path.name)
            os.chdir(here)
        else:
            path.symlink_to(os.devnull)
        return KINDS[request.param]

    yield make
    for served in sockets:
        served.close()


@pytest.mark.parametrize("suffix", [".safetensors", ".pth"])
@pytest.mark.parametrize("read", [load, read_weights])
def test_a_file_of_another_kind_is_refused_unopened(
    tmp_path: Path, special: Any, suffix: str, read: Any
) -> None:
    path = tmp_path / f"model{suffix}"
    kind = special(path)
    with pytest.raises(
        CheckpointError, match=rf"^'model{suffix}' is {kind}, and not a file that can be read\.$"
    ):
        read(path)


@pytest.mark.parametrize("name", ["model.safetensors", "other.safetensors", "pytorch_model.bin", "model.pt"])
def test_a_folder_with_one_of_them_is_refused(tmp_path: Path, special: Any, name: str) -> None:
    kind = special(tmp_path / name)
    with pytest.raises(CheckpointError, match=f"{name!r} is {kind}"):
        load(tmp_path)


@pytest.mark.parametrize("name", ["config.json", "preprocessor_config.json"])
@pytest.mark.parametrize("as_folder", [True, False])
def test_a_configuration_of_another_kind_is_refused(
    tmp_path: Path, special: Any, name: str, as_folder: bool
) -> None:
    (tmp_path / "model.safetensors").write_bytes(weights())
    kind = special(tmp_path / name)
    with pytest.raises(CheckpointError, match=f"{name!r} is {kind}"):
        load(tmp_path if as_folder else tmp_path / "model.safetensors")


@pytest.mark.parametrize("suffix", [".safetensors", ".pth"])
def test_a_folder_and_a_link_to_nowhere_are_no_files(tmp_path: Path, suffix: str) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / f"model{suffix}").mkdir()
    with pytest.raises(CheckpointError, match=f"'model{suffix}' is a folder, and not a file"):
        load(tmp_path / "a")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / f"model{suffix}").symlink_to(tmp_path / "nowhere")
    with pytest.raises(
        CheckpointError, match=f"'model{suffix}' cannot be read: it does not exist, or is a broken link"
    ):
        load(tmp_path / "b")


def test_a_link_to_a_file_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "kept elsewhere").write_bytes(weights())
    (tmp_path / "model.safetensors").symlink_to(tmp_path / "kept elsewhere")
    assert "head.weight" in read_weights(tmp_path / "model.safetensors").model.state


# --- .pth


class Call:
    """Pickled as a call of a function."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> Any:
        return self.call


def save(content: Any, path: Path, written: str) -> Path:
    torch.save(content, path, _use_new_zipfile_serialization=WRITTEN[written])
    return path


def repacked(path: Path, change: Any) -> None:
    """Write a zip anew, each entry by `change(archive, info, content)`."""
    with zipfile.ZipFile(path) as old:
        entries = [(info, old.read(info)) for info in old.infolist()]
    with zipfile.ZipFile(path, "w") as new:
        for info, content in entries:
            change(new, info, content)


def state() -> dict[str, torch.Tensor]:
    return dict(VisionTransformer(CONFIG).state_dict())


@pytest.mark.parametrize("written", WRITTEN)
def test_a_state_dict_is_read_in_both_formats(tmp_path: Path, written: str) -> None:
    tensors = state() | {"half": torch.ones(3, 5).half(), "brain": torch.ones(7).bfloat16()}
    path = save({"model": tensors, "epoch": 3, "shape": torch.Size([3])}, tmp_path / "a.pth", written)
    torch.testing.assert_close(dict(read_weights(path).model.state), tensors, rtol=0, atol=0)


@pytest.mark.parametrize("written", WRITTEN)
@pytest.mark.parametrize(
    "call",
    [
        Call(bytearray, 500_000_000),
        Call(torch.Tensor, 500_000_000),
        Call(torch.FloatTensor, 500_000_000),
        Call(torch.UntypedStorage, 500_000_000),
        Call(torch._utils._rebuild_meta_tensor_no_storage, torch.float32, (3, 5), (5, 1), False),
    ],
    ids=["bytearray", "Tensor", "FloatTensor", "UntypedStorage", "meta"],
)
def test_what_weights_only_would_build_of_nothing_is_refused(
    tmp_path: Path, written: str, call: Call
) -> None:
    path = save({"head.weight": torch.zeros(3), "more": call}, tmp_path / "bomb.pth", written)
    assert path.stat().st_size < 10_000
    with (
        LargestTensor() as tensors,
        python_memory() as memory,
        pytest.raises(UnsafeFile, match="fill the memory"),
    ):
        read_weights(path)
    assert tensors.bytes == 0
    assert memory.bytes < 32 * 2**20  # of the older format, 10 MB are looked through


@pytest.mark.parametrize("written", WRITTEN)
def test_tensors_that_go_beyond_their_data_are_refused(tmp_path: Path, written: str) -> None:
    small = torch.zeros(7)
    for size, stride in (((10**9,), (0,)), ((3, 7), (0, 1)), ((7, 7), (1, 0))):
        tensor = small.as_strided(size, stride)
        path = save({f"t{i}": tensor for i in range(5)}, tmp_path / "views.pth", written)
        with LargestTensor() as tensors, pytest.raises(UnsafeFile, match="claims to be larger than its data"):
            read_weights(path)
        assert tensors.bytes <= 28


def test_data_that_would_have_to_grow_for_its_tensor_are_not_copied(tmp_path: Path) -> None:
    storage = torch.storage.TypedStorage(
        wrap_storage=torch.zeros(7).untyped_storage(), dtype=torch.float32, _internal=True
    )
    grown = Call(torch._utils._rebuild_tensor_v2, storage, 0, (10**8,), (1,), False, OrderedDict())
    path = save({"t": grown}, tmp_path / "grown.pth", "zip")
    with LargestTensor() as tensors, pytest.raises(CheckpointError, match="damaged or cut short"):
        read_weights(path)
    assert tensors.bytes == 0


def test_a_zip_is_mapped_into_memory(tmp_path: Path) -> None:
    maps = Path("/proc/self/maps")
    if not maps.exists():
        pytest.skip("this system does not list what is mapped")
    held = read_weights(save({"t": torch.zeros(64, 16)}, tmp_path / "mapped.pth", "zip"))
    assert "mapped.pth" in maps.read_text()
    assert held.model.state["t"].shape == (64, 16)


def test_text_that_python_warns_about_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "odd.pth").write_bytes(b"S'\\o'\n.")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with pytest.raises(CheckpointError, match="damaged or cut short"):
            read_weights(tmp_path / "odd.pth")
    assert told == []


@pytest.mark.parametrize("written", WRITTEN)
@pytest.mark.parametrize("spare", [1, 0, -1])
def test_more_tensors_than_may_be_loaded_are_refused(tmp_path: Path, written: str, spare: int) -> None:
    path = save({f"t{i}": torch.zeros(5, 7) for i in range(3)}, tmp_path / "many.pth", written)
    if spare < 0:
        with pytest.raises(UnsafeFile, match="asks for more than"):
            read_weights(path, max_numbers=3 * 35 + spare)
    else:
        assert len(read_weights(path, max_numbers=3 * 35 + spare).model.state) == 3


@pytest.mark.parametrize("written", WRITTEN)
@pytest.mark.parametrize("spare", [1, 0, -1])
def test_a_file_with_more_bytes_than_its_numbers_can_take_is_refused_before_it_is_read(
    tmp_path: Path, written: str, spare: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save({"t": torch.zeros(64, 16)}, tmp_path / "large.pth", written)
    stored = 4 * 64 * 16 + (8 if written == "older" else _small_entries(path))
    monkeypatch.setattr(torch_files, "_BYTES_PER_NUMBER", 1)
    if spare < 0:
        with pytest.raises(
            UnsafeFile, match=r"'large.pth' holds 0\.0 GB of tensors, more than the 0 million"
        ):
            torch_files.check_torch_file(path, max_numbers=stored + spare)
    else:
        assert torch_files.check_torch_file(path, max_numbers=stored + spare) == written


def _small_entries(path: Path) -> int:
    """Bytes of a zip that are neither its pickle nor tensors."""
    with zipfile.ZipFile(path) as archive:
        names = [info for info in archive.infolist() if "/data/" not in info.filename]
        return sum(info.file_size for info in names if not info.filename.endswith("data.pkl"))


@pytest.mark.parametrize("written", WRITTEN)
@pytest.mark.parametrize("spare", [1, 0, -1])
def test_pickles_are_bounded(
    tmp_path: Path, written: str, spare: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save({"t": torch.zeros(3, 5), "note": "x" * 4000}, tmp_path / "long.pth", written)
    if written == "zip":
        with zipfile.ZipFile(path) as archive:
            length = archive.getinfo("long/data.pkl").file_size
    else:
        length = path.stat().st_size - 8 - 4 * 15
    monkeypatch.setattr(torch_files, "MAX_PICKLE_BYTES", length + spare)
    if spare < 0:
        with pytest.raises(UnsafeFile, match="has a table of contents of more than"):
            read_weights(path)
    else:
        assert torch_files.check_torch_file(path, max_numbers=10**6) == written


def test_ten_megabytes_of_pickle_are_read() -> None:
    assert torch_files.MAX_PICKLE_BYTES == 10**7
    assert torch_files._BYTES_PER_NUMBER == 8


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
@pytest.mark.parametrize("entry", ["data.pkl", "data/0"])
def test_a_compressed_entry_is_refused_before_it_is_unpacked(tmp_path: Path, method: int, entry: str) -> None:
    path = save({"t": torch.zeros(500_000)}, tmp_path / "bomb.pth", "zip")

    def change(new: zipfile.ZipFile, info: zipfile.ZipInfo, content: bytes) -> None:
        packed = info.filename.endswith(entry)
        new.writestr(info.filename, content, compress_type=method if packed else zipfile.ZIP_STORED)

    repacked(path, change)
    with python_memory() as memory, pytest.raises(UnsafeFile, match="has compressed entries"):
        read_weights(path)
    assert memory.bytes < 2**20


def test_entries_that_share_their_bytes_are_refused(tmp_path: Path) -> None:
    path = save({f"t{i}": torch.full((1000,), float(i)) for i in range(2)}, tmp_path / "shared.pth", "zip")
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        infos = [archive.getinfo(f"shared/data/{i}") for i in range(2)]
        start = archive.start_dir
    place = content.index(b"shared/data/0", start) - 46
    for field in (20, 24):  # compressed and real size in the central directory
        content[place + field : place + field + 4] = len(content).to_bytes(4, "little")
    path.write_bytes(content)
    assert infos[0].file_size == 4000
    with pytest.raises(UnsafeFile, match="claims to be larger than its data"):
        read_weights(path)


@pytest.mark.parametrize("times", [0, 2])
def test_a_zip_with_no_pickle_or_two_is_refused(tmp_path: Path, times: int) -> None:
    path = save({"t": torch.zeros(3)}, tmp_path / "odd.pth", "zip")

    def change(new: zipfile.ZipFile, info: zipfile.ZipInfo, content: bytes) -> None:
        for i in range(times if info.filename.endswith("data.pkl") else 1):
            new.writestr(info.filename if i == 0 else "other/data.pkl", content)

    repacked(path, change)
    with pytest.raises(CheckpointError, match=r"'odd\.pth' cannot be read as a PyTorch checkpoint"):
        read_weights(path)


@pytest.mark.parametrize("protocol", [0, 1, 3, 4, 5])
def test_pickles_of_other_protocols_cannot_hide_a_name(tmp_path: Path, protocol: int) -> None:
    path = tmp_path / "hidden.pth"
    path.write_bytes(pickle.dumps(Call(os.getcwd), protocol=protocol))
    with pytest.raises(UnsafeFile, match="could run code"):
        read_weights(path)


@pytest.mark.parametrize("written", WRITTEN)
def test_a_damaged_byte_is_one_sentence_and_costs_no_memory(tmp_path: Path, written: str) -> None:
    """Bytes of the pickles and of the tables are changed one after another, at random places, with a fixed seed."""
    whole = save({"t": torch.zeros(3, 5), "u": torch.zeros(7)}, tmp_path / "whole.pth", written).read_bytes()
    drawn = random.Random(5)
    path = tmp_path / "broken.pth"
    for _ in range(150):
        content = bytearray(whole)
        for _ in range(drawn.choice((1, 1, 2, 5))):
            content[drawn.randrange(len(content))] = drawn.randrange(256)
        path.write_bytes(content)
        with python_memory() as memory, contextlib.suppress(VitVizError):
            assert set(read_weights(path, max_numbers=10**6).model.state) != set()
        assert memory.bytes < 32 * 2**20, list(content)


class Scripted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 4, (2, 1)), nn.LayerNorm(5))
        self.again = self.body[1]
        self.scale = nn.Parameter(torch.rand(2, 3).half())
        self.register_buffer("steps", torch.tensor([3, 4]))
        self.sizes, self.rates, self.words = [1, 2], [0.5, 1.5], {"a": 1}
        self.kept = [torch.rand(2)]

    def forward(self, x: Tensor) -> Tensor:
        return (
            self.body(x).sum()
            + self.again(x).sum()
            + self.scale.float().sum()
            + self.sizes[0]
            + self.kept[0].sum()
        )  # type: ignore[no-any-return]


def scripted(path: Path, *, traced: bool = False) -> nn.Module:
    module = Scripted()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own, about a thing of the past that people still load
        made = torch.jit.trace(module, torch.ones(1, 3, 6, 5)) if traced else torch.jit.script(module)  # type: ignore[no-untyped-call]
        made.save(path)
    return module


@pytest.mark.parametrize("traced", [False, True])
def test_the_tensors_of_a_torchscript_archive_are_read_and_its_code_is_not(
    tmp_path: Path, *, traced: bool
) -> None:
    path = tmp_path / "scripted.pt"
    module = scripted(path, traced=traced)

    def change(new: zipfile.ZipFile, info: zipfile.ZipInfo, content: bytes) -> None:
        is_code = "/code/" in info.filename  # a bomb, which nobody unpacks
        new.writestr(
            info.filename,
            bytes(50_000_000) if is_code and info.filename.endswith("__torch__.py") else content,
            compress_type=zipfile.ZIP_DEFLATED if is_code else zipfile.ZIP_STORED,
        )

    repacked(path, change)
    with python_memory() as memory:
        found = read_weights(path).model.state
    assert memory.bytes < 2**22
    expected = {name: tensor for name, tensor in module.state_dict().items() if not name.startswith("again.")}
    own = {name.replace("again.", "body.1."): tensor for name, tensor in found.items()}
    assert own.keys() == expected.keys()
    assert all(torch.equal(own[name], tensor) for name, tensor in expected.items())


@pytest.mark.parametrize("entry", ["data.pkl", "data/0"])
def test_what_is_read_of_a_torchscript_archive_is_not_compressed(tmp_path: Path, entry: str) -> None:
    path = tmp_path / "scripted.pt"
    scripted(path)

    def change(new: zipfile.ZipFile, info: zipfile.ZipInfo, content: bytes) -> None:
        packed = info.filename.endswith(entry)
        new.writestr(
            info.filename, content, compress_type=zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
        )

    repacked(path, change)
    with pytest.raises(UnsafeFile, match="has compressed entries"):
        read_weights(path)
