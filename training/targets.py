"""What the teacher says about every training photo, computed once: logits, patch tokens, class token, evidence.

`python -m training.targets DATA --cache FOLDER`; it goes on where it was interrupted.
"""

from __future__ import annotations

import argparse
import csv
import logging
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor

from training import data
from vit_viz.model import VisionTransformer, ViTConfig

TEACHER = "vit_tiny_patch16_224.fp16.safetensors"
TEACHER_CONFIG = {"img_size": 224, "patch_size": 16, "embed_dim": 192, "depth": 12, "num_heads": 3}
IMAGENET_CLASSES = Path(__file__).parents[1] / "assets" / "imagenet1k.tsv"
SIZE, GRID, DIM = 176, 11, 192
TOKEN_STEP = 32  # int8 levels per standard deviation: +-4 deviations, which 1 value in 10,000 exceeds
NAMES = ("teacher_logits", "teacher_summary", "teacher_tokens")
EVIDENCE = "teacher_evidence"
log = logging.getLogger("training")


class Answer(NamedTuple):
    """The teacher on a batch: logits [batch, 200], summary [batch, dim], tokens [batch, patches, dim]."""

    logits: Tensor
    summary: Tensor
    tokens: Tensor


class Hint(NamedTuple):
    """The teacher under the crops of a batch: an Answer, and evidence [batch, patches] for the label."""

    logits: Tensor
    summary: Tensor
    tokens: Tensor
    evidence: Tensor


class TeacherAnswers:
    """The stored answers, opened for reading: looked up by photo, sampled under its crop."""

    def __init__(self, cache: Path) -> None:
        self.logits, self.summary, self.tokens = (
            np.load(cache / f"{name}.npy", mmap_mode="r") for name in NAMES
        )
        self.evidence = np.load(cache / f"{EVIDENCE}.npy", mmap_mode="r")
        some = torch.from_numpy(np.asarray(self.summary[::50], dtype=np.float32))
        self.mean, self.deviation = some.mean(0), some.std(0)

    def about(self, chosen: npt.NDArray[np.int64], crops: Tensor, grid: int) -> Hint:
        """The answers on these photos; tokens and evidence are those under each patch of the crops, grid x grid."""
        logits = torch.from_numpy(self.logits[chosen].astype(np.float32))
        summary = torch.from_numpy(self.summary[chosen].astype(np.float32))
        maps = torch.from_numpy(self.tokens[chosen]).permute(0, 3, 1, 2).float().div_(TOKEN_STEP)
        tokens = data.sample(maps, crops, grid).flatten(2).mT
        heat = torch.from_numpy(self.evidence[chosen].astype(np.float32))[:, None]
        evidence = data.sample(heat, crops, grid, around="zeros").flatten(1)
        return Hint(logits, (summary - self.mean) / self.deviation, tokens, evidence)


class Teacher:
    """ViT-Tiny on photos enlarged to 176 px, answering about the 200 classes of the photos alone."""

    def __init__(self, folder: Path) -> None:
        self.model: Any = VisionTransformer(ViTConfig.from_dict(TEACHER_CONFIG))
        weights = load_file(folder / TEACHER)
        self.model.load_state_dict({name: value.float() for name, value in weights.items()})
        self.model.eval()
        self.columns = torch.tensor(imagenet_columns([entry["synset"] for entry in data.classes(folder)]))

    @torch.no_grad()
    def before_last(self, photos: npt.NDArray[np.uint8]) -> Tensor:
        """The tokens that enter the last block, class token first: [batch, 1 + patches, dim]."""
        x: Tensor = self.model.tokens(data.enlarge(data.pixels(photos), SIZE))
        with torch.autocast("cpu", torch.bfloat16):
            for block in list(self.model.blocks)[:-1]:
                x = block(x)
        return x.float()

    @torch.no_grad()
    def answer(self, photos: npt.NDArray[np.uint8]) -> Answer:
        """One batch. The patch tokens are those that the last class-token attention reads, layer-normalised.

        (What the last block makes of the patches reaches no output and was never trained.)
        """
        x = self.before_last(photos)
        with torch.autocast("cpu", torch.bfloat16):
            first = self.model.norm(self.model.blocks[-1](x))[:, 0]
            logits = self.model.head(first)[:, self.columns]
        return Answer(logits.float(), first.float(), F.layer_norm(x[:, 1:], (DIM,)))

    @torch.no_grad()
    def query(self, photos: npt.NDArray[np.uint8]) -> Tensor:
        """The mean over photos of what the class token asks for in the last block: [heads, head_dim]."""
        first = self.model.blocks[-1].norm1(self.before_last(photos)[:, 0])
        query: Tensor = self._heads(first)[:, 0].mean(0)
        return query

    @torch.no_grad()
    def evidence(self, tokens: Tensor, labels: Tensor, query: Tensor) -> Tensor:
        """Where the last block finds the label: [batch, patches], from layer-normalised tokens.

        mean over heads of max(0, attention of the mean class token x what the patch's value adds to the logit of
        the label against the mean logit), with the final norm taken as its scale alone. On 483 validation photos
        whose box covers at most half of the photo, 43% of it lies in the box (23% of the area).
        """
        block, head = self.model.blocks[-1], self.model.head.weight[self.columns]
        qkv = self._heads(tokens * block.norm1.weight + block.norm1.bias)
        _, keys, values = qkv.unbind(2)  # each [batch, patches, heads, head_dim]
        scores = torch.einsum("he,bnhe->bhn", query * query.shape[1] ** -0.5, keys)
        direction = (head - head.mean(0))[labels] * self.model.norm.weight
        readers = block.attn.proj.weight.unflatten(1, query.shape)  # [dim, heads, head_dim]
        added = torch.einsum("bd,dhe,bnhe->bhn", direction, readers, values)
        return (scores.softmax(-1) * added).clamp(min=0).mean(1)

    def _heads(self, normed: Tensor) -> Tensor:
        """Queries, keys and values of the last block: [batch, ..., 3, heads, head_dim]."""
        attention = self.model.blocks[-1].attn
        heads: Tensor = attention.qkv(normed).unflatten(-1, (3, attention.num_heads, -1))
        return heads


def imagenet_columns(synsets: list[str]) -> list[int]:
    """The index of each synset among the 1000 classes."""
    with IMAGENET_CLASSES.open(encoding="utf-8") as lines:
        index = {row[1]: int(row[0]) for row in csv.reader(lines, delimiter="\t") if row[0].isdigit()}
    return [index[synset] for synset in synsets]


def compute(teacher: Teacher, photos: npt.NDArray[np.uint8], cache: Path, *, batch: int = 50) -> None:
    """Store the answers about all photos, `batch` at a time; what an interrupted pass stored is kept."""
    count, done_file = len(photos), cache / "teacher_done.txt"
    done = int(done_file.read_text()) if done_file.exists() else 0
    shapes: tuple[tuple[int, ...], ...] = ((count, 200), (count, DIM), (count, GRID, GRID, DIM))
    kinds: tuple[npt.DTypeLike, ...] = (np.float16, np.float16, np.int8)
    stores = [
        _open(cache / f"{name}.npy", shape, kind)
        for name, shape, kind in zip(NAMES, shapes, kinds, strict=True)
    ]
    mean, deviation = _token_statistics(teacher, photos, batch)
    for start in range(done, count, batch):
        answer = teacher.answer(photos[start : start + batch])
        levels = ((answer.tokens - mean) / deviation * TOKEN_STEP).round().clamp(-127, 127).to(torch.int8)
        rows = slice(start, start + batch)
        stores[0][rows], stores[1][rows] = answer.logits.numpy(), answer.summary.numpy()
        stores[2][rows] = levels.view(-1, GRID, GRID, DIM).numpy()
        if start % (40 * batch) == 0:
            done_file.write_text(str(start))
            log.info("teacher: %d of %d photos", start, count)
    done_file.write_text(str(count))


def compute_evidence(
    teacher: Teacher, photos: npt.NDArray[np.uint8], cache: Path, *, batch: int = 200
) -> None:
    """Store where the teacher finds each photo's label, from its stored tokens: float16 [photos, 11, 11], peak 1."""
    spread = photos[:: max(1, len(photos) // 1000)]
    mean, deviation = _token_statistics(teacher, photos, 50)
    query = torch.stack([teacher.query(spread[i : i + 50]) for i in range(0, len(spread), 50)]).mean(0)
    tokens, labels = np.load(cache / f"{NAMES[2]}.npy", mmap_mode="r"), data.labels("train", len(photos))
    store = _open(cache / f"{EVIDENCE}.partial.npy", (len(photos), GRID, GRID), np.float16)
    for start in range(0, len(photos), batch):
        rows = slice(start, start + batch)
        normed = (
            torch.from_numpy(tokens[rows].astype(np.float32)).flatten(1, 2) / TOKEN_STEP * deviation + mean
        )
        evidence = teacher.evidence(normed, labels[rows], query)
        evidence = evidence / evidence.amax(1, keepdim=True).clamp(min=1e-6)
        store[rows] = evidence.view(-1, GRID, GRID).numpy()
    (cache / f"{EVIDENCE}.partial.npy").replace(cache / f"{EVIDENCE}.npy")
    log.info("teacher: where it finds the label of %d photos", len(photos))


def _open(path: Path, shape: tuple[int, ...], kind: npt.DTypeLike) -> npt.NDArray[np.generic]:
    mode = "r+" if path.exists() else "w+"
    return np.lib.format.open_memmap(path, mode, kind, shape)


def _token_statistics(teacher: Teacher, photos: npt.NDArray[np.uint8], batch: int) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of each channel of the tokens, over 1000 photos of all classes."""
    spread = photos[:: max(1, len(photos) // 1000)]
    tokens = [teacher.answer(spread[i : i + batch]).tokens for i in range(0, len(spread), batch)]
    flat = torch.cat(tokens).flatten(0, 1)
    return flat.mean(0), flat.std(0)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, help="folder with train/ and the teacher's weights")
    parser.add_argument("--cache", type=Path, required=True, help="folder for the answers (2.4 GB)")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    torch.set_num_threads(args.threads)
    args.cache.mkdir(parents=True, exist_ok=True)
    teacher, photos = Teacher(args.data), data.photos(args.data, "train", args.cache)
    compute(teacher, photos, args.cache)
    compute_evidence(teacher, photos, args.cache)


if __name__ == "__main__":
    main()
