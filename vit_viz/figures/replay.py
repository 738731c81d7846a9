"""A file made again from what it says of itself: equal bytes on the same machine with the same versions, or a refusal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

from vit_viz import outputs, samples
from vit_viz.checkpoints import LoadedModel, Model, load
from vit_viz.checkpoints.catalog import entry_of
from vit_viz.checkpoints.source import is_hub_id
from vit_viz.errors import CheckpointError, ExportError, ImageError, ParameterError
from vit_viz.figures import export
from vit_viz.figures.files import Encoded, file_of
from vit_viz.figures.record import found_in_xml
from vit_viz.figures.request import FigureRequest, Output
from vit_viz.session.run import CACHE_BYTES
from vit_viz.session.session import Session

LARGEST_BYTES = 1 << 28
"""Of a file that is read; figures are far smaller."""

MayFetch = Callable[[str], bool]
"""Asked before a model that a file names is fetched."""


def replay(
    file: bytes | str | Path,
    session: Session,
    *,
    image: bytes | str | Path | None = None,
    may_fetch: MayFetch = lambda _name: False,
) -> Encoded:
    """Make a file again: the same request, computed by the same kernel, drawn in the same way.

    Args:
        file: a figure or a table that was saved here, or its path: models and photos are also looked for beside it.
        session: whose model is taken where it has the weights of the file, else the one that the file names.
        image: the photo, or its path; None: where the file says that it was, or beside the file.
        may_fetch: asked before the Hub is, for a model that is not on this machine; nothing is fetched otherwise.
    """
    facts = record_of(file)
    figure, output = _figure_in(facts)
    folder = None if isinstance(file, bytes) else Path(file).parent
    source = _Source(facts, figure, folder)
    loaded, missing = source.model(session, may_fetch), []
    own = Session(
        model="mini" if loaded is None else loaded.name, device=session.engine.device, cache_bytes=CACHE_BYTES
    )
    photo = source.photo(own, image)
    if photo is None:
        missing.append(f"the photo{source.path_words('image')} (--image)")
    if loaded is None:
        missing.append(f"the model {figure.subject.model!r}{source.path_words('model')} (--model)")
    if photo is None or loaded is None:
        raise ExportError(f"The inputs of this file are not here: please name {' and '.join(missing)}.")
    own.add_model(loaded)
    own.given_paths |= {
        key: source.paths[what]
        for what, key in (("model", loaded.name), ("image", photo))
        if what in source.paths
    }
    figure = figure.about(replace(figure.subject, model=loaded.name, image=photo))
    return file_of(own, figure, output)


@dataclass(frozen=True)
class _Source:
    """What a file was made of, and where that may be.

    Args:
        facts: the record of the file.
        figure: that it names.
        folder: in which the file lies; None where only its bytes are here.
    """

    facts: dict[str, Any]
    figure: FigureRequest
    folder: Path | None

    @property
    def paths(self) -> dict[str, str]:
        """Of the model and of the photo, as they were given then."""
        paths = self.facts.get("paths")
        if not isinstance(paths, dict):
            return {}
        return {
            what: path
            for what, path in paths.items()
            if what in ("model", "image") and isinstance(path, str) and "\0" not in path
        }

    def path_words(self, what: str) -> str:
        """Where it was, for a sentence."""
        return f" {self.paths[what][:200]!r}" if what in self.paths else ""

    def places(self, what: str) -> Iterator[Path]:
        """Where it may be: where it was, and beside the file."""
        if what in self.paths:
            path = Path(self.paths[what]).expanduser()
            yield path
            if self.folder is not None:
                yield self.folder / path
                yield self.folder / path.name

    def model(self, session: Session, may_fetch: MayFetch) -> Model | None:
        """The model with the file's weights, computing as it did then; None where it is not here."""
        weights, named = str(self.facts.get("weights", "")), self.figure.subject.model
        for name in dict.fromkeys((session.default_model, named)):
            if session.has_model(name) and session.model(name).provenance.weights == weights:
                return self._as_then(session.model(name))
        device = session.engine.device
        for path in self.places("model"):
            if path.exists():
                try:
                    loaded = load(path, device=device, fetch=False)
                except CheckpointError:
                    continue
                if loaded.provenance.weights == weights:
                    return self._as_then(loaded)
        is_in_session = session.has_model(named)
        named_model = session.model(named) if is_in_session else _named_model(named, device, may_fetch)
        if named_model is not None and named_model.provenance.weights != weights:
            raise ExportError(
                f"The weights of {named} are not those that this file was made with, so its numbers would differ."
            )
        return None if named_model is None else self._as_then(named_model)

    def _as_then(self, loaded: Model) -> Model:
        """The model under the name that it had, with the kernel that computed, and with what was said of its outputs."""
        if not isinstance(loaded, LoadedModel):
            return loaded
        noted = self.facts.get("parameters")
        parameters = noted if isinstance(noted, dict) else {}
        if (output := str(parameters.get("output"))) in get_args(outputs.Output):
            loaded = loaded.with_output(output)  # type: ignore[arg-type]  # one of them
        kernel = parameters.get("linear")
        if kernel in ("oneDNN", "torch"):
            loaded = loaded.with_linear(kernel)
        name = self.figure.subject.model
        return replace(loaded, name=name, provenance=replace(loaded.provenance, model=name))

    def photo(self, own: Session, image: bytes | str | Path | None) -> str | None:
        """The name of the file's photo in a session, "" where it has none; None where it is not here."""
        digest, name = str(self.facts.get("image", "")), self.figure.subject.image
        if image is not None:
            key = own.add_upload(Path(image) if isinstance(image, str) else image)
        elif name in samples.sample_names() or not digest:
            key = name
        else:
            return next((key for key in self._photos_here(own) if own.digest(key) == digest), None)
        if key and own.digest(key) != digest:
            raise ExportError("This photo is not the one that the file was made from: its pixels differ.")
        return key

    def _photos_here(self, own: Session) -> Iterator[str]:
        for path in self.places("image"):
            if path.is_file():
                try:
                    yield own.add_upload(path)
                except ImageError:
                    continue


def _named_model(name: str, device: str | None, may_fetch: MayFetch) -> Model | None:
    """The model of a name that anybody can use; None where there is none."""
    try:
        return load(name, device=device, local_files=False, fetch=False)
    except CheckpointError as error:
        if not is_hub_id(name) and entry_of(name) is None:
            return None
        if not may_fetch(name):
            raise ExportError(
                f"This file was made with {name!r}, which is not on this machine: --fetch fetches it from the Hub, --model names "
                "a copy of yours."
            ) from error
    return load(name, device=device, local_files=False)


def record_of(file: bytes | str | Path) -> dict[str, Any]:
    """What a file says of itself: provenance, versions, request and drawing."""
    data = file if isinstance(file, bytes) else bytes_of(Path(file))
    for start, read in _READERS:
        if data.startswith(start):
            return read(data)
    raise ExportError("This is no PNG, SVG, PDF, CSV, NPZ, GIF or WebP file.")


def bytes_of(path: Path) -> bytes:
    """A file, where it is no larger than any figure."""
    try:
        if path.stat().st_size > LARGEST_BYTES:
            raise ExportError(f"{path.name} is larger than any figure.")
        return path.read_bytes()
    except OSError as error:
        raise ExportError(f"{path.name} cannot be read.") from error


_READERS: tuple[tuple[bytes, Callable[[bytes], dict[str, Any]]], ...] = (
    (b"\x89PNG", export.png_provenance),
    (b"GIF8", export.gif_provenance),
    (b"PK", export.npz_record),
    (b"%PDF", lambda data: found_in_xml(data, "PDF")),
    (b"<?xml", lambda data: found_in_xml(data, "SVG")),
    (b"RIFF", lambda data: found_in_xml(data, "WebP")),
    (b"#", export.csv_record),
)
"""How a file begins, and how its record is read."""


def _figure_in(facts: dict[str, Any]) -> tuple[FigureRequest, Output]:
    """The figure and the format that a record names."""
    figure, output = facts.get("figure"), facts.get("output")
    if not isinstance(figure, dict) or not isinstance(output, dict):
        raise ExportError(
            "This file records where its numbers came from, but not the request; it cannot be made again."
        )
    try:
        return FigureRequest.from_dict(figure), Output.of(output.items())
    except ParameterError as error:
        raise ExportError(f"This file does not say clearly how it was made: {error}") from error
