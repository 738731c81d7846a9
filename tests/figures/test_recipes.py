"""Figures by the name of their question: the bytes of the page, and the lines that make them again."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vit_viz as vv
from tests.ui.desk import odd_picture, odd_session
from vit_viz.errors import ParameterError
from vit_viz.figures.files import file_of, named
from vit_viz.figures.recipes import as_command, as_python
from vit_viz.figures.request import FigureOptions, FigureRequest, Output, figure_for
from vit_viz.session.questions import request_for
from vit_viz.session.request import Subject
from vit_viz.session.run import session_of
from vit_viz.session.session import Session

SMALL = Output("svg", 5.0, 72)


@pytest.fixture(scope="module")
def session() -> Session:
    return odd_session()


@pytest.fixture
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, session: Session) -> Path:
    """A folder with the photo, and the odd model wherever the model "odd" is asked for."""
    odd_picture().save(tmp_path / "mine.png")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("vit_viz.session.run.session_of", lambda _name: session)
    return tmp_path


def on_the_page(session: Session, name: str, asked: dict[str, Any], **how: Any) -> FigureRequest:
    """The figure that the page asks for."""
    subject = Subject("odd", session.add_upload(odd_picture(), file_name="mine.png"), "crop", "")
    request = request_for(session, subject, name, **asked)
    return named(session, FigureOptions.of(how.items()).figure(request))


@pytest.mark.parametrize(
    ("name", "options", "how"),
    [
        ("look", {"layer": 1, "head": "3", "query": "2,5"}, {}),
        (
            "look",
            {"layer": 2, "head": "max", "query": "class", "direction": "column"},
            {"scale": "own", "clip": False},
        ),
        ("mosaic", {"query": "1,1;2,5"}, {"style": "heat", "alpha": 0.55, "table": "magma"}),
        ("rollout", {"query": "2,5"}, {"title": "Two of them"}),
        ("relevance", {"target": (3, 5)}, {"shared_scale": True}),
        ("own_part", {"method": "legrad"}, {}),
        ("class_difference", {"method": "legrad", "target": (3, 5)}, {}),
        ("patches", {}, {"style": "heat"}),
        ("patches", {"numbers": True}, {}),
        ("sequence", {}, {}),
        ("positions", {}, {}),
        ("positions", {"grid": "4,6", "place": "3,1"}, {}),
        ("positions", {"grid": "4,6", "place": "class"}, {}),
    ],
)
def test_copied_python_saves_the_bytes_of_the_page(
    session: Session, in_folder: Path, name: str, options: dict[str, Any], how: dict[str, Any]
) -> None:
    asked = on_the_page(session, name, options, **how)
    session.given_paths[asked.subject.image] = "mine.png"  # as Python is given it, and the page never
    wanted = file_of(session, asked, SMALL)
    code = as_python(asked, SMALL).replace("'mine'", "'mine.png'")
    exec(code, {})
    assert (in_folder / "figure.svg").read_bytes() == wanted.data


@pytest.mark.parametrize(
    ("method", "options"),
    [("rollout", {"discard": 0.5}), ("value_rollout", {"attention_share": 0.3})],
)
def test_options_of_a_method_that_is_set_against_others_are_copied_with_it(
    session: Session, in_folder: Path, method: str, options: dict[str, Any]
) -> None:
    asked = on_the_page(session, "own_part", {"method": method, "options": options})
    session.given_paths[asked.subject.image] = "mine.png"
    exec(as_python(asked, SMALL).replace("'mine'", "'mine.png'"), {})
    assert (in_folder / "figure.svg").read_bytes() == file_of(session, asked, SMALL).data
    usual = on_the_page(session, "own_part", {"method": method})
    shown, other = (session.run(figure.request).values for figure in (asked, usual))
    assert not np.allclose(shown, other)
    assert as_command(asked, SMALL) == ""
    assert as_command(usual, SMALL)


@pytest.mark.parametrize(
    ("name", "given"), [("look", {"discard": 0.5}), ("trust", {"nothing": 1}), ("trust", 3)]
)
def test_options_of_a_method_are_refused_where_there_are_none(
    session: Session, name: str, given: object
) -> None:
    subject = Subject("odd", session.add_upload(odd_picture()), "crop", "")
    with pytest.raises(ParameterError, match=r"no option|by name"):
        request_for(session, subject, name, options=given)


def test_the_command_says_the_same_as_the_lines_of_python(session: Session) -> None:
    asked = on_the_page(
        session, "look", {"layer": 1, "head": "3", "query": "2,5"}, style="tint", smooth=False
    )
    words = shlex.split(as_command(asked, SMALL))
    assert words[:5] == ["vit-viz", "look", "mine", "--model", "odd"]
    words.remove("--no-smooth")
    pairs = dict(zip(words[3::2], words[4::2], strict=True))
    assert pairs == {
        "--model": "odd",
        "--layer": "1",
        "--head": "3",
        "--query": "2,5",
        "--mode": "crop",
        "--style": "tint",
        "--width-cm": "5.0",
        "--dpi": "72",
        "-o": "figure.svg",
    }


def test_a_name_with_quotes_and_spaces_stays_one_word(session: Session) -> None:
    name = "it's; rm -rf .png"
    subject = Subject("odd", session.add_upload(odd_picture(3), file_name=name), "crop", "")
    asked = figure_for(request_for(session, subject, "heads"))
    photo = session.name_of(subject.image)
    named = FigureRequest(**{**vars(asked), "photo": photo})
    assert shlex.split(as_command(named, SMALL))[2] == photo
    compile(as_python(named, SMALL), "copied", "exec")


def test_a_shared_scale_is_drawn_said_and_refused_where_no_maps_could_share_it(session: Session) -> None:
    subject = Subject("odd", session.add_upload(odd_picture(), file_name="mine.png"), "crop", "")
    for name, options in (("comparison", {"methods": "rollout,gradcam"}), ("gradcam", {})):
        request = request_for(session, subject, name, **options)
        own, shared = (
            named(session, figure_for(request, shared_scale=is_shared)) for is_shared in (False, True)
        )
        assert file_of(session, own, SMALL).data != file_of(session, shared, SMALL).data
        assert "--shared-scale" in as_command(shared, SMALL)
        assert "shared" not in as_command(own, SMALL)
    with pytest.raises(ParameterError, match="Only maps of methods share a scale; 'heads' draws none"):
        figure_for(request_for(session, subject, "heads"), shared_scale=True)


def test_a_figure_by_name_is_saved_under_its_own_name(tmp_path: Path) -> None:
    saved = vv.figure("mini", "shapes", "heads", format="csv", measure="entropy")
    file = saved.save(tmp_path)
    assert file.name == "vit_viz_shapes_heads_mini.csv"
    assert file.read_bytes() == saved.data
    found = vv.run("mini", "shapes", "heads", measure="entropy")
    assert repr(found) in (
        f"HeadTable({found.method}: 6 layers x 6 heads, {found.values.min():.3g} to "  # type: ignore[union-attr]
        f"{found.values.max():.3g} {found.unit})"
    )  # type: ignore[union-attr]
    session_of.cache_clear()


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(ParameterError, match="format"):
        vv.figure("mini", "shapes", "heads", format="docx")
