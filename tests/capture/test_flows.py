"""Information that passes where no attention is drawn is found, whatever the model; honest models stay proven."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import cycle, product
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.capture import tricks
from tests.capture.misleading import Block, Model, ready
from tests.capture.models import pixels
from tests.capture.tricks import AROUND, ATTENTIONS, EXCHANGE, HONEST, REPLACED, Build
from vit_viz.analyses.rollout import rollout
from vit_viz.capture import Trace, trace
from vit_viz.capture.clamped_pass import Change, Seen, Site
from vit_viz.capture.flows import _places as places, token_sets
from vit_viz.capture.responses import Response
from vit_viz.errors import CaptureError
from vit_viz.geometry import TokenLayout

CLASS = TokenLayout(grid=(4, 6))
MEAN = TokenLayout(grid=(4, 6), pooling="mean")
PROMPTS = TokenLayout(grid=(4, 6), prefix=("class", "prompt 0", "prompt 1", "prompt 2"))
TRICKS = EXCHANGE | REPLACED | AROUND
ONE_OF_EACH = ("token 3 copied to token 12", "class token replaced", "SideBranch")
CLOSEST = ("LayerScale of 1e-5", "norms by hand, dropout and sums in place", "a class token of zeros")


def traced(model: nn.Module, layout: TokenLayout = CLASS, dtype: torch.dtype = torch.float32) -> Trace:
    return trace(ready(model).to(dtype), pixels().to(dtype), layout=layout)


def layout_of(name: str) -> TokenLayout:
    return PROMPTS if "prompts" in name or "more tokens" in name else CLASS


def in_turn(builds: Mapping[str, Build]) -> pytest.MarkDecorator:
    """Each with one kind of attention, all kinds in turn: what is clamped are layers, whatever attends in them."""
    kinds = cycle(ATTENTIONS.items())
    cases: list[Any] = [
        pytest.param(name, build, attention, id=f"{name}-{kind}")
        for (name, build), (kind, attention) in zip(builds.items(), kinds, strict=False)
    ]
    return pytest.mark.parametrize(("name", "build", "attention"), cases)


def in_precisions(names: Iterable[str], few: Iterable[str]) -> list[tuple[str, torch.dtype]]:
    """All in the coarsest precision, in which a little is lost first, and a few in the others."""
    others = product(few, (torch.float16, torch.float64))
    return [*((name, torch.bfloat16) for name in names), *others]


@pytest.fixture(params=ATTENTIONS.values(), ids=ATTENTIONS)
def attention(request: pytest.FixtureRequest) -> tricks.Attention:
    return request.param  # type: ignore[no-any-return]


@in_turn(EXCHANGE)
def test_tokens_that_exchange_outside_attention_are_told(
    name: str, build: Build, attention: tricks.Attention
) -> None:
    recorded = traced(build(attention))
    assert recorded.proof_status == "captured, not proven"
    assert (
        "Tokens also exchange information outside the recorded attention (before layer"
        in recorded.proof_report.sentence
    )
    assert recorded.proof_report.meaning == "rows right, maps through the layers not"
    with pytest.raises(CaptureError, match="not defined for this model"):
        rollout(recorded)


@in_turn(REPLACED)
def test_tokens_that_are_replaced_between_layers_are_told(
    name: str, build: Build, attention: tricks.Attention
) -> None:
    report = traced(build(attention), layout_of(name)).proof_report
    assert report.status == "captured, not proven"
    assert "replaced" in report.sentence


@in_turn(AROUND)
def test_what_flows_past_the_layers_is_told(name: str, build: Build, attention: tricks.Attention) -> None:
    recorded = traced(build(attention))
    assert recorded.proof_status == "captured, not proven"
    assert recorded.proof_report.complete.status == "fails"
    with pytest.raises(CaptureError):
        rollout(recorded)


@pytest.mark.parametrize("kind", tricks.POOLED_AS_CLASS)
def test_an_answer_that_reads_more_than_the_class_token_is_told(
    kind: type[Model], attention: tricks.Attention
) -> None:
    report = traced(kind([Block(attention) for _ in range(3)])).proof_report
    assert report.status == "captured, not proven"
    assert "not as the layout says (pool (class token))" in report.sentence
    assert report.meaning == "right, but for the map of the pool"


def test_maps_of_a_token_stay_where_only_the_pool_is_another(attention: tricks.Attention) -> None:
    kind = tricks.POOLED_AS_CLASS[0]
    recorded = traced(kind([Block(attention) for _ in range(3)]))
    assert recorded.proof_report.complete.status == "holds"
    assert recorded.proof_report.pooled.status == "fails"
    assert rollout(recorded, query=(2, 3)).values.shape == (4, 6)


@pytest.mark.parametrize("kind", tricks.POOLED_AS_MEAN)
def test_an_answer_that_is_not_the_mean_of_the_patches_is_told(kind: type[Model]) -> None:
    report = traced(kind([Block(tricks.Attend) for _ in range(3)]), MEAN).proof_report
    assert report.status == "captured, not proven"
    assert "answer" in report.sentence


def test_pools_that_the_layout_names_are_proven(attention: tricks.Attention) -> None:
    blocks = [Block(attention) for _ in range(3)]
    assert traced(tricks.ReadsTheMean(blocks), MEAN).proof_status == "proven"
    joined = TokenLayout(grid=(4, 6), joins_patches=True)
    assert traced(tricks.ReadsTheMeanToo(blocks), joined).proof_status == "proven"
    assert traced(tricks.ReadsAPatchToo(blocks), joined).proof_status == "captured, not proven"


@in_turn(HONEST)
def test_honest_models_stay_proven(name: str, build: Build, attention: tricks.Attention) -> None:
    recorded = traced(build(attention), layout_of(name))
    assert recorded.proof_report.sentence == ""
    assert recorded.proof_status == "proven"
    assert recorded.proof_report.meaning == "right"
    assert rollout(recorded).values.shape == (4, 6)


@pytest.mark.parametrize(("name", "dtype"), in_precisions(TRICKS, ONE_OF_EACH))
def test_tricks_are_told_in_other_precisions(name: str, dtype: torch.dtype) -> None:
    report = traced(TRICKS[name](tricks.Attend), layout_of(name), dtype).proof_report
    assert report.complete.status == "fails"


@pytest.mark.parametrize(("name", "dtype"), in_precisions(HONEST, CLOSEST))
def test_honest_models_hold_in_other_precisions(name: str, dtype: torch.dtype) -> None:
    report = traced(HONEST[name](tricks.Attend), layout_of(name), dtype).proof_report
    assert (report.complete.status, report.complete.sentence) == ("holds", "")


class Single(nn.Module):
    """A model that takes one image at a time."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, image: Tensor) -> Tensor:
        if len(image) != 1:
            raise RuntimeError("one image only")
        return self.inner(image)  # type: ignore[no-any-return]


@in_turn({name: TRICKS[name] for name in ONE_OF_EACH})
def test_tricks_of_a_model_that_takes_one_image_are_told(
    name: str, build: Build, attention: tricks.Attention
) -> None:
    assert traced(Single(build(attention))).proof_status == "captured, not proven"


def test_an_honest_model_that_takes_one_image_is_proven(attention: tricks.Attention) -> None:
    assert traced(Single(HONEST["plain"](attention))).proof_status == "proven"


def test_a_model_in_training_mode_is_checked_without_its_dropout() -> None:
    model = ready(HONEST["norms by hand, dropout and sums in place"](tricks.Attend)).train()
    assert trace(model, pixels(), layout=CLASS).proof_status == "proven"
    assert model.training


def test_the_report_says_which_layers_the_answer_reads_and_how_much_passes() -> None:
    blocks = [Block(tricks.Attend) for _ in range(3)]
    early = traced(tricks.EarlyHead(blocks)).proof_report
    assert early.reading.layers == (0, 1)
    assert early.reading.shares == (1.0, 1.0, 0.0)
    assert "read after layer 1 of 0-2" in early.sentence
    beside = traced(tricks.SideBranch(blocks)).proof_report
    assert beside.reading.layers == (0, 1, 2)
    assert all(share < 1 for share in beside.reading.shares)
    plain = traced(Model(blocks)).proof_report
    assert (plain.reading.layers, plain.reading.shares) == ((0, 1, 2), (1.0, 1.0, 1.0))


def test_the_sentence_names_the_pair_of_tokens() -> None:
    report = traced(EXCHANGE["token 3 copied to token 12"](tricks.Attend)).proof_report
    assert "patch (0, 2) reaches patch (1, 5)" in report.sentence
    report = traced(EXCHANGE["token 0 copied to token 7"](tricks.Attend)).proof_report
    assert "class reaches patch (1, 0)" in report.sentence


@pytest.mark.parametrize(
    "layout", [CLASS, PROMPTS, TokenLayout(grid=(1, 2), prefix=()), TokenLayout(grid=(5, 7), suffix=("end",))]
)
def test_every_ordered_pair_of_tokens_is_parted_by_some_set(layout: TokenLayout) -> None:
    sets = token_sets(layout)
    parted = (sets[:, :, None] & ~sets[:, None, :]).any(0)
    assert bool((parted | torch.eye(layout.num_tokens, dtype=torch.bool)).all())
    assert len(sets) <= 2 * layout.num_tokens.bit_length() + len(layout.named)


@pytest.mark.parametrize(("first", "status"), [(0, "proven"), (3, "captured, not proven")])
def test_an_answer_that_reads_the_last_attention_itself_is_asked_for_its_tokens(
    first: int, status: str
) -> None:
    class Bare(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.inner = nn.Conv2d(3, 24, 16, 16), nn.Linear(24, 3 * 40)

        def forward(self, image: Tensor) -> Tensor:
            x = self.inner(self.embed(image).flatten(2).transpose(1, 2))
            q, k, v = x.unflatten(-1, (3, 5, 8)).permute(2, 0, 3, 1, 4)
            return nn.functional.scaled_dot_product_attention(q, k, v)[:, :, first:].mean(2).flatten(1)

    assert traced(Bare(), TokenLayout(grid=(4, 6), prefix=())).proof_status == status


@pytest.mark.parametrize(("around", "rounds"), [(0.0, 1), (0.5, 2)])
def test_another_place_of_a_gap_is_tried_only_where_something_flows_around_the_first(
    around: float, rounds: int
) -> None:
    class Run:
        depth, tried = 0, 0
        photo = Seen(sites={Site(0, 3): True, Site(0, 2): False})

        def of(self, changes: list[Change]) -> list[Response]:
            self.tried += 1
            nothing = torch.zeros(0, 5)
            return [Response(nothing, nothing, torch.zeros(5), torch.tensor([around])) for _ in changes]

    run: Any = Run()
    found = places(run)
    assert (found[0].site, run.tried) == (Site(0, 3), rounds)


@pytest.mark.parametrize(("others", "tried"), [([0.4, 0.3], 5), ([0.0, 0.3], 7), ([0.0, 0.0], 9)])
def test_where_the_answer_reads_around_more_places_are_tried_of_the_worst_gap_alone(
    others: list[float], tried: int
) -> None:
    answers = {site: 0.1 * (2 + site.calls) for site in (Site(0, 3), Site(1, 3), Site(2, 3))}
    answers |= {
        Site(2, 2): others[0],
        Site(2, 1): 0.9,
        Site(1, 2): others[1],
        Site(1, 1): 0.8,
        Site(0, 2): 0.0,
        Site(0, 1): 0.7,
    }

    class Run:
        depth, tried = 2, 0
        photo = Seen(sites={site: site.number == 3 for site in answers})

        def of(self, changes: list[Change]) -> list[Response]:
            self.tried += len(changes)
            nothing, later = torch.zeros(2, 5), torch.zeros(5)
            return [
                Response(nothing, nothing, later, torch.tensor([answers[one.cut]]))
                for one in changes
                if one.cut
            ]

    run: Any = Run()
    found = places(run)
    assert run.tried == tried
    assert found[2].answer == pytest.approx(min(others[0], 0.4))
