"""Results as files: PNG, animated GIF and WebP, CSV and NPZ. Each carries the same record of itself."""

from __future__ import annotations

import csv
import io
import json
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image, PngImagePlugin, UnidentifiedImageError

from vit_viz.answer import Answer, Provenance, Table, arrays_of, joined_tables
from vit_viz.errors import ExportError
from vit_viz.figures.record import KEY, parsed, record_text, xmp
from vit_viz.geometry import CropBox
from vit_viz.results import PatchMap
from vit_viz.session.serialization import facts_of

Made = Mapping[str, Any] | None
Recorded = tuple[Answer, str]
"""An answer with its record, as `record_text` makes it."""

_MOVING_PIXELS = 1 << 26  # frames times pixels: beyond it a browser stalls
_MOVING_SIDE = 900
_FRAME_MS = 800
_ANSWERS = "answers"  # in the record of a file about several photos: what it says of each
_NPZ_BYTES = 1 << 30  # the attention of all heads of a ViT-L at 1024 patches for one query is 1.6 MB
_NPZ_FACTS_BYTES = 1 << 26
_BROKEN = (
    *(OSError, ValueError, EOFError, KeyError, MemoryError, zipfile.BadZipFile, zlib.error),
    *(AttributeError, RuntimeError, SyntaxError, TypeError),  # of a file that only looks like one
)
"""What reading a broken NPZ raises."""

MOST_LINES = 1 << 21
"""Of a table: more takes longer than anybody waits, and no reader of tables opens it."""


def png(
    picture: Image.Image,
    provenance: Provenance,
    *,
    title: str = "",
    caption: str = "",
    dpi: float | None = None,
    made: Made = None,
) -> bytes:
    """A picture as PNG whose text fields say what it is and where it came from.

    Args:
        title: kept as the field Title, any letters.
        caption: kept as the field Description, any letters.
        dpi: pixels that belong on an inch.
        made: as `record_text` takes it.
    """
    info = PngImagePlugin.PngInfo()
    for key, text in (("Title", title), ("Description", caption), (KEY, record_text(provenance, made))):
        if text:
            info.add_itxt(key, text)
    info.add_text("Software", "vit_viz")
    density = {} if dpi is None else {"dpi": (dpi, dpi)}
    return _saved(picture, "PNG", pnginfo=info, compress_level=4, **density)


def png_provenance(file: bytes) -> dict[str, Any]:
    """The provenance in a PNG that `png` wrote."""
    return _picture_record(file, "PNG", KEY)


def gif_provenance(file: bytes) -> dict[str, Any]:
    """The provenance in an animation that `animation` wrote."""
    return _picture_record(file, "GIF", "comment")


def _picture_record(file: bytes, form: str, key: str) -> dict[str, Any]:
    try:
        with Image.open(io.BytesIO(file), formats=(form,)) as picture:
            return parsed(picture.info.get(key), form)
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError) as error:
        raise ExportError(f"This file is not a {form} that can be read.") from error


def animation(
    frames: Sequence[Image.Image], provenance: Provenance, form: Literal["gif", "webp"], *, made: Made = None
) -> bytes:
    """Pictures of equal size as an endless animation, for example one per layer.

    Args:
        frames: at least one; larger ones are reduced.
        form: GIF has 255 colours for each frame; WebP has all, and makes a smaller file.
    """
    if not frames:
        raise ExportError("An animation needs at least one frame.")
    if len({frame.size for frame in frames}) > 1:
        raise ExportError("The frames of an animation need the same size.")
    reduced = [_reduced(frame.convert("RGB")) for frame in frames]
    pixels = len(reduced) * reduced[0].width * reduced[0].height
    if pixels > _MOVING_PIXELS:
        raise ExportError(f"An animation has at most {_MOVING_PIXELS} pixels in all frames, not {pixels}.")
    record = record_text(provenance, made)
    how: dict[str, Any] = {"comment": record.encode("ascii")}
    if form == "gif":
        # each has 255 colours of its own, dithered so that colour bars stay smooth
        dither = Image.Dither.FLOYDSTEINBERG
        reduced = [frame.quantize(palette=frame.quantize(255), dither=dither) for frame in reduced]
    else:
        how = {"quality": 88, "method": 4, "xmp": xmp(record).encode()}
    how |= {"save_all": True, "append_images": reduced[1:], "duration": _FRAME_MS, "loop": 0}
    return _saved(reduced[0], form.upper(), **how)


def npz(answer: Answer, record: str) -> bytes:
    """The arrays of an answer in full precision, with everything that is not an array as JSON in the entry `vit_viz`.

    Read it with numpy.load(file, allow_pickle=False); arrays have the names of the answer's fields, "faithfulness.deletion.y" where
    results stand within results.

    Args:
        record: as `record_text` makes it.
    """
    return _npz_file(_npz_facts(answer, record), arrays_of(answer))


def npz_of_photos(answers: Mapping[str, Recorded]) -> bytes:
    """The answers to one question about several photos as `npz` has that about one.

    `photos` holds their names. An array that has one shape for all of them is stacked, [photos, ...]; one whose shape differs is
    not padded but stands for each photo by itself, as "values/NAME". The entry `vit_viz` has the facts of each under "answers".

    Args:
        answers: each with its record, by the name of the photo.
    """
    by_photo = {photo: arrays_of(answer) for photo, (answer, _) in answers.items()}
    arrays: dict[str, NDArray[Any]] = {"photos": np.array(list(answers))}
    for name in dict.fromkeys(name for own in by_photo.values() for name in own):
        parts = {photo: own[name] for photo, own in by_photo.items() if name in own}
        if len(parts) == len(answers) and len({(part.shape, part.dtype) for part in parts.values()}) == 1:
            arrays[name] = np.stack(list(parts.values()))
        else:
            arrays |= {f"{name}/{photo}": part for photo, part in parts.items()}
    facts = {photo: _npz_facts(*recorded) for photo, recorded in answers.items()}
    return _npz_file({_ANSWERS: facts}, arrays)


def _npz_facts(answer: Answer, record: str) -> dict[str, Any]:
    facts: dict[str, Any] = {"kind": type(answer).__name__} | facts_of(answer)
    facts["provenance"] = json.loads(record)
    if isinstance(box := getattr(answer, "crop_box", None), CropBox):
        facts["crop_box"] = box.to_dict()
    return facts


def _npz_file(facts: dict[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    try:
        text = json.dumps(facts, ensure_ascii=True, sort_keys=True)
    except TypeError as error:
        raise ExportError("This answer holds something that cannot be written as NPZ.") from error
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, **{KEY: np.array(text)}, **arrays)
    return file.getvalue()


def npz_contents(
    file: bytes, *, max_bytes: int = _NPZ_BYTES
) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """The arrays, at most so many bytes unpacked, and the facts of a file that `npz` wrote; nothing in it is ever run."""
    arrays = _npz_arrays(file, None, max_bytes)
    text = arrays.pop(KEY, None)
    return arrays, parsed(None if text is None else str(text), "NPZ")


def npz_record(file: bytes) -> dict[str, Any]:
    """The record in a file that `npz` wrote; its arrays are not unpacked."""
    text = _npz_arrays(file, (KEY,), _NPZ_FACTS_BYTES).get(KEY)
    facts = _of_one_photo(parsed(None if text is None else str(text), "NPZ"))
    record = facts.get("provenance")
    if not isinstance(record, dict):
        raise ExportError("This NPZ carries no provenance of vit_viz.")
    return record


def _npz_arrays(file: bytes, wanted: Sequence[str] | None, max_bytes: int) -> dict[str, NDArray[Any]]:
    """The arrays of these names, or all; each entry says how long it is, and zipfile reads no more of it than that."""
    try:
        with zipfile.ZipFile(io.BytesIO(file)) as archive:
            sizes = {entry.filename.removesuffix(".npy"): entry.file_size for entry in archive.infolist()}
            names = [name for name in sizes if wanted is None or name in wanted]
            if sum(sizes[name] for name in names) > max_bytes:
                raise ExportError(
                    f"This NPZ unpacks to more than {max_bytes >> 20} MB, larger than any answer."
                )
        with np.load(io.BytesIO(file), allow_pickle=False) as entries:
            return {name: entries[name] for name in names}
    except _BROKEN as error:
        raise ExportError("This file is not an NPZ that can be read.") from error


def csv_text(answer: Answer, text: str) -> bytes:
    """An answer as a table of one number a line, with its places before it; see `Answer.to_table`.

    Lines that begin with "# " are for people and for `csv_record`: what the numbers are, then the record. Read the rest with
    numpy.genfromtxt(file, delimiter=",", names=True, dtype=None) or pandas.read_csv(file, comment="#").

    Args:
        text: the record, as `record_text` makes it.
    """
    return _csv_file(answer.to_table(), [answer], text)


def csv_of_photos(answers: Mapping[str, Recorded]) -> bytes:
    """Answers to one question, by the photos' names, as `csv_text` has that about one; the first column names the photo."""
    tables = {photo: answer.to_table() for photo, (answer, _) in answers.items()}
    records = {photo: json.loads(record) for photo, (_, record) in answers.items()}
    text = json.dumps({_ANSWERS: records}, sort_keys=True)
    return _csv_file(joined_tables(tables, "photo"), [answer for answer, _ in answers.values()], text)


def _csv_file(table: Table, answers: Sequence[Answer], text: str) -> bytes:
    """A table with what is said of all its answers alike, and with the record, before it."""
    count = sum(values.size for answer in answers for values in arrays_of(answer).values())
    if count > MOST_LINES:
        raise ExportError(f"As a table this would have {count} lines; please save it as NPZ.")
    file = io.StringIO()
    facts = [list(_fact_lines(answer)) for answer in answers]
    for line in (*(line for line in facts[0] if all(line in other for other in facts)), f"{KEY}: {text}"):
        file.write(f"# {line}\n")
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows(table.rows)
    return file.getvalue().encode()


def csv_record(file: bytes) -> dict[str, Any]:
    """The record in a file that `csv_text` wrote."""
    start = f"# {KEY}: ".encode()
    line = next((line for line in file.splitlines()[:64] if line.startswith(start)), None)
    return _of_one_photo(parsed(None if line is None else line[len(start) :], "CSV"))


def _of_one_photo(record: dict[str, Any]) -> dict[str, Any]:
    """A record as it is, unless it is that of several photos."""
    if isinstance(answers := record.get(_ANSWERS), dict):
        raise ExportError(
            f"This file holds the answers about {len(answers)} photos; only a file about one photo can be made again."
        )
    return record


def _fact_lines(answer: Answer) -> Iterable[str]:
    """What the numbers are, one line each."""
    for name in ("method", "caption", "unit", "x_label", "y_label", "note"):
        if value := getattr(answer, name, ""):
            yield f"{name}: {' '.join(str(value).split())}"
    if isinstance(answer, PatchMap):
        beside = {"prefix": answer.prefix, "suffix": answer.suffix}
        yield from (f"{where}: {json.dumps(dict(values))}" for where, values in beside.items() if values)


def _saved(picture: Image.Image, file_format: str, **options: Any) -> bytes:
    file = io.BytesIO()
    try:
        picture.save(file, file_format, **options)
    except (OSError, ValueError) as error:
        raise ExportError(f"The picture could not be written as {file_format}.") from error
    return file.getvalue()


def _reduced(picture: Image.Image) -> Image.Image:
    """The picture, made smaller where its longer side exceeds a limit."""
    factor = _MOVING_SIDE / max(picture.size)
    if factor >= 1:
        return picture
    size = (max(1, round(picture.width * factor)), max(1, round(picture.height * factor)))
    return picture.resize(size, Image.Resampling.LANCZOS)


NUMBERS: dict[str, Callable[[Answer, str], bytes]] = {"csv": csv_text, "npz": npz}
"""The formats that hold numbers, and what writes them: an answer and its record in, bytes out."""
TOGETHER: dict[str, Callable[[Mapping[str, Recorded]], bytes]] = {"csv": csv_of_photos, "npz": npz_of_photos}
"""The same for several photos: answers and their records by the photo's name in, bytes out."""
