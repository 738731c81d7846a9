"""What explaining costs: time in plain forwards, the trust strip in seconds, and the peak memory of relevance.

    python benchmarks/explain.py --model vit_tiny_patch16_224.safetensors

Times are medians of interleaved runs, so that a busy machine touches all alike. A plain forward is that of the model in evaluation,
without gradients. Memory is the peak of the resident set of a fresh process above what it has after a plain forward, for
relevance as we compute it (row chain) and with every matrix written out.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run from a checkout that is not installed

import vit_viz
from vit_viz.analyses.explain import explain_subject
from vit_viz.analyses.faithfulness import faithfulness_of, random_band
from vit_viz.analyses.map_stability import map_stability
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.analyses.removal import outputs_without
from vit_viz.model.kernel import attending_through

CHAINS = ("attention", "rollout", "gradient_rollout", "relevance")


def main() -> None:
    arguments = parse()
    torch.set_num_threads(arguments.threads)
    subject = subject_of(arguments.model, arguments.side)
    if arguments.memory:
        print(peak_bytes(subject, arguments.memory))
        return
    times(subject, arguments.repeats)
    if not arguments.quick:
        trust(subject)
    memory(arguments)


def subject_of(model: str, side: int) -> PreparedImage:
    loaded = vit_viz.load(model, device="cpu")
    pixels = torch.randn(1, 3, side, side, generator=torch.Generator().manual_seed(0))
    return PreparedImage.of(loaded, pixels)


def times(subject: PreparedImage, repeats: int) -> None:
    """Medians in milliseconds and in plain forwards."""
    runs: dict[str, Callable[[], object]] = {
        "plain forward": lambda: forward(subject),
        "attention, rollout, gradient rollout, relevance": lambda: explain_subject(subject, methods=CHAINS),
        "the same and token Grad-CAM": lambda: explain_subject(subject, methods=(*CHAINS, "gradcam")),
        "LeGrad, all layers": lambda: explain_subject(subject, methods=["legrad"]),
        "remove 20 patches": lambda: outputs_without(subject, [(0, i % 5) for i in range(20)]),
    }
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeats + 1):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)
    plain = statistics.median(seconds["plain forward"][1:])
    print(f"N = {subject.layout.num_tokens}, {torch.get_num_threads()} threads, median of {repeats}")
    for name, values in seconds.items():
        median = statistics.median(values[1:])
        print(f"  {name:50} {1000 * median:8.1f} ms  {median / plain:6.2f} forwards")


def trust(subject: PreparedImage) -> None:
    """The random band, and then the trust strip of one map: deletion, insertion, class sensitivity, mirror."""
    relevance = explain_subject(subject, methods=["relevance"])["relevance"]
    start = time.perf_counter()
    band = random_band(subject)
    middle = time.perf_counter()
    faithfulness_of(subject, relevance, band)
    for index in (
        subject.outputs(subject.pixels)[0].topk(2).indices.tolist()
    ):  # how much it changes with the class
        explain_subject(subject, methods=["relevance"], target=index)
    map_stability(subject, method="relevance", tries=1)
    end = time.perf_counter()
    print(f"  random band {middle - start:.2f} s, trust strip of one map {end - middle:.2f} s")


def memory(arguments: argparse.Namespace) -> None:
    """Peaks of both forms of relevance, each in a process of its own."""
    peaks = {}
    for form in ("chain", "materialised"):
        command = [sys.executable, __file__, "--model", arguments.model, "--side", "448", "--memory", form]
        peaks[form] = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    words = ", ".join(f"{form} {peak / 2**20:.0f} MiB" for form, peak in peaks.items())
    print(f"  relevance at 448 px, peak memory: {words}, ratio {peaks['chain'] / peaks['materialised']:.2f}")


def peak_bytes(subject: PreparedImage, form: str) -> int:
    forward(subject)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if form == "chain":
        explain_subject(subject, methods=["relevance"])
    else:
        materialised(subject)
    return 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)


def forward(subject: PreparedImage) -> Tensor:
    with torch.no_grad():
        return subject.outputs(subject.pixels)


def materialised(subject: PreparedImage) -> np.ndarray:
    """Relevance as published: every attention matrix and its gradient kept, R updated as a whole."""
    seen: list[Tensor] = []

    def attention(q: Tensor, k: Tensor, v: Tensor, *, attn_mask: Tensor | None, scale: float) -> Tensor:
        scores = q @ k.transpose(-1, -2) * scale
        weights = torch.softmax(scores if attn_mask is None else scores + attn_mask, dim=-1)
        if not weights.requires_grad:  # the first layer: a loaded model is frozen, so the graph begins here
            weights.requires_grad_()
        seen.append(weights)
        return weights @ v

    with attending_through(attention):
        logits = subject.model(subject.pixels)[0]
        inputs = torch.autograd.grad(logits.max(), seen)
    relevance = torch.eye(subject.layout.num_tokens)
    for weights, gradient in zip(seen, inputs, strict=True):
        relevance = relevance + (gradient * weights.detach())[0].clamp(min=0).mean(0) @ relevance
    return relevance[0, subject.layout.patch_slice].numpy()


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="mini", help="what vit_viz.load takes")
    parser.add_argument("--side", type=int, default=224, help="side of the input in pixels")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--quick", action="store_true", help="without the trust strip")
    parser.add_argument("--memory", choices=["chain", "materialised"], help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
