"""A survey's folder, opened for queries: its tables in memory, read once, and photos chosen by an expression of SQL.

The only door to duckdb. What a visitor writes is one expression (vit_viz.surveys.filters), and the database that evaluates it knows
neither files nor network: its tables are read first, then external access is switched off and the settings are locked.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from vit_viz.errors import BusyError, Cancelled, ParameterError
from vit_viz.lazy import extra
from vit_viz.surveys import filters, manifest
from vit_viz.surveys.checking import check
from vit_viz.surveys.columns import HEAD_COLUMNS, MEASURES, TABLES, Column, Level, photo_columns, photos_sql
from vit_viz.surveys.parquet import batch_folder, file_of

with extra("survey", needed_for="The Survey tab"):
    import duckdb

MOST_HEAD_ROWS = 30_000_000
"""Photos x layers x heads that are opened: about 2 GB of memory. Larger surveys are asked with any reader of Parquet."""

FILTER_SECONDS = 2.0
FILTER_MEMORY = "3GB"
_LOCKED = (
    "max_expression_depth = 150",
    "enable_external_access = false",
    "autoload_known_extensions = false",
    "lock_configuration = true",  # the last
)
_AT_ONCE = 2  # filters that are evaluated at the same moment
_KEPT = 64  # selections that are kept

Rows = NDArray[np.int64]
"""Numbers of photos, ascending."""


@dataclass(frozen=True, eq=False)
class OpenedSurvey:
    """A survey in memory; `open_survey` makes one.

    Args:
        folder: where it lies.
        manifest: _survey.json.
        columns: of photos, which expressions are made of.
        texts: by column, of each photo: its name, its label, what the model answered.
        numbers: by column, of each photo, [photos]; NaN where there is none.
        heads: by measure, [photos, layers, heads]; NaN where there is none.
        peaks: the patch (row, col) that each head's map is highest on, [photos, layers, heads, 2].
        places: of each photo the patch grid (rows, cols), its (height, width), and the region that the model received.
        map_sums: by (layer, head, rows, cols) the number of maps, their sum and the sum of their squared lengths.
        digests: SHA-256 of each photo's file.
        batch_of: number of the batch that each photo is in.
        has_thumbnail: of which photos a small picture is kept, [photos].
        words: what each column is called on the screen, which a filter may call it too.
    """

    folder: Path
    manifest: dict[str, Any]
    columns: tuple[Column, ...]
    texts: dict[str, list[str]]
    numbers: dict[str, NDArray[np.float64]]
    heads: dict[str, NDArray[np.float32]]
    peaks: NDArray[np.int32]
    places: dict[str, NDArray[np.float64]]
    map_sums: dict[tuple[int, int, int, int], tuple[int, NDArray[np.float64], float]]
    digests: tuple[str, ...]
    batch_of: tuple[int, ...]
    has_thumbnail: NDArray[np.bool_]
    words: dict[str, tuple[str, ...]]
    _database: duckdb.DuckDBPyConnection = field(repr=False)
    _asking: threading.BoundedSemaphore = field(default_factory=lambda: threading.BoundedSemaphore(_AT_ONCE))
    _kept: LRUCache[tuple[str, int, int], Rows] = field(default_factory=lambda: LRUCache(_KEPT))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def num_photos(self) -> int:
        """Photos that could be read."""
        return len(self.texts["photo"])

    @property
    def num_layers(self) -> int:
        """Layers of the model."""
        return int(self.peaks.shape[1])

    @property
    def num_heads(self) -> int:
        """Heads of each layer."""
        return int(self.peaks.shape[2])

    @property
    def has_boxes(self) -> bool:
        """Whether boxes are known of any photo."""
        return bool(np.isfinite(self.numbers["object_share"]).any())

    @property
    def has_labels(self) -> bool:
        """Whether of any photo it is known whether the answer is right."""
        return bool(np.isfinite(self.numbers["is_right"]).any())

    @property
    def measures(self) -> tuple[str, ...]:
        """What is known of every head."""
        return tuple(name for name in MEASURES if name != "box_share" or self.has_boxes)

    def checked(self, layer: int, head: int) -> tuple[int, int]:
        """A head of this survey."""
        if not (0 <= layer < self.num_layers and 0 <= head < self.num_heads):
            raise ParameterError(
                f"This survey has no head {head} of layer {layer}: layers are 0-{self.num_layers - 1}, heads "
                f"0-{self.num_heads - 1}."
            )
        return layer, head

    def select(self, where: str = "", *, layer: int = 0, head: int = 0) -> Rows:
        """The photos of which an expression of SQL is true.

        Args:
            where: an expression as after WHERE in SQL, of the columns of photos by name or by their `words`; "" means all.
            layer, head: the head that the columns head_... are of.
        """
        layer, head = self.checked(layer, head)
        if not where.strip():
            return np.arange(self.num_photos)
        if len(where) <= filters.LONGEST:
            where = filters.with_columns(where, self.words)
        checked = filters.checked(
            where, lambda query: str(self._run("SELECT json_serialize_sql(?)", [query])[0][0]), self.words
        )
        key = (checked, layer, head) if filters.HEAD_PREFIX in checked else (checked, 0, 0)
        with self._lock:
            if key in self._kept:
                return self._kept[key]
        of_head = ", ".join(f"h.{name} AS {filters.HEAD_PREFIX}{name}" for name in HEAD_COLUMNS)
        photos = (
            f"SELECT p.*, {of_head} FROM photos p LEFT JOIN heads h "
            f"ON h.row = p.row AND h.layer = {layer} AND h.head = {head}"
        )
        passing = self._run(f"SELECT row FROM ({photos}) AS photos WHERE ({checked}\n) ORDER BY row")
        rows = np.array([row for (row,) in passing], np.int64)
        with self._lock:
            self._kept[key] = rows
        return rows

    def _run(self, query: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """What a query finds, within its limits."""
        if not self._asking.acquire(timeout=FILTER_SECONDS):
            raise BusyError("Too many filters are evaluated at once; please try again.")
        try:
            with self._database.cursor() as cursor, _ended_after(cursor, FILTER_SECONDS):
                lines: list[tuple[Any, ...]] = cursor.execute(query, values).fetchall()
                return lines
        except duckdb.InterruptException as error:
            raise Cancelled(
                f"This filter took longer than {FILTER_SECONDS:g} seconds; please try a simpler one."
            ) from error
        except duckdb.OutOfMemoryException as error:
            raise ParameterError("This filter needs more memory than is available to it.") from error
        except duckdb.Error as error:
            raise ParameterError(
                f"This filter cannot be evaluated: {filters.first_line(str(error))}"
            ) from error
        finally:
            self._asking.release()


@contextmanager
def _ended_after(cursor: duckdb.DuckDBPyConnection, seconds: float) -> Iterator[None]:
    timer = threading.Timer(seconds, cursor.interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def open_survey(folder: str | Path) -> OpenedSurvey:
    """Read the tables of a survey."""
    place = Path(folder)
    described = manifest.read(place)
    checked = check(place)
    checked.refuse_damage()
    numbers = [one.number for one in checked.batches]
    database = duckdb.connect(
        ":memory:", config={"threads": 2, "memory_limit": FILTER_MEMORY, "temp_directory": ""}
    )
    _load(database, place, numbers)
    methods = [
        name for (name,) in database.execute("SELECT DISTINCT method FROM methods ORDER BY method").fetchall()
    ]
    names = [str(name) for name in described.get("classes", ())]
    database.execute(
        "CREATE TABLE classes AS SELECT unnest(range(len($names::VARCHAR[]))) AS class, unnest($names::VARCHAR[]) AS name",
        {"names": names},
    )
    database.execute(photos_sql(methods, manifest.output_of(described)))
    database.execute("DROP TABLE raw_photos")
    for setting in _LOCKED:
        database.execute(f"SET {setting}")
    return _read(database, place, described, methods)


def _load(database: duckdb.DuckDBPyConnection, folder: Path, numbers: Sequence[int]) -> None:
    """The tables as they lie in the folder, with a number for each photo."""

    def files(level: str) -> list[str]:
        return [str(file_of(batch_folder(folder, number), cast(Level, level))) for number in numbers]

    if not numbers:
        raise ParameterError(f"The survey in {folder} has no photos yet.")
    try:
        (count,) = database.execute(
            "SELECT count(*) FROM read_parquet($files)", {"files": files("heads")}
        ).fetchall()[0]
        if count > MOST_HEAD_ROWS:
            raise ParameterError(
                f"The survey in {folder} has {count:,} rows of heads; the Survey tab opens {MOST_HEAD_ROWS:,} at most. Any reader "
                "of Parquet opens it."
            )
        for table, query in _TABLES.items():
            level = "photos" if table == "raw_photos" else table
            database.execute(f"CREATE TABLE {table} AS {query}", {"files": files(level)})
        database.execute("CREATE TABLE thumbnails (row INTEGER)")  # numbers of the photos that have one
        if there := [file for file in files("thumbnails") if Path(file).is_file()]:
            database.execute(
                f"INSERT INTO thumbnails SELECT p.row FROM {_READ}) t JOIN raw_photos p USING (photo)",
                {"files": there},
            )
    except duckdb.Error as error:
        raise ParameterError(
            f"The tables of the survey in {folder} cannot be read: {filters.first_line(str(error))}"
        ) from error
    if not count:
        raise ParameterError(f"The survey in {folder} has no photos that could be read.")


def _names(level: str) -> str:
    return ", ".join(f"t.{column.name}" for column in TABLES[level] if column.name != "photo")  # type: ignore[index]


_READ = "read_parquet($files, hive_partitioning = false, union_by_name = true"
_TABLES = {
    "raw_photos": "SELECT (row_number() OVER (ORDER BY filename, file_row_number) - 1)::INTEGER AS row, filename AS file, * "
    f"EXCLUDE (filename, file_row_number) FROM {_READ}, filename = true, file_row_number = true) ORDER BY row",
    "heads": f"SELECT p.row, {_names('heads')} FROM {_READ}) t JOIN raw_photos p USING (photo) ORDER BY t.layer, t.head, p.row",
    "methods": f"SELECT p.row, {_names('methods')} FROM {_READ}) t JOIN raw_photos p USING (photo) ORDER BY p.row",
    "maps": f"SELECT * FROM {_READ})",
}


def _read(
    database: duckdb.DuckDBPyConnection, folder: Path, described: dict[str, Any], methods: Sequence[str]
) -> OpenedSurvey:
    """The numbers as arrays."""
    columns = photo_columns(methods, manifest.output_of(described))
    wide = database.execute("SELECT * FROM photos ORDER BY row").fetchnumpy()
    of_photos = [one for one in columns if not one.name.startswith(filters.HEAD_PREFIX)]
    texts = {one.name: _texts(wide[one.name]) for one in of_photos if one.kind == "text"}
    numbers = {one.name: _floats(wide[one.name]) for one in of_photos if one.kind != "text"}
    heads = database.execute("SELECT * FROM heads ORDER BY row, layer, head").fetchnumpy()
    shape = (len(texts["photo"]), int(heads["layer"].max()) + 1, int(heads["head"].max()) + 1)
    if len(heads["row"]) != int(np.prod(shape)):
        raise ParameterError(f"The survey in {folder} is damaged: some heads of some photos are missing.")
    peaks = np.stack([heads["peak_row"], heads["peak_col"]], -1).astype(np.int32).reshape(*shape, 2)
    measured = {name: _floats(heads[name]).astype(np.float32).reshape(shape) for name in MEASURES}
    places = database.execute(
        "SELECT rows, cols, height, width, region[1] AS top, region[2] AS left_, region[3] AS tall, region[4] AS wide "
        "FROM grids ORDER BY row"
    ).fetchnumpy()
    where = {name: _floats(values) for name, values in places.items()}
    files = database.execute("SELECT sha256, file FROM grids ORDER BY row").fetchall()
    digests = tuple(digest for digest, _file in files)
    has_thumbnail = np.zeros(shape[0], bool)
    has_thumbnail[database.execute("SELECT row FROM thumbnails").fetchnumpy()["row"]] = True
    batch_of = tuple(int(Path(file).parent.name.removeprefix("batch=")) for _digest, file in files)
    return OpenedSurvey(
        folder=folder,
        manifest=described,
        columns=columns,
        texts=texts,
        numbers=numbers,
        heads=measured,
        peaks=peaks,
        places=where,
        map_sums=_map_sums(database),
        digests=digests,
        batch_of=batch_of,
        has_thumbnail=has_thumbnail,
        words=filters.words_of([one.name for one in columns], methods),
        _database=database,
    )


def _map_sums(
    database: duckdb.DuckDBPyConnection,
) -> dict[tuple[int, int, int, int], tuple[int, NDArray[np.float64], float]]:
    """The sums of all batches, added up."""
    sums: dict[tuple[int, int, int, int], tuple[int, NDArray[np.float64], float]] = {}
    for *key, photos, total, squares in database.execute(
        "SELECT layer, head, rows, cols, photos, sum, squares FROM maps"
    ).fetchall():
        place = (key[0], key[1], key[2], key[3])
        before = sums.get(place, (0, np.zeros(len(total)), 0.0))
        sums[place] = before[0] + photos, before[1] + np.array(total), before[2] + squares
    return sums


def _texts(values: Any) -> list[str]:
    masked = np.ma.getmaskarray(values)
    return [
        "" if gone or value is None else str(value)
        for value, gone in zip(np.ma.getdata(values), masked, strict=True)
    ]


def _floats(values: Any) -> NDArray[np.float64]:
    wide = np.ma.getdata(values).astype(np.float64)
    wide[np.ma.getmaskarray(values)] = np.nan
    return wide
