"""Closed forms on the sphere against reference values and against particles."""

import numpy as np
from scipy.integrate import quad

from pathlines.limit.transport.on_sphere import (
    arc_edge,
    arc_mean,
    arc_rapidity,
    cap_clustering,
    cap_deficit,
    cap_distance,
    least_without_attention,
)


def test_reference_arc():
    """RV7, to its ten digits."""
    tau = arc_rapidity([1.0, 2.0, 3.0, 5.0], 1.0)
    np.testing.assert_allclose(tau, [0.9213642025, 1.9087189949, 2.9069593996, 4.9066879704], rtol=0, atol=2e-10)
    edges = [0.4281668940, 0.1616478480, 0.0596839837, 0.0080818968]
    np.testing.assert_allclose(arc_edge(tau, 1.0), edges, rtol=0, atol=2e-10)
    means = [0.9714469478, 0.9959438155, 0.9994473041, 0.9999898664]
    np.testing.assert_allclose(arc_mean(tau, 1.0), means, rtol=0, atol=2e-10)


def test_arc_near_the_start():
    """The small branch joins the closed form: a mean of boosted cosines by quadrature."""
    x, w = np.polynomial.legendre.leggauss(60)
    for tau in (0.0, 3e-5, 9.9e-5, 1.1e-4, 0.3):
        by_nodes = w @ np.tanh(np.arctanh(np.cos(1.3 * x)) + tau) / 2
        np.testing.assert_allclose(arc_mean(tau, 1.3), by_nodes, atol=1e-8)  # the branch leaves τ² out


def test_reference_cap():
    """RV8: a cap of radius 0.35, amplitude one."""
    values = [1.41318599e-1, 6.27223887e-2, 8.59147195e-3, 8.30798284e-5]
    np.testing.assert_allclose(cap_distance([20.0, 40.0, 80.0, 160.0], 0.35), values, rtol=1e-8)
    np.testing.assert_allclose(cap_distance(320.0, 0.35), 5.08998e-9, rtol=1e-6)  # six digits are printed


def test_cap_under_attention_vs_quadrature():
    """1 - |mean| of a boosted cap by nodes in its height, on both sides of the branch and far out."""
    x, w = np.polynomial.legendre.leggauss(200)
    for radius in (0.3, 1.0, 2.0):
        heights = 1 - (1 - np.cos(radius)) * (1 - x) / 2
        for tau in (0.0, 0.5, 0.999, 1.001, 3.0, 8.0):
            below = (1 - heights) * np.exp(-2 * tau)
            by_nodes = w @ (2 * below / (1 + heights + below)) / 2  # 1 - tanh(artanh u + τ), without cancellation
            np.testing.assert_allclose(cap_deficit(tau, radius), by_nodes, rtol=1e-9)


def test_cap_clusters_like_its_limit():
    """e^t · radius becomes √(2c) e^{∫(1/|mean| - 1)dτ}, an integral over τ alone."""
    radius = 1.0
    k = np.cos(radius)
    c = 4 * np.log(2 / (1 + k)) / (1 - k) - 2
    delay = quad(lambda tau: float(1 / (1 - cap_deficit(tau, radius)) - 1), 0, 30, points=[1.0])[0]
    np.testing.assert_allclose(np.exp(14.0) * cap_clustering([14.0], radius), np.sqrt(2 * c) * np.exp(delay), rtol=1e-8)
    np.testing.assert_allclose(cap_clustering([0.0], radius), np.sqrt(1 - k), rtol=1e-9)


def test_one_map_misses_one_of_two_targets():
    """The bound is the minimum over places of the image, found by search on the great circle."""
    theta = 0.7
    at = np.linspace(0, theta, 100001)
    found = np.maximum(2 * np.sin(at / 2), 2 * np.sin((theta - at) / 2)).min() * np.sqrt(0.25)
    np.testing.assert_allclose(least_without_attention(theta, 0.25), found, rtol=1e-8)
