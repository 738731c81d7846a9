"""Maps as shares, so that maps of different units can be subtracted: two classes of one method, and one method of all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vit_viz.analyses.explain import Explanations, map_of, maps_of, two_classes
from vit_viz.analyses.options import Options
from vit_viz.analyses.spec import AnyMethod, Job, Part, Place, asks
from vit_viz.analyses.trust import OfMethodOptions
from vit_viz.answer import axes, checked_array, parts_of
from vit_viz.errors import ParameterError
from vit_viz.geometry import place_words
from vit_viz.outputs import noun_of, output_kind, output_name
from vit_viz.results import PatchMap


def shares(patch_map: PatchMap) -> PatchMap:
    """A map whose magnitudes sum to 1."""
    total = float(np.abs(patch_map.values).sum(dtype=np.float64))
    values = patch_map.values / total if total > 0 else patch_map.values
    return replace(
        patch_map,
        values=values,
        unit="share of the map",
        value_range=(-1.0 if patch_map.signed else 0.0, 1.0),
    )


def _less(one: PatchMap, other: NDArray[np.float32], *, unit: str, **changes: Any) -> PatchMap:
    """The shares of a map less other shares: signed, and 0 in sum where neither map has a negative value."""
    lowest = -2.0 if one.signed else -1.0
    return replace(
        one,
        values=shares(one).values - other,
        unit=unit,
        value_range=(lowest, -lowest),
        signed=True,
        class_blind=False,
        prefix={},
        suffix={},
        stability=None,
        **changes,
    )


# --- one class, and not the other


@dataclass(frozen=True, eq=False, repr=False)
class ClassDifference(PatchMap):
    """The shares of the map for one class less those of the map for another.

    Args:
        names: of the two classes.
    """

    names: tuple[str, str] = ("", "")

    def to_words(self) -> str:
        """Where each class has the most that the other has not, and how much of one map would have to move to give the other."""
        one, other = self.names
        apart = float(np.abs(self.values).sum(dtype=np.float64)) / 2
        if apart < 0.0005:
            return "The two maps are alike: less than 0.1% of a map would have to move to turn one into the other."
        places = (self.values.argmax(), self.values.argmin())
        most, least = (place_words(np.unravel_index(int(place), self.values.shape)) for place in places)
        return (
            f"Most for {one} on patch {most}; most for {other} on patch {least}. "
            f"{apart:.1%} of the map lies elsewhere."
        )


def class_difference(one: PatchMap, other: PatchMap, *, names: tuple[str, str]) -> ClassDifference:
    """Where one class has a larger share of its map than another class of its own: the two maps as shares, subtracted.

    This is not the map of the difference of two logits, which asks for both classes in one pass: here each class has its own map.

    Args:
        one: of the class that is asked about.
        other: by the same method, of the class that it is set against.
        names: of the two classes.
    """
    if one.method != other.method or one.grid != other.grid:
        raise ParameterError("Two classes are compared by the maps of one method on one grid.")
    if one.class_blind:
        raise ParameterError(
            f"{one.method[:1].upper()}{one.method[1:]} gives the same map for every class: there is nothing to subtract."
        )
    subtracted = _less(
        one,
        shares(other).values,
        unit="share of the map, subtracted",
        caption=f"{one.method}: share of the map for {names[0]} less share of the map for {names[1]}",
    )
    parts: dict[str, Any] = {**parts_of(subtracted), "names": names}
    return ClassDifference(**parts)


def _class_difference(job: Job, options: OfMethodOptions) -> ClassDifference:
    labels, (first, other) = job.loaded.labels, two_classes(job)
    method, own_options = quick_method(job, options)
    jobs = (replace(job, parameters={**job.parameters, "target": index}) for index in (first, other))
    pair = [map_of(one, method, own_options) for one in jobs]
    noun = noun_of(output_kind(job.image.output, job.outputs.numel()))
    names = tuple(output_name(i, labels, noun) for i in (first, other))
    subtracted = class_difference(*pair, names=(names[0], names[1]))
    return replace(subtracted, provenance=subtracted.provenance.with_parameters(target=f"{first}-{other}"))


def quick_method(job: Job, options: OfMethodOptions) -> tuple[AnyMethod, Options]:
    """The method whose map is meant, with its options; refused where it takes long."""
    method = options.tested
    if method.is_slow:
        raise ParameterError(
            f"{method.words.label} takes long; only maps of methods that share one pass are set against each other."
        )
    return method, method.options.of(job.parameters.get("options", ()))


CLASS_DIFFERENCE = asks(
    _class_difference,
    label="One class, and not the other",
    also_called="contrast, difference of classes, why not, contrastive explanation",
    shows="where a method gives one class a larger share of its map than another.",
    hides="what speaks for both classes alike: where the shares are equal, nothing is drawn.",
    formula=r"$m_a / \sum |m_a| - m_b / \sum |m_b|$",
    source="the shares of two maps of one method",
    options=OfMethodOptions,
    reads="image",
    place=Place("explain", view={"sides": "difference"}),
    cost="pass",
    forwards=8,
    takes_target=True,
    takes_options=True,
)


# --- what only one method says


@dataclass(frozen=True, eq=False, repr=False)
class OwnParts(Explanations):
    """What only each of the quick methods says, on shares.

    Args:
        mean: of the shares of all quick methods, [rows, cols].
    """

    mean: NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, 0), np.float32))

    AXES = axes(mean=("row", "col"))

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", checked_array(self.mean, 2, "The mean of the shares"))
        super().__post_init__()


def own_parts(maps: Mapping[str, PatchMap]) -> OwnParts:
    """Maps on one grid as shares, less the mean of all: what they agree on is gone, so that maps which agree are calm."""
    if len({one.grid for one in maps.values()}) != 1:
        raise ParameterError("Maps are compared on one grid of patches, and there must be one at least.")
    values = np.stack([shares(one).values for one in maps.values()])
    mean: NDArray[np.float32] = values.mean(0, dtype=np.float64).astype(np.float32)
    return OwnParts({name: _own(one, mean, len(maps)) for name, one in maps.items()}, mean=mean)


def _own(one: PatchMap, mean: NDArray[np.float32], count: int) -> PatchMap:
    return _less(
        one,
        mean,
        unit="share of the map, less the mean of all",
        caption=f"{one.method}: what only this method says, its shares less the mean of {count} methods",
    )


def _own_part(job: Job, options: OfMethodOptions) -> PatchMap:
    together: OwnParts = job.answer_of("own parts", target=job.target)
    method, own_options = quick_method(job, options)
    if method.name in together.maps and not own_options.changed() and job.query is None:
        return together.maps[method.name]
    return _own(map_of(job, method, own_options), together.mean, len(together.maps))


OWN_PARTS = Part(
    name="own parts", run=lambda job: own_parts(maps_of(job, job.target).maps), reads="image", forwards=4
)

OWN_PART = asks(
    _own_part,
    label="What only this method says",
    also_called="unique to a method, consensus, outlier method",
    shows="where a method has more of its map than the quick methods in the mean, and where less.",
    hides="whether it is right: a method that stands apart may be the only one that is, or the only one that is not.",
    formula=r"$m / \sum |m| - \frac{1}{n} \sum_k m_k / \sum |m_k|$ over the $n$ quick methods",
    source="the shares of the maps of several methods",
    options=OfMethodOptions,
    reads="image",
    place=Place("explain", view={"ruler": "only"}),
    cost="pass",
    forwards=8,
    takes_target=True,
    takes_options=True,
)
