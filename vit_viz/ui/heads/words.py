"""The measures of heads in words: what each is called, and one sentence on what it means."""

from __future__ import annotations

from dataclasses import dataclass

from vit_viz.views.tab_options import HeadMeasure


@dataclass(frozen=True)
class MeasureWords:
    """A measure as people read it.

    Args:
        group: of measures that stand together in the chooser.
        label: its name.
        sentence: what it means, and what low and high values say.
    """

    group: str
    label: str
    sentence: str


_REACH, _WHERE, _BESIDE = "How far and how widely", "On what it falls", "On the patch beside"
_WHY, _DOES = "By what it is decided", "What it does"

MEASURES: dict[HeadMeasure, MeasureWords] = {
    "distance": MeasureWords(
        _REACH,
        "mean attention distance",
        "How far patches look, in pixels of the model's input: low is local, high is all over the photo.",
    ),
    "entropy": MeasureWords(
        _REACH,
        "entropy",
        "How widely tokens look: 0 where each looks at a single token, 1 where each looks at all alike.",
    ),
    "prefix_mass": MeasureWords(
        _WHERE,
        "attention on prefix tokens",
        "Share of the patches' attention that falls on the class token and the registers.",
    ),
    "class_mass": MeasureWords(
        _WHERE,
        "attention on the class token",
        "Share of the patches' attention that falls on the class token; 0 in a model without one.",
    ),
    "suffix_mass": MeasureWords(
        _WHERE,
        "attention on tokens after the patches",
        "Share of the patches' attention that falls on tokens after the patches, such as detection tokens; often there are none.",
    ),
    "diagonal_mass": MeasureWords(
        _WHERE,
        "attention on the patch itself",
        "Share of the patches' attention that stays on the patch that looks.",
    ),
    "sink_share": MeasureWords(
        _WHERE,
        "attention on outlier tokens",
        "Share of all attention that goes to tokens whose norm is more than 5 times the median, called sinks.",
    ),
    "left_neighbour": MeasureWords(
        _BESIDE,
        "left neighbour",
        "Share of the patches' attention that falls on the patch to the left.",
    ),
    "right_neighbour": MeasureWords(
        _BESIDE,
        "right neighbour",
        "Share of the patches' attention that falls on the patch to the right.",
    ),
    "upper_neighbour": MeasureWords(
        _BESIDE,
        "upper neighbour",
        "Share of the patches' attention that falls on the patch above.",
    ),
    "lower_neighbour": MeasureWords(
        _BESIDE,
        "lower neighbour",
        "Share of the patches' attention that falls on the patch below.",
    ),
    "strongest_offset": MeasureWords(
        _BESIDE,
        "strongest offset",
        "Share of the patches' attention that falls on the patch at one step, such as two to the right: the step that gets most.",
    ),
    "positional_share": MeasureWords(
        _WHY,
        "share explained by position",
        "How much of where patches look follows from the step between two patches alone; at 1 the photo changes nothing.",
    ),
    "content_correlation": MeasureWords(
        _WHY,
        "likeness of what is looked at",
        "Whether patches look at patches whose tokens are like their own, wherever these are: above 0 likeness attracts, below 0 "
        "it repels.",
    ),
    "norm": MeasureWords(
        _DOES,
        "size of what it moves",
        "Attention weight times the size of the value that it carries, mean over all tokens: how much the head writes.",
    ),
    "rollout_share": MeasureWords(
        _DOES,
        "share of the rollout",
        "Of what the output draws from the patches through this layer, the part that comes through this head; a layer sums to 1.",
    ),
    "estimate": MeasureWords(
        _DOES,
        "gradient importance",
        "What switching the head off would change for the chosen class, estimated by one gradient; below 0 (blue) the head helps.",
    ),
    "effect": MeasureWords(
        _DOES,
        "causal effect",
        "What switching the head off does change for the chosen class; below 0 (blue) the head helps.",
    ),
}
"""In the order of the chooser."""
