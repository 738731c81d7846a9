"""What is drawn of each type of answer: marks where they belong, scales that say what they hide, numbers that can be read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from PIL import Image

import vit_viz as vv
from tests.figures.test_export import PROVENANCE, a_map, photo
from tests.ui.desk import odd_picture, odd_session
from vit_viz.analyses.attention import HeadMaps
from vit_viz.analyses.explain import Explanations
from vit_viz.analyses.position_tables import FilterComponents
from vit_viz.analyses.registry import QUESTIONS
from vit_viz.analyses.value_paths import SentencePatches
from vit_viz.answer import Answer
from vit_viz.errors import ExportError
from vit_viz.figures import blocks
from vit_viz.figures.colormaps import table
from vit_viz.figures.files import Composed, composed, file_of, scene_of
from vit_viz.figures.request import DrawingOptions, Output, figure_for
from vit_viz.figures.scene import Scene
from vit_viz.figures.sheet import Bitmap, Box, Mark, TextLine
from vit_viz.geometry import CropBox
from vit_viz.results import Curve, HeadTable, Ranking, Segments, TokenMaps, TokenMatrix
from vit_viz.session.questions import request_for
from vit_viz.session.request import Subject
from vit_viz.session.session import Session

SMALL = Output("png", 8.0, 72)


def words(marks: Sequence[Mark]) -> list[str]:
    return [mark.text for mark in marks if isinstance(mark, TextLine)]


def drawn(answer: Any, **scene: Any) -> Composed:
    return composed(answer, Scene(SMALL, label="A label", **scene))


def frames(marks: Sequence[Mark]) -> list[Box]:
    """The bright halves of what marks a patch."""
    return [mark for mark in marks if isinstance(mark, Box) and mark.outline == (255, 255, 255)]


@pytest.fixture(scope="module")
def session() -> Session:
    return odd_session()


@pytest.fixture(scope="module")
def subject(session: Session) -> Subject:
    return Subject("odd", session.add_upload(odd_picture(), file_name="cat.png"), "crop")


def figure(session: Session, subject: Subject, name: str, **asked: Any) -> Composed:
    request = figure_for(request_for(session, subject, name, **asked))
    return composed(session.run(request.request), scene_of(session, request, SMALL))


# --- every question


QUICK = [name for name, question in QUESTIONS.items() if not question.is_slow]


@pytest.mark.parametrize("name", QUICK)
def test_every_answer_has_a_figure_a_table_and_arrays(session: Session, subject: Subject, name: str) -> None:
    about = subject if QUESTIONS[name].takes_image else Subject("odd", "")
    try:
        request = figure_for(request_for(session, about, name))
        session.run(request.request)
    except vv.ParameterError:
        pytest.skip("this model has no such thing")
    for form, start in (("png", b"\x89PNG"), ("csv", b"# "), ("npz", b"PK")):
        assert file_of(session, request, Output(form, 8.0, 72)).data.startswith(start)


# --- the token that asks


@pytest.mark.parametrize(("query", "place"), [("2,5", (2, 5)), ("0,1", (0, 1))])
def test_the_patch_that_looks_is_framed_where_it_lies(
    session: Session, subject: Subject, query: str, place: tuple[int, int]
) -> None:
    sheet = figure(session, subject, "look", layer=1, head="3", query=query).sheet
    (picture,) = (mark for mark in sheet.marks if isinstance(mark, Bitmap))
    (frame,) = frames(sheet.marks)
    box = session.trace_of(subject).crop_box
    assert box is not None
    top, left, bottom, right = box.patch_rect(*place, session.trace_of(subject).layout.grid)
    unit = picture.width / odd_picture().width
    wanted = (unit * left, unit * top, unit * (right - left), unit * (bottom - top))
    assert (frame.left - picture.left, frame.top - picture.top, frame.width, frame.height) == pytest.approx(
        wanted
    )


def test_a_map_from_another_token_has_no_frame(session: Session, subject: Subject) -> None:
    assert not frames(figure(session, subject, "look", layer=1, head="3", query="class").sheet.marks)


def test_every_patch_of_a_region_is_framed_in_every_cell_of_the_mosaic(
    session: Session, subject: Subject
) -> None:
    trace = session.trace_of(subject)
    sheet = figure(session, subject, "mosaic", query="2,5;1,0").sheet
    found = frames(sheet.marks)
    assert len(found) == 2 * trace.num_layers * trace.num_heads
    tall, wide = (round(getattr(found[0], name), 6) for name in ("height", "width"))
    assert {(round(one.height, 6), round(one.width, 6)) for one in found} == {(tall, wide)}


# --- cells


def test_a_scale_says_where_it_is_clipped() -> None:
    values = np.arange(200, dtype=np.float32).reshape(10, 20) ** 3
    cubes = a_map(values=values, signed=False, value_range=(0, 1e9))
    for clip in (True, False):
        marks = drawn(cubes, drawing=DrawingOptions(clip=clip), open_photo=photo).sheet.marks
        assert any(text.startswith("≥") for text in words(marks)) == clip


def table_of(values: Any, **changes: Any) -> HeadTable:
    facts = {
        "unit": "nats",
        "value_range": (-9, 9),
        "signed": False,
        "method": "entropy",
        "provenance": PROVENANCE,
    }
    return HeadTable(np.asarray(values, np.float32), **(facts | changes))


def test_a_table_fills_its_page_and_carries_its_numbers() -> None:
    marks = drawn(table_of([[0.5, 1.25, 2.0], [2.25, 0.0, 1.0]])).sheet.marks
    (cells,) = (mark for mark in marks if isinstance(mark, Bitmap))
    assert cells.left + cells.width == pytest.approx(SMALL.inner + 6)
    inside = [
        mark
        for mark in marks
        if isinstance(mark, TextLine)
        and cells.left < mark.x < cells.left + cells.width
        and mark.size < blocks.TEXT
    ]
    assert [mark.text for mark in inside] == ["0.50", "1.25", "2.00", "2.25", "0.00", "1.00"]
    wanted = [cells.left + (col + 0.5) * cells.width / 3 for col in (0, 1, 2, 0, 1, 2)]
    assert [mark.x for mark in inside] == pytest.approx(wanted)
    dark, bright = (
        inside[4].colour,
        inside[3].colour,
    )  # the lowest lies on a dark colour, the highest on a bright one
    assert sum(dark) > 600 > 200 > sum(bright)


def test_numbers_that_have_no_room_are_left_out() -> None:
    values = np.random.default_rng(0).random((40, 60))
    image = blocks.cells_image(values, "gray", (0, 1))
    texts = words(blocks.grid_block(image, (40, 60), 200, values=values).marks)
    assert not any("." in text for text in texts)


@pytest.mark.parametrize("width", [120, 500])
def test_every_column_with_a_name_of_its_own_shows_it(width: float) -> None:
    names = [f"after layer {layer}" for layer in range(8)]
    image = blocks.cells_image(np.zeros((2, 8)), "gray", (0, 1))
    block = blocks.grid_block(image, (2, 8), width, labels=(("a", "b"), names))
    heads = [mark for mark in block.marks if isinstance(mark, TextLine) and mark.text in names]
    assert [head.text for head in heads] == names
    (cells,) = (mark for mark in block.marks if isinstance(mark, Bitmap))
    assert {head.turned for head in heads} == {width < 400}
    for head in heads:
        assert 0 <= head.y - (head.width if head.turned else head.size) < head.y < cells.top


@pytest.mark.parametrize("tall", [2, 3])
def test_a_high_mosaic_continues_beside_itself(tall: int) -> None:
    layers, cell = 6 * tall, 20
    image = Image.fromarray(
        np.arange(layers, dtype=np.uint8).repeat(cell)[:, None].repeat(cell, axis=1)
    ).convert("RGB")
    block = blocks.wrapped_grid(image, (layers, 1), 200.0, tallest=1.35)
    pictures = [mark for mark in block.marks if isinstance(mark, Bitmap)]
    assert len(pictures) > 1
    assert block.height < 1.6 * 200
    rows = [text for text in words(block.marks) if text.isdigit()]
    assert [row for row in map(str, range(layers)) if row not in rows] == []
    first = [int(np.asarray(one.image.convert("L"))[0, 0]) for one in pictures]
    assert first == list(range(0, layers, -(-layers // len(pictures))))


def test_a_ring_lies_around_its_cell_in_the_column_where_it_continues() -> None:
    image = Image.new("RGB", (20, 240))
    for row in (0, 7, 11):
        block = blocks.wrapped_grid(image, (12, 1), 200.0, tallest=1.35, ringed=(row, 0))
        (ring,) = (mark for mark in block.marks if isinstance(mark, Box) and mark.outline)
        label = next(
            mark
            for mark in block.marks
            if isinstance(mark, TextLine) and mark.text == str(row) and mark.anchor == "end"
        )
        assert ring.top < label.y < ring.top + ring.height
        assert 0 < ring.left - label.x < 20


# --- small maps


def test_every_state_is_a_map_with_its_name_on_one_scale() -> None:
    values = np.zeros((3, 2, 2), np.float32)
    values[1, 0, 1], values[2, 1, 0] = 4.0, 2.0
    maps = TokenMaps(values, ("input", "one", "two"), "norm", (0, np.inf), False, "norms", PROVENANCE)
    marks = drawn(maps).sheet.marks
    pictures = [np.asarray(mark.image) for mark in marks if isinstance(mark, Bitmap)]
    assert [text for text in words(marks) if text in maps.names] == list(maps.names)
    half = len(pictures[0]) // 2
    viridis = table("viridis")
    assert (pictures[1][0, -1] == viridis[255]).all()
    assert (pictures[2][-1, 0] == viridis[128]).all()
    assert (pictures[0] == viridis[0]).all()
    assert (pictures[1][half:, :] == viridis[0]).all()


def test_three_numbers_a_patch_are_its_red_green_and_blue() -> None:
    values = np.zeros((1, 1, 3, 3), np.float32)
    values[0, 0] = [[2, 0, -1], [0, 0, 1], [1, 5, 0]]
    maps = TokenMaps(values, ("input",), "coordinate", (-9, 9), True, "components", PROVENANCE)
    (picture,) = (mark.image for mark in drawn(maps).sheet.marks if isinstance(mark, Bitmap))
    pixels, step = np.asarray(picture), picture.width // 3
    assert [pixels[0, place * step].tolist() for place in range(3)] == [
        [255, 0, 0],
        [0, 0, 255],
        [128, 255, 128],
    ]


def test_filters_are_pictures_gray_where_they_are_zero() -> None:
    values = np.zeros((2, 3, 1, 2), np.float32)
    values[0, :, 0, 1] = [1.0, -1.0, 0.0]
    filters = FilterComponents(values, np.array([0.75, 0.25], np.float32))
    marks = drawn(filters).sheet.marks
    first, second = (np.asarray(mark.image) for mark in marks if isinstance(mark, Bitmap))
    assert first[0, -1].tolist() == [255, 0, 128]
    assert (second == 128).all()
    assert {"75.0%", "25.0%"} <= set(words(marks))


# --- groups, links, curves, several parts


def test_segments_are_coloured_over_the_photo_where_they_lie() -> None:
    labels = np.array([[0, 0, 1], [0, 0, 1]])
    white = Image.new("RGB", (60, 40), (255, 255, 255))
    box = CropBox((40, 60), (32, 32), (0.0, 15.0, 40.0, 30.0))
    shown = drawn(Segments(labels, "k-means", PROVENANCE, crop_box=box), open_photo=lambda: white).sheet
    (picture,) = (mark for mark in shown.marks if isinstance(mark, Bitmap))
    pixels = np.asarray(picture.image)
    assert (pixels[:, :15] == 255).all()
    assert (pixels[:, 45:] == 255).all()
    inside, other = pixels[20, 20], pixels[20, 40]
    assert len({tuple(inside), tuple(other), (255, 255, 255)}) == 3
    assert {"segment 0: 4 patches", "segment 1: 2 patches"} <= set(words(shown.marks))


def test_sentences_have_a_map_each_on_one_scale_and_their_patches_a_colour() -> None:
    values = np.array([[[0.1, 0.3, 0.2]], [[0.2, 0.2, 0.0]]], np.float32)
    maps = TokenMaps(values, ("a dog", "grass"), "cosine", (-1, 1), False, "patches", PROVENANCE)
    found = SentencePatches(maps, np.array([[1, 0, 0]]))
    marks = drawn(found).sheet.marks
    dog, grass, best = (np.asarray(mark.image) for mark in marks if isinstance(mark, Bitmap))
    step, wide = dog.shape[1] // 3, best.shape[1] // 3
    assert (dog[0, -1] == grass[0, 0]).all()  # 0.2 in both
    assert not (dog[0, 0] == grass[0, 0]).all()
    assert (dog[0, step] == table("viridis")[-1]).all()
    assert (best[0, wide] == best[0, -1]).all()
    assert not (best[0, 0] == best[0, -1]).all()
    assert {"a dog: 2 patches", "grass: 1 patch", "0.000", "0.300"} <= set(words(marks))


def test_maps_of_several_methods_stand_side_by_side_under_their_labels() -> None:
    maps = Explanations({name: a_map() for name in ("relevance", "rollout", "saliency", "attention")})
    marks = drawn(maps, open_photo=photo).sheet.marks
    pictures = [mark for mark in marks if isinstance(mark, Bitmap)]
    assert len(pictures) == 4
    assert {"Relevance", "Saliency"} <= set(words(marks))
    assert pictures[0].top == pictures[1].top < pictures[-1].top


@pytest.mark.parametrize("has_photo", [True, False])
def test_maps_side_by_side_share_a_scale_where_that_is_wanted(has_photo: bool) -> None:
    values = np.zeros((2, 4, 6), np.float32)
    values[0, 0, 0], values[0, 3, 5] = 3, 1  # shares 3/4 and 1/4
    values[1, 0, 0], values[1, 3, 5] = 50, 150  # shares 1/4 and 3/4
    signed = a_map(values=values[0] - 2 * values[0, ::-1], signed=True, value_range=(-9, 9))
    plain = [a_map(values=one, signed=False, value_range=(0, 1e9)) for one in values]
    maps = Explanations({"relevance": plain[0], "rollout": plain[1]})
    scene: dict[str, Any] = {"drawing": DrawingOptions(style="heat", clip=False, smooth=False)}
    scene |= {"open_photo": photo} if has_photo else {}
    shared, own = (drawn(maps, **scene, **more) for more in ({"beside": maps}, {}))
    first, second = (np.asarray(mark.image) for mark in shared.sheet.marks if isinstance(mark, Bitmap))
    assert has_photo or (first[0, 0] == second[-1, -1]).all()
    assert has_photo or (first[-1, -1] == second[0, 0]).all()
    ends = [words(one.sheet.marks) for one in (shared, own)]
    assert {"0.000", "0.750"} <= set(ends[0])
    assert not {"0.000", "0.750"} & set(ends[1])
    assert "One for all methods: each patch's share of its map" in shared.caption
    assert "own scale" in own.caption
    assert "own scale" not in shared.caption
    mixed = Explanations({"relevance": plain[0], "occlusion": signed})
    both = words(drawn(mixed, **scene, beside=mixed).sheet.marks)
    assert {"-0.750", "0.750"} <= set(both)


def test_an_answer_of_several_parts_shows_each_under_its_name() -> None:
    answer = vv.run("mini", "shapes", "token_norms")
    texts = words(drawn(answer).sheet.marks)
    assert {"Token norms", "Thresholds", "Received", "Fair"} <= set(texts)


@dataclass(frozen=True, eq=False, repr=False)
class Partly(Answer):
    DRAWN = ("second",)

    first: float
    second: float


def test_of_an_answer_that_is_drawn_in_part_the_other_parts_stay_away() -> None:
    texts = words(drawn(Partly(first=3.0, second=5.0)).sheet.marks)
    assert ["Second: 5" in text for text in texts if ": " in text] == [True]


def test_what_holds_nothing_to_draw_says_so() -> None:
    with pytest.raises(ExportError, match="nothing to draw"):
        drawn(Explanations({"relevance": a_map()}).missing)


@pytest.mark.parametrize("constant", [HeadTable, TokenMatrix])
def test_constant_answers_are_drawn(constant: Any) -> None:
    options: dict[str, Any] = {"grid": (2, 2)} if constant is TokenMatrix else {}
    answer = constant(np.ones((4, 4)), "weight", (0, 2), False, "a method", **options)
    assert drawn(answer).sheet.height > 100


# --- for figures of one's own


def test_data_frames_hold_the_numbers() -> None:
    pytest.importorskip("pandas")
    frame = table_of([[0.5, 1.25], [2.25, 0.0]]).to_dataframe()
    assert list(frame.columns) == ["layer", "head", "value"]
    assert frame.loc[(frame.layer == 1) & (frame["head"] == 0), "value"].tolist() == [2.25]
    several = vv.run("mini", "shapes", "token_norms").to_dataframe()
    assert set(several.numbers) == {"maps", "thresholds", "received", "fair"}


def test_answers_are_plotted_on_axes_of_matplotlib() -> None:
    pytest.importorskip("matplotlib").use("Agg")
    from matplotlib.figure import Figure

    x = np.linspace(0, 1, 5)
    ax = Curve(x, x**2, "share", "p", "deletion", band=(x - 1, x + 1)).plot(Figure().subplots())
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("share", "p")
    np.testing.assert_allclose(ax.lines[0].get_ydata(), x**2, rtol=1e-6)
    ax = table_of([[0.5, 1.25], [2.25, 0.0]]).plot(Figure().subplots())
    assert (ax.get_ylabel(), ax.get_xlabel()) == ("layer", "head")
    np.testing.assert_array_equal(ax.images[0].get_array(), [[0.5, 1.25], [2.25, 0.0]])
    image = table_of([[-2.0, 1.0]], signed=True).plot(Figure().subplots()).images[0]
    ends = [image.cmap(image.norm(value))[:3] for value in (-2.0, 2.0)]
    np.testing.assert_allclose(ends, table("diverging")[[0, 255]] / 255)
    ax = Ranking(("cat", "dog"), np.array([0.7, 0.1]), "probability", "model").plot(Figure().subplots())
    assert [bar.get_width() for bar in ax.patches] == pytest.approx([0.1, 0.7])
    with pytest.raises(ExportError, match="plot one of its parts: maps"):
        vv.run("mini", "shapes", "token_norms").plot(Figure().subplots())


def test_a_mosaic_without_its_photo_says_how_to_ask_for_it() -> None:
    with pytest.raises(ExportError, match=r"vit_viz\.figure"):
        drawn(HeadMaps(np.zeros((2, 2, 3, 3), np.float32)), parameters={"query": "class", "direction": "row"})
