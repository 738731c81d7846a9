"""Any question by its name, from Python: the path of the page, the command line and HTTP, without their page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, overload

from PIL import Image

from vit_viz import samples
from vit_viz.analyses.prepared_image import ModelLike, Picture
from vit_viz.analyses.spec import AnswerT, AnyQuestion, Question
from vit_viz.capture import trace
from vit_viz.capture.given import as_model, as_picture, as_pixels
from vit_viz.capture.state import make_up_of
from vit_viz.capture.wrappers import preprocess_within, unwrapped_module
from vit_viz.checkpoints import Model, load
from vit_viz.checkpoints.catalog import BUNDLED, entry_of
from vit_viz.checkpoints.digest import held_states
from vit_viz.checkpoints.plain_module import own_preprocess, plain_module
from vit_viz.errors import ParameterError
from vit_viz.geometry import Query, TokenLayout
from vit_viz.images import Mode, Preprocess, image_hash
from vit_viz.images.part import Part
from vit_viz.labels import Labels
from vit_viz.lazy import Tensor, nn, torch
from vit_viz.outputs import Output
from vit_viz.progress import ProgressLike, StopCheck, bar, part_of
from vit_viz.prompts import PLAIN, Prompts
from vit_viz.session.edits import EditsLike, ModelEdits
from vit_viz.session.questions import TargetWord, ask
from vit_viz.session.request import Subject
from vit_viz.session.session import Session
from vit_viz.session.uploads import cleaned_name, pixels_hash

CACHE_BYTES = 256 * 2**20
"""Of what `run` keeps for the next question about the same picture in the same model."""


Images = Tensor | list[Picture | Tensor] | tuple[Picture | Tensor, ...]
"""Pixels of one image or of several in one tensor, or several pictures or pixels."""


@overload
def run(
    loaded: ModelLike, image: Picture | None, name: Question[Any, AnswerT], **parameters: Any
) -> AnswerT: ...


@overload
def run(
    loaded: ModelLike, image: Picture | Images | None, name: str | AnyQuestion, **parameters: Any
) -> Any: ...


@held_states()
def run(
    loaded: ModelLike,
    image: Picture | Images | None,
    name: str | AnyQuestion,
    *,
    layout: TokenLayout | None = None,
    labels: Labels | Sequence[str] | None = None,
    mode: Mode = "fit",
    size: int = 0,
    part: Part | None = None,
    edits: EditsLike = "",
    sentences: Sequence[str] | str = (),
    templates: Sequence[str] | str = PLAIN,
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
        image: a picture, its path, an array, the name of a sample, or None for what is about the model alone; pixels
            [1, channels, height, width], already normalised, which any module takes; a list or a tuple of these, or pixels of
            several images, for a list of answers, one for each in order.
        name: see `vit_viz.analyses.registry.QUESTIONS`; or one of them itself, whose answer is then of its type.
        layout: which token is what, of a module that does not tell.
        labels: names of the classes, where they did not come with the model.
        mode: how the picture becomes the model's input: "fit", "crop" or "stretch"; see `Preprocess.apply`.
        size: short side of that input in patches; 0 is the checkpoint's own.
        part: (top, left, height, width) in pixels of the picture, looked at in place of the whole.
        edits: what is changed inside the model, in words such as "off 3.1;temperature 7=0.5" (`vit_viz.session.edits` has them
            all), a list of such statements, or arguments of `edit` as a dict, {"heads": {(3, 1): 0}}; the answer is the edited
            model's.
        sentences: that are the classes, of a model with a text tower such as CLIP: a list, or one text with " | " between them.
        templates: how they are read, such as "a photo of {}."; of several, their mean is taken.
        query: where it starts: "class", "register 0", (row, col) or "3,4", a list of patches; None is what the output is read from.
        target: the class, by index or name, a sentence, a pair for "why the one and not the other", or a function as in `explain`,
            whose answer no link and no file can ask for again; None is the model's first.
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
    images, is_batch = images_of(image)
    session, subjects = session_and_subjects(
        loaded,
        images,
        layout=layout,
        labels=labels,
        output=output,
        mode=mode,
        size=size,
        part=part,
        edits=edits,
        prompts=Prompts(sentences, templates),
    )
    parameters, count = options | {"query": query, "target": target}, len(subjects)
    with bar(name if isinstance(name, str) else name.name, progress) as report:
        answers = [
            ask(
                session,
                one,
                name,
                progress=part_of(report, number / count, (number + 1) / count),
                cancelled=cancelled,
                **parameters,
            )
            for number, one in enumerate(subjects)
        ]
    return answers if is_batch else answers[0]


def images_of(image: Picture | Images | None) -> tuple[list[Picture | Tensor | None], bool]:
    """The images that are given, and whether they are a batch, so that there is an answer for each."""
    images = as_picture(image) if isinstance(image, Mapping) else image  # of a processor
    if isinstance(images, list | tuple):
        if not images:
            raise ParameterError("A batch has at least one picture; an empty one was passed.")
        return [as_picture(one) if isinstance(one, Mapping) else one for one in images], True
    if isinstance(images, Tensor) and images.ndim == 4 and len(images) > 1:
        return [*torch.split(images, 1)], True
    return [images], False


def session_and_subjects(
    loaded: ModelLike,
    images: Sequence[Picture | Tensor | None],
    *,
    edits: EditsLike,
    layout: TokenLayout | None = None,
    labels: Labels | Sequence[str] | None = None,
    output: Output | None = None,
    **how: Any,
) -> tuple[Session, list[Subject]]:
    """The session of a model, and what questions to it are about, one for each image; all as `run` takes it."""
    pixels = next((one for one in images if isinstance(one, Tensor)), None)
    if labels is not None and not isinstance(labels, Labels):
        labels = Labels(tuple(labels))
    made_of = None
    if isinstance(loaded, nn.Module):
        loaded = unwrapped_module(loaded)
        made_of = make_up_of(loaded), frozenset(parameter.device for parameter in loaded.parameters())
    is_described = layout is not None or labels is not None
    if is_described or (pixels is not None and isinstance(loaded, nn.Module)):
        model = loaded if isinstance(loaded, Model | str | Path) else as_model(loaded)
        loaded = described_model(
            model, layout, labels, None if pixels is None else tuple(pixels.shape), made_of
        )
    is_plain = output is None and made_of is None
    session = session_of(loaded) if is_plain else session_of(loaded, output, made_of)
    parsed = ModelEdits.parse(edits)
    return session, [subject_of(session, one, edits=parsed, **how) for one in images]


@lru_cache(maxsize=1)
def described_model(
    model: Model | nn.Module | str | Path,
    layout: TokenLayout | None,
    labels: Labels | None,
    shape: tuple[int, ...] | None,
    made_of: object,  # noqa: ARG001 - decides what a module says of itself
) -> Model:
    """A model with words for its tokens and classes; that of the last one is kept.

    Args:
        model: what is named is loaded.
        shape: of the pixels that it is given, where it does not say how pictures become its input.
    """
    if isinstance(model, str | Path):
        model = load(model)
    if isinstance(model, Model):
        if layout is not None:
            raise ParameterError("layout= says which token of a module is what; this model tells by itself.")
        return replace(model, labels=labels)
    preprocess, origin = preprocess_within(model)
    if shape is not None and preprocess is None and own_preprocess(model) is None:
        preprocess, origin = _of_pixels(model, shape, layout), PIXELS
    return plain_module(model, preprocess=preprocess, origin=origin, labels=labels, layout=layout)


PIXELS = "not known: pixels were passed"
"""How pictures become a module's input, where nobody says it."""


def _of_pixels(module: nn.Module, shape: tuple[int, ...], layout: TokenLayout | None) -> Preprocess:
    """A recipe that says how large patches are; of values nothing is known."""
    if len(shape) != 4:
        raise ParameterError(f"Pixels are [1, channels, height, width], not {list(shape)}.")
    layout = layout or trace(module, torch.zeros(1, *shape[1:])).layout
    (channels, height, width), (rows, cols) = shape[1:], layout.grid
    return Preprocess(
        input_size=(height, width),
        patch_size=(height // rows, width // cols),
        channels=channels,
        mean=(0.0,) * channels,
        std=(1.0,) * channels,
        drop_remainder=True,
    )


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


def subject_of(session: Session, image: Picture | Tensor | None, **how: Any) -> Subject:
    """What a question is about; a picture that is no sample is kept with the session, once."""
    model = session.default_model
    if image is None:
        return Subject(model, "", **how)
    if isinstance(image, str) and image in samples.sample_names():
        return Subject(model, image, **how)
    picture = as_picture(image)
    if isinstance(picture, Tensor):
        return Subject(model, _kept_pixels(session, picture, how), **how)
    decoded = session.decode(picture)
    digest = image_hash(decoded)
    name = "" if isinstance(picture, Image.Image) else cleaned_name(picture.name)
    kept = (key for key, stored in session.uploads.of("").items() if stored.digest == digest)
    key = next(kept, "") or session.uploads.add(decoded, name=name)
    session.given_paths.pop(key, None)  # the same pixels may come without a path now
    if isinstance(picture, Path):
        session.given_paths[key] = str(picture)
    return Subject(model, key, **how)


def _kept_pixels(session: Session, pixels: Tensor, how: Mapping[str, Any]) -> str:
    """The id under which pixels are kept with the session, once.

    What is drawn under their maps is what they show where their normalisation is known, else a white picture of their size.
    """
    loaded = session.model()
    recipe = loaded.preprocess
    pixels = as_pixels(pixels, loaded.model)
    if how.get("part") is not None or how.get("size") or how.get("mode", "fit") != "fit":
        raise ParameterError(
            "mode, size and part say how a picture becomes the model's input; pixels are used as they are."
        )
    digest = pixels_hash(pixels)
    kept = (key for key, stored in session.uploads.of("").items() if stored.digest == digest)
    if (key := next(kept, "")) != "":
        return key
    is_known = dict(loaded.provenance.parameters).get("preprocessing") != PIXELS and pixels.shape[1] in (1, 3)
    height, width = pixels.shape[-2:]
    shown = (
        recipe.reverse(pixels).convert("RGB")
        if is_known
        else Image.new("RGB", (width, height), (255, 255, 255))
    )
    return session.uploads.add(shown, name="pixels", pixels=pixels)
