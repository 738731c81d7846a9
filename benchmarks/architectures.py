"""How many of timm's Vision Transformers load into our model, and compute the same: one line per architecture that does not.

Run as `python -m benchmarks.architectures`. Every architecture of timm's vision_transformer.py and deit.py and the DINOv3 models of
eva.py is checked twice: at its own size on the meta device (names, shapes, number of heads), and shrunk to two narrow blocks with
random weights (logits, block outputs and attention within 1e-5).
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

import tests.conftest  # noqa: F401 - lets timm import beside a CPU build of torch
from vit_viz.checkpoints.families import family_of
from vit_viz.checkpoints.families.base import Checkpoint
from vit_viz.checkpoints.load import build
from vit_viz.errors import UnknownFamily
from vit_viz.model import VisionTransformer

TINY = {"embed_dim": 96, "depth": 2, "num_heads": 4, "patch_size": 4, "img_size": 16}
TOLERANCE = 1e-5


@dataclass(frozen=True)
class Outcome:
    """What became of one architecture: "loads", "refused" (by name, with the reason) or "fails"."""

    name: str
    module: str
    result: str
    detail: str = ""


class Seen(TorchFunctionMode):
    """The attention matrices of a forward call, as the operands of the dot product give them."""

    def __init__(self) -> None:
        super().__init__()
        self.attention: list[Tensor] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.nn.functional.scaled_dot_product_attention:
            scale = (kwargs or {}).get("scale") or args[0].shape[-1] ** -0.5
            self.attention.append((args[0] @ args[1].transpose(-2, -1) * scale).softmax(dim=-1))
        return func(*args, **(kwargs or {}))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="part of the names to check")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    outcomes = [check(module, name) for module, name in architectures() if arguments.only in name]
    for outcome in outcomes:
        if outcome.result != "loads":
            print(f"{outcome.result:8} {outcome.name}: {outcome.detail}")
    for module in dict.fromkeys(outcome.module for outcome in outcomes):
        own = [outcome.result for outcome in outcomes if outcome.module == module]
        counts = ", ".join(f"{own.count(result)} {result}" for result in ("loads", "refused", "fails"))
        print(f"timm {module}: {len(own)} architectures, {counts}")
    return any(outcome.result == "fails" for outcome in outcomes)


def architectures() -> Iterator[tuple[str, str]]:
    """(module, name) of timm's current architectures; names that timm keeps only for old scripts are left out."""
    import timm  # noqa: F401 - registers the models
    from timm.models._registry import _deprecated_models, _module_to_models

    for module in ("vision_transformer", "deit", "eva"):
        for name in sorted(_module_to_models[module]):
            if name not in _deprecated_models and (module != "eva" or "dinov3" in name):
                yield module, name


def check(module: str, name: str) -> Outcome:
    """Both checks of one architecture."""
    try:
        shapes_fit(name)
        error = parity_error(name)
    except UnknownFamily as refusal:
        return Outcome(name, module, "refused", str(refusal))
    except Exception as problem:  # the table is about what happens
        return Outcome(name, module, "fails", f"{type(problem).__name__}: {problem}")
    return Outcome(name, module, "loads" if error <= TOLERANCE else "fails", f"differs by {error:.1e}")


def shapes_fit(name: str) -> None:
    """At its own size, every parameter has its place, and the number of heads is timm's."""
    import timm

    with torch.device("meta"):
        reference = timm.create_model(name)
    checkpoint = Checkpoint(state=reference.state_dict(), config={"architecture": name}, name=name)
    family = family_of(checkpoint)
    state = family.convert(checkpoint)
    model = build(
        family.infer_config(checkpoint, state).config,
        {key: tensor.to("meta") for key, tensor in state.items()},
    )
    ours, theirs = model.blocks[0].attn.num_heads, reference.blocks[0].attn.num_heads
    if ours != theirs:
        raise ValueError(f"{ours} heads instead of {theirs}")


@torch.no_grad()
def parity_error(name: str) -> float:
    """Largest difference of logits, block outputs and attention of a small random model, relative to values of size 1."""
    import timm

    torch.manual_seed(0)
    reference = randomised(timm.create_model(name, **TINY))
    settings = {
        "architecture": name,
        "model_args": {"num_heads": TINY["num_heads"], "img_size": TINY["img_size"]},
    }
    checkpoint = Checkpoint(state=reference.state_dict(), config=settings, name=name)
    family = family_of(checkpoint)
    state = family.convert(checkpoint)
    model = build(family.infer_config(checkpoint, state).config, state)
    pixels = torch.randn(1, model.config.in_chans, 16, 16)
    ours, theirs = observed(model, pixels), observed(reference, pixels)
    if len(ours) != len(theirs):
        raise ValueError(f"{len(ours)} observations instead of {len(theirs)}")
    return max(float(((a - b).abs() / b.abs().clamp(min=1)).max()) for a, b in zip(ours, theirs, strict=True))


def observed(model: nn.Module | VisionTransformer, pixels: Tensor) -> list[Tensor]:
    """Logits, then each block's output, then each attention."""
    blocks: list[Tensor] = []
    hooks = [block.register_forward_hook(lambda _m, _a, out: blocks.append(out)) for block in model.blocks]
    with Seen() as seen:
        logits = model(pixels)
    for hook in hooks:
        hook.remove()
    return [logits, *blocks, *seen.attention]


def randomised(model: nn.Module) -> nn.Module:
    """Every parameter random, so that none can be forgotten unseen."""
    for name, parameter in model.named_parameters():
        spread = torch.randn_like(parameter)
        parameter.copy_(1 + 0.3 * spread if "norm" in name and name.endswith("weight") else 0.15 * spread)
    return model.eval()


if __name__ == "__main__":
    sys.exit(main())
