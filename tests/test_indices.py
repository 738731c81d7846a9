"""Layers, heads, tokens and patches by index, in every form in which people have them at hand."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from tests.traces import trace_from
from vit_viz.analyses.attention import attention_map, mosaic_maps
from vit_viz.analyses.heads import head_table
from vit_viz.analyses.key_segments import key_segments
from vit_viz.analyses.links import links
from vit_viz.analyses.method_input import MethodInput
from vit_viz.analyses.relevance import relevance
from vit_viz.analyses.rollout import ROLLOUT, RolloutOptions, rollout, value_rollout
from vit_viz.capture import Trace, edit
from vit_viz.errors import ParameterError
from vit_viz.geometry import TokenLayout
from vit_viz.indices import as_index, as_indices

LAYERS, HEADS, DIM, GRID, PREFIX = 3, 5, 8, (4, 6), ("class", "register 0")
TOKENS = len(PREFIX) + GRID[0] * GRID[1]
ONE = [np.int64(2), np.uint8(2), torch.tensor(2), torch.tensor([2]), np.array(2)]


@pytest.fixture
def trace() -> Trace:
    q, k = (2 * torch.randn(LAYERS, HEADS, TOKENS, DIM) for _ in range(2))
    return trace_from(q=q, k=k, layout=TokenLayout(grid=GRID, prefix=PREFIX))


@pytest.fixture
def whole() -> Trace:
    """A trace with values and a gradient."""
    q, k, v, gradient = (2 * torch.randn(LAYERS, HEADS, TOKENS, DIM) for _ in range(4))
    projections = [torch.randn(40, HEADS * DIM) for _ in range(LAYERS)]
    layout = TokenLayout(grid=GRID, prefix=PREFIX)
    return trace_from(q=q, k=k, v=v, output_grad=gradient, projections=projections, layout=layout)


@pytest.mark.parametrize("two", ONE, ids=str)
def test_a_number_may_be_an_int_a_numpy_integer_or_a_tensor_of_one(trace: Trace, two: object) -> None:
    expected = trace.attention(2, heads=2, queries=2)
    assert torch.equal(trace.attention(two, heads=two, queries=two), expected)
    assert torch.equal(trace.received(two, keys=two, heads=two), trace.received(2, keys=2, heads=2))
    assert next(trace.tiles(two))[1].shape == next(trace.tiles(2))[1].shape
    assert trace.source(two) == trace.source(2)


@pytest.mark.parametrize("two", ONE, ids=str)
def test_a_normaliser_is_kept_once_whatever_names_its_layer(trace: Trace, two: object) -> None:
    assert trace.normaliser(two) is trace.normaliser(2)


@pytest.mark.parametrize("two", ONE, ids=str)
def test_maps_say_the_same_of_every_kind_of_number(trace: Trace, two: object) -> None:
    plain = attention_map(trace, layer=2, head=2, query=(2, 2))
    other = attention_map(trace, layer=two, head=two, query="class")
    assert other.caption == plain.caption.replace("patch (2, 2)", "class token")
    assert dict(other.provenance.parameters)["head"] == "2"


@pytest.mark.parametrize("two", [np.int64(2), torch.tensor(2)], ids=str)
def test_a_patch_is_found_by_every_kind_of_number(trace: Trace, two: object) -> None:
    expected = rollout(trace, query=(2, 2), layers=(0, 2))
    np.testing.assert_array_equal(rollout(trace, query=(two, two), layers=(0, two)).values, expected.values)
    assert rollout(trace, query=(two, two), layers=(0, two)).caption == expected.caption


@pytest.mark.parametrize("form", [list, np.array, torch.tensor])
def test_lists_arrays_and_tensors_choose_in_their_order(trace: Trace, form: object) -> None:
    heads, queries = form([4, 0]), form([7, 3, 25])  # type: ignore[operator]
    expected = trace.attention(1)[[4, 0]][:, [7, 3, 25]]
    torch.testing.assert_close(trace.attention(1, heads=heads, queries=queries), expected)
    columns = trace.received(1, keys=None)[..., [7, 3, 25]]
    torch.testing.assert_close(trace.received(1, keys=queries), columns)


@pytest.mark.parametrize("form", [list, np.array, torch.tensor])
def test_a_boolean_mask_chooses_where_it_is_true(trace: Trace, form: object) -> None:
    heads, tokens = [False, True, False, False, True], [False] * TOKENS
    tokens[1] = tokens[9] = tokens[25] = True
    heads_mask, tokens_mask = form(heads), form(tokens)  # type: ignore[operator]
    chosen = trace.attention(1, heads=heads_mask, queries=tokens_mask)
    torch.testing.assert_close(chosen, trace.attention(1, heads=[1, 4], queries=[1, 9, 25]))
    received = trace.received(1, keys=tokens_mask, heads=heads_mask)
    torch.testing.assert_close(received, trace.received(1, keys=[1, 9, 25], heads=[1, 4]))


def test_a_mask_of_nothing_chooses_nothing(trace: Trace) -> None:
    assert trace.attention(0, queries=torch.zeros(TOKENS, dtype=torch.bool)).shape == (HEADS, 0, TOKENS)


@pytest.mark.parametrize("length", [1, HEADS, TOKENS - 1, TOKENS + 1])
def test_a_mask_of_another_length_is_refused(trace: Trace, length: int) -> None:
    mask = torch.ones(length, dtype=torch.bool)
    with pytest.raises(ParameterError, match=f"one entry for each of the {TOKENS} tokens"):
        trace.attention(0, queries=mask)
    with pytest.raises(ParameterError, match=f"one entry for each of the {TOKENS} tokens"):
        trace.received(0, keys=mask)


@pytest.mark.parametrize(
    "wrong", [1.5, [1.0], ["class"], torch.tensor([[1], [2]]), np.array([0.5]), [[1, 2]], print], ids=str
)
def test_what_is_no_index_is_refused_in_a_sentence(trace: Trace, wrong: object) -> None:
    with pytest.raises(ParameterError, match=r"^Tokens are chosen by indices, .*\.$"):
        trace.attention(0, queries=wrong)
    with pytest.raises(ParameterError, match=r"^Heads are chosen by indices, .*\.$"):
        trace.attention(0, heads=wrong)


@pytest.mark.parametrize(
    ("words", "tokens"),
    [("class", [0]), ("register 0", [1]), ("3,4", [24]), ("3,4;0,5", [7, 24]), ("pool", [0])],
)
def test_tokens_are_chosen_by_words(trace: Trace, words: str, tokens: list[int]) -> None:
    assert torch.equal(trace.attention(1, queries=words), trace.attention(1, queries=tokens))
    assert torch.equal(trace.received(1, keys=words), trace.received(1, keys=tokens))


@pytest.mark.parametrize("words", ["register 1", "4,0", "", "0"])
def test_words_for_no_token_are_refused(trace: Trace, words: str) -> None:
    with pytest.raises(ParameterError, match=r"does not exist|has no token"):
        trace.attention(0, queries=words)
    with pytest.raises(ParameterError, match=r"^Heads are chosen by indices"):
        trace.attention(0, heads=words)


@pytest.mark.parametrize(("words", "query"), [("3,4", (3, 4)), ("3,4;0,5", [(3, 4), (0, 5)])])
def test_maps_and_tables_take_patches_as_text(trace: Trace, words: str, query: object) -> None:
    for call in (
        partial(attention_map, trace, layer=1),
        partial(rollout, trace),
        partial(head_table, trace, measure="rollout_share"),
        lambda query: ROLLOUT.run(MethodInput(recorded=trace, start=query), RolloutOptions()),
    ):
        got, expected = call(query=words), call(query=query)
        np.testing.assert_array_equal(got.values, expected.values)
        assert got.provenance == expected.provenance
    np.testing.assert_array_equal(mosaic_maps(trace, query=words), mosaic_maps(trace, query=query))


@pytest.mark.parametrize(
    "wrong", [1.0, True, np.True_, torch.tensor(True), "1", None, [1], torch.ones(2)], ids=str
)
def test_what_is_no_number_names_no_layer(trace: Trace, wrong: object) -> None:
    with pytest.raises(ParameterError, match="whole number"):
        trace.attention(wrong)
    with pytest.raises(ParameterError, match="whole number"):
        attention_map(trace, layer=wrong)


@pytest.mark.parametrize("index", [-1, TOKENS, np.int64(TOKENS), torch.tensor([0, TOKENS])], ids=str)
def test_an_index_beyond_the_trace_is_refused(trace: Trace, index: object) -> None:
    with pytest.raises(ParameterError, match=f"tokens 0-{TOKENS - 1}"):
        trace.attention(0, queries=index)


def test_large_arrays_are_not_written_into_the_sentence() -> None:
    with pytest.raises(ParameterError, match=r"not by ndarray of shape \[900\]"):
        as_indices("Token", np.ones(900) / 2, 901)
    with pytest.raises(ParameterError) as caught:
        as_index("A layer", "x" * 5000)
    assert len(str(caught.value)) < 200


LAYER_METHODS: dict[str, Callable[[Trace, int], Any]] = {
    "attention": lambda trace, layer: trace.attention(layer),
    "received": lambda trace, layer: trace.received(layer, keys="class"),
    "tiles": lambda trace, layer: torch.cat([tile for _, tile in trace.tiles(layer, block=7)], 1),
    "normaliser": lambda trace, layer: trace.normaliser(layer),
    "attention_gradient": lambda trace, layer: trace.attention_gradient(layer),
    "value_norms": lambda trace, layer: trace.value_norms(layer),
    "source": lambda trace, layer: trace.source(layer),
    "determined_by_qk": lambda trace, layer: trace.determined_by_qk(layer),
    "attention_map": lambda trace, layer: attention_map(trace, layer=layer).values,
    "links": lambda trace, layer: links(trace, layer=layer, count=5).scores,
    "key_segments": lambda trace, layer: key_segments(trace, layer=layer).labels,
}


@pytest.mark.parametrize("layer", [-1, -2, -LAYERS])
@pytest.mark.parametrize("name", LAYER_METHODS)
def test_negative_layers_count_from_the_last(whole: Trace, name: str, layer: int) -> None:
    ask = LAYER_METHODS[name]
    got, expected = ask(whole, layer), ask(whole, LAYERS + layer)
    assert got == expected if isinstance(got, str | bool) else np.array_equal(got, expected)


@pytest.mark.parametrize("layer", [LAYERS, -LAYERS - 1])
@pytest.mark.parametrize("name", LAYER_METHODS)
def test_a_layer_beyond_either_end_is_refused(whole: Trace, name: str, layer: int) -> None:
    with pytest.raises(ParameterError, match=rf"^Layer {layer} does not exist: this model has layers 0-2\.$"):
        LAYER_METHODS[name](whole, layer)


@pytest.mark.parametrize(("given", "meant"), [((0, -1), (0, 2)), ((-2, 3), (1, 3)), ((-3, -2), (0, 1))])
def test_ranges_of_layers_are_those_of_a_slice(whole: Trace, given: Any, meant: Any) -> None:
    for call in (rollout, value_rollout, relevance):
        got, expected = call(whole, layers=given), call(whole, layers=meant)
        np.testing.assert_array_equal(got.values, expected.values)
        assert (got.caption, got.provenance) == (expected.caption, expected.provenance)


@pytest.mark.parametrize("wrong", [(0, 0), (-1, -1), (-4, 2), (0, 4), (1,), 2, (0, 1, 2)])
def test_what_is_no_range_of_layers_is_refused(whole: Trace, wrong: Any) -> None:
    with pytest.raises(ParameterError, match=r"^Layers .*range .*[^.]\.$"):
        rollout(whole, layers=wrong)


def test_edits_count_layers_from_the_first() -> None:
    for wrong in ({"heads": {(-1, 0): 0.0}}, {"temperature": {-2: 0.5}}, {"knockout": {-1: [(0, 1)]}}):
        with (
            pytest.raises(ParameterError, match=r"^Layer -\d does not exist: an edit counts .*\.$"),
            edit(**wrong),
        ):
            pass
