"""Observables of clouds: of tokens and of closures, against NumPy."""

import jax.numpy as jnp
import numpy as np
import pytest

from pathlines.foundation.errors import FormError
from pathlines.limit.gaussian.context import score_strength as limit_theta
from pathlines.model import SelfAttention
from pathlines.model.base import Snapshot
from pathlines.model.gaussian.closure import SoftmaxGaussian, sigma_points
from pathlines.observable import OBSERVABLES
from pathlines.weights import FixedWeights

RNG = np.random.default_rng(2)
X = RNG.standard_normal((40, 3)) @ np.diag([2.0, 1.0, 0.1]) + 0.3
MASSES = RNG.uniform(0.5, 2.0, 40)
MASSES /= MASSES.sum()
A, V = RNG.standard_normal((2, 3, 3)) * 0.4
CENTRED = X - MASSES @ X
COV = (CENTRED.T * MASSES) @ CENTRED
EIGENVALUES = np.linalg.eigvalsh(COV)[::-1]


def snapshots():
    """The same mean and covariance, as weighted tokens and as a closure."""
    tokens = SelfAttention(1.0, weights=FixedWeights(V, A), multiplicities=MASSES, space="euclidean")
    cloud = SoftmaxGaussian(V, A)
    for model, start in ((tokens, X), (cloud, sigma_points(MASSES @ X, COV))):
        state = model.initial(jnp.asarray(start))
        yield Snapshot(model, state, jnp.zeros(()), state)


SHARES = EIGENVALUES / EIGENVALUES.sum()
EXPECTED = {
    "cloud_mean": MASSES @ X,
    "covariance": COV,
    "covariance_trace": np.trace(COV),
    "anisotropy": SHARES[0],
    "covariance_participation": 1 / np.sum(SHARES**2),
    "covariance_entropy_rank": np.exp(-np.sum(SHARES * np.log(SHARES))),
    "covariance_rank": 3,
    "covariance_above": np.sum(EIGENVALUES > 0.1),
    "theta": limit_theta(A, COV),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_value(name):
    for snapshot in snapshots():
        np.testing.assert_allclose(OBSERVABLES[name](snapshot), EXPECTED[name], rtol=1e-10)


def test_eigenvalues_and_thresholds():
    for snapshot in snapshots():
        np.testing.assert_allclose(OBSERVABLES["covariance_eigenvalues"](snapshot)[:3], EIGENVALUES, rtol=1e-10)
        assert OBSERVABLES["covariance_rank"].at(tolerance=0.1)(snapshot) == np.sum(0.1 * EIGENVALUES[0] < EIGENVALUES)


def test_growth_rate_vs_covariance_equation():
    tokens, cloud = snapshots()
    rate = 2 * np.trace(V @ COV @ A @ COV) / np.trace(COV)
    assert float(OBSERVABLES["covariance_growth"](cloud)) == pytest.approx(rate, rel=1e-10)
    assert float(OBSERVABLES["closure_defect"](cloud)) == 0
    for name in ("covariance_growth", "closure_defect"):
        with pytest.raises(FormError, match="closure"):
            OBSERVABLES[name](tokens)


def test_mardia_vs_direct_sums():
    tokens, _ = snapshots()
    inverse = np.linalg.inv(COV)
    products = CENTRED @ inverse @ CENTRED.T
    assert float(OBSERVABLES["mardia_skewness"](tokens)) == pytest.approx(MASSES @ products**3 @ MASSES, rel=1e-9)
    kurtosis = MASSES @ np.diag(products) ** 2 - 15
    assert float(OBSERVABLES["mardia_kurtosis"](tokens)) == pytest.approx(kurtosis, rel=1e-9)
