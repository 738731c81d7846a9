"""What the labs of heads cost: the table of all cheap measures, and the causal map, in plain forwards of the same model.

    python benchmarks/heads.py --model vit_tiny_patch16_224.safetensors --threads 2

The table is timed after its trace, which kept values and the residual stream; agreed: at most 1.0 forward for ViT-Tiny. The causal
map is timed with the pass and the gradient that order it; agreed: at most 0.45 of one forward per head. The sum of direct parts is
timed after its trace, which kept the residual stream; agreed: at most 0.5 forwards. By the clock, which wants an idle machine, and
in seconds of this process's threads, among them those that spin while they wait. Forwards and measurements alternate; the median
of the ratios is told, with the lowest and the highest.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run from a checkout that is not installed

import vit_viz
from vit_viz.analyses.ablation import causal_map
from vit_viz.analyses.decomposition import decomposition_of
from vit_viz.analyses.heads import head_tables
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.samples import sample, sample_names

KINDS = ("by the clock", "in processor time")


def main() -> None:
    arguments = parse()
    torch.set_num_threads(arguments.threads)
    picture = sample(arguments.image) if arguments.image in sample_names() else arguments.image
    subject = PreparedImage.of(vit_viz.load(arguments.model), picture, mode="crop")
    trace = subject.trace(keep_values=True, keep_residual=True)
    heads = trace.num_layers * trace.num_heads

    def forward() -> None:
        with torch.no_grad():
            subject.outputs(subject.pixels)

    tables = len(head_tables(trace))
    told(
        f"table of {tables} measures, {heads} heads",
        1,
        forward,
        lambda: head_tables(trace),
        arguments.repeats,
    )
    told("sum of direct parts", 1, forward, lambda: decomposition_of(subject, trace), arguments.repeats)
    if not arguments.table_only:
        told("causal map", heads, forward, lambda: causal_map(subject), max(3, arguments.repeats // 2))


def told(
    what: str, forwards: int, forward: Callable[[], object], measured: Callable[[], object], repeats: int
) -> None:
    """Print how many times `forwards` plain forwards something takes."""
    ratios = []
    for _ in range(repeats):
        whole = seconds(measured)
        ratios.append(whole / (forwards * np.median([seconds(forward) for _ in range(5)], axis=0)))
    middle, low, high = np.median(ratios, axis=0), np.min(ratios, axis=0), np.max(ratios, axis=0)
    words = (f"{kind} {middle[i]:.2f} ({low[i]:.2f} to {high[i]:.2f})" for i, kind in enumerate(KINDS))
    print(f"{what}, of {forwards} forwards: {', '.join(words)}")


def seconds(run: Callable[[], object]) -> NDArray[np.float64]:
    start = time.perf_counter(), time.process_time()
    run()
    return np.subtract((time.perf_counter(), time.process_time()), start)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="mini", help="what vit_viz.load takes")
    parser.add_argument("--image", default="shapes", help="a sample by its name, or a file")
    parser.add_argument("--repeats", type=int, default=24)
    parser.add_argument("--table-only", action="store_true", help="leave the causal map out")
    parser.add_argument("--threads", type=int, default=2)
    return parser.parse_args()


if __name__ == "__main__":
    main()
