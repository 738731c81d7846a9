"""Edits of a model as part of what is asked: words both ways, one key, exact on any model, and nothing of them anywhere else."""

from __future__ import annotations

import copy
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import Tensor, nn

from tests.capture.models import SIZE, timm_vit
from tests.comparing import assert_same
from tests.ui.desk import odd_picture, odd_session
from vit_viz.analyses.registry import QUESTIONS
from vit_viz.answer import arrays_of
from vit_viz.capture import Trace
from vit_viz.errors import ParameterError, VitVizError
from vit_viz.images import Preprocess
from vit_viz.labels import Labels
from vit_viz.results import PatchMap, Ranking
from vit_viz.session.edits import Forbidden, ModelEdits
from vit_viz.session.questions import ask
from vit_viz.session.request import Request, Subject
from vit_viz.session.session import Session
from vit_viz.ui.app import session_of

pytestmark = pytest.mark.numbers

ALL = "off 0.1 2.4;mean 1.3;uniform 1.0;temperature 0=0.4 2=3;forbid class>1-2,0-3+3,5@1-2;forbid patches>class@0"
"""Every kind of edit, in a model of 3 layers, 5 heads and 4 x 6 patches."""


# --- words


def test_words_come_back_as_they_were_meant() -> None:
    edits = ModelEdits.parse(ALL)
    assert edits.heads == (((0, 1), "off"), ((1, 0), "uniform"), ((1, 3), "mean"), ((2, 4), "off"))
    assert edits.temperatures == ((0, 0.4), (2, 3.0))
    assert edits.forbidden == (
        Forbidden("class", "1-2,0-3+3,5", (1, 2)),
        Forbidden("patches", "class", (0,)),
    )
    assert str(edits) == ALL
    assert ModelEdits.parse(str(edits)) == edits
    assert ModelEdits.parse(list(edits.words)) == edits


@pytest.mark.parametrize(
    "other",
    [
        "temperature 2=3;forbid patches>class@0;uniform 1.0;mean 1.3;temperature 0=0.40;off 2.4;"
        "forbid class>3,5+2,0-3+1,0-3@2+1;off 0.1",
        f"{ALL};temperature 1=1",
        f" {ALL} ; ",
    ],
)
def test_equal_edits_in_another_order_are_one_key(other: str) -> None:
    first, second = (Subject("mini", "lion", edits=ModelEdits.parse(words)) for words in (ALL, other))
    assert first == second
    assert hash(first) == hash(second)


@st.composite
def edits(draw: st.DrawFn) -> ModelEdits:
    cells = st.tuples(st.integers(0, 40), st.integers(0, 40))
    heads = draw(st.dictionaries(cells, st.sampled_from(["off", "mean", "uniform"]), max_size=5))
    temperatures = draw(st.dictionaries(st.integers(0, 40), st.floats(0.01, 100), max_size=3))
    places = st.sets(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=12)
    region = st.sampled_from(["class", "register 0", "patches"]) | places.map(
        lambda chosen: "+".join(f"{row},{col}" for row, col in chosen)
    )
    layers = st.sets(st.integers(0, 40), max_size=4)
    said = []
    for _ in range(draw(st.integers(0, 2))):
        where = "+".join(map(str, draw(layers)))
        said.append(f"forbid {draw(region)}>{draw(region)}" + (f"@{where}" if where else ""))
    forbidden = ModelEdits.parse(said).forbidden
    return ModelEdits(tuple(heads.items()), tuple(temperatures.items()), forbidden)


@settings(deadline=None, max_examples=40)
@given(edits())
def test_any_edits_survive_words_and_json(given_edits: ModelEdits) -> None:
    assert ModelEdits.parse(str(given_edits)) == given_edits
    request = Request(Subject("mini", "lion", edits=given_edits), "rollout")
    assert Request.from_json(request.to_json()) == request
    undone = given_edits
    for single in given_edits.singles:
        assert len(single.singles) == 1
        undone = undone.without(single)
    assert not undone


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("off 3.1 3.1", "Head 1 of layer 3 is edited twice; please name it once."),
        ("off 3.1;mean 3.1", "Head 1 of layer 3 is edited twice; please name it once."),
        ("temperature 2=3;temperature 2=4", "The temperature of layer 2 is edited twice; please name it once"),
        ("temperature 2=0", "The temperature of layer 2 is a number from 0.01 to 100, not 0."),
        ("temperature 2=-1", "A temperature is layer=value, such as 7=0.5, not '2=-1'."),
        ("off 3", "A head is layer.head, such as 3.1, not '3'."),
        ("off", "An edit is 'off 3.1', 'mean 3.1', 'uniform 3.1', 'temperature 7=0.5' or 'forbid class>2,3', not 'off'."),
        ("remove 3.1", "An edit is 'off 3.1', "),
        ("forbid class", "What is forbidden is seeing>seen, such as class>2-4,3-5@6-8, not 'class'."),
        ("forbid class>3-2,1", "A region has 1 to 4096 patches; '3-2,1' has not."),
        ("forbid class>0-99,0-99", "A region has 1 to 4096 patches; '0-99,0-99' has not."),
        ("forbid class>a b c", "Tokens are a name such as class, or patches such as 2,3 or 2-4,3-5, not 'a b c'."),
        ("forbid class>1,1@5-3", "Layers are numbers such as 3-5 or 3+8, not '5-3'."),
        ({"off": "3.1"}, "Edits as a dict have heads, temperature, knockout, mask_keys, such as {'heads': {(3, 1): 0,"),
        (7, "Edits are words such as 'off 3.1;temperature 7=0.5', or a list of them."),
        ([3], "Edits are words such as"),
        ("off 1.1;" * 3000, "Edits have at most 16000 characters."),
    ],
)  # fmt: skip
def test_odd_words_get_one_sentence(words: object, said: str) -> None:
    with pytest.raises(ParameterError) as refused:
        ModelEdits.parse(words)
    assert str(refused.value).startswith(said)


# --- by hand


class ByHand(nn.Module):
    """The attention of a block of ours or timm's, written out, with the edits of its layer made in the formula."""

    def __init__(self, attention: Any, layer: int, edits: ModelEdits, prefix: int) -> None:
        super().__init__()
        self.attention, self.layer, self.edits, self.prefix = attention, layer, edits, prefix

    def forward(self, x: Tensor, *_: Any, read: int | None = None, **_others: Any) -> Tensor:
        batch, tokens, dim = x.shape
        heads = self.attention.num_heads
        q, k, v = self.attention.qkv(x).reshape(batch, tokens, 3, heads, -1).permute(2, 0, 3, 1, 4)
        scores = q @ k.mT * self.attention.scale / dict(self.edits.temperatures).get(self.layer, 1)
        states = {head: state for (layer, head), state in self.edits.heads if layer == self.layer}
        for head, state in states.items():
            if state == "uniform":
                scores[:, head] = 0
        scores = scores.masked_fill(self.forbidden(tokens), -torch.inf)
        said = scores.softmax(-1) @ v
        for head, state in states.items():
            if state != "uniform":
                said[:, head] = 0 if state == "off" else said[:, head].mean(1, keepdim=True)
        return self.attention.proj(said.transpose(1, 2).reshape(batch, tokens, dim)[:, :read])

    def forbidden(self, tokens: int) -> Tensor:
        mask = torch.zeros(tokens, tokens, dtype=torch.bool)
        boxed = [row * 6 + col for row in (1, 2) for col in range(4)] + [3 * 6 + 5]
        named = {"class": [0], "patches": list(range(self.prefix, tokens))}
        named["1-2,0-3+3,5"] = [self.prefix + i for i in boxed]
        for one in self.edits.forbidden:
            if not one.layers or self.layer in one.layers:
                for i in named[one.seeing]:
                    mask[i, named[one.seen]] = True
        return mask


def by_hand(model: Any, words: str, prefix: int) -> nn.Module:
    changed = copy.deepcopy(model)
    for layer, block in enumerate(changed.blocks):
        block.attn = ByHand(block.attn, layer, ModelEdits.parse(words), prefix)
    return changed.eval()


def own() -> tuple[Session, int]:
    return odd_session(), 2


def timms() -> tuple[Session, int]:
    recipe = Preprocess(input_size=SIZE, patch_size=(16, 16))
    labels = Labels(tuple(f"animal {i}" for i in range(7)))
    return session_of(timm_vit(), preprocess=recipe, labels=labels), 1


@pytest.fixture(scope="module", params=[own, timms], ids=["own", "timm"])
def desk(request: pytest.FixtureRequest) -> tuple[Session, str, int]:
    session, prefix = request.param()
    return session, session.add_upload(odd_picture()), prefix


def subject(session: Session, image: str, words: str = "") -> Subject:
    return Subject(session.default_model, image, "stretch", edits=ModelEdits.parse(words))


@pytest.mark.parametrize("words", [*ALL.split(";"), ALL, "forbid class>patches"])
def test_the_answer_equals_a_forward_with_the_edit_made_by_hand(
    desk: tuple[Session, str, int], words: str
) -> None:
    session, image, prefix = desk
    edited = subject(session, image, words)
    trace = session.trace_of(edited)
    prepared = session.prepared(edited)
    with torch.no_grad():
        expected = by_hand(prepared.model, words, prefix)(prepared.pixels)[0]
        assert_same(trace.logits, expected)
        assert_same(prepared.outputs(prepared.pixels.expand(2, -1, -1, -1))[1], expected)
    assert trace.proof_report.status == "proven"
    assert not torch.allclose(expected, session.trace_of(subject(session, image)).logits, rtol=1e-3)
    top = session.run(edited.request("classes"))
    assert isinstance(top, Ranking)
    scores, indices = expected.softmax(-1).topk(5)
    assert list(top.indices) == indices.tolist()
    assert_same(top.scores, scores.numpy())


@pytest.mark.parametrize(("how", "word"), [("zero", "off"), ("uniform", "uniform")])
def test_a_pass_that_starts_within_the_model_is_edited_like_a_whole_one(how: str, word: str) -> None:
    session, _ = own()
    image, words = (
        session.add_upload(odd_picture()),
        "off 0.1 2.4;temperature 1=0.3;forbid class>1-2,0-3+3,5@1-2",
    )
    edited = subject(session, image, words)
    table = session.run(edited.request("ablation", target=3, how=how))
    prepared, whole = session.prepared(edited), session.trace_of(edited).logits
    assert whole is not None
    for layer, head in ((0, 0), (1, 2), (2, 3), (2, 4)):
        both = words if (layer, head) == (2, 4) else f"{word} {layer}.{head};{words}"
        with torch.no_grad():
            expected = by_hand(prepared.model, both, 2)(prepared.pixels)[0, 3] - whole[3]
        assert_same(table.values[layer, head], float(expected), floor=2e-6)  # type: ignore[union-attr]


# --- every question


def test_leaving_the_edited_model_restores_every_number(desk: tuple[Session, str, int]) -> None:
    session, image, _ = desk
    first = session.trace_of(subject(session, image))
    session.trace_of(subject(session, image, ALL))
    session.cache.evict(lambda _key: True)
    again = session.trace_of(subject(session, image))
    assert again is not first
    assert torch.equal(first.logits, again.logits)  # type: ignore[arg-type]
    for layer in range(first.num_layers):
        assert torch.equal(first.attention(layer), again.attention(layer))


ASKED = [
    pytest.param(name, marks=[pytest.mark.slow] if question.cost == "many passes" else [])
    for name, question in sorted(QUESTIONS.items())
    if question.takes_image
]


@pytest.mark.parametrize("name", ASKED)
def test_every_question_is_about_the_edited_model_or_refuses(name: str) -> None:
    """Asked of the edited model, and of one whose weights say the same: a head is off where its columns of W_O are 0."""
    words, (layer, head) = "off 1.3", (1, 3)
    session, twin = odd_session(), odd_session()
    with torch.no_grad():
        attention: Any = twin.model().model.blocks[layer].attn  # type: ignore[union-attr, index]
        width = attention.head_dim
        attention.proj.weight[:, head * width : (head + 1) * width] = 0
    answers = []
    for one, changed in ((session, words), (twin, "")):
        where = subject(one, one.add_upload(odd_picture()), changed)
        try:
            answers.append(ask(one, where, name, **({"layer": 1} if name in ("look", "segments") else {})))
        except VitVizError as error:
            answers.append(str(error))
    if isinstance(answers[0], str):
        assert answers[0] == answers[1]
        return
    ours, theirs = map(arrays_of, answers)
    assert ours.keys() == theirs.keys()
    known = 3 if name == "randomisation" else None  # from block 1 on, the twin's head speaks again
    for part, values in ours.items():
        assert_same(values[:known], theirs[part][:known], relative=2e-4, floor=1e-6, what=part)


def test_a_head_that_is_off_hands_nothing_on() -> None:
    session, _ = own()
    image = session.add_upload(odd_picture())
    for words in ("off 1.3", "mean 1.3"):
        norms = session.trace_of(subject(session, image, words)).value_norms(1)
        assert not norms[3].any()
        assert norms[[0, 1, 2, 4]].all()


def test_another_visitors_pass_at_the_same_time_is_not_edited() -> None:
    session, _ = own()
    image = session.add_upload(odd_picture())
    words = ["", "off 0.1 0.2 0.3", "temperature 1=0.1", "forbid class>patches"] * 3
    alone = {said: session.trace_of(subject(session, image, said)).logits for said in words}
    session.cache.evict(lambda _key: True)
    gate = threading.Barrier(len(words))

    def look(said: str) -> Trace:
        gate.wait(60)
        return session.trace_of(subject(session, image, said))

    with ThreadPoolExecutor(len(words)) as pool:
        for said, trace in zip(words, pool.map(look, words), strict=True):
            assert_same(trace.logits, alone[said], what=said)


def test_a_pass_within_an_edited_turn_of_another_thread_is_not_edited() -> None:
    session, _ = own()
    image = session.add_upload(odd_picture())
    plain, edited = (session.prepared(subject(session, image, words)) for words in ("", "off 0.1;mean 1.1"))
    before = plain.outputs(plain.pixels)
    seen: list[Tensor] = []
    with edited.turn():
        thread = threading.Thread(target=lambda: seen.append(plain.model(plain.pixels)))
        thread.start()
        thread.join()
        inside = edited.outputs(edited.pixels)
    assert torch.equal(seen[0], before)
    assert not torch.allclose(inside, before)
    assert torch.equal(plain.outputs(plain.pixels), before)


def test_a_turn_within_a_turn_edits_once(desk: tuple[Session, str, int]) -> None:
    session, image, _ = desk
    edited = session.prepared(subject(session, image, "temperature 0=0.4 2=3"))
    with torch.no_grad():
        expected = edited.outputs(edited.pixels)
        with edited.turn(), edited.turn():
            assert torch.equal(edited.outputs(edited.pixels), expected)


# --- what the model does not have


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("off 3.0", "Layer 3 does not exist: this model has layers 0-2."),
        ("temperature 9=2", "Layer 9 does not exist: this model has layers 0-2."),
        ("forbid class>patches@2-3", "Layer 3 does not exist: this model has layers 0-2."),
        ("mean 1.5", "Head 5 does not exist: this model has heads 0-4."),
        ("forbid class>4,0", "Patch (4, 0) does not exist: rows are 0-3 and columns 0-5."),
        ("forbid register 7>class", "This model has no token 'register 7'"),
        ("forbid everything>everything@1", "Every token has to see at least one, but class would see none in layer 1"),
    ],
)  # fmt: skip
def test_what_the_model_does_not_have_is_refused_in_a_sentence(words: str, said: str) -> None:
    session, _ = own()
    image = session.add_upload(odd_picture())
    for analysis in ("classes", "rollout"):
        with pytest.raises(ParameterError) as refused:
            session.run(subject(session, image, words).request(analysis, **_query(analysis)))
        assert str(refused.value).startswith(said)


def _query(analysis: str) -> dict[str, str]:
    return {"query": "class"} if analysis == "rollout" else {}


def test_provenance_says_what_was_changed() -> None:
    session, _ = own()
    image = session.add_upload(odd_picture())
    patch_map = session.run(subject(session, image, "off 1.3").request("rollout", query="class"))
    assert isinstance(patch_map, PatchMap)
    assert dict(patch_map.provenance.parameters)["edits"] == "off 1.3"
    plain = session.run(subject(session, image).request("rollout", query="class"))
    assert "edits" not in dict(plain.provenance.parameters)  # type: ignore[union-attr]


def test_removed_patches_of_an_edited_model_give_numbers(desk: tuple[Session, str, int]) -> None:
    """Patches that may look at nothing but patches, which are gone: they say nothing, and nothing of them is left."""
    session, image, _ = desk
    edited = subject(session, image, "forbid patches>class")
    gone = ";".join(f"{row},{col}" for row in range(4) for col in range(6) if (row, col) != (2, 3))
    told = session.run(edited.request("without_patches", gone=gone))
    assert np.isfinite(told.top.scores).all()  # type: ignore[union-attr]


def test_whether_patches_can_be_removed_is_asked_of_the_module_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The finding is kept for the module, so no edit may have a part in it."""
    session, _ = timms()
    image = session.add_upload(odd_picture())
    seen: list[tuple[Tensor, Tensor]] = []

    def check(module: nn.Module, pixels: Tensor, *_: object) -> None:
        seen.append((pixels, module(pixels)))

    monkeypatch.setattr("vit_viz.analyses.removal.check_removal", check)
    session.run(
        subject(session, image, "off 0.1;forbid patches>class").request("without_patches", gone="0,1")
    )
    ((pixels, answer),) = seen
    assert torch.equal(answer, session.prepared(subject(session, image)).outputs(pixels))
