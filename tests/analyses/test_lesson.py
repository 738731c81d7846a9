"""The lesson's numbers: against the trace and the model's own parts, and by hand for weights that are whole numbers.

The tiny models have random weights; nothing that they say means anything.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import vit_viz as vv
from tests.analyses.conftest import loaded_from
from tests.comparing import assert_same
from tests.kinds import RANDOM_MODELS
from vit_viz.analyses.lesson import LessonAttention, LessonBlock, LessonDepth, LessonTokens
from vit_viz.capture import Trace
from vit_viz.errors import ParameterError
from vit_viz.images import Preprocess
from vit_viz.model import VisionTransformer, ViTConfig
from vit_viz.outputs import shown
from vit_viz.samples import sample

pytestmark = pytest.mark.numbers

HEAD, LAYER = 3, 1
Lesson = tuple[vv.LoadedModel, Tensor, Trace]
MakeModel = Callable[..., VisionTransformer]


@pytest.fixture(params=RANDOM_MODELS.values(), ids=RANDOM_MODELS.keys())
def lesson(request: pytest.FixtureRequest, make_model: MakeModel) -> Lesson:
    """A tiny model of random weights, a random input of its size, and their trace."""
    return subject(make_model(**request.param))


@pytest.fixture
def registers(make_model: MakeModel) -> Lesson:
    """The tiny model with class token and four registers."""
    return subject(make_model(reg_tokens=4))


def subject(model: VisionTransformer, **declared: Any) -> Lesson:
    config = model.config
    loaded = loaded_from(model, **declared)
    recipe = Preprocess(
        config.img_size, config.patch_size, channels=config.in_chans, mean=(0.25,), std=(0.125,)
    )
    object.__setattr__(loaded, "preprocess", recipe)
    random = torch.Generator().manual_seed(5)
    pixels = torch.randn(1, config.in_chans, *config.img_size, generator=random)
    return loaded, pixels, vv.trace(model, pixels, keep_values=True, keep_residual=True)


def patch_of(recorded: Trace) -> tuple[tuple[int, int], int]:
    """A patch of no special place, and its token."""
    rows, cols = recorded.layout.grid
    place = min(2, rows - 1), min(4, cols - 1)
    return place, recorded.layout.token(place)


def close(found: Any, expected: Any, tolerance: float = 1e-5) -> None:
    expected = expected.detach().double().numpy() if isinstance(expected, Tensor) else expected
    assert_same(np.asarray(found, np.float64), expected, relative=tolerance)


def ask_tokens(lesson: Lesson, **options: Any) -> LessonTokens:
    return vv.run(*lesson[:2], "lesson_tokens", **options)  # type: ignore[no-any-return]


def ask_attention(lesson: Lesson, **options: Any) -> LessonAttention:
    return vv.run(*lesson[:2], "lesson_attention", **options)  # type: ignore[no-any-return]


def ask_block(lesson: Lesson, **options: Any) -> LessonBlock:
    return vv.run(*lesson[:2], "lesson_block", **options)  # type: ignore[no-any-return]


def ask_depth(lesson: Lesson, **options: Any) -> LessonDepth:
    return vv.run(*lesson[:2], "lesson_depth", **options)  # type: ignore[no-any-return]


# --- against the trace and the model's own parts


def test_a_patch_becomes_the_token_that_the_trace_recorded(lesson: Lesson) -> None:
    loaded, pixels, recorded = lesson
    assert recorded.residual is not None
    model, (place, token) = loaded.model, patch_of(recorded)
    height, width = model.config.patch_size
    told = ask_tokens(lesson, query=place)
    whole = pixels[0, :, place[0] * height :, place[1] * width :][:, :height, :width]
    close(told.flat, whole.flatten(), 0)
    close(told.pixels, whole * 0.125 + 0.25, 1e-6)
    close(told.embedded, model.patch_embed(pixels)[0, token - recorded.layout.num_prefix])
    close(told.token, recorded.residual[0, token])
    close(told.prefix, recorded.residual[0, : recorded.layout.num_prefix])
    total = model.norm_pre(torch.from_numpy(told.embedded + told.position))
    close(told.token, total)
    assert told.position.any() == (model.config.position not in ("rotary", "none"))
    assert told.place == place


def test_a_position_is_as_alike_to_others_as_the_positions_say(lesson: Lesson) -> None:
    loaded, _, recorded = lesson
    place, _ = patch_of(recorded)
    told = ask_tokens(lesson, query=place)
    if loaded.model.config.position_kind in ("none", "relative"):
        assert told.places.shape == (0, 0)
    else:
        close(told.places, vv.position_similarity(loaded, grid=recorded.layout.grid).tile(*place))


def test_one_token_asks_as_the_trace_recorded(lesson: Lesson) -> None:
    loaded, _, recorded = lesson
    place, token = patch_of(recorded)
    assert recorded.v is not None
    for layer in range(recorded.num_layers):
        told = ask_attention(lesson, query=place, layer=layer, head=HEAD)
        q, k, v = recorded.q[layer, HEAD], recorded.k[layer, HEAD], recorded.v[layer, HEAD]
        weights = recorded.attention(layer, HEAD, [token])[0, 0]
        close(told.query, q[token])
        close(told.keys, k)
        close(told.values, v)
        close(told.weights, weights)
        close(told.output, weights @ v)
        bias = recorded.layers[layer].bias
        added = torch.zeros_like(q @ k.T) if bias is None else bias[HEAD]
        scores = q @ k.T * recorded.scales[layer] + added
        close(told.products, (q @ k.T)[token])
        close(told.scores, scores[token])
        config = loaded.model.config
        assert (told.token, told.layer, told.head) == (token, layer, HEAD)
        assert told.scale == pytest.approx(config.scale or 8**-0.5)
        assert told.has_bias == (config.relative_bias or config.shared_bias)


def test_a_block_adds_what_its_parts_return(lesson: Lesson) -> None:
    loaded, pixels, recorded = lesson
    place, token = patch_of(recorded)
    assert recorded.residual is not None
    assert recorded.v is not None
    model = loaded.model
    for layer, block in enumerate(model.blocks):
        told, x = ask_block(lesson, query=place, layer=layer), recorded.residual[layer]
        close(told.before, x[token])
        close(told.after, recorded.residual[layer + 1, token])
        places = model.places(model.grid_of(*pixels.shape[-2:]))
        attended = block.ls1(block.attn(block.norm1(x)[None], places))[0]
        close(told.attended, attended[token])
        close(told.middle, (x + attended)[token])
        close(told.thought, block.ls2(block.mlp(block.norm2(x + attended)))[token])
        close(told.contributions.sum(0) + told.rest, attended[token])
        rows = recorded.attention(layer, queries=[token])
        close(told.weights, rows[:, 0])
        close(told.outputs, (rows @ recorded.v[layer])[:, 0])


def test_what_a_head_contributes_is_what_is_missing_without_it(registers: Lesson) -> None:
    told = ask_block(registers, query=(2, 4), layer=0)
    with vv.edit(heads={(0, HEAD): 0.0}):
        without = ask_block(registers, query=(2, 4), layer=0)
    close(told.attended - without.attended, told.contributions[HEAD], 1e-4)
    assert not without.contributions[HEAD].any()


def test_the_nonlinearity_makes_the_mlp_of_what_is_told(lesson: Lesson) -> None:
    loaded, _, recorded = lesson
    place, _ = patch_of(recorded)
    told, block = ask_block(lesson, query=place, layer=LAYER), loaded.model.blocks[LAYER]
    inputs, mlp = block.norm2(torch.from_numpy(told.middle.copy())), block.mlp
    seen: list[Tensor] = []
    with torch.no_grad():
        handle = mlp.fc2.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
        mlp(inputs)
        handle.remove()
        product = torch.from_numpy(told.activated.copy())
        if loaded.model.config.mlp == "swiglu":
            product = product * mlp.fc1_x(inputs)
        elif loaded.model.config.mlp == "swiglu_packed":
            product = product * mlp.fc1(inputs).chunk(2)[1]
    close(product, mlp.norm(seen[0]) if not isinstance(mlp.norm, torch.nn.Identity) else seen[0])
    assert told.hidden.shape == (ask_tokens(lesson).shape["hidden"],)


def test_a_token_and_the_answer_go_through_all_blocks(lesson: Lesson) -> None:
    loaded, _, recorded = lesson
    place, token = patch_of(recorded)
    assert recorded.residual is not None
    told, stream, layout = ask_depth(lesson, query=place), recorded.residual, recorded.layout
    layers = range(recorded.num_layers)
    close(told.stream, stream[:, token])
    patches = stream[:, layout.patch_slice]
    alike = torch.nn.functional.cosine_similarity(patches, stream[:, token, None], dim=-1)
    close(told.alike, alike.reshape(-1, *layout.grid))
    attention = torch.stack([recorded.attention(layer).mean(0) for layer in layers])
    read = [layout.token(name) for name in layout.class_tokens] if layout.pooling == "class" else None
    rows = attention[:, layout.patch_slice if read is None else read]
    close(told.answer_looks, rows.mean(1))
    said = torch.stack([loaded.model.classify(state[None])[0] for state in stream])
    close(told.agreement, torch.nn.functional.cosine_similarity(said, said[-1:], dim=-1))
    assert recorded.logits is not None
    close(said[-1], recorded.logits)
    if told.kind == "embedding":
        assert (told.classes, told.words, told.tops.shape) == ((), (), (len(stream), 0))
    else:
        close(told.tops, shown(said, None)[:, list(told.classes)])
        assert told.classes[:5] == tuple(recorded.logits.topk(5).indices.tolist())
        first = {i for row in said.topk(3).indices.tolist() for i in row}
        assert set(told.classes) == first | set(told.classes[:5])


def test_the_bundled_model_is_read_as_its_trace_says() -> None:
    loaded = vv.load("mini", device="cpu")
    pixels = loaded.preprocess.apply(sample("shapes"), mode="fit").pixels
    lesson = loaded, pixels, vv.trace(loaded, pixels, keep_residual=True)
    recorded = lesson[2]
    assert recorded.residual is not None
    assert recorded.logits is not None
    place, token = patch_of(recorded)
    for layer in range(recorded.num_layers):
        told = ask_block(lesson, query=place, layer=layer)
        close(told.after, recorded.residual[layer + 1, token])
        one = ask_attention(lesson, query="class", layer=layer, head=HEAD)
        close(one.weights, recorded.attention(layer, HEAD, "class")[0, 0])
        close(one.scores, recorded.q[layer, HEAD, 0] @ recorded.k[layer, HEAD].T * recorded.scales[layer])
    deep = ask_depth(lesson)
    close(deep.tops[-1], recorded.logits.softmax(-1)[list(deep.classes)])
    assert deep.words[0] == loaded.labels.names[int(recorded.logits.argmax())]  # type: ignore[union-attr]


def test_vit_tiny_is_read_as_its_trace_says(shared_data: Path) -> None:
    loaded = vv.load(shared_data / "vit_tiny_patch16_224.fp16.safetensors", device="cpu")
    pixels = loaded.preprocess.apply(sample("shapes"), mode="fit").pixels
    lesson = loaded, pixels, vv.trace(loaded, pixels, keep_residual=True)
    recorded = lesson[2]
    assert recorded.residual is not None
    for layer in (0, 7, 11):
        told = ask_block(lesson, layer=layer)
        close(told.after, recorded.residual[layer + 1, 0])
        close(told.weights, recorded.attention(layer, queries=[0])[:, 0])


# --- by hand

HAND = {
    "norm": "rms", "norm_eps": 1e-12, "position": "none", "final_norm": False, "qkv_bias": False, "scale": 0.5,
}  # fmt: skip


def by_hand(*, prefix: bool = False) -> Lesson:
    """Two patches, of one pixel each, and two numbers a token: (1, 1) for a bright patch and (1, -1) for a dark one.

    All have length sqrt(2), so that the norms, by the root of the mean of squares, leave them as they are.

    Args:
        prefix: a class token (1, -1) and a register (1, 1) stand before the patches.
    """
    tokens = {"class_token": True, "reg_tokens": 1} if prefix else {"class_token": False, "pooling": "mean"}
    config = ViTConfig(
        img_size=(1, 2), patch_size=1, in_chans=1, embed_dim=2, depth=1, num_heads=1, mlp_hidden=2, num_classes=2,
        **HAND | tokens,
    )  # fmt: skip
    model = VisionTransformer(config).eval()
    block = model.blocks[0]
    values = {
        model.patch_embed.proj.weight: [0, 1],
        model.patch_embed.proj.bias: [1, 0],
        block.norm1.weight: [1, 1],
        block.norm2.weight: [0, 0],
        block.attn.qkv.weight: [
            1,
            1,
            0,
            1,
            1,
            0,
            0,
            1,
            1,
            0,
            0,
            1,
        ],  # q: (a + b, b); k and v: the token itself
        block.attn.proj.weight: [2, 0, 0, 2],
        block.attn.proj.bias: [0.5, 0],
        block.mlp.fc1.weight: [0, 0, 0, 0],
        block.mlp.fc1.bias: [1, -1],
        block.mlp.fc2.weight: [1, 0, 0, 1],
        block.mlp.fc2.bias: [0, 0],
        model.head.weight: [1, 0, 0, 1],
        model.head.bias: [0, 0],
    }
    if prefix:
        assert model.cls_token is not None
        assert model.reg_token is not None
        values |= {model.cls_token: [1, -1], model.reg_token: [1, 1]}
    with torch.no_grad():
        for parameter, numbers in values.items():
            parameter.copy_(torch.tensor(numbers, dtype=torch.float32).reshape(parameter.shape))
    loaded, _, _ = subject(model)
    pixels = torch.tensor([[[[1.0, -1.0]]]])
    return loaded, pixels, vv.trace(model, pixels, keep_residual=True)


def test_tokens_by_hand() -> None:
    told = ask_tokens(by_hand(), query=(0, 1))
    close(told.flat, [-1])
    close(told.pixels, [[[0.125]]])
    close(told.embedded, [1, -1])
    close(told.token, [1, -1])
    assert not told.position.any()
    assert told.prefix.shape == (0, 2)
    told = ask_tokens(by_hand(prefix=True), query=(0, 1))
    close(told.prefix, [[1, -1], [1, 1]])
    assert (told.place, told.shape["read"]) == ((0, 1), "the class token")


def test_attention_by_hand() -> None:
    """The bright patch asks with (2, 1), the dark one with (0, -1)."""
    told, e = ask_attention(by_hand(), query=(0, 0)), math.e
    close(told.query, [2, 1])
    close(told.keys, [[1, 1], [1, -1]])
    close(told.products, [3, 1])
    close(told.scores, [1.5, 0.5])
    first = e / (e + 1)
    close(told.weights, [first, 1 - first])
    close(told.output, [1, 2 * first - 1])


def test_attention_by_hand_with_two_tokens_before_the_patches() -> None:
    told, e = ask_attention(by_hand(prefix=True), query=(0, 0)), math.e
    close(told.products, [1, 3, 3, 1])
    close(told.weights, np.array([1, e, e, 1]) / (2 * e + 2))
    assert (told.token, told.name) == (2, "patch (0, 0)")


def test_a_block_by_hand() -> None:
    told, first = ask_block(by_hand(), query=(0, 0)), math.e / (math.e + 1)
    close(told.contributions, [[2, 4 * first - 2]])
    close(told.rest, [0.5, 0])
    close(told.middle, [3.5, 4 * first - 1])
    close(told.hidden, [1, -1])
    close(told.activated, [0.8413447, -0.1586553])
    close(told.after, [4.3413447, 4 * first - 1 - 0.1586553])


def test_depth_by_hand() -> None:
    """The mean of both patches is (1, 0) before the block: class 0 has 1 / (1 + 1/e) of it."""
    told, first = ask_depth(by_hand(), query=(0, 0)), math.e / (math.e + 1)
    close(told.tops[0], [first, 1 - first])
    dark = 1 / (1 + math.e)  # what the dark patch gives the bright one: scores -0.5 and 0.5
    close(told.answer_looks, [[(first + dark) / 2, (2 - first - dark) / 2]])
    close(told.alike[0], [[1, 0]])
    assert (told.classes, told.kind) == ((0, 1), "probability")
    several = ask_depth(by_hand(prefix=True), query="register 0")
    close(several.alike[0], [[1, 0]])
    close(several.answer_looks, [np.array([math.e, 1, 1, math.e]) / (2 * math.e + 2)])  # of the class token


# --- an edited model


@pytest.mark.parametrize(
    "edits",
    [
        "off 1.3",
        "mean 1.3",
        "uniform 1.3",
        "temperature 1=0.5",
        "forbid patches>registers@1",
        "off 0.1;mean 1.2",
    ],
)
def test_an_edited_model_is_read_as_it_runs(registers: Lesson, edits: str) -> None:
    loaded, pixels, _ = registers
    recorded = vv.run(loaded, pixels, "lesson_depth", query=(2, 4), edits=edits)
    place, asked = (2, 4), {"query": (2, 4), "edits": edits}
    head = ask_attention(registers, **asked, layer=LAYER, head=HEAD)
    weights = np.exp(head.scores.astype(np.float64))
    close(head.weights, weights / weights.sum())
    look = vv.run(loaded, pixels, "look", query=place, layer=LAYER, head=str(HEAD), edits=edits)
    close(head.weights[5:].reshape(4, 6), look.values)
    for layer in range(3):
        told = ask_block(registers, **asked, layer=layer)
        close(told.before, recorded.stream[layer])
        close(told.after, recorded.stream[layer + 1])
    close(head.output, ask_block(registers, **asked, layer=LAYER).outputs[HEAD])
    plain = ask_depth(registers, query=place)
    assert np.abs(plain.stream - recorded.stream).max() > 1e-3


def test_a_temperature_divides_the_scale_of_its_layer(registers: Lesson) -> None:
    scales = [ask_attention(registers, layer=layer, edits="temperature 1=0.5").scale for layer in (0, 1)]
    close(scales, [8**-0.5, 2 * 8**-0.5])


def test_a_head_that_is_off_hands_on_nothing_and_looks_as_before(registers: Lesson) -> None:
    before = ask_attention(registers, query=(2, 4), layer=0, head=1)
    told = ask_attention(registers, query=(2, 4), layer=0, head=1, edits="off 0.1")
    close(told.weights, before.weights)
    assert not told.output.any()


def test_a_forbidden_key_has_the_score_minus_infinity(registers: Lesson) -> None:
    told = ask_attention(
        registers, query="class", layer=0, edits="forbid class>patches;forbid everything>token 3"
    )
    assert not told.has_bias
    assert np.isneginf(told.scores[5:]).all()
    assert not told.weights[5:].any()


# --- what is asked about


@pytest.mark.parametrize(
    ("options", "token"),
    [
        ({"reg_tokens": 4}, 0),
        ({"class_tokens": 3, "class_read": (2, 0)}, 0),
        ({"class_token": False, "pooling": "mean"}, 2 * 6 + 3),
        ({"class_token": False, "reg_tokens": 2, "pooling": "attention"}, 2 + 2 * 6 + 3),
    ],
)
def test_without_a_query_it_is_what_the_answer_is_read_from_or_the_middle(
    make_model: MakeModel, options: dict[str, Any], token: int
) -> None:
    lesson = subject(make_model(**options))
    assert ask_depth(lesson).token == token
    assert ask_attention(lesson, query="pool").token == token
    assert ask_tokens(lesson).place == (2, 3)


def test_a_token_is_told_by_its_query(registers: Lesson) -> None:
    assert ask_block(registers, query="register 2").token == 3
    assert ask_block(registers, query="1,2;3,4").name == "patch (1, 2)"
    of_patch = ask_tokens(registers, query="register 2")
    assert (of_patch.place, dict(of_patch.provenance.parameters)["query"]) == ((2, 3), "patch (2, 3)")
    assert ask_tokens(registers, query="1,2").place == (1, 2)


def test_layers_count_from_the_end_as_well(registers: Lesson) -> None:
    close(ask_block(registers, layer=-2).after, ask_block(registers, layer=1).after, 0)
    close(ask_attention(registers).scores, ask_attention(registers, layer=2, head=0).scores, 0)


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("lesson_attention", {"layer": 3}, "layers 0-2"),
        ("lesson_attention", {"head": 5}, "heads 0-4"),
        ("lesson_block", {"layer": 3}, "layers 0-2"),
        ("lesson_depth", {"query": "register 4"}, "no token 'register 4'"),
        ("lesson_tokens", {"query": (4, 0)}, "rows are 0-3"),
    ],
)
def test_what_does_not_exist_is_refused_in_words(
    registers: Lesson, name: str, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(ParameterError, match=words):
        vv.run(*registers[:2], name, **options)


# --- kinds of outputs, and how the model is described


def test_an_output_that_is_a_value_is_told_as_it_is(make_model: MakeModel) -> None:
    loaded, pixels, recorded = subject(make_model(num_classes=1))
    told = vv.run(loaded, pixels, "lesson_depth")
    assert (told.kind, told.unit, told.classes, told.words) == ("value", "value", (0,), ("output 0",))
    close(told.tops[-1], recorded.logits)


def test_a_sigmoid_is_told_as_one(make_model: MakeModel) -> None:
    loaded, pixels, recorded = subject(make_model(), output="sigmoid")
    told = vv.run(loaded, pixels, "lesson_depth")
    assert recorded.logits is not None
    assert (told.kind, told.unit) == ("probability", "probability (sigmoid)")
    close(told.tops[-1], recorded.logits.sigmoid()[list(told.classes)])


def test_at_most_24_classes_are_followed_those_of_the_last_states_first(make_model: MakeModel) -> None:
    model = make_model(depth=14, num_classes=101)
    with torch.no_grad():
        for layer, block in enumerate(model.blocks):
            block.mlp.fc2.weight.mul_(2**layer)  # each block says something else than those before it
    loaded, pixels, recorded = subject(model)
    told = vv.run(loaded, pixels, "lesson_depth")
    said = [loaded.model.classify(state[None])[0] for state in recorded.residual]
    ranked = [one.topk(3).indices.tolist() for one in reversed(said)]
    assert len({i for row in ranked for i in row}) > 24
    expected = said[-1].topk(5).indices.tolist() + [i for row in ranked[1:] for i in row]
    assert told.classes == tuple(dict.fromkeys(expected))[:24]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "the class token"),
        ({"dist_token": True, "dist_head": True}, "the tokens class and distillation"),
        ({"pool_concat": True}, "the class token and the mean of the patches"),
        ({"pooling": "mean", "pool_prefix": True}, "the mean of all tokens"),
        ({"pooling": "attention", "class_token": False}, "what a learned query gathers from the patches"),
    ],
)
def test_the_shape_says_what_the_answer_is_read_from(
    make_model: MakeModel, options: dict[str, Any], words: str
) -> None:
    assert ask_tokens(subject(make_model(**options))).shape["read"] == words


def test_the_shape_is_that_of_the_configuration(make_model: MakeModel) -> None:
    model = make_model(position="rotary", mlp="swiglu_packed", num_classes=0)
    more = {"hidden": 24, "classes": 0, "rotary": True, "relative": False, "read": "the class token"}
    assert dict(ask_tokens(subject(model)).shape) == model.config.to_dict() | more
    offsets = [make_model(position="none", relative_bias=True), make_model(shared_bias=True)]
    for shape in (ask_tokens(subject(one)).shape for one in offsets):
        assert (shape["rotary"], shape["relative"], shape["classes"]) == (False, True, 7)
    beside = ask_tokens(subject(make_model(position="none", rotary_grid=(3, 5))))
    assert beside.shape["rotary"]
    assert beside.places.shape == (4, 6)  # the angles say how alike two places are


def test_a_mean_of_all_tokens_is_read_of_all_and_one_without_removed_tokens_of_the_others(
    make_model: MakeModel,
) -> None:
    everything = subject(make_model(pooling="mean", pool_prefix=True, reg_tokens=1))
    recorded = everything[2]
    rows = torch.stack([recorded.attention(layer).mean((0, 1)) for layer in range(recorded.num_layers)])
    close(ask_depth(everything).answer_looks, rows)
    loaded, pixels, _ = subject(make_model(class_token=False, pooling="mean"))
    with vv.edit(mask_keys=[1, 7]):
        told = ask_depth((loaded, pixels, recorded))
        without = vv.trace(loaded.model, pixels)
    left = [token for token in range(24) if token not in (1, 7)]
    rows = torch.stack([without.attention(layer, queries=left).mean((0, 1)) for layer in range(3)])
    close(told.answer_looks, rows)
    close(told.tops[-1], without.logits.softmax(-1)[list(told.classes)])


def test_every_number_changes_with_the_model(registers: Lesson) -> None:
    loaded, pixels, _ = registers
    asked = {"lesson_tokens": {}, "lesson_attention": {"layer": 1, "head": 2}, "lesson_block": {"layer": 1}}
    asked |= {"lesson_depth": {}}
    before = {name: vv.run(loaded, pixels, name, query=(1, 2), **options) for name, options in asked.items()}
    with torch.no_grad():
        for parameter in loaded.model.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    for name, old in before.items():
        new = vv.run(loaded, pixels, name, query=(1, 2), **asked[name])
        for field in fields(old):
            value = getattr(old, field.name)
            if isinstance(value, np.ndarray) and field.name not in ("pixels", "flat"):
                assert not np.array_equal(value, getattr(new, field.name)), (name, field.name)
