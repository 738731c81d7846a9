"""Whether a survey's folder still holds what was written to it, and what of it stands when the survey goes on.

A batch has a record of its own number, its survey, and the SHA-256 of each of its tables. One that differs, or whose photos have
changed since, is made again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from vit_viz.errors import ParameterError
from vit_viz.surveys import manifest, parquet
from vit_viz.surveys.columns import TABLES
from vit_viz.surveys.names import MOST_NAMED, several, shown
from vit_viz.surveys.photos import Photo
from vit_viz.surveys.stages import Decoding, Failure, FileState, prepared


@dataclass(frozen=True)
class BatchCheck:
    """What a check found of one batch.

    Args:
        fault: half a sentence, such as "its table heads is missing"; "" where it is whole.
        photos: names of the photos that were recorded, in their order.
        failures: the sentences of those that could not be read, by name.
    """

    number: int
    fault: str
    photos: tuple[str, ...] = ()
    failures: tuple[tuple[str, str], ...] = ()

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
        """Stop where a batch is damaged."""
        if self.damaged:
            raise ParameterError(
                f"The survey in {shown(str(self.folder))} is damaged: {_damage(self.damaged)}. The same vit-viz survey makes "
                f"{'it' if len(self.damaged) == 1 else 'them'} again."
            )


def check(folder: Path) -> SurveyCheck:
    """Read all of a survey and compare it with what was written."""
    there = manifest.unchanged(folder)
    batches = tuple(
        _without_copies([_check_batch(folder, there, one) for one in sorted(parquet.batches(folder))])
    )
    names = [name for one in batches if not one.fault for name in one.names]
    is_complete = len(names) == int(there.get("photos", 0))
    if "names" in there:
        is_complete = is_complete and manifest.digest_of(names) == there["names"]
    return SurveyCheck(folder, batches, int(there.get("photos", 0)), is_complete, tuple(_strangers(folder)))


def _check_batch(folder: Path, there: dict[str, Any], number: int) -> BatchCheck:
    """Read one batch of the survey that a manifest describes."""
    place = parquet.batch_folder(folder, number)
    try:
        record = parquet.record_of(place)
        if record["number"] != number:
            return BatchCheck(number, f"it is batch {record['number']} under another name")
        if record["of"] != manifest.settings(there):
            return BatchCheck(number, "it is of another survey")
        for level in TABLES:
            parquet.content_of(place, level, record)
        photos = parquet.table_of(folder, number, "photos", ["photo"])["photo"].to_pylist()
        failures = parquet.table_of(folder, number, "failures").to_pydict()
    except ParameterError as error:
        cause = error.__cause__  # of an error of `parquet.table_of`: what it found
        return BatchCheck(number, str(cause if isinstance(cause, ParameterError) else error))
    sentences = tuple(zip(failures["photo"], failures["sentence"], strict=True))
    return BatchCheck(number, "", tuple(photos), sentences)


def _damage(batches: tuple[BatchCheck, ...]) -> str:
    """Which batches are damaged, and how."""
    return several([f"batch {one.number} ({one.fault})" for one in batches])


def _without_copies(batches: list[BatchCheck]) -> Iterator[BatchCheck]:
    """The batches, where of those with the same photos only the first is whole."""
    seen: set[str] = set()
    for one in batches:
        if seen.isdisjoint(one.names):
            seen.update(one.names)
            yield one
        else:
            yield BatchCheck(one.number, "its photos are in another batch, too")


def _strangers(folder: Path) -> Iterator[str]:
    """Files and folders that no survey writes; hidden ones, which file managers leave behind, are no strangers."""
    places = [parquet.batch_folder(folder, one) for one in sorted(parquet.batches(folder))]
    rests = [parquet.rest_of(place) for place in places]
    tables = {f"{level}.parquet" for level in TABLES}
    for place in (folder, *places, *rests):
        own_files = manifest.FILES | {one.name for one in (*places, *rests)} if place == folder else tables
        for path in sorted(place.iterdir()) if place.is_dir() else ():
            is_record = place in rests and path.name == parquet.RECORD
            if path.name not in own_files and not is_record and not path.name.startswith("."):
                yield path.relative_to(folder).as_posix()


# --- going on


@dataclass(frozen=True)
class Standing:
    """What of a survey stays as it is.

    Args:
        kept: numbers of the batches that stay.
        recorded: names of the photos in them.
        notes: what was found, a line each.
    """

    kept: frozenset[int]
    recorded: frozenset[str]
    notes: tuple[str, ...]


def resume(
    folder: Path,
    wanted: dict[str, Any],
    photos: Sequence[Photo],
    decoding: Decoding,
    *,
    extend: bool = False,
    verify: bool = False,
) -> Standing:
    """Begin a survey in a folder, or go on with the one that is there: what does not stand is taken away.

    Args:
        wanted: the manifest of what is to be surveyed.
        extend: whether photos may have come to the list since.
        verify: whether photos are told from changed ones by their hashes even where size and time are the same.
    """
    there = manifest.opened(folder, wanted, extend=extend)
    parquet.remove_halves(folder)
    state = check(folder)
    listing = {photo.name: photo for photo in photos}
    notes = []
    if state.damaged:
        notes.append(f"damaged and made again: {_damage(state.damaged)}")
    if state.strangers:
        names = ", ".join(map(shown, state.strangers[:MOST_NAMED]))
        notes.append(
            f"{shown(str(folder))} holds {len(state.strangers):,} files that are no part of the survey, such as {names}"
        )
    if extend:
        gone = {name for one in state.batches for name in one.names} - listing.keys()
        _check_labels(folder, state, listing)
        wanted = wanted | {"names": manifest.digest_of(listing.keys() | gone)}
        there = manifest.extended(folder, there, wanted, gone)
        notes += _named(sorted(gone), "of the survey {are} not on the list any more; {their} rows stay")
    again = _Again(folder, listing, frozenset(there.get("gone", ())), decoding, verify)
    kept = [one for one in state.batches if not again.is_due(one)]
    for one in state.batches:
        if one not in kept:
            parquet.remove_batch(folder, one.number)
    recorded = frozenset(name for one in kept for name in one.names)
    return Standing(frozenset(one.number for one in kept), recorded, (*notes, *again.notes()))


@dataclass
class _Again:
    """Which batches are made again, and for which photos.

    Args:
        listing: the photos that the survey is of now, by name.
        gone: names of those that it was of before, which stay.
    """

    folder: Path
    listing: Mapping[str, Photo]
    gone: Collection[str]
    decoding: Decoding
    verify: bool
    _strange: list[str] = field(default_factory=list)
    _changed: list[str] = field(default_factory=list)
    _other: list[str] = field(default_factory=list)

    def is_due(self, batch: BatchCheck) -> bool:
        """Whether a batch is made again."""
        if batch.fault:
            return True
        strange = [name for name in batch.names if name not in self.listing and name not in self.gone]
        changed = list(self._changed_in(batch))
        other = [name for name, sentence in batch.failures if self._fails_otherwise(name, sentence)]
        self._strange += strange
        self._changed += changed
        self._other += other
        return bool(strange or changed or other)

    def notes(self) -> Iterator[str]:
        """What was found, a line each."""
        again = "; the batches of {them} are made again"
        yield from _named(self._strange, f"in the tables {{are}} not of this survey{again}")
        yield from _named(self._changed, f"{{have}} changed since {{they}} {{were}} surveyed{again}")
        yield from _named(self._other, f"that could not be read {{are}} not as {{they}} {{were}}{again}")

    def _changed_in(self, batch: BatchCheck) -> Iterator[str]:
        columns = ("photo", "sha256", "file_size", "file_time")
        rows = parquet.table_of(self.folder, batch.number, "photos", columns).to_pydict()
        for name, digest, size, time in zip(*(rows[column] for column in columns), strict=True):
            photo = self.listing.get(name)
            if photo is None or (not self.verify and FileState.of(photo.path) == FileState(size, time)):
                continue
            if _sha256(photo.path) != digest:
                yield name

    def _fails_otherwise(self, name: str, sentence: str) -> bool:
        """Whether a photo that could not be read can be read now, or cannot for another reason."""
        if name not in self.listing:
            return False
        (outcome,) = prepared([self.listing[name]], self.decoding)
        return not isinstance(outcome, Failure) or outcome.sentence != sentence


def _check_labels(folder: Path, state: SurveyCheck, listing: Mapping[str, Photo]) -> None:
    """Of photos that are surveyed already, labels and boxes are as they were."""
    columns = ("photo", "label", "label_class", "boxes")
    other = []
    for one in state.batches:
        if not one.fault:
            rows = parquet.table_of(folder, one.number, "photos", columns).to_pylist()
            other += [row["photo"] for row in rows if not _is_as_listed(row, listing.get(row["photo"]))]
    for sentence in _named(other, "of the survey {have} other labels or boxes now"):
        raise ParameterError(f"{sentence}; --extend adds photos and changes none.")


def _is_as_listed(row: Mapping[str, Any], photo: Photo | None) -> bool:
    if photo is None:
        return True
    boxes = np.array([side for box in photo.boxes for side in box], np.float32)
    listed = (photo.label or None, photo.class_index)
    return listed == (row["label"], row["label_class"]) and boxes.tolist() == row["boxes"]


def _named(names: Sequence[str], words: str) -> Iterator[str]:
    """A line about some photos, where there are any."""
    if not names:
        return
    is_one = len(names) == 1
    forms = {"are": "is", "have": "has", "were": "was", "they": "it", "them": "it", "their": "its"}
    sentence = words.format(**{many: one if is_one else many for many, one in forms.items()})
    yield f"{len(names):,} photo{'' if is_one else 's'} {sentence}: {several(list(map(shown, names)))}"


def _sha256(path: str) -> str | None:
    try:
        with Path(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError):
        return None
