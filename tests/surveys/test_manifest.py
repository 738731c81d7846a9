"""survey.json: whose survey a folder is, and who may write to it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vit_viz.errors import ParameterError
from vit_viz.surveys import manifest

IDENTITY = {key: f"its {words}" for key, words in manifest._COMPARED.items()}


def begun(folder: Path, **changes: Any) -> dict[str, Any]:
    whole = manifest.manifest(IDENTITY | changes, request={"photos": "all"}, classes=["cat"], proof={})
    return manifest.opened(folder, whole)


def test_a_survey_is_begun_once_and_gone_on_with_as_it_was_begun(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "new" / "folder"
    first = begun(folder)
    written = (folder / manifest.FILE).read_text()
    assert {name: one for name, one in json.loads(written).items() if name != manifest.SEAL} == first
    assert len(written.splitlines()) > len(first)  # people read it, too
    assert [one.name for one in folder.iterdir()] == [manifest.FILE]  # nothing half written
    changed = manifest.manifest(IDENTITY, request={"photos": "others"}, classes=[], proof={})
    assert manifest.opened(folder, changed) == first


@pytest.mark.parametrize("key", list(manifest._COMPARED))
def test_another_survey_is_refused_by_what_differs(tmp_path: Path, key: str) -> None:
    begun(tmp_path)
    with pytest.raises(ParameterError, match="holds another survey") as refusal:
        begun(tmp_path, **{key: "x" * 61})
    assert f"its {manifest._COMPARED[key]} is {IDENTITY[key]}, not {'x' * 24}..." in str(refusal.value)


def test_a_folder_with_something_else_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ParameterError, match="something that is not a survey"):
        begun(tmp_path)
    with pytest.raises(ParameterError, match="something that is not a survey"):
        begun(tmp_path / "notes.txt")
    assert [one.name for one in tmp_path.iterdir()] == ["notes.txt"]


def test_an_empty_folder_and_one_with_a_lock_alone_are_taken(tmp_path: Path) -> None:
    with manifest.alone(tmp_path / "deep" / "down"):
        first = begun(tmp_path / "deep" / "down")
    (tmp_path / "empty").mkdir()
    assert begun(tmp_path / "empty") == first
    assert manifest.read(tmp_path / "deep" / "down") == manifest.read(tmp_path / "empty") == first


@pytest.mark.parametrize(
    ("text", "words"), [("[1]", "is not a JSON object"), ("{", "cannot be read"), (None, "cannot be read")]
)
def test_what_is_no_manifest_is_told(tmp_path: Path, text: str | None, words: str) -> None:
    if text is not None:
        (tmp_path / manifest.FILE).write_text(text)
    with pytest.raises(ParameterError, match=words):
        manifest.read(tmp_path)


def test_a_changed_byte_is_noticed_when_a_survey_is_gone_on_with(tmp_path: Path) -> None:
    """Wherever it is, in what is compared, in what is not, in the seal itself or its name."""
    begun(tmp_path)
    file = tmp_path / manifest.FILE
    written = file.read_bytes()
    for place in range(0, len(written), len(written) // 40):
        file.write_bytes(written[:place] + bytes([written[place] ^ 1]) + written[place + 1 :])
        with pytest.raises(ParameterError):
            begun(tmp_path)
    name = written.index(manifest.SEAL.encode())
    for place in (name, name + 1, name + 20, len(written) - 1):
        file.write_bytes(written[:place] + b"a" + written[place + 1 :])
        with pytest.raises(ParameterError):
            begun(tmp_path)
    file.write_bytes(written)
    begun(tmp_path)


def test_a_survey_from_before_there_was_a_seal_is_gone_on_with(tmp_path: Path) -> None:
    first = begun(tmp_path)
    (tmp_path / manifest.FILE).write_text(json.dumps(first))
    assert begun(tmp_path) == first
