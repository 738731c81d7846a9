"""Which family a file belongs to, by the names of its parameters alone, one name more or less at a time."""

from __future__ import annotations

import pytest
import torch

from vit_viz.checkpoints.families import FAMILIES, family_of
from vit_viz.checkpoints.families.base import Checkpoint, Family
from vit_viz.errors import UnknownFamily

QKV, EMBED = "blocks.0.attn.qkv.weight", "patch_embed.proj.weight"
TIMM, DINO, DINOV3, BEIT = "timm ViT", "DINO / DINOv2 (original)", "DINOv3", "BEiT / EVA"


def file(*names: str, called: str = "", **config: str) -> Checkpoint:
    return Checkpoint({name: torch.zeros(1) for name in names}, config, called)


def matching(checkpoint: Checkpoint) -> list[str]:
    """All families that take a file for theirs, in the order in which they are asked."""
    return [family.NAME for family in FAMILIES if family.matches(checkpoint)]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ((QKV, EMBED), [TIMM]),
        ((QKV, EMBED, "pos_embed"), [TIMM]),
        ((QKV, EMBED, "pos_embed", "blocks.0.ls1.gamma"), [TIMM]),
        ((QKV, EMBED, "pos_embed", "reg_token"), [TIMM]),
        (
            (QKV, EMBED, "reg_token"),
            [TIMM],
        ),  # no position table: positions may be fixed, or there may be none
        ((QKV, "pos_embed"), []),
        ((EMBED, "pos_embed"), []),
        ((QKV, EMBED, "pos_embed", "blocks.0.gamma_1"), []),
        ((QKV, EMBED, "pos_embed", "storage_tokens"), []),
        ((QKV, EMBED, "pos_embed", "mask_token"), []),
        ((QKV, EMBED, "pos_embed", "register_tokens"), []),
        ((QKV, EMBED, "pos_embed", "blocks.0.attn.relative_position_bias_table"), [BEIT]),
        ((QKV, EMBED, "rel_pos_bias.relative_position_bias_table", "blocks.0.gamma_1"), [BEIT]),
        ((QKV, "rel_pos_bias.relative_position_bias_table"), []),
        ((QKV, EMBED, "pos_embed", "blocks.0.attn.q_bias"), [BEIT]),
        ((QKV, EMBED, "blocks.0.attn.q_bias"), []),
        ((EMBED, "pos_embed", "blocks.0.attn.q_proj.bias"), [BEIT]),
        ((EMBED, "pos_embed", "blocks.0.attn.q_proj.bias", "blocks.0.attn.k_proj.bias"), []),
    ],
)
def test_timms_names_with_nothing_that_others_have(names: tuple[str, ...], expected: list[str]) -> None:
    assert matching(file(*names)) == expected


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ((QKV, EMBED, "storage_tokens"), [DINOV3]),
        ((QKV, EMBED, "reg_token", "blocks.0.gamma_1"), [DINOV3]),
        ((QKV, EMBED, "rope_embed.periods"), [DINOV3, TIMM]),  # the first one is taken
        ((QKV, EMBED, "blocks.0.gamma_1"), []),
        ((QKV, EMBED, "storage_tokens", "pos_embed"), []),
        ((QKV, EMBED, "reg_token", "blocks.0.gamma_1", "pos_embed"), []),
        ((EMBED, "storage_tokens", "blocks.0.gamma_1"), []),
    ],
)
def test_dinov3_has_registers_or_periods_and_no_position_table(
    names: tuple[str, ...], expected: list[str]
) -> None:
    assert matching(file(*names)) == expected


@pytest.mark.parametrize(
    ("called", "architecture"),
    [("timm/vit_small_patch16_dinov3.lvd1689m", ""), ("", "vit_small_patch16_DINOv3_qkvb")],
)
def test_dinov3_without_registers_is_known_by_its_name(called: str, architecture: str) -> None:
    names = (QKV, EMBED, "blocks.0.gamma_1")
    assert matching(file(*names, called=called, architecture=architecture)) == [DINOV3]
    assert matching(file(QKV, EMBED, called=called, architecture=architecture)) == [TIMM]
    assert matching(file(*names, "pos_embed", called=called, architecture=architecture)) == []


@pytest.mark.parametrize(
    ("names", "called", "expected"),
    [
        (("pos_embed", "mask_token", "blocks.0.ls1.gamma"), "", [DINO]),
        (("pos_embed", "mask_token"), "", []),
        (("mask_token", "blocks.0.ls1.gamma"), "", []),
        (("pos_embed",), "dino_deitsmall16_pretrain", [DINO, TIMM]),
        (("pos_embed",), "my_dino_model", [TIMM]),
        (("pos_embed", "head.weight"), "dino_deitsmall16_pretrain", [TIMM]),
        (("backbone.blocks.0.attn.qkv.weight",), "", [DINO, TIMM]),
    ],
)
def test_the_authors_dino_is_known_by_its_mask_its_name_or_its_wrapper(
    names: tuple[str, ...], called: str, expected: list[str]
) -> None:
    assert matching(file(QKV, EMBED, *names, called=called)) == expected


def family(name: str) -> Family:
    return {one.NAME: one for one in FAMILIES}[name]


def test_of_several_families_the_first_is_taken() -> None:
    assert family_of(file(QKV, EMBED, "rope_embed.periods")) is family(DINOV3)
    assert family_of(file(QKV, EMBED, "pos_embed", called="dino_vitbase8")) is family(DINO)
    assert family_of(file(QKV, EMBED)) is family(TIMM)


def test_what_no_family_knows_is_named_by_its_first_parameters() -> None:
    with pytest.raises(UnknownFamily, match=r"Its 3 parameters begin with blocks\.0\.attn\.qkv\.weight, m"):
        family_of(file(QKV, "mask_token", "pos_embed"))
