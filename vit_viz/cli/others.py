"""The commands that answer no question about a photo: models, their proof, the app, tools for agents, files made again."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from vit_viz import samples
from vit_viz.checkpoints import LoadedModel, Model, load
from vit_viz.checkpoints.catalog import BUNDLED, BUNDLED_LICENCE, CATALOG
from vit_viz.checkpoints.source import is_hub_id, on_this_machine
from vit_viz.cli.asking import session_of
from vit_viz.cli.commands import OTHER_BYTES, OTHER_NUMBERS
from vit_viz.cli.output import check_folder, table, written
from vit_viz.errors import CaptureError, ExportError, ParameterError
from vit_viz.figures.differences import Difference, difference
from vit_viz.figures.record import versions
from vit_viz.figures.replay import bytes_of, record_of, replay
from vit_viz.images import decode
from vit_viz.lazy import extra
from vit_viz.memory import return_large_blocks, share_one_heap
from vit_viz.session.request import Subject
from vit_viz.session.run import CACHE_BYTES
from vit_viz.session.session import Session
from vit_viz.settings import check_switches, switch
from vit_viz.surveys import manifest

if TYPE_CHECKING:
    from vit_viz.surface import Surface

SURVEY_IS_YOURS = "vit-viz: the Survey tab is not shown, because others can reach this app; --share-survey shows it to everybody."


def models(flags: argparse.Namespace) -> int:
    """List the models that have a name."""
    bundled = [
        {"name": name, "title": "bundled", "megabytes": 0, "licence": BUNDLED_LICENCE, "good_for": good_for}
        for name, good_for in BUNDLED.items()
    ]
    if flags.json:
        print(json.dumps([*bundled, *(asdict(entry) for entry in CATALOG)]))
        return 0
    rows = [
        [str(one["name"]), str(one["title"]), "-", str(one["licence"]), str(one["good_for"])]
        for one in bundled
    ]
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
        facts = {"model": flags.model, "layers": trace.proof, "status": report.status, "checks": checks}
        print(json.dumps(facts))
    else:
        print(session.model().card)
        layers = [[str(i), f"{difference:.1e}"] for i, difference in enumerate(trace.proof)]
        print(table(layers, head=("layer", "largest relative difference")))
        print(table([[check, checked.status, checked.sentence] for check, checked in report.checks.items()]))
        print(report.status)
    if report.status != "proven":
        raise CaptureError(report.sentence or report.status)
    return 0


def serve(flags: argparse.Namespace) -> int:
    """Open the app in the browser; the same as `python app.py`."""
    from vit_viz.listening import check_address
    from vit_viz.session.space import GpuWorker

    check_switches()
    check_address(flags.host, flags.port)
    with extra("app", needed_for="The page"):
        from vit_viz.ui.app import exposure_of, launch
    share_one_heap()
    return_large_blocks()
    name = flags.model or None
    if not name and flags.survey and flags.survey[0] != "example":
        surveyed = str(manifest.read(Path(flags.survey[0])).get("model", ""))
        if surveyed in {*BUNDLED, *(entry.name for entry in CATALOG)} or is_hub_id(surveyed):
            name = surveyed
    session = Session(model=name, device=flags.device, lender=GpuWorker.detect())
    own = session.default_model
    if on_this_machine(own) is not None and own not in BUNDLED:
        session.model()  # a file that is no model is refused now; a model of the Hub comes while the page opens
    surfaces: list[Surface] = []  # what is offered beside the page
    if flags.api or switch("VIT_VIZ_API"):
        from vit_viz import rest

        surfaces.append(rest.FOR_OTHERS)
    if flags.mcp or switch("VIT_VIZ_MCP"):
        from vit_viz import mcp

        surfaces.append(mcp.surface(session))
    rooms = []
    if flags.survey and exposure_of(flags.host, share=flags.share).is_shared and not flags.share_survey:
        print(SURVEY_IS_YOURS, file=sys.stderr)
    elif flags.survey:
        with extra("survey", needed_for="The Survey tab"):
            from vit_viz.ui.survey.view import survey_room
        rooms.append(survey_room(session, *flags.survey))
    launch(session, host=flags.host, port=flags.port, share=flags.share, surfaces=surfaces, rooms=rooms)
    return 0


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
    loaded, title = session_of(flags).model(), Path(name).stem
    if flags.engine:
        from vit_viz.site.file import engine_page

        model, photo = _in_browser(loaded), decode(picture)
        content = engine_page(model, photo, name=title, mode=flags.mode, storage=flags.storage)
    else:
        explored = Explored.of(loaded, picture, mode=flags.mode, name=title)
        content = explored.page(explored.opening)
    written(file, content, parents=flags.parents)
    print(flags.output)
    return 0


def _in_browser(loaded: Model) -> LoadedModel:
    """A model that the engine of a page can run."""
    if isinstance(loaded, LoadedModel):
        return loaded
    raise ParameterError(
        f"{loaded.name} cannot run in a page; only models of vit_viz's own VisionTransformer can."
    )


def site(flags: argparse.Namespace) -> int:
    """Write a static site, and say how large it is."""
    from vit_viz.site import write_site

    models = [_in_browser(load(name, device="cpu")) for name in flags.models]
    size = write_site(models, flags.out, storage=flags.storage)
    print(f"{flags.out}: {size / 1e6:.1f} MB")
    return 0


def again(flags: argparse.Namespace) -> int:
    """Make a file again from what it says of itself; the exit code tells how it differs."""
    file, output = Path(flags.file), Path(flags.output or "")
    before = bytes_of(file)
    if flags.output:
        if output.suffix.lower() != file.suffix.lower():
            raise ExportError(
                f"A file is made again in its own format, so the name must end in {file.suffix!r}, not in {output.suffix!r}."
            )
        check_folder(output.parent, parents=flags.parents)
    session = session_of(flags) if flags.model else Session(device=flags.device, cache_bytes=CACHE_BYTES)
    made = replay(file, session, image=flags.image, may_fetch=lambda name: _may_fetch(flags, name))
    compared = difference(before, made.data)
    if flags.output:
        written(output, made.data, parents=flags.parents)
    print(f"{flags.file}: made again, {_words(compared)}{f': {flags.output}' if flags.output else ''}")
    if compared.has_equal_bytes:
        return 0
    then, here = record_of(file).get("versions"), versions()
    if isinstance(then, dict):
        others = [
            f"{name} {then.get(name)}, here {now}" for name, now in here.items() if then.get(name) != now
        ]
        if others:
            print(f"vit-viz: it was made with {'; '.join(others)}", file=sys.stderr)
    return OTHER_BYTES if compared.largest == 0 else OTHER_NUMBERS


def _words(compared: Difference) -> str:
    if compared.has_equal_bytes:
        return "equal bytes"
    if compared.largest is None:
        return "other numbers: not even the same ones are there"
    if compared.largest == 0:
        return "equal numbers, other bytes"
    return f"other numbers: the largest difference is {' '.join([f'{compared.largest:.2g}', compared.unit]).rstrip()}"


def _may_fetch(flags: argparse.Namespace, name: str) -> bool:
    """Whether the Hub may be asked for a model that the file names: the flag says so, or whoever sits at the terminal."""
    if flags.fetch or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return bool(flags.fetch)
    print(
        f"{flags.file} was made with {name!r}, which is not on this machine. Fetch it from the Hub? [y/N] ",
        end="",
        file=sys.stderr,
        flush=True,
    )
    return sys.stdin.readline().strip().lower() in ("y", "yes")
