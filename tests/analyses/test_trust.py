"""Trust of one map, of a tiny model: what is followed, of which map, and in which order two classes stand."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
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
from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.analyses.share_maps import class_difference
from vit_viz.analyses.trust import Randomisation, Trust, parameter_randomisation
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


QUICK, BLIND, SLOW = "relevance", "rollout", "occlusion"
NOT_MEASURED = "Whether it changes with the class or with a mirror is measured for the quick methods only."


def said_of(
    method: str,
    outside: tuple[bool, bool] = (True, True),
    beaten: tuple[int, int] = (10, 10),
    **measured: float,
) -> list[str]:
    """The sentences about a map by a method."""
    scores: Any = SimpleNamespace(beats_random=outside, beaten=beaten)
    return Trust(scores, method, (0.4, 0.3, 0.6), **measured).to_words().splitlines()


def test_a_map_is_set_beside_random_orders_and_their_band() -> None:
    for outside, where in (
        ((False, True), "taking away"),
        ((True, False), "putting back"),
        ((False, False), "taking away and putting back"),
    ):
        assert said_of(QUICK, outside)[1:] == [f"Not outside the 95% band of random orders, {where}."]
    assert said_of(QUICK) == ["Better than each of 10 random orders, taking away and putting back."]
    for taken, put in ((10, 9), (3, 10), (4, 4)):
        words = f"Better than {taken} of 10 random orders taking away, and than {put} putting back."
        assert said_of(QUICK, beaten=(taken, put)) == [words]


def test_what_was_measured_is_said_and_nothing_else() -> None:
    methods = [METHODS[name] for name in (QUICK, BLIND, SLOW)]
    assert [method.is_slow for method in methods] == [False, False, True]
    assert [method.words.class_blind for method in methods] == [False, True, False]
    changes, mirrored = "Changes with the class: 0.29 of 1.", "Mirrored photo, mirrored map: -0.83 of 1."
    both = {"class_sensitivity": 0.287, "mirror": -0.834}
    assert said_of(QUICK, **both)[1:] == [changes, mirrored]
    assert said_of(QUICK, class_sensitivity=0.287)[1:] == [changes]
    assert said_of(QUICK, mirror=-0.834)[1:] == [mirrored]
    assert said_of(BLIND, **both)[1:] == ["The same for every class.", mirrored]
    assert said_of(SLOW)[1:] == [NOT_MEASURED]


def scores(deletion: list[float], reverse: list[float], chance: list[float]) -> Any:
    """What was measured, in the shape of `Faithfulness`: curves at 0, 50 and 100%, one of them for all random orders."""
    shares = np.array([0, 0.5, 1])
    curves = [SimpleNamespace(x=shares, y=np.array(y)) for y in (deletion, reverse)]
    return SimpleNamespace(
        deletion=curves[0],
        reverse=curves[1],
        band=SimpleNamespace(fractions=shares, deletion=np.array([chance])),
        deletion_auc=-0.5,
        reverse_auc=2.25,
        beats_random=(True, True),
        beaten=(10, 10),
    )


MEAN = (
    "In the mean over the curve the lead is −0.50, with dog's patches first 2.25; in random orders 1.50, 95% of them from −0.25 to "
    "2.00."
)


@pytest.mark.parametrize(
    ("measured", "words"),
    [
        (
            scores([3, -1, 0.2], [3, 4, 0.2], [3, 1, 0.2]),
            [
                "On the whole photo cat leads dog by 3.00 logits; with every patch painted over it is 0.20.",
                "With cat's patches first, the lead is lost when 50% are gone; in random orders, in the mean, it is never lost.",
                MEAN,
                "With dog's patches first it grows to 4.00, when 50% are gone.",
            ],
        ),
        (
            scores([-2, -3, -1], [-2, -2.5, -3], [-2, -2, -1]),
            [
                "On the whole photo cat does not lead dog: the lead is −2.00 logits; with every patch painted over it is −1.00.",
                MEAN,
                "With dog's patches first it never grows.",
            ],
        ),
    ],
)
def test_what_becomes_of_a_lead_is_said_with_its_numbers(measured: Any, words: list[str]) -> None:
    trust = Trust(measured, QUICK, (1.5, -0.25, 2.0), names=("cat", "dog"), unit="logits")
    assert trust.to_words().splitlines() == [*words, *said_of(QUICK)]
    of_values = Trust(measured, QUICK, (1.5, -0.25, 2.0), names=("cat", "dog"))
    assert "logits" not in of_values.to_words()


@pytest.mark.parametrize(
    ("last", "verdict"),
    [
        (0.49, "it depends on what the model learned"),
        (-0.49, "it depends on what the model learned"),
        (0.5, "much of it does not depend on what the model learned"),
        (-0.5, "much of it does not depend on what the model learned"),
    ],
)
def test_the_verdict_is_that_of_the_last_correlation(last: float, verdict: str) -> None:
    curve = Randomisation(np.arange(2, dtype=np.float32), np.array([1, last], np.float32), "x", "y", "m")
    assert curve.to_words().endswith(f" is {last:.2f}: {verdict}.")
