"""A model as the session and the page need it, and any PyTorch module as one: with preprocessing, class names, words for tokens."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Self

from vit_viz.answer import Provenance
from vit_viz.checkpoints.declared_outputs import declared_labels, declared_output, outputs_of
from vit_viz.checkpoints.digest import weights_digest
from vit_viz.checkpoints.families.base import CLIP, IMAGENET, Recipe
from vit_viz.checkpoints.local import SETTINGS_FILES, read_settings
from vit_viz.checkpoints.recipes import preprocess_of, timm_recipe
from vit_viz.checkpoints.source import kept_file
from vit_viz.checkpoints.text_towers import TextTower
from vit_viz.errors import ParameterError
from vit_viz.geometry import TokenLayout
from vit_viz.images import Preprocess
from vit_viz.labels import Labels
from vit_viz.lazy import Tensor, nn, torch
from vit_viz.model import ViTConfig
from vit_viz.outputs import Output, checked_output


@dataclass(frozen=True, eq=False, kw_only=True)
class Model:
    """A module with its preprocessing and names.

    Args:
        model: the module, in eval mode while it runs, on `device`.
        preprocess: how it wants its pictures.
        labels: names of its classes; None where its outputs are no classes or have no names.
        provenance: its name, and what tells its weights from any others.
        name: what the user called it.
        has_classes: whether the outputs stand each for itself, as scores of classes and values do, and are no embedding; they do
            where it is known what one of them is.
        output: what one output is; None where nobody says it, see `vit_viz.outputs.output_kind`.
        config: of our own VisionTransformer; None for any other module.
        family: whose parameter names it has.
        origin: where it came from, in words.
        text: the tower that reads sentences into the space of its pictures; None where there is none that can be used.
        text_missing: why there is none, and what to load or to lay beside the file, in one sentence.
        known_weights: what `provenance` calls weights, by their digest (`weights_digest`): those that the module has when this is
            made. Other ones, after training or an edit, are called by their digest.
    """

    model: nn.Module
    preprocess: Preprocess
    labels: Labels | None
    provenance: Provenance
    name: str
    device: torch.device
    has_classes: bool
    output: Output | None = None
    config: ViTConfig | None = None
    family: str = "module"
    origin: str = "passed from Python"
    text: TextTower | None = None
    text_missing: str = "The text tower of a module that is passed is not known here: open a CLIP or SigLIP with vit_viz.load."
    known_weights: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if not self.known_weights:
            digest = weights_digest(self.model)
            name = self.provenance.weights or digest
            object.__setattr__(self, "known_weights", {digest: name})
            object.__setattr__(self, "provenance", replace(self.provenance, weights=name))
        if self.output is not None:
            object.__setattr__(self, "has_classes", True)

    @property
    def num_parameters(self) -> int:
        """Numbers in the model."""
        return sum(parameter.numel() for parameter in self.model.parameters())

    @property
    def card(self) -> str:
        """The model in one line."""
        return f"{self.name}, {self.num_parameters / 1e6:.1f} M parameters, {self.origin}"

    def with_weights(self, digest: str) -> Self:
        """The same model, whose provenance names the weights of this digest."""
        name = self.known_weights.get(digest, digest)
        if name == self.provenance.weights:
            return self
        return replace(self, provenance=replace(self.provenance, weights=name))

    def copied_to(self, device: torch.device) -> Self:
        """The same model on another device, where its text tower is read again when it is used; this one stays where it is."""
        text = None if self.text is None else replace(self.text, device=device)
        return replace(self, model=copy.deepcopy(self.model).to(device), device=device, text=text)

    def with_output(self, output: Output) -> Self:
        """The same model, of whose outputs it is said what one of them is; files that are made with it say so, too.

        Raises:
            ParameterError: there is no such kind of output, or the model cannot have it.
        """
        return replace(
            self, output=checked_output(output), provenance=self.provenance.with_parameters(output=output)
        )


def plain_module(
    module: nn.Module,
    *,
    preprocess: Preprocess | Any = None,
    origin: str = "",
    labels: Labels | None = None,
    layout: TokenLayout | None = None,
) -> Model:
    """A module with what pictures need.

    Args:
        preprocess: how pictures become its input, or the processor of a model of transformers; None takes what a model of timm or
            transformers says of itself.
        origin: in words, where the preprocessing was found.
        labels: names of its classes; None takes those that it brings.
        layout: which token is what, where the module does not tell.
    """
    if preprocess is None and (own := own_preprocess(module)) is not None:
        preprocess, origin = own
    if preprocess is None:
        raise ParameterError(
            f"{type(module).__name__} does not say how pictures become its input: pass pixels [1, channels, height, width], "
            "already normalised, to trace, explain, run or figure; or open it with serve(module, "
            "preprocess=Preprocess(input_size=..., patch_size=..., mean=..., std=...))."
        )
    if not isinstance(preprocess, Preprocess):
        preprocess, origin = _of_processor(module, preprocess)
    preprocess = _of_one_size(preprocess, module)
    name = type(module).__name__
    provenance = Provenance(model=name)
    labels = labels or declared_labels(module)
    return Model(
        model=module if layout is None else _with_layout()(module, layout, preprocess.patch_size),
        preprocess=preprocess,
        labels=labels,
        provenance=provenance.with_parameters(preprocessing=origin) if origin else provenance,
        name=name,
        device=device_of(module),
        has_classes=labels is not None or outputs_of(module) == "classes",
        output=declared_output(module),
    )


def device_of(module: nn.Module) -> torch.device:
    """Where a module computes: where its weights are, or where accelerate brings those that it keeps in memory or on a disk."""
    first = next(module.parameters(), torch.empty(0))
    if not first.is_meta:
        return first.device
    for part in module.modules():
        hook = getattr(part, "_hf_hook", None)
        for one in getattr(hook, "hooks", (hook,)):
            if (device := getattr(one, "execution_device", None)) is not None:
                return torch.device(device)
    raise ParameterError(
        f"The weights of {type(module).__name__} are on the meta device, where they have shapes and no numbers: load them first, "
        "as with load_state_dict(..., assign=True)."
    )


@cache
def _with_layout() -> Callable[[nn.Module, TokenLayout, tuple[int, int]], nn.Module]:
    """The class of modules with the words for their tokens; made once, so that what remembers it does not hold a module."""

    class WithLayout(nn.Module):
        def __init__(self, module: nn.Module, layout: TokenLayout, patch_size: tuple[int, int]) -> None:
            super().__init__()
            self.module, self._layout, self._patch_size = module, layout, patch_size

        def forward(self, pixels: Tensor) -> Any:
            return self.module(pixels)

        def layout(self, height: int, width: int) -> TokenLayout:
            """The grid follows the size of the input."""
            rows, cols = height // self._patch_size[0], width // self._patch_size[1]
            return replace(self._layout, grid=(rows, cols))

    return WithLayout


def own_preprocess(module: nn.Module) -> tuple[Preprocess, str] | None:
    """How pictures become the input of a model of timm or transformers, and in words where that was found; None for any other.

    timm says it in `pretrained_cfg` and the patch embedding. transformers says the size in the configuration, and the rest in the
    processor beside the weights; without one, what most checkpoints of that kind want is assumed.
    """
    recipe = getattr(module, "pretrained_cfg", None)
    embedding = getattr(module, "patch_embed", None) or getattr(module, "embeds", None)  # of NaFlexVit
    if isinstance(recipe, Mapping) and getattr(embedding, "patch_size", None) is not None:
        return _of_one_size(_of_timm(recipe, embedding), module), ""
    if (config := _vision_config(module)) is not None:
        settings = read_settings(None, *(_beside_weights(module, name) for name in SETTINGS_FILES[1:]))
        preprocess, origin = _of_transformers(module, config, settings)
        return _of_one_size(preprocess, module), origin
    return None


def _of_processor(module: nn.Module, processor: Any) -> tuple[Preprocess, str]:
    """How a live processor of transformers prepares pictures for a model of transformers, and in words where that was found."""
    processor = getattr(processor, "image_processor", processor)  # beside that of texts
    config = _vision_config(module)
    if config is None or isinstance(processor, type) or not hasattr(processor, "to_dict"):
        raise ParameterError(
            f"preprocess is a Preprocess or, for a model of transformers, its processor; for {type(module).__name__} not "
            f"{type(processor).__name__}."
        )
    return _of_transformers(module, config, {"preprocessor": processor.to_dict()})


def _vision_config(module: nn.Module) -> Any:
    """The configuration of a model of transformers that sees pictures; None of any other."""
    config = getattr(module, "config", None)
    config = getattr(config, "vision_config", config)
    is_vision = all(getattr(config, name, None) for name in ("model_type", "image_size", "patch_size"))
    return config if is_vision else None


def _of_one_size(preprocess: Preprocess, module: nn.Module) -> Preprocess:
    return replace(preprocess, one_size=True, drop_remainder=True) if takes_one_size(module) else preprocess


def _of_timm(recipe: Mapping[str, Any], embedding: Any) -> Preprocess:
    size = tuple(getattr(embedding, "img_size", None) or tuple(recipe["input_size"])[1:])
    values = timm_recipe(recipe, size)
    first = next((part for part in embedding.modules() if isinstance(part, nn.Conv2d)), None)
    channels = getattr(embedding, "in_chans", len(values["mean"])) if first is None else first.in_channels
    if channels != len(values["mean"]):  # the recipe is that of the colours that the weights were trained on
        values |= {name: (sum(values[name]) / len(values[name]),) for name in ("mean", "std")}
    patch_size = embedding.patch_size
    patch_size = (patch_size, patch_size) if isinstance(patch_size, int) else tuple(patch_size)
    return Preprocess(input_size=size, patch_size=patch_size, channels=channels, **values)


def _of_transformers(module: nn.Module, config: Any, settings: Mapping[str, Any]) -> tuple[Preprocess, str]:
    size, patch_size = (
        tuple(side) if isinstance(side, list | tuple) else (side, side)
        for side in (config.image_size, config.patch_size)
    )
    channels = getattr(config, "num_channels", 3)
    shape = ViTConfig(img_size=size, patch_size=patch_size, in_chans=channels, drop_remainder=True)
    declared = {"model_type": config.model_type, **settings}
    preprocess, origin = preprocess_of(shape, declared, _usual_recipe(config.model_type))
    if takes_one_size(module) and preprocess.input_size != size:
        origin += f", but for its size: this model takes {size[0]} x {size[1]} pixels and no others"
        preprocess = replace(preprocess, input_size=size, resize_to=None)
    return preprocess, origin if settings else "assumed: no processor lies beside the weights"


def _beside_weights(module: nn.Module, filename: str) -> Path | None:
    """A file in the folder that transformers read a model's weights from, or in the cache of the Hub; None where there is none."""
    name = str(getattr(module, "name_or_path", "") or "")
    if not name:
        return None
    folder = Path(name)
    return folder / filename if folder.is_dir() else kept_file(name, filename)


def _usual_recipe(kind: str) -> Recipe:
    """What most checkpoints of a `model_type` of transformers want."""
    if kind.startswith(("beit", "data2vec", "siglip")) or kind == "vit":
        return Recipe(crop_fraction=1.0)
    return Recipe(*CLIP, crop_fraction=1.0) if "clip" in kind else Recipe(*IMAGENET, crop_fraction=0.875)


def takes_one_size(module: nn.Module) -> bool:
    """Whether a model of timm, transformers or torchvision says that it takes inputs of its own size only.

    False where nothing says so: then a pass tells.
    """
    embedding = getattr(module, "patch_embed", None)
    is_dynamic = getattr(module, "dynamic_img_size", not getattr(embedding, "strict_img_size", False))
    is_torchvisions = type(module).__module__ == "torchvision.models.vision_transformer"
    if is_torchvisions or not is_dynamic:
        return True
    return any(
        "interpolate_pos_encoding" in inspect.signature(part.forward).parameters
        and any(
            getattr(part, name, None) is not None for name in ("position_embeddings", "position_embedding")
        )
        for part in module.modules()
        if hasattr(part, "interpolate_pos_encoding")  # transformers' embeddings, which resample when told to
    )
