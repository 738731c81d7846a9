"""Train the bundled model of pictures and sentences on a CPU: `python -m training.words --work FOLDER --minutes 40`.

A Vision Transformer and a text tower learn together which sentences are true of which scene (scenes.py). FOLDER/last.pt is written
every two minutes, and the same command continues from it; at the end, and on `--export FILE`, the model is written as the app loads it.
"""

from __future__ import annotations

import argparse
import copy
import itertools
import json
import logging
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from tokenizers.trainers import WordLevelTrainer
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from training.export import export
from training.optimizer import Muon
from training.recipe import Recipe
from training.scenes import Masks, Phrase, draw, holds, mixed_phrase, named, scene, sentence, true_phrase
from training.student import initialise
from training.train import store
from vit_viz.model import VisionTransformer, ViTConfig
from vit_viz.model.kernel import attending_through
from vit_viz.model.text import TextConfig, TextTransformer

log = logging.getLogger("training")

SIDE = 64
CONTEXT = 24
EMBEDDING = 64
VISION = {
    "patch_size": 8, "img_size": SIDE, "embed_dim": 96, "depth": 5, "num_heads": 4, "mlp_ratio": 2, "num_classes": EMBEDDING,
    "reg_tokens": 2, "no_embed_class": True, "global_pool": "token", "head_bias": False, "projection": True,
}  # fmt: skip
PREPROCESS = {
    "size": SIDE, "resize": f"short side {SIDE}, bicubic", "crop": "centre", "mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5],
}  # fmt: skip
STAGES = ((0.45, 48), (1.0, SIDE))  # until which share of the time: the side of a picture
COUNT = 128  # scenes in a step
SENTENCES = 3  # true ones of each scene in a step
GROUND = "the background"
RECIPE = Recipe()


def tokenizer() -> Tokenizer:
    """Whole words in lower case, every other word as one unknown one, between a start and an end."""
    words = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    words.normalizer = normalizers.Lowercase()
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    rng = np.random.default_rng(0)
    told = [sentence(true_phrase(scene(0, index), rng), rng) for index in range(6_000)]
    words.train_from_iterator(told, WordLevelTrainer(special_tokens=["[PAD]", "[UNK]", "[START]", "[END]"]))
    ends = [(name, words.token_to_id(name)) for name in ("[START]", "[END]")]
    words.post_processor = processors.TemplateProcessing(single="[START] $A [END]", special_tokens=ends)
    words.enable_truncation(CONTEXT)
    return words


class Pair(nn.Module):
    """Both towers, and the scale of the cosines between what they return."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.vision = VisionTransformer(ViTConfig.from_dict(VISION))
        self.text = TextTransformer(
            TextConfig(vocabulary, CONTEXT, width=64, depth=2, num_heads=2, embed_dim=EMBEDDING, mlp_hidden=128)
        )
        initialise(self.vision)
        nn.init.normal_(self.text.token_embed.weight, std=0.02)
        self.logit_scale = nn.Parameter(torch.tensor(10.0).log())

    def forward(self, pixels: Tensor, tokens: Tensor, ends: Tensor) -> tuple[Tensor, Tensor]:
        """scale * cosine of each picture and each patch with each sentence: [scenes, sentences], [scenes, patches, sentences]."""
        vision = self.vision
        x = vision.run_blocks(vision.tokens(pixels), vision.grid_of(*pixels.shape[-2:]))
        x = F.normalize(vision.head(vision.norm(x)), dim=-1)
        logits = self.logit_scale.exp() * x @ F.normalize(self.text(tokens, ends), dim=-1).T
        return logits[:, 0], logits[:, len(vision.config.prefix) :]


def contrastive(logits: Tensor, is_true: Tensor, is_false: Tensor) -> Tensor:
    """Each true pair against all false ones of its row: the mean of log(1 + sum_false exp(logit - its own)).

    CLIP's loss where several sentences are true of a scene, and a sentence of several scenes: none of them counts as false. With one
    true pair in each row, and all others false, it is CLIP's.
    """
    false = logits.masked_fill(~is_false, -1e4).logsumexp(1, keepdim=True)
    each = (F.softplus(false - logits) * is_true).sum(1) / is_true.sum(1).clamp_(min=1)
    return each[is_true.any(1)].mean()


class Batch:
    """Scenes with sentences, the last of which is GROUND.

    truth [scenes, sentences] says which are true, names [patches, sentences] which are of the thing that a patch lies on; `places`
    are those patches among all [scenes * patches], and `is_of_one` [sentences] tells sentences of one thing from those of more.
    """

    def __init__(self, words: Tokenizer, seed: int, step: int, side: int) -> None:
        rng = np.random.default_rng((seed, step, 2))
        scenes = [scene(seed, step * COUNT + index) for index in range(COUNT)]
        phrases: list[Phrase] = []
        for one in scenes:
            phrases += [true_phrase(one, rng) for _ in range(SENTENCES)] + [mixed_phrase(one, rng)]
        told = [sentence(phrase, rng) for phrase in phrases]
        for index in np.flatnonzero(rng.random(len(told)) < 0.03):  # a word that is not known changes nothing
            told[index] = f"zzz {told[index]}"
        self.tokens, self.ends = tokens_of(words, [*told, GROUND])
        self.truth = torch.from_numpy(holds(phrases, scenes).T.copy())
        self.is_of_one = torch.tensor([not (phrase.count or phrase.relation) for phrase in phrases] + [True])
        drawn = [draw(one, side) for one in scenes]
        self.places, self.names = self._patches([masks for _, masks in drawn], named(phrases, scenes), rng)
        pictures = np.stack([picture for picture, _ in drawn]) * rng.uniform(0.75, 1.25, (COUNT, 1, 1, 1))
        shown = torch.from_numpy(pictures.clip(0, 255).astype(np.float32))
        self.pixels = shown.permute(0, 3, 1, 2).div_(127.5).sub_(1)

    def _patches(self, masks: list[Masks], names: NDArray[np.bool_], rng: np.random.Generator) -> tuple[Tensor, Tensor]:
        """Patches that lie mostly on a thing, and an eighth of those that touch none, with the sentences that name what is there."""
        places, rows = [], []
        for number, mine in enumerate(masks):
            cover = share_of_patches(mine).reshape(len(mine), -1)
            patches = cover.shape[1]
            on_ground = (cover.max(0) == 0) & (rng.random(patches) < 0.125)
            for place in np.flatnonzero((cover.max(0) > 0.5) | on_ground):
                places.append(number * patches + place)
                row = np.zeros(len(names), dtype=bool) if on_ground[place] else names[:, number, cover[:, place].argmax()]
                rows.append(np.append(row, on_ground[place]))
        return torch.tensor(np.array(places)), torch.from_numpy(np.array(rows))


def share_of_patches(masks: Masks) -> NDArray[np.float64]:
    """Which share of each patch is inside, [..., rows, cols] of masks [..., side, side]."""
    patch = int(str(VISION["patch_size"]))
    grid = masks.shape[-1] // patch
    return np.asarray(masks.reshape(*masks.shape[:-2], grid, patch, grid, patch).mean((-3, -1)))


def tokens_of(words: Tokenizer, sentences: list[str]) -> tuple[Tensor, Tensor]:
    """Tokens [S, T], filled up with zeros, and the place of each sentence's end [S]."""
    ids = [torch.tensor(encoded.ids) for encoded in words.encode_batch(sentences)]
    return nn.utils.rnn.pad_sequence(ids, batch_first=True), torch.tensor([len(one) - 1 for one in ids])


class Batches(Dataset[Batch]):
    """The batch of each step, at one size."""

    def __init__(self, words: Tokenizer, seed: int, side: int) -> None:
        self.words, self.seed, self.side = words.to_str(), seed, side

    def __getitem__(self, step: int) -> Batch:
        return Batch(Tokenizer.from_str(self.words), self.seed, step, self.side)


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
        matrices = [p for name, p in self.pair.named_parameters() if ".blocks." in name and p.ndim == 2]
        others = [p for p in self.pair.parameters() if not any(p is matrix for matrix in matrices)]
        self.muon = Muon(matrices, momentum=RECIPE.momentum, decay=RECIPE.matrix_decay)
        self.adam = torch.optim.AdamW(others, lr=RECIPE.other_rate, betas=RECIPE.betas, weight_decay=0.0)
        self.counters = {"step": 0, "spent": 0.0}

    def train_step(self, batch: Batch, progress: float) -> dict[str, float]:
        """One update of the weights and of their moving average; the terms of the loss before it."""
        logits, patches = self.pair(batch.pixels, batch.tokens, batch.ends)
        logits, on = logits[:, :-1], patches.flatten(0, 1)[batch.places]
        terms = {
            "pictures": contrastive(logits, batch.truth, ~batch.truth),
            "sentences": contrastive(logits.T, batch.truth.T, ~batch.truth.T),
            "patches": contrastive(on, batch.names & batch.is_of_one, ~batch.names & batch.is_of_one),
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
        right = {"first": batch.truth.gather(1, logits.argmax(1, keepdim=True)).float().mean()}
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
        """Write the average as the app loads it: the picture's tower, the sentences', the tokenizer, and what the file says of itself."""
        weights = {name.removeprefix("vision."): value for name, value in self.average.state_dict().items()}
        text = {"lower": True, "sigmoid": False} | asdict(self.average.text.config)
        notes = {
            "config": json.dumps(VISION),
            "preprocess": json.dumps(PREPROCESS),
            "text": json.dumps(text),
            "tokenizer": self.words.to_str(),
            "provenance": json.dumps(facts),
        }
        whole = out.with_suffix(".whole")
        save_file({name: value.contiguous() for name, value in weights.items()}, whole)
        export(whole, out, notes)
        whole.unlink()


def train(run: Run, last: Path, until: float, seconds: float, side: int) -> None:
    """Go on at one size until so many of all the seconds are spent, with lines in the log and checkpoints."""
    if run.counters["spent"] >= until:
        return
    steps = itertools.count(int(run.counters["step"]))
    before = told = stored = time.monotonic()
    for batch in DataLoader(Batches(run.words, run.seed, side), batch_size=None, sampler=steps, num_workers=1):
        progress = run.counters["spent"] / seconds
        terms = run.train_step(batch, progress)
        now = time.monotonic()
        run.counters["spent"] += now - before
        before = now
        if now - told > 15:
            told = now
            log.info("%5.1f%% step %d: %s", 100 * progress, run.counters["step"],
                     " ".join(f"{name} {value:.3f}" for name, value in terms.items()))  # fmt: skip
        if now - stored > 120:
            stored = now
            store(last, run.state())
        if run.counters["spent"] >= until:
            return


def main() -> None:
    """Resume what is there, train to the end of the time, export."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="folder for the checkpoint")
    parser.add_argument("--minutes", type=float, required=True, help="length of the whole run; 0 only exports")
    parser.add_argument("--export", type=Path, help="where the model is written at the end")
    parser.add_argument("--facts", type=Path, help="JSON file: its provenance")
    parser.add_argument("--threads", type=int, default=1, help="a second process draws")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    torch.set_num_threads(args.threads)
    run, last = Run(args.seed), args.work / "last.pt"
    if last.exists():
        run.restore(torch.load(last, weights_only=True))
    with attending_through(two_products):
        for until, side in STAGES:
            train(run, last, until * args.minutes * 60, args.minutes * 60, side)
    store(last, run.state())
    if args.export:
        run.export(args.export, json.loads(args.facts.read_text()) if args.facts else {})


if __name__ == "__main__":
    main()
