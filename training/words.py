"""Train the bundled model of pictures and sentences on a CPU: `python -m training.words --work FOLDER --minutes 40`.

A Vision Transformer, which begins with the first blocks of `mini`, and a text tower learn together which sentences are true of
which scene (scenes.py). FOLDER/last.pt is written every two minutes, and the same command continues from it; `--export FILE`
writes the model at the end as the app loads it.
"""

from __future__ import annotations

import argparse
import copy
import itertools
import json
import logging
import math
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from safetensors.torch import load_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from training import scenes
from training.export import export
from training.optimizer import Muon
from training.recipe import Recipe
from training.train import store
from vit_viz.model import VisionTransformer, ViTConfig
from vit_viz.model.kernel import attending_through
from vit_viz.model.text import TextConfig, TextTransformer

log = logging.getLogger("training")

SIDE = 96
CONTEXT = 24
EMBEDDING = 64
VISION = Recipe().model | {
    "img_size": SIDE, "depth": 4, "mlp_ratio": 2, "num_classes": EMBEDDING, "head_bias": False, "projection": True,
}  # fmt: skip
PREPROCESS = {
    "size": SIDE, "resize": f"short side {SIDE}, bicubic", "crop": "centre", "mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5],
}  # fmt: skip
TEXT = {"width": 64, "depth": 2, "num_heads": 2, "mlp_hidden": 128}
STAGES = (
    (0.25, 48, 1.0),
    (1.0, SIDE, 0.15),
)  # until: share of the time; side; share of things that are alone
COUNT = 32  # scenes in a step
PATCHES = 800  # of those in a step, at most, that are compared with its sentences
SENTENCES = 3  # true ones of each scene in a step
START = Path("assets/mini.safetensors")
RECIPE = Recipe()


def tokenizer() -> Tokenizer:
    """Whole words in lower case, every other word as one unknown one, between a start and an end."""
    known = ["[PAD]", "[UNK]", "[START]", "[END]", *scenes.vocabulary()]
    numbers = {word: number for number, word in enumerate(known)}
    words = Tokenizer(models.WordLevel(numbers, unk_token="[UNK]"))
    words.normalizer = normalizers.Lowercase()
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    ends = [(name, numbers[name]) for name in ("[START]", "[END]")]
    words.post_processor = processors.TemplateProcessing(single="[START] $A [END]", special_tokens=ends)
    words.enable_truncation(CONTEXT)
    return words


class Pair(nn.Module):
    """Both towers, and the scale of the cosines between what they return."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.vision = VisionTransformer(ViTConfig.from_dict(VISION))
        self.text = TextTransformer(TextConfig(vocabulary, CONTEXT, embed_dim=EMBEDDING, **TEXT))
        start_with(self.vision, {name: value.float() for name, value in load_file(START).items()})
        nn.init.normal_(self.text.token_embed.weight, std=0.02)
        self.logit_scale = nn.Parameter(torch.tensor(10.0).log())

    def forward(
        self, pixels: Tensor, tokens: Tensor, ends: Tensor, corner: tuple[int, int] = (0, 0)
    ) -> tuple[Tensor, Tensor, Tensor]:
        """scale * cosine with each sentence: [scenes, sentences], and of patches and their values [scenes, patches, sentences].

        A patch's value is what the class token adds to itself in the last block where it looks at this patch alone. A small picture
        is a window of a whole one, whose upper left patch lies at the `corner`, so that patches are as far apart as they will be.
        """
        vision, prefix, (top, left) = self.vision, len(self.vision.config.prefix), corner
        grid, last = vision.grid_of(*pixels.shape[-2:]), vision.blocks[-1]
        table = vision.position_table(vision.config.grid).unflatten(0, tuple(vision.config.grid))
        window = table[top : top + grid[0], left : left + grid[1]].flatten(0, 1)
        first = torch.cat((vision.cls_token, vision.reg_token), 1).expand(len(pixels), -1, -1)
        x = torch.cat((first, vision.patch_embed(pixels) + window), 1)
        x = vision.run_blocks(x, grid, stop=vision.config.depth - 1)
        values = last.attn.proj(last.attn.qkv(last.norm1(x[:, prefix:])).chunk(3, -1)[2])
        x = torch.cat((last(x), values), 1)
        x = F.normalize(vision.head(vision.norm(x)), dim=-1)
        logits = self.logit_scale.exp() * x @ self.directions(tokens, ends).T
        patches, values = logits[:, prefix:].chunk(2, 1)
        return logits[:, 0], patches, values

    def directions(self, tokens: Tensor, ends: Tensor) -> Tensor:
        """Of sentences, of length 1, [sentences, numbers]; short ones and long ones apart, so that little is computed in vain."""
        order = ends.argsort()
        parts = [self.text(tokens[part, : ends[part].max() + 1], ends[part]) for part in order.chunk(4)]
        return F.normalize(torch.cat(parts)[order.argsort()], dim=-1)


@torch.no_grad()
def start_with(vision: VisionTransformer, mini: Mapping[str, Tensor]) -> None:
    """Begin as the first blocks of `mini`: of its positions those in the middle, of each MLP the hidden numbers that do most.

    A hidden number does as much as the lengths of its weights to it and from it say, multiplied.
    """
    grid, hidden = vision.config.grid, vision.blocks[0].mlp.fc1.out_features
    state = {name: mini[name] for name in vision.state_dict() if not name.startswith("head.")}
    table = mini["pos_embed"]
    side = math.isqrt(table.shape[1])
    top, left = ((side - count) // 2 for count in grid)
    square = table.unflatten(1, (side, side))
    state["pos_embed"] = square[:, top : top + grid[0], left : left + grid[1]].flatten(1, 2)
    for layer in range(vision.config.depth):
        into, out = (f"blocks.{layer}.mlp.{name}.weight" for name in ("fc1", "fc2"))
        chosen = (mini[into].norm(dim=1) * mini[out].norm(dim=0)).topk(hidden).indices
        bias = into.replace("weight", "bias")
        state |= {into: mini[into][chosen], bias: mini[bias][chosen], out: mini[out][:, chosen]}
    vision.load_state_dict(state, strict=False)  # all but the head
    nn.init.normal_(vision.head.weight, std=0.02)


def contrastive(logits: Tensor, is_true: Tensor, is_false: Tensor) -> Tensor:
    """Each true pair against all false ones of its row: the mean of log(1 + sum_false exp(logit - its own)).

    Several sentences are true of a scene, and a sentence of several scenes: none of them counts as false. With one true pair in
    each row, and all others false, this is CLIP's loss.
    """
    false = logits.masked_fill(~is_false, -1e4).logsumexp(1, keepdim=True)
    each = (F.softplus(false - logits) * is_true).sum(1) / is_true.sum(1).clamp_(min=1)
    return each[is_true.any(1)].mean()


class Batch:
    """Scenes with sentences, the last of which is GROUND, which is no sentence of a whole scene.

    truth [scenes, sentences] says which are true, names [patches, sentences] which are of the thing that a patch lies on; `places`
    are those patches among all [scenes * patches], and `is_of_one` [sentences] tells sentences of one thing from those of more.
    """

    def __init__(self, words: Tokenizer, seed: int, step: int, side: int, alone: float) -> None:
        rng = np.random.default_rng((seed, step, 2))
        most = np.where(rng.random(COUNT) < alone, 1, scenes.MOST)
        chosen = [scenes.scene(seed, step * COUNT + index, most=int(most[index])) for index in range(COUNT)]
        phrases: list[scenes.Phrase] = []
        for one, before in zip(chosen, [chosen[-1], *chosen], strict=False):
            phrases += [scenes.true_phrase(one, rng) for _ in range(SENTENCES)]
            phrases.append(scenes.mixed_phrase(one.things + before.things, rng))
        told = [scenes.sentence(phrase, rng) for phrase in phrases]
        for index in np.flatnonzero(rng.random(len(told)) < 0.03):  # a word that is not known changes nothing
            told[index] = f"zzz {told[index]}"
        self.tokens, self.ends = tokens_of(words, [*told, scenes.GROUND])
        self.truth = torch.from_numpy(np.pad(scenes.holds(phrases, chosen).T, ((0, 0), (0, 1))))
        self.is_of_one = torch.tensor([not (phrase.count or phrase.relation) for phrase in phrases] + [True])
        drawn = [scenes.draw(one, side) for one in chosen]
        self.places, self.names = self._patches(
            [masks for _, masks in drawn], scenes.named(phrases, chosen), rng
        )
        pictures = np.stack([picture for picture, _ in drawn]) * rng.uniform(0.75, 1.25, (COUNT, 1, 1, 1))
        shown = torch.from_numpy(pictures.clip(0, 255).astype(np.float32))
        self.pixels = shown.permute(0, 3, 1, 2).div_(127.5).sub_(1)
        self.corner = tuple(int(place) for place in rng.integers((SIDE - side) // 8 + 1, size=2))

    def _patches(
        self, masks: list[scenes.Masks], names: NDArray[np.bool_], rng: np.random.Generator
    ) -> tuple[Tensor, Tensor]:
        """All patches of things, half of those at their borders, a few far from all, with the sentences that name most of each.

        A patch that nothing is said of may hold anything: class tokens would look beside a thing, where its shape is seen as well.
        """
        places, rows = [], []
        for number, mine in enumerate(masks):
            cover = share_of_patches(mine).reshape(len(mine), -1)
            most = cover.max(0)
            on_ground = most < 1 - cover.sum(0)
            chance = np.where(on_ground, np.where(most > 0, 0.5, 0.125), 1)
            for place in np.flatnonzero(rng.random(len(most)) < chance):
                places.append(number * len(most) + place)
                here = names[:, number, cover[:, place].argmax()] & ~on_ground[place]
                rows.append(np.append(here, on_ground[place]))
        some = rng.permutation(len(places))[:PATCHES]
        return torch.from_numpy(np.array(places)[some]), torch.from_numpy(np.array(rows)[some])


def share_of_patches(masks: scenes.Masks) -> NDArray[np.float64]:
    """Which share of each patch is inside, [..., rows, cols] of masks [..., side, side]."""
    patch = int(str(VISION["patch_size"]))
    grid = masks.shape[-1] // patch
    return np.asarray(masks.reshape(*masks.shape[:-2], grid, patch, grid, patch).mean((-3, -1)))


def tokens_of(words: Tokenizer, sentences: list[str]) -> tuple[Tensor, Tensor]:
    """Tokens [S, T], filled up with zeros, and the place of each sentence's end [S]."""
    ids = [torch.tensor(encoded.ids) for encoded in words.encode_batch(sentences)]
    return nn.utils.rnn.pad_sequence(ids, batch_first=True), torch.tensor([len(one) - 1 for one in ids])


class Batches(Dataset[Batch]):
    """The batch of each step of a stage."""

    def __init__(self, words: Tokenizer, seed: int, side: int, alone: float) -> None:
        self.words, self.how = words.to_str(), (seed, side, alone)

    def __getitem__(self, step: int) -> Batch:
        seed, side, alone = self.how
        return Batch(Tokenizer.from_str(self.words), seed, step, side, alone)


def two_products(q: Tensor, k: Tensor, v: Tensor, *, attn_mask: Tensor | None, scale: float | None) -> Tensor:
    """Attention as two batched products, which so few tokens pass faster than through torch's kernel."""
    scores = q * (scale or q.shape[-1] ** -0.5) @ k.mT
    return (scores if attn_mask is None else scores + attn_mask).softmax(-1) @ v


class Run:
    """Everything that changes during the training, and how it is stored."""

    def __init__(self, seed: int) -> None:
        torch.manual_seed(seed)
        self.words, self.seed = tokenizer(), seed
        self.pair = Pair(self.words.get_vocab_size())
        self.average = copy.deepcopy(self.pair).eval()
        matrices = [p for p in self.pair.vision.blocks.parameters() if p.ndim == 2]
        others = [p for p in self.pair.parameters() if not any(p is matrix for matrix in matrices)]
        self.muon = Muon(matrices, momentum=RECIPE.momentum, decay=RECIPE.matrix_decay)
        self.adam = torch.optim.AdamW(others, lr=RECIPE.other_rate, betas=RECIPE.betas, weight_decay=0.0)
        self.counters = {"step": 0, "spent": 0.0}

    def train_step(self, batch: Batch, progress: float) -> dict[str, float]:
        """One update of the weights and of their moving average; the terms of the loss before it."""
        logits, *of_patches = self.pair(batch.pixels, batch.tokens, batch.ends, batch.corner)
        of_one = batch.is_of_one
        on, values = (one.flatten(0, 1)[batch.places] for one in of_patches)
        terms = {
            "pictures": contrastive(logits, batch.truth, ~batch.truth),
            "sentences": contrastive(logits.T, batch.truth.T, ~batch.truth.T),
            "patches": contrastive(on, batch.names & of_one, ~batch.names & of_one),
            "values": contrastive(values, batch.names & of_one, ~batch.names & of_one),
        }
        loss = torch.stack(list(terms.values())).sum()
        loss.backward()
        nn.utils.clip_grad_norm_(self.pair.parameters(), RECIPE.clip)
        rate = RECIPE.rate(progress)
        for group in self.adam.param_groups:
            group["lr"] = RECIPE.other_rate * rate
        self.adam.step()
        self.muon.step(RECIPE.matrix_rate * rate)
        self.pair.zero_grad(set_to_none=True)
        with torch.no_grad():
            self.pair.logit_scale.clamp_(max=float(np.log(100)))
            weight = 1 - min(RECIPE.ema, (1 + self.counters["step"]) / (10 + self.counters["step"]))
            torch._foreach_lerp_(tuple(self.average.parameters()), tuple(self.pair.parameters()), weight)
        self.counters["step"] += 1
        right = {"first is true": batch.truth.gather(1, logits.argmax(1, keepdim=True)).float().mean()}
        return {name: value.item() for name, value in (terms | right).items()}

    def state(self) -> dict[str, Any]:
        """All that is needed to go on."""
        parts = {name: getattr(self, name).state_dict() for name in ("pair", "average", "muon", "adam")}
        return parts | {"counters": self.counters}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a stored state."""
        for name in ("pair", "average", "muon", "adam"):
            getattr(self, name).load_state_dict(state[name])
        self.counters = state["counters"]

    def export(self, out: Path, facts: dict[str, Any]) -> None:
        """Write the average as the app loads it: both towers, the tokenizer, and what the file says of itself."""
        weights = {name.removeprefix("vision."): value for name, value in self.average.state_dict().items()}
        text = {"lower": True, "sigmoid": False} | asdict(self.average.text.config)
        parts = {"config": VISION, "preprocess": PREPROCESS, "text": text, "provenance": facts}
        notes = {name: json.dumps(part) for name, part in parts.items()}
        export(weights, out, notes | {"tokenizer": self.words.to_str()})


def train(run: Run, last: Path, seconds: float, until: float, side: int, alone: float) -> None:
    """Go through a stage, with lines in the log and checkpoints."""
    if run.counters["spent"] >= until * seconds:
        return
    steps = itertools.count(int(run.counters["step"]))
    before = told = stored = time.monotonic()
    batches = Batches(run.words, run.seed, side, alone)
    for batch in DataLoader(batches, batch_size=None, sampler=steps, num_workers=1):
        progress = run.counters["spent"] / seconds
        terms = run.train_step(batch, progress)
        now = time.monotonic()
        run.counters["spent"], before = run.counters["spent"] + now - before, now
        if now - told > 15:
            told = now
            log.info("%5.1f%% step %d: %s", 100 * progress, run.counters["step"],
                     " ".join(f"{name} {value:.3f}" for name, value in terms.items()))  # fmt: skip
        if now - stored > 120:
            stored = now
            store(last, run.state())
        if run.counters["spent"] >= until * seconds:
            return


def main() -> None:
    """Resume what is there, train to the end of the time, export."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True, help="folder for the checkpoint")
    parser.add_argument(
        "--minutes", type=float, required=True, help="length of the whole run by the clock on the wall"
    )
    parser.add_argument("--export", type=Path, help="where the model is written at the end")
    parser.add_argument("--facts", type=Path, help="JSON file: its provenance")
    parser.add_argument("--threads", type=int, default=1, help="a second process draws")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    torch.set_num_threads(args.threads)
    last = args.work / "last.pt"
    run = Run(args.seed)
    if last.exists():
        run.restore(torch.load(last, weights_only=True))
    with attending_through(two_products):
        for stage in STAGES:
            train(run, last, args.minutes * 60, *stage)
    store(last, run.state())
    if args.export:
        run.export(args.export, json.loads(args.facts.read_text()) if args.facts else {})


if __name__ == "__main__":
    main()
