"""Which weights were trained with quick-GELU, x * sigmoid(1.702 x), whatever their architecture is called.

OpenAI's CLIP and some of its successors were. Converted files often name an architecture with GELU all the same, as timm's
`vit_base_patch16_clip_224.openai` does, and their features then differ by up to 1.3 (timm, issue 2031). The weights do not show it;
what is known about them decides, in this order:

1. The architecture is called quickgelu (architectures.py), or a configuration of transformers says `hidden_act: quick_gelu`.
2. timm's registry notes "natively QuickGELU" for this architecture and tag. The tag stands in the architecture's or file's name, in
   `pretrained_cfg`, or in the Hub id; the note itself may stand in `pretrained_cfg` too.
3. The Hub id is one of those below, under which such weights were published in transformers' format.

A name without a tag does not say whose weights these are: they get what the architecture says. The second rule holds only as long
as the head is that of the published weights, or gone: a configuration keeps its tag when the model is fine-tuned to other classes,
and fine-tuning used the activation that it names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

# timm's architecture -> its tags, and the width of their head
PUBLISHED: dict[str, tuple[frozenset[str], int]] = {
    "vit_base_patch16_clip_224": (frozenset({"openai", "metaclip_400m", "metaclip_2pt5b"}), 512),
    "vit_base_patch32_clip_224": (
        frozenset({"openai", "laion400m_e32", "metaclip_400m", "metaclip_2pt5b"}),
        512,
    ),
    "vit_large_patch14_clip_224": (frozenset({"openai", "dfn2b", "metaclip_400m", "metaclip_2pt5b"}), 768),
    "vit_large_patch14_clip_336": (frozenset({"openai"}), 768),
    "vit_huge_patch14_clip_224": (frozenset({"dfn5b", "metaclip_2pt5b", "metaclip2_worldwide"}), 1024),
    "vit_huge_patch14_clip_378": (frozenset({"dfn5b"}), 1024),
    "vit_gigantic_patch14_clip_224": (frozenset({"metaclip_2pt5b"}), 1280),
}

ASSUMED = "quick-GELU, with which these weights were trained, although their configuration names another GELU"

_HUB_IDS = re.compile(
    r"openai/clip-vit-(base-patch(16|32)|large-patch14(-336)?)"
    r"|facebook/metaclip-(b16|b32|l14|h14)-(400m|fullcc2\.5b)"
    r"|apple/DFN5B-CLIP-ViT-H-14(-378)?|apple/DFN2B-CLIP-ViT-L-14"
)


def timm_weights_are(name: str, settings: Mapping[str, Any], *, head: int | None) -> bool:
    """Whether weights in timm's format are natively quick-GELU (rule 2).

    Args:
        name: what the file or the Hub repository is called.
        settings: config.json, with the Hub id under "hub_id" where there is one.
        head: rows of the head's weight; None where there is no head.
    """
    recipe = settings.get("pretrained_cfg")
    recipe = recipe if isinstance(recipe, Mapping) else {}
    names = [_split(part) for part in (settings.get("architecture"), settings.get("hub_id"), name)]
    base = next((base for base, _ in names if base in PUBLISHED), "")
    tags = [recipe.get("tag"), *(tag for other, tag in names if other == base)]
    tag = next((tag for tag in tags if isinstance(tag, str) and tag), "")
    published, width = PUBLISHED.get(base, (frozenset(), recipe.get("num_classes")))
    notes = recipe.get("notes")
    notes = notes if isinstance(notes, list | tuple) else [notes]
    is_noted = any("natively quickgelu" in str(note).lower() for note in notes)
    return (tag in published or is_noted) and head in (None, width)


def hub_weights_are(name: str, settings: Mapping[str, Any]) -> bool:
    """Whether weights in transformers' format are natively quick-GELU by their Hub id (rule 3)."""
    ids = (settings.get("hub_id"), name)
    return any(isinstance(one, str) and _HUB_IDS.fullmatch(one) is not None for one in ids)


def _split(name: Any) -> tuple[str, str]:
    """(architecture, tag) of "timm/vit_base_patch16_clip_224.openai"."""
    base, _, tag = str(name or "").rsplit("/", 1)[-1].partition(".")
    return base, tag.split("@")[0]
