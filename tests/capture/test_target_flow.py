"""Maps of a target that is a function of what the model returns start from the tokens that it reads, or are refused."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import vit_viz as vv
from tests.capture.misleading import COLS, PATCH, ROWS
from tests.capture.models import chains_by_hand, pixels
from tests.capture.readouts import (
    KINDS,
    Read,
    convolved,
    decoder,
    detector,
    readout,
    segmenter,
    smooth_segmenter,
    unetr,
    with_skips,
)
from tests.capture.tricks import ATTENTIONS
from tests.comparing import assert_same
from vit_viz.analyses.flow import attention_flow
from vit_viz.analyses.relevance import gradient_rollout, relevance
from vit_viz.capture import trace
from vit_viz.checkpoints.plain_module import plain_module
from vit_viz.errors import CaptureError, ParameterError

CHAINS = ("relevance", "gradient_rollout", "rollout", "value_rollout", "attention_flow")
METHODS = (*CHAINS, "attention")


def pixel(output: Tensor) -> Tensor:
    """Of the patch (2, 3)."""
    return output[0, 1, 2 * PATCH + 9, 3 * PATCH + 2]


def read_of(model: nn.Module, target: Callable[[Any], Tensor]) -> dict[str, float]:
    """The tokens that a target was measured to read, by name, with their weights."""
    recorded = trace(model, pixels(), target=target)
    read = recorded.structure.target
    assert not read.problem, read.problem
    return {recorded.layout.name(token): read.weights[token] for token in read.tokens}


@pytest.mark.parametrize("named", [0, 1, 3])
def test_a_pixel_of_a_segmentation_is_explained_from_its_patch(named: int) -> None:
    model = readout(segmenter, named=named)
    maps = vv.explain(model, pixels(), methods=METHODS, target=pixel)
    asked = vv.explain(model, pixels(), methods=METHODS, target=pixel, query=(2, 3))
    for name in METHODS:
        np.testing.assert_array_equal(maps[name].values, asked[name].values)
        assert "patch (2, 3)" in maps[name].caption
        assert dict(maps[name].provenance.parameters)["query"] == "(2, 3)"
    token = named + 2 * COLS + 3
    for name, matrix in chains_by_hand(model, pixels(), pixel).items():
        expected = matrix[token, named:].reshape(ROWS, COLS).numpy()
        np.testing.assert_allclose(maps[name].values, expected, rtol=2e-4, atol=1e-5 * expected.max())


def test_a_pixel_between_patches_is_explained_from_all_that_it_mixes() -> None:
    model = readout(smooth_segmenter)
    down, across = (
        (9 + 0.5) / PATCH - 0.5,
        (2 + 0.5) / PATCH + 0.5,
    )  # from the middles of patches (2, 2) and (3, 3)
    shares = {
        (2, 2): (1 - down) * (1 - across),
        (2, 3): (1 - down) * across,
        (3, 2): down * (1 - across),
        (3, 3): down * across,
    }
    read = read_of(model, pixel)
    assert read == pytest.approx(
        {f"patch ({row}, {col})": share for (row, col), share in shares.items()}, rel=1e-4
    )
    maps = vv.explain(model, pixels(), methods=METHODS, target=pixel)
    single = {
        place: vv.explain(model, pixels(), methods=METHODS, target=pixel, query=place) for place in shares
    }
    for name in METHODS:
        expected = sum(share * single[place][name].values for place, share in shares.items())
        np.testing.assert_allclose(maps[name].values, expected, rtol=2e-4, atol=1e-5 * np.max(expected))
        words = "mean of 4 tokens that the target reads (patch (2, 3) 59%, patch (2, 2) "
        assert words in maps[name].caption
        assert dict(maps[name].provenance.parameters)["query"].startswith(words)
    recorded = trace(model, pixels(), target=pixel)
    assert np.ptp(relevance(recorded).values - maps["relevance"].values) == 0
    assert np.ptp(gradient_rollout(recorded).values - maps["gradient_rollout"].values) == 0
    assert "mean of 4 tokens" in attention_flow(recorded).caption


def cell(output: Tensor) -> Tensor:
    return output[0, 1, 1, 2]


def states_of(model: Any, states: list[Tensor], _: Tensor) -> dict[str, Any]:
    return {"last_hidden_state": model.norm(states[-1]), "hidden_states": tuple(states)}


def mixed_last(model: Any, states: list[Tensor], _: Tensor) -> Tensor:
    """Each patch with the one above it, [images, rows, cols, kinds]."""
    x = model.patches(states[-1]).movedim(1, -1)
    x = x + F.pad(x, (0, 0, 0, 0, 1, 0))[:, :-1]
    return model.head(x) + model.head(model.norm(x))  # type: ignore[no-any-return]


def beside_another(model: Any, states: list[Tensor], image: Tensor) -> dict[str, Tensor]:
    return {"aux": model.map_of(states[2], model.head), "out": segmenter(model, states, image)}


def beside_class(model: Any, states: list[Tensor], _: Tensor) -> Tensor:
    """The class token added to each patch."""
    return model.head(states[-1][:, 1:] + states[-1][:, :1])  # type: ignore[no-any-return]


NINE = {f"patch ({row}, {col})" for row in range(3) for col in (1, 2, 3)}
READS: list[tuple[str, Read, dict[str, int], Callable[[Any], Tensor], set[str]]] = [
    ("labels", lambda m, s, _: m.head(m.norm(s[-1]))[:, m.named :], {}, lambda o: o[0, 13, 1], {"patch (2, 1)"}),
    ("depth", lambda m, s, i: segmenter(m, s, i).sum(1), {}, lambda o: o[0, 41, 50], {"patch (2, 3)"}),
    ("no images", lambda m, s, i: segmenter(m, s, i)[:, 1].squeeze(0), {}, lambda o: o[41, 50], {"patch (2, 3)"}),
    ("a softmax", lambda m, s, i: segmenter(m, s, i).softmax(1), {}, pixel, {"patch (2, 3)"}),
    ("opposites", segmenter, {}, lambda o: pixel(o) - o[0, 0, 3, 80], {"patch (2, 3)", "patch (0, 5)"}),
    ("beside the class token", beside_class, {}, lambda o: o[0, 13, 1], {"class", "patch (2, 1)"}),
    ("a convolution", convolved, {}, cell, NINE),
    ("mixed after the norm", mixed_last, {"named": 0}, lambda o: o[0, 1, 2, 1], {"patch (0, 2)", "patch (1, 2)"}),
    ("beside an earlier map", beside_another, {}, lambda o: pixel(o["out"]), {"patch (2, 3)"}),
    ("a tuple", lambda m, s, i: tuple(beside_another(m, s, i).values()), {}, lambda o: pixel(o[1]), {"patch (2, 3)"}),
    ("a state", states_of, {}, lambda o: o["last_hidden_state"][0, 5, 7], {"patch (0, 4)"}),
    ("a state of the class token", states_of, {}, lambda o: o["last_hidden_state"][0, 0, 3], {"class"}),
    ("a detection", detector, {"after": 5}, lambda o: o["logits"][0, 3, 1], {"detection 3"}),
    ("a box", detector, {"after": 5, "named": 0}, lambda o: o["boxes"][0, 2].sum(), {"detection 2"}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("read", "choices", "target", "expected"), [one[1:] for one in READS], ids=[one[0] for one in READS]
)
def test_tokens_that_a_target_reads_are_found_whatever_the_model_returns(
    read: Read, choices: dict[str, int], target: Callable[[Any], Tensor], expected: set[str]
) -> None:
    assert set(read_of(readout(read, **choices), target)) == expected


@pytest.mark.parametrize("attend", ATTENTIONS.values(), ids=ATTENTIONS)
def test_tokens_are_found_whatever_attends(attend: Callable[[], nn.Module]) -> None:
    assert read_of(readout(segmenter, attend=attend), pixel) == {"patch (2, 3)": 1.0}
    assert read_of(readout(segmenter, attend=attend).bfloat16(), pixel) == {"patch (2, 3)": 1.0}


class Alone(nn.Module):
    """Takes one image, returns its map in another form than those of several images, or has images along another axis."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self.inner, self.form = readout(segmenter), form
        self.layout = self.inner.layout

    def forward(self, image: Tensor) -> Any:
        assert self.form != "one image" or len(image) == 1
        maps = self.inner(image)
        if self.form == "list":
            return [{"masks": one} for one in maps]
        if self.form == "images second":
            return maps.transpose(0, 1)
        return maps[0] if self.form == "squeezed" and len(maps) == 1 else maps


@pytest.mark.parametrize("form", ["one image", "squeezed", "images second", "list"])
def test_tokens_are_found_in_models_that_are_not_made_for_batches(form: str) -> None:
    def target(output: Any) -> Tensor:
        maps = output[0]["masks"] if form == "list" else output.reshape(KINDS, 64, 96)
        return pixel(maps[None])

    assert read_of(Alone(form), target) == {"patch (2, 3)": 1.0}


def test_the_largest_pixel_is_read_from_its_patch_on_this_photo() -> None:
    model = readout(segmenter)
    place = divmod(int(model(pixels())[0, 2, ::PATCH, ::PATCH].argmax()), COLS)
    assert read_of(model, lambda output: output[0, 2].amax()) == {f"patch {place}": 1.0}


def test_what_reads_all_patches_is_drawn_as_a_pool_is() -> None:
    model = readout(segmenter)
    read = read_of(model, lambda output: output[0, 1].mean())
    assert read == pytest.approx(
        {f"patch ({row}, {col})": 1 / 24 for row in range(ROWS) for col in range(COLS)}
    )
    drawn = vv.explain(model, pixels(), methods="rollout", target=lambda output: output[0, 1].mean())[
        "rollout"
    ]
    pool = readout(lambda m, s, _: m.head(s[-1][:, 1:].mean(1)))
    layout = vv.TokenLayout((ROWS, COLS), pooling="mean")
    expected = vv.explain(pool, pixels(), methods="rollout", target=1, layout=layout)["rollout"]
    np.testing.assert_allclose(drawn.values, expected.values, atol=1e-6)
    assert drawn.note == expected.note


def test_the_queries_of_a_decoder_are_read_from_all_that_they_look_at() -> None:
    model = readout(decoder)
    for target in (lambda o: o["scores"][0, 3, 1], lambda o: o["masks"][0, 3, 1, 2]):
        read = read_of(model, target)
        assert len(read) == 25
        assert sum(read.values()) == pytest.approx(1)
        assert max(read.values()) > 3 * min(read.values())


SHARE = "% of what the target takes from the image passes through"
AROUND: dict[str, tuple[Read, Callable[[Any], Tensor], str]] = {
    "UNETR": (unetr, lambda o: o[0, 2, 5:9, 40:60].sum(), f"{SHARE} layer 3"),
    "skips side by side": (with_skips, lambda o: o[0, :, 41, 50].sum(), f"{SHARE} layer 3"),
    "an earlier layer": (with_skips, pixel, "The target is read after layer 1 of 0-3, and not after the last"),
    "a hidden state": (states_of, lambda o: o["hidden_states"][3][0, 5].sum(), "is read after layer 2 of 0-3"),
    "the image added": (lambda m, s, i: segmenter(m, s, i) + m.of_image(i), pixel, f"{SHARE} the tokens before"),
    "two maps": (beside_another, lambda o: cell(o["aux"]) + pixel(o["out"]), f"{SHARE} layer 2"),
}  # fmt: skip


@pytest.mark.parametrize(("read", "target", "words"), AROUND.values(), ids=AROUND)
def test_a_target_that_reads_around_the_last_layer_is_refused_where_a_map_would_miss_that(
    read: Read, target: Callable[[Any], Tensor], words: str
) -> None:
    model = readout(read)
    methods = (*METHODS, "occlusion", "saliency")
    maps = vv.explain(model, pixels(), methods=methods, target=target)
    assert set(maps) == {"occlusion", "saliency"}
    for name in CHAINS:
        assert words in maps.missing[name]
        assert "Occlusion, saliency and integrated gradients follow no layers." in maps.missing[name]
    assert "reads around the last layer" in maps.missing["attention"]
    recorded = trace(model, pixels(), target=target)
    assert recorded.proof_status == "captured, not proven"
    assert words in recorded.proof_report.sentence
    assert "attention" in vv.explain(model, pixels(), methods="attention", target=target, query=(1, 2))


@pytest.mark.parametrize(
    "read", [unetr, with_skips, lambda m, s, i: {"out": unetr(m, s, i), "of": segmenter(m, s, i)}]
)
def test_a_model_whose_maps_read_around_the_last_layer_is_not_proven(read: Read) -> None:
    model = readout(read)
    recorded = trace(model, pixels())
    assert "what the answer takes from the image" in recorded.proof_report.sentence
    with pytest.raises(CaptureError, match="not defined for this model"):
        vv.rollout(recorded, query=(1, 2))
    assert trace(readout(segmenter), pixels()).proof_status == "proven"


def test_a_target_of_one_layer_is_explained_though_the_model_reads_more() -> None:
    model = readout(lambda m, s, i: {"all": with_skips(m, s, i), "last": segmenter(m, s, i)})
    recorded = trace(model, pixels(), target=lambda output: pixel(output["last"]))
    assert recorded.proof_status == "proven"
    assert relevance(recorded).peak == (2, 3)


def test_a_pixel_that_is_cut_off_by_a_relu_is_still_read_from_its_patch() -> None:
    model = readout(lambda m, s, i: F.relu(segmenter(m, s, i)))
    dead = (model(pixels())[0, :, ::PATCH, ::PATCH] == 0).nonzero().tolist()
    read = []
    for kind, row, col in dead[:6]:
        recorded = trace(
            model, pixels(), target=lambda o, c=kind, y=row, x=col: o[0, c, y * PATCH, x * PATCH]
        )
        target = recorded.structure.target
        if target.problem:  # off in another photo, too
            assert target.problem.startswith("The target is the same for another photo")
        else:
            read.append((target.query(recorded.layout), (row, col)))
    assert read
    assert all(found == place for found, place in read)


def test_what_has_no_gradient_is_read_from_one_token_or_from_nobody_knows_which() -> None:
    model = readout(segmenter)
    with torch.no_grad():
        frozen = readout(lambda m, s, i: segmenter(m, s, i).detach())
    assert vv.explain(frozen, pixels(), methods="rollout", target=pixel)["rollout"].peak == (2, 3)
    counted = vv.explain(
        model, pixels(), methods=("rollout", "occlusion"), target=lambda o: (o[0, 1] > 0).float().mean()
    )
    assert set(counted) == {"occlusion"}
    assert 'such as query="0,0", or for occlusion, which needs no start' in counted.missing["rollout"]
    detached = readout(lambda m, s, i: segmenter(m, s, i) + segmenter(m, s, i).detach().roll(PATCH, 2))
    partly = vv.explain(detached, pixels(), methods=("rollout", "occlusion"), target=pixel)
    assert (
        "also changes with tokens after the last layer that its gradient does not reach"
        in partly.missing["rollout"]
    )


def test_a_target_that_never_changes_has_no_token() -> None:
    with pytest.raises(CaptureError, match="The target is the same for another photo"):
        vv.explain(
            readout(segmenter), pixels(), methods="rollout", target=lambda output: output.sum() * 0 + 2
        )


def test_nothing_is_remembered_of_a_function() -> None:
    model = readout(segmenter)
    places, kept = ((1, 2), (3, 4), (0, 0)), []
    for row, col in places:
        target = lambda output, y=row, x=col: output[0, 0, y * PATCH, x * PATCH]  # noqa: E731 - as a user passes it
        maps = vv.explain(model, pixels(), methods=("rollout", "relevance"), target=target)
        assert {one.peak for one in maps.values()} == {(row, col)}
        kept.append(weakref.ref(target))
    chosen = [0, 0]
    reads = lambda output: output[0, 0, chosen[0] * PATCH, chosen[1] * PATCH]  # noqa: E731
    for chosen[:] in places:
        assert vv.explain(model, pixels(), methods="rollout", target=reads)["rollout"].peak == tuple(chosen)
    del target, maps
    gc.collect()
    assert [ref() for ref in kept] == [None] * 3


def test_a_function_of_all_that_is_returned_is_taken_though_there_are_scores_in_it() -> None:
    both = readout(lambda m, s, i: {"maps": segmenter(m, s, i), "kinds": m.head(m.norm(s[-1])[:, 0])})
    alone = readout(lambda m, s, i: {"maps": segmenter(m, s, i)})
    methods = ("relevance", "rollout", "occlusion")
    target = lambda output: pixel(output["maps"])  # noqa: E731 - as a user passes it
    maps, expected = (vv.explain(model, pixels(), methods=methods, target=target) for model in (both, alone))
    for name in methods:
        assert_same(maps[name].values, expected[name].values)
    assert trace(both, pixels(), target=target).output_query() == (2, 3)
    scores = vv.explain(both, pixels(), methods="rollout", target=lambda kinds: kinds[1])["rollout"]
    assert "class token" in scores.caption
    recipe = vv.Preprocess(input_size=(64, 96), patch_size=(16, 16), mean=(0.5,) * 3, std=(0.5,) * 3)
    asked = [
        vv.run(
            plain_module(model, preprocess=recipe).with_output("softmax"),
            "shapes",
            "relevance",
            mode="stretch",
            target=target,
        )
        for model in (both, alone)
    ]
    assert_same(asked[0].values, asked[1].values)
    with pytest.raises(ParameterError, match=r"stops at scores \[3\] \(IndexError"):
        vv.explain(both, pixels(), target=lambda output: output["nothing"])


def test_a_trace_lets_its_model_go_once_it_knows_what_the_target_reads() -> None:
    model = readout(segmenter)
    recorded = trace(model, pixels(), target=pixel)
    there = weakref.ref(model)
    del model
    gc.collect()
    assert there() is not None
    assert recorded.output_query() == (2, 3)
    gc.collect()
    assert there() is None


def test_questions_by_name_start_from_what_a_function_reads() -> None:
    recipe = vv.Preprocess(input_size=(64, 96), patch_size=(16, 16), mean=(0.5,) * 3, std=(0.5,) * 3)
    model = plain_module(readout(segmenter), preprocess=recipe).with_output("softmax")
    for name, query in (("attention", (2, 3)), ("relevance", (2, 3))):
        answer = vv.run(model, "shapes", name, mode="stretch", target=pixel)
        assert "patch (2, 3)" in answer.caption
        assert_same(
            answer.values, vv.run(model, "shapes", name, mode="stretch", target=pixel, query=query).values
        )
    maps = vv.run(
        model, "shapes", "comparison", mode="stretch", target=pixel, methods="rollout,relevance"
    ).maps
    assert all("patch (2, 3)" in one.caption for one in maps.values())
