import mpmath as mp
import numpy as np
import pytest

from pathlines.foundation.errors import ArgumentError
from pathlines.limit.clustering import equiangular as eq
from references import clustering as ref

from .particles import equiangular_tokens, integrate_field, sa_field, usa_field


def exact_time(rho, n, beta, kind, start):
    """∫ dρ/rate at 30 digits, straight from the ODE."""
    n, beta = mp.mpf(n), mp.mpf(beta)

    def slowness(x):
        base = 2 * (1 - x) * (1 + (n - 1) * x)
        return (mp.exp(beta * (1 - x)) + n - 1) / base if kind == "sa" else n * mp.exp(-beta * x) / base

    return mp.quad(slowness, mp.linspace(mp.mpf(start), mp.mpf(rho), 6))


NODES, WEIGHTS = (v.astype(np.longdouble) for v in np.polynomial.legendre.leggauss(30))


def panels(edges, longest):
    """Gauss nodes and weights between the edges, no panel longer than ``longest``."""
    pieces = np.clip(np.ceil(np.diff(edges) / longest), 1, 400).astype(int)
    cut = [np.linspace(a, b, k + 1)[:-1] for a, b, k in zip(edges, edges[1:], pieces)]
    edges = np.concatenate([*cut, edges[-1:]])
    length = np.diff(edges)[:, None]
    return edges[:-1, None] + length * (NODES + 1) / 2, length * WEIGHTS / 2


def log_time(y, n, beta, kind, start):
    """ln ∫ dρ/rate by Gauss panels in extended precision; only positive terms, so it loses nothing.

    In s = ρ-ρ0 over the first half, with panels that double away from the start; in y = 1-ρ, halving, over the rest.
    """
    n, beta, start = np.longdouble(n), np.longdouble(beta), np.longdouble(start)
    y0 = 1 - start
    total = ((1 - np.longdouble(y)) - start) if y > 0.5 else y0 - y
    first = min(total, y0 / 2)
    smallest = min(first, 1 / (beta + n))
    doubling = smallest * 2.0 ** np.arange(60, dtype=np.longdouble)
    s, weight_s = panels(np.array([0, *doubling[doubling < first], first]), 2 / (beta + 1))
    parts = [(y0 - s, s, weight_s)]
    if total > first:
        halves = [y0 / 2]
        while halves[-1] / 2 > y:
            halves.append(halves[-1] / 2)
        u, weight_u = panels(np.array([y, *halves[::-1]], dtype=np.longdouble), 2 / (beta + 1))
        parts.append((u, y0 - u, weight_u))
    sum_ = 0
    for u, s, weight in parts:
        growth = np.exp(-beta * s) * (n if kind == "usa" else 1) + (kind == "sa") * (n - 1) * np.exp(-beta * y0)
        sum_ += (weight * growth / (2 * u * (1 + (n - 1) * start + (n - 1) * s))).sum()
    return np.log(sum_) + beta * (y0 - (kind == "usa"))


@pytest.mark.parametrize("setting", ref.EQUIANGULAR, ids=str)
def test_overlap_table(setting):
    kind, n, beta, start = setting
    pairs = [(t, v) for t, v in zip(ref.EQUIANGULAR_TIMES, ref.EQUIANGULAR[setting]) if v is not None]
    times, values = map(np.array, zip(*pairs))
    np.testing.assert_allclose(eq.overlap_at(times, n, beta, kind, start), values, rtol=1e-14)
    np.testing.assert_allclose(eq.deficit_at(times, n, beta, kind, start), 1 - values, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize(("kind", "n"), ref.PHASE_CURVE)
def test_phase_table(kind, n):
    np.testing.assert_allclose(eq.phase_curve(ref.PHASE_BETAS, n, 1e-3, kind), ref.PHASE_CURVE[kind, n], rtol=5e-15)


@pytest.mark.parametrize("kind", eq.KINDS)
@pytest.mark.parametrize(
    ("n", "beta", "start", "rho"),
    [(2, 3.0, -0.5, 0.9), (5, 0.3, 0.0, 0.5), (32, 9.0, 0.0, 0.999), (100, 6.0, 0.2, 0.3), (7, 20.0, -0.1, 0.6)],
)
def test_closed_form_vs_quadrature_at_thirty_digits(n, beta, start, rho, kind):
    with mp.workdps(30):
        exact = exact_time(rho, n, beta, kind, start)
        assert abs(mp.mpf(float(eq.time_to_overlap(rho, n, beta, kind, start))) / exact - 1) < 2e-14


@pytest.mark.parametrize("kind", eq.KINDS)
@pytest.mark.parametrize("n", [2, 32, 10**6])
@pytest.mark.parametrize("beta", [0.0, 1e-8, 0.3, 3.0, 50.0, 650.0])
def test_time_to_deficit_vs_quadrature_over_the_whole_range(beta, n, kind):
    for start in (-0.5 / (n - 1), 0.0, 0.5, 1 - 2.0**-30):
        for fraction in (1 - 2.0**-40, 1 - 1e-5, 0.7, 1e-3, 1e-30):
            y = (1 - start) * fraction
            exact = log_time(y, n, beta, kind, start)
            # a rounding of βy is a relative error β·1e-16 of e^{βy}
            allowed = 3e-14 + 6e-16 * beta
            assert abs(eq.log_time_to_deficit(y, n, beta, kind, start) - exact) < allowed * max(1, abs(exact))
            if exact < 700:
                assert abs(eq.time_to_deficit(y, n, beta, kind, start) / np.exp(exact) - 1) < allowed


@pytest.mark.parametrize("kind", eq.KINDS)
def test_log_time_beyond_overflow(kind):
    for beta, start in ((800.0, 0.0), (5000.0, 0.1), (3000.0, -0.01)):
        for y in (0.5, 1e-3, 1e-20):
            found = eq.log_time_to_deficit(y, 32, beta, kind, start)
            assert abs(found - log_time(y, 32, beta, kind, start)) < 6e-16 * beta
    assert eq.time_to_deficit(1e-3, 32, 2000.0, "sa") == np.inf


@pytest.mark.parametrize("kind", eq.KINDS)
@pytest.mark.parametrize("n", [2, 3, 50, 10**9])
def test_deficit_at_inverts_time_to_deficit(kind, n):
    beta = np.array([0.0, 0.01, 1.0, 7.0, 30.0, 300.0])[:, None]
    deficit = np.array([0.999, 0.9, 0.5, 0.01, 1e-8, 1e-100, 1e-290])
    time = eq.time_to_deficit(deficit, n, beta, kind, 0.0)
    found = eq.deficit_at(time, n, beta, kind, 0.0)
    # one rounding of t is t·rate/(1-ρ) roundings of 1-ρ; where that is everything, nothing is asked
    sensitivity = time * eq.overlap_rate(1 - deficit, n, beta, kind) / deficit
    late = 2 * time * (np.exp(beta) if kind == "usa" else 1.0)
    allowed = 1e-14 + 4e-15 * np.where(deficit < 1e-12, late, sensitivity)
    assert np.all((np.abs(found / deficit - 1) < allowed) | (allowed > 1e-3))
    assert np.sum(allowed < 1e-11) > 25


def test_overlap_at_early_times_keeps_relative_precision():
    t = np.array([1e-200, 1e-30, 1e-12])
    for kind in eq.KINDS:
        for beta in (0.0, 3.0, 80.0):
            np.testing.assert_allclose(
                eq.overlap_at(t, 32, beta, kind), t * eq.overlap_rate(0.0, 32, beta, kind), 1e-10
            )


def test_beta_zero_formula():
    t = np.array([0.0, 0.1, 1.0, 10.0])
    exact = np.expm1(2 * t) / (np.exp(2 * t) + 6)
    for kind in eq.KINDS:
        np.testing.assert_allclose(eq.overlap_at(t, 7, 0.0, kind), exact, rtol=1e-14)


@pytest.mark.parametrize(("kind", "field"), [("sa", sa_field), ("usa", usa_field)])
@pytest.mark.parametrize("beta", [0.0, 1.0, 4.0])
def test_overlap_vs_particles(kind, field, beta):
    times = np.array([0.3, 1.0, 2.0])
    states = integrate_field(lambda t, x: field(x, beta), equiangular_tokens(8, 0.05), times)
    gram = states @ states.swapaxes(1, 2)
    off = gram[:, ~np.eye(8, dtype=bool)]
    np.testing.assert_allclose(np.ptp(off, axis=1), 0, atol=1e-11)
    np.testing.assert_allclose(eq.overlap_at(times, 8, beta, kind, 0.05), off.mean(axis=1), rtol=0, atol=1e-10)


@pytest.mark.parametrize("kind", eq.KINDS)
def test_rate_is_the_slope_of_the_solution(kind):
    t, h = np.array([0.2, 0.7, 1.5]), 1e-4
    slope = (eq.overlap_at(t + h, 12, 2.0, kind) - eq.overlap_at(t - h, 12, 2.0, kind)) / (2 * h)
    np.testing.assert_allclose(slope, eq.overlap_rate(eq.overlap_at(t, 12, 2.0, kind), 12, 2.0, kind), rtol=1e-5)


def test_late_time_constants():
    assert np.exp(2 * eq.late_time_shift(10, 2.0, 0.05)) == pytest.approx(ref.LATE_PREFACTOR, abs=6e-7)
    for n, beta, start in ((10, 2.0, 0.05), (32, 6.0, 0.0), (3, 0.0, -0.2)):
        for kind, rate in (("sa", 2.0), ("usa", 2 * np.exp(beta))):
            log_prefactor = eq.log_late_time_prefactor(n, beta, kind, start)
            t = (log_prefactor + 60) / rate
            assert np.log(eq.deficit_at(t, n, beta, kind, start)) + 60 == pytest.approx(0, abs=1e-12)
            assert eq.late_time_prefactor(n, beta, kind, start) == pytest.approx(np.exp(log_prefactor), rel=1e-12)


def test_late_time_constants_overflow_quietly():
    assert eq.late_time_prefactor(32, 20.0) == np.inf
    assert np.isfinite(eq.log_late_time_prefactor(32, 20.0, "usa"))
    assert eq.late_time_shift(32, 1000.0) == np.inf


def test_deficit_goes_down_to_underflow():
    prefactor = eq.late_time_prefactor(32, 1.0)
    t = np.array([300.0, 350.0])
    np.testing.assert_allclose(eq.deficit_at(t, 32, 1.0), prefactor * np.exp(-2 * t), rtol=3e-13)
    assert eq.deficit_at(1e5, 32, 1.0) == 0.0


def test_regular_simplex_is_stationary():
    for n in (2, 4, 33):
        start = -1 / (n - 1)
        assert eq.time_to_overlap(0.5, n, 2.0, "sa", start) == np.inf
        assert eq.time_to_overlap(start, n, 2.0, "sa", start) == 0.0
        assert eq.overlap_at(1e3, n, 2.0, "usa", start) == start
        assert eq.late_time_shift(n, 2.0, start) == np.inf


def test_end_points():
    assert eq.time_to_overlap(1.0, 5, 1.0) == np.inf
    assert eq.time_to_overlap(0.3, 5, 1.0, start=0.3) == 0.0
    assert eq.overlap_at(0.0, 5, 1.0, start=0.3) == 0.3
    assert eq.time_to_overlap(-0.25, 5, 1.0, start=0.3) == -np.inf
    # nothing is not a number at the ends, however large β: 0·e^β and ∞·e^{-β} are 0 and ∞
    for kind in eq.KINDS:
        for beta in (0.0, 300.0, 1e3, 1e4):
            assert eq.time_to_deficit(0.0, 5, beta, kind) == np.inf
            assert eq.time_to_deficit(1.0, 5, beta, kind) == 0.0


def test_time_where_both_factors_leave_float64():
    """USA at β = 1000 from ρ0 = .5: e^{-β} underflows, the time e^{-500}... does not."""
    found = eq.time_to_deficit(0.1, 8, 1000.0, "usa", 0.5)
    assert np.log(found) == pytest.approx(float(log_time(0.1, 8, 1000.0, "usa", 0.5)), abs=1e-12)


def test_backward_time_is_minus_the_forward_one():
    forward = eq.time_to_overlap(0.7, 9, 3.0, "sa", -0.1)
    assert eq.time_to_overlap(-0.1, 9, 3.0, "sa", 0.7) == pytest.approx(-forward, rel=1e-14)


def test_arguments_broadcast():
    times = eq.time_to_overlap([[0.1], [0.9]], [2, 8, 32], 1.5)
    assert times.shape == (2, 3)
    assert times[1, 2] == eq.time_to_overlap(0.9, 32, 1.5)
    assert eq.deficit_at([1.0, 2.0], [[3], [4]], 0.5).shape == (2, 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: eq.time_to_overlap(0.5, 1, 1.0), "`n` must hold whole numbers ≥ 2"),
        (lambda: eq.time_to_overlap(0.5, 2.5, 1.0), "`n` must hold whole numbers ≥ 2"),
        (lambda: eq.time_to_overlap(0.5, 4, -1.0), "`beta` must be ≥ 0"),
        (lambda: eq.time_to_overlap(0.5, 4, np.inf), "`beta` must be finite"),
        (lambda: eq.time_to_overlap(0.5, 4, 1.0, start=1.0), "`start` must be ≥ -1 and < 1"),
        (lambda: eq.time_to_overlap(0.5, 4, 1.0, start=-0.5), "`start` must be ≥ -1/"),
        (lambda: eq.time_to_overlap(1.5, 4, 1.0), "`overlap` must be ≥ -1 and ≤ 1"),
        (lambda: eq.time_to_overlap(-0.9, 4, 1.0), "`overlap` must be ≥ -1/"),
        (lambda: eq.time_to_overlap(0.5, 4, 1.0, "softmax"), "`kind` must be one of 'sa', 'usa'"),
        (lambda: eq.time_to_deficit(-1e-3, 4, 1.0), "`deficit` must be ≥ 0"),
        (lambda: eq.time_to_deficit(1.5, 4, 1.0), "`deficit` must be ≤ n/"),
        (lambda: eq.log_time_to_deficit(1.2, 4, 1.0), "`deficit` must be ≤ 1-start"),
        (lambda: eq.deficit_at(-1.0, 4, 1.0), "`time` must be ≥ 0"),
        (lambda: eq.overlap_rate(-0.9, 4, 1.0), "`overlap` must be ≥ -1/"),
        (lambda: eq.phase_curve(1.0, 4, 0.0), "`delta` must be > 0"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()
