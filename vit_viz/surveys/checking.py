"""Whether a survey's folder still holds what was written to it: every table of every batch, and the photos that it is of.

A batch has a record of its own number, its survey, and the SHA-256 of each of its tables. Batches of format 1 have none: of them
it is checked that every table can be read and that all are of the same photos.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vit_viz.errors import ParameterError
from vit_viz.surveys import manifest, parquet
from vit_viz.surveys.columns import TABLES
from vit_viz.surveys.names import shown

MOST_NAMED = 5
"""Damaged batches that a sentence names; the others are counted."""


@dataclass(frozen=True)
class BatchCheck:
    """What a check found of one batch.

    Args:
        fault: half a sentence, such as "its table heads is missing"; "" where it is whole.
        photos: names of the photos that were recorded, in their order.
        failures: the sentences of those that could not be read, by name.
        is_old: whether it is of format 1.
    """

    number: int
    fault: str
    photos: tuple[str, ...] = ()
    failures: tuple[tuple[str, str], ...] = ()
    is_old: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Of all its photos."""
        return (*self.photos, *(name for name, _sentence in self.failures))


@dataclass(frozen=True)
class SurveyCheck:
    """What a check found of a whole survey.

    Args:
        batches: in the order of their numbers.
        wanted: how many photos the survey is of.
        is_complete: whether the batches that are whole hold each of these photos once.
        strangers: files that are no part of a survey, relative to its folder.
    """

    folder: Path
    batches: tuple[BatchCheck, ...]
    wanted: int
    is_complete: bool
    strangers: tuple[str, ...]

    @property
    def damaged(self) -> tuple[BatchCheck, ...]:
        """The batches that are not whole."""
        return tuple(one for one in self.batches if one.fault)

    @property
    def num_photos(self) -> int:
        """Photos that could be read, in the batches that are whole."""
        return sum(len(one.photos) for one in self.batches if not one.fault)

    @property
    def num_failures(self) -> int:
        """Photos that could not be read, in the batches that are whole."""
        return sum(len(one.failures) for one in self.batches if not one.fault)

    @property
    def is_whole(self) -> bool:
        """Whether nothing is damaged, missing or strange."""
        return self.is_complete and not self.damaged and not self.strangers

    def refuse_damage(self) -> None:
        """Stop where a batch is damaged.

        Raises:
            ParameterError: one is; the sentence says how, and what makes it again.
        """
        if self.damaged:
            raise ParameterError(
                f"The survey in {shown(str(self.folder))} is damaged: {told(self.damaged)}. The same vit-viz survey makes "
                f"{'it' if len(self.damaged) == 1 else 'them'} again."
            )


def check(folder: Path) -> SurveyCheck:
    """Read all of a survey and compare it with what was written.

    Raises:
        ParameterError: this is no survey.
    """
    there = manifest.read(folder)
    batches = tuple(_without_copies([check_batch(folder, there, one) for one in _numbers(folder)]))
    names = [name for one in batches if not one.fault for name in one.names]
    is_complete = len(names) == int(there.get("photos", 0))
    if "names" in there:
        is_complete = is_complete and manifest.digest_of(names) == there["names"]
    return SurveyCheck(folder, batches, int(there.get("photos", 0)), is_complete, tuple(_strangers(folder)))


def check_batch(folder: Path, there: dict[str, Any], number: int) -> BatchCheck:
    """Read one batch of the survey that a manifest describes."""
    place = parquet.batch_folder(folder, number)
    try:
        record = parquet.record_of(place)
        if record is not None:
            _check_record(place, record, number, manifest.settings(there))
        photos = parquet.table_of(folder, number, "photos", ["photo"])["photo"].to_pylist()
        failures = parquet.table_of(folder, number, "failures").to_pydict()
        if record is None:
            _check_old(folder, number, photos)
    except ParameterError as error:
        return BatchCheck(number, _half_sentence(error))
    sentences = tuple(zip(failures["photo"], failures["sentence"], strict=True))
    return BatchCheck(number, "", tuple(photos), sentences, record is None)


def told(batches: tuple[BatchCheck, ...]) -> str:
    """Which batches are damaged, and how."""
    first = ", ".join(f"batch {one.number} ({one.fault})" for one in batches[:MOST_NAMED])
    return first + (f" and {len(batches) - MOST_NAMED:,} more" if len(batches) > MOST_NAMED else "")


def _numbers(folder: Path) -> list[int]:
    return sorted(parquet.batches(folder))


def _check_record(place: Path, record: dict[str, Any], number: int, survey: str) -> None:
    """Compare a batch with its own record.

    Raises:
        ParameterError: it differs; the message is half a sentence.
    """
    if record["number"] != number:
        raise ParameterError(f"it is batch {record['number']} under another name")
    if record["of"] != survey:
        raise ParameterError("it is of another survey")
    for level in TABLES:
        parquet.content_of(place, level, record)


def _check_old(folder: Path, number: int, photos: list[str]) -> None:
    """Compare the tables of a batch of format 1 with each other.

    Raises:
        ParameterError: they are not of the same photos; the message is half a sentence.
    """
    for level in ("heads", "methods", "thumbnails"):
        rows = Counter(parquet.table_of(folder, number, level, ["photo"])["photo"].to_pylist())
        is_empty = not rows and level != "heads"
        if not is_empty and (rows.keys() != set(photos) or len(set(rows.values())) > 1):
            raise ParameterError(f"its table {level} is of other photos")
    maps = parquet.table_of(folder, number, "maps", ["layer", "head", "photos"]).to_pylist()
    sums: Counter[tuple[int, int]] = Counter()
    for row in maps:
        sums[row["layer"], row["head"]] += row["photos"]
    if set(sums.values()) != ({len(photos)} if photos else set()):
        raise ParameterError("its table maps is of other photos")


def _half_sentence(error: ParameterError) -> str:
    """Of an error of `parquet.table_of` what it found."""
    cause = error.__cause__
    return str(cause if isinstance(cause, ParameterError) else error)


def _without_copies(batches: list[BatchCheck]) -> Iterator[BatchCheck]:
    """The batches, where of those with the same photos only the first is whole."""
    known: set[str] = set()
    for one in batches:
        if known.isdisjoint(one.names):
            known.update(one.names)
            yield one
        else:
            yield BatchCheck(one.number, "its photos are in another batch, too")


def _strangers(folder: Path) -> Iterator[str]:
    """Files and folders that no survey writes; hidden ones, which file managers leave behind, are no strangers."""
    places = [parquet.batch_folder(folder, one) for one in _numbers(folder)]
    rests = [parquet.rest_of(place) for place in places]
    tables = {f"{level}.parquet" for level in TABLES}
    for place in (folder, *places, *rests):
        known = manifest.FILES | {one.name for one in (*places, *rests)} if place == folder else tables
        for path in sorted(place.iterdir()) if place.is_dir() else ():
            is_record = place in rests and path.name == parquet.RECORD
            if path.name not in known and not is_record and not path.name.startswith("."):
                yield path.relative_to(folder).as_posix()
