"""Any question by its name, from Python: the path of the page, the command line and HTTP, without their page."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any, overload

from PIL import Image

from vit_viz import samples
from vit_viz.analyses.prepared_image import ModelLike, Picture
from vit_viz.analyses.spec import AnswerT, AnyQuestion, Question
from vit_viz.capture.given import as_model, as_picture
from vit_viz.capture.state import held_states, make_up_of
from vit_viz.capture.wrappers import preprocess_within, unwrapped_module
from vit_viz.checkpoints.catalog import BUNDLED, entry_of
from vit_viz.checkpoints.plain_module import plain_module
from vit_viz.errors import ParameterError
from vit_viz.geometry import Query
from vit_viz.images import Mode, image_hash
from vit_viz.images.part import Part
from vit_viz.lazy import Tensor, nn
from vit_viz.outputs import Output
from vit_viz.progress import ProgressLike, StopCheck, bar
from vit_viz.session.edits import EditsLike, ModelEdits
from vit_viz.session.questions import TargetWord, ask
from vit_viz.session.request import Subject
from vit_viz.session.session import Session
from vit_viz.session.uploads import cleaned_name

CACHE_BYTES = 256 * 2**20
"""Of what `run` keeps for the next question about the same picture in the same model."""


@overload
def run(loaded: ModelLike, image: Picture | None, name: Question[Any, AnswerT], **asked: Any) -> AnswerT: ...


@overload
def run(loaded: ModelLike, image: Picture | None, name: str, **asked: Any) -> Any: ...


@held_states()
def run(
    loaded: ModelLike,
    image: Picture | None,
    name: str | AnyQuestion,
    *,
    mode: Mode = "fit",
    size: int = 0,
    part: Part | None = None,
    edits: EditsLike = "",
    query: Query | None = None,
    target: TargetWord = None,
    output: Output | None = None,
    progress: ProgressLike = None,
    cancelled: StopCheck | None = None,
    **options: object,
) -> Any:
    """Ask one question by its name: any method of `explain`, "look", "mosaic", "heads", "ablation", "trust", "positions", ...

    The page, the command line, HTTP and the notebook ask in the same way, so that their numbers are these.

        >>> import vit_viz as vv
        >>> rollout = vv.run("mini", "lion", "rollout", discard=0.5)
        >>> rollout.unit
        'share of the query'

    Args:
        loaded: what `load` returned, what it takes, or a module that says how pictures become its input, as those of timm and
            transformers do.
        image: a picture, its path, an array, the name of a sample, or None for what is about the model alone.
        name: see `vit_viz.analyses.registry.QUESTIONS`; or one of them itself, whose answer is then of its type.
        mode: how the picture becomes the model's input: "fit", "crop" or "stretch"; see `Preprocess.apply`.
        size: short side of that input in patches; 0 is the checkpoint's own.
        part: (top, left, height, width) in pixels of the picture, looked at in place of the whole.
        edits: what is changed inside the model, in words such as "off 3.1;temperature 7=0.5" (`vit_viz.session.edits` has them
            all), a list of such statements, or arguments of `edit` as a dict, {"heads": {(3, 1): 0}}; the answer is the edited
            model's.
        query: where it starts: "class", "register 0", (row, col) or "3,4", a list of patches; None is what the output is read from.
        target: the class, by index or name, a pair for "why the one and not the other", or a function as `explain` takes it, whose
            answer no link and no file can ask for again; None is the model's first.
        output: what one output is, "softmax", "sigmoid" or "value", as `load` takes it; None takes what the model says of itself.
        progress: told the share that is done; None shows a bar at a terminal or in a notebook, False nothing.
        cancelled: asked between batches; True ends with `Cancelled`.
        options: of the question; `QUESTIONS[name].options` has them with their ranges.

    Raises:
        CheckpointError, ImageError: the model or the picture cannot be read.
        ParameterError: the question, an option, the query or the target does not exist, or does not suit this model.
        CaptureError: the model's attention cannot be recorded, or its pictures would mislead.
        Cancelled: `cancelled` said so.
    """
    session, subject = session_and_subject(
        loaded, image, output=output, mode=mode, size=size, part=part, edits=edits
    )
    asked = options | {"query": query, "target": target}
    with bar(name if isinstance(name, str) else name.name, progress) as told:
        return ask(session, subject, name, progress=told, cancelled=cancelled, **asked)


def session_and_subject(
    loaded: ModelLike, image: Picture | None, *, edits: EditsLike, output: Output | None = None, **how: Any
) -> tuple[Session, Subject]:
    """The session of a model, and what a question to it is about; all as `run` takes it."""
    if isinstance(loaded, nn.Module):
        module = unwrapped_module(loaded)
        devices = {parameter.device for parameter in module.parameters()}
        session = session_of(module, output, (make_up_of(module), frozenset(devices)))
    else:
        session = session_of(loaded) if output is None else session_of(loaded, output)
    return session, subject_of(session, image, edits=ModelEdits.parse(edits), **how)


@lru_cache(maxsize=1)
def session_of(loaded: ModelLike, output: Output | None = None, made_of: object = None) -> Session:  # noqa: ARG001
    """The session that questions about a model, or its name, go to; that of the last model is kept.

    Args:
        made_of: what a module is made of now, which decides its preprocessing, labels and kind of outputs.
    """
    if isinstance(loaded, str | Path) and output is None:
        session = Session(model=loaded, cache_bytes=CACHE_BYTES)
        note_model_path(session, str(loaded))
        return session
    loaded = as_model(loaded)
    if isinstance(loaded, nn.Module):
        preprocess, origin = preprocess_within(loaded)
        loaded = plain_module(loaded, preprocess=preprocess, origin=origin)
    if output is not None:
        loaded = loaded.with_output(output)
    session = Session(model=loaded.name, cache_bytes=CACHE_BYTES)
    session.add_model(loaded)
    note_model_path(session, getattr(loaded, "ref", ""))
    return session


def note_model_path(session: Session, ref: str) -> None:
    """Remember where the session's own model lies, if what names it is a path."""
    if ref and ref not in BUNDLED and entry_of(ref) is None and Path(ref).expanduser().exists():
        session.given_paths[session.default_model] = ref


def subject_of(session: Session, image: Picture | None, **how: Any) -> Subject:
    """What a question is about; a picture that is no sample is kept with the session, once."""
    model = session.default_model
    if image is None:
        return Subject(model, "", **how)
    if isinstance(image, str) and image in samples.sample_names():
        return Subject(model, image, **how)
    picture = as_picture(image)
    if isinstance(picture, Tensor):
        raise ParameterError("A question by name is about a picture; pixels go to vv.trace or vv.explain.")
    decoded = session.decode(picture)
    digest = image_hash(decoded)
    name = "" if isinstance(picture, Image.Image) else cleaned_name(picture.name)
    kept = (key for key, stored in session.uploads.of("").items() if stored.digest == digest)
    key = next(kept, "") or session.uploads.add(decoded, name=name)
    session.given_paths.pop(key, None)  # the same pixels may come without a path now
    if isinstance(picture, Path):
        session.given_paths[key] = str(picture)
    return Subject(model, key, **how)
