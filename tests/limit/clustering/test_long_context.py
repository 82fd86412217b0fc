import mpmath as mp
import numpy as np
import pytest

from pathlines.foundation.errors import ArgumentError
from pathlines.limit.clustering import long_context as lc
from pathlines.limit.clustering.equiangular import time_to_overlap
from references import clustering as ref

from .particles import attention, equiangular_tokens, softmax


def exact(n, gamma, rho):
    """(a, ρ_out) from the formulas as printed, at 60 digits."""
    n, gamma, rho = mp.mpf(n), mp.mpf(gamma), mp.mpf(rho)
    a = 1 / (1 + (n - 1) * n ** (-gamma * (1 - rho)))
    b, s1 = (1 - a) / (n - 1), 1 + (n - 1) * rho
    top = (a - b) ** 2 * rho + 2 * (a - b) * b * s1 + b * b * n * s1
    return a, top / ((a - b) ** 2 + 2 * (a - b) * b * s1 + b * b * n * s1)


def test_table():
    for (gamma, n), value in ref.LONG_CONTEXT.items():
        assert lc.output_overlap(n, gamma, 0.5) == pytest.approx(value, abs=6e-7)


@pytest.mark.parametrize("n", [2, 1e3, 1e12])
@pytest.mark.parametrize("gamma", [0.0, 1e-6, 0.5, 1.0, 2.0, 5.0, 40.0])
@pytest.mark.parametrize("rho", [-1e-13, 0.0, 1e-9, 0.3, 0.999])
def test_formulas_vs_sixty_digits(n, gamma, rho):
    with mp.workdps(60):
        a, out = exact(n, gamma, rho)
        size = 1 + gamma * np.log(n)
        assert abs(mp.mpf(float(lc.self_weight(n, gamma, rho))) / a - 1) < 1e-15 * size
        assert abs(mp.mpf(float(lc.output_overlap(n, gamma, rho))) - out) < 2e-15 * size * abs(out) + 1e-25
        deficit = mp.mpf(float(lc.output_deficit(n, gamma, rho)))
        assert abs(deficit - (1 - out)) <= 4e-15 * size * abs(1 - out)


def test_one_layer_of_tokens():
    n, gamma, rho = 12, 1.3, 0.2
    x = equiangular_tokens(n, rho)
    out = attention(x, gamma * np.log(n))
    cosine = out[0] @ out[1] / np.linalg.norm(out[0]) / np.linalg.norm(out[1])
    assert lc.output_overlap(n, gamma, rho) == pytest.approx(cosine, rel=1e-13)
    assert lc.self_weight(n, gamma, rho) == pytest.approx(softmax(gamma * np.log(n) * x @ x.T)[0, 0], rel=1e-13)


def test_limit_of_long_context():
    rho = np.array([0.1, 0.3, 0.5, 0.9])
    critical = lc.critical_gamma(rho)
    np.testing.assert_allclose(critical, 1 / (1 - rho))
    for factor, expected in ((0.5, np.ones(4)), (1.0, 4 * rho / (1 + 3 * rho)), (2.0, rho)):
        np.testing.assert_allclose(lc.output_overlap_limit(factor * critical, rho), expected, rtol=1e-14)
        # n^{-1/2} away from the limit at half and double the critical γ, 1/n at it
        np.testing.assert_allclose(lc.output_overlap(1e12, factor * critical, rho), expected, rtol=1e-4)


def test_freezing_time_vs_exact_time():
    """The time to leave the start by 10 % of the way approaches n^{...}/(...) like 1/ln n."""
    for start, gamma in ((0.5, 3.0), (0.2, 2.0)):
        miss = [
            time_to_overlap(start + 0.1 * (1 - start), n, gamma * np.log(n), "sa", start)
            / lc.freezing_time(n, gamma, start)
            - 1
            for n in (1e6, 1e12, 1e24, 1e48)
        ]
        assert abs(miss[-1]) < 0.02
        assert abs(miss[-1]) < 0.7 * abs(miss[-3])


def test_no_freezing_below_the_critical_scaling():
    """There ρ' -> 2ρ(1-ρ), whose time from ρ0 to ρ is ½ ln(ρ(1-ρ0)/(ρ0(1-ρ)))."""
    exact_time = 0.5 * np.log(0.9 * 0.5 / (0.5 * 0.1))
    assert time_to_overlap(0.9, 1e12, 1.0 * np.log(1e12), "sa", 0.5) == pytest.approx(exact_time, rel=1e-5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: lc.self_weight(1, 1.0, 0.5), "`n` must"),
        (lambda: lc.self_weight(10, -1.0, 0.5), "`gamma` must"),
        (lambda: lc.output_overlap(10, 1.0, -0.5), "`overlap` must be ≥ -1/"),
        (lambda: lc.output_overlap_limit(1.0, 0.0), "`overlap` must be > 0 and < 1"),
        (lambda: lc.critical_gamma(1.0), "`overlap` must be > 0 and < 1"),
        (lambda: lc.freezing_time(10, 1.0, 1.0), "`start` must be > 0 and < 1"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()
