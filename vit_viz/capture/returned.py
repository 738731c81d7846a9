"""The scores in what a model returns: a tensor, or tuples, lists, dictionaries, dataclasses of tensors."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from vit_viz.errors import ParameterError, VitVizError
from vit_viz.lazy import Tensor, torch

_FEATURES = ("hidden", "embed", "pool", "feature", "attention")
"""Parts of names of what a model returns beside its scores, though it may have their shape: `pooler_output`, `image_embeds`."""
_MOST_NUMBERS = 4096  # of each tensor of an answer that is looked at


@dataclass(frozen=True)
class ScoresPlace:
    """Where the scores stand in what a model returns.

    Args:
        exists: whether there are any, [images, outputs].
        path: as one would write it after the returned value, "[0]" or "['out']"; "" for that value itself, or its `logits`.
        others: of tensors that could be scores as well, likewise.
        count: how many outputs an image has.
    """

    exists: bool
    path: str = ""
    others: tuple[str, ...] = ()
    count: int = 0

    def is_as(self, other: ScoresPlace) -> bool:
        """Whether scores of two passes are the same numbers."""
        return (self.exists, self.path, self.count) == (other.exists, other.path, other.count)

    @property
    def words(self) -> str:
        """Which of several things it is; "" where nothing had to be chosen."""
        beside = f", the first of {len(self.others) + 1} that could be scores" if self.others else ""
        return f"{self.path} of what the model returns{beside}" if self.path else ""


def scores_of(output: Any, images: int) -> Tensor | None:
    """The scores in what a model returned for so many images; None where nothing can be taken for them.

    That is the returned tensor, or `logits`; else the first tensor [images, outputs], but for those whose name says that they are
    features; else the first [images]; else the only tensor, whose shape may be another. One number per image is one output,
    [images, 1]. Where the only thing that is returned has lost the axis of one image, it is given it back.
    """
    chosen = _chosen(output, images)
    if chosen is None:
        return None
    scores, path, _ = chosen
    if scores.ndim > 1 or not scores.is_floating_point():
        return scores
    is_loss = scores.ndim == 0 and path  # it may be one
    if scores.numel() == images and not is_loss:
        return scores.reshape(images, 1)
    return scores.reshape(1, -1) if images == 1 and isinstance(output, Tensor) else scores


def place_of_scores(output: Any, images: int) -> ScoresPlace:
    """Where `scores_of` finds them."""
    chosen, scores = _chosen(output, images), scores_of(output, images)
    if chosen is None or scores is None or scores.ndim != 2 or len(scores) != images:
        return ScoresPlace(exists=False)
    return ScoresPlace(True, *chosen[1:], count=scores.shape[1])


def answer_in(output: Any, images: int) -> Tensor | None:
    """What a model answers for so many images, [images, numbers]; None where that is not known of what it returns.

    That is its scores, else all that it returns under names that are not those of features, such as a map or boxes; of a large
    tensor some numbers. Of several tensors without names, which may be those of several layers, nobody knows which is the answer.
    """
    if place_of_scores(output, images).exists:
        scores = scores_of(output, images)
        assert scores is not None
        return scores.float()
    parts = [(path, part) for path, part in _numbers_in(output) if not _is_feature(path)]
    is_named = len(parts) == 1 or not any(re.search(r"\[\d", path) for path, _ in parts)
    if not parts or not is_named or any(part.ndim < 2 or len(part) != images for _, part in parts):
        return None
    apart = [part.flatten(1) for _, part in parts]
    return torch.cat([part[:, :: -(-part.shape[1] // _MOST_NUMBERS)].float() for part in apart], dim=1)


def _is_feature(path: str) -> bool:
    return any(word in path.lower() for word in _FEATURES)


def _chosen(output: Any, images: int) -> tuple[Tensor, str, tuple[str, ...]] | None:
    """The scores, their path, and those of others that could be them."""
    if isinstance(output, Tensor):
        return output, "", ()
    logits = output.get("logits") if isinstance(output, Mapping) else getattr(output, "logits", None)
    if isinstance(logits, Tensor):
        return logits, "", ()
    parts = _numbers_in(output)
    per_image = [
        (path, part)
        for path, part in parts
        if part.ndim in (1, 2) and len(part) == images and not _is_feature(path)
    ]
    possible = [one for one in per_image if one[1].ndim == 2] or per_image or parts * (len(parts) == 1)
    if not possible:
        return None
    (path, first), *others = possible
    return first, path, tuple(path for path, _ in others)


def _tensors_in(output: Any, path: str = "") -> Iterator[tuple[str, Tensor]]:
    """Every tensor, in the order in which it stands there, and its path."""
    if isinstance(output, Tensor):
        yield path, output
    elif isinstance(output, Mapping):
        for name, part in output.items():
            yield from _tensors_in(part, f"{path}[{name!r}]")
    elif isinstance(output, tuple | list):
        names = getattr(output, "_fields", None)
        for place, part in enumerate(output):
            yield from _tensors_in(part, f"{path}[{place}]" if names is None else f"{path}.{names[place]}")
    elif is_dataclass(output):
        for one in fields(output):
            yield from _tensors_in(getattr(output, one.name), f"{path}.{one.name}")


def _numbers_in(output: Any) -> list[tuple[str, Tensor]]:
    return [(path, part) for path, part in _tensors_in(output) if part.is_floating_point()]


def no_scores(name: str, output: Any) -> ParameterError:
    """The error that says what a model returns in place of scores, and how a number is made of that."""
    parts = _numbers_in(output)
    if not parts:
        return ParameterError(f"{name} returns no tensor of numbers, so there is nothing to explain.")
    listed = ", ".join(f"output{path} {list(part.shape)}" for path, part in parts[:4])
    path, first = next((one for one in parts if one[1].ndim == 2), parts[0])
    index = f"[{', '.join('0' * first.ndim)}]" if first.ndim else ""
    return ParameterError(
        f"{name} returns no scores [images, classes], but {listed}{', ...' if len(parts) > 4 else ''}: pass as target= a function "
        f"that makes one number of it, such as target=lambda output: output{path}{index}."
    )


def is_per_image(output: Any, images: int) -> bool:
    """Whether any of what a model returned belongs to one image of several each."""
    return images == 1 or any(part.ndim and len(part) == images for _, part in _tensors_in(output))


def image_of(output: Any, image: int, images: int) -> Any:
    """What a model returned for one of several images, as it returns it for one."""
    if isinstance(output, Tensor):
        return output[image : image + 1] if output.ndim and len(output) == images else output
    if isinstance(output, Mapping):
        one: Any = copy.copy(output)
        for name, part in output.items():
            one[name] = image_of(part, image, images)
        return one
    if isinstance(output, tuple | list):
        parts = [image_of(part, image, images) for part in output]
        return type(output)(*parts) if hasattr(output, "_fields") else type(output)(parts)
    if is_dataclass(output) and not isinstance(output, type):
        values = {one.name: image_of(getattr(output, one.name), image, images) for one in fields(output)}
        return replace(output, **values)
    return output


def is_of_all(function: Callable[[Any], Any], output: Any, images: int) -> bool:
    """Whether a function of the user is made for all that the model returns: it stops at the scores in it, and not at the whole."""
    scores = scores_of(output, images)
    if isinstance(output, Tensor) or scores is None:
        return False
    for is_all, answer in enumerate((scores[0], image_of(output, 0, images))):
        try:
            number_from(function, answer)
        except ParameterError:
            continue
        return bool(is_all)
    return False


def number_from(function: Callable[[Any], Any], output: Any) -> Tensor:
    """The number, without axes, that a function of the user makes of scores [outputs], or of what the model returns."""
    try:
        number = function(output)
    except VitVizError:  # of a target of ours
        raise
    except Exception as error:
        what = f"scores {list(output.shape)}" if isinstance(output, Tensor) else "what the model returns"
        reason = " ".join(str(error).split())[:200].rstrip(".").replace(". ", "; ")
        raise ParameterError(
            f"The function that was passed as the target stops at {what} ({type(error).__name__}{f': {reason}' if reason else ''})."
        ) from error
    if not isinstance(number, Tensor) or number.numel() != 1:
        raise ParameterError("A target is a class index or a function that returns one number as a tensor.")
    return number.reshape(())
