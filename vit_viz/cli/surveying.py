"""The commands about many photos: a survey, its check, and two of them compared."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from vit_viz.cli.commands import Command, add_model, add_parents
from vit_viz.cli.output import ProgressLines, check_folder, table
from vit_viz.errors import ParameterError
from vit_viz.images import Mode
from vit_viz.progress import counting
from vit_viz.sentences import formatted
from vit_viz.surveys.names import shown
from vit_viz.surveys.stages import BATCH, EngineName

if TYPE_CHECKING:  # help and completion need none of it
    from vit_viz.surveys import run as surveys
    from vit_viz.surveys.checking import SurveyCheck
    from vit_viz.surveys.comparison import SurveyComparison
    from vit_viz.surveys.run import SurveyEngine

MOST_LISTED = 10
"""Photos that could not be read and are named at the end; the table of failures has all."""

MOST_COMPARED = 12
"""Heads and photos that a comparison names; --json has all of them."""

PHOTOS_FAILED = 3
"""Exit code of a survey that is done, where some photos could not be read."""
NOT_WHOLE = 4
"""Exit code of --check where a survey is damaged, not finished, or holds what is no part of it."""


def survey(flags: argparse.Namespace) -> int:
    """Survey photos into a folder, or check one."""
    if flags.check is not None:
        return _check(flags)
    if not flags.photos or flags.out is None:
        raise ParameterError("A survey needs PHOTOS and --out FOLDER; --check FOLDER checks one.")
    from vit_viz.cli.asking import session_of
    from vit_viz.surveys import (
        parquet,  # noqa: F401 - without its library there is no need to load a model
        run as surveys,
    )

    check_folder(Path(flags.out).parent, parents=flags.parents)
    model = session_of(flags).model()
    photos = flags.photos[0] if len(flags.photos) == 1 else flags.photos
    with counting("photos") as bar:  # on a terminal; lines in a log
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
            extend=flags.extend,
            verify=flags.verify,
            progress=bar or ProgressLines("photos", sys.stderr).follow,
        )
    for line in _lines(done):
        print(line)
    return PHOTOS_FAILED if done.failures else 0


def _check(flags: argparse.Namespace) -> int:
    """Say whether a survey is whole."""
    if flags.photos or flags.out is not None:
        raise ParameterError("--check FOLDER checks a survey, and takes neither PHOTOS nor --out.")
    from vit_viz.surveys.run import Survey

    state = Survey(Path(flags.check)).check()
    for line in _check_lines(state):
        print(line)
    if not state.is_whole:
        return NOT_WHOLE
    return PHOTOS_FAILED if state.num_failures else 0


def _check_lines(state: SurveyCheck) -> Iterator[str]:
    """What a check came to, in a few lines."""
    done = state.num_photos + state.num_failures
    failed = f", {state.num_failures:,} of them could not be read" if state.num_failures else ""
    yield f"{shown(str(state.folder))}: {done:,} of {state.wanted:,} photos in {len(state.batches):,} batches{failed}"
    yield from (f"  batch {one.number} is damaged: {one.fault}" for one in state.damaged)
    yield from (f"  {shown(name)} is no part of the survey" for name in state.strangers)
    if state.damaged or (done < state.wanted and not state.is_complete):
        yield "not whole: the same vit-viz survey makes again what is damaged, and goes on"
    elif not state.is_complete:
        yield "not whole: the photos in it are not those of the survey"
    elif state.strangers:
        yield "its own tables are whole"
    else:
        yield "whole"


def _engine(flags: argparse.Namespace) -> SurveyEngine:
    """What runs the stages."""
    from vit_viz.surveys.local import Machine
    from vit_viz.surveys.ray_engine import RayCluster

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
    yield f"{shown(str(done.folder))}: {done.num_photos:,} photos"
    if accuracy is not None:
        yield f"top-1 {accuracy[0]:.3f}, top-5 {accuracy[1]:.3f} of {accuracy[2]:,} labelled photos"
    if failures:
        yield f"{len(failures):,} could not be read:"
        first = list(failures.items())[:MOST_LISTED]
        yield from (f"  {shown(name)}: {shown(sentence)}" for name, sentence in first)
    if len(failures) > MOST_LISTED:
        yield "  ... the table failures has all of them"
    yield from done.notes


def _add_survey(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "photos",
        nargs="*",
        metavar="PHOTOS",
        help="A folder, a pattern, files, or a list (CSV, JSON); a folder per class gives the labels.",
    )
    parser.add_argument(
        "-o",
        "--out",
        metavar="FOLDER",
        help="Where the tables go; a survey begun there is continued. Exit code 3: some photos could not be read.",
    )
    parser.add_argument(
        "--extend",
        action="store_true",
        help="Add new photos to the survey in the folder; everything else must be equal.",
    )
    parser.add_argument(
        "--verify",
        action="store_true",
        help="Compare photos by their hashes to find changed ones; default: by size and time.",
    )
    parser.add_argument(
        "--check",
        metavar="FOLDER",
        help="Say whether the survey in a folder is whole, and do nothing else; exit code 4: it is not.",
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
        help="Also score the methods by deletion and insertion, beside random orders. Default: on.",
    )
    parser.add_argument(
        "--mode",
        choices=get_args(Mode),
        default="crop",
        help="How a photo becomes the model's input; default: crop, the checkpoint's own evaluation recipe, while the page and "
        "all other commands take fit.",
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
    add_parents(parser)
    add_model(parser)
    parser.add_argument(
        "--thumbnails",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="Keep small pictures. Default: on.",
    )
    parser.add_argument(
        "--batch",
        type=int,
        default=BATCH,
        metavar="PHOTOS",
        help=f"Photos that are written together. Default: {BATCH}.",
    )
    parser.add_argument(
        "--at-once",
        type=int,
        metavar="PHOTOS",
        help="Photos per forward pass; default: what suits the device.",
    )
    parser.add_argument(
        "--workers",
        type=int,
        metavar="PROCESSES",
        help="Processes that decode photos; 0 is a thread; default: what suits the device.",
    )
    parser.add_argument(
        "--engine",
        choices=get_args(EngineName),
        default="local",
        help="This machine, or a Ray cluster, see docs/SCALE.md; the rows are the same. Default: local.",
    )
    parser.add_argument(
        "--address",
        metavar="HOST",
        help="Head of the Ray cluster, HOST or HOST:PORT; default: a cluster on this machine alone is started.",
    )
    parser.add_argument(
        "--actors",
        type=int,
        metavar="COPIES",
        help="Most copies of the model on the cluster; default: Ray decides.",
    )
    parser.add_argument(
        "--gpus-per-actor",
        type=float,
        metavar="GPUS",
        help="GPUs for each copy, such as 0.5; 0 is the CPU. Default: 1 where the cluster has GPUs.",
    )


def compare(flags: argparse.Namespace) -> int:
    """Compare two surveys."""
    from vit_viz.surveys.comparison import compare_surveys

    compared = compare_surveys(flags.before, flags.after, heads=not flags.photos_only)
    if flags.json:
        print(json.dumps(_plain(asdict(compared)), allow_nan=False))
        return 0
    for line in _comparison_lines(compared):
        print(line)
    return 0


def _comparison_lines(compared: SurveyComparison) -> Iterator[str]:
    yield f"{compared.photos:,} photos in both"
    if compared.accuracy_words:
        yield compared.accuracy_words
    if compared.note:
        yield compared.note
    if compared.compares_answers:
        yield from _answers(compared)
    if compared.heads:
        yield from _heads(compared)


def _answers(compared: SurveyComparison) -> Iterator[str]:
    counts = Counter(one.kind for one in compared.answers)
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in counts.most_common())
    yield f"{len(compared.answers):,} photos changed their answer{f': {kinds}' if kinds else ''}"
    rows = [
        [
            one.photo,
            one.kind,
            f"{one.before} {one.before_probability:.2f}",
            f"{one.after} {one.after_probability:.2f}",
        ]
        for one in compared.answers[:MOST_COMPARED]
    ]
    if rows:
        yield table(rows, head=("photo", "what", "before", "after"))


def _heads(compared: SurveyComparison) -> Iterator[str]:
    from vit_viz.surveys.comparison import unit_of

    yield compared.head_words
    rows = [
        [
            f"{one.layer}.{one.head}",
            one.statistic,
            formatted(one.difference, "+.4g"),
            f"{formatted(one.low, '+.4g')} to {formatted(one.high, '+.4g')}",
            formatted(one.effect, "+.2f"),
            unit_of(one.statistic),
        ]
        for one in compared.moved[:MOST_COMPARED]
    ]
    if rows:
        yield table(rows, head=("head", "statistic", "mean difference", "95% interval", "effect", "unit"))


def _plain(value: Any) -> Any:
    """As JSON has it: null for what is no finite number."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _add_compare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("before", metavar="BEFORE", help="The folder of a survey.")
    parser.add_argument("after", metavar="AFTER", help="The folder of a survey of the same photos.")
    parser.add_argument(
        "--photos-only",
        action="store_true",
        help="Compare answers only, as for models with other numbers of layers or heads.",
    )
    parser.add_argument("--json", action="store_true", help="Print all of it as JSON.")


COMMANDS = (
    Command("survey", "Look at many photos: where each head looks, what is right; tables as Parquet.", _add_survey,
            (__name__, "survey")),
    Command("compare-surveys", "Compare two surveys of the same photos: which heads moved, which answers changed.",
            _add_compare, (__name__, "compare")),
)  # fmt: skip
