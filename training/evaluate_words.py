"""Print how well maps of sentences meet the things that they name: `python -m training.evaluate_words MODEL`.

On held-out scenes of two to four things (scenes.py, another seed than that of the training). A sentence says colour and shape of
a thing that is the only such one in its scene; the contrast is that sentence against one of another thing. The methods are the
app's own.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

import vit_viz as vv
from training.scenes import GROUND, Masks, Phrase, draw, named, scene, sentence
from vit_viz.analyses.localisation import localisation, object_on_grid
from vit_viz.analyses.methods import METHODS

SEED = 1
SIDE = 192  # scenes are drawn larger than the model reads them


class Case(NamedTuple):
    """A picture, the masks of its things, and a sentence for each; the first is the only thing that its sentence names."""

    picture: Image.Image
    masks: Masks
    sentences: tuple[str, ...]


def cases(count: int, seed: int = SEED) -> Iterator[Case]:
    """Held-out scenes in which colour and shape name one thing alone, and another thing has other ones."""
    index = 0
    while count:
        one = scene(seed, index, least=2)
        index += 1
        phrases = [Phrase(frozenset({thing.colour, thing.shape})) for thing in one.things]
        times = named(phrases, [one])[:, 0].sum(1)
        order = np.argsort(times, kind="stable")
        if times[order[0]] == 1 and len(set(phrases)) > 1:
            picture, masks = draw(one, SIDE)
            yield Case(
                Image.fromarray(picture), masks[order], tuple(sentence(phrases[number]) for number in order)
            )
            count -= 1


def of_maps(loaded: vv.LoadedModel, case: Case, methods: Sequence[str]) -> dict[str, list[float]]:
    """By method: peak on the thing, share of the map on it; the same of the contrast; and of a random patch and the centre."""
    asked = loaded.with_prompts(tuple(dict.fromkeys(case.sentences))[:2])
    rows: dict[str, list[float]] = {name: [] for name in methods}
    for target in (0, (0, 1)):
        for name, one in vv.explain(
            asked, case.picture, methods=methods, target=target, mode="stretch"
        ).items():
            found = localisation(one, mask=case.masks[0])
            rows[name] += [found.pointing or 0.0, found.energy or 0.0]
    grid, crop_box = one.grid, one.crop_box
    there = object_on_grid(crop_box, grid, mask=case.masks[0])
    down, across = np.mgrid[: grid[0], : grid[1]]
    away = np.hypot(down - (grid[0] - 1) / 2, across - (grid[1] - 1) / 2)
    for name, values in {"random": np.ones(grid), "centre": away.max() - away}.items():
        rows[name] = [there.pointing(values), there.energy(values)] * 2
    return rows


def patch_directions(loaded: vv.LoadedModel, pixels: Tensor, way: str) -> Tensor:
    """What each patch says in the space of sentences, of length 1, [rows, cols, numbers].

    Args:
        way: "tokens": the last layer's output; else the last block's attention by products of "values", "queries" or "keys" with
            themselves, or of each patch with "itself" alone, without residual and MLP.
    """
    model = loaded.model
    grid = model.grid_of(*pixels.shape[-2:])
    x = model.run_blocks(
        model.tokens(pixels), grid, stop=model.config.depth if way == "tokens" else model.config.depth - 1
    )
    if way != "tokens":
        block = model.blocks[-1]
        parts = block.attn.qkv(block.norm1(x)).unflatten(-1, (3, model.config.num_heads, -1))
        q, k, v = parts.permute(2, 0, 3, 1, 4)  # each [1, heads, tokens, head_dim]
        own = {"values": v, "queries": q, "keys": k}.get(way)
        gathered = v if own is None else (own @ own.mT * own.shape[-1] ** -0.5).softmax(-1) @ v
        x = block.attn.proj(gathered.transpose(1, 2).flatten(2))
    return F.normalize(model.head(model.norm(x)), dim=-1)[0, -grid[0] * grid[1] :].unflatten(0, tuple(grid))


def segmentation(loaded: vv.LoadedModel, case: Case, way: str) -> tuple[float, float]:
    """Mean intersection over union of things and ground, each pixel by the best of the scene's sentences; the same by patches."""
    kinds = tuple(dict.fromkeys(case.sentences))
    pixels = loaded.preprocess.apply(case.picture, mode="stretch").pixels
    with torch.inference_mode():
        scores = patch_directions(loaded, pixels, way) @ loaded.encode_text([*kinds, GROUND]).T
    masks = np.stack([case.masks[[own == kind for own in case.sentences]].any(0) for kind in kinds])
    truth = np.concatenate([masks, ~masks.any(0, keepdims=True)])
    whole = F.interpolate(
        scores.permute(2, 0, 1)[None], size=(SIDE, SIDE), mode="bilinear", align_corners=False
    )[0]
    rows, cols = scores.shape[:2]
    shares = truth.reshape(len(truth), rows, SIDE // rows, cols, SIDE // cols).mean((2, 4))
    best = np.arange(len(truth))[:, None, None]
    return (
        _mean_iou(whole.argmax(0).numpy() == best, truth),
        _mean_iou(scores.argmax(2).numpy() == best, shares.argmax(0) == best),
    )


def _mean_iou(found: NDArray[np.bool_], truth: NDArray[np.bool_]) -> float:
    there = truth.any((1, 2))
    both, either = (found & truth).sum((1, 2)), (found | truth).sum((1, 2))
    return float((both[there] / either[there]).mean())


def retrieval(loaded: vv.LoadedModel, found: Sequence[Case]) -> tuple[float, float]:
    """How often the best of all these sentences is true of the picture, and how often the best picture is one of the sentence."""
    assert loaded.text is not None
    told = sorted({one for case in found for one in case.sentences})
    truth = torch.tensor([[one in case.sentences for one in told] for case in found])
    pixels = torch.cat([loaded.preprocess.apply(case.picture, mode="stretch").pixels for case in found])
    with torch.inference_mode():
        cosines = F.normalize(loaded.model(pixels), dim=-1) @ loaded.text.encode(told).T
    best = cosines.argmax(1, keepdim=True), cosines.argmax(0, keepdim=True)
    return truth.gather(1, best[0]).float().mean().item(), truth.gather(0, best[1]).float().mean().item()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", help="the file of a model with a text tower")
    parser.add_argument("--scenes", type=int, default=200)
    parser.add_argument(
        "--methods", nargs="+", default=list(METHODS), help="all of them take half an hour; default: all"
    )
    parser.add_argument("--seed", type=int, default=SEED, help="of the scenes; 0 is that of the training")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    loaded, found = vv.load(args.model), list(cases(args.scenes, args.seed))
    right = retrieval(loaded, found)
    print(
        f"{len(found)} held-out scenes; the best sentence is true {right[0]:.3f}, the best scene of one {right[1]:.3f}"
    )
    print("segmentation by words, mean IoU by pixels and by patches:")
    for way in ("tokens", "itself", "values", "queries", "keys"):
        ious = np.mean([segmentation(loaded, case, way) for case in found], axis=0)
        print(f"  {way:24s} {ious[0]:.3f}  {ious[1]:.3f}", flush=True)
    print("maps of a sentence: peak on its thing, share on it; the same of the contrast:")
    rows = [of_maps(loaded, case, args.methods) for case in found]
    for name in rows[0]:
        print(
            f"  {name:24s} "
            + "  ".join(f"{value:.3f}" for value in np.mean([row[name] for row in rows], axis=0))
        )


if __name__ == "__main__":
    main()
