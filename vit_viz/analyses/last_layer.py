"""What the output token looks at in the last layer: the map that everyone shows."""

from __future__ import annotations

from vit_viz.analyses.attention import attention_map
from vit_viz.analyses.method_input import MethodInput
from vit_viz.analyses.options import NoOptions
from vit_viz.analyses.spec import Method, Words
from vit_viz.results import PatchMap


def _last_layer(given: MethodInput, _options: NoOptions) -> PatchMap:
    return attention_map(given.trace, layer=given.trace.num_layers - 1, query=given.query)


LAST_LAYER_ATTENTION = Method(
    name="attention",
    options=NoOptions,
    run=_last_layer,
    cost="pass",
    words=Words(
        label="Last-layer attention",
        shows="where the output token looks in the last layer, averaged over its heads.",
        hides="the class, and all earlier layers: it is the map that is shown most, and it often misses the object.",
        formula=r"$\mathrm{mean}_h\, A_{L h}[o, :]$; $L$: the last layer; $o$: the token that the output is read from",
        source="Vaswani et al. 2017, arXiv:1706.03762",
        class_blind=True,
    ),
)
