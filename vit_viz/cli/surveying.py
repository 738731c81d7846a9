"""The command that looks at many photos."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import get_args

from vit_viz.cli.asking import session_of
from vit_viz.cli.others import Command, add_model
from vit_viz.cli.terminal import counting
from vit_viz.errors import ParameterError
from vit_viz.images import Mode
from vit_viz.surveys import run as surveys
from vit_viz.surveys.engine import Engine, Word
from vit_viz.surveys.local import Machine
from vit_viz.surveys.ray_engine import RayCluster

MOST_LISTED = 10
"""Photos that could not be read and are named at the end; the table of failures has all."""


def survey(flags: argparse.Namespace) -> int:
    """Survey photos into a folder."""
    model = session_of(flags).model()
    photos = flags.photos[0] if len(flags.photos) == 1 else flags.photos
    with counting("photos") as progress:
        done = surveys.survey(
            model,
            photos,
            flags.out,
            annotations=flags.annotations,
            mode=flags.mode,
            size=flags.size,
            methods=flags.methods.split(",") if flags.methods else (),
            deletion=flags.deletion,
            edits=flags.edits,
            thumbnails=flags.thumbnails,
            batch=flags.batch,
            engine=_engine(flags),
            progress=progress,
        )
    for line in _lines(done):
        print(line)
    return 0


def _engine(flags: argparse.Namespace) -> Engine:
    """What runs the stages.

    Raises:
        ParameterError: a flag is of the other engine.
    """
    others = {"local": ("address", "actors", "gpus_per_actor"), "ray": ("workers",)}
    for name in others[flags.engine]:
        if getattr(flags, name) is not None:
            raise ParameterError(f"--{name.replace('_', '-')} does nothing with --engine {flags.engine}.")
    if flags.engine == "local":
        return Machine(flags.at_once, flags.workers)
    return RayCluster(flags.address or "", flags.actors, flags.gpus_per_actor, flags.at_once)


def _lines(done: surveys.Survey) -> Iterator[str]:
    """What a survey came to, in a few lines."""
    failures, accuracy = done.failures, done.accuracy
    yield f"{done.folder}: {done.num_photos:,} photos"
    if accuracy is not None:
        yield f"top-1 {accuracy[0]:.3f}, top-5 {accuracy[1]:.3f} of {accuracy[2]:,} labelled photos"
    if failures:
        yield f"{len(failures):,} could not be read:"
        yield from (f"  {name}: {sentence}" for name, sentence in list(failures.items())[:MOST_LISTED])
    if len(failures) > MOST_LISTED:
        yield "  ... the table failures has all of them"


def _add_survey(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "photos",
        nargs="+",
        metavar="PHOTOS",
        help="A folder, a pattern, files, or a list (CSV, JSON); a folder per class gives the labels.",
    )
    parser.add_argument(
        "-o",
        "--out",
        metavar="FOLDER",
        required=True,
        help="Where the tables go; one that was begun is gone on with.",
    )
    parser.add_argument(
        "--annotations",
        metavar="FILE",
        help="Labels and boxes: CSV, JSON, COCO's JSON, or a folder of VOC's XML.",
    )
    parser.add_argument(
        "--methods",
        metavar="A,B,C",
        help="Also score these explanation methods; with deletion that is some hundred passes per photo.",
    )
    parser.add_argument(
        "--deletion",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="Of the methods also deletion and insertion beside random orders. Default: on.",
    )
    parser.add_argument(
        "--mode",
        choices=get_args(Mode),
        default="crop",
        help="How a photo becomes the model's input; default: crop.",
    )
    parser.add_argument(
        "--size",
        type=int,
        default=0,
        metavar="PATCHES",
        help="Short side of that input; default: the checkpoint's own.",
    )
    parser.add_argument(
        "--edits",
        default="",
        metavar="WORDS",
        help="Of the model's inside, as in 'off 3.1;temperature 4=0.5'; the survey is of the edited model.",
    )
    add_model(parser)
    _add_pace(parser)
    _add_engine(parser)


def _add_pace(parser: argparse.ArgumentParser) -> None:
    """What is kept and done at a time."""
    parser.add_argument(
        "--thumbnails",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="Keep small pictures. Default: on.",
    )
    parser.add_argument(
        "--batch",
        type=int,
        default=surveys.BATCH,
        metavar="PHOTOS",
        help=f"Written together. Default: {surveys.BATCH}.",
    )
    parser.add_argument(
        "--at-once", type=int, metavar="PHOTOS", help="Per forward pass; default: what suits the device."
    )
    parser.add_argument(
        "--workers",
        type=int,
        metavar="PROCESSES",
        help="That decode photos; 0 is a thread; default: what suits the device.",
    )


def _add_engine(parser: argparse.ArgumentParser) -> None:
    """Where it runs."""
    parser.add_argument(
        "--engine",
        choices=get_args(Word),
        default="local",
        help="This machine, or a Ray cluster, see docs/SCALE.md; the rows are the same. Default: local.",
    )
    parser.add_argument(
        "--address",
        metavar="HOST",
        help="Head of the Ray cluster, HOST or HOST:PORT; default: one of this machine alone is started.",
    )
    parser.add_argument(
        "--actors",
        type=int,
        metavar="COPIES",
        help="Of the model on the cluster, at most; default: Ray decides.",
    )
    parser.add_argument(
        "--gpus-per-actor",
        type=float,
        metavar="GPUS",
        help="For each copy, such as 0.5; 0 is the CPU. Default: 1 where the cluster has GPUs.",
    )


COMMAND = Command(
    "survey",
    "Look at many photos: where each head looks, what is right; tables as Parquet.",
    _add_survey,
    survey,
)
