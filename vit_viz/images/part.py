"""A part of a picture that is looked at in place of the whole: a rectangle in whole pixels of the upright original.

Pixels and not shares: the cut is then the same bytes on every machine, without rounding, and its numbers are those of the file.
"""

from __future__ import annotations

import re

from PIL import Image

from vit_viz.errors import ParameterError

Part = tuple[int, int, int, int]  # top, left, height, width in pixels of the upright original

MIN_PART_SIDE = 32
"""Pixels on each side of a part: what is smaller than two patches of 16 is only a blur when it is enlarged."""

_TEXT = re.compile(r"(\d{1,5}),(\d{1,5}),(\d{1,5}),(\d{1,5})", re.ASCII)


def checked_part(value: object) -> Part:
    """Four whole numbers as a part; whether it lies inside a picture is known when it is cut."""
    numbers = tuple(value) if isinstance(value, tuple | list) else ()
    if len(numbers) != 4 or not all(type(number) is int and number >= 0 for number in numbers):
        raise ParameterError(
            f"A part is top, left, height and width in whole pixels of the photo, not {str(value)[:60]!r}."
        )
    top, left, height, width = numbers
    if min(height, width) < MIN_PART_SIDE:
        raise ParameterError(
            f"A part has at least {MIN_PART_SIDE} x {MIN_PART_SIDE} pixels of the photo, not {height} x {width}."
        )
    return top, left, height, width


def parse_part(text: str) -> Part:
    """Read a part as links write it, "120,40,300,400"."""
    match = _TEXT.fullmatch(text.replace(" ", ""))
    return checked_part(tuple(int(number) for number in match.groups()) if match else text)


def format_part(part: Part) -> str:
    """Write a part as `parse_part` reads it."""
    return ",".join(str(number) for number in part)


def part_size(part: Part | None, whole: tuple[int, int]) -> tuple[int, int]:
    """(height, width) of what is looked at of a picture of this (height, width)."""
    if part is None:
        return whole
    top, left, height, width = part
    if top + height > whole[0] or left + width > whole[1]:
        raise ParameterError(
            f"The part {format_part(part)} (top, left, height, width) reaches beyond the photo, which has {whole[0]} x {whole[1]} "
            "pixels."
        )
    return height, width


def cut(image: Image.Image, part: Part | None) -> Image.Image:
    """The part of an upright picture at its own resolution, bit for bit; the picture itself where no part is meant."""
    if part is None:
        return image
    top, left, _, _ = part
    height, width = part_size(part, (image.height, image.width))
    return image.crop((left, top, left + width, top + height))


def part_words(part: Part) -> str:
    """A part in words, for provenance."""
    top, left, height, width = part
    return f"part of {height} x {width} pixels of the photo, from row {top} and column {left}"
