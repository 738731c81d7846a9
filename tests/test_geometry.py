"""Token <-> patch <-> pixel, on layouts in which no two sizes are equal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st

from vit_viz.errors import ParameterError
from vit_viz.geometry import CropBox, TokenLayout, as_query, format_query, parse_query

LAYOUTS = [
    TokenLayout(grid=(4, 6), prefix=()),
    TokenLayout(grid=(4, 6), prefix=("class",)),
    TokenLayout(grid=(4, 6), prefix=("class", "distillation")),
    TokenLayout(grid=(4, 6), prefix=("class", "register 0", "register 1", "register 2", "register 3")),
    TokenLayout(grid=(4, 6), prefix=("class",), suffix=("detection 0", "detection 1", "detection 2")),
    TokenLayout(grid=(4, 6), prefix=(), suffix=("class",)),
]


def test_prefix_tokens_come_before_patches_in_row_major_order() -> None:
    layout = TokenLayout(grid=(4, 6), prefix=("class", "register 0"))
    assert (layout.num_prefix, layout.num_patches, layout.num_tokens) == (2, 24, 26)
    assert layout.token("register 0") == 1
    assert layout.token((0, 0)) == 2
    assert layout.token((1, 3)) == 2 + 6 + 3
    assert layout.name(11) == "patch (1, 3)"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_token_and_name_are_inverse(layout: TokenLayout) -> None:
    for token in range(layout.num_tokens):
        name = layout.name(token)
        where = layout.place(token)
        assert layout.token(name if where is None else where) == token
        assert where is None or name == f"patch {where}"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_query_weights_sum_to_one(layout: TokenLayout) -> None:
    for query in ["pool", (3, 5), [(0, 0), (3, 5), (0, 0)], *layout.named]:
        assert layout.weights(query).sum() == pytest.approx(1)


def test_region_is_the_mean_of_its_different_patches() -> None:
    weights = TokenLayout(grid=(4, 6)).weights([(0, 0), (0, 1), (0, 0)])
    assert weights[1] == weights[2] == 0.5


def test_pool_is_what_the_output_is_read_from() -> None:
    class_pool, distilled = LAYOUTS[1].weights("pool"), LAYOUTS[2].weights("pool")
    assert class_pool[0] == 1
    assert distilled[0] == distilled[1] == 0.5
    alone = TokenLayout((4, 6), ("class", "distillation"), unread=("distillation",))
    assert (alone.class_tokens, alone.default_query) == (("class",), "class")
    assert list(np.flatnonzero(alone.weights("pool"))) == [0]
    mean_pool = TokenLayout(grid=(4, 6), pooling="mean")
    assert mean_pool.weights("pool")[0] == 0
    assert mean_pool.weights("pool")[1] == pytest.approx(1 / 24)
    assert mean_pool.default_query == "pool"
    assert LAYOUTS[0].pooling == "mean"


def test_suffix_tokens_come_after_the_patches() -> None:
    layout = TokenLayout(
        grid=(2, 5), prefix=("class", "register 0"), suffix=("detection 0", "detection 1", "text")
    )
    assert (layout.num_prefix, layout.num_patches, layout.num_suffix, layout.num_tokens) == (2, 10, 3, 15)
    assert layout.patch_slice == slice(2, 12)
    assert layout.token((1, 4)) == 11
    assert [layout.token(name) for name in layout.suffix] == [12, 13, 14]
    assert layout.name(11) == "patch (1, 4)"
    assert layout.name(13) == layout.describe("detection 1").removesuffix(" token") == "detection 1"
    assert layout.suffix_groups == {"detection": (12, 13), "text": (14,)}
    assert layout.place(1) is layout.place(12) is None


def test_patches_cuts_off_both_ends() -> None:
    layout = TokenLayout(grid=(2, 5), prefix=("class",), suffix=("detection 0", "detection 1", "detection 2"))
    values = np.arange(7 * 14).reshape(7, 14)
    assert layout.patches(values).shape == (7, 2, 5)
    assert layout.patches(values)[0].tolist() == [[1, 2, 3, 4, 5], [6, 7, 8, 9, 10]]
    assert torch.equal(layout.patches(torch.from_numpy(values)), torch.from_numpy(layout.patches(values)))


def test_mean_pool_leaves_out_suffix_tokens() -> None:
    layout = TokenLayout(
        grid=(2, 5), prefix=("class",), pooling="mean", suffix=("detection 0", "detection 1")
    )
    assert layout.tokens("pool") == tuple(range(1, 11))
    assert layout.weights("pool")[3] == pytest.approx(1 / 10)


def test_a_class_token_may_come_last() -> None:
    layout = TokenLayout(grid=(2, 5), prefix=(), suffix=("register 0", "class"))
    assert (layout.pooling, layout.default_query, layout.tokens("pool")) == ("class", "class", (11,))


@pytest.mark.parametrize(
    "names", [{"prefix": ("class", "class")}, {"suffix": ("class",)}, {"suffix": ("a", "a")}]
)
def test_a_name_that_is_there_twice_is_refused(names: dict[str, tuple[str, ...]]) -> None:
    with pytest.raises(ParameterError, match=r"different names, but '\w+' is there twice"):
        TokenLayout(grid=(2, 5), **names)  # type: ignore[arg-type]


def test_many_suffix_tokens_do_not_flood_the_error() -> None:
    layout = TokenLayout(grid=(2, 5), suffix=tuple(f"detection {i}" for i in range(100)))
    with pytest.raises(ParameterError, match=r"suffix tokens are: detection 0 \.\.\. detection 99\.$"):
        layout.token("detection 100")
    with pytest.raises(ParameterError, match="tokens are 0-110"):
        layout.name(111)


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("register 4", "prefix tokens are: class"),
        ((4, 0), "rows are 0-3"),
        ((0, -1), "columns 0-5"),
        ([], "at least one patch"),
        ([1, 2, 3], "not"),
    ],
)
def test_impossible_query_is_refused_with_the_range(query: object, sentence: str) -> None:
    with pytest.raises(ParameterError, match=sentence):
        TokenLayout(grid=(4, 6)).weights(query)  # type: ignore[arg-type]


@pytest.mark.parametrize("grid", [(0, 3), (3, -1)])
def test_empty_grid_is_refused(grid: tuple[int, int]) -> None:
    with pytest.raises(ParameterError, match="at least 1 x 1"):
        TokenLayout(grid=grid)


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), min_size=1, max_size=5))
def test_query_text_round_trip(region: list[tuple[int, int]]) -> None:
    query = region[0] if len(region) == 1 else region
    assert parse_query(format_query(query)) == query


@pytest.mark.parametrize("text", ["", "7", "7,", "a,b", "1,2;x", "${alert(1)}", "<img src=x>", "7,8;-1,2"])
def test_query_text_that_means_nothing_is_refused(text: str) -> None:
    with pytest.raises(ParameterError, match="A query is"):
        parse_query(text)


def test_query_names_survive_the_text_form() -> None:
    for name in ("register 12", "detection 3", "detection 1099"):
        assert parse_query(name) == format_query(name) == name


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("3,4", (3, 4)),
        (" (3, 4) ", (3, 4)),
        ("3,4;0,5", [(3, 4), (0, 5)]),
        ("3,4; ", (3, 4)),
        ("class", "class"),
        ("7", "7"),
        ("pool", "pool"),
        ((3, 4), (3, 4)),
        ([(3, 4), (0, 5)], [(3, 4), (0, 5)]),
    ],
)
def test_patches_may_be_written_as_text(text: str, query: object) -> None:
    assert as_query(text) == query


PLACES = [[3, 4], [0, 5]]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ((np.int64(3), np.int32(4)), (3, 4)),
        ([3, 4], (3, 4)),
        (np.array([3, 4]), (3, 4)),
        (torch.tensor([3, 4]), (3, 4)),
        ((torch.tensor(3), torch.tensor(4)), (3, 4)),
        (PLACES, [(3, 4), (0, 5)]),
        (np.array(PLACES), [(3, 4), (0, 5)]),
        (torch.tensor(PLACES), [(3, 4), (0, 5)]),
        (((3, 4), (0, 5)), [(3, 4), (0, 5)]),
    ],
)
def test_patches_may_be_numbers_of_any_library(query: Any, expected: object) -> None:
    found = as_query(query)
    assert found == expected
    assert type(np.ravel(np.asarray(found, dtype=object))[0]) is int
    layout = TokenLayout(grid=(4, 6), prefix=("class",))
    assert layout.tokens(query) == layout.tokens(expected)  # type: ignore[arg-type]
    assert layout.describe(query) == layout.describe(expected)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "query",
    [0, np.int64(3), 1.5, True, (1, 2, 3), [0, 1, 2], (1.0, 2.0), [(1.0, 2.0)], (True, False), {"row": 1}, ["class"],
     slice(2), np.zeros((2, 3), int), torch.zeros(2), [(1, 2), 3]],
)  # fmt: skip
def test_a_query_that_names_no_token_says_what_does(query: Any) -> None:
    layout = TokenLayout(grid=(4, 6), prefix=("class",))
    for reads in (as_query, layout.weights, layout.describe, format_query):
        with pytest.raises(
            ParameterError, match=r'^A query is a token such as "class".* \(row, col\) or a list of'
        ):
            reads(query)


def test_a_layout_finds_patches_that_are_written_as_text() -> None:
    layout = TokenLayout(grid=(4, 6), prefix=("class", "7"))
    assert layout.tokens("3,4") == (2 + 3 * 6 + 4,)
    assert layout.tokens("3,4;0,5") == (2 + 5, 2 + 3 * 6 + 4)
    assert layout.tokens("7") == (1,)  # a name stays a name
    assert layout.describe("3,4") == "patch (3, 4)"
    assert format_query("3,4;0,5") == "3,4;0,5"
    with pytest.raises(ParameterError, match=r"Patch \(4, 0\) does not exist"):
        layout.weights("4,0")
    with pytest.raises(ParameterError, match="no token '3,x'"):
        layout.weights("3,x")


def test_patch_rectangle_by_hand() -> None:
    # 300 x 200 original; the centre 180 x 180 became 64 x 64 with 16-pixel patches: 4 x 4 patches of 45 original pixels
    box = CropBox(original_size=(300, 200), input_size=(64, 64), region=(60, 10, 180, 180))
    assert box.patch_rect(1, 2, (4, 4)) == (105, 100, 150, 145)
    assert box.locate(149.9, 100.0, (4, 4)) == (1, 2)
    assert box.locate(59.9, 100.0, (4, 4)) is None
    assert box.covers == pytest.approx(180 * 180 / (300 * 200))


@given(st.integers(0, 3), st.integers(0, 5), st.floats(0.01, 0.99), st.floats(0.01, 0.99))
def test_locate_inverts_patch_rectangle(row: int, col: int, down: float, right: float) -> None:
    box = CropBox(original_size=(100, 300), input_size=(64, 96), region=(-3.5, 20, 107, 240))
    top, left, bottom, end = box.patch_rect(row, col, (4, 6))
    assert box.locate(top + down * (bottom - top), left + right * (end - left), (4, 6)) == (row, col)


def test_padding_does_not_count_as_covered() -> None:
    box = CropBox(original_size=(100, 100), input_size=(64, 64), region=(-50, -50, 200, 200))
    assert box.covers == 1


def test_crop_box_survives_json() -> None:
    box = CropBox(original_size=(300, 200), input_size=(64, 64), region=(60.5, 10, 180, 180))
    assert CropBox.from_dict(box.to_dict()) == box
