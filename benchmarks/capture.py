"""What recording attention costs: time and memory against a plain forward pass and against the usual ways.

    python benchmarks/capture.py                        the whole table
    python benchmarks/capture.py --cases tiny-197       one case; see CASES
    python benchmarks/capture.py --json capture.json    also as JSON

The price of the proof is told below each case: of each photo, and once per module and layout, for timm's model and for ours.

Time: all methods interleaved in one process on one thread, CPU time (CUDA events on a GPU). Each call follows a plain forward of
timm's model (1.00); a ratio is the median over the rounds of a call's time over that of the forward before it, so that
changes of the machine's speed do not matter. timm's forward against itself shows how much of a ratio is noise.
Memory: the peak above the model, each method in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


@dataclass(frozen=True)
class Case:
    """One model size and image size."""

    dim: int
    heads: int
    patch: int
    pixels: int

    @property
    def tokens(self) -> int:
        """Patches and the class token."""
        return (self.pixels // self.patch) ** 2 + 1


class Timing(NamedTuple):
    """Seconds of a call, and how many plain forwards that is."""

    seconds: float
    ratio: float


CASES = {
    "tiny-197": Case(192, 3, 16, 224),
    "small-197": Case(384, 6, 16, 224),
    "base-197": Case(768, 12, 16, 224),
    "small-785": Case(384, 6, 16, 448),
    "small-1370": Case(384, 6, 14, 518),
    "small-3601": Case(384, 6, 8, 480),
}
LIMITS = {  # what a ratio may be, by number of tokens
    "our forward": {"": 1.0},
    "trace of ours, no proof": {"": 1.03},
    "trace of ours, 16-row proof": {"": 1.08},
    "trace of timm, no proof": {"": 1.03},
    "trace of timm, 16-row proof": {"": 1.08},
    "trace of ours, fast linear": {"197": 0.65, "785": 0.70},
}
LIMITS_OF_PROOF = 0.08
"""Of a forward, per photo, for ViT-S and larger."""
MEMORY_LIMITS = {"small-785": 0.25, "small-3601": 0.10}
PLAIN = "timm forward"
EXTRACT = "timm AttentionExtract (fx)"
TRACE = "trace of timm, 16-row proof"
FAST = "trace of ours, fast linear"
PLAIN_FAST = "our forward, fast linear"


def timm_model(case: Case) -> nn.Module:
    from timm.models.vision_transformer import VisionTransformer

    torch.manual_seed(0)
    return VisionTransformer(
        img_size=case.pixels, patch_size=case.patch, embed_dim=case.dim, depth=12, num_heads=case.heads, num_classes=1000
    ).eval()  # fmt: skip


def our_model(case: Case, *, fast: bool) -> nn.Module:
    from vit_viz.model import VisionTransformer, ViTConfig
    from vit_viz.model.linear import use_fastest_linear

    size, patch = (case.pixels, case.pixels), (case.patch, case.patch)
    model = VisionTransformer(
        ViTConfig(img_size=size, patch_size=patch, embed_dim=case.dim, num_heads=case.heads)
    )
    model.load_state_dict(timm_model(case).state_dict())
    if fast:
        use_fastest_linear(model)
    return model.eval()


def transformers_model(case: Case) -> nn.Module:
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(
        hidden_size=case.dim, num_attention_heads=case.heads, intermediate_size=4 * case.dim, image_size=case.pixels,
        patch_size=case.patch, num_labels=1000,
    )  # fmt: skip
    model = ViTForImageClassification(config)
    model.set_attn_implementation("eager")
    return model.eval()


def plain(model: nn.Module) -> Callable[[Tensor], object]:
    return torch.no_grad()(model)


def traced(model: nn.Module, **choices: Any) -> Callable[[Tensor], object]:
    from vit_viz.capture import trace

    return lambda pixels: trace(model, pixels, **choices)


def extracted(model: nn.Module) -> Callable[[Tensor], object]:
    from timm.utils import AttentionExtract

    unfuse(model)
    return torch.no_grad()(AttentionExtract(model, method="fx"))


def unfuse(model: nn.Module) -> list[Any]:
    """timm's blocks with their fused kernels off: neither fx nor hooks see an attention otherwise."""
    blocks: Any = model.blocks
    for block in blocks:
        block.attn.fused_attn = False
    return list(blocks)


def with_attentions(model: nn.Module) -> Callable[[Tensor], object]:
    return torch.no_grad()(lambda pixels: model(pixels, output_attentions=True))


def explained(model: nn.Module) -> Callable[[Tensor], object]:
    """Hooks on the attention dropout with the fused kernel off, then rollout by products of N x N matrices, as vit-explain does."""
    blocks = unfuse(model)

    @torch.no_grad()
    def run(pixels: Tensor) -> Tensor:
        seen: list[Tensor] = []
        handles = [
            block.attn.attn_drop.register_forward_hook(lambda *call: seen.append(call[2].cpu()))
            for block in blocks
        ]
        model(pixels)
        for handle in handles:
            handle.remove()
        result = torch.eye(seen[0].shape[-1])
        for attention in seen:
            fused = attention.mean(1)[0]
            fused = (fused + torch.eye(len(fused))) / 2
            result = (fused / fused.sum(-1, keepdim=True)) @ result
        return result[0, 1:]

    return run


METHODS: dict[str, Callable[[Case], Callable[[Tensor], object]]] = {
    PLAIN: lambda case: plain(timm_model(case)),
    "our forward": lambda case: plain(our_model(case, fast=False)),
    PLAIN_FAST: lambda case: plain(our_model(case, fast=True)),
    "trace of ours, no proof": lambda case: traced(our_model(case, fast=False), proof_rows=0),
    "trace of ours, 16-row proof": lambda case: traced(our_model(case, fast=False)),
    "trace of timm, no proof": lambda case: traced(timm_model(case), proof_rows=0),
    TRACE: lambda case: traced(timm_model(case)),
    FAST: lambda case: traced(our_model(case, fast=True)),
    "trace of ours, fast linear, values": lambda case: traced(our_model(case, fast=True), keep_values=True),
    EXTRACT: lambda case: extracted(timm_model(case)),
    "transformers eager, output_attentions": lambda case: with_attentions(transformers_model(case)),
    "hooks and rollout (vit-explain)": lambda case: explained(timm_model(case)),
}


def measure(case: Case, rounds: int, device: str, methods: list[str]) -> dict[str, Timing]:
    """Each method against the plain forward that ran just before it, rounds interleaved."""
    pixels = torch.randn(1, 3, case.pixels, case.pixels, device=device)
    plain_forward = on(METHODS[PLAIN], case, device)
    prepared = {name: on(METHODS[name], case, device) for name in methods}
    pairs: dict[str, list[tuple[float, float]]] = {name: [] for name in methods}
    for number in range(rounds + 1):  # the first round warms up
        for name, run in prepared.items():
            pair = timed(plain_forward, pixels, device), timed(run, pixels, device)
            if number:
                pairs[name].append(pair)
    return {name: timing(values) for name, values in pairs.items()}


class Price(NamedTuple):
    """What a proof costs, in plain forwards: of each photo, and once per module; and how many images the module is given for it."""

    per_photo: float
    once: float
    images: int


def price(make: Callable[[Case], nn.Module], case: Case, rounds: int, device: str) -> Price:
    """Each trace with the proof against one without it and a plain forward that ran just before it."""
    with torch.device(device):
        model, pixels = make(case), torch.randn(1, 3, case.pixels, case.pixels)
    without, proven, forward = traced(model, proof_rows=0), traced(model), plain(model)
    images: list[int] = []
    handle = model.register_forward_pre_hook(lambda _, given: images.append(len(given[0])))
    forward(pixels), without(pixels)  # warm
    images.clear()
    once = timed(lambda given: proven(given).wait(), pixels, device)  # type: ignore[attr-defined]
    handle.remove()
    rows = [[timed(run, pixels, device) for run in (forward, without, proven)] for _ in range(rounds)]
    one = statistics.median(row[0] for row in rows)
    return Price(
        statistics.median((row[2] - row[1]) / row[0] for row in rows), once / one - 1, sum(images) - 1
    )


def price_words(whose: str, cost: Price) -> str:
    bound = LIMITS_OF_PROOF
    verdict = "ok" if cost.per_photo <= bound else "MISSED"
    return (
        f"  price of the proof, {whose}: {cost.per_photo:+.3f} of a forward per photo  limit {bound:.2f} {verdict}; "
        f"once per module and layout {cost.images} images, {cost.once:.1f} forwards"
    )


def timing(pairs: list[tuple[float, float]]) -> Timing:
    """Median seconds, and median ratio to the plain forward, of (plain, method) pairs."""
    return Timing(
        statistics.median(method for _, method in pairs),
        statistics.median(method / plain for plain, method in pairs),
    )


def on(
    make: Callable[[Case], Callable[[Tensor], object]], case: Case, device: str
) -> Callable[[Tensor], object]:
    with torch.device(device):
        return make(case)


def timed(run: Callable[[Tensor], object], pixels: Tensor, device: str) -> float:
    if device == "cuda":
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        run(pixels)
        end.record()
        torch.cuda.synchronize()
        return start.elapsed_time(end) / 1e3
    begin = time.process_time()
    run(pixels)
    return time.process_time() - begin


def peak(case: Case, method: str) -> float:
    """MiB above the model at the peak of one call, in a fresh process."""
    command = [sys.executable, __file__, "--peak", method, "--case", json.dumps(asdict(case))]
    return float(subprocess.run(command, capture_output=True, check=True, text=True).stdout.split()[-1])


def report_peak(case: Case, method: str) -> None:
    run, pixels = METHODS[method](case), torch.randn(1, 3, case.pixels, case.pixels)
    if (
        method != EXTRACT
    ):  # the first operators load their libraries; a forward at a small size is enough for that
        METHODS[method](Case(64, 1, 16, 32))(torch.randn(1, 3, 32, 32))
    Path("/proc/self/clear_refs").write_text("5")  # the high-water mark starts again at what is held now
    before = status("VmRSS")
    kept = run(pixels)
    print((status("VmHWM") - before) / 1024)
    del kept


def status(field: str) -> float:
    """A memory figure of this process, KiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return float(next(line for line in lines if line.startswith(field)).split()[1])


def declare_torchvision_operators() -> torch.library.Library | None:
    """timm imports torchvision, whose compiled operators may not fit this torch; the schemas alone are enough for that."""
    command = [sys.executable, "-c", "import torchvision"]
    if (
        find_spec("torchvision") is None
        or subprocess.run(command, capture_output=True, check=False).returncode == 0
    ):
        return None
    library = torch.library.Library("torchvision", "FRAGMENT")
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return library


def limit(method: str, tokens: int) -> float | None:
    limits = LIMITS.get(method, {})
    return limits.get(str(tokens), limits.get(""))


def table(results: dict[str, Any]) -> str:
    lines = []
    for name, result in results.items():
        time_of: dict[str, Timing] = result["time"]
        tokens, memory = result["tokens"], result["peak_mib"]
        lines.append(f"\n{name}: N = {tokens}, plain timm forward {1e3 * time_of[PLAIN].seconds:.1f} ms")
        onednn_pays = PLAIN_FAST not in time_of or time_of[PLAIN_FAST].ratio <= 0.8
        for method, (_, ratio) in time_of.items():
            bound = limit(method, tokens)
            note = "" if bound is None else f"  limit {bound:.2f} {'ok' if ratio <= bound else 'MISSED'}"
            if method == FAST and not onednn_pays:
                note = "  (oneDNN does not pay on this CPU, so its limit does not apply)"
            peak_of = f" {memory[method]:9.1f} MiB" if method in memory else ""
            lines.append(f"  {method:40s} {ratio:6.3f}{peak_of}{note}")
        if EXTRACT in memory and TRACE in memory:
            share, bound = memory[TRACE] / memory[EXTRACT], MEMORY_LIMITS.get(name)
            lines.append(
                f"  peak of the trace / peak of AttentionExtract: {share:.3f}" + (f"  limit {bound:.2f}" if bound else "")
            )  # fmt: skip
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=CASES)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--no-memory", action="store_true")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--peak", choices=METHODS, help=argparse.SUPPRESS)
    parser.add_argument("--case", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    library = declare_torchvision_operators()
    if options.peak:
        report_peak(Case(**options.case), options.peak)
        return
    results: dict[str, Any] = {}
    for name in options.cases:
        methods = list(dict.fromkeys([PLAIN, *options.methods]))
        times = measure(CASES[name], options.rounds, options.device, methods)
        memory = {} if options.no_memory else {method: peak(CASES[name], method) for method in methods}
        result = {"tokens": CASES[name].tokens, "time": times, "peak_mib": memory}
        print(table({name: result}), flush=True)
        makers = {"timm": timm_model, "ours": lambda case: our_model(case, fast=False)}
        prices = {
            whose: price(make, CASES[name], 3 * options.rounds, options.device)
            for whose, make in makers.items()
        }
        print("\n".join(price_words(*each) for each in prices.items()), flush=True)
        result["proof"] = {whose: cost._asdict() for whose, cost in prices.items()}
        results[name] = result | {"time": {method: time._asdict() for method, time in times.items()}}
    if options.json:
        options.json.write_text(json.dumps({"torch": torch.__version__, "cases": results}, indent=1))
    del library


if __name__ == "__main__":
    main()
