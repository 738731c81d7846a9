"""From a request to a finished folder: `vit_viz.survey`."""

from __future__ import annotations

import errno
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from vit_viz import samples
from vit_viz.analyses.methods import METHODS
from vit_viz.capture import trace
from vit_viz.capture.given import as_model
from vit_viz.checkpoints import LoadedModel, Model
from vit_viz.errors import ExportError, ParameterError
from vit_viz.images import Mode
from vit_viz.lazy import nn
from vit_viz.progress import CountProgress, StopCheck, counting
from vit_viz.session.edits import NO_EDITS, EditsLike, ModelEdits
from vit_viz.surveys import lists, manifest
from vit_viz.surveys.columns import Level
from vit_viz.surveys.local import Batch, Machine, as_count
from vit_viz.surveys.photos import (
    Photo,
    Skipped,
    annotated,
    digest,
    listed,
    passed_over,
    resolved,
    search_photos,
)
from vit_viz.surveys.ray_engine import RayCluster
from vit_viz.surveys.recording import Recording
from vit_viz.surveys.stages import BATCH, Decoding, EngineName

if TYPE_CHECKING:
    import pyarrow as pa

    from vit_viz.surveys.checking import SurveyCheck

SurveyEngine = Machine | RayCluster
"""Each has a `run` of the same signature, and writes the same rows."""


def engine_of(engine: SurveyEngine | EngineName) -> SurveyEngine:
    """The engine that a word means, with its usual numbers."""
    if isinstance(engine, SurveyEngine):
        return engine
    if engine in get_args(EngineName):
        return Machine() if engine == "local" else RayCluster()
    raise ParameterError(
        f"The engine is {' or '.join(map(repr, get_args(EngineName)))}, a Machine or a RayCluster, not {engine!r}."
    )


Source = str | Path | Sequence[str | Path]


@dataclass(frozen=True)
class Survey:
    """What a folder holds of many photos; see `survey`.

    Args:
        folder: with _survey.json and one folder per batch.
        notes: what `survey` found on the way, a line each: files it passed over, batches it made again.
    """

    folder: Path
    notes: tuple[str, ...] = ()

    @property
    def manifest(self) -> dict[str, Any]:
        """_survey.json: what was asked, the versions, what each column means."""
        return manifest.read(self.folder)

    def table(self, level: Level, columns: Sequence[str] | None = None) -> pa.Table:
        """One level of it as an Arrow table: "photos", "heads", "methods", "maps", "failures" or "thumbnails"."""
        from vit_viz.surveys import parquet

        return parquet.table(self.folder, level, columns)

    def check(self) -> SurveyCheck:
        """Read all of it and compare it with what was written: damaged batches, missing photos, files that are no part of it."""
        from vit_viz.surveys.checking import check

        return check(self.folder)

    @property
    def num_photos(self) -> int:
        """Photos that could be read."""
        return int(self.table("photos", ["photo"]).num_rows)

    @property
    def failures(self) -> dict[str, str]:
        """The sentence of each photo that could not be read."""
        rows = self.table("failures").to_pydict()
        return dict(zip(rows["photo"], rows["sentence"], strict=True))

    @property
    def accuracy(self) -> tuple[float, float, int] | None:
        """(top-1, top-5, of how many photos) where labels are known; else None."""
        rows = self.table("photos", ["right", "right_in_five"]).to_pydict()
        right = [one for one in rows["right"] if one is not None]
        five = [one for one in rows["right_in_five"] if one is not None]
        return (sum(right) / len(right), sum(five) / len(five), len(right)) if right else None


def survey(
    loaded: Model | str | Path,
    photos: Source,
    out: str | Path,
    *,
    annotations: str | Path | None = None,
    mode: Mode = "crop",
    size: int = 0,
    methods: Sequence[str] = (),
    deletion: bool = True,
    edits: EditsLike = NO_EDITS,
    thumbnails: bool = True,
    batch: int = BATCH,
    engine: SurveyEngine | EngineName = "local",
    extend: bool = False,
    verify: bool = False,
    progress: CountProgress | bool | None = None,
    cancelled: StopCheck | None = None,
) -> Survey:
    """Where a model looks in each of many photos, and whether it is right: tables in a folder, as Parquet.

    _survey.json says what each column means. A process that ends in the middle loses one batch at most; the same call goes on, and
    makes damaged batches again, those of changed photos, and those of photos that can be read now.

    Args:
        loaded: a loaded model, or what `load` takes.
        photos: a folder (of one folder per class: with labels), a pattern such as "photos/*.jpg", files, or a list (CSV, JSON).
        out: a new folder, or one that this survey was begun in.
        annotations: labels and boxes by the photo's name: CSV, JSON, COCO's JSON, or a folder of VOC's XML files.
        mode: how a photo becomes the model's input; "crop" is the checkpoint's own evaluation recipe, while `trace` takes "fit".
        size: short side of that input in patches; 0 is the checkpoint's own.
        methods: names of explanation methods that are scored, see `METHODS`.
        deletion: whether their scores include deletion and insertion, which take some hundred forward passes per photo.
        edits: of the model's inside, such as "off 3.1;temperature 4=0.5", as `run` takes them; the survey is of the edited model.
        thumbnails, batch: whether a small picture of each photo is kept; how many photos are written together.
        engine: "local" or "ray", or a `Machine` or a `RayCluster`, which say how much runs at a time, and where.
        extend, verify: whether new photos are added to what is there; whether changed ones are found by hashes, not size and time.
        progress: told (photos recorded, photos in all); None shows a bar at a terminal or in a notebook, False nothing.
        cancelled: asked between forward passes; True ends with `Cancelled`, and whole batches stay.

    Raises:
        ParameterError: there are no photos, a list is damaged, or the folder holds something else.
        CaptureError: the model's attention cannot be recorded.
        ExportError: the disk is full.
        Cancelled: `cancelled` said so.

    Example:
        >>> import vit_viz as vv
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     vv.samples.sample("lion").save(f"{folder}/lion.png")
        ...     vv.survey("mini", folder, f"{folder}/survey").table("photos")["top_names"].to_pylist()[0][0]
        'lion'
    """
    model = as_model(loaded)
    if isinstance(model, nn.Module):
        raise ParameterError(
            "A survey may go on in another process, where a module has no name: pass what vit_viz.load returns, a name or a path."
        )
    # that of a survey that is there already: it may have been begun elsewhere, or by another setting
    kernel = manifest.kernel_of(Path(out))
    if kernel is not None and isinstance(model, LoadedModel):
        model = model.with_linear(kernel)
        if dict(model.provenance.parameters).get("linear", kernel) != kernel:
            raise ParameterError(
                f"{out} was begun with the linear kernel of {kernel}, which is not available on {model.device} here, so its "
                "rows would be rounded in two ways; please choose another folder."
            )
    decoding = Decoding(model.preprocess, mode, size, thumbnails)
    names = tuple(METHODS.named(name).name for name in methods)
    recording = Recording(model, names, deletion=deletion, edits=ModelEdits.parse(edits))
    everything, skipped = _listing(model, photos, annotations)
    plan = _Plan(Path(out), everything, batch, decoding, recording, engine_of(engine), extend, verify)
    notes = plan.run(_described(plan, photos, annotations), progress, cancelled)
    return Survey(plan.folder, (*skipped, *notes))


@dataclass(frozen=True, eq=False)
class _Plan:
    """A survey, before it runs."""

    folder: Path
    photos: tuple[Photo, ...]
    batch: int
    decoding: Decoding
    recording: Recording
    engine: SurveyEngine
    extend: bool
    verify: bool

    def __post_init__(self) -> None:
        as_count("batch", self.batch)

    def run(
        self, described: dict[str, Any], progress: CountProgress | bool | None, cancelled: StopCheck | None
    ) -> tuple[str, ...]:
        """Record what is not there yet; returns what was found of an earlier run, a line each."""
        from vit_viz.surveys import parquet
        from vit_viz.surveys.checking import resume

        shown = counting("photos", progress)
        with self._room_on_disk(), manifest.alone(self.folder), shown as report:
            there = resume(
                self.folder, described, self.photos, self.decoding, extend=self.extend, verify=self.verify
            )
            left = [photo for photo in self.photos if photo.name not in there.recorded]
            done, total = len(self.photos) - len(left), len(self.photos)
            recorded = self.engine.run(
                self._batches(left, there.kept), self.decoding, self.recording, cancelled=cancelled
            )
            with closing(recorded):
                for photos, batch in chain([(0, None)], recorded):
                    if batch is not None:
                        parquet.write_batch(self.folder, *batch, of=manifest.settings(described))
                    done += photos
                    if report is not None:
                        report(done, total)
        return there.notes

    def _batches(self, left: Sequence[Photo], kept: Collection[int]) -> list[Batch]:
        """Photos in batches, whose numbers are the first that no batch has."""
        numbers = (number for number in count() if number not in kept)
        starts = range(0, len(left), self.batch)
        return [
            (number, left[start : start + self.batch]) for start, number in zip(starts, numbers, strict=False)
        ]

    @contextmanager
    def _room_on_disk(self) -> Iterator[None]:
        """A full disk ends the survey with a sentence; whole batches stay."""
        from vit_viz.surveys import parquet

        try:
            yield
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            done = min(len(parquet.batches(self.folder)) * self.batch, len(self.photos))
            raise ExportError(
                f"The disk of {self.folder} is full: {done:,} of {len(self.photos):,} photos are saved; make room, and the same "
                "command goes on from there."
            ) from error


def _listing(
    model: Model, photos: Source, annotations: str | Path | None
) -> tuple[tuple[Photo, ...], tuple[str, ...]]:
    """The photos with all that is known of them, and what was passed over on the way to them, a line for each reason."""
    skipped: Skipped = {}
    if isinstance(photos, str | Path) and Path(photos).suffix.lower() in lists.ENDINGS:
        listing = listed(lists.notes_in(photos), Path(photos).parent)
    else:
        listing, skipped = search_photos(photos)
    if annotations is not None:
        listing = annotated(listing, lists.notes_in(annotations))
    return resolved(listing, model.labels, _num_classes(model)), tuple(passed_over(skipped))


def _num_classes(model: Model) -> int:
    """How many classes a model has, as far as is known before it runs; 0 where its outputs are no classes."""
    if not model.has_classes or model.output == "value":
        return 0
    if model.config is not None:
        return model.config.num_classes
    return len(model.labels) if model.labels is not None else sys.maxsize


def _described(plan: _Plan, photos: Source, annotations: str | Path | None) -> dict[str, Any]:
    """What _survey.json says of a survey."""
    sources = {"photos": str(photos), "annotations": None if annotations is None else str(annotations)}
    model, decoding = plan.recording.model, plan.decoding
    words = decoding.recipe.sized(decoding.size).describe(mode=decoding.mode)
    identity = {
        "model": model.name,
        "weights": model.provenance.weights,
        "preprocess": words,
        "photos": len(plan.photos),
        "digest": digest(plan.photos),
        "names": manifest.digest_of(photo.name for photo in plan.photos),
        "methods": list(plan.recording.methods),
        "deletion": plan.recording.deletion,
        "edits": str(plan.recording.edits) or None,
        "batch": plan.batch,
        "thumbnails": decoding.thumbnails,
        "output": model.output,
        "linear": dict(model.provenance.parameters).get("linear"),
    }
    request = sources | {"mode": decoding.mode, "size": decoding.size}
    classes = [] if model.labels is None else list(model.labels.names)
    return manifest.manifest(identity, request=request, classes=classes, proof=_proof(plan))


def _proof(plan: _Plan) -> dict[str, Any]:
    """What a trace of a drawing shows about the model's attention."""
    model, picture, decoding = plan.recording.model, samples.sample("shapes"), plan.decoding
    pixels = decoding.recipe.apply(picture, mode=decoding.mode, size=decoding.size).pixels
    with plan.recording.edited(pixels):
        recorded = trace(model, picture, mode=decoding.mode, size=decoding.size)
    report = recorded.proof_report
    return {"status": report.status, "sentence": report.sentence, "differences": recorded.proof}
