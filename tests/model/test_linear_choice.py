"""The linear kernel is chosen once for a machine: another process computes the same last digits."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from tests.model.inside import TINY
from vit_viz.errors import ParameterError
from vit_viz.model import VisionTransformer, ViTConfig, linear
from vit_viz.model.linear import Linear, forced_kernel, use_fastest_linear


class Machine:
    """Where kernels are timed, each time with another end, and choices are kept.

    Attributes:
        folder: the caches of its user.
        timed: sizes of the layers that were timed.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.timed = folder, list[tuple[int, int]]()
        self.meanwhile: Callable[[], object] = lambda: None

    def gain(self, size: tuple[int, int]) -> float:
        self.meanwhile()
        self.timed.append(size)
        return 9.0 if len(self.timed) % 2 else 0.1

    def process(self, **shape: int) -> str:
        """What a new process chooses for its model."""
        linear._choice.cache_clear()
        model = VisionTransformer(ViTConfig.from_dict(TINY | shape))
        chosen = use_fastest_linear(model)
        assert {layer.use_onednn for layer in model.modules() if isinstance(layer, Linear)} == {chosen}
        return "onednn" if chosen else "torch"

    @property
    def files(self) -> list[Path]:
        return [path for path in self.folder.rglob("*") if path.is_file()]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    made = Machine(tmp_path / "caches")
    monkeypatch.setattr(linear, "_onednn_gain", made.gain)
    monkeypatch.setattr(linear, "_has_onednn", lambda: True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(made.folder))
    monkeypatch.delenv("VIT_VIZ_LINEAR", raising=False)
    with forced_kernel("auto"):
        yield made
    linear._choice.cache_clear()


def test_every_process_takes_the_choice_of_the_first(machine: Machine) -> None:
    assert [machine.process() for _ in range(4)] == ["onednn"] * 4
    assert len(machine.timed) == 1
    assert [machine.process(embed_dim=60) for _ in range(3)] == ["torch"] * 3
    assert len(set(machine.timed)) == len(machine.timed) == 2
    assert {file.read_text() for file in machine.files} == {"onednn\n", "torch\n"}


def test_a_choice_is_that_of_its_processor_its_threads_and_its_torch(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.process()
    for name, value in (
        ("vit_viz.model.linear._processor", lambda: "another"),
        ("torch.get_num_threads", lambda: 97),
        ("torch.backends.cpu.get_cpu_capability", lambda: "another"),
        ("torch.__version__", "9.8.7"),
    ):
        count = len(machine.timed)
        monkeypatch.setattr(name, value)
        machine.process()
        assert len(machine.timed) == count + 1, name
        machine.process()
        assert len(machine.timed) == count + 1, name


def test_of_two_processes_that_choose_at_once_the_first_to_write_decides(machine: Machine) -> None:
    others = []

    def other_process() -> None:
        machine.meanwhile = lambda: None
        others.append(machine.process())

    machine.meanwhile = other_process
    assert machine.process() == others[0] == "onednn"
    assert len(machine.timed) == 2  # the second of which ended otherwise


def test_whoever_writes_at_the_same_moment_is_given_the_same_choice(tmp_path: Path) -> None:
    for number in range(20):
        file, together = tmp_path / "linear" / str(number), threading.Barrier(6)

        def write(place: int, file: Path = file, together: threading.Barrier = together) -> str:
            together.wait()
            return linear._keep(file, ("torch", "onednn")[place % 2])

        with ThreadPoolExecutor(6) as pool:
            found = set(pool.map(write, range(6)))
        assert {file.read_text().strip()} == found
        assert [path.name for path in file.parent.iterdir() if str(number) == path.name.split(".")[0]] == [
            file.name
        ]


@pytest.mark.parametrize(
    "content", [b"", b"tor", b"\xff\xfe\x00", b"fastest\n" * 9999], ids=lambda one: one[:4]
)
def test_a_damaged_choice_is_made_anew(machine: Machine, content: bytes) -> None:
    machine.process()
    machine.files[0].write_bytes(content)
    assert [machine.process() for _ in range(3)] == ["torch"] * 3
    assert len(machine.timed) == 2


def in_place_of_the_folder(machine: Machine) -> None:
    machine.folder.write_text("a file")


def in_place_of_the_choice(machine: Machine) -> None:
    machine.process()
    (file,) = machine.files
    file.unlink()
    file.mkdir()
    machine.timed.clear()


@pytest.mark.parametrize("obstacle", [in_place_of_the_folder, in_place_of_the_choice])
def test_where_nothing_can_be_kept_one_process_still_chooses_once(
    machine: Machine, obstacle: Callable[[Machine], None]
) -> None:
    obstacle(machine)
    assert machine.process() == "onednn"
    model = VisionTransformer(ViTConfig.from_dict(TINY))
    assert use_fastest_linear(model)
    assert len(machine.timed) == 1


def test_a_file_system_without_links_leaves_no_files_behind(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError("no links here")

    monkeypatch.setattr("os.link", refuse)
    assert machine.process() == "onednn"
    assert machine.files == []


@pytest.mark.parametrize(
    ("told", "kernel"),
    [("torch", "torch"), ("onednn", "onednn"), (" OneDNN\n", "onednn"), ("Torch", "torch")],
)
def test_a_setting_says_which_without_any_timing(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, told: str, kernel: str
) -> None:
    monkeypatch.setenv("VIT_VIZ_LINEAR", told)
    assert machine.process() == kernel
    assert machine.timed == machine.files == []


def test_a_setting_that_is_no_kernel_or_one_that_is_not_here_is_refused(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VIT_VIZ_LINEAR", "fast")
    with pytest.raises(ParameterError, match=r"^VIT_VIZ_LINEAR is torch or onednn, not 'fast'\.$"):
        machine.process()
    monkeypatch.setenv("VIT_VIZ_LINEAR", "  ")
    assert machine.process() == "onednn"
    monkeypatch.setattr(linear, "_has_onednn", lambda: False)
    monkeypatch.setenv("VIT_VIZ_LINEAR", "onednn")
    with pytest.raises(ParameterError, match="set VIT_VIZ_LINEAR to torch"):
        machine.process()
    monkeypatch.delenv("VIT_VIZ_LINEAR")
    assert machine.process() == "torch"


def test_a_model_in_another_precision_is_left_to_torch(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VIT_VIZ_LINEAR", "onednn")
    model = VisionTransformer(ViTConfig.from_dict(TINY)).to(torch.float64)
    assert not use_fastest_linear(model)
    assert machine.timed == []
