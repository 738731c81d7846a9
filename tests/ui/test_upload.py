"""The door for pictures: confined, decoded safely, deleted afterwards."""

from __future__ import annotations

import shutil
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import gradio as gr
import numpy as np
import pytest
from gradio.data_classes import ImageData
from PIL import Image

from tests.waiting import until
from vit_viz.errors import ImageError
from vit_viz.ui.tray import Tray
from vit_viz.ui.upload import Inbox, SafeImage


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Gradio's upload folder, for this test only."""
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path / "uploads"))
    (tmp_path / "uploads" / "abc").mkdir(parents=True)
    return tmp_path / "uploads"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The inbox's clock, which the test turns; its pauses are short."""
    turned = SimpleNamespace(now=1000.0, sleep=lambda _seconds: time.sleep(0.002))
    turned.monotonic = lambda: turned.now
    monkeypatch.setattr("vit_viz.ui.upload.time", turned)
    return turned


@pytest.fixture
def component() -> SafeImage:
    return SafeImage(render=False)


def uploaded(folder: Path, name: str = "photo.png") -> Path:
    path = folder / "abc" / name
    path.parent.mkdir(exist_ok=True)
    Image.new("RGB", (30, 20), (10, 200, 30)).save(path)
    return path


def test_an_uploaded_file_passes_and_is_decoded(folder: Path, component: SafeImage) -> None:
    path = component.preprocess(ImageData(path=str(uploaded(folder))))
    picture = Inbox(delete_after=0).take(path)
    assert (picture.mode, picture.size) == ("RGB", (30, 20))
    assert np.asarray(picture)[0, 0].tolist() == [10, 200, 30]


def test_a_file_is_deleted_once_it_was_read(folder: Path, component: SafeImage) -> None:
    file = uploaded(folder)
    Inbox(delete_after=0).take(component.preprocess(ImageData(path=str(file))))
    assert not file.exists()


def test_a_file_stays_a_moment_for_the_preview_in_the_browser(folder: Path, clock: SimpleNamespace) -> None:
    file = uploaded(folder)
    Inbox(delete_after=3).take(str(file))
    assert file.exists()
    clock.now += 3.1
    until(lambda: not file.exists())


def test_a_refused_file_is_deleted_too(folder: Path) -> None:
    file = folder / "abc" / "no.png"
    file.write_bytes(b"this is no picture")
    with pytest.raises(ImageError):
        Inbox(delete_after=0).take(str(file))
    assert not file.exists()


def test_no_payload_is_no_picture(component: SafeImage) -> None:
    assert component.preprocess(None) is None


@pytest.mark.parametrize("place", ["beside", "dots", "link", "passwd"])
def test_a_path_outside_the_upload_folder_is_refused_unopened(
    folder: Path, component: SafeImage, tmp_path: Path, place: str
) -> None:
    secret = tmp_path / "secret.png"
    Image.new("RGB", (30, 20)).save(secret)
    link = folder / "abc" / "link.png"
    link.symlink_to(secret)
    path = {
        "beside": str(secret),
        "dots": str(folder / "abc" / ".." / ".." / "secret.png"),
        "link": str(link),
        "passwd": "/etc/passwd",
    }[place]
    with pytest.raises(gr.Error, match="through the app"):
        component.preprocess(ImageData(path=path))
    assert secret.exists()


@pytest.mark.parametrize("payload", [ImageData(url="http://127.0.0.1/x.png"), ImageData(path="")])
def test_addresses_are_not_fetched(component: SafeImage, payload: ImageData) -> None:
    with pytest.raises(gr.Error, match="upload an image file"):
        component.preprocess(payload)


def test_equal_files_of_two_visitors_do_not_take_each_other_away(folder: Path) -> None:
    inbox, file = Inbox(delete_after=0), uploaded(folder)
    first, second = inbox.take(str(file)), inbox.take(str(file))  # Gradio gave both the same path
    assert np.array_equal(np.asarray(first), np.asarray(second))


def test_a_taken_file_is_remembered_for_a_while_only(folder: Path) -> None:
    now = [0.0]
    inbox, file = Inbox(delete_after=0, clock=lambda: now[0]), uploaded(folder)
    inbox.take(str(file))
    now[0] = 61.0
    with pytest.raises(ImageError, match="choose the picture again"):
        inbox.take(str(file))


def test_what_is_remembered_stays_within_its_bytes(folder: Path) -> None:
    inbox = Inbox(delete_after=0, max_bytes=2 * 30 * 20 * 4)
    files = [uploaded(folder, f"{i}.png") for i in range(3)]
    for file in files:
        inbox.take(str(file))
    with pytest.raises(ImageError):
        inbox.take(str(files[0]))
    inbox.take(str(files[2]))


def test_every_odd_file_is_a_right_size_picture_or_one_sentence(
    folder: Path, component: SafeImage, shared_data: Path
) -> None:
    files = sorted(p for p in (shared_data / "odd_images").rglob("*") if p.is_file())
    assert len(files) > 100
    outcomes = [_outcome(file, folder, component) for file in files]
    sentences = [outcome for outcome in outcomes if isinstance(outcome, str)]
    assert all(10 < len(sentence) < 400 and str(folder) not in sentence for sentence in sentences)
    assert all(outcome.mode == "RGB" for outcome in outcomes if not isinstance(outcome, str))
    assert len(outcomes) - len(sentences) > 100
    assert not [path for path in folder.rglob("*.*") if path.is_file()]


def _outcome(file: Path, folder: Path, component: SafeImage) -> Image.Image | str:
    """What a file becomes once it was uploaded: a picture, or the sentence that refuses it."""
    copy = folder / "abc" / file.name
    copy.parent.mkdir(exist_ok=True)
    shutil.copy(file, copy)
    try:
        return Inbox(delete_after=0).take(component.preprocess(ImageData(path=str(copy))))
    except ImageError as error:
        return str(error)


def test_a_crowd_of_uploads_is_deleted_by_one_thread(folder: Path, clock: SimpleNamespace) -> None:
    inbox, before = Inbox(delete_after=3), threading.active_count()
    files = [uploaded(folder, f"{i}.png") for i in range(20)]
    for file in files:
        inbox.take(str(file))
    assert threading.active_count() <= before + 1
    assert all(file.exists() for file in files)
    clock.now += 3.1
    until(lambda: not any(file.exists() for file in files))


def test_a_file_of_another_visitor_is_refused(folder: Path, component: SafeImage) -> None:
    tray, path = Tray(), str(uploaded(folder))
    with pytest.raises(gr.Error, match="no longer here"):
        component.admit({"path": path}, tray)
    tray.note([path], "")
    component.admit({"path": path}, tray)


HIDDEN = {"path": "http://127.0.0.1:9/x.png", "meta": {"_type": "gradio.FileData"}}


@pytest.mark.parametrize(
    "extra", [{"more": HIDDEN}, {"meta": {"_type": "x", "more": HIDDEN}}, {"more": [HIDDEN]}]
)
def test_a_second_file_in_a_payload_is_refused(
    folder: Path, component: SafeImage, extra: dict[str, object]
) -> None:
    with pytest.raises(gr.Error, match="upload an image file"):
        component.admit({"path": str(uploaded(folder)), **extra})


@pytest.mark.parametrize(
    "value", ["x", 5, [], {}, {"path": 5}, {"path": None}, {"path": "http://127.0.0.1:9/x"}]
)
def test_a_payload_that_names_no_file_is_refused(folder: Path, component: SafeImage, value: object) -> None:
    with pytest.raises(gr.Error, match="upload an image file"):
        component.admit(value)


@pytest.mark.parametrize("name", ["x\0.png", "x" * 5000, "x" * 300])
def test_a_path_that_no_file_can_have_is_refused(folder: Path, component: SafeImage, name: str) -> None:
    tray = Tray()
    with pytest.raises(gr.Error, match=r"through the app|no longer here"):
        component.admit({"path": f"{folder}/{name}"}, tray)
