"""What the teacher says about every training photo, computed once: logits, patch tokens, class token.

`python -m training.targets DATA --cache FOLDER`; it goes on where it was interrupted.
"""

from __future__ import annotations

import argparse
import csv
import logging
from pathlib import Path
from typing import NamedTuple

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
log = logging.getLogger("training")


class Answer(NamedTuple):
    """The teacher on a batch: logits [batch, 200], summary [batch, dim], tokens [batch, patches, dim]."""

    logits: Tensor
    summary: Tensor
    tokens: Tensor


class TeacherAnswers:
    """The stored answers, opened for reading: looked up by photo, sampled under its crop."""

    def __init__(self, cache: Path) -> None:
        self.logits, self.summary, self.tokens = (
            np.load(cache / f"{name}.npy", mmap_mode="r") for name in NAMES
        )
        some = torch.from_numpy(np.asarray(self.summary[::50], dtype=np.float32))
        self.mean, self.deviation = some.mean(0), some.std(0)

    def about(self, chosen: npt.NDArray[np.int64], crops: Tensor, grid: int) -> Answer:
        """The answers on these photos; the tokens are those under each patch of the crops, grid x grid."""
        logits = torch.from_numpy(self.logits[chosen].astype(np.float32))
        summary = torch.from_numpy(self.summary[chosen].astype(np.float32))
        maps = torch.from_numpy(self.tokens[chosen]).permute(0, 3, 1, 2).float().div_(TOKEN_STEP)
        tokens = data.sample(maps, crops, grid).flatten(2).mT
        return Answer(logits, (summary - self.mean) / self.deviation, tokens)


class Teacher:
    """ViT-Tiny on photos enlarged to 176 px, answering about the 200 classes of the photos alone."""

    def __init__(self, folder: Path) -> None:
        self.model = VisionTransformer(ViTConfig.from_dict(TEACHER_CONFIG))
        weights = load_file(folder / TEACHER)
        self.model.load_state_dict({name: value.float() for name, value in weights.items()})
        self.model.eval()
        self.columns = torch.tensor(imagenet_columns([entry["synset"] for entry in data.classes(folder)]))

    @torch.no_grad()
    def answer(self, photos: npt.NDArray[np.uint8]) -> Answer:
        """One batch. The patch tokens are those that the last class-token attention reads, layer-normalised.

        (What the last block makes of the patches reaches no output and was never trained.)
        """
        model = self.model
        x = model.tokens(data.enlarge(data.pixels(photos), SIZE))
        with torch.autocast("cpu", torch.bfloat16):
            for block in list(model.blocks)[:-1]:
                x = block(x)
            first = model.norm(model.blocks[-1](x))[:, 0]
            logits = model.head(first)[:, self.columns]
        return Answer(logits.float(), first.float(), F.layer_norm(x[:, 1:].float(), (DIM,)))


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
    compute(Teacher(args.data), data.photos(args.data, "train", args.cache), args.cache)


if __name__ == "__main__":
    main()
