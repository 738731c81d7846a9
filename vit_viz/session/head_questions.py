"""Questions about one head of one layer."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Any

from vit_viz.analyses.links import MOST_LINKS, LinkTokens
from vit_viz.analyses.options import Option, Options
from vit_viz.analyses.spec import Words
from vit_viz.session.question import Question


@dataclass(frozen=True)
class OneHeadOptions(Options):
    """Which head of which layer is asked about."""

    layer: Annotated[
        int,
        Option("layer", "The layer, counted from 0; -1 is the last.", low=-1, high=999, is_layer=True),
    ] = -1
    head: Annotated[
        str,
        Option(
            "head",
            "One head, counted from 0, or how heads are fused: mean, max, min.",
            pattern=r"\d{1,3}|mean|max|min",
        ),
    ] = "mean"

    @property
    def head_given(self) -> int | str:
        """The head as `attention_map` takes it."""
        return int(self.head) if self.head.isdigit() else self.head

    def layer_of(self, layers: int) -> int:
        """The layer counted from 0 in a model of so many."""
        return layers - 1 if self.layer == -1 else self.layer


@dataclass(frozen=True)
class LinkOptions(OneHeadOptions):
    """Which links are asked for."""

    count: Annotated[int, Option("links", "How many links, the strongest first.", low=1, high=MOST_LINKS)] = (
        20
    )
    tokens: Annotated[
        LinkTokens, Option("between", "Patches alone, or the class token, registers and others, too.")
    ] = "patches"
    own: Annotated[bool, Option("own", "Count a token's link to itself, too.")] = False


def _links(options: LinkOptions, layers: int) -> dict[str, Any]:
    return asdict(options) | {"layer": options.layer_of(layers), "head": options.head_given}


OF_HEADS = (
    Question(
        "links",
        Words(
            label="Strongest links",
            shows="which token looks hardest at which in one layer: the best pairs of a head, or of one query.",
            hides="the many weak links, which together often hold more.",
            formula=r"the $k$ largest $A_{l h}[i, j]$, $i \ne j$",
            source="Vaswani et al. 2017, arXiv:1706.03762",
            class_blind=True,
        ),
        LinkOptions,
        "look-up",
        analysis="links",
        parameters=_links,
        takes_query=True,
        without_query="all of them",
    ),
)
