"""The reference trajectories themselves, recomputed with the plain NumPy particles of this folder."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm

from references import clustering as ref

from .particles import integrate_field, sa_field, softmax, usa_field


def sphere_field(model, beta):
    if model == "usa":
        return lambda t, x: usa_field(x, beta)
    if model == "qkv":
        return lambda t, x: sa_field(x, beta, ref.QKV_QUERY, ref.QKV_KEY, ref.QKV_VALUE)
    return lambda t, x: sa_field(x, beta)


def test_start():
    x = ref.sphere_start(8, 3)
    np.testing.assert_allclose(x[0], ref.START_FIRST_TOKEN, atol=6e-9)
    assert abs(x[0] @ x[1] - ref.START_G12) < 6e-12


@pytest.mark.parametrize(("model", "beta"), sorted({run[:2] for run in ref.SPHERE_RUNS}))
def test_sphere_runs(model, beta):
    runs = [run for run in ref.SPHERE_RUNS if run[:2] == (model, beta)]
    states = integrate_field(sphere_field(model, beta), ref.sphere_start(8, 3), [run[2] for run in runs])
    for x, (*_, first, g12, energy, mean) in zip(states, runs, strict=True):
        g = x @ x.T
        np.testing.assert_allclose(x[0], first, atol=3e-11)
        assert abs(g[0, 1] - g12) < 3e-11
        if energy is not None:
            assert abs(np.exp(beta * g).sum() / (2 * beta * 64) - energy) < 3e-10
        if mean is not None:
            assert abs((g.sum() - np.trace(g)) / 56 - mean) < 3e-11


def euclidean_run(V, start, times):
    V = np.asarray(V, dtype=float)

    def field(t, z):
        grown = z @ expm(t * V).T
        return (softmax(grown @ grown.T) @ z - z) @ V.T

    return integrate_field(field, start, times, rtol=1e-11)


@pytest.mark.parametrize("run", ref.EUCLIDEAN_RUNS, ids=["identity", "diagonal", "full"])
def test_euclidean_runs(run):
    V, first_at_1, first_at_2, fourth_at_2 = run
    at_1, at_2 = euclidean_run(V, ref.EUCLIDEAN_START, [1.0, 2.0])
    np.testing.assert_allclose(at_1[0], first_at_1, atol=1e-9)
    np.testing.assert_allclose(at_2[0], first_at_2, atol=1e-9)
    np.testing.assert_allclose(at_2[3], fourth_at_2, atol=1e-9)


def test_euclidean_clusters():
    (late,) = euclidean_run(np.eye(2), ref.EUCLIDEAN_START, [9.0])
    distance = np.linalg.norm(late[:, None] - np.array(ref.EUCLIDEAN_CLUSTERS)[None], axis=2)
    assert tuple(distance.argmin(axis=1)) == ref.EUCLIDEAN_LABELS
    # followers approach like e^{-t}, leaders are there already: one token of each cluster is at the limit to 1e-6
    assert distance.min(axis=1).max() < 10 * np.exp(-9)
    assert distance.min(axis=0).max() < 1.5e-6


def test_euclidean_hyperplanes():
    (late,) = euclidean_run(np.diag([1.0, -0.5]), ref.EUCLIDEAN_START, [9.0])
    values = np.array(ref.EUCLIDEAN_HYPERPLANES)
    assert np.abs(late[:, :1] - values).min(axis=1).max() < 2e-3


def test_negative_identity():
    times = sorted(ref.NEGATIVE_IDENTITY)
    run = solve_ivp(
        lambda t, x: -(softmax(x.reshape(10, 2) @ x.reshape(10, 2).T) @ x.reshape(10, 2)).ravel(),
        (0, times[-1]),
        ref.EUCLIDEAN_START.ravel(),
        t_eval=times,
        method="DOP853",
        rtol=1e-12,
        atol=1e-13,
    )
    for t, column in zip(times, run.y.T, strict=True):
        x = column.reshape(10, 2)
        first, scaled = ref.NEGATIVE_IDENTITY[t]
        np.testing.assert_allclose(x[0], first, atol=1e-9)
        np.testing.assert_allclose(np.linalg.eigvalsh(2 * t * np.cov(x.T, bias=True)), scaled, atol=1e-7)


def test_line():
    at_2, late = euclidean_run(np.eye(1), ref.LINE_START, [2.0, 9.0])
    np.testing.assert_allclose(at_2[:4, 0], ref.LINE_STATE, atol=6e-9)
    assert np.abs(late - np.array(ref.LINE_LIMITS)).min(axis=1).max() < 2e-3
    assert (late.argmin() + 1, late.argmax() + 1) == ref.LINE_LEADERS
