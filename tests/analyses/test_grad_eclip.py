"""Grad-ECLIP: by hand, and against hooks on the whole model with the equations of the paper."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from tests import kinds
from tests.comparing import assert_same
from tests.traces import trace_from
from vit_viz.analyses.explain import explain, explain_subject
from vit_viz.analyses.method_input import MethodInput
from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.analyses.targets import class_logit, logit_difference, similarity
from vit_viz.errors import CaptureError, ParameterError
from vit_viz.geometry import TokenLayout

pytestmark = pytest.mark.numbers

METHOD = METHODS["grad_eclip"]


def pixels_of(loaded, seed=3):
    torch.manual_seed(seed)
    return torch.randn(1, loaded.config.in_chans, *loaded.config.img_size)


def published(q, k, v, gradient):
    """Equations 7 to 10, of one query [dim], keys and values [patches, dim] and the gradient for what it gathers [dim]."""
    fit = F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).T
    fit = (fit - fit.min()) / (fit.max() - fit.min())
    return (gradient * v * fit[:, None]).sum(-1)


def hooked(model, pixels, target, operands, gathering):
    """What modules returned in a plain pass, side by side [tokens, ...], and the gradient for what another one was given."""
    kept, given = [], []

    def keep(module, args):
        args[0].retain_grad()
        given.append(args[0])

    handles = [one.register_forward_hook(lambda _m, _a, output: kept.append(output[0])) for one in operands]
    handles.append(gathering.register_forward_pre_hook(keep))
    target(model(pixels)[0]).backward()
    for handle in handles:
        handle.remove()
    model.zero_grad(set_to_none=True)
    return [one.detach() for one in kept], given[0].grad[0]


OF_TOKENS = (
    ("class token and registers", (0,)),
    ("registers without positions of their own", (0,)),
    ("several class tokens, a table of its own size", (0, 2)),
    ("a bias for offsets in each block", (0,)),
    ("distilled", (0, 1)),
    ("unfold, gated MLP, norm inside attention", (0,)),
    ("no positions, tanh GELU, own scale", (0,)),
)


@pytest.mark.parametrize(("kind", "read"), OF_TOKENS, ids=str)
@pytest.mark.parametrize("target", [class_logit(5), logit_difference(2, 6)], ids=["logit", "difference"])
def test_it_equals_the_paper_on_hooks(kind, read, target):
    loaded = kinds.loaded(**kinds.RANDOM_MODELS[kind])
    model, pixels = loaded.model.double(), pixels_of(loaded).double()
    attn = model.blocks[-1].attn
    (qkv,), gradient = hooked(model, pixels, target, [attn.qkv], attn.norm)
    q, k, v = qkv.chunk(3, dim=-1)
    patches = slice(len(loaded.config.prefix), None)
    expected = sum(published(q[i], k[patches], v[patches], gradient[i]) for i in read).clamp(min=0)
    got = explain_subject(PreparedImage.of(model, pixels), methods=["grad_eclip"], target=target)[
        "grad_eclip"
    ]
    assert expected.any()
    assert_same(got.values.ravel(), expected.float().numpy())


def test_of_a_learned_pool_query_keys_and_values_are_its_own():
    loaded = kinds.loaded(class_token=False, pooling="attention", reg_tokens=2)
    model, pixels, target = loaded.model, pixels_of(loaded), class_logit(3)
    pool = model.attn_pool
    (q, kv), gradient = hooked(model, pixels, target, [pool.q, pool.kv], pool.proj)
    k, v = kv.chunk(2, dim=-1)
    expected = published(q[0], k, v, gradient[0]).clamp(min=0)
    got = explain(model, pixels, methods="grad_eclip", target=target)["grad_eclip"]
    assert expected.any()
    assert_same(got.values.ravel(), expected.numpy())


def by_hand(**changes):
    """One class token and three patches; one head of two numbers; the gradient for what the class token gathers is (1, -1)."""
    operands = {
        "q": [[1.0, 0], [0, 1], [0, 1], [0, 1]],
        "k": [
            [-1.0, 0],
            [2, 0],
            [0, 5],
            [3, 3],
        ],  # cosines with (1, 0): 1, 0 and 0.707; the class token's own, -1, is left out
        "v": [[9.0, 9], [4, 1], [7, 1], [1, 2]],  # along (1, -1): 3, 6 and -1
        "output_grad": [[1.0, -1], [0, 0], [0, 0], [0, 0]],
    } | changes
    stacks = {name: torch.tensor(values)[None, None] for name, values in operands.items()}
    layout = TokenLayout(grid=(1, 3), prefix=("class",))
    return METHOD.run(MethodInput(recorded=trace_from(**stacks, layout=layout)), METHOD.options())


def test_three_patches_by_hand():
    assert by_hand().values.tolist() == [[3, 0, 0]]
    # a query (1, 1): cosines 0.707, 0.707 and 1
    assert_same(
        by_hand(q=[[1.0, 1], [0, 1], [0, 1], [0, 1]], v=[[0.0, 0], [4, 1], [7, 1], [1, -2]]).values,
        [[0, 0, 3]],
    )


def test_where_all_keys_are_alike_nothing_is_weighted():
    same = by_hand(k=[[0.0, 1]] * 4)
    assert same.values.tolist() == [[3, 6, 0]]


def test_each_target_has_its_own_map():
    loaded = kinds.loaded()
    pixels = pixels_of(loaded)
    one, other = (explain(loaded.model, pixels, methods="grad_eclip", target=i)["grad_eclip"] for i in (1, 4))
    assert one.peak != other.peak
    assert not one.class_blind


def test_an_embedding_is_explained_by_its_similarity():
    loaded = kinds.loaded(projection=True, pre_norm=True)
    pixels = pixels_of(loaded)
    torch.manual_seed(8)
    target = similarity(torch.randn(7))
    attn = loaded.model.blocks[-1].attn
    (qkv,), gradient = hooked(loaded.model, pixels, target, [attn.qkv], attn.norm)
    q, k, v = qkv.chunk(3, dim=-1)
    expected = published(q[0], k[1:], v[1:], gradient[0]).clamp(min=0)
    got = explain(loaded.model, pixels, methods="grad_eclip", target=target, has_classes=False)["grad_eclip"]
    assert expected.any()
    assert_same(got.values.ravel(), expected.numpy())


def test_the_mean_of_patches_has_no_query_and_is_refused_in_a_sentence():
    loaded = kinds.loaded(class_token=False, pooling="mean")
    with pytest.raises(CaptureError, match=r"needs a query of the output.*mean of patches.*LeGrad"):
        explain(loaded.model, pixels_of(loaded), methods="grad_eclip", target=2)


def test_a_token_that_the_target_is_not_read_from_is_refused():
    loaded = kinds.loaded()
    with pytest.raises(ParameterError, match="is not read from patch"):
        explain(loaded.model, pixels_of(loaded), methods="grad_eclip", target=2, query=(1, 2))
