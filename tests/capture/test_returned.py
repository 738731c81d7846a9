"""Scores in what models return: tuples, lists, dictionaries and dataclasses, and what is said where there are none."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from torch import Tensor, nn

import vit_viz as vv
from tests.capture.models import pixels, timm_vit
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.capture.returned import image_of, number_from, place_of_scores, scores_of
from vit_viz.checkpoints.plain_module import plain_module
from vit_viz.errors import CaptureError, ParameterError

Named = namedtuple("Named", "features scores")


@dataclass
class Outputs:
    scores: Tensor
    side: Tensor | None = None


LOGITS, SIDE, TOKENS = torch.rand(2, 7), torch.rand(2, 3), torch.rand(2, 25, 40)
FORMS: dict[str, tuple[Any, str, int]] = {
    "a tensor": (LOGITS, "", 0),
    "logits": ({"features": torch.rand(2, 40), "logits": LOGITS}, "", 0),
    "(logits, hidden states)": ((LOGITS, [TOKENS, TOKENS]), "[0]", 0),
    "[logits]": ([LOGITS], "[0]", 0),
    "out": ({"out": LOGITS}, "['out']", 0),
    "two heads": ((LOGITS, SIDE), "[0]", 1),
    "tokens first": ((TOKENS, LOGITS), "[1]", 0),
    "classes first": ((LOGITS.argmax(-1, keepdim=True), LOGITS), "[1]", 0),
    "nested": (((TOKENS, [LOGITS, SIDE]), None), "[0][1][0]", 1),
    "a named tuple": (Named(TOKENS, LOGITS), ".scores", 0),
    "a dataclass": (Outputs(LOGITS, SIDE), ".scores", 1),
    "beside an embedding": ({"image_embeds": SIDE, "score": LOGITS}, "['score']", 0),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_first_tensor_that_can_be_scores_is_taken_and_told(form: str) -> None:
    output, path, others = FORMS[form]
    assert scores_of(output, 2) is LOGITS
    place = place_of_scores(output, 2)
    assert (place.exists, place.path, len(place.others)) == (True, path, others)
    assert place.words.startswith(path)
    assert ("the first of 2" in place.words) == bool(others)


def test_the_only_tensor_is_taken_whatever_its_shape_but_is_no_scores() -> None:
    assert scores_of({"map": TOKENS}, 2) is TOKENS
    assert not place_of_scores({"map": TOKENS}, 2).exists


VALUE = torch.rand(2)


@pytest.mark.parametrize(
    ("output", "path"),
    [
        (VALUE, ""),
        ({"logits": VALUE}, ""),
        ((VALUE, TOKENS), "[0]"),
        ({"embedding": SIDE, "age": VALUE}, "['age']"),
        (Named(TOKENS, [VALUE]), ".scores[0]"),
    ],
)
def test_one_number_per_image_is_one_output(output: Any, path: str) -> None:
    assert torch.equal(scores_of(output, 2), VALUE[:, None])
    assert place_of_scores(output, 2).path == path
    one = image_of(output, 0, 2)
    assert torch.equal(scores_of(one, 1), VALUE[:1, None])


def test_a_value_whose_image_lost_its_axis_is_the_output_of_one_image_only() -> None:
    assert torch.equal(scores_of({"logits": VALUE[1]}, 1), VALUE[1].reshape(1, 1))
    assert not place_of_scores(VALUE[1], 2).exists  # a mean over images says nothing of one
    assert not place_of_scores({"loss": VALUE[1]}, 1).exists


def test_numbers_per_image_yield_to_scores_beside_them() -> None:
    assert scores_of((VALUE, LOGITS), 2) is LOGITS
    assert place_of_scores({"loss": VALUE.mean(), "value": VALUE, "out": LOGITS}, 2).others == ()


def test_a_row_without_images_is_the_scores_of_one_image() -> None:
    assert torch.equal(scores_of(LOGITS[1], 1), LOGITS[1:])
    assert not place_of_scores(LOGITS[1], 2).exists
    assert not place_of_scores((LOGITS[1], SIDE[1]), 1).exists


@pytest.mark.parametrize("output", [LOGITS[0], LOGITS.argmax(-1), (VALUE[0], TOKENS), torch.rand(1)])
def test_other_numbers_than_one_per_image_are_no_scores(output: Any) -> None:
    assert not place_of_scores(output, 2).exists


@pytest.mark.parametrize(
    "output",
    [None, {"boxes": TOKENS, "more": TOKENS}, {"last_hidden_state": TOKENS, "pooler_output": LOGITS}, "text"],
)
def test_nothing_is_taken_for_scores_that_says_to_be_something_else(output: Any) -> None:
    assert scores_of(output, 2) is None


def test_what_is_returned_for_one_image_of_several_keeps_its_form() -> None:
    output = {"a": (LOGITS, [TOKENS]), "b": Named(SIDE, None), "c": Outputs(SIDE), "d": torch.tensor(3.0)}
    one = image_of(output, 1, 2)
    torch.testing.assert_close(one["a"][0], LOGITS[1:])
    torch.testing.assert_close(one["a"][1][0], TOKENS[1:])
    torch.testing.assert_close(one["b"].features, SIDE[1:])
    torch.testing.assert_close(one["c"].scores, SIDE[1:])
    assert one["d"] == 3
    whole = transformers.modeling_outputs.BaseModelOutputWithPooling(TOKENS, LOGITS)
    torch.testing.assert_close(image_of(whole, 1, 2).pooler_output, LOGITS[1:])
    assert whole.pooler_output is LOGITS


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda scores: scores[9], r"stops at scores \[7\] \(IndexError: .*\)\.$"),
        (lambda scores: scores.nothing, r"stops at scores \[7\] \(AttributeError: .*\)\.$"),
        (lambda scores: scores, "returns one number as a tensor"),
        (lambda _: 1.0, "returns one number as a tensor"),
    ],
)
def test_a_function_that_makes_no_number_is_refused_in_a_sentence(
    function: Callable[[Tensor], Any], words: str
) -> None:
    with pytest.raises(ParameterError, match=words):
        number_from(function, LOGITS[0])


class Returning(nn.Module):
    """A ViT of timm in another form; its two last outputs are the second head."""

    def __init__(self, form: Callable[[Tensor, Tensor], Any]) -> None:
        super().__init__()
        self.vit, self.form = timm_vit().eval(), form

    def layout(self, height: int, width: int) -> vv.TokenLayout:
        return vv.TokenLayout((height // 16, width // 16), ("class",))

    def forward(self, images: Tensor) -> Any:
        tokens = self.vit.forward_features(images)
        return self.form(self.vit.forward_head(tokens), tokens)


METHODS = ("relevance", "occlusion")


def test_scores_in_a_tuple_give_the_maps_of_scores_alone() -> None:
    inside, alone = Returning(lambda logits, tokens: (logits, [tokens])), Returning(lambda logits, _: logits)
    alone.vit = inside.vit
    maps, expected = (vv.explain(one, pixels(), methods=METHODS, target=3) for one in (inside, alone))
    for name in METHODS:
        assert (maps[name].values == expected[name].values).all()
        assert dict(maps[name].provenance.parameters)["scores"] == "[0] of what the model returns"
        assert "scores" not in dict(expected[name].provenance.parameters)
    recorded = vv.trace(inside, pixels(), target=3)
    assert recorded.problems == ("The scores are [0] of what the model returns.",)


def test_the_choice_is_told_where_the_layout_was_passed_and_no_gradient_is_taken() -> None:
    model, image = Returning(lambda logits, _: {"out": logits}), pixels()
    layout = model.layout(*image.shape[2:])
    answer = vv.explain(model, image, methods="occlusion", layout=layout)["occlusion"]
    assert dict(answer.provenance.parameters)["scores"] == "['out'] of what the model returns"


def test_each_pass_says_where_its_own_scores_were() -> None:
    """By its size, or by a switch of the module: as one that returns boxes for large photos, or more when it is told to."""
    by_size = Returning(lambda logits, tokens: {"small" if tokens.shape[1] == 25 else "large": logits})
    by_size.vit = timm_vit(dynamic_img_size=True).eval()
    for _ in range(2):
        for size, name in (((64, 96), "small"), ((80, 96), "large")):
            words = f"['{name}'] of what the model returns"
            assert dict(vv.trace(by_size, pixels(size=size)).provenance.parameters)["scores"] == words
            answer = vv.explain(by_size, pixels(size=size), methods="occlusion", layout=by_size.layout(*size))
            assert dict(answer["occlusion"].provenance.parameters)["scores"] == words
    switched = Returning(lambda logits, tokens: (logits, tokens) if switched.training_loss else logits)
    switched.training_loss = True
    earlier = vv.trace(switched, pixels())
    prepared = PreparedImage.of(switched, pixels())
    switched.training_loss = False
    assert not vv.trace(switched, pixels()).problems
    assert earlier.problems == ("The scores are [0] of what the model returns.",)
    with pytest.raises(CaptureError, match=r"changes its form .* from pass to pass"):
        prepared.outputs(pixels())


def test_a_module_with_scores_after_one_without_is_explained() -> None:
    model = Returning(lambda logits, tokens: {"boxes": tokens[:, 1:, :4]} if model.boxes else logits)
    for model.boxes in (True, False, True):
        target = (lambda output: output["boxes"][0].sum()) if model.boxes else 3
        for layout in (None, model.layout(64, 96)):
            answer = vv.explain(model, pixels(), methods="occlusion", target=target, layout=layout)[
                "occlusion"
            ]
            assert ("function" in answer.caption) == model.boxes


WITHOUT_BATCH: dict[str, tuple[Callable[[Tensor], Any], Any]] = {
    "one mean of the batch": (Tensor.mean, None),
    "the first image alone": (lambda logits: logits[0], 3),
    "no axis for one image": (Tensor.squeeze, 3),
    "images last": (lambda logits: logits[:, :1].T, None),
    "whole numbers": (
        lambda logits: {"best": logits[0].argmax(), "out": [logits[0, :3]] * 2},
        lambda o: o["out"][0][2],
    ),
}


@pytest.mark.parametrize("form", WITHOUT_BATCH)
def test_each_image_is_asked_alone_where_a_batch_is_not_answered_image_by_image(form: str) -> None:
    change, target = WITHOUT_BATCH[form]
    model = Returning(lambda logits, _: change(logits))
    prepared = PreparedImage.of(model, pixels(), target=target)
    wanted = prepared.resolved(target)
    for count in (2, 7):  # also as many images as classes
        batch = pixels(count)
        alone = torch.stack([prepared.scores(image, wanted)[0] for image in batch.split(1)])
        torch.testing.assert_close(prepared.scores(batch, wanted), alone)
        assert len(set(alone.tolist())) == count
    edited = vv.edit(heads={(0, 1): [0.0, 1.0]})
    if form != "no axis for one image":
        with edited, pytest.raises(CaptureError, match="cannot be assigned to images"):
            prepared.outputs(pixels(2))


VALUES: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "[images]": lambda logits, _: logits[:, 1],
    "no axis for one image": lambda logits, _: logits[:, 1:2].squeeze(),
    "in a tuple": lambda logits, tokens: (tokens, logits[:, 1]),
    "in a dictionary": lambda logits, _: {"age": logits[:, 1]},
}


@pytest.mark.parametrize("form", VALUES)
def test_a_value_per_image_gives_what_one_output_gives(form: str) -> None:
    value, column = Returning(VALUES[form]), Returning(lambda logits, _: logits[:, 1:2])
    column.vit = value.vit
    models = [
        plain_module(m, preprocess=vv.Preprocess((64, 96), (16, 16))).with_output("value")
        for m in (value, column)
    ]
    assert (
        vv.trace(value, pixels(), target=0).output_grad == vv.trace(column, pixels(), target=0).output_grad
    ).all()
    assert vv.trace(value, pixels()).logits == vv.trace(column, pixels()).logits
    answers = []
    for model in models:
        maps = vv.explain(model, "shapes", methods=METHODS, mode="crop")
        answers.append(
            (
                *(maps[name].values for name in METHODS),
                vv.run(model, "shapes", "head_importance", mode="crop").values,
                vv.ablate_heads(model, "shapes", mode="crop").values,
                vv.faithfulness(model, "shapes", maps["relevance"], mode="crop").deletion.y,
            )
        )
    for one, other in zip(*answers, strict=True):
        np.testing.assert_array_equal(one, other)
    assert vv.figure(models[0], "shapes", "relevance", mode="crop") is not None


def test_a_function_explains_what_is_returned_in_place_of_scores() -> None:
    """As if the model returned that number as its one score."""
    boxes = Returning(lambda _, tokens: {"boxes": tokens[:, :3, :4], "sizes": tokens[:, :3, 4:]})
    number = Returning(lambda _, tokens: tokens[:, 0, 1:2])
    number.vit = boxes.vit
    target = lambda output: output["boxes"][0, 0, 1]  # noqa: E731 - as a user passes it
    maps = vv.explain(boxes, pixels(), methods=METHODS, target=target)
    expected = vv.explain(number, pixels(), methods=METHODS, target=0)
    for name in METHODS:
        torch.testing.assert_close(torch.tensor(maps[name].values), torch.tensor(expected[name].values))
    assert "function <lambda> of the output" in maps["occlusion"].caption
    changes = vv.ablate_heads(boxes, pixels(), target=target).values
    torch.testing.assert_close(
        torch.tensor(changes), torch.tensor(vv.ablate_heads(number, pixels(), target=0).values)
    )
    scores = PreparedImage.of(boxes, pixels(), target=target).outputs(torch.cat([pixels(), 2 * pixels()]))
    assert scores.shape == (2, 1)


def test_run_and_explain_take_a_function_of_the_scores() -> None:
    def fourth(scores: Tensor) -> Tensor:
        return scores[4]

    loaded = vv.load("mini")
    maps, expected = (vv.explain(loaded, "shapes", target=one)["relevance"] for one in (fourth, 4))
    assert (maps.values == expected.values).all()
    answer, expected = (vv.run(loaded, "shapes", "relevance", target=one) for one in (fourth, 4))
    assert (answer.values == expected.values).all()
    assert dict(answer.provenance.parameters)["target"] == "function fourth of the output"
    assert vv.run(loaded, "shapes", "relevance", target=fourth) is answer
    other = vv.run(loaded, "shapes", "relevance", target=lambda scores: -scores[4])
    assert (other.values != expected.values).any()


@pytest.mark.parametrize(
    "ask",
    [
        lambda model, image: vv.trace(model, image, target=3),
        lambda model, image: vv.explain(model, image),
        lambda model, image: vv.explain(model, image, methods="occlusion", target=3),
        lambda model, image: vv.ablate_heads(model, image),
    ],
)
def test_a_model_without_scores_says_what_it_returns_and_what_to_pass(ask: Callable[..., Any]) -> None:
    model = Returning(lambda _, tokens: {"boxes": tokens[:, 1:, :4], "masks": tokens[:, None]})
    words = (
        r"^Returning returns no scores .*output\['boxes'\] \[1, 24, 4\], output\['masks'\] \[1, 1, 25, 40\]: pass as target= "
        r".*target=lambda output: output\['boxes'\]\[0, 0, 0\]\.$"
    )
    with pytest.raises(ParameterError, match=words):
        ask(model, pixels())
    assert vv.trace(model, pixels(), target=lambda output: output["boxes"][0, 0, 0]).output_grad is not None


@pytest.mark.parametrize("question", ["relevance", "agreement", "own_part", "head_importance"])
def test_questions_by_name_take_a_function_of_what_is_returned(question: str) -> None:
    module = Returning(lambda _, tokens: {"boxes": tokens[:, 1:, :4], "class": tokens[:, :1]})
    model = plain_module(module, preprocess=vv.Preprocess((64, 96), (16, 16))).with_output("softmax")
    target = lambda output: output["class"][0, 0, 3]  # noqa: E731 - as a user passes it
    assert vv.run(model, "shapes", question, target=target, mode="crop") is not None
    with pytest.raises(ParameterError, match=r"returns no scores .*target=lambda output: "):
        vv.run(model, "shapes", question, target=3, mode="crop")


def test_what_a_function_cannot_be_asked_for_is_refused_in_a_sentence() -> None:
    with pytest.raises(ParameterError, match="A function as the target cannot be written into a file"):
        vv.figure("mini", "shapes", "relevance", target=lambda scores: scores[3])
    with pytest.raises(ParameterError, match="A function is no sum of parts"):
        vv.run("mini", "shapes", "decomposition", target=lambda scores: scores[3])


SIGLIP = {"hidden_size": 40, "num_hidden_layers": 3, "num_attention_heads": 5, "intermediate_size": 56} | {
    "image_size": 64,
    "patch_size": 16,
}


def siglip(kind: str) -> nn.Module:
    """Of transformers, which pools by attention; the classifier reads the mean of the patches beside that pool."""
    vision = transformers.SiglipVisionConfig(**SIGLIP)
    if kind == "vision":
        return transformers.SiglipVisionModel(vision).eval()
    text = {"hidden_size": 40, "num_hidden_layers": 1, "num_attention_heads": 5, "intermediate_size": 8}
    both = transformers.SiglipConfig(text_config=text, vision_config=vision.to_dict(), num_labels=7)
    if kind == "classifier":
        return transformers.SiglipForImageClassification(both).eval()
    return transformers.SiglipModel(both).eval().vision_model


@pytest.mark.parametrize("kind", ["vision", "tower of both"])
def test_a_model_of_features_names_a_target_that_its_maps_explain(kind: str) -> None:
    model = siglip(kind)
    with pytest.raises(ParameterError, match=r"target=lambda output: output\['pooler_output'\]\[0, 0\]\.$"):
        vv.explain(model, pixels(size=(64, 64)))
    maps = vv.explain(
        model,
        pixels(size=(64, 64)),
        methods=("relevance", "gradient_rollout", "rollout", "value_rollout", "occlusion"),
        target=lambda output: output["pooler_output"][0, 0],
    )
    assert not maps.missing
    assert all(np.ptp(one.values) > 0 for one in maps.values())


def test_a_classifier_beside_the_pool_is_explained_from_the_patches_that_it_reads() -> None:
    model, image = siglip("classifier"), pixels(size=(64, 64))
    assert vv.trace(model, image).layout.pooling == "mean"
    with pytest.raises(ParameterError, match="The answer is read from the mean of all patches"):
        vv.rollout(vv.trace(model, image, layout=vv.TokenLayout((4, 4), (), pooling="attention")))
    maps = vv.explain(model, image, methods=("relevance", "rollout"), target=2)
    assert not maps.missing
    assert maps["rollout"].caption.endswith("pool (mean of patches) draws on")


def test_a_target_that_is_not_read_from_the_pool_is_explained_from_the_tokens_that_it_reads() -> None:
    model, image = siglip("vision"), pixels(size=(64, 64))

    def target(output: Any) -> Tensor:
        return output.last_hidden_state[0].mean(0)[1]  # type: ignore[no-any-return]

    pooled = vv.explain(model, image, target=lambda output: output.pooler_output[0, 1])["relevance"]
    assert "query" not in dict(pooled.provenance.parameters)
    mean = vv.explain(model, image, target=target)["relevance"]
    assert "from mean of 16 tokens that the target reads (patch (0, 0) 6%, " in mean.caption
    assert not np.allclose(mean.values, pooled.values, atol=0.1 * pooled.values.max())
    relevance = vv.explain(model, image, target=target, query="0,0")["relevance"]
    assert relevance.values.argmax() == 0
    assert np.ptp(vv.explain(model, image, target=target, methods="occlusion")["occlusion"].values) > 0
