"""The commands that answer no question about a photo: models, their proof, the app, tools for agents."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from vit_viz import samples
from vit_viz.checkpoints.catalog import BUNDLED, CATALOG, default_model
from vit_viz.checkpoints.source import is_hub_id
from vit_viz.cli.asking import session_of
from vit_viz.cli.files import written
from vit_viz.cli.terminal import table
from vit_viz.drawing.replay import replay
from vit_viz.errors import CaptureError
from vit_viz.images import Mode
from vit_viz.lazy import extra
from vit_viz.memory import return_large_blocks, share_one_heap
from vit_viz.session.handles import Subject
from vit_viz.session.run import CACHE_BYTES
from vit_viz.session.session import Session
from vit_viz.surveys import manifest

if TYPE_CHECKING:
    from vit_viz.ui.edge.surfaces import Surface


@dataclass(frozen=True)
class Command:
    """One command: its name, its sentence, its options, and what it does."""

    name: str
    sentence: str
    add: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


def add_model(parser: argparse.ArgumentParser) -> None:
    """The options that say which model answers, and where it computes."""
    parser.add_argument(
        "--model",
        metavar="NAME",
        help=f"A name of `vit-viz models`, a Hub id, a file or a folder; default: {default_model()}.",
    )
    _add_device(parser)


def _add_device(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--device", metavar="DEVICE", help="cpu, cuda or mps; default: the best that is there."
    )


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="Print JSON.")


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
    trace = session.trace_of(Subject(session.default_model, name))
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

    with extra("app", needed_for="The page"):
        from vit_viz.ui.app import launch
    share_one_heap()
    return_large_blocks()
    session = Session(model=flags.model or _surveyed(flags), device=flags.device, lender=GpuWorker.detect())
    surfaces = [surface(session) for surface in _surfaces(flags)]
    rooms = []
    if flags.survey:
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


def _add_proof(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model", metavar="MODEL", help="A name of `vit-viz models`, a Hub id, a file or a folder."
    )
    _add_device(parser)
    _add_json(parser)


def _add_serve(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument("--host", help="Address to listen on; default: 127.0.0.1, this machine only.")
    parser.add_argument("--port", type=int, help="Port; default: the first free one from 7860.")
    parser.add_argument(
        "--api", action="store_true", help="Answer questions over HTTP, too: GET /api/v1 lists them."
    )
    parser.add_argument(
        "--mcp", action="store_true", help="Answer the tools of agents at /mcp, too; needs the package mcp."
    )
    parser.add_argument(
        "--survey",
        metavar="DIR",
        help="Open the Survey tab on this folder, which `vit-viz survey` made; `example` is a small one that comes with vit_viz.",
    )
    parser.add_argument("--share", action="store_true", help="Make a public link through Gradio's servers.")


def _add_agent(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument(
        "--app",
        metavar="ADDRESS",
        default="http://127.0.0.1:7860/",
        help="Where links in answers lead; default: the app on this machine.",
    )


def again(flags: argparse.Namespace) -> int:
    """Make a file again from what it says of itself."""
    session = Session(model=flags.model, device=flags.device, cache_bytes=CACHE_BYTES)
    made = replay(flags.file, session, image=flags.image)
    is_equal = made.data == Path(flags.file).read_bytes()
    file = Path(flags.output or made.file_name)
    if flags.output or not is_equal:
        written(file, made.data)
    print(f"{flags.file}: made again, {'equal bytes' if is_equal else f'other bytes: {file}'}")
    return 0


def _add_again(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="A figure or a table that was saved here.")
    parser.add_argument(
        "--image", metavar="PHOTO", help="The photo that it was made of, where that is no sample."
    )
    add_model(parser)
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="Where to write it; default: only where its bytes differ."
    )


def page(flags: argparse.Namespace) -> int:
    """Save the live explorer of a photo as one HTML file."""
    from vit_viz.offline.explored import Explored

    name = flags.photo
    picture = samples.sample(name) if name in samples.sample_names() else name
    explored = Explored.of(session_of(flags).model(), picture, mode=flags.mode, name=Path(name).stem)
    written(Path(flags.output), explored.page(explored.opening))
    print(flags.output)
    return 0


def _add_page(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("photo", metavar="PHOTO", help="A file, or the name of a sample.")
    parser.add_argument(
        "--mode", choices=get_args(Mode), default="fit", help="How it becomes the model's input."
    )
    add_model(parser)
    parser.add_argument(
        "-o", "--output", metavar="FILE", default="explorer.html", help="Default: explorer.html."
    )


COMMANDS = (
    Command("models", "List the models that have a name.", _add_json, models),
    Command(
        "proof",
        "Compare what is captured of a model with what its own kernels computed, layer by layer.",
        _add_proof,
        proof,
    ),
    Command(
        "page", "Save the live explorer of a photo as one HTML file that needs no network.", _add_page, page
    ),
    Command("replay", "Make a saved file again from what it says of itself, and compare.", _add_again, again),
    Command("serve", "Open the app in the browser.", _add_serve, serve),
    Command(
        "mcp",
        "Answer the questions of an agent on stdin and stdout (Model Context Protocol).",
        _add_agent,
        agent,
    ),
)
