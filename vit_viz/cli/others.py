"""The commands that answer no question about a photo: models, their proof, the app, tools for agents."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from vit_viz import samples
from vit_viz.checkpoints.catalog import BUNDLED, CATALOG
from vit_viz.checkpoints.source import is_hub_id
from vit_viz.cli.asking import session_of
from vit_viz.cli.files import check_folder, written
from vit_viz.cli.terminal import table
from vit_viz.errors import CaptureError
from vit_viz.lazy import extra
from vit_viz.memory import return_large_blocks, share_one_heap
from vit_viz.session.handles import Subject
from vit_viz.session.session import Session
from vit_viz.surveys import manifest

if TYPE_CHECKING:
    from vit_viz.surface import Surface

SURVEY_IS_YOURS = "vit-viz: the Survey tab is not shown, because others can reach this app; --share-survey shows it to everybody."


def models(flags: argparse.Namespace) -> int:
    """List the models that have a name."""
    bundled = [{"name": name, "title": "the bundled model", "megabytes": 0} for name in BUNDLED]
    if flags.json:
        print(json.dumps([*bundled, *(asdict(entry) for entry in CATALOG)]))
        return 0
    rows = [[str(one["name"]), str(one["title"]), "-", "", "No network needed."] for one in bundled]
    rows += [[e.name, e.title, f"{e.megabytes} MB", e.licence, e.good_for] for e in CATALOG]
    print(table(rows, head=("name", "model", "download", "licence", "worth a look because")))
    return 0


def proof(flags: argparse.Namespace) -> int:
    """Record a sample and compare each layer with what the model's own kernel computed."""
    session = session_of(flags)
    name = samples.sample_names()[0]
    trace = session.checked_trace_of(Subject(session.default_model, name))
    report = trace.proof_report
    if flags.json:
        checks = {check: asdict(checked) for check, checked in report.checks.items()}
        print(
            json.dumps(
                {"model": flags.model, "layers": trace.proof, "status": report.status, "checks": checks}
            )
        )
    else:
        print(session.model().card)
        print(
            table(
                [[str(i), f"{difference:.1e}"] for i, difference in enumerate(trace.proof)],
                head=("layer", "largest relative difference"),
            )
        )
        print(table([[check, checked.status, checked.sentence] for check, checked in report.checks.items()]))
        print(report.status)
    if report.status != "proven":
        raise CaptureError(report.sentence or report.status)
    return 0


def serve(flags: argparse.Namespace) -> int:
    """Open the app in the browser; the same as `python app.py`."""
    from vit_viz.session.space import GpuWorker
    from vit_viz.ui.listening import check_address

    check_address(flags.host, flags.port)
    with extra("app", needed_for="The page"):
        from vit_viz.ui.app import exposure_of, launch
    share_one_heap()
    return_large_blocks()
    session = Session(model=flags.model or _surveyed(flags), device=flags.device, lender=GpuWorker.detect())
    surfaces = [surface(session) for surface in _surfaces(flags)]
    rooms = []
    if flags.survey and exposure_of(flags.host, share=flags.share).is_shared and not flags.share_survey:
        print(SURVEY_IS_YOURS, file=sys.stderr)
    elif flags.survey:
        with extra("survey", needed_for="The Survey tab"):
            from vit_viz.ui.survey.view import survey_room
        rooms.append(survey_room(session, flags.survey))
    launch(session, host=flags.host, port=flags.port, share=flags.share, surfaces=surfaces, rooms=rooms)
    return 0


def _surveyed(flags: argparse.Namespace) -> str | None:
    """The model of the survey that is opened, where it has a name that can be loaded; else None, the usual one."""
    if not flags.survey or flags.survey == "example":
        return None
    name = str(manifest.read(Path(flags.survey)).get("model", ""))
    return name if name in {*BUNDLED, *(entry.name for entry in CATALOG)} or is_hub_id(name) else None


def _surfaces(flags: argparse.Namespace) -> list[Callable[[Session], Surface]]:
    """What is offered beside the page, as flags or environment variables ask."""
    asked: list[Callable[[Session], Surface]] = []
    if flags.api or os.environ.get("VIT_VIZ_API", "0") == "1":
        from vit_viz import rest

        asked.append(rest.surface)
    if flags.mcp or os.environ.get("VIT_VIZ_MCP", "0") == "1":
        from vit_viz import mcp

        asked.append(mcp.surface)
    return asked


def agent(flags: argparse.Namespace) -> int:
    """Answer the questions of an agent on stdin and stdout."""
    from vit_viz import mcp

    mcp.serve_stdio(session_of(flags), app=flags.app)
    return 0


def page(flags: argparse.Namespace) -> int:
    """Save the live explorer of a photo as one HTML file."""
    from vit_viz.offline.explored import Explored, check_page_name

    name, file = flags.photo, Path(flags.output)
    check_page_name(file)
    check_folder(file.parent, parents=flags.parents)
    picture = samples.sample(name) if name in samples.sample_names() else name
    explored = Explored.of(session_of(flags).model(), picture, mode=flags.mode, name=Path(name).stem)
    written(file, explored.page(explored.opening), parents=flags.parents)
    print(flags.output)
    return 0
