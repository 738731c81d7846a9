"""A file is made again as it was: its model and photo found, its kernel used, nothing fetched unasked, unpacking bounded."""

from __future__ import annotations

import io
import json
import os
import shutil
import struct
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from huggingface_hub import errors

import vit_viz as vv
from tests.ui.desk import odd_picture, odd_session
from vit_viz.analyses.registry import QUESTIONS
from vit_viz.bundled import bundled_file
from vit_viz.checkpoints import load
from vit_viz.cli import main
from vit_viz.errors import ExportError
from vit_viz.figures import export
from vit_viz.figures.differences import difference
from vit_viz.figures.files import file_of
from vit_viz.figures.replay import record_of, replay
from vit_viz.figures.request import Output, figure_for
from vit_viz.model.linear import Linear, forced_kernel
from vit_viz.session.questions import request_for
from vit_viz.session.request import Subject
from vit_viz.session.run import session_of
from vit_viz.session.session import Session

SMALL = ("--dpi", "72", "--width-cm", "5")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model and a photo of one's own, which is where commands run."""
    (tmp_path / "models").mkdir()
    (tmp_path / "photos").mkdir()
    shutil.copy(bundled_file("mini.safetensors"), tmp_path / "models" / "own.safetensors")
    odd_picture().save(tmp_path / "photos" / "mine.png")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def made(file: str, *argv: str) -> None:
    assert (
        main(["look", "photos/mine.png", "--model", "models/own.safetensors", "-o", file, *SMALL, *argv]) == 0
    )


@pytest.mark.parametrize("form", ["png", "svg", "pdf", "csv", "npz", "gif", "webp"])
def test_a_file_of_ones_own_model_and_photo_is_made_again_by_itself(
    place: Path, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    made(f"map.{form}")
    assert record_of(Path(f"map.{form}"))["paths"] == {
        "model": "models/own.safetensors",
        "image": "photos/mine.png",
    }
    capsys.readouterr()
    assert main(["replay", f"map.{form}"]) == 0
    assert capsys.readouterr() == (f"map.{form}: made again, equal bytes\n", "")


def test_model_and_photo_are_found_beside_the_file(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made("map.svg")
    (place / "moved").mkdir()
    for file in ("models/own.safetensors", "photos/mine.png", "map.svg"):
        shutil.move(place / file, place / "moved")
    assert main(["replay", "moved/map.svg"]) == 0
    (place / "elsewhere").mkdir()
    monkeypatch.chdir(place / "elsewhere")
    assert main(["replay", "../moved/map.svg"]) == 0


def test_what_is_not_here_is_named_with_its_flags(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made("map.csv")
    (place / "far").mkdir()
    for file in ("models/own.safetensors", "photos/mine.png"):
        shutil.move(place / file, place / "far")
    capsys.readouterr()
    assert main(["replay", "map.csv"]) == 2
    said = capsys.readouterr().err
    assert "the photo 'photos/mine.png' (--image)" in said
    assert "the model 'own' 'models/own.safetensors' (--model)" in said
    assert main(["replay", "map.csv", "--image", "far/mine.png"]) == 2
    said = capsys.readouterr().err
    assert "--image" not in said
    assert "--model" in said
    assert main(["replay", "map.csv", "--model", "far/own.safetensors"]) == 2
    said = capsys.readouterr().err
    assert "--image" in said
    assert "--model" not in said
    assert main(["replay", "map.csv", "--image", "far/mine.png", "--model", "far/own.safetensors"]) == 0


def test_another_photo_in_the_place_of_the_first_is_not_taken(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made("map.csv")
    odd_picture(8).save(place / "photos" / "mine.png")
    assert main(["replay", "map.csv"]) == 2
    assert "(--image)" in capsys.readouterr().err
    odd_picture().save(place / "mine.png")  # the right one, beside the file
    assert main(["replay", "map.csv"]) == 0


def test_python_records_paths_and_the_app_none(place: Path) -> None:
    session_of.cache_clear()
    saved = vv.figure("models/own.safetensors", Path("photos/mine.png"), "rollout", format="csv")
    assert record_of(saved.data)["paths"] == {"model": "models/own.safetensors", "image": "photos/mine.png"}
    loaded = vv.load("models/own.safetensors")
    saved = vv.figure(loaded, odd_picture(), "rollout", format="csv")
    assert record_of(saved.data)["paths"] == {"model": "models/own.safetensors"}
    session = Session(model="models/own.safetensors", device="cpu")  # as the app has one
    image = session.add_upload(Path("photos/mine.png"), owner="ada", file_name="photos/mine.png")
    request = request_for(session, Subject(session.default_model, image, owner="ada"), "rollout")
    record = record_of(file_of(session, figure_for(request), Output("csv")).data)
    assert "paths" not in record
    assert "models/" not in json.dumps(record)
    session_of.cache_clear()


def test_a_picture_without_a_path_has_none_though_the_same_pixels_came_by_one(place: Path) -> None:
    session_of.cache_clear()
    for image, paths in ((Path("photos/mine.png"), {"image": "photos/mine.png"}), (odd_picture(), None)):
        saved = vv.figure("mini", image, "rollout", format="csv")
        assert record_of(saved.data).get("paths") == paths
    session_of.cache_clear()


@pytest.mark.parametrize("name", ["segments", "token_norms", "classes", "mosaic", "links", "positions"])
def test_every_kind_of_answer_is_made_again(
    place: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    photo = ["photos/mine.png"] if QUESTIONS[name].takes_image else []
    assert main([name, *photo, "-o", "answer.npz"]) == 0
    assert main(["replay", "answer.npz"]) == 0


# --- kernels


@pytest.mark.parametrize(("then", "now"), [("oneDNN", "torch"), ("torch", "oneDNN")])
@pytest.mark.parametrize("name", ["rollout", pytest.param("ablation", marks=pytest.mark.slow)])
def test_the_kernel_of_then_computes_again(
    place: Path, monkeypatch: pytest.MonkeyPatch, then: str, now: str, name: str
) -> None:
    """Whichever kernel loading would choose on this machine today."""

    def choosing(kernel: str) -> Any:
        def choose(model: Any, **_: Any) -> bool:
            for layer in model.modules():
                if isinstance(layer, Linear):
                    layer.use_onednn = kernel == "oneDNN"
            return kernel == "oneDNN"

        return choose

    with forced_kernel("auto"):
        monkeypatch.setattr(sys.modules["vit_viz.checkpoints.load"], "use_fastest_linear", choosing(then))
        assert main([name, "photos/mine.png", "-o", "answer.npz"]) == 0
        assert record_of(Path("answer.npz"))["parameters"]["linear"] == then
        monkeypatch.setattr(sys.modules["vit_viz.checkpoints.load"], "use_fastest_linear", choosing(now))
        assert main([name, "photos/mine.png", "-o", "other.npz"]) == 0
        assert Path("answer.npz").read_bytes() != Path("other.npz").read_bytes()
        again = replay(Path("answer.npz"), Session(device="cpu"))
        assert again.data == Path("answer.npz").read_bytes()


def test_a_model_with_another_kernel_shares_weights_and_leaves_the_first_as_it_is() -> None:
    with forced_kernel("auto"):
        loaded = load("mini", device="cpu")
        first = dict(loaded.provenance.parameters)["linear"]
        other = loaded.with_linear("torch" if first == "oneDNN" else "oneDNN")
        assert loaded.with_linear(first) is loaded
        assert dict(other.provenance.parameters)["linear"] != first
        assert {id(one) for one in other.model.parameters()} == {id(one) for one in loaded.model.parameters()}
        kernels = [
            {layer.use_onednn for layer in one.model.modules() if isinstance(layer, Linear)}
            for one in (loaded, other)
        ]
        assert kernels == [{first == "oneDNN"}, {first != "oneDNN"}]


# --- differences and exit codes


def test_the_exit_code_and_the_sentence_tell_how_a_file_differs(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made("map.csv")
    file = place / "map.csv"
    before = file.read_text()
    capsys.readouterr()
    file.write_text(before.replace('"vit_viz": "0.1.0"', '"vit_viz": "0.0.9"'))
    assert main(["replay", "map.csv"]) == 3
    said = capsys.readouterr()
    assert said.out == "map.csv: made again, equal numbers, other bytes\n"
    assert said.err == "vit-viz: it was made with vit_viz 0.0.9, here 0.1.0\n"
    *rows, last = before.rstrip("\n").split("\n")
    cells = last.split(",")
    cells[-1] = repr(float(cells[-1]) + 0.25)
    file.write_text("\n".join([*rows, ",".join(cells)]) + "\n")
    assert file.stat().st_size
    assert main(["replay", "map.csv"]) == 4
    assert "other numbers: the largest difference is 0.25" in capsys.readouterr().out
    file.write_text("\n".join(rows) + "\n")
    assert main(["replay", "map.csv"]) == 4
    assert "not even the same ones are there" in capsys.readouterr().out


def test_equal_sizes_are_not_equal_bytes(place: Path) -> None:
    made("map.png")
    file = place / "map.png"
    content = bytearray(file.read_bytes())
    at = content.index(b"Software\0vit_viz") + len(b"Software\0vit_vi")
    content[at : at + 1] = b"x"
    chunk = content[at - len(b"tEXtSoftware\0vit_vi") : at + 1]
    content[at + 1 : at + 5] = struct.pack(">I", __import__("zlib").crc32(bytes(chunk)))
    file.write_bytes(bytes(content))
    assert main(["replay", "map.png"]) == 3


@pytest.mark.parametrize("form", ["png", "svg", "pdf", "gif", "webp", "npz", "csv"])
def test_difference_is_none_for_another_record_and_some_for_another_answer(place: Path, form: str) -> None:
    made(f"a.{form}")
    made(f"b.{form}", "--layer", "1", "--head", "2")
    first, second = (Path(f"{name}.{form}").read_bytes() for name in "ab")
    assert difference(first, first) == difference(second, second)
    assert difference(first, first).largest == 0
    largest = difference(first, second).largest
    assert largest is None or largest > 0
    with_record = first.replace(b"0.1.0", b"0.1.9") if form in ("svg", "pdf", "csv", "webp") else first + b""
    if with_record != first:
        assert difference(with_record, first).largest == 0
        assert not difference(with_record, first).has_equal_bytes


def npz(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, vit_viz=np.array("{}"), **arrays)
    return file.getvalue()


def test_arrays_differ_by_their_largest_difference() -> None:
    first, values = npz(a=np.zeros((3, 5)), b=np.array([1.0, np.nan])), np.zeros((3, 5))
    values[2, 4] = -0.125
    assert difference(npz(a=values, b=np.array([1.0, np.nan])), first).largest == 0.125
    assert difference(npz(a=np.zeros((3, 5)), b=np.array([1.0, np.nan]), c=np.ones(2)), first).largest is None
    assert difference(npz(a=np.zeros((5, 3)), b=np.array([1.0, np.nan])), first).largest is None
    assert difference(npz(a=np.zeros((3, 5)), b=np.array([1.0, 2.0])), first).largest == np.inf
    assert difference(npz(b=np.array([1.0, np.nan]), a=np.zeros((3, 5))), first).largest == 0


# --- files of others


def bomb(*, name: str, size: int) -> bytes:
    """A small file whose entry of zeros unpacks to so many bytes, beside a record that is none."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        header = io.BytesIO()
        np.lib.format.write_array_header_1_0(
            header, {"descr": "<f4", "fortran_order": False, "shape": (size // 4,)}
        )
        with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
            entry.write(header.getvalue())
            for _ in range(size >> 20):
                entry.write(bytes(1 << 20))
        if name != export.KEY:
            record = io.BytesIO()
            np.save(record, np.array(json.dumps({"provenance": {}})))
            archive.writestr(f"{export.KEY}.npy", record.getvalue())
    return file.getvalue()


def test_the_record_of_an_npz_is_read_without_its_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    opened = zipfile.ZipFile.open

    def noted(self: zipfile.ZipFile, name: Any, *rest: Any, **options: Any) -> Any:
        read.append(getattr(name, "filename", name))
        return opened(self, name, *rest, **options)

    data = bomb(name="values", size=64 << 20)
    monkeypatch.setattr(zipfile.ZipFile, "open", noted)
    with pytest.raises(ExportError, match="not the request"):
        replay(data, odd_session())
    assert read == ["vit_viz.npy"]


def test_what_unpacks_to_more_than_any_answer_is_refused() -> None:
    with pytest.raises(ExportError, match="unpacks to more than 64 MB"):
        record_of(bomb(name=export.KEY, size=65 << 20))
    data = bomb(name="values", size=4 << 20)
    with pytest.raises(ExportError, match="unpacks to more than 3 MB"):
        export.npz_contents(data, max_bytes=3 << 20)
    arrays, _ = export.npz_contents(data, max_bytes=5 << 20)
    assert arrays["values"].shape == (1 << 20,)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the Hub was asked for, which cannot be reached and of which nothing lies here."""
    addresses: list[str] = []

    def refused(url: str, **_: Any) -> None:
        addresses.append(url)
        raise OSError("no network here")

    def absent(*_: Any, **__: Any) -> None:
        raise errors.LocalEntryNotFoundError("not here")

    monkeypatch.setattr("huggingface_hub.get_hf_file_metadata", refused)
    monkeypatch.setattr("huggingface_hub.hf_hub_download", absent)
    return addresses


@pytest.mark.parametrize("named", ["dino-s16", "somebody/model"])
def test_a_model_that_a_file_names_is_fetched_only_when_that_is_allowed(
    place: Path, named: str, asked: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    made("map.csv")
    text = (place / "map.csv").read_text().replace('"model": "own"', f'"model": "{named}"')
    (place / "map.csv").write_text(text.replace("models/own.safetensors", "models/gone.safetensors"))
    capsys.readouterr()
    assert main(["replay", "map.csv"]) == 2
    assert asked == []
    said = capsys.readouterr().err
    assert (
        f"vit-viz: This file was made with '{named}', which is not on this machine: --fetch fetches it"
        in said
    )
    assert main(["replay", "map.csv", "--fetch"]) == 2
    assert len(asked) == 1
    said = capsys.readouterr().err
    assert "is not on this machine and the Hub cannot be reached" in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(("answer", "times"), [("y\n", 1), ("\n", 0), ("no\n", 0)])
def test_who_sits_at_a_terminal_is_asked(
    place: Path,
    answer: str,
    times: int,
    asked: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    made("map.csv")
    text = (place / "map.csv").read_text().replace('"model": "own"', '"model": "somebody/model"')
    (place / "map.csv").write_text(text)
    os.remove(place / "models" / "own.safetensors")
    terminal = io.StringIO(answer)
    monkeypatch.setattr(terminal, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdin", terminal)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert main(["replay", "map.csv"]) == 2
    assert len(asked) == times
    assert "Fetch it from the Hub? [y/N]" in capsys.readouterr().err


def test_what_is_made_again_keeps_its_format(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made("map.png")
    capsys.readouterr()
    assert main(["replay", "map.png", "-o", "map.svg"]) == 2
    assert "the name must end in '.png', not in '.svg'" in capsys.readouterr().err
    assert main(["replay", "map.png", "-o", "more/map.png"]) == 2
    assert main(["replay", "map.png", "-o", "more/map.png", "--parents"]) == 0
    assert (place / "more" / "map.png").read_bytes() == (place / "map.png").read_bytes()


def test_help_tells_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "0 equal bytes; 3 equal numbers, other bytes" in said
    assert "4 other numbers; 2 it cannot be made again" in said
