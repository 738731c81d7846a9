"""The command line, `vit-viz` or `python -m vit_viz`: a command for every question that can be asked by name, and some more.

Commands, their options, ranges and words are derived from the questions (vit_viz.analyses.registry). What goes wrong is one line
on stderr and the exit code 2; 0 is success; Ctrl+C ends with 130 and leaves no half-written file.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from vit_viz.cli.output import one_line
from vit_viz.cli.parser import command_line
from vit_viz.errors import VitVizError
from vit_viz.lazy import named

__all__ = ["main"]

FAILED = 2
INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command, of these words or of those that the program was started with; returns the exit code."""
    try:
        flags = command_line().parse_args(argv)
        done: int | None = named(*flags.run)(flags)  # imported now: help and completion need none of it
        sys.stdout.flush()
    except SystemExit as end:  # argparse has said what is to be said
        return end.code if isinstance(end.code, int) else FAILED
    except VitVizError as error:
        return _failed(error)
    except OSError as error:
        if isinstance(error, BrokenPipeError):  # whoever read us has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        return _failed(error)
    except KeyboardInterrupt:
        print("vit-viz: interrupted", file=sys.stderr)
        return INTERRUPTED
    return done or 0


def _failed(error: Exception) -> int:
    print(f"vit-viz: {one_line(error)}", file=sys.stderr)
    return FAILED
