"""Pure and mixed states of a symmetric V against Jacobians of an attention field of its own, and reference values."""

import numpy as np
import pytest

from pathlines.foundation.errors import ArgumentError
from pathlines.limit.clustering.symmetric import (
    bipolar_pulls,
    mixed_equilibria,
    polarisation_factor,
    pure_state_growth,
    pure_state_is_stable,
)
from pathlines.limit.followups.group_states import group_growth
from pathlines.limit.followups.mode_atlas import mixed_points, mode_atlas, stable_betas, symmetric_matrix


def spectrum(values, beta, x):
    """Eigenvalues of the field P Σ a V x at x, by central differences along the sphere."""

    def field(y):
        y = y / np.linalg.norm(y, axis=1, keepdims=True)
        a = np.exp(beta * (y * values) @ y.T)
        pull = a / a.sum(axis=1, keepdims=True) @ (y * values)
        return pull - np.sum(pull * y, axis=1, keepdims=True) * y

    frame = [np.linalg.svd(row[None])[2][1:] for row in x]
    moves = [(i, v) for i, rows in enumerate(frame) for v in rows]
    columns = []
    for i, v in moves:
        step = np.zeros_like(x)
        step[i] = 1e-5 * v
        change = (field(x + step) - field(x - step)) / 2e-5
        columns.append([change[j] @ w for j, w in moves])
    return np.linalg.eigvals(np.array(columns).T).real


def test_reference_rates_of_a_split():
    """λ = (2, .5, -1), β = .8, 3 + 2 tokens."""
    assert bipolar_pulls(2.0, 0.8, 3, 2) == pytest.approx((1.894176521534, 1.769519137995), abs=6e-13)
    assert polarisation_factor(2.0, 0.8, 1.5) == pytest.approx(0.914863546834, abs=6e-13)
    rates = [pure_state_growth([2.0, k], 0, 0.8, 3, 2) for k in (0.5, -1.0)]
    assert rates == pytest.approx([-1.294940616756, -1.769519137995], abs=6e-13)


def test_reference_case_of_a_single_token():
    """Stable although λ_p is below ln r/(2β): the caveat."""
    values = [0.85, -0.8, -0.7]
    assert np.log(4) / 1.2 > 0.85
    assert pure_state_growth(values, 0, 0.6, 4, 1) == pytest.approx(-0.113322199487, abs=6e-13)
    assert pure_state_is_stable(values, 0, 0.6, 4, 1)


@pytest.mark.parametrize(
    ("case", "q"),
    [
        ((2, -3, 1.5, 1, 1), 0.023905191282461),
        ((-0.4, -4, 0.03, 1, 1), -0.234117238232810),
        ((-2, -4, 0.03, 1, 1), -0.432365784549136),
        ((-0.4, -4, 0.03, 1, 2), -0.114112422827330),
    ],
)
def test_reference_mixed_states(case, q):
    assert np.abs(mixed_equilibria(*case) - q).min() < 6e-15


@pytest.mark.parametrize("seed", range(6))
def test_growth_of_groups_vs_jacobian_of_tokens(seed):
    """Pure states, and three groups in R^3 with directions across their plane."""
    rng = np.random.default_rng(seed)
    values, beta = rng.normal(size=3) * 1.5, float(rng.uniform(0.1, 1.5))
    points, sizes = np.array([[0, 1.0, 0], [0, -1.0, 0]]), [2, 3]
    largest = spectrum(values, beta, np.repeat(points, sizes, axis=0)).max()
    assert group_growth(values, beta, points, sizes) == pytest.approx(largest, abs=1e-7)
    for q in mixed_equilibria(values[0], values[2], beta, 1, 2):
        points, sizes = mixed_points(3, 0, 2, q), [1, 2, 2]
        largest = spectrum(values, beta, np.repeat(points, sizes, axis=0)).max()
        assert group_growth(values, beta, points, sizes) == pytest.approx(largest, abs=1e-7)


@pytest.mark.parametrize(("plus", "minus"), [(5, 0), (4, 1), (3, 2), (1, 1)])
def test_ranges_of_beta_vs_signs_of_the_growth(plus, minus):
    rng = np.random.default_rng(plus)
    seen = set()
    for _ in range(20):
        values = np.sort(rng.normal(size=3))[::-1]
        for p in range(3):
            ranges = stable_betas(values, p, plus, minus)
            for beta in rng.uniform(0.05, 6.0, 5):
                stable = pure_state_growth(values, p, beta, plus, minus) < 0
                assert stable == any(low < beta < high for low, high in ranges), (values, p, beta, ranges)
                seen.add(stable)
    assert seen == {True, False}


def test_atlas_of_three_negative_eigenvalues():
    """Five tokens at small β: no pure state is stable, three groups are, so that V ≺ 0 does not polarise them."""
    found = mode_atlas(-np.diag([3.0, 2.0, 1.0]), 0.05, 5)
    assert not any(m.stable for m in found.pure)
    (mixed,) = [m for m in found.mixed if m.stable]
    assert (mixed.m, mixed.k) == (1, 2)
    assert found.selected == "polarise"
    assert np.all(np.diff(found.eigenvalues) < 0)


def test_atlas_of_a_turned_matrix_is_that_of_its_eigenvalues():
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    plain, turned = (mode_atlas(v, 1.0, 4) for v in (np.diag([2, 0.5, -1.0]), turn @ np.diag([2, 0.5, -1.0]) @ turn.T))
    np.testing.assert_allclose([m.growth for m in turned.pure], [m.growth for m in plain.pure], atol=1e-12)
    assert len(turned.mixed) == len(plain.mixed)
    assert plain.selected == "align"


TURN = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]


@pytest.mark.parametrize("values", [(1.0, 1.0, -0.5), (-1.0, -2.0, -2.0), (1.0, 0.0, 0.0), (2.0, -1.0, -2.0)])
@pytest.mark.parametrize("beta", [0.3, 40.0])
def test_repeated_eigenvalues_are_not_judged_by_rounding(values, beta):
    """Rotations within an eigenspace grow at 0: never stable; a turned V has the same states and the same β."""
    plain, turned = (mode_atlas(t @ np.diag(values) @ t.T, beta, 4) for t in (np.eye(3), TURN))
    for found in (plain, turned):
        repeated = [m for m in found.pure if np.sum(found.eigenvalues == m.eigenvalue) > 1]
        assert not any(m.stable or m.stable_betas for m in repeated)
    assert [m.stable for m in turned.pure] == [m.stable for m in plain.pure]
    assert [len(m.stable_betas) for m in turned.pure] == [len(m.stable_betas) for m in plain.pure]
    assert [(m.first, m.second, m.m, m.stable) for m in turned.mixed] == [
        (m.first, m.second, m.m, m.stable) for m in plain.mixed
    ]
    assert (turned.selected, turned.multiplicities) == (plain.selected, plain.multiplicities)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([[1.0, 0.2], [0.1, 1.0]], "`V` must be symmetric, but differs"),
        ([[1.0]], "`V` must be at least 2 × 2"),
        ([[1.0, np.nan], [np.nan, 1.0]], "`V` must be finite"),
        ([[1.0, 2.0, 3.0]], "`V` must"),
    ],
)
def test_what_is_no_symmetric_matrix_is_refused(value, words):
    with pytest.raises(ArgumentError, match=words):
        symmetric_matrix("V", value)
