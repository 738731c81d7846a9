"""What can be asked by name: one declaration per question, see `vit_viz.session.questions`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from vit_viz.analyses.options import Options
from vit_viz.analyses.spec import Cost, Words
from vit_viz.errors import ParameterError


@dataclass(frozen=True)
class Question:
    """One thing that can be asked by name.

    Args:
        name: in Python, commands and routes: lower-case letters, digits and underscores.
        words: what people read.
        options: their type.
        cost: as of an `Analysis`.
        analysis: what an engine is asked for.
        parameters: of that request, from the options and the number of the model's layers.
        takes_query: whether it starts from a token.
        takes_target: whether it is about a class.
        takes_image: whether it is about an image, and not about the model alone.
        without_query: what it is about where no query is given, in words; "" for what the output is read from.
    """

    name: str
    words: Words
    options: type[Options]
    cost: Cost
    analysis: str
    parameters: Callable[[Any, int], Mapping[str, Any]]
    takes_query: bool = False
    takes_target: bool = False
    takes_image: bool = True
    without_query: str = ""

    def read(self, values: Mapping[str, object]) -> Options:
        """The options from text, JSON or Python values, by name.

        Raises:
            ParameterError: there is no option of a name, or its value is not possible; the message says what is.
        """
        known = {field.name: field for field in self.options.schema()}
        for name in values:
            if name not in known:
                there = f"there are: {', '.join(known)}." if known else "it has none."
                raise ParameterError(f"{self.name!r} has no option {str(name)[:40]!r}; {there}")
        read = {name: known[name].read(f"{self.name}'s {name}", value) for name, value in values.items()}
        return self.options.of(read.items())
