"""A register at test time: on a small model that is built to have outlier patches, by one neuron each that we know."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import torch

from tests.comparing import assert_same
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.analyses.registers import RegisterNeuron, add_register, register_neurons, traces_with_register
from vit_viz.errors import ParameterError
from vit_viz.geometry import TokenLayout
from vit_viz.model import ViTConfig
from vit_viz.model.vit import VisionTransformer

pytestmark = pytest.mark.numbers

DEPTH, LAYER, NEURON, MARKED = 4, 1, 13, ((0, 4), (2, 1))


def built(*, reads_marks: bool = True, **options: Any) -> VisionTransformer:
    """A model whose MLP of layer 1 writes a long vector wherever the first number of a token is large: hidden number 13 does it.

    Grid 3 x 5, patches of 4 x 6 pixels; the first number of a token is the mean of the first channel of its patch, and no block
    writes to it. All tokens have about the same norm when they enter.
    """
    settings = {"img_size": (12, 30), "patch_size": (4, 6), "embed_dim": 20, "depth": DEPTH, "num_heads": 5}
    torch.manual_seed(0)
    model = VisionTransformer(ViTConfig(**settings, num_classes=7, mlp_hidden=24, **options)).eval()
    with torch.no_grad():
        common = torch.tensor([0.0, *[1.0, -1.0] * 9, 0.0])
        for name, parameter in model.named_parameters():
            if parameter.ndim == 2:
                parameter.normal_(std=0.05)
            elif name.endswith("_token"):
                parameter += common
        for block in model.blocks:
            block.attn.proj.weight[0] = block.attn.proj.bias[0] = 0
            block.mlp.fc2.weight[0] = block.mlp.fc2.bias[0] = 0
        model.patch_embed.proj.bias.copy_(common)
        model.patch_embed.proj.weight[0] = 0
        model.patch_embed.proj.weight[0, 0] = 1 / 24
        mlp = model.blocks[LAYER].mlp
        if reads_marks:
            mlp.fc1.weight[NEURON] = 0
            mlp.fc1.weight[NEURON, 0] = 10.0
            mlp.fc1.bias[
                NEURON
            ] = -25.0  # after the norm, a marked patch has more than 3 there, any other about 0
            mlp.fc2.weight[:, NEURON] = 0
            mlp.fc2.weight[5, NEURON] = 20.0
    return model


def picture(marked: tuple[tuple[int, int], ...] = MARKED, seed: int = 1) -> torch.Tensor:
    pixels = 0.1 * torch.randn(1, 3, 12, 30, generator=torch.Generator().manual_seed(seed))
    for row, col in marked:
        pixels[0, 0, 4 * row : 4 * row + 4, 6 * col : 6 * col + 6] += 6
    return pixels


def tokens_of(places: tuple[tuple[int, int], ...], prefix: int = 1) -> tuple[int, ...]:
    return tuple(prefix + 5 * row + col for row, col in places)


def test_the_oracle_has_the_outliers_that_it_was_built_to_have():
    found = add_register(built(), picture(), count=1)
    assert found.before.outliers == ((), (), *[tokens_of(MARKED)] * 3)
    assert found.state == LAYER + 1
    assert found.outlier_patches == (2, 0)


def test_the_neuron_that_writes_outliers_is_found():
    found = add_register(built(), picture(), count=3)
    assert (found.neurons[0].layer, found.neurons[0].neuron) == (LAYER, NEURON)
    assert found.neurons[0].score > 2 * found.neurons[1].score


def test_the_register_takes_the_outliers_part_and_no_patch_is_one_any_more():
    found = add_register(built(), picture(), count=1)
    assert found.name == "register 0"
    assert [*found.after.maps.named] == ["class", "register 0"]
    assert [*found.attention[1].prefix] == ["class", "register 0"]
    assert found.after.outliers == ((), (), (1,), (1,), (1,))  # the register alone
    long_before = found.before.maps.values[LAYER + 1][tuple(zip(*MARKED, strict=True))]
    assert_same(found.after.maps.named["register 0"][LAYER + 1], long_before.max(), relative=0.2)


def test_the_tokens_before_the_patches_keep_their_own_values_of_the_neurons():
    """Of the class token, two registers of the model and the added one, only the last gets others; the class token's is highest."""
    model = built(reg_tokens=2)
    neurons = [RegisterNeuron(*place, 1.0) for place in ((LAYER, NEURON), (LAYER, 4), (2, 7))]
    with torch.no_grad():
        model.cls_token[..., 0] = 9
    computed, entering = {layer: [] for layer in range(DEPTH)}, {layer: [] for layer in range(DEPTH)}
    for layer, block in enumerate(model.blocks):
        block.mlp.fc1.register_forward_hook(lambda _part, _args, out, at=layer: computed[at].append(out[0]))
        block.mlp.fc2.register_forward_hook(
            lambda _part, args, _out, at=layer: entering[at].append(args[0][0])
        )
    traces_with_register(PreparedImage.of(model, picture()), neurons)
    for layer in range(DEPTH):
        expected = torch.nn.functional.gelu(computed[layer][-1])  # [tokens, hidden]
        for neuron in (one.neuron for one in neurons if one.layer == layer):
            highest = expected[:, neuron].max()
            expected[4:, neuron] = 0
            expected[3, neuron] = highest
        assert_same(entering[layer][-1], expected)
    assert int(computed[LAYER][-1][:, NEURON].argmax()) == 0


def test_passes_of_other_threads_are_neither_recorded_nor_changed():
    model = built()
    subject = PreparedImage.of(model, picture())
    other = picture(((1, 1), (0, 2)), seed=4)
    with torch.no_grad():
        expected = model(other)
    alone, _ = register_neurons([subject], count=3)
    this, elsewhere = threading.current_thread(), []

    def beside(*_):
        if threading.current_thread() is this:
            thread = threading.Thread(target=lambda: elsewhere.append(torch.no_grad()(model)(other)))
            thread.start()
            thread.join()

    for block in model.blocks:
        block.register_forward_hook(beside)
    assert register_neurons([subject], count=3)[0] == alone
    traces_with_register(subject, alone)
    assert len(elsewhere) == 3 * DEPTH
    for one in elsewhere:
        assert_same(one, expected)


def test_the_model_is_the_same_afterwards():
    model, pixels = built(), picture()
    with torch.no_grad():
        expected = model(pixels)
    add_register(model, pixels, count=2)
    with torch.no_grad():
        assert torch.equal(model(pixels), expected)
    assert model.config.reg_tokens == 0
    assert not any(part._forward_pre_hooks or part._forward_hooks for part in model.modules())


def test_hooks_are_gone_after_an_error_too(monkeypatch):
    model = built()
    monkeypatch.setattr(VisionTransformer, "classify", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        add_register(model, picture())
    assert not any(part._forward_pre_hooks for part in model.modules())


@pytest.mark.parametrize(
    "options",
    [
        {"reg_tokens": 2},
        {"position": "rotary", "qk_norm": True},
        {"position": "sinusoidal_1d"},
        {"position": "none", "class_token": False, "pooling": "mean"},
        {"no_embed_class": True, "dist_token": True},
        {"class_token": False, "pooling": "attention"},
    ],
    ids=str,
)
def test_where_tokens_do_not_mix_an_added_one_changes_no_other(options):
    """Attention writes nothing here, so whatever differs in another token comes from its place or position having shifted."""
    model = built(reads_marks=False, **options)
    with torch.no_grad():
        for block in model.blocks:
            block.attn.proj.weight.zero_()
            block.attn.proj.bias.zero_()
    place = len(model.config.prefix)
    before, after = traces_with_register(PreparedImage.of(model, picture()), [])
    others = [token for token in range(after.num_tokens) if token != place]
    assert_same(after.residual[:, others], before.residual)
    assert_same(after.q[:, :, others], before.q)
    assert_same(after.k[:, :, others], before.k)
    assert_same(after.logits, before.logits)
    assert (after.residual[0, place] == 0).all()


def test_neurons_are_scored_over_several_images_and_images_without_outliers_are_left_out():
    model = built()
    photos = [picture(), picture(((1, 1),), seed=4), picture((), seed=5)]
    subjects = [PreparedImage.of(model, one) for one in photos]
    alone = [register_neurons([one], count=1)[0][0].score for one in subjects[:2]]
    neurons, state = register_neurons(subjects, count=1)
    assert neurons[0].score == pytest.approx(sum(alone) / 2, rel=1e-5)
    assert state == LAYER + 1


@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["early first", "late first"])
def test_images_whose_outliers_come_in_different_layers_share_the_layers_before_the_earlier(order):
    """Weak marks are too weak for the neuron of layer 1; one of layer 2 makes outliers of them."""
    model = built()
    with torch.no_grad():
        mlp = model.blocks[LAYER + 1].mlp
        mlp.fc1.weight[5] = 0
        mlp.fc1.weight[5, 0], mlp.fc1.bias[5] = 10.0, -18.0
        mlp.fc2.weight[:, 5] = 0
        mlp.fc2.weight[5, 5] = 20.0
    subjects = [PreparedImage.of(model, one) for one in (picture(), picture(seed=4) / 2)]
    states = [register_neurons([one], count=1)[1] for one in subjects]
    assert states == [LAYER + 1, LAYER + 2]
    neurons, state = register_neurons([subjects[place] for place in order], count=48)
    assert state == LAYER + 1
    assert {one.layer for one in neurons} == {0, LAYER}
    with pytest.raises(ParameterError, match="1 to 48 neurons"):
        register_neurons([subjects[place] for place in order], count=49)


@pytest.mark.parametrize(("options", "words"), [
    ({"count": 0}, "1 to 48 neurons"),
    ({"count": 49}, "1 to 48 neurons"),
    ({"state": 1}, "No patch is an outlier in state 1"),
    ({"state": 0}, "they are 1-4"),
    ({"state": 5}, "they are 1-4"),
    ({"factor": 1e6}, "in any layer"),
])  # fmt: skip
def test_what_cannot_be_done_is_said(options, words):
    with pytest.raises(ParameterError, match=words):
        add_register(built(), picture(), **options)


@pytest.mark.parametrize("state", [3, DEPTH])
def test_a_later_state_asks_more_layers_for_neurons(state):
    found = add_register(built(), picture(), state=state, count=1)
    assert (found.neurons[0].layer, found.neurons[0].neuron) == (LAYER, NEURON)
    assert found.state == state
    assert isinstance(found.neurons[0], RegisterNeuron)


def test_a_model_that_is_not_ours_is_told_what_to_do():
    other = PreparedImage(torch.nn.Linear(2, 3), picture(), TokenLayout(grid=(3, 5)), has_classes=True)
    with pytest.raises(ParameterError, match="with vit_viz"):
        register_neurons([other])
