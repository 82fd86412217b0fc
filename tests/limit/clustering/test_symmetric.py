import numpy as np
import pytest

from pathlines.foundation.errors import ArgumentError
from pathlines.limit.clustering import symmetric as sy
from references import clustering as ref

from .particles import jacobian_eigenvalues, sa_field


def pure_state(d, p, n_plus, n_minus):
    return np.outer(np.repeat([1.0, -1.0], [n_plus, n_minus]), np.eye(d)[p])


def field(values, beta):
    V = np.diag(values)
    return lambda x: sa_field(x, beta, np.eye(len(values)), V, V)


def test_threshold_table():
    for arguments, value in ref.BIPOLAR_THRESHOLDS.items():
        assert sy.bipolar_threshold(*arguments) == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize("arguments", ref.BIPOLAR_THRESHOLDS, ids=str)
def test_stability_changes_at_the_threshold(arguments):
    own, beta, plus, minus = arguments
    threshold = sy.bipolar_threshold(*arguments)
    for shift, stable in ((-0.02, True), (0.02, False)):
        values = [own, threshold + shift]
        growth = jacobian_eigenvalues(field(values, beta), pure_state(2, 0, plus, minus)).real.max()
        assert (growth < 0) == stable
        assert sy.pure_state_is_stable(values, 0, beta, plus, minus) == stable


def test_growth_blocks_and_criterion_vs_jacobian():
    """Random spectra, inverse temperatures and splits, one-token sides and consensus included."""
    rng = np.random.default_rng(5)
    outcomes = []
    for plus, minus in ((1, 0), (3, 0), (0, 2), (1, 1), (1, 2), (3, 1), (2, 2), (2, 3), (4, 2)):
        for _ in range(12):
            values = rng.normal(size=3) * 1.5
            values[0] = rng.choice([-2.5, 2.5, values[0]])
            beta = rng.uniform(0.05, 2)
            spectrum = jacobian_eigenvalues(field(values, beta), pure_state(3, 0, plus, minus))
            blocks = np.linalg.eigvals(sy.pure_state_blocks(values, 0, beta, plus, minus)).ravel()
            np.testing.assert_allclose(np.sort(blocks.real), np.sort(spectrum.real), atol=1e-10)
            growth = spectrum.real.max()
            assert sy.pure_state_growth(values, 0, beta, plus, minus) == pytest.approx(growth, abs=1e-10)
            stable = sy.pure_state_is_stable(values, 0, beta, plus, minus)
            assert stable == (growth < 0)
            outcomes.append((min(plus, minus), stable))
    # both answers occurred on both sides of the one-token rule
    assert {(size, s) for size, s in outcomes} >= {(0, True), (0, False), (1, True), (1, False), (2, True), (2, False)}


def test_polarisation_factor_special_values():
    x = np.array([0.1, 1.0, 5.0])
    np.testing.assert_allclose(sy.polarisation_factor(x, 1.0), np.tanh(x), rtol=1e-14)
    np.testing.assert_allclose(sy.polarisation_factor(-x, 2.0, 1.7), -sy.polarisation_factor(x, 2.0, 1.7), rtol=1e-14)
    c, r = np.exp(2 * 0.8 * 1.3), 1.7
    assert sy.polarisation_factor(0.8, 1.3, r) == pytest.approx((c - r) * (c * r - 1) / (r * (c * c - 1)), rel=1e-14)
    assert sy.polarisation_factor(500.0, 10.0, 3.0) == 1.0


@pytest.mark.parametrize("arguments", ref.MIXED_EQUILIBRIA, ids=str)
def test_mixed_equilibria_table(arguments):
    assert np.abs(sy.mixed_equilibria(*arguments) - ref.MIXED_EQUILIBRIA[arguments]).min() < 6e-15


def test_mixed_equilibria_are_stationary_and_complete():
    rng = np.random.default_rng(7)
    found = 0
    for _ in range(25):
        a, b = rng.normal(size=2) * 2
        beta, m, k = rng.uniform(0.05, 2), int(rng.integers(1, 4)), int(rng.integers(1, 4))
        roots = sy.mixed_equilibria(a, b, beta, m, k)
        found += roots.size
        for q in roots:
            s = np.sqrt(1 - q * q)
            x = np.repeat([[1.0, 0.0], [q, s], [q, -s]], [m, k, k], axis=0)
            assert np.abs(field([a, b], beta)(x)).max() < 2e-14 * max(1, abs(a), abs(b))
        # the velocity of the pair along the circle, from the particles, changes sign exactly at the roots
        q = np.linspace(-1, 1, 803)[1:-1]
        speed = np.array([field([a, b], beta)(states(v, m, k))[m, 0] for v in q])
        assert np.count_nonzero(speed[:-1] * speed[1:] < 0) == roots.size
    assert found > 10


def states(q, m, k):
    s = np.sqrt(1 - q * q)
    return np.repeat([[1.0, 0.0], [q, s], [q, -s]], [m, k, k], axis=0)


def test_close_pair_of_roots_is_not_missed():
    """Just past the fold of two roots (found by bisection in a), both must be reported."""
    low, high = 0.2, 3.0
    count = lambda a: sy.mixed_equilibria(a, -3.0, 1.5, 1, 1).size  # noqa: E731
    assert count(low) != count(high)
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if count(middle) == count(low) else (low, middle)
    assert abs(count(low) - count(high)) == 2
    more = low if count(low) > count(high) else high
    gap = np.diff(sy.mixed_equilibria(more, -3.0, 1.5, 1, 1)).min()
    assert 0 < gap < 1e-5  # the grid alone would see pairs 4e-4 apart at best


def test_attractors():
    table = sy.attractors([3.0, 1.0, -2.0], 1.0, 6)
    assert [(s.p, s.n_plus, s.n_minus) for s in table] == [(0, 6, 0), (0, 5, 1), (0, 4, 2), (0, 3, 3)]
    for state in table:
        spectrum = jacobian_eigenvalues(field([3.0, 1.0, -2.0], 1.0), pure_state(3, *state[:3]))
        assert state.growth == pytest.approx(spectrum.real.max(), abs=1e-10)
    # n = 2 with V ≺ 0: only the split on the most negative eigenvalue
    assert [s[:3] for s in sy.attractors([-0.5, -1.0, -3.0], 1.0, 2)] == [(2, 1, 1)]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sy.polarisation_factor(0.0, 1.0), "`eigenvalue` must not be 0"),
        (lambda: sy.polarisation_factor(1.0, 0.0), "`beta` must be > 0"),
        (lambda: sy.bipolar_threshold(1.0, 1.0, 0, 1), "`n_plus` must"),
        (lambda: sy.pure_state_is_stable([1.0, 2.0], 2, 1.0, 1, 1), "`p` must be < 2"),
        (lambda: sy.pure_state_growth([1.0], 0, 1.0, 0, 0), "`n_plus` must leave"),
        (lambda: sy.pure_state_blocks([1.0, np.nan], 0, 1.0, 1, 1), "`eigenvalues` must be finite"),
        (lambda: sy.mixed_equilibria(1.0, 1.0, -1.0, 1, 1), "`beta` must"),
        (lambda: sy.mixed_equilibria(1.0, 1.0, 1.0, 0, 1), "`m` must"),
        (lambda: sy.attractors([1.0], 1.0, 0), "`n` must"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()
