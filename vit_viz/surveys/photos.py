"""Which photos a survey is of: a folder, a pattern or a list, with the labels and boxes that are known of them."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from glob import glob, has_magic
from pathlib import Path

from vit_viz.analyses.localisation import Box
from vit_viz.errors import ParameterError
from vit_viz.labels import Labels
from vit_viz.surveys.finding import Search, Skipped
from vit_viz.surveys.names import as_text, is_text, shown


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

    Raises:
        ParameterError: there are none, or something that is named does not exist.
    """
    return search_photos(source)[0]


def search_photos(
    source: str | Path | Sequence[str | Path],
) -> tuple[tuple[Photo, ...], tuple[Skipped, ...]]:
    """The photos as `photos_in` has them, and what was passed over."""
    sources = [source] if isinstance(source, str | Path) else list(source)
    search = Search()
    for one in sources:
        _search(search, one)
    are_folders = all(Path(one).is_dir() for one in sources)
    root = Path(sources[0]) if are_folders and len(sources) == 1 else _common_folder(search.files)
    photos = _named(dict.fromkeys(search.files), root)
    said = ", ".join(map(str, sources))
    return _checked(_of_classes(photos) if are_folders else photos, said), tuple(search.skipped)


def listed(notes: Mapping[str, Note], folder: Path) -> tuple[Photo, ...]:
    """The photos that a list names, relative to its own folder, in its order."""
    return _checked([_photo(name, folder / name, note) for name, note in notes.items()], folder)


def annotated(photos: Sequence[Photo], notes: Mapping[str, Note]) -> tuple[Photo, ...]:
    """Photos with what a list says of them, found by their name, or by the name of the file where that is the only one so called.

    Raises:
        ParameterError: the list names none of them.
    """
    known = _by_file_name(notes) | dict(notes)
    of_photos = [known.get(photo.name) or known.get(Path(photo.name).name) for photo in photos]
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
    known = {label: class_of(label, labels, classes) for label in {photo.label for photo in photos}}
    return tuple(
        replace(
            photo,
            label=as_text(photo.label),
            class_index=_class(photo, known[photo.label], labels, classes),
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
    given = photo.class_index
    if index is not None or given is None or given >= classes:
        return index
    return given if labels is None or photo.label.isdecimal() else None


def _search(search: Search, source: str | Path) -> None:
    """Add the photos of a folder, the file of this name, or those that a pattern matches.

    Raises:
        ParameterError: there is no such folder or file.
    """
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
    known = note or Note()
    fault = "" if is_text(name) else "The name of this file is not UTF-8; please rename it."
    return Photo(as_text(name), str(path), known.label, known.class_index, known.boxes, fault)


def _of_classes(photos: list[Photo]) -> list[Photo]:
    """With the folder as label, where each photo lies exactly one folder deep and there are several folders."""
    folders = [photo.name.split("/")[:-1] for photo in photos]
    if any(len(folder) != 1 for folder in folders) or len({folder[0] for folder in folders}) < 2:
        return photos
    return [replace(photo, label=folder[0]) for photo, folder in zip(photos, folders, strict=True)]


def _common_folder(files: Sequence[Path]) -> Path:
    """The deepest folder that holds all files."""
    shared = list(files[0].parent.parts) if files else []
    for path in files:
        while list(path.parts[: len(shared)]) != shared:
            shared.pop()
    return Path(*shared)


def _by_file_name(notes: Mapping[str, Note]) -> dict[str, Note]:
    """Notes by the bare name of the file, where only one photo is called so."""
    counts = Counter(Path(name).name for name in notes)
    return {Path(name).name: note for name, note in notes.items() if counts[Path(name).name] == 1}


def _checked(photos: Sequence[Photo], source: str | Path) -> tuple[Photo, ...]:
    if not photos:
        raise ParameterError(f"There are no photos in {str(source)!r}.")
    return tuple(photos)
