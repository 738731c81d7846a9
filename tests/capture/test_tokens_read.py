"""What the answer is measured to read decides where maps of it start, whatever the layout says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import vit_viz as vv
from tests.capture.misleading import CLASSES, COLS, DIM, HEADS, ROWS, Attend, Block, Model, ready
from tests.capture.models import chains_by_hand, own, pixels
from tests.comparing import assert_same
from vit_viz.analyses.chains import Chain, run_chains
from vit_viz.analyses.flow import attention_flow
from vit_viz.analyses.heads import available_measures
from vit_viz.analyses.relevance import gradient_rollout, relevance
from vit_viz.analyses.targets import Target
from vit_viz.capture import trace
from vit_viz.capture.tokens_read import TokensRead, as_source, layout_that_reads
from vit_viz.checkpoints.plain_module import plain_module
from vit_viz.errors import ParameterError
from vit_viz.geometry import TokenLayout

GRID = (ROWS, COLS)
PATCHES = ROWS * COLS
Read = Callable[["Reader", Tensor], Tensor]


class Reader(Model):
    """Reads its answer as it is told, from tokens of which some stand before the patches and some after them."""

    def __init__(self, read: Read, before: int, after: int = 0) -> None:
        super().__init__([Block(Attend) for _ in range(2)])
        self.before, self.how = before, read
        self.extra = nn.Parameter(torch.randn(1, before + after, DIM))
        self.positions = nn.Parameter(torch.randn(1, before + PATCHES + after, DIM))
        self.second, self.wide, self.weigh = (
            nn.Linear(DIM, CLASSES),
            nn.Linear(2 * DIM, CLASSES),
            nn.Linear(DIM, 1),
        )
        self.pool, self.latent = (
            nn.MultiheadAttention(DIM, HEADS, batch_first=True),
            nn.Parameter(torch.randn(1, 1, DIM)),
        )

    def arranged(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def forward(self, image: Tensor) -> Tensor:
        x = self.embed(image).flatten(2).transpose(1, 2)
        extra = self.extra.expand(len(x), -1, -1)
        x = torch.cat([extra[:, : self.before], x, extra[:, self.before :]], 1) + self.positions
        for block in self.blocks:
            x = block(x)
        return self.how(self, self.norm(x))

    def patches(self, x: Tensor) -> Tensor:
        return x[:, self.before : self.before + PATCHES]

    def attended(self, x: Tensor) -> Tensor:
        x = self.patches(x)
        return self.pool(self.latent.expand(len(x), -1, -1), x, x)[0][:, 0]  # type: ignore[no-any-return]


READERS: dict[str, tuple[Read, int, int]] = {
    "class": (lambda m, x: m.head(x[:, 0]), 1, 0),
    "class last": (lambda m, x: m.head(x[:, -1]), 0, 1),
    "each class its token": (lambda m, x: (x[:, :CLASSES] * m.head.weight).sum(-1), CLASSES, 0),
    "each class its token, meaned": (lambda _m, x: x[:, :CLASSES, ::2].mean(-1), CLASSES, 0),
    "a register": (lambda m, x: m.head(x[:, 2]), 4, 0),
    "three of ten side by side": (lambda _m, x: x[:, :3].flatten(1), 10, 0),
    "distilled": (lambda m, x: (m.head(x[:, 0]) + m.second(x[:, 1])) / 2, 2, 0),
    "tokens after the patches": (lambda m, x: m.head(x[:, -3:].mean(1)), 0, 3),
    "mean": (lambda m, x: m.head(m.patches(x).mean(1)), 0, 0),
    "mean beside a class token": (lambda m, x: m.head(m.patches(x).mean(1)), 1, 0),
    "mean beside a pool": (lambda m, x: [m.attended(x), m.head(x.mean(1))][1], 0, 0),
    "mean beside a softmax": (lambda m, x: [m.weigh(x)[..., 0].softmax(1), m.head(x.mean(1))][1], 0, 0),
    "class and mean": (lambda m, x: m.wide(torch.cat([x[:, 0], m.patches(x).mean(1)], -1)), 1, 0),
    "last patch": (lambda m, x: m.head(x[:, -1]), 0, 0),
    "attention": (lambda m, x: m.head(m.attended(x)), 0, 0),
    "attention beside a class token": (lambda m, x: m.head(m.attended(x)), 1, 0),
    "softmax": (lambda m, x: m.head((m.weigh(x)[..., 0].softmax(1)[:, None] @ x)[:, 0]), 0, 0),
    "maximum": (lambda m, x: m.head(x.amax(1)), 0, 0),
    "mean and maximum": (lambda m, x: m.head(x.mean(1) + x.amax(1)), 0, 0),
    "largest of all": (lambda m, x: m.head(x.topk(1, 1).values[:, 0]), 0, 0),
}  # fmt: skip


def reader(name: str) -> nn.Module:
    torch.manual_seed(4)
    return ready(Reader(*READERS[name]))


def prefix(*names: str, registers: int = 0) -> tuple[str, ...]:
    return (*names, *(f"register {i}" for i in range(registers)))


def on_patches(row: Tensor, before: int) -> Any:
    return row[before : before + PATCHES].reshape(GRID).numpy()


EACH = tuple(f"class {i}" for i in range(CLASSES))


@pytest.mark.parametrize("name", ["each class its token", "each class its token, meaned"])
@pytest.mark.parametrize(
    "layout",
    [
        TokenLayout(GRID, EACH),
        TokenLayout(GRID, EACH, pooling="mean"),
        TokenLayout(GRID, prefix("class", registers=CLASSES - 1)),
        TokenLayout(GRID, prefix(registers=CLASSES)),
    ],
    ids=["named", "named, with a mean", "a class and registers", "registers"],
)
def test_a_class_with_a_token_of_its_own_is_explained_from_it(name: str, layout: TokenLayout) -> None:
    model = reader(name)
    for output in (0, 2, CLASSES - 1):
        maps = vv.explain(model, pixels(), methods=("relevance", "rollout"), target=output, layout=layout)
        matrices = chains_by_hand(model, pixels(), lambda scores, output=output: scores[0, output])
        for method, patch_map in maps.items():
            expected = on_patches(matrices[method][output], CLASSES)
            np.testing.assert_allclose(patch_map.values, expected, rtol=2e-4, atol=1e-5 * expected.max())
    alone = trace(model, pixels(), layout=layout, target=2)
    named = layout.name(2)
    assert alone.output_query() == named == alone.output_query("pool")
    assert relevance(alone).provenance.parameters[1] == ("query", named)


def test_questions_by_name_start_from_the_token_of_their_class() -> None:
    recipe = vv.Preprocess(input_size=(64, 96), patch_size=(16, 16), mean=(0.5,) * 3, std=(0.5,) * 3)
    layout = TokenLayout(GRID, prefix("class", registers=CLASSES - 1))
    loaded = plain_module(reader("each class its token"), preprocess=recipe, layout=layout).with_output(
        "softmax"
    )
    asked = vv.run(loaded, "shapes", "comparison", mode="stretch", target=2, methods="rollout,relevance")
    assert all("register 1" in patch_map.caption for patch_map in asked.maps.values())
    named = vv.run(loaded, "shapes", "relevance", mode="stretch", target=2, query="register 1")
    assert_same(named.values, asked.maps["relevance"].values)
    with pytest.raises(ParameterError, match='such as query="register 1"'):
        vv.run(loaded, "shapes", "relevance", mode="stretch", target=2, query="class")


def test_without_a_target_tokens_of_classes_stand_for_the_first_class() -> None:
    recorded = trace(reader("each class its token"), pixels(), layout=TokenLayout(GRID, EACH))
    first = f"class {int(recorded.logits.argmax())}"
    assert recorded.output_query() == first
    assert first in vv.rollout(recorded).caption
    assert first in attention_flow(recorded).caption
    assert first in vv.attention_map(recorded, layer=1).caption


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (Target("logit", 1), (1,)),
        (Target("difference", 1, 3), (1, 3)),
        (Target("probability", 1), tuple(range(5))),
    ],
)
def test_a_target_says_which_outputs_it_changes_with(target: Target, expected: tuple[int, ...]) -> None:
    output = torch.linspace(0, 1, 5, requires_grad=True)
    assert target.outputs_in(output) == expected
    (slope,) = torch.autograd.grad(target(output), output)
    assert tuple(slope.nonzero().flatten().tolist()) == expected


def test_a_target_of_two_classes_with_a_token_each_is_refused_and_one_token_of_them_is_not() -> None:
    model, layout = reader("each class its token"), TokenLayout(GRID, EACH)
    with pytest.raises(
        ParameterError, match=r'read from class 1 and class 3, where .* such as query="class 1"'
    ):
        vv.explain(model, pixels(), target=(1, 3), layout=layout)
    recorded = trace(model, pixels(), layout=layout, target=lambda logits: logits[1] - logits[3])
    assert recorded.outputs == (1, 3)
    with pytest.raises(ParameterError, match="class 1 and class 3"):
        gradient_rollout(recorded)
    asked = vv.explain(model, pixels(), target=(1, 3), layout=layout, query="class 3")["relevance"]
    expected = run_chains(recorded, [Chain("gradient")], [recorded.query_weights("class 3")])[0]
    np.testing.assert_allclose(asked.values, on_patches(expected, CLASSES), rtol=1e-5)


STARTS: list[tuple[str, TokenLayout, Any]] = [
    ("class", TokenLayout(GRID), "class"),
    ("class", TokenLayout(GRID, pooling="mean"), "class"),
    ("class", TokenLayout(GRID, prefix(registers=1)), "register 0"),
    ("class", TokenLayout(GRID, pooling="attention"), "class"),
    ("class last", TokenLayout(GRID, (), suffix=("token 0",)), "token 0"),
    ("a register", TokenLayout(GRID, prefix("class", registers=3)), "register 1"),
    ("last patch", TokenLayout(GRID, ()), (ROWS - 1, COLS - 1)),
    ("distilled", TokenLayout(GRID, ("class", "distillation")), "pool"),
    ("mean", TokenLayout(GRID, ()), "pool"),
    ("mean beside a pool", TokenLayout(GRID, ()), "pool"),
    ("mean beside a softmax", TokenLayout(GRID, ()), "pool"),
    ("mean beside a class token", TokenLayout(GRID, pooling="mean"), "pool"),
    ("attention", TokenLayout(GRID, (), pooling="attention"), "pool"),
    ("attention beside a class token", TokenLayout(GRID, pooling="attention"), "pool"),
    ("class and mean", TokenLayout(GRID, joins_patches=True), "class"),
]


@pytest.mark.parametrize(("name", "layout", "expected"), STARTS)
def test_maps_of_the_answer_start_from_what_it_reads(name: str, layout: TokenLayout, expected: Any) -> None:
    recorded = trace(reader(name), pixels(), layout=layout)
    assert recorded.output_query() == expected
    assert recorded.output_query((1, 2)) == (1, 2)
    assert layout.describe(expected) in vv.rollout(recorded).caption


REFUSED: list[tuple[str, TokenLayout]] = [
    ("mean beside a class token", TokenLayout(GRID)),
    ("class and mean", TokenLayout(GRID)),
    ("class and mean", TokenLayout(GRID, pooling="mean")),
    ("distilled", TokenLayout(GRID, prefix("class", registers=1))),
    ("distilled", TokenLayout(GRID, ("class", "distillation"), pooling="mean")),
    ("three of ten side by side", TokenLayout(GRID, prefix("class", registers=9))),
    ("tokens after the patches", TokenLayout(GRID, (), suffix=("end 0", "end 1", "end 2"))),
    ("mean", TokenLayout(GRID, (), pooling="attention")),
    ("mean beside a pool", TokenLayout(GRID, (), pooling="attention")),
    ("mean beside a softmax", TokenLayout(GRID, (), pooling="attention")),
    ("attention", TokenLayout(GRID, ())),
    ("attention beside a class token", TokenLayout(GRID)),
]


@pytest.mark.parametrize(("name", "layout"), REFUSED)
def test_what_no_query_stands_for_is_refused_and_the_layout_that_is_named_is_right(
    name: str, layout: TokenLayout
) -> None:
    model = reader(name)
    recorded = trace(model, pixels(), layout=layout)
    with pytest.raises(ParameterError, match="The answer is read from") as refused:
        vv.rollout(recorded)
    assert "rollout_share" not in available_measures(recorded, (16, 16))
    named = str(refused.value).partition("pass layout=")[2].partition(", or ask")[0]
    assert named in recorded.proof_report.sentence
    query = str(refused.value).rpartition('query="')[2].partition('"')[0]
    assert vv.rollout(recorded, query=query).values.shape == GRID
    fitting = eval(named, {"TokenLayout": TokenLayout})
    assert trace(model, pixels(), layout=fitting).proof_status == "proven"
    assert set(vv.explain(model, pixels(), methods=("relevance", "rollout"), layout=fitting)) == {
        "relevance",
        "rollout",
    }


NO_LAYOUT = ("softmax", "maximum", "mean and maximum", "largest of all")


@pytest.mark.parametrize("name", NO_LAYOUT)
def test_patches_that_no_layout_pools_so_are_refused_without_one(name: str) -> None:
    with pytest.raises(ParameterError, match="The answer is read from") as refused:
        vv.explain(reader(name), pixels(), layout=TokenLayout(GRID, ()))
    assert "layout=" not in str(refused.value)


@pytest.mark.parametrize("name", [name for name in READERS if name not in ("last patch", *NO_LAYOUT)])
def test_the_layout_that_a_refusal_proposes_is_accepted_and_right(name: str) -> None:
    model = reader(name)
    with pytest.raises(ParameterError, match="The token layout of Reader is not known") as refused:
        trace(model, pixels())
    words = str(refused.value).partition("layout=")[2].partition("; pass that")[0]
    proposed = eval(words, {"TokenLayout": TokenLayout})
    report = trace(model, pixels(), layout=proposed).proof_report
    assert (report.status, report.sentence) == ("proven", "")
    expected = {
        "class last": "TokenLayout(grid=(4, 6), prefix=(), suffix=('class',))",
        "three of ten side by side": as_source(
            TokenLayout(GRID, prefix("class 0", "class 1", "class 2", registers=7))
        ),
        "each class its token": as_source(TokenLayout(GRID, EACH)),
        "mean beside a class token": "TokenLayout(grid=(4, 6), prefix=('class',), pooling=\"mean\")",
        "class and mean": "TokenLayout(grid=(4, 6), prefix=('class',), joins_patches=True)",
    }
    assert words == expected.get(name, words)


def test_a_model_whose_answer_has_no_gradient_gets_the_usual_names() -> None:
    class Frozen(Reader):
        def forward(self, image: Tensor) -> Tensor:
            with torch.no_grad():
                return super().forward(image)

    with pytest.raises(ParameterError, match=r"prefix=\('class', 'register 0'\)\); pass that"):
        trace(ready(Frozen(*READERS["distilled"])), pixels())


def test_a_map_from_the_class_token_says_that_the_answer_reads_the_patches_too() -> None:
    recorded = trace(own(pool_concat=True), pixels())
    assert (
        vv.rollout(recorded).note
        == "The answer also reads the mean of the patches, which this map leaves out."
    )
    assert vv.rollout(recorded, query=(1, 2)).note == ""


@pytest.mark.parametrize(
    ("options", "is_known"),
    [
        ({}, False),
        ({"dist_token": True}, True),
        ({"dist_token": True, "dist_head": True}, False),
        ({"dist_token": True, "pooling": "mean"}, False),
        ({"class_token": False, "pooling": "mean"}, False),
    ],
)
def test_of_our_models_one_that_passes_over_its_distillation_token_is_said_to_read_the_class_token_alone(
    options: dict[str, Any], is_known: bool
) -> None:
    read = trace(own(**options), pixels()).structure.read
    assert (read is not None) == is_known
    assert read is None or read.tokens == (0,)


def test_a_distillation_token_without_a_head_is_not_started_from() -> None:
    assert trace(own(dist_token=True), pixels()).output_query() == "class"
    assert trace(own(dist_token=True, dist_head=True), pixels()).output_query() == "pool"


def test_an_output_that_hardly_moves_reads_what_all_others_read() -> None:
    model = reader("distilled")
    with torch.no_grad():
        model.second.weight[3] = 0  # type: ignore[union-attr, operator, index]
    recorded = trace(model, pixels(), layout=TokenLayout(GRID, ("class", "distillation")))
    assert recorded.structure.read is None


def test_a_query_that_the_target_is_not_read_from_is_refused_by_naming_one_that_it_is() -> None:
    model, layout = reader("a register"), TokenLayout(GRID, prefix("class", registers=3))
    with pytest.raises(ParameterError, match=r'not read from class token.* such as query="register 1"'):
        vv.explain(model, pixels(), layout=layout, query="class")
    asked = vv.explain(model, pixels(), layout=layout, query="register 1")["relevance"]
    np.testing.assert_array_equal(
        asked.values, vv.explain(model, pixels(), layout=layout)["relevance"].values
    )


def test_a_query_is_taken_by_the_methods_that_start_from_one() -> None:
    layout = TokenLayout(GRID)
    names = ("rollout", "attention", "attention_flow")
    maps = vv.explain(reader("class"), pixels(), methods=names, layout=layout, query=(2, 3))
    assert all("patch (2, 3)" in patch_map.caption for patch_map in maps.values())
    with pytest.raises(ParameterError, match="'saliency' takes no query"):
        vv.explain(reader("class"), pixels(), methods="saliency", layout=layout, query=(2, 3))


@pytest.mark.parametrize(
    ("tokens", "patches", "expected"),
    [
        ((0,), "evenly", "TokenLayout(grid=(2, 2), prefix=('class', 'register 0'))"),
        ((1, 2), "evenly", None),
        (
            (0, 2, 3, 4, 5),
            "evenly",
            "TokenLayout(grid=(2, 2), prefix=('class', 'register 0'), joins_patches=True)",
        ),
        (
            (1, 2, 3, 4, 5),
            "evenly",
            "TokenLayout(grid=(2, 2), prefix=('register 0', 'class'), joins_patches=True)",
        ),
        ((2, 3, 4, 5), "unevenly", None),
        ((2, 3, 4, 5), "by a softmax", None),
        (
            (2, 3, 4, 5),
            "by attention",
            "TokenLayout(grid=(2, 2), prefix=('class', 'register 0'), pooling=\"attention\")",
        ),
    ],
)
def test_the_layout_that_says_what_is_read(
    tokens: tuple[int, ...], patches: Any, expected: str | None
) -> None:
    layout = TokenLayout((2, 2), ("class", "register 0"))
    fitting = layout_that_reads(layout, TokensRead((tokens,), patches))
    assert (fitting and as_source(fitting)) == expected
    if fitting is not None:
        assert TokensRead((tokens,), patches).is_as_in(fitting)
