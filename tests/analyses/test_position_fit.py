"""The sine-cosine fit of positions: by hand, against SciPy's Procrustes analysis, and of positions that are such waves."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.linalg import orthogonal_procrustes
from scipy.spatial import procrustes

import vit_viz as vv
from tests.comparing import assert_same
from vit_viz.analyses.positions import BASES, position_residual
from vit_viz.errors import ParameterError
from vit_viz.model.positions import sinusoidal_2d


def with_positions(make_model, table):
    model = make_model()
    with torch.no_grad():
        model.pos_embed[0, 1:] = table
    return model


def mae_code(grid, dim, base):
    """As MAE's get_2d_sincos_pos_embed, with loops."""
    rows, cols = grid
    code = np.zeros((rows * cols, dim))
    for row in range(rows):
        for col in range(cols):
            for i in range(dim // 4):
                w = base ** (-4 * i / dim)
                half = [np.sin(col * w), np.cos(col * w), np.sin(row * w), np.cos(row * w)]
                code[row * cols + col, i :: dim // 4] = half
    return code


@pytest.mark.parametrize("at", [0, 11, 36])
def test_each_base_leaves_what_scipys_procrustes_analysis_leaves(make_model, at):
    model = make_model()
    got = vv.position_fit(model)
    learned = model.pos_embed[0, 1:].detach().double().numpy()
    *_, disparity = procrustes(learned, mae_code((4, 6), learned.shape[1], BASES[at]))
    assert got.y[at] == pytest.approx(disparity, abs=1e-5)
    assert got.x[at] == pytest.approx(np.log10(BASES[at]), abs=1e-6)


def test_waves_that_are_scaled_turned_and_moved_leave_nothing_at_their_own_base(make_model):
    dim, base = make_model().config.embed_dim, BASES[20]
    turn = torch.linalg.qr(torch.randn(dim, dim, generator=torch.Generator().manual_seed(1)))[0]
    model = with_positions(make_model, 0.3 * sinusoidal_2d((4, 6), dim, base=base) @ turn + 5)
    got = vv.position_fit(model)
    assert (got.y.argmin(), got.y.min()) == (20, pytest.approx(0, abs=1e-5))
    assert got.y[28] > 1e-3
    assert (
        f"Best with base {base:.3g}: 0.0% is left; no sum of a row's and a column's code leaves less than 0.0%"
        in got.note
    )


def test_the_residual_of_each_position_adds_up_and_is_scipys(make_model):
    model = make_model()
    curve, got = vv.position_fit(model), position_residual(model)
    assert got.values.mean() == pytest.approx(curve.y.min(), abs=1e-5)
    learned = model.pos_embed[0, 1:].detach().double().numpy()
    code = mae_code((4, 6), learned.shape[1], BASES[int(curve.y.argmin())])
    learned, code = learned - learned.mean(0), code - code.mean(0)
    turn, size = orthogonal_procrustes(code, learned)
    rest = ((learned - size / (code**2).sum() * code @ turn) ** 2).sum(1)
    assert_same(got.values.ravel(), (rest / (learned**2).sum(1).mean()).astype(np.float32))


def test_what_no_sum_of_rows_and_columns_explains_is_worked_by_hand(make_model):
    # one number, 1 at row 0, col 0 and at row 1, col 1, -1 at the two between: all of it is interaction
    table = torch.zeros(4, 6, make_model().config.embed_dim)
    table[:2, :2, 0] = torch.tensor([[1.0, -1], [-1, 1]])
    note = vv.position_fit(with_positions(make_model, table.flatten(0, 1))).note
    assert note.endswith("leaves less than 100.0%.")


def test_the_question_has_both_parts() -> None:
    loaded = vv.load("mini")
    assert_same(vv.run(loaded, None, "position_fit").y, vv.position_fit(loaded).y)
    assert_same(
        vv.run(loaded, None, "position_fit", shown="residual").values, position_residual(loaded).values
    )


@pytest.mark.parametrize("position", ["none", "rotary"])
def test_a_model_without_a_table_has_none_to_fit(make_model, position):
    with pytest.raises(ParameterError, match="needs a table of positions"):
        vv.position_fit(make_model(position=position))
