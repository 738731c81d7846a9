"""From a reference to a loaded model; strict about everything that the file says."""

from __future__ import annotations

import copy
import logging
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from vit_viz.answer import Provenance
from vit_viz.checkpoints.building import build
from vit_viz.checkpoints.digest import weights_of
from vit_viz.checkpoints.families import family_of
from vit_viz.checkpoints.families.base import Checkpoint, Family, Inferred
from vit_viz.checkpoints.local import Source
from vit_viz.checkpoints.plain_module import Model
from vit_viz.checkpoints.recipes import labels_of, output_of, preprocess_of
from vit_viz.checkpoints.source import Progress, find, max_numbers
from vit_viz.checkpoints.text_towers import TextTower, text_tower
from vit_viz.checkpoints.unwrapping import listed
from vit_viz.checkpoints.visitor_models import visitor_model_cache
from vit_viz.checkpoints.weights import Weights, read_weights
from vit_viz.errors import Cancelled, CheckpointError, ParameterError, UnsafeFile, VitVizError
from vit_viz.images import Preprocess
from vit_viz.labels import Labels
from vit_viz.lazy import F, Tensor, torch
from vit_viz.model import SentenceHead, VisionTransformer, ViTConfig, set_linear, use_fastest_linear
from vit_viz.outputs import Output, checked_output, output_kind
from vit_viz.progress import StopCheck
from vit_viz.prompts import Prompts

_logger = logging.getLogger(__name__)
_MAX_VISITORS_PATCHES = 4096  # 64 x 64: bounds what one picture of a visitor's model costs everybody
_ODD_SHAPES = (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError)


@dataclass(frozen=True, eq=False, kw_only=True)
class LoadedModel(Model):
    """A model with everything that belongs to it.

    Args:
        model: in eval mode, fp32, on `device`, its weights frozen: `requires_grad_(True)` lets them be trained.
        preprocess: how it wants its pictures.
        labels: names of its classes; None where its outputs are not classes or have no names.
        provenance: its name, the SHA-256 of its file as long as the weights are those of it, and what had to be assumed.
        name: what the user called it.
        family: whose parameter names the file has.
        origin: where it came from, in words.
        ref: what `load` was given; "" where it was not loaded so.

    Attributes:
        has_classes: whether the outputs stand each for itself, as scores of classes and values do, and are no embedding.
    """

    model: VisionTransformer
    config: ViTConfig
    family: str
    origin: str
    ref: str = ""
    has_classes: bool = field(init=False)

    def __post_init__(self) -> None:
        count = self.config.num_classes
        has_classes = count > 0 and not self.config.projection
        # a softmax counts as if nobody had said it: the config may be another one now
        declared = None if self.output == "softmax" else self.output
        object.__setattr__(self, "output", output_kind(declared, count) if has_classes else None)
        object.__setattr__(self, "has_classes", has_classes)
        super().__post_init__()

    def with_output(self, output: Output) -> Self:
        """As `Model.with_output`.

        Raises:
            ParameterError: there is no such kind of output, the outputs are an embedding, or it is a softmax over one output.
        """
        if not self.has_classes:
            raise ParameterError(
                f"The outputs of {self.name!r} are an embedding, so output={output!r} does not apply to them; leave it out."
            )
        output_kind(checked_output(output), self.config.num_classes)
        return super().with_output(output)

    def encode_text(self, sentences: Sequence[str], templates: Sequence[str] = ("{}",)) -> Tensor:
        """As `TextTower.encode`: unit vectors [S, E], whose products with that of a picture are the similarities.

        Raises:
            CheckpointError: the model has no text tower that can be used, or its files are damaged or have changed.
            ParameterError: there is no sentence, or a template without "{}".

        Example:
            >>> import vit_viz as vv
            >>> loaded = vv.load("mini")
            >>> loaded.text_missing.partition(":")[0]
            "'mini' has no text tower that is read here, so it reads no sentences"
        """
        return self._tower().encode(sentences, templates)

    def __repr__(self) -> str:
        shape, nouns = self.config, "outputs" if self.output == "value" else "classes"
        kinds = "" if self.labels is None else f", {len(self.labels)} {nouns}"
        return (
            f"LoadedModel({self.name}: {shape.depth} layers x {shape.num_heads} heads, {self.num_parameters / 1e6:.1f} M parameters"
            f"{kinds}, on {self.device})"
        )

    @property
    def card(self) -> str:
        """The model in one line."""
        config = self.config
        patch_height, patch_width = config.patch_size
        parts = [
            f"{config.depth} layers x {config.num_heads} heads",
            f"patch {patch_height}"
            if patch_height == patch_width
            else f"patch {patch_height} x {patch_width}",
            f"{config.grid[0]} x {config.grid[1]} patches at {config.img_size[0]} x {config.img_size[1]}",
            *([f"{config.reg_tokens} registers"] if config.reg_tokens else []),
            f"{self.num_parameters / 1e6:.1f} M parameters",
            f"from {self.origin}" if not self.origin.startswith("bundled") else self.origin,
        ]
        return ", ".join(parts)

    def with_prompts(
        self, prompts: Prompts | Sequence[str] | str, pictures: Mapping[str, Tensor] = MappingProxyType({})
    ) -> LoadedModel:
        """The same model with sentences as its classes: logits = scale * cosine(picture, sentence) + bias, as it was trained.

        Their softmax is each sentence's share among these sentences (CLIP), their sigmoids say whether each holds (SigLIP). The
        weights are shared with this model.

        Args:
            prompts: the sentences, or a list of them, or one text with " | " between them.
            pictures: of those that stand in the place of a sentence ("@lion") the embedding, [E]. Pictures lie nearer to each other
                than to sentences, so with them there are no shares, and the bias is 0. Where all are pictures, no text tower is
                needed; without one the scale is 1.

        Raises:
            CheckpointError: there are sentences, and the model has no text tower.
            ParameterError: there is no sentence, a picture's embedding is missing, or the model has classes.
        """
        prompts = prompts if isinstance(prompts, Prompts) else Prompts(prompts)
        sentences = [one for one in prompts.sentences if one not in prompts.pictures]
        if sentences or not prompts or self.has_classes:
            self._tower()  # which says what is missing
        if not prompts:
            raise ParameterError("There is no sentence to score the picture by.")
        if missing := prompts.pictures.keys() - pictures.keys():
            raise ParameterError(
                f"{min(missing)[:40]!r} stands for a picture that is not at hand here: vit_viz.run, vit_viz.figure and the app "
                "know samples and the photo itself; with_prompts takes its embedding beside it."
            )
        known = {one: F.normalize(embedding.float(), dim=0) for one, embedding in pictures.items()}
        if sentences:
            known |= dict(zip(sentences, self._tower().encode(sentences, prompts.templates), strict=True))
        directions = torch.stack([known[one].to(self.device) for one in prompts.sentences])
        shared: dict[int, Any] = {id(tensor): tensor for tensor in self.model.parameters()}
        model, head = copy.deepcopy(self.model, shared), self.model.head
        projection = head.projection if isinstance(head, SentenceHead) else head
        scale = 1.0 if self.text is None else self.text.scale
        bias = 0.0 if self.text is None or pictures else self.text.bias
        model.head = SentenceHead(projection, directions, scale, bias)
        model.config = replace(self.config, num_classes=len(directions), projection=False)
        is_sigmoid = self.text is not None and self.text.sigmoid
        kind: Output = "sigmoid" if is_sigmoid else "softmax" if len(directions) > 1 else "value"
        return replace(
            self,
            model=model.eval(),
            config=model.config,
            labels=Labels(prompts.names),
            output="value" if pictures else kind,
            provenance=self.provenance.with_parameters(**prompts.parameters),
            known_weights={weights_of(model): self.provenance.weights},
        )

    def _tower(self) -> TextTower:
        if self.text is None:
            raise CheckpointError(self.text_missing)
        return self.text

    def with_linear(self, kernel: str) -> LoadedModel:
        """The same weights computed by a kernel that a provenance names, "torch" or "oneDNN"; unchanged where that is not here."""
        computes = dict(self.provenance.parameters).get("linear", kernel)
        if computes == kernel or self.device.type != "cpu":
            return self
        shared: dict[int, Any] = {id(tensor): tensor for tensor in self.model.parameters()}
        model = copy.deepcopy(self.model, shared)
        if not set_linear(model, onednn=kernel == "oneDNN"):
            return self
        return replace(self, model=model, provenance=self.provenance.with_parameters(linear=kernel))


def load(
    ref: str | Path,
    *,
    device: str | torch.device | None = None,
    local_files: bool = True,
    fetch: bool = True,
    use_token: bool | None = None,
    output: Output | None = None,
    preprocess: Preprocess | None = None,
    progress: Progress | None = None,
    cancelled: StopCheck | None = None,
) -> LoadedModel:
    """A loaded model, ready to be traced.

    Args:
        ref: "mini" (bundled), a name of the catalog, a path of a .safetensors or .pth file or of a folder, or a Hub id.
        device: where it computes; None means a GPU where there is one.
        local_files: whether paths are accepted; False for references that come from a browser.
        fetch: whether the Hub may be asked; False takes what is on this machine.
        use_token: whether the owner's Hub token may be sent; None means for models of the catalog only.
        output: what one output of its classifier is: "softmax", the score of one class of which one is right; "sigmoid", of a class
            that may hold beside others; "value", as of a regression. None takes what its configuration says (`problem_type`), else
            a value where there is one output, and a softmax.
        preprocess: how pictures become its input, in place of what the files beside it say; its patches and channels are the
            checkpoint's own.
        progress: called with (bytes fetched, bytes in all) during a download.
        cancelled: called during a download and after it; True ends the loading.

    Raises:
        CheckpointError: there is no such model, or its file is damaged, unsafe, of an unknown family, or does not fit.
        ParameterError: its configuration is out of bounds, the device does not exist, or `output` does not fit it.
        Cancelled: `cancelled` returned True.

    Example:
        >>> import vit_viz as vv
        >>> loaded = vv.load("mini")
        >>> loaded.config.depth, loaded.config.num_heads, loaded.labels.find("lion")
        (6, 6, 184)
    """
    target, output_kind = choose_device(device), checked_output(output)
    with visitor_model_cache().in_use(str(ref).partition("@")[0]):
        source = find(
            ref,
            local_files=local_files,
            fetch=fetch,
            use_token=use_token,
            progress=progress,
            cancelled=cancelled,
        )
        if cancelled is not None and cancelled():
            raise Cancelled(f"Loading {source.name!r} was cancelled.")
        loaded = replace(load_source(source, device=target, preprocess=preprocess), ref=str(ref))
        return loaded if output_kind is None else loaded.with_output(output_kind)


def load_source(
    source: Source, *, device: str | torch.device | None = None, preprocess: Preprocess | None = None
) -> LoadedModel:
    """As `load`, for a checkpoint that has been found already; without the configuration beside it where that is of another."""
    target = choose_device(device)
    try:
        return _loaded(source, target, preprocess)
    except VitVizError:
        if source.may_be_of_another:
            with suppress(VitVizError):
                return _loaded(replace(source, settings={}, may_be_of_another=False), target, preprocess)
        raise


def _loaded(source: Source, target: torch.device, own: Preprocess | None) -> LoadedModel:
    weights = read_weights(source.weights, max_numbers=max_numbers(is_visitors=source.is_visitors))
    settings = _settings(source, weights)
    family, inferred, model = _model_of(source, weights, settings)
    if own is not None:
        settings["preprocess"] = own.to_dict()
    elif inferred.preprocess is not None:
        settings["preprocess"] = inferred.preprocess
    preprocess, preprocess_origin = preprocess_of(inferred.config, settings, family.RECIPE, name=source.name)
    if source.is_visitors:  # one picture of an input that is too large would occupy the machine
        (height, width), (tall, wide) = preprocess.input_size, inferred.config.patch_size
        largest = max(-(-height // tall) * -(-width // wide), math.prod(inferred.config.grid))
        if largest > _MAX_VISITORS_PATCHES:
            raise CheckpointError(
                f"{source.name!r} cuts a picture into {largest:,} patches; a model that is opened here may have "
                f"{_MAX_VISITORS_PATCHES:,}: choose one with larger patches, or start an app of your own with --model."
            )
    model.to(target).requires_grad_(False)  # so that a gradient may run through the faster kernel too
    fast = use_fastest_linear(model)
    notes = {
        "family": family.NAME,
        "preprocessing": preprocess_origin if own is None else "passed to load",
        "linear": "oneDNN" if fast else "torch",
    }
    unwrapped = weights.model
    notes |= {"part": unwrapped.place} if unwrapped.place else {}
    if left_out := (*unwrapped.models_left_out, *unwrapped.left_out, *inferred.left_out):
        notes["left_out"] = listed(left_out)
    if assumed := (*unwrapped.assumed, *inferred.assumed):
        notes["assumed"] = "; ".join(assumed)
    _logger.info("loaded %s as %s (%s)", source.name, family.NAME, notes)
    text: TextTower | None = None
    text_missing = ""
    try:
        text = text_tower(source, weights, settings, inferred.config, target)
    except VitVizError as error:  # pictures are seen, whatever is wrong with it
        text_missing = str(error)
    except _ODD_SHAPES as error:
        _logger.info("the text tower of %s cannot be built", source.name, exc_info=error)
        text_missing = (
            f"The text tower of {source.name!r} cannot be used: none that is known here has such a configuration, or parameters of "
            "these shapes."
        )
    return LoadedModel(
        model=model,
        config=inferred.config,
        preprocess=preprocess,
        labels=labels_of(inferred.config, settings),
        output=output_of(inferred.config, settings),
        provenance=Provenance(
            model=source.name,
            weights=weights.sha256,
            preprocess=preprocess.describe(),
            parameters=tuple(notes.items()),
        ),
        name=source.name,
        family=family.NAME,
        origin=f"{source.origin}: {unwrapped.place}"
        if unwrapped.models_left_out and unwrapped.place
        else source.origin,
        device=target,
        text=text,
        text_missing=text_missing,
    )


def _model_of(
    source: Source, weights: Weights, settings: Mapping[str, Any]
) -> tuple[Family, Inferred, VisionTransformer]:
    """The family, the architecture and the model of a file whose shapes have not been checked yet."""
    own = settings.get("config")  # of our own files; else config.json describes the architecture
    try:
        config = own if isinstance(own, Mapping) else settings
        checkpoint = Checkpoint(state=weights.model.state, config=config, name=source.name)
        family = family_of(checkpoint)
        state = family.convert(checkpoint)
        inferred = family.infer_config(checkpoint, state)
        return family, inferred, build(VisionTransformer, inferred.config, state)
    except VitVizError:
        raise
    except _ODD_SHAPES as error:
        _logger.info("%s cannot be built", source.name, exc_info=error)
        raise UnsafeFile(
            f"{source.name!r} cannot be loaded: its parameters or its configuration have shapes that no Vision Transformer has."
        ) from error


def choose_device(device: str | torch.device | None = None) -> torch.device:
    """The given device, or a CUDA GPU, Apple's GPU, or the CPU, in that order."""
    if device is None:
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        chosen = torch.device(device)
        torch.empty(0, device=chosen)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ParameterError(
            f"There is no device {str(device)!r} here; expected cpu, cuda or mps."
        ) from error
    return chosen


def _settings(source: Source, weights: Weights) -> dict[str, Any]:
    """The file's own metadata and the JSON beside it; the metadata has precedence."""
    settings = dict(source.settings)
    if "architecture" in settings and "pretrained_cfg" not in settings and "mean" in settings:
        settings["pretrained_cfg"] = dict(settings)  # timm's older config.json is flat
    for name in ("labels", "synsets", "preprocess", "config", "output", "text", "tokenizer"):
        if name in weights.metadata:
            settings[name] = weights.metadata[name]
    return settings
