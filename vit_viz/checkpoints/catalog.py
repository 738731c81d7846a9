"""Models worth a look, as data: where they are, what they are good for, and on which terms."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from vit_viz.checkpoints.families.base import CLIP, IMAGENET
from vit_viz.settings import setting

DEFAULT_MODEL = "mini"
BUNDLED = MappingProxyType({
    "mini": "A small ViT trained for this project on 200 classes of photos; no network needed.",
    "mini-clip": "Reads sentences of 80 words about drawn shapes, trained for this project; no network needed.",
})  # fmt: skip
"""Name -> why one would look at it, in one sentence."""
BUNDLED_LICENCE = "apache-2.0"
"""Of the bundled models, as assets/README.md and LICENSE say."""
_HALF = (0.5, 0.5, 0.5)


@dataclass(frozen=True)
class Entry:
    """One model of the catalog.

    Args:
        name: what `load` and the model picker call it.
        hub_id: where it is on the Hub.
        title: for people.
        good_for: why one would look at it, in one sentence.
        licence: as timm's registry has it, or the card of the model on the Hub.
        megabytes: size of the download.
        input_size: (height, width) of the evaluation recipe, in pixels.
        crop_pct: share of the short side that the centre crop keeps.
    """

    name: str
    hub_id: str
    title: str
    good_for: str
    licence: str
    megabytes: int
    input_size: tuple[int, int] = (224, 224)
    crop_pct: float = 0.9
    mean: tuple[float, float, float] = IMAGENET[0]
    std: tuple[float, float, float] = IMAGENET[1]

    @property
    def settings(self) -> dict[str, Any]:
        """The evaluation recipe as timm's config.json writes it; used where the download brings none."""
        return {
            "input_size": [3, *self.input_size],
            "crop_pct": self.crop_pct,
            "crop_mode": "center",
            "interpolation": "bicubic",
            "mean": list(self.mean),
            "std": list(self.std),
        }


CATALOG: tuple[Entry, ...] = (
    Entry("dino-s16", "timm/vit_small_patch16_224.dino", "DINO ViT-S/16",
          "The class token's heads outline objects although no label was ever seen: the picture of the DINO paper.",
          "apache-2.0", 87),
    Entry("dino-s8", "timm/vit_small_patch8_224.dino", "DINO ViT-S/8",
          "As DINO ViT-S/16 with patches half as wide: the finest attention maps, four times the tokens.",
          "apache-2.0", 87),
    Entry("dinov2-s14", "timm/vit_small_patch14_dinov2.lvd142m", "DINOv2 ViT-S/14",
          "Strong features without labels; background patches of very large norm collect attention (sinks).",
          "apache-2.0", 88, (518, 518), 1.0),
    Entry("dinov2-s14-reg", "timm/vit_small_patch14_reg4_dinov2.lvd142m", "DINOv2 ViT-S/14 with registers",
          "The same with four registers, which take the sinks over: compare the two.",
          "apache-2.0", 88, (518, 518), 1.0),
    Entry("dinov3-s16", "timm/vit_small_patch16_dinov3.lvd1689m", "DINOv3 ViT-S/16",
          "Rotary positions instead of a table, registers, and dense features that stay clean at any size.",
          "dinov3-license", 86, (256, 256), 1.0),
    Entry("deit-s16", "timm/deit_small_patch16_224.fb_in1k", "DeiT ViT-S/16",
          "Trained with labels on ImageNet-1k alone: what supervision does to attention.",
          "apache-2.0", 88),
    Entry("augreg-ti16", "timm/vit_tiny_patch16_224.augreg_in21k_ft_in1k", "AugReg ViT-Ti/16",
          "The smallest good classifier of ImageNet-1k here; three heads per layer fit on one screen.",
          "apache-2.0", 23, mean=_HALF, std=_HALF),
    Entry("augreg-s16", "timm/vit_small_patch16_224.augreg_in21k_ft_in1k", "AugReg ViT-S/16",
          "A good classifier of ImageNet-1k at a size that stays quick on a laptop.",
          "apache-2.0", 88, mean=_HALF, std=_HALF),
    Entry("augreg-b16", "timm/vit_base_patch16_224.augreg_in21k_ft_in1k", "AugReg ViT-B/16",
          "The classifier most papers mean by ViT-B/16: 12 layers of 12 heads.",
          "apache-2.0", 346, mean=_HALF, std=_HALF),
    Entry("clip-b16", "timm/vit_base_patch16_clip_224.openai", "CLIP ViT-B/16",
          "Trained on pictures with their captions; its output is an embedding, not classes.",
          "apache-2.0", 345, mean=CLIP[0], std=CLIP[1]),
    Entry("siglip-b16", "timm/vit_base_patch16_siglip_224.webli", "SigLIP ViT-B/16",
          "No class token: a learned attention pool reads the patches, and shows what it reads.",
          "apache-2.0", 372, mean=_HALF, std=_HALF),
    Entry("clip-b32", "laion/CLIP-ViT-B-32-laion2B-s34B-b79K", "CLIP ViT-B/32 with its text tower",
          "Reads sentences, too: what it sees can be asked for in words. The quickest of its kind.",
          "mit", 605, (224, 224), 1.0, *CLIP),
    Entry("siglip-b16-text", "google/siglip-base-patch16-224", "SigLIP ViT-B/16 with its text tower",
          "Reads sentences, and says of each by itself whether it holds.",
          "apache-2.0", 813, (224, 224), 1.0, _HALF, _HALF),
    Entry("mae-b16", "timm/vit_base_patch16_224.mae", "MAE ViT-B/16",
          "Trained to paint in hidden patches: attention to neighbours and textures more than to objects.",
          "cc-by-nc-4.0", 343),
)  # fmt: skip


def entry_of(ref: str) -> Entry | None:
    """The catalog's entry of a name or of a Hub id; None for what is not in it."""
    return next((entry for entry in CATALOG if ref in (entry.name, entry.hub_id)), None)


def default_model() -> str:
    """The model that is opened first: the environment variable VIT_VIZ_MODEL, else the bundled one."""
    return setting("VIT_VIZ_MODEL") or DEFAULT_MODEL
