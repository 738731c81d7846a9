"""What runs the stages of a survey: this machine, or a Ray cluster."""

from __future__ import annotations

from typing import Literal, get_args

from vit_viz.errors import ParameterError
from vit_viz.surveys.local import Machine
from vit_viz.surveys.ray_engine import RayCluster

Word = Literal["local", "ray"]
Engine = Machine | RayCluster
"""Each has a `run` of the same signature, and writes the same rows."""


def engine_of(given: Engine | Word) -> Engine:
    """The engine that a word means, with its usual numbers.

    Raises:
        ParameterError: there is none of that name.
    """
    if isinstance(given, Engine):
        return given
    if given == "local":
        return Machine()
    if given == "ray":
        return RayCluster()
    raise ParameterError(
        f"The engine is {' or '.join(map(repr, get_args(Word)))}, a Machine or a RayCluster, not {given!r}."
    )
