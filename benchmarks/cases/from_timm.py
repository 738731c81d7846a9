"""timm's models, tiny: their attention with the fused kernels off, read where it drops out."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from benchmarks.cases.truth import (
    REFUSED,
    RIGHT,
    TOLD,
    Case,
    Flow,
    Oracle,
    Truth,
    nothing,
    probed_places,
    raster,
)

PLAIN = {"embed_dim": 40, "depth": 3, "num_heads": 5, "num_classes": 7, "img_size": (48, 80)}
PROVEN = frozenset({RIGHT})
NOT_PROVEN = frozenset({TOLD, REFUSED})
SEEN = frozenset({RIGHT, TOLD})
ONLY_REFUSED = frozenset({REFUSED})
SQUARE = {"img_size": 64, "num_classes": 7}
WIDTHS: dict[str, Any] = {"embed_dims": (10, 20, 30, 40), "num_heads": (1, 2, 3, 4), "num_classes": 7}


def cases() -> Iterator[Case]:
    """Models of one attention over all patches per block, then those of other kinds."""
    yield from (_plain(name, prefix, **choices) for name, prefix, choices in _PLAIN)
    yield from _special()
    yield from (
        _case(name, nothing, ends=NOT_PROVEN, size=size, **choices) for name, size, choices in _OTHERS
    )


def dropped_out(model: nn.Module, pixels: Tensor) -> list[Tensor]:
    """What enters each dropout of attention in the order of the pass, [1, heads, queries, keys]."""
    seen: list[Tensor] = []
    for name, part in model.named_modules():
        if hasattr(part, "fused_attn"):
            part.fused_attn = False
        if name.endswith("attn_drop"):
            part.register_forward_pre_hook(lambda _, args: seen.append(args[0].detach().clone()))
    with torch.no_grad():
        model(pixels)
    return seen


class Softmaxes(TorchFunctionMode):
    """Every softmax over the last axis of a written-out attention, for models without a dropout of attention."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Tensor] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Called by torch in place of `func`."""
        output = func(*args, **(kwargs or {}))
        if func in (torch.Tensor.softmax, torch.softmax, torch.nn.functional.softmax):
            self.seen.append(output.detach().clone())
        return output


@torch.no_grad()
def softmaxes(model: nn.Module, pixels: Tensor) -> list[Tensor]:
    """What every softmax of the pass gives, in order."""
    with Softmaxes() as mode:
        model(pixels)
    return mode.seen


def over_all(attention: list[Tensor]) -> list[Tensor]:
    """Those over all tokens of the one image, [heads, tokens, tokens]."""
    square = [each for each in attention if each.shape[-1] == each.shape[-2] > 1]
    return [each[0] for each in square if each.ndim == 4 and len(each) == 1]


def timm_truth(
    model: Any,
    pixels: Tensor,
    *,
    grid: tuple[int, int],
    has_class: bool,
    flow: Flow = "chain",
    blocks: int | None = None,
) -> Truth:
    """Attention from the dropouts, places from the tokens that move."""
    places = probed_places(model, pixels, grid, model.blocks[0])
    calls = over_all(dropped_out(model, pixels))
    return Truth(calls, grid, places, 0 if has_class else None, flow, blocks)


def stem_truth(model: nn.Module, pixels: Tensor, *, grid: tuple[int, int], has_class: bool) -> Truth:
    """Patches of a convolutional stem overlap, so that no probe tells them apart; its feature map is flattened row by row."""
    calls = over_all(dropped_out(model, pixels))
    return Truth(calls, grid, raster(grid, first=int(has_class)), 0 if has_class else None)


def staged_truth(model: nn.Module, pixels: Tensor, *, grid: tuple[int, int], first: int = 0) -> Truth:
    """A pyramid: some calls are over all patches of their own stage, row by row as feature maps are flattened."""
    attention = dropped_out(model, pixels) or softmaxes(model, pixels)
    return Truth(over_all(attention), grid, raster(grid, first=first), flow="other", blocks=len(attention))


def _make(name: str, choices: dict[str, Any]) -> nn.Module:
    import timm

    model: nn.Module = timm.create_model(name, pretrained=False, **choices)
    return model


def _case(
    name: str,
    oracle: Oracle,
    *,
    size: tuple[int, int],
    ends: frozenset[str] | None = None,
    label: str = "",
    **choices: Any,
) -> Case:
    chosen = {} if ends is None else {"ends": ends}
    return Case(f"timm {name}{label}", partial(_make, name, choices), oracle, size, **chosen)


def _plain(name: str, has_class: bool, **choices: Any) -> Case:
    oracle = partial(timm_truth, grid=(3, 5), has_class=has_class)
    return _case(name, oracle, size=(48, 80), ends=PROVEN, **(PLAIN | choices))


_PLAIN: tuple[tuple[str, bool, dict[str, Any]], ...] = (
    ("vit_tiny_patch16_224", True, {}),
    ("vit_base_patch16_clip_224", True, {}),
    ("vit_base_patch16_siglip_224", False, {}),
    ("vit_base_patch16_siglip_gap_224", False, {}),
    ("vit_little_patch16_reg1_gap_256", False, {}),
    ("vit_small_patch14_reg4_dinov2", True, {"patch_size": 16}),
    ("vit_small_patch16_36x1_224", True, {}),
    ("vit_base_patch16_xp_224", True, {}),
    ("flexivit_small", True, {}),
    ("deit_tiny_distilled_patch16_224", True, {}),
    ("deit3_small_patch16_224", True, {}),
    ("vit_relpos_small_patch16_224", False, {}),
    ("vit_relpos_base_patch16_clsgap_224", True, {}),
    ("vit_srelpos_small_patch16_224", False, {}),
    ("beit_base_patch16_224", True, {}),
    ("beitv2_base_patch16_224", True, {}),
    ("eva_large_patch14_196", True, {"patch_size": 16}),
    ("eva02_tiny_patch14_224", True, {"patch_size": 16}),
    ("eva02_base_patch14_224", True, {"patch_size": 16}),
    ("vit_small_patch16_dinov3", True, {}),
    ("vit_pe_core_tiny_patch16_384", True, {}),
    ("vit_medium_patch16_rope_reg1_gap_256", False, {}),
    ("vit_small_patch16_rope_mixed_224", True, {}),
)


def _special() -> Iterator[Case]:
    """Models that need an oracle, a size or an expectation of their own."""
    small = {"size": (48, 80)}
    yield _case(
        "vit_small_patch16_18x2_224",
        partial(timm_truth, grid=(3, 5), has_class=True, flow="other", blocks=3),
        ends=NOT_PROVEN,
        **small,
        **PLAIN,
    )
    yield _case(
        "vit_dlittle_patch16_reg1_gap_256",
        differential_truth,
        ends=NOT_PROVEN,
        **small,
        **(PLAIN | {"embed_dim": 60}),
    )
    yield _case("cait_xxs24_224", cait_truth, ends=NOT_PROVEN, **small, **PLAIN)
    yield _case(
        "xcit_nano_12_p16_224",
        nothing,
        ends=ONLY_REFUSED,
        **small,
        **(PLAIN | {"embed_dim": 48, "num_heads": 4}),
    )
    naflex = {name: PLAIN[name] for name in ("embed_dim", "depth", "num_heads", "num_classes")}
    for size, grid in (((48, 80), (3, 5)), ((160, 320), (10, 20))):
        oracle = partial(timm_truth, grid=grid, has_class=False)
        for name in ("naflexvit_base_patch16_gap", "naflexvit_base_patch16_siglip"):
            yield _case(name, oracle, size=size, label=f" at {size[0]} x {size[1]}", **naflex)
    for depth, words in ((0, "no gated block"), (2, "2 of 3 gated"), (3, "all blocks gated")):
        oracle = partial(convit_truth, gated=depth)
        ends = frozenset({RIGHT, TOLD, REFUSED} if depth == 0 else {TOLD, REFUSED})
        yield _case(
            "convit_tiny",
            oracle,
            size=(48, 48),
            ends=ends,
            label=f", {words}",
            **(PLAIN | {"img_size": 48, "local_up_to_layer": depth}),
        )
    yield _case(
        "samvit_base_patch16", sam_truth, size=(64, 64), **(PLAIN | {"img_size": 64, "window_size": 0})
    )
    vitamin = partial(stem_truth, grid=(4, 4), has_class=False)
    yield _case("vitamin_small_224", vitamin, size=(64, 64), ends=SEEN, **SQUARE)
    for name in ("vit_tiny_r_s16_p8_224", "vit_small_r26_s32_224", "vit_base_resnet26d_224"):
        hybrid = partial(stem_truth, grid=(2, 3), has_class=True)
        yield _case(name, hybrid, size=(64, 96), ends=SEEN, **(PLAIN | {"img_size": (64, 96)}))
    yield from (
        _case(name, partial(staged_truth, grid=grid, first=first), size=size, ends=NOT_PROVEN, **choices)
        for name, size, grid, first, choices in _STAGED
    )


_STAGED: tuple[tuple[str, tuple[int, int], tuple[int, int], int, dict[str, Any]], ...] = (
    ("pvt_v2_b0", (64, 96), (2, 3), 0, {**WIDTHS, "depths": (1, 1, 2, 3)}),
    ("twins_pcpvt_small", (64, 96), (2, 3), 0, {**WIDTHS, "depths": (1, 1, 1, 2), "img_size": (64, 96)}),
    ("mobilenetv4_hybrid_medium", (64, 96), (2, 3), 0, {"num_classes": 7}),
    ("fastvit_sa12", (64, 96), (2, 3), 0, {"num_classes": 7}),
    ("nextvit_small", (64, 96), (2, 3), 0, {"num_classes": 7}),
    ("caformer_s18", (64, 96), (2, 3), 0, {"num_classes": 7}),
    ("mobilevitv2_050", (64, 96), (2, 3), 0, {"num_classes": 7}),
    ("efficientformer_l1", (224, 224), (7, 7), 0, {
        "num_classes": 7, "embed_dims": (12, 24, 32, 40), "depths": (1, 1, 1, 2), "num_vit": 1,
    }),
    ("efficientformerv2_s0", (64, 64), (2, 2), 0, SQUARE),
    ("pit_ti_224", (64, 64), (2, 2), 1, SQUARE),
    ("visformer_tiny", (64, 64), (2, 2), 0, SQUARE),
    ("coatnet_0_rw_224", (64, 64), (2, 2), 0, {
        **SQUARE, "embed_dim": (32, 32, 32, 64), "depths": (1, 1, 2, 1), "stem_width": 16,
    }),
)  # fmt: skip

_SWIN = {"embed_dim": 20, "depths": (2, 2), "num_heads": (1, 1), "num_classes": 7}
_OTHERS: tuple[tuple[str, tuple[int, int], dict[str, Any]], ...] = (
    ("twins_svt_small", (64, 64), {**WIDTHS, "depths": (1, 1, 2, 1), "img_size": 64}),
    ("swin_tiny_patch4_window7_224", (56, 56), {**_SWIN, "img_size": 56, "window_size": 7}),
    ("swinv2_tiny_window8_256", (64, 64), {**_SWIN, "img_size": 64, "window_size": 8}),
    ("swinv2_cr_tiny_224", (56, 56), {**_SWIN, "img_size": 56, "window_size": 7}),
    ("maxvit_rmlp_pico_rw_256", (64, 64), {**SQUARE, "embed_dim": (32, 32, 32, 64), "depths": (1, 1, 1, 1)}),
    ("levit_128s", (64, 64), {**SQUARE, "embed_dim": (32, 48, 64), "num_heads": (2, 3, 4), "depth": (1, 2, 2), "key_dim": 8}),
    ("volo_d1_224", (64, 64), SQUARE),
    ("hiera_tiny_224", (64, 96), {"img_size": (64, 96), "embed_dim": 16, "num_heads": 1, "stages": (1, 1, 2, 1), "num_classes": 7}),
    ("mvitv2_tiny", (64, 64), SQUARE),
    ("nest_tiny", (64, 64), SQUARE),
    ("mobilevit_xxs", (64, 64), {"num_classes": 7}),
    ("efficientvit_b0", (64, 64), {"num_classes": 7}),
    ("efficientvit_m0", (64, 64), {"num_classes": 7}),
    ("crossvit_tiny_240", (240, 240), {
        "img_size": 240, "embed_dim": (20, 40), "num_heads": (5, 5), "num_classes": 7, "depth": ((1, 2, 0), (1, 1, 0)),
    }),
    ("tnt_s_legacy_patch16_224", (64, 64), {
        **SQUARE, "embed_dim": 40, "inner_dim": 8, "depth": 3, "num_heads_inner": 2, "num_heads_outer": 5,
    }),
    ("davit_tiny", (64, 64), {"num_classes": 7, "embed_dims": (8, 16, 24, 32), "num_heads": (1, 2, 3, 4), "depths": (1, 1, 1, 1)}),
    ("gcvit_xxtiny", (224, 224), {"num_classes": 7, "img_size": 224}),
    ("edgenext_xx_small", (64, 64), {"num_classes": 7}),
    ("coat_tiny", (64, 64), SQUARE),
    ("tiny_vit_5m_224", (64, 64), {"num_classes": 7}),
    ("botnet26t_256", (64, 64), SQUARE),
    ("halonet26t", (256, 256), {"num_classes": 7, "img_size": 256}),
    ("lambda_resnet26t", (64, 64), SQUARE),
    ("swiftformer_xs", (64, 64), {"num_classes": 7}),
    ("mixer_s32_224", (64, 64), SQUARE),
    ("resnet10t", (64, 64), {"num_classes": 7}),
)  # fmt: skip


def differential_truth(model: Any, pixels: Tensor) -> Truth:
    """Two softmaxes per block, of which the second is subtracted; timm has their heads in turn."""
    calls = [half for both in over_all(dropped_out(model, pixels)) for half in (both[0::2], both[1::2])]
    return Truth(calls, (3, 5), probed_places(model, pixels, (3, 5), model.blocks[0]), flow="other", blocks=3)


def cait_truth(model: Any, pixels: Tensor) -> Truth:
    """Softmaxes before their heads are mixed, from what the mixing layer is given: [1, tokens, tokens, heads]."""
    calls: list[Tensor] = []
    places = probed_places(model, pixels, (3, 5), model.blocks[0])
    for block in model.blocks:
        block.attn.proj_w.register_forward_pre_hook(
            lambda _, args: calls.append(args[0][0].permute(2, 0, 1).clone())
        )
    with torch.no_grad():
        model(pixels)
    return Truth(calls, (3, 5), places, flow="altered")


def convit_truth(model: Any, pixels: Tensor, *, gated: int) -> Truth:
    """Gated blocks mix a softmax over contents with one over positions; a class token joins the blocks after them."""
    if gated == 0:
        attention = [each[0] for each in dropped_out(model, pixels)]
        return Truth(attention, (3, 3), raster((3, 3), first=1), 0)  # the class token joins before block 0
    return Truth(over_all(softmaxes(model, pixels)), (3, 3), raster((3, 3), first=0), flow="other", blocks=3)


def sam_truth(model: Any, pixels: Tensor) -> Truth:
    """Calls over the whole feature map: timm drops out [heads, tokens, tokens] there."""
    calls = [each.reshape(-1, *each.shape[-2:]) for each in dropped_out(model, pixels)]
    return Truth(calls, (4, 4), probed_places(model, pixels, (4, 4), model.blocks[0]))
