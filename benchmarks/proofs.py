"""Whether what a trace calls proven is what the model does: one line per model, compared with the model's own eager attention.

    python -m benchmarks.proofs                       the whole table
    python -m benchmarks.proofs --only yolos          models whose name holds this
    python -m benchmarks.proofs --json proofs.json    also as JSON

Each model (timm, transformers, torchvision and stand-ins; tiny, with random weights) is traced as it is; where the trace asks for a
layout, the one that its message advises is passed, one that fits the count of tokens, and the true one. The worst of these decides.
"Right" means that the map of the class token and of every patch, in every head and layer, lies within 1e-4 of the truth at the true
places (2e-3 in fp16, 2e-2 in bf16), that rollout equals a chain of the true matrices, and that the module's parameters and buffers
are as one pass leaves them.
The truth comes from the models' own eager code (timm's dropout of attention, transformers' output_attentions, formulas), and from
which token moves when a patch changes. A line shows the verdict, layers seen of blocks that attend over the whole image, whose
layout was used, the model, the badge, what is wrong and what the badge or the exception says.

    right and proven    the badge says proven, and everything is right
    right, told         the badge says what does not hold, and each map is a true attention
    refused             CaptureError or ParameterError
    WRONG and proven    must not happen
    wrong, told         the badge says what does not hold, but a map or a rollout is wrong
    error               any other exception: must not happen
"""

from __future__ import annotations

import argparse
import copy
import json
import re
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import tests.conftest  # noqa: F401 - lets timm import beside a CPU build of torch
from benchmarks.cases import from_timm, from_transformers, head_tricks, stand_ins, tricks
from benchmarks.cases.truth import ERROR, REFUSED, RIGHT, TOLD, WRONG, WRONG_TOLD, Case, Truth
from vit_viz.analyses.rollout import rollout
from vit_viz.capture import Trace, trace
from vit_viz.errors import CaptureError, ParameterError
from vit_viz.geometry import TokenLayout

TOLERANCES = {torch.float32: 1e-4, torch.float16: 2e-3, torch.bfloat16: 2e-2}
_SEVERITY = (WRONG, ERROR, WRONG_TOLD, RIGHT, TOLD, REFUSED)
_COUNT = re.compile(r"(\d+) tokens")
_ADVICE = re.compile(r"layout=TokenLayout\(grid=\((\d+), (\d+)\), prefix=(\([^)]*\))")


@dataclass(frozen=True)
class Row:
    """What became of one model.

    Args:
        layers: layers that the trace shows; 0 where it was refused.
        blocks: blocks that the model has.
        verdict: see the top.
        status: of the proof.
        sentence: what the badge or the exception says.
        fault: what is wrong, where something is.
        layout: "own" (the module tells), "advised" (by the message), "naive" (by the count of tokens) or "given" (the true one).
        as_expected: whether this verdict is right for this model.
        images, forwards: what its first trace cost, proof included: images through the model, and processor time as a multiple of
            one pass.
        is_chain: whether the model is one attention over its patches per block, so that it could be right and proven.
    """

    name: str
    module: str
    layers: int
    blocks: int
    verdict: str
    status: str
    sentence: str
    fault: str = ""
    layout: str = "own"
    as_expected: bool = True
    is_chain: bool = False
    seconds: float = 0.0
    images: int = 0
    forwards: float = 0.0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="part of the names to check")
    parser.add_argument("--json", type=Path, help="also write the rows to this file")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    rows = []
    for case in all_cases():
        if arguments.only.lower() in case.name.lower():
            rows.append(judged(case))
            print(line(rows[-1]), flush=True)
    print(summary(rows))
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))
    return any(row.verdict in (WRONG, ERROR) or not row.as_expected for row in rows)


def all_cases() -> Iterator[Case]:
    yield from from_timm.cases()
    yield from from_transformers.cases()
    yield from stand_ins.cases()
    yield from tricks.cases()
    yield from head_tricks.cases()


def line(row: Row) -> str:
    mark = " " if row.as_expected else "!"
    said = " | ".join(part for part in (row.fault, row.sentence) if part)
    seen = f"{row.layers:>2} of {row.blocks:<2} {row.layout:8}"
    return f"{mark} {row.verdict:17} {seen} {row.name} [{row.module}] {row.status}: {said}"


def summary(rows: list[Row]) -> str:
    counts = Counter(row.verdict for row in rows)
    classes = len({row.module for row in rows})
    words = ", ".join(
        f"{counts[verdict]} {verdict}" for verdict in (RIGHT, TOLD, REFUSED, WRONG, WRONG_TOLD, ERROR)
    )
    unexpected = [row.name for row in rows if not row.as_expected]
    seconds = sum(row.seconds for row in rows)
    first = f"{len(rows)} models of {classes} classes in {seconds:.0f} s: {words}"
    first += f"\n{price(rows)}"
    missed = [row.name for row in rows if row.is_chain and row.verdict != RIGHT]
    first += f"\none attention per block, but not proven ({len(missed)}): {', '.join(missed) or 'none'}"
    return f"\n{first}\nnot as expected ({len(unexpected)}): {', '.join(unexpected) or 'none'}"


def price(rows: list[Row]) -> str:
    """What first traces cost that were not refused."""
    traced = [row for row in rows if row.images]
    if not traced:
        return "no first trace"
    images, forwards = np.array([row.images for row in traced]), np.array([row.forwards for row in traced])
    return (
        f"price of a first trace with its proof, once per module and layout: {np.median(images):.0f} images through the model "
        f"({images.min()} to {images.max()}), {np.median(forwards):.0f} passes of processor time (9 of 10: up to "
        f"{np.quantile(forwards, 0.9):.0f})"
    )


def judged(case: Case) -> Row:
    """The row of one model: the worst of what its traces show, else the best."""
    begin = time.perf_counter()
    model, pixels = case.model(), case.pixels()
    truth = replace(case.oracle(copy.deepcopy(model), pixels), tolerance=TOLERANCES[case.dtype])
    with torch.no_grad():
        model(pixels)  # what a first pass sets up is no change that a trace makes
    rows = [
        attempt(case, model, pixels, truth, layout, how) for how, layout in attempts(model, pixels, truth)
    ]
    row = min(
        reversed(rows), key=lambda row: _SEVERITY.index(row.verdict)
    )  # of equal ones the last, which had a layout
    values = asdict(row) | {
        "as_expected": row.verdict in case.ends,
        "is_chain": truth.flow == "chain" and bool(truth.places) and len(truth.calls) == truth.num_blocks,
        "seconds": time.perf_counter() - begin,
        "images": max(row.images for row in rows),  # later attempts with the same layout know the finding
        "forwards": max(row.forwards for row in rows),
    }
    return Row(**values)


def attempts(model: nn.Module, pixels: Tensor, truth: Truth) -> Iterator[tuple[str, TokenLayout | None]]:
    """Layouts to try: what the module tells, and where that is not enough, what the message advises and the true one."""
    yield "own", None
    try:
        trace(model, pixels)
    except (CaptureError, ParameterError) as error:
        advised = _ADVICE.search(str(error))
        if advised:
            names = tuple(re.findall(r"[\"']([^\"']+)[\"']", advised[3]))
            yield "advised", TokenLayout(grid=(int(advised[1]), int(advised[2])), prefix=names)
        count = _COUNT.search(str(error))
        if count:
            yield "naive", naive_layout(truth, int(count[1]))
        true = true_layout(truth)
        if true is not None:
            yield "given", true
    except Exception:  # the first attempt shows it
        return


def naive_layout(truth: Truth, tokens: int) -> TokenLayout:
    """What a user might pass who counts tokens: patches row by row, after a class token and registers where some are left over."""
    grid = truth.grid
    if grid[0] * grid[1] > tokens or grid == (1, 1):
        rows = max(n for n in range(1, int(tokens**0.5) + 1) if tokens % n == 0)
        grid = (rows, tokens // rows)
    names = [f"register {i}" for i in range(tokens - grid[0] * grid[1])]
    if truth.class_token is not None:
        names[:1] = ["class"] * len(names[:1])
    return TokenLayout(grid=grid, prefix=tuple(names))


def true_layout(truth: Truth) -> TokenLayout | None:
    """The layout that says what is true, where one can: patches in order, other tokens around them."""
    places = truth.place(0)
    if places is None or not truth.calls or len(truth.places) > 1:
        return None
    first, tokens = int(places[0]), truth.calls[0].shape[-1]
    if not torch.equal(places, torch.arange(len(places)) + first):
        return None
    names = ["class" if i == truth.class_token else f"register {i}" for i in range(tokens)]
    after = tuple(names[first + len(places) :])
    if not after:
        return TokenLayout(grid=truth.grid, prefix=tuple(names[:first]))
    if "suffix" not in {part.name for part in fields(TokenLayout)}:
        return None
    choices: dict[str, Any] = {"suffix": after}
    return TokenLayout(grid=truth.grid, prefix=tuple(names[:first]), **choices)


def attempt(
    case: Case, model: nn.Module, pixels: Tensor, truth: Truth, layout: TokenLayout | None, how: str
) -> Row:
    """One trace against the truth."""
    shown = (case.name, type(model).__name__)
    try:
        before = state_of(model)
        with counting(model) as images:
            begin = time.process_time()
            recorded = trace(model, pixels, layout=layout)
            recorded.wait()
            spent = time.process_time() - begin
        forwards = spent / seconds_of_a_pass(copy.deepcopy(model), pixels)
        fault = fault_of(recorded, truth) or fault_of_state(before, state_of(model))
    except (CaptureError, ParameterError) as error:
        return Row(*shown, 0, truth.num_blocks, REFUSED, type(error).__name__, str(error), layout=how)
    except Exception as error:  # any error belongs in the table
        return Row(*shown, 0, truth.num_blocks, ERROR, type(error).__name__, str(error)[:300], layout=how)
    proven = recorded.proof_status == "proven"
    verdict = (WRONG if proven else WRONG_TOLD) if fault else (RIGHT if proven else TOLD)
    said = said_by(recorded)
    return Row(
        *shown, recorded.num_layers, truth.num_blocks, verdict, recorded.proof_status, said, fault, how,
        images=sum(images), forwards=forwards,
    )  # fmt: skip


@contextmanager
def counting(model: nn.Module) -> Iterator[list[int]]:
    """How many images each pass of a model is given meanwhile."""
    images: list[int] = []
    handle = model.register_forward_pre_hook(lambda _, given: images.append(len(given[0]) if given else 1))
    try:
        yield images
    finally:
        handle.remove()


def seconds_of_a_pass(model: nn.Module, pixels: Tensor) -> float:
    """Processor time of one pass, the least of three."""
    spent = []
    for _ in range(3):
        begin = time.process_time()
        with torch.no_grad():
            model(pixels)
        spent.append(time.process_time() - begin)
    return max(min(spent), 1e-6)


def state_of(model: nn.Module) -> dict[str, Tensor]:
    """All parameters and buffers."""
    return {
        name: tensor.detach().clone() for name, tensor in [*model.named_parameters(), *model.named_buffers()]
    }


def said_by(recorded: Trace) -> str:
    """What the badge says beside the status."""
    report = getattr(recorded, "proof_report", None)
    sentence = "" if report is None else report.sentence
    return " ".join([*([sentence] if sentence else []), *recorded.problems[:1]])


def fault_of(recorded: Trace, truth: Truth) -> str:
    """What is wrong with a trace; "" where nothing is."""
    if recorded.proof_status == "proven":
        fault = fault_of_structure(recorded, truth) or fault_of_maps(recorded, truth, in_order=True)
    else:
        fault = fault_of_maps(recorded, truth, in_order=False)
    return fault or fault_of_rollout(recorded, truth)


def fault_of_structure(recorded: Trace, truth: Truth) -> str:
    """What of "one attention per block and nothing else" does not hold."""
    if recorded.num_layers != truth.num_blocks:
        return f"{recorded.num_layers} layers shown of {truth.num_blocks} blocks"
    if truth.flow != "chain":
        return (
            "blocks are not one attention each"
            if truth.flow == "other"
            else "attention is not all that counts"
        )
    return ""


def fault_of_maps(recorded: Trace, truth: Truth, *, in_order: bool) -> str:
    """The first layer whose maps are not those of its block; not in order, a layer may be any later call."""
    call = -1
    for layer in range(recorded.num_layers):
        faults = []
        for call in range(call + 1, len(truth.calls)):  # noqa: B020 - goes on where the last layer was found
            faults.append(fault_of_map(recorded, layer, truth, call))
            if in_order or not faults[-1]:
                break
        if not faults or faults[-1]:
            return f"layer {layer}: {faults[0] if faults else 'shows no attention over the patches'}"
    return ""


def fault_of_map(recorded: Trace, layer: int, truth: Truth, call: int) -> str:
    """Where a layer's maps of the class token and of all patches differ from a call's."""
    places, layout, attention = truth.place(call), recorded.layout, truth.calls[call]
    if places is None:
        return "tokens are not patches in order"
    if layout.grid != truth.grid:
        return f"grid {layout.grid} instead of {truth.grid}"
    if ("class" in layout.prefix) and layout.token("class") != truth.class_token:
        return f"token {layout.token('class')} is not the class token"
    queries = [layout.token((row, col)) for row in range(layout.grid[0]) for col in range(layout.grid[1])]
    true_queries = places.tolist()
    if "class" in layout.prefix:
        queries, true_queries = [layout.token("class"), *queries], [truth.class_token, *true_queries]
    shown = layout.patches(recorded.attention(layer, queries=queries)).flatten(2)
    true = attention[:, true_queries][:, :, places]
    if shown.shape != true.shape:
        return f"{list(shown.shape)} heads, queries and patches instead of {list(true.shape)}"
    off = float((shown - true).abs().max() / true.abs().max())
    return (
        ""
        if off <= truth.tolerance
        else f"maps differ by {off:.1e} and correlate {correlation(shown, true):.2f}"
    )


def fault_of_state(before: dict[str, Tensor], after: dict[str, Tensor]) -> str:
    """What of the module is not as one pass leaves it; a count of passes has one more."""
    for name, old in before.items():
        expected = old + 1 if name == "passes" else old
        if old.shape != after[name].shape or not torch.equal(expected, after[name]):
            return f"{name} of the module changed"
    return ""


def correlation(shown: Tensor, true: Tensor) -> float:
    """Of all maps of a layer, on average."""
    a, b = (each.double() - each.double().mean(-1, keepdim=True) for each in (shown, true))
    return float(((a * b).sum(-1) / (a.norm(dim=-1) * b.norm(dim=-1)).clamp(min=1e-12)).mean())


def fault_of_rollout(recorded: Trace, truth: Truth) -> str:
    """How rollout differs from the chain of the true matrices; a trace may refuse it."""
    query = "class" if "class" in recorded.layout.prefix else (0, 0)
    try:
        shown = rollout(recorded, query=query).values
    except (CaptureError, ParameterError):
        return ""
    if truth.flow == "other":
        return "rollout is given, though blocks are not one attention each"
    if truth.flow == "altered":
        return ""
    if recorded.num_layers != len(truth.calls):
        return f"rollout is given through {recorded.num_layers} of {len(truth.calls)} blocks"
    true = true_rollout(truth, query)
    off = float(np.abs(shown - true).max() / np.abs(true).max())
    return "" if off <= truth.tolerance else f"rollout differs by {off:.1e}"


def true_rollout(truth: Truth, query: str | tuple[int, int]) -> NDArray[np.float64]:
    """e_query A'_L ... A'_1 with A' half the mean over heads and half the identity, rows normalised: [rows, cols]."""
    places = truth.place(0)
    assert places is not None
    row = np.zeros(truth.calls[0].shape[-1])
    row[truth.class_token if query == "class" else int(places[0])] = 1
    for call in reversed(truth.calls):
        mixed = (call.double().mean(0).numpy() + np.eye(len(row))) / 2
        row = row @ (mixed / mixed.sum(-1, keepdims=True))
    return row[places.numpy()].reshape(truth.grid)


if __name__ == "__main__":
    sys.exit(main())
