"""Kalman, its dual and Bayes against joint Gaussian laws, reference values and sums over hidden paths."""

import itertools

import numpy as np
import pytest

from pathlines.foundation.errors import ArgumentError
from pathlines.limit.followups.filtering import bayes, curvatures, dual_control, error_covariances, kalman
from pathlines.numerics.sources import HiddenMarkov, StateSpace

A, H = [[0.9, 0.2], [0.0, 0.7]], [[1.0], [0.5]]
REFERENCE = StateSpace(A, H, [[0.2, 0.05], [0.05, 0.1]], [[0.4]], mean=[0.2, -0.1])
TOKENS = np.array([[1.0], [-0.5], [0.3], [0.8], [-0.2]])


def test_reference_values():
    """Numbers of an independent computation, to the digits given."""
    best = dual_control(REFERENCE, [1.0, -0.5], 5)
    assert best.error == pytest.approx(0.3129606652886, rel=1e-12)
    weights = [0.034864860122, 0.005527405102, -0.026909036379, -0.101858473513, -0.291343942940]
    np.testing.assert_allclose(best.weights[:, 0], weights, atol=6e-13)
    np.testing.assert_allclose(best.dual[0], [0.04790669, -0.12370526], atol=6e-9)
    assert kalman(REFERENCE, TOKENS).means[-1] @ [1.0, -0.5] == pytest.approx(0.0211414068796, abs=6e-14)


def joint(source, length):
    """Mean and covariance of (X_T, Z_1..Z_T), by writing all of them as sums of independent parts."""
    d, p = source.readout.shape
    state = np.hstack([np.linalg.cholesky(source.spread), np.zeros((d, length * (d + p)))])
    mean, rows, means = source.mean, [], []
    for t in range(length):
        noise = np.zeros((p, state.shape[1]))
        noise[:, d + t * (d + p) : d + t * (d + p) + p] = np.linalg.cholesky(source.noise)
        rows.append(source.readout.T @ state + noise)
        means.append(source.readout.T @ mean)
        moved = np.zeros_like(state)
        moved[:, d + t * (d + p) + p : d + (t + 1) * (d + p)] = np.linalg.cholesky(source.moves)
        state, mean = source.transition.T @ state + moved, source.transition.T @ mean
    z = np.vstack(rows)
    return mean, np.concatenate(means), state @ state.T, state @ z.T, z @ z.T


def test_filter_vs_conditional_law():
    mean, middle, prior, cross, spread = joint(REFERENCE, 5)
    gain = np.linalg.solve(spread, cross.T).T
    found = kalman(REFERENCE, TOKENS)
    np.testing.assert_allclose(found.means[-1], mean + gain @ (TOKENS[:, 0] - middle), rtol=1e-12)
    np.testing.assert_allclose(found.covariances[-1], prior - gain @ cross.T, rtol=1e-12)
    np.testing.assert_allclose(dual_control(REFERENCE, [1.0, -0.5], 5).weights[:, 0], [-1.0, 0.5] @ gain, rtol=1e-11)
    np.testing.assert_allclose(error_covariances(REFERENCE, 5), found.covariances)


def test_bayes_vs_sum_over_paths():
    rng = np.random.default_rng(1)
    source = HiddenMarkov(rng.dirichlet(np.ones(3), 3), rng.dirichlet(np.ones(4), 3), rng.dirichlet(np.ones(3)))
    tokens, chance = [2, 0, 3], np.zeros(3)
    for path in itertools.product(range(3), repeat=4):
        steps = [source.kernel[a, b] * source.emission[a, z] for a, b, z in zip(path, path[1:], tokens, strict=False)]
        chance[path[-1]] += source.start[path[0]] * np.prod(steps)
    np.testing.assert_allclose(bayes(source, tokens)[-1], chance / chance.sum(), rtol=1e-13)


def test_what_cannot_be_is_refused():
    with pytest.raises(ArgumentError, match="`noise` must have eigenvalues > 0"):
        StateSpace(A, H, np.eye(2), [[-0.4]])
    with pytest.raises(ArgumentError, match="`moves` must be symmetric"):
        StateSpace(A, H, [[1.0, 0.3], [0.0, 1.0]], [[0.4]])
    with pytest.raises(ArgumentError, match=r"`kernel` must have rows that add up to 1, but one adds up to 1\.1"):
        HiddenMarkov([[0.5, 0.6], [0.5, 0.5]], np.eye(2))
    sure = HiddenMarkov(np.eye(2), np.eye(2))
    with pytest.raises(ArgumentError, match="probability 0: token 1 at place 2"):
        bayes(sure, [0, 1])


def test_curvatures_are_those_of_the_error():
    """J(u + v) - 2J(u) + J(u - v) = 2 vᵀ(½∇²J)v, by a backward sweep of its own."""
    source = REFERENCE

    def error(u):
        y, found = np.zeros(2), 0.0
        for weight in u[::-1]:
            found += y @ source.moves @ y + 0.4 * weight**2
            y = source.transition @ y + source.readout[:, 0] * weight
        return found + y @ source.spread @ y

    unit = np.eye(3)
    half = [[(error(a + b) - error(a - b)) / 4 for a in unit] for b in unit]
    np.testing.assert_allclose(curvatures(source, 3), np.linalg.eigvalsh(half), rtol=1e-12)
