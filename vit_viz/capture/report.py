"""What has been shown about a trace: the kernel's numbers, and that they are all of the model's attention, patch by patch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

CheckStatus = Literal["holds", "fails", "unknown"]
ProofStatus = Literal["proven", "captured, not proven", "refuted"]


@dataclass(frozen=True)
class Check:
    """One thing that was checked.

    Args:
        status: whether it holds; "unknown" where it could not be found out.
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
        """The four checks by name, in the order in which they are told."""
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
