"""How long a forward pass takes in the engine of the page, beside ONNX Runtime Web and torch.

Run: python -m benchmarks.browser [--onnxruntime FOLDER] [--model mini --model tiny --model small] [--threads 1 --threads 2]

All run in Node.js, whose V8 is Chromium's. The engine yields all that it yields in the page, with and without fused multiply-add;
ONNX Runtime Web (`npm install --prefix FOLDER onnxruntime-web`; the export needs the packages onnx and onnxscript) and torch yield
the logits alone. They take turns, so that other work on the machine slows all; the fastest pass of each is compared, which other
work has slowed least, and the median is printed. tiny and small are ViT-Ti/16 and ViT-S/16 at 224 with random weights.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import torch

from vit_viz.browser import write_weights
from vit_viz.checkpoints import LoadedModel, load
from vit_viz.model import VisionTransformer, ViTConfig
from vit_viz.model.linear import forced_kernel

SCRIPT = Path(__file__).with_suffix(".js")
ROUNDS, PASSES = 3, 8
WIDTHS = {"tiny": (192, 3), "small": (384, 6)}
NAMES = {"engine": "engine, plain SIMD", "fused": "engine, relaxed SIMD", "onnxruntime": "ONNX Runtime Web"}


def model(name: str) -> LoadedModel:
    """A model by its name, or ViT-Ti/16 or ViT-S/16 with random weights."""
    if name not in WIDTHS:
        return load(name, device="cpu")
    dim, heads = WIDTHS[name]
    config = ViTConfig(img_size=(224, 224), embed_dim=dim, depth=12, num_heads=heads, num_classes=1000)
    mini = load("mini", device="cpu")
    recipe = replace(mini.preprocess, input_size=config.img_size, patch_size=config.patch_size)
    torch.manual_seed(0)
    random = VisionTransformer(config).eval()
    return replace(mini, model=random, config=config, preprocess=recipe, labels=None)


def pixels(loaded: LoadedModel) -> torch.Tensor:
    return torch.randn(1, loaded.config.in_chans, *loaded.preprocess.input_size)


def torch_times(loaded: LoadedModel, *, threads: int) -> list[float]:
    """Milliseconds of each pass of the model alone."""
    before, times, picture = torch.get_num_threads(), [], pixels(loaded)
    torch.set_num_threads(threads)
    with torch.inference_mode():
        for _ in range(PASSES):
            start = time.perf_counter()
            loaded.model(picture)
            times.append(1e3 * (time.perf_counter() - start))
    torch.set_num_threads(before)
    return times


def export(loaded: LoadedModel, path: Path) -> None:
    """The model as ONNX, with torch's own linear layers, as ONNX does not know oneDNN's."""
    with forced_kernel("torch"):
        torch.onnx.export(
            loaded.model, (pixels(loaded),), path, dynamo=True, external_data=False, verbose=False
        )


def measure(name: str, all_threads: list[int], onnxruntime: str | None) -> None:
    """Prints what one model takes."""
    loaded = model(name)
    with tempfile.TemporaryDirectory() as folder:
        path, onnx = Path(folder, "model.safetensors"), Path(folder, "model.onnx")
        write_weights(loaded, path, storage="fp32")  # as ONNX has them
        if onnxruntime:
            export(loaded, onnx)
        for threads in all_threads:
            command = ["node", str(SCRIPT), str(path), "--threads", str(threads), "--passes", str(PASSES)]
            if onnxruntime:
                command += ["--onnxruntime", onnxruntime, "--onnx", str(onnx)]
            times: dict[str, list[float]] = {}
            for _ in range(ROUNDS):
                done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
                result = json.loads(done.stdout)
                for engine, own in result["times"].items():
                    times.setdefault(NAMES[engine], []).extend(own)
                times.setdefault("torch", []).extend(torch_times(loaded, threads=threads))
            report(f"{name}, threads: {threads}", times, NAMES["onnxruntime"] if onnxruntime else "torch")
    print(f"  loading: {result['loaded']:.0f} ms, {result['memory'] / 2**20:.0f} MB of memory", flush=True)


def report(title: str, times: dict[str, list[float]], reference: str) -> None:
    print(title)
    for name, own in times.items():
        best, median = min(own), sorted(own)[len(own) // 2]
        ratio = best / min(times[reference])
        print(
            f"  {name:22} {best:7.1f} ms at best, {median:7.1f} ms median, {ratio:5.2f} x {reference}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", action="append", help="mini, tiny, small, or any name that vit_viz knows")
    parser.add_argument("--threads", action="append", type=int, help="1 and 2 unless given")
    parser.add_argument("--onnxruntime", metavar="FOLDER", help="where onnxruntime-web is installed")
    options = parser.parse_args()
    if options.onnxruntime:
        if not Path(options.onnxruntime, "node_modules", "onnxruntime-web").is_dir():
            sys.exit(
                f"There is no onnxruntime-web: please run npm install --prefix {options.onnxruntime} onnxruntime-web."
            )
        if not all(importlib.util.find_spec(name) for name in ("onnx", "onnxscript")):
            sys.exit("The model is exported by the Python packages onnx and onnxscript: please install both.")
    for name in options.model or ["mini", *WIDTHS]:
        measure(name, options.threads or [1, 2], options.onnxruntime)


if __name__ == "__main__":
    main()
