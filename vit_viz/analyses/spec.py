"""What an analysis is: declared once, beside the function that computes it.

The cards of the Explain tab and their order, option controls, links, progress, what is slow, words and formulas, when a GPU is
asked for, and the table of docs/METHODS.md are derived from these declarations. To add one: a module with its `Analysis`, and its
place in `vit_viz.analyses.methods`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from vit_viz.analyses.options import Options
from vit_viz.errors import ParameterError
from vit_viz.results import PatchMap
from vit_viz.sentences import did_you_mean

InputT = TypeVar("InputT")  # what `run` is given: a MethodInput, whose module knows chains and models
OptionsT = TypeVar("OptionsT", bound=Options)
OutcomeT = TypeVar("OutcomeT")
Cost = Literal["look-up", "pass", "many passes"]
"""A look-up reads a trace that is kept; "pass" means one recorded pass that all such analyses share; what costs many passes runs
the model for itself, is computed only when it is asked for, and says how far it is."""


@dataclass(frozen=True)
class Words:
    """An analysis in words.

    Args:
        label: its name on the screen.
        shows: one sentence on what the result shows.
        hides: one sentence on what it does not show.
        formula: words, and mathematics as LaTeX between dollar signs.
        source: paper and its address.
        class_blind: whether the result is the same for every class.
        runs: how often the model runs, where it runs for this analysis alone.
    """

    label: str
    shows: str
    hides: str
    formula: str
    source: str
    class_blind: bool = False
    runs: str = ""


@dataclass(frozen=True)
class Passes:
    """How often the model runs for an analysis that runs it for itself, in forward passes; one backward counts as two.

    Args:
        of: from the number of patches.
        at_least: whether it runs on until its result is good enough.
    """

    of: Callable[[int], int]
    at_least: bool = False


@dataclass(frozen=True)
class Reads:
    """What an analysis reads of the recorded pass that it shares with others.

    Args:
        gradient: the target's gradient for the attention of every layer.
        residual: the residual stream.
        chain: from the options to the `Chain` through the layers; chains of several analyses are computed together.
        own_blocks: the blocks of vit_viz's own model, beside the pass.
    """

    gradient: bool = False
    residual: bool = False
    chain: Callable[[Any], Any] | None = None
    own_blocks: bool = False


@dataclass(frozen=True)
class Analysis(Generic[InputT, OptionsT, OutcomeT]):
    """One way to explain an output.

    Args:
        name: in links, requests and Python: lower-case letters, digits and underscores.
        options: their type.
        run: from what every method is given, and the options, to the result.
        cost: decides how it is queued, whether it says how far it is, and whether a GPU is asked for.
        words: what people read.
        reads: what a quick one needs of the shared pass.
        follows_query: whether it can start from any token, and not only from the one that the output is read from.
        is_card: whether the Explain tab has a card for it.
        passes: from which its duration is estimated before it is asked for; None where nobody knows.
    """

    name: str
    options: type[OptionsT]
    run: Callable[[InputT, OptionsT], OutcomeT]
    cost: Cost
    words: Words
    reads: Reads = Reads()
    follows_query: bool = False
    is_card: bool = True
    passes: Passes | None = None

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z][a-z0-9_]*", self.name):
            raise ParameterError(f"An analysis cannot be called {self.name!r}: links need a_name_like_this.")
        if (self.cost == "many passes") != bool(self.words.runs):
            raise ParameterError(
                f"{self.words.label} says how often the model runs, `words.runs`, if it costs many passes."
            )

    @property
    def is_slow(self) -> bool:
        """Whether it runs only when it is asked for by name."""
        return self.cost == "many passes"

    @property
    def links(self) -> frozenset[str]:
        """Names of its options in links."""
        return frozenset(field.link_name(self.name) for field in self.options.schema())


Method = Analysis[Any, Any, PatchMap]


class Registry(Mapping[str, Method]):
    """Methods by name, in the order in which the screen shows them.

    Args:
        methods: to begin with; none has a name or a link of another.
    """

    def __init__(self, *methods: Method) -> None:
        self._methods: dict[str, Method] = {}
        for method in methods:
            self._add(method)

    def __getitem__(self, name: str) -> Method:
        return self._methods[name]

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self._methods))

    def __len__(self) -> int:
        return len(self._methods)

    def named(self, name: str) -> Method:
        """The method of a name.

        Raises:
            ParameterError: there is none; the message says which there are.
        """
        if name not in self._methods:
            raise ParameterError(f"There is no method {str(name)[:40]!r}{did_you_mean(str(name), self)}")
        return self._methods[name]

    @property
    def cards(self) -> tuple[Method, ...]:
        """Those that the Explain tab shows."""
        return tuple(method for method in self.values() if method.is_card)

    @property
    def usual(self) -> Method:
        """The one that is shown where none is chosen, or where a slow one is not at hand: the first quick card."""
        return next(method for method in self.cards if not method.is_slow)

    @property
    def quick(self) -> tuple[str, ...]:
        """Names of those that share one pass, or need none."""
        return tuple(name for name, method in self.items() if not method.is_slow)

    @property
    def slow(self) -> tuple[str, ...]:
        """Names of those that run the model for themselves, and only if they are named."""
        return tuple(name for name, method in self.items() if method.is_slow)

    @contextmanager
    def including(self, method: Method) -> Iterator[None]:
        """Offer one more method, as the last, until the end of the block.

        Raises:
            ParameterError: its name, or a link of one of its options, is taken.
        """
        self._add(method)
        try:
            yield
        finally:
            del self._methods[method.name]

    def _add(self, method: Method) -> None:
        if method.name in self._methods:
            raise ParameterError(f"There is a method {method.name!r} already.")
        taken = {link for other in self.values() for link in other.links}
        if not taken.isdisjoint(method.links):
            raise ParameterError(
                f"Links have options of these names already: {sorted(taken & method.links)}."
            )
        self._methods[method.name] = method
