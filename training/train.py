"""Train the bundled model on a CPU: `python -m training.train DATA --work FOLDER --minutes 240`.

The run is a function of its share of the time (recipe.py), so that it ends when it should on any machine. It writes
FOLDER/last.pt every few minutes and continues from it when started again; FOLDER/stable.pt is the last state before
the learning rate decays, from which a longer run can go on.
"""

from __future__ import annotations

import argparse
import copy
import json
import logging
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from training import data
from training.optimizer import Muon
from training.recipe import Recipe, Stage
from training.student import Student, Targets, initialise, losses, paste, random_patches, random_rectangles
from training.targets import TeacherAnswers
from vit_viz.model import VisionTransformer, ViTConfig

log = logging.getLogger("training")
Clock = Callable[[], float]
Look = tuple[npt.NDArray[np.uint8], Tensor]  # photos and labels of the quick look at validation


class Batch(NamedTuple):
    """One step's input: pixels [batch, 3, size, size], kept patches [batch, kept] or None, and what to match."""

    pixels: Tensor
    keep: Tensor | None
    targets: Targets


class Material:
    """The training photos and the teacher's answers, and how a batch is drawn from them."""

    def __init__(self, photos: npt.NDArray[np.uint8], answers: TeacherAnswers, recipe: Recipe) -> None:
        self.photos, self.answers, self.recipe = photos, answers, recipe
        self.labels = data.labels("train", len(photos))
        self.patch = int(str(recipe.model["patch_size"]))

    def batch(self, chosen: npt.NDArray[np.int64], stage: Stage, *, rng: torch.Generator) -> Batch:
        """Crop, flip and jitter the chosen photos, and look up the teacher's answers under the same crops."""
        grid = stage.size // self.patch
        crops = data.random_crops(
            len(chosen), area=self.recipe.crop_area, ratio=self.recipe.crop_ratio, rng=rng
        )
        photos = data.enlarge(data.pixels(self.photos[chosen]), max(stage.size, data.SIDE))
        shown = data.sample(photos, crops, stage.size)
        pixels = data.jitter(shown, self.recipe.jitter, self.recipe.grey_share, rng=rng)
        answer = self.answers.about(chosen, crops, grid)
        labels = F.one_hot(self.labels[chosen], answer.logits.shape[1]).float()
        soft = (answer.logits / self.recipe.temperature).softmax(1)
        replaced = random_rectangles(len(chosen), grid, self.recipe.paste_share, rng=rng)
        pixels, targets = paste(
            pixels, Targets(labels, soft, answer.tokens, answer.summary, answer.evidence), replaced
        )
        keep = random_patches(len(chosen), grid**2, stage.keep, rng=rng)
        if keep is not None:
            shown = targets.tokens.gather(1, keep[:, :, None].expand(-1, -1, targets.tokens.shape[-1]))
            targets = targets._replace(tokens=shown, evidence=targets.evidence.gather(1, keep))
        return Batch(pixels, keep, targets)


def order(count: int, seed: int, seen: int, batch: int) -> npt.NDArray[np.int64]:
    """Which photos come next after `seen`: a new shuffle each epoch, whose last incomplete batch is left out."""
    epoch, position = divmod(seen, count)
    shuffled = np.random.default_rng((seed, epoch)).permutation(count)
    return shuffled[position : position + batch]


class Run:
    """Everything that changes during the training, and how it is stored."""

    def __init__(self, recipe: Recipe, *, seed: int = 0) -> None:
        torch.manual_seed(seed)
        self.recipe, self.seed = recipe, seed
        self.rng = torch.Generator().manual_seed(seed)
        model = VisionTransformer(ViTConfig.from_dict(recipe.model))
        initialise(model)
        self.student = Student(model, model.config.embed_dim)
        self.average = copy.deepcopy(model).eval()
        matrices, others = split(self.student)
        self.muon = Muon(matrices, momentum=recipe.momentum, decay=recipe.matrix_decay)
        self.adam = torch.optim.AdamW(
            others, lr=recipe.other_rate, betas=recipe.betas, weight_decay=recipe.other_decay
        )
        self.step, self.seen, self.spent = 0, 0, 0.0

    def train_step(self, batch: Batch, progress: float) -> dict[str, float]:
        """One update of the weights and of their moving average; the terms of the loss before it."""
        with torch.autocast("cpu", torch.bfloat16):
            answers = self.student(batch.pixels, batch.keep)
        terms = losses(answers, batch.targets, self.recipe)
        torch.autograd.backward(torch.stack(list(terms.values())).sum())
        nn.utils.clip_grad_norm_(self.student.parameters(), self.recipe.clip)
        rate = self.recipe.rate(progress)
        for group in self.adam.param_groups:
            group["lr"] = self.recipe.other_rate * rate
        self.adam.step()
        self.muon.step(self.recipe.matrix_rate * rate)
        self.student.zero_grad(set_to_none=True)
        self._follow()
        self.step += 1
        self.seen += len(batch.pixels)
        return {name: term.item() for name, term in terms.items()}

    @torch.no_grad()
    def _follow(self) -> None:
        weight = 1 - min(self.recipe.ema, (1 + self.step) / (10 + self.step))
        mine, current = tuple(self.average.parameters()), tuple(self.student.model.parameters())
        torch._foreach_lerp_(mine, current, weight)

    def state(self) -> dict[str, Any]:
        """All that is needed to resume the training exactly."""
        return {
            "student": self.student.state_dict(),
            "average": self.average.state_dict(),
            "muon": self.muon.state_dict(),
            "adam": self.adam.state_dict(),
            "rng": self.rng.get_state(),
            "counters": {"step": self.step, "seen": self.seen, "spent": self.spent, "seed": self.seed},
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a stored state."""
        self.student.load_state_dict(state["student"])
        self.average.load_state_dict(state["average"])
        self.muon.load_state_dict(state["muon"])
        self.adam.load_state_dict(state["adam"])
        self.rng.set_state(state["rng"])
        for name, value in state["counters"].items():
            setattr(self, name, value)


def split(student: Student) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """The matrices of the blocks, for Muon, and all other parameters, for AdamW."""
    matrices = [p for name, p in student.named_parameters() if ".blocks." in name and p.ndim == 2]
    chosen = {id(p) for p in matrices}
    return matrices, [p for p in student.parameters() if id(p) not in chosen]


def steps(
    run: Run, material: Material, *, seconds: float, clock: Clock
) -> Iterator[tuple[float, dict[str, float]]]:
    """Train until `seconds` of the clock are spent (those before an interruption included): progress, losses."""
    last = clock()
    while (progress := run.spent / seconds) < 1.0:
        stage = run.recipe.stage(progress)
        chosen = order(len(material.photos), run.seed, run.seen, stage.batch)
        terms = run.train_step(material.batch(chosen, stage, rng=run.rng), progress)
        now = clock()
        run.spent, last = run.spent + now - last, now
        yield progress, terms


@torch.inference_mode()
def accuracy(
    model: nn.Module, photos: npt.NDArray[np.uint8], labels: Tensor, size: int
) -> tuple[float, float]:
    """Top-1 and top-5 share on whole photos enlarged to `size`, in bfloat16: a quick look, not the final figure."""
    top1 = top5 = 0
    for start in range(0, len(photos), 250):
        part = data.enlarge(data.pixels(photos[start : start + 250]), size)
        with torch.autocast("cpu", torch.bfloat16):
            best = model(part).topk(5).indices
        hits = best == labels[start : start + 250, None]
        top1, top5 = top1 + int(hits[:, 0].sum()), top5 + int(hits.any(1).sum())
    return top1 / len(photos), top5 / len(photos)


def store(path: Path, state: dict[str, Any]) -> None:
    """Write a checkpoint so that an interruption leaves the old one or the new one, never half of one."""
    partial = path.with_suffix(".partial")
    torch.save(state, partial)
    partial.replace(path)


def cpu_clock() -> float:
    """Processor seconds of this process over its threads: a time that other work on the machine does not use up."""
    return time.process_time() / torch.get_num_threads()


def train(run: Run, material: Material, look: Look, args: argparse.Namespace) -> None:
    """Run to the end of the time or to a signal, with lines in the log, checkpoints and an accuracy now and then."""
    clock = time.monotonic if args.clock == "wall" else cpu_clock
    every = {"line": 30.0, "checkpoint": 180.0, "look": 60.0 * args.look_every}
    last = dict.fromkeys(every, time.monotonic())
    stopped = _stop_signals()
    for progress, terms in steps(run, material, seconds=args.minutes * 60, clock=clock):
        now = time.monotonic()
        due = [name for name, seconds in every.items() if now - last[name] > seconds]
        if "line" in due:
            parts = " ".join(f"{name} {value:.3f}" for name, value in terms.items())
            log.info("%5.1f%% step %d seen %d spent %.1f min: %s",
                     100 * progress, run.step, run.seen, run.spent / 60, parts)  # fmt: skip
        if "checkpoint" in due or stopped:
            checkpoint(run, args.work, progress)
        if "look" in due:
            size = run.recipe.stage(progress).size
            log.info("validation at %d px: top-1 %.3f top-5 %.3f", size, *accuracy(run.average, *look, size))
        last.update(dict.fromkeys(due, time.monotonic()))
        if stopped:
            log.info("stopped at step %d; the same command goes on from here", run.step)
            return
    finish(run, look, args.work)


def checkpoint(run: Run, work: Path, progress: float) -> None:
    """Store the run; in the stable part of the schedule also as the state from which a longer run can go on."""
    store(work / "last.pt", run.state())
    if progress < run.recipe.decay_from:
        store(work / "stable.pt", run.state())


def finish(run: Run, look: Look, work: Path) -> None:
    """Store the run and the average of its weights, which is what is exported."""
    store(work / "last.pt", run.state())
    weights = {name: value.contiguous() for name, value in run.average.state_dict().items()}
    save_file(weights, work / "average.safetensors")
    log.info("done: step %d seen %d, validation at 128 px: top-1 %.4f top-5 %.4f",
             run.step, run.seen, *accuracy(run.average, *look, 128))  # fmt: skip


def _stop_signals() -> list[int]:
    """A list that fills up when the process is asked to end, so that it can end between two steps."""
    received: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: received.append(number))
    return received


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, help="folder with train/ and the teacher's weights")
    parser.add_argument("--work", type=Path, required=True, help="folder for caches, checkpoints and the log")
    parser.add_argument("--cache", type=Path, help="folder of decoded photos and teacher's answers (WORK)")
    parser.add_argument("--minutes", type=float, required=True, help="length of the whole run")
    parser.add_argument(
        "--clock", choices=["cpu", "wall"], default="cpu", help="cpu: processor time / threads"
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--start-from", type=Path, help="safetensors file of a model to start from")
    parser.add_argument(
        "--continue-from", type=Path, help="checkpoint to resume from when WORK has none of its own"
    )
    parser.add_argument(
        "--look-every", type=float, default=8.0, help="minutes between two looks at validation"
    )
    return parser.parse_args()


def main() -> None:
    """Prepare what is missing, resume what is there, train."""
    args = parse()
    args.work.mkdir(parents=True, exist_ok=True)
    cache = args.cache or args.work
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    torch.set_num_threads(args.threads)
    recipe = Recipe()
    run = Run(recipe, seed=args.seed)
    last = args.work / "last.pt"
    if last.exists() or args.continue_from:
        run.restore(torch.load(last if last.exists() else args.continue_from, weights_only=True))
    elif args.start_from:
        weights = {name: value.float() for name, value in load_file(args.start_from).items()}
        run.student.model.load_state_dict(weights)
        run.average.load_state_dict(weights)
    (args.work / "recipe.json").write_text(json.dumps({"minutes": args.minutes, "recipe": repr(recipe)}))
    photos = data.photos(args.data, "train", cache)
    validation = data.photos(args.data, "val", cache)
    look = validation[::10], data.labels("val", len(validation))[::10]
    train(run, Material(photos, TeacherAnswers(cache), recipe), look, args)


if __name__ == "__main__":
    main()
