"""What a name on the page or in a link may stand for: never a path."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from vit_viz.errors import CheckpointError, ParameterError
from vit_viz.session.request import Subject
from vit_viz.session.session import Session
from vit_viz.ui.header import offers
from vit_viz.ui.routes import PREFIX, routes
from vit_viz.views.choices import default_name, model_names, model_reference, settled
from vit_viz.views.state import ViewState


@pytest.fixture
def session() -> Session:
    return Session(device="cpu")


def test_catalog_is_offered_after_the_own_model(session: Session) -> None:
    names = model_names(session)
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
        *(
            "a/b/c",
            "/etc",
            "..",
            ".",
            "~",
            "~/model",
            "~root/a",
            "a/",
            "C:\\a\\b",
            "a\\b",
            "owner/..",
            "mini/../mini",
        ),
        *(
            "file:///etc/passwd",
            "file:/a",
            "http://127.0.0.1/a",
            "https://huggingface.co/a/b",
            "hf://a/b",
            "//host/a",
        ),
        *(
            "a/b\n",
            "a/b\x00",
            "\x1ba/b",
            "a/b\u202e",
            "оwner/name",
            "a/nаme",
            " a/b",
            "a/b.git",
            "a/b@/etc/passwd",
            "a/b@../x",
        ),
        *("mini@main", "dino-s16@refs/pr/1", "mini\n", "MINI", "a" * 5000),
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


def test_a_missing_path_of_the_owner_is_called_by_its_file_name_too(tmp_path: Path) -> None:
    session = Session(model=tmp_path / "secret folder" / "gone.safetensors", device="cpu")
    assert default_name(session) == "gone.safetensors"
    with pytest.raises(CheckpointError, match=r"There is no model 'gone.safetensors'") as caught:
        session.model()
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("switch", ["0", "1"])
def test_own_hub_ids_are_switched_off_in_picker_link_and_message(
    session: Session, switch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VIT_VIZ_OWN_HUB_IDS", switch)
    view, problems = settled(session, ViewState.from_address("?model=someone/their-vit")[0])
    with pytest.raises(ParameterError) as caught:
        model_reference(session, "nonsense")
    allowed = switch == "1"
    assert offers.picker_value(session)["own_ids"] is allowed
    assert (view.model, problems) == (
        ("someone/their-vit", ())
        if allowed
        else ("mini", ("The model 'someone/their-vit' is not offered here; mini is shown instead.",))
    )
    assert ("type a Hub id" in str(caught.value)) is allowed


@pytest.mark.parametrize("name", ["/etc/passwd", "../../mini", "someone/their-vit", "dino-s16", "file:///a"])
def test_a_route_shows_the_model_of_its_handle_whatever_its_address_says(session: Session, name: str) -> None:
    asked: list[str | None] = []
    models = session.engine.models
    get = models.get
    models.get = lambda name, **options: asked.append(name) or get(name, **options)  # type: ignore[method-assign,func-returns-value,assignment]
    handle = session.handles.issue(Subject("mini", "shapes", "fit", "ada"))
    with TestClient(Starlette(routes=routes(session))) as client:
        answers = [
            client.get(f"{PREFIX}/{path}", params={"model": name})
            for path in (f"numbers/{handle}", f"layer/{handle}/0", f"rows/{handle}/0", f"photo/{handle}")
        ]
    assert [answer.status_code for answer in answers] == [200] * 4
    assert set(asked) == {"mini"}


def test_an_unknown_method_or_model_falls_back_and_is_said(session: Session) -> None:
    view, problems = settled(session, ViewState(model="dino", method="astrology"))
    assert (view.model, view.method) == ("mini", ViewState().method)
    assert len(problems) == 2
    assert "astrology" in problems[1]
