"""Regions of alike keys: planted groups, the best of all partitions, SciPy's generalised eigenvectors, overlap by hand."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy.linalg
import torch
from scipy.cluster import vq

from tests.comparing import assert_same
from vit_viz.analyses.key_segments import k_means, key_segments, normalised_cut, segment_overlap
from vit_viz.errors import CaptureError, ParameterError
from vit_viz.geometry import CropBox
from vit_viz.results import Segments

PLANTED = np.array([[0, 0, 0, 1, 1, 0], [0, 0, 2, 1, 1, 0], [0, 0, 2, 2, 1, 0], [0, 0, 0, 0, 0, 0]])


def keys_of(labels: np.ndarray, noise: float = 0.05, layers: int = 3) -> torch.Tensor:
    """Keys [layers, heads 5, tokens, 8] of one class token and patches that point where their label says, of odd lengths."""
    random = torch.Generator().manual_seed(4)
    directions = torch.linalg.qr(torch.randn(40, 40, generator=random))[0][: labels.max() + 1]
    patches = (
        directions[torch.from_numpy(labels).flatten()]
        + noise * torch.randn(24, 40, generator=random) / 40**0.5
    )
    patches *= 1 + 9 * torch.rand(24, 1, generator=random)
    tokens = torch.cat([torch.randn(1, 40, generator=random), patches])
    return tokens.reshape(1, 25, 5, 8).transpose(1, 2).expand(layers, -1, -1, -1)


def test_planted_groups_are_found_and_numbered_by_size(make_trace):
    found = key_segments(make_trace(k=keys_of(PLANTED)), count=3)
    assert found.count == 3
    assert (found.labels == PLANTED).all()
    assert found.method == "k-means of keys"
    said = found.provenance.to_dict()["parameters"]
    assert (said["method"], said["layer"], said["role"]) == ("key segments (k-means)", "2", "keys")
    assert (said["count"], said["seed"]) == ("3", "0")


def test_the_same_seed_gives_the_same_segments(make_trace):
    trace = make_trace()
    first, again = (key_segments(trace, count=5, seed=7).labels for _ in range(2))
    assert (first == again).all()
    assert any((key_segments(trace, count=5, seed=seed).labels != first).any() for seed in range(8, 14))


def test_each_layer_has_its_own_keys(make_trace):
    keys = keys_of(PLANTED).clone()
    keys[1] = keys_of(PLANTED.T.reshape(4, 6))[0]
    trace = make_trace(k=keys)
    assert (key_segments(trace, layer=1, count=3).labels == PLANTED.T.reshape(4, 6)).all()
    assert (key_segments(trace, count=3).labels == PLANTED).all()  # the last


def test_tokens_are_those_after_the_layer(make_trace):
    states = torch.randn(4, 25, 40, generator=torch.Generator().manual_seed(1))
    states[2] = keys_of(PLANTED)[0].transpose(0, 1).flatten(1)
    assert (
        key_segments(make_trace(residual=states), layer=1, role="tokens", count=3).labels == PLANTED
    ).all()
    with pytest.raises(CaptureError, match="keep_residual"):
        key_segments(make_trace(), role="tokens")


@pytest.mark.parametrize("count", [2, 3])
def test_k_means_finds_the_partition_of_least_squares(count):
    x = np.random.default_rng(2).normal(size=(7, 3))

    def cost(labels: tuple[int, ...]) -> float:
        groups = [x[np.array(labels) == label] for label in range(count)]
        return sum(float(((group - group.mean(0)) ** 2).sum()) for group in groups if len(group))

    least = min(cost(labels) for labels in product(range(count), repeat=7))
    assert cost(tuple(k_means(x, count, seed=0))) == pytest.approx(least, rel=1e-9)


@pytest.mark.parametrize("empty", [(0,), (1, 3), (0, 1, 2)])
def test_starts_that_lose_a_segment_leave_the_choice_to_the_others(monkeypatch, empty):
    x = np.random.default_rng(2).normal(size=(7, 3))
    outcomes, honest = [], vq.kmeans2

    def sometimes(*args, **options):
        start = len(outcomes)
        means, labels = honest(*args, **options)
        outcomes.append((float(((x - means[labels]) ** 2).sum()), labels))
        if start in empty:
            raise vq.ClusterError("one of the segments is empty")
        return means, labels

    monkeypatch.setattr(vq, "kmeans2", sometimes)
    found = k_means(x, 3, seed=1)
    assert len(outcomes) == 4
    left = [outcome for start, outcome in enumerate(outcomes) if start not in empty]
    assert found.tolist() == min(left, key=lambda outcome: outcome[0])[1].tolist()


def test_patches_that_always_lose_a_segment_are_fewer_segments(monkeypatch):
    def never(*_, **__):
        raise vq.ClusterError("one of the segments is empty")

    monkeypatch.setattr(vq, "kmeans2", never)
    with pytest.raises(ParameterError, match="fewer than 3 segments: please choose fewer"):
        k_means(np.random.default_rng(2).normal(size=(7, 3)), 3, seed=0)


def test_the_cut_equals_the_generalised_eigenvector_of_scipy():
    x = np.random.default_rng(3).normal(size=(23, 4))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    weights = np.where(x @ x.T > 0.2, 1, 1e-5)
    degrees = np.diag(weights.sum(1))
    y = scipy.linalg.eigh(degrees - weights, degrees)[1][:, 1]
    y = y - y.mean()
    y *= np.sign(y[np.abs(y).argmax()])
    found = normalised_cut(x)
    assert_same(found / np.linalg.norm(found), y / np.linalg.norm(y), relative=1e-6)


def test_the_cut_separates_two_groups_and_calls_the_odd_one_the_foreground(make_trace):
    inner = (PLANTED == 1).astype(int)
    found = key_segments(make_trace(k=keys_of(inner, noise=0.01)), method="cut")
    assert (found.labels == inner).all()
    assert ((found.strength > 0) == inner).all()
    said = found.provenance.to_dict()["parameters"]
    assert (said["method"], said["count"]) == ("key segments (cut)", "2")


def test_overlap_by_hand():
    # patches of 10 x 10 pixels of an image of 20 x 30; the box covers the lower right patch and half of the one beside it
    box = CropBox(original_size=(20, 30), input_size=(8, 12), region=(0, 0, 20, 30))
    found = Segments(np.array([[0, 0, 1], [0, 2, 2]]), "k-means", crop_box=box)
    assert_same(segment_overlap(found, boxes=[(15, 10, 30, 20)]), [0, 0, 1.5 / 2], relative=1e-6)
    mask = np.zeros((20, 30), dtype=bool)
    mask[10:20, 15:30] = True
    assert_same(segment_overlap(found, mask=mask), [0, 0, 0.75], relative=1e-6)
    with pytest.raises(ParameterError, match="crop box"):
        segment_overlap(Segments(np.zeros((2, 3)), "k-means"), boxes=[(0, 0, 1, 1)])


@pytest.mark.parametrize(("options", "words"), [
    ({"method": "magic"}, "k-means, cut, not by 'magic'"),
    ({"count": 25}, "24 different patches make 1 to 24 segments, not 25"),
    ({"count": 0}, "not 0"),
    ({"method": "cut", "count": 3}, "2 segments, not 3"),
    ({"layer": 3}, "layers 0-2"),
    ({"role": "values"}, "not 'values'"),
])  # fmt: skip
def test_what_cannot_be_segmented_is_said(make_trace, options, words):
    with pytest.raises(ParameterError, match=words):
        key_segments(make_trace(), **options)


def test_as_many_segments_as_patches_and_one_for_all(make_trace):
    assert key_segments(make_trace(), count=24).count == 24
    assert key_segments(make_trace(), count=1).count == 1


def test_patches_that_are_all_alike_are_one_segment(make_trace):
    alike = torch.ones(3, 5, 25, 8)
    assert key_segments(make_trace(k=alike), count=1).count == 1
    with pytest.raises(ParameterError, match="1 different patches"):
        key_segments(make_trace(k=alike), count=2)
