"""Which tokens after the last layer the answer, or a target, reads, and the query that stands for it: the one decides the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from vit_viz.errors import CaptureError, ParameterError
from vit_viz.geometry import Query, TokenLayout, format_query

_NAMED = 4  # tokens of a target that a caption names

HowPatches = Literal["evenly", "by attention", "by a softmax", "unevenly"]


@dataclass(frozen=True)
class TokensRead:
    """Which tokens after the last layer each output of the answer reads, as measured.

    Args:
        outputs: of each output the indices of its tokens, ascending; all patches where it reads more than one.
        patches: how several patches are read: as their mean does, weighed by an attention that pools or by another softmax over
            tokens, or in none of these ways.
    """

    outputs: tuple[tuple[int, ...], ...]
    patches: HowPatches = "evenly"

    @property
    def tokens(self) -> tuple[int, ...]:
        """All that some output reads, ascending."""
        return tuple(sorted(set().union(*set(self.outputs))))

    @property
    def has_one_each(self) -> bool:
        """Whether no two outputs read the same tokens, as where each class has a token of its own."""
        return 1 < len(self.outputs) == len(set(self.outputs))

    def of(self, outputs: Sequence[int]) -> TokensRead:
        """What some of the outputs read."""
        return replace(self, outputs=tuple(self.outputs[output] for output in outputs))

    def query(self, layout: TokenLayout) -> Query | None:
        """The query that stands for what is read; None where the layout's own does."""
        if not self.tokens or self.is_as_in(layout):
            return None
        first = layout.place(self.tokens[0]) or layout.name(self.tokens[0])
        if len(self.tokens) == 1:
            return first
        fitting = layout_that_reads(layout, self)
        instead = f"pass layout={as_source(fitting)}, or " if fitting else ""
        raise ParameterError(
            f"The answer is read from {self.in_words(layout)}, where the layout says {layout.describe('pool')}, so that a map of "
            f"the answer would start from other tokens: {instead}ask for the map of one token, such as "
            f'query="{format_query(first)}".'
        )

    def is_as_in(self, layout: TokenLayout) -> bool:
        """Whether the layout says that exactly these tokens are read, and patches in this way."""
        read, patches = set(self.tokens), set(range(layout.num_tokens)[layout.patch_slice])
        if layout.pooling == "attention":  # its weights are recorded, and 0 where it does not look
            return patches <= read and self.patches in ("by attention", "by a softmax")
        expected = set(layout.tokens("pool")) | (patches if layout.joins_patches else set())
        return read == expected and (self.patches == "evenly" or not read & patches)

    def in_words(self, layout: TokenLayout) -> str:
        """The tokens in a sentence: "class, register 0 and the mean of all patches"."""
        names = [layout.name(token) for token in self.tokens if layout.place(token) is None]
        patches = [layout.name(token) for token in self.tokens if layout.place(token) is not None]
        if len(names) > 4:
            names = [", ".join([*names[:2], "..."]), names[-1]]
        if len(patches) > 1:
            how = {"evenly": "the mean of all patches", "unevenly": "several patches, not evenly"}
            patches = [how.get(self.patches, f"patches that are weighed {self.patches}")]
        *others, last = [*names, *patches] or ["no token"]
        return f"{', '.join(others)} and {last}" if others else last


@dataclass(frozen=True)
class TargetRead:
    """Which tokens after the last layer a function of what the model returns reads on this photo, as measured.

    Args:
        weights: how strongly each token is read, [tokens]: the size of the target's gradient there; the sum is 1. None where the
            target reads what the layout says, a pool with weights of its own.
        problem: why no token stands for the target, in a sentence; "" where some do.
    """

    weights: tuple[float, ...] | None = None
    problem: str = ""

    @property
    def tokens(self) -> list[int]:
        """What is read, most strongly first."""
        weights = self.weights or ()
        return sorted((i for i, weight in enumerate(weights) if weight), key=lambda i: -weights[i])

    def query(self, layout: TokenLayout) -> Query | None:
        """The query that stands for what is read: "pool" for several tokens; None where the layout's own does."""
        if self.problem:
            raise CaptureError(
                f'{self.problem}: ask for the map of one token, such as query="0,0", or for occlusion, which needs no start.'
            )
        if not self.tokens:
            return None
        first = self.tokens[0]
        return "pool" if len(self.tokens) > 1 else layout.place(first) or layout.name(first)

    def in_words(self, layout: TokenLayout) -> str:
        """Several tokens for captions: "mean of 4 tokens that the target reads (patch (1, 2) 56%, ...)"."""
        assert self.weights is not None
        most = [f"{layout.name(token)} {self.weights[token]:.0%}" for token in self.tokens[:_NAMED]]
        rest = ["..."] * (len(self.tokens) > _NAMED)
        return f"mean of {len(self.tokens)} tokens that the target reads ({', '.join(most + rest)})"


def layout_that_reads(layout: TokenLayout, read: TokensRead) -> TokenLayout | None:
    """The layout of the same tokens that says what is read; None where none does.

    Tokens that are read are class tokens. Where they are not called so, or others are, the prefix and suffix get new names.
    """
    named = [token for token in read.tokens if layout.place(token) is None]
    has_patches = len(named) < len(read.tokens)
    if has_patches and (len(read.tokens) - len(named) == 1 or read.patches in ("by a softmax", "unevenly")):
        return None
    if has_patches and read.patches == "by attention":
        return replace(layout, pooling="attention", joins_patches=False)
    names, unread = {layout.token(name): name for name in layout.named}, layout.unread
    if named and {names[token] for token in named} != set(layout.class_tokens):
        read_as = ["class"] if len(named) == 1 else [f"class {i}" for i in range(len(named))]
        others = [token for token in names if token not in named]
        kinds = ["register" if token < layout.num_prefix else "token" for token in others]
        names |= {
            token: f"{kind} {kinds[:i].count(kind)}"
            for i, (token, kind) in enumerate(zip(others, kinds, strict=True))
        }
        names |= dict(zip(named, read_as, strict=True))
        unread = ()
    ordered = [names[token] for token in sorted(names)]
    return TokenLayout(
        layout.grid,
        tuple(ordered[: layout.num_prefix]),
        pooling="class" if named else "mean",
        suffix=tuple(ordered[layout.num_prefix :]),
        joins_patches=bool(named) and has_patches,
        unread=unread,
    )


def as_source(layout: TokenLayout) -> str:
    """A layout as Python source, without what is so by default."""
    (rows, cols), usual = layout.grid, TokenLayout(layout.grid, layout.prefix, suffix=layout.suffix)
    pooling = f', pooling="{layout.pooling}"' if layout.pooling != usual.pooling else ""
    suffix = f", suffix={layout.suffix}" if layout.suffix else ""
    joins = ", joins_patches=True" if layout.joins_patches else ""
    unread = f", unread={layout.unread}" if layout.unread else ""
    return f"TokenLayout(grid=({rows}, {cols}), prefix={layout.prefix}{pooling}{suffix}{joins}{unread})"
