"""The lists of photos that people have: CSV, JSON, COCO's and VOC's annotations -> labels and boxes by the name of the photo.

Boxes are (left, top, right, bottom) in pixels of the upright photo; right and bottom are the first pixels that do not belong to it.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from vit_viz.analyses.localisation import Box
from vit_viz.errors import ParameterError
from vit_viz.surveys.photos import Note

ENDINGS = (".csv", ".json")
"""Of files that are lists of photos."""

_FILE = ("file", "path", "file_name", "filename", "image")
_LABEL = ("synset", "label", "class", "class_name")
_INDEX = "class_index"
_BOXES = ("boxes_xyxy", "boxes")
_SIDES = ("left", "top", "right", "bottom")


def notes_in(source: str | Path) -> dict[str, Note]:
    """What a list says of each photo, by the photo's name, in its order.

    - CSV with a header: file; label (or synset, class, class_index); boxes as JSON, or the columns left, top, right, bottom, one
      row per box.
    - JSON: a list of objects with the same names, or COCO's object with images, annotations and categories.
    - VOC: a folder of XML files.
    """
    place = Path(source)
    try:
        if place.is_dir():
            notes = _voc(place)
        elif place.suffix.lower() == ".csv":
            with place.open(newline="", encoding="utf-8-sig") as file:
                notes = _rows(csv.DictReader(file), place.name)
        else:
            notes = _json(json.loads(place.read_text(encoding="utf-8-sig")), place.name)
    except (OSError, UnicodeDecodeError, csv.Error, json.JSONDecodeError, ElementTree.ParseError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ParameterError(f"{place.name} cannot be read as a list of photos: {reason}.") from error
    if not notes:
        raise ParameterError(f"{place.name} names no photo.")
    return notes


def _json(content: Any, place: str) -> dict[str, Note]:
    if isinstance(content, dict) and {"images", "annotations"} <= set(content):
        return _coco(content, place)
    if not isinstance(content, list) or not all(isinstance(row, dict) for row in content):
        raise ParameterError(f"{place} is neither a list of objects nor COCO's annotations.")
    return _rows(content, place)


def _rows(rows: Iterable[Mapping[str, Any]], place: str) -> dict[str, Note]:
    """One row per photo, or several of one photo with a box each."""
    notes: dict[str, Note] = {}
    for number, row in enumerate(rows, start=1):
        where = f"{place}, entry {number}"
        file = _first(row, _FILE)
        if not file:
            raise ParameterError(f"{where}, names no file: it needs {' or '.join(_FILE[:2])}.")
        before = notes.get(str(file), Note())
        index = _first(row, (_INDEX,))
        if index is not None and not str(index).isdecimal():
            raise ParameterError(f"{where}: {_INDEX} is a whole number from 0, not {str(index)[:40]!r}.")
        label = _first(row, (*_LABEL, _INDEX))
        notes[str(file)] = Note(
            before.label if label is None else str(label),
            before.boxes + _boxes_of(row, where),
            before.class_index if index is None else int(index),
        )
    return notes


def _boxes_of(row: Mapping[str, Any], where: str) -> tuple[Box, ...]:
    cell = _first(row, _BOXES)
    if cell is None:
        sides = [row.get(side) for side in _SIDES]
        return () if any(side in (None, "") for side in sides) else (_box(sides, where),)
    try:
        boxes = json.loads(cell) if isinstance(cell, str) else cell
    except json.JSONDecodeError as error:
        raise ParameterError(f"{where}: boxes are lists of four numbers, not {cell[:40]!r}.") from error
    if not isinstance(boxes, list):
        raise ParameterError(f"{where}: boxes are lists of four numbers, not {str(cell)[:40]!r}.")
    return tuple(_box(box, where) for box in boxes)


def _box(sides: Any, where: str) -> Box:
    """Four finite numbers that span an area."""
    try:
        left, top, right, bottom = (float(side) for side in sides)
    except (TypeError, ValueError) as error:
        raise ParameterError(
            f"{where}: a box is [left, top, right, bottom], not {str(sides)[:60]}."
        ) from error
    if not all(map(math.isfinite, (left, top, right, bottom))) or right <= left or bottom <= top:
        raise ParameterError(
            f"{where}: a box has its left before its right and its top above its bottom, not {str(sides)[:60]}."
        )
    return left, top, right, bottom


def _coco(content: Mapping[str, Any], place: str) -> dict[str, Note]:
    """Boxes are [left, top, width, height]; the label is the category, where all objects of a photo have the same."""
    try:
        names = {one["id"]: str(one["name"]) for one in content.get("categories", ())}
        files = {one["id"]: str(one["file_name"]) for one in content["images"]}
        boxes: dict[str, list[Box]] = {file: [] for file in files.values()}
        labels: dict[str, set[str]] = {file: set() for file in files.values()}
        for number, one in enumerate(content["annotations"], start=1):
            file = files[one["image_id"]]
            left, top, width, height = one["bbox"]
            sides = (left, top, left + width, top + height)
            boxes[file].append(_box(sides, f"{place}, annotation {number}"))
            labels[file].add(names.get(one.get("category_id"), ""))
    except ParameterError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise ParameterError(
            f"{place} looks like COCO's annotations, but is not whole: {error!r}."
        ) from error
    return {file: Note(_only(labels[file]), tuple(boxes[file])) for file in files.values()}


def _voc(folder: Path) -> dict[str, Note]:
    """Pixels count from 1 there, and the last one belongs to the box."""
    notes = {}
    for path in sorted(folder.glob("*.xml")):
        text = path.read_text(encoding="utf-8")
        if "<!DOCTYPE" in text or "<!ENTITY" in text:
            raise ParameterError(f"{path.name} declares entities, which annotations have no use for.")
        root = ElementTree.fromstring(text)
        boxes, labels = [], set()
        for thing in root.iter("object"):
            sides = [thing.findtext(f"bndbox/{side}") for side in ("xmin", "ymin", "xmax", "ymax")]
            boxes.append(_box([_from_zero(side) for side in sides[:2]] + sides[2:], path.name))
            labels.add(thing.findtext("name") or "")
        name = root.findtext("filename") or f"{path.stem}.jpg"
        notes[name] = Note(_only(labels), tuple(boxes))
    return notes


def _from_zero(side: str | None) -> str | float | None:
    """A pixel that was counted from 1; what is no number stays as it is, for the sentence that refuses it."""
    try:
        return float(side or "") - 1
    except ValueError:
        return side


def _only(labels: set[str]) -> str:
    return next(iter(labels)) if len(labels) == 1 else ""


def _first(row: Mapping[str, Any], names: Iterable[str]) -> Any:
    """The first of these fields that says something."""
    return next((row[name] for name in names if row.get(name) not in (None, "")), None)
