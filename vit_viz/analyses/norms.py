"""How long the tokens are after each layer, and which of them stand far out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from vit_viz.analyses.attention import to_numpy
from vit_viz.analyses.head_statistics import OUTLIER_FACTOR
from vit_viz.analyses.options import Option
from vit_viz.analyses.spec import Place, asks
from vit_viz.analyses.tokens import state_names, token_maps, token_states
from vit_viz.answer import Answer, axes
from vit_viz.capture.given import as_trace
from vit_viz.capture.trace import Trace
from vit_viz.errors import ParameterError
from vit_viz.results import TokenMaps

FACTOR = Option("factor", "An outlier is longer than this many medians.", low=1.5, high=100, step=0.5)


@dataclass(frozen=True, eq=False, repr=False)
class TokenNorms(Answer):
    """The norm of every token in every state, the outliers among them, and the attention that these receive.

    Args:
        maps: ||x||, [states, rows, cols]; `named` has the prefix and suffix tokens.
        thresholds: norm above which a token is an outlier, [states].
        outliers: indices of the outlier tokens of each state, in the order of the sequence.
        received: share of all attention of a layer that the outliers which enter it receive, mean over heads, [layers]: of state l
            in layer l. The last state enters no layer.
        fair: the share that as many tokens would receive if all received alike, [layers].
    """

    maps: TokenMaps
    thresholds: NDArray[np.float32]
    outliers: tuple[tuple[int, ...], ...]
    received: NDArray[np.float32]
    fair: NDArray[np.float32]

    AXES = axes(thresholds=("state",), received=("layer",), fair=("layer",))

    @property
    def first(self) -> int | None:
        """The first state that has an outlier; None where none has."""
        return next((state for state, tokens in enumerate(self.outliers) if tokens), None)


def token_norms(trace: Trace, *, factor: Annotated[float, FACTOR] = OUTLIER_FACTOR) -> TokenNorms:
    """How long each token is in every state, and which tokens stand out: ||x_i|| > factor * median_j ||x_j||.

    The median is over all tokens of the state, prefix and suffix tokens too; of an even number of tokens the mean of the two middle
    ones.

    Raises:
        ParameterError: the factor is not positive.
        CaptureError: the residual stream was not kept.

    Source: Darcet et al. 2024, arXiv:2309.16588, section 2. There the threshold is a number; here it follows the median, so that it
    means the same in every layer and model.

    Example:
        >>> import vit_viz as vv
        >>> from vit_viz.samples import sample
        >>> vv.token_norms(vv.trace("mini", sample("shapes"), keep_residual=True)).outliers[-1]  # none in mini
        ()
    """
    trace = as_trace(trace)
    if not factor > 0:
        raise ParameterError(f"The outlier factor is positive, not {factor}.")
    norms = token_states(trace).norm(dim=-1)  # [states, tokens]
    thresholds = factor * norms.quantile(0.5, dim=1)  # [states]
    outliers = tuple(
        tuple((row > limit).nonzero().flatten().tolist())
        for row, limit in zip(norms, thresholds, strict=True)
    )
    maps = token_maps(
        trace,
        norms,
        state_names(trace),
        unit="norm of the token",
        value_range=(0.0, float("inf")),
        method="token norms",
        factor=factor,
    )
    counts = np.array([len(tokens) for tokens in outliers[:-1]])
    received = np.array(
        [
            float(trace.received(layer, list(tokens)).sum(-1).mean()) if tokens else 0.0
            for layer, tokens in enumerate(outliers[:-1])
        ]
    )
    return TokenNorms(
        maps,
        to_numpy(thresholds),
        outliers,
        received.astype(np.float32),
        (counts / trace.num_tokens).astype(np.float32),
    )


TOKEN_NORMS = asks(
    token_norms,
    label="Norms",
    also_called="token norms, outliers, artifacts, artefacts, high-norm tokens",
    shows="how long each token is after every layer, which stand far out, and the attention that these receive.",
    hides="what an outlier is used for.",
    formula=r"$\lVert x_i \rVert > c \cdot \mathrm{median}_j \lVert x_j \rVert$",
    source="Darcet et al. 2024, arXiv:2309.16588",
    class_blind=True,
    reads="tokens",
    place=Place("tokens", {"token_measure": "norms"}, {"factor": "token_factor"}),
)
