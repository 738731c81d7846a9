"""Drawn scenes of one to four things, with a mask for each, and sentences of which it is known in which scenes they are true.

Places are (x, y) in [0, 1], y downwards; a scene is drawn at any size. All of it follows from a seed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

COLOURS = {
    "red": (205, 35, 35), "orange": (245, 135, 20), "yellow": (240, 220, 40), "green": (45, 150, 55),
    "turquoise": (50, 205, 200), "blue": (40, 75, 205), "purple": (125, 45, 165), "pink": (250, 140, 190),
}  # fmt: skip
SHAPES = ("circle", "square", "triangle", "star", "cross", "ring", "heart", "moon")
TEXTURES = ("plain", "striped", "dotted", "checked")
RADII = {"small": (0.11, 0.14), "": (0.14, 0.19), "large": (0.19, 0.25)}
ALONE = (0.2, 0.4)
SIZES = ("small", "large")
PLACES = ("left", "right", "top", "bottom", "middle")
ATTRIBUTES = (*SHAPES, *COLOURS, *TEXTURES, *SIZES, *PLACES)
RELATIONS = ("and", "above", "below", "left of", "right of")
GROUNDS = ("plain", "gradient", "stripes", "mosaic", "clouds")
GROUND = "the background"
MOST = 4
_MARGIN = 0.12  # by how much a thing lies above another one, at least
_ALSO = {
    "circle": "disc", "cross": "plus", "moon": "crescent", "turquoise": "cyan", "purple": "violet", "plain": "solid",
    "dotted": "spotted", "striped": "stripy", "checked": "chequered", "small": "little", "large": "big",
}  # fmt: skip
_FRAMES = (
    "a photo of {}.", "a picture of {}.", "an image of {}.", "a drawing of {}.", "there is {}.", "this is {}", "the {}",
)  # fmt: skip
_PLACED = {"left": ("at the left", "on the left"), "right": ("at the right", "on the right"), "top": ("at the top",),
           "bottom": ("at the bottom",), "middle": ("in the middle", "in the centre")}  # fmt: skip
_RELATED = {relation: f"to the {relation}" if " " in relation else relation for relation in RELATIONS}
_COUNTS = {2: "two", 3: "three"}

Pixels = NDArray[np.uint8]
Masks = NDArray[np.bool_]


class Thing(NamedTuple):
    """A thing in a scene: `radius` around (x, y) as shares of a side, `angle` in radians."""

    shape: str
    colour: str
    texture: str
    size: str
    x: float
    y: float
    radius: float
    angle: float

    @property
    def attributes(self) -> frozenset[str]:
        """Every word of ATTRIBUTES that is true of it."""
        places = {
            "left": self.x < 1 / 3, "right": self.x > 2 / 3, "top": self.y < 1 / 3, "bottom": self.y > 2 / 3,
            "middle": max(abs(self.x - 0.5), abs(self.y - 0.5)) < 1 / 6,
        }  # fmt: skip
        words = {self.shape, self.colour, self.texture, self.size} - {""}
        return frozenset(words | {word for word, is_true in places.items() if is_true})


class Scene(NamedTuple):
    """Things before a ground; `seed` decides what the ground and the colours' shades look like in detail."""

    things: tuple[Thing, ...]
    ground: str
    seed: tuple[int, int]


class Phrase(NamedTuple):
    """What a sentence says: there is a thing with all words of `first`, in a relation to one with those of `second`, or so many."""

    first: frozenset[str]
    relation: str = ""
    second: frozenset[str] = frozenset()
    count: int = 0


def scene(seed: int, index: int, *, least: int = 1, most: int = MOST) -> Scene:
    """The scene of a number: things that hardly overlap, colours and shapes that repeat now and then; a single one is larger."""
    rng = np.random.default_rng((seed, index))
    things: list[Thing] = []
    for _ in range(int(rng.integers(least, most + 1))):
        shape, colour = (str(rng.choice(list(words))) for words in (SHAPES, COLOURS))
        texture = str(rng.choice(TEXTURES)) if rng.random() < (0.25 if most == 1 else 0.5) else "plain"
        if things and rng.random() < 0.35:
            shape = things[-1].shape
        if things and rng.random() < 0.25:
            colour = things[-1].colour
        for _ in range(60):
            size = "" if most == 1 else str(rng.choice(list(RADII)))
            radius = float(rng.uniform(*(ALONE if most == 1 else RADII[size])))
            x, y = (float(place) for place in rng.uniform(radius * 0.9, 1 - radius * 0.9, 2))
            if all(math.hypot(x - t.x, y - t.y) > 0.95 * (radius + t.radius) for t in things):
                angle = float(rng.uniform(-0.4, 0.4))
                things.append(Thing(shape, colour, texture, size, x, y, radius, angle))
                break
    return Scene(tuple(things), str(rng.choice(GROUNDS)), (seed, index))


def draw(scene: Scene, side: int) -> tuple[Pixels, Masks]:
    """The picture, uint8 [side, side, 3], and what is seen of each thing, [things, side, side]."""
    rng = np.random.default_rng((*scene.seed, 1))
    picture = _ground(scene.ground, side, rng)
    masks = np.zeros((len(scene.things), side, side), dtype=bool)
    for number, thing in enumerate(scene.things):
        reach = thing.radius + 1 / side
        top, bottom, left, right = (
            min(max(round(edge * side), 0), side)
            for edge in (thing.y - reach, thing.y + reach, thing.x - reach, thing.x + reach)
        )
        y, x = (np.mgrid[top:bottom, left:right] + 0.5) / side
        cos, sin = math.cos(thing.angle), math.sin(thing.angle)
        across, up = (x - thing.x) / thing.radius, (thing.y - y) / thing.radius
        across, up = cos * across + sin * up, cos * up - sin * across
        cover = np.clip(0.5 - _distance(thing.shape, across, up) * thing.radius * side, 0, 1)
        shade = np.clip(COLOURS[thing.colour] + rng.normal(0, 10, 3), 0, 255)
        darker = shade * rng.uniform(0.35, 0.6)
        share = _pattern(thing.texture, across, up)[..., None]
        there = picture[top:bottom, left:right]
        there += cover[..., None] * (shade + share * (darker - shade) - there)
        masks[:number, top:bottom, left:right] &= cover < 0.5
        masks[number, top:bottom, left:right] = cover >= 0.5
    picture += rng.normal(0, rng.uniform(0, 6), picture.shape)
    return picture.clip(0, 255).astype(np.uint8), masks


def _distance(shape: str, x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far outside a shape of radius 1 a point lies, about; y upwards; negative inside."""
    radius = np.hypot(x, y)
    if shape == "circle":
        return radius - 0.9
    if shape == "ring":
        return np.abs(radius - 0.68) - 0.3
    if shape == "moon":
        return np.maximum(radius - 1, 0.72 - np.hypot(x - 0.52, y))
    if shape == "cross":
        return np.minimum(np.maximum(abs(x) - 0.32, abs(y) - 0.95), np.maximum(abs(x) - 0.95, abs(y) - 0.32))
    if shape == "heart":
        lobes = np.hypot(np.abs(x) - 0.42, y - 0.25) - 0.56
        return np.minimum(lobes, (np.abs(x) + np.abs(y + 0.17) - 0.8) / math.sqrt(2))
    corners = {"triangle": 3, "square": 4, "star": 5}[shape]
    half = math.pi / corners
    from_corner = np.abs((np.arctan2(x, y) + half + (half if shape == "square" else 0)) % (2 * half) - half)
    inner = 0.42 if shape == "star" else math.cos(half)  # how far out a side from a corner ends
    end_x, end_y = inner * math.cos(half), inner * math.sin(half)
    length = math.hypot(1 - end_x, end_y)
    return (end_y * (radius * np.cos(from_corner) - 1) + (1 - end_x) * radius * np.sin(from_corner)) / length


def _pattern(texture: str, x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Where a texture has its second shade, in [0, 1]."""
    if texture == "plain":
        return np.zeros_like(x)
    across, up = (np.sin(math.pi * 1.9 * (place + 0.26)) for place in (x, y))
    waves = {
        "striped": np.sin(math.pi * 2.6 * y),
        "dotted": abs(across * up) * 2 - 1.1,
        "checked": 1.6 * across * up,
    }
    return np.clip(0.5 + 2.5 * waves[texture], 0, 1)


def _ground(kind: str, side: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """A ground of two pale or dull colours, [side, side, 3]."""
    grey = rng.uniform(20, 235)
    low, high = (grey + rng.uniform(-45, 45) + rng.normal(0, 9, 3) for _ in range(2))
    y, x = (np.mgrid[:side, :side] + 0.5) / side
    angle = rng.uniform(0, 2 * math.pi)
    along = math.cos(angle) * (x - 0.5) + math.sin(angle) * (y - 0.5)
    if kind == "plain":
        share = np.zeros_like(x)
    elif kind == "gradient":
        share = along + 0.5
    elif kind == "stripes":
        share = 0.5 + 0.5 * np.sin(along * rng.uniform(20, 70))
    elif kind == "mosaic":
        share = _enlarged(rng.random((int(rng.integers(3, 12)),) * 2), side, Image.Resampling.NEAREST)
    else:
        share = sum(_enlarged(rng.random((2**octave + 1,) * 2), side, Image.Resampling.BICUBIC) / 2**octave
                    for octave in range(1, 6))  # fmt: skip
    return np.asarray(low + share[..., None] * (high - low)).clip(0, 255)


def _enlarged(values: NDArray[np.float64], side: int, how: Image.Resampling) -> NDArray[np.float64]:
    return np.asarray(Image.fromarray(values.astype(np.float32)).resize((side, side), how), dtype=np.float64)


def named(phrases: Sequence[Phrase], scenes: Sequence[Scene]) -> NDArray[np.bool_]:
    """Which things of which scenes have all words that come first in a phrase, [phrases, scenes, MOST]."""
    return _fits([phrase.first for phrase in phrases], scenes)


def holds(phrases: Sequence[Phrase], scenes: Sequence[Scene]) -> NDArray[np.bool_]:
    """Which phrases are true of which scenes, [phrases, scenes]."""
    first, second = named(phrases, scenes), _fits([phrase.second for phrase in phrases], scenes)
    x, y = np.zeros((2, len(scenes), MOST))
    for row, one in enumerate(scenes):
        count = len(one.things)
        x[row, :count], y[row, :count] = [t.x for t in one.things], [t.y for t in one.things]
    right, down = (place[:, None, :] - place[:, :, None] for place in (x, y))  # [scenes, thing, other thing]
    related = {
        "and": np.broadcast_to(~np.eye(MOST, dtype=bool), right.shape),
        "above": (down > _MARGIN) & (down > abs(right)),
        "below": (-down > _MARGIN) & (-down > abs(right)),
        "left of": (right > _MARGIN) & (right > abs(down)),
        "right of": (-right > _MARGIN) & (-right > abs(down)),
    }
    true = first.any(2)
    for row, phrase in enumerate(phrases):
        if phrase.count:
            true[row] = first[row].sum(1) == phrase.count
        elif phrase.relation:
            pairs = first[row][:, :, None] & second[row][:, None, :] & related[phrase.relation]
            true[row] = pairs.any((1, 2))
    return true


def _fits(wanted: Sequence[frozenset[str]], scenes: Sequence[Scene]) -> NDArray[np.bool_]:
    """Which things have every wanted word: [phrases, scenes, MOST]."""
    lacks = np.ones((len(scenes), MOST, 1 + len(ATTRIBUTES)), dtype=np.float32)  # the first: being there
    for row, one in enumerate(scenes):
        for column, thing in enumerate(one.things):
            has = thing.attributes
            lacks[row, column] = [False, *(word not in has for word in ATTRIBUTES)]
    wants = np.array([[True, *(word in words for word in ATTRIBUTES)] for words in wanted], dtype=np.float32)
    return (wants @ lacks.reshape(-1, lacks.shape[2]).T == 0).reshape(len(wanted), len(scenes), MOST)


def true_phrase(scene: Scene, rng: np.random.Generator) -> Phrase:
    """A phrase that is true of the scene: mostly of one thing, else of two, or how many there are of a kind."""
    thing = scene.things[int(rng.integers(len(scene.things)))]
    kind = rng.random()
    if kind > 0.9:
        words = frozenset({thing.shape} if rng.random() < 0.5 else {thing.colour})
        count = sum(words <= other.attributes for other in scene.things)
        if count in _COUNTS:
            return Phrase(words, count=count)
    elif kind > 0.65:
        relation = str(rng.choice(RELATIONS))
        for other in scene.things:
            phrase = Phrase(_described(thing, rng), relation, _described(other, rng))
            if other is not thing and holds([phrase], [scene])[0, 0]:
                return phrase
    return Phrase(_described(thing, rng))


def mixed_phrase(things: Sequence[Thing], rng: np.random.Generator) -> Phrase:
    """A phrase with words of two things, such as the red of one and the shape of another, so that it is often false."""
    one, other = (things[int(rng.integers(len(things)))] for _ in range(2))
    if rng.random() < 0.75:
        return Phrase(frozenset({one.shape, other.colour}))
    return Phrase(frozenset({one.shape, one.colour, other.texture}))


def _described(thing: Thing, rng: np.random.Generator) -> frozenset[str]:
    """Some of the words that are true of a thing."""
    kind = rng.random()
    words = {thing.shape, thing.colour} if kind < 0.65 else {thing.shape} if kind < 0.85 else {thing.colour}
    if rng.random() < 0.25:
        words.add(thing.texture)
    if rng.random() < 0.1 and thing.size:
        words.add(thing.size)
    if (places := sorted(thing.attributes & set(PLACES))) and rng.random() < 0.12:
        words.add(str(rng.choice(places)))
    return frozenset(words)


def sentence(phrase: Phrase, rng: np.random.Generator | None = None) -> str:
    """A phrase in words, "a striped red circle above a star"; with `rng` in one of several ways to say it."""
    if phrase.count:
        text = f"{_COUNTS[phrase.count]} {_plural(_noun(phrase.first, rng))}"
    else:
        text = _with_article(phrase.first, rng)
        if phrase.relation:
            text = f"{text} {_RELATED[phrase.relation]} {_with_article(phrase.second, rng)}"
    if rng is None or rng.random() < 0.6:
        return text
    if rng.random() < 0.5 and not phrase.count and not phrase.relation:
        return text.split(" ", 1)[1]
    return str(rng.choice(_FRAMES)).format(text).replace("the a ", "the ").replace("the an ", "the ")


def vocabulary() -> list[str]:
    """Every word, and every other sign, that a sentence may have."""
    nouns = ["thing", "shape", *SHAPES, *(_ALSO[shape] for shape in SHAPES if shape in _ALSO)]
    ways = [way for placed in _PLACED.values() for way in placed]
    texts = (*ATTRIBUTES, *_ALSO.values(), *_FRAMES, *ways, *_RELATED.values(), *_COUNTS.values(), *nouns)
    every = " ".join((*texts, *map(_plural, nouns), "an", GROUND))
    return sorted(set(re.findall(r"\w+|[^\w\s{}]", every)))


def _plural(noun: str) -> str:
    return noun + ("es" if noun.endswith("s") else "s")


def _with_article(words: frozenset[str], rng: np.random.Generator | None) -> str:
    noun = _noun(words, rng)
    place = [word for word in PLACES if word in words]
    where = [str(rng.choice(_PLACED[word])) if rng else _PLACED[word][0] for word in place]
    return " ".join(["an" if noun[0] in "aeiou" else "a", noun, *where])


def _noun(words: frozenset[str], rng: np.random.Generator | None) -> str:
    order = (*SIZES, *TEXTURES, *COLOURS, *SHAPES)
    chosen = [word for word in order if word in words]
    if not words & set(SHAPES):
        chosen.append(str(rng.choice(("thing", "shape"))) if rng else "thing")
    return " ".join(_ALSO[word] if rng and word in _ALSO and rng.random() < 0.15 else word for word in chosen)
