"""Marked lines of code are lines that ran in this very model."""

from __future__ import annotations

import html
import inspect
import re
import sys
from collections import defaultdict
from types import CodeType, FrameType
from typing import Any

import pytest
import torch

from tests.ui.walkthrough.kinds import KINDS, scene_of_kind, screens_of_kind
from vit_viz.ui.walkthrough.scene import StepInput
from vit_viz.ui.walkthrough.screen import STEPS, Code, code_html


def lines_run(scene: StepInput) -> dict[CodeType, set[int]]:
    """Numbers of the lines that a plain forward pass runs, by function."""
    pixels = scene.loaded.preprocess.apply(scene.session.image(scene.subject.image), mode="stretch").pixels
    seen: dict[CodeType, set[int]] = defaultdict(set)

    def each_line(frame: FrameType, event: str, _argument: Any) -> Any:
        if "/vit_viz/model/" not in frame.f_code.co_filename:
            return None
        if event == "line":
            seen[frame.f_code].add(frame.f_lineno)
        return each_line

    before = sys.gettrace()
    sys.settrace(each_line)
    try:
        with torch.no_grad():
            scene.transformer(pixels)
    finally:
        sys.settrace(before)
    return seen


def texts_run(code: Code, seen: dict[CodeType, set[int]]) -> set[str]:
    """The lines of a shown function that ran, as text; of functions inside it, too."""
    lines, first = inspect.getsourcelines(code.what)
    numbers: set[int] = set()
    for ran, its in seen.items():
        if ran.co_filename == code.what.__code__.co_filename:
            numbers |= its
    return {line.strip() for place, line in enumerate(lines, first) if place in numbers}


@pytest.mark.parametrize("kind", list(KINDS))
def test_marked_lines_are_lines_that_ran(kind: str) -> None:
    seen = lines_run(scene_of_kind(kind))
    assert seen
    for step, screen in enumerate(screens_of_kind(kind), start=1):
        assert screen.code
        for code in screen.code:
            marked = re.findall(r"<mark>(.*?)</mark>", code_html(code))
            assert len(marked) >= len(code.marks) > 0
            ran = texts_run(code, seen)
            where = f"{STEPS[step - 1]}, {code.what.__qualname__}"
            assert [line for line in marked if html.unescape(line).strip() not in ran] == [], where


def test_models_that_take_other_branches_have_other_lines_marked() -> None:
    marks = {kind: [code.marks for screen in screens_of_kind(kind) for code in screen.code] for kind in KINDS}
    assert marks["class and mean, concatenated"] != marks["class token alone, squares"]
    assert marks["distilled"] != marks["class token alone, squares"]
    assert marks["positions resampled as dino"] != marks["positions resampled as timm"]
    assert marks["unfold, gated MLP, norm inside attention"] != marks["gated MLP in two parts"]
