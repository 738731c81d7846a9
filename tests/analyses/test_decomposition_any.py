"""What an answer is made of, of modules that are not ours: against our own model, and against fp64 written out here."""

from __future__ import annotations

import copy
import itertools
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import vit_viz as vv
from tests.analyses import test_decomposition as ours
from tests.analyses.test_decomposition import CASES, by_hand, check, one_hot, picture, pool_by_hand
from tests.capture import models
from tests.comparing import assert_same
from vit_viz.analyses.decomposition import Decomposition, decomposition, decomposition_of
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.errors import CaptureError
from vit_viz.geometry import TokenLayout
from vit_viz.model.vit import VisionTransformer

pytestmark = pytest.mark.numbers

GRID, HEADS, HEAD_DIM, DIM, CLASSES, DEPTH = (3, 5), 4, 6, 24, 7, 3
LAYOUT = TokenLayout(GRID, ("class",))


class Foreign(VisionTransformer):
    """The same computation as one that nobody knows: it is read from a pass."""


def foreign(**options: Any) -> VisionTransformer:
    vit = ours.model(**options)
    vit.__class__ = Foreign
    return vit


@pytest.mark.parametrize("name", CASES)
def test_read_from_a_pass_each_part_is_what_is_missing_without_it(name: str) -> None:
    vit, pixels = foreign(**CASES[name]), picture()
    expected = (pool_by_hand if vit.attn_pool is not None else by_hand)(vit, pixels, one_hot(4))
    found, own = (decomposition(one, pixels, target=4) for one in (vit, ours.model(**CASES[name])))
    check(found, expected)
    assert (found.rest_names, found.layers, found.prefix) == (own.rest_names, own.layers, own.prefix)
    assert_same(found.rest, own.rest)


@pytest.mark.parametrize(
    "name", ["class", "mean of all tokens", "norm in the attention, mean", "rotary, registers, LayerScale"]
)
def test_inside_an_edit_the_parts_are_those_of_the_edited_module(name: str) -> None:
    vit, pixels = foreign(**CASES[name]), picture()
    edits, scores, moved, removed = ours.edits_by_hand()
    with vv.edit(**edits):
        found = decomposition(vit, pixels, target=4)
    check(found, by_hand(vit, pixels, one_hot(4), scores=scores, moved=moved, removed=removed))


def test_a_model_that_says_something_else_in_each_pass_is_refused() -> None:
    vit, passes = foreign(), itertools.count(1)
    vit.head.register_forward_hook(lambda *given: given[-1] * next(passes))
    with pytest.raises(CaptureError, match="or it changes from pass to pass"):
        decomposition(vit, picture(), target=4)


# --- modules of libraries, whose weights our own model computes as well


def assert_equal_parts(found: Decomposition, expected: Decomposition) -> None:
    """Names and numbers, to 1e-5 of the largest part."""
    largest = max(map(abs, expected.parts.values()))
    assert found.layers == expected.layers
    assert set(found.rest_names) == set(expected.rest_names)
    assert found.parts == {
        name: pytest.approx(value, abs=1e-5 * largest) for name, value in expected.parts.items()
    }
    assert abs(found.terms - expected.terms).max() <= 1e-5 * largest
    assert abs(found.total - found.output) <= 1e-5 * largest
    assert found.output == pytest.approx(expected.output, abs=1e-5 * largest)


@pytest.mark.parametrize(
    ("theirs", "own"),
    [
        ({}, {}),
        (
            {"init_values": 0.3, "reg_tokens": 3, "qk_norm": True, "global_pool": "avg", "fc_norm": True},
            {"layer_scale": True, "reg_tokens": 3, "qk_norm": True, "pooling": "mean", "fc_norm": True, "final_norm": False},
        ),
        (
            {"global_pool": "map", "class_token": False},
            {"pooling": "attention", "class_token": False},
        ),
    ],
    ids=["class", "LayerScale, registers, norms of queries and keys", "attention pool"],
)  # fmt: skip
def test_of_timm_the_parts_are_those_of_our_own_model(theirs: dict[str, Any], own: dict[str, Any]) -> None:
    pytest.importorskip("timm", reason="timm is an oracle of these tests")
    module = models.timm_vit(**theirs)
    vit = models.own(**{"mlp_hidden": 160} | own)
    vit.load_state_dict(module.state_dict())
    found, expected = (decomposition(one, models.pixels(), target=5) for one in (module, vit))
    assert_equal_parts(found, expected)


def test_of_a_distilled_timm_model_both_heads_are_read() -> None:
    pytest.importorskip("timm", reason="timm is an oracle of these tests")
    from timm.models.deit import VisionTransformerDistilled

    settings: dict[str, Any] = {
        "img_size": (64, 96),
        "embed_dim": 40,
        "depth": 3,
        "num_heads": 5,
        "num_classes": 7,
    }
    module = models.lively(VisionTransformerDistilled(patch_size=16, **settings))
    vit = models.own(mlp_hidden=160, dist_token=True, dist_head=True)
    vit.load_state_dict(module.state_dict())
    found, expected = (decomposition(one, models.pixels(), target=(3, 6)) for one in (module, vit))
    assert_equal_parts(found, expected)


def _dinov2() -> nn.Module:
    from transformers import Dinov2Config, Dinov2ForImageClassification

    config = Dinov2Config(
        hidden_size=40, num_hidden_layers=3, num_attention_heads=5, mlp_ratio=2, image_size=64, patch_size=16, num_labels=7,
    )  # fmt: skip
    module = models.lively(Dinov2ForImageClassification(config))
    random = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if "lambda" in name or name.endswith("bias"):
                parameter.copy_(0.2 + torch.rand(parameter.shape, generator=random))
    return module


@pytest.mark.parametrize("kind", ["sdpa", "eager", "DINOv2"])
def test_of_transformers_the_parts_are_those_of_our_own_model(kind: str, tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="transformers is an oracle of these tests")
    module = _dinov2() if kind == "DINOv2" else models.transformers_vit(kind)
    module.save_pretrained(tmp_path)
    size = (64, 64) if kind == "DINOv2" else models.SIZE
    loaded, pixels = vv.load(tmp_path, device="cpu"), models.pixels(size=size)
    assert isinstance(loaded.model, VisionTransformer)
    found, expected = (decomposition(one, pixels, target=5) for one in (module, loaded.model))
    assert_equal_parts(found, expected)


def test_of_torchvision_the_parts_are_those_of_our_own_model(tmp_path: Path) -> None:
    pytest.importorskip("torchvision", reason="torchvision is an oracle of these tests")
    from torchvision.models.vision_transformer import VisionTransformer as Theirs

    settings = {"num_layers": 3, "num_heads": 2, "hidden_dim": 128, "mlp_dim": 56, "num_classes": 7}
    module = models.lively(Theirs(image_size=64, patch_size=16, **settings))
    torch.save(module.state_dict(), tmp_path / "vit.pth")
    loaded, pixels = vv.load(tmp_path / "vit.pth", device="cpu"), models.pixels(size=(64, 64))
    found, expected = (decomposition(one, pixels, target=5) for one in (module, loaded.model))
    assert_equal_parts(found, expected)


# --- a module of nobody's, against fp64


class Block(nn.Module):
    """Pre-norm, and what is unlike it.

    Args:
        kind: how attention and MLP are added.
        multi_head: attention by nn.MultiheadAttention, else written out.
    """

    def __init__(self, kind: str, *, multi_head: bool) -> None:
        super().__init__()
        self.kind, self.multi_head = kind, multi_head
        self.norm1, self.norm2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.attention = nn.MultiheadAttention(DIM, HEADS, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(DIM, 40), nn.GELU(), nn.Linear(40, DIM))
        self.gamma = nn.Parameter(torch.rand(DIM))

    def attend(self, x: Tensor) -> Tensor:
        own = self.attention
        if self.multi_head:
            attended: Tensor = own(x, x, x)[0]
            return attended
        q, k, v = (
            F.linear(x, own.in_proj_weight, own.in_proj_bias)
            .unflatten(-1, (3, HEADS, -1))
            .permute(2, 0, 3, 1, 4)
        )
        attention = (q @ k.transpose(-2, -1) * HEAD_DIM**-0.5).softmax(-1)
        taken: Tensor = own.out_proj((attention @ v).transpose(1, 2).flatten(2))
        return taken

    def forward(self, x: Tensor) -> Tensor:
        if self.kind == "in place":
            x = x.clone()
            x += self.attend(self.norm1(x))
            x += self.mlp(self.norm2(x))
            return x
        if self.kind == "parallel":
            normed = self.norm1(x)
            return x + self.gamma * (self.mlp(normed) + self.attend(normed))
        if self.kind == "scaled stream":
            x = 0.5 * x + self.attend(self.norm1(x))
            return 0.5 * x + self.mlp(self.norm2(x))
        if self.kind == "post-norm":
            x = self.norm1(x + self.attend(x))
            return self.norm2(x + self.mlp(x))  # type: ignore[no-any-return]
        if self.kind == "gated":
            x = x + self.gamma * torch.sigmoid(x) * self.attend(self.norm1(x))
            return x + self.mlp(self.norm2(x))
        if self.kind == "detached MLP":
            x = x + self.attend(self.norm1(x))
            return x + torch.from_numpy(self.mlp(self.norm2(x)).detach().numpy())
        if self.kind == "squashed":
            x = x + torch.tanh(self.attend(self.norm1(x)))
            return x + self.mlp(self.norm2(x))
        x = x + self.attend(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class ByHand(nn.Module):
    """A layer norm without torch's."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.bias, self.eps = nn.Parameter(torch.ones(DIM)), nn.Parameter(torch.zeros(DIM)), 1e-5

    def forward(self, x: Tensor) -> Tensor:
        centred = x - x.mean(-1, keepdim=True)
        return (
            centred / torch.sqrt(centred.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight + self.bias
        )


class Net(nn.Module):
    def __init__(
        self, kind: str = "pre-norm", *, multi_head: bool = False, read: str = "class", norm: Any = None
    ) -> None:
        super().__init__()
        self.read = read
        self.embed = nn.Conv2d(2, DIM, (4, 6), (4, 6))
        self.first = nn.Parameter(torch.randn(1, 1, DIM))
        self.blocks = nn.ModuleList(Block(kind, multi_head=multi_head) for _ in range(DEPTH))
        self.norm, self.head = (norm or nn.LayerNorm(DIM)), nn.Linear(DIM, CLASSES)

    def forward(self, pixels: Tensor) -> Tensor:
        x = self.embed(pixels).flatten(2).transpose(1, 2)
        x = torch.cat([self.first.expand(len(x), -1, -1), x], dim=1)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.read == "checkpointed" else block(x)
        x = self.norm(x)
        if self.read == "most":
            x = x.amax(1)
        elif self.read == "mean":
            x = x[:, 1:].mean(1)
        else:
            x = x[:, 0]
        return self.head(torch.tanh(x) if self.read == "squashed" else x)  # type: ignore[no-any-return]


def net(*given: Any, **options: Any) -> Net:
    made = Net(*given, **options).eval()
    random = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.copy_(0.4 * torch.randn(parameter.shape, generator=random))
    return made


def photo() -> Tensor:
    return torch.randn(1, 2, 12, 30, generator=torch.Generator().manual_seed(8))


def parts_of(module: nn.Module, target: Any = 3) -> Decomposition:
    subject = PreparedImage.of(module, photo(), layout=LAYOUT)
    return decomposition_of(subject, subject.trace(), target=target)


def written_out(given: Net, target: int) -> dict[str, Any]:
    """Every part as a vector at every token in fp64, read by the head with the scale of the last norm held."""
    module, parts = copy.deepcopy(given).double().requires_grad_(False), dict[tuple[Any, ...], Tensor]()
    x = module.embed(photo().double()).flatten(2).transpose(1, 2)[0]
    x = torch.cat([module.first[0], x])
    parts["embedding",] = x
    for layer, block in enumerate(module.blocks):
        kept = 0.5 if block.kind == "scaled stream" else 1.0
        gamma = block.gamma if block.kind == "parallel" else 1.0
        own, normed = block.attention, block.norm1(x)
        q, k, v = (
            (normed @ own.in_proj_weight.T + own.in_proj_bias)
            .unflatten(-1, (3, HEADS, -1))
            .permute(1, 2, 0, 3)
        )
        attention = torch.softmax(q @ k.mT * HEAD_DIM**-0.5, -1)
        projection = own.out_proj.weight.unflatten(1, (HEADS, -1)).permute(1, 2, 0)  # [heads, head_dim, dim]
        taken = torch.einsum("hti,hid,hdc->hitc", attention, v, projection) * gamma
        bias = (own.out_proj.bias * gamma).expand(len(x), -1)
        before = x
        x = kept * x + taken.sum((0, 1)) + bias
        parts = {name: kept * part for name, part in parts.items()}
        parts |= {("head", layer, h, i): taken[h, i] for h in range(HEADS) for i in range(len(x))}
        parts["bias", layer] = bias
        thought = block.mlp(block.norm1(before) if block.kind == "parallel" else block.norm2(x)) * gamma
        x = kept * x + thought
        parts = {name: kept * part for name, part in parts.items()} | {("mlp", layer): thought}
    assert_same(sum(parts.values()), x)
    scale = (x.var(-1, unbiased=False, keepdim=True) + module.norm.eps).sqrt()

    def gave(part: Tensor) -> float:
        read = (part - part.mean(-1, keepdim=True)) / scale * module.norm.weight
        read = read[0] if module.read == "class" else read[1:].mean(0)
        return float(read @ module.head.weight[target])

    heads = torch.zeros(DEPTH, HEADS, len(x))
    for name, part in parts.items():
        if name[0] == "head":
            heads[name[1:]] = gave(part)
    return {
        "terms": heads.numpy(),
        "mlps": torch.tensor([gave(parts["mlp", layer]) for layer in range(DEPTH)]).numpy(),
        "embedding": gave(parts["embedding",]),
        "output biases of attention": sum(gave(parts["bias", layer]) for layer in range(DEPTH)),
        "bias of the last norm": float(module.norm.bias @ module.head.weight[target]),
        "bias of the output layer": float(module.head.bias[target]),
    }


@pytest.mark.parametrize("multi_head", [False, True])
@pytest.mark.parametrize("read", ["class", "mean"])
@pytest.mark.parametrize("kind", ["pre-norm", "in place", "parallel", "scaled stream"])
def test_of_a_module_of_ones_own_each_part_is_that_of_fp64(kind: str, read: str, *, multi_head: bool) -> None:
    module = net(kind, multi_head=multi_head, read=read)
    expected, found = written_out(module, 3), parts_of(module)
    rest = dict(zip(found.rest_names, found.rest.tolist(), strict=True))
    largest = max(map(abs, found.parts.values()))
    assert abs(found.terms - expected["terms"]).max() <= 1e-5 * largest
    assert abs(found.mlps - expected["mlps"]).max() <= 1e-5 * largest
    assert rest == {name: pytest.approx(expected[name], abs=1e-5 * largest) for name in list(expected)[2:]}
    assert found.output == pytest.approx(float(module(photo())[0, 3].detach()), abs=1e-5 * largest)
    assert sum(found.parts.values()) == pytest.approx(found.output, abs=1e-5 * largest)


def test_a_norm_that_is_written_out_holds_its_scale_too() -> None:
    found, same = parts_of(net(norm=ByHand())), parts_of(net())
    assert_same(found.terms, same.terms)
    assert_same(found.mlps, same.mlps)
    assert found.rest_names == ("embedding", "output biases of attention", "biases behind the last layer")
    assert found.rest[2] == pytest.approx(same.rest[2] + same.rest[3], rel=1e-4)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (
            {"kind": "post-norm"},
            "layer 0 hands on is not seen to be added by itself .* a norm follows the sum",
        ),
        ({"kind": "gated"}, "layer 2 hands on is not seen to be added by itself .* a gate"),
        (
            {"kind": "squashed"},
            r"between the attention of layer \d and what it is added to stands what is not linear .Tanh",
        ),
        (
            {"kind": "detached MLP"},
            "something is added to its stream behind the first layer that has no gradient",
        ),
        ({"read": "squashed"}, "behind the last layer stands what is not linear .Tanh"),
        ({"read": "most"}, "behind the last layer stands what is not linear .Amax"),
        ({"read": "checkpointed"}, "its blocks run again for a gradient"),
    ],
)
def test_what_is_no_such_sum_is_refused_in_a_sentence(options: dict[str, Any], why: str) -> None:
    with pytest.raises(
        CaptureError, match=f"What Net answers is not known as a sum of direct parts: .*{why}"
    ):
        parts_of(net(**options))


class Behind(Net):
    """The same with the class token behind the patches."""

    def forward(self, pixels: Tensor) -> Tensor:
        x = self.embed(pixels).flatten(2).transpose(1, 2)
        x = torch.cat([x, self.first.expand(len(x), -1, -1)], dim=1)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, -1])  # type: ignore[no-any-return]


def test_tokens_behind_the_patches_keep_their_places() -> None:
    behind, before = net(), parts_of(net())
    behind.__class__ = Behind
    subject = PreparedImage.of(behind, photo(), layout=TokenLayout(GRID, (), suffix=("class",)))
    found = decomposition_of(subject, subject.trace(), target=3)
    assert_same(found.maps, before.maps)
    assert_same(found.terms[:, :, -1], before.terms[:, :, 0])
    assert_same(found.map_of(1).values, before.map_of(1).values)
    assert found.map_of(1).suffix == {"class": pytest.approx(before.map_of(1).prefix["class"], rel=1e-5)}
    assert (found.prefix, found.suffix) == ((), ("class",))
    assert found.finding == before.finding
    names = [row[3] for row in found.to_table().rows if row[0] == "from a token by head"]
    assert names[:16] == [*(row for row in range(3) for _ in range(5)), "class"]


def test_asked_by_name_it_is_the_same() -> None:
    asked = vv.run(net(), photo(), "decomposition", target=3, layout=LAYOUT, maps="layers")
    alone = parts_of(net())
    assert_same(asked.heads, alone.heads)
    assert_same(asked.terms, alone.terms.sum(1, keepdims=True))


def test_a_module_keeps_no_trace_of_it() -> None:
    module = net()
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    parts_of(module.train())
    assert module.training
    assert all(parameter.grad is None for parameter in module.parameters())
    assert all(torch.equal(tensor, before[name]) for name, tensor in module.state_dict().items())
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in module.modules())
