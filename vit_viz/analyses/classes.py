"""The model's answer in words: its most probable classes."""

from __future__ import annotations

from vit_viz.analyses.options import NoOptions
from vit_viz.analyses.spec import Place, Question, Words
from vit_viz.capture import Trace
from vit_viz.checkpoints import Model
from vit_viz.errors import ParameterError
from vit_viz.lazy import torch
from vit_viz.results import Ranking


def answers_classes(loaded: Model, recorded: Trace) -> bool:
    """Whether what a model said in a recorded pass are scores of classes."""
    return recorded.logits is not None and loaded.has_classes


def top_classes(loaded: Model, recorded: Trace, *, count: int = 5) -> Ranking:
    """The most probable classes with their probability.

    Raises:
        ParameterError: the model has no classes.
    """
    if recorded.logits is None or not loaded.has_classes:
        raise ParameterError(f"{loaded.name} has no classes: what it returns is no answer in words.")
    shares = torch.softmax(recorded.logits.float(), dim=-1)
    scores, indices = shares.topk(min(count, shares.numel()))
    best = tuple(int(index) for index in indices)
    names = tuple(loaded.labels.name(index) if loaded.labels else f"class {index}" for index in best)
    edits = dict(recorded.provenance.parameters).get("edits")
    provenance = loaded.provenance.with_parameters(edits=edits) if edits else loaded.provenance
    return Ranking(names, scores.cpu().numpy(), "probability", "top classes", provenance, best)


CLASSES = Question(
    name="classes",
    words=Words(
        label="Answer",
        shows="the model's five most probable classes.",
        hides="how far its probabilities can be believed: they are seldom calibrated.",
        formula=r"$\mathrm{softmax}(z)$",
        source="Dosovitskiy et al. 2021, arXiv:2010.11929",
    ),
    options=NoOptions,
    run=lambda job, _options: top_classes(job.loaded, job.trace),
    reads="trace",
    place=Place("look"),
)
