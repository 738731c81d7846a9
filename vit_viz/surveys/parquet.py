"""Writing: the tables of a batch as Parquet files that are there together or not at all; the only door to pyarrow.

A batch is two folders: `batch=000012` with the table of its photos, and `_batch=000012` with its other tables and its record, which
whoever reads the whole survey as one folder of Parquet passes over. Both are written under temporary names, flushed to the disk,
and then renamed, the photos last, so that whatever ends the process leaves whole batches only.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from vit_viz.errors import ParameterError
from vit_viz.lazy import extra
from vit_viz.surveys.columns import TABLES, Files, Level, Rows, Tables
from vit_viz.surveys.names import shown

with extra("survey", needed_for="A survey"):
    import pyarrow as pa
    import pyarrow.parquet as pq

RECORD = "record.json"

_BATCH = re.compile(r"batch=(\d{6,})")
_HALF = ".half"

_TYPES = {
    "text": pa.string(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bool": pa.bool_(),
    "bytes": pa.binary(),
    "ints": pa.list_(pa.int32()),
    "floats": pa.list_(pa.float32()),
    "doubles": pa.list_(pa.float64()),
    "texts": pa.list_(pa.string()),
}


# --- writing


def encoded(tables: Tables) -> Files:
    """Tables as the content of Parquet files; the same wherever it is made."""
    return {level: _encoded(level, rows) for level, rows in tables.items()}


def write_batch(folder: Path, number: int, files: Files, *, of: str = "") -> None:
    """Write one batch of a survey, `manifest.settings`, whole or not at all; one that is there already is replaced."""
    place = batch_folder(folder, number)
    photos, rest = (folder / f"_{name}={number:06d}{_HALF}" for name in ("photos", "batch"))
    try:
        for half in (photos, rest):
            shutil.rmtree(half, ignore_errors=True)
            half.mkdir(parents=True)
        for level, content in files.items():
            _write((photos if level == "photos" else rest) / f"{level}.parquet", content)
        digests = {level: hashlib.sha256(content).hexdigest() for level, content in files.items()}
        record = json.dumps({"number": number, "of": of, "tables": digests}, indent=1)
        _write(rest / RECORD, f"{record}\n".encode())
        _flush(photos)
        _flush(rest)
        for old in (place, rest_of(place)):
            shutil.rmtree(old, ignore_errors=True)
        rest.rename(rest_of(place))
        photos.rename(place)
        _flush(folder)
    except BaseException:
        for half in (photos, rest):
            shutil.rmtree(half, ignore_errors=True)
        raise


def remove_batch(folder: Path, number: int) -> None:
    """Take a batch away."""
    place = batch_folder(folder, number)
    for one in (place, rest_of(place)):
        if one.is_dir() and not one.is_symlink():
            shutil.rmtree(one)
        else:
            one.unlink(missing_ok=True)


def remove_halves(folder: Path) -> None:
    """Take away what a process that was killed had half written."""
    for name in ("batch", "_batch", "_photos"):
        for place in folder.glob(f"{name}=*{_HALF}"):
            shutil.rmtree(place, ignore_errors=True)


# --- reading


def batches(folder: Path) -> set[int]:
    """Numbers of the batches that are there."""
    matches = (_BATCH.fullmatch(place.name) for place in folder.iterdir()) if folder.is_dir() else ()
    return {int(match[1]) for match in matches if match}


def batch_folder(folder: Path, number: int) -> Path:
    """Where the photos of a batch lie."""
    return folder / f"batch={number:06d}"


def rest_of(place: Path) -> Path:
    """Where the other tables of a batch lie."""
    return place.with_name(f"_{place.name}")


def file_of(place: Path, level: Level) -> Path:
    """The file of a table in the folder of a batch."""
    return (place if level == "photos" else rest_of(place)) / f"{level}.parquet"


def record_of(place: Path) -> dict[str, Any]:
    """What a batch says of itself."""
    try:
        record = json.loads((rest_of(place) / RECORD).read_text(encoding="utf-8"))
        return {"number": int(record["number"]), "of": str(record["of"]), "tables": dict(record["tables"])}
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise ParameterError("its record is missing or cannot be read") from error


def table(folder: Path, level: Level, columns: Iterable[str] | None = None) -> pa.Table:
    """One level of all batches, in their order."""
    wanted = None if columns is None else list(columns)
    parts = [table_of(folder, number, level, wanted) for number in sorted(batches(folder))]
    return pa.concat_tables(parts) if parts else _schema_of(level, wanted).empty_table()


def table_of(folder: Path, number: int, level: Level, columns: Iterable[str] | None = None) -> pa.Table:
    """One level of one batch; columns that it was written without are missing in every row."""
    place = batch_folder(folder, number)
    schema = _schema_of(level, columns)
    try:
        rows = _rows(place, level, record_of(place), schema.names)
    except ParameterError as fault:
        raise ParameterError(f"{shown(str(place))} is damaged: {fault}.") from fault
    arrays = [
        rows[field.name] if field.name in rows.column_names else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def content_of(place: Path, level: Level, record: dict[str, Any]) -> bytes:
    """The bytes of a table, which are those that were written."""
    try:
        content = file_of(place, level).read_bytes()
    except OSError as error:
        raise ParameterError(f"its table {level} is missing or cannot be read") from error
    if record["tables"].get(level) != hashlib.sha256(content).hexdigest():
        raise ParameterError(f"its table {level} is not what was written")
    return content


def thumbnails(folder: Path, number: int) -> dict[str, bytes]:
    """The thumbnails of a batch as WebP, by photo; none where the survey keeps none."""
    if not file_of(batch_folder(folder, number), "thumbnails").is_file():
        return {}
    rows = table_of(folder, number, "thumbnails", ("photo", "webp")).to_pydict()
    return dict(zip(rows["photo"], rows["webp"], strict=True))


def _schema_of(level: Level, columns: Iterable[str] | None = None) -> pa.Schema:
    """The columns of a level, or some of them, with unit and meaning in their metadata."""
    schema = pa.schema(
        [
            pa.field(one.name, _TYPES[one.kind], metadata={"unit": one.unit, "meaning": one.meaning})
            for one in TABLES[level]
        ]
    )
    return schema if columns is None else pa.schema([schema.field(name) for name in columns])


def _rows(place: Path, level: Level, record: dict[str, Any], columns: list[str]) -> pa.Table:
    content = content_of(place, level, record)
    try:
        # In this thread alone: one of Arrow's may let go of the bytes only after the read, and aborts the process where the
        # interpreter is ending by then.
        file = pq.ParquetFile(pa.BufferReader(content), pre_buffer=False)
        there = [name for name in columns if name in file.schema_arrow.names]
        return file.read(columns=there, use_threads=False)
    except (pa.ArrowException, OSError) as error:
        raise ParameterError(f"its table {level} cannot be read as Parquet") from error


# --- files


def _encoded(level: Level, rows: Rows) -> bytes:
    schema = _schema_of(level)
    count = max(map(len, rows.values()), default=0)
    arrays = [
        pa.array(rows[field.name], type=field.type)
        if len(rows.get(field.name, ()))
        else pa.nulls(count, field.type)  # a column that these photos have not
        for field in schema
    ]
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_arrays(arrays, schema=schema), sink, compression="zstd")
    return bytes(sink.getvalue())


def _write(file: Path, content: bytes) -> None:
    with file.open("xb") as opened:
        opened.write(content)
        opened.flush()
        os.fsync(opened.fileno())


def _flush(folder: Path) -> None:
    """A rename is on the disk only when its folder is; where folders cannot be flushed, the system does it in its own time."""
    with contextlib.suppress(PermissionError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
