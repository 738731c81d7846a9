"""The image component: only a file that its visitor uploaded, decoded safely, deleted afterwards."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import gradio as gr
import numpy as np
import pytest
from gradio.data_classes import ImageData
from PIL import Image

from vit_viz.errors import ImageError
from vit_viz.session.handles import VISITOR
from vit_viz.ui.edge.image_input import GONE, NO_FILE, UploadedImage, read_upload
from vit_viz.ui.edge.uploads import UploadFiles

ADA, EVE = "a" * 32, "e" * 32


@pytest.fixture
def clock() -> SimpleNamespace:
    """The clock of the uploaded files, which the test turns."""
    return SimpleNamespace(now=1000.0)


@pytest.fixture
def files(tmp_path: Path, clock: SimpleNamespace) -> UploadFiles:
    return UploadFiles(lambda: str(tmp_path / "uploads"), clock=lambda: clock.now)


@pytest.fixture
def component() -> UploadedImage:
    return UploadedImage(render=False)


@pytest.fixture(autouse=True)
def _ada_asks() -> Iterator[None]:
    before = VISITOR.set(ADA)
    yield
    VISITOR.reset(before)


def uploaded(files: UploadFiles, content: bytes | None = None, visitor: str = ADA) -> str:
    """The path of a file that a visitor uploaded; by default a green picture of 30 x 20 pixels."""
    if content is None:
        stream = io.BytesIO()
        Image.new("RGB", (30, 20), (10, 200, 30)).save(stream, "PNG")
        content = stream.getvalue()
    with files.arriving(visitor) as arrival:
        return files.keep(arrival, "photo.png", io.BytesIO(content))


def test_an_uploaded_file_is_admitted_and_decoded(files: UploadFiles, component: UploadedImage) -> None:
    path = uploaded(files)
    component.admit({"path": path}, files)
    picture = read_upload(files, component.preprocess(ImageData(path=path)))
    assert (picture.mode, picture.size) == ("RGB", (30, 20))
    assert np.asarray(picture)[7, 11].tolist() == [10, 200, 30]


def test_a_file_that_was_read_stays_a_moment_for_its_preview(
    files: UploadFiles, clock: SimpleNamespace
) -> None:
    path = uploaded(files)
    read_upload(files, path, preview_seconds=3)
    clock.now += 2.9
    files.sweep()
    assert Path(path).exists()
    clock.now += 0.2
    files.sweep()
    assert not Path(path).exists()


def test_a_refused_file_is_deleted_too(files: UploadFiles) -> None:
    path = uploaded(files, b"this is no picture")
    with pytest.raises(ImageError, match="text file"):
        read_upload(files, path, preview_seconds=0)
    files.sweep()
    assert not Path(path).exists()


def test_a_file_that_has_gone_meanwhile_is_one_sentence(files: UploadFiles) -> None:
    path = uploaded(files)
    Path(path).unlink()
    with pytest.raises(ImageError) as caught:
        read_upload(files, path)
    assert str(caught.value) == GONE


def test_no_payload_is_no_picture(files: UploadFiles, component: UploadedImage) -> None:
    component.admit(None, files)
    assert component.preprocess(None) is None


def test_a_file_of_another_visitor_is_refused(files: UploadFiles, component: UploadedImage) -> None:
    path = uploaded(files, visitor=EVE)
    with pytest.raises(gr.Error) as caught:
        component.admit({"path": path}, files)
    assert caught.value.message == GONE


@pytest.mark.parametrize("form", ["beside", "dots", "double", "link", "passwd", "null", "long", "folder"])
def test_only_the_path_that_the_upload_answered_is_admitted(
    files: UploadFiles, component: UploadedImage, tmp_path: Path, form: str
) -> None:
    path = Path(uploaded(files))
    secret = tmp_path / "secret.png"
    secret.write_bytes(path.read_bytes())
    link = path.parent / "link.png"
    link.symlink_to(path)
    forms = {
        "beside": str(secret),
        "dots": f"{path.parent}/../{path.parent.name}/{path.name}",
        "double": f"{path.parent}//{path.name}",
        "link": str(link),
        "passwd": "/etc/passwd",
        "null": f"{path}\0.png",
        "long": f"{path}{'x' * 5000}",
        "folder": str(path.parent),
    }
    with pytest.raises(gr.Error) as caught:
        component.admit({"path": forms[form]}, files)
    assert caught.value.message == GONE
    assert secret.exists()


HIDDEN = {"path": "http://127.0.0.1:9/x.png", "meta": {"_type": "gradio.FileData"}}


@pytest.mark.parametrize(
    "extra", [{"more": HIDDEN}, {"meta": {"_type": "x", "more": HIDDEN}}, {"more": [HIDDEN]}]
)
def test_a_second_file_in_a_payload_is_refused(
    files: UploadFiles, component: UploadedImage, extra: dict[str, object]
) -> None:
    with pytest.raises(gr.Error) as caught:
        component.admit({"path": uploaded(files), **extra}, files)
    assert caught.value.message == NO_FILE


@pytest.mark.parametrize(
    "value", ["x", 5, [], {}, {"path": 5}, {"path": None}, {"path": ""}, {"path": "http://127.0.0.1:9/x"}]
)
def test_a_payload_that_names_no_file_is_refused(
    files: UploadFiles, component: UploadedImage, value: object
) -> None:
    with pytest.raises(gr.Error) as caught:
        component.admit(value, files)
    assert caught.value.message == NO_FILE


def test_every_odd_file_is_a_picture_or_one_sentence(files: UploadFiles, shared_data: Path) -> None:
    odd = sorted(p for p in (shared_data / "odd_images").rglob("*") if p.is_file())
    assert len(odd) > 100
    outcomes = [_outcome(files, file.read_bytes()) for file in odd]
    sentences = [outcome for outcome in outcomes if isinstance(outcome, str)]
    assert all(10 < len(sentence) < 400 and "uploads" not in sentence for sentence in sentences)
    assert all(outcome.mode == "RGB" for outcome in outcomes if not isinstance(outcome, str))
    assert len(outcomes) - len(sentences) > 100
    files.sweep()
    assert files.used_bytes == 0


def _outcome(files: UploadFiles, content: bytes) -> Image.Image | str:
    """What a file becomes once it was uploaded: a picture, or the sentence that refuses it."""
    try:
        return read_upload(files, uploaded(files, content), preview_seconds=0)
    except ImageError as error:
        return str(error)
