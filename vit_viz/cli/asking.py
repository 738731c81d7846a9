"""The commands that answer questions: photos in, files or numbers out."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import Any

from vit_viz import samples
from vit_viz.analyses.explain import COMPARISON
from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.options import Options
from vit_viz.analyses.registry import QUESTIONS
from vit_viz.answer import arrays_of
from vit_viz.cli.commands import flag_of, options_of_methods
from vit_viz.cli.output import check_folder, fetching, one_line, table, written
from vit_viz.errors import ImageError, ParameterError, VitVizError
from vit_viz.figures.files import TOGETHER, Answered, as_file, as_one_file, check_format
from vit_viz.figures.request import DrawingOptions, Output, figure_for
from vit_viz.progress import bar
from vit_viz.sentences import formatted
from vit_viz.session.inputs import InputOptions
from vit_viz.session.questions import request_for
from vit_viz.session.request import Request
from vit_viz.session.run import CACHE_BYTES, note_model_path, subject_of
from vit_viz.session.serialization import facts_of, summary_of
from vit_viz.session.session import Session


@dataclass(frozen=True)
class AnswerTask:
    """One answer to give.

    Args:
        photo: as it was named; None for what is about the model alone.
        question: its name.
        file: where the answer goes; None: to stdout.
        shares_file: whether those about the other photos go there, too.
    """

    photo: str | None
    question: str
    file: Path | None
    shares_file: bool = False


def ask(flags: argparse.Namespace) -> int:
    """Answer one question for every photo."""
    question = QUESTIONS.named(flags.question)
    photos = photos_of(flags.photos) if question.takes_image else [None]
    return _answer_all(flags, photos, [question.name])


def explain(flags: argparse.Namespace) -> int:
    """Answer with several methods for every photo."""
    named = flags.methods.split(",") if flags.methods else list(METHODS.quick)
    for name in named:
        METHODS.named(name)
    for field, takers in options_of_methods().values():
        if field.name in vars(flags) and not {*named} & {*takers}:
            raise ParameterError(
                f"{flag_of(field.name)} is an option of {' and '.join(takers)}, which you did not ask for."
            )
    photos = photos_of(flags.photos)
    file = Path(flags.output or ".")
    is_picture = not file.is_dir() and _form(file) in ("png", "svg", "pdf")
    if len(photos) == 1 and len(named) > 1 and is_picture:
        flags.methods, named = ",".join(named), [COMPARISON.name]  # one file of several maps: side by side
    return _answer_all(flags, photos, named)


def session_of(flags: argparse.Namespace) -> Session:
    """A session with the model that the flags name, loaded."""
    session = Session(model=flags.model, device=flags.device, cache_bytes=CACHE_BYTES)
    with fetching(f"fetching {session.default_model}") as progress:
        session.model(progress=progress)
    note_model_path(session, flags.model or "")
    return session


def photos_of(named: list[str]) -> list[str]:
    """Every photo that is named, patterns replaced by the files that they match."""
    photos: list[str] = []
    for name in named:
        is_one = name in samples.sample_names() or Path(name).exists() or not any(c in name for c in "*?[")
        matching = [name] if is_one else sorted(glob(name, recursive=True))
        if not matching:
            raise ParameterError(f"No file matches {name!r}.")
        photos += matching
    return photos


def _answer_all(flags: argparse.Namespace, photos: list[Any], named: list[str]) -> int:
    """Answer every question about every photo; of several, what cannot be answered is named and the others go on."""
    jobs = list(_jobs(flags, photos, named))
    for folder in {job.file.parent for job in jobs if job.file is not None}:
        check_folder(folder, parents=flags.parents)
    session = session_of(flags)
    if len(jobs) == 1:
        _answer(session, flags, jobs[0])
        return 0
    failed, unreadable, together = 0, set(), dict[str, Answered]()
    for job in jobs:
        try:
            if job.photo not in unreadable:
                answered = _answer(session, flags, job)
                if job.shares_file:
                    together[_named(job.photo)] = answered
                continue
        except VitVizError as error:
            print(f"vit-viz: {job.photo}: {one_line(error)}", file=sys.stderr)
            if isinstance(error, ImageError):
                unreadable.add(job.photo)
        failed += 1
    if together and (file := jobs[0].file) is not None:
        written(file, as_one_file(together, _form(file)), parents=flags.parents)
        if not flags.json:
            print(file)
    if failed:
        raise ParameterError(f"{failed} of {len(jobs)} answers are missing, for the reasons above.")
    return 0


def _answer(session: Session, flags: argparse.Namespace, job: AnswerTask) -> Answered:
    """Give one answer: as a file, as JSON, or in words; what shares a file is written when all of that is there."""
    request = _request(session, flags, job)
    with bar(" ".join(word for word in (job.question, job.photo) if word)) as progress:
        answer = session.run(request, progress=progress)
    answered = Answered(session, request, answer)
    if job.file is not None and not job.shares_file:
        written(job.file, _file(answered, job.file, flags), parents=flags.parents)
    if flags.json:
        result = {"photo": job.photo, "question": job.question} | answered.to_json()
        print(json.dumps(result, allow_nan=False))
    elif job.file is None:
        print(_in_words(job, answer))
    elif not job.shares_file:
        print(job.file)
    return answered


def _jobs(flags: argparse.Namespace, photos: list[Any], named: list[str]) -> Iterator[AnswerTask]:
    """What is to be answered, each with its file."""
    pairs = [(photo, name) for photo in photos for name in named]
    if flags.output is None:
        yield from (AnswerTask(photo, name, None) for photo, name in pairs)
        return
    output = Path(flags.output)
    is_folder = output.is_dir() or flags.output.endswith("/") or (len(pairs) > 1 and not output.suffix)
    if is_folder:
        form, taken = flags.format or "png", set[Path]()
        for photo, name in pairs:
            check_format(name, form)
            file = output / f"{'_'.join([*([Path(photo).stem] if photo else []), name])}.{form}"
            if file in taken:
                raise ParameterError(
                    f"Two of these photos are called {Path(photo).stem!r}; ask for them one after the other."
                )
            taken.add(file)
            yield AnswerTask(photo, name, file)
        return
    if flags.format:
        raise ParameterError(
            "--format is for files in a folder; the format of a single file follows from its ending."
        )
    form, shares_file = _form(output), len(pairs) > 1
    check_format(named[0], form)
    if shares_file and (len(named) > 1 or form not in TOGETHER):
        raise ParameterError(
            f"{len(pairs)} answers cannot be written into one file; name a folder, such as {output.stem}/. The numbers of one "
            f"question about several photos go into one .{', .'.join(TOGETHER)}."
        )
    if shares_file and len({*photos}) < len(photos):
        twice = next(photo for photo in photos if photos.count(photo) > 1)
        raise ParameterError(f"One file holds each photo once, but {twice!r} is named twice.")
    for photo, name in pairs:
        yield AnswerTask(photo, name, output, shares_file)


def _named(photo: str | None) -> str:
    """What a photo is called in a file about several; a name that is no text is written as its bytes."""
    return os.fsencode(photo or "").decode("utf-8", "backslashreplace")


def _form(file: Path) -> str:
    """What the ending of a file says that it is."""
    return file.suffix.lower().removeprefix(".")


def _request(session: Session, flags: argparse.Namespace, job: AnswerTask) -> Request:
    question = QUESTIONS.named(job.question)
    inputs = InputOptions.of(_options_in(flags, InputOptions).items())
    subject = subject_of(session, job.photo, **inputs.fields)
    parameters = _options_in(flags, question.options)
    if question.takes_query and flags.query:
        parameters["query"] = flags.query
    if question.takes_target and flags.target:
        parameters["target"] = flags.target
    return request_for(session, subject, job.question, **parameters)


def _options_in(flags: argparse.Namespace, options: type[Options]) -> dict[str, Any]:
    """The options of a kind that were given, by name."""
    return {f.name: vars(flags)[f.name] for f in options.schema() if f.name in vars(flags)}


def _file(answered: Answered, file: Path, flags: argparse.Namespace) -> bytes:
    """The bytes of a file, drawn as the flags say."""
    drawing = DrawingOptions.of(_options_in(flags, DrawingOptions).items())
    figure = figure_for(answered.request, drawing, shared_scale=flags.shared_scale, title=flags.title)
    printed = {
        name: value for name, value in _options_in(flags, Output).items() if name in ("width_cm", "dpi")
    }
    return as_file(answered, _form(file), figure=figure, **printed)


def _in_words(job: AnswerTask, answer: object) -> str:
    """An answer in a few lines: what it is, and each of its arrays with its ends and its largest value."""
    facts = facts_of(answer)
    title = facts.get("caption") or facts.get("unit") or QUESTIONS.named(job.question).words.label
    arrays, names = arrays_of(answer), facts.get("names")
    if isinstance(names, list) and "scores" in arrays:
        rows = [[name, formatted(score, ".4g")] for name, score in zip(names, arrays["scores"], strict=True)]
    else:
        rows = [_row(name, summary_of(array)) for name, array in arrays.items()]
    return "\n".join([" ".join([*([f"{job.photo}:"] if job.photo else []), str(title)]), table(rows)])


def _row(name: str, summary: dict[str, Any]) -> list[str]:
    shape = " x ".join(map(str, summary["shape"]))
    low, high = (formatted(float(summary[end]), ".4g") for end in ("min", "max"))
    place = ", ".join(map(str, summary["top"][0]["at"]))
    is_flat = summary["min"] == summary["max"] and len(summary["top"]) > 1
    return [
        f"  {name}",
        shape,
        f"{low} to {high}",
        "the same everywhere" if is_flat else f"largest at ({place})",
    ]
