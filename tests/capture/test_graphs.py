"""Passes as CUDA graphs: the numbers of a pass call by call, in memory that no later pass writes to."""

from __future__ import annotations

import pytest
import torch

from tests.capture.models import own, pixels
from tests.comparing import assert_same
from vit_viz.analyses.many_photos import MEASURES, begun_numbers
from vit_viz.capture import edit, graphs, trace
from vit_viz.capture.buffers import Arena, BufferPool
from vit_viz.capture.recorder import Recorder, RecorderOptions
from vit_viz.capture.tracing import recorded_logits
from vit_viz.errors import CaptureError

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="CUDA graphs need a GPU")


def recorded(module, images) -> Recorder:
    recorder = Recorder(Arena(BufferPool(), slots=2), RecorderOptions(keep_norms=True))
    recorded_logits(module, images, recorder, None, lambda logits: logits[0])
    return recorder


def test_on_a_cpu_a_pass_runs_as_it_is():
    module, images, seen = own(), pixels(1), []

    def run(given):
        seen.append(given)
        return 3

    for _ in range(3):
        assert graphs.graphed(module, images, run, lambda passed: passed + 1, key="a") == 4
    assert [given is images for given in seen] == [True] * 3
    assert len(graphs._GRAPHS.of(module)) == 0


def test_a_copy_of_a_recorder_holds_the_same_layers_in_other_memory():
    module, images = own(), pixels(2)
    first = recorded(module, images[:1])
    first.finish()
    copied = first.copied_to(Arena(BufferPool(), slots=1))
    for one, other in zip(first.layers(()), copied.layers(()), strict=True):
        for role in ("q", "k", "lse", "value_norms"):
            assert torch.equal(getattr(one, role), getattr(other, role))
            assert getattr(one, role).data_ptr() != getattr(other, role).data_ptr()
    assert copied.proof() == first.proof()
    expected = [layer.q.clone() for layer in copied.layers(())]
    first.arena.stacked("q").zero_()
    first.largest.fill_(7)
    assert all(torch.equal(layer.q, q) for layer, q in zip(copied.layers(()), expected, strict=True))
    assert max(copied.proof()) < 1e-5


def test_attention_with_a_bias_is_no_graph():
    with pytest.raises(CaptureError, match="call by call"):
        recorded(own(relative_bias=True, position="none"), pixels(1)).finish()


@needs_gpu
def test_replays_give_the_numbers_of_passes_call_by_call(monkeypatch):
    module, images = own().cuda(), pixels(5).cuda()
    monkeypatch.setenv("VIT_VIZ_CUDA_GRAPHS", "0")
    expected = [trace(module, images[i : i + 1], keep_norms=True) for i in range(5)]
    numbers = begun_numbers(module, images, layout=expected[0].layout)()
    assert len(graphs._GRAPHS.of(module)) == 0
    monkeypatch.delenv("VIT_VIZ_CUDA_GRAPHS")
    found = [trace(module, images[i : i + 1], keep_norms=True) for i in range(5)]
    again = [begun_numbers(module, images, layout=expected[0].layout)() for _ in range(4)]
    assert [type(graph) for graph in graphs._GRAPHS.of(module).values()] == [graphs._Graph] * 2
    for one, other in zip(found, expected, strict=True):  # all of them are still what they were
        assert_same(one.logits, other.logits)
        assert max(one.differences) < 1e-5
        for layer, same in zip(one.layers, other.layers, strict=True):
            for role in ("q", "k", "lse", "value_norms"):
                assert_same(getattr(layer, role), getattr(same, role), what=role)
    for measure in MEASURES:
        assert_same(again[3].tables[measure], numbers.tables[measure], floor=1e-12, what=measure)
    assert_same(again[3].maps, numbers.maps)


@needs_gpu
def test_a_replay_reads_the_weights_as_they_are_and_edits_run_call_by_call():
    module, images = own().cuda(), pixels(1).cuda()
    before = [trace(module, images) for _ in range(3)][-1]
    with torch.no_grad():
        module.blocks[0].attn.qkv.weight.mul_(1.5)
    after = trace(module, images)
    assert (after.q - before.q).abs().max() > 0.01
    with edit(heads={(0, 2): 0.0}):
        edited = trace(module, images)
    assert (edited.logits - after.logits).abs().max() > 1e-4
    module.blocks[1].attn.scale *= 2
    assert trace(module, images).scales[1] == 2 * after.scales[1]


@needs_gpu
def test_no_more_graphs_are_kept_than_there_is_room_for(monkeypatch):
    module, images = own().cuda(), pixels(1).cuda()
    for rows in range(graphs.MAX_GRAPHS + 2):
        for _ in range(3):
            trace(module, images, proof_rows=rows)
    assert len(graphs._GRAPHS.of(module)) == graphs.MAX_GRAPHS
    monkeypatch.setattr(graphs, "MAX_BYTES", 0)
    for _ in range(3):
        trace(module, images, keep_values=True)
    assert None in graphs._GRAPHS.of(module).values()
