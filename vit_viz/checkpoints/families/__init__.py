"""The ways in which published Vision Transformers name their parameters; one module each."""

from __future__ import annotations

from vit_viz.checkpoints.families import (
    beit,
    dino,
    dinov3,
    open_clip,
    radio,
    timm,
    torchvision,
    transformers_beit,
    transformers_clip,
    transformers_dinov3,
    transformers_vit,
)
from vit_viz.checkpoints.families.base import Checkpoint, Family
from vit_viz.checkpoints.families.refused import likeness, refuse_known, refuse_unknown
from vit_viz.errors import UnknownFamily

__all__ = ["FAMILIES", "family_of", "refuse_unknown"]

FAMILIES: tuple[Family, ...] = (
    beit,  # before dino, whose mask token its authors' files have, too
    dino,  # before timm, whose block names it shares
    dinov3,
    timm,
    transformers_beit,  # before ViT, whose names it shares
    transformers_vit,
    transformers_dinov3,
    transformers_clip,
    open_clip,
    torchvision,
    radio,
)


def family_of(checkpoint: Checkpoint) -> Family:
    """The family whose parameter names these are."""
    refuse_known(checkpoint)
    for family in FAMILIES:
        if family.matches(checkpoint):
            return family
    like = likeness(checkpoint.state)
    names = ", ".join(sorted(checkpoint.state)[:4])
    raise UnknownFamily(
        f"This is not a Vision Transformer that we know{f': it looks like {like}' if like else ''}. "
        f"Its {len(checkpoint.state)} parameters begin with {names}. Known are: {', '.join(family.NAME for family in FAMILIES)}."
    )
