import mpmath as mp
import numpy as np
import pytest

from pathlines.foundation.errors import ArgumentError
from pathlines.limit.clustering import clusters as cl
from references import clustering as ref

from .particles import integrate_field, jacobian_eigenvalues, sa_field, usa_field

FIELDS = {"sa": sa_field, "usa": usa_field}


def nearest(spectrum, value):
    return np.abs(spectrum - value).min()


def circle(angles):
    return np.column_stack([np.cos(angles), np.sin(angles)])


def test_two_cluster_table():
    times = np.array(sorted(ref.TWO_CLUSTERS))
    found = cl.two_cluster_overlap(times, 3, 7, 2.5, -0.3)
    np.testing.assert_allclose(found, [ref.TWO_CLUSTERS[t] for t in times], rtol=0, atol=6e-11)


def test_two_cluster_overlap_vs_particles():
    a = np.arccos(-0.3)
    tokens = circle(np.repeat([0.0, a], [3, 7]))
    states = integrate_field(lambda t, x: sa_field(x, 2.5), tokens, [1.0, 4.0])
    found = cl.two_cluster_overlap([1.0, 4.0], 3, 7, 2.5, -0.3)
    np.testing.assert_allclose(found, [s[0] @ s[-1] for s in states], atol=1e-11)


@pytest.mark.parametrize(("n1", "n2", "beta", "start"), [(3, 7, 2.5, -0.3), (1, 1, 0.0, 0.5), (20, 1, 12.0, -0.99)])
def test_two_cluster_overlap_vs_quadrature_of_its_rate(n1, n2, beta, start):
    with mp.workdps(30):

        def slowness(g):
            grown = mp.exp(beta * (1 - g))
            return 1 / ((1 - g * g) * (n2 / (n2 + n1 * grown) + n1 / (n1 + n2 * grown)))

        for goal in (start + 0.2, 0.95):
            t = mp.quad(slowness, mp.linspace(mp.mpf(start), mp.mpf(goal), 9))
            # t up to 1e9 is itself rounded
            allowed = 3e-14 + 1e-15 * float(t) * cl.two_cluster_rate(goal, n1, n2, beta)
            assert cl.two_cluster_overlap(float(t), n1, n2, beta, start) == pytest.approx(goal, abs=allowed)


def test_two_cluster_rate_vs_particles():
    for n1, n2, beta, g in ((3, 7, 2.5, -0.3), (5, 1, 0.0, 0.6), (2, 2, 9.0, 0.9)):
        x = circle(np.repeat([0.0, np.arccos(g)], [n1, n2]))
        v = sa_field(x, beta)
        assert cl.two_cluster_rate(g, n1, n2, beta) == pytest.approx(v[0] @ x[-1] + x[0] @ v[-1], rel=1e-13)


def test_two_cluster_deficit_decays_at_rate_two():
    deficit = cl.two_cluster_deficit([100.0, 150.0], 3, 7, 2.5, -0.3)
    assert np.log(deficit[0] / deficit[1]) == pytest.approx(100.0, rel=1e-13)


def test_two_clusters_stay_when_together_or_opposite():
    np.testing.assert_array_equal(cl.two_cluster_overlap([0.0, 5.0], 2, 3, 1.0, -1.0), [-1.0, -1.0])
    np.testing.assert_array_equal(cl.two_cluster_overlap([0.0, 5.0], 2, 3, 1.0, 1.0), [1.0, 1.0])


@pytest.mark.parametrize(("n1", "n2"), [(1, 1), (2, 2), (1, 3)])
@pytest.mark.parametrize("beta", [0.0, 1.0, 3.0])
def test_antipodal_escape_rate_vs_jacobian(n1, n2, beta):
    spectrum = jacobian_eigenvalues(lambda x: sa_field(x, beta), circle(np.repeat([0.0, np.pi], [n1, n2])))
    rate = cl.antipodal_escape_rate(beta, n1, n2)
    assert nearest(spectrum, rate) < 1e-12
    if n1 == n2:
        assert rate == pytest.approx(2 / (1 + np.exp(2 * beta)), rel=1e-14)
        assert spectrum.real.max() == pytest.approx(rate, abs=1e-12)


@pytest.mark.parametrize("kind", cl.KINDS)
@pytest.mark.parametrize("k", [2, 3, 4, 7])
@pytest.mark.parametrize("beta", [0.0, 0.7, 5.0])
def test_polygon_rates_vs_jacobian(k, beta, kind):
    """Two tokens at each corner: the spectrum is the k modes of the corners and k times the rate inside a corner."""
    angles = np.repeat(2 * np.pi * np.arange(k) / k, 2)
    spectrum = np.sort(jacobian_eigenvalues(lambda x: FIELDS[kind](x, beta), circle(angles)).real)
    modes = cl.polygon_growth_rates(k, beta, kind)
    expected = np.sort(np.concatenate([modes, np.full(k, cl.polygon_intra_rate(k, beta, kind))]))
    np.testing.assert_allclose(spectrum, expected, atol=1e-10 * max(1, np.exp(beta)))


def test_polygon_table():
    for (k, beta), rates in ref.POLYGON_GROWTH.items():
        for kind, rate in zip(("usa", "sa"), rates):
            assert cl.polygon_growth_rates(k, beta, kind)[1] == pytest.approx(rate, abs=6e-15)


def test_polygon_rates_at_low_temperature_do_not_overflow():
    assert np.all(np.isfinite(cl.polygon_growth_rates(5, 2000.0, "sa")))
    assert cl.polygon_intra_rate(5, 2000.0, "sa") == pytest.approx(-1.0)


@pytest.mark.parametrize("kind", cl.KINDS)
def test_consensus_rate_vs_jacobian(kind):
    beta, n, d = 1.3, 5, 4
    x = np.tile(np.eye(d)[:1], (n, 1))
    spectrum = np.sort(jacobian_eigenvalues(lambda y: FIELDS[kind](y, beta), x).real)
    rate = cl.consensus_rate(beta, kind)
    np.testing.assert_allclose(spectrum, [-rate] * ((n - 1) * (d - 1)) + [0.0] * (d - 1), atol=1e-12)


def test_consensus_spectrum_vs_jacobian():
    values, n = np.array([0.7, 2.0, -1.1]), 4
    V = np.diag(values)
    for p in range(3):
        x = np.tile(np.eye(3)[p], (n, 1))
        spectrum = np.sort(jacobian_eigenvalues(lambda y: sa_field(y, 1.7, np.eye(3), V, V), x).real)
        difference, mean = cl.consensus_spectrum(values, p)
        np.testing.assert_allclose(
            spectrum, np.sort(np.concatenate([[-difference] * (2 * (n - 1)), -mean])), atol=1e-12
        )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cl.two_cluster_rate(1.2, 1, 1, 1.0), "`overlap` must"),
        (lambda: cl.two_cluster_rate(0.0, 0, 1, 1.0), "`n1` must"),
        (lambda: cl.two_cluster_overlap(-1.0, 1, 1, 1.0, 0.0), "`times` must"),
        (lambda: cl.two_cluster_overlap(1.0, 1, 1, 1.0, 1.5), "`start` must"),
        (lambda: cl.polygon_growth_rates(1, 1.0), "`k` must"),
        (lambda: cl.polygon_growth_rates(3, 1.0, "x"), "`kind` must"),
        (lambda: cl.polygon_intra_rate(3, -1.0), "`beta` must"),
        (lambda: cl.consensus_rate(-1.0), "`beta` must"),
        (lambda: cl.consensus_spectrum([1.0, 2.0], 2), "`p` must be < 2"),
        (lambda: cl.consensus_spectrum([], 0), "`eigenvalues` must"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()
