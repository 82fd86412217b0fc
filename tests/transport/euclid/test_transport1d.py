"""One-dimensional transport against reference values, quadrature and known tails."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.stats import laplace

from pathlines.foundation.errors import ArgumentError
from pathlines.transport.euclid.certificate import line_certificate
from pathlines.transport.euclid.increasing import increasing_schedule
from pathlines.transport.euclid.quantile import LineLaw, log_slope, quantile_map
from pathlines.transport.euclid.transport1d import Transport1D
from pathlines.transport.targets import GaussianMixture

MIXTURE = GaussianMixture([0.3, 0.5, 0.2], [[-2.0], [0.5], [3.0]], np.array([0.25, 0.64, 0.16])[:, None, None])
A = MIXTURE.line()
"""Target A of the reference values."""


def test_reference_values():
    z = np.arange(-2.0, 3.0)
    y = quantile_map(A, z)
    np.testing.assert_allclose(y, [-2.7170021008, -1.9659588129, 0.2973250103, 2.6838376628, 3.4832275380], atol=6e-11)
    expected = [-0.4618871502, 0.0041573514, 0.5020693282, 0.4651860960, -0.5796133617]
    np.testing.assert_allclose(log_slope(A, z, y), expected, atol=6e-11)
    at = np.linspace(-3, 3, 13)
    values = quantile_map(A, at)
    tails = np.exp(log_slope(A, at[[0, -1]], values[[0, -1]]))
    np.testing.assert_allclose(tails, [0.5611576379, 0.4698052564], atol=6e-11)
    flow = increasing_schedule(at, values, *tails)
    found = line_certificate(A, flow, at)
    assert flow.count == 15
    np.testing.assert_allclose([found.kl, found.reverse_kl], [0.042681358, 0.044608129], atol=1e-9)
    # 30 digits, signs located by root finding; the table's 0.105506392 is too small from the sixth digit on
    np.testing.assert_allclose(found.tv, 0.105507067509, atol=1e-9)


@pytest.mark.parametrize(("knots", "kl"), [(16, 1.658293305e-3), (64, 8.405827107e-5), (256, 5.038151409e-6)])
def test_targets_with_a_kink(knots, kl):
    """Laplace's law: KL of these very knots, by quadrature with 30 digits that knows where the kink is."""
    found = Transport1D(knots + 2).fit_density(laplace.logpdf, laplace.cdf, laplace.sf).report_
    np.testing.assert_allclose(found.kl, kl, rtol=1e-8)


def test_total_variation_vs_adaptive_quadrature():
    at = np.linspace(-3, 3, 13)
    values = quantile_map(A, at)
    flow = increasing_schedule(at, values, 0.56, 0.47)

    def gap(y):
        return abs(np.exp(A.logpdf(np.array([y]))[0]) - np.exp(flow.log_prob([[y]])[0])) / 2

    edges = [-12, *values, 12]
    direct = sum(quad(gap, a, b, limit=200, epsabs=1e-9)[0] for a, b in pairwise(edges))
    np.testing.assert_allclose(line_certificate(A, flow, at).tv, direct, atol=2e-6)


@pytest.mark.parametrize(("knots", "kl", "tv"), [(16, 8.228e-3, 5.098e-2), (64, 4.257e-4, 1.176e-2)])
def test_table_of_knots(knots, kl, tv):
    found = Transport1D(knots + 2).fit_density(A.logpdf, A.cdf, A.sf).report_
    assert found.pieces == knots + 2
    np.testing.assert_allclose([found.kl, found.tv], [kl, tv], rtol=1e-3)


@pytest.mark.parametrize(("nu", "kl"), [(3, 1.451e-4), (5, 5.217e-5)])
def test_heavy_tails(nu, kl):
    law = stats.t(nu)
    from pathlines.transport.euclid.knots import cut_off
    from pathlines.transport.euclid.transport1d import interpolated

    line = LineLaw(law.logpdf, law.cdf, law.sf)
    flow, at = interpolated(line, 64, cut_off(64, 2.5))
    np.testing.assert_allclose(line_certificate(line, flow, at).kl, kl, rtol=1e-3)


def test_no_second_moment_means_infinite_entropy():
    law = stats.cauchy()
    found = Transport1D(40).fit_density(law.logpdf, law.cdf, law.sf).report_
    assert np.isinf(found.kl) and 0 < found.reverse_kl < 0.1
    with pytest.raises(ArgumentError, match="without a second moment"):
        Transport1D(error=0.1).fit_density(law.logpdf, law.cdf, law.sf)


def test_error_target_is_met():
    flow = Transport1D(error=1e-3).fit_density(A.logpdf, A.cdf, A.sf)
    assert flow.report_.kl <= 1e-3
    assert flow.report_.pieces < 60


def test_samples_are_fitted():
    flow = Transport1D().fit(MIXTURE.sample(4000, 1))
    fresh = MIXTURE.sample(50_000, 2)
    kl = np.mean(MIXTURE.log_prob(fresh) - flow.log_prob(fresh))
    assert 0 < kl < 0.03  # parametric floor 24/(2·4000) = 0.003, smoothing bias of the same order several times
    z = flow.transform(fresh)
    assert abs(z.mean()) < 0.1 and abs(z.std() - 1) < 0.05
    np.testing.assert_allclose(flow.inverse_transform(z), fresh, atol=1e-9)
    np.testing.assert_array_equal(flow.sample(5, 3), flow.sample(5, 3))


def test_random_map_is_exact():
    rng = np.random.default_rng(3)
    x, y = np.sort(rng.normal(size=20)), np.sort(rng.normal(size=20)) * 2
    flow = increasing_schedule(x, y, 0.3, 2.0)
    at = np.linspace(x[0], x[-1], 1000)
    assert flow.count == 22
    np.testing.assert_allclose(flow.forward(at[:, None])[0][:, 0], np.interp(at, x, y), atol=1e-12)
    np.testing.assert_allclose(flow.forward([[x[0] - 1], [x[-1] + 1]])[0][:, 0], [y[0] - 0.3, y[-1] + 2], atol=1e-12)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Transport1D().fit([[1.0]] * 30), "singular covariance"),
        (lambda: Transport1D().fit([[1.0]] * 7 + [[np.nan]] + [[2.0]] * 30), "row 7 has NaN"),
        (lambda: Transport1D(3).fit_density(A.logpdf, A.cdf), "`pieces` must be an integer ≥ 4"),
        (lambda: Transport1D().fit_density(lambda y: A.logpdf(y) + 1, A.cdf), "integrates to 2.7"),
        (lambda: Transport1D(10, 0.1).fit_density(A.logpdf, A.cdf), "exclude each other"),
        (lambda: Transport1D(error=0.01).fit(MIXTURE.sample(50)), "was not met with 50 samples"),
        (lambda: Transport1D().fit_density(A.logpdf, lambda y: 2 * A.cdf(y), A.sf), "must rise from 0 to 1"),
        (lambda: Transport1D().sample(3), "not fitted yet"),
    ],
)
def test_bad_input_gets_one_line(call, words):
    with pytest.raises(Exception, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)
