"""Sentences as the classes of a model with a text tower, on every way by which they come."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file

import vit_viz as vv
from tests.checkpoints.test_text_towers import own_file
from tests.comparing import assert_same
from vit_viz.checkpoints import LoadedModel, load
from vit_viz.errors import CheckpointError, ParameterError
from vit_viz.prompts import Prompts
from vit_viz.session.request import Request
from vit_viz.session.run import session_and_subjects

pytestmark = pytest.mark.numbers

SENTENCES = ("a red circle", "a blue square", "a photo")


@pytest.fixture
def both(tmp_path: Path) -> LoadedModel:
    own_file(tmp_path / "both.safetensors")
    return load(tmp_path / "both.safetensors", device="cpu")


def cosines(
    loaded: LoadedModel, sentences: tuple[str, ...], templates: tuple[str, ...] = ("{}",)
) -> torch.Tensor:
    embedding = vv.trace(loaded, "shapes").logits
    assert embedding is not None
    return F.normalize(embedding, dim=0) @ loaded.encode_text(sentences, templates).T


def test_logits_are_the_scaled_cosines_and_their_softmax_the_share_among_these(both: LoadedModel) -> None:
    asked = both.with_prompts(SENTENCES)
    logits = vv.trace(asked, "shapes").logits
    assert logits is not None
    assert_same(logits, 9.974182 * cosines(both, SENTENCES), relative=1e-5)
    assert (asked.labels and asked.labels.names, asked.output, asked.has_classes) == (
        SENTENCES,
        "softmax",
        True,
    )
    assert (both.labels, both.has_classes) == (None, False)
    answers = vv.run(both, "shapes", "classes", sentences=" | ".join(SENTENCES))
    shares = dict(zip(answers.names, answers.scores.tolist(), strict=True))
    expected = logits.softmax(0).tolist()
    assert shares == pytest.approx(dict(zip(SENTENCES, expected, strict=True)), rel=1e-5)


def test_of_a_sigmoid_model_each_sentence_is_a_matter_of_its_own(tmp_path: Path) -> None:
    own_file(tmp_path / "both.safetensors", bias=-7.5, causal=False, head_bias=True)
    loaded = load(tmp_path / "both.safetensors", device="cpu")
    for sentences in (SENTENCES, SENTENCES[:1]):
        asked = loaded.with_prompts(sentences)
        logits = vv.trace(asked, "shapes").logits
        assert logits is not None
        assert_same(logits, 9.974182 * cosines(loaded, sentences) - 7.5, relative=1e-5)
        assert asked.output == "sigmoid"


def test_one_sentence_alone_is_a_value(both: LoadedModel) -> None:
    assert both.with_prompts("a red circle").output == "value"
    alone = vv.run(both, "shapes", "relevance", target="a red circle")
    assert dict(alone.provenance.parameters)["target"] == "logit of sentence 0"
    beside = vv.run(both, "shapes", "relevance", sentences=SENTENCES, target="a red circle")
    assert_same(torch.tensor(alone.values), torch.tensor(beside.values), relative=1e-5)


def test_which_sentence_fits_each_patch_is_a_question_with_figure_table_and_arrays(both: LoadedModel) -> None:
    expected = vv.sentence_patches(both.with_prompts(SENTENCES), "shapes", path=vv.VALUE_PATHS["ClearCLIP"])
    found = vv.run(both, "shapes", "sentence_patches", sentences=SENTENCES, attention="q-q", prior=0)
    assert_same(torch.tensor(found.maps.values), torch.tensor(expected.maps.values), relative=1e-5)
    assert found.maps.method == "patches and sentences, by ClearCLIP"
    rows = found.to_dataframe()
    assert {"maps", "best"} == set(rows["numbers"])
    figure = vv.figure(
        both, "shapes", "sentence_patches", sentences=SENTENCES, attention="q-q", prior=0, format="svg"
    ).data.decode()
    for sentence in SENTENCES:
        assert sentence in figure
    assert "The sentence that fits each patch best" in figure
    with pytest.raises(ParameterError, match="of a model with a text tower"):
        vv.run("mini", "shapes", "sentence_patches")


@pytest.mark.parametrize("templates", [("{}",), ("a photo of {}.", "of {}")])
def test_a_target_may_be_a_sentence_or_two(both: LoadedModel, templates: tuple[str, ...]) -> None:
    one, other = (vv.Text(sentence, templates) for sentence in SENTENCES[:2])
    asked = both.with_prompts(Prompts(SENTENCES[:2], templates))
    for target, index in ((one, 0), ((one, other), (0, 1)), ((other, one), (1, 0))):
        expected = vv.run(asked, "shapes", "relevance", target=index)
        for found in (
            vv.run(both, "shapes", "relevance", target=target),
            vv.explain(both, "shapes", target=target)["relevance"],
        ):
            assert_same(torch.tensor(found.values), torch.tensor(expected.values), relative=1e-5)
    plain = vv.run(both, "shapes", "relevance", target=SENTENCES[0], templates=templates)
    assert_same(
        torch.tensor(plain.values),
        torch.tensor(vv.run(both, "shapes", "relevance", target=one).values),
        relative=1e-5,
    )


def test_two_sentences_of_other_templates_are_not_compared(both: LoadedModel) -> None:
    with pytest.raises(ParameterError, match="the same templates"):
        vv.run(both, "shapes", "relevance", target=(vv.Text("red"), vv.Text("blue", ("a {}",))))


def test_a_request_with_sentences_is_written_and_read_and_one_from_before_is_read(both: LoadedModel) -> None:
    _, (subject,) = session_and_subjects(
        both, ["shapes"], edits="", prompts=Prompts(SENTENCES, ("a photo of {}.",))
    )
    request = subject.request("classes")
    assert Request.from_json(request.to_json()) == request
    before = '{"model": "mini", "image": "lion", "mode": "fit", "edits": [], "question": "classes", "parameters": {}}'
    assert Request.from_json(before).subject.prompts == Prompts()


def test_answers_of_other_sentences_are_other_answers_and_few_models_of_sentences_are_kept(
    both: LoadedModel,
) -> None:
    session, (subject,) = session_and_subjects(both, ["shapes"], edits="")
    first = replace(subject, prompts=Prompts(SENTENCES[:2]))
    turned = replace(subject, prompts=Prompts(SENTENCES[1::-1]))
    logits = session.trace_of(first).logits
    assert logits is not None
    assert_same(session.trace_of(turned).logits, logits.flip(0), relative=1e-6)
    assert session.model_of(first) is session.model_of(first)
    assert session.model_of(subject) is session.model("both")
    kept = session.model_of(first)
    for number in range(20):
        session.model_of(replace(subject, prompts=Prompts((f"red {number}",))))
    assert session.model_of(first) is not kept
    assert next(kept.model.parameters()) is next(both.model.parameters())


@pytest.mark.parametrize("edits", ["", "off 0.1"])
def test_other_sentences_score_the_pass_that_was_made(both: LoadedModel, edits: str) -> None:
    passes: list[object] = []
    both.model.patch_embed.register_forward_hook(lambda *_: passes.append(1))
    session, (subject,) = session_and_subjects(both, ["shapes"], edits=edits)
    for residual in ("trace", "token trace"):
        session.run(subject.request(residual))
        made = len(passes)
        for sentences in (SENTENCES, SENTENCES[:1], SENTENCES[1:]):
            request = replace(subject, prompts=Prompts(sentences)).request(residual)
            assert session.keeps(request)
            scored = session.run(request)
            assert len(passes) == made
            whole, (own,) = session_and_subjects(both.with_prompts(sentences), ["shapes"], edits=edits)
            assert_same(scored.logits, whole.trace_of(own).logits, relative=1e-5)
            assert dict(scored.provenance.parameters)["sentences"] == " | ".join(sentences)
            made = len(passes)
    embedding = session.trace_of(subject).logits
    assert embedding is not None
    assert embedding.numel() == both.config.num_classes


def test_while_a_tower_reads_a_sentence_another_visitor_is_answered(
    both: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, (subject,) = session_and_subjects(both, ["shapes"], edits="")
    session.model_of(replace(subject, prompts=Prompts(SENTENCES[:1])))
    reads, goes_on = threading.Event(), threading.Event()
    own = LoadedModel.with_prompts

    def slow(loaded: LoadedModel, *given: Any) -> LoadedModel:
        reads.set()
        assert goes_on.wait(60)
        return own(loaded, *given)

    monkeypatch.setattr(LoadedModel, "with_prompts", slow)
    waiting = threading.Thread(
        target=session.model_of, args=(replace(subject, prompts=Prompts(SENTENCES[1:])),)
    )
    waiting.start()
    try:
        assert reads.wait(60)
        assert session.model_of(replace(subject, prompts=Prompts(SENTENCES[:1]))).labels is not None
    finally:
        goes_on.set()
        waiting.join()


def test_a_model_without_a_text_tower_says_so(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="'mini' has no text tower"):
        vv.load("mini").with_prompts("a dog")
    with pytest.raises(CheckpointError, match="'mini' has no text tower"):
        vv.run("mini", "shapes", "classes", sentences="a dog")
    with pytest.raises(ParameterError, match="text tower of a module that is passed is not known"):
        vv.run(vv.load("mini").model, torch.zeros(1, 3, 128, 128), "classes", sentences="a dog")
    own_file(tmp_path / "both.safetensors")
    with pytest.raises(ParameterError, match="no sentence"):
        load(tmp_path / "both.safetensors", device="cpu").with_prompts(" | ")


def test_a_file_holds_the_sentences(both: LoadedModel, tmp_path: Path) -> None:
    asked = vv.run(both, "shapes", "relevance", sentences=SENTENCES, target=1)
    asked.save(tmp_path / "map.npz")
    parameters = dict(asked.provenance.parameters)
    assert parameters["sentences"] == "a red circle | a blue square | a photo"
    assert load_file(tmp_path / "both.safetensors")["logit_scale"] == pytest.approx(2.3)
