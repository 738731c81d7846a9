"""What a chosen size costs: 3,600 patches (480 px, patch 8: the figures of the DINO paper) in a model of the shape of ViT-S/8.

    python benchmarks/sizes.py [--size 60]

Prints the time of a trace at the checkpoint's own size and at the chosen one beside the ratio that the page announces, the memory
of a session at its peak above the model (the own size was traced before), the parts of that, what of it a browser
fetches, and the sentence with which a shared app refuses it. `python benchmarks/explorer.py --only 3601` times the hover.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run from a checkout that is not installed

from benchmarks.shapes import random_model
from vit_viz.capture import Trace
from vit_viz.errors import ParameterError
from vit_viz.explorer.packing import layer_bytes
from vit_viz.memory import return_large_blocks, share_one_heap
from vit_viz.session.models import forward_work
from vit_viz.session.request import Subject
from vit_viz.session.session import Session
from vit_viz.ui.edge.exposure import VISITORS_PATCHES

MIB = 2**20
NAME = "ViT-S/8"


def main() -> None:
    parser = argparse.ArgumentParser(description="What a chosen size costs.")
    parser.add_argument("--size", type=int, default=60, help="short side in patches")
    size = parser.parse_args().size
    share_one_heap()  # as app.py does
    return_large_blocks()
    session = Session(model=NAME, device="cpu")
    session.add_model(random_model(NAME, patch_size=(8, 8), embed_dim=384, num_heads=6))
    subject = Subject(NAME, session.add_upload(photo()), "stretch")
    chosen = Subject(NAME, subject.image, "stretch", size=size)
    before_seconds, _ = timed(session, subject)
    session.cache.clear()
    Path("/proc/self/clear_refs").write_text("5")  # the high-water mark starts again at what is held now
    held = status("VmRSS")
    seconds, recorded = timed(session, chosen)
    peak = status("VmHWM") - held
    announce(session, subject, chosen, seconds / before_seconds)
    report(recorded, seconds, peak)
    session.max_patches = VISITORS_PATCHES
    try:
        session.trace_of(chosen)
    except ParameterError as error:
        print(f"a shared app: {error}")


def announce(session: Session, own: Subject, chosen: Subject, measured: float) -> None:
    """The ratio that the page says before the size is chosen, beside the one that was measured."""
    tokens = [session.trace_of(subject).num_tokens for subject in (own, chosen)]
    work = forward_work(session.model(NAME))
    said = work(tokens[1]) / work(tokens[0])
    print(f"{tokens[0]} -> {tokens[1]} tokens: {said:.1f} x the work as announced, {measured:.1f} x the time")


def report(recorded: Trace, seconds: float, peak: float) -> None:
    """Time, memory, and what travels."""
    kept = sum(
        tensor.nbytes
        for layer in recorded.layers
        for tensor in (layer.q, layer.k, layer.v)
        if tensor is not None
    )
    matrix = recorded.num_layers * recorded.num_heads * recorded.num_tokens**2 * 4
    print(f"trace: {seconds:.1f} s, peak {peak:.0f} MiB above the model")
    print(f"kept: operands {kept / MIB:.0f} MiB; as matrices it would be {matrix / MIB:.0f} MiB")
    print(f"one layer in the browser: {len(layer_bytes(recorded, 0)[1]) / MIB:.1f} MiB")


def timed(session: Session, subject: Subject) -> tuple[float, Trace]:
    start = time.perf_counter()
    recorded = session.trace_of(subject)
    return time.perf_counter() - start, recorded


def photo() -> Image.Image:
    return Image.fromarray(np.random.default_rng(0).integers(0, 256, (600, 600, 3), dtype=np.uint8))


def status(field: str) -> float:
    """A line of /proc/self/status in MiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))


if __name__ == "__main__":
    main()
