"""What a name on the page or in a link may stand for: never a path."""

from __future__ import annotations

from pathlib import Path

import pytest

from vit_viz.errors import CheckpointError, ParameterError
from vit_viz.session import Session
from vit_viz.ui.choices import default_name, model_choices, model_reference, settled
from vit_viz.ui.state import ViewState


@pytest.fixture
def session() -> Session:
    return Session(device="cpu")


def test_catalog_is_offered_after_the_own_model(session: Session) -> None:
    names = [name for _words, name in model_choices(session)]
    assert names[0] == "mini"
    assert len(names) == len(set(names)) > 10


def test_a_visitor_may_name_a_hub_id(session: Session) -> None:
    assert model_reference(session, "timm/vit_tiny_patch16_224.augreg_in21k_ft_in1k").startswith("timm/")


def test_own_hub_ids_can_be_switched_off(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIT_VIZ_OWN_HUB_IDS", "0")
    with pytest.raises(ParameterError, match="not offered here"):
        model_reference(session, "someone/their-vit")
    assert model_reference(session, "dino-s16") == "dino-s16"


@pytest.mark.parametrize(
    "name",
    [
        "/etc/passwd",
        "../weights.pth",
        "./a.safetensors",
        "a/../b",
        "${x}/y",
        "<img src=x onerror=1>/y",
        "a/b/c",
    ],
)
def test_a_visitor_cannot_name_a_path(session: Session, name: str) -> None:
    with pytest.raises(ParameterError, match="not offered here"):
        model_reference(session, name)


def test_a_file_with_the_form_of_a_hub_id_is_not_opened(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "owner").mkdir()
    (tmp_path / "owner" / "model.safetensors").write_bytes(b"secret")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CheckpointError) as caught:
        session.model(model_reference(session, "owner/model.safetensors"))
    assert "Hub" in str(caught.value)


def test_a_path_that_the_owner_gave_is_called_by_its_file_name(tmp_path: Path) -> None:
    weights = tmp_path / "mine.safetensors"
    weights.write_bytes(b"")
    session = Session(model=weights, device="cpu")
    assert default_name(session) == "mine.safetensors"
    assert model_reference(session, "mine.safetensors") == str(weights)


def test_an_unknown_method_or_model_falls_back_and_is_said(session: Session) -> None:
    view, problems = settled(session, ViewState(model="dino", method="astrology"))
    assert (view.model, view.method) == ("mini", ViewState().method)
    assert len(problems) == 2
    assert "astrology" in problems[1]
