"""What the labs of heads cost: the table of all cheap measures, and the causal map, in plain forwards of the same model.

    python benchmarks/heads.py --model vit_tiny_patch16_224.safetensors --threads 2

The table is timed after its trace, which kept values and the residual stream; agreed: at most 1.0 forward for ViT-Tiny. The causal
map is timed with the pass and the gradient that order it; agreed: at most 0.45 of one forward per head. Seconds of this process's
threads alone, so that what others do meanwhile does not count; forwards and measurements alternate, and the median of the ratios is
told, with the lowest and the highest.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run from a checkout that is not installed

import vit_viz
from vit_viz.analyses.ablation import causal_map
from vit_viz.analyses.heads import head_tables
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.samples import sample, sample_names


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
    if not arguments.table_only:
        told("causal map", heads, forward, lambda: causal_map(subject), max(3, arguments.repeats // 8))


def told(
    what: str, forwards: int, forward: Callable[[], object], measured: Callable[[], object], repeats: int
) -> None:
    """Print how many times `forwards` plain forwards something takes."""
    ratios = []
    for _ in range(repeats):
        ratios.append(seconds(measured) / (forwards * statistics.median(seconds(forward) for _ in range(5))))
    middle, low, high = statistics.median(ratios), min(ratios), max(ratios)
    print(f"{what}: {middle:.2f} of {forwards} forwards ({low:.2f} to {high:.2f})")


def seconds(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


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
