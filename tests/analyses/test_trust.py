"""Trust of one map, of a tiny model: what is followed, of which map, and in which order two classes stand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.stats import spearmanr

import vit_viz as vv
from tests.analyses.conftest import loaded_from
from tests.comparing import assert_same
from vit_viz.analyses.faithfulness import faithfulness_of, random_band
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.analyses.share_maps import class_difference
from vit_viz.analyses.trust import Trust, parameter_randomisation
from vit_viz.checkpoints import LoadedModel
from vit_viz.errors import ParameterError
from vit_viz.model import VisionTransformer

pytestmark = pytest.mark.numbers


@pytest.fixture
def loaded(make_model: Callable[..., VisionTransformer]) -> LoadedModel:
    return loaded_from(make_model())


@pytest.fixture
def photo() -> Image.Image:
    """Of the model's input size, so that its mirror image is that of the input."""
    return Image.fromarray(np.random.default_rng(5).integers(0, 256, (16, 36, 3)).astype(np.uint8))


def trust(loaded: LoadedModel, photo: Image.Image, **asked: Any) -> Trust:
    answer = vv.run(loaded, photo, "trust", **asked)
    assert isinstance(answer, Trust)
    return answer


@pytest.mark.parametrize("pair", [(4, 1), (0, 6)])
def test_of_two_classes_the_lead_of_the_first_over_the_second_is_followed(
    loaded: LoadedModel, photo: Image.Image, pair: tuple[int, int]
) -> None:
    got = trust(loaded, photo, sides="difference", target=pair, method="gradcam").faithfulness
    subject = PreparedImage.of(loaded, photo)
    one, other = (vv.explain(loaded, photo, methods="gradcam", target=index)["gradcam"] for index in pair)
    shares = [found.values / np.abs(found.values).sum() for found in (one, other)]
    subtracted = class_difference(one, other, names=("a", "b"))
    assert_same(subtracted.values, shares[0] - shares[1])
    band = random_band(subject, target=pair)
    expected = faithfulness_of(subject, subtracted, band, target=pair, reverse=True)
    assert_same(got.deletion.y, expected.deletion.y)
    assert_same(got.insertion.y, expected.insertion.y)
    assert got.reverse is not None
    assert expected.reverse is not None
    assert_same(got.reverse.y, expected.reverse.y)
    assert_same(got.band.deletion, band.deletion)
    logits = subject.outputs(subject.pixels)[0].detach().double()
    assert got.deletion.y[0] == pytest.approx(float(logits[pair[0]] - logits[pair[1]]), rel=1e-5)


def test_the_classes_and_the_mirror_are_set_against_each_other_by_rank(
    loaded: LoadedModel, photo: Image.Image
) -> None:
    subject = PreparedImage.of(loaded, photo)
    first, second = subject.outputs(subject.pixels)[0].topk(2).indices.tolist()
    mirrored = photo.transpose(Image.Transpose.FLIP_LEFT_RIGHT)

    def values(picture: Image.Image, target: int) -> Any:
        return vv.explain(loaded, picture, methods="gradcam", target=target)["gradcam"].values

    for asked, target in ((None, first), (second, second)):
        got = trust(loaded, photo, method="gradcam", **({} if asked is None else {"target": asked}))
        between = spearmanr(values(photo, first).ravel(), values(photo, second).ravel()).statistic
        assert got.class_sensitivity == pytest.approx(1 - between, abs=1e-4)
        back = values(mirrored, target)[:, ::-1]
        assert got.mirror == pytest.approx(
            spearmanr(values(photo, target).ravel(), back.ravel()).statistic, abs=1e-4
        )
        shown = vv.faithfulness(
            loaded,
            photo,
            vv.explain(loaded, photo, methods="gradcam", target=target)["gradcam"],
            target=target,
            progress=False,
        )
        assert_same(got.faithfulness.deletion.y, shown.deletion.y)
        assert_same(got.faithfulness.insertion.y, shown.insertion.y)
        assert_same(got.faithfulness.band.deletion, shown.band.deletion)
    assert trust(loaded, photo, method="rollout").class_sensitivity == 0


def test_the_map_is_tested_with_the_options_that_are_asked_for(
    loaded: LoadedModel, photo: Image.Image
) -> None:
    usual, got = (
        trust(loaded, photo, method="rollout", options=options)
        for options in ({}, {"discard": 0.5, "head_fusion": "max"})
    )
    asked = vv.run(loaded, photo, "rollout", discard=0.5, head_fusion="max")
    shown = vv.faithfulness(loaded, photo, asked, progress=False)
    assert_same(got.faithfulness.deletion.y, shown.deletion.y)
    assert not np.allclose(got.faithfulness.deletion.y, usual.faithfulness.deletion.y)
    assert usual.mirror is not None
    assert got.mirror is None  # of the mirrored photo the usual maps are there


@pytest.mark.parametrize(("classes", "is_known"), [(1, False), (2, True)])
def test_two_classes_are_enough_to_be_told_apart(
    make_model: Callable[..., VisionTransformer], photo: Image.Image, classes: int, is_known: bool
) -> None:
    got = trust(loaded_from(make_model(num_classes=classes)), photo, method="gradcam")
    assert (got.class_sensitivity is not None) == is_known


def test_a_map_that_is_the_same_everywhere_is_not_tested(
    loaded: LoadedModel, photo: Image.Image, make_model: Callable[..., VisionTransformer]
) -> None:
    with torch.no_grad():
        for block in loaded.model.blocks:
            block.attn.qkv.weight.zero_()
            block.attn.qkv.bias.zero_()
    subject = PreparedImage.of(loaded, photo)
    flat = vv.explain(loaded, photo, methods="rollout")["rollout"]
    assert flat.peak is None
    for ask in (
        lambda: vv.faithfulness(loaded, photo, flat, progress=False),
        lambda: vv.map_stability(subject, method="rollout", tries=1, progress=False),
        lambda: parameter_randomisation(subject, method="rollout"),
        lambda: trust(loaded, photo, method="rollout"),
    ):
        with pytest.raises(ParameterError, match="same everywhere: it has no peak"):
            ask()
