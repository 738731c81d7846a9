"""The walkthrough's pictures, curves and words on sizes that are all different, and small rules of the page at their limits."""

from __future__ import annotations

import base64
import io
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.ui.desk import odd_picture, odd_session
from vit_viz.analyses.explain import parameters_of
from vit_viz.analyses.methods import METHODS
from vit_viz.ui.walkthrough import drawings
from vit_viz.ui.walkthrough.patches import patch_picture
from vit_viz.ui.walkthrough.scene import StepInput
from vit_viz.views.state import ViewState
from vit_viz.walkthrough import ClassStep


def embedded(html: str) -> tuple[str, Image.Image]:
    """The kind of a picture in a page, and the picture."""
    kind, data = re.findall(r'src="data:image/(\w+);base64,([^"]+)"', html)[0]
    return kind, Image.open(io.BytesIO(base64.b64decode(data)))


@pytest.fixture(scope="module")
def scene() -> StepInput:
    session = odd_session(patch_size=(8, 6), img_size=(32, 48))
    loaded = session.model("odd")
    session.add_model(replace(loaded, preprocess=type(loaded.preprocess)((32, 48), patch_size=(8, 6))))
    image = session.add_upload(odd_picture())
    return StepInput.of(
        session, ViewState(model="odd", image=image, mode="crop", layer=1, head=3, query="2,5"), ""
    )


@pytest.mark.parametrize(
    ("size", "sharp", "kind"), [((90, 37), True, "png"), ((64, 64), False, "png"), ((65, 64), False, "jpeg")]
)
def test_only_large_photos_are_jpeg(size: tuple[int, int], sharp: bool, kind: str) -> None:
    html = drawings.picture(Image.new("RGB", size), alt='a "b"', width=70, caption="<i>", sharp=sharp)
    found, picture = embedded(html)
    assert (found, picture.size) == (kind, size)
    assert ("pixelated" in html) == sharp
    assert "width:calc(70 * var(--vv-unit))" in html
    assert "&lt;i&gt;" in html
    assert 'alt="a &quot;b&quot;"' in html


def test_a_heat_map_has_the_shape_and_order_of_its_values() -> None:
    values = np.arange(24.0).reshape(4, 6)
    _, picture = embedded(drawings.heat(values, name="numbers"))
    assert picture.size == (6, 4)
    dark, bright = (
        np.asarray(picture.convert("L"), int)[0, 0],
        np.asarray(picture.convert("L"), int)[3, 5],
    )
    assert bright > dark + 100


def test_curves_lie_in_one_frame_from_zero_or_below_to_the_largest_value() -> None:
    x = np.array([2.0, 4.0, 7.0])
    html = drawings.curves(
        [("up", x, np.array([1.0, 2.0, 3.0])), ("<b>", x, np.array([0.0, 5.0, -1.0]))],
        label="two curves",
        x_label="steps",
        mark=4.0,
    )
    width, height = drawings._CURVE
    points = [
        [tuple(map(float, p.split(","))) for p in line.split()]
        for line in re.findall(r'points="([^"]+)"', html)
    ]
    assert points[0][0] == pytest.approx((0, height - 2 / 6 * height), abs=0.1)
    assert points[0][2] == pytest.approx((width, height - 4 / 6 * height), abs=0.1)
    assert points[1][1] == pytest.approx((width * 2 / 5, 0), abs=0.1)
    assert points[1][2] == pytest.approx((width, height), abs=0.1)
    (at,) = re.findall(r'x1="([\d.]+)"', re.findall(r"<line class=vv-w-at[^>]*>", html)[0])
    assert float(at) == pytest.approx(width * 2 / 5, abs=0.1)
    assert "2 to 7 steps; -1 to 5 upwards" in html.replace("\u2212", "-").replace(".00", "")
    assert "&lt;b&gt;" in html


def test_the_axes_stand_where_the_numbers_are_zero_if_that_is_in_sight() -> None:
    html = drawings.curves(
        [("curve", np.array([-2.0, 0.0, 6.0]), np.array([0.0, 3.0, -1.0]))], label="a curve", x_label="steps"
    )
    (points,) = re.findall(r'points="([^"]+)"', html)
    start, middle, _ = (tuple(map(float, point.split(","))) for point in points.split())
    across, down = re.findall(r"<line class=vv-w-axis [^>]*>", html)
    assert re.findall(r'y[12]="([\d.-]+)"', across) == [f"{start[1]:.1f}"] * 2
    assert re.findall(r'x[12]="([\d.-]+)"', down) == [f"{middle[0]:.1f}"] * 2
    for first, drawn in ((-1.0, 2), (0.0, 1), (1.0, 1)):
        html = drawings.curves([("c", [first, 5.0], [2.0, 3.0])], label="a curve", x_label="steps")
        assert html.count("vv-w-axis") == drawn, first


def test_small_pictures_lie_in_lines_with_white_between_them() -> None:
    small = [Image.new("RGB", (4, 3), (10 * number, 0, 0)) for number in range(1, 6)]
    sheet = np.asarray(drawings.sheet_of(small, across=3, gap=2))
    expected = np.full((3 + 2 + 3, 4 + 2 + 4 + 2 + 4, 3), 255)
    for number, (top, left) in enumerate([(0, 0), (0, 6), (0, 12), (5, 0), (5, 6)], 1):
        expected[top : top + 3, left : left + 4] = (10 * number, 0, 0)
    np.testing.assert_array_equal(sheet, expected)


def test_a_ruled_picture_is_cut_where_whole_patches_end() -> None:
    image = Image.new("RGB", (90, 37), (100, 100, 100))
    sheet = np.asarray(drawings.ruled(image, patch=20, longest=360)).astype(int)
    assert sheet.shape == (148, 360, 3)
    white = (sheet == 255).all(axis=-1)
    assert np.flatnonzero(white[:79].all(axis=0)).tolist() == [0, 80, 160, 240, 320]
    assert np.flatnonzero(white[:, :319].all(axis=1)).tolist() == [0, 80]
    assert (sheet[10:70, 90:150] == 100).all()
    assert len(set(map(tuple, sheet[90:, 330:].reshape(-1, 3)))) > 1 or (sheet[90:, 330:] != 100).any()


def test_a_ruled_picture_of_whole_patches_has_a_line_before_each() -> None:
    sheet = np.asarray(drawings.ruled(Image.new("RGB", (36, 90), (90, 100, 110)), patch=18, longest=360))
    assert sheet.shape == (360, 144, 3)
    expected = np.full(sheet.shape, (90, 100, 110))
    expected[[0, 72, 144, 216, 288]] = 255
    expected[:, [0, 72]] = 255
    np.testing.assert_array_equal(sheet, expected)


def test_the_followed_patch_is_cut_out_of_the_input(scene: StepInput) -> None:
    (tall, wide), (row, col) = scene.loaded.config.patch_size, (2, 5)
    assert (tall, wide) == (8, 6)
    picture = patch_picture(scene)
    assert picture.size == (wide, tall)
    whole = np.asarray(scene.received)
    assert whole.shape == (32, 48, 3)
    expected = whole[row * tall : (row + 1) * tall, col * wide : (col + 1) * wide]
    np.testing.assert_array_equal(np.asarray(picture), expected)
    assert scene.padded_input() is scene.received
    smaller = replace(
        scene, received=scene.received.crop((0, 0, 45, 29))
    )  # zeros fill it up to whole patches
    padded = np.asarray(smaller.padded_input())
    assert padded.shape == (32, 48, 3)
    np.testing.assert_array_equal(padded[:29, :45], np.asarray(smaller.received))
    assert not padded[29:].any()
    assert not padded[:, 45:].any()


def test_what_is_shared_is_kept_by_picture_mode_and_model() -> None:
    session = odd_session()
    image, other = (session.add_upload(odd_picture(seed)) for seed in (5, 6))

    def lens_of(**view: Any) -> tuple[StepInput, ClassStep]:
        scene = StepInput.of(
            session, ViewState(**{"model": "odd", "image": image, "mode": "crop"} | view), ""
        )
        return scene, scene.step(ClassStep)

    (scene, first), (again, same) = lens_of(), lens_of()
    assert same is first
    assert again.received.tobytes() == scene.received.tobytes()
    assert scene.received.size == (48, 32)
    for change in ({"mode": "stretch"}, {"image": other}, {"model": "mini"}):
        changed, step = lens_of(**change)
        assert not np.array_equal(step.lens, first.lens), change
        assert changed.received.tobytes() != scene.received.tobytes(), change


@pytest.mark.parametrize("signed", [False, True])
def test_a_heat_map_says_the_ends_of_its_own_scale_or_of_the_one_given(signed: bool) -> None:
    values = np.array([[0.25, -0.5, 0.125]])
    low, high = (-0.5, 0.5) if signed else (-0.5, 0.25)
    expected = f"numbers: {drawings.number(low)} to {drawings.number(high)}"
    assert expected in drawings.heat(values, name="numbers", signed=signed)
    said = drawings.heat(values, name="numbers", signed=signed, caption="here")
    assert "<figcaption>here</figcaption>" in said
    assert "numbers" not in said
    assert drawings.number(7.0) in drawings.heat(values, name="numbers", signed=signed, scale=(-7.0, 7.0))


def test_every_method_but_a_look_up_is_asked_towards_a_class() -> None:
    rollouts = {"rollout", "value_rollout"}
    asked = {
        name: parameters_of(method, method.options(), query="class", target=(3, 5))
        for name, method in METHODS.items()
    }
    assert {name for name, parameters in asked.items() if "target" not in parameters} == rollouts
    assert {name for name, parameters in asked.items() if "query" in parameters} == rollouts
    for name, parameters in asked.items():
        beside = {"query": "class"} if name in rollouts else {"target": (3, 5)}
        assert parameters == METHODS[name].options().values() | beside
