"""Text towers: found beside a Vision Transformer in its file, and read when the first sentence is asked about.

What a file says of its tower is read with the model, from names and shapes alone, and nothing else of it is kept: loading takes no
longer. The parameters are read again from the file at the first sentence, if it is still the same.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from cachetools import LRUCache

from vit_viz.checkpoints import quick_gelu
from vit_viz.checkpoints.building import build
from vit_viz.checkpoints.families import open_clip, transformers_clip
from vit_viz.checkpoints.families.base import (
    Checkpoint,
    State,
    activation,
    depth_of,
    fuse_qkv,
    mapping_of,
    rename,
)
from vit_viz.checkpoints.local import Source
from vit_viz.checkpoints.source import max_numbers
from vit_viz.checkpoints.tokenizing import CLEANINGS, SentenceTokenizer, find_tokenizer
from vit_viz.checkpoints.unwrapping import listed
from vit_viz.checkpoints.weights import Weights, read_weights
from vit_viz.errors import CheckpointError, ParameterError
from vit_viz.lazy import F, Tensor, torch
from vit_viz.model import TextConfig, TextTransformer, ViTConfig, use_fastest_linear
from vit_viz.prompts import check_templates

_KEPT = 4096  # embeddings; of 768 numbers each they take 12 MB
_BATCH = 64
_SIGLIP_SO400M = 1152  # the one published width whose heads are not of 64: 16 of 72


@dataclass(frozen=True, eq=False, kw_only=True)
class TextTower:
    """Reads sentences into the space of a model's pictures; safe for threads.

    Args:
        config: its architecture.
        scale: what the model multiplies cosines with, exp(logit_scale).
        bias: what it adds to them (SigLIP); 0 for CLIP.
        sigmoid: a sentence may hold beside others (SigLIP); else one of several is right (CLIP).
        device: where it computes.
        read_state: reads its parameters, under the names of `TextTransformer`.
        read_tokenizer: reads its tokenizer.
    """

    config: TextConfig
    scale: float
    bias: float
    sigmoid: bool
    device: torch.device
    read_state: Callable[[], State] = field(repr=False)
    read_tokenizer: Callable[[], SentenceTokenizer] = field(repr=False)
    _lock: Any = field(default_factory=threading.RLock, init=False, repr=False)
    _read: dict[str, Any] = field(default_factory=dict, init=False, repr=False)
    _kept: Any = field(default_factory=lambda: LRUCache(_KEPT), init=False, repr=False)

    @property
    def model(self) -> TextTransformer:
        """The tower itself, in eval mode, fp32, its weights frozen; read from its file at the first use."""
        with self._lock:
            if "model" not in self._read:
                model = build(TextTransformer, self.config, self.read_state())
                use_fastest_linear(model.to(self.device).requires_grad_(False))
                self._read["model"] = model
            return self._read["model"]  # type: ignore[no-any-return]

    @property
    def tokenizer(self) -> SentenceTokenizer:
        """What makes tokens of a sentence; read from its file at the first use."""
        with self._lock:
            if "tokenizer" not in self._read:
                self._read["tokenizer"] = self.read_tokenizer()
            return self._read["tokenizer"]  # type: ignore[no-any-return]

    def encode(self, sentences: Sequence[str], templates: Sequence[str] = ("{}",)) -> Tensor:
        """The direction of each sentence among the model's picture embeddings: normalise(mean over templates of unit vectors).

        Args:
            sentences: one or more.
            templates: texts around a sentence, which takes the place of the {} in each.

        Returns:
            Embeddings of length 1, [S, E], fp32, on the tower's device.

        Raises:
            CheckpointError: the files of the tower or its tokenizer are damaged, or changed since the model was loaded.
            ParameterError: there is no sentence, or a template does not have {} once.
        """
        templates = tuple(templates) if not isinstance(templates, str) else ()
        if isinstance(sentences, str) or not sentences or not templates:
            raise ParameterError('Sentences and templates are lists of one or more texts, as in ["a dog"].')
        check_templates(templates)
        with self._lock:
            known = {one: self._kept.get((one, templates)) for one in dict.fromkeys(sentences)}
            if new := [one for one, embedding in known.items() if embedding is None]:
                texts = [template.replace("{}", one) for one in new for template in templates]
                parts = [self._embed(texts[i : i + _BATCH]) for i in range(0, len(texts), _BATCH)]
                each = F.normalize(torch.cat(parts), dim=-1).view(len(new), len(templates), -1)
                known |= dict(zip(new, F.normalize(each.mean(1), dim=-1), strict=True))
                # copies, since a row would keep all rows beside it
                self._kept.update({(one, templates): known[one].clone() for one in new})
        return torch.stack([known[one] for one in sentences])

    def _embed(self, texts: Sequence[str]) -> Tensor:
        tokens = [self.tokenizer.ids(text) for text in texts]
        longest = max(map(len, tokens))
        rows = torch.tensor([one + [0] * (longest - len(one)) for one in tokens], device=self.device)
        ends = torch.tensor([len(one) - 1 for one in tokens], device=self.device)
        with torch.no_grad():
            embeddings: Tensor = self.model(rows, ends)
        return embeddings


def text_tower(
    source: Source,
    weights: Weights,
    settings: Mapping[str, Any],
    picture: ViTConfig,
    device: torch.device,
) -> TextTower:
    """The text tower beside a Vision Transformer; CheckpointError says why there is none that reads sentences for it.

    Args:
        source: where the file is.
        weights: what was read of it.
        settings: its metadata and what lies beside it.
        picture: the architecture of the Vision Transformer.
        device: where the tower computes.
    """
    unwrapped = weights.model
    own = unwrapped.text or unwrapped.state
    read = next((read for name, read in _FORMS.items() if name in own), None)
    if read is None:
        raise CheckpointError(
            f"{source.name!r} has no text tower that is read here, so it reads no sentences: load a CLIP or SigLIP with both "
            "towers, as clip-b32."
        )
    scale, bias = own.get("logit_scale", torch.tensor(math.nan)), own.get("logit_bias", torch.tensor(0.0))
    if not (scale.numel() == bias.numel() == 1 and abs(float(scale)) < 20 and math.isfinite(float(bias))):
        raise _unusable(
            source.name, "its logit_scale is missing or no number, or it or its logit_bias is out of range"
        )
    shapes = {name: tensor.to("meta") for name, tensor in own.items()}  # all that stays
    file, sha256 = Checkpoint(shapes, settings, source.name), weights.sha256
    state, config, cleaning = read(file)
    build(TextTransformer, config, state)  # which lists what does not fit, before anything is read
    if any(name.startswith("visual.head") for name in unwrapped.left_out):
        raise CheckpointError(
            f"{source.name!r} reads no sentences: the projection of its pictures, visual.head, is not read here."
        )
    size = picture.num_classes if picture.projection else 0 if picture.num_classes else picture.embed_dim
    if config.embed_dim != size:
        raise CheckpointError(
            f"{source.name!r} reads no sentences: their {config.embed_dim} numbers are compared with an embedding of as many, "
            "which its pictures do not have."
        )

    def read_state() -> State:
        again = read_weights(source.weights, max_numbers=max_numbers(is_visitors=source.is_visitors))
        if again.sha256 != sha256:
            raise CheckpointError(
                f"The file of {source.name!r} has changed since it was loaded: load it again to use its text tower."
            )
        return read(replace(file, state=again.model.text or again.model.state))[0]

    return TextTower(
        config=config,
        scale=math.exp(float(scale)),
        bias=float(bias),
        sigmoid="logit_bias" in own,
        device=device,
        read_state=read_state,
        read_tokenizer=find_tokenizer(source.weights.parent, settings, config, cleaning, name=source.name),
    )


_Read = tuple[State, TextConfig, str | None]
"""Parameters under the names of `TextTransformer`, the architecture, and how sentences are cleaned (`CLEANINGS`)."""


def _ours(file: Checkpoint) -> _Read:
    state = rename(file.state, [(r"^text\.", "")], drop=[r"(?!text\.)"])
    declared = mapping_of(file.config.get("text"))
    values = {key: value for key, value in declared.items() if key not in ("sigmoid", "lower")}
    return state, TextConfig(**values), "lower" if declared.get("lower") else "whitespace"


def _open_clips(file: Checkpoint) -> _Read:
    is_apart = "text.token_embedding.weight" in file.state
    drop = [r"(?!text\.)", r"text\.attn_mask$"] if is_apart else [r"visual\.", _NUMBERS]
    state = rename(file.state, _OPEN_CLIP, drop=drop)
    if (projection := state.pop("projection", None)) is not None:
        state["head.weight"] = projection.T
    text = mapping_of(open_clip.model_settings(file).get("text_cfg"))
    is_siglip = "head.bias" in state  # where no configuration says it
    pool, is_free = text.get("pool_type", "argmax"), text.get("no_causal_mask", is_siglip)
    arguments = mapping_of(text.get("tokenizer_kwargs"))
    cleaning = arguments.get("clean")
    if text and pool not in (("last",) if is_free else ("argmax", "eos")):
        raise _unusable(file.name, f"it reads a sentence by {str(pool)[:40]!r}, which is not known here")
    if unknown := set(arguments) - {"clean"}:
        names = listed(sorted(map(str, unknown)))[:80]
        raise _unusable(file.name, f"it has a tokenizer with {names}, which is not known here")
    if cleaning not in CLEANINGS:
        what = f"clean its text by {str(cleaning)[:40]!r}"
        raise _unusable(file.name, f"it has a tokenizer to {what}, which is not known here")
    is_tanh = mapping_of(text.get("act_kwargs")).get("approximate") == "tanh"
    config = _config(
        state,
        num_heads=text.get("heads"),
        mlp="quick_gelu" if open_clip.is_quick(file) else "gelu_tanh" if is_tanh else "gelu",
        norm_eps=mapping_of(text.get("norm_kwargs")).get("eps", 1e-6 if is_siglip else 1e-5),
        causal=not is_free,
    )
    return state, config, cleaning


def _transformers(file: Checkpoint) -> _Read:
    state = fuse_qkv(rename(file.state, _TRANSFORMERS, drop=[r"(?!text_)", r".*position_ids$"]))
    text = mapping_of(file.config.get("text_config"))
    is_siglip = "head.bias" in state
    eps, act = (1e-6, "gelu_pytorch_tanh") if is_siglip else (1e-5, "quick_gelu")
    is_quick = not is_siglip and quick_gelu.hub_weights_are(file.name, file.config)
    config = _config(
        state,
        num_heads=text.get("num_attention_heads"),
        mlp="quick_gelu" if is_quick else activation(text.get("hidden_act"), act),
        norm_eps=text.get("layer_norm_eps", eps),
        causal=not is_siglip,
    )
    return state, config, None


def _config(state: State, *, num_heads: Any, **settings: Any) -> TextConfig:
    """The architecture of converted parameters: shapes say most of it; a KeyError or ValueError where they do not."""
    vocabulary, width = state["token_embed.weight"].shape
    return TextConfig(
        vocabulary=vocabulary,
        context=len(state["pos_embed"]),
        width=width,
        depth=depth_of(state),
        num_heads=num_heads or (16 if width == _SIGLIP_SO400M else max(width // 64, 1)),
        embed_dim=len(state["head.weight"]),
        mlp_hidden=len(state["blocks.0.mlp.fc1.weight"]),
        head_bias="head.bias" in state,
        **settings,
    )


def _unusable(name: str, why: str) -> CheckpointError:
    return CheckpointError(f"The text tower of {name!r} cannot be used: {why}.")


_OPEN_CLIP = [
    (r"^text\.", ""),
    (r"^token_embedding\.", "token_embed."),
    (r"^ln_final\.", "norm."),
    (r"^text_projection$", "projection"),
    (r"^text_projection\.", "head."),
    *open_clip.RULES,
]
_TRANSFORMERS = [
    (r"^text_model\.", ""),
    (r"^embeddings\.token_embedding\.", "token_embed."),
    (r"^final_layer_norm\.", "norm."),
    (r"^text_projection\.", "head."),
    *transformers_clip.RULES,
]
_NUMBERS = r"(logit_scale|logit_bias|attn_mask|input_resolution|context_length|vocab_size)$"
_FORMS: Mapping[str, Callable[[Checkpoint], _Read]] = {
    "text.token_embed.weight": _ours,
    "text.token_embedding.weight": _open_clips,
    "token_embedding.weight": _open_clips,
    "text_model.embeddings.token_embedding.weight": _transformers,
}
"""How text towers are read, by a name that each has."""
