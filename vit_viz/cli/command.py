"""A command: its name, its sentence, its flags, and where the function is that runs it, which is imported only then."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from dataclasses import dataclass

from vit_viz.cli.outline import outline
from vit_viz.lazy import named

Run = Callable[[argparse.Namespace], int]


@dataclass(frozen=True)
class Command:
    """One command: its name, its sentence, its flags, and what it does."""

    name: str
    sentence: str
    add: Callable[[argparse.ArgumentParser], None]
    run: Run


def later(module: str, name: str) -> Run:
    """A function that is imported when it is called: help and completion need none of what it needs."""

    def run(flags: argparse.Namespace) -> int:
        code: int = named(module, name)(flags)
        return code

    return run


def add_model(parser: argparse.ArgumentParser) -> None:
    """The options that say which model answers, and where it computes."""
    usual = os.environ.get("VIT_VIZ_MODEL", "").strip() or outline().default_model
    parser.add_argument(
        "--model",
        metavar="NAME",
        help=f"A name of `vit-viz models`, a Hub id, a file or a folder; default: {usual}.",
    )
    add_device(parser)


def add_device(parser: argparse.ArgumentParser) -> None:
    """The option that says where it computes."""
    parser.add_argument(
        "--device", metavar="DEVICE", help="cpu, cuda or mps; default: the best that is there."
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    """The option that asks for JSON."""
    parser.add_argument("--json", action="store_true", help="Print JSON.")


def add_parents(parser: argparse.ArgumentParser) -> None:
    """The option that lets folders be made."""
    parser.add_argument(
        "--parents", action="store_true", help="Make the folder of what is written, if need be."
    )
