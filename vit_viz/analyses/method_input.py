"""Inputs of explanation methods: an image in front of its model, a target, and the recorded pass that the quick methods share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from vit_viz.analyses.chains import Chain, LayerRange, run_chains, start_row
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.analyses.targets import Target
from vit_viz.capture import Trace
from vit_viz.errors import CaptureError, ParameterError
from vit_viz.geometry import Query
from vit_viz.lazy import Tensor
from vit_viz.progress import Progress, StopCheck, Watch

KeptT = TypeVar("KeptT")


@dataclass(frozen=True, eq=False)
class MethodInput:
    """What every method is given; what a method does not declare to need may be missing.

    Args:
        prepared: the image as its model receives it.
        goal: what is explained, with its class or embedding fixed.
        recorded: the pass that quick methods share, or that a look-up reads.
        start: the token that is followed; None means what the output is read from.
        layers: (first, end) for the methods that go through the layers, end excluded; None means all.
        chains: of all methods that read this pass, computed together.
        progress: told the share that is done.
        cancelled: asked between batches.
    """

    prepared: PreparedImage | None = None
    goal: Target | None = None
    recorded: Trace | None = None
    start: Query | None = None
    layers: LayerRange | None = None
    chains: tuple[Chain, ...] = ()
    progress: Progress | None = None
    cancelled: StopCheck | None = None

    @property
    def subject(self) -> PreparedImage:
        """The image as its model receives it."""
        if self.prepared is None:
            raise ParameterError(
                "This method runs the model: pass the model and a picture, not only a trace."
            )
        return self.prepared

    @property
    def target(self) -> Target:
        """What is explained, with its class or embedding fixed."""
        if self.goal is None:
            raise ParameterError(
                "This method explains a target: pass the model and a picture, not only a trace."
            )
        return self.goal

    @property
    def trace(self) -> Trace:
        """The pass that quick methods share; a slow method records its own."""
        assert self.recorded is not None
        return self.recorded

    @cached_property
    def query(self) -> Query:
        """The token that is followed."""
        return self.query_in(self.trace)

    def query_in(self, trace: Trace) -> Query:
        """The token that is followed in another recorded pass of the same image."""
        logits = trace.logits
        outputs = None if self.goal is None or logits is None else self.goal.outputs_in(logits)
        return trace.output_query(self.start, outputs=outputs)

    def watch(self, total: int) -> Watch:
        """Counts the steps of a slow method, says how far it is, and ends it when that is wanted."""
        return Watch(total, progress=self.progress, cancelled=self.cancelled)

    def chain_row(self, chain: Chain, layers: LayerRange | None) -> tuple[Tensor, Tensor]:
        """The row of a chain behind all layers, and the row that it started from, both [tokens]."""
        if chain in self.chains and layers == self.layers and chain in self._rows:
            return self._rows[chain]
        start = self._start(chain)
        return run_chains(self.trace, [chain], [start], layers=layers)[0], start

    def once(self, compute: Callable[[MethodInput], KeptT]) -> KeptT:
        """What several methods read, computed for the first of them."""
        if compute not in self._kept:
            self._kept[compute] = compute(self)
        kept: KeptT = self._kept[compute]
        return kept

    @cached_property
    def _kept(self) -> dict[Callable[[MethodInput], Any], Any]:
        return {}

    @cached_property
    def _rows(self) -> dict[Chain, tuple[Tensor, Tensor]]:
        """All chains at once, so that each block of attention is formed once; none where one fails: each alone says why."""
        try:
            starts = [self._start(chain) for chain in self.chains]
            rows = run_chains(self.trace, self.chains, starts, layers=self.layers)
        except CaptureError:
            return {}
        return dict(zip(self.chains, zip(rows, starts, strict=True), strict=True))

    def _start(self, chain: Chain) -> Tensor:
        # no row is renormalised: sizes count
        return start_row(self.trace, self.query, gradient=chain.source == "gradient" and chain.share is None)
