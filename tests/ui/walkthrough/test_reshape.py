"""The reshape of one token's numbers: where the pieces stand."""

from __future__ import annotations

import re

import numpy as np

from vit_viz.ui.walkthrough.attention import reshape_picture


def numbers(name: str, text: str) -> list[float]:
    return [float(found) for found in re.findall(rf'\b{name}="?(-?[\d.]+)', text)]


def test_three_lines_of_heads_stand_below_one_another_and_the_frame_around_its_head() -> None:
    page = reshape_picture(np.linspace(-1, 2, 3 * 5 * 7), heads=5, chosen=3)
    ((_, _, width, height),) = [
        tuple(map(float, box.split())) for box in re.findall(r'viewBox="([^"]+)"', page)
    ]
    moved = re.findall(r"<image class=vv-w-moves [^>]*>", page)
    assert len(moved) == 3 * 5
    lefts = np.array([numbers("x", one)[0] for one in moved]).reshape(3, 5)
    tops = np.array([numbers("y", one)[0] for one in moved]).reshape(3, 5)
    tall, wide = numbers("height", moved[0])[0], numbers("width", moved[0])[0]
    assert (np.diff(lefts, axis=1) > wide).all()
    starts = lefts + np.array([re.findall(r"--across:(-?[\d.]+)px", one) for one in moved], float).reshape(
        3, 5
    )
    assert (np.diff(starts.ravel()) > 0).all()  # one long row, in the order of the numbers
    assert (
        np.ptp(
            tops + np.array([re.findall(r"--down:(-?[\d.]+)px", one) for one in moved], float).reshape(3, 5)
        )
        == 0
    )
    assert (np.ptp(lefts, axis=0) == 0).all()
    assert (np.ptp(tops, axis=1) == 0).all()
    assert (np.diff(tops[:, 0]) > tall).all()
    (frame,) = re.findall(r"<rect [^>]*>", page)
    (left,), (top,), (across,), (down,) = (numbers(name, frame) for name in ("x", "y", "width", "height"))
    assert lefts[0, 2] + wide < left < lefts[0, 3] < lefts[0, 3] + wide < left + across
    assert top < tops[0, 3]
    assert tops[2, 3] + tall < top + down
    ((label,),) = [numbers("y", one) for one in re.findall(r"<text [^>]*>head 3", page)]
    assert top + down < label < height
    assert lefts[2, 4] + wide <= width
