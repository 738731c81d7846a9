"""Writing: the tables of a batch as Parquet files that are there together or not at all; the only door to pyarrow.

A batch is a folder `batch=000012` with one file per level. It is written under a temporary name, flushed to the disk, and then
renamed, so that whatever ends the process leaves whole batches only.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from vit_viz.lazy import extra
from vit_viz.surveys.columns import TABLES, Column, Files, Level, Rows, Tables

with extra("survey", needed_for="A survey"):
    import pyarrow as pa
    import pyarrow.parquet as pq

_BATCH = re.compile(r"batch=(\d{6,})")
_HALF = ".half"

_TYPES = {
    "text": pa.string(),
    "int": pa.int32(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bool": pa.bool_(),
    "bytes": pa.binary(),
    "ints": pa.list_(pa.int32()),
    "floats": pa.list_(pa.float32()),
    "doubles": pa.list_(pa.float64()),
    "texts": pa.list_(pa.string()),
}


def encoded(tables: Tables) -> Files:
    """Tables as the content of Parquet files; the same wherever it is made."""
    return {level: _encoded(level, rows) for level, rows in tables.items()}


def write_batch(folder: Path, number: int, files: Files) -> None:
    """Write one batch of a survey, whole or not at all; one that is there already is replaced.

    Raises:
        OSError: it cannot be written; nothing of it is left.
    """
    place = folder / f"batch={number:06d}"
    half = folder / f"{place.name}{_HALF}"
    try:
        shutil.rmtree(half, ignore_errors=True)
        half.mkdir(parents=True)
        for level, content in files.items():
            _write(half / f"{level}.parquet", content)
        _flush(half)
        shutil.rmtree(place, ignore_errors=True)
        half.rename(place)
        _flush(folder)
    except BaseException:
        shutil.rmtree(half, ignore_errors=True)
        raise


def batches(folder: Path) -> set[int]:
    """Numbers of the batches that are there."""
    matches = (_BATCH.fullmatch(place.name) for place in folder.iterdir()) if folder.is_dir() else ()
    return {int(match[1]) for match in matches if match}


def remove_halves(folder: Path) -> None:
    """Take away what a process that was killed had half written."""
    for place in folder.glob(f"batch=*{_HALF}"):
        shutil.rmtree(place, ignore_errors=True)


def table(folder: Path, level: Level, columns: Iterable[str] | None = None) -> pa.Table:
    """One level of all batches, in their order."""
    wanted = None if columns is None else list(columns)
    parts = [table_of(folder, number, level, wanted) for number in sorted(batches(folder))]
    schema = schema_of(level)
    if wanted is not None:
        schema = pa.schema([schema.field(name) for name in wanted])
    return pa.concat_tables(parts) if parts else schema.empty_table()


def thumbnails(folder: Path, number: int) -> dict[str, bytes]:
    """The thumbnails of a batch as WebP, by photo; none where the survey keeps none."""
    file = folder / f"batch={number:06d}" / "thumbnails.parquet"
    if not file.is_file():
        return {}
    rows = pq.ParquetFile(file).read(columns=["photo", "webp"]).to_pydict()
    return dict(zip(rows["photo"], rows["webp"], strict=True))


def table_of(folder: Path, number: int, level: Level, columns: Iterable[str] | None = None) -> pa.Table:
    """One level of one batch."""
    file = folder / f"batch={number:06d}" / f"{level}.parquet"
    return pq.ParquetFile(file).read(columns=None if columns is None else list(columns))


def schema_of(level: Level) -> pa.Schema:
    """The columns of a level, with unit and meaning in their metadata."""
    return pa.schema([_field(column) for column in TABLES[level]])


def _field(column: Column) -> pa.Field:
    return pa.field(
        column.name, _TYPES[column.kind], metadata={"unit": column.unit, "meaning": column.meaning}
    )


def _encoded(level: Level, rows: Rows) -> bytes:
    schema = schema_of(level)
    arrays = [pa.array(rows.get(field.name, ()), type=field.type) for field in schema]
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
