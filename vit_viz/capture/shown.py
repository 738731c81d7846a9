"""What has been shown about a trace, and what waits for it."""

from __future__ import annotations

from vit_viz.capture.report import ProofReport, ProofStatus, Structure, kernel_check
from vit_viz.capture.structure_check import StructureCheck
from vit_viz.errors import CaptureError


class Shown:
    """What a trace says about its own proof; see `Trace` for its fields."""

    differences: list[float]
    tolerance: float
    known: Structure | StructureCheck

    @property
    def structure(self) -> Structure:
        """How the layers make up the model; found out now where that is not known, once for all traces of the module.

        Raises:
            CaptureError: pictures of this trace would mislead; the message says why.
        """
        if isinstance(self.known, StructureCheck):
            self.known = self.known.result()
        return self.known

    @property
    def is_being_checked(self) -> bool:
        """Whether it is not known yet how the layers make up the model, so that asking for the proof takes a while."""
        return isinstance(self.known, StructureCheck) and self.known.finding is None

    def check_not_refused(self) -> None:
        """Check what is known by now, without waiting for the rest.

        Raises:
            CaptureError: pictures of this trace would mislead; the message says why.
        """
        if not self.is_being_checked:
            self.wait()

    def wait(self) -> None:
        """Wait until it is known that pictures of this trace do not mislead.

        Raises:
            CaptureError: they would; the message says why.
        """
        assert self.structure

    def let_model_go(self) -> None:
        """Keep the model no longer than others do; where it goes before it was checked, nothing is known of its structure."""
        if isinstance(self.known, StructureCheck):
            self.known.let_go()

    @property
    def proof(self) -> list[float]:
        """The differences, per layer, once it is known that they are the whole proof; waits as `structure` does.

        Raises:
            CaptureError: pictures of this trace would mislead.
        """
        self.wait()
        return self.differences

    @property
    def proof_report(self) -> ProofReport:
        """What was shown about this trace, check by check: kernel, placed, complete, effective, pooled; waits as `structure` does.

        Raises:
            CaptureError: pictures of this trace would mislead.
        """
        structure = self.structure
        return ProofReport(
            kernel_check(self.differences, self.tolerance),
            structure.complete,
            structure.placed,
            structure.effective,
            structure.reading,
            structure.pooled,
        )

    @property
    def proof_status(self) -> ProofStatus:
        """Whether all of it was shown: the numbers are the kernel's, all of the model's attention, and placed where they belong."""
        return self.proof_report.status

    def check_layers_follow(self) -> None:
        """Check what methods that multiply layers need: each layer reads what the one before it wrote, and nothing else.

        Raises:
            CaptureError: it does not.
        """
        if self.structure.complete.status == "fails":
            raise CaptureError(
                f"Maps through the layers are not defined for this model. {self.structure.complete.sentence}"
            )
