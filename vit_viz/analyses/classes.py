"""The model's answer in words: its most probable classes, or the values that it returns."""

from __future__ import annotations

from typing import Annotated

from vit_viz.analyses.options import Option
from vit_viz.analyses.spec import Job, Place, asks
from vit_viz.capture import Trace
from vit_viz.checkpoints import Model
from vit_viz.errors import ParameterError
from vit_viz.outputs import UNITS, noun_of, output_kind, output_name, shown
from vit_viz.results import Ranking


def answers_classes(loaded: Model, recorded: Trace) -> bool:
    """Whether what a model said in a recorded pass are scores of classes or values; one number is no embedding."""
    logits = recorded.logits
    return logits is not None and (loaded.has_classes or logits.numel() == 1)


def top_classes(loaded: Model, recorded: Trace, *, count: int = 5) -> Ranking:
    """The most probable classes with their probability; of a model whose outputs are values, the largest of these."""
    if recorded.logits is None or not answers_classes(loaded, recorded):
        raise ParameterError(f"{loaded.name} has no classes, so its output has no words.")
    answers = shown(recorded.logits.float(), loaded.output)
    kind = output_kind(loaded.output, answers.numel())
    scores, indices = answers.topk(min(count, answers.numel()))
    best = tuple(int(index) for index in indices)
    names = tuple(output_name(index, loaded.labels, noun_of(kind)) for index in best)
    edits = dict(recorded.provenance.parameters).get("edits")
    provenance = loaded.provenance.with_parameters(edits=edits) if edits else loaded.provenance
    method = "outputs" if kind == "value" else "top classes"
    return Ranking(names, scores.cpu().numpy(), UNITS[kind], method, provenance, best)


def _classes(
    job: Job,
    *,
    count: Annotated[
        int, Option("count", "How many classes or values are listed, the first of all.", low=1, high=1000)
    ] = 5,
) -> Ranking:
    return top_classes(job.loaded, job.trace, count=count)


CLASSES = asks(
    _classes,
    label="Answer",
    also_called="prediction, confidence, top-5, probabilities, logits, softmax, output, classification",
    shows="the model's first classes or values.",
    hides="how far its probabilities can be believed: they are seldom calibrated.",
    formula=r"$\mathrm{softmax}(z)$; for classes that may hold beside others $\mathrm{sigmoid}(z)$; values as they are",
    source="Dosovitskiy et al. 2021, arXiv:2010.11929",
    reads="trace",
    place=Place("look", options={"count": ""}),
)
