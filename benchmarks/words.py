"""How long a sentence takes from Enter to its answer: `python -m benchmarks.words`.

Towers of the size of CLIP's ViT-B/32, random weights, our own format. Each round asks with a sentence that was never asked before,
among two that were: its similarity and share (what the field shows), then its map by relevance, as the page asks for them. Times
are of this machine, in milliseconds; beside them in forward passes of the model alone, which another machine has, too.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from vit_viz.checkpoints import load
from vit_viz.checkpoints.digest import held_states
from vit_viz.model import TextConfig, TextTransformer, VisionTransformer, ViTConfig
from vit_viz.prompts import Prompts
from vit_viz.session.questions import ask
from vit_viz.session.run import session_and_subjects
from vit_viz.ui import target
from vit_viz.views.state import ViewState

PICTURE = ViTConfig(
    patch_size=(32, 32),
    num_classes=512,
    norm_eps=1e-5,
    mlp="quick_gelu",
    pre_norm=True,
    patch_bias=False,
    head_bias=False,
    projection=True,
)
TEXT = {"vocabulary": 49408, "context": 77, "width": 512, "depth": 12, "num_heads": 8, "embed_dim": 512}
ROUNDS = 40


def write(path: Path) -> None:
    """Both towers with random weights, and a tokenizer of one word for each number."""
    words: Any = models.WordLevel(
        {str(number): number for number in range(TEXT["vocabulary"])}, unk_token="2"
    )
    tokenizer = Tokenizer(words)
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.add_special_tokens(["0", "1"])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="0 $A 1", special_tokens=[("0", 0), ("1", 1)]
    )
    text = {**TEXT, "mlp": "quick_gelu"}
    state = dict(VisionTransformer(PICTURE).state_dict())
    state |= {f"text.{name}": one for name, one in TextTransformer(TextConfig(**text)).state_dict().items()}  # type: ignore[arg-type]
    state["logit_scale"] = torch.tensor(4.6)
    said = {"config": PICTURE.to_dict(), "text": {**text, "sigmoid": False, "lower": True}}
    save_file(
        state, path, {name: json.dumps(one) for name, one in said.items()} | {"tokenizer": tokenizer.to_str()}
    )


def timed(work: Callable[[], Any]) -> float:
    """Milliseconds."""
    started = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - started)


def main() -> None:
    """Print both times."""
    torch.set_num_threads(2)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "b32.safetensors"
        write(path)
        loaded = load(path, device="cpu")
        session, (subject,) = session_and_subjects(loaded, ["lion"], edits="")

        def answered(sentence: str) -> None:
            asked = replace(subject, prompts=Prompts(("7 8 9", "10 11 12", sentence)))
            with held_states():  # as an edge of the app does for a request
                target.value(session, asked, ViewState(target="2"))

        def mapped(sentence: str) -> None:
            asked = replace(subject, prompts=Prompts(("7 8 9", "10 11 12", sentence)))
            with held_states():
                ask(session, asked, "relevance", target=2)

        pixels = torch.randn(1, 3, 224, 224)
        answered("1 2 3")
        mapped("1 2 3")
        with torch.no_grad():
            forward = statistics.median(timed(lambda: loaded.model(pixels)) for _ in range(20))
        times: dict[str, list[float]] = {"answer": [], "map": []}
        for number in range(ROUNDS):
            sentence = " ".join(str(100 + 11 * number + word) for word in range(5 + number % 6))
            times["answer"].append(timed(lambda: answered(sentence)))  # noqa: B023 - used at once
            times["map"].append(timed(lambda: mapped(sentence)))  # noqa: B023
        print(f"forward {forward:.0f} ms")
        for what, each in times.items():
            ends = statistics.quantiles(each, n=20)
            print(
                f"{what:7} median {statistics.median(each):4.0f} ms, p95 {ends[-1]:4.0f} ms ({ends[-1] / forward:.1f} forwards)"
            )


if __name__ == "__main__":
    main()
