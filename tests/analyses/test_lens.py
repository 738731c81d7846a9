"""The logit lens: equal to the model where it is no extrapolation, against plain products, and for models without classes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tests.analyses.test_layerwise import SumOfLayers
from tests.capture import models
from tests.capture.test_features import Model
from tests.comparing import assert_same
from vit_viz.analyses.lens import PROBE, lens_of, logit_lens, read_alone
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.capture.report import SOUND
from vit_viz.errors import CaptureError, ParameterError
from vit_viz.geometry import TokenLayout
from vit_viz.model import SentenceHead, VisionTransformer, ViTConfig

pytestmark = pytest.mark.numbers

GRID = (3, 5)


def model(**options: Any) -> VisionTransformer:
    settings = {"img_size": (12, 30), "patch_size": (4, 6), "embed_dim": 20, "depth": 2, "num_heads": 5}
    vit = VisionTransformer(ViTConfig(**{"num_classes": 7, **settings, **options})).eval()
    random = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for parameter in vit.parameters():
            parameter.copy_(0.3 * torch.randn(parameter.shape, generator=random))
    return vit.requires_grad_(False)


@pytest.fixture
def photo() -> torch.Tensor:
    return torch.randn(1, 3, 12, 30, generator=torch.Generator().manual_seed(11))


def test_the_lens_on_the_last_class_token_is_the_answer_of_the_model(photo):
    vit = model()
    for target in (0, 5):
        found = logit_lens(vit, photo, target=target)
        expected = vit(photo)[0].softmax(-1)[target]
        assert found.maps.named["class"][-1] == pytest.approx(float(expected), abs=1e-6)
    assert found.maps.names == ("input", "after layer 0", "after layer 1")
    assert found.maps.note == PROBE


def test_without_a_target_the_maps_are_of_the_models_first_choice(photo):
    vit = model()
    first = int(vit(photo)[0].argmax())
    assert_same(logit_lens(vit, photo).maps.values, logit_lens(vit, photo, target=first).maps.values)


def test_the_lens_is_the_final_norm_and_the_head_of_each_token(photo):
    vit = model(reg_tokens=2)
    x = vit.tokens(photo)[0]
    found = logit_lens(vit, photo, target=4)
    for state in range(3):
        scores = torch.stack(
            [vit.head(F.layer_norm(token, (20,), vit.norm.weight, vit.norm.bias, 1e-6)) for token in x]
        )
        expected = scores.softmax(-1)[3:].reshape(*GRID, 7)
        assert_same(found.maps.values[state], expected[..., 4].detach().numpy())
        assert (found.top[state] == expected.argmax(-1).numpy()).all()
        assert_same(found.top_probability[state], expected.amax(-1).detach().numpy())
        x = vit.blocks[state](x[None])[0] if state < 2 else x


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"dist_token": True, "dist_head": True},
        {"class_token": False, "pooling": "mean", "fc_norm": True, "final_norm": False},
        {"class_token": False, "pooling": "attention"},
        {"pool_concat": True},
        {"class_tokens": 3, "class_read": (2, 0)},
    ],
    ids=str,
)
def test_a_sequence_of_one_and_the_same_token_is_read_as_that_token_alone(options):
    vit = model(**options)
    token = torch.randn(20, generator=torch.Generator().manual_seed(5))
    alone = read_alone(vit, token[None])[0]
    everywhere = vit.classify(token.expand(1, 15 + len(vit.config.prefix), -1))[0]
    assert_same(alone, everywhere)


@pytest.mark.parametrize("pool", ["class", "mean", "attention"])
def test_of_sentences_each_token_is_scored_by_its_own_cosines(photo, pool):
    vit = model(
        pooling=pool, num_classes=0 if pool == "attention" else 9, fc_norm=pool == "mean", reg_tokens=1
    )
    size = 20 if pool == "attention" else 9
    directions = F.normalize(torch.randn(3, size, generator=torch.Generator().manual_seed(4)), dim=1)
    vit.head = SentenceHead(vit.head, directions, 8.0, -1.5)
    vit.config = replace(vit.config, num_classes=3)
    found = logit_lens(vit, photo, target=2)
    x = vit.tokens(photo)[0]
    for state in range(3):
        rows = []
        for token in vit.norm(x)[2:]:
            read = token
            if pool == "attention":  # of one token it has all the weight
                value = vit.attn_pool.kv(token)[20:]
                read = vit.attn_pool.proj(value)
                read = read + vit.attn_pool.mlp(vit.attn_pool.norm(read))
            embedding = vit.head.projection(vit.fc_norm(read))
            rows.append(8 * directions @ embedding / embedding.norm() - 1.5)
        expected = torch.stack(rows).softmax(-1).reshape(*GRID, 3)
        assert_same(found.maps.values[state], expected[..., 2])
        assert (found.top[state] == expected.argmax(-1).numpy()).all()
        x = vit.blocks[state](x[None])[0] if state < 2 else x


def test_a_model_without_classes_is_compared_with_its_own_embedding(photo):
    vit = model(num_classes=0)
    found = logit_lens(vit, photo)
    assert found.top is None
    assert found.maps.named["class"][-1] == pytest.approx(1, abs=1e-6)
    token = vit.norm(vit.run_blocks(vit.tokens(photo), GRID))[0, 1 + 8]
    expected = F.cosine_similarity(token, vit(photo)[0], dim=0)
    assert found.maps.values[-1].flat[8] == pytest.approx(float(expected), abs=1e-6)
    assert found.maps.value_range == (-1, 1)


def test_classes_have_names_and_only_those_that_come_first_somewhere(photo):
    found = logit_lens(model(), photo)
    assert set(found.words) == set(found.top.ravel().tolist())
    assert found.words[int(found.top[0, 0, 0])] == f"class {found.top[0, 0, 0]}"


def test_what_the_lens_cannot_show_is_said(photo):
    with pytest.raises(ParameterError, match="one class"):
        logit_lens(model(), photo, target=(1, 2))
    with pytest.raises(ParameterError, match="7"):
        logit_lens(model(), photo, target=7)


class Pooled(Model):
    """Reads the mean of all tokens, in batches of which it knows the number from its pixels."""

    def forward(self, pixels):
        x = torch.cat(
            [self.named.expand(len(pixels), -1, -1), self.embed(pixels).flatten(2).transpose(1, 2)], 1
        )
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x.reshape(len(pixels), 27, -1)).mean(1))


OF_OTHERS = {
    "timm": (
        lambda: models.timm_vit(reg_tokens=2),
        lambda model: model.blocks,
        lambda model, x: model.head(model.norm(x)),
        (64, 96),
    ),
    "timm, learned pool": (
        lambda: models.timm_vit(class_token=False, global_pool="map"),
        lambda model: model.blocks,
        lambda model, x: model.forward_head(model.norm(x[:, None])),
        (64, 96),
    ),
    "transformers": (
        models.transformers_vit,
        lambda model: model.vit.layers,
        lambda model, x: model.classifier(model.vit.layernorm(x)),
        (64, 96),
    ),
    "torchvision": (
        models.torchvision_vit,
        lambda model: model.encoder.layers,
        lambda model, x: model.heads(model.encoder.ln(x)),
        (64, 64),
    ),
    "own": (
        lambda: models.lively(Pooled("apart, norm last", 3)),
        lambda model: model.blocks,
        lambda model, x: model.head(model.norm(x)),
        (16, 36),
    ),
}
"""Each with its blocks, what it makes of one token alone, and the size of its input."""


@pytest.mark.parametrize("name", OF_OTHERS)
def test_of_any_module_the_lens_is_what_it_makes_of_one_token_alone(name):
    make, blocks, rest, size = OF_OTHERS[name]
    torch.manual_seed(3)
    model, image, states = make().requires_grad_(False), models.pixels(size=size), []
    handles = [blocks(model)[0].register_forward_pre_hook(lambda _module, args: states.append(args[0]))]
    handles += [block.register_forward_hook(lambda _m, _i, x: states.append(x)) for block in blocks(model)]
    model(image)
    for handle in handles:
        handle.remove()
    lens = logit_lens(model, image, target=4)
    for state, values, top in zip(states, lens.maps.values, lens.top, strict=True):
        expected = rest(model, state[0, -values.size :]).softmax(-1)
        assert_same(values.ravel(), expected[:, 4].numpy())
        assert (top.ravel() == expected.argmax(-1).numpy()).all()


def test_a_module_without_blocks_is_told_that_its_layers_were_not_found():
    module = models.Detector(TokenLayout(grid=(4, 7), prefix=("class",)))
    subject = PreparedImage.of(module, models.pixels(size=(16, 42)), has_classes=True)
    recorded = subject.trace()
    recorded.residual = torch.zeros(4, 29, 40)
    with pytest.raises(CaptureError, match="it has no list of blocks"):
        lens_of(subject, recorded)


@pytest.mark.parametrize(
    ("output", "shown"),
    [("value", lambda scores: scores), ("sigmoid", torch.sigmoid)],
    ids=["value", "sigmoid"],
)
def test_values_are_shown_as_they_are_and_classes_that_stand_alone_by_the_sigmoid(photo, output, shown):
    vit = model()
    subject = PreparedImage.of(vit, photo, output=output)
    found = lens_of(subject, subject.trace(keep_residual=True), target=4)
    expected = shown(vit.head(vit.norm(vit.tokens(photo)[0, 1:])))
    assert_same(found.maps.values[0].ravel(), expected[:, 4].numpy())


def in_pairs():
    """Four layers in two blocks."""
    module = models.timm_vit(depth=4)
    module.blocks = torch.nn.Sequential(module.blocks[:2], module.blocks[2:])
    return module


@pytest.mark.parametrize(
    ("make", "known", "why"),
    [
        (lambda: models.lively(SumOfLayers("apart", 3)), None, "not defined for this model"),
        (
            lambda: models.lively(SumOfLayers("apart", 3)),
            SOUND,
            "computes its output from more than its last block",
        ),
        (in_pairs, SOUND, "4 layers of attention, but 2 blocks"),
    ],
)
def test_of_a_module_whose_layers_cannot_stand_for_the_last_one_no_lens_is_shown(make, known, why):
    torch.manual_seed(1)
    module = make().eval()
    size = (16, 36) if isinstance(module, SumOfLayers) else (64, 96)
    subject = PreparedImage.of(module, models.pixels(size=size), has_classes=True)
    recorded = subject.trace()
    recorded.residual, recorded.known = torch.zeros(recorded.num_layers + 1, 27, 40), known or recorded.known
    with pytest.raises(CaptureError, match=why):
        lens_of(subject, recorded)
