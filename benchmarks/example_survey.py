"""The survey that comes with vit_viz: scenes of our own with known answers, seen by the bundled model; what assets/example holds.

    python -m benchmarks.example_survey [--out assets/example]

Every scene is drawn here from a seed: one thing of known class in a known box, on one of several grounds, in a quarter of them
beside another thing. A test draws some of them again and compares. The bundled model, which has seen photographs only, gets about
a third of them right, so that there is something to find in every list.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFilter

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run from a checkout that is not installed

import vit_viz
from vit_viz.surveys import manifest
from vit_viz.surveys.local import Machine

HEIGHT, WIDTH = 160, 192
SMOOTH = 3
"""Scenes are drawn this many times larger and reduced, which smooths their edges."""
PER_CLASS = 8
SEED = 19
METHODS = ("relevance", "gradient_rollout", "gradcam", "rollout", "attention")
QUALITY = 82
LIST = "annotations.json"

Colour = tuple[int, int, int]
Point = tuple[float, float]
Box = tuple[int, int, int, int]


class Thing:
    """A surface for one thing, measured in shares of its own square: (0, 0) left above, (1, 1) right below."""

    def __init__(self, side: int) -> None:
        self.image = Image.new("RGBA", (side, side), (0, 0, 0, 0))
        self._draw, self._side = ImageDraw.Draw(self.image), side

    def disc(self, x: float, y: float, radius: float, colour: Colour, *, flat: float = 1.0) -> None:
        """An ellipse around a point, `flat` times as high as it is wide."""
        self._draw.ellipse(
            self._of((x - radius, y - radius * flat, x + radius, y + radius * flat)), fill=colour
        )

    def box(
        self, left: float, top: float, right: float, bottom: float, colour: Colour, round_by: float = 0.0
    ) -> None:
        """A rectangle."""
        self._draw.rounded_rectangle(self._of((left, top, right, bottom)), round_by * self._side, fill=colour)

    def polygon(self, points: Sequence[Point], colour: Colour) -> None:
        """What lies between some points."""
        self._draw.polygon([(x * self._side, y * self._side) for x, y in points], fill=colour)

    def line(self, points: Sequence[Point], colour: Colour, width: float) -> None:
        """From point to point."""
        self._draw.line(
            [(x * self._side, y * self._side) for x, y in points],
            fill=colour,
            width=max(1, round(width * self._side)),
            joint="curve",
        )

    def arc(self, x: float, y: float, radius: float, ends: Point, colour: Colour, width: float) -> None:
        """Part of a circle, from one angle to another in degrees, clockwise from the right."""
        place = self._of((x - radius, y - radius, x + radius, y + radius))
        self._draw.arc(place, *ends, fill=colour, width=max(1, round(width * self._side)))

    def _of(self, shares: Sequence[float]) -> tuple[float, float, float, float]:
        left, top, right, bottom = (share * self._side for share in shares)
        return left, top, right, bottom


def shaded(colour: Colour, by: float) -> Colour:
    """Darker (by < 0) or lighter (by > 0)."""
    other = 255 if by > 0 else 0
    return tuple(round(one + abs(by) * (other - one)) for one in colour)  # type: ignore[return-value]


# --- things


def lemon(t: Thing, shade: float) -> None:
    yellow = shaded((246, 214, 50), shade)
    t.disc(0.5, 0.5, 0.42, yellow, flat=0.74)
    t.polygon([(0.04, 0.5), (0.16, 0.38), (0.16, 0.62)], yellow)
    t.polygon([(0.97, 0.5), (0.84, 0.36), (0.84, 0.64)], yellow)
    t.disc(0.40, 0.36, 0.14, shaded(yellow, 0.35), flat=0.5)


def orange(t: Thing, shade: float) -> None:
    colour = shaded((240, 140, 30), shade)
    t.disc(0.5, 0.53, 0.44, colour)
    t.disc(0.36, 0.36, 0.12, shaded(colour, 0.35))
    t.disc(0.5, 0.11, 0.04, (70, 90, 40))
    t.polygon([(0.5, 0.12), (0.72, 0.02), (0.66, 0.16)], (70, 130, 60))


def banana(t: Thing, shade: float) -> None:
    yellow = shaded((244, 208, 63), shade)
    outer = [
        (0.5 + 0.47 * math.cos(a), 0.18 + 0.62 * math.sin(a)) for a in np.linspace(0.15, math.pi - 0.15, 30)
    ]
    inner = [
        (0.5 + 0.40 * math.cos(a), 0.14 + 0.36 * math.sin(a)) for a in np.linspace(math.pi - 0.15, 0.15, 30)
    ]
    t.polygon([*outer, *inner], yellow)
    t.line(
        [(0.5 + 0.44 * math.cos(a), 0.16 + 0.50 * math.sin(a)) for a in np.linspace(0.3, math.pi - 0.3, 30)],
        shaded(yellow, -0.2),
        0.02,
    )
    t.box(0.03, 0.14, 0.12, 0.26, (96, 78, 40), 0.02)


def basketball(t: Thing, shade: float) -> None:
    colour, seam = shaded((220, 110, 40), shade), (40, 30, 28)
    t.disc(0.5, 0.5, 0.47, colour)
    t.line([(0.03, 0.5), (0.97, 0.5)], seam, 0.03)
    t.line([(0.5, 0.03), (0.5, 0.97)], seam, 0.03)
    t.arc(-0.12, 0.5, 0.42, (-62, 62), seam, 0.03)
    t.arc(1.12, 0.5, 0.42, (118, 242), seam, 0.03)


def stopwatch(t: Thing, shade: float) -> None:
    rim = shaded((170, 175, 182), shade)
    t.box(0.44, 0.0, 0.56, 0.16, rim, 0.02)
    t.disc(0.5, 0.56, 0.43, rim)
    t.disc(0.5, 0.56, 0.36, (248, 246, 240))
    for hour in range(12):
        a = hour * math.pi / 6
        t.line(
            [
                (0.5 + 0.30 * math.sin(a), 0.56 - 0.30 * math.cos(a)),
                (0.5 + 0.35 * math.sin(a), 0.56 - 0.35 * math.cos(a)),
            ],
            (40, 40, 44),
            0.02,
        )
    t.line([(0.5, 0.56), (0.5, 0.30)], (40, 40, 44), 0.025)
    t.line([(0.5, 0.56), (0.68, 0.66)], (196, 61, 48), 0.02)


def ladybug(t: Thing, shade: float) -> None:
    red = shaded((205, 40, 30), shade)
    t.disc(0.5, 0.22, 0.18, (25, 25, 28), flat=0.8)
    for y in (0.38, 0.56, 0.74):
        t.line([(0.06, y - 0.06), (0.5, y), (0.94, y - 0.06)], (25, 25, 28), 0.03)
    t.disc(0.5, 0.57, 0.39, red)
    t.line([(0.5, 0.20), (0.5, 0.95)], (25, 25, 28), 0.025)
    for x, y, r in (
        (0.3, 0.42, 0.075),
        (0.7, 0.42, 0.075),
        (0.27, 0.66, 0.08),
        (0.73, 0.66, 0.08),
        (0.42, 0.82, 0.05),
        (0.58, 0.82, 0.05),
    ):
        t.disc(x, y, r, (25, 25, 28))
    t.disc(0.42, 0.19, 0.035, (245, 245, 240))
    t.disc(0.58, 0.19, 0.035, (245, 245, 240))


def bus(t: Thing, shade: float) -> None:
    yellow = shaded((245, 180, 30), shade)
    t.box(0.02, 0.28, 0.98, 0.74, yellow, 0.05)
    t.box(0.78, 0.46, 1.0, 0.74, yellow, 0.04)
    for x in (0.08, 0.25, 0.42, 0.59):
        t.box(x, 0.34, x + 0.13, 0.48, (60, 80, 100), 0.01)
    t.box(0.80, 0.34, 0.95, 0.48, (60, 80, 100), 0.01)
    t.box(0.02, 0.55, 0.98, 0.575, (30, 30, 30))
    t.box(0.02, 0.63, 0.98, 0.65, (30, 30, 30))
    for x in (0.22, 0.78):
        t.disc(x, 0.75, 0.105, (30, 30, 32))
        t.disc(x, 0.75, 0.05, (150, 150, 150))


def goldfish(t: Thing, shade: float) -> None:
    colour = shaded((240, 110, 30), shade)
    t.polygon([(0.62, 0.5), (0.98, 0.22), (0.90, 0.5), (0.98, 0.78)], shaded(colour, 0.2))
    t.polygon([(0.30, 0.32), (0.52, 0.12), (0.62, 0.36)], shaded(colour, 0.2))
    t.polygon([(0.36, 0.66), (0.52, 0.86), (0.58, 0.62)], shaded(colour, 0.2))
    t.disc(0.38, 0.5, 0.36, colour, flat=0.58)
    t.disc(0.32, 0.56, 0.22, shaded(colour, 0.3), flat=0.4)
    t.disc(0.16, 0.45, 0.045, (250, 250, 245))
    t.disc(0.16, 0.45, 0.025, (20, 20, 20))


def hourglass(t: Thing, shade: float) -> None:
    wood, sand = shaded((130, 82, 46), shade), (226, 192, 120)
    t.polygon([(0.26, 0.1), (0.74, 0.1), (0.53, 0.5), (0.74, 0.9), (0.26, 0.9), (0.47, 0.5)], (214, 230, 236))
    t.polygon([(0.36, 0.28), (0.64, 0.28), (0.52, 0.5), (0.48, 0.5)], sand)
    t.polygon([(0.28, 0.9), (0.72, 0.9), (0.5, 0.68)], sand)
    t.line([(0.5, 0.5), (0.5, 0.72)], sand, 0.015)
    t.box(0.16, 0.02, 0.84, 0.11, wood, 0.02)
    t.box(0.16, 0.89, 0.84, 0.98, wood, 0.02)
    t.box(0.18, 0.1, 0.225, 0.9, wood)
    t.box(0.775, 0.1, 0.82, 0.9, wood)


def web(t: Thing, shade: float) -> None:
    silk = shaded((225, 230, 235), min(0.0, shade))
    angles = [k * math.pi / 6 for k in range(12)]
    for a in angles:
        t.line([(0.5, 0.5), (0.5 + 0.49 * math.cos(a), 0.5 + 0.49 * math.sin(a))], silk, 0.008)
    for ring in range(1, 9):
        r = 0.055 * ring
        points = [(0.5 + r * math.cos(a), 0.5 + r * math.sin(a)) for a in [*angles, angles[0]]]
        t.line(points, silk, 0.007)


def obelisk(t: Thing, shade: float) -> None:
    stone = shaded((200, 188, 165), shade)
    t.polygon([(0.44, 0.12), (0.5, 0.0), (0.5, 0.9), (0.38, 0.9)], stone)
    t.polygon([(0.5, 0.0), (0.56, 0.12), (0.62, 0.9), (0.5, 0.9)], shaded(stone, -0.25))
    t.box(0.28, 0.88, 0.72, 1.0, shaded(stone, -0.1))


def candle(t: Thing, shade: float) -> None:
    t.disc(0.5, 0.18, 0.16, (250, 190, 80), flat=1.1)
    t.polygon([(0.5, 0.02), (0.58, 0.2), (0.5, 0.28), (0.42, 0.2)], (255, 240, 170))
    t.line([(0.5, 0.24), (0.5, 0.34)], (40, 35, 30), 0.02)
    t.box(0.36, 0.34, 0.64, 0.96, shaded((240, 228, 205), shade), 0.02)
    t.disc(0.5, 0.35, 0.14, shaded((250, 242, 225), shade), flat=0.25)


THINGS: dict[str, Callable[[Thing, float], None]] = {
    "lemon": lemon,
    "orange": orange,
    "banana": banana,
    "basketball": basketball,
    "stopwatch": stopwatch,
    "ladybug": ladybug,
    "school bus": bus,
    "goldfish": goldfish,
    "hourglass": hourglass,
    "spider web": web,
    "obelisk": obelisk,
    "candle": candle,
}


# --- grounds


def plain(chance: np.random.Generator) -> Image.Image:
    light, dark = chance.integers(150, 245, 3), chance.integers(60, 150, 3)
    share = np.linspace(0, 1, HEIGHT * SMOOTH)[:, None, None]
    return _picture(light + share * (dark - light) * chance.uniform(0.1, 0.9))


def meadow(chance: np.random.Generator) -> Image.Image:
    green = np.array([70, 120, 50]) + chance.integers(-15, 16, 3)
    return _picture(green + 34 * _noise(chance, 70)[..., None] + 26 * _noise(chance, 8)[..., None])


def sky(chance: np.random.Generator) -> Image.Image:
    high, low = np.array([70, 130, 200]), np.array([190, 215, 235])
    share = np.linspace(0, 1, HEIGHT * SMOOTH)[:, None, None]
    clouds = np.clip(_noise(chance, 9), 0.25, 1)[..., None] - 0.25
    return _picture(high + share * (low - high) + 90 * clouds)


def planks(chance: np.random.Generator) -> Image.Image:
    wood = np.array([150, 105, 65]) + chance.integers(-25, 26, 3)
    rows = np.arange(HEIGHT * SMOOTH)
    board = HEIGHT * SMOOTH // 5
    tint = chance.uniform(-22, 22, 6)[rows // board]
    seams = np.where(rows % board < 5, -55, 0)
    grain = 14 * np.sin(rows / 4.5 + 9 * chance.random())
    return _picture(wood + (tint + seams + grain)[:, None, None] + 10 * _noise(chance, 40)[..., None])


def tiles(chance: np.random.Generator) -> Image.Image:
    light, dark = chance.integers(170, 245, 3), chance.integers(40, 140, 3)
    side = int(chance.integers(10, 28)) * SMOOTH
    rows, cols = np.indices((HEIGHT * SMOOTH, WIDTH * SMOOTH))
    return _picture(np.where(((rows // side + cols // side) % 2)[..., None] == 1, light, dark))


GROUNDS = (plain, meadow, sky, planks, tiles)


def _noise(chance: np.random.Generator, cells: int) -> np.ndarray:
    """Smooth noise in about [-1, 1], so many cells across the width."""
    coarse = chance.uniform(-1, 1, (max(2, cells * HEIGHT // WIDTH), cells)).astype(np.float32)
    fine = Image.fromarray(coarse).resize((WIDTH * SMOOTH, HEIGHT * SMOOTH), Image.Resampling.BICUBIC)
    return np.asarray(fine, np.float64)


def _picture(values: np.ndarray) -> Image.Image:
    shape = (HEIGHT * SMOOTH, WIDTH * SMOOTH, 3)
    return Image.fromarray(np.broadcast_to(values, shape).round().clip(0, 255).astype(np.uint8))


# --- scenes


@dataclass(frozen=True)
class Scene:
    """A photo with its answer: the class, and the box that the thing fills, (left, top, right, bottom) in pixels."""

    photo: Image.Image
    label: str
    box: Box


def scene(label: str, number: int) -> Scene:
    """The scene of this number of a class; the same every time."""
    chance = np.random.default_rng([SEED, list(THINGS).index(label), number])
    ground = GROUNDS[(number + list(THINGS).index(label)) % len(GROUNDS)](chance)
    side = chance.uniform(0.4, 0.82) * HEIGHT
    spot = (chance.uniform(0.02, 0.98) * (WIDTH - side), chance.uniform(0.02, 0.98) * (HEIGHT - side))
    if number % 4 == 3:
        side, spot = _beside_another(ground, label, chance)
    box = _placed(ground, label, side, spot, chance)
    photo = ground.reduce(SMOOTH).filter(ImageFilter.GaussianBlur(0.4))
    grain = chance.normal(0, 3.0, (HEIGHT, WIDTH, 1))
    return Scene(
        Image.fromarray((np.asarray(photo) + grain).round().clip(0, 255).astype(np.uint8)), label, box
    )


def _beside_another(ground: Image.Image, label: str, chance: np.random.Generator) -> tuple[float, Point]:
    """Draws another thing into one half; returns side and spot for the right one in the other half."""
    other = str(chance.choice([name for name in THINGS if name != label]))
    is_left = bool(chance.integers(2))
    half, top = WIDTH / 2, HEIGHT * 0.25
    _placed(ground, other, half * 0.95, (0.0 if is_left else half, chance.uniform(0, 2 * top * 0.6)), chance)
    return half * 0.8, (half * 1.05 if is_left else half * 0.1, chance.uniform(0.2, 1.2) * top)


def _placed(ground: Image.Image, label: str, side: float, spot: Point, chance: np.random.Generator) -> Box:
    """Draws a thing, turned a little; returns the box of what it covers."""
    thing = Thing(round(side * SMOOTH))
    THINGS[label](thing, chance.uniform(-0.25, 0.25))
    turned = thing.image.rotate(chance.uniform(-18, 18), Image.Resampling.BICUBIC)
    if label not in ("school bus", "obelisk", "candle") and chance.random() < 0.5:
        turned = turned.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    corner = (round(spot[0] * SMOOTH), round(spot[1] * SMOOTH))
    shadow = Image.new("RGBA", turned.size, (0, 0, 0, 90))
    shadow.putalpha(
        turned.getchannel("A").point(lambda a: a * 90 // 255).filter(ImageFilter.GaussianBlur(3 * SMOOTH))
    )
    ground.paste(shadow, (corner[0] + 2 * SMOOTH, corner[1] + 4 * SMOOTH), shadow)
    ground.paste(turned, corner, turned)
    left, top, right, bottom = turned.getchannel("A").point(lambda a: 255 * (a > 60)).getbbox() or (
        0,
        0,
        1,
        1,
    )
    sides = (corner[0] + left, corner[1] + top, corner[0] + right, corner[1] + bottom)
    limits = (WIDTH, HEIGHT, WIDTH, HEIGHT)
    whole = [math.floor(one / SMOOTH) for one in sides[:2]] + [math.ceil(one / SMOOTH) for one in sides[2:]]
    return tuple(min(max(one, 0), most) for one, most in zip(whole, limits, strict=True))  # type: ignore[return-value]


# --- the survey


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "assets" / "example")
    parser.add_argument(
        "--deletion", action="store_true", help="also deletion and insertion: 15 s per scene, not 1"
    )
    arguments = parser.parse_args()
    out: Path = arguments.out
    shutil.rmtree(out, ignore_errors=True)
    save_scenes(out / "photos")
    torch.set_num_threads(1)
    done = vit_viz.survey(
        "mini",
        out / "photos" / LIST,
        out / "survey",
        methods=METHODS,
        deletion=arguments.deletion,
        engine=Machine(at_once=8, workers=0),
    )
    (out / "survey" / "_survey.lock").unlink(missing_ok=True)
    portable(out / "survey")
    size = sum(file.stat().st_size for file in out.rglob("*") if file.is_file())
    print(f"{done.num_photos} photos, top-1 and top-5 {done.accuracy}, {size / 2**20:.2f} MiB")


def save_scenes(folder: Path) -> None:
    """All scenes as WebP, with their list."""
    folder.mkdir(parents=True)
    rows = []
    for number in range(PER_CLASS):
        for label in THINGS:
            drawn = scene(label, number)
            name = f"{label.replace(' ', '_')}_{number}.webp"
            drawn.photo.save(folder / name, quality=QUALITY, method=6)
            rows.append({"file": name, "label": label, "boxes": [drawn.box]})
    (folder / LIST).write_text(json.dumps(rows, indent=0) + "\n", encoding="utf-8")


def portable(folder: Path) -> None:
    """Leaves out of _survey.json where this machine keeps its files."""
    file = folder / manifest.FILE
    said = json.loads(file.read_text(encoding="utf-8"))
    said["request"]["photos"] = f"photos/{LIST}"
    file.write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
