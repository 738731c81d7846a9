"""A survey beside the benchmarks of single photos, and beside a plain loop: the same figures, at which rate, in how much memory.

    python benchmarks/survey.py --data FOLDER --model vit_tiny_patch16_224.safetensors [--tiles FOLDER]

FOLDER holds annotations.json as benchmarks/accuracy.py and benchmarks/localisation.py want it; `--tiles` names one of sheets of
64 px photos with classes.json (Tiny-ImageNet, see training/README.md), for accuracy and memory over many photos.

- accuracy: top-1 and top-5 of the survey and of benchmarks/accuracy.py, and how many photos have the same first class in both.
- pointing: of the survey's table of methods and of benchmarks/localisation.py, photos with boxes over 75% of the crop left out.
- rate: a survey without methods against plain batched forward passes of timm's model of the same shape, with the same decoding in
  the same kind of thread; both in turns, each `--rounds` times. Processor time says what it costs; time on the clock depends on
  what else the machine does. The medians of the rounds' ratios are shown with the lowest and the highest.
- memory: of the process, when 500 photos are done and at the end.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import torch
from PIL import Image
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run from a checkout that is not installed

import tests.conftest  # noqa: F401 - lets timm import beside a CPU build of torch
import vit_viz
from benchmarks.accuracy import class_of, logits_of, our_logits
from vit_viz.analyses.explain import explain_subject
from vit_viz.analyses.localisation import localisation, object_on_grid
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.memory import share_one_heap
from vit_viz.surveys import local
from vit_viz.surveys.lists import notes_in
from vit_viz.surveys.photos import Photo, listed
from vit_viz.surveys.stages import Decoding, Shot

LARGEST = 0.75
MEMORY_FROM = 500


def main() -> None:
    arguments = parse()
    share_one_heap()
    torch.set_num_threads(arguments.threads)
    loaded = vit_viz.load(arguments.model, device="cpu")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        if arguments.data:
            accuracy(loaded, arguments.data, out / "accuracy")
            pointing(loaded, arguments.data, arguments.methods, arguments.limit, out / "pointing")
            rate(loaded, arguments.data, arguments.rounds, out / "rate")
        if arguments.tiles:
            unpack(arguments.tiles, out / "tiles", arguments.count)
            memory(loaded, out / "tiles" / "annotations.json", out / "memory")
            accuracy(loaded, out / "tiles", out / "memory")


def accuracy(loaded: vit_viz.LoadedModel, data: Path, out: Path) -> None:
    photos = json.loads((data / "annotations.json").read_text())
    try:
        truth = torch.tensor([class_of(photo, loaded.labels) for photo in photos])
    except vit_viz.ParameterError as error:
        print(f"accuracy: left out, since benchmarks/accuracy.py refuses these photos: {error}")
        return
    done = vit_viz.survey(loaded, data / "annotations.json", out)
    logits = logits_of(data, photos, lambda path: our_logits(loaded, path, "crop"))
    hits = logits.topk(5).indices == truth[:, None]
    ours = done.accuracy
    theirs = (int(hits[:, 0].sum()) / len(truth), int(hits.any(1).sum()) / len(truth), len(truth))
    first = [row[0] for row in done.table("photos", ["top_classes"]).to_pydict()["top_classes"]]
    same = sum(a == b for a, b in zip(first, logits.argmax(1).tolist(), strict=True))
    print(
        f"accuracy (top-1, top-5, photos): survey {ours}, benchmarks/accuracy.py {theirs}: {words(ours == theirs)}"
    )
    print(f"  the same first class in {same} of {len(first)} photos")


def pointing(
    loaded: vit_viz.LoadedModel, data: Path, methods: Sequence[str], limit: int | None, out: Path
) -> None:
    """The means of benchmarks/localisation.py, by the functions that it calls, beside those of the survey's table."""
    photos = json.loads((data / "annotations.json").read_text())[:limit]
    few = out.parent / "few.json"
    few.write_text(json.dumps([photo | {"file": str((data / photo["file"]).resolve())} for photo in photos]))
    done = vit_viz.survey(loaded, few, out, methods=methods, deletion=False)
    shares = dict(zip(*done.table("photos", ["photo", "box_share"]).to_pydict().values(), strict=True))
    rows = [row for row in done.table("methods").to_pylist() if shares[row["photo"]] <= LARGEST]
    theirs: dict[str, list[tuple[bool, float]]] = {}
    for photo in photos:
        subject = PreparedImage.of(loaded, data / photo["file"], mode="crop")
        assert subject.crop_box is not None
        if (
            object_on_grid(subject.crop_box, subject.layout.grid, boxes=photo["boxes_xyxy"]).share.mean()
            > LARGEST
        ):
            continue
        maps = explain_subject(subject, methods=methods, target=photo["class_index"])
        for method, patch_map in maps.items():
            place = localisation(patch_map, boxes=photo["boxes_xyxy"])
            theirs.setdefault(method, []).append((place.pointing, place.energy))
    for method in methods:
        mine = [(row["pointing"], row["energy"]) for row in rows if row["method"] == method]
        ours, others = np.mean(mine, 0), np.mean(theirs[method], 0)
        is_equal = (
            len(mine) == len(theirs[method]) and ours[0] == others[0] and abs(ours[1] - others[1]) < 1e-5
        )
        print(
            f"pointing, energy of {method} on {len(mine)} photos: survey {ours.round(6)}, benchmarks/localisation.py "
            f"{others.round(6)}: {words(is_equal)}"
        )


def words(equal: bool) -> str:
    return "equal" if equal else "DIFFERENT"


# --- rate


def rate(loaded: vit_viz.LoadedModel, data: Path, rounds: int, out: Path) -> None:
    photos = listed(notes_in(data / "annotations.json"), data)
    timm = same_in_timm(loaded)
    machine = local.Machine()
    decoding = Decoding(loaded.preprocess, thumbnails=False)
    plain(timm, photos[:16], decoding, machine)
    vit_viz.survey(loaded, [photo.path for photo in photos[:16]], out / "warm")
    costs: list[tuple[float, float]] = []
    for number in range(rounds):
        of_plain = timed(lambda: plain(timm, photos, decoding, machine))
        of_survey = timed(
            lambda number=number: vit_viz.survey(loaded, data / "annotations.json", out / str(number))
        )
        costs.append((of_plain[0] / of_survey[0], of_plain[1] / of_survey[1]))
        print(
            f"  round {number}: plain {ms(of_plain, photos)}, survey {ms(of_survey, photos)} per photo (processor, clock)",
            flush=True,
        )
    for name, ratios in zip(("processor time", "time on the clock"), zip(*costs, strict=True), strict=True):
        print(
            f"rate in {name}, survey against plain: {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        )


def plain(model: nn.Module, photos: Sequence[Photo], decoding: Decoding, machine: local.Machine) -> None:
    """Batched forward passes and nothing else."""
    at_once, workers = machine.on(torch.device("cpu"))
    pieces = iter([((0, False), photos[i : i + at_once]) for i in range(0, len(photos), at_once)])
    with torch.inference_mode():
        for _, shots in local.prepared_ahead(pieces, decoding, workers):
            levels = np.stack([shot.levels for shot in shots if isinstance(shot, Shot)])
            model(decoding.recipe.normalised(torch.from_numpy(levels))).argmax(1).tolist()


def same_in_timm(loaded: vit_viz.LoadedModel) -> nn.Module:
    """timm's model of the same shape, random weights."""
    from timm.models.vision_transformer import VisionTransformer

    config = loaded.config
    return VisionTransformer(
        img_size=config.img_size,
        patch_size=config.patch_size,
        embed_dim=config.embed_dim,
        depth=config.depth,
        num_heads=config.num_heads,
        mlp_ratio=(config.mlp_hidden or 4 * config.embed_dim) / config.embed_dim,
        num_classes=config.num_classes,
        reg_tokens=config.reg_tokens,
        class_token=config.class_token,
    ).eval()


def timed(run: Callable[[], Any]) -> tuple[float, float]:
    """(processor time, time on the clock), in seconds."""
    processor, clock = time.process_time(), time.perf_counter()
    run()
    return time.process_time() - processor, time.perf_counter() - clock


def ms(seconds: tuple[float, float], photos: Sequence[Photo]) -> str:
    return ", ".join(f"{1000 * one / len(photos):.1f}" for one in seconds) + " ms"


# --- many photos


def unpack(tiles: Path, folder: Path, count: int) -> None:
    """Validation photos as files of their own, class after class in turns, with their list."""
    folder.mkdir()
    classes = json.loads((tiles / "classes.json").read_text())
    rows = []
    for tile in range(50):
        for one in classes:
            if len(rows) == count:
                break
            name = f"{one['index']:03}_{tile:02}.png"
            row, col = divmod(tile, 10)
            with Image.open(tiles / "val" / f"{one['index']:03}.webp") as sheet:
                sheet.crop((64 * col, 64 * row, 64 * col + 64, 64 * row + 64)).save(
                    folder / name, compress_level=1
                )
            left, top, right, bottom = one["val_boxes_xyxy"][tile]
            box = [left, top, right + 1, bottom + 1]
            rows.append(
                {"file": name, "synset": one["synset"], "class_index": one["index"], "boxes_xyxy": [box]}
            )
    (folder / "annotations.json").write_text(json.dumps(rows))


def memory(loaded: vit_viz.LoadedModel, photos: Path, out: Path) -> None:
    process, seen = psutil.Process(), {}

    def note(done: int, _total: int) -> None:
        seen[done] = process.memory_info().rss / 2**20

    began = time.perf_counter()
    vit_viz.survey(loaded, photos, out, progress=note)
    seconds, last = time.perf_counter() - began, max(seen)
    early = max(value for done, value in seen.items() if done <= MEMORY_FROM)
    late = max(value for done, value in seen.items() if done >= min(MEMORY_FROM, last))
    print(
        f"{last} photos in {seconds:.0f} s, {last / seconds:.1f} photos/s; memory: most until photo {MEMORY_FROM} {early:.0f} MiB, "
        f"most after it {late:.0f} MiB ({100 * (late / early - 1):+.1f}%), at the end {seen[last]:.0f} MiB"
    )


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder of photos with annotations.json")
    parser.add_argument("--tiles", type=Path, help="folder of sheets of small photos with classes.json")
    parser.add_argument("--model", default="mini", help="what vit_viz.load takes")
    parser.add_argument(
        "--methods", nargs="+", default=["rollout", "relevance"], help="whose pointing is compared"
    )
    parser.add_argument("--limit", type=int, default=None, help="photos for pointing")
    parser.add_argument("--count", type=int, default=1000, help="photos of --tiles")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    return parser.parse_args()


if __name__ == "__main__":
    main()
