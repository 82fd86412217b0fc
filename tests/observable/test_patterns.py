"""Moments, maxima of the potential, clusters with mass, formation times."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

from pathlines.domain import Sphere
from pathlines.foundation.errors import ArgumentError, FormError
from pathlines.integrate import flow
from pathlines.model.base import Snapshot
from pathlines.model.metastability.circle import CircleAttention
from pathlines.model.self_attention import SelfAttention
from pathlines.observable.clusters import linked
from pathlines.observable.patterns import (
    fourier_moments,
    fourier_phases,
    heavy_clusters,
    interaction_energy,
    measured_formation_time,
    peak_angles,
    potential,
    potential_modes,
    zonal_moments,
)

ZERO = jnp.zeros(())


def circle(beta, angles):
    angles = jnp.asarray(angles, float)
    return Snapshot(CircleAttention(beta), angles, ZERO, angles)


def test_moments_and_phases_against_the_sum():
    angles = np.random.default_rng(1).uniform(0, 7, 50)
    exact = np.exp(-1j * np.outer(np.arange(1, 17), angles)).mean(axis=1)
    np.testing.assert_allclose(fourier_moments(circle(9.0, angles)), np.abs(exact), atol=1e-14)
    np.testing.assert_allclose(fourier_phases(circle(9.0, angles)), np.angle(exact), atol=1e-12)


def test_potential_against_the_kernel():
    angles = np.array([0.3, 0.5, 2.0, 4.0])
    model = CircleAttention(9.0)
    values = np.asarray(potential(circle(9.0, angles)))
    grid = 2 * np.pi * np.arange(len(values)) / len(values)
    exact = np.exp(9 * (np.cos(grid[:, None] - angles) - 1)).mean(axis=1)
    np.testing.assert_allclose(values, exact, atol=1e-15)
    assert len(values) == 8 * model.modes
    assert int(potential_modes(circle(9.0, angles))) == 3
    np.testing.assert_allclose(peak_angles(values), [0.4, 2.0, 4.0], atol=2e-3)


def test_no_maxima_of_rounding():
    """Two clusters at β = 81: between them U is e^{-81}, which sums cannot see."""
    assert int(potential_modes(circle(81.0, [0.0, np.pi]))) == 2


def test_modes_must_be_given_where_the_model_does_not_know_them():
    x = Sphere(2).normalise(np.random.default_rng(0).standard_normal((9, 2)))
    snapshot = Snapshot(SelfAttention(9.0), jnp.asarray(x), ZERO, x)
    with pytest.raises(ArgumentError, match="circle_modes"):
        potential_modes(snapshot)
    angles = np.arctan2(x[:, 1], x[:, 0])
    assert int(potential_modes.at(modes=34)(snapshot)) == int(potential_modes(circle(9.0, angles)))


def test_needs_the_circle():
    x = Sphere(3).normalise(np.random.default_rng(0).standard_normal((9, 3)))
    snapshot = Snapshot(SelfAttention(9.0), jnp.asarray(x), ZERO, x)
    for look, says in ((fourier_moments, "d = 2"), (zonal_moments, "no axis")):
        with pytest.raises(FormError, match=says):
            look(snapshot)


def test_heavy_clusters_leave_stragglers_out():
    """Three groups and one straggler; the group across θ = ±π is one; the same in the plane of R³."""
    groups = np.concatenate([c + 0.01 * np.arange(-15, 15) for c in (0.0, 1.5, np.pi)])
    angles = np.append(groups, 2.3)
    assert int(heavy_clusters.at(least=0.02)(circle(9.0, angles))) == 3
    assert int(heavy_clusters.at(least=0.001)(circle(9.0, angles))) == 4
    assert int(heavy_clusters.at(gap=7.0)(circle(9.0, angles))) == 1
    x = jnp.asarray(np.column_stack([np.cos(angles), np.sin(angles), np.zeros(len(angles))]))
    assert int(heavy_clusters.at(least=0.02)(Snapshot(SelfAttention(9.0), x, ZERO, x))) == 3


def test_energy_is_that_of_tokens():
    x = Sphere(2).normalise(np.random.default_rng(5).standard_normal((200, 2)))
    run = flow(SelfAttention(4.0), x, times=[1.0], record=(interaction_energy, "energy_fraction"), rtol=1e-6)
    assert run["interaction_energy"].values[0] == pytest.approx(run["energy_fraction"].values[0], rel=1e-12)


def test_formation_time():
    """Exact for exponentials; the largest mode counts; zero when there already; NaN when never."""
    t = np.linspace(0, 5, 11)
    curve = np.stack([1e-3 * np.exp(t), 2e-3 * np.exp(0.4 * t)], axis=-1)
    assert measured_formation_time(t, curve) == pytest.approx(np.log(100))
    assert measured_formation_time(t, curve, 1e-3) == 0
    assert np.isnan(measured_formation_time(t, curve, 1.0))
    both = measured_formation_time(t, np.stack([curve, 2 * curve]))
    np.testing.assert_allclose(both, [np.log(100), np.log(50)])


@pytest.mark.parametrize("d", [2, 3, 5])
def test_linkage_vs_connected_components(d):
    """Against SciPy's components of the graph of angles, at reaches from isolated points to one group."""
    x = np.random.default_rng(d).standard_normal((40, d))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    angles = np.arccos(np.clip(x @ x.T, -1, 1))
    for reach in (1e-3, 0.1, 0.3, 0.6, 4.0):
        count, wanted = connected_components(angles <= reach, directed=False)
        found = np.asarray(linked(jnp.asarray(x), reach))
        assert len(np.unique(found)) == count
        assert len(set(zip(found.tolist(), wanted.tolist(), strict=True))) == count
