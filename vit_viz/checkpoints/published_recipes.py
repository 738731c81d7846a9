"""How timm prepares pictures for its published weights, by their names, as data; for files that bring no configuration.

A test compares the table with timm's own registry.
"""

from __future__ import annotations

from typing import Any

from vit_viz.checkpoints.architectures import ARCHITECTURES

_HALF = {"mean": (0.5, 0.5, 0.5), "std": (0.5, 0.5, 0.5)}
_IMAGENET = {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}
_CLIP = {"mean": (0.48145466, 0.4578275, 0.40821073), "std": (0.26862954, 0.26130258, 0.27577711)}
_LEVELS = {"mean": (0.0, 0.0, 0.0), "std": (1.0, 1.0, 1.0)}
_SATELLITE = {"mean": (0.43, 0.411, 0.296), "std": (0.213, 0.156, 0.143)}

_USUAL: dict[str, Any] = {**_HALF, "crop_pct": 0.9}

_GROUPS: tuple[tuple[dict[str, Any], str], ...] = (
    ({**_CLIP, "crop_pct": 1.0}, """
        aimv2_1b_patch14_224 aimv2_1b_patch14_336 aimv2_1b_patch14_448 aimv2_3b_patch14_224 aimv2_3b_patch14_336
        aimv2_3b_patch14_448 aimv2_huge_patch14_224 aimv2_huge_patch14_336 aimv2_huge_patch14_448 aimv2_large_patch14_224
        aimv2_large_patch14_336 aimv2_large_patch14_448 eva02_base_patch14_448.mim_in22k_ft_in1k
        eva02_large_patch14_448.mim_in22k_ft_in1k eva02_large_patch14_448.mim_m38m_ft_in1k eva02_large_patch14_clip_336
        eva02_small_patch14_336 eva02_tiny_patch14_336 eva_large_patch14_196 vit_base_patch16_224.bamboo
        vit_base_patch16_clip_224.datacompxl vit_base_patch16_clip_224.dfn2b vit_base_patch16_clip_224.laion2b
        vit_base_patch16_clip_224.laion2b_ft_in1k vit_base_patch16_clip_224.laion400m_e32
        vit_base_patch16_clip_224.metaclip_2pt5b vit_base_patch16_clip_224.metaclip_400m vit_base_patch16_clip_quickgelu_224
        vit_base_patch16_plus_clip_240 vit_base_patch16_radio_v3 vit_base_patch32_clip_224.datacompxl
        vit_base_patch32_clip_224.metaclip_2pt5b vit_base_patch32_clip_224.metaclip_400m vit_base_patch32_clip_256
        vit_base_patch32_clip_384 vit_base_patch32_clip_448 vit_base_patch32_clip_quickgelu_224.metaclip_2pt5b
        vit_base_patch32_clip_quickgelu_224.metaclip_400m vit_giant_patch14_clip_224 vit_giant_patch16_radio_v3
        vit_gigantic_patch14_clip_224 vit_gigantic_patch14_clip_quickgelu_224 vit_huge_patch14_clip_224
        vit_huge_patch14_clip_378 vit_huge_patch14_clip_quickgelu_224 vit_huge_patch14_clip_quickgelu_378
        vit_huge_patch16_radio_v3 vit_huge_patch16_radio_v4 vit_large_patch14_clip_224.apple_mclip2_dfndr2b
        vit_large_patch14_clip_224.datacompxl vit_large_patch14_clip_224.dfn2b vit_large_patch14_clip_224.dfn2b_s39b
        vit_large_patch14_clip_224.laion400m_e32 vit_large_patch14_clip_224.metaclip_2pt5b
        vit_large_patch14_clip_224.metaclip_400m vit_large_patch14_clip_224.openai
        vit_large_patch14_clip_224.openai_ft_in12k vit_large_patch14_clip_224.openai_ft_in12k_in1k
        vit_large_patch14_clip_224.openai_ft_in1k vit_large_patch14_clip_336.openai vit_large_patch14_clip_quickgelu_224
        vit_large_patch14_clip_quickgelu_336 vit_large_patch16_radio_v3 vit_so400m_patch16_radio_v4
    """),
    ({**_IMAGENET, "crop_pct": 1.0}, """
        beit3_base_patch16_224 beit3_giant_patch14_224 beit3_giant_patch14_336 beit3_large_patch16_224
        deit3_base_patch16_224.fb_in22k_ft_in1k deit3_base_patch16_384 deit3_huge_patch14_224.fb_in22k_ft_in1k
        deit3_large_patch16_224.fb_in22k_ft_in1k deit3_large_patch16_384 deit3_medium_patch16_224.fb_in22k_ft_in1k
        deit3_small_patch16_224.fb_in22k_ft_in1k deit3_small_patch16_384 deit_base_distilled_patch16_384
        deit_base_patch16_384 vit_7b_patch16_dinov3 vit_base_patch14_dinov2 vit_base_patch14_reg4_dinov2
        vit_base_patch16_dinov3 vit_base_patch16_dinov3_qkvb vit_giant_patch14_dinov2 vit_giant_patch14_reg4_dinov2
        vit_huge_patch16_gap_448 vit_huge_plus_patch16_dinov3 vit_huge_plus_patch16_dinov3_qkvb vit_intern300m_patch14_448
        vit_large_patch14_dinov2 vit_large_patch14_reg4_dinov2 vit_large_patch16_dinov3 vit_large_patch16_dinov3_qkvb
        vit_small_patch14_dinov2 vit_small_patch14_reg4_dinov2 vit_small_patch16_dinov3 vit_small_patch16_dinov3_qkvb
        vit_small_plus_patch16_dinov3 vit_small_plus_patch16_dinov3_qkvb vit_tiny_patch16_dinov3_qkvb
    """),
    ({**_HALF, "crop_pct": 0.95}, """
        flexivit_base flexivit_large flexivit_small test_vit test_vit2 test_vit3 test_vit4 vit_base_patch16_plus_240
        vit_base_patch32_plus_256 vit_betwixt_patch16_gap_256 vit_betwixt_patch16_reg1_gap_256
        vit_betwixt_patch16_reg4_gap_256 vit_dlittle_patch16_reg1_gap_256 vit_dpwee_patch16_reg1_gap_256
        vit_dwee_patch16_reg1_gap_256 vit_little_patch16_reg1_gap_256 vit_little_patch16_reg4_gap_256
        vit_medium_patch16_gap_240 vit_medium_patch16_gap_256 vit_medium_patch16_reg1_gap_256
        vit_medium_patch16_reg4_gap_256 vit_mediumd_patch16_reg4_gap_256 vit_pwee_patch16_reg1_gap_256
        vit_so150m_patch16_reg4_gap_256 vit_wee_patch16_reg1_gap_256
    """),
    ({**_IMAGENET, "crop_pct": 0.9}, """
        beitv2_base_patch16_224 beitv2_large_patch16_224.in1k_ft_in22k deit3_base_patch16_224 deit3_huge_patch14_224
        deit3_large_patch16_224 deit3_medium_patch16_224 deit3_small_patch16_224 deit_base_distilled_patch16_224
        deit_base_patch16_224 deit_small_distilled_patch16_224 deit_small_patch16_224 deit_tiny_distilled_patch16_224
        deit_tiny_patch16_224 vit_base_patch16_224.dino vit_base_patch16_224.mae vit_base_patch8_224.dino
        vit_giant_patch16_gap_224 vit_huge_patch14_224.mae vit_huge_patch14_gap_224 vit_large_patch16_224.mae
        vit_small_patch16_224.dino vit_small_patch8_224
    """),
    ({**_HALF, "crop_pct": 1.0}, """
        beit_base_patch16_384 beit_large_patch16_384 beit_large_patch16_512 vit_base_patch16_384 vit_base_patch32_384
        vit_betwixt_patch16_reg4_gap_384 vit_large_patch14_clip_224 vit_large_patch16_384 vit_large_patch32_384
        vit_mediumd_patch16_reg4_gap_384 vit_small_patch16_384 vit_small_patch32_384 vit_so150m2_patch16_reg1_gap_256
        vit_so150m2_patch16_reg1_gap_384 vit_so150m_patch16_reg4_gap_384 vit_so400m_patch14_siglip_gap_378.webli
        vit_so400m_patch14_siglip_gap_384 vit_so400m_patch14_siglip_gap_448 vit_so400m_patch14_siglip_gap_896
        vit_tiny_patch16_384
    """),
    ({**_CLIP, "crop_pct": 0.9}, """
        eva02_base_patch14_224 eva02_base_patch16_clip_224 eva02_enormous_patch14_clip_224 eva02_large_patch14_224
        eva02_large_patch14_clip_224 eva02_small_patch14_224 eva02_tiny_patch14_224 eva_giant_patch14_224
        eva_giant_patch14_clip_224 vit_base_patch16_clip_224.laion2b_ft_in12k vit_base_patch16_clip_224.openai
        vit_base_patch16_clip_224.openai_ft_in12k vit_base_patch16_clip_224.openai_ft_in1k
        vit_base_patch16_clip_quickgelu_224.openai vit_base_patch32_clip_224 vit_base_patch32_clip_quickgelu_224
        vit_betwixt_patch32_clip_224 vit_medium_patch16_clip_224 vit_medium_patch32_clip_224 vit_xsmall_patch16_clip_224
    """),
    ({**_CLIP, "crop_pct": 1.0, "crop_mode": "squash"}, """
        eva02_base_patch14_448 eva02_large_patch14_448 eva_giant_patch14_336 eva_large_patch14_336 vit_base_patch16_clip_384
        vit_gigantic_patch14_clip_378 vit_huge_patch14_clip_336 vit_huge_patch14_clip_378.metaclip2_worldwide
        vit_large_patch14_clip_336.openai_ft_in12k_in1k
    """),
    ({**_LEVELS, "crop_pct": 1.0}, """
        vit_base_patch14_reg1_tipsv2 vit_giant_patch14_reg1_tipsv2 vit_large_patch14_reg1_tipsv2
        vit_so400m_patch14_reg1_tipsv2
    """),
    ({**_HALF, "crop_pct": 1.0, "crop_mode": "squash"}, """
        vit_large_patch14_clip_336 vit_so150m2_patch16_reg1_gap_448 vit_so400m_patch14_siglip_378.webli_ft_in1k
        vit_so400m_patch14_siglip_gap_378.webli_ft_in1k
    """),
    ({**_SATELLITE, "crop_pct": 1.0}, """
        vit_7b_patch16_dinov3.sat493m vit_large_patch16_dinov3.sat493m vit_large_patch16_dinov3_qkvb.sat493m
    """),
    ({**_CLIP, "crop_pct": 0.95, "crop_mode": "squash"}, """
        vit_base_patch16_clip_384.openai_ft_in12k_in1k vit_base_patch32_clip_384.openai_ft_in12k_in1k
    """),
    ({**_IMAGENET, "crop_pct": 1.0, "crop_mode": "squash"}, "eva_giant_patch14_336.m30m_ft_in22k_in1k eva_giant_patch14_560"),
    ({**_HALF, "crop_pct": 0.95, "crop_mode": "squash"}, "vit_medium_patch16_gap_384"),
    ({**_LEVELS, "crop_pct": 0.875, "interpolation": "bilinear"}, "vit_base_patch16_224_miil"),
    ({**_CLIP, "crop_pct": 0.95}, "vit_base_patch16_clip_224"),
    ({**_IMAGENET, "crop_pct": 0.95}, "beitv2_large_patch16_224"),
)  # fmt: skip

PUBLISHED: dict[str, dict[str, Any]] = dict.fromkeys(ARCHITECTURES, _USUAL) | {
    name: recipe for recipe, names in _GROUPS for name in names.split()
}
"""Entries of a `pretrained_cfg` by "architecture", or "architecture.tag" where such weights differ from those."""


def published_recipe(name: str) -> dict[str, Any] | None:
    """How the weights of that name are evaluated, as a `pretrained_cfg` says it; None for a name that timm does not have.

    Args:
        name: an architecture, with or without a folder before it and a tag such as ".augreg_in21k" behind it.
    """
    architecture, *tags = name.rsplit("/", 1)[-1].split(".")
    return PUBLISHED.get(".".join([architecture, *tags[:1]]), PUBLISHED.get(architecture))
