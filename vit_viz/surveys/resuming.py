"""What stands of a survey that was begun: which batches stay, and which are made again since they or their photos have changed."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vit_viz.errors import ParameterError
from vit_viz.surveys import manifest, parquet
from vit_viz.surveys.checking import BatchCheck, SurveyCheck, check, told
from vit_viz.surveys.names import shown
from vit_viz.surveys.photos import Photo
from vit_viz.surveys.stages import Decoding, Failure, FileState, prepared

MOST_NAMED = 5
"""Photos that a note names; the others are counted."""


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

    Raises:
        ParameterError: the folder holds something else; the sentence says what.
    """
    there = manifest.opened(folder, wanted, extend=extend)
    parquet.remove_halves(folder)
    state = check(folder)
    listing = {photo.name: photo for photo in photos}
    notes = list(_of_the_folder(state))
    if extend:
        gone = {name for one in state.batches for name in one.names} - listing.keys()
        _check_labels(folder, state, listing)
        wanted = wanted | {"names": manifest.digest_of(listing.keys() | gone)}
        there = manifest.extended(folder, there, wanted, gone)
        notes += _named(sorted(gone), "of the survey {are} not on the list any more; {their} rows stay")
    again = _Again(folder, listing, there.get("gone", ()), decoding, verify)
    kept = [one for one in state.batches if not again.is_due(one)]
    for one in state.batches:
        if one not in kept:
            parquet.remove_batch(folder, one.number)
        elif one.is_old:
            parquet.upgrade_batch(folder, one.number, of=manifest.settings(there))
    manifest.upgraded(folder, there, wanted)
    recorded = frozenset(name for one in kept for name in one.names)
    return Standing(frozenset(one.number for one in kept), recorded, (*notes, *again.notes()))


class _Again:
    """Which batches are made again, and for which photos.

    Args:
        listing: the photos that the survey is of now, by name.
        gone: names of those that it was of before, which stay.
    """

    def __init__(
        self,
        folder: Path,
        listing: Mapping[str, Photo],
        gone: Collection[str],
        decoding: Decoding,
        verify: bool,
    ) -> None:
        self._folder, self._listing, self._gone = folder, listing, frozenset(gone)
        self._decoding, self._verify = decoding, verify
        self._strange: list[str] = []
        self._changed: list[str] = []
        self._other: list[str] = []

    def is_due(self, batch: BatchCheck) -> bool:
        """Whether a batch is made again."""
        if batch.fault:
            return True
        strange = [name for name in batch.names if name not in self._listing and name not in self._gone]
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
        rows = parquet.table_of(self._folder, batch.number, "photos", columns).to_pydict()
        for name, digest, size, time in zip(*(rows[column] for column in columns), strict=True):
            photo = self._listing.get(name)
            if photo is None or (not self._verify and FileState.of(photo.path) == FileState(size, time)):
                continue
            if _sha256(photo.path) != digest:
                yield name

    def _fails_otherwise(self, name: str, sentence: str) -> bool:
        """Whether a photo that could not be read can be read now, or cannot for another reason."""
        if name not in self._listing:
            return False
        (outcome,) = prepared([self._listing[name]], self._decoding)
        return not isinstance(outcome, Failure) or outcome.sentence != sentence


def _of_the_folder(state: SurveyCheck) -> Iterator[str]:
    if state.damaged:
        yield f"damaged and made again: {told(state.damaged)}"
    if state.strangers:
        names = ", ".join(map(shown, state.strangers[:MOST_NAMED]))
        yield f"{shown(str(state.folder))} holds {len(state.strangers):,} files that are no part of the survey, such as {names}"


def _check_labels(folder: Path, state: SurveyCheck, listing: Mapping[str, Photo]) -> None:
    """Of photos that are surveyed already, labels and boxes are as they were.

    Raises:
        ParameterError: they are not.
    """
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
    known = (photo.label or None, photo.class_index)
    return known == (row["label"], row["label_class"]) and boxes.tolist() == row["boxes"]


def _named(names: Sequence[str], words: str) -> Iterator[str]:
    """A line about some photos, where there are any."""
    if not names:
        return
    is_one = len(names) == 1
    forms = {"are": "is", "have": "has", "were": "was", "they": "it", "them": "it", "their": "its"}
    said = words.format(**{many: one if is_one else many for many, one in forms.items()})
    more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    listed = ", ".join(map(shown, names[:MOST_NAMED]))
    yield f"{len(names):,} photo{'' if is_one else 's'} {said}: {listed}{more}"


def _sha256(path: str) -> str | None:
    try:
        with Path(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError):
        return None
