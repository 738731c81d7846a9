"""Where in a file the Vision Transformer is: what training and distribution put around its parameters is left out.

A file may hold dictionaries within dictionaries ({"epoch": 3, "state_dict": ...}), and in them names behind those of the modules
around the model ("model.module.backbone.blocks.0..."). The model is where its patch embedding is, whatever leads there. Of several
models one is read: a teacher before its student, the weights themselves before their running average, then the dictionary that is
usual, then the first. What was chosen and what was left out is told.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from vit_viz.lazy import Tensor

MAX_ENTRIES = 1_000_000
"""Entries of a file's dictionaries that are looked at: one that stands in another many times counts as many."""

_DEEPEST = 6
_USUAL = ("state_dict", "model", "teacher", "model_state_dict", "module")
_AVERAGES = frozenset({"ema", "shadow", "swa", "averaged"})

_WRAPPERS = re.compile(
    r"(?:^|(?<=\.))(?:_orig_mod|_fsdp_wrapped_module|_checkpoint_wrapped_module|_forward_module)\."
)
"""What torch.compile, FSDP, activation checkpoints and Lightning Fabric write into names, at any depth."""

_EMBEDDING = re.compile(r"""
    (?P<outer>(?:.*?\.)??)
    (?:(?P<inner>(?:(?:vit|deit|ijepa|dpt|dinov2|dinov2_with_registers|beit|data2vec_vision|vision_model
    |backbone|base_model|model)\.)?)embeddings\.patch_embeddings?(?:\.projection)?|patch_embed\.proj|conv_proj
    |patch_generator\.embedder|visual\.conv1)\.weight
""", re.VERBOSE)  # fmt: skip
"""The patch embedding, behind a name that belongs to the model in transformers and behind those that lead to it."""

_ANYBODYS = ("backbone.", "base_model.", "model.")  # names of transformers that others use, too
_TRANSFORMERS_PARTS = re.compile(r"((cls_|distillation_)?classifier|neck|(auxiliary_)?head|decoder)\.")
_POOLER = re.compile(r"pooler\.")  # of a bare model of transformers, in a module of somebody's own
_WITHIN_RADIO = re.compile(
    r"(radio_model\.)?(model\.)?(inner\.)?$"
)  # beside it stands what normalises pixels
_DINO_HEAD = re.compile(r"head\.(mlp|last_layer)\.")
_CLASSIFIER = re.compile(r"((?:\w*head|fc|linear|\w*classifier)\.)(?:weight|bias)")
_OWN_CLASSIFIERS = ("head.weight", "classifier.weight", "heads.head.weight")


@dataclass(frozen=True)
class Unwrapped:
    """The parameters of one model by their own names.

    Args:
        place: what leads to them in the file; "" where nothing does.
        left_out: what else stands beside them there, by the beginnings of its names.
        models_left_out: other models of the file.
        assumed: what neither names nor shapes say.
        text: the text tower beside a model of timm's names, by the names that it has there; other families have it in `state`.
    """

    state: dict[str, Tensor]
    place: str = ""
    left_out: tuple[str, ...] = ()
    models_left_out: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    text: dict[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class _ModelPlace:
    """Of a model: its dictionary, by the keys that lead there, and what its names begin with."""

    keys: tuple[str, ...]
    prefix: str
    embedding: str = field(compare=False)

    def __str__(self) -> str:
        return ".".join((*self.keys, *self.prefix.split(".")[:-1]))


def unwrapped(content: Any) -> Unwrapped | None:
    """The state dict of the one Vision Transformer that a file is read for; None where no dictionary in it has tensors.

    A file without a patch embedding gives all of its largest dictionary, so that a family may say what is missing.

    Args:
        content: of the file: dictionaries of tensors, within others or not, and anything else beside them.
    """
    dictionaries = _dictionaries(content)
    places = list(dict.fromkeys(one for keys, state in dictionaries.items() for one in _places(keys, state)))
    if not places:
        largest = max(dictionaries.values(), key=len, default=None)
        return None if largest is None else Unwrapped(largest)
    place = min(places, key=_rank)
    others = [one for one in places if one != place]
    whole = dictionaries[place.keys]
    there = tuple(one.prefix for one in others if one.keys == place.keys)
    inside = tuple(prefix for prefix in there if prefix.startswith(place.prefix))
    text = _text_beside(place, whole)
    own = {name for name in whole if name.startswith(place.prefix) and not name.startswith(inside)}
    own -= text.keys()
    state = {name.removeprefix(place.prefix): tensor for name, tensor in whole.items() if name in own}
    head = {} if others else _classifier_beside(place, dictionaries, state)
    used = {
        *own,
        *text,
        *(name for name, tensor in whole.items() if any(tensor is one for one in head.values())),
    }
    beside = (name for name in whole if name not in used and not name.startswith(there))
    return Unwrapped(
        state=state | head,
        place=str(place),
        left_out=tuple(dict.fromkeys(_beginning(name, place.prefix) for name in beside)),
        models_left_out=tuple(str(one) or "the model around it" for one in others),
        assumed=("the classifier beside the model reads what the model gives out",) if head else (),
        text={name: whole[full] for full, name in text.items()},
    )


def listed(names: Iterable[str], most: int = 6) -> str:
    """Names in words, the first few of many."""
    names = list(names)
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _beginning(name: str, prefix: str) -> str:
    """A name up to the first part in which it differs from a prefix."""
    parts = name.split(".")
    pairs = enumerate(zip(parts, prefix.split("."), strict=False), 1)
    return ".".join(parts[: next((count for count, (one, other) in pairs if one != other), len(parts))])


def _dictionaries(content: Any) -> dict[tuple[str, ...], dict[str, Tensor]]:
    """Every dictionary of the file that holds tensors, by the keys that lead there; nearer ones first."""
    tensors_by_keys: dict[tuple[str, ...], dict[str, Tensor]] = {}
    waiting: deque[tuple[tuple[str, ...], Any]] = deque(
        [((), content)] if isinstance(content, Mapping) else []
    )
    entries = 0
    while waiting:
        keys, one = waiting.popleft()
        entries += len(one)
        if entries > MAX_ENTRIES:
            raise ValueError(f"more than {MAX_ENTRIES} entries")
        tensors = {str(name): value.detach() for name, value in one.items() if isinstance(value, Tensor)}
        if tensors:
            bare = {_WRAPPERS.sub("", name): tensor for name, tensor in tensors.items()}
            tensors_by_keys[keys] = bare if len(bare) == len(tensors) else tensors
        if len(keys) < _DEEPEST:
            waiting.extend(
                ((*keys, str(name)), value) for name, value in one.items() if isinstance(value, Mapping)
            )
    return tensors_by_keys


def _places(keys: tuple[str, ...], state: Mapping[str, Tensor]) -> Iterable[_ModelPlace]:
    for name in state:
        if (match := _EMBEDDING.fullmatch(name)) is None:
            continue
        outer, inner = match["outer"], match["inner"] or ""
        is_transformers = _has(state, outer, _TRANSFORMERS_PARTS) and not _has(state, outer + inner, _POOLER)
        if inner in _ANYBODYS and not is_transformers:
            outer, inner = outer + inner, ""
        if name.endswith("patch_generator.embedder.weight"):
            outer = _WITHIN_RADIO.sub("", outer, count=1)
        around = outer.removesuffix("backbone.")
        if around != outer and not inner and _has(state, around, _DINO_HEAD):
            outer = (
                around  # the authors of DINO name it so beside their projection head, which tells the family
            )
        yield _ModelPlace(keys, outer, name.removeprefix(outer))


def _has(state: Mapping[str, Tensor], prefix: str, part: re.Pattern[str]) -> bool:
    return any(name.startswith(prefix) and part.match(name, len(prefix)) for name in state)


def _rank(place: _ModelPlace) -> tuple[bool, bool, int]:
    words = set(re.split(r"[._]", str(place).lower()))
    usual = place.keys[0] if place.keys else ""
    return (
        "student" in words,
        not words.isdisjoint(_AVERAGES),
        _USUAL.index(usual) if usual in _USUAL else len(_USUAL),
    )


def _text_beside(place: _ModelPlace, whole: Iterable[str]) -> dict[str, str]:
    """The names of a text tower beside a model of timm's names ("visual.trunk.patch_embed..."), to those without a prefix."""
    around = place.prefix.removesuffix("trunk.").removesuffix("visual.")
    beside = (f"{around}text.", f"{around}logit_")
    names = {name: name.removeprefix(around) for name in whole if name.startswith(beside)}
    is_timms = place.embedding.startswith("patch_embed.")
    return names if is_timms and any(name.startswith("text.") for name in names.values()) else {}


def _classifier_beside(
    place: _ModelPlace,
    dictionaries: Mapping[tuple[str, ...], Mapping[str, Tensor]],
    state: Mapping[str, Tensor],
) -> dict[str, Tensor]:
    """A linear classifier that stands beside a model without one ("backbone.blocks...", "fc.weight"), as the model's own."""
    if any(name in state for name in _OWN_CLASSIFIERS) or "patch_generator." in place.embedding:
        return {}
    if place.prefix:
        around = place.prefix[: place.prefix.rfind(".", 0, -1) + 1]
        whole = dictionaries[place.keys].items()
        beside = {name.removeprefix(around): tensor for name, tensor in whole if name.startswith(around)}
    else:
        neighbours = [keys for keys in dictionaries if place.keys and keys[:-1] == place.keys[:-1]]
        beside = {
            f"{keys[-1]}.{name}": one for keys in neighbours for name, one in dictionaries[keys].items()
        }
    heads = {match[1] for name in beside if (match := _CLASSIFIER.fullmatch(name))}
    width = state[place.embedding].shape[0]
    fitting = [
        head for head in heads
        if (weight := beside.get(f"{head}weight")) is not None and weight.ndim == 2 and weight.shape[1] == width
    ]  # fmt: skip
    if len(fitting) != 1:
        return {}
    own = {"patch": "head.", "conv_": "heads.head."}.get(place.embedding[:5], "classifier.")
    kinds = ("weight", "bias")
    return {own + kind: beside[fitting[0] + kind] for kind in kinds if fitting[0] + kind in beside}
