"""The commands: what one is made of, and those that answer no question about a photo, with their flags.

Where the function is that runs a command is said by name, and imported only then.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import get_args

from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.options import OptionField
from vit_viz.checkpoints.catalog import DEFAULT_MODEL
from vit_viz.images import Mode
from vit_viz.settings import setting

_OTHERS = "vit_viz.cli.others"

OTHER_BYTES = 3
"""Exit code of `replay`: the numbers are equal, the bytes are not."""
OTHER_NUMBERS = 4
"""Exit code of `replay`: the numbers are others."""


@dataclass(frozen=True)
class Command:
    """One command: its name, its sentence, its flags, and the module and the function that run it."""

    name: str
    sentence: str
    add: Callable[[argparse.ArgumentParser], None]
    run: tuple[str, str]


def flag_of(option: str) -> str:
    """What an option is called on the command line."""
    return f"--{option.replace('_', '-')}"


def options_of_methods() -> dict[str, tuple[OptionField, list[str]]]:
    """Every option that a method has, by its name, with the methods that take it; they agree on what it is."""
    options: dict[str, tuple[OptionField, list[str]]] = {}
    for name, method in METHODS.items():
        for field in method.options.schema():
            options.setdefault(field.name, (field, []))[1].append(name)
    return options


def add_model(parser: argparse.ArgumentParser) -> None:
    """The options that say which model answers, and where it computes."""
    usual = setting("VIT_VIZ_MODEL") or DEFAULT_MODEL
    parser.add_argument(
        "--model",
        metavar="NAME",
        help=f"A name of `vit-viz models`, a Hub id, a file or a folder; default: {usual}.",
    )
    add_device(parser)


def add_device(parser: argparse.ArgumentParser) -> None:
    """The option that says where it computes."""
    parser.add_argument("--device", metavar="DEVICE", help="cpu, cuda or mps; default: the best available.")


def add_json(parser: argparse.ArgumentParser) -> None:
    """The option that asks for JSON."""
    parser.add_argument("--json", action="store_true", help="Print JSON.")


def add_parents(parser: argparse.ArgumentParser) -> None:
    """The option that lets folders be made."""
    parser.add_argument(
        "--parents", action="store_true", help="Create the output folder if it does not exist."
    )


def _add_proof(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model", metavar="MODEL", help="A name of `vit-viz models`, a Hub id, a file or a folder."
    )
    add_device(parser)
    add_json(parser)


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
        action="append",
        help="Open the Survey tab on this folder, which `vit-viz survey` made; `example` is a small one that comes with vit_viz. "
        "Repeat it with surveys of the same photos to compare the first with them.",
    )
    parser.add_argument(
        "--share-survey",
        action="store_true",
        help="Show the Survey tab even where others can reach the app; everybody then sees its photos.",
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


def _add_again(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="A figure or a table that was saved here.")
    parser.add_argument(
        "--image",
        metavar="PHOTO",
        help="The photo that it was made of, where that is no sample and neither where FILE says nor beside FILE.",
    )
    parser.add_argument(
        "--model",
        metavar="NAME",
        help="The model that it was made with, where that is a file of yours and neither where FILE says nor beside FILE.",
    )
    parser.add_argument(
        "--fetch",
        action="store_true",
        help="Fetch a model that FILE names from the Hub without asking, if it is not on this machine.",
    )
    add_device(parser)
    parser.add_argument(
        "-o", "--output", metavar="NEW", help="Write what is made; default: it is only compared."
    )
    add_parents(parser)
    parser.epilog = (
        f"Exit code: 0 equal bytes; {OTHER_BYTES} equal numbers, other bytes, as with other versions; "
        f"{OTHER_NUMBERS} other numbers; 2 it cannot be made again, with the reason."
    )


def _add_page(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("photo", metavar="PHOTO", help="A file, or the name of a sample.")
    parser.add_argument(
        "--mode", choices=get_args(Mode), default="fit", help="How the photo becomes the model's input."
    )
    parser.add_argument(
        "--engine",
        action="store_true",
        help="Include the model: the page then takes any photo, and runs the model in the browser.",
    )
    _add_storage(parser, "--engine stores the model's weights")
    add_model(parser)
    parser.add_argument(
        "-o", "--output", metavar="FILE", default="explorer.html", help="Default: explorer.html."
    )
    add_parents(parser)


def _add_site(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "out",
        metavar="OUT",
        help="A folder that is new, empty, or holds a site of before, which is replaced.",
    )
    parser.add_argument(
        "--models",
        nargs="+",
        metavar="NAME",
        default=["mini"],
        help="Names of `vit-viz models`, Hub ids, files or folders; the site opens with the first. Default: mini.",
    )
    _add_storage(parser, "the models' weights are stored")


def _add_storage(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument(
        "--storage",
        choices=("int8", "fp16", "fp32"),
        default="int8",
        help=f"How {what}; the page says what that changes. Default: int8, the smallest.",
    )


COMMANDS = (
    Command("models", "List the models that have a name.", add_json, (_OTHERS, "models")),
    Command("proof", "Compare what is captured of a model with what its own kernels computed, layer by layer.",
            _add_proof, (_OTHERS, "proof")),
    Command("page", "Save the live explorer of a photo as one HTML file that needs no network.",
            _add_page, (_OTHERS, "page")),
    Command("site", "Write a folder for a static host, whose page runs models in the visitor's browser.",
            _add_site, (_OTHERS, "site")),
    Command("replay", "Make a saved file again from what it says of itself, and compare.",
            _add_again, (_OTHERS, "again")),
    Command("serve", "Open the app in the browser.", _add_serve, (_OTHERS, "serve")),
    Command("mcp", "Answer the questions of an agent on stdin and stdout (Model Context Protocol).",
            _add_agent, (_OTHERS, "agent")),
)  # fmt: skip
