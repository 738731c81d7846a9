"""What people hand to the public functions: names, numbers of every kind, precisions, pixels that are no numbers."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

import vit_viz as vv
from vit_viz.analyses.faithfulness import faithfulness
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.analyses.relevance import gradient_rollout, relevance
from vit_viz.analyses.targets import as_target
from vit_viz.errors import CheckpointError, ParameterError
from vit_viz.geometry import TokenLayout
from vit_viz.labels import Labels

pytestmark = pytest.mark.numbers

NUMBERS = [np.int64(5), np.uint8(5), torch.tensor(5), torch.tensor([5]), np.array(5)]


@pytest.fixture(scope="module")
def mini():
    return vv.load("mini", device="cpu")


@pytest.fixture
def photo():
    noise = np.random.default_rng(2).integers(0, 256, (90, 210, 3), dtype=np.uint8)
    return Image.fromarray(noise)


class Foreign(nn.Module):
    """A module of which nobody can say what it is, around one of ours: its parts have no telling names."""

    def __init__(self, model):
        super().__init__()
        self.inside, self.other = model, nn.Linear(2, 3)

    def forward(self, pixels):
        return self.inside(pixels)


# --- pixels


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), -float("inf")])
def test_pixels_that_are_no_numbers_are_refused_before_the_model_runs(make_model, pixels, wrong):
    model, ran = make_model(), []
    model.register_forward_pre_hook(lambda *_: ran.append(1))
    spoilt = pixels.clone()
    spoilt[0, 1, 3, 20] = wrong
    flat = vv.PatchMap(np.eye(4, 6), "x", (0, 1), False, "x", False)
    for call in (
        lambda: vv.trace(model, spoilt),
        lambda: vv.explain(model, spoilt),
        lambda: vv.ablate_heads(model, spoilt),
        lambda: vv.faithfulness(model, spoilt, flat),
        lambda: PreparedImage.of(model, spoilt),
    ):
        with pytest.raises(
            ParameterError, match=r"^Pixels must be finite .* but 1 of 1,728 are NaN or infinite\.$"
        ):
            call()
    assert not ran


def test_pixels_that_leave_the_range_of_a_half_are_refused(make_model, pixels):
    with pytest.raises(ParameterError, match="finite numbers of float16"):
        vv.trace(make_model().half(), pixels * 1e6)


# --- numbers of every kind, and names


@pytest.mark.parametrize("five", NUMBERS, ids=str)
def test_a_class_may_be_any_kind_of_number(make_model, pixels, five):
    model = make_model()
    expected = vv.explain(model, pixels, target=5)["relevance"]
    got = vv.explain(model, pixels, target=five)["relevance"]
    np.testing.assert_array_equal(got.values, expected.values)
    assert got.caption == expected.caption
    assert vv.explain(model, pixels, target=(five, 2))["relevance"].caption.endswith(
        "class 5 minus logit of class 2"
    )
    trace = vv.trace(model, pixels, target=five)
    np.testing.assert_array_equal(
        relevance(trace).values, relevance(vv.trace(model, pixels, target=5)).values
    )


@pytest.mark.parametrize("wrong", [5.0, True, [5], torch.tensor(5.0), torch.tensor([5, 6])], ids=str)
def test_what_is_no_class_is_refused(make_model, pixels, wrong):
    with pytest.raises(ParameterError, match="whole number"):
        vv.explain(make_model(), pixels, target=wrong)
    with pytest.raises(ParameterError, match="whole number"):
        vv.trace(make_model(), pixels, target=wrong)


def test_a_class_is_found_by_its_name(mini, photo):
    index = mini.labels.names.index("sock")
    expected = vv.explain(mini, photo, target=index)["relevance"]
    for name in ("sock", " SOCK", mini.labels.synsets[index], str(index)):
        got = vv.explain(mini, photo, target=name)["relevance"]
        np.testing.assert_array_equal(got.values, expected.values)
    named = relevance(vv.trace(mini, photo, target="sock"))
    np.testing.assert_allclose(named.values, expected.values, rtol=1e-5, atol=1e-8)
    assert as_target(("sock", 3), has_classes=True, labels=mini.labels).index == index


def test_a_name_that_no_or_several_classes_have_is_refused_with_what_there_is():
    labels = Labels(("great crane", "crane", "lion", "crane", "sea lion"))
    assert labels.find("Lion") == 2
    with pytest.raises(
        ParameterError,
        match=r"^2 classes are called 'crane': pass one index of 'crane' \(1\), 'crane' \(3\)\.$",
    ):
        labels.find("crane")
    with pytest.raises(
        ParameterError, match=r"^No class is called 'sea': similar names: 'sea lion' \(4\)\.$"
    ):
        labels.find("sea")
    with pytest.raises(ParameterError, match=r"^No class is called 'whale': pass its index\.$"):
        labels.find("whale")


def test_a_name_where_no_names_are_known_is_refused(make_model, pixels):
    for call in (vv.explain, vv.trace, vv.ablate_heads):
        with pytest.raises(ParameterError, match="came without names of classes: pass its index"):
            call(make_model(), pixels, target="lion")


def test_a_name_of_no_model_says_which_there_are(photo):
    with pytest.raises(CheckpointError, match="There is no model 'maxi': expected mini"):
        vv.trace("maxi", photo)


def test_a_trace_where_the_model_has_to_run_again_is_refused(make_model, pixels):
    trace = vv.trace(make_model(), pixels)
    words = (
        r"^The model has to run again here, and a trace does not hold it: pass the model and the image .*\.$"
    )
    for call in (vv.explain, vv.ablate_heads):
        with pytest.raises(ParameterError, match=words):
            call(trace)
    with pytest.raises(ParameterError, match=words):
        vv.faithfulness(trace, pixels, vv.rollout(trace))
    with pytest.raises(ParameterError, match=words):
        vv.trace(trace, pixels)
    with pytest.raises(ParameterError, match=words):
        vv.position_similarity(trace)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("photo.jpg", "the text 'photo.jpg'"),
        (None, "None"),
        (np.ones(3), "an object of type ndarray"),
        (nn.Identity(), "a model"),
    ],
    ids=str,
)
def test_what_is_no_trace_is_refused(given, words):
    for call in (
        vv.rollout,
        relevance,
        gradient_rollout,
        lambda given: vv.attention_map(given, layer=0),
        lambda given: vv.head_table(given, measure="entropy"),
    ):
        with pytest.raises(
            ParameterError,
            match=rf"^A trace is needed here, not {words}: pass what vit_viz.trace\(model, image\)",
        ):
            call(given)


def test_what_is_no_model_is_refused(pixels):
    with pytest.raises(
        ParameterError, match=r"^A model is what vit_viz.load returns, .*, not an object of type list\.$"
    ):
        vv.explain([1], pixels)


# --- precision and layout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dtype", "share"), [(torch.float64, 1e-5), (torch.float16, 4e-3), (torch.bfloat16, 3e-2)], ids=str
)
@pytest.mark.parametrize("wrap", [lambda model: model, nn.Sequential], ids=["ours", "foreign"])
def test_other_precisions_agree_with_single_precision(make_model, pixels, dtype, share, wrap):
    """The forward pass rounds each number to the dtype's own precision, 2**-11 or 2**-8, some dozen times on its way."""
    model = make_model()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(0.5)  # attention far from one-hot, whose gradient would be rounding alone
    layout = model.layout(16, 36)
    plain, other = wrap(model), wrap(copy.deepcopy(model)).to(dtype)
    methods = ["attention", "rollout", "relevance", "gradient_rollout", "input_x_gradient", "occlusion"]
    methods += [
        "saliency",
        "integrated_gradients",
        "smoothgrad",
        "gradient_shap",
        "kernel_shap",
    ]
    methods += ["legrad", "gradcam"] if plain is model else []
    expected = vv.explain(plain, pixels, methods=methods, target=2, layout=layout)
    got = vv.explain(other, pixels, methods=methods, target=2, layout=layout)
    for method in methods:
        assert got[method].values.dtype == np.float32, method
        assert close(got[method].values, expected[method].values, 4 * share), method
    tables = [vv.ablate_heads(module, pixels, target=2, layout=layout) for module in (plain, other)]
    assert close(tables[1].values, tables[0].values, 8 * share)
    curves = [
        faithfulness(module, pixels, expected["occlusion"], target=2, layout=layout)
        for module in (plain, other)
    ]
    assert close(curves[1].deletion.y, curves[0].deletion.y, share)
    assert close(curves[1].insertion.y, curves[0].insertion.y, share)


def close(got, expected, share):
    """Whether no number is off by more than a share of the largest."""
    return np.abs(got - expected).max() <= share * np.abs(expected).max()


def test_a_layout_may_be_given_where_the_module_does_not_tell(make_model, pixels):
    model, layout = Foreign(make_model(reg_tokens=2)), TokenLayout(grid=(4, 6), prefix=("class", "a", "b"))
    found = vv.explain(model, pixels, methods=["rollout", "occlusion"], layout=layout)
    assert list(found["rollout"].prefix) == ["class", "a", "b"]
    assert vv.ablate_heads(model, pixels, layout=layout).values.shape == (3, 5)
    assert faithfulness(model, pixels, found["occlusion"], layout=layout).deletion.x.size == 21
    with pytest.raises(ParameterError, match="tokens"):
        vv.explain(model, pixels, methods=["rollout"], layout=TokenLayout(grid=(4, 6), prefix=("class",)))


# --- classes, or not


def words_of(result):
    """Everything that a map says."""
    return " ".join([result.caption, result.note, result.unit, str(result.provenance.to_dict())])


@pytest.mark.parametrize("has_classes", [None, True, False])
def test_a_module_that_does_not_say_that_it_has_classes_is_not_said_to(make_model, pixels, has_classes):
    model, layout = Foreign(make_model()), TokenLayout(grid=(4, 6))
    told = {"layout": layout, "has_classes": has_classes}
    target = None if has_classes is False else 5
    methods = ["relevance", "occlusion"]
    maps = vv.explain(model, pixels, methods=methods, target=target, **told)
    table = vv.ablate_heads(model, pixels, target=target, **told)
    test = faithfulness(model, pixels, maps["occlusion"], target=target, **told)
    said = " ".join(
        [words_of(maps[name]) for name in methods]
        + [table.unit, str(table.provenance), test.deletion.y_label]
    )
    assert ("class 5" in said) == (has_classes is True)
    assert ("output 5" in said) == (has_classes is None)
    assert ("embedding" in said) == (has_classes is False)


def test_an_output_that_does_not_exist_is_called_an_output(make_model, pixels):
    model, layout = Foreign(make_model()), TokenLayout(grid=(4, 6))
    with pytest.raises(ParameterError, match=r"^Output 35 does not exist: this model has outputs 0-6\.$"):
        vv.explain(model, pixels, target=35, layout=layout)
    with pytest.raises(ParameterError, match="has no classes"):
        vv.explain(model, pixels, target=3, layout=layout, has_classes=False)
    with pytest.raises(ParameterError, match=r"^Output 35 does not exist: this model has outputs 0-6\.$"):
        vv.trace(model, pixels, target=35, layout=layout)
