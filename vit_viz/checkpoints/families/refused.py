"""Models that are not plain Vision Transformers: recognised by configuration or parameters, refused by name with the reason."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from vit_viz.checkpoints.architectures import architecture
from vit_viz.checkpoints.families.base import Checkpoint
from vit_viz.errors import UnknownFamily

KINDS = {  # model_type of transformers -> what it is
    "vit": "ViT",
    "deit": "DeiT",
    "vit_msn": "MSN",
    "vit_mae": "MAE",
    "ijepa": "I-JEPA",
    "dinov2": "DINOv2",
    "dinov2_with_registers": "DINOv2",
    "dinov3_vit": "DINOv3",
    "dpt": "DPT",
    "depth_anything": "Depth Anything",
    "clip": "CLIP",
    "clip_vision_model": "CLIP",
    "siglip": "SigLIP",
    "siglip_vision_model": "SigLIP",
    "blip": "BLIP",
    "blip_vision_model": "BLIP",
    "internvl_vision": "InternViT",
    "intern_vit_6b": "InternViT",
    "beit": "BEiT",
    "data2vec-vision": "Data2Vec",
    "radio": "RADIO",
}

_TRACE = "build it with its own library and look at it with vv.trace(module, pixels)"
_SUFFIX = f"its detection tokens come after the patches, where our model has no tokens: {_TRACE}"
_NAFLEX = (
    "it takes a list of patches with a mask instead of a picture: choose a checkpoint of a fixed size, such as "
    "vit_base_patch16_siglip_224"
)
_NAFLEX_TIMM = f"its patches go through a linear layer under names that are not read here: {_TRACE}"
_HYBRID = "its patches come from a ResNet, not from the picture"
_WIDE_NORM = f"it normalises queries and keys across all heads at once, and our model head by head: {_TRACE}"
_ROTARY = f"its rotary positions are neither those of DINOv3 nor those of EVA-02: {_TRACE}"

_RADIO: tuple[tuple[str | None, str | None, str, str], ...] = (
    # pattern of the model's name in a configuration of RADIO, and of a parameter -> what it is, and why not
    (r"eradio|fastervit", r"model\.(levels|patch_embed\.conv_down)\.", "E-RADIO", "most of its layers are convolutions"),
    (r"radio1d", None, "RADIO1D", f"it squeezes the patches into a row of other tokens: {_TRACE}"),
    (
        r"dino_v2_|dinov2_",
        r"model\.inner\.",
        "a RADIO around DINOv2",
        f"its blocks are those of a DINOv2 that it wraps, which is not read here: {_TRACE}",
    ),
    (
        r".*mlpnorm",
        r"model\.blocks\.\d+\.mlp\.norm\.",
        "a RADIO with norms in its MLPs",
        f"they have another epsilon than its other norms, and our model has one: {_TRACE}",
    ),
    (
        None,
        r"model\.blocks\.\d+\..*\.parametrizations\.",
        "a RADIO in training",
        "its weights are still those before the division by their spectral norm; save it after "
        "torch.nn.utils.parametrize.remove_parametrizations",
    ),
)  # fmt: skip

REFUSED = {  # model_type of transformers -> what it is, and why not
    "yolos": ("YOLOS", _SUFFIX),
    "siglip2": ("SigLIP 2 NaFlex", _NAFLEX),
    "siglip2_vision_model": ("SigLIP 2 NaFlex", _NAFLEX),
    "vit_hybrid": ("a hybrid ViT", _HYBRID),
}

_ARCHITECTURES = (  # pattern of a timm name -> what it is, and why not
    (r"naflexvit_", "NaFlexViT", _NAFLEX_TIMM),
    (r"vit_pe_", "a Perception Encoder", _ROTARY),
    (r"vit_\w*_rope_", "a ViT with rotary positions", _ROTARY),
)

_PARAMETERS = (  # pattern of a parameter's name -> what has such a parameter, and why not
    (r"(.*\.)?embeddings\.detection_tokens$", *REFUSED["yolos"]),
    (r"embeds\.proj\.weight$", "NaFlexViT", _NAFLEX_TIMM),
    (r"dpt\.embeddings\.backbone\.", "a hybrid DPT", _HYBRID),
    (r"encoder\.layers?\.0\.(attention|attn)\.q_norm\.weight$", "InternViT-6B", _WIDE_NORM),
)

_LIKENESSES = (  # part of a parameter's name -> what has such parameters
    ("relative_position_bias", "a windowed or relative-position transformer (Swin)"),
    ("layer1.0.conv1.weight", "a ResNet"),
    ("downsample_layers.", "a ConvNeXt"),
    ("stages.0.blocks.0.conv_dw", "a ConvNeXt"),
    ("blocks.0.in_proj.weight", "a ViT with parallel blocks"),
    ("blocks.0.attns.0.", "a ViT with parallel blocks"),
    ("blocks.0.attn.lambda_q1", "a ViT with differential attention"),
    ("lora_", "a LoRA adapter"),
    ("transformer.wte.", "a language model"),
    ("model.embed_tokens.", "a language model"),
)


def refuse_known(checkpoint: Checkpoint) -> None:
    """Refuse what our model cannot compute, although most of its parameters have the names of a Vision Transformer."""
    settings, name = checkpoint.config, checkpoint.name
    if "embed_dim" in settings and "depth" in settings:  # our own files may have any name
        return
    _refuse_kind(settings.get("model_type"), name)
    _refuse_radio(settings, checkpoint.state, name)
    for reference in (settings.get("architecture"), name):
        if isinstance(reference, str):
            _refuse_architecture(reference, name)
    for pattern, what, why in _PARAMETERS:
        if any(re.match(pattern, key) for key in checkpoint.state):
            raise UnknownFamily(f"{name!r} is {what}: {why}.")
    patches = [v for key, v in checkpoint.state.items() if key.endswith("embeddings.patch_embedding.weight")]
    if patches and patches[0].ndim == 2:
        raise UnknownFamily(f"{name!r} is SigLIP 2 NaFlex: {_NAFLEX}.")


def refuse_unknown(settings: Mapping[str, Any], name: str) -> None:
    """Refuse a model whose config.json names an architecture that we do not know; one that names none may pass."""
    kind, timm_name = settings.get("model_type"), settings.get("architecture")
    _refuse_kind(kind, name)
    _refuse_radio(settings, (), name)
    if isinstance(kind, str) and kind and kind not in KINDS:
        raise UnknownFamily(
            f"{name!r} is a {kind[:40]!r} model, not a Vision Transformer that we know: {', '.join(dict.fromkeys(KINDS.values()))}."
        )
    if isinstance(timm_name, str):
        _refuse_architecture(timm_name, name)
        if architecture(timm_name) is None and kind is None:
            raise UnknownFamily(
                f"{name!r} is timm's {timm_name[:60]!r}, which is not one of the Vision Transformers that we know."
            )


def likeness(state: Mapping[str, Any]) -> str | None:
    """What unknown parameters look like, in words; None where they resemble nothing known."""
    return next((what for part, what in _LIKENESSES if any(part in name for name in state)), None)


def _refuse_kind(kind: Any, name: str) -> None:
    if isinstance(kind, str) and kind in REFUSED:
        what, why = REFUSED[kind]
        raise UnknownFamily(f"{name!r} is {what}: {why}.")


def _refuse_radio(settings: Mapping[str, Any], parameters: Iterable[str], name: str) -> None:
    arguments = settings.get("args")
    if isinstance(arguments, Mapping) and settings.get("vitdet_window_size") is not None:
        raise UnknownFamily(
            f"{name!r} is a RADIO with windows: most of its layers attend within windows of patches: {_TRACE}."
        )
    model = str(arguments.get("model", "")) if isinstance(arguments, Mapping) else ""
    for named, parameter, what, why in _RADIO:
        of_file = re.compile(rf"(.*\.)?radio_model\.{parameter}") if parameter else None
        if (named and re.match(named, model)) or (of_file and any(map(of_file.match, parameters))):
            raise UnknownFamily(f"{name!r} is {what}: {why}.")


def _refuse_architecture(timm_name: str, name: str) -> None:
    declared = architecture(timm_name) or {}
    if "refused" in declared:
        raise UnknownFamily(
            f"{name!r} is not a plain Vision Transformer: its blocks have {declared['refused']}, which are not supported."
        )
    bare = timm_name.rsplit("/", 1)[-1]
    for pattern, what, why in _ARCHITECTURES:
        if re.match(pattern, bare):
            raise UnknownFamily(f"{name!r} is {what}: {why}.")
