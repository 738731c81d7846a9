"""What timm's architecture names say and the shapes of the parameters do not, as data.

No shape tells the number of heads, nor the epsilon of the norms, the kind of GELU, whether a model with a class token
averages its patches, rotary positions, or an input of which some pixels are in no patch. A test compares the table with timm's own
registry.
"""

from __future__ import annotations

from typing import Any

_EVA02 = {"rotary_grid": (16, 16), "rotary_base": 10_000.0}

_GROUPS: tuple[tuple[dict[str, Any], str], ...] = (
    ({"num_heads": 2}, "test_vit test_vit2"),
    ({"num_heads": 3}, """
        deit_tiny_distilled_patch16_224 deit_tiny_patch16_224 test_vit4 vit_tiny_patch16_224 vit_tiny_patch16_384
    """),
    ({"num_heads": 4}, "vit_wee_patch16_reg1_gap_256"),
    ({"num_heads": 5}, "vit_little_patch16_reg1_gap_256 vit_little_patch16_reg4_gap_256"),
    ({"num_heads": 6}, """
        deit3_small_patch16_224 deit3_small_patch16_384 deit_small_distilled_patch16_224 deit_small_patch16_224
        vit_small_patch14_dinov2 vit_small_patch14_reg4_dinov2 vit_small_patch16_224 vit_small_patch16_36x1_224
        vit_small_patch16_384 vit_small_patch32_224 vit_small_patch32_384 vit_small_patch8_224
    """),
    ({"num_heads": 8}, """
        deit3_medium_patch16_224 vit_medium_patch16_gap_240 vit_medium_patch16_gap_256 vit_medium_patch16_gap_384
        vit_medium_patch16_reg1_gap_256 vit_medium_patch16_reg4_gap_256 vit_mediumd_patch16_reg4_gap_256
        vit_mediumd_patch16_reg4_gap_384
    """),
    ({"num_heads": 10}, """
        vit_betwixt_patch16_gap_256 vit_betwixt_patch16_reg1_gap_256 vit_betwixt_patch16_reg4_gap_256
        vit_betwixt_patch16_reg4_gap_384
    """),
    ({"num_heads": 12}, """
        deit3_base_patch16_224 deit3_base_patch16_384 deit_base_distilled_patch16_224 deit_base_distilled_patch16_384
        deit_base_patch16_224 deit_base_patch16_384 vit_base_patch14_dinov2 vit_base_patch14_reg1_tipsv2
        vit_base_patch14_reg4_dinov2 vit_base_patch16_224 vit_base_patch16_224_miil vit_base_patch16_384
        vit_base_patch16_reg4_gap_256 vit_base_patch16_siglip_224 vit_base_patch16_siglip_256 vit_base_patch16_siglip_384
        vit_base_patch16_siglip_512 vit_base_patch16_siglip_gap_224 vit_base_patch16_siglip_gap_256
        vit_base_patch16_siglip_gap_384 vit_base_patch16_siglip_gap_512 vit_base_patch32_224 vit_base_patch32_384
        vit_base_patch8_224
    """),
    ({"num_heads": 13}, """
        vit_so150m2_patch16_reg1_gap_256 vit_so150m2_patch16_reg1_gap_384 vit_so150m2_patch16_reg1_gap_448
    """),
    ({"num_heads": 14}, """
        vit_base_patch16_plus_240 vit_base_patch32_plus_256 vit_so150m_patch16_reg4_gap_256 vit_so150m_patch16_reg4_gap_384
        vit_so150m_patch16_reg4_map_256
    """),
    ({"num_heads": 16}, """
        deit3_huge_patch14_224 deit3_large_patch16_224 deit3_large_patch16_384 vit_base_patch16_gap_224 vit_giant_patch14_224
        vit_giant_patch16_gap_224 vit_gigantic_patch14_224 vit_huge_patch14_224 vit_huge_patch14_gap_224
        vit_huge_patch16_gap_448 vit_intern300m_patch14_448 vit_large_patch14_224 vit_large_patch14_dinov2
        vit_large_patch14_reg1_tipsv2 vit_large_patch14_reg4_dinov2 vit_large_patch16_224 vit_large_patch16_384
        vit_large_patch16_siglip_256 vit_large_patch16_siglip_384 vit_large_patch16_siglip_gap_256
        vit_large_patch16_siglip_gap_384 vit_large_patch32_224 vit_large_patch32_384 vit_so400m_patch14_reg1_tipsv2
        vit_so400m_patch14_siglip_224 vit_so400m_patch14_siglip_378 vit_so400m_patch14_siglip_gap_224
        vit_so400m_patch14_siglip_gap_378 vit_so400m_patch14_siglip_gap_448 vit_so400m_patch14_siglip_gap_896
    """),
    ({"num_heads": 24}, """
        vit_giant_patch14_dinov2 vit_giant_patch14_reg1_tipsv2 vit_giant_patch14_reg4_dinov2
    """),
    ({"num_heads": 16, "img_size": (384, 384)}, """
        vit_so400m_patch14_siglip_384 vit_so400m_patch14_siglip_gap_384
    """),
    ({"num_heads": 12, "mlp": "gelu_tanh"}, "vit_base_patch32_siglip_256 vit_base_patch32_siglip_gap_256"),
    ({"num_heads": 16, "mlp": "gelu_tanh"}, """
        vit_giantopt_patch16_siglip_256 vit_giantopt_patch16_siglip_384 vit_giantopt_patch16_siglip_gap_256
        vit_giantopt_patch16_siglip_gap_384 vit_large_patch16_siglip_512 vit_large_patch16_siglip_gap_512
        vit_so400m_patch16_siglip_256 vit_so400m_patch16_siglip_384 vit_so400m_patch16_siglip_512
        vit_so400m_patch16_siglip_gap_256 vit_so400m_patch16_siglip_gap_384 vit_so400m_patch16_siglip_gap_512
    """),
    ({"num_heads": 4, "norm_eps": 1e-05}, "vit_xsmall_patch16_clip_224"),
    ({"num_heads": 8, "norm_eps": 1e-05}, """
        aimv2_large_patch14_224 aimv2_large_patch14_336 aimv2_large_patch14_448 vit_medium_patch16_clip_224
        vit_medium_patch32_clip_224
    """),
    ({"num_heads": 10, "norm_eps": 1e-05}, "vit_betwixt_patch32_clip_224"),
    ({"num_heads": 12, "norm_eps": 1e-05}, """
        aimv2_huge_patch14_224 aimv2_huge_patch14_336 aimv2_huge_patch14_448 vit_base_patch16_clip_224 vit_base_patch16_clip_384
        vit_base_patch32_clip_224 vit_base_patch32_clip_256 vit_base_patch32_clip_384 vit_base_patch32_clip_448
    """),
    ({"num_heads": 14, "norm_eps": 1e-05}, "vit_base_patch16_plus_clip_240"),
    ({"num_heads": 16, "norm_eps": 1e-05}, """
        aimv2_1b_patch14_224 aimv2_1b_patch14_336 aimv2_1b_patch14_448 vit_giant_patch14_clip_224 vit_gigantic_patch14_clip_224
        vit_gigantic_patch14_clip_378 vit_huge_patch14_clip_224 vit_huge_patch14_clip_336 vit_huge_patch14_clip_378
        vit_large_patch14_clip_224 vit_large_patch14_clip_336
    """),
    ({"num_heads": 24, "norm_eps": 1e-05}, "aimv2_3b_patch14_224 aimv2_3b_patch14_336 aimv2_3b_patch14_448"),
    ({"num_heads": 12, "norm_eps": 1e-05, "mlp": "quick_gelu"}, """
        vit_base_patch16_clip_quickgelu_224 vit_base_patch32_clip_quickgelu_224
    """),
    ({"num_heads": 16, "norm_eps": 1e-05, "mlp": "quick_gelu"}, """
        vit_gigantic_patch14_clip_quickgelu_224 vit_huge_patch14_clip_quickgelu_224 vit_huge_patch14_clip_quickgelu_378
        vit_large_patch14_clip_quickgelu_224 vit_large_patch14_clip_quickgelu_336
    """),
    ({"num_heads": 3, "norm_eps": 1e-05, "pooling": "mean"}, "vit_tiny_patch16_dinov3_qkvb"),
    ({"num_heads": 6, "norm_eps": 1e-05, "pooling": "mean"}, """
        vit_small_patch16_dinov3 vit_small_patch16_dinov3_qkvb vit_small_plus_patch16_dinov3 vit_small_plus_patch16_dinov3_qkvb
    """),
    ({"num_heads": 12, "norm_eps": 1e-05, "pooling": "mean"}, """
        beit3_base_patch16_224 vit_base_patch16_dinov3 vit_base_patch16_dinov3_qkvb
    """),
    ({"num_heads": 16, "norm_eps": 1e-05, "pooling": "mean"}, """
        beit3_giant_patch14_224 beit3_giant_patch14_336 beit3_large_patch16_224 vit_large_patch16_dinov3
        vit_large_patch16_dinov3_qkvb
    """),
    ({"num_heads": 20, "norm_eps": 1e-05, "pooling": "mean"}, """
        vit_huge_plus_patch16_dinov3 vit_huge_plus_patch16_dinov3_qkvb
    """),
    ({"num_heads": 32, "norm_eps": 1e-05, "pooling": "mean"}, "vit_7b_patch16_dinov3"),
    ({"num_heads": 3, "pool_prefix": True}, "test_vit3"),
    ({"num_heads": 12, "pooling": "mean"}, "beit_base_patch16_224 beit_base_patch16_384 beitv2_base_patch16_224"),
    ({"num_heads": 16, "pooling": "mean"}, """
        beit_large_patch16_224 beit_large_patch16_384 beit_large_patch16_512 beitv2_large_patch16_224 eva_giant_patch14_224
        eva_giant_patch14_336 eva_giant_patch14_560 eva_large_patch14_196 eva_large_patch14_336
    """),
    ({"num_heads": 16}, "eva_giant_patch14_clip_224"),
    ({"num_heads": 12, **_EVA02}, "eva02_base_patch16_clip_224"),
    ({"num_heads": 16, **_EVA02}, "eva02_large_patch14_clip_224 eva02_large_patch14_clip_336"),
    ({"num_heads": 3, "pooling": "mean", **_EVA02}, "eva02_tiny_patch14_224 eva02_tiny_patch14_336"),
    ({"num_heads": 6, "pooling": "mean", **_EVA02}, "eva02_small_patch14_224 eva02_small_patch14_336"),
    ({"num_heads": 12, "pooling": "mean", **_EVA02}, "eva02_base_patch14_224 eva02_base_patch14_448"),
    ({"num_heads": 16, "pooling": "mean", **_EVA02}, "eva02_large_patch14_224 eva02_large_patch14_448"),
    ({"num_heads": 6, "resample": "bilinear"}, "flexivit_small"),
    ({"num_heads": 12, "resample": "bilinear"}, "flexivit_base vit_base_patch16_radio_v3"),
    ({"num_heads": 16, "resample": "bilinear"}, """
        flexivit_large vit_huge_patch16_radio_v3 vit_huge_patch16_radio_v4 vit_large_patch16_radio_v3
        vit_so400m_patch16_radio_v4
    """),
    ({"num_heads": 24, "resample": "bilinear"}, "vit_giant_patch16_radio_v3"),
    ({"refused": "differential attention"}, """
        vit_dlittle_patch16_reg1_gap_256 vit_dpwee_patch16_reg1_gap_256 vit_dwee_patch16_reg1_gap_256
    """),
    ({"refused": "norms after the branches"}, "eva02_enormous_patch14_clip_224 vit_base_patch16_rpn_224"),
    ({"refused": "parallel blocks"}, """
        vit_base_patch16_18x2_224 vit_base_patch16_xp_224 vit_huge_patch14_xp_224 vit_large_patch14_xp_224
        vit_pwee_patch16_reg1_gap_256 vit_small_patch16_18x2_224
    """),
)  # fmt: skip

ARCHITECTURES: dict[str, dict[str, Any]] = {
    name: settings for settings, names in _GROUPS for name in names.split()
}
"""Each architecture with what its shapes do not say."""


def architecture(name: str) -> dict[str, Any] | None:
    """What is known of an architecture: entries of a ViTConfig, or {"refused": why}; None for a name that timm does not have.

    Args:
        name: an architecture, with or without "timm/" before it and a tag such as ".augreg_in21k" or ".fp16" after it.
    """
    return ARCHITECTURES.get(name.rsplit("/", 1)[-1].split(".")[0])
