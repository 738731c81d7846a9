"""The photos of a survey, from a folder, a pattern or a list, with the labels and boxes that are known of them."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from glob import glob, has_magic
from pathlib import Path
from typing import Literal

from vit_viz.analyses.localisation import Box
from vit_viz.errors import ParameterError
from vit_viz.labels import Labels
from vit_viz.surveys import manifest
from vit_viz.surveys.names import as_text, is_text, several, shown


@dataclass(frozen=True)
class Photo:
    """One photo of a survey.

    Args:
        name: what it is called in all tables: its path from the root of the survey, with forward slashes; always UTF-8.
        path: where its file is.
        label: its true class as it was given; "" where nobody says.
        class_index: the output of the model that stands for it; None where the model has no such class.
        boxes: of the object, in pixels of the upright photo.
        fault: why its file is not even opened; "" where it is.
    """

    name: str
    path: str
    label: str = ""
    class_index: int | None = None
    boxes: tuple[Box, ...] = ()
    fault: str = ""


@dataclass(frozen=True)
class Note:
    """What a list says of one photo; see `Photo`."""

    label: str = ""
    boxes: tuple[Box, ...] = ()
    class_index: int | None = None


def photos_in(source: str | Path | Sequence[str | Path]) -> tuple[Photo, ...]:
    """The photos of a folder with all folders in it, of a pattern such as "photos/*.jpg", or of some of these, sorted by name.

    Where every photo of a folder lies in a folder of its own class (torchvision's ImageFolder), these folders are the labels.
    """
    return search_photos(source)[0]


def search_photos(source: str | Path | Sequence[str | Path]) -> tuple[tuple[Photo, ...], Skipped]:
    """The photos as `photos_in` has them, and what was passed over."""
    sources = list(source) if isinstance(source, Iterable) and not isinstance(source, str) else [source]
    if not all(isinstance(one, str | Path) for one in sources):
        raise ParameterError(
            "A survey is of files: pass a folder, a pattern such as 'photos/*.jpg', files, or a list (CSV, JSON)."
        )
    search = Search()
    for one in sources:
        _search(search, one)
    are_folders = all(Path(one).is_dir() for one in sources)
    around = [path.parent for path in search.files] or [Path()]
    root = Path(sources[0] if are_folders and len(sources) == 1 else os.path.commonpath(around))
    photos = _named(dict.fromkeys(search.files), root)
    title = ", ".join(map(str, sources))
    return _checked(_of_classes(photos) if are_folders else photos, title), search.skipped


def listed(notes: Mapping[str, Note], folder: Path) -> tuple[Photo, ...]:
    """The photos that a list names, relative to its own folder, in its order."""
    return _checked([_photo(name, folder / name, note) for name, note in notes.items()], folder)


def annotated(photos: Sequence[Photo], notes: Mapping[str, Note]) -> tuple[Photo, ...]:
    """Photos with what a list says of them, found by their name, or by that of the file where no other has it."""
    counts = Counter(Path(name).name for name in notes)
    by_file_name = {Path(name).name: note for name, note in notes.items() if counts[Path(name).name] == 1}
    notes_by_name = by_file_name | dict(notes)
    of_photos = [
        notes_by_name.get(photo.name) or notes_by_name.get(Path(photo.name).name) for photo in photos
    ]
    if not any(of_photos):
        raise ParameterError(
            f"The annotations name none of the {len(photos)} photos, such as {photos[0].name!r}; their first is "
            f"{next(iter(notes), '')!r}."
        )
    return tuple(
        photo if note is None else _with(photo, note) for photo, note in zip(photos, of_photos, strict=True)
    )


def resolved(photos: Sequence[Photo], labels: Labels | None, classes: int) -> tuple[Photo, ...]:
    """Photos with the model's class of their labels: by its name, its synset, or its number.

    The number that a list has beside a label counts where the model's classes have no names.

    Args:
        labels: names of the model's classes.
        classes: how many it has; 0 where its outputs are no classes.
    """
    classes_of_labels = {
        label: class_of(label, labels, classes) for label in {photo.label for photo in photos}
    }
    return tuple(
        replace(
            photo,
            label=as_text(photo.label),
            class_index=_class(photo, classes_of_labels[photo.label], labels, classes),
        )
        for photo in photos
    )


def class_of(label: str, labels: Labels | None, classes: int) -> int | None:
    """The model's class that a label means; None where it has no such class, or more than one of that name."""
    if not label or not classes:
        return None
    if label.isdecimal():
        return int(label) if int(label) < classes else None
    if labels is None:
        return None
    try:
        return labels.find(label.replace("_", " ")) if label not in labels.synsets else labels.index(label)
    except ParameterError:
        return None


def digest(photos: Iterable[Photo]) -> str:
    """What tells this list of photos, with labels and boxes, from any other: SHA-256 in hex; where the files lie does not count."""
    rows = [
        {name: value for name, value in asdict(photo).items() if name not in ("path", "fault")}
        for photo in photos
    ]
    return hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest()


def _with(photo: Photo, note: Note) -> Photo:
    if note.label or note.class_index is not None:
        photo = replace(photo, label=note.label, class_index=note.class_index)
    return replace(photo, boxes=note.boxes or photo.boxes)


def _class(photo: Photo, index: int | None, labels: Labels | None, classes: int) -> int | None:
    declared = photo.class_index
    if index is not None or declared is None or declared >= classes:
        return index
    return declared if labels is None or photo.label.isdecimal() else None


def _search(search: Search, source: str | Path) -> None:
    """Add the photos of a folder, the file of this name, or those that a pattern matches."""
    place = Path(source)
    if place.is_dir():
        search.walk(place)
    elif place.is_file():
        search.files.append(place)
    elif has_magic(str(source)):
        search.add_matches(glob(str(source), recursive=True))
    elif place.is_symlink():
        raise ParameterError(f"{shown(str(source))} is a link that leads nowhere.")
    elif str(source):
        raise ParameterError(f"{shown(str(source))} does not exist.")


def _named(files: Iterable[Path], root: Path) -> list[Photo]:
    """The files by their names, which differ; one that is no UTF-8 is escaped as often as it takes."""
    photos: dict[str, Photo] = {}
    names = {path: path.relative_to(root).as_posix() for path in files}
    for path, name in sorted(names.items(), key=lambda one: (not is_text(one[1]), one[1])):
        photo = _photo(name, path)
        while photo.name in photos:
            photo = replace(photo, name=photo.name.replace("\\", "\\\\"))
        photos[photo.name] = photo
    return sorted(photos.values(), key=lambda photo: photo.name)


def _photo(name: str, path: Path, note: Note | None = None) -> Photo:
    """A photo, with what is known of it; one whose name no table can hold is not read."""
    from_list = note or Note()
    fault = "" if is_text(name) else "The name of this file is not UTF-8; please rename it."
    return Photo(as_text(name), str(path), from_list.label, from_list.class_index, from_list.boxes, fault)


def _of_classes(photos: list[Photo]) -> list[Photo]:
    """With the folder as label, where each photo lies exactly one folder deep and there are several folders."""
    folders = [photo.name.split("/")[:-1] for photo in photos]
    if any(len(folder) != 1 for folder in folders) or len({folder[0] for folder in folders}) < 2:
        return photos
    return [replace(photo, label=folder[0]) for photo, folder in zip(photos, folders, strict=True)]


def _checked(photos: Sequence[Photo], source: str | Path) -> tuple[Photo, ...]:
    if not photos:
        raise ParameterError(f"There are no photos in {str(source)!r}.")
    return tuple(photos)


ENDINGS = frozenset(
    {".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".avif", ".heic", ".heif", ".jfif"}
)
"""Of the files of a folder that are taken for photos; what a list names is taken whatever its ending."""

Reason = Literal[
    "not photos by their endings",
    "links that lead nowhere",
    "links back to a folder that they lie in",
    "folders that cannot be read",
    "neither files nor folders",
    "folders that a pattern matches but does not enter",
]

Identity = tuple[int, int]


Skipped = Mapping[Reason, Sequence[Path]]
"""What was passed over."""


@dataclass
class Search:
    """The photos of some folders, and what was passed over on the way."""

    files: list[Path] = field(default_factory=list)
    skipped: dict[Reason, list[Path]] = field(default_factory=dict)

    def walk(self, folder: Path) -> None:
        """Add the photos of a folder and of all folders in it, also of those that links lead to.

        A link back to a folder that it lies in is not followed: its photos would never end. A survey's own folder is not entered.
        """
        about = os.stat(folder)
        left = [(folder, frozenset({(about.st_dev, about.st_ino)}))]
        while left:
            place, around = left.pop()
            try:
                inside = sorted(place.iterdir())
            except OSError as error:
                if place == folder:
                    raise ParameterError(f"{shown(str(folder))} cannot be read: {error.strerror}.") from error
                self._skip(place, "folders that cannot be read")
                continue
            for path in inside:
                identity = self._visit(path)
                if identity in around:
                    self._skip(path, "links back to a folder that they lie in")
                elif identity is not None:
                    left.append((path, around | {identity}))

    def _visit(self, path: Path) -> Identity | None:
        """Take a file, or pass it over; returns what tells a folder that is to be entered from others."""
        try:
            about = path.stat()
        except OSError:  # a photo that cannot be opened is a failure of the survey, no matter why
            if _is_photo(path):
                self.files.append(path)
            else:
                self._skip(path, "links that lead nowhere")
            return None
        if stat.S_ISDIR(about.st_mode):
            return None if (path / manifest.FILE).exists() else (about.st_dev, about.st_ino)
        if not stat.S_ISREG(about.st_mode):
            self._skip(path, "neither files nor folders")
        elif _is_photo(path):
            self.files.append(path)
        else:
            self._skip(path, "not photos by their endings")
        return None

    def add_matches(self, matches: Iterable[str]) -> None:
        """Add the files that a pattern matches, whatever their endings."""
        for path in map(Path, matches):
            if path.is_dir():
                self._skip(path, "folders that a pattern matches but does not enter")
            else:
                self.files.append(path)

    def _skip(self, path: Path, reason: Reason) -> None:
        self.skipped.setdefault(reason, []).append(path)


def passed_over(skipped: Skipped) -> Iterator[str]:
    """What was passed over, a line for each reason, with the first names."""
    for reason, paths in skipped.items():
        yield f"passed over {len(paths):,}, {reason}: {several([shown(str(path)) for path in sorted(paths)])}"


def _is_photo(path: Path) -> bool:
    return path.suffix.lower() in ENDINGS
