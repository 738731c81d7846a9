from __future__ import annotations

import numpy as np
import pytest

from training.scenes import (
    COLOURS,
    GROUND,
    GROUNDS,
    MOST,
    SHAPES,
    Phrase,
    Scene,
    Thing,
    draw,
    holds,
    mixed_phrase,
    named,
    scene,
    sentence,
    true_phrase,
    vocabulary,
)

DISC = Thing("circle", "red", "plain", "large", x=0.25, y=0.3, radius=0.2, angle=0.0)
BOX = Thing("square", "blue", "striped", "small", x=0.75, y=0.7, radius=0.12, angle=0.2)
STAR = Thing("star", "red", "dotted", "", x=0.8, y=0.3, radius=0.15, angle=-0.3)
THREE = Scene((DISC, BOX, STAR), "plain", (0, 5))


def words(*each: str) -> frozenset[str]:
    return frozenset(each)


def test_a_scene_and_its_picture_follow_from_their_numbers() -> None:
    first, again, other = scene(3, 11), scene(3, 11), scene(4, 11)
    assert first == again != other
    for one, two in zip(draw(first, 40), draw(again, 40), strict=True):
        np.testing.assert_array_equal(one, two)


def test_a_red_disc_is_red_where_its_mask_says_and_nowhere_else() -> None:
    picture, masks = draw(Scene((DISC,), "plain", (0, 5)), 100)
    assert masks.shape == (1, 100, 100)
    assert masks[0].sum() == pytest.approx(np.pi * 18**2, rel=0.02)  # its radius is 0.9 of 0.2 of 100
    rows, cols = np.nonzero(masks[0])
    assert (rows.mean(), cols.mean()) == (pytest.approx(29.5, abs=0.2), pytest.approx(24.5, abs=0.2))
    red, green, blue = picture.astype(int).transpose(2, 0, 1)
    redness = red - (green + blue) / 2
    assert redness[masks[0]].mean() > 100
    assert abs(redness[~masks[0]]).mean() < 40


AREAS = {  # in units of the circle around it, from the areas of polygons and circles; of the heart as it was first drawn
    "circle": 0.81, "square": 0.637, "triangle": 0.413, "star": 0.393, "cross": 0.644, "ring": 0.816, "heart": 0.741, "moon": 0.565,
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_a_shape_has_its_area_and_stays_about_its_circle(shape: str) -> None:
    thing = Thing(shape, "green", "plain", "", x=0.5, y=0.5, radius=0.25, angle=0.0)
    _, masks = draw(Scene((thing,), "plain", (1, 1)), 200)
    y, x = np.mgrid[:200, :200] + 0.5
    assert masks[0].sum() / (np.pi * 50**2) == pytest.approx(AREAS[shape], abs=0.015)
    assert not masks[0][np.hypot(x - 100, y - 100) > 53].any()


def test_what_lies_above_hides_what_lies_below() -> None:
    over = DISC._replace(x=0.4, colour="green")
    _, masks = draw(Scene((DISC, over), "plain", (0, 5)), 80)
    _, alone = draw(Scene((over,), "plain", (0, 5)), 80)
    assert not (masks[0] & masks[1]).any()
    np.testing.assert_array_equal(masks[1], alone[0])


def spread(ground: str) -> float:
    drawn = [draw(Scene((DISC,), ground, (0, seed)), 48) for seed in range(12)]
    return float(np.mean([picture[~masks[0]].std(0).mean() for picture, masks in drawn]))


@pytest.mark.parametrize("ground", [ground for ground in GROUNDS if ground != "plain"])
def test_a_ground_that_is_not_plain_varies_from_place_to_place(ground: str) -> None:
    assert spread(ground) > 1.2 * spread("plain") > 0


@pytest.mark.parametrize(
    ("phrase", "is_true"),
    [
        (Phrase(words("red", "circle")), True),
        (Phrase(words("blue", "circle")), False),  # the blue of one thing, the shape of another
        (Phrase(words("striped", "blue", "square", "right", "bottom", "small")), True),
        (Phrase(words("plain", "square")), False),
        (Phrase(words("star", "left")), False),
        (Phrase(words("circle"), "above", words("square")), False),  # it is higher, and farther to the left
        (Phrase(words("star"), "above", words("blue")), True),
        (Phrase(words("blue"), "below", words("star")), True),
        (Phrase(words("circle"), "left of", words("star")), True),
        (Phrase(words("star"), "left of", words("circle")), False),
        (Phrase(words("square"), "right of", words("red")), True),
        (Phrase(words("red"), "and", words("red")), True),  # two things
        (Phrase(words("square"), "and", words("blue")), False),  # one thing
        (Phrase(words("red"), count=2), True),
        (Phrase(words("red"), count=3), False),
        (Phrase(words("star"), count=2), False),
    ],
)  # fmt: skip
def test_a_phrase_is_true_or_false_of_three_things(phrase: Phrase, is_true: bool) -> None:
    other = Scene((BOX._replace(shape="moon", colour="pink"),), "plain", (0, 6))
    assert holds([phrase], [other, THREE])[0].tolist() == [False, is_true]


def test_the_things_that_a_phrase_names() -> None:
    phrases = [Phrase(words("red")), Phrase(words("square"))]
    assert named(phrases, [THREE])[:, 0].tolist() == [[True, False, True, False], [False, True, False, False]]


def test_sentences_of_a_scene_are_true_of_it() -> None:
    rng = np.random.default_rng(0)
    for index in range(60):
        one = scene(9, index)
        phrases = [true_phrase(one, rng) for _ in range(8)]
        assert holds(phrases, [one]).all()
        assert 1 <= len(one.things) <= MOST


def test_mixed_phrases_are_false_as_soon_as_two_things_differ() -> None:
    rng = np.random.default_rng(0)
    phrases = [mixed_phrase(THREE.things, rng) for _ in range(200)]
    false = ~holds(phrases, [THREE])[:, 0]
    assert 0.2 < false.mean() < 0.8
    assert Phrase(words("circle", "blue")) in {
        phrase for phrase, is_false in zip(phrases, false, strict=True) if is_false
    }


@pytest.mark.parametrize(
    ("phrase", "text"),
    [
        (Phrase(words("orange", "star")), "an orange star"),
        (Phrase(words("green")), "a green thing"),
        (Phrase(words("small", "dotted", "pink", "heart", "top", "left")), "a small dotted pink heart at the left at the top"),
        (Phrase(words("ring"), "left of", words("blue", "cross")), "a ring to the left of a blue cross"),
        (Phrase(words("cross"), count=2), "two crosses"),
        (Phrase(words("yellow"), count=3), "three yellow things"),
    ],
)  # fmt: skip
def test_a_phrase_in_words(phrase: Phrase, text: str) -> None:
    assert sentence(phrase) == text


def test_the_vocabulary_has_every_word_that_is_said() -> None:
    rng, known = np.random.default_rng(1), set(vocabulary())
    told = [sentence(true_phrase(scene(2, index), rng), rng) for index in range(400)]
    assert {word for text in (*told, GROUND) for word in text.replace(".", " .").split()} <= known
    assert set(COLOURS) | set(SHAPES) <= known
