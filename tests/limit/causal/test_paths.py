"""Paths of attention against matrix exponentials and reference values; few tokens exactly; the layered mean field."""

import numpy as np
import pytest
from scipy.linalg import expm

from pathlines.foundation.errors import ArgumentError
from pathlines.foundation.numbers import checked_mask
from pathlines.limit.causal.few_tokens import few_token_influence
from pathlines.limit.causal.layered import correlations, layer_grid, layered_mean_field, von_mises
from pathlines.limit.causal.paths import (
    alibi_matrix,
    causal_fluctuation,
    hop_contributions,
    order_fluctuation,
    path_influence,
    path_profile,
    rollout,
)
from pathlines.limit.causal.rates import retrieval_rates
from pathlines.limit.causal.response import response

A1 = float(retrieval_rates(1.0, 1)[0])
EIGHT = [
    0.9483969040959,
    0.8930582821722,
    0.9436617575588,
    1.0377816501732,
    1.1632010297391,
    1.3170222626568,
    1.4992454001913,
    8,
]
SIXTY_FOUR = {
    1: 0.7115834789712,
    2: 0.6058262831479,
    8: 0.5109271567263,
    16: 0.5379048075034,
    32: 0.6945970771268,
    48: 0.9494712656774,
    63: 1.2934449044531,
}


def test_influence_of_paths():
    np.testing.assert_allclose(path_influence((8, 2.0), 0.7), EIGHT, rtol=1e-13)
    found = path_influence(alibi_matrix(64, 2.0), A1)
    np.testing.assert_allclose(found[np.array(list(SIXTY_FOUR)) - 1], list(SIXTY_FOUR.values()), rtol=1e-12)


@pytest.mark.parametrize("slope", [0.0, 2.0, -1.5])
def test_recursion_vs_matrix_vs_exponential(slope):
    matrix = alibi_matrix(40, slope)
    np.testing.assert_allclose(path_influence((40, slope), 2.3), path_influence(matrix, 2.3), rtol=1e-12)
    np.testing.assert_allclose(path_influence(matrix, 2.3), 40 * expm(2.3 * matrix)[-1], rtol=1e-11)
    euler = 40 * np.linalg.matrix_power(np.eye(40) + 2.3 / 5 * matrix, 5)[-1]
    np.testing.assert_allclose(path_influence(matrix, 2.3, layers=5), euler, rtol=1e-12)
    rolled = 40 * np.linalg.matrix_power(0.3 * np.eye(40) + 0.7 * matrix, 6)[-1]
    np.testing.assert_allclose(rollout(matrix, 0.3, 6), rolled, rtol=1e-12)


def test_hops_add_up_and_modes_share_them():
    matrix = alibi_matrix(30, 1.0)
    np.testing.assert_allclose(hop_contributions(matrix, 0.8, 40).sum(axis=0), path_influence(matrix, 0.8), rtol=1e-13)
    both = 0.5 * path_influence(matrix, 0.8) + 0.2 * path_influence(matrix, 1.2)
    np.testing.assert_allclose(path_profile(matrix, [0.5, 0.2], [0.4, 0.6], 2.0), both, rtol=1e-12)


def test_long_prompts_have_the_limit_with_error_1_over_n():
    for source in (0.25, 0.5, 0.75):
        exact = float(response(1.0, 1.0, source, rate=A1, slope=2.0))
        errors = [path_influence((n, 2.0), A1)[int(source * n) - 1] - exact for n in (256, 1024, 4096)]
        orders = np.diff(np.log2(np.abs(errors))) / 2
        np.testing.assert_allclose(orders, -1, atol=0.02)


def test_a_million_tokens_take_the_recursion():
    found = path_influence((10**6, 2.0), A1)
    assert found[499_999] == pytest.approx(float(response(1.0, 1.0, 0.5, rate=A1, slope=2.0)), rel=1e-5)


def test_fluctuation_of_the_order_parameter():
    assert causal_fluctuation(0.3) == pytest.approx(1.989836389202, rel=1e-12)
    assert causal_fluctuation(0.5 * A1) == pytest.approx(1.9031, abs=6e-5)
    assert order_fluctuation((256, 0.0), 0.5 * A1) == pytest.approx(1.8858, abs=6e-5)
    assert order_fluctuation((10**5, 0.0), 0.3) == pytest.approx(causal_fluctuation(0.3), rel=1e-3)


def test_two_and_three_tokens():
    np.testing.assert_allclose(
        few_token_influence(2, 1.0, 1.0, 3)[:, 0], [0.85337331787, 0.99962671976, 0.86650331593], rtol=1e-10
    )
    np.testing.assert_allclose(
        few_token_influence(2, 2.0, 0.5, 3)[:, 0], [0.78490398654, 1.2546694037, 1.1578008631], rtol=1e-10
    )
    expected = [[0.748745755734, 0.752591737099], [0.841140181676, 0.436875312746], [0.580229196770, -0.009587515845]]
    np.testing.assert_allclose(few_token_influence(3, 1.0, 1.0, 3, slope=2.0), expected, atol=2e-11)


def test_few_tokens_start_with_the_rate_of_the_mask():
    h = 1e-4
    slopes = few_token_influence(3, 1.0, h, 2, slope=2.0, nodes=48) / h
    np.testing.assert_allclose(slopes, 3 * np.outer(retrieval_rates(1.0, 2), alibi_matrix(3, 2.0)[2, :2]), rtol=1e-3)


def modes_of(row, grid, count):
    k = len(grid.modes) // 2
    return row[k + 1 : k + 1 + count].real


@pytest.mark.parametrize("slope", [0.0, 2.0])
def test_the_mask_does_not_show_in_the_mean_field(slope):
    grid = layer_grid(1.0, slope, cells=6)
    f = layered_mean_field(grid, von_mises(1.0, grid.modes), 1.0, steps=60)
    for row in f:
        np.testing.assert_allclose(modes_of(row, grid, 3), [0.70427945, 0.52807433, 0.38733812], atol=3e-8)


def test_layered_start():
    found = []
    for cells in (40, 80):
        grid = layer_grid(1.0, 2.0, cells=cells, modes=24)
        start = np.where(grid.sigma[:, None] < 0.5, von_mises(1.0, grid.modes), (grid.modes == 0).astype(float))
        f = layered_mean_field(grid, start, 1.0, steps=20)[:, 25].real
        found.append((np.interp(0.75, grid.sigma, f), 1.5 * f[-1] - 0.5 * f[-2]))
    np.testing.assert_allclose((4 * np.asarray(found[1]) - found[0]) / 3, [0.18583, 0.11875], atol=4e-5)


def test_correlations_of_uniform_tokens_are_the_closed_form():
    errors = []
    for cells in (20, 40):
        grid = layer_grid(1.0, 2.0, cells=cells, modes=6)
        found = correlations(grid, (grid.modes == 0) * 1.0, (grid.modes == 1) * 1.0, 0.25, 1.0, steps=20)
        beyond = grid.sigma > 0.25
        exact = response(1.0, grid.sigma[beyond], 0.25, rate=A1, slope=2.0)
        errors.append(np.abs(found.other[beyond, 7].real - exact).max())
        assert not found.other[~beyond].any()
        np.testing.assert_allclose(found.own[:, 7], 1.0)
    assert errors[1] < 0.3 * errors[0] < 0.01


def test_masks_are_checked_row_by_row():
    good = alibi_matrix(4, 1.0)
    for spoiled, words in (
        (good + np.eye(4, k=1), "entry (1, 2)"),
        (good * [[1], [1], [0.5], [1]], "row 3 sums to 0.5"),
        (good[:3], "shape (n, n)"),
        (good - 2 * np.eye(4, k=-1), "nonnegative"),
    ):
        with pytest.raises(ArgumentError, match=words.replace("(", r"\(").replace(")", r"\)")):
            checked_mask(spoiled)


def test_a_token_is_no_hop_to_itself_but_in_rollout():
    plain = alibi_matrix(12, 1.0)
    own = 0.5 * np.eye(12) + 0.5 * plain
    own[0] = np.eye(12)[0]
    np.testing.assert_allclose(path_influence(own, 0.8)[:-1], path_influence(plain, 0.4)[:-1], rtol=1e-12)
    np.testing.assert_allclose(rollout(own, 0.0, 3), 12 * np.linalg.matrix_power(own, 3)[-1], rtol=1e-12)


def test_thousands_of_layers_are_a_flow():
    flow = path_influence((30, 2.0), 1.5)
    np.testing.assert_allclose(path_influence((30, 2.0), 1.5, layers=100_000), flow, rtol=1e-4)
    assert np.isfinite(rollout((30, 2.0), 0.5, 3000)).all()
