"""BEiT and data2vec-vision as transformers saves them."""

from __future__ import annotations

from vit_viz.checkpoints.families.base import (
    Checkpoint,
    Inferred,
    Recipe,
    State,
    activation,
    fuse_qkv,
    infer,
    rename,
)
from vit_viz.checkpoints.families.transformers_vit import RULES, common
from vit_viz.errors import UnknownFamily

NAME = "transformers BEiT / data2vec-vision"
RECIPE = Recipe()

KINDS = ("beit", "data2vec-vision")
_TABLE = "relative_position_bias_table"
_RULES = [
    (
        r"^(beit|data2vec_vision|base_model|model)\."
        r"(?=embeddings|encoder|layers?\.|layernorm|pooler|shared_position_bias)",
        "",
    ),
    (r"^(encoder\.relative_position_bias|shared_position_bias)\.", "rel_pos_bias."),
    *RULES,
    (rf"^(blocks\.\d+)\..*relative_position_bias\.({_TABLE})$", r"\1.attn.\2"),
    (r"^pooler\.layernorm\.", "fc_norm."),
]
_DROPPED = [r".*relative_position_index$", r"(\w+\.)?embeddings\.mask_token$", r"lm_head\."]
_MASKED = "only the encoder: the head that predicts visual tokens is left out"


def matches(checkpoint: Checkpoint) -> bool:
    """A class token under transformers' name, and a table of biases, unless the configuration says what it is."""
    state = checkpoint.state
    if not any(name.endswith("embeddings.cls_token") for name in state):
        return False
    return checkpoint.config.get("model_type") in KINDS or any(name.endswith(_TABLE) for name in state)


def convert(checkpoint: Checkpoint) -> State:
    """timm's names, with q, k and v joined; keys have no bias, so theirs becomes zero."""
    return fuse_qkv(rename(checkpoint.state, _RULES, drop=_DROPPED))


def infer_config(checkpoint: Checkpoint, state: State) -> Inferred:
    """From config.json where there is one, else from the shapes."""
    settings = checkpoint.config
    parameters = common(settings, default_eps=1e-12)
    parameters |= {"mlp": activation(settings.get("hidden_act")), "resample": "transformers"}
    is_masked = any(name.startswith("lm_head.") for name in checkpoint.state)
    inferred = infer(state, **parameters, assumed=(_MASKED,) if is_masked else ())
    config = inferred.config
    if config.grid[0] != config.grid[1] and (config.relative_bias or config.shared_bias):
        raise UnknownFamily(
            f"This BEiT was made for a grid of {config.grid[0]} x {config.grid[1]}, where transformers takes rows of its biases "
            "for columns: only square grids are loaded."
        )
    return inferred
