"""What a step of the walkthrough costs: seconds of one core, from a trace that is kept to the HTML of the step.

    python benchmarks/walkthrough.py

Seconds of this process alone, so that what others do meanwhile does not count; the best of some runs. Agreed: 0.5 s for each step.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run from a checkout that is not installed

from vit_viz.session.session import Session
from vit_viz.ui.walkthrough.routes import screen_of
from vit_viz.ui.walkthrough.scene import StepInput
from vit_viz.ui.walkthrough.screen import STEPS, html_of
from vit_viz.views.state import ViewState


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--model", default="mini")
    parser.add_argument("--image", default="shapes")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    session, view = Session(model=arguments.model, device="cpu"), ViewState(image=arguments.image)
    StepInput.of(session, view, "")  # the one trace that all steps share
    for step in range(1, len(STEPS) + 1):
        print(f"step {step}: {best(session, view, step, arguments.repeats):.3f} s")


def best(session: Session, view: ViewState, step: int, repeats: int) -> float:
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        html_of(screen_of(StepInput.of(session, view, ""), step), step)
        seconds.append(time.process_time() - start)
    return min(seconds)


if __name__ == "__main__":
    main()
