"""Figures as files: the same bytes twice, well-formed, the numbers of the result, and a record from which they are made again."""

from __future__ import annotations

import base64
import csv
import io
import itertools
import json
import re
import xml.etree.ElementTree as ET
import zlib
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from PIL import Image, ImageSequence

from tests.ui.desk import odd_picture, odd_session
from vit_viz.analyses.attention import HeadMaps
from vit_viz.answer import Provenance
from vit_viz.errors import ExportError, ParameterError
from vit_viz.figures import blocks, export
from vit_viz.figures.export import csv_text
from vit_viz.figures.files import MEDIA_TYPES, Encoded, file_of
from vit_viz.figures.record import record_text, versions
from vit_viz.figures.replay import record_of, replay
from vit_viz.figures.request import DrawingOptions, FigureRequest, Format, Output, figure_for
from vit_viz.results import Curve, Ranking
from vit_viz.session.questions import request_for
from vit_viz.session.request import Subject
from vit_viz.session.session import Session

FORMATS: tuple[Any, ...] = get_args(Format)
STILL: tuple[Any, ...] = ("png", "svg", "pdf")
SMALL: dict[str, Any] = {"width_cm": 5.0, "dpi": 72}
OWNER = "ada"


@pytest.fixture(scope="module")
def session() -> Session:
    return odd_session()


@pytest.fixture(scope="module")
def subject(session: Session) -> Subject:
    image = session.add_upload(odd_picture(), owner=OWNER, file_name="my cat.png")
    return Subject("odd", image, "crop", OWNER)


@pytest.fixture(scope="module")
def look(session: Session, subject: Subject) -> FigureRequest:
    request = request_for(session, subject, "look", layer=1, head="3", query="2,5")
    beside = request_for(session, subject, "mosaic", query="2,5")
    return FigureRequest(request, DrawingOptions(), beside)


@pytest.fixture(scope="module")
def files(session: Session, look: FigureRequest) -> dict[str, Encoded]:
    """The same map in every format."""
    return {form: file_of(session, look, Output(form, **SMALL)) for form in FORMATS}


def figure(session: Session, subject: Subject, name: str, **asked: Any) -> FigureRequest:
    return figure_for(request_for(session, subject, name, **asked))


@pytest.mark.parametrize("form", FORMATS)
def test_equal_requests_give_equal_bytes(
    session: Session, look: FigureRequest, files: dict[str, Encoded], form: Any
) -> None:
    assert file_of(session, look, Output(form, **SMALL)).data == files[form].data
    assert files[form].media_type == MEDIA_TYPES[form]
    assert files[form].file_name == f"vit_viz_my-cat_look_odd_layer-1_head-3.{form}"


@pytest.mark.parametrize("form", FORMATS)
def test_every_file_says_what_was_asked_of_which_weights_and_pixels(
    session: Session, subject: Subject, look: FigureRequest, files: dict[str, Encoded], form: Any
) -> None:
    record = record_of(files[form].data)
    assert record["versions"] == versions()
    assert set(versions()) >= {"vit_viz", "torch", "numpy"}
    assert record["weights"] == session.model("odd").provenance.weights
    assert record["image"] == session.digest(subject.image, owner=OWNER)
    assert record["request"]["parameters"] == json.loads(look.request.to_json())["parameters"]
    assert record["output"] == {"format": form, **SMALL}
    assert subject.image not in json.dumps(record)
    assert OWNER not in json.dumps(record["request"])


@pytest.mark.parametrize(
    "name", ["mosaic", "rollout", "heads", "classes", "positions", "patches", "sequence"]
)
@pytest.mark.parametrize("form", STILL)
def test_every_kind_of_result_is_a_figure(session: Session, subject: Subject, name: str, form: Any) -> None:
    data = file_of(session, figure(session, subject, name), Output(form, **SMALL)).data
    if form == "svg":
        root = ET.fromstring(data)
        assert root.get("width") == "5cm"
        labels = [part.get("aria-label") for part in root.iter() if part.get("aria-label")]
        assert any("Model odd" in str(label) for label in labels)
        assert not root.findall(".//{http://www.w3.org/2000/svg}text")
    elif form == "pdf":
        assert data.startswith(b"%PDF-")
        assert data.rstrip().endswith(b"%%EOF")
        assert b"+Aileron" in data
    else:
        with Image.open(io.BytesIO(data)) as picture:
            assert picture.width == round(5 / 2.54 * 72)
            assert picture.info["dpi"][0] == pytest.approx(72, abs=0.1)
            assert len(picture.getcolors(1 << 20) or ()) > 4


def test_a_pdf_has_the_width_that_is_asked_for_and_one_page(session: Session, look: FigureRequest) -> None:
    data = file_of(session, look, Output("pdf", 8.0, 72)).data
    (box,) = re.findall(rb"/MediaBox \[([\d. ]+)\]", data)
    assert float(box.split()[2]) == pytest.approx(8 / 2.54 * 72, abs=0.01)
    assert data.count(b"/Type /Page\n") == 1
    drawn = b"".join(
        zlib.decompress(part)
        for part in re.findall(rb"stream\r?\n(x\x9c.*?)\r?\nendstream", data, re.DOTALL)[:1]
    )
    assert drawn.count(b" Tj") > 4  # text is text


def test_the_map_in_an_svg_has_the_pixels_that_are_printed(session: Session, look: FigureRequest) -> None:
    svg = file_of(session, look, Output("svg", 5.0, 144)).data
    (inside,) = re.findall(rb"base64,([^\"]+)", svg)
    with Image.open(io.BytesIO(base64.b64decode(inside))) as embedded:
        assert embedded.width == round((5 / 2.54 * 72 - 12) / 72 * 144)
        assert embedded.height / embedded.width == pytest.approx(
            odd_picture().height / odd_picture().width, rel=0.02
        )


def rows_of(data: bytes) -> list[list[str]]:
    lines = [line for line in data.decode().splitlines() if not line.startswith("# ")]
    return list(csv.reader(lines))[1:]


@pytest.mark.parametrize("name", ["look", "mosaic", "rollout", "heads", "positions", "classes"])
def test_tables_hold_the_numbers_of_the_result_bit_for_bit(
    session: Session, subject: Subject, name: str
) -> None:
    asked = figure(session, subject, name)
    found = session.run(asked.request)
    values = found.scores if isinstance(found, Ranking) else found.values  # type: ignore[union-attr]
    rows = rows_of(file_of(session, asked, Output("csv")).data)
    read = np.array([row[-1] for row in rows], np.float32)[: values.size].reshape(values.shape)
    np.testing.assert_array_equal(read.view(np.uint32), np.asarray(values).view(np.uint32))
    arrays, facts = export.npz_contents(file_of(session, asked, Output("npz")).data)
    kept = arrays["scores" if name == "classes" else "values"]
    np.testing.assert_array_equal(kept.view(np.uint32), np.asarray(values).view(np.uint32))
    assert facts["kind"] == type(found).__name__
    if isinstance(found, HeadMaps):
        assert rows[-1][:4] == [str(size - 1) for size in found.values.shape]


def words_in(svg: bytes) -> list[str]:
    """All lines of text of a figure, which are drawn as outlines."""
    return [part.get("aria-label", "") for part in ET.fromstring(svg).iter() if part.get("aria-label")]


def test_the_grid_of_patches_is_lines_and_its_numbers_are_words(session: Session, subject: Subject) -> None:
    plain, numbered = (
        file_of(session, figure(session, subject, "patches", numbers=on), Output("svg", **SMALL)).data
        for on in (False, True)
    )
    lines = [part for part in ET.fromstring(plain).iter() if part.tag.endswith("rect")]
    assert len(lines) >= 2 * (5 + 7)  # a dark and a bright one at each edge of 4 x 6 patches
    assert "Patch grid: 4 rows x 6 columns" in words_in(plain)
    assert not {str(number) for number in range(24)} & set(words_in(plain))
    assert [word for word in words_in(numbered) if word.isdigit()] == [str(n) for n in range(24)]


def test_the_sequence_names_its_tokens_and_its_lines(session: Session, subject: Subject) -> None:
    words = words_in(file_of(session, figure(session, subject, "sequence"), Output("svg", 5.0, 72)).data)
    assert {"prefix", "class", "register 0"} <= set(words)
    held = [word.split(" - ") for word in words if re.fullmatch(r"\d+ - \d+", word)]
    assert [int(first) for first, _ in held] == [0, *(int(last) + 1 for _, last in held[:-1])]
    assert held[-1][1] == "23"


def test_the_pixels_of_the_sequence_are_a_table(session: Session, subject: Subject) -> None:
    asked = figure(session, subject, "sequence")
    values = session.run(asked.request).values  # type: ignore[union-attr]
    rows = np.array(rows_of(file_of(session, asked, Output("csv")).data), int)
    assert rows.shape == (values.size, 4)
    assert (values[tuple(rows[:, :3].T)] == rows[:, 3]).all()


def test_the_rectangles_of_patches_are_a_table(session: Session, subject: Subject) -> None:
    asked = figure(session, subject, "patches")
    values = session.run(asked.request).values  # type: ignore[union-attr]
    rows = np.array(rows_of(file_of(session, asked, Output("csv")).data), np.float32)
    assert rows.shape == (24, 6)
    np.testing.assert_array_equal(rows[:, 2:].reshape(values.shape), values)


def test_one_position_has_the_scale_of_all_and_is_marked(session: Session, subject: Subject) -> None:
    one = figure(session, subject, "positions", place="1,4")
    assert one.ringed == (1, 4)
    assert one.beside == figure(session, subject, "positions").request
    prefix = figure(session, subject, "positions", place="class")
    assert prefix.ringed is None
    drawn = file_of(session, prefix, Output("svg", **SMALL)).data
    largest = float(np.abs(session.run(prefix.request).values).max())  # type: ignore[union-attr]
    assert largest < 0.99
    assert {"-1.00", "1.00"} <= set(words_in(drawn))  # as of all positions, each of which is most like itself
    marked = file_of(session, one, Output("svg", **SMALL)).data
    assert marked.count(b"<rect") == drawn.count(b"<rect") + 1


def test_every_position_lies_where_it_does_in_the_photo(session: Session, subject: Subject) -> None:
    asked = figure(session, subject, "positions", grid="2,3")
    svg = file_of(session, asked, Output("svg", **SMALL)).data
    (inside,) = re.findall(rb"base64,([^\"]+)", svg)
    matrix = session.run(asked.request)
    with Image.open(io.BytesIO(base64.b64decode(inside))) as drawn:
        cells = np.asarray(drawn.convert("RGB")).astype(int)
    tall, wide = cells.shape[0] // 2, cells.shape[1] // 3
    colour = blocks.cells_image(matrix.values, "diverging", (-1.0, 1.0)).convert("RGB")  # type: ignore[union-attr]
    step = colour.width // 6
    for (row, col), (other, across) in itertools.product(np.ndindex(2, 3), np.ndindex(2, 3)):
        at = row * tall + (2 * other + 1) * tall // 4, col * wide + (2 * across + 1) * wide // 6
        place = (other * 3 + across) * step + step // 2, (row * 3 + col) * step + step // 2
        assert np.abs(cells[at] - colour.getpixel(place)).max() <= 1


def test_a_table_has_an_end(session: Session, subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = figure(session, subject, "positions", grid="2,3")
    for most, is_there in ((47, False), (48, True), (49, True)):
        monkeypatch.setattr(export, "MOST_LINES", most)
        if is_there:
            assert len(rows_of(file_of(session, asked, Output("csv")).data)) >= 36
        else:
            with pytest.raises(ExportError, match="48 lines; please save it as NPZ"):
                file_of(session, asked, Output("csv"))


def test_a_curve_is_a_table_with_its_band() -> None:
    x = np.linspace(0, 1, 5, dtype=np.float32)
    curve = Curve(x, x / 3, "share", "p", "deletion", band=(x / 7, x / 2), note="two\nlines")
    data = csv_text(curve, record_text(Provenance("odd")))
    read = np.array(rows_of(data), np.float32)
    np.testing.assert_array_equal(read, np.stack([x, x / 3, x / 7, x / 2], axis=1))
    assert b"\nx,y,low,high\n" in data
    assert b"# note: two lines\n" in data


def test_an_animation_has_a_frame_for_each_layer(
    session: Session, look: FigureRequest, files: dict[str, Encoded]
) -> None:
    for form in ("gif", "webp"):
        with Image.open(io.BytesIO(files[form].data)) as animation:
            assert animation.n_frames == session.trace_of(look.subject).num_layers  # type: ignore[attr-defined]
            drawn = [map_of(frame.convert("RGB")) for frame in ImageSequence.Iterator(animation)]
        assert all(np.any(one != other) for one, other in pairwise(drawn))


def map_of(frame: Image.Image) -> np.ndarray[Any, Any]:
    """The middle of a figure: of the map alone, without the title."""
    left, top, right, bottom = (
        int(share * side) for share, side in zip((0.2, 0.3, 0.8, 0.6), frame.size * 2, strict=True)
    )
    return np.asarray(frame.crop((left, top, right, bottom)))


def test_an_animation_has_150_dots_per_inch_at_most(session: Session, look: FigureRequest) -> None:
    for dpi, used in ((120, 120), (150, 150), (300, 150)):
        with Image.open(io.BytesIO(file_of(session, look, Output("gif", 5.0, dpi)).data)) as animation:
            assert animation.width == round(5 / 2.54 * used)


def test_a_figure_keeps_the_top_of_a_map_and_says_so(session: Session, look: FigureRequest) -> None:
    masked = replace(look, drawing=replace(look.drawing, mask=0.3))
    full, kept = (inside(file_of(session, one, Output("svg", 5.0, 144)).data) for one in (look, masked))
    darker = full - kept
    assert darker.min() >= -2  # nothing is lit more
    assert darker.max() > 20  # and what was left out lies in the dark
    words = ET.fromstring(file_of(session, masked, Output("svg", 20.0, 144)).data).iter()
    assert any("Only the top 30%" in part.get("aria-label", "") for part in words)


def inside(svg: bytes) -> np.ndarray[Any, Any]:
    """The picture that an SVG embeds."""
    (embedded,) = re.findall(rb"base64,([^\"]+)", svg)
    with Image.open(io.BytesIO(base64.b64decode(embedded))) as picture:
        return np.asarray(picture.convert("L"), np.float64)


def test_a_name_with_signs_of_xml_survives_its_record(session: Session) -> None:
    image = session.add_upload(odd_picture(), owner=OWNER, file_name='<a> & "b" ]]> c.png')
    request = request_for(session, Subject("odd", image, "crop", OWNER), "look", layer=0, head="0")
    asked = FigureRequest(request, DrawingOptions(), title="<i> & 'j' ]]>")
    for form in FORMATS:
        record = record_of(file_of(session, asked, Output(form, **SMALL)).data)
        assert record["figure"]["title"] == "<i> & 'j' ]]>"


def test_only_maps_of_attention_go_through_the_layers(session: Session, subject: Subject) -> None:
    with pytest.raises(ExportError, match="through the layers"):
        file_of(session, figure(session, subject, "heads"), Output("gif", **SMALL))


# --- made again


@pytest.fixture(scope="module")
def photo_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("photo") / "another name.png"
    odd_picture().save(path)
    return path


def test_all_of_a_figure_comes_back_out_of_its_record(look: FigureRequest) -> None:
    every = replace(
        look, ringed=(1, 2), title="mine", photo="cat", drawing=DrawingOptions(style="heat", mask=0.5)
    )
    assert FigureRequest.from_dict(json.loads(json.dumps(every.to_dict()))) == every
    before = every.to_dict() | {"kind": "map"}
    assert FigureRequest.from_dict(before) == every
    for name in every.to_dict():
        with pytest.raises(ParameterError, match="which figure"):
            FigureRequest.from_dict({key: value for key, value in every.to_dict().items() if key != name})


def test_a_figure_of_a_sample_or_of_the_model_alone_needs_no_photo(session: Session) -> None:
    for name, image in (("heads", "shapes"), ("positions", "")):
        first = file_of(session, figure(session, Subject("odd", image, "crop"), name), Output("svg", **SMALL))
        assert replay(first.data, session).data == first.data


def test_the_same_file_of_other_pixels_is_refused(
    session: Session, look: FigureRequest, tmp_path: Path
) -> None:
    odd_picture(7).save(tmp_path / "other.png")
    saved = file_of(session, look, Output("csv")).data
    with pytest.raises(ExportError, match="its pixels differ"):
        replay(saved, session, image=tmp_path / "other.png")
    with pytest.raises(ExportError, match="please name the photo"):
        replay(saved, session)


def test_other_weights_are_refused(session: Session, look: FigureRequest, photo_file: Path) -> None:
    weights = session.model("odd").provenance.weights
    saved = file_of(session, look, Output("csv")).data.replace(
        f'"weights": "{weights}"'.encode(), b'"weights": "0"'
    )
    with pytest.raises(ExportError, match="weights of odd"):
        replay(saved, session, image=photo_file)


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (b"", "no PNG"),
        (b"hello", "no PNG"),
        (b"%PDF-1.4", "no provenance"),
        (b"<?xml version='1.0'?><vit_viz:record>[1]</vit_viz:record>", "no provenance"),
        (b"RIFF....WEBP", "no provenance"),
        (b"# vit_viz: {}\nrow\n", "not the request"),
        (b'# vit_viz: {"figure": {}, "output": {}}\n', "does not say clearly"),
    ],
)
def test_a_file_that_does_not_say_how_it_was_made_is_refused(
    session: Session, broken: bytes, words: str
) -> None:
    with pytest.raises(ExportError, match=words):
        replay(broken, session)


def test_a_file_that_is_not_there_is_refused_by_its_name(session: Session, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"^gone\.png cannot be read\.$"):
        replay(tmp_path / "gone.png", session)
