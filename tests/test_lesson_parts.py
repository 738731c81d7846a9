"""The lesson's "build it yourself": a program in parts that loads real weights and gives their logits."""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import vit_viz as vv
from tests.comparing import assert_same
from vit_viz.lesson_parts import PARTS
from vit_viz.model import vit
from vit_viz.samples import sample
from vit_viz.views.state import ViewState

pytestmark = pytest.mark.numbers


def program() -> dict[str, Any]:
    """What is defined once all parts have run, in order."""
    names: dict[str, Any] = {}
    for part in PARTS.values():
        exec(compile(part.source, "lesson", "exec"), names)
    return names


def test_together_they_are_the_bundled_model() -> None:
    loaded = vv.load("mini", device="cpu")
    built: nn.Module = program()["ViT"](
        patch=8, dim=192, depth=6, heads=6, classes=200, positions=256, registers=4
    )
    built.load_state_dict(loaded.model.state_dict())
    pixels = loaded.preprocess.apply(sample("shapes"), mode="crop").pixels
    pixels = torch.cat([pixels, pixels.flip(-1)])
    with torch.no_grad():
        assert_same(built(pixels), loaded.model(pixels))


def test_together_they_are_a_published_model(shared_data: Path) -> None:
    loaded = vv.load(shared_data / "vit_tiny_patch16_224.fp16.safetensors", device="cpu")
    built: nn.Module = program()["ViT"](patch=16, dim=192, depth=12, heads=3, classes=1000, positions=197)
    built.load_state_dict(loaded.model.state_dict())
    pixels = loaded.preprocess.apply(sample("shapes"), mode="crop").pixels
    with torch.no_grad():
        assert_same(built(pixels), loaded.model(pixels))


@pytest.mark.parametrize("name", PARTS)
def test_a_part_shows_the_lines_of_ours_that_ran(name: str) -> None:
    for ran in PARTS[name].ran:
        lines, first = inspect.getsourcelines(attrgetter(ran.name)(vit))
        assert ran.source == (first, "".join(lines).rstrip())
        for mark in ran.marks:
            assert mark in ran.source[1], (ran.name, mark)


# --- docs/TEACHING.md

TEACHING = (Path(__file__).resolve().parents[1] / "docs" / "TEACHING.md").read_text("utf-8")


def test_the_homework_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "vit.py").write_text("\n\n\n".join(part.source for part in PARTS.values()), "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "vit", raising=False)
    (homework,) = re.findall(r"```python\n(.*?)^ *```", TEACHING, re.DOTALL | re.MULTILINE)
    exec(compile(textwrap.dedent(homework), "homework", "exec"), {})
    (said,) = re.findall(r"tensor\((.+)\)", capsys.readouterr().out)
    assert 0 <= float(said) < 1e-3


def test_each_link_leads_to_a_beat() -> None:
    links = re.findall(r"`(\?\S+?)`", TEACHING)
    assert len(links) == 6
    for link in links:
        view, problems = ViewState.from_address(link)
        assert (view.tab, problems) == ("lesson", ())
        scene, beat = view.held("beat").split("-")
        source = (Path(vv.__file__).parent / "web" / "lesson" / "scenes" / f"{scene}.js").read_text("utf-8")
        assert f" {beat}: [" in source, link
