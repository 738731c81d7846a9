"""A trace says "proven" only where its calls are complete, placed and effective; elsewhere it says what its pictures are."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.capture import misleading as made, stand_ins
from tests.capture.misleading import Attend, Block, Model, attending, blocks, ready
from tests.capture.models import SIZE, own, pixels, torchvision_vit
from tests.capture.stand_ins import Attention, StandIn
from vit_viz.analyses.rollout import rollout
from vit_viz.capture import PackedTrace, Trace, placement, trace, verified
from vit_viz.errors import CaptureError, ParameterError
from vit_viz.geometry import TokenLayout

LAYOUT = TokenLayout(grid=(4, 6))
PATCHES_ONLY = TokenLayout(grid=(4, 6), prefix=())


def traced(model: nn.Module, layout: TokenLayout | None = None, **choices: Any) -> Trace:
    is_stand_in = isinstance(model, StandIn)
    image = pixels(size=stand_ins.SIZE if is_stand_in else SIZE)
    grid = stand_ins.GRID if is_stand_in else LAYOUT.grid
    return trace(ready(model), image, layout=layout or TokenLayout(grid, **choices))


def test_blocks_numbered_in_their_names_are_one_stack() -> None:
    recorded = trace(torchvision_vit(), pixels(size=(64, 64)))
    assert recorded.proof_report.complete.status == "holds"


@pytest.mark.parametrize("hidden", [made.Aten, made.Exponential, made.Sigmoid, made.Kernelised])
@pytest.mark.parametrize("order", ["at the end", "in between"])
def test_blocks_that_attend_unseen_are_refused_by_name(hidden: type[nn.Module], order: str) -> None:
    kinds = [Attend, Attend, hidden, hidden] if order == "at the end" else [Attend, hidden, Attend, hidden]
    names = "blocks.2, blocks.3" if order == "at the end" else "blocks.1, blocks.3"
    with pytest.raises(CaptureError, match=rf"2 of the 4 blocks of Model .* cannot be recorded \({names}\)"):
        traced(Model(blocks(*kinds))).wait()


def test_a_scripted_block_is_refused() -> None:
    model = ready(Model(blocks(*[Attend] * 4)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own, about a thing of the past that people still load
        for place in (1, 3):
            model.blocks[place] = torch.jit.trace(model.blocks[place], torch.randn(1, 25, 40))  # type: ignore
    with pytest.raises(CaptureError, match=r"2 of the 4 blocks"):
        traced(model).wait()


COLUMNS = torch.arange(stand_ins.PATCHES).reshape(stand_ins.GRID).T.flatten()


@pytest.mark.parametrize(
    "model",
    [
        lambda: StandIn([Attention] * 2, class_token="last"),
        lambda: StandIn([Attention] * 2, order=COLUMNS),
        lambda: stand_ins.RandomShuffle([Attention] * 2),
    ],
    ids=["class last", "columns", "shuffled"],
)
def test_tokens_in_another_order_are_refused(model: Callable[[], nn.Module]) -> None:
    with pytest.raises(CaptureError, match="not the 3 x 5 patches of its image in this order"):
        traced(model())


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


def test_the_sentence_says_which_patch_a_token_stands_for_and_is_said_again() -> None:
    model = StandIn([Attention], order=COLUMNS)
    for _ in range(2):
        with pytest.raises(
            CaptureError, match=r"2, which would be patch \(0, 1\), answers to patch \(1, 0\)"
        ):
            traced(model)


def test_the_right_layout_of_another_order_is_proven() -> None:
    model = StandIn([Attention] * 2, class_token="last")
    assert traced(model, prefix=(), suffix=("class",)).proof_status == "proven"


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


@pytest.mark.parametrize("grid", [(2, 6), (1, 12)])  # changes cut the latter as the windows do
def test_windows_with_one_head_are_not_heads(grid: tuple[int, int]) -> None:
    with pytest.raises(CaptureError, match="windows stand in the place of heads"):
        traced(made.WindowModel(), TokenLayout(grid=grid, prefix=()))


CHANGED, PAST = "layer 1 passes on is not attention @ v", "layer 1 does not read what layer 0 wrote"
TOLD: dict[str, tuple[Callable[[], nn.Module], str, str]] = {
    "gated": (lambda: Model(blocks(Attend, made.Gated, Attend)), "effective", CHANGED),
    "talking heads": (lambda: StandIn([Attention, stand_ins.TalkingAfter, Attention]), "effective", CHANGED),
    "twice": (lambda: Model(blocks(Attend, made.Twice, Attend)), "effective", CHANGED),
    "differential": (lambda: Model(blocks(made.Differential, made.Differential)), "complete", PAST),
    "parallel": (stand_ins.Parallel, "complete", PAST),
    "cross-attention": (stand_ins.Decoder, "complete", "Layer 1 reads more of the image than what layer 0"),
    "two stacks": (stand_ins.EncoderDecoder, "complete", "2 in blocks.*.attention, 2 in decoder.*.attention"),
    "convolution": (
        lambda: StandIn([Attention] * 3, mlp=stand_ins.ConvolutionMlp),
        "complete",
        "before layer 1",
    ),
    "mean added": (lambda: made.MeanAddedToAll(blocks(Attend, Attend)), "complete", "after the last layer"),
    "class apart": (stand_ins.ClassApart, "complete", "Further attention runs between layers 0 and 1"),
}


@pytest.mark.parametrize(("model", "check", "words"), TOLD.values(), ids=TOLD)
def test_what_the_layers_leave_out_or_change_is_told(
    model: Callable[[], nn.Module], check: str, words: str
) -> None:
    recorded = traced(model(), prefix=() if "Further" in words else ("class",))
    report = recorded.proof_report
    assert (report.status, report.checks[check].status) == ("captured, not proven", "fails")
    assert words in report.checks[check].sentence
    if check == "complete":
        with pytest.raises(CaptureError, match="not defined for this model"):
            rollout(recorded)


def test_keys_that_stand_elsewhere_than_their_tokens_are_refused() -> None:
    with pytest.raises(CaptureError, match="change places"):
        traced(Model(blocks(Attend, made.RolledKeys, Attend))).wait()


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_the_proof_is_relative_to_the_size_of_what_was_computed(size: float) -> None:
    sized = attending(lambda q, k, v: nn.functional.scaled_dot_product_attention(q, k, size * v))
    recorded = traced(Model(blocks(*[sized] * 3)))
    assert recorded.proof_status == "proven"
    assert 0 < max(recorded.proof) < 1e-5


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
        trace(StandIn([Attention], class_token="last").eval(), pixels(size=stand_ins.SIZE))
    with pytest.raises(
        ParameterError, match="responds to pixels all over the image, as when attention runs over channels"
    ):
        trace(ready(made.ChannelModel()), pixels())


def test_what_only_one_of_the_images_shows_is_told_too() -> None:
    class Deciding(Attend):
        twice = False

        def gathered(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
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
@pytest.mark.parametrize("kind", [Attention, stand_ins.Sharpened])
def test_tokens_that_change_places_are_refused_also_where_what_attention_passes_on_is_not_seen(
    order: type[StandIn], kind: type[nn.Module]
) -> None:
    with pytest.raises(CaptureError, match="change places"):
        traced(order([kind] * 3)).wait()


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
    found = traced(StandIn([kind] * 3, mlp=mlp)).proof_report.complete
    assert found.status == "fails"
    assert "outside the recorded attention (before layer 1)" in found.sentence
