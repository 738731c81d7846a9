"""What has been shown about a trace: the kernel's numbers, and that they are all of the model's attention, patch by patch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from vit_viz.answer import Provenance
from vit_viz.capture.tokens_read import TargetRead, TokensRead
from vit_viz.geometry import TokenLayout

CheckStatus = Literal["holds", "fails", "unknown"]
ProofStatus = Literal["proven", "captured, not proven", "refuted"]
Meaning = Literal[
    "right",
    "rows right, maps through the layers not",
    "rows right, but changed before they are used",
    "right, but for the map of the pool",
    "not known",
    "not to be read",
]


@dataclass(frozen=True)
class Check:
    """One thing that was checked.

    Args:
        status: whether it holds; "unknown" where it could not be determined.
        sentence: where it does not hold, what the pictures then are; "" where it holds.
    """

    status: CheckStatus
    sentence: str = ""


HOLDS = Check("holds")
UNCHECKED = Check("unknown", "It was not checked.")


@dataclass(frozen=True)
class Reading:
    """What the model's answer reads of its layers.

    Args:
        layers: whose attention changes the answer, ascending.
        shares: of what the answer takes from the image, how much passes through what each layer wrote, 0 to 1, [layers].
        before: how much passes through what the first layer is given.
        of: what reads them in words, "answer" or "target".
    """

    layers: tuple[int, ...]
    shares: tuple[float, ...]
    before: float = 1.0
    of: str = "answer"

    @property
    def sentence(self) -> str:
        """What it means for the pictures where less than all passes through all layers; "" where all does."""
        before = self.before
        if min(before, *self.shares) == 1:
            return ""
        whole = [layer for layer, share in enumerate(self.shares) if share == 1]
        last = len(self.shares) - 1
        if before == 1 and whole and max(self.shares[whole[-1] + 1 :], default=1.0) < 0.01:
            return (
                f"The {self.of} is read after layer {whole[-1]} of 0-{last}, and not after the last: the rows of each layer are "
                f"right, but maps through all layers would show what the {self.of} does not read."
            )
        least = min(before, *self.shares)
        where = (
            "the tokens before the first layer" if least == before else f"layer {self.shares.index(least)}"
        )
        share = f"Only {least:.0%}" if least > 0.005 else "Hardly anything"
        return (
            f"{share} of what the {self.of} takes from the image passes through {where}; the rest flows around: the rows of each "
            "layer are right, but maps through the layers would miss it."
        )


@dataclass(frozen=True)
class Structure:
    """How the recorded attention calls make up the model; found once per module and layout.

    Args:
        complete: each layer is one self-attention that reads what the one before it wrote; tokens exchange nothing elsewhere.
        placed: before the first layer, the pixels of a patch reach the token that the layout names, and no other.
        effective: what each layer's output projection reads is attention @ v of that call, as it is.
        reading: what the answer reads of the layers; None where there is no answer, or it was not measured.
        pooled: the answer reads the tokens of the last layer that the layout names, as far as there is an answer.
        read: which tokens of the last layer each output reads; None where it is not known, or all read what the layout names.
        target: which of them a target reads, on the photo of the trace, that is a function of what the model returns; else None.
    """

    complete: Check = UNCHECKED
    placed: Check = UNCHECKED
    effective: Check = UNCHECKED
    reading: Reading | None = None
    pooled: Check = HOLDS
    read: TokensRead | None = None
    target: TargetRead | None = None


def kernel_check(proof: Sequence[float], tolerance: float) -> Check:
    """Whether what was recorded gives what the model's own kernels computed.

    Args:
        proof: largest relative difference of each layer; NaN where it could not be compared.
        tolerance: largest difference that the kernels' own rounding explains.
    """
    too_large = [value for value in proof if value > tolerance]
    if too_large:
        return Check(
            "fails",
            f"The recorded attention does not give what the model computed: it differs by up to {max(too_large):.1e} "
            "of its largest number.",
        )
    if any(math.isnan(value) for value in proof):
        return Check(
            "unknown",
            "The attention was recorded, but not compared with what the model computed, which was not seen or is no number.",
        )
    return HOLDS


SOUND = Structure(HOLDS, HOLDS, HOLDS)


@dataclass(frozen=True, kw_only=True)
class ProofReport(Structure):
    """Whether the pictures of a trace show what the model computed: how its layers make up the model, and the numbers themselves.

    Args:
        kernel: softmax(q k^T) v, recomputed for some rows of every head, is what the model's own kernel returned.
    """

    kernel: Check

    @property
    def checks(self) -> dict[str, Check]:
        """The checks by name, in the order in which they are reported."""
        return {name: getattr(self, name) for name in ("kernel", "placed", "complete", "effective", "pooled")}

    @property
    def status(self) -> ProofStatus:
        """ "proven" where all of them hold, "refuted" where the kernel's numbers differ, else "captured, not proven"."""
        if self.kernel.status == "fails":
            return "refuted"
        held = all(check.status == "holds" for check in self.checks.values())
        return "proven" if held else "captured, not proven"

    @property
    def meaning(self) -> Meaning:
        """How the pictures are to be read: "right"; right for each layer, but not through the layers; or not as shown."""
        if "fails" in (self.kernel.status, self.placed.status):
            return "not to be read"
        if self.effective.status == "fails":
            return "rows right, but changed before they are used"
        if self.complete.status == "fails":
            return "rows right, maps through the layers not"
        if self.pooled.status == "fails":
            return "right, but for the map of the pool"
        return "right" if self.status == "proven" else "not known"

    @property
    def sentence(self) -> str:
        """What the first check that fails means for the pictures, else the first that is not known; "" where all hold."""
        for status in ("fails", "unknown"):
            for check in self.checks.values():
                if check.status == status:
                    return check.sentence
        return ""

    @property
    def words(self) -> str:
        """What was shown, in one sentence."""
        return (
            "verified: what is drawn is what the model computed" if self.status == "proven" else self.sentence
        )


def trace_words(provenance: Provenance, shape: tuple[int, int], layout: TokenLayout, shown: str) -> str:
    """A trace in three lines: the model with its (layers, heads), what it looked at, and what was shown about it."""
    rows, cols = layout.grid
    image = provenance.preprocess
    named = f", with {', '.join(layout.named)}" if layout.named else ""
    return (
        f"Trace of {provenance.model or 'a model'}: {shape[0]} layers x {shape[1]} heads, {layout.num_tokens} tokens\n"
        f"  image: {rows} x {cols} patches{named}{f'; {image}' if image else ''}\n"
        f"  proof: {shown}"
    )
