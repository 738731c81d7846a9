"""How many Vision Transformers of timm and transformers load into our model, and compute the same; a line for each that does not.

Run as `python -m benchmarks.architectures`. Every architecture of timm's vision_transformer.py, deit.py and beit.py and the EVA and
DINOv3 models of eva.py is checked twice: with two of its blocks at their own size on the meta device (names, shapes, number of
heads, grid; the other blocks are alike), and shrunk to two narrow blocks with random weights (and with pixels left over where its
own input has some): max |a - b| <= 1e-5 max |b| for logits, each block's output and each attention. The second table has the
families of transformers (transformers_families.py).
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator

import torch
from torch import Tensor, nn

import tests.conftest  # noqa: F401 - lets timm import beside a CPU build of torch
from benchmarks import transformers_families
from benchmarks.watching import Outcome, Seen, difference, randomised
from vit_viz.checkpoints.building import build
from vit_viz.checkpoints.families import family_of
from vit_viz.checkpoints.families.base import Checkpoint
from vit_viz.errors import UnknownFamily
from vit_viz.model import VisionTransformer

TINY = {"embed_dim": 96, "depth": 2, "num_heads": 4, "patch_size": 4}
SIDE, SIDE_WITH_REMAINDER = 16, 18
TOLERANCE = 1e-5


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
        print(f"timm {module}: {counted(outcomes, module)}")
    families = [outcome for outcome in transformers_families.outcomes() if arguments.only in outcome.name]
    for outcome in families:
        print(f"{outcome.result:8} {outcome.name}: {outcome.detail}")
    print(f"transformers: {counted(families, 'transformers')}")
    return any(outcome.result == "fails" for outcome in (*outcomes, *families))


def counted(outcomes: list[Outcome], module: str) -> str:
    own = [outcome.result for outcome in outcomes if outcome.module == module]
    counts = ", ".join(f"{own.count(result)} {result}" for result in ("loads", "refused", "fails"))
    return f"{len(own)} checked, {counts}"


def architectures() -> Iterator[tuple[str, str]]:
    """(module, name) of timm's current architectures; names that timm keeps only for old scripts are left out."""
    import timm  # noqa: F401 - registers the models
    from timm.models._registry import _deprecated_models, _module_to_models

    for module in ("vision_transformer", "deit", "beit", "eva"):
        for name in sorted(_module_to_models[module]):
            wanted = module != "eva" or "dinov3" in name or name.startswith("eva")
            if wanted and name not in _deprecated_models:
                yield module, name


def check(module: str, name: str) -> Outcome:
    """Both checks of one architecture."""
    try:
        error = parity_error(name, has_remainder=shapes_fit(name))
    except UnknownFamily as refusal:
        return Outcome(name, module, "refused", str(refusal))
    except Exception as problem:  # the table is about what happens
        return Outcome(name, module, "fails", f"{type(problem).__name__}: {problem}")
    return Outcome(name, module, "loads" if error <= TOLERANCE else "fails", f"differs by {error:.1e}")


def shapes_fit(name: str) -> bool:
    """At its own width, every parameter has its place, the number of heads and the grid are timm's; whether pixels remain."""
    import timm

    with torch.device("meta"):
        reference = timm.create_model(name, depth=TINY["depth"])
    checkpoint = Checkpoint(state=reference.state_dict(), config={"architecture": name}, name=name)
    family = family_of(checkpoint)
    state = family.convert(checkpoint)
    model = build(
        VisionTransformer,
        family.infer_config(checkpoint, state).config,
        {key: tensor.to("meta") for key, tensor in state.items()},
    )
    ours, theirs = model.blocks[0].attn.num_heads, reference.blocks[0].attn.num_heads
    if ours != theirs:
        raise ValueError(f"{ours} heads instead of {theirs}")
    embed = reference.patch_embed
    if model.config.position == "learned" and model.config.grid != tuple(embed.grid_size):
        raise ValueError(f"a grid of {model.config.grid} instead of {embed.grid_size}")
    return any(side % patch for side, patch in zip(embed.img_size, embed.patch_size, strict=True))


@torch.no_grad()
def parity_error(name: str, *, has_remainder: bool = False) -> float:
    """Largest difference of logits, block outputs and attention of a small random model, relative to the largest value of each."""
    import timm

    torch.manual_seed(0)
    side = SIDE_WITH_REMAINDER if has_remainder else SIDE
    reference = randomised(timm.create_model(name, **TINY, img_size=side))
    settings = {
        "architecture": name,
        "model_args": {"num_heads": TINY["num_heads"], "img_size": side},
    }
    checkpoint = Checkpoint(state=reference.state_dict(), config=settings, name=name)
    family = family_of(checkpoint)
    state = family.convert(checkpoint)
    model = build(VisionTransformer, family.infer_config(checkpoint, state).config, state)
    pixels = torch.randn(1, model.config.in_chans, side, side)
    return difference(observed(model, pixels), observed(reference, pixels))


def observed(model: nn.Module, pixels: Tensor) -> list[Tensor]:
    """Logits, then each block's output, then each attention."""
    with Seen(model.blocks) as seen:
        logits = model(pixels)
    return [logits, *seen.blocks, *seen.attention]


if __name__ == "__main__":
    sys.exit(main())
