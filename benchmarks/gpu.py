"""What a GPU gives: the numbers of the CPU for every question, in which time, and the rate of surveys.

    python benchmarks/gpu.py [--model mini] [--image shapes] [--photos FOLDER] [--shapes ViT-Ti/16 ViT-B/16] [--ray]

- numbers: each question on the CPU and on the GPU; the largest difference of each array, relative to its largest number, and the
  median of three times on either. Whole numbers (classes, segments, tokens) are told as the share that differs.
- survey: the rows of --photos from both devices, likewise; then, for random models of the given shapes, photos per second of
  decoding, of recording, and of the survey, after its first fifth and with its start. The photos are named again and again until
  there are --count of them, so they come from the disk's cache. Traces of one photo, recording and the survey are told as ratios to
  plain forward passes, beside their limits. With --ray also by Ray: one actor, two and four, each with its
  share of one GPU.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run from a checkout that is not installed

import vit_viz
from benchmarks.shapes import random_model
from vit_viz.analyses.registry import QUESTIONS
from vit_viz.checkpoints import LoadedModel
from vit_viz.errors import VitVizError
from vit_viz.session.questions import ask
from vit_viz.session.run import subject_of
from vit_viz.session.serialization import arrays_of
from vit_viz.session.session import Session
from vit_viz.surveys import local
from vit_viz.surveys.photos import Photo
from vit_viz.surveys.ray_engine import RayCluster
from vit_viz.surveys.recording import Recording
from vit_viz.surveys.run import SurveyEngine
from vit_viz.surveys.stages import Decoding, Failure, Shot, prepared

SHAPES: dict[str, dict[str, Any]] = {
    "ViT-Ti/16": {"embed_dim": 192, "num_heads": 3},
    "ViT-S/16": {"embed_dim": 384, "num_heads": 6},
    "ViT-B/16": {"embed_dim": 768, "num_heads": 12},
    "ViT-L/16": {"embed_dim": 1024, "num_heads": 16, "depth": 24},
}
TRACE_LIMITS = {"trace, no proof": (0, 1.10), "trace, 16-row proof": (16, 1.25)}
"""Rows of the proof, and how many forward passes a trace may take."""
RECORDING_LIMITS = {"ViT-Ti/16": 0.6, "ViT-B/16": 0.8}
"""Share of plain passes per second that recording has to reach."""
SUFFIXES = (".jpg", ".jpeg", ".png", ".webp")


def main() -> None:
    arguments = parse()
    device = torch.device(arguments.device)
    name = torch.cuda.get_device_name() if device.type == "cuda" else device.type
    print(f"{name}, {os.cpu_count()} cores, torch {torch.__version__}", flush=True)
    if not arguments.no_questions:
        all_questions(arguments.model, arguments.image, device)
    if arguments.photos:
        photos = sorted(path for path in arguments.photos.iterdir() if path.suffix.lower() in SUFFIXES)
        with tempfile.TemporaryDirectory() as folder:
            same_rows(arguments.model, photos, device, Path(folder))
            many = again_and_again(photos, arguments.count, Path(folder) / "photos")
            for shape in arguments.shapes:
                loaded = random_model(shape, **SHAPES[shape])
                rates(loaded, many, device, Path(folder) / shape.replace("/", "-"), with_ray=arguments.ray)


# --- questions


def all_questions(model: str, image: str, device: torch.device) -> None:
    """Print how far each question's arrays are from the CPU's, and how long both take."""
    sessions = [Session(model=model, device=one, falls_back=False) for one in ("cpu", str(device))]
    print(
        f"{'question':24} {'difference':>10} {'other':>7} {'CPU':>9} {'GPU':>9}   ms; the array that differs most"
    )
    for name in QUESTIONS:
        try:
            found = [timed_answer(session, name, image) for session in sessions]
        except VitVizError as error:
            print(f"{name:24} refused: {error}", flush=True)
            continue
        (on_cpu, of_cpu), (on_gpu, of_gpu) = found
        worst, part, other = compared(on_gpu, on_cpu)
        print(f"{name:24} {worst:10.1e} {other:7.2%} {of_cpu:9.1f} {of_gpu:9.1f}   {part}", flush=True)


def timed_answer(session: Session, name: str, image: str) -> tuple[dict[str, NDArray[Any]], float]:
    """An answer's arrays and the milliseconds it takes, nothing being kept; the first of four times is not counted."""
    seconds = []
    for _ in range(4):
        session.cache.clear()
        began = time.perf_counter()
        answer = ask(session, subject_of(session, image if QUESTIONS[name].takes_image else None), name)
        arrays = {part: np.asarray(values) for part, values in arrays_of(answer).items()}
        seconds.append(time.perf_counter() - began)
        if seconds[-1] > 10:
            break
    return arrays, 1000 * statistics.median(seconds[1:] or seconds)


def compared(found: dict[str, NDArray[Any]], expected: dict[str, NDArray[Any]]) -> tuple[float, str, float]:
    """(largest relative difference, whose it is, share of whole numbers that differ)."""
    assert found.keys() == expected.keys()
    differences, other = {"": 0.0}, [0.0]
    for part, values in expected.items():
        if values.dtype.kind != "f":
            other.append(float((found[part] != values).mean()))
        elif values.size and np.isfinite(values).any():
            known = np.isfinite(values)
            assert (np.isfinite(found[part]) == known).all(), part
            size = float(np.abs(values[known]).max()) or 1.0
            differences[part] = float(np.abs(found[part][known] - values[known]).max()) / size
    part = max(differences, key=lambda name: differences[name])
    return differences[part], part, max(other)


# --- surveys


def same_rows(model: str, photos: list[Path], device: torch.device, out: Path) -> None:
    """Print how far the rows of a survey are from the CPU's."""
    surveys = [
        vit_viz.survey(vit_viz.load(model, device=one), photos, out / kind)
        for one, kind in (("cpu", "cpu"), (device, "gpu"))
    ]
    for level in ("photos", "heads"):
        tables = [arrays_in(survey.table(level).to_pydict()) for survey in surveys]
        worst, part, other = compared(tables[1], tables[0])
        print(
            f"survey of {len(photos)} photos, {level}: difference {worst:.1e} ({part}), other {other:.2%}",
            flush=True,
        )


def arrays_in(columns: dict[str, list[Any]]) -> dict[str, NDArray[Any]]:
    """Columns as arrays, lists within them one after the other; NaN where there is nothing."""
    return {name: np.array(list(flattened(rows))) for name, rows in columns.items()}


def flattened(rows: list[Any]) -> Iterator[Any]:
    for row in rows:
        if isinstance(row, list):
            yield from flattened(row)
        else:
            yield np.nan if row is None else row


def again_and_again(photos: list[Path], count: int, folder: Path) -> list[Path]:
    """That many names for these photos."""
    folder.mkdir()
    names = []
    for number, photo in enumerate(islice(cycle(photos), count)):
        names.append(folder / f"{number:06}{photo.suffix}")
        names[-1].symlink_to(photo.resolve())
    return names


def rates(
    loaded: LoadedModel, photos: list[Path], device: torch.device, out: Path, *, with_ray: bool
) -> None:
    """Print photos per second of each stage and of the whole."""
    on_gpu, decoding = loaded.copied_to(device), Decoding(loaded.preprocess, thumbnails=True)
    at_once, workers = local.Machine().on(device)
    few = [Photo(path=str(path), name=path.name) for path in photos[:at_once]]
    shots, recording = prepared(few, decoding), Recording(on_gpu)
    levels = torch.from_numpy(np.stack([shot.levels for shot in shots if isinstance(shot, Shot)]))
    pixels = loaded.preprocess.normalised(levels.to(device))
    trace_ratios(on_gpu, pixels[:1])
    of_forward = per_second(lambda: forward(on_gpu, pixels), at_once, 20)
    of_recording = recorded_per_second(recording, shots, 25)
    of_decoding = per_second(lambda: prepared(few, decoding), at_once, 2)
    whole, steady = rate(on_gpu, photos, out / "local", local.Machine())
    print(
        f"{loaded.name}, {at_once} photos per pass: plain forward passes {of_forward:.0f} photos/s, recording {of_recording:.0f}, "
        f"decoding {of_decoding:.0f} on one core; survey beside {workers} decoders {steady:.0f}, {whole:.0f} with its start",
        flush=True,
    )
    least = RECORDING_LIMITS.get(loaded.name)
    print(
        f"  recording / plain {of_recording / of_forward:.2f}{'' if least is None else f' (at least {least})'}, "
        f"survey / plain {steady / of_forward:.2f}",
        flush=True,
    )
    for actors in (1, 2, 4) if with_ray else ():
        engine = RayCluster(gpus_per_actor=1 / actors, actors=actors)
        whole, steady = rate(loaded, photos, out / f"ray {actors}", engine)
        print(
            f"  by Ray, {actors} x {1 / actors:g} GPUs: {steady:.0f}, {whole:.0f} with its start", flush=True
        )


def rate(loaded: LoadedModel, photos: list[Path], out: Path, engine: SurveyEngine) -> tuple[float, float]:
    """Photos per second of a whole survey, and of what comes after its first fifth."""
    times: dict[int, float] = {}
    began = time.perf_counter()

    def note(done: int, _total: int) -> None:
        times.setdefault(done, time.perf_counter() - began)

    vit_viz.survey(loaded, photos, out, engine=engine, progress=note)
    early = min(done for done in times if done >= len(photos) / 5)
    late = max(times)
    return len(photos) / (time.perf_counter() - began), (late - early) / (times[late] - times[early])


def forward(loaded: LoadedModel, pixels: torch.Tensor) -> None:
    with torch.inference_mode():
        loaded.model(pixels).argmax(1).tolist()


def trace_ratios(loaded: LoadedModel, pixels: torch.Tensor) -> None:
    """Print how many forward passes of one photo a trace takes, in turns with them."""
    for name, (rows, limit) in TRACE_LIMITS.items():
        ratios = []
        for _ in range(60):
            seconds = [
                seconds_of(lambda: forward(loaded, pixels)),
                seconds_of(lambda rows=rows: vit_viz.trace(loaded.model, pixels, proof_rows=rows)),
            ]
            ratios.append(seconds[1] / seconds[0])
        print(
            f"{loaded.name}, {name}: {statistics.median(ratios[10:]):.2f} forwards (at most {limit})",
            flush=True,
        )


def seconds_of(run: Callable[[], object]) -> float:
    torch.cuda.synchronize()
    began = time.perf_counter()
    run()
    torch.cuda.synchronize()
    return time.perf_counter() - began


def recorded_per_second(recording: Recording, shots: list[Shot | Failure], rounds: int) -> float:
    """Photos per second of recording the same photos again and again, as a survey does whose photos are decoded already."""
    began = 0.0
    for count in (4, rounds):  # the first ones are not counted
        began = time.perf_counter()
        for _ in local.recorded_ahead(((number, shots) for number in range(count)), recording):
            pass
    return rounds * len(shots) / (time.perf_counter() - began)


def per_second(run: Callable[[], object], photos: int, rounds: int) -> float:
    run()
    seconds = []
    for _ in range(rounds):
        began = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - began)
    return photos / statistics.median(seconds)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="mini", help="what vit_viz.load takes")
    parser.add_argument("--device", default="cuda", help="what is set against the CPU")
    parser.add_argument("--image", default="shapes", help="a sample by its name, or a file")
    parser.add_argument("--photos", type=Path, help="folder of photos")
    parser.add_argument("--shapes", nargs="*", default=list(SHAPES)[:3], choices=list(SHAPES))
    parser.add_argument("--count", type=int, default=4000)
    parser.add_argument("--ray", action="store_true", help="also by Ray")
    parser.add_argument("--no-questions", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
