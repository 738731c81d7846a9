"""Any question by its name, from Python: the path of the page, the command line and HTTP, without their page."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from PIL import Image

from vit_viz import samples
from vit_viz.checkpoints import Model
from vit_viz.geometry import Query
from vit_viz.images import Mode, image_hash
from vit_viz.images.part import Part
from vit_viz.progress import Progress, StopCheck
from vit_viz.session.answers import Answer
from vit_viz.session.edits import EditsLike, ModelEdits
from vit_viz.session.handles import Subject
from vit_viz.session.questions import TargetWord, ask
from vit_viz.session.session import Session
from vit_viz.session.uploads import cleaned_name

CACHE_BYTES = 256 * 2**20
"""Of what `run` keeps for the next question about the same picture in the same model."""


def run(
    loaded: Model | str | Path,
    image: Image.Image | str | Path | None,
    name: str,
    *,
    mode: Mode = "fit",
    size: int = 0,
    part: Part | None = None,
    edits: EditsLike = "",
    query: Query | None = None,
    target: TargetWord = None,
    progress: Progress | None = None,
    cancelled: StopCheck | None = None,
    **options: object,
) -> Answer:
    """Ask one question by its name: any method of `explain`, "look", "mosaic", "heads", "ablation", "trust", "positions", ...

    The page, the command line, HTTP and the notebook ask in the same way, so that their numbers are these.

        >>> import vit_viz as vv
        >>> rollout = vv.run("mini", "lion", "rollout", discard=0.5)
        >>> rollout.unit
        'share of the query'

    Args:
        loaded: what `load` returned, or what it takes.
        image: a picture, its path, the name of a sample, or None for what is about the model alone.
        name: see `vit_viz.session.questions`.
        mode: how the picture becomes the model's input; see `Preprocess.apply`, also for `size`.
        size: short side of that input in patches; 0 is the checkpoint's own.
        part: (top, left, height, width) in pixels of the picture, looked at in place of the whole.
        edits: what is changed inside the model, in words such as "off 3.1;temperature 7=0.5" (`vit_viz.session.edits` has them
            all), or a list of such statements; the answer is the edited model's.
        query: where it starts: "class", "register 0", (row, col) or "3,4", a list of these; None is what the output is read from.
        target: the class, by index or name, or a pair for "why the one and not the other"; None is the model's first.
        progress: told the share that is done.
        cancelled: asked between batches; True ends with `Cancelled`.
        options: of the question; `vit_viz.session.questions.question_named(name).options` has them with their ranges.

    Raises:
        CheckpointError, ImageError, ParameterError: as the steps say.
        Cancelled: `cancelled` said so.
    """
    session = session_of(loaded)  # type: ignore[arg-type]  # a protocol does not say that it can be a key
    changed = ModelEdits.parse(edits)
    subject = subject_of(session, image, mode=mode, size=size, part=part, edits=changed)
    return ask(
        session, subject, name, query=query, target=target, progress=progress, cancelled=cancelled, **options
    )


@lru_cache(maxsize=1)
def session_of(loaded: Model | str | Path) -> Session:
    """The session that questions about a model, or its name, go to; that of the last model is kept."""
    if isinstance(loaded, str | Path):
        return Session(model=loaded, cache_bytes=CACHE_BYTES)
    session = Session(model=loaded.name, cache_bytes=CACHE_BYTES)
    session.add_model(loaded)
    return session


def subject_of(session: Session, image: Image.Image | str | Path | None, **how: Any) -> Subject:
    """What a question is about; a picture that is no sample is kept with the session, once."""
    model = session.default_model
    if image is None:
        return Subject(model, "", **how)
    is_sample = isinstance(image, str) and image in samples.sample_names()
    return Subject(model, str(image) if is_sample else _kept_picture(session, image), **how)


def _kept_picture(session: Session, image: Image.Image | str | Path) -> str:
    """The id of a picture among those that a session keeps."""
    decoded = session.decode(image if isinstance(image, Image.Image) else Path(image))
    digest = image_hash(decoded)
    for key, stored in session.uploads.of("").items():
        if stored.digest == digest:
            return key
    name = "" if isinstance(image, Image.Image) else cleaned_name(Path(image).name)
    return session.uploads.add(decoded, name=name)
