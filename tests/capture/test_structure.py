"""A trace says "proven" only where its calls are complete, placed and effective; elsewhere it says what its pictures are."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from tests.capture import misleading as made, stand_ins
from tests.capture.misleading import Attend, Block, Model, blocks, ready
from tests.capture.models import own, pixels, timm_vit, torchvision_vit, transformers_vit
from vit_viz.analyses.rollout import rollout
from vit_viz.capture import PackedTrace, Trace, placement, trace, verified
from vit_viz.capture.layers import LayerAttention
from vit_viz.capture.proof import largest_differences
from vit_viz.errors import CaptureError, ParameterError
from vit_viz.geometry import TokenLayout

LAYOUT = TokenLayout(grid=(4, 6))
PATCHES_ONLY = TokenLayout(grid=(4, 6), prefix=())


def traced(model: nn.Module, layout: TokenLayout = LAYOUT) -> Trace:
    return trace(ready(model), pixels(), layout=layout)


@pytest.mark.parametrize(
    "make", [own, timm_vit, transformers_vit, lambda: ready(Model(blocks(*[Attend] * 3)))]
)
def test_ordinary_models_are_proven(make: Callable[[], nn.Module]) -> None:
    recorded = trace(make(), pixels(), layout=LAYOUT)
    assert recorded.proof_status == "proven"
    assert {check.status for check in recorded.proof_report.checks.values()} == {"holds"}
    assert recorded.proof_report.sentence == ""


def test_blocks_numbered_in_their_names_are_one_stack() -> None:
    recorded = trace(torchvision_vit(), pixels(size=(64, 64)))
    assert recorded.proof_report.complete.status == "holds"


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_other_precisions_are_checked_too(dtype: torch.dtype) -> None:
    assert trace(timm_vit().to(dtype), pixels()).proof_status == "proven"


@pytest.mark.parametrize("hidden", [made.Aten, made.Exponential, made.Sigmoid, made.Kernelised])
@pytest.mark.parametrize("order", ["at the end", "in between"])
def test_blocks_that_attend_unseen_are_refused_by_name(hidden: type[nn.Module], order: str) -> None:
    kinds = [Attend, Attend, hidden, hidden] if order == "at the end" else [Attend, hidden, Attend, hidden]
    names = "blocks.2, blocks.3" if order == "at the end" else "blocks.1, blocks.3"
    with pytest.raises(CaptureError, match=rf"2 of the 4 blocks of Model .* cannot be recorded \({names}\)"):
        traced(Model(blocks(*kinds))).wait()


def test_an_unseen_first_block_is_refused() -> None:
    with pytest.raises(CaptureError):
        traced(Model(blocks(made.Sigmoid, Attend, Attend))).wait()


def test_a_scripted_block_is_refused() -> None:
    model = ready(Model(blocks(*[Attend] * 4)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own, about a thing of the past that people still load
        for place in (1, 3):
            model.blocks[place] = torch.jit.trace(model.blocks[place], torch.randn(1, 25, 40))  # type: ignore
    with pytest.raises(CaptureError, match=r"2 of the 4 blocks"):
        traced(model).wait()


@pytest.mark.parametrize("kind", [made.Gated, made.TalkingHeads])
def test_what_is_gated_or_mixed_after_the_attention_is_told(kind: type[nn.Module]) -> None:
    report = traced(Model(blocks(Attend, kind, Attend))).proof_report
    assert report.status == "captured, not proven"
    assert report.effective.status == "fails"
    assert "layer 1 passes on is not attention @ v" in report.effective.sentence


def test_differential_attention_is_told_and_not_followed_through_layers() -> None:
    recorded = traced(Model(blocks(made.Differential, made.Differential)))
    report = recorded.proof_report
    assert recorded.num_layers == 4
    assert report.status == "captured, not proven"
    assert (report.complete.status, report.effective.status) == ("fails", "fails")
    assert "layer 1 does not read what layer 0 wrote" in report.sentence
    with pytest.raises(CaptureError, match="not defined for this model"):
        rollout(recorded)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (
            lambda: Model([made.ParallelBlock() for _ in range(2)]),
            "layer 1 does not read what layer 0 wrote",
        ),
        (
            lambda: made.CrossAttending([made.Decoder() for _ in range(2)]),
            "Layer 1 reads more of the image than what layer 0 wrote",
        ),
    ],
)
def test_two_attentions_of_a_block_are_not_two_layers(model: Callable[[], nn.Module], words: str) -> None:
    recorded = traced(model())
    assert recorded.num_layers == 4
    assert recorded.proof_status == "captured, not proven"
    assert words in recorded.proof_report.complete.sentence
    with pytest.raises(CaptureError):
        rollout(recorded)


def test_encoder_and_decoder_are_told_apart() -> None:
    recorded = traced(made.TwoStacks(blocks(*[Attend] * 3)))
    sentence = recorded.proof_report.sentence
    assert recorded.proof_status == "captured, not proven"
    assert "3 in blocks.*.attention, 2 in decoder.*.attention" in sentence


def test_a_convolution_beside_the_attention_is_told() -> None:
    recorded = traced(Model(blocks(Attend, made.WithConvolution, Attend)))
    assert recorded.proof_report.complete.status == "fails"
    assert "before layer 2" in recorded.proof_report.sentence


def test_mixing_after_the_last_layer_is_told() -> None:
    recorded = traced(made.MeanAddedToAll(blocks(Attend, Attend)))
    assert "after the last layer" in recorded.proof_report.complete.sentence


@pytest.mark.parametrize("model", [made.ClassLast, made.ColumnByColumn, made.Shuffled])
def test_tokens_in_another_order_are_refused(model: type[Model]) -> None:
    with pytest.raises(CaptureError, match="not the 4 x 6 patches of its image in this order"):
        traced(model(blocks(Attend, Attend)))


@pytest.mark.parametrize(
    "model",
    [lambda: Model([made.Reversed() for _ in range(3)]), lambda: made.TwoPasses(blocks(Attend, Attend))],
)
def test_tokens_that_change_places_between_layers_are_refused(model: Callable[[], nn.Module]) -> None:
    with pytest.raises(CaptureError, match="change places"):
        traced(model()).wait()


@pytest.mark.parametrize("axis", [1, 2], ids=["rows", "columns"])
def test_two_distant_rows_or_columns_that_change_places_are_refused(axis: int) -> None:
    class Swapping(Block):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            patches = super().forward(x)[:, 1:].unflatten(1, LAYOUT.grid)
            last, size = LAYOUT.grid[axis - 1] - 1, LAYOUT.grid[axis - 1]
            order = torch.tensor([*range(size - 2), last, last - 1])
            return torch.cat([x[:, :1], patches.index_select(axis, order).flatten(1, 2)], dim=1)

    with pytest.raises(CaptureError, match="change places"):
        traced(Model([Swapping(Attend) for _ in range(3)])).wait()


def test_the_sentence_says_which_patch_a_token_stands_for() -> None:
    with pytest.raises(
        CaptureError, match=r"token 2, which would be patch \(0, 1\), answers to patch \(1, 0\)"
    ):
        traced(made.ColumnByColumn(blocks(Attend)))


def test_the_right_layout_of_another_order_is_proven() -> None:
    layout = TokenLayout(grid=(4, 6), prefix=(), suffix=("class",))
    assert traced(made.ClassLast(blocks(Attend, Attend)), layout).proof_status == "proven"


def test_overlapping_windows_of_the_embedding_are_told() -> None:
    report = traced(made.OverlappingEmbedding(blocks(Attend, Attend))).proof_report
    assert report.status == "captured, not proven"
    assert report.placed.status == "fails"
    assert "reach the tokens of others too" in report.sentence
    assert report.complete.status == "holds"


def test_where_many_changed_patches_would_reach_every_token_few_are_changed() -> None:
    report = traced(made.FarOverlappingEmbedding(blocks(Attend, Attend)), PATCHES_ONLY).proof_report
    assert report.placed.status == "fails"
    assert report.complete.status == "holds"


def test_channels_are_not_patches() -> None:
    with pytest.raises(CaptureError, match="not the 4 x 6 patches"):
        traced(made.ChannelModel(), PATCHES_ONLY)


def test_windows_with_one_head_are_not_heads() -> None:
    with pytest.raises(CaptureError, match="windows stand in the place of heads"):
        traced(made.WindowModel(), TokenLayout(grid=(2, 6), prefix=()))


def test_windows_that_changes_cut_alike_are_not_heads() -> None:
    with pytest.raises(CaptureError, match="windows stand in the place of heads"):
        traced(made.WindowModel(), TokenLayout(grid=(1, 12), prefix=()))


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (lambda: Model(blocks(Attend, made.Twice, Attend)), "layer 1 passes on is not attention @ v"),
        (lambda: made.ClassApart(blocks(Attend, Attend)), "Further attention runs between layers 0 and 1"),
    ],
)
def test_what_the_recorded_attention_leaves_out_is_told(model: Callable[[], nn.Module], words: str) -> None:
    recorded = traced(model(), PATCHES_ONLY if "Further" in words else LAYOUT)
    assert recorded.proof_status == "captured, not proven"
    assert words in recorded.proof_report.sentence


def test_keys_that_stand_elsewhere_than_their_tokens_are_refused() -> None:
    with pytest.raises(CaptureError, match="change places"):
        traced(Model(blocks(Attend, made.RolledKeys, Attend))).wait()


def test_parts_of_blocks_that_stand_in_turn_are_no_unseen_blocks() -> None:
    class Residual(nn.Module):
        def __init__(self, inner: nn.Module) -> None:
            super().__init__()
            self.inner = inner

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + self.inner(x)  # type: ignore[no-any-return]

    parts = [Residual(inner) for _ in range(3) for inner in (Attend(), nn.Linear(40, 40))]
    assert traced(Model(parts)).proof_status == "proven"


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_the_proof_is_relative_to_the_size_of_what_was_computed(size: float) -> None:
    class Sized(Attend):
        def gathered(self, q: Tensor, k: Tensor, v: Tensor, x: Tensor) -> Tensor:
            return super().gathered(q, k, size * v, x)

    recorded = traced(Model(blocks(*[Sized] * 3)))
    assert recorded.proof_status == "proven"
    assert 0 < max(recorded.proof) < 1e-5


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_an_output_that_is_one_percent_too_large_is_seen_at_every_size(size: float) -> None:
    layer = LayerAttention(q=torch.randn(2, 5, 3), k=torch.randn(2, 5, 3), scale=0.5)
    value = size * torch.randn(2, 5, 4)
    output = 1.01 * layer.rows(None, slice(0, 5)) @ value
    (largest_difference,) = largest_differences(layer, value, output, slice(0, 5)).tolist()
    assert largest_difference == pytest.approx(0.01 / 1.01, rel=1e-3)


def test_an_output_of_nothing_has_no_difference_from_nothing() -> None:
    layer = LayerAttention(q=torch.randn(2, 5, 3), k=torch.randn(2, 5, 3), scale=0.5)
    nothing = torch.zeros(2, 5, 4)
    assert largest_differences(layer, nothing, nothing, slice(0, 5)).tolist() == [0.0]
    assert largest_differences(layer, nothing + 1, nothing, slice(0, 5))[0] > 1e10


def test_a_buffer_that_counts_passes_counts_the_trace_alone() -> None:
    class Counting(Model):
        def __init__(self, parts: list[nn.Module]) -> None:
            super().__init__(parts)
            self.register_buffer("passes", torch.zeros(1))
            self.register_buffer("latest", torch.zeros(1))

        def forward(self, image: torch.Tensor) -> torch.Tensor:
            self.passes += 1
            self.latest = self.passes.clone()
            return super().forward(image)

    model = Counting(blocks(Attend, Attend))
    traced(model)
    assert (model.passes.item(), model.latest.item()) == (1, 1)  # type: ignore[operator]


def test_a_head_that_answers_to_nothing_is_no_window() -> None:
    model = ready(Model(blocks(Attend, Attend)))
    with torch.no_grad():
        for values in (model.blocks[0].attention.qkv.weight, model.blocks[0].attention.qkv.bias):  # type: ignore[union-attr, index]
            values[:8] = 0  # the first head's queries
    assert trace(model, pixels(), layout=LAYOUT).proof_status == "proven"


def test_unknown_layouts_are_advised_only_where_the_tokens_answer_to_patches() -> None:
    with pytest.raises(ParameterError, match=r"layout=TokenLayout\(grid=\(4, 6\), prefix=\('class',\)\)"):
        trace(ready(Model(blocks(Attend))), pixels())
    with pytest.raises(ParameterError, match=r"prefix=\(\), suffix=\('class',\)"):
        trace(ready(made.ClassLast(blocks(Attend))), pixels())
    with pytest.raises(
        ParameterError, match="responds to pixels all over the image, as when attention runs over channels"
    ):
        trace(ready(made.ChannelModel()), pixels())


def test_a_model_that_takes_one_image_at_a_time_is_checked_too() -> None:
    class Single(Model):
        def forward(self, image: torch.Tensor) -> torch.Tensor:
            if len(image) != 1:
                raise RuntimeError("one image only")
            return super().forward(image)

    assert traced(Single(blocks(Attend, Attend))).proof_status == "proven"
    with pytest.raises(CaptureError, match="2 of the 3 blocks"):
        traced(Single(blocks(Attend, made.Sigmoid, made.Sigmoid))).wait()
    with pytest.raises(CaptureError, match="in this order"):
        traced(type("SingleShuffled", (made.ColumnByColumn, Single), {})(blocks(Attend)))


def test_what_only_one_of_the_images_shows_is_told_too() -> None:
    class Deciding(Attend):
        twice = False

        def gathered(self, q: Tensor, k: Tensor, v: Tensor, x: Tensor) -> Tensor:  # noqa: ARG002
            weights = (q @ k.transpose(-2, -1) / 8**0.5).softmax(-1)
            return weights @ (weights @ v) if self.twice else weights @ v

    class Single(Model):
        def forward(self, image: Tensor) -> Tensor:
            if len(image) != 1:
                raise RuntimeError("one image only")
            self.blocks[1].attention.twice = not torch.equal(image, pixels())  # type: ignore[union-attr]
            return super().forward(image)

    recorded = traced(Single(blocks(Attend, Deciding, Attend)))
    assert "layer 1 passes on is not attention @ v" in recorded.proof_report.sentence


def test_one_block_that_runs_several_times_is_as_many_layers() -> None:
    class Loop(Model):
        def forward(self, image: torch.Tensor) -> torch.Tensor:
            self.blocks = nn.ModuleList(list(self.blocks)[:1] * 3)
            return super().forward(image)

    recorded = traced(Loop(blocks(Attend)))
    assert (recorded.num_layers, recorded.proof_status) == (3, "proven")


def test_the_check_runs_once_per_module_and_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[TokenLayout] = []
    honest = verified.check_placement

    def counting(*args: object) -> object:
        asked.append(args[2])  # type: ignore[arg-type]
        return honest(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(verified, "check_placement", counting)
    model, other = timm_vit(), timm_vit()
    for _ in range(3):
        trace(model, pixels())
    trace(other, pixels())
    assert len(asked) == 2
    renamed = TokenLayout(grid=(4, 6), prefix=("first",), pooling="mean")
    trace(model, pixels(), layout=renamed)
    assert asked[2:] == [renamed]


def test_a_module_that_was_changed_is_checked_again() -> None:
    model = ready(Model(blocks(Attend, Attend)))
    assert trace(model, pixels(), layout=LAYOUT).proof_status == "proven"
    model.blocks[1] = ready(Block(made.Gated))  # type: ignore[operator, index, union-attr]
    assert trace(model, pixels(), layout=LAYOUT).proof_status == "captured, not proven"


def test_a_refusal_is_remembered_and_said_again() -> None:
    model = ready(made.ColumnByColumn(blocks(Attend)))
    for _ in range(2):
        with pytest.raises(CaptureError, match="in this order"):
            trace(model, pixels(), layout=LAYOUT)


def test_our_own_model_is_known_and_not_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verified, "check_placement", lambda *_: pytest.fail("our own model was asked"))
    assert trace(own(), pixels()).proof_status == "proven"


def test_placement_ends_at_the_first_attention(monkeypatch: pytest.MonkeyPatch) -> None:
    model = ready(Model(blocks(Attend, Attend)))
    runs = []
    model.blocks[0].mlp.register_forward_hook(lambda *_: runs.append(0))  # type: ignore[union-attr, index]
    check = placement.check_placement(model, pixels(), LAYOUT)
    assert check.status == "holds"
    assert runs == []


def test_the_checks_leave_the_module_as_it_was() -> None:
    model = timm_vit(drop_path_rate=0.3).train()
    before = copy.deepcopy(model.state_dict())
    state = torch.random.get_rng_state()
    verified.verified_structure(model, pixels(), LAYOUT)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert all(part.training for part in model.modules())
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in model.modules())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_the_report_travels_with_a_packed_trace() -> None:
    recorded = traced(Model(blocks(made.Gated)))
    assert PackedTrace.of(recorded).unpacked().proof_report == recorded.proof_report


def test_a_leak_smaller_than_rounding_is_not_seen_and_a_small_one_is() -> None:
    class Leaking(Model):
        share = 0.0

        def read(self, x: torch.Tensor) -> torch.Tensor:
            return super().read(self.norm(x + self.share * x.mean(1, keepdim=True)))

    for share, expected in ((0.0, "holds"), (1e-3, "fails")):
        model = ready(Leaking(blocks(Attend)))
        model.share = share
        assert verified.verified_structure(model, pixels(), LAYOUT).complete.status == expected, share


def test_attention_without_a_batch_axis_gives_the_checks_its_weights_without_one() -> None:
    class Unbatched(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.MultiheadAttention(40, 5)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            output, weights = self.inner(x[0], x[0], x[0])
            assert weights.shape == (25, 25)
            return output[None]  # type: ignore[no-any-return]

    assert traced(Model(blocks(Unbatched, Unbatched))).proof_status == "proven"


@pytest.mark.parametrize("order", [stand_ins.ShuffledBetween, stand_ins.SwappedBetween, stand_ins.TwoPasses])
@pytest.mark.parametrize("kind", [stand_ins.Attention, stand_ins.Sharpened])
def test_tokens_that_change_places_are_refused_also_where_what_attention_passes_on_is_not_seen(
    order: type[stand_ins.StandIn], kind: type[nn.Module]
) -> None:
    model, image = order([kind] * 3).eval(), torch.randn(1, 3, *stand_ins.SIZE)
    with pytest.raises(CaptureError, match="change places"):
        trace(model, image, layout=TokenLayout(stand_ins.GRID)).wait()


@pytest.mark.parametrize(
    ("kind", "mlp"),
    [
        (stand_ins.TalkingAfter, stand_ins.Mlp),  # a bias gives every key some weight, also its neighbours'
        (stand_ins.Sharpened, stand_ins.ConvolutionMlp),  # the class token takes no part
    ],
)
def test_tokens_that_mix_are_told_also_where_what_attention_passes_on_is_not_seen(
    kind: type[nn.Module], mlp: type[nn.Module]
) -> None:
    model, image = stand_ins.StandIn([kind] * 3, mlp=mlp).eval(), torch.randn(1, 3, *stand_ins.SIZE)
    found = trace(model, image, layout=TokenLayout(stand_ins.GRID)).proof_report.complete
    assert found.status == "fails"
    assert "outside the recorded attention (before layer 1)" in found.sentence
