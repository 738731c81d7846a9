"""`run`, `trace`, `explain`, `figure` and `rollout` take the same models and pictures, or refuse them in a sentence.

    pytest -n0 -s tests/test_front_doors.py -k prints_its_rows

writes the table: door, model, picture, and what comes of it.
"""

from __future__ import annotations

import inspect
import io
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import timm
import torch
import torchvision
import transformers
from PIL import Image

import vit_viz as vv
from tests.checkpoints.test_text_towers import own_file
from vit_viz.analyses.heads import HEADS
from vit_viz.analyses.registry import QUESTIONS
from vit_viz.bundled import bundled_file
from vit_viz.errors import ImageError, ParameterError
from vit_viz.samples import sample

NAMED = ("name", "path", "text path", "loaded")
DOORS: dict[str, Callable[[Any, Any], Any]] = {
    "run": lambda model, picture: vv.run(model, picture, "rollout").values,
    "trace": lambda model, picture: vv.rollout(vv.trace(model, picture)).values,
    "explain": lambda model, picture: vv.explain(model, picture, methods="rollout")["rollout"].values,
    "figure": lambda model, picture: values_in(vv.figure(model, picture, "rollout", format="npz").data),
    "rollout": lambda model, picture: vv.rollout(model, picture).values,
}


def values_in(npz: bytes) -> Any:
    return np.load(io.BytesIO(npz))["values"]


@pytest.fixture(scope="module")
def picture() -> Image.Image:
    return sample("shapes").resize((64, 64))


@pytest.fixture(scope="module")
def models() -> dict[str, Any]:
    torch.manual_seed(0)
    weights = bundled_file("mini.safetensors")
    config = transformers.ViTConfig(
        hidden_size=40,
        num_hidden_layers=3,
        num_attention_heads=5,
        intermediate_size=56,
        image_size=64,
        patch_size=16,
    )
    return {
        "name": "mini",
        "path": weights,
        "text path": str(weights),
        "loaded": vv.load("mini"),
        "timm": timm.create_model("vit_tiny_patch16_224", img_size=64, depth=3, num_classes=7),
        "transformers": transformers.ViTForImageClassification(config),
    }


@pytest.mark.parametrize("door", DOORS)
def test_a_sample_is_meant_by_its_name(models: dict[str, Any], door: str) -> None:
    got, expected = (DOORS[door](models["loaded"], one) for one in ("shapes", sample("shapes")))
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("door", DOORS)
def test_a_gray_array_is_a_gray_picture(models: dict[str, Any], picture: Image.Image, door: str) -> None:
    gray = np.asarray(picture.convert("L"))
    for one in (gray, gray[..., None]):
        got, expected = (DOORS[door](models["loaded"], each) for each in (one, picture.convert("L")))
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("door", DOORS)
def test_a_module_that_does_not_say_how_pictures_become_its_input_says_what_to_do(
    picture: Image.Image, door: str
) -> None:
    module = torchvision.models.VisionTransformer(64, 16, 2, 4, 40, 56, num_classes=7)
    with pytest.raises(ParameterError, match=r"^VisionTransformer does not say how .*preprocess=.*\.$"):
        DOORS[door](module, picture)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("name", ["timm", "transformers"])
def test_a_model_of_one_size_gets_a_wide_photo_as_its_recipe_crops_it(
    models: dict[str, Any], picture: Image.Image, door: str, name: str
) -> None:
    wide = picture.resize((112, 72))
    expected = vv.rollout(vv.trace(models[name], wide, mode="crop")).values
    np.testing.assert_array_equal(DOORS[door](models[name], wide), expected)


def test_every_surface_says_that_the_photo_is_cropped(
    models: dict[str, Any], picture: Image.Image, tmp_path: Path
) -> None:
    wide, why = picture.resize((112, 72)), "this model takes no other size than 64 x 64 pixels"
    recorded = vv.trace(models["timm"], wide)
    answer = vv.run(models["timm"], wide, "rollout")
    explained = vv.explain(models["timm"], wide)["relevance"]
    assert all(why in told.provenance.preprocess for told in (recorded, answer, explained))
    assert [why in problem for problem in recorded.problems] == [True]
    assert why in repr(recorded)
    figure = Image.open(io.BytesIO(vv.figure(models["timm"], wide, "rollout").data))
    assert why in figure.info["Description"]
    assert why in vv.explore(models["timm"], wide).save(tmp_path / "page.html").read_text("utf-8")
    square = vv.trace(models["timm"], picture)
    assert "whole image" in square.provenance.preprocess
    assert square.problems == ()


@pytest.mark.parametrize("door", ["run", "figure"])
def test_a_question_by_name_is_about_a_picture(models: dict[str, Any], door: str) -> None:
    with pytest.raises(ParameterError, match="'rollout' is about a picture"):
        DOORS[door](models["loaded"], None)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("shape", r"no file and no sample 'shape'; did you mean 'shapes'\?$"),
        ("zzz", r"no file and no sample 'zzz'; there are: .*shapes.*\.$"),
        ("nowhere/photo.jpg", "no such file"),
        ("photo.jpg", "no such file"),
    ],
)
def test_a_picture_that_is_not_there_is_told(
    models: dict[str, Any], door: str, wrong: str, words: str
) -> None:
    with pytest.raises(ImageError, match=words):
        DOORS[door](models["loaded"], wrong)


@pytest.mark.parametrize("door", DOORS)
def test_an_array_that_is_no_picture_is_refused(models: dict[str, Any], door: str) -> None:
    with pytest.raises(ParameterError, match=r"not \[64, 64, 2\]"):
        DOORS[door](models["loaded"], np.zeros((64, 64, 2), np.uint8))


@pytest.mark.parametrize(("name", "meant"), [("rolout", "rollout"), ("relevanz", "relevance")])
def test_a_question_with_a_slip_is_recognised(models: dict[str, Any], name: str, meant: str) -> None:
    with pytest.raises(ParameterError, match=f"did you mean '{meant}'"):
        vv.run(models["loaded"], "shapes", name)
    with pytest.raises(ParameterError, match=f"did you mean '{meant}'"):
        vv.explain(models["loaded"], "shapes", methods=name)


def test_a_pair_is_a_patch_as_a_query_has_it_and_a_list_is_tokens(models: dict[str, Any]) -> None:
    trace = vv.trace(models["loaded"], "shapes")
    token = trace.layout.token((3, 4))
    torch.testing.assert_close(trace.attention(2, queries=(3, 4)), trace.attention(2, queries=[token]))
    torch.testing.assert_close(trace.received(2, keys=(3, 4)), trace.received(2, keys=[token]))
    assert trace.attention(2, queries=[3, 4]).shape[1] == 2
    with pytest.raises(ParameterError, match=r"\(row, col\)"):
        trace.attention(2, queries=(3, 4, 5))


def test_a_question_itself_stands_for_its_name() -> None:
    table = vv.run("mini", "lion", HEADS, measure="entropy")
    assert table.values.shape == (6, 6)  # its type is that of the question: mypy knows it
    assert np.array_equal(table.values, vv.run("mini", "lion", "heads", measure="entropy").values)


@pytest.mark.parametrize("name", sorted(name for name, one in QUESTIONS.items() if not one.is_slow))
def test_an_answer_says_what_it_is_in_one_short_line(name: str) -> None:
    image = "lion" if QUESTIONS[name].takes_image else None
    try:
        told = repr(vv.run("mini", image, name))
    except vv.VitVizError:
        return  # this model has none of it
    assert len(told) <= 400
    assert "\n" not in told
    assert "array(" not in told


def test_a_model_says_what_it_is_in_one_short_line() -> None:
    told = "LoadedModel(mini: 6 layers x 6 heads, 2.8 M parameters, 200 classes, on cpu)"
    assert repr(vv.load("mini", device="cpu")) == told


@pytest.mark.parametrize("layer", [-1, -2])
@pytest.mark.parametrize(
    "name", [name for name, one in QUESTIONS.items() if "layer" in {f.name for f in one.options.schema()}]
)
def test_a_layer_of_a_question_counts_from_either_end(tmp_path: Path, name: str, layer: int) -> None:
    options = {"box": "20,20,90,90"} if name == "on_object" else {}
    model: str | Path = "mini"
    if name == "head_words":
        own_file(model := tmp_path / "both.safetensors")
    depth = vv.load(model, device="cpu").config.depth
    got, expected = (vv.run(model, "lion", name, layer=one, **options) for one in (layer, depth + layer))
    assert got is expected  # one request, kept once


# --- the table

PICTURES = ("path", "text", "sample", "PIL", "NumPy", "floats", "pixels")
MODELS = (*NAMED, "timm", "transformers")
WORKS = "works"


@pytest.fixture(scope="module")
def every_picture(picture: Image.Image, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    file = tmp_path_factory.mktemp("picture") / "picture.png"
    picture.save(file)
    pixels = torch.linspace(-1, 1, 3 * 64 * 64).reshape(1, 3, 64, 64)
    array = np.asarray(picture)
    forms = (file, str(file), "shapes", picture, array, array / 255, pixels)
    return dict(zip(PICTURES, forms, strict=True))


def surveyed(model: Any, picture: Any, folder: Path) -> Any:
    """The probabilities of the first classes."""
    done = vv.survey(model, picture, folder, mode="fit", thumbnails=False)
    return np.array(done.table("photos")["top_probabilities"].to_pylist()[0])


def outcome(ask: Callable[[], Any]) -> tuple[str, Any]:
    """What comes of it in words, and the numbers; an error that is not ours is raised."""
    try:
        return WORKS, ask()
    except vv.VitVizError as error:
        return str(error), None


def expected_words(door: str, model: str, picture: str) -> str:
    """A part of the sentence that refuses it; or that it works."""
    if door == "survey":
        if model in ("timm", "transformers"):
            return "a module has no name"
        return {"path": WORKS, "text": WORKS, "sample": "shapes does not exist"}.get(
            picture, "A survey is of files"
        )
    return WORKS


@pytest.mark.parametrize("model", MODELS)
def test_the_table_holds_and_prints_its_rows(
    models: dict[str, Any], every_picture: dict[str, Any], tmp_path: Path, model: str
) -> None:
    named = models["loaded"] if model in NAMED else models[model]  # which all names of one model mean
    first: dict[str, Any] = {"picture": DOORS["rollout"](named, every_picture["PIL"])}
    for door in (*DOORS, "survey"):
        for name, picture in every_picture.items():
            if door == "survey":
                ask = partial(surveyed, models[model], picture, tmp_path / name)
            else:
                ask = partial(DOORS[door], models[model], picture)
            words, numbers = outcome(ask)
            print(f"| {door} | {model} | {name} | {words} |")
            expected = expected_words(door, model, name)
            if expected != WORKS:
                assert expected in words, (door, model, name)
                assert words.endswith(".")
                assert not re.search(r"\.\s", words)  # one sentence
                continue
            assert words == WORKS, (door, model, name)
            if door == "survey":
                logits = vv.trace(models[model], picture).logits
                np.testing.assert_allclose(numbers, logits.softmax(-1).topk(5).values, rtol=1e-5)
                continue
            kind = name if name in ("sample", "pixels") else "picture"
            np.testing.assert_array_equal(numbers, first.setdefault(kind, numbers), err_msg=f"{door} {name}")


def test_run_and_figure_take_the_same() -> None:
    asked, drawn = (inspect.signature(door).parameters for door in (vv.run, vv.figure))
    assert [drawn[name] for name in asked] == list(asked.values())
    assert set(drawn) - set(asked) == {"format", "width_cm", "dpi", "title", "shared_scale"}


def test_a_figure_of_a_question_is_that_of_its_name() -> None:
    assert (
        vv.figure("mini", "lion", HEADS, format="csv").data
        == vv.figure("mini", "lion", "heads", format="csv").data
    )


def test_a_figure_can_be_cancelled() -> None:
    with pytest.raises(vv.Cancelled):
        vv.figure("mini", "lion", "ablation", cancelled=lambda: True)


def test_a_trace_holds_its_own_image(models: dict[str, Any]) -> None:
    trace = vv.trace(models["loaded"], "shapes")
    with pytest.raises(ParameterError, match="a trace does not hold it"):
        vv.rollout(trace, "shapes")
    with pytest.raises(ParameterError, match="A trace is needed here, not a model"):
        vv.rollout(models["loaded"])
