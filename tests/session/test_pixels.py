"""Pixels, and several images, asked by name: the same numbers as of `explain`, one answer for each, in order."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
import torch

import vit_viz as vv
from tests.capture.models import lively, timm_vit
from tests.capture.test_features import Model
from tests.comparing import assert_same
from vit_viz.errors import ParameterError
from vit_viz.geometry import CropBox, TokenLayout
from vit_viz.samples import sample
from vit_viz.session.run import session_and_subjects

LAYOUT = TokenLayout(grid=(4, 6), prefix=("class", "register 0", "register 1"))


class Silent(Model):
    """A module that says nothing of its tokens."""

    layout = None  # type: ignore[assignment]  # as if it had none


@pytest.fixture(scope="module")
def module() -> Any:
    torch.manual_seed(0)
    return lively(Model("apart, written out", 3))


@pytest.fixture
def images() -> torch.Tensor:
    return torch.randn(2, 3, 16, 36, generator=torch.Generator().manual_seed(4))


@pytest.mark.parametrize("name", ["gradcam", "legrad", "relevance"])
def test_pixels_are_asked_about_by_name(module: Any, images: torch.Tensor, name: str) -> None:
    expected = vv.explain(module, images[:1], methods=name, target=3)[name]
    got = vv.run(module, images[:1], name, target=3)
    assert_same(got.values, expected.values)
    assert got.provenance.preprocess == "pixels [1, 3, 16, 36] as given"


def test_of_several_images_there_is_an_answer_for_each_in_order(module: Any, images: torch.Tensor) -> None:
    each = [vv.run(module, image[None], "rollout").values for image in images]
    assert not np.allclose(*each)
    for several in (images, list(images[:, None]), (images[:1], images[1:])):
        answers = vv.run(module, several, "rollout")
        assert [answer.values.tolist() for answer in answers] == [values.tolist() for values in each]
    files = vv.figure(module, images, "rollout", format="npz")
    assert [np.load(io.BytesIO(file.data))["values"].tolist() for file in files] == [
        one.tolist() for one in each
    ]


def test_pictures_and_pixels_may_be_mixed() -> None:
    mini = vv.load("mini")
    pixels = mini.preprocess.apply(sample("lion")).pixels
    first, second, third = vv.run(mini, ["lion", pixels, "shapes"], "gradcam")
    assert_same(first.values, second.values)
    assert_same(third.values, vv.run(mini, "shapes", "gradcam").values)


def test_progress_is_told_over_all_images(module: Any, images: torch.Tensor) -> None:
    told: list[float] = []
    vv.run(module, images, "occlusion", progress=told.append)
    assert told == sorted(told)
    assert max(told) == 1
    assert any(0 < share < 0.5 for share in told)
    assert any(0.5 < share < 1 for share in told)


def test_a_module_that_does_not_tell_its_tokens_is_told_by_a_layout(images: torch.Tensor) -> None:
    torch.manual_seed(0)
    silent = lively(Silent("apart", 3))
    with pytest.raises(ParameterError, match=r"layout=TokenLayout\(grid=\(4, 6\)"):
        vv.run(silent, images[:1], "rollout")
    expected = vv.explain(silent, images[:1], methods="gradcam", target=2, layout=LAYOUT)["gradcam"]
    assert_same(vv.run(silent, images[:1], "gradcam", target=2, layout=LAYOUT).values, expected.values)


def test_classes_have_the_names_that_are_given(module: Any, images: torch.Tensor) -> None:
    names = [f"kind {index}" for index in range(7)]
    expected = vv.run(module, images[:1], "gradcam", target=5)
    got = vv.run(module, images[:1], "gradcam", target="kind 5", labels=names)
    assert_same(got.values, expected.values)
    assert "kind 5" in got.caption


def test_under_a_map_lies_what_pixels_show_where_their_normalisation_is_known(module: Any) -> None:
    known = timm_vit()
    mean, std = (0.2, 0.3, 0.4), (0.5, 0.6, 0.7)
    known.pretrained_cfg = {"input_size": (3, 64, 96), "mean": mean, "std": std}
    pixels = torch.linspace(-0.4, 0.8, 3 * 64 * 96).reshape(1, 3, 64, 96)
    shown = pixels[0].permute(1, 2, 0) * torch.tensor(std) + torch.tensor(mean)
    session, (subject,) = session_and_subjects(known, [pixels], edits="")
    assert (np.asarray(session.image(subject.image)) == (shown * 255).round().clamp(0, 255).numpy()).all()
    session, (subject,) = session_and_subjects(module, [pixels[..., :16, :36]], edits="")
    picture = session.image(subject.image)
    assert picture.size == (36, 16)
    assert picture.getcolors() == [(16 * 36, (255, 255, 255))]
    box = session.trace_of(subject).crop_box
    assert box == CropBox((16, 36), (16, 36), (0, 0, 16, 36))


@pytest.mark.parametrize(
    ("image", "options", "why"),
    [
        (torch.zeros(1, 3, 16, 36), {"size": 9}, "pixels are used as they are"),
        (torch.zeros(1, 3, 16, 36), {"part": (0, 0, 8, 8)}, "pixels are used as they are"),
        (torch.full((1, 3, 16, 36), torch.nan), {}, "finite"),
        (torch.zeros(3, 16, 36), {}, r"\[1, channels, height, width\]"),
        ([], {}, "at least one picture"),
        ([torch.zeros(2, 3, 16, 36)], {}, r"\[1, channels, height, width\]"),
    ],
)
def test_what_is_no_batch_of_pixels_is_refused(
    module: Any, image: Any, options: dict[str, Any], why: str
) -> None:
    with pytest.raises(ParameterError, match=why):
        vv.run(module, image, "rollout", **options)


def test_a_layout_is_for_a_module() -> None:
    with pytest.raises(ParameterError, match="this model tells by itself"):
        vv.run("mini", "lion", "rollout", layout=LAYOUT)


def test_equal_pixels_are_kept_once(module: Any, images: torch.Tensor) -> None:
    given = [images[:1].clone(), images[:1].clone(), images[1:]]
    session, (first, again, other) = session_and_subjects(module, given, edits="", layout=LAYOUT)
    assert first == again != other
    assert torch.equal(session.pixels(other.image), images[1:])  # type: ignore[arg-type]


def test_a_model_that_is_named_with_labels_is_loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[object] = []
    monkeypatch.setattr("vit_viz.session.run.load", lambda ref: loads.append(ref) or vv.load(ref))
    labels = [f"kind {i}" for i in range(vv.load("mini").config.num_classes)]
    first, second = (vv.run("mini", "lion", "classes", labels=labels, progress=False) for _ in range(2))
    assert loads == ["mini"]
    assert first is second
    assert first.names == tuple(labels[i] for i in first.indices)
    other = vv.run("mini", "lion", "classes", labels=labels[::-1], progress=False)
    assert (other.indices, other.names[0]) == (first.indices, labels[::-1][first.indices[0]])
