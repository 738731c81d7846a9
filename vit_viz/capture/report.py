"""What has been shown about a trace: the kernel's numbers, and that they are all of the model's attention, patch by patch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from vit_viz.geometry import TokenLayout
from vit_viz.results import Provenance

CheckStatus = Literal["holds", "fails", "unknown"]
ProofStatus = Literal["proven", "captured, not proven", "refuted"]


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
class Structure:
    """How the recorded attention calls make up the model; found once per module and layout.

    Args:
        complete: each layer is one self-attention that reads what the one before it wrote; tokens exchange nothing elsewhere.
        placed: before the first layer, the pixels of a patch reach the token that the layout names, and no other.
        effective: what each layer's output projection reads is attention @ v of that call, as it is.
    """

    complete: Check = UNCHECKED
    placed: Check = UNCHECKED
    effective: Check = UNCHECKED


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
            "unknown", "The attention was recorded, but what the model computed with it was not seen."
        )
    return HOLDS


SOUND = Structure(HOLDS, HOLDS, HOLDS)


@dataclass(frozen=True)
class ProofReport:
    """Whether the pictures of a trace show what the model computed.

    Args:
        kernel: softmax(q k^T) v, recomputed for some rows of every head, is what the model's own kernel returned.
        complete, placed, effective: see `Structure`.
    """

    kernel: Check
    complete: Check
    placed: Check
    effective: Check

    @property
    def checks(self) -> dict[str, Check]:
        """The four checks by name, in the order in which they are reported."""
        return {
            "kernel": self.kernel,
            "placed": self.placed,
            "complete": self.complete,
            "effective": self.effective,
        }

    @property
    def status(self) -> ProofStatus:
        """ "proven" where all four hold, "refuted" where the kernel's numbers differ, else "captured, not proven"."""
        if self.kernel.status == "fails":
            return "refuted"
        held = all(check.status == "holds" for check in self.checks.values())
        return "proven" if held else "captured, not proven"

    @property
    def sentence(self) -> str:
        """What the first check that does not hold means for the pictures; "" where all hold."""
        return next((check.sentence for check in self.checks.values() if check.status != "holds"), "")


def trace_words(
    provenance: Provenance, shape: tuple[int, int], layout: TokenLayout, report: ProofReport
) -> str:
    """A trace in three lines: the model, what it looked at, and what was shown about it.

    Args:
        shape: layers and heads.
    """
    rows, cols = layout.grid
    image = provenance.preprocess
    named = f", with {', '.join(layout.named)}" if layout.named else ""
    shown = (
        "verified: what is drawn is what the model computed" if report.status == "proven" else report.sentence
    )
    return (
        f"Trace of {provenance.model or 'a model'}: {shape[0]} layers x {shape[1]} heads, {layout.num_tokens} tokens\n"
        f"  image: {rows} x {cols} patches{named}{f'; {image}' if image else ''}\n"
        f"  proof: {shown}"
    )
